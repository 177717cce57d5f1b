/* Rows of 16-bit floats, converted as one element is (op/dtype.h), bit for bit on every machine. */
#ifndef ZC_OP_HALF_H
#define ZC_OP_HALF_H

#include <math.h>

#include "op/dtype.h"

/* Largest finite numbers. */
#define ZC_F16_MAX  65504.0
#define ZC_BF16_MAX 3.38953139e38

/* Of f16 and bf16; INFINITY of other types. */
static inline double zc_half_max(zc_dtype t)
{
    return t == ZC_F16 ? ZC_F16_MAX : t == ZC_BF16 ? ZC_BF16_MAX : INFINITY;
}

/* t: f16 or bf16. */
void zc_floats_of_halves(zc_dtype t, const uint16_t *x, float *y, int64_t n);
void zc_halves_of_floats(zc_dtype t, const float *x, uint16_t *y, int64_t n);

#endif
