// Pointwise work within a kernel: on an operand when it is read, x = zc_pre(params, element, at), and on a result before
// it is written, y = zc_fused(params, y, at), `at` being the element's place in the operand or result. The work is
// point(x, in0[..], in1[..], ...), operands broadcast. zc_fused_cells does it for neighbours of a row of a matrix.
//
// Z_FUSED_PAIR(a, b): that of two neighbours, packed, in fewer instructions and to f16's precision (zc/gelu_codes.cuh).
//
// spec.h, with W one of PRE and FUSED: Z_W, when there is any, with Z_W_COUNT (of operands), Z_W_INPUTS(X) = X(i, type)
// ..., Z_W_ARGS(A) = , A(0), A(1) ..., Z_W_LITERALS(p) = , p.literals[0] ... (numbers that the function gets behind the
// operands) and zc_pre_point or zc_fused_point; with static shapes also Z_W_RANK, Z_W_DIMS and Z_W_STRIDES, with such as take
// divisions by what only a run knows Z_W_DIVIDES.
#pragma once
#include "zc/broadcast.cuh"
#include "abi/epilogue.h"
#include "spec.h"

#define ZC_FETCH(i, T) const auto in##i = zc_get(((const T *)p.in[i])[off.of[i]]);
#define ZC_ARG(i) in##i
#define ZC_WORK(NAME, W, RESULT)                                                                                       \
    template <class T> ZC_DEV RESULT NAME(const zc_fused_params &p, T x, i64 at) {                                     \
        const auto off = zc_offsets_at<Z_##W##_COUNT>(NAME##_shape::of(p), at);                                        \
        Z_##W##_INPUTS(ZC_FETCH)                                                                                       \
        return NAME##_point(zc_get(x) Z_##W##_ARGS(ZC_ARG) Z_##W##_LITERALS(p));                                       \
    }

#ifndef Z_PRE
template <class T> ZC_DEV auto zc_pre(const zc_fused_params &, T x, i64) { return zc_get(x); }
#else
#ifdef Z_PRE_RANK
ZC_STATIC_SHAPE(zc_pre_shape, Z_PRE_RANK, Z_PRE_DIMS, Z_PRE_STRIDES)
#else
ZC_PARAM_SHAPE(zc_pre_shape, zc_fused_params)
#endif
ZC_WORK(zc_pre, PRE, auto)
#endif

#ifndef Z_FUSED
template <class V> ZC_DEV V zc_fused(const zc_fused_params &, V y, i64) { return y; }
#else
#ifdef Z_FUSED_RANK
ZC_STATIC_SHAPE(zc_fused_shape, Z_FUSED_RANK, Z_FUSED_DIMS, Z_FUSED_STRIDES)
#else
ZC_PARAM_SHAPE(zc_fused_shape, zc_fused_params)
#endif
ZC_WORK(zc_fused, FUSED, auto)
#endif
#undef ZC_FETCH

// Z_FUSED_CELLS(X): X(i, type, rows, columns) for each operand, whether it differs from row to row and from column to
// column. Then rows and columns say where its elements are, and neighbours are one access: zc_fused_cells<N> has the
// operands of elements (row, col) to (row, col + N - 1) of the result as rows of n elements, col and n multiples of N.
// Z_PITCHED (bits of the step's inputs, of which Z_FUSED_FIRST is operand 0): rows of such operands of the result's shape lie as
// far apart as p.pitch says, else n.
// Z_FUSED_TILE: the operand, of the result's shape and of 8 or 16 bits, that the kernel brings itself, two neighbours packed as
// zc_unpack has them; -1: none.
#ifndef Z_FUSED_TILE
#define Z_FUSED_TILE -1
#endif
#ifdef Z_PITCHED
#define ZC_FUSED_PITCH(p, i, n) ((Z_PITCHED) >> (Z_FUSED_FIRST + i) & 1 ? p.pitch[i] : n)
#else
#define ZC_FUSED_PITCH(p, i, n) n
#endif
template <class T, int N, bool ROWS, bool COLS, bool TILE> struct zc_fused_run {
    static constexpr int PIECE = !COLS ? 1 : N * sizeof(T) < 16 ? N : 16 / sizeof(T), COUNT = COLS ? N / PIECE : 1;
    zc_vec<T, PIECE> x[COUNT];
    // n: from one row to the next.
    template <class PAIR> ZC_MEMBER void load(const void *p, i64 row, i64 col, i64 n, PAIR tile) {
        if constexpr (TILE) {
            x[0] = zc_unpack<T>(tile);
        } else {
            const T *const from = (const T *)p + (ROWS ? row * (COLS ? n : 1) : 0) + (COLS ? col : 0);
#pragma unroll
            for (int i = 0; i < COUNT; i++) x[i] = ((const zc_vec<T, PIECE> *)from)[i];
        }
    }
    ZC_MEMBER auto get(int i) const { return zc_get(COLS ? x[i / PIECE].v[i % PIECE] : x[0].v[0]); }
};
#ifdef Z_FUSED_CELLS
template <int N> struct zc_fused_cells {
#define ZC_RUN(i, T, ROWS, COLS) zc_fused_run<T, N, ROWS, COLS, i == Z_FUSED_TILE> run##i;
    Z_FUSED_CELLS(ZC_RUN)
#undef ZC_RUN
    const zc_fused_params *params;
    template <class PAIR = u32> ZC_MEMBER void load(const zc_fused_params &p, i64 row, i64 col, i64 n, PAIR tile = 0) {
        params = &p;
#define ZC_LOAD(i, T, ROWS, COLS) run##i.load(p.in[i], row, col, ZC_FUSED_PITCH(p, i, n), tile);
        Z_FUSED_CELLS(ZC_LOAD)
#undef ZC_LOAD
    }
    // Of so many, from element `first` on.
    template <int COUNT = N, class V, class R> ZC_MEMBER void apply(const V *v, R *result, int first = 0) const {
#pragma unroll
        for (int e = 0; e < COUNT; e++) {
#define ZC_PICK(i, T, ROWS, COLS) const auto in##i = run##i.get(first + e);
            Z_FUSED_CELLS(ZC_PICK)
            result[e] = zc_fused_point(v[e] Z_FUSED_ARGS(ZC_ARG) Z_FUSED_LITERALS((*params)));
#undef ZC_PICK
        }
    }
    template <class V> ZC_MEMBER void apply(V *v) const { apply(v, v); }
};
#elif !defined(Z_FUSED)
template <int N> struct zc_fused_cells {
    template <class PAIR = u32> ZC_MEMBER void load(const zc_fused_params &, i64, i64, i64, PAIR = 0) {}
    template <int COUNT = N, class V, class R> ZC_MEMBER void apply(const V *v, R *result, int = 0) const {
#pragma unroll
        for (int e = 0; e < COUNT; e++) result[e] = v[e];
    }
    template <class V> ZC_MEMBER void apply(V *) const {}
};
#endif
// v: elements (row, col) to (row, col + N - 1); tile: those of operand Z_FUSED_TILE. Without rows and columns, of work on a result
// without a pitch, by the element's place.
#if defined(Z_FUSED_CELLS) || !defined(Z_FUSED)
template <int N, class V, class R, class PAIR>
ZC_DEV void zc_fused_near_to(const zc_fused_params &p, const V *v, R *result, i64 row, i64 col, i64 n, PAIR tile) {
    zc_fused_cells<N> cells;
    cells.load(p, row, col, n, tile);
    cells.apply(v, result);
}
#else
template <int N, class V, class R, class PAIR>
ZC_DEV void zc_fused_near_to(const zc_fused_params &p, const V *v, R *result, i64 row, i64 col, i64 n, PAIR) {
#pragma unroll
    for (int e = 0; e < N; e++) result[e] = zc_fused(p, v[e], row * n + col + e);
}
#endif
template <int N, class V, class PAIR = u32>
ZC_DEV void zc_fused_near(const zc_fused_params &p, V *v, i64 row, i64 col, i64 n, PAIR tile = 0) {
    zc_fused_near_to<N>(p, v, v, row, col, n, tile);
}
#undef ZC_ARG
#undef ZC_WORK
