/* Parameters of conv.cu. */
#ifndef ZC_ABI_CONV_H
#define ZC_ABI_CONV_H

#include "abi/epilogue.h"
#include "abi/window.h"

/* x[batch][groups * ic][in...], w[groups * oc][ic][taps...], y[batch][groups * oc][out...]; with
 * channels last x[batch][in...][groups * ic] and y likewise. */
struct zc_conv_params {
    const void *x, *w, *bias, *residual;
    const void *offset, *mask;                                          /* of deformable ones */
    const void *x_zero, *w_zero, *x_scale, *w_scale, *y_scale, *y_zero; /* quantised forms */
    void *y;
    long long batch, groups, ic, oc; /* channels of one group */
    int w_zero_step, w_scale_step;   /* 0: one for all channels, 1: one each */
    int w_aligned;                   /* rows of weights may be read 16 bytes at once */
    int x_pitch, y_pitch, pad;       /* of conv_depth: elements from pixel to pixel */
    struct zc_window_params window;
    struct zc_fused_params fused;
};

#endif
