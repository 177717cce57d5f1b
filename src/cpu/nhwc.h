/* Channels-last kernels. */
#ifndef ZC_CPU_NHWC_H
#define ZC_CPU_NHWC_H

#include "cpu/kernel.h"

/* The type of a channels-last tensor with its axes in channels-first order; no data. */
zc_tensor zc_nchw_shape(const zc_tensor *t);

#endif
