/* Einsum equations: text to labels. */
#ifndef ZC_OP_EINSUM_H
#define ZC_OP_EINSUM_H

#include "op/tensor.h"

#define ZC_EINSUM_OPERANDS 64
/* Labels are small ints: A-Z, a-z, then the axes that an ellipsis stands for. */
#define ZC_EINSUM_LETTERS 52
#define ZC_EINSUM_LABELS  (ZC_EINSUM_LETTERS + ZC_MAX_RANK)

typedef struct zc_einsum_term {
    int n;
    uint8_t label[ZC_MAX_RANK]; /* of each axis */
} zc_einsum_term;

typedef struct zc_einsum {
    int nin;
    zc_einsum_term in[ZC_EINSUM_OPERANDS];
    zc_einsum_term out;
} zc_einsum;

/* ranks[nin]: of the operands. Errors name the column of the equation. */
zc_status zc_einsum_parse(const char *equation, int nin, const int *ranks, zc_einsum *out,
                          const char *subject, zc_diag *diag);

#endif
