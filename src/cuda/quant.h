/* What the generator and the launch of quant.cu share. */
#ifndef ZC_CUDA_QUANT_H
#define ZC_CUDA_QUANT_H

#include "abi/quant.h"
#include "op/tensor.h"

/* Where elements find their scales: fills axis, inner, block, blocks and by_inner; none is a
 * divisor of 0. */
void zc_quant_map(const zc_tensor *x, const zc_tensor *scale, int64_t axis, int64_t block,
                  struct zc_quant_params *p);

#endif
