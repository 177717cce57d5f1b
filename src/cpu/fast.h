/* Declares the fast kernels that fast.def lists. */
#ifndef ZC_CPU_FAST_H
#define ZC_CPU_FAST_H

#include "cpu/kernel.h"

#define FAST(op, fits, kernel, use)                                                                \
    bool fits(const zc_kctx *k);                                                                   \
    zc_status kernel(zc_kctx *k);
#include "cpu/fast.def"
#undef FAST

#endif
