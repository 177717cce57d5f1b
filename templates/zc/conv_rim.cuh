// The pipeline of convolutions of 3 x 3 pixels on Hopper, without strides, that copy a tile's pixels once, with a rim, and not
// once for each tap: that of zc/gemm_sm90.cuh with rows by boxes (zc/rim_box.cuh). A stage has a tile's boxes of 128 bytes of
// channels, which the nine taps read from nine starts on. B comes by a ring of its own, a tap of such channels a stage, and by
// another warp, so that neither waits for the other's room. Where that ring has stages for all of B, which then is as wide as the
// result, B comes once and stays.
//
// spec.h: see zc/gemm_sm90.cuh; Z_RIM; Z_TAP_STAGES: of B's ring; Z_STAYS: they are all of B.
#pragma once
#include "zc/gemm_sm90.cuh"

template <int TILE_M, int TILE_N, int STAGES, int TAP_STAGES, bool PINGPONG, int TILED, int STAGING, int GROUPS>
struct zc_rim_pipe : zc_gemm_pipe<TILE_M, TILE_N, STAGES, 1, 1, PINGPONG, TILED, STAGING, false, 1, 1, GROUPS, TAP_STAGES> {
    typedef zc_gemm_pipe<TILE_M, TILE_N, STAGES, 1, 1, PINGPONG, TILED, STAGING, false, 1, 1, GROUPS, TAP_STAGES> pipe;
    using pipe::p;
    using pipe::a_of;
    using pipe::barriers;
    using pipe::empty;
    using pipe::full;
    using pipe::release;
    using pipe::smem;
    using pipe::steps;
    typedef typename pipe::sums sums;

    static constexpr int TAPS = 9, ACROSS = 3, TAP = TILE_N * pipe::LINE, BOXES = TILE_M / 64;
    static constexpr bool STAYS = Z_STAYS;
    static_assert(pipe::EXTRA == pipe::TILE_PANELS * (TILED > 0), "a stage has one panel of the operand");

    struct slot : zc_ring_slot<STAGES> {
        zc_ring_slot<TAP_STAGES> tap;
    };

    ZC_MEMBER zc_rim_pipe(const zc_gemm_sm90_params &p, unsigned char *memory, int barriers) : pipe(p, memory, barriers) {}
    ZC_MEMBER u32 tap_of(int stage) const { return smem + STAGES * pipe::STAGE + stage * TAP; }
    ZC_MEMBER u32 tap_full(int stage) const { return barriers + (2 * STAGES + stage) * 8; }
    ZC_MEMBER u32 tap_empty(int stage) const { return barriers + (2 * STAGES + TAP_STAGES + stage) * 8; }

    template <class F> ZC_MEMBER void begin(F own) const {
        pipe::begin([&] {
            for (int s = 0; s < TAP_STAGES; s++) {
                zc_barrier_init(tap_full(s), 1);
                zc_barrier_init(tap_empty(s), PINGPONG ? 1 : GROUPS);
            }
            own();
        });
    }

    // ---- the producers ----

    // Profiles have other work for the second warp (ZC_FIRST_WARP).
    static ZC_MEMBER bool produces() { return zc_warp() == 0 || zc_warp() == 2; }
    template <class F> ZC_MEMBER void produce(int tiles, F place_of) const {
        if (zc_warp() == 0)
            produce_boxes(tiles, place_of);
        else
            produce_taps(tiles, place_of);
    }
    // A tile's boxes from a channel on, whose pixels begin `rim` before a box's first one.
    ZC_MEMBER void load_boxes(int stage, const zc_tensor_map *map, int channel, int row, int rim) const {
#pragma unroll
        for (int i = 0; i < BOXES; i++) {
            const zc_rim_box box = zc_rim_box_of(p, row + i * 64);
            zc_tensor_load(a_of(stage) + i * ZC_ROWS_BYTES, map, full(stage), channel, box.x - rim, box.y - rim, box.image);
        }
    }
    template <class F> ZC_MEMBER void produce_boxes(int tiles, F place_of) const {
        zc_ring_slot<STAGES> at = {0, 1};
        zc_grid_wait();
        zc_grid_launch();
        for (int tile = this->first_tile(); tile < tiles; tile += this->tile_step()) {
            const zc_gemm_origin t = place_of(tile);
            for (int k = 0; k < steps; k++, at.next()) {
                zc_barrier_wait(empty(at.stage), at.parity);
                zc_barrier_expect(full(at.stage), BOXES * ZC_RIM_BYTES);
                load_boxes(at.stage, &p.a, k * pipe::DEPTH, t.row, 1);
            }
            for (int i = 0; i < pipe::EXTRA; i++, at.next()) {
                zc_barrier_wait(empty(at.stage), at.parity);
                zc_barrier_expect(full(at.stage), BOXES * pipe::PANEL);
                load_boxes(at.stage, &p.tile, t.col + pipe::tile_begin(i), t.row, 0);
            }
        }
    }
    ZC_MEMBER void load_tap(int stage, int depth, int col, int tap) const {
#ifdef Z_B_CONSTANT
        constexpr bool EARLY = true;
#else
        constexpr bool EARLY = false;
#endif
        if constexpr (ZC_DEALT > 0) {
#pragma unroll
            for (int line = 0; line < TILE_N; line += ZC_DEALT)
                this->template load_b_part<EARLY>(tap_of(stage) + line * pipe::LINE, &p.b, tap_full(stage), depth, 0,
                                                  (col + line) / ZC_HAND, 0, tap);
        } else {
            this->template load_b_part<EARLY>(tap_of(stage), &p.b, tap_full(stage), depth, col, tap);
        }
    }
    template <class F> ZC_MEMBER void produce_taps(int tiles, F place_of) const {
        zc_ring_slot<TAP_STAGES> at = {0, 1};
#ifndef Z_B_CONSTANT
        zc_grid_wait();
#endif
        for (int tile = this->first_tile(); tile < tiles; tile += this->tile_step()) {
            const zc_gemm_origin t = place_of(tile);
            for (int k = 0; k < steps; k++)
                for (int tap = 0; tap < TAPS; tap++, at.next()) {
                    zc_barrier_wait(tap_empty(at.stage), at.parity);
                    zc_barrier_expect(tap_full(at.stage), TAP);
                    load_tap(at.stage, k * pipe::DEPTH, t.col, tap);
                }
            if (STAYS) break;
        }
    }

    // ---- the consumers ----

    ZC_MEMBER void pass(slot &at) const {
        pipe::pass(at);
        if (!STAYS) at.tap.skip(TAPS * steps);
    }
    ZC_MEMBER void release_tap(int stage, int thread) const {
        if (!STAYS && thread == 0) zc_barrier_arrive(tap_empty(stage));
    }
    // The pixels that a tap sees of block i, from the `part`th 32 bytes on.
    ZC_MEMBER u64 a_part(int stage, int warpgroup, int tap, int i, int part) const {
        const u32 a = a_of(stage) + (PINGPONG ? 0 : warpgroup * pipe::BLOCKS * ZC_ROWS_BYTES);
        const int first = tap / ACROSS * ZC_RIM_PITCH + tap % ACROSS;
        return zc_wgmma_spaced(a + first * pipe::LINE, i * ZC_ROWS_BYTES + part * 32, ZC_RIM_PITCH * pipe::LINE);
    }
    ZC_MEMBER void multiply_tap(const slot &at, int warpgroup, int tap, bool add, sums &sum) const {
        if (!STAYS || at.tap.parity == 0) zc_barrier_wait(tap_full(at.tap.stage), at.tap.parity);
        zc_wgmma_fence();
#pragma unroll
        for (int part = 0; part < Z_LINE_PARTS; part++)
#pragma unroll
            for (int i = 0; i < pipe::BLOCKS; i++)
                zc_product(sum[i], a_part(at.stage, warpgroup, tap, i, part), zc_wgmma_along(tap_of(at.tap.stage), part * 32),
                           add || part);
        zc_wgmma_commit();
    }
    // All steps; nobody reads a stage beside the products.
    template <class F> ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, sums &sum, int, F) const {
        multiply(at, warpgroup, thread, sum);
    }
    // One group of products is in flight: a tap is done when the next one has been asked for, a stage with its last tap.
    ZC_MEMBER void multiply(slot &at, int warpgroup, int thread, sums &sum) const {
        int stage = 0, tap_stage = 0; // of the tap before
        for (int k = 0; k < steps; k++, at.next()) {
            zc_barrier_wait(full(at.stage), at.parity);
#pragma unroll 1
            for (int tap = 0; tap < TAPS; tap++, at.tap.next()) {
                multiply_tap(at, warpgroup, tap, k || tap, sum);
                if (k || tap) {
                    zc_wgmma_wait<1>();
                    release_tap(tap_stage, thread);
                    if (tap == 0) release(stage, thread);
                }
                stage = at.stage;
                tap_stage = at.tap.stage;
            }
        }
        zc_wgmma_wait<0>();
        release_tap(tap_stage, thread);
        release(stage, thread);
        if (STAYS) at.tap = {0, 1}; // all of it has come
    }
};
