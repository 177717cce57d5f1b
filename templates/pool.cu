// Poolings: the largest, the average or the p-norm of each window.
//
// spec.h: Z_X (type), Z_POOL (0 max, 1 average, 2 p-norm), Z_P (its p), Z_INDEX (write indices), Z_COLUMN_MAJOR
// (indices count that way in their plane), Z_COUNT_PAD (the average divides by the taps on padding too), Z_LEAST (what
// an empty maximum gives), Z_TEAM (the window is the plane: 32 threads of a block of 256 share it, or all); 0: for others
// the window (zc/window.cuh), Z_inner, Z_WIDE (64-bit indices) and Z_EACH (neighbours along `inner` that a thread has, read
// at once).
#include "zc/device.cuh"
#include "abi/pool.h"
#include "spec.h"
#include "zc/fused.cuh"

typedef zc_compute<Z_X> T;

#if Z_POOL == 0 && !Z_INDEX
struct state {
    T best;
};
ZC_DEV state fresh() { return state{(T)Z_LEAST}; }
ZC_DEV void take(state &s, T v, i64) { s.best = zx_max(s.best, v); }
ZC_DEV void merge(state &s, const state &o) { s.best = zx_max(s.best, o.best); }
ZC_DEV T result(const state &s, T) { return s.best; }
#elif Z_POOL == 0
struct state {
    T best;
    i64 at;
};
ZC_DEV state fresh() { return state{(T)Z_LEAST, -1}; }
ZC_DEV bool is_nan(f32 v) { return v != v; }
ZC_DEV bool is_nan(f64 v) { return v != v; }
template <class V> ZC_DEV bool is_nan(V) { return false; }
// The first largest; NaN counts as largest.
ZC_DEV void take(state &s, T v, i64 at) {
    if (s.at >= 0 && !(v > s.best) && !(is_nan(v) && !is_nan(s.best))) return;
    s.best = v;
    s.at = at;
}
ZC_DEV void merge(state &s, const state &o) {
    if (o.at < 0) return;
    if (s.at < 0 || o.best > s.best || (is_nan(o.best) && !is_nan(s.best))) s = o;
}
ZC_DEV T result(const state &s, T) { return s.best; }
#else
struct state {
    T sum;
};
ZC_DEV state fresh() { return state{0}; }
ZC_DEV void take(state &s, T v, i64) {
#if Z_POOL == 1
    s.sum += v;
#elif Z_P == 1
    s.sum += zx_abs(v);
#elif Z_P == 2
    s.sum += v * v;
#else
    s.sum += zx_pow(zx_abs(v), (T)Z_P);
#endif
}
ZC_DEV void merge(state &s, const state &o) { s.sum += o.sum; }
ZC_DEV T result(const state &s, T count) {
#if Z_POOL == 1
    return count > 0 || Z_TEAM ? s.sum / count : (T)0; // of an empty plane no number
#elif Z_P == 1
    return s.sum;
#elif Z_P == 2
    return zx_sqrt(s.sum);
#else
    return zx_pow(s.sum, (T)1 / (T)Z_P);
#endif
}
#endif

ZC_DEV void put(const zc_pool_params &p, i64 at, const state &s, T count) {
    zc_save<Z_X>(p.out, at, zc_fused(p.fused, result(s, count), at));
}

#if Z_TEAM == 0
#include "zc/window.cuh"

#if Z_WIDE
typedef i64 index_t;
#else
typedef u32 index_t;
#endif

// Taps of a window that lie on the input or its padding: ceil_mode may leave some beyond.
ZC_DEV T padded_taps(const zc_window &w, const int at[3]) {
    T n = 1;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        const int start = at[d] * w.stride[d], size = w.in[d] + w.begin[d] + w.end[d];
        const int fit = start < size ? (size - start - 1) / w.dilation[d] + 1 : 0;
        n *= (T)(fit < w.kernel[d] ? fit : w.kernel[d]);
    }
    return n;
}

ZC_DEV i64 index_of(const zc_window &w, i64 at) {
#if Z_COLUMN_MAJOR
    int pos[3];
    zc_coords(at, w.in, pos);
    return pos[0] + (i64)w.in[0] * (pos[1] + (i64)w.in[1] * pos[2]);
#else
    return at;
#endif
}

ZC_KERNEL(0)(const __grid_constant__ zc_pool_params p) {
    zc_begin();
    const zc_window w = zc_window_of(p);
    const i64 i = zc_thread() * Z_EACH, inner = Z_inner;
    if (i >= p.total) return;
    const index_t outer = (index_t)i / (index_t)inner, planes = outer / (index_t)zc_out_plane(w);
    int at[3];
    zc_coords((index_t)(outer - planes * (index_t)zc_out_plane(w)), w.out, at);
    const i64 plane = (i64)planes * zc_in_plane(w), along = i - (i64)outer * inner;
    const i64 base = plane * p.in_pitch + along, to = (i64)outer * p.out_pitch + along;
    const zc_window_span s = zc_window_clip(w, at);
    state r[Z_EACH];
#pragma unroll
    for (int e = 0; e < Z_EACH; e++) r[e] = fresh();
    for (int a = s.lo[0]; a < s.hi[0]; a++)
        for (int b = s.lo[1]; b < s.hi[1]; b++)
            for (int c = s.lo[2]; c < s.hi[2]; c++) {
                const int slab = s.start[0] + a * w.dilation[0], row = s.start[1] + b * w.dilation[1];
                const i64 x = ((i64)slab * w.in[1] + row) * w.in[2] + s.start[2] + c * w.dilation[2];
                const auto v = *(const zc_vec<Z_X, Z_EACH> *)((const Z_X *)p.in + base + x * p.in_pitch);
#pragma unroll
                for (int e = 0; e < Z_EACH; e++) take(r[e], zc_get(v.v[e]), x);
            }
    T count = 1;
#pragma unroll
    for (int d = 0; d < 3; d++) count *= (T)(s.hi[d] > s.lo[d] ? s.hi[d] - s.lo[d] : 0);
#if Z_COUNT_PAD
    count = padded_taps(w, at);
#endif
    zc_vec<Z_X, Z_EACH> out;
#pragma unroll
    for (int e = 0; e < Z_EACH; e++) out.v[e] = zc_put<Z_X>(zc_fused(p.fused, result(r[e], count), i + e));
    *(zc_vec<Z_X, Z_EACH> *)((Z_X *)p.out + to) = out;
#if Z_INDEX
    p.index[i] = r[0].at < 0 ? -1 : plane + index_of(w, r[0].at);
#endif
}
#else

ZC_DEV T exchange(T v, int mask) { return zc_shfl_xor(v, mask); }
ZC_DEV state shuffle(const state &s, int mask) {
#if Z_POOL == 0 && Z_INDEX
    return state{exchange(s.best, mask), zc_shfl_xor(s.at, mask)};
#elif Z_POOL == 0
    return state{exchange(s.best, mask)};
#else
    return state{exchange(s.sum, mask)};
#endif
}
ZC_DEV state sum_warp(state s) {
#pragma unroll
    for (int mask = 16; mask; mask >>= 1) merge(s, shuffle(s, mask));
    return s;
}
ZC_DEV state part(const zc_pool_params &p, i64 plane, int first, int step) {
    state s = fresh();
    const i64 base = plane * p.plane;
    for (i64 i = first; i < p.plane; i += step) take(s, zc_load<Z_X>(p.in, base + i), i);
    return s;
}

#if Z_TEAM == 32
ZC_KERNEL(0)(const __grid_constant__ zc_pool_params p) {
    zc_begin();
    const i64 plane = zc_thread() / 32;
    const int lane = (int)(threadIdx.x % 32);
    if (plane >= p.total) return;
    const state s = sum_warp(part(p, plane, lane, 32));
    if (lane == 0) put(p, plane, s, (T)p.plane);
}
#else
ZC_KERNEL(0)(const __grid_constant__ zc_pool_params p) {
    zc_begin();
    __shared__ state warps[8];
    for (i64 plane = blockIdx.x; plane < p.total; plane += gridDim.x) {
        state s = sum_warp(part(p, plane, (int)threadIdx.x, 256));
        if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = s;
        zc_sync();
        if (threadIdx.x == 0) {
            for (int i = 1; i < 8; i++) merge(s, warps[i]);
            put(p, plane, s, (T)p.plane);
        }
        zc_sync();
    }
}
#endif
#endif
