// Matrix products of few rows of f16 or bf16 on Hopper: short kernels, of which several run one after another. A block
// has a tile of 64 columns; its part of B, and mostly of A, lies in shared memory as a whole, and B's is on its way
// before the kernel in front has ended. Columns of the result are rows of the warpgroups' products, so that a tile may
// have any multiple of 8 rows.
//
// Blocks of a cluster share a tile's summed axis, warpgroups of a block every second step of its part. The sums meet in
// shared memory, where each block of the cluster gets some of the tile's rows from all others, adds them up in the
// order of the parts and finishes them.
//
// spec.h: see zc/gemm.cuh, and the configuration: Z_TILE_ROWS x 64, Z_GROUPS (warpgroups), Z_PARTS (blocks of a
// cluster), Z_STEPS (of 64, of a part), Z_STAGES (in shared memory); Z_WGMMA (F16, BF16); Z_B_CONSTANT: B is a constant
// of the plan; zc/row_moments.cuh. Entry 1: see zc/gemm_second.cuh.
#include "zc/row_moments.cuh"
#include "zc/cluster.cuh"
#include "zc/index.cuh"
#include "abi/gemm_few_sm90.h"

ZC_WGMMA_ACROSS(zc_product, Z_TILE_ROWS, Z_WGMMA, !Z_TB, 0)

template <int ROWS, int GROUPS, int PARTS, int STEPS, int STAGES> struct zc_gemm_few_sm90 {
    static constexpr int COLS = 64, DEPTH = 64, LINE = 128, NEAR = 8; // NEAR columns are finished by one thread
    static constexpr int THREADS = GROUPS * 128;                      // that multiply; one more warp asks for copies
    static constexpr bool RESIDENT = STAGES >= STEPS;
    static constexpr int B_BYTES = COLS * LINE, STAGE = B_BYTES + ROWS * LINE;
    static constexpr int PITCH = COLS + 4, SUMS = ROWS * PITCH * 4; // of f32
    static constexpr int SHARE = ROWS / PARTS, SENT = SHARE * PITCH * 4;
    static constexpr int OPERANDS = STAGES * STAGE > GROUPS * SUMS ? STAGES * STAGE : GROUPS * SUMS;
    static constexpr int BARRIERS = OPERANDS + (PARTS - 1) * SENT;
    static constexpr int AT_ONCE = THREADS / (COLS / NEAR), PASSES = (SHARE + AT_ONCE - 1) / AT_ONCE;
    enum { CONSUMERS = 1 }; // named barrier
    // A stage that is filled again is always the same warpgroup's: a parity cannot tell a phase from the one two before it.
    static_assert(RESIDENT || (STAGES % GROUPS == 0 && STAGES >= 2 * GROUPS), "stages of each warpgroup");

    const zc_gemm_sm90_params &p;
    const zc_row_moments_params &moments;
    unsigned char *memory; // stages, then each warpgroup's sums in their place; sums of the other blocks; barriers
    u32 smem;
    int rank, first, steps; // of this block's part
    int row, col, item;     // of the tile

    ZC_MEMBER u32 b_of(int stage) const { return smem + stage * STAGE; }
    ZC_MEMBER u32 a_of(int stage) const { return b_of(stage) + B_BYTES; }
    ZC_MEMBER u32 full(int stage) const { return smem + BARRIERS + stage * 8; }
    ZC_MEMBER u32 empty(int stage) const { return smem + BARRIERS + (STAGES + stage) * 8; }
    ZC_MEMBER u32 arrived() const { return smem + BARRIERS + 2 * STAGES * 8; }
    // Where block `by` gets the sums of another part.
    ZC_MEMBER static int received(int part, int by) { return OPERANDS + (part < by ? part : part - 1) * SENT; }

    ZC_MEMBER zc_gemm_few_sm90(const zc_gemm_few_sm90_params &all, unsigned char *memory)
        : p(all.product), moments(all.product.moments), memory(memory), smem(zc_smem_address(memory)) {
        const int count = (int)((p.g.k + DEPTH - 1) / DEPTH);
        const u32 tile = blockIdx.x / PARTS, line = (u32)zc_divide(tile, all.by_down);
        rank = PARTS > 1 ? (int)zc_cluster_rank() : 0;
        first = rank * STEPS;
        steps = count - first < STEPS ? count - first : STEPS;
        if (steps < 0) steps = 0;
        item = (int)zc_divide(line, all.by_across);
        row = (int)(tile - line * (u32)all.by_down.d) * ROWS;
        col = (int)(line - (u32)item * (u32)all.by_across.d) * COLS;
    }

    // ---- the warp that asks for copies: lane i for stage i ----

    template <bool EARLY> ZC_MEMBER void load_b(int stage, int step) const {
        const int at = (first + step) * DEPTH, of = p.b_items > 1 ? item : 0;
        if (EARLY) zc_constant_load();
        zc_tensor_load(b_of(stage), &p.b, full(stage), Z_TB ? at : col, Z_TB ? col : at, of);
    }
    ZC_MEMBER void load_a(int stage, int step) const {
        zc_tensor_load(a_of(stage), &p.a, full(stage), (first + step) * DEPTH, row, item);
    }
    ZC_MEMBER static int lane() { return (int)threadIdx.x % 32; }
    ZC_MEMBER void prepare() const {
        if (lane() < STAGES) {
            zc_barrier_init(full(lane()), 1);
            if (!RESIDENT) zc_barrier_init(empty(lane()), 1);
        }
        if (PARTS > 1 && lane() == 0) zc_barrier_init(arrived(), 1);
        zc_barrier_fence();
        if (lane() < STAGES && lane() < steps) {
            zc_barrier_expect(full(lane()), STAGE);
#ifdef Z_B_CONSTANT
            load_b<true>(lane(), lane());
#endif
        }
        if (lane() == 0) zc_tensor_prefetch(&p.a);
        if (PARTS > 1 && lane() == 0) zc_barrier_expect(arrived(), (PARTS - 1) * SENT);
        zc_sync_warp();
    }
    ZC_MEMBER void produce() const {
        if (lane() < STAGES && lane() < steps) {
#ifndef Z_B_CONSTANT
            load_b<false>(lane(), lane());
#endif
            load_a(lane(), lane());
        }
        if (RESIDENT || lane() != 0) return;
        for (int i = STAGES; i < steps; i++) {
            const int stage = i % STAGES;
            zc_barrier_wait(empty(stage), (i / STAGES - 1) & 1);
            zc_barrier_expect(full(stage), STAGE);
            load_b<false>(stage, i);
            load_a(stage, i);
        }
    }

    // ---- the others ----

    // What a thread's results need beside their sums: asked for before the products, used after them.
    struct operands {
        zc_gemm_addend<NEAR> addend;
        zc_moments_columns_of<NEAR> columns;
        zc_moments_cells<NEAR, COLS / NEAR> moments[PASSES];
        zc_fused_cells<NEAR> cells[PASSES];
    };
    ZC_MEMBER static int near_col() { return (int)threadIdx.x % (COLS / NEAR) * NEAR; }
    ZC_MEMBER static int near_row(int pass) { return (int)threadIdx.x / (COLS / NEAR) + pass * AT_ONCE; }
    ZC_MEMBER int row_of(int pass) const { return row + rank * SHARE + near_row(pass); }
    ZC_MEMBER bool is_mine(int pass) const {
        return near_row(pass) < SHARE && row_of(pass) < p.g.m && col + near_col() < p.g.n;
    }
    ZC_MEMBER void ask(const zc_gemm_item &of, operands &o) const {
        if (col + near_col() < p.g.n) {
            o.addend.load(of, col + near_col());
            o.columns.load(moments, col + near_col());
        }
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            o.moments[pass].load_rows(moments, row_of(pass) < p.g.m ? row_of(pass) : p.g.m - 1);
            if (!is_mine(pass)) continue;
            o.moments[pass].load_skip(moments, row_of(pass), col + near_col());
            o.cells[pass].load(p.g.fused, item * p.g.m + row_of(pass), col + near_col(), p.g.n);
        }
    }

    ZC_MEMBER void multiply(int group, f32 (&sum)[ROWS / 2]) const {
        if (group >= steps)
            for (int i = 0; i < ROWS / 2; i++) sum[i] = 0;
        for (int i = group; i < steps; i += GROUPS) {
            const int stage = RESIDENT ? i : i % STAGES;
            const u32 a = a_of(stage), b = b_of(stage);
            zc_barrier_wait(full(stage), RESIDENT ? 0 : i / STAGES & 1);
            zc_wgmma_fence();
#pragma unroll
            for (int part = 0; part < DEPTH / 16; part++)
                zc_product(sum, Z_TB ? zc_wgmma_along(b, part * 32) : zc_wgmma_across(b, part * 16 * LINE, B_BYTES),
                           zc_wgmma_along(a, part * 32), i > group || part);
            zc_wgmma_commit();
            if (RESIDENT || i == group) continue;
            zc_wgmma_wait<1>(); // one group is in flight: the products of the step before are done
            if (threadIdx.x % 128 == 0) zc_barrier_arrive(empty((i - GROUPS) % STAGES));
        }
        zc_wgmma_wait<0>();
    }
    // Sums take the operands' place, once nobody reads these any more: a line for each row of the result.
    ZC_MEMBER void keep(int group, const f32 (&sum)[ROWS / 2]) const {
        f32 *const tile = (f32 *)(memory + group * SUMS);
        const int thread = (int)threadIdx.x % 128, c = thread / 32 * 16 + lane() / 4, r = lane() % 4 * 2;
        zc_named_sync(CONSUMERS, THREADS); // warps wait for their own products alone
#pragma unroll
        for (int i = 0; i < ROWS / 2; i++) tile[(i / 4 * 8 + r + i % 2) * PITCH + c + i / 2 % 2 * 8] = sum[i];
        if (PARTS > 1 && GROUPS == 1) zc_async_fence();
        zc_named_sync(CONSUMERS, THREADS);
    }
    typedef zc_vec<f32, 4> four;
    static ZC_MEMBER void add(four &to, const four &x) {
#pragma unroll
        for (int i = 0; i < 4; i++) to.v[i] += x.v[i];
    }
    // Those of all warpgroups, in place of the first's.
    ZC_MEMBER void join_groups() const {
        for (int at = (int)threadIdx.x * 16; at < SUMS; at += THREADS * 16) {
            four sum = *(const four *)(memory + at);
#pragma unroll
            for (int group = 1; group < GROUPS; group++) add(sum, *(const four *)(memory + group * SUMS + at));
            *(four *)(memory + at) = sum;
        }
        zc_async_fence();
        zc_named_sync(CONSUMERS, THREADS);
    }
    ZC_MEMBER void exchange() const {
        const int to = (int)threadIdx.x;
        if (GROUPS > 1) join_groups();
        if (to < PARTS && to != rank)
            zc_bulk_send(zc_cluster_address(smem + received(rank, to), to), smem + to * SENT, SENT,
                         zc_cluster_address(arrived(), to));
        zc_barrier_wait_cluster(arrived(), 0);
    }
    // NEAR neighbours of a row of this block's share: all parts' sums, in their order, or all warpgroups'.
    ZC_MEMBER void add_up(int r, f32 (&v)[NEAR]) const {
        constexpr int COUNT = PARTS > 1 ? PARTS : GROUPS;
        four sum[NEAR / 4] = {};
#pragma unroll
        for (int i = 0; i < COUNT; i++) {
            const int at = PARTS == 1 ? i * SUMS : i == rank ? rank * SENT : received(i, rank);
            const four *const from = (const four *)((const f32 *)(memory + at) + r * PITCH + near_col());
#pragma unroll
            for (int e = 0; e < NEAR / 4; e++) add(sum[e], from[e]);
        }
#pragma unroll
        for (int e = 0; e < NEAR; e++) v[e] = sum[e / 4].v[e % 4];
    }
    // Leaves in v what the moments are of.
    ZC_MEMBER void save(const zc_gemm_item &of, const operands &o, int pass, i64 r, int c, f32 (&v)[NEAR]) const {
#ifdef Z_NORM
        four *const to = (four *)((f32 *)p.g.partial + r * p.g.n + c);
#pragma unroll
        for (int e = 0; e < NEAR / 4; e++) to[e] = {v[e * 4], v[e * 4 + 1], v[e * 4 + 2], v[e * 4 + 3]};
#else
        typedef zc_vec<decltype(zc_pack(Z_Y(), 0.0f, 0.0f)), 8 / sizeof(Z_Y)> piece; // 16 bytes
        constexpr int PER = 16 / sizeof(Z_Y);
        f32 y[NEAR];
#pragma unroll
        for (int e = 0; e < NEAR; e++) {
            const f32 sum = o.addend.value(p.g, of, r, c, e, o.moments[pass].product(o.columns, e, v[e]));
            y[e] = zc_epilogue(o.moments[pass].plus_skip(o.columns, e, sum));
            v[e] = zc_get(zc_put<Z_T>(y[e]));
        }
        o.cells[pass].apply(y);
#pragma unroll
        for (int at = 0; at < NEAR; at += PER) {
            piece out;
#pragma unroll
            for (int e = 0; e < PER / 2; e++) out.v[e] = zc_pack(Z_Y(), y[at + e * 2], y[at + e * 2 + 1]);
            *(piece *)(of.y + r * p.g.y_ld + c + at) = out;
        }
#endif
    }
    ZC_MEMBER void consume() const {
        const zc_gemm_item of = zc_gemm_item_at(p.g, item);
        const int group = zc_warpgroup();
        operands o;
        f32 sum[ROWS / 2];
#ifndef Z_NORM
        ask(of, o);
#endif
        multiply(group, sum);
        keep(group, sum);
        if (PARTS > 1) exchange();
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            f32 v[NEAR];
            o.moments[pass].join(moments);
            if (is_mine(pass)) {
                add_up(near_row(pass), v);
                save(of, o, pass, row_of(pass), col + near_col(), v);
            }
            zc_save_moments<NEAR, COLS / NEAR>(moments, row_of(pass), col, is_mine(pass) ? NEAR : 0, v);
        }
    }
};

ZC_KERNEL_OF(0, Z_GROUPS * 128 + 32)(const __grid_constant__ zc_gemm_few_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_gemm_few_sm90<Z_TILE_ROWS, Z_GROUPS, Z_PARTS, Z_STEPS, Z_STAGES> product(p, smem);
    const bool producer = threadIdx.x >= Z_GROUPS * 128;
    if (producer) product.prepare();
    zc_meet<Z_PARTS>();
    zc_wait();
    zc_grid_launch();
    if (producer)
        product.produce();
    else
        product.consume();
    if (Z_PARTS > 1) zc_cluster_meet(); // what this block sent has been read when its partners have it
}
#include "zc/gemm_second.cuh"
