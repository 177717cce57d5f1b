/* Parameters of pad.cu. */
#ifndef ZC_ABI_PAD_H
#define ZC_ABI_PAD_H

#include "abi/divisor.h"

enum { ZC_PAD_RANK = 16 };
enum zc_pad_mode { ZC_PAD_CONSTANT, ZC_PAD_EDGE, ZC_PAD_WRAP, ZC_PAD_REFLECT };

struct zc_pad_axis {
    struct zc_divisor dim; /* of the result */
    long long lead;   /* the result's index of the first element of the part that is kept; may be
                         negative */
    long long n;      /* length of that part */
    long long stride; /* of the source, in elements */
};

struct zc_pad_params {
    const void *in; /* the first element of the part that is kept */
    void *out;
    const void *value; /* CONSTANT: the border's element; NULL: zero */
    long long total;   /* elements of the result */
    int rank, mode;
    struct zc_pad_axis axes[ZC_PAD_RANK];
};

#endif
