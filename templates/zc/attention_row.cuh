// One query of attention by a block or, with splits, by a few, the last of which puts their partial sums together.
#pragma once
#include "zc/attention.cuh"
#include "zc/last_block.cuh"

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
        const partial *const all = (const partial *)p.parts + at * p.splits;
        partial *const to = (partial *)p.parts + blockIdx.x;
        max = merged_max(parts, ROW_WARPS, least());
        for (int e = (int)threadIdx.x; e < Z_DV; e += (int)blockDim.x) to->value[e] = merged(parts, ROW_WARPS, max, e);
        if (threadIdx.x == 0) {
            to->max = max;
            to->sum = merged_sum(parts, ROW_WARPS, max);
        }
        if (zc_last_block(p.counters + at, (u32)p.splits)) finish_row(p, r.q, all, p.splits, &max, &sum);
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
