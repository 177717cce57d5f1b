// Rows that are normalised by their moments (LinearMoments), within a product: of A's rows the sums of products are
// scaled and shifted, of skip's rows each element is.
//
// spec.h: see zc/gemm.cuh; Z_MOMENTS (without it nothing here does anything), Z_K and Z_N (columns of A and of the
// result); Z_A_NORM (are A's rows normalised), Z_A_RMS; Z_SKIP (is there a skip), Z_SKIP_NORM (normalised), Z_SKIP_RMS,
// Z_SKIP_SHIFT (with a beta); Z_KEEP (are the result's moments wanted).
#pragma once
#include "zc/gemm.cuh"
#include "abi/linear_moments.h"

#ifdef Z_MOMENTS
typedef zc_vec<f32, 2> zc_moments; // mean; squares about it

struct zc_row_norm { // of an element: v * scale + shift
    f32 scale, shift;
};

template <int LANES> ZC_DEV f32 zc_over_lanes(f32 v) {
#pragma unroll
    for (int by = 1; by < LANES; by *= 2) v += zc_shfl_xor(v, by);
    return v;
}
ZC_DEV constexpr int zc_moments_columns(int n, int part) {
    return n - part * ZC_MOMENTS_PART < ZC_MOMENTS_PART ? n - part * ZC_MOMENTS_PART : ZC_MOMENTS_PART;
}

// Of a row of N columns. LANES neighbouring threads of a warp have its parts by turns, and all come to the same norm.
template <int N, int LANES, bool RMS> struct zc_row_moments {
    static constexpr int PARTS = (N + ZC_MOMENTS_PART - 1) / ZC_MOMENTS_PART, KEPT = (PARTS + LANES - 1) / LANES;
    zc_moments part[KEPT];

    static ZC_MEMBER int part_of(int i) { return i * LANES + (int)threadIdx.x % LANES; }
    ZC_MEMBER void load(const void *moments, i64 row) {
#pragma unroll
        for (int i = 0; i < KEPT; i++)
            if (part_of(i) < PARTS) part[i] = ((const zc_moments *)moments)[row * PARTS + part_of(i)];
    }
    ZC_MEMBER zc_row_norm norm(f32 epsilon) const {
        f32 sum = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < KEPT; i++)
            if (part_of(i) < PARTS) sum += part[i].v[0] * (f32)zc_moments_columns(N, part_of(i));
        const f32 mean = RMS ? 0.0f : zc_over_lanes<LANES>(sum) / (f32)N;
#pragma unroll
        for (int i = 0; i < KEPT; i++) {
            if (part_of(i) >= PARTS) continue;
            const f32 off = part[i].v[0] - mean;
            squares += part[i].v[1] + (f32)zc_moments_columns(N, part_of(i)) * off * off;
        }
        const f32 scale = 1.0f / sqrtf(zc_over_lanes<LANES>(squares) / (f32)N + epsilon);
        return {scale, -mean * scale};
    }
};

// Operands of V neighbouring columns.
template <int V> struct zc_moments_columns_of {
    zc_fused_run<f32, V, false, true, false> sums;
    zc_fused_run<Z_T, V, false, true, false> gamma, beta;
    ZC_MEMBER void load(const zc_row_moments_params &p, i64 col) {
        if (Z_A_NORM && !Z_A_RMS) sums.load(p.sums, 0, col, 0, 0);
        if (Z_SKIP_NORM) gamma.load(p.gamma, 0, col, 0, 0);
        if (Z_SKIP_NORM && Z_SKIP_SHIFT) beta.load(p.beta, 0, col, 0, 0);
    }
};

// V neighbours of a row, of which LANES threads have parts. Where the row does not exist, another is named.
template <int V, int LANES> struct zc_moments_cells {
    zc_row_moments<Z_K, LANES, Z_A_RMS> rows;
    zc_row_moments<Z_N, LANES, Z_SKIP_RMS> skip_rows;
    zc_fused_run<Z_T, V, true, true, false> skip;
    zc_row_norm norm, skip_norm;

    ZC_MEMBER void load_rows(const zc_row_moments_params &p, i64 row) {
        if (Z_A_NORM) rows.load(p.x, row);
        if (Z_SKIP_NORM) skip_rows.load(p.skip_x, row);
    }
    ZC_MEMBER void load_skip(const zc_row_moments_params &p, i64 row, i64 col) {
        if (Z_SKIP) skip.load(p.skip, row, col, Z_N, 0);
    }
    // All threads of a warp.
    ZC_MEMBER void join(const zc_row_moments_params &p) {
        if (Z_A_NORM) norm = rows.norm(p.epsilon);
        if (Z_SKIP_NORM) skip_norm = skip_rows.norm(p.skip_epsilon);
    }
    // A sum of products, of normalised rows of A.
    ZC_MEMBER f32 product(const zc_moments_columns_of<V> &columns, int e, f32 v) const {
        if (!Z_A_NORM) return v;
        return v * norm.scale + (Z_A_RMS ? 0.0f : norm.shift * columns.sums.get(e));
    }
    // x: of skip's row, as it stands.
    ZC_MEMBER f32 plus(const zc_moments_columns_of<V> &columns, int e, f32 v, f32 x) const {
        if (!Z_SKIP_NORM) return v + x;
        x = x * skip_norm.scale + skip_norm.shift;
        return v + (x * columns.gamma.get(e) + (Z_SKIP_SHIFT ? columns.beta.get(e) : 0.0f));
    }
    ZC_MEMBER f32 plus_skip(const zc_moments_columns_of<V> &columns, int e, f32 v) const {
        return Z_SKIP ? plus(columns, e, v, skip.get(e)) : v;
    }
};

// Saves the moments of columns from col on, of which LANES threads have V each: all threads of a warp. own: how many
// of this thread's are there.
template <int V, int LANES>
ZC_DEV void zc_save_moments(const zc_row_moments_params &p, i64 row, i64 col, int own, const f32 (&v)[V]) {
    if (!Z_KEEP) return;
    f32 sum = 0, squares = 0;
#pragma unroll
    for (int e = 0; e < V; e++) sum += e < own ? v[e] : 0.0f;
    const f32 mean = zc_over_lanes<LANES>(sum) / (f32)zc_moments_columns(Z_N, (int)(col / ZC_MOMENTS_PART));
#pragma unroll
    for (int e = 0; e < V; e++) squares += e < own ? (v[e] - mean) * (v[e] - mean) : 0.0f;
    squares = zc_over_lanes<LANES>(squares);
    const i64 parts = (Z_N + ZC_MOMENTS_PART - 1) / ZC_MOMENTS_PART;
    if (own > 0 && threadIdx.x % LANES == 0)
        ((zc_moments *)p.y)[row * parts + col / ZC_MOMENTS_PART] = {mean, squares};
}
#else
template <int V> struct zc_moments_columns_of {
    ZC_MEMBER void load(const zc_row_moments_params &, i64) {}
};
template <int V, int LANES> struct zc_moments_cells {
    ZC_MEMBER void load_rows(const zc_row_moments_params &, i64) {}
    ZC_MEMBER void load_skip(const zc_row_moments_params &, i64, i64) {}
    ZC_MEMBER void join(const zc_row_moments_params &) {}
    ZC_MEMBER f32 product(const zc_moments_columns_of<V> &, int, f32 v) const { return v; }
    ZC_MEMBER f32 plus(const zc_moments_columns_of<V> &, int, f32 v, f32) const { return v; }
    ZC_MEMBER f32 plus_skip(const zc_moments_columns_of<V> &, int, f32 v) const { return v; }
};
template <int V, int LANES>
ZC_DEV void zc_save_moments(const zc_row_moments_params &, i64, i64, int, const f32 (&)[V]) {}
#endif
