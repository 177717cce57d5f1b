/* Results against the expected ones. */
#ifndef ZC_OP_DIFFER_H
#define ZC_OP_DIFFER_H

#include "op/tensor.h"

/* How one tensor differs from another. Whole numbers and truth values count by their difference,
 * parts of complex numbers one by one. */
typedef struct zc_difference {
    bool is_other_type; /* or another shape: nothing else is known */
    int64_t n, wrong;   /* elements, and how many of them are not close */
    double absolute;    /* the greatest difference; INFINITY where one of the two is not finite */
    double greatest;    /* finite element of what is needed */
    int64_t at;         /* the worst element: of those that are wrong, if there are any */
    double got, need;   /* its values */
} zc_difference;

/* An element may be off by atol + rtol * |need|; NaN is equal to NaN. */
zc_difference zc_differ(const zc_tensor *got, const zc_tensor *need, double rtol, double atol);
/* The greatest difference relative to the greatest element that is needed (or to 1, when all are
 * 0). INFINITY: of another type, or whole numbers and truth values that are not equal. */
double zc_difference_error(const zc_difference *d, zc_dtype type);

#endif
