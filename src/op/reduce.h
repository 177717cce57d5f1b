/* What the shape function and the kernels of reductions share. */
#ifndef ZC_OP_REDUCE_H
#define ZC_OP_REDUCE_H

#include "op/op.h"

#define ZC_REDUCTIONS(X)                                                                           \
    X(ReduceSum)                                                                                   \
    X(ReduceMean)                                                                                  \
    X(ReduceMax)                                                                                   \
    X(ReduceMin)                                                                                   \
    X(ReduceProd) X(ReduceL1) X(ReduceL2) X(ReduceLogSum) X(ReduceLogSumExp) X(ReduceSumSquare)

bool zc_is_reduction(zc_op op);

typedef struct zc_reduce_attrs {
    bool keepdims, noop_with_empty_axes;
} zc_reduce_attrs;

/* The attributes of a reduction, whichever it is. */
zc_reduce_attrs zc_reduce_attrs_of(zc_op op, const void *attrs);

#endif
