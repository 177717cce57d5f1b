// Poolings of regions of interest: MaxRoiPool (Z_ALIGN 0) and RoiAlign (1). Coordinates are computed in f64, so that
// the cells of a bin do not depend on the element type.
//
// spec.h: Z_X (type), Z_BATCH (type of the batch indices), Z_ALIGN, Z_MAX (RoiAlign takes the maximum), Z_EXACT (its
// half_pixel mode: shifted by a half, no least size).
#include "zc/device.cuh"
#include "abi/roi.h"
#include "spec.h"

typedef zc_compute<Z_X> T;

ZC_DEV T lowest() { return (T)-zc_inf32(); }
ZC_DEV int clamp(f64 v, int lo, int hi) { return v >= (f64)hi ? hi : v > (f64)lo ? (int)v : lo; }
ZC_DEV f64 larger(f64 a, f64 b) { return a > b || b != b ? a : b; }
ZC_DEV T greater(T a, T b) { return a > b || a != a ? a : b; } // NaN wins

// The image of region r; reports one that does not exist.
ZC_DEV bool image_of(const zc_roi_params &p, i64 r, i64 *image) {
#if Z_ALIGN
    *image = (i64)zc_load<Z_BATCH>(p.batches, r);
#else
    *image = zc_put<i64>(zc_load<Z_X>(p.rois, r * 5));
#endif
    if (*image >= 0 && *image < p.batch) return true;
    zc_report(p.fault, p.step, ZC_FAULT_INDEX, *image, 0, p.batch - 1);
    return false;
}

#if !Z_ALIGN
// Halves away from zero.
ZC_DEV f64 nearest(f64 v) {
    const f64 whole = zx_floor(zx_abs(v)), r = zx_abs(v) - whole >= 0.5 ? whole + 1 : whole;
    return v < 0 ? -r : r;
}
// Cells [*begin, *end) of bin `bin` of `bins` over [start, start + size).
ZC_DEV void bin_range(f64 start, f64 size, int bin, int bins, int limit, int *begin, int *end) {
    const f64 width = size / (f64)bins;
    *begin = clamp(zx_floor((f64)bin * width) + start, 0, limit);
    *end = clamp(zx_ceil((f64)(bin + 1) * width) + start, 0, limit);
}
ZC_DEV T pooled(const zc_roi_params &p, i64 r, i64 plane, int bin_y, int bin_x) {
    f64 at[4];
    int x0, x1, y0, y1;
#pragma unroll
    for (int c = 0; c < 4; c++) at[c] = nearest((f64)zc_load<Z_X>(p.rois, r * 5 + 1 + c) * p.scale);
    bin_range(at[0], larger(at[2] - at[0] + 1, 1.0), bin_x, p.out_w, p.in_w, &x0, &x1);
    bin_range(at[1], larger(at[3] - at[1] + 1, 1.0), bin_y, p.out_h, p.in_h, &y0, &y1);
    T best = x0 < x1 && y0 < y1 ? lowest() : (T)0;
    for (int y = y0; y < y1; y++)
        for (int x = x0; x < x1; x++) {
            const T v = zc_load<Z_X>(p.in, (plane * p.in_h + y) * p.in_w + x);
            if (v > best || v != v) best = v;
        }
    return best;
}
#else

// One axis of a bilinear sample: the two cells and the weight of the second; false: outside.
ZC_DEV bool sample_axis(f64 at, int size, int *low, int *high, T *part) {
    if (size == 0 || !(at >= -1 && at <= (f64)size)) return false;
    if (at < 0) at = 0;
    *low = (int)at;
    *high = *low + 1;
    *part = (T)(at - (f64)*low);
    if (*low >= size - 1) {
        *low = *high = size - 1;
        *part = 0;
    }
    return true;
}
// The interpolated value; for the maximum the largest of the weighted corners.
ZC_DEV T sample(const zc_roi_params &p, i64 plane, f64 y, f64 x) {
    int yl, yh, xl, xh;
    T py, px;
    if (!sample_axis(y, p.in_h, &yl, &yh, &py) || !sample_axis(x, p.in_w, &xl, &xh, &px)) return 0;
    const i64 low = (plane * p.in_h + yl) * p.in_w, high = (plane * p.in_h + yh) * p.in_w;
    const T a = (1 - py) * (1 - px) * zc_load<Z_X>(p.in, low + xl), b = (1 - py) * px * zc_load<Z_X>(p.in, low + xh);
    const T c = py * (1 - px) * zc_load<Z_X>(p.in, high + xl), d = py * px * zc_load<Z_X>(p.in, high + xh);
    return Z_MAX ? greater(greater(a, b), greater(c, d)) : a + b + c + d;
}
// Samples of one axis of a bin, at start + (i + 0.5) * step; those outside [lo, hi) lie off the image and count 0.
struct samples {
    f64 start, step;
    int n, lo, hi;
};
ZC_DEV samples samples_of(int count, f64 start, f64 size, int bin, int bins, int limit) {
    const f64 width = size / (f64)bins;
    samples s;
    s.start = start + (f64)bin * width;
    s.n = count > 0 ? count : clamp(zx_ceil(width), 0, 0x7FFFFFFF);
    s.step = s.n ? width / (f64)s.n : 0.0;
    s.lo = 0;
    s.hi = s.n;
    if (s.step > 0) { // one more at each side against rounding
        s.lo = clamp(zx_ceil((-1 - s.start) / s.step - 0.5) - 1, 0, s.n);
        s.hi = clamp(zx_floor(((f64)limit - s.start) / s.step - 0.5) + 2, s.lo, s.n);
    }
    return s;
}
ZC_DEV T pooled(const zc_roi_params &p, i64 r, i64 plane, int bin_y, int bin_x) {
    f64 at[4];
#pragma unroll
    for (int c = 0; c < 4; c++) at[c] = (f64)zc_load<Z_X>(p.rois, r * 4 + c) * p.scale - (Z_EXACT ? 0.5 : 0.0);
    const f64 w = Z_EXACT ? at[2] - at[0] : larger(at[2] - at[0], 1.0);
    const f64 h = Z_EXACT ? at[3] - at[1] : larger(at[3] - at[1], 1.0);
    const samples sy = samples_of(p.samples, at[1], h, bin_y, p.out_h, p.in_h);
    const samples sx = samples_of(p.samples, at[0], w, bin_x, p.out_w, p.in_w);
    const bool all = sy.lo == 0 && sy.hi == sy.n && sx.lo == 0 && sx.hi == sx.n;
    T v = Z_MAX && all ? lowest() : (T)0;
    if (sy.n == 0 || sx.n == 0) return 0;
    for (int iy = sy.lo; iy < sy.hi; iy++)
        for (int ix = sx.lo; ix < sx.hi; ix++) {
            const T one = sample(p, plane, sy.start + ((f64)iy + 0.5) * sy.step, sx.start + ((f64)ix + 0.5) * sx.step);
            v = Z_MAX ? greater(v, one) : v + one;
        }
    return Z_MAX ? v : (T)((f64)v / ((f64)sy.n * (f64)sx.n));
}
#endif

ZC_KERNEL(0)(const __grid_constant__ zc_roi_params p) {
    zc_begin();
    const i64 i = zc_thread();
    if (i >= p.total) return;
    const i64 bins = (i64)p.out_h * p.out_w, row = i / bins, r = row / p.channels;
    const int bin = (int)(i - row * bins);
    i64 image;
    if (!image_of(p, r, &image)) return;
    zc_save<Z_X>(p.out, i, pooled(p, r, image * p.channels + (row - r * p.channels), bin / p.out_w, bin % p.out_w));
}
