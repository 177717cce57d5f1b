/* Storing of quantised results. */
#ifndef ZC_CPU_QUANT_OUT_H
#define ZC_CPU_QUANT_OUT_H

#include <math.h>

#include "cpu/kernel.h"

/* t[i] = saturate(round-half-even(v) + zero) for an integer type of at most 16 bits, saturate(v +
 * zero) for an 8-bit float. */
static inline void zc_put_quantised(zc_tensor *t, int64_t i, double v, double zero)
{
    if (zc_dtype_is_float(t->dtype)) {
        ((uint8_t *)t->data)[i] = zc_f32_to_f8(t->dtype, (float)(v + zero), true);
        return;
    }
    double one = zc_dtype_class(t->dtype) == ZC_CLASS_INT ? 1 : 0;
    double half = (double)(INT64_C(1) << (zc_dtype_bits(t->dtype) - 1));
    double lo = one ? -half : 0, hi = one ? half - 1 : 2 * half - 1;
    double q = nearbyint(v) + zero;
    zc_puti(t, i, (int64_t)(q < lo ? lo : q > hi ? hi : q == q ? q : 0));
}

#endif
