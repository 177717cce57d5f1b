// QLinearConvChain on Hopper: convolutions of 3 x 3 pixels, whose bytes are at once the factors of the convolution of points behind
// them. Each of four warpgroups has boxes of 8 x 8 pixels of its own (zc/rim_box.cuh), and what they come to and leave by: one box,
// whose room is free for the next one when the first product is done, and panels of 64 pixels by 128 channels of the result, to
// which the other operand of a sum of bytes comes and where the sum takes its place. So warpgroups drift apart, and one's results
// are made beside another's products.
//
// Channels are the rows of both products, and pixels their columns (zc/turned_bytes.cuh). The first one's bytes lie in shared memory
// as the second one takes them without swizzle, pixel by pixel 16 channels, and so do the second's weights, which stay; the first's do
// where there is room for all of them, else they come by a ring, box by box, for all warpgroups.
//
// spec.h: see zc/gemm_quant_sm90.cuh; Z_WGMMA: as in zc/gemm_sm90.cuh; Z_DEPTH, Z_HIDDEN, Z_COLUMNS: channels of x, multiples of 32
// up to 128, of what the first convolution gives, 64 or 128, and of the result, multiples of 128; and the configuration:
// Z_STAGES: lines of 128 bytes of each of the first's weights that there is room for, Z_PANELS: of a warpgroup.
#include "zc/hopper.cuh"
#include "zc/ring.cuh"
#include "spec.h"
#define ZC_GQ_SECOND Z_A
#ifdef Z_FUSED_SUM
#define ZC_GQ_SUM
#endif
#include "zc/byte_panels.cuh"
#include "zc/rim_box.cuh"

constexpr int GROUPS = 4, THREADS = (GROUPS + 1) * 128, CONSUMERS = GROUPS * 128;
constexpr int LINE = 128, ACROSS = 128, COUNT = Z_COLUMNS / ACROSS; // panels of a box's results
constexpr int DEEP = 32;                                            // bytes of a product's step
constexpr int PARTS = Z_DEPTH / DEEP, STEPS = 9 * PARTS, LINES = (STEPS * DEEP + LINE - 1) / LINE;
constexpr bool STAYS = Z_STAGES == LINES;
constexpr int PIECE = 64 * 16, BLOCK = Z_HIDDEN / 16 * PIECE; // 16 bytes of 64 channels or pixels; all of them
constexpr int OWN = Z_HIDDEN / 64, BESIDE = ACROSS / 64;      // blocks of 64 channels of both products
static_assert(Z_PANELS >= 2 && Z_HIDDEN % 64 == 0 && Z_DEPTH % DEEP == 0 && Z_DEPTH <= LINE && Z_COLUMNS % ACROSS == 0 && !Z_ZERO_A &&
                  !Z_ZERO_B,
              "what lines and blocks hold");

// Where one of 64 channels is in a product's rows.
ZC_DEV int row_of(int channel) { return channel / 16 * 16 + channel % 2 * 8 + channel % 16 / 2; }

typedef i32 sums[32]; // of a block

struct chain {
    static constexpr int FIRST = Z_STAGES * Z_HIDDEN * LINE, BOXES = FIRST + Z_COLUMNS / 64 * BLOCK;
    static constexpr int RESULTS = BOXES + GROUPS * ZC_ROWS_BYTES, BETWEEN = RESULTS + GROUPS * Z_PANELS * ZC_PANEL;
    static constexpr int FACTORS = BETWEEN + GROUPS * BLOCK;
    static constexpr int BARRIERS = FACTORS + (Z_COLUMNS + Z_HIDDEN) * (int)sizeof(zc_gq_column);

    const zc_gemm_quant_sm90_params &q;
    const zc_gemm_sm90_params &p;
    unsigned char *const memory;
    const u32 smem;
    const zc_gq_columns columns, hidden;
    const int boxes;

    ZC_MEMBER chain(const zc_gemm_quant_sm90_params &q, unsigned char *memory)
        : q(q), p(q.product), memory(memory), smem(zc_smem_address(memory)), columns(memory + FACTORS, Z_COLUMNS),
          hidden(memory + FACTORS + Z_COLUMNS * sizeof(zc_gq_column), Z_HIDDEN), boxes(p.order.down) {}

    ZC_MEMBER u32 full(int stage) const { return smem + BARRIERS + stage * 8; }
    ZC_MEMBER u32 empty(int stage) const { return full(Z_STAGES + stage); }
    ZC_MEMBER u32 box_full(int group) const { return full(2 * Z_STAGES + group); }
    ZC_MEMBER u32 panel_full(int group, int panel) const { return full(2 * Z_STAGES + GROUPS + group * Z_PANELS + panel); }
    ZC_MEMBER u32 box_of(int group) const { return smem + BOXES + group * ZC_ROWS_BYTES; }
    ZC_MEMBER u32 between_of(int group) const { return smem + BETWEEN + group * BLOCK; }
    ZC_MEMBER int panel_of(int group, int panel) const { return RESULTS + (group * Z_PANELS + panel) * ZC_PANEL; }

    // A warpgroup's box of this number. A few boxes are of many blocks.
    ZC_MEMBER int box(int group, int number) const { return blockIdx.x + gridDim.x * (group + GROUPS * number); }

    ZC_MEMBER void begin() const {
        if (threadIdx.x == 0) {
            for (int s = 0; s < Z_STAGES; s++) {
                zc_barrier_init(full(s), 1);
                zc_barrier_init(empty(s), GROUPS);
            }
            for (int i = 0; i < GROUPS * (1 + Z_PANELS); i++) zc_barrier_init(box_full(0) + i * 8, 1);
            zc_barrier_fence();
            zc_tensor_prefetch(&p.a);
            zc_tensor_prefetch(&p.b);
            zc_tensor_prefetch(&p.y);
            if (ZC_PANEL_ADDS) zc_tensor_prefetch(&p.tile);
        }
        zc_sync();
    }

    // ---- the producer of the first's weights ----

    ZC_MEMBER void produce() const {
        zc_ring_slot<Z_STAGES> at = {0, 1};
        if (!ZC_PANEL_CONSTANTS) zc_grid_wait();
        for (int number = 0; box(0, number) < boxes; number++) {
            for (int line = 0; line < LINES; line++, at.next()) {
                zc_barrier_wait(empty(at.stage), at.parity);
                zc_barrier_expect(full(at.stage), Z_HIDDEN * LINE);
                if (ZC_PANEL_CONSTANTS) zc_constant_load();
                zc_tensor_load(smem + at.stage * Z_HIDDEN * LINE, &p.b, full(at.stage), line * LINE, 0, 0, 0, 0);
            }
            if (STAYS) break;
        }
    }

    // ---- what stays: the second's weights, and factors of columns ----

    ZC_MEMBER void lay_weights(int thread) const {
        constexpr int PIECES = Z_HIDDEN / 16;
        const unsigned char *const v = (const unsigned char *)q.quant.in[ZC_GQ_B];
        for (int i = thread; i < Z_COLUMNS * PIECES; i += CONSUMERS) {
            const int channel = i / PIECES;
            zc_vec<u32, 4> x;
            if constexpr (ZC_PANEL_CONSTANTS)
                zc_constant_load16(&x, v + i * 16);
            else
                x = ((const zc_vec<u32, 4> *)v)[i];
            *(zc_vec<u32, 4> *)(memory + FIRST + channel / 64 * BLOCK + i % PIECES * PIECE + row_of(channel % 64) * 16) = x;
        }
        zc_async_fence();
    }
    ZC_MEMBER void lay_columns(int thread, const zc_gq_shared (&shared)[2]) const {
        for (int i = thread; i < Z_COLUMNS + Z_HIDDEN; i += CONSUMERS)
            if (i < Z_COLUMNS)
                columns.put(i, zc_gq_make(shared[0], zc_gq_ask(q.quant, zc_gq_item(), i)).column);
            else
                hidden.put(i - Z_COLUMNS, zc_gq_make(shared[1], zc_gq_ask(q.second, i - Z_COLUMNS)).column);
    }

    // ---- what comes, asked for by a warpgroup's first thread ----

    ZC_MEMBER void ask_box(int group, int number) const {
        if (box(group, number) >= boxes) return;
        const zc_rim_box at = zc_rim_box_of(p, box(group, number) * 64);
        zc_barrier_expect(box_full(group), ZC_RIM_BYTES);
        zc_tensor_load(box_of(group), &p.a, box_full(group), 0, at.x - 1, at.y - 1, at.image);
    }
    // number: of all the warpgroup's panels.
    ZC_MEMBER void ask_panel(int group, int number) const {
        const int of = box(group, number / COUNT), panel = number % Z_PANELS;
        if (of >= boxes) return;
        const zc_rim_box at = zc_rim_box_of(p, of * 64);
        zc_barrier_expect(panel_full(group, panel), ZC_PANEL);
        zc_tensor_load(smem + panel_of(group, panel), &p.tile, panel_full(group, panel), number % COUNT * ACROSS, at.x, at.y, at.image);
    }

    // ---- the first product ----

    ZC_MEMBER void release(int stage, int thread) const {
        if (!STAYS && thread == 0) zc_barrier_arrive(empty(stage));
    }
    // Of another warpgroup's last box.
    ZC_MEMBER void pass(zc_ring_slot<Z_STAGES> &at, int thread) const {
        for (int line = 0; line < LINES && !STAYS; line++, at.next()) {
            zc_barrier_wait(full(at.stage), at.parity);
            release(at.stage, thread);
        }
    }
    ZC_MEMBER void multiply_first(zc_ring_slot<Z_STAGES> &at, int group, int thread, sums (&sum)[OWN]) const {
        int last = 0;
#pragma unroll
        for (int line = 0; line < LINES; line++, at.next()) {
            if (!STAYS) zc_barrier_wait(full(at.stage), at.parity);
            if (!STAYS || line == 0) zc_wgmma_fence();
#pragma unroll
            for (int part = 0; part < LINE / DEEP; part++) {
                const int step = line * (LINE / DEEP) + part, tap = step / PARTS;
                if (step >= STEPS) break;
                const u32 pixels = box_of(group) + (tap / 3 * ZC_RIM_PITCH + tap % 3) * LINE;
                const u64 b = zc_wgmma_spaced(pixels, step % PARTS * DEEP, ZC_RIM_PITCH * LINE);
#pragma unroll
                for (int i = 0; i < OWN; i++)
                    zc_panel_product(sum[i], zc_wgmma_along(smem + at.stage * Z_HIDDEN * LINE, i * 64 * LINE + part * DEEP), b, step == 0);
            }
            if (!STAYS || line + 1 == LINES) zc_wgmma_commit();
            if (line && !STAYS) {
                zc_wgmma_wait<1>();
                release(last, thread);
            }
            last = at.stage;
        }
        zc_wgmma_wait<0>();
        release(last, thread);
    }
    // Lays down the first's bytes.
    ZC_MEMBER void lay_between(const zc_gq_shared &shared, int group, int thread, const sums (&sum)[OWN]) const {
#pragma unroll
        for (int i = 0; i < OWN; i++) {
            zc_gq_column c[2];
            hidden.get(i * 64 + zc_turned_column(thread), c);
            const u32 to = between_of(group) + (i * 4 + thread / 32) * PIECE;
            zc_turned_lay<64, false, (Z_WHOLES > 0)>(
                [](int) { return (const void *)nullptr; }, [&](int row) { return to + row * 16; },
                [&](int place, int second, u32, int) {
                    return zc_gq_saturated<Z_A>(zc_turned_numbers(shared, c, sum[i] + place * 4 + second).y);
                });
        }
        zc_async_fence();
    }

    // ---- the second product, a panel at a time ----

    ZC_MEMBER void multiply_second(int group, int panel, sums (&sum)[BESIDE]) const {
        zc_wgmma_fence();
#pragma unroll
        for (int step = 0; step < Z_HIDDEN / DEEP; step++) {
            const u64 b = zc_wgmma_windows(between_of(group), step * 2 * PIECE, PIECE);
#pragma unroll
            for (int i = 0; i < BESIDE; i++)
                zc_panel_product(sum[i], zc_wgmma_windows(smem + FIRST + panel * BESIDE * BLOCK, i * BLOCK + step * 2 * PIECE, PIECE), b,
                                 step == 0);
        }
        zc_wgmma_commit();
    }
    // The panel has what is added to, or what it had has left.
    ZC_MEMBER void take_panel(int group, int thread, const zc_ring_slot<Z_PANELS> &at) const {
        if (ZC_PANEL_ADDS) {
            zc_barrier_wait(panel_full(group, at.stage), at.parity);
        } else {
            if (thread == 0) zc_bulk_wait_read<Z_PANELS - 1>();
            zc_named_sync(1 + group, 128);
        }
    }
    ZC_MEMBER void send_panel(int group, int thread, int panel, const zc_rim_box &to, int column) const {
        zc_async_fence();
        zc_named_sync(1 + group, 128);
        if (thread == 0) {
            zc_tensor_store(&p.y, smem + panel_of(group, panel), column, to.x, to.y, to.image);
            zc_bulk_commit();
        }
    }

    ZC_MEMBER void consume(int group) const {
        const int thread = threadIdx.x % 128;
        if (!ZC_PANEL_CONSTANTS) await_front();
        const zc_gq_shared shared[2] = {zc_gq_share(q.quant), zc_gq_share(q.second)};
        const zc_gq_with with = zc_gq_with_of(p.g.fused);
        lay_columns(threadIdx.x - 128, shared);
        lay_weights(threadIdx.x - 128);
        zc_named_sync(1 + GROUPS, CONSUMERS);
        if (ZC_PANEL_CONSTANTS) await_front();
        if (thread == 0) {
            ask_box(group, 0);
            for (int i = 0; ZC_PANEL_ADDS && i < Z_PANELS; i++) ask_panel(group, i);
        }
        for (int line = 0; STAYS && line < LINES; line++) zc_barrier_wait(full(line), 0);
        zc_ring_slot<Z_STAGES> weights = {};
        zc_ring_slot<Z_PANELS> at = {};
        for (int number = 0; box(0, number) < boxes; number++) {
            if (box(group, number) >= boxes) {
                pass(weights, thread);
                break;
            }
            const zc_rim_box to = zc_rim_box_of(p, box(group, number) * 64);
            {
                sums sum[OWN];
                zc_barrier_wait(box_full(group), number & 1);
                multiply_first(weights, group, thread, sum);
                lay_between(shared[1], group, thread, sum);
            }
            zc_named_sync(1 + group, 128); // all have read the box, and laid down what is between
            if (thread == 0) ask_box(group, number + 1);
#pragma unroll 1
            for (int panel = 0; panel < COUNT; panel++, at.next()) {
                const int before = number * COUNT + panel - 1;
                sums sum[BESIDE];
                multiply_second(group, panel, sum);
                if (ZC_PANEL_ADDS && thread == 0 && before >= 0) { // it has left meanwhile
                    zc_bulk_wait_read<0>();
                    ask_panel(group, before + Z_PANELS);
                }
                take_panel(group, thread, at);
                zc_wgmma_wait<0>();
#pragma unroll
                for (int i = 0; i < BESIDE; i++)
                    zc_panel_lay_finished(shared[0], with, columns, panel * ACROSS + i * 64, i, thread, sum[i],
                                          memory + panel_of(group, at.stage));
                send_panel(group, thread, at.stage, to, panel * ACROSS);
            }
        }
        if (thread == 0) zc_bulk_wait<0>();
    }
    static ZC_MEMBER void await_front() {
        zc_grid_wait();
        zc_grid_launch();
    }
};

ZC_KERNEL_OF(0, THREADS)(const __grid_constant__ zc_gemm_quant_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const chain step(p, smem);
    step.begin();
    const int warpgroup = zc_warpgroup();
    if (warpgroup == 0) {
        zc_registers_drop<24>();
        ZC_FIRST_WARP(zc_warp() == 0 && zc_elect()) step.produce();
    } else {
        zc_registers_take<112>();
        step.consume(warpgroup - 1);
    }
}
