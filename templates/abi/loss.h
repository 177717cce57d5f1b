/* Parameters of loss.cu. */
#ifndef ZC_ABI_LOSS_H
#define ZC_ABI_LOSS_H

#include "abi/groups.h"

enum { ZC_LOSS_NONE, ZC_LOSS_SUM, ZC_LOSS_MEAN };

/* Bytes of a partial sum of losses and weights. */
enum { ZC_LOSS_STATE = 16 };

struct zc_loss_params {
    struct zc_groups g; /* one output a label, made of its scores, which are INNER apart */
    const void *x, *labels, *weights; /* weights NULL: all 1 */
    void *log_prob, *y;               /* NULL: not wanted */
    void *sums;                       /* [blocks] of losses and of weights; NULL: y is the losses */
    long long classes, inner, blocks; /* x is [N, classes, inner] */
    long long ignored;
    struct zc_fault_word *fault;
    unsigned step, pad;
};

#endif
