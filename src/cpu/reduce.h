/* The geometry of a reduction, shared by the reference and the fast kernel. */
#ifndef ZC_CPU_REDUCE_H
#define ZC_CPU_REDUCE_H

#include "cpu/kernel.h"
#include "op/reduce.h"

/* Axes of the input in groups: neighbours that are both kept or both reduced are one, axes of
 * length 1 are left out. The output's elements are the kept groups' indices in row-major order. */
typedef struct zc_reduce_shape {
    int kept, reduced;
    int64_t kept_dims[ZC_MAX_RANK], kept_strides[ZC_MAX_RANK];
    int64_t reduced_dims[ZC_MAX_RANK], reduced_strides[ZC_MAX_RANK];
    int64_t outputs, count; /* outputs, and input elements that each is made of */
    bool inner_reduced;     /* the innermost group is a reduced one */
} zc_reduce_shape;

zc_status zc_reduce_shape_of(zc_kctx *k, zc_reduce_shape *s);

/* What a reduction makes of accumulated floats: the value of the sum (product, ...) r over count
 * elements; for ReduceLogSumExp r is the sum of exp(x - shift). */
double zc_reduce_finish(zc_op op, double r, double shift, int64_t count);

#endif
