/* Parameters of linear_moments.cu, and what gemm_few_sm90.cu needs beside the product. */
#ifndef ZC_ABI_LINEAR_MOMENTS_H
#define ZC_ABI_LINEAR_MOMENTS_H

#include "abi/gemm.h"

enum { ZC_MOMENTS_PART = 64 }; /* columns of a row, that have moments of their own */

/* Moments of a row are pairs of f32: mean, and squares about it summed up, of each part. NULL: the
 * operand is absent, or the result not wanted. */
struct zc_row_moments_params {
    const void *x;            /* moments of A's rows */
    const void *sums;         /* f32[n]: of B's columns */
    const void *skip;         /* [m][n] */
    const void *skip_x;       /* moments of its rows */
    const void *gamma, *beta; /* of skip: [n] */
    void *y;                  /* moments of the result */
    float epsilon, skip_epsilon;
};

struct zc_linear_moments_params {
    struct zc_gemm_params g;
    struct zc_row_moments_params moments;
};

#endif
