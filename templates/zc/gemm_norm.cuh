// Rows of a product, normalised: v = alpha * sum + bias + skip, y = (v - mean) / sqrt(variance + epsilon) * gamma + beta,
// or with Z_RMS v / rms * gamma + beta. A warp has a short row, a block a long one.
//
// spec.h: Z_NORM; Z_N, the length of a row, where it is certain; Z_RMS.
#pragma once
#include "zc/gemm.cuh"

#ifdef Z_NORM
#include "zc/rows.cuh"
#include "zc/states.cuh"

#ifdef Z_N
ZC_DEV constexpr i64 zc_gemm_norm_length(const zc_gemm_params &) { return Z_N; }
constexpr i64 ZC_NORM_N = Z_N;
#else
ZC_DEV i64 zc_gemm_norm_length(const zc_gemm_params &p) { return p.n; }
constexpr i64 ZC_NORM_N = 0; // not certain
#endif

// Pieces of V neighbours: each thread of the row's team has every LANES-th, and keeps KEEP of them; 0: it computes them
// again each time.
template <bool WARP> struct zc_gemm_norm_row {
    static constexpr int WIDE = 16 / sizeof(Z_SCALE), V = ZC_NORM_N > 0 && ZC_NORM_N % WIDE == 0 ? WIDE : 1;
    static constexpr int LANES = WARP ? 32 : ZC_GEMM_NORM;
    static constexpr i64 PIECES = (ZC_NORM_N + LANES * V - 1) / (LANES * V);
    static constexpr int KEEP = PIECES * V <= 32 ? (int)PIECES : 0, KEPT = KEEP > 0 ? KEEP : 1;
    typedef zc_vec<Z_T, V> elements;

    const zc_gemm_params &p;
    const zc_gemm_item item;
    const i64 n, row;

    ZC_MEMBER zc_gemm_norm_row(const zc_gemm_params &p)
        : p(p), item(zc_gemm_batch(p, 0)), n(zc_gemm_norm_length(p)), row(zc_team<WARP>::row()) {}

    ZC_MEMBER i64 col_of(int piece) const { return ((i64)piece * LANES + zc_team<WARP>::lane()) * V; }
    ZC_MEMBER elements piece_of(const void *data, i64 at) const {
        return data ? *(const elements *)((const Z_T *)data + at) : elements();
    }

    // What is normalised, of one piece.
    ZC_MEMBER void load(i64 col, Z_SCALE (&v)[V]) const {
        const i64 at = row * n + col;
        zc_gemm_addend<V> addend;
        addend.load(item, col);
        const elements skip = piece_of(p.norm.skip, at);
        zc_vec<Z_ACC, V> sum = *(const zc_vec<Z_ACC, V> *)((const Z_ACC *)p.partial + at);
        for (i64 s = 1; s < p.splits; s++) {
            const auto more = *(const zc_vec<Z_ACC, V> *)((const Z_ACC *)p.partial + s * p.m * n + at);
#pragma unroll
            for (int e = 0; e < V; e++) sum.v[e] += more.v[e];
        }
#pragma unroll
        for (int e = 0; e < V; e++) {
            v[e] = addend.value(p, item, row, col, e, sum.v[e]);
            if (p.norm.skip) v[e] += (Z_SCALE)zc_get(skip.v[e]);
        }
    }
    template <class F> ZC_MEMBER void each(const Z_SCALE (&kept)[KEPT][V], F f) const {
        if constexpr (KEEP > 0) {
#pragma unroll
            for (int k = 0; k < KEEP; k++)
                if (col_of(k) < n) f(k, col_of(k), kept[k]);
        } else {
            for (int k = 0; col_of(k) < n; k++) {
                Z_SCALE v[V];
                load(col_of(k), v);
                f(0, col_of(k), v);
            }
        }
    }
    ZC_MEMBER Z_SCALE whole(Z_SCALE part) const { return zc_join_team<WARP>(zc_sum<Z_SCALE>{part}).v; }

    ZC_MEMBER void save(i64 col, const Z_SCALE (&v)[V], Z_SCALE mean, Z_SCALE inv, const elements &gamma,
                        const elements &beta) const {
        elements sum, y;
#pragma unroll
        for (int e = 0; e < V; e++) {
            const Z_SCALE shift = p.norm.beta ? (Z_SCALE)zc_get(beta.v[e]) : (Z_SCALE)0;
            sum.v[e] = zc_put<Z_T>(v[e]);
            y.v[e] = zc_put<Z_T>((v[e] - mean) * inv * (Z_SCALE)zc_get(gamma.v[e]) + shift);
        }
        if (p.norm.sum) *(elements *)((Z_T *)p.norm.sum + row * n + col) = sum;
        if (p.y) *(elements *)((Z_T *)p.y + row * n + col) = y;
    }
    // All that is read is asked for before anything is computed.
    ZC_MEMBER void run() const {
        Z_SCALE kept[KEPT][V];
        elements gamma[KEPT], beta[KEPT];
        if (row >= p.m) return;
        if constexpr (KEEP > 0) {
#pragma unroll
            for (int k = 0; k < KEEP; k++) {
                if (col_of(k) >= n) continue;
                gamma[k] = piece_of(p.norm.gamma, col_of(k));
                beta[k] = piece_of(p.norm.beta, col_of(k));
                load(col_of(k), kept[k]);
            }
        }
        Z_SCALE sum = 0, squares = 0, mean = 0;
#ifndef Z_RMS
        each(kept, [&](int, i64, const Z_SCALE(&v)[V]) {
#pragma unroll
            for (int e = 0; e < V; e++) sum += v[e];
        });
        mean = whole(sum) / (Z_SCALE)n;
#endif
        each(kept, [&](int, i64, const Z_SCALE(&v)[V]) {
#pragma unroll
            for (int e = 0; e < V; e++) squares += (v[e] - mean) * (v[e] - mean);
        });
        const Z_SCALE inv = (Z_SCALE)1 / zx_sqrt(whole(squares) / (Z_SCALE)n + (Z_SCALE)p.norm.epsilon);
        each(kept, [&](int k, i64 col, const Z_SCALE(&v)[V]) {
            if constexpr (KEEP == 0) gamma[0] = piece_of(p.norm.gamma, col), beta[0] = piece_of(p.norm.beta, col);
            save(col, v, mean, inv, gamma[k], beta[k]);
        });
    }
};

ZC_DEV void zc_gemm_norm(const zc_gemm_params &p) {
    if (zc_gemm_norm_length(p) <= ZC_GEMM_NORM_SHORT)
        zc_gemm_norm_row<true>(p).run();
    else
        zc_gemm_norm_row<false>(p).run();
}
#endif
