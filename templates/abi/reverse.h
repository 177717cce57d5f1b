/* Parameters of reverse.cu. */
#ifndef ZC_ABI_REVERSE_H
#define ZC_ABI_REVERSE_H

#include "abi/divisor.h"

struct zc_reverse_params {
    const void *in;
    void *out;
    const long long *lengths;        /* of the sequences */
    long long total;                 /* units */
    struct zc_divisor second, inner; /* length of axis 1; units inside it */
    long long times, time_stride;    /* of the time axis, stride in units */
    int time_axis;                   /* 0 or 1; the other is the batch */
    unsigned int step;
    struct zc_fault_word *fault;
};

#endif
