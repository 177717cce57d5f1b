/* Divisors as kernel parameters. */
#ifndef ZC_KERNELS_DIVISOR_H
#define ZC_KERNELS_DIVISOR_H

#include <stdint.h>

#include "abi/divisor.h"

/* d < 1 counts as 1: such an axis has no elements, and nobody divides by it. */
static inline struct zc_divisor zc_divisor_of(int64_t d)
{
    if (d <= 1) return (struct zc_divisor){1, 0};
    return (struct zc_divisor){(unsigned long long)d, UINT64_MAX / (uint64_t)d + 1};
}

#endif
