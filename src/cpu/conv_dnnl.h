/* f32 convolutions on channels-last planes through oneDNN, whose interfaces of versions 2 and 3
 * differ. */
#ifndef ZC_CPU_CONV_DNNL_H
#define ZC_CPU_CONV_DNNL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One image, one group, two axes. pad: before and after; padding after follows from the sizes. */
typedef struct zc_dnnl_shape {
    int64_t ic, oc, in[2], out[2], kernel[2], stride[2], dilation[2], pad[2][2];
    bool bias, residual, relu;
} zc_dnnl_shape;

typedef struct zc_dnnl_conv zc_dnnl_conv;

/* NULL when the library refuses. `like`, which may be NULL, lends its packed weights when they have
 * the layout that this one needs; it must outlive it. w[oc][ic][kh][kw]. */
zc_dnnl_conv *zc_dnnl_conv_create(const zc_dnnl_shape *shape, const float *w,
                                  const zc_dnnl_conv *like);
void zc_dnnl_conv_destroy(zc_dnnl_conv *c);
/* y = act(conv(x) + bias [+ what y holds, with residual]). One thread at a time. */
bool zc_dnnl_conv_run(zc_dnnl_conv *c, const float *x, const float *bias, float *y);

#endif
