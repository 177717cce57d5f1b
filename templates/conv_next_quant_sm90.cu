// QLinearConvNext on Hopper: a convolution of points, with a sum of bytes behind it, and the next one of points, whose factors are
// the bytes that the first one gives; both have results. Each of three warpgroups has tiles of 64 pixels of its own, and what they
// come to and leave by: one tile of x, and panels (zc/byte_panels.cuh) to which the other operand of the sum comes, where the sum
// takes its place, is read by the second product, and leaves from. So warpgroups drift apart, and one's results are made beside
// another's products.
//
// A tile's turns: for each 128 columns of the first result a panel, whose results are made under the second product of the panel in
// front, and one panel for the second result. All weights stay. Channels of results are the rows of both products, and pixels their
// columns (zc/turned_bytes.cuh).
//
// spec.h: see zc/gemm_quant_sm90.cuh (results of the first convolution; Z_WHOLES is not 0); Z_WGMMA: as in zc/gemm_sm90.cuh; Z_DEPTH,
// Z_COLUMNS, Z_NEXT_COLUMNS: channels of x, 128 at most, of the first result, multiples of 128, and of the second, 64 or 128; Z_NEXT:
// the second's type; and the configuration: Z_PANELS of a warpgroup, a power of two.
#include "zc/device.cuh"
#include "zc/hopper.cuh"
#include "spec.h"
#define ZC_GQ_SECOND Z_NEXT
#ifdef Z_FUSED_SUM
#define ZC_GQ_SUM
#endif
#include "zc/byte_panels.cuh"

constexpr int GROUPS = 3, THREADS = GROUPS * 128;
constexpr int ACROSS = 128, COUNT = Z_COLUMNS / ACROSS; // columns of a panel, and panels of the first result
constexpr int DEEP = 32;                                // bytes of a product's step
constexpr int BESIDE = ACROSS / 64, OWN = Z_NEXT_COLUMNS / 64; // blocks of 64 channels of a panel, and of the second result
constexpr int BLOCK = 64 * ZC_PANEL_LINE;                      // weights of such a block
constexpr int FIRST_BLOCK = ACROSS * ZC_PANEL_LINE, NEXT_BLOCK = Z_NEXT_COLUMNS * ZC_PANEL_LINE; // weights of a panel
static_assert(Z_PANELS >= 2 && Z_WHOLES && Z_DEPTH <= ZC_PANEL_LINE && Z_COLUMNS % ACROSS == 0 && Z_NEXT_COLUMNS % 64 == 0 &&
                  Z_NEXT_COLUMNS <= ACROSS && !Z_ZERO_A && !Z_ZERO_B,
              "what the lines hold");

typedef i32 first_sums[BESIDE][32], next_sums[OWN][32];

struct conv_next {
    static constexpr int NEXT = COUNT * FIRST_BLOCK, TILES = NEXT + COUNT * NEXT_BLOCK, RESULTS = TILES + GROUPS * ZC_PANEL;
    static constexpr int FACTORS = RESULTS + GROUPS * Z_PANELS * ZC_PANEL;
    static constexpr int BARRIERS = FACTORS + (Z_COLUMNS + Z_NEXT_COLUMNS) * (int)sizeof(zc_gq_column);
    static constexpr int TURNS = COUNT + 1;       // panels of a tile
    static constexpr int EARLY = (COUNT + 1) / 2; // panels whose weights come before a tile; the others would be in its way

    const zc_gemm_quant_sm90_params &q;
    const zc_gemm_sm90_params &p;
    unsigned char *const memory;
    const u32 smem;
    const zc_gq_columns columns, factors;
    const int tiles;

    ZC_MEMBER conv_next(const zc_gemm_quant_sm90_params &q, unsigned char *memory)
        : q(q), p(q.product), memory(memory), smem(zc_smem_address(memory)), columns(memory + FACTORS, Z_COLUMNS),
          factors(memory + FACTORS + Z_COLUMNS * sizeof(zc_gq_column), Z_NEXT_COLUMNS), tiles(p.order.down) {}

    ZC_MEMBER u32 weights_full(int panel) const { return smem + BARRIERS + panel * 8; }
    ZC_MEMBER u32 tile_full(int group) const { return weights_full(COUNT + group); }
    ZC_MEMBER u32 panel_full(int group, int turn) const { return weights_full(COUNT + GROUPS + group * Z_PANELS + turn % Z_PANELS); }
    ZC_MEMBER u32 tile_of(int group) const { return smem + TILES + group * ZC_PANEL; }
    ZC_MEMBER int panel_of(int group, int turn) const { return RESULTS + (group * Z_PANELS + turn % Z_PANELS) * ZC_PANEL; }

    // A warpgroup's tile of this number. A few tiles are of many blocks.
    ZC_MEMBER int tile(int group, int number) const { return blockIdx.x + gridDim.x * (group + GROUPS * number); }

    ZC_MEMBER void begin() const {
        if (threadIdx.x == 0) {
            for (int i = 0; i < COUNT + GROUPS * (1 + Z_PANELS); i++) zc_barrier_init(weights_full(i), 1);
            zc_barrier_fence();
            ask_weights(0, EARLY);
            zc_tensor_prefetch(&p.a);
            if (ZC_PANEL_ADDS) zc_tensor_prefetch(&p.tile);
            zc_tensor_prefetch(&p.y);
            zc_tensor_prefetch(&p.second_a);
        }
        zc_sync();
    }

    // ---- what stays: weights, and factors of columns ----

    ZC_MEMBER void ask_weights(int first, int end) const {
        for (int panel = first; panel < end; panel++) {
            const u32 barrier = weights_full(panel);
            zc_barrier_expect(barrier, FIRST_BLOCK + NEXT_BLOCK);
            if (ZC_PANEL_CONSTANTS) zc_constant_load();
            zc_tensor_load(smem + panel * FIRST_BLOCK, &p.b, barrier, 0, 0, 0, panel * ACROSS / ZC_WGMMA_TURNED_ROWS, 0);
            if (ZC_PANEL_CONSTANTS) zc_constant_load();
            zc_tensor_load(smem + NEXT + panel * NEXT_BLOCK, &p.second_b, barrier, panel * ACROSS, 0, 0, 0, 0);
        }
    }
    ZC_MEMBER void lay_columns(const zc_gq_shared (&shared)[2]) const {
        for (int i = threadIdx.x; i < Z_COLUMNS + Z_NEXT_COLUMNS; i += THREADS)
            if (i < Z_COLUMNS)
                columns.put(i, zc_gq_make(shared[0], zc_gq_ask(q.quant, zc_gq_item(), i)).column);
            else
                factors.put(i - Z_COLUMNS, zc_gq_make(shared[1], zc_gq_ask(q.second, i - Z_COLUMNS)).column);
    }

    // ---- what comes, asked for by a warpgroup's first thread ----

    ZC_MEMBER void ask_tile(int group, int number) const {
        if (tile(group, number) >= tiles) return;
        zc_barrier_expect(tile_full(group), ZC_PANEL);
        zc_tensor_load(tile_of(group), &p.a, tile_full(group), 0, tile(group, number) * 64, 0);
    }
    // turn: of all the warpgroup's.
    ZC_MEMBER void ask_panel(int group, int turn) const {
        const int of = tile(group, turn / TURNS), column = turn % TURNS * ACROSS;
        if (of >= tiles) return;
        if (ZC_PANEL_ADDS && column < Z_COLUMNS) {
            zc_barrier_expect(panel_full(group, turn), ZC_PANEL);
            zc_tensor_load(smem + panel_of(group, turn), &p.tile, panel_full(group, turn), column, of * 64, 0);
        } else {
            zc_barrier_arrive(panel_full(group, turn));
        }
    }

    // ---- products ----

    ZC_MEMBER void multiply_first(int group, int panel, bool comes, first_sums &sum) const {
        if (comes) zc_barrier_wait(weights_full(panel), 0);
        zc_wgmma_fence();
#pragma unroll
        for (int deep = 0; deep < Z_DEPTH; deep += DEEP)
#pragma unroll
            for (int i = 0; i < BESIDE; i++)
                zc_panel_product(sum[i], zc_wgmma_along(smem + panel * FIRST_BLOCK, i * BLOCK + deep),
                                 zc_wgmma_along(tile_of(group), deep), deep == 0);
        zc_wgmma_commit();
    }
    ZC_MEMBER void multiply_next(int group, int turn, int panel, next_sums &sum) const {
        zc_wgmma_fence();
#pragma unroll
        for (int deep = 0; deep < ACROSS; deep += DEEP)
#pragma unroll
            for (int i = 0; i < OWN; i++)
                zc_product(sum[i], zc_wgmma_along(smem + NEXT + panel * NEXT_BLOCK, i * BLOCK + deep),
                           zc_wgmma_along(smem + panel_of(group, turn), deep), panel > 0 || deep > 0);
        zc_wgmma_commit();
    }

    // ---- results ----

    // All products but those of this turn's panel are done: the tile of x, behind its last panel, and the panel in front may be
    // written again.
    ZC_MEMBER void pass_on(int group, int thread, int turn) const {
        if (thread >= 32) {
            zc_named_arrive(1 + GROUPS + group, 128);
            return;
        }
        zc_named_sync(1 + GROUPS + group, 128);
        if (thread != 0) return;
        if (turn % TURNS == COUNT - 1) ask_tile(group, turn / TURNS + 1);
        if (turn == 0) return;
        zc_bulk_wait_read<0>();
        ask_panel(group, turn - 1 + Z_PANELS);
    }
    ZC_MEMBER void take_panel(int group, int turn) const {
        zc_barrier_wait(panel_full(group, turn), turn / Z_PANELS & 1);
    }
    ZC_MEMBER void send_panel(int group, int thread, int turn, const zc_tensor_map *map, int column) const {
        zc_async_fence();
        zc_named_sync(1 + group, 128);
        if (thread == 0) {
            zc_tensor_store(map, smem + panel_of(group, turn), column, tile(group, turn / TURNS) * 64, 0);
            zc_bulk_commit();
        }
    }
    // A panel of the first result, under the product of the one in front.
    template <bool LAST>
    ZC_MEMBER void turn_first(int group, int thread, int turn, int panel, const zc_gq_shared &shared, const zc_gq_with &with,
                              first_sums &sum, next_sums &next) const {
        unsigned char *const to = memory + panel_of(group, turn);
        take_panel(group, turn);
        zc_panel_lay_finished(shared, with, columns, panel * ACROSS, 0, thread, sum[0], to);
        zc_wgmma_wait<0>();
        pass_on(group, thread, turn);
        zc_panel_lay_finished(shared, with, columns, panel * ACROSS + 64, 1, thread, sum[1], to);
        send_panel(group, thread, turn, &p.y, panel * ACROSS);
        if (!LAST) multiply_first(group, panel + 1, turn < COUNT, sum);
        multiply_next(group, turn, panel, next);
        if (!LAST) zc_wgmma_wait<1>();
    }
    ZC_MEMBER void turn_next(int group, int thread, int turn, const zc_gq_shared &shared, const next_sums &sum) const {
        take_panel(group, turn);
        pass_on(group, thread, turn);
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            zc_gq_column c[2];
            factors.get(i * 64 + zc_turned_column(thread), c);
            zc_panel_lay<false, true>(i, thread, memory + panel_of(group, turn), [&](int place, int second, u32, int) {
                return zc_gq_saturated<Z_NEXT>(zc_turned_numbers(shared, c, sum[i] + place * 4 + second).y);
            });
        }
        send_panel(group, thread, turn, &p.second_a, 0);
    }

    // wait(): for the kernel in front.
    template <class WAIT> ZC_MEMBER void run(WAIT wait) const {
        const int group = zc_warpgroup(), thread = threadIdx.x % 128;
        if (!ZC_PANEL_CONSTANTS) wait();
        begin();
        const zc_gq_shared shared[2] = {zc_gq_share(q.quant), zc_gq_share(q.second)};
        const zc_gq_with with = zc_gq_with_of(p.g.fused);
        lay_columns(shared);
        if (ZC_PANEL_CONSTANTS) wait();
        if (thread == 0) {
            ask_tile(group, 0);
            for (int i = 0; i < Z_PANELS; i++) ask_panel(group, i);
            if (group == 0) ask_weights(EARLY, COUNT);
        }
        zc_sync();
        for (int turn = 0; tile(group, turn / TURNS) < tiles; turn += TURNS) {
            first_sums sum;
            next_sums next;
            zc_barrier_wait(tile_full(group), turn / TURNS & 1);
            multiply_first(group, 0, turn == 0, sum);
            zc_wgmma_wait<0>();
#pragma unroll 1
            for (int panel = 0; panel + 1 < COUNT; panel++)
                turn_first<false>(group, thread, turn + panel, panel, shared[0], with, sum, next);
            turn_first<true>(group, thread, turn + COUNT - 1, COUNT - 1, shared[0], with, sum, next);
            zc_wgmma_wait<0>();
            turn_next(group, thread, turn + COUNT, shared[1], next);
        }
        if (thread == 0) zc_bulk_wait<0>();
    }
};

ZC_KERNEL_OF(0, THREADS)(const __grid_constant__ zc_gemm_quant_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    conv_next(p, smem).run([&] {
        zc_wait();
        zc_grid_launch();
    });
}
