// What prepares attention's operands. Entries: 2 rows of queries, keys and values moved; 3 a mask made a bias.
//
// spec.h: see zc/attention.cuh; Z_ID_TYPE (of positions), Z_MASK (type of a mask to make a bias of, undefined: none),
// Z_ROWS (0: not used).
#pragma once
#include "zc/attention.cuh"
#include "zc/index.cuh"

// ---- rows of heads: past ones copied, new ones normed and turned ----

#if Z_ROWS
// Elements of a piece of 16 bytes, or of a part of it that divides a row.
template <class T> ZC_DEV constexpr int piece_of(int size, int piece = 16 / sizeof(T)) {
    return size % piece ? piece_of<T>(size, piece / 2) : piece;
}
template <class T, int N> ZC_DEV void read_piece(const T *from, zc_compute<T> (&to)[N]) {
    const zc_vec<T, N> x = *(const zc_vec<T, N> *)from;
#pragma unroll
    for (int i = 0; i < N; i++) to[i] = zc_get(x.v[i]);
}

// Elements of a new row, as they stand in elements of its type.
template <class T> struct source {
    const T *x; // NULL: no new row
    const T *norm;
    zc_compute<T> inv; // of the root of the mean square
    ZC_MEMBER zc_compute<T> at(i64 e) const {
        const zc_compute<T> v = zc_get(x[e]);
        return norm ? zc_through<T>(v * inv * zc_get(norm[e])) : v;
    }
    template <int N> ZC_MEMBER void read(int e, zc_compute<T> (&to)[N]) const {
        read_piece(x + e, to);
        if (!norm) return;
        zc_compute<T> by[N];
        read_piece(norm + e, by);
#pragma unroll
        for (int i = 0; i < N; i++) to[i] = zc_through<T>(to[i] * inv * by[i]);
    }
};

// `lanes` neighbours, a power of two, share the row.
template <class T, int SIZE> ZC_DEV zc_compute<T> inverse_rms(const T *x, int lane, f64 eps, int lanes = 32) {
    zc_compute<T> sum = 0;
    for (int e = lane; x && e < SIZE; e += lanes) sum += zc_get(x[e]) * zc_get(x[e]);
#pragma unroll
    for (int d = lanes / 2; d; d >>= 1) sum += zc_shfl_xor(sum, d);
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
// N of them from a multiple of N on, where all that is read lies in such pieces.
template <class T, int N>
ZC_DEV void turn_piece(const zc_attention_rows_params &p, const source<T> &x, i64 row, int e, zc_compute<T> (&y)[N]) {
    x.read(e, y);
    if (row < 0 || e >= 2 * p.half) return;
    const T *const cos = (const T *)p.cos + row * p.half, *const sin = (const T *)p.sin + row * p.half;
    if (p.interleaved) {
        if constexpr (N > 1) {
            zc_compute<T> c[N / 2], s[N / 2];
            read_piece(cos + e / 2, c);
            read_piece(sin + e / 2, s);
#pragma unroll
            for (int i = 0; i < N / 2; i++) {
                const zc_compute<T> re = y[2 * i], im = y[2 * i + 1];
                y[2 * i] = re * c[i] - im * s[i];
                y[2 * i + 1] = re * s[i] + im * c[i];
            }
        }
        return;
    }
    const bool second = e >= p.half;
    const int i = second ? e - (int)p.half : e;
    zc_compute<T> other[N], c[N], s[N];
    x.read(second ? i : e + (int)p.half, other);
    read_piece(cos + i, c);
    read_piece(sin + i, s);
#pragma unroll
    for (int n = 0; n < N; n++) y[n] = second ? other[n] * s[n] + y[n] * c[n] : y[n] * c[n] - other[n] * s[n];
}

template <class T, int N> ZC_DEV void copy_piece(const zc_attention_rows_params &p, T *to, const T *from, int e) {
    if (p.pieces) {
        *(zc_vec<T, N> *)(to + e) = *(const zc_vec<T, N> *)(from + e);
        return;
    }
#pragma unroll 1
    for (int i = e; i < e + N; i++) to[i] = from[i];
}
template <class T, int N>
ZC_DEV void put_piece(const zc_attention_rows_params &p, T *to, const source<T> &x, i64 row, int e) {
    if (p.pieces) {
        zc_compute<T> y[N];
        zc_vec<T, N> out;
        turn_piece(p, x, row, e, y);
#pragma unroll
        for (int i = 0; i < N; i++) out.v[i] = zc_put<T>(y[i]);
        *(zc_vec<T, N> *)(to + e) = out;
        return;
    }
#pragma unroll 1
    for (int i = e; i < e + N; i++) zc_save<T>(to, i, turned<T>(p, x, row, i));
}

// Each row by p.lanes neighbours, a piece each at a time.
template <class T, int SIZE> ZC_DEV void move_rows(const zc_attention_rows_params &p, i64 block) {
    constexpr int N = piece_of<T>(SIZE);
    const u32 lanes = (u32)p.lanes, team = threadIdx.x / lanes;
    const int lane = (int)(threadIdx.x - team * lanes);
    const i64 at = block * (i64)(blockDim.x / lanes) + team;
    const bool there = at < p.batch * p.heads * p.room;
    u64 rest = (u64)at;
    const i64 pos = (i64)zc_split(&rest, p.by_room), h = (i64)zc_split(&rest, p.by_heads), b = (i64)rest;
    const sight s = there ? sight_of(p.len, b) : sight();
    const i64 before = p.behind ? s.position : 0, i = pos - before;
    source<T> x = {nullptr, (const T *)p.norm, 0};
    if (there && i >= 0 && i < p.fresh) x.x = (const T *)p.x.data + b * p.x.batch + h * p.x.head + i * p.x.pos;
    if (p.norm) x.inv = inverse_rms<T, SIZE>(x.x, lane, p.eps, p.lanes);
    if (!there) return;
    T *const to = (T *)p.to + at * SIZE;
    const T *const past = i < 0 ? (const T *)p.past.data + b * p.past.batch + h * p.past.head + pos * p.past.pos : nullptr;
    const i64 row = x.x && p.half ? table_row(p, b, i, s.position) : -1;
    for (int e = lane * N; e < SIZE; e += p.lanes * N) {
        if (past || (x.x && !p.norm && row < 0))
            copy_piece<T, N>(p, to, past ? past : x.x, e);
        else if (x.x)
            put_piece<T, N>(p, to, x, row, e);
        else
            for (int n = 0; n < N; n++) to[e + n] = T();
    }
}
#endif

ZC_KERNEL(2)(const __grid_constant__ zc_attention_operands_params p) {
    zc_begin();
#if Z_ROWS
    const int block = (int)blockIdx.x;
    if (block >= p.v_first)
        move_rows<Z_V, Z_DV>(p.v, block - p.v_first);
    else if (block >= p.k_first)
        move_rows<Z_T, Z_D>(p.k, block - p.k_first);
    else
        move_rows<Z_T, Z_D>(p.q, block);
#endif
}

// ---- masks ----

ZC_KERNEL(3)(const __grid_constant__ zc_attention_mask_params p) {
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
