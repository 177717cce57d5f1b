/* The host version of templates/zc/hopper.cuh and zc/wgmma.cuh: the same names, given their meaning
 * by the fake driver. What runs in the background there runs as late as possible here. */
#ifndef ZC_HOPPER_CUH
#define ZC_HOPPER_CUH
#define ZC_WGMMA_CUH
#include "abi/tensor_map.h"
#include "zc/wgmma_tile.cuh"

/* The line of the call, as a type of its own: coordinates are not taken for it. */
struct zc_host_line {
    int number;
    explicit zc_host_line(int line = __builtin_LINE()) : number(line) {}
};
#define ZC_HOST_LINE zc_host_line line = zc_host_line(__builtin_LINE())

#define ZC_SWIZZLED_SMEM(name) unsigned char *name = zc_host.smem

/* ---- Roles and named barriers ---- */

template <int N> ZC_INLINE void zc_registers_drop(ZC_HOST_LINE)
{
    zc_host_call->registers(line.number, N, false);
}

template <int N> ZC_INLINE void zc_registers_take(ZC_HOST_LINE)
{
    zc_host_call->registers(line.number, N, true);
}

ZC_INLINE void zc_named_sync(int barrier, int threads, ZC_HOST_LINE)
{
    zc_host_call->named(ZC_HOST_NAMED_SYNC, line.number, barrier, threads);
}

ZC_INLINE void zc_named_arrive(int barrier, int threads, ZC_HOST_LINE)
{
    zc_host_call->named(ZC_HOST_NAMED_ARRIVE, line.number, barrier, threads);
}

/* ---- Clusters ---- */

ZC_INLINE u32 zc_cluster_rank()
{
    return zc_host.cluster_rank;
}

ZC_INLINE u32 zc_cluster_address(u32 smem, u32 rank)
{
    return (smem & ((1u << ZC_HOST_RANK_SHIFT) - 1)) | rank << ZC_HOST_RANK_SHIFT;
}

ZC_INLINE void zc_cluster_arrive(ZC_HOST_LINE)
{
    zc_host_call->cluster_arrive(line.number);
}

ZC_INLINE void zc_cluster_arrive_relaxed(ZC_HOST_LINE)
{
    zc_host_call->cluster_arrive(line.number);
}

ZC_INLINE void zc_cluster_wait(ZC_HOST_LINE)
{
    zc_host_call->cluster_wait(line.number);
}

/* ---- Barriers in shared memory ---- */

ZC_INLINE void zc_barrier_init(u32 barrier, u32 count, ZC_HOST_LINE)
{
    zc_host_call->barrier_init(line.number, barrier, count);
}

ZC_INLINE void zc_barrier_fence()
{
    zc_host_call->barrier_fence();
}

ZC_INLINE void zc_barrier_arrive(u32 barrier, ZC_HOST_LINE)
{
    zc_host_call->barrier_arrive(line.number, barrier, 0, false);
}

ZC_INLINE void zc_barrier_arrive_remote(u32 barrier, ZC_HOST_LINE)
{
    zc_host_call->barrier_arrive(line.number, barrier, 0, true);
}

ZC_INLINE void zc_barrier_expect(u32 barrier, u32 bytes, ZC_HOST_LINE)
{
    zc_host_call->barrier_arrive(line.number, barrier, bytes, false);
}

ZC_INLINE void zc_barrier_wait(u32 barrier, u32 parity, ZC_HOST_LINE)
{
    zc_host_call->barrier_wait(line.number, barrier, parity);
}

ZC_INLINE void zc_barrier_wait_cluster(u32 barrier, u32 parity, ZC_HOST_LINE)
{
    zc_host_call->barrier_wait(line.number, barrier, parity);
}

/* ---- The copy engine ---- */

ZC_INLINE void zc_tensor_prefetch(const zc_tensor_map *map, ZC_HOST_LINE)
{
    zc_host_call->tensor_prefetch(line.number, map);
}

ZC_INLINE void zc_tensor_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, int c1,
                              ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier, map, 2, {c0, c1}};
    zc_host_call->load(&c);
}

ZC_INLINE void zc_tensor_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, int c1, int c2,
                              ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier, map, 3, {c0, c1, c2}};
    zc_host_call->load(&c);
}

ZC_INLINE void zc_tensor_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, int c1, int c2,
                              int c3, ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier, map, 4, {c0, c1, c2, c3}};
    zc_host_call->load(&c);
}

ZC_INLINE void zc_tensor_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0, int c1, int c2,
                              int c3, int c4, ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier, map, 5, {c0, c1, c2, c3, c4}};
    zc_host_call->load(&c);
}

template <int SIDES>
ZC_INLINE void zc_patches_load(u32 to, const zc_tensor_map *map, u32 barrier, int c0,
                               const int (&at)[SIDES], int image, const u16 (&tap)[SIDES],
                               ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier, map, SIDES + 2, {c0}};
    c.taps = SIDES;
    for (int i = 0; i < SIDES; i++) {
        c.at[1 + i] = at[i];
        c.tap[i] = tap[i];
    }
    c.at[1 + SIDES] = image;
    zc_host_call->load(&c);
}

ZC_INLINE void zc_tensor_multicast(u32 to, const zc_tensor_map *map, u32 barrier, u16 mask, int c0,
                                   int c1, ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier, map, 2, {c0, c1}};
    c.multicast = mask;
    zc_host_call->load(&c);
}

ZC_INLINE void zc_tensor_multicast(u32 to, const zc_tensor_map *map, u32 barrier, u16 mask, int c0,
                                   int c1, int c2, ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier, map, 3, {c0, c1, c2}};
    c.multicast = mask;
    zc_host_call->load(&c);
}

ZC_INLINE void zc_tensor_multicast(u32 to, const zc_tensor_map *map, u32 barrier, u16 mask, int c0,
                                   int c1, int c2, int c3, int c4, ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier, map, 5, {c0, c1, c2, c3, c4}};
    c.multicast = mask;
    zc_host_call->load(&c);
}

ZC_INLINE void zc_tensor_store(const zc_tensor_map *map, u32 from, int c0, int c1, ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, from, 0, map, 2, {c0, c1}};
    zc_host_call->store(&c);
}

ZC_INLINE void zc_tensor_store(const zc_tensor_map *map, u32 from, int c0, int c1, int c2,
                               ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, from, 0, map, 3, {c0, c1, c2}};
    zc_host_call->store(&c);
}

ZC_INLINE void zc_tensor_store(const zc_tensor_map *map, u32 from, int c0, int c1, int c2, int c3,
                               ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, from, 0, map, 4, {c0, c1, c2, c3}};
    zc_host_call->store(&c);
}

ZC_INLINE void zc_bulk_load(u32 to, const void *from, u32 bytes, u32 barrier, ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier};
    c.global = from;
    c.bytes = bytes;
    zc_host_call->load(&c);
}

ZC_INLINE void zc_bulk_send(u32 to, u32 from, u32 bytes, u32 barrier, ZC_HOST_LINE)
{
    zc_host_copy c = {line.number, to, barrier};
    c.source = from;
    c.bytes = bytes;
    zc_host_call->load(&c);
}

ZC_INLINE void zc_bulk_commit()
{
    zc_host_call->store_commit();
}

template <int N> ZC_INLINE void zc_bulk_wait_read()
{
    zc_host_call->store_wait(N, true);
}

template <int N> ZC_INLINE void zc_bulk_wait()
{
    zc_host_call->store_wait(N, false);
}

ZC_INLINE void zc_async_fence()
{
    zc_host_call->async_fence();
}

/* ---- Products of a warpgroup ---- */

ZC_INLINE int zc_warpgroup()
{
    return (int)(threadIdx.x / 128);
}

ZC_INLINE int zc_warp()
{
    return (int)(threadIdx.x / 32);
}

ZC_INLINE bool zc_elect()
{
    return threadIdx.x % 32 == 0;
}

ZC_INLINE void zc_wgmma_fence()
{
    zc_host_call->wgmma_fence();
}

ZC_INLINE void zc_wgmma_commit()
{
    zc_host_call->wgmma_commit();
}

template <int N> ZC_INLINE void zc_wgmma_wait(ZC_HOST_LINE)
{
    zc_host_call->wgmma_wait(line.number, N);
}

#define ZC_WGMMA(name, n, TYPE, across) ZC_HOST_WGMMA(name, n, TYPE, 0, across)
#define ZC_WGMMA_ACROSS(name, n, TYPE, across_a, across)                                           \
    ZC_HOST_WGMMA(name, n, TYPE, across_a, across)
#define ZC_HOST_WGMMA(name, n, TYPE, across_a, across)                                             \
    ZC_INLINE void name(f32(&d)[(n) / 2], u64 a, u64 b, bool add, ZC_HOST_LINE)                    \
    {                                                                                              \
        static_assert((n) % 8 == 0 && (n) >= 8 && (n) <= 256, "8, 16 ... 256 columns");            \
        zc_host_product p = {ZC_HOST_WGMMA_##TYPE, line.number, n, across_a, across, add, a, b};   \
        zc_host_call->wgmma(&p, 0, d);                                                             \
    }

#define ZC_WGMMA_ALONG(name, n, TYPE) ZC_HOST_WGMMA_ALONG(name, n, TYPE)
#define ZC_HOST_WGMMA_ALONG(name, n, TYPE)                                                         \
    ZC_INLINE void name(ZC_HOST_SUM_##TYPE(&d)[(n) / 2], u64 a, u64 b, bool add, ZC_HOST_LINE)     \
    {                                                                                              \
        static_assert((n) % 8 == 0 && (n) >= 8 && (n) <= 256, "8, 16 ... 256 columns");            \
        static_assert(ZC_HOST_WGMMA_##TYPE < ZC_HOST_WGMMA_S8 || (n) <= 32 || (n) % 16 == 0,       \
                      "columns that products of integers have");                                   \
        zc_host_product p = {ZC_HOST_WGMMA_##TYPE, line.number, n, 0, 0, add, a, b};               \
        zc_host_call->wgmma(&p, 0, (f32 *)d);                                                      \
    }                                                                                              \
    ZC_INLINE void name(ZC_HOST_SUM_##TYPE(&d)[(n) / 2], u64 a, u64 b, ZC_HOST_LINE)               \
    {                                                                                              \
        name(d, a, b, false, line);                                                                \
    }
#define ZC_HOST_SUM_F16  f32
#define ZC_HOST_SUM_BF16 f32
#define ZC_HOST_SUM_TF32 f32
#define ZC_HOST_SUM_E4M3 f32
#define ZC_HOST_SUM_S8   i32
#define ZC_HOST_SUM_S8U8 i32
#define ZC_HOST_SUM_U8S8 i32
#define ZC_HOST_SUM_U8   i32

#define ZC_WGMMA_HELD(name, n, TYPE, across) ZC_HOST_WGMMA_HELD(name, n, TYPE, across)
#define ZC_WGMMA_HELD_ALONG(name, n, TYPE)   ZC_HOST_WGMMA_HELD(name, n, TYPE, 0)
#define ZC_HOST_WGMMA_HELD(name, n, TYPE, across)                                                  \
    ZC_INLINE void name(ZC_HOST_SUM_##TYPE(&d)[(n) / 2], const u32(&a)[4], u64 b, bool add,        \
                        ZC_HOST_LINE)                                                              \
    {                                                                                              \
        static_assert((n) % 8 == 0 && (n) >= 8 && (n) <= 256, "8, 16 ... 256 columns");            \
        zc_host_product p = {ZC_HOST_WGMMA_##TYPE, line.number, n, 0, across, add, 0, b};          \
        zc_host_call->wgmma(&p, a, (f32 *)d);                                                      \
    }                                                                                              \
    ZC_INLINE void name(ZC_HOST_SUM_##TYPE(&d)[(n) / 2], const u32(&a)[4], u64 b, ZC_HOST_LINE)    \
    {                                                                                              \
        name(d, a, b, false, line);                                                                \
    }

#define ZC_WGMMA_SPARSE(name, n, TYPE, selector) ZC_HOST_WGMMA_SPARSE(name, n, TYPE, selector)
#define ZC_HOST_WGMMA_SPARSE(name, n, TYPE, selector)                                              \
    ZC_INLINE void name(f32(&d)[(n) / 2], u64 a, u64 b, const u32 &places, bool add, ZC_HOST_LINE) \
    {                                                                                              \
        static_assert((n) % 8 == 0 && (n) >= 8 && (n) <= 256, "8, 16 ... 256 columns");            \
        static_assert((selector) == 0 || (selector) == 1, "the first two threads or the others");  \
        zc_host_product p = {ZC_HOST_WGMMA_##TYPE, line.number, n, 0, 0, add, a, b};               \
        p.sparse = (selector) + 1;                                                                 \
        p.places = &places;                                                                        \
        zc_host_call->wgmma(&p, 0, d);                                                             \
    }

#define ZC_STMATRIX(name, kind)                                                                    \
    ZC_INLINE void name(u32 row, const u32 r[4], ZC_HOST_LINE)                                     \
    {                                                                                              \
        zc_host_call->stmatrix(kind, line.number, row, r);                                         \
    }
ZC_STMATRIX(zc_stmatrix_x4, ZC_HOST_STMATRIX_X4)
ZC_STMATRIX(zc_stmatrix_x4_trans, ZC_HOST_STMATRIX_X4_TRANS)
#undef ZC_STMATRIX

ZC_INLINE void zc_constant_load()
{
    zc_host_call->constant_load();
}

#endif
