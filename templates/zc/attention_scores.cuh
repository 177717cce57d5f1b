// Scores of a block that has queries of one head and all keys, in powers of two: what every query's score of a key gets
// besides stands in shared memory, a number a key.
//
// spec.h: see zc/attention.cuh.
#pragma once
#include "zc/attention_sm90.cuh"

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
// A score is a product times a factor and what its key's score gets besides.
constexpr bool ZC_SCORES_ARE_SUMS = Z_BIAS0_SHARED && Z_BIAS1_SHARED && !Z_SOFTCAP;

struct zc_attention_scores {
    const zc_attention_params &p;
    f32 *addends; // a key each
    int b, h;
    f32 factor, hidden; // of products; the score of a key that -inf masks

    ZC_MEMBER zc_attention_scores(const zc_attention_params &p, void *addends, int b, int h)
        : p(p), addends((f32 *)addends), b(b), h(h), factor((f32)p.scale * ZC_LOG2E),
          hidden((f32)p.mask_value * ZC_LOG2E) {}

    template <class T> ZC_MEMBER f32 bias_at(int x, i64 at, int j, int end) const {
        return p.bias[x] && j < end ? as_bias(((const T *)p.bias[x])[at + j * p.bias_steps[x][3]]) : 0.0f;
    }
    // Of keys [0, COUNT), by as many threads of the block or more, which have to meet before they use them.
    template <int COUNT> ZC_MEMBER void keep(int end) const {
        const int j = (int)threadIdx.x;
        if (!ZC_BIASED || j >= COUNT) return;
        [[maybe_unused]] const query q = query_of(p, b, h, 0);
        f32 one = 0, two = 0;
#ifdef Z_BIAS0
        if (Z_BIAS0_SHARED) one = bias_at<Z_BIAS0>(0, q.bias0, j, end);
#endif
#ifdef Z_BIAS1
        if (Z_BIAS1_SHARED) two = bias_at<Z_BIAS1>(1, q.bias1, j, end);
#endif
        addends[j] = both(one, two) * ZC_LOG2E;
    }
    enum kind { NOTHING, FINITE, ANY };
    // What keys [first, first + COUNT) get besides, the same in a warp, which is here as a whole.
    template <int COUNT> ZC_MEMBER kind kind_of(int first) const {
        bool some = false, odd = false;
        if (!ZC_BIASED || !ZC_SCORES_ARE_SUMS) return NOTHING;
#pragma unroll
        for (int i = 0; i < COUNT; i += 32) {
            const int j = i + (int)(threadIdx.x % 32);
            const f32 add = j < COUNT ? addends[first + j] : 0.0f;
            some = some || add != 0;
            odd = odd || !zc_isfinite(add);
        }
        return !zc_any(some) ? NOTHING : zc_any(odd) ? ANY : FINITE;
    }
    // Of two neighbouring keys, the first of which is even.
    ZC_MEMBER zc_vec<f32, 2> kept_of(int j) const {
        return ZC_BIASED ? ((const zc_vec<f32, 2> *)addends)[j / 2] : zc_vec<f32, 2>();
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
    // add: what the key's score gets besides.
    ZC_MEMBER f32 of(const query &q, bool even, f32 dot, f32 add, int j, int end) const {
        const f32 s = Z_SOFTCAP ? capped(p, scaled(p, even, dot)) * ZC_LOG2E : even ? 0.0f : dot * factor;
        if (!ZC_BIASED) return s;
        if (!Z_BIAS0_SHARED || !Z_BIAS1_SHARED) add = both(add, own(q, j, end));
        return add == least() ? hidden : s + add;
    }
    // A row's first maximum and sum: a sink's.
    ZC_MEMBER state begin() const {
        const state s = begin_state(p, h);
        return {s.max * ZC_LOG2E, s.sum};
    }
};
