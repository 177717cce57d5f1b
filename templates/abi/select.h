/* Parameters of select.cu. */
#ifndef ZC_ABI_SELECT_H
#define ZC_ABI_SELECT_H

#include "abi/divisor.h"

enum { ZC_SELECT_RANK = 16, ZC_SELECT_TILE = 2048 };

struct zc_select_params {
    const void *flags; /* elements that are examined */
    long long n;       /* of them */
    long long limit;   /* Compress: elements that there are to select */
    long long *counts; /* of each tile, and one more */
    long long *map;    /* Compress: selected positions */
    long long *out;    /* NonZero */
    long long found;
    int rank, pad; /* NonZero: axes of the input */
    struct zc_divisor dims[ZC_SELECT_RANK];
    /* Compress: rows of units */
    const void *data;
    void *rows;
    long long total;               /* units of the result */
    struct zc_divisor run, picked; /* units of a row; rows picked along the axis */
    unsigned int step, tiles;
    struct zc_fault_word *fault;
};

#endif
