// RNN, GRU and LSTM. Entry 0: the input's part of all gates of all steps; 1: state at the beginning; 2: one step;
// 4: second half of a GRU's step whose reset comes before the product; 3: last states.
//
// spec.h: Z_T (type), Z_LENGTH_TYPE, Z_GATES (1 RNN, 3 GRU, 4 LSTM), Z_DIRECTIONS, Z_REVERSE, Z_BATCH_FIRST,
// Z_LINEAR_FIRST, Z_INPUT_FORGET, Z_CLIPS, Z_CLIP, Z_FUNCTIONS (a direction), Z_ACTS, Z_ALPHAS, Z_BETAS (lists).
#include "zc/tile.cuh"
#include "abi/recurrent.h"
#include "spec.h"

typedef zc_compute<Z_T> real;

// ---- activations; the order of kinds is the one of op/recurrent.c ----

template <int I> ZC_DEV real activate(real x) {
    constexpr int kinds[] = Z_ACTS;
    constexpr f64 alphas[] = Z_ALPHAS, betas[] = Z_BETAS;
    constexpr real a = (real)alphas[I], b = (real)betas[I];
    switch (kinds[I]) {
    case 0: return x < 0 ? (real)0 : x;
    case 1: return zx_tanh(x);
    case 2: return zx_sigmoid(x);
    case 3: return a * x + b;
    case 4: return x < 0 ? a * x : x;
    case 5: return x < a ? (real)0 : x;
    case 6: return a * zx_tanh(b * x);
    case 7: {
        const real v = a * x + b;
        return v < 0 ? (real)0 : v > 1 ? (real)1 : v;
    }
    case 8: return x < 0 ? a * zx_expm1(x) : x;
    case 9: return x / (1 + zx_abs(x));
    case 10: return (x > 0 ? x : (real)0) + zx_log1p(zx_exp(-zx_abs(x)));
    }
    return x;
}

template <int WHICH> ZC_DEV real act(int d, real x) {
    if (Z_DIRECTIONS == 1 || d == 0) return activate<WHICH>(x);
    return activate<WHICH + (Z_DIRECTIONS - 1) * Z_FUNCTIONS>(x);
}
// A gate: clipping bounds what goes into its activation; NaN stays NaN.
template <int WHICH> ZC_DEV real gate(int d, real x) {
    if (Z_CLIPS) x = x < (real)-Z_CLIP ? (real)-Z_CLIP : x > (real)Z_CLIP ? (real)Z_CLIP : x;
    return act<WHICH>(d, x);
}

// ---- places ----

ZC_DEV real *state(const zc_recurrent_params &p, void *buffer, int d, i64 b) {
    return (real *)buffer + (d * p.batch + b) * p.hidden;
}
ZC_DEV i64 outside_at(const zc_recurrent_params &p, int d, i64 b) {
    return (Z_BATCH_FIRST ? b * Z_DIRECTIONS + d : d * p.batch + b) * p.hidden;
}
ZC_DEV i64 y_at(const zc_recurrent_params &p, int d, i64 b, i64 t) {
    return (Z_BATCH_FIRST ? (b * p.length + t) * Z_DIRECTIONS + d : (t * Z_DIRECTIONS + d) * p.batch + b) * p.hidden;
}
ZC_DEV real bias_at(const zc_recurrent_params &p, int d, int half, i64 row) {
    return p.bias ? zc_load<Z_T>(p.bias, (d * 2 + half) * Z_GATES * p.hidden + row) : (real)0;
}
// Valid steps of sequence b, within bounds whatever the tensor says.
ZC_DEV i64 valid_steps(const zc_recurrent_params &p, i64 b) {
    if (!p.lengths) return p.length;
    const i64 n = (i64)zc_load<Z_LENGTH_TYPE>(p.lengths, b);
    return n < 0 ? 0 : n > p.length ? p.length : n;
}

// ---- whole sequences ----

ZC_KERNEL(0)(const __grid_constant__ zc_recurrent_params p) {
    zc_begin();
    const int d = (int)blockIdx.y;
    const i64 rows = p.length * p.batch, cols = Z_GATES * p.hidden, tiles = (cols + 63) / 64;
    const i64 row0 = blockIdx.x / tiles * 64, col0 = blockIdx.x % tiles * 64;
    const Z_T *w = (const Z_T *)p.w + d * cols * p.input;
    // The recurrent bias of the hidden gate belongs behind a GRU's reset.
    const i64 both = Z_GATES == 3 && Z_LINEAR_FIRST ? 2 * p.hidden : cols;
    zc_tile_product<Z_T, true>(p.x, w, rows, cols, p.input, row0, col0, [&](i64 row, i64 col, real sum) {
        sum += bias_at(p, d, 0, col);
        if (col < both) sum += bias_at(p, d, 1, col);
        ((real *)p.pre)[(d * rows + row) * cols + col] = sum;
    });
}

ZC_KERNEL(1)(const __grid_constant__ zc_recurrent_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < Z_DIRECTIONS * p.batch * p.hidden; i += zc_threads()) {
        const i64 line = i / p.hidden, j = i - line * p.hidden, d = line / p.batch, b = line - d * p.batch;
        const i64 at = outside_at(p, (int)d, b) + j;
        ((real *)p.to)[i] = p.h0 ? zc_load<Z_T>(p.h0, at) : (real)0;
        if (Z_GATES == 4) ((real *)p.cell)[i] = p.c0 ? zc_load<Z_T>(p.c0, at) : (real)0;
        if (!p.lengths || d || j) continue;
        const i64 n = (i64)zc_load<Z_LENGTH_TYPE>(p.lengths, b);
        if (n < 0 || n > p.length) zc_report(p.fault, p.step, ZC_FAULT_VALUE, n, 0, p.length);
    }
}

ZC_KERNEL(3)(const __grid_constant__ zc_recurrent_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < Z_DIRECTIONS * p.batch * p.hidden; i += zc_threads()) {
        const i64 line = i / p.hidden, j = i - line * p.hidden, d = line / p.batch, b = line - d * p.batch;
        const i64 at = outside_at(p, (int)d, b) + j;
        if (p.yh) zc_save<Z_T>(p.yh, at, ((const real *)p.to)[i]);
        if (Z_GATES == 4 && p.yc) zc_save<Z_T>(p.yc, at, ((const real *)p.cell)[i]);
    }
}

// ---- a step: a warp has one unit of a few sequences ----

enum { SEQUENCES = 4 };

// One unit of one sequence at this step.
struct unit {
    i64 b, j, t; // t: the step of the sequence, -1: it has ended
    int d;
    real was; // hidden state
};

ZC_DEV unit unit_of(const zc_recurrent_params &p, int d, i64 b, i64 j) {
    const i64 valid = valid_steps(p, b);
    const bool back = Z_REVERSE || d == 1;
    return {b, j, p.i >= valid ? -1 : back ? valid - 1 - p.i : p.i, d, state(p, p.from, d, b)[j]};
}
ZC_DEV const real *pre_of(const zc_recurrent_params &p, const unit &u) {
    const i64 row = Z_BATCH_FIRST ? u.b * p.length + u.t : u.t * p.batch + u.b;
    return (const real *)p.pre + (u.d * p.length * p.batch + row) * Z_GATES * p.hidden + u.j;
}

// sums[g][s]: row (first + g) * hidden + j of R times the vectors of sequences b0 + s; in all lanes.
template <int G>
ZC_DEV void recur(const zc_recurrent_params &p, int d, i64 first, i64 j, i64 b0, void *vectors, real (&sums)[G][SEQUENCES]) {
    const Z_T *r = (const Z_T *)p.r + (d * Z_GATES * p.hidden + first * p.hidden + j) * p.hidden;
    const real *v[SEQUENCES];
#pragma unroll
    for (int s = 0; s < SEQUENCES; s++) v[s] = state(p, vectors, d, b0 + s < p.batch ? b0 + s : b0);
#pragma unroll
    for (int g = 0; g < G; g++)
#pragma unroll
        for (int s = 0; s < SEQUENCES; s++) sums[g][s] = 0;
    for (i64 k = threadIdx.x % 32; k < p.hidden; k += 32) {
        real x[SEQUENCES];
#pragma unroll
        for (int s = 0; s < SEQUENCES; s++) x[s] = v[s][k];
#pragma unroll
        for (int g = 0; g < G; g++) {
            const real weight = zc_get(r[g * p.hidden * p.hidden + k]);
#pragma unroll
            for (int s = 0; s < SEQUENCES; s++) sums[g][s] += weight * x[s];
        }
    }
#pragma unroll
    for (int g = 0; g < G; g++)
#pragma unroll
        for (int s = 0; s < SEQUENCES; s++)
#pragma unroll
            for (int w = 16; w; w >>= 1) sums[g][s] += zc_shfl_xor(sums[g][s], w);
}

ZC_DEV real peephole(const zc_recurrent_params &p, const unit &u, int which, real cell) {
    return p.peepholes ? zc_load<Z_T>(p.peepholes, (u.d * 3 + which) * p.hidden + u.j) * cell : (real)0;
}

// The new hidden state from the gates' recurrent parts.
ZC_DEV real advance(const zc_recurrent_params &p, const unit &u, const real *rec) {
    const real *pre = pre_of(p, u);
#if Z_GATES == 1
    return gate<0>(u.d, pre[0] + rec[0]);
#elif Z_GATES == 3
    const real update = gate<0>(u.d, pre[0] + rec[0]), reset = gate<0>(u.d, pre[p.hidden] + rec[1]);
    const real hidden = rec[2] + bias_at(p, u.d, 1, 2 * p.hidden + u.j);
    return (1 - update) * gate<1>(u.d, pre[2 * p.hidden] + reset * hidden) + update * u.was;
#else
    real *cell = state(p, p.cell, u.d, u.b) + u.j; // gates: input, output, forget, cell
    const real was = *cell, in = gate<0>(u.d, pre[0] + rec[0] + peephole(p, u, 0, was));
    const real forget = Z_INPUT_FORGET ? 1 - in : gate<0>(u.d, pre[2 * p.hidden] + rec[2] + peephole(p, u, 2, was));
    const real now = forget * was + in * gate<1>(u.d, pre[3 * p.hidden] + rec[3]);
    *cell = now;
    return gate<0>(u.d, pre[p.hidden] + rec[1] + peephole(p, u, 1, now)) * act<2>(u.d, now);
#endif
}

ZC_DEV void put_hidden(const zc_recurrent_params &p, const unit &u, real h) {
    state(p, p.to, u.d, u.b)[u.j] = h;
    if (!p.y) return;
    if (u.t < 0) zc_save<Z_T>(p.y, y_at(p, u.d, u.b, p.i) + u.j, (real)0);
    else zc_save<Z_T>(p.y, y_at(p, u.d, u.b, u.t) + u.j, h);
}

// The unit of this warp and the first of its sequences; false: none.
ZC_DEV bool place(const zc_recurrent_params &p, i64 *j, i64 *b0) {
    const i64 groups = (p.hidden + blockDim.x / 32 - 1) / (blockDim.x / 32);
    *j = blockIdx.x % groups * (blockDim.x / 32) + threadIdx.x / 32;
    *b0 = blockIdx.x / groups * SEQUENCES;
    return *j < p.hidden;
}

#define SPLIT_GRU (Z_GATES == 3 && !Z_LINEAR_FIRST)

ZC_KERNEL(2)(const __grid_constant__ zc_recurrent_params p) {
    zc_begin();
    const int d = (int)blockIdx.y, lane = (int)(threadIdx.x % 32), G = SPLIT_GRU ? 2 : Z_GATES;
    i64 j, b0;
    if (!place(p, &j, &b0)) return;
    real sums[G][SEQUENCES];
    recur<G>(p, d, 0, j, b0, p.from, sums);
#pragma unroll
    for (int s = 0; s < SEQUENCES; s++) {
        if (lane != s || b0 + s >= p.batch) continue;
        const unit u = unit_of(p, d, b0 + s, j);
#if SPLIT_GRU
        if (u.t < 0) continue;
        const real *pre = pre_of(p, u);
        state(p, p.update, d, u.b)[j] = gate<0>(d, pre[0] + sums[0][s]);
        state(p, p.v, d, u.b)[j] = gate<0>(d, pre[p.hidden] + sums[1][s]) * u.was;
#else
        real rec[G];
#pragma unroll
        for (int g = 0; g < G; g++) rec[g] = sums[g][s];
        put_hidden(p, u, u.t < 0 ? u.was : advance(p, u, rec));
#endif
    }
}

#if SPLIT_GRU
ZC_KERNEL(4)(const __grid_constant__ zc_recurrent_params p) {
    zc_begin();
    const int d = (int)blockIdx.y, lane = (int)(threadIdx.x % 32);
    i64 j, b0;
    if (!place(p, &j, &b0)) return;
    real sums[1][SEQUENCES];
    recur<1>(p, d, 2, j, b0, p.v, sums);
#pragma unroll
    for (int s = 0; s < SEQUENCES; s++) {
        if (lane != s || b0 + s >= p.batch) continue;
        const unit u = unit_of(p, d, b0 + s, j);
        real h = u.was;
        if (u.t >= 0) {
            const real update = state(p, p.update, d, u.b)[j];
            h = (1 - update) * gate<1>(d, pre_of(p, u)[2 * p.hidden] + sums[0][s]) + update * u.was;
        }
        put_hidden(p, u, h);
    }
}
#endif
