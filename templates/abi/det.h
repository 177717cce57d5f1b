/* Parameters of det.cu. */
#ifndef ZC_ABI_DET_H
#define ZC_ABI_DET_H

struct zc_det_params {
    const void *in;
    void *out;
    void *work; /* n * n doubles for each block */
    long long count, n;
};

#endif
