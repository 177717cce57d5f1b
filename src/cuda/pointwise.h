/* What generator and launcher of pointwise kernels agree on. */
#ifndef ZC_CUDA_POINTWISE_H
#define ZC_CUDA_POINTWISE_H

#include "op/dtype.h"

/* Elements that one thread computes at once: 16 bytes of the widest operand, at most 8. */
int zc_pointwise_vec(int nout, const zc_dtype *out, int nin, const zc_dtype *in);

#endif
