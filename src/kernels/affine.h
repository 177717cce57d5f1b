/* Functions of bytes as sums of products. */
#ifndef ZC_KERNELS_AFFINE_H
#define ZC_KERNELS_AFFINE_H

#include "op/expr.h"

/* rint(factor[0] * x[0] + (factor[1] * x[1] + addend)), saturated to 0 and 255, from the type's
 * least byte on; each product with its sum is rounded once to f32. */
typedef struct zc_affine {
    int x[2]; /* inputs of the expression in their order, or one of them twice */
    float factor[2], addend;
} zc_affine;

/* Node `of` divided by scale, rounded, plus zero, saturated to type `to` of 8 bits: does it depend
 * on one or two bytes alone, and is there such a sum with its result for each of them? All are
 * tried, so that the sum is the same function. */
bool zc_affine_of(const zc_expr *e, int of, zc_dtype to, float scale, int zero, zc_affine *out);

#endif
