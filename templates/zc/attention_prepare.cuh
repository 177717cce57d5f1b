// What prepares attention's operands. Entries: 2 rows of queries and keys, 3 of values moved; 4 a mask made a bias.
//
// spec.h: see zc/attention.cuh; Z_ID_TYPE (of positions), Z_MASK (type of a mask to make a bias of, undefined: none),
// Z_ROWS (0: not used).
#pragma once
#include "zc/attention.cuh"

// ---- rows of heads: past ones copied, new ones normed and turned ----

#if Z_ROWS
// Element e of a new row, as it stands in an element of its type.
template <class T> struct source {
    const T *x;
    const T *norm;
    zc_compute<T> inv; // of the root of the mean square
    ZC_MEMBER zc_compute<T> at(i64 e) const {
        const zc_compute<T> v = zc_get(x[e]);
        return norm ? zc_through<T>(v * inv * zc_get(norm[e])) : v;
    }
};

template <class T, int SIZE> ZC_DEV zc_compute<T> inverse_rms(const T *x, int lane, f64 eps) {
    zc_compute<T> sum = 0;
    for (int e = lane; e < SIZE; e += 32) sum += zc_get(x[e]) * zc_get(x[e]);
#pragma unroll
    for (int d = 16; d; d >>= 1) sum += zc_shfl_xor(sum, d);
    return zx_rsqrt(sum / SIZE + (zc_compute<T>)eps);
}

// The row of the rotary tables, -1 and a report when there is none.
ZC_DEV i64 table_row(const zc_attention_rows_params &p, i64 b, i64 s, i64 position) {
    const i64 row = p.ids ? (i64)zc_load<Z_ID_TYPE>(p.ids, b * p.fresh + s) : b * p.table_step + s + (p.table_fresh ? 0 : position);
    if (row >= 0 && row < p.table) return row;
    zc_report(p.len.fault, p.len.step, ZC_FAULT_INDEX, row, 0, p.table - 1);
    return -1;
}

template <class T>
ZC_DEV zc_compute<T> turned(const zc_attention_rows_params &p, const source<T> &x, i64 row, int e) {
    if (row < 0 || e >= 2 * p.half) return x.at(e);
    const bool second = p.interleaved ? e % 2 : e >= p.half;
    const int i = p.interleaved ? e / 2 : second ? e - (int)p.half : e;
    const int other = p.interleaved ? e ^ 1 : second ? e - (int)p.half : e + (int)p.half;
    const zc_compute<T> c = zc_load<T>(p.cos, row * p.half + i), s = zc_load<T>(p.sin, row * p.half + i);
    return second ? x.at(other) * s + x.at(e) * c : x.at(e) * c - x.at(other) * s;
}

template <class T, int SIZE> ZC_DEV void move_rows(const zc_attention_rows_params &p) {
    const i64 at = zc_thread() / 32;
    const int lane = (int)(threadIdx.x % 32);
    if (at >= p.batch * p.heads * p.room) return;
    const i64 pos = at % p.room, h = at / p.room % p.heads, b = at / p.room / p.heads;
    const sight s = sight_of(p.len, b);
    const i64 before = p.behind ? s.position : 0, i = pos - before;
    T *to = (T *)p.to + at * SIZE;
    if (i < 0) {
        const T *past = (const T *)p.past.data + b * p.past.batch + h * p.past.head + pos * p.past.pos;
        for (int e = lane; e < SIZE; e += 32) to[e] = past[e];
        return;
    }
    if (i >= p.fresh) {
        for (int e = lane; e < SIZE; e += 32) to[e] = T();
        return;
    }
    source<T> x = {(const T *)p.x.data + b * p.x.batch + h * p.x.head + i * p.x.pos, (const T *)p.norm, 0};
    if (p.norm) x.inv = inverse_rms<T, SIZE>(x.x, lane, p.eps);
    const i64 row = p.half ? table_row(p, b, i, s.position) : -1;
    if (!p.norm && row < 0) {
        for (int e = lane; e < SIZE; e += 32) to[e] = x.x[e];
        return;
    }
    for (int e = lane; e < SIZE; e += 32) zc_save<T>(to, e, turned<T>(p, x, row, e));
}
#endif

ZC_KERNEL(2)(const __grid_constant__ zc_attention_rows_params p) {
    zc_begin();
#if Z_ROWS
    move_rows<Z_T, Z_D>(p);
#endif
}
ZC_KERNEL(3)(const __grid_constant__ zc_attention_rows_params p) {
    zc_begin();
#if Z_ROWS
    move_rows<Z_V, Z_DV>(p);
#endif
}

// ---- masks ----

ZC_KERNEL(4)(const __grid_constant__ zc_attention_mask_params p) {
    zc_begin();
#ifdef Z_MASK
    for (i64 i = zc_thread(); i < p.batch * p.rows * p.nk; i += zc_threads()) {
        const i64 r = i / p.nk, j = i - r * p.nk;
        bool seen;
        if (p.flat)
            seen = j < (i64)zc_load<Z_MASK>(p.mask, r) &&
                   (p.elements != 2 * p.batch || j >= (i64)zc_load<Z_MASK>(p.mask, p.batch + r));
        else
            seen = (i64)zc_load<Z_MASK>(p.mask, i) > 0;
        p.bias[i] = seen ? 0.0f : (f32)p.filter;
    }
#endif
}
