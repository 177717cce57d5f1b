// Local response normalisation: x / (bias + alpha * sum of squares of the window's channels) ^ beta.
//
// spec.h: Z_T (type), Z_ACC (type of sums).
#include "zc/device.cuh"
#include "abi/lrn.h"
#include "spec.h"

typedef Z_ACC acc;

ZC_KERNEL(0)(const __grid_constant__ zc_lrn_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        const i64 c = (i64)((u64)i / (u64)p.plane % (u64)p.channels), origin = i - c * p.plane;
        i64 low = c - (p.size - 1) / 2, high = c + p.size / 2;
        acc sum = (acc)0;
        if (low < 0) low = 0;
        if (high >= p.channels) high = p.channels - 1;
        for (i64 n = low; n <= high; n++) {
            const acc v = zc_load<Z_T>(p.in, origin + n * p.plane);
            sum += v * v;
        }
        const acc base = (acc)p.bias + (acc)p.alpha * sum;
        zc_save<Z_T>(p.out, i, (acc)zc_load<Z_T>(p.in, i) / zx_pow(base, (acc)p.beta));
    }
}
