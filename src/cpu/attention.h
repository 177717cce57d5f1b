/* Attention on concrete tensors whose keys stand in one piece. */
#ifndef ZC_CPU_ATTENTION_H
#define ZC_CPU_ATTENTION_H

#include <math.h>

#include "cpu/kernel.h"
#include "op/attention.h"

/* y = softmax(scale * q k^T, capped, + biases) v. A query whose keys are all masked gives zeros. A
 * key that is masked, or whose weight is 0, does not count, whatever it and its value hold. */
typedef struct zc_attn {
    int64_t batch, heads, kv_heads; /* heads / kv_heads query heads share a key head */
    int64_t nq, nk, d, dv;
    zc_heads q, k, v;
    zc_tensor *y;          /* absent: not wanted */
    zc_heads y_at;         /* y's layout; t unused */
    double scale, softcap; /* softcap 0: none */
    zc_attn_bias bias[2];
    const int64_t *keys;     /* valid keys of each batch item; NULL: nk */
    const int64_t *position; /* of query 0 of each batch item among the keys; NULL: 0 */
    bool causal;             /* key j counts for query i when j <= position + i */
    double mask_value;       /* score of a key that a bool bias hides; 0: minus infinity */
    int64_t window;          /* > 0: and j > position + i - window */
    const zc_tensor *sink;   /* a score a head that only counts in the softmax's sum; NULL: none */
    bool zero_sink;          /* that score is 0 */
    zc_tensor *scores;       /* [batch, heads, nq, nk]; NULL: not wanted */
    int scores_mode;         /* ONNX's qk_matmul_output_mode */
} zc_attn;

/* fast: may use the vectorised kernel, where it fits. */
zc_status zc_attn_run(zc_kctx *k, const zc_attn *a, bool fast);

/* The keys [*lo, *hi) that query i of batch item b may see. */
void zc_attn_range(const zc_attn *a, int64_t b, int64_t i, int64_t *lo, int64_t *hi);

/* Vectorised for f32; false: does not fit. */
bool zc_attn_fast_fits(const zc_attn *a);
zc_status zc_attn_fast(zc_kctx *k, const zc_attn *a);

/* Are all scores of a batch item the same, because it has no keys but scores for hidden ones? */
static inline bool zc_attn_even(const zc_attn *a, int64_t b)
{
    return a->keys && a->keys[b] == 0 && a->mask_value != 0 && isfinite(a->mask_value);
}

/* The score of a key that a bool bias hides. */
static inline double zc_attn_hidden(const zc_attn *a)
{
    return a->mask_value != 0 ? a->mask_value : -(double)INFINITY;
}

#endif
