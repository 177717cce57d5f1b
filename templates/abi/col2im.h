/* Parameters of col2im.cu. */
#ifndef ZC_ABI_COL2IM_H
#define ZC_ABI_COL2IM_H

#include "abi/window.h"

/* in[planes][taps][windows] to out[planes][image]. The window's `in` is the image and its `out` the
 * windows. */
struct zc_col2im_params {
    const void *in;
    void *out;
    long long total; /* elements of the result */
    struct zc_window_params window;
};

#endif
