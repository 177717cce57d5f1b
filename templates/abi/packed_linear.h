/* Parameters of gemv_packed_sm90.cu and packed_linear.cu: y[m][n] = x[m][k] w^T + bias, operands as
 * PackedLinear has them. */
#ifndef ZC_ABI_PACKED_LINEAR_H
#define ZC_ABI_PACKED_LINEAR_H

#include "abi/epilogue.h"

struct zc_packed_linear_params {
    const void *x, *w, *scale, *zero, *bias, *gain; /* the last three: NULL without */
    void *y;
    long long m, n;
    float epsilon; /* with gain */
    float alpha;   /* what sums count */
    struct zc_fused_params fused;
};

#endif
