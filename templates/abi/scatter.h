/* Parameters of scatter.cu. A target is a place of the result that one index tuple (ScatterND: of
 * `slice` elements) or one index addresses. */
#ifndef ZC_ABI_SCATTER_H
#define ZC_ABI_SCATTER_H

#include "abi/divisor.h"

enum { ZC_SCATTER_RANK = 16, ZC_SCATTER_CHUNK = 2048 };

struct zc_scatter_params {
    const void *indices, *updates;
    void *out;
    long long n;             /* updates: tuples, or elements */
    struct zc_divisor slice; /* units or elements that an update moves */
    int rank, axis;          /* ScatterND: length of a tuple in rank; axis -1 */
    struct zc_divisor
        dims[ZC_SCATTER_RANK]; /* of the indices; ScatterND: of the axes that they address */
    long long strides[ZC_SCATTER_RANK]; /* of the result */
    long long limit;                    /* ScatterElements: length of the axis */
    long long *targets;                 /* of each update; -1: out of range */
    unsigned int *last;                 /* of each target: 1 + number of its last update; 0: none */
    unsigned int *from, *to;            /* updates in the order of their targets */
    long long run;                      /* of the order, sorted already */
    unsigned int step, pad;
    struct zc_fault_word *fault;
};

#endif
