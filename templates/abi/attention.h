/* Parameters of attention.cu, a struct for each kind of entry. Steps are in elements. */
#ifndef ZC_ABI_ATTENTION_H
#define ZC_ABI_ATTENTION_H

#include "abi/divisor.h"
#include "abi/epilogue.h"

/* A [batch, head, position, element] view; the elements of a position are contiguous. */
struct zc_attention_view {
    const void *data;
    long long batch, head, pos;
};

/* What decides which keys count; see sight in zc/attention.cuh. */
struct zc_attention_lengths {
    const void *lengths;
    long long nq, nk,
        past; /* new queries, all keys, past tokens (GroupQueryAttention: positions of the past) */
    struct zc_fault_word *fault;
    unsigned step;
    int pad;
};

struct zc_attention_params {
    struct zc_attention_lengths len;
    struct zc_attention_view q, k, v, y;
    const void *bias[2]; /* NULL: none */
    long long bias_steps[2][4], bias_cols[2];
    const void *sink;   /* NULL: none */
    void *scores;       /* [batch, heads, nq, nk]; NULL: not wanted */
    void *parts;        /* of splits: [rows][splits][2 + dv] */
    unsigned *counters; /* by row */
    long long batch, heads, kv_heads, window;
    int splits, causal, zero_sink;
    int aligned_k, aligned_v, pad; /* 16-byte pieces of q and k, of v */
    double scale, softcap;         /* softcap 0: none */
    double mask_value;             /* score of a key that a bool bias hides */
    struct zc_fused_params fused;
};

/* Moves rows: to[b][h][p] = the past's, or a new one (normed, turned), or zeros. */
struct zc_attention_rows_params {
    struct zc_attention_lengths len;
    struct zc_attention_view x, past;
    void *to;
    const void *norm, *cos, *sin, *ids; /* NULL: none */
    long long batch, heads, fresh, room, half, table,
        table_step; /* fresh: new positions; room: positions of to; table: rows; table_step: rows a
                       batch item */
    struct zc_divisor by_room, by_heads;
    int behind; /* new positions go behind the past ones, which are copied from `past` */
    int interleaved, table_fresh; /* table_fresh: tables begin with the first new position */
    int lanes;                    /* threads that share a row, a power of two up to 32 */
    int pieces, pad; /* all of it lies in pieces of 16 bytes, or of what divides a row */
    double eps;
};

/* The rows of all operands, by blocks from 0 on, from k_first and from v_first. */
struct zc_attention_operands_params {
    struct zc_attention_rows_params q, k, v;
    int k_first, v_first;
};

/* bias[b][r][j] = a filter value where the mask hides key j. */
struct zc_attention_mask_params {
    const void *mask;
    float *bias;
    long long batch, rows, nk, elements; /* elements: of the mask */
    int flat, pad;                       /* one-dimensional: ends, or ends and starts */
    double filter;
};

#endif
