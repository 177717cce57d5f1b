/* Parameters of cast.cu. */
#ifndef ZC_ABI_CAST_H
#define ZC_ABI_CAST_H

struct zc_cast_params {
    const void *in;
    void *out;
    long long total; /* elements */
};

#endif
