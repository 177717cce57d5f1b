/* Parameters of dynamic_quantize.cu. */
#ifndef ZC_ABI_DYNAMIC_QUANTIZE_H
#define ZC_ABI_DYNAMIC_QUANTIZE_H

enum { ZC_DYNQUANT_PARTS = 1024 };

struct zc_dynamic_quantize_params {
    const void *x;
    unsigned char *y, *zero;
    float *scale;
    float *parts; /* least and greatest of each block */
    long long total;
    int part_count, aligned; /* aligned: four neighbours may be read and written at once */
};

#endif
