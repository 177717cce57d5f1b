// Triangular filters on the mel scale: a band a column.
//
// spec.h: Z_OUT (type).
#include "zc/device.cuh"
#include "abi/mel_weights.h"
#include "spec.h"

ZC_DEV f64 weight(const i32 *edge, i64 row) {
    const i64 low = edge[0], top = edge[1], high = edge[2];
    if (high > top && row >= top && row < high) return (f64)(high - row) / (f64)(high - top);
    if (top > low && row >= low && row <= top) return (f64)(row - low) / (f64)(top - low);
    return top == low && row == top ? 1.0 : 0.0;
}

ZC_KERNEL(0)(const __grid_constant__ zc_mel_weights_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.rows * p.count; i += zc_threads()) {
        const i64 row = i / p.count, band = i - row * p.count;
        zc_save<Z_OUT>(p.out, row * p.bands + p.first + band, weight(p.edges + band, row));
    }
}
