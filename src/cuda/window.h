/* Sliding windows on the device: what the generators and launch functions of convolutions and
 * poolings share. */
#ifndef ZC_CUDA_WINDOW_H
#define ZC_CUDA_WINDOW_H

#include "abi/window.h"
#include "cuda/launch.h"
#include "op/window.h"

/* Largest stride, dilation, kernel size and padding, and largest spatial size, that kernels take:
 * positions then fit in 32 bits. */
#define ZC_CUDA_WINDOW_MOST (INT64_C(1) << 28)
#define ZC_CUDA_PLANE_MOST  (INT64_C(1) << 30)

/* The window attributes of any operation that has them, and its group (1 where it has none); false
 * for others. */
bool zc_window_attrs_of(zc_op op, const void *attrs, zc_window_attrs *a, int64_t *group);

/* Fills the parameters; fails where a number is too large for the kernels. */
zc_status zc_launch_window(zc_launch *l, const zc_window *w, struct zc_window_params *p);

#endif
