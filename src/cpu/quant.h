/* Rows of floats as unsigned bytes, and sums of their products as floats. */
#ifndef ZC_CPU_QUANT_H
#define ZC_CPU_QUANT_H

#include "cpu/kernel.h"

/* Scale and zero point of DynamicQuantizeLinear. */
void zc_quant_range(const float *x, int64_t n, float *scale, int *zero);
void zc_quant_row(const float *x, int64_t n, float scale, int zero, uint8_t *y);
/* y = (sums - zero * columns) * (by * scale) + bias; a NULL bias is 0. y may be the sums. */
void zc_quant_real(const int32_t *sums, int64_t n, int zero, const int32_t *columns, float by,
                   const float *scale, const float *bias, float *y);

#endif
