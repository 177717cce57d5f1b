/* Parameters of row_norm.cu. */
#ifndef ZC_ABI_ROW_NORM_H
#define ZC_ABI_ROW_NORM_H

#include "abi/epilogue.h"

/* Operands beside x, which broadcast to it. */
enum { ZC_ROW_SKIP, ZC_ROW_SKIP_BIAS, ZC_ROW_SCALE, ZC_ROW_BIAS, ZC_ROW_OPERANDS };

enum { ZC_ROW_RANK = 16 };

struct zc_row_axes { /* collapsed where all operands run on together, outermost first */
    int rank, pad;
    long long dims[ZC_ROW_RANK];
    long long strides[ZC_ROW_OPERANDS][ZC_ROW_RANK];
};

struct zc_row_table {         /* of embeddings */
    const void *data, *ids;   /* ids NULL: the row is the position in the sequence */
    long long entries, count; /* count: of ids, which are used again after that many */
};

struct zc_row_norm_params {
    const void *x;
    const void *operand[ZC_ROW_OPERANDS]; /* NULL: it is not there */
    void *y, *also, *mean, *inv, *sum;    /* NULL: not wanted */
    long long rows, N;
    double eps;
    struct zc_row_axes outer, inner; /* x's that count rows; those in a row */
    long long
        own_length[ZC_ROW_OPERANDS]; /* of an operand's own rows, in which `outer` has strides */
    struct zc_row_table table[3];    /* embeddings of words, positions and segments */
    const void *mask;                /* of words */
    void *counts;                    /* unmasked words of each sequence; NULL: not wanted */
    long long length;                /* words of a sequence */
    struct zc_fault_word *fault;
    unsigned step, pad2;
    struct zc_fused_params pre, fused;
};

#endif
