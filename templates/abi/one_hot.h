/* Parameters of one_hot.cu. */
#ifndef ZC_ABI_ONE_HOT_H
#define ZC_ABI_ONE_HOT_H

#include "abi/divisor.h"

struct zc_one_hot_params {
    const void *indices, *values; /* values: off, on */
    void *out;
    long long total; /* elements of the result */
    struct zc_divisor depth, inner;
};

#endif
