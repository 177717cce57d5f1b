/* Parameters of pointwise.cu: axes collapsed where all operands run on together, outermost first.
 */
#ifndef ZC_ABI_POINTWISE_H
#define ZC_ABI_POINTWISE_H

enum { ZC_POINT_INPUTS = 32, ZC_POINT_RANK = 8, ZC_POINT_OUTPUTS = 4 };

struct zc_pointwise_params {
    const void *in[ZC_POINT_INPUTS];
    void *out[ZC_POINT_OUTPUTS];
    long long total; /* elements of a result */
    int rank, pad;
    long long dims[ZC_POINT_RANK];
    long long strides[ZC_POINT_INPUTS][ZC_POINT_RANK]; /* in elements; 0 along a broadcast axis */
};

#endif
