/* Parameters of tensor_scatter.cu. */
#ifndef ZC_ABI_TENSOR_SCATTER_H
#define ZC_ABI_TENSOR_SCATTER_H

#include "abi/divisor.h"

struct zc_tensor_scatter_params {
    const void *update;
    void *out;
    const long long *at; /* write position of each batch entry; NULL: 0 */
    long long total;     /* units of the update */
    struct zc_divisor inner, n,
        middle;     /* units inside the axis; the update's length; between batch and axis */
    long long room; /* the cache's length */
    int circular;
    unsigned int step;
    struct zc_fault_word *fault;
};

#endif
