/* Axes over which all operands of a broadcasting kernel run on together count as one. */
#ifndef ZC_KERNELS_COLLAPSE_H
#define ZC_KERNELS_COLLAPSE_H

#include "base/mem.h"
#include "op/tensor.h"

#define ZC_COLLAPSE_OPERANDS 33

typedef struct zc_collapsed {
    int rank; /* axes of size 1 are gone; 0: one element */
    int64_t dims[ZC_MAX_RANK];
    int64_t strides[ZC_COLLAPSE_OPERANDS][ZC_MAX_RANK]; /* in elements */
} zc_collapsed;

/* The shape dims[rank] with n operands that have these strides along it. */
void zc_collapse(int rank, const int64_t *dims, int n, const int64_t (*strides)[ZC_MAX_RANK],
                 zc_collapsed *out);
/* n operands broadcast to the shape of `out`; pitches: of each operand, from one line of the last
 * axis to the next, 0: they lie side by side; NULL: all do. */
void zc_collapse_broadcast(const zc_tensor *out, int n, const zc_tensor *operands,
                           const int64_t *pitches, zc_collapsed *collapsed);

#endif
