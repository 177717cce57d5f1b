// Scores of a block that has queries of one head and all keys, in powers of two: what every query's score of a key gets
// besides stands in shared memory, a number a key.
//
// spec.h: see zc/attention.cuh.
#pragma once
#include "zc/attention_tile.cuh"

#ifndef Z_BIAS0
#define Z_BIAS0_SHARED 1
#endif
#ifndef Z_BIAS1
#define Z_BIAS1_SHARED 1
#endif
#if defined(Z_BIAS0) || defined(Z_BIAS1)
constexpr bool ZC_BIASED = true;
#else
constexpr bool ZC_BIASED = false;
#endif
constexpr f32 ZC_LOG2E = 1.44269504f;
constexpr bool ZC_SCORES_ARE_PRODUCTS = !ZC_BIASED && !Z_SOFTCAP; // times a factor

struct zc_attention_scores {
    const zc_attention_params &p;
    f32 *addends; // a key each
    i64 b, h;
    f32 factor; // of products

    ZC_MEMBER zc_attention_scores(const zc_attention_params &p, void *addends, i64 b, i64 h)
        : p(p), addends((f32 *)addends), b(b), h(h), factor((f32)p.scale * ZC_LOG2E) {}

    template <class T> ZC_MEMBER f32 bias_at(int x, i64 at, int j, int end) const {
        return p.bias[x] && j < end ? as_bias(((const T *)p.bias[x])[at + j * p.bias_steps[x][3]]) : 0.0f;
    }
    // Of keys [0, count), by all threads of the block, which have to meet before they use them.
    ZC_MEMBER void keep(int count, int threads, int end) const {
        if (!ZC_BIASED) return;
        [[maybe_unused]] const query q = query_of(p, b, h, 0);
        for (int j = (int)threadIdx.x; j < count; j += threads) {
            f32 one = 0, two = 0;
#ifdef Z_BIAS0
            if (Z_BIAS0_SHARED) one = bias_at<Z_BIAS0>(0, q.bias0, j, end);
#endif
#ifdef Z_BIAS1
            if (Z_BIAS1_SHARED) two = bias_at<Z_BIAS1>(1, q.bias1, j, end);
#endif
            addends[j] = both(one, two) * ZC_LOG2E;
        }
    }
    // What one query's score of a key gets besides.
    ZC_MEMBER f32 own([[maybe_unused]] const query &q, [[maybe_unused]] int j, [[maybe_unused]] int end) const {
        f32 one = 0, two = 0;
#ifdef Z_BIAS0
        if (!Z_BIAS0_SHARED) one = bias_at<Z_BIAS0>(0, q.bias0, j, end);
#endif
#ifdef Z_BIAS1
        if (!Z_BIAS1_SHARED) two = bias_at<Z_BIAS1>(1, q.bias1, j, end);
#endif
        return both(one, two) * ZC_LOG2E;
    }
    ZC_MEMBER f32 of(const query &q, bool even, f32 dot, int j, int end) const {
        const f32 s = Z_SOFTCAP ? capped(p, scaled(p, even, dot)) * ZC_LOG2E : even ? 0.0f : dot * factor;
        if (!ZC_BIASED) return s;
        f32 add = addends[j];
        if (!Z_BIAS0_SHARED || !Z_BIAS1_SHARED) add = both(add, own(q, j, end));
        return add == least() ? (f32)p.mask_value * ZC_LOG2E : s + add;
    }
    // A row's first maximum and sum: a sink's.
    ZC_MEMBER state begin() const {
        line l = {};
        l.q.h = h;
        const state s = begin_state(p, l);
        return {s.max * ZC_LOG2E, s.sum};
    }
    // Neighbours of a row's result, of the row's sums of weighed values and of weights; i: the query.
    template <int NEAR>
    ZC_MEMBER void put(const tile &t, int row, i64 i, int col, const f32 (&y)[NEAR], f32 max, f32 sum) const {
        const f32 by = sum == 0 ? 0.0f : 1 / sum;
        bool finite = true;
#pragma unroll
        for (int e = 0; e < NEAR; e++) finite = finite && zc_isfinite(y[e]);
        if (!finite && zc_isfinite(sum)) {
            put_seen<NEAR, Z_DV>(p, t, line_of(p, t, row), row, {max / ZC_LOG2E, sum}, col);
            return;
        }
        const i64 to = b * p.y.batch + h * p.y.head + i * p.y.pos + col;
#ifdef Z_FUSED
#pragma unroll
        for (int e = 0; e < NEAR; e++) put_y(p, to + e, y[e] * by);
#else
        zc_vec<u32, NEAR / 2> out;
#pragma unroll
        for (int e = 0; e < NEAR / 2; e++) out.v[e] = zc_pack(Z_T(), y[e * 2] * by, y[e * 2 + 1] * by);
        *(zc_vec<u32, NEAR / 2> *)((Z_T *)p.y.data + to) = out;
#endif
    }
};
