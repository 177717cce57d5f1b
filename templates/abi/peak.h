/* Parameters of peak.cu. */
#ifndef ZC_ABI_PEAK_H
#define ZC_ABI_PEAK_H

struct zc_peak_params {
    float *sums; /* one a thread */
    int rounds;
};

#endif
