/* Parameters of create.cu. */
#ifndef ZC_ABI_CREATE_H
#define ZC_ABI_CREATE_H

#include "abi/divisor.h"

struct zc_create_params {
    const void *in; /* Trilu */
    void *out;
    long long total;              /* units or elements of the result */
    struct zc_divisor rows, cols; /* of the matrices */
    long long k;                  /* diagonal: column - row */
    int upper, pad;               /* Trilu */
    unsigned long long value[2];  /* fill: 16 bytes of the pattern; EyeLike: a one */
};

#endif
