// What the matrix product kernels share: batches, the order of tiles, and the epilogue, the one place where a sum
// becomes an element of the result.
//
// spec.h: Z_T (element type; Z_B: of B, as wide, else Z_T), Z_Y (of results, where the work on them makes f32 of 16 bits; else Z_T), Z_TA and Z_TB (is A stored K x M, is B stored N x K), Z_ADDEND (is there a C; Z_ADDEND_ROW: all rows have the same one; Z_C: its type, else Z_T), Z_COLUMN_SCALES (sums are multiplied by their
// column's), Z_ACC
// (type of the sums; of integers unsigned, so that they wrap), Z_SCALE (type in which alpha and beta apply; not
// defined: integers with both 1), Z_UNSCALED (both are 1) and, with Z_EPILOGUE, a function zc_epilogue over the result's compute type; Z_ROWS
// (most rows of the kernels for few; 0: tiles), Z_SIDE (of a tile), Z_SPLIT (is the summed axis in parts, one in
// blockIdx.y: 0 never, 1 always, 2 when there are several). Entry 1 finishes what entry 0 left (zc/gemm_second.cuh).
#pragma once
#include "zc/device.cuh"
#include "abi/gemm.h"
#include "zc/fused.cuh"
#include "zc/gemm_place.cuh"
#include "spec.h"

#ifndef Z_Y
#define Z_Y Z_T
#endif
#ifndef Z_B
#define Z_B Z_T
#endif
#ifndef Z_C
#define Z_C Z_T
#endif
#ifndef Z_SPLIT
#define Z_SPLIT 0
#endif
#ifndef Z_EPILOGUE
#define zc_epilogue(v) (v)
#endif

struct zc_gemm_item {
    const Z_T *a;
    const Z_B *b;
    const Z_C *c;
    const f32 *scale;
    Z_Y *y;
};
ZC_DEV zc_gemm_item zc_gemm_batch(const zc_gemm_params &p, i64 item) {
    i64 a = 0, b = 0, y = 0, rest = item;
    for (int d = p.batch_rank - 1; d >= 0; d--) {
        const i64 outer = d ? rest / p.batch_dims[d] : 0, at = rest - outer * p.batch_dims[d];
        a += at * p.a_batch[d];
        b += at * p.b_batch[d];
        y += at * p.y_batch[d];
        rest = outer;
    }
    return {(const Z_T *)p.a + a, (const Z_B *)p.b + b, (const Z_C *)p.c + item * p.c_item, p.scale,
            (Z_Y *)p.y + y};
}
// The same where the batch has one axis at most.
ZC_DEV zc_gemm_item zc_gemm_item_at(const zc_gemm_params &p, i64 item) {
    return {(const Z_T *)p.a + item * p.a_batch[0], (const Z_B *)p.b + item * p.b_batch[0],
            (const Z_C *)p.c + item * p.c_item, p.scale, (Z_Y *)p.y + item * p.y_batch[0]};
}

// alpha * sum + beta * c.
template <class ACC, class C> ZC_DEV auto zc_gemm_add(const zc_gemm_params &p, ACC sum, C c) {
#ifdef Z_UNSCALED
    return (Z_SCALE)sum + (Z_SCALE)c;
#elif defined(Z_SCALE)
    return (Z_SCALE)p.alpha * (Z_SCALE)sum + (Z_SCALE)p.beta * (Z_SCALE)c;
#else
    return sum + (ACC)c;
#endif
}
// What is added to a product's element.
template <class ACC> ZC_DEV auto zc_gemm_plus(const zc_gemm_params &p, const zc_gemm_item &item, i64 row, i64 col,
                                              ACC sum) {
#if Z_ADDEND && defined(Z_ADDEND_ROW)
    return zc_gemm_add(p, sum, zc_get(item.c[col]));
#elif Z_ADDEND
    return zc_gemm_add(p, sum, zc_get(item.c[row * p.c_row + (p.c_col ? col : 0)]));
#elif defined(Z_SCALE) && !defined(Z_UNSCALED)
    return (Z_SCALE)p.alpha * (Z_SCALE)sum;
#else
    return sum;
#endif
}
template <class ACC> ZC_DEV auto zc_gemm_value(const zc_gemm_params &p, const zc_gemm_item &item, i64 row, i64 col,
                                               ACC sum) {
#ifdef Z_COLUMN_SCALES
    return zc_gemm_plus(p, item, row, col, sum * item.scale[col]);
#else
    return zc_gemm_plus(p, item, row, col, sum);
#endif
}
// The same of N neighbours; what all rows share is read in one piece, and may be read early.
template <int N> struct zc_gemm_addend {
#ifdef Z_COLUMN_SCALES
    zc_vec<f32, N> scale;
    ZC_MEMBER void load_scale(const zc_gemm_item &item, i64 col) { scale = *(const zc_vec<f32, N> *)(item.scale + col); }
    template <class ACC> ZC_MEMBER f32 scaled(int e, ACC sum) const { return sum * scale.v[e]; }
#else
    ZC_MEMBER void load_scale(const zc_gemm_item &, i64) {}
    template <class ACC> ZC_MEMBER ACC scaled(int, ACC sum) const { return sum; }
#endif
#if Z_ADDEND && defined(Z_ADDEND_ROW)
    zc_vec<Z_C, N> c;
    ZC_MEMBER void load(const zc_gemm_item &item, i64 col) {
        load_scale(item, col);
        c = *(const zc_vec<Z_C, N> *)(item.c + col);
    }
    template <class ACC> ZC_MEMBER auto value(const zc_gemm_params &p, const zc_gemm_item &, i64, i64, int e,
                                              ACC sum) const {
        return zc_gemm_add(p, scaled(e, sum), zc_get(c.v[e]));
    }
#else
    ZC_MEMBER void load(const zc_gemm_item &item, i64 col) { load_scale(item, col); }
    template <class ACC> ZC_MEMBER auto value(const zc_gemm_params &p, const zc_gemm_item &item, i64 row, i64 col,
                                              int e, ACC sum) const {
        return zc_gemm_plus(p, item, row, col + e, scaled(e, sum));
    }
#endif
};
// The sums of N neighbours, and the activation.
#ifdef Z_SCALE
template <int N>
ZC_DEV void zc_gemm_near(const zc_gemm_params &p, const zc_gemm_item &item, const zc_gemm_addend<N> &addend, i64 row,
                         i64 col, const f32 *sum, f32 *v) {
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = zc_epilogue(addend.value(p, item, row, col, i, sum[i]));
}
#endif
template <class ACC> ZC_DEV Z_Y zc_gemm_finish(const zc_gemm_params &p, const zc_gemm_item &item, i64 row, i64 col,
                                               ACC sum) {
    const auto v = zc_epilogue(zc_gemm_value(p, item, row, col, sum));
    return zc_put<Z_Y>(zc_fused(p.fused, v, item.y - (Z_Y *)p.y + row * p.y_ld + col));
}
// 64-bit sums of scaled integers are signed numbers.
ZC_DEV auto zc_gemm_sum(Z_ACC sum) {
#if defined(Z_SCALE) && defined(Z_SIGNED_SUM)
    return (i64)sum;
#else
    return sum;
#endif
}
// The sum of part blockIdx.y of the summed axis.
ZC_DEV void zc_gemm_save_part(const zc_gemm_params &p, i64 row, i64 col, Z_ACC sum) {
    ((Z_ACC *)p.partial)[(blockIdx.y * p.m + row) * p.n + col] = sum;
}
// The parts' sum, added in their order.
ZC_DEV Z_ACC zc_gemm_parts(const zc_gemm_params &p, i64 i) {
    const Z_ACC *const part = (const Z_ACC *)p.partial + i;
    Z_ACC sum = part[0];
    for (i64 s = 1; s < p.splits; s++) sum += part[s * p.m * p.n];
    return sum;
}
// Does a tile leave its sums to entry 1, which adds parts up or normalises rows?
ZC_DEV bool zc_gemm_is_part(const zc_gemm_params &p) {
#ifdef Z_NORM
    return true;
#else
    return Z_SPLIT == 1 || (Z_SPLIT == 2 && p.splits > 1);
#endif
}
// What of the summed axis this block has.
ZC_DEV i64 zc_gemm_begin(const zc_gemm_params &p) { return Z_SPLIT ? blockIdx.y * p.split_k : 0; }
ZC_DEV i64 zc_gemm_end(const zc_gemm_params &p, i64 begin) {
    return Z_SPLIT && begin + p.split_k < p.k ? begin + p.split_k : p.k;
}
ZC_DEV void zc_gemm_save(const zc_gemm_params &p, const zc_gemm_item &item, i64 row, i64 col, Z_ACC sum) {
#ifdef Z_NORM
    zc_gemm_save_part(p, row, col, sum);
#else
    item.y[row * p.y_ld + col] = zc_gemm_finish(p, item, row, col, zc_gemm_sum(sum));
#endif
}
