/* f32 convolutions on channels-last planes through oneDNN, whose interfaces of versions 2 and 3
 * differ. */
#ifndef ZC_CPU_CONV_DNNL_H
#define ZC_CPU_CONV_DNNL_H

#include "cpu/kernel.h"

/* One image, two axes; ic and oc are the channels of one group. pad: before and after; padding
 * after follows from the sizes. */
typedef struct zc_dnnl_shape {
    int64_t groups, ic, oc, in[2], out[2], kernel[2], stride[2], dilation[2], pad[2][2];
    bool bias;
} zc_dnnl_shape;

typedef struct zc_dnnl_conv zc_dnnl_conv;

/* Makes a small convolution: what oneDNN keeps for all of them is there afterwards. */
zc_status zc_dnnl_conv_prepare(void);
/* A convolution for k's step. *out is NULL when the library refuses. k's weights, in[1] =
 * w[groups * oc][ic][kh][kw], are a constant of the plan; the convolution reads them as k's packs
 * keep them, which must outlive it. */
zc_status zc_dnnl_conv_create(const zc_kctx *k, const zc_dnnl_shape *shape, zc_dnnl_conv **out);
void zc_dnnl_conv_destroy(zc_dnnl_conv *c);
/* Bytes of temporary memory that a run needs. */
size_t zc_dnnl_conv_scratch(const zc_dnnl_conv *c);
/* Bytes that the convolution itself takes, without what the library hides (its generated code). */
size_t zc_dnnl_conv_bytes(const zc_dnnl_conv *c);
/* y = conv(x) + bias. scratch is aligned to 64. One thread at a time. */
zc_status zc_dnnl_conv_run(zc_dnnl_conv *c, const float *x, const float *bias, float *y,
                           void *scratch);

#endif
