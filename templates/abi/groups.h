/* The elements that each output of a reduction is made of, and how threads share them. */
#ifndef ZC_ABI_GROUPS_H
#define ZC_ABI_GROUPS_H

#include "abi/divisor.h"

enum { ZC_GROUPS = 8, ZC_GROUP_BLOCK = 256 };

/* Neighbouring axes that are all kept or all reduced are one group; of 16 axes there are at most 8
 * of each. Element r of output o is at kept index o plus reduced index r, each along its groups in
 * row-major order. */
struct zc_groups {
    long long outputs, count; /* count: elements of one output */
    long long chunk;          /* of them that one block sees; blockIdx.y says which */
    int kept, reduced;        /* groups; the unused ones have size 1, stride 0 */
    int lanes;                /* threads that share an output: a power of two */
    int along;                /* neighbouring threads take neighbouring elements, not outputs */
    int vec;                  /* 16 bytes are taken at once, neighbours of one output */
    int pad;
    struct zc_divisor kept_dims[ZC_GROUPS], reduced_dims[ZC_GROUPS];
    long long kept_strides[ZC_GROUPS], reduced_strides[ZC_GROUPS];
};

#endif
