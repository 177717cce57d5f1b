// start + i * delta.
//
// spec.h: Z_OUT (type), Z_FLOAT (1: a float type), Z_STEP (the type in which it is computed).
#include "zc/device.cuh"
#include "abi/range.h"
#include "spec.h"

ZC_KERNEL(0)(const __grid_constant__ zc_range_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
#if Z_FLOAT
        zc_save<Z_OUT>(p.out, i, (Z_STEP)p.start + (Z_STEP)i * (Z_STEP)p.delta);
#else
        zc_save<Z_OUT>(p.out, i, (Z_STEP)p.whole_start + (Z_STEP)i * (Z_STEP)p.whole_delta);
#endif
    }
}
