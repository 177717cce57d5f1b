/* Parameters of quant.cu. x is [outer, axis, inner]; block elements of the axis share a scale. */
#ifndef ZC_ABI_QUANT_H
#define ZC_ABI_QUANT_H

struct zc_quant_params {
    const void *x, *scale, *zero; /* zero may be NULL */
    void *y;
    long long total;                      /* elements */
    long long axis, inner, block, blocks; /* block 0: one scale for all */
    int by_inner;                         /* outer and inner have scales of their own */
    int aligned;                          /* four neighbours may be read and written at once */
};

#endif
