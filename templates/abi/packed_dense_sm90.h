/* Parameters of packed_dense_sm90.cu beside those of gemm_sm90.cu. */
#ifndef ZC_ABI_PACKED_DENSE_SM90_H
#define ZC_ABI_PACKED_DENSE_SM90_H

#include "abi/gemm_sm90.h"

struct zc_packed_unpack_params {
    const void *w, *scale, *zero; /* as PackedLinear has them */
    void *first, *second;         /* [n][k]; second: NULL, or half of the columns are its */
    long long pieces;             /* of codes */
    float most;                   /* the largest finite number of the result's type */
    float alpha;                  /* as PackedLinear has it */
};

struct zc_packed_rows_params {
    const void *x, *gain;
    void *to;
    long long m;
    float epsilon, pad;
};

#endif
