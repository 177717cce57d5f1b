// MatMulInteger, QLinearMatMul, ConvInteger and QLinearConv of 8-bit integers on Hopper, B stored N x K: exact sums of a b by the
// pipeline of zc/gemm_sm90.cuh, and what zc/gemm_quant_sm90.cuh makes of them. Bytes leave by the copy engine, and a fused operand
// of bytes (a residual) comes by it; other results are stored by the threads.
//
// Of two pairs of operands (Z_PAIR: QLinearConvPair) a tile's second product comes first, and its bytes wait for the other's.
//
// spec.h: see zc/gemm_quant_sm90.cuh, zc/gemm_tiles.cuh (Z_ALONG, Z_INTEGERS) and zc/sm90_rows.cuh; Z_PAIRS: the result has an
// even number of columns; Z_TENSOR_Y: the copy engine stores.
#include "zc/gemm_tiles.cuh"
#if defined(Z_FUSED_SUM) && (Z_FUSED_TILE == 0 || defined(Z_PAIR)) // the other one is in shared memory
#define ZC_GQ_SUM
#endif
#ifdef Z_PAIR
#define ZC_GQ_SECOND zc_gq_other
#endif
#include "zc/gemm_quant_sm90.cuh"
#ifdef Z_RIM
#include "zc/conv_rim.cuh"
#endif

#ifdef Z_PAIR
constexpr int ZC_GQ_PAIR = Z_PAIR; // steps of the second product
#else
constexpr int ZC_GQ_PAIR = 0;
#endif
typedef zc_gq_shared zc_gq_all_shared[ZC_GQ_PAIR ? 2 : 1];
#if Z_CROSSED
#include "zc/gemm_quant_crossed.cuh"
#else
#include "zc/gemm_quant_rows.cuh"
#endif

// RESULTS: what becomes of sums.
template <class RESULTS> struct zc_gemm_quant_sm90 : RESULTS {
    using RESULTS::p;
    using RESULTS::q;
    using RESULTS::tiles;
    typedef typename RESULTS::slot slot;

    ZC_MEMBER zc_gemm_quant_sm90(const zc_gemm_quant_sm90_params &p, unsigned char *memory) : RESULTS(p, memory) {}

    ZC_MEMBER void share(zc_gq_all_shared &shared) const {
        shared[0] = zc_gq_share(q);
#ifdef Z_PAIR
        shared[1] = zc_gq_share(this->second);
#endif
    }
    static ZC_MEMBER void await_front() {
        zc_grid_wait();
        zc_grid_launch();
    }
    // Columns are asked for before the results of the tile in front, made of that before the products, and laid down behind them;
    // not again for the same ones.
    ZC_MEMBER void consume(int warpgroup) const {
        const int thread = threadIdx.x % 128, step = this->tile_step() * (Z_PINGPONG ? 2 : 1); // to its next tile
        slot at = {};
        int turn = 0, buffer = 0;
        zc_gq_all_shared shared;
        typename RESULTS::all_own own;
        typename RESULTS::all_made columns;
        typename RESULTS::view v;
        bool others = true, waits = ZC_SCALES_CONSTANT; // other columns than were laid down; for the kernel in front
        if (!waits) await_front();
        v.with = zc_gq_with_of(p.g.fused);
        zc_gemm_origin place = this->place_of(this->first_tile() + (Z_PINGPONG ? warpgroup * this->tile_step() : 0));
        const auto ask = [&] { this->ask_columns(place, warpgroup, thread, own); };
        const auto ask_all = [&] {
            share(shared);
            v.shared = shared[0];
            ask();
        };
        if (!ZC_GQ_PAIR) ask_all();
        // A parity cannot tell a phase from the one two before it: the two enter their products in turn.
        if (Z_PINGPONG && warpgroup == 1) zc_named_arrive(4, 256);
        for (int tile = this->first_tile(); tile < tiles; tile += this->tile_step(), turn ^= Z_PINGPONG) {
            if (Z_PINGPONG && turn != warpgroup) {
                this->pass(at);
                continue;
            }
            const zc_gemm_origin t = place;
            typename RESULTS::sums sum;
            if (ZC_GQ_PAIR && others) ask_all(); // has no registers for it before
            if (others) this->make_columns(shared, thread, own, columns);
            if (waits) await_front();
            waits = false;
            if (Z_PINGPONG) zc_named_sync(4 + warpgroup, 256);
#ifdef Z_PAIR
            // Both products have the same registers, as the compiler does not know that the first step of one does not read them.
            this->multiply(at, warpgroup, thread, sum, ZC_GQ_PAIR);
            if (others) this->lay_columns(warpgroup, thread, columns, v);
            this->keep_second(t, shared[1], warpgroup, thread, buffer, sum, v);
#endif
            this->multiply(at, warpgroup, thread, sum, this->steps - ZC_GQ_PAIR);
            if (Z_PINGPONG) {
                this->await_tile(at);
                zc_named_arrive(4 + (warpgroup ^ 1), 256);
            }
            if (others && !ZC_GQ_PAIR) this->lay_columns(warpgroup, thread, columns, v);
            if (tile + step < tiles) {
                place = this->place_of(tile + step);
                others = RESULTS::REMAKES || place.col != t.col || place.item != t.item;
                if (others && !ZC_GQ_PAIR) ask();
            }
            this->see(t, warpgroup, thread, v);
            this->finish(v, warpgroup, thread, sum, at, buffer);
        }
        if (Z_TENSOR_Y && thread == 0) zc_bulk_wait<0>();
    }
};

// What is done with sums takes longer than products: four warpgroups hide each other's waits where a tile has rows for them.
constexpr int ZC_GQ_GROUPS = Z_TILE_M / 64 > 2 ? 4 : 2;
constexpr int ZC_GQ_STAGING = Z_TENSOR_Y ? 4 / ZC_GQ_GROUPS : 0;
#ifdef Z_RIM
static_assert(ZC_GQ_LINES == 0 && Z_TENSOR_Y, "no sums of lines, which are of several taps; whole boxes");
typedef zc_rim_pipe<Z_TILE_M, Z_TILE_N, Z_STAGES, Z_TAP_STAGES, Z_PINGPONG, Z_FUSED_TILE >= 0, ZC_GQ_STAGING, ZC_GQ_GROUPS> zc_gq_pipe;
#else
typedef zc_gemm_pipe<Z_TILE_M, Z_TILE_N, Z_STAGES, Z_CLUSTER, 1, Z_PINGPONG, Z_FUSED_TILE >= 0, ZC_GQ_STAGING, false, 1, 1,
                     ZC_GQ_GROUPS>
    zc_gq_pipe;
#endif
#if Z_CROSSED
typedef zc_gq_crossed<zc_gq_pipe> zc_gq_results;
#else
typedef zc_gq_rows<zc_gq_pipe> zc_gq_results;
#endif

ZC_KERNEL_OF(0, zc_gq_pipe::THREADS)(const __grid_constant__ zc_gemm_quant_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const zc_gemm_quant_sm90<zc_gq_results> product(p, smem);
    product.begin([&] {
        if (Z_TENSOR_Y) zc_tensor_prefetch(&p.product.y);
    });
    const int warpgroup = zc_warpgroup();
    if (warpgroup == 0) {
        zc_registers_drop<24>();
        ZC_FIRST_WARP(product.produces() && zc_elect()) product.produce();
    } else {
        zc_registers_take<ZC_GQ_GROUPS == 4 ? 112 : 240>();
        product.consume(warpgroup - 1);
    }
    product.end();
}
