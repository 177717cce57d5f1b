/* Channels-last forms of operations: what they are in ONNX's channels-first terms. */
#ifndef ZC_OP_NHWC_H
#define ZC_OP_NHWC_H

#include "op/op.h"

/* The attributes of ConvNhwc and MaxPoolNhwc as those of Conv and MaxPool. */
static inline zc_attrs_Conv zc_nchw_conv(const zc_attrs_ConvNhwc *a)
{
    return (zc_attrs_Conv){.auto_pad = a->auto_pad,
                           .dilations = a->dilations,
                           .group = a->group,
                           .kernel_shape = a->kernel_shape,
                           .pads = a->pads,
                           .strides = a->strides};
}

static inline zc_attrs_MaxPool zc_nchw_max_pool(const zc_attrs_MaxPoolNhwc *a)
{
    return (zc_attrs_MaxPool){.auto_pad = a->auto_pad,
                              .ceil_mode = a->ceil_mode,
                              .dilations = a->dilations,
                              .kernel_shape = a->kernel_shape,
                              .pads = a->pads,
                              .strides = a->strides};
}

/* Axis i of the channels-first order stands here in the channels-last order. */
static inline int zc_nhwc_axis(int i)
{
    static const int at[] = {0, 3, 1, 2};
    return at[i];
}

/* The type of a tensor with its axes in channels-first order; no data. */
static inline zc_tensor zc_nchw_shape(const zc_tensor *t)
{
    zc_tensor r = *t;
    for (int i = 0; i < 4; i++) r.dims[i] = t->dims[zc_nhwc_axis(i)];
    r.data = NULL;
    return r;
}

#endif
