/* Parameters of mel_weights.cu. */
#ifndef ZC_ABI_MEL_WEIGHTS_H
#define ZC_ABI_MEL_WEIGHTS_H

#define ZC_MEL_BANDS 960 /* the most of one launch */

struct zc_mel_weights_params {
    void *out;
    long long rows, bands;
    long long first, count;      /* bands of this launch */
    int edges[ZC_MEL_BANDS + 2]; /* rows; band b: from edge b over b + 1 to b + 2 */
};

#endif
