/* Channels-last kernels. */
#ifndef ZC_CPU_NHWC_H
#define ZC_CPU_NHWC_H

#include "cpu/kernel.h"

/* Does the fast kernel of a step with these operands, of that rank, read its weights, when they are
 * a constant, from k->packs alone (input 1)? */
bool zc_conv_nhwc_packs(const zc_attrs_ConvNhwc *a, zc_dtype x, zc_dtype w, int rank);

/* What `convolution` makes of a step whose input w are weights, and with pool_shape a pooling of
 * its rounded result. */
zc_status zc_conv_pooled(zc_kctx *k, int w, zc_kernel_fn convolution);

#endif
