// Tiles of queries that go over the keys together: which rows and keys are in one, and the state of a row.
#pragma once
#include "zc/attention.cuh"
#include "zc/states.cuh"

// Row r of a key head is query r % nq of the head's query head r / nq.
struct tile {
    i64 b, kv;
    position first, end, lo, hi; // first row, end of the rows that are in it; keys that any row may see
    sight s;
};
// Rows [first, end) of a key head, up to LINES of them; keys from a multiple of KEYS on.
template <int LINES, int KEYS>
ZC_DEV tile tile_at(const zc_attention_params &p, i64 b, i64 kv, position first, position end) {
    tile t = {b, kv, first, end, 0, 0, sight_of(p.len, b)};
    const position last = first + LINES < end ? first + LINES - 1 : end - 1;
    const bool one = first / p.len.nq == last / p.len.nq; // else queries from the first to the last are in it
    t.lo = span_of(p, t.s, one ? first % p.len.nq : 0).lo / KEYS * KEYS;
    t.hi = span_of(p, t.s, one ? last % p.len.nq : p.len.nq - 1).hi;
    return t;
}

// One row of the tile.
struct line {
    query q;
    span seen; // empty for a row that does not exist
    bool even;
};
ZC_DEV line line_of(const zc_attention_params &p, const tile &t, i64 r) {
    const i64 at = t.first + r < t.end ? t.first + r : t.end - 1;
    const i64 h = t.kv * (p.heads / p.kv_heads) + at / p.len.nq, i = at % p.len.nq;
    line l = {query_of(p, t.b, h, i), span_of(p, t.s, i), is_even(p, t.s)};
    if (at != t.first + r) l.seen = {0, 0};
    return l;
}
ZC_DEV const Z_T *line_q(const zc_attention_params &p, const tile &t, i64 r) {
    const i64 at = t.first + r, h = t.kv * (p.heads / p.kv_heads) + at / p.len.nq;
    if (at >= t.end) return nullptr;
    return (const Z_T *)p.q.data + t.b * p.q.batch + h * p.q.head + at % p.len.nq * p.q.pos;
}
ZC_DEV i64 line_y(const zc_attention_params &p, const line &l) {
    return l.q.b * p.y.batch + l.q.h * p.y.head + l.q.i * p.y.pos;
}
ZC_DEV f32 line_score(const zc_attention_params &p, const line &l, i64 j, f32 dot) {
    if (j < l.seen.lo || j >= l.seen.hi) return least();
    return biased(p, l.q, j, capped(p, scaled(p, l.even, dot)));
}

// The softmax's state of one row, the same in all threads that share the row; it begins with its head's sink.
struct state {
    f32 max, sum;
};
ZC_DEV state begin_state(const zc_attention_params &p, i64 h) {
    if (!has_sink(p)) return {least(), 0};
    const f32 sink = sink_of(p, h);
    return {sink, weight_of(sink, sink)};
}

// Values that a row does not see were multiplied by its weight of 0: where that made NaN of an infinite one, this puts
// the thread's elements of the row without them: GROUP from e0 on, and so every STEP elements.
template <int GROUP, int STEP>
ZC_DEV void put_seen(const zc_attention_params &p, const tile &t, const line &l, i64 r, const state &st, int e0) {
    const Z_T *q = line_q(p, t, r), *k = (const Z_T *)p.k.data + t.b * p.k.batch + t.kv * p.k.head;
    const Z_V *v = (const Z_V *)p.v.data + t.b * p.v.batch + t.kv * p.v.head;
#pragma unroll 1
    for (int x = 0; x < (Z_DV + STEP - 1) / STEP * GROUP; x++) {
        const int e = e0 + x / GROUP * STEP + x % GROUP;
        f32 sum = 0;
#pragma unroll 1
        for (i64 j = l.seen.lo; e < Z_DV && j < l.seen.hi; j++) {
            f32 dot = 0;
#pragma unroll 1
            for (int d = 0; d < Z_D; d++) dot += zc_get(q[d]) * zc_get(k[j * p.k.pos + d]);
            const f32 w = weight_of(line_score(p, l, j, dot), st.max);
            sum += weighed(zc_get(v[j * p.v.pos + e]), w);
        }
        if (e < Z_DV) put_y(p, line_y(p, l) + e, st.sum == 0 ? 0.0f : sum / st.sum);
    }
}

// The block's: of the rows of all query heads of a key head.
ZC_DEV tile tile_of(const zc_attention_params &p) {
    const i64 rows = p.heads / p.kv_heads * p.len.nq, tiles = (rows + 63) / 64, head = blockIdx.x / tiles;
    return tile_at<64, 64>(p, head / p.kv_heads, head % p.kv_heads, blockIdx.x % tiles * 64, rows);
}
