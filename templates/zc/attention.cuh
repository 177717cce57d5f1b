// What the kernels of attention.cu share: which keys a query sees, biases, and the computation of one query by a block.
#pragma once
#include "zc/device.cuh"
#include "abi/attention.h"
#include "spec.h"
#include "zc/fused.cuh"

typedef Z_REAL real;

ZC_DEV real least() { return (real)-zc_inf32(); }

// ---- which keys count ----

struct sight {
    i64 keys, position; // valid keys; where query 0 stands among them
    bool even;          // there are none, but hidden keys have a score: all have the same
};

// Lengths that do not fit are reported and brought within bounds.
ZC_DEV i64 bounded(const zc_attention_lengths &l, i64 got, i64 low, i64 high) {
    if (got >= low && got <= high) return got;
    zc_report(l.fault, l.step, ZC_FAULT_VALUE, got, low, high);
    return got < low ? low : high;
}
ZC_DEV sight sight_of(const zc_attention_lengths &l, i64 b) {
#if Z_LENGTHS == 1 // numbers of valid keys
    const i64 n = bounded(l, (i64)zc_load<Z_LENGTH_TYPE>(l.lengths, b), 0, l.nk);
    return {n, n - l.nq, n == 0};
#elif Z_LENGTHS == 2 // numbers of valid keys less one; with as many new tokens as there are in all, no past counts
    const i64 last = bounded(l, (i64)zc_load<Z_LENGTH_TYPE>(l.lengths, b), 0, l.nk - 1);
    return {last + 1, l.nk == l.nq ? 0 : bounded(l, last + 1 - l.nq, 0, l.past), false};
#elif Z_LENGTHS == 3 // numbers of valid keys; the queries begin with the first key
    const i64 n = bounded(l, (i64)zc_load<Z_LENGTH_TYPE>(l.lengths, b), 0, l.nk);
    return {n, l.past, n == 0};
#else
    return {l.nk, l.past, false};
#endif
}

ZC_DEV bool is_even(const zc_attention_params &p, const sight &s) { return s.even && p.mask_value != (f64)least(); }

struct span {
    i64 lo, hi; // keys
};
ZC_DEV span span_of(const zc_attention_params &p, const sight &s, i64 i) {
    const i64 at = s.position + i;
    span r = {0, s.keys < p.len.nk ? s.keys : p.len.nk};
    if (is_even(p, s)) r.hi = p.len.nk;
    if (p.causal && r.hi > at + 1) r.hi = at + 1;
    if (p.window > 0 && at + 1 > p.window) r.lo = at + 1 - p.window;
#ifdef Z_BIAS0
    if (p.bias[0] && r.hi > p.bias_cols[0]) r.hi = p.bias_cols[0];
#endif
    if (r.hi < r.lo) r.hi = r.lo;
    return r;
}

// ---- scores ----

ZC_DEV real as_bias(b8 v) { return zc_get(v) ? (real)0 : least(); }
template <class T> ZC_DEV real as_bias(T v) { return (real)zc_get(v); }

// A query and where its biases begin.
struct query {
    i64 b, h, i, bias0, bias1;
};
ZC_DEV query query_of(const zc_attention_params &p, i64 b, i64 h, i64 i) {
    query q = {b, h, i, 0, 0};
#ifdef Z_BIAS0
    q.bias0 = b * p.bias_steps[0][0] + h * p.bias_steps[0][1] + i * p.bias_steps[0][2];
#endif
#ifdef Z_BIAS1
    q.bias1 = b * p.bias_steps[1][0] + h * p.bias_steps[1][1] + i * p.bias_steps[1][2];
#endif
    return q;
}
// What q k^T becomes before its biases.
ZC_DEV real scaled(const zc_attention_params &p, bool even, real dot) { return even ? (real)0 : dot * (real)p.scale; }
ZC_DEV real capped(const zc_attention_params &p, real s) {
    return Z_SOFTCAP ? zx_tanh(s / (real)p.softcap) * (real)p.softcap : s;
}
// The score with its biases; minus infinity masks whatever the score is, and becomes mask_value.
ZC_DEV real biased(const zc_attention_params &p, const query &q, i64 j, real s) {
    real one = 0, two = 0;
#ifdef Z_BIAS0
    if (p.bias[0]) one = as_bias(((const Z_BIAS0 *)p.bias[0])[q.bias0 + j * p.bias_steps[0][3]]);
#endif
#ifdef Z_BIAS1
    if (p.bias[1]) two = as_bias(((const Z_BIAS1 *)p.bias[1])[q.bias1 + j * p.bias_steps[1][3]]);
#endif
    return one == least() || two == least() ? (real)p.mask_value : s + (one + two);
}

// What values summed under the maximum `was` weigh under the maximum `now`; nothing was summed under minus infinity.
ZC_DEV real rescale(real was, real now) { return was == least() || was == now ? (real)1 : zx_exp(was - now); }
// v with weight w; nothing has a weight of 0, infinity neither.
ZC_DEV real weighed(real v, real w) { return w == 0 ? (real)0 : v * w; }
ZC_DEV real weight_of(real s, real max) { return s == least() ? (real)0 : zx_exp(s - max); }

ZC_DEV bool has_sink(const zc_attention_params &p) { return p.sink || p.zero_sink; }
ZC_DEV real sink_of(const zc_attention_params &p, i64 h) { return p.sink ? (real)zc_load<Z_T>(p.sink, h) : (real)0; }

// ---- one query, by a block or, with splits, by a few ----

ZC_DEV constexpr int power_below(int n, int most) { return most > 1 && n % most ? power_below(n, most / 2) : most; }
ZC_DEV constexpr int power_above(int n, int at) { return at < n && at < 32 ? power_above(n, at * 2) : at; }

// A vector of N elements spread over the lanes of a part of a warp, in pieces of VEC neighbours.
template <class T, int N> struct spread {
    static constexpr int VEC = power_below(N, 16 / (int)sizeof(T)), LANES = power_above((N + VEC - 1) / VEC, 1);
    static constexpr int PIECES = (N + VEC * LANES - 1) / (VEC * LANES), PARTS = 32 / LANES;
    static ZC_MEMBER int place(int sub, int x) { return (x / VEC * LANES + sub) * VEC + x % VEC; }
    static ZC_MEMBER void load(const T *from, int sub, bool aligned, real *out) {
#pragma unroll
        for (int r = 0; r < PIECES; r++) {
            const int e = (r * LANES + sub) * VEC;
            if (e >= N) {
#pragma unroll
                for (int v = 0; v < VEC; v++) out[r * VEC + v] = 0;
            } else if (aligned) {
                const zc_vec<T, VEC> x = *(const zc_vec<T, VEC> *)(from + e);
#pragma unroll
                for (int v = 0; v < VEC; v++) out[r * VEC + v] = (real)zc_get(x.v[v]);
            } else {
#pragma unroll
                for (int v = 0; v < VEC; v++) out[r * VEC + v] = (real)zc_get(from[e + v]);
            }
        }
    }
};
typedef spread<Z_T, Z_D> key_spread;
typedef spread<Z_V, Z_DV> value_spread;
enum { KEY_REGS = key_spread::PIECES * key_spread::VEC, VALUE_REGS = value_spread::PIECES * value_spread::VEC };
enum { ROW_WARPS = 4 };

// A row of scores: the state of a warp.
struct row {
    query q;
    span seen;
    i64 end; // keys that are looked at
    const Z_T *k;
    const Z_V *v;
    int lane;
    bool even;
    real x[KEY_REGS];
};

// The scaled product with key j0 + lane; 0 from `end` on.
ZC_DEV real row_dot(const zc_attention_params &p, const row &r, i64 j0) {
    real mine = 0;
#pragma unroll 4
    for (int pass = 0; pass < key_spread::LANES; pass++) {
        const i64 j = j0 + pass * key_spread::PARTS + r.lane / key_spread::LANES;
        real k[KEY_REGS], sum = 0;
        if (j < r.end) {
            key_spread::load(r.k + j * p.k.pos, r.lane % key_spread::LANES, p.aligned_k, k);
#pragma unroll
            for (int e = 0; e < KEY_REGS; e++) sum += r.x[e] * k[e];
        }
#pragma unroll
        for (int d = key_spread::LANES / 2; d; d >>= 1) sum += zc_shfl_xor(sum, d);
        const real got = zc_shfl(sum, r.lane % key_spread::PARTS * key_spread::LANES);
        if (r.lane / key_spread::PARTS == pass) mine = got;
    }
    return scaled(p, r.even, mine);
}

ZC_DEV void put_score(const zc_attention_params &p, const row &r, int mode, i64 j, real s) {
#if Z_SCORES >= 0
    if (mode == Z_SCORES && j < p.len.nk)
        zc_save<Z_T>(p.scores, ((r.q.b * p.heads + r.q.h) * p.len.nq + r.q.i) * p.len.nk + j, s);
#endif
}
// The final score of key j0 + lane.
ZC_DEV real row_score(const zc_attention_params &p, const row &r, i64 j0, bool put) {
    const i64 j = j0 + r.lane;
    real s = row_dot(p, r, j0);
    if (put) put_score(p, r, 0, j, s);
    s = capped(p, s);
    if (put) put_score(p, r, 1, j, s);
    s = j >= r.seen.lo && j < r.seen.hi ? biased(p, r.q, j, s) : least();
    if (put) put_score(p, r, 2, j, s);
    return s;
}

// Sums of a softmax and the weighted values, of some keys. NaN gets lost in max; sum has it.
struct sums {
    real max, sum, value[VALUE_REGS];
};
ZC_DEV void add_keys(const zc_attention_params &p, const row &r, i64 j0, real s, sums *t) {
    real top = s;
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        const real other = zc_shfl_xor(top, d);
        top = other > top ? other : top;
    }
    const real max = top > t->max ? top : t->max, by = rescale(t->max, max), w = weight_of(s, max);
    real sum = w;
#pragma unroll
    for (int d = 16; d; d >>= 1) sum += zc_shfl_xor(sum, d);
    t->max = max;
    t->sum = t->sum * by + sum;
#pragma unroll
    for (int e = 0; e < VALUE_REGS; e++) t->value[e] = weighed(t->value[e], by);
#pragma unroll 4
    for (int pass = 0; pass < value_spread::LANES; pass++) {
        const int key = pass * value_spread::PARTS + r.lane / value_spread::LANES;
        const real weight = zc_shfl(w, key);
        if (weight == 0) continue;
        real v[VALUE_REGS];
        value_spread::load(r.v + (j0 + key) * p.v.pos, r.lane % value_spread::LANES, p.aligned_v, v);
#pragma unroll
        for (int e = 0; e < VALUE_REGS; e++) t->value[e] += weight * v[e];
    }
}

ZC_DEV row row_of(const zc_attention_params &p, i64 at) {
    row r;
    const i64 i = at % p.len.nq, h = at / p.len.nq % p.heads, b = at / p.len.nq / p.heads;
    const i64 kv = h / (p.heads / p.kv_heads);
    r.q = query_of(p, b, h, i);
    const sight s = sight_of(p.len, b);
    r.seen = span_of(p, s, i);
    r.even = is_even(p, s);
    r.end = Z_SCORES >= 0 ? p.len.nk : r.seen.hi;
    r.k = (const Z_T *)p.k.data + b * p.k.batch + kv * p.k.head;
    r.v = (const Z_V *)p.v.data + b * p.v.batch + kv * p.v.head;
    r.lane = (int)(threadIdx.x % 32);
    const Z_T *q = (const Z_T *)p.q.data + b * p.q.batch + h * p.q.head + i * p.q.pos;
    key_spread::load(q, r.lane % key_spread::LANES, p.aligned_k, r.x);
    return r;
}

// Partial sums in memory: maximum, sum, values.
struct partial {
    real max, sum, value[Z_DV];
};
// Element e of the result of n partial sums; thread-wise, all threads the same maximum.
ZC_DEV real merged(const partial *parts, int n, real max, int e) {
    real sum = 0;
    for (int w = 0; w < n; w++) sum += weighed(parts[w].value[e], rescale(parts[w].max, max));
    return sum;
}
ZC_DEV real merged_max(const partial *parts, int n, real max) {
    for (int w = 0; w < n; w++) max = parts[w].max > max ? parts[w].max : max;
    return max;
}
ZC_DEV real merged_sum(const partial *parts, int n, real max) {
    real sum = 0;
    for (int w = 0; w < n; w++) sum += parts[w].sum * rescale(parts[w].max, max);
    return sum;
}

// Element `at` of the result.
ZC_DEV void put_y(const zc_attention_params &p, i64 at, real v) {
    zc_save<Z_T>((void *)p.y.data, at, zc_fused(p.fused, v, at));
}

// y of one query from partial sums, by a block.
ZC_DEV void finish_row(const zc_attention_params &p, const query &q, const partial *parts, int n, real *max,
                       real *sum) {
    *max = merged_max(parts, n, has_sink(p) ? sink_of(p, q.h) : least());
    *sum = merged_sum(parts, n, *max) + (has_sink(p) ? weight_of(sink_of(p, q.h), *max) : (real)0);
    if (!p.y.data) return;
    const i64 y = q.b * p.y.batch + q.h * p.y.head + q.i * p.y.pos;
    for (int e = (int)threadIdx.x; e < Z_DV; e += (int)blockDim.x)
        put_y(p, y + e, *sum == 0 ? (real)0 : merged(parts, n, *max, e) / *sum);
}

ZC_DEV void attend_row(const zc_attention_params &p) {
    __shared__ partial parts[ROW_WARPS];
    const i64 at = blockIdx.x / p.splits;
    const int split = (int)(blockIdx.x % p.splits), warp = (int)(threadIdx.x / 32);
    const row r = row_of(p, at);
    const i64 first = Z_SCORES >= 0 ? 0 : r.seen.lo / 32 * 32;
    sums t = {least(), 0, {}};
    for (i64 j0 = first + (split * ROW_WARPS + warp) * 32; j0 < r.end; j0 += (i64)p.splits * ROW_WARPS * 32) {
        const real s = row_score(p, r, j0, true);
        if (zc_any(s != least())) add_keys(p, r, j0, s, &t);
    }
#pragma unroll
    for (int e = 0; e < VALUE_REGS; e++)
#pragma unroll
        for (int d = 16; d >= value_spread::LANES; d >>= 1) t.value[e] += zc_shfl_xor(t.value[e], d);
    partial *mine = &parts[warp];
    mine->max = t.max;
    mine->sum = t.sum;
#pragma unroll
    for (int x = 0; x < VALUE_REGS; x++) {
        const int e = value_spread::place(r.lane % value_spread::LANES, x);
        if (r.lane < value_spread::LANES && e < Z_DV) mine->value[e] = t.value[x];
    }
    zc_sync();
    real max, sum;
    if (p.splits > 1) {
        partial *to = (partial *)p.parts + blockIdx.x;
        max = merged_max(parts, ROW_WARPS, least());
        for (int e = (int)threadIdx.x; e < Z_DV; e += (int)blockDim.x) to->value[e] = merged(parts, ROW_WARPS, max, e);
        if (threadIdx.x) return;
        to->max = max;
        to->sum = merged_sum(parts, ROW_WARPS, max);
        return;
    }
    finish_row(p, r.q, parts, ROW_WARPS, &max, &sum);
#if Z_SCORES == 3
    for (i64 j0 = warp * 32; j0 < r.end; j0 += ROW_WARPS * 32) {
        const real w = weight_of(row_score(p, r, j0, false), max);
        put_score(p, r, 3, j0 + r.lane, sum == 0 ? (real)0 : w / sum);
    }
#endif
}

ZC_DEV void merge_row(const zc_attention_params &p) {
    const i64 at = blockIdx.x, i = at % p.len.nq, h = at / p.len.nq % p.heads, b = at / p.len.nq / p.heads;
    const query q = {b, h, i, 0, 0};
    real max, sum;
    finish_row(p, q, (const partial *)p.parts + at * p.splits, p.splits, &max, &sum);
}
