/* What attention_fast.c and its template attention_tmpl.h share. */
#ifndef ZC_CPU_ATTENTION_TILE_H
#define ZC_CPU_ATTENTION_TILE_H

#include "cpu/attention.h"
#include "cpu/simd.h"

/* Keys of one block of scores. */
#define ATTN_KEYS 256

/* A few rows of one key head: row r is query r % nq of the head's query head r / nq. */
typedef struct attn_rows {
    const zc_attn *a;
    int64_t b, kv;         /* batch item, key head */
    int64_t first, count;  /* rows */
    bool seen_only;        /* one row, to which values of weight 0 are not added */
    const float *keys;     /* packed panels of this head; NULL: take them from the tensor */
    const float *v;        /* first position */
    int64_t v_pos, v_size; /* distance of positions; dv rounded up to whole vectors */
    float *q, *s, *o;      /* scratch: [rows][d], [rows][ATTN_KEYS], [rows][v_size] */
    float *max, *sum;      /* of the softmax, a row each */
} attn_rows;

/* zc_attn_fast at a given level, which the machine must have. */
zc_status zc_attn_fast_at(zc_kctx *k, const zc_attn *a, zc_simd level);

#endif
