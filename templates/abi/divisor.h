/* A divisor with what makes dividing by it cheap; src/kernels/divisor.h fills it. */
#ifndef ZC_ABI_DIVISOR_H
#define ZC_ABI_DIVISOR_H

struct zc_divisor {
    unsigned long long d, magic; /* magic: ceil(2^64 / d); 0 for d = 1 */
};

#endif
