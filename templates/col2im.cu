// Columns of windows to the image that they came from: each element of the image sums what falls on it.
//
// spec.h: Z_X (type), Z_ACC (sums).
#include "zc/device.cuh"
#include "abi/col2im.h"
#include "spec.h"

// The window of axis d whose tap t covers position `at`, or -1.
ZC_DEV int window_on(const zc_window_params &w, int d, int at, int t) {
    const int past = at + w.begin[d] - t * w.dilation[d];
    if (past < 0 || past % w.stride[d]) return -1;
    return past / w.stride[d] < w.out[d] ? past / w.stride[d] : -1;
}

ZC_KERNEL(0)(const __grid_constant__ zc_col2im_params p) {
    zc_begin();
    const zc_window_params &w = p.window;
    const i64 image = (i64)w.in[0] * w.in[1] * w.in[2], windows = (i64)w.out[0] * w.out[1] * w.out[2];
    const i64 i = zc_thread();
    if (i >= p.total) return;
    const i64 plane = i / image;
    const int at = (int)(i - plane * image), col = at % w.in[2], line = at / w.in[2] % w.in[1];
    const int slab = at / w.in[2] / w.in[1];
    i64 row = plane * w.kernel[0] * w.kernel[1] * w.kernel[2];
    Z_ACC sum = 0;
    for (int a = 0; a < w.kernel[0]; a++) {
        const int oa = window_on(w, 0, slab, a);
        for (int b = 0; b < w.kernel[1]; b++) {
            const int ob = oa < 0 ? -1 : window_on(w, 1, line, b);
            for (int c = 0; c < w.kernel[2]; c++, row++) {
                const int oc = ob < 0 ? -1 : window_on(w, 2, col, c);
                if (oc < 0) continue;
                sum += (Z_ACC)zc_load<Z_X>(p.in, row * windows + ((i64)oa * w.out[1] + ob) * w.out[2] + oc);
            }
        }
    }
    zc_save<Z_X>(p.out, i, sum);
}
