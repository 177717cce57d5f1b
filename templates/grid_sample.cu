// GridSample: the input interpolated at the points that a grid names. A thread finds the taps of one point and sums
// them for a chunk of channels. Coordinates are computed in f64.
//
// spec.h: Z_X and Z_GRID (types), Z_ACC (sums), Z_AXES (1 to 3), Z_TAPS (an axis: 1 nearest, 2 linear, 4 cubic), Z_PAD
// (0 zeros, 1 border, 2 reflection), Z_ALIGN (corners).
#include "zc/device.cuh"
#include "abi/grid_sample.h"
#include "spec.h"

#define LEAD (3 - Z_AXES)

// x mirrored at the borders until it lies between them.
ZC_DEV f64 reflect(f64 x, f64 low, f64 high) {
    const f64 range = high - low, past = x < low ? low - x : x > high ? x - high : 0.0;
    if (!(range > 0)) return low;
    if (past == 0) return x;
    const f64 turns = zx_floor(past / range), rest = past - turns * range;
    const bool even = turns - 2 * zx_floor(turns / 2) == 0;
    return (x < low) == even ? low + rest : high - rest;
}

ZC_DEV f64 low_border() { return Z_ALIGN ? 0.0 : -0.5; }
ZC_DEV f64 high_border(int size) { return (f64)size - 1 - low_border(); }

// From the grid's [-1, 1] to an input coordinate, brought inside as the padding asks.
ZC_DEV f64 coordinate(f64 g, int size) {
    const f64 n = (f64)size, low = low_border(), high = high_border(size);
    f64 x = (f64)(f32)(Z_ALIGN ? (g + 1) / 2 * (n - 1) : ((g + 1) * n - 1) / 2);
    if (Z_TAPS == 1) x = zx_round(x);
    if (!(x < low) && !(x > high)) return x;
    if (Z_PAD == 1) return x < 0 ? 0.0 : n - 1;
    return Z_PAD == 2 ? reflect(x, low, high) : x;
}

// The index of a tap, or -1 for a zero.
ZC_DEV int tap_index(f64 at, int size) {
    if (at >= 0 && at < (f64)size) return (int)at;
    if (Z_PAD == 1) return at < 0 ? 0 : size - 1;
    if (Z_PAD != 2 || !(zx_abs(at) < zc_inf64())) return -1;
    const f64 r = reflect(at, low_border(), high_border(size));
    return r > -1 && r < (f64)size ? (int)r : -1;
}

ZC_DEV f64 weight(f64 d) {
    const f64 a = -0.75, x = zx_abs(d);
    if (Z_TAPS == 1) return 1;
    if (Z_TAPS == 2) return 1 - x;
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0.0;
}

ZC_KERNEL(0)(const __grid_constant__ zc_grid_sample_params p) {
    zc_begin();
    const i64 point = zc_thread();
    if (point >= p.batch * p.points) return;
    const i64 image = point / p.points, at = point - image * p.points;
    int index[3][Z_TAPS];
    Z_ACC weights[3][Z_TAPS];
    f64 x[3], base[3];
#pragma unroll
    for (int d = LEAD; d < 3; d++) {
        // A point's coordinates stand in reverse order of the axes.
        x[d] = coordinate((f64)zc_load<Z_GRID>(p.grid, point * Z_AXES + 2 - d), p.size[d]);
        base[d] = Z_TAPS == 1 ? x[d] : zx_floor(x[d]) - (Z_TAPS == 4 ? 1 : 0);
#pragma unroll
        for (int t = 0; t < Z_TAPS; t++) {
            index[d][t] = p.plane ? tap_index(base[d] + t, p.size[d]) : -1;
            weights[d][t] = (Z_ACC)weight(x[d] - (base[d] + t));
        }
    }
    const i64 begin = (i64)blockIdx.y * p.chunk, end = begin + p.chunk < p.channels ? begin + p.chunk : p.channels;
    for (i64 c = begin; c < end; c++) {
        const i64 plane = (image * p.channels + c) * p.plane;
        Z_ACC sum = 0;
        // The outermost taps are found again in each turn: 64 taps unrolled do not fit into registers.
#pragma unroll 1
        for (int i = 0; i < (LEAD > 0 ? 1 : Z_TAPS); i++) {
            const int slab = LEAD > 0 ? 0 : p.plane ? tap_index(base[0] + i, p.size[0]) : -1;
            const Z_ACC wi = LEAD > 0 ? (Z_ACC)1 : (Z_ACC)weight(x[0] - (base[0] + i));
#pragma unroll
            for (int j = 0; j < (LEAD > 1 ? 1 : Z_TAPS); j++) {
                const int line = LEAD > 1 ? 0 : index[1][j];
                const Z_ACC wj = LEAD > 1 ? wi : wi * weights[1][j];
                const bool inside = slab >= 0 && line >= 0;
                const i64 row = plane + ((i64)slab * p.size[1] + line) * p.size[2];
#pragma unroll
                for (int k = 0; k < Z_TAPS; k++)
                    if (inside && index[2][k] >= 0)
                        sum += wj * weights[2][k] * (Z_ACC)zc_load<Z_X>(p.in, row + index[2][k]);
            }
        }
        zc_save<Z_X>(p.out, (image * p.channels + c) * p.points + at, sum);
    }
}
