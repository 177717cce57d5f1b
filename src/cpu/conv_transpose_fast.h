/* f32 transposed convolutions: what their fast kernels share. */
#ifndef ZC_CPU_CONV_TRANSPOSE_FAST_H
#define ZC_CPU_CONV_TRANSPOSE_FAST_H

#include "cpu/kernel.h"

/* Two axes; one axis is a plane of one row. */
typedef struct zc_transposed {
    int64_t batch, groups, ic, oc, taps; /* channels of a group */
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], begin[2];
} zc_transposed;

/* Input positions [*from, *to) of an axis whose tap t lies on the output. */
void zc_transposed_inside(const zc_transposed *c, int axis, int64_t t, int64_t *from, int64_t *to);

/* The convolution by packed weights; *done is false where the other kernel shall do it. */
zc_status zc_conv_transpose_panels(zc_kctx *k, const zc_transposed *c, bool *done);

#endif
