// a[0] - a[1] cos(2 pi i / n) + a[2] cos(4 pi i / n).
//
// spec.h: Z_OUT (type).
#include "zc/unit_root.cuh"
#include "abi/cosine_window.h"
#include "spec.h"

ZC_KERNEL(0)(const __grid_constant__ zc_cosine_window_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        f64 once = zc_nan64(), twice = zc_nan64(), sine;
        if (p.n > 0) {
            zc_unit_root(i, p.n, &once, &sine);
            zc_unit_root(2 * i % p.n, p.n, &twice, &sine);
        }
        zc_save<Z_OUT>(p.out, i, p.a[0] - p.a[1] * once + p.a[2] * twice);
    }
}
