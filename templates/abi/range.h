/* Parameters of range.cu. */
#ifndef ZC_ABI_RANGE_H
#define ZC_ABI_RANGE_H

struct zc_range_params {
    void *out;
    long long total;
    double start, delta;                /* float types */
    long long whole_start, whole_delta; /* integer types */
};

#endif
