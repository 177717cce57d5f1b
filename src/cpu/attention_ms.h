/* What the com.microsoft attention operations share. */
#ifndef ZC_CPU_ATTENTION_MS_H
#define ZC_CPU_ATTENTION_MS_H

#include "cpu/attention.h"

/* An attention problem with the temporary tensors that its views refer to. */
typedef struct zc_ms {
    zc_attn a;
    zc_dtype work; /* element type of temporary tensors */
    zc_tensor mask, q, k, v;
} zc_ms;

/* bias[1] from an input [batch or 1, heads or 1, nq, nk]; NULL: none. */
zc_status zc_ms_use_bias(zc_kctx *k, zc_ms *m, const zc_tensor *t);

#endif
