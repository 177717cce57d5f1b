/* Parameters of squeeze_excite.cu. */
#ifndef ZC_ABI_SQUEEZE_EXCITE_H
#define ZC_ABI_SQUEEZE_EXCITE_H

#include "abi/epilogue.h"

struct zc_squeeze_excite_params {
    const void *x, *w1, *bias1, *w2, *bias2; /* biases may be NULL */
    void *y;
    int pixels; /* of an image */
    struct zc_fused_params fused;
};

#endif
