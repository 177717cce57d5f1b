/* Parameters of unique.cu. What is compared are rows: row r has the elements (o * rows + r) * inner
 * + j for all o and j, in this order. */
#ifndef ZC_ABI_UNIQUE_H
#define ZC_ABI_UNIQUE_H

#include "abi/divisor.h"

enum { ZC_UNIQUE_CHUNK = 1024, ZC_UNIQUE_TILE = 2048 };

struct zc_unique_params {
    const void *in;
    void *values; /* the results; NULL: not wanted */
    long long *firsts, *inverse, *counts;
    long long outer, rows, inner;
    long long groups;
    unsigned int *from, *to;     /* row numbers, being sorted */
    long long run;               /* sorted already */
    unsigned int *group;         /* of each row */
    unsigned int *first, *start; /* of each group: its first row; its place in the sorted rows */
    unsigned int *number;        /* of each group: its place in the results; NULL: its own number */
    unsigned int *picked;        /* of each result: its first row */
    long long *tiles;            /* counts of the tiles, and one more */
    long long ntiles;
    struct zc_divisor by_inner, by_groups;
};

#endif
