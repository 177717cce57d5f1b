/* Parameters of random.cu. */
#ifndef ZC_ABI_RANDOM_H
#define ZC_ABI_RANDOM_H

struct zc_random_params {
    const void *in;
    void *out, *mask; /* dropout: NULL where not wanted */
    long long total;
    unsigned long long key;
    double offset, scale; /* offset + number * scale; of dropout its ratio, and what is left */
};

#endif
