/* Parameters of gather.cu. */
#ifndef ZC_ABI_GATHER_H
#define ZC_ABI_GATHER_H

#include "abi/divisor.h"

enum { ZC_GATHER_RANK = 16 };

struct zc_gather_params {
    const void *in, *indices;
    void *out;
    long long total;       /* units or elements of the result */
    struct zc_divisor run; /* units that one index moves */
    struct zc_divisor n;   /* Gather: indices; GatherND: tuples of one batch entry */
    long long limit;       /* Gather, GatherElements: length of the axis */
    int rank, axis;        /* GatherElements; GatherND: length of a tuple in rank */
    /* GatherElements: the result's axes and the source's strides, in elements; GatherND: the
     * indexed axes. */
    struct zc_divisor dims[ZC_GATHER_RANK];
    long long strides[ZC_GATHER_RANK];
    unsigned int step, pad;
    struct zc_fault_word *fault;
};

#endif
