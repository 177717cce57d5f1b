/* Convolutions: what the operations of the family have in common. */
#ifndef ZC_CPU_CONV_H
#define ZC_CPU_CONV_H

#include "cpu/window.h"

/* x[batch][groups * ic][in...], w[groups * oc][ic][taps...], y[batch][groups * oc][out...]. */
typedef struct zc_conv {
    zc_window w;
    int64_t batch, groups, ic, oc; /* channels of one group */
    int64_t in_plane, out_plane, taps;
} zc_conv;

/* The geometry of Conv, ConvInteger, QLinearConv, ScaledConv or DeformConv on in[xi] and in[wi];
 * checks that the shapes fit each other, which symbolic inference may have left open. */
zc_status zc_conv_of(zc_kctx *k, int xi, int wi, zc_conv *c);

/* Weights wi: where they are a band (op/conv_band.h), a copy that is none, taps first. */
zc_status zc_conv_weights(zc_kctx *k, int wi, zc_tensor *out);

#endif
