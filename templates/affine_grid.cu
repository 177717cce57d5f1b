// AffineGrid: the points of an image, in [-1, 1] along each axis, under one affine map an image.
//
// spec.h: Z_X (type), Z_AXES (2 or 3), Z_ALIGN (corners).
#include "zc/device.cuh"
#include "abi/affine_grid.h"
#include "spec.h"

ZC_DEV f64 position(i64 i, i64 n) {
    if (Z_ALIGN) return n > 1 ? -1 + 2 * (f64)i / (f64)(n - 1) : -1.0;
    return -1 + (2 * (f64)i + 1) / (f64)n;
}

ZC_KERNEL(0)(const __grid_constant__ zc_affine_grid_params p) {
    zc_begin();
    const i64 point = zc_thread();
    if (point >= p.total) return;
    const i64 image = point / p.points;
    i64 rest = point - image * p.points;
    f64 at[Z_AXES];
#pragma unroll
    for (int d = 0; d < Z_AXES; d++) {
        const i64 outer = rest / p.size[d];
        at[d] = position(rest - outer * p.size[d], p.size[d]);
        rest = outer;
    }
#pragma unroll
    for (int r = 0; r < Z_AXES; r++) {
        const i64 row = (image * Z_AXES + r) * (Z_AXES + 1);
        f64 v = zc_load<Z_X>(p.theta, row + Z_AXES);
#pragma unroll
        for (int d = 0; d < Z_AXES; d++) v += (f64)zc_load<Z_X>(p.theta, row + d) * at[d];
        zc_save<Z_X>(p.out, point * Z_AXES + r, v);
    }
}
