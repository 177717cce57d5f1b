/* Parameters of lrn.cu. */
#ifndef ZC_ABI_LRN_H
#define ZC_ABI_LRN_H

struct zc_lrn_params {
    const void *in;
    void *out;
    long long total, channels, plane; /* in is [N, channels, plane] */
    long long size;                   /* channels of a window */
    double alpha, beta, bias;         /* alpha: already divided by size */
};

#endif
