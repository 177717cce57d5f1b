/* Parameters of row_norm.cu. */
#ifndef ZC_ABI_ROW_NORM_H
#define ZC_ABI_ROW_NORM_H

#include "abi/epilogue.h"

/* How an operand's element belongs to element i, column j of the row: not there, element j, element
 * i, or along strides. */
enum { ZC_ROW_ABSENT, ZC_ROW_COLUMN, ZC_ROW_SAME, ZC_ROW_STRIDED };

enum { ZC_ROW_RANK = 16 };

struct zc_row_operand {
    const void *data;
    int mode, pad;
    long long strides[ZC_ROW_RANK];
};

struct zc_row_table {         /* of embeddings */
    const void *data, *ids;   /* ids NULL: the row is the position in the sequence */
    long long entries, count; /* count: of ids, which are used again after that many */
};

struct zc_row_norm_params {
    const void *x;
    struct zc_row_operand skip, skip_bias, scale, bias;
    void *y, *mean, *inv, *sum; /* NULL: not wanted */
    long long rows, N;
    double eps;
    int rank, pad; /* of x, for strided operands */
    long long dims[ZC_ROW_RANK];
    struct zc_row_table table[3]; /* embeddings of words, positions and segments */
    const void *mask;             /* of words */
    void *counts;                 /* unmasked words of each sequence; NULL: not wanted */
    long long length;             /* words of a sequence */
    struct zc_fault_word *fault;
    unsigned step, pad2;
    struct zc_fused_params pre, fused;
};

#endif
