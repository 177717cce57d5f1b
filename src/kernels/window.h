/* Sliding windows on the device: what the generators and launch functions of convolutions and
 * poolings share. */
#ifndef ZC_KERNELS_WINDOW_H
#define ZC_KERNELS_WINDOW_H

#include "abi/window.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/window.h"

/* Largest stride, dilation, kernel size and padding, and largest spatial size, that kernels take:
 * positions then fit in 32 bits. */
#define ZC_CUDA_WINDOW_MOST (INT64_C(1) << 28)
#define ZC_CUDA_PLANE_MOST  (INT64_C(1) << 30)

/* The window attributes of any operation that has them, and its group (1 where it has none); false
 * for others. */
bool zc_window_attrs_of(zc_op op, const void *attrs, zc_window_attrs *a, int64_t *group);

/* Has input i, if it is there, one element (step 0) or one for each channel of a convolution (1)?
 */
zc_status zc_launch_step(zc_launch *l, int i, int64_t channels, int *step);
/* Fills the parameters; fails where a number is too large for the kernels. */
zc_status zc_launch_window(zc_launch *l, const zc_window *w, struct zc_window_params *p);

/* Does the kernel take windows over this many axes, with these attributes? Else declines. */
bool zc_gen_window_fits(zc_gen *g, const zc_window_attrs *a, int axes);

/* Dimensions of the window's axes; those that are not constant become parameters. */
typedef struct zc_gen_window_dims {
    int axes;
    zc_dim in[ZC_WINDOW_DIMS], out[ZC_WINDOW_DIMS], kernel[ZC_WINDOW_DIMS];
    const int64_t *begin; /* padding at the beginning, -1 not known; NULL: as the attributes say */
} zc_gen_window_dims;
/* Writes the Z_IN0 ... that zc/window.cuh needs. */
void zc_gen_window(zc_gen *g, const zc_window_attrs *a, const zc_gen_window_dims *d);
/* What zc/phases.cuh needs, of windows over so many axes that have phases. */
void zc_gen_phases(zc_gen *g, const zc_window_attrs *a, int axes);

/* Can elements of this type be loaded, stored, and summed up? */
static inline bool zc_gen_sums_type(zc_dtype t)
{
    return t == ZC_F32 || t == ZC_F16 || t == ZC_BF16 || t == ZC_F64;
}

#endif
