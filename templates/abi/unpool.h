/* Parameters of unpool.cu. */
#ifndef ZC_ABI_UNPOOL_H
#define ZC_ABI_UNPOOL_H

enum { ZC_UNPOOL_RANK = 8 };

struct zc_fault_word;

struct zc_unpool_params {
    const void *in;
    const long long *index;
    void *out;
    unsigned *owner; /* of each element of the result: 1 + the last input element that goes there;
                        0: none */
    struct zc_fault_word *fault;
    unsigned step;
    int rank;
    long long count, total,
        range; /* elements of the input and of the result; indices lie in [0, range) */
    long long implied[ZC_UNPOOL_RANK]; /* the shape that indices count in */
    long long dims[ZC_UNPOOL_RANK];    /* the shape of the result */
};

#endif
