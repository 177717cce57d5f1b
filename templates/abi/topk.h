/* Parameters of topk.cu. Lines are the tensor's runs along the axis; element i of line (o, j) is at
 * (o * length + i) * inner + j. A line is cut into chunks; `keep` items of each go into its list.
 */
#ifndef ZC_ABI_TOPK_H
#define ZC_ABI_TOPK_H

#include "abi/divisor.h"

enum { ZC_TOPK_CHUNK = 2048 };

struct zc_topk_params {
    const void *in;
    void *values;            /* NULL: not wanted */
    long long *indices;      /* NULL: not wanted */
    unsigned int *from, *to; /* lists; entry 0 writes `to` */
    long long lines, length, k;
    struct zc_divisor inner, chunks, list, kth; /* chunks of a line; length of its list; k */
    unsigned int chunk, keep;                   /* chunk: items at most */
    long long run;                              /* of the list, sorted already */
};

#endif
