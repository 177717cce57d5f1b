// CausalConvWithState: each channel convolved with its own taps behind the kept elements (entry 0); the elements to
// keep (entry 1).
//
// spec.h: Z_T (type), Z_SILU, Z_kept and Z_length (constants or parameters).
#include "zc/device.cuh"
#include "abi/causal_conv.h"
#include "spec.h"

// A size as a divisor: nothing is divided when it is 0.
ZC_DEV i64 divisor(i64 n) { return n ? n : 1; }

// Element t of a row; t < 0 counts back into the kept ones.
ZC_DEV Z_T element(const zc_causal_conv_params &p, i64 row, i64 t) {
    if (t >= 0) return ((const Z_T *)p.x)[row * Z_length + t];
    return p.past ? ((const Z_T *)p.past)[row * Z_kept + Z_kept + t] : zc_put<Z_T>(0.0f);
}

ZC_KERNEL(0)(const __grid_constant__ zc_causal_conv_params p) {
    zc_begin();
    typedef zc_compute<Z_T> real;
    for (i64 i = zc_thread(); i < p.rows * Z_length; i += zc_threads()) {
        const i64 row = i / divisor(Z_length), t = i - row * Z_length, c = row % p.channels;
        real sum = p.bias ? zc_load<Z_T>(p.bias, c) : (real)0;
        for (i64 tap = 0; tap <= Z_kept; tap++)
            sum += zc_load<Z_T>(p.w, c * (Z_kept + 1) + tap) * zc_get(element(p, row, t - Z_kept + tap));
        zc_save<Z_T>(p.y, i, Z_SILU ? sum * zx_sigmoid(sum) : sum);
    }
}

ZC_KERNEL(1)(const __grid_constant__ zc_causal_conv_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.rows * Z_kept; i += zc_threads()) {
        const i64 row = i / divisor(Z_kept), e = i - row * Z_kept;
        ((Z_T *)p.state)[i] = element(p, row, Z_length - Z_kept + e);
    }
}
