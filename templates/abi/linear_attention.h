/* Parameters of linear_attention.cu. */
#ifndef ZC_ABI_LINEAR_ATTENTION_H
#define ZC_ABI_LINEAR_ATTENTION_H

struct zc_linear_attention_params {
    const void *q, *k, *v, *past, *decay, *beta; /* NULL: none */
    void *y, *state;                             /* NULL: not wanted */
    long long length, columns;                   /* columns: batch * kv_heads * dv */
    long long dv;
    double scale;
};

#endif
