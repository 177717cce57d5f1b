/* Parameters of cumulate.cu. */
#ifndef ZC_ABI_CUMULATE_H
#define ZC_ABI_CUMULATE_H

/* The tensor is [outer, length, inner]; a line runs along length, in chunks. */
struct zc_cumulate_params {
    const void *in;
    void *out;
    void *totals; /* [lines, chunks], of one accumulator each; NULL: one chunk */
    long long lines, length, inner;
    long long chunk, chunks;
};

#endif
