/* A product as Hopper does it: the copy engine fills a ring of stages, two warpgroups multiply, tiles
 * leave through shared memory; CLUSTER blocks share the columns' tile. C = A B', or A B (ACROSS). */
#include "zc/hopper.cuh"

#define TILE   16384 /* bytes: 128 lines of 64 elements */
#define STAGES 3
#define BYTES  (2 * TILE)

struct arguments {
    zc_tensor_map a, b, c;
    int m, n, k;
};

ZC_WGMMA(multiply, 128, TYPE, ACROSS)

/* The next stage; the parity changes with each round. */
struct place {
    u32 stage, parity;
    __device__ void next()
    {
        if (++stage < STAGES) return;
        stage = 0;
        parity ^= 1;
    }
};

/* The tiles of a cluster, below each other. */
struct tiles {
    int rows, count, at;
    __device__ tiles(const arguments &p)
        : rows((p.m + 128 * CLUSTER - 1) / (128 * CLUSTER)), count(rows * ((p.n + 127) / 128)),
          at((int)blockIdx.x / CLUSTER)
    {
    }
    __device__ int row() { return (at % rows * CLUSTER + (int)zc_cluster_rank()) * 128; }
    __device__ int column() { return at / rows * 128; }
    __device__ void next() { at += (int)gridDim.x / CLUSTER; }
};

ZC_INLINE void produce(const arguments &p, u32 ring, u32 full, u32 empty)
{
    place at = {0, 1};
    const int share = 128 / CLUSTER, first = share * (int)zc_cluster_rank();
    for (tiles t(p); t.at < t.count; t.next())
        for (int k = 0; k < p.k; k += 64, at.next()) {
            const u32 a = ring + at.stage * BYTES, b = a + TILE, ready = full + 8 * at.stage;
            zc_barrier_wait_cluster(empty + 8 * at.stage, at.parity);
            zc_barrier_expect(ready, BYTES);
            zc_tensor_load(a, &p.a, ready, k, t.row());
#if CLUSTER == 1 && ACROSS
            zc_tensor_load(b, &p.b, ready, t.column(), k);
            zc_tensor_load(b + TILE / 2, &p.b, ready, t.column() + 64, k);
#elif CLUSTER == 1
            zc_tensor_load(b, &p.b, ready, k, t.column());
#elif ACROSS
            zc_tensor_multicast(b + first * 128, &p.b, ready, (1 << CLUSTER) - 1, t.column() + first, k);
#else
            zc_tensor_multicast(b + first * 128, &p.b, ready, (1 << CLUSTER) - 1, k, t.column() + first);
#endif
        }
}

/* A warp's 16 rows of the tile, 16 columns at a time, in lines of 64 columns. */
ZC_INLINE void keep(const f32 (&d)[64], u32 tile)
{
    const u32 lane = threadIdx.x % 32, row = threadIdx.x % 128 / 32 * 16 + lane % 16;
    for (u32 column = 0; column < 128; column += 16) {
        u32 r[4];
        for (u32 i = 0; i < 4; i++) {
            const u32 at = column / 2 + 2 * i;
            r[i] = (u32)PACK(d[at]) | (u32)PACK(d[at + 1]) << 16;
        }
        const u32 line = tile + column / 64 * TILE + row * 128;
        const u32 chunk = (column % 64 + lane / 16 * 8) / 8;
        zc_stmatrix_x4(line + (chunk ^ (line >> 7 & 7)) * 16, r);
    }
}

ZC_INLINE void release(u32 barrier)
{
    if (threadIdx.x % 32 < CLUSTER) zc_barrier_arrive_remote(zc_cluster_address(barrier, threadIdx.x % 32));
}

ZC_INLINE void consume(const arguments &p, u32 ring, u32 out, u32 full, u32 empty)
{
    const u32 group = threadIdx.x / 128 - 1, half = group * (TILE / 2);
    place at = {0, 0};
    f32 d[64];
    for (tiles t(p); t.at < t.count; t.next()) {
        u32 before = 0;
        for (int k = 0; k < p.k; k += 64, at.next()) {
            const u32 a = ring + at.stage * BYTES + half, b = ring + at.stage * BYTES + TILE;
            zc_barrier_wait(full + 8 * at.stage, at.parity);
            zc_wgmma_fence();
            for (u32 step = 0; step < 4; step++)
                multiply(d, zc_wgmma_along(a, 32 * step),
                         ACROSS ? zc_wgmma_across(b, 2048 * step, TILE / 2) : zc_wgmma_along(b, 32 * step),
                         k > 0 || step > 0);
            zc_wgmma_commit();
            zc_wgmma_wait<1>();
            if (before) release(before);
            before = empty + 8 * at.stage;
        }
        zc_wgmma_wait<0>();
        release(before);
        if (threadIdx.x % 128 == 0) zc_bulk_wait_read<0>();
        zc_named_sync(1 + group, 128);
        keep(d, out + half);
        zc_async_fence();
        zc_named_sync(1 + group, 128);
        if (threadIdx.x % 128 == 0) {
            for (int i = 0; i < 2; i++)
                zc_tensor_store(&p.c, out + half + i * TILE, t.column() + 64 * i, t.row() + (int)group * 64);
            zc_bulk_commit();
        }
    }
    if (threadIdx.x % 128 == 0) zc_bulk_wait<0>();
}

extern "C" __global__ void __launch_bounds__(384) product(const __grid_constant__ arguments p)
{
    ZC_DYNAMIC_SMEM(memory);
    __shared__ __align__(8) u64 barriers[2 * STAGES];
    const u32 ring = (zc_smem_address(memory) + 1023) & ~1023u, out = ring + STAGES * BYTES;
    const u32 full = zc_smem_address(barriers), empty = full + 8 * STAGES;
    if (threadIdx.x == 0) {
        zc_tensor_prefetch(&p.a);
        for (u32 i = 0; i < STAGES; i++) {
            zc_barrier_init(full + 8 * i, 1);
            zc_barrier_init(empty + 8 * i, 8 * CLUSTER);
        }
        zc_barrier_fence();
    }
    zc_cluster_arrive_relaxed();
    zc_cluster_wait();
    if (threadIdx.x < 128) {
        zc_registers_drop<40>();
        if (threadIdx.x == 0) produce(p, ring, full, empty);
    } else {
        zc_registers_take<232>();
        consume(p, ring, out, full, empty);
    }
    zc_cluster_arrive_relaxed();
    zc_cluster_wait();
}
