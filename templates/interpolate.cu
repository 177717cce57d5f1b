// Resize: entry 0 computes taps and weights of one axis; a pass applies up to three axes at once. Between passes
// numbers stand in the type of sums.
//
// spec.h: Z_X (type), Z_ACC (sums), Z_MODE (0 nearest, 1 linear, 2 cubic), Z_COORDS and Z_ROUND (as in op/resize.h),
// Z_ANTIALIAS, Z_CUBIC (coefficient), Z_EXCLUDE (taps outside count nothing), Z_EXTRAPOLATED (value outside).
// Entries: 0 tables; passes: 1 the only one, 2 the first (nearest neighbours: any but the last), 3 one between, 4 the
// last; 5 the only one of nearest neighbours, as units of 16 bytes.
#include "zc/device.cuh"
#include "abi/interpolate.h"
#include "spec.h"
#include "zc/fused.cuh"

#define OUTSIDE (-0x4000000000000000ll)

enum { HALF_PIXEL, HALF_PIXEL_SYMMETRIC, PYTORCH_HALF_PIXEL, ALIGN_CORNERS, ASYMMETRIC, CROP };

// The input coordinate of output position o.
ZC_DEV f64 source_of(const zc_resize_table &p, i64 o) {
    const f64 x = (f64)o, last = (f64)(p.in - 1), width = p.scale * (f64)p.in;
    if (Z_COORDS == ALIGN_CORNERS) return width == 1 ? 0.0 : x * last / (width - 1);
    if (Z_COORDS == ASYMMETRIC) return x / p.scale;
    if (Z_COORDS == CROP) {
        const f64 extent = (p.roi[1] - p.roi[0]) * last;
        return p.roi[0] * last + (width == 1 ? extent / 2 : x * extent / (width - 1));
    }
    if (Z_COORDS == PYTORCH_HALF_PIXEL) return width == 1 ? -0.5 : (x + 0.5) / p.scale - 0.5;
    if (Z_COORDS == HALF_PIXEL_SYMMETRIC)
        return (f64)p.in / 2 * (1 - (f64)p.out / width) + (x + 0.5) / p.scale - 0.5;
    return (x + 0.5) / p.scale - 0.5;
}

// Does the nearest neighbour of a position `ratio` in (0, 1] right of the left tap lie on the right?
ZC_DEV bool nearest_is_right(f64 ratio) {
    if (ratio == 1) return true;
    return Z_ROUND == 0 ? ratio > 0.5 : Z_ROUND == 1 ? ratio >= 0.5 : Z_ROUND == 3;
}

ZC_DEV f64 weight(f64 distance) {
    const f64 x = zx_abs(distance), a = Z_CUBIC;
    if (Z_MODE == 1) return x < 1 ? 1 - x : 0.0;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

ZC_KERNEL(0)(const __grid_constant__ zc_resize_table p) {
    zc_begin();
    const i64 o = zc_thread();
    if (o >= p.out) return;
    const f64 x = source_of(p, o), base = zx_ceil(x) - 1, ratio = x - base; // base: the tap left of x
    const bool outside = Z_COORDS == CROP && (x < 0 || x > (f64)(p.in - 1));
#if Z_MODE == 0
    p.first[o] = outside ? OUTSIDE : (i64)base + nearest_is_right(ratio);
#else
    const f64 s = Z_ANTIALIAS && p.scale < 1 ? p.scale : 1.0;
    const int left = p.taps / 2 - 1;
    const i64 first = (i64)base - left;
    f64 all = 0, inside = 0;
    for (int t = 0; t < p.taps; t++) {
        const f64 w = weight(s * ((f64)(t - left) - ratio));
        all += w;
        if (first + t >= 0 && first + t < p.in) inside += w;
    }
    const f64 sum = Z_EXCLUDE ? inside : s < 1 ? all : 1.0;
    for (int t = 0; t < p.taps; t++) {
        const bool counts = !Z_EXCLUDE || (first + t >= 0 && first + t < p.in);
        ((Z_ACC *)p.weights)[o * p.taps + t] = (Z_ACC)(counts ? weight(s * ((f64)(t - left) - ratio)) / sum : 0.0);
    }
    p.first[o] = outside ? OUTSIDE : first;
#endif
}

// Element i of the result: positions on the three axes, and where the rest of it lies in the input.
struct place {
    i64 at[3], outer, keep[3];
    i64 line; // of the result, an inner each
};
template <class INDEX> ZC_DEV place place_of(const zc_resize_pass &p, INDEX i) {
    place r;
#pragma unroll
    for (int d = 2; d >= 0; d--) {
        INDEX outer = i / (INDEX)p.keep[d];
        r.keep[d] = i - outer * (INDEX)p.keep[d];
        if (d == 2) r.line = outer;
        i = outer;
        outer = i / (INDEX)p.out[d];
        r.at[d] = i - outer * (INDEX)p.out[d];
        i = outer;
    }
    r.outer = i;
    return r;
}

ZC_DEV i64 clamp(i64 i, i64 n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

// Where the element lies whose coordinates these are.
ZC_DEV i64 source_at(const zc_resize_pass &p, const place &r, const i64 first[3]) {
    i64 at = r.outer;
#pragma unroll
    for (int d = 0; d < 3; d++)
        at = (at * p.in[d] + clamp(first[d], p.in[d])) * (d < 2 ? p.keep[d] : p.from_pitch) + r.keep[d];
    return at;
}
ZC_DEV i64 result_at(const zc_resize_pass &p, const place &r) { return r.line * p.to_pitch + r.keep[2]; }

template <class TO, bool LAST> ZC_DEV void put(const zc_resize_pass &p, const place &r, i64 i, Z_ACC v) {
    zc_save<TO>(p.to, result_at(p, r), LAST ? (Z_ACC)zc_fused(p.fused, v, i) : v);
}

template <class FROM, class TO, bool LAST> ZC_DEV void resize(const zc_resize_pass &p) {
    const i64 i = zc_thread();
    if (i >= p.total) return;
    const place r = p.total <= 0x7FFFFFFF ? place_of(p, (u32)i) : place_of(p, (u64)i);
    i64 first[3];
    bool outside = false;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        first[d] = p.first[d] ? p.first[d][r.at[d]] : r.at[d];
        outside = outside || first[d] == OUTSIDE;
    }
    if (outside) {
        put<TO, LAST>(p, r, i, (Z_ACC)Z_EXTRAPOLATED);
        return;
    }
#if Z_MODE == 0
    const i64 at = source_at(p, r, first);
#ifdef Z_FUSED
    if (LAST) return put<TO, LAST>(p, r, i, (Z_ACC)zc_load<FROM>(p.from, at));
#endif
    ((TO *)p.to)[result_at(p, r)] = ((const TO *)p.from)[at];
#else
    Z_ACC sum = 0;
    const Z_ACC *w[3];
#pragma unroll
    for (int d = 0; d < 3; d++) w[d] = (const Z_ACC *)p.weights[d] + (p.first[d] ? r.at[d] * p.taps[d] : 0);
    for (int a = 0; a < p.taps[0]; a++) {
        const Z_ACC wa = p.first[0] ? w[0][a] : (Z_ACC)1;
        const i64 ra = (r.outer * p.in[0] + clamp(first[0] + a, p.in[0])) * p.keep[0] + r.keep[0];
        if (wa == 0) continue;
        for (int b = 0; b < p.taps[1]; b++) {
            const Z_ACC wb = p.first[1] ? wa * w[1][b] : wa;
            const i64 rb = (ra * p.in[1] + clamp(first[1] + b, p.in[1])) * p.keep[1] + r.keep[1];
            if (wb == 0) continue;
            for (int c = 0; c < p.taps[2]; c++) {
                const Z_ACC wc = p.first[2] ? wb * w[2][c] : wb;
                const i64 rc = (rb * p.in[2] + clamp(first[2] + c, p.in[2])) * p.from_pitch + r.keep[2];
                if (wc != 0) sum += wc * (Z_ACC)zc_load<FROM>(p.from, rc);
            }
        }
    }
    put<TO, LAST>(p, r, i, sum);
#endif
}

ZC_KERNEL(1)(const __grid_constant__ zc_resize_pass p) { zc_begin(); resize<Z_X, Z_X, true>(p); }
#if Z_MODE == 0
ZC_KERNEL(2)(const __grid_constant__ zc_resize_pass p) { zc_begin(); resize<Z_X, Z_X, false>(p); }
ZC_KERNEL(5)(const __grid_constant__ zc_resize_pass p) {
    zc_begin();
    typedef zc_vec<u32, 4> unit;
    const i64 i = zc_thread();
    if (i >= p.total) return;
    const place r = p.total <= 0x7FFFFFFF ? place_of(p, (u32)i) : place_of(p, (u64)i);
    i64 first[3];
#pragma unroll
    for (int d = 0; d < 3; d++) first[d] = p.first[d] ? p.first[d][r.at[d]] : r.at[d];
    ((unit *)p.to)[result_at(p, r)] = ((const unit *)p.from)[source_at(p, r, first)];
}
#else
ZC_KERNEL(2)(const __grid_constant__ zc_resize_pass p) { zc_begin(); resize<Z_X, Z_ACC, false>(p); }
ZC_KERNEL(3)(const __grid_constant__ zc_resize_pass p) { zc_begin(); resize<Z_ACC, Z_ACC, false>(p); }
ZC_KERNEL(4)(const __grid_constant__ zc_resize_pass p) { zc_begin(); resize<Z_ACC, Z_X, true>(p); }
#endif
