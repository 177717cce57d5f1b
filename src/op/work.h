/* How much an operation has to do, for comparing its time with what a machine can do. */
#ifndef ZC_OP_WORK_H
#define ZC_OP_WORK_H

#include "op/op.h"
#include "op/tensor.h"

typedef struct zc_work {
    double bytes_in, bytes_out; /* of operands, each once, and results; none for views */
    double operations; /* additions and multiplications of products, convolutions, attention and
                          recurrent layers, and one for each element and node of pointwise work;
                          -1: not counted for this operation */
} zc_work;

/* Of concrete tensors, whose data is not looked at. Keys that a mask hides count as the others. */
zc_work zc_work_of(const zc_op_info *info, const void *attrs, int nin, const zc_tensor *in,
                   int nout, const zc_tensor *out);

#endif
