/* Rows of 16-bit floats, converted as one element is (op/dtype.h), bit for bit on every machine. */
#ifndef ZC_OP_HALF_H
#define ZC_OP_HALF_H

#include "op/dtype.h"

/* t: f16 or bf16. */
void zc_floats_of_halves(zc_dtype t, const uint16_t *x, float *y, int64_t n);
void zc_halves_of_floats(zc_dtype t, const float *x, uint16_t *y, int64_t n);

#endif
