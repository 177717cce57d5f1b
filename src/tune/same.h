#ifndef ZC_TUNE_SAME_H
#define ZC_TUNE_SAME_H

#include "op/tensor.h"

/* Do both hold the same? Every `stride`-th element may differ by `rounding` units of the precision
 * of `as`, a float type, at the greatest finite one of `need`; infinities and NaN have to be where
 * they are, and whole numbers the same. */
bool zc_same_tensor(const zc_tensor *got, const zc_tensor *need, zc_dtype as, int rounding,
                    int64_t stride);

#endif
