/* Channels-last convolutions as products of pixels and packed weights, on processors whose widest
 * vectors are AVX2's. */
#ifndef ZC_CPU_NHWC_PANELS_H
#define ZC_CPU_NHWC_PANELS_H

#include "cpu/conv.h"

/* For a ConvNhwc step of this geometry; *done: it has run, otherwise it is another kernel's. */
zc_status zc_conv_panels(zc_kctx *k, const zc_conv *c, bool *done);

#endif
