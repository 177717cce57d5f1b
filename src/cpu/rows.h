/* Vectorised functions on rows of f32, for the level of this machine; see rows_tmpl.h. */
#ifndef ZC_CPU_ROWS_H
#define ZC_CPU_ROWS_H

#include <stdbool.h>

#include "cpu/simd.h"

typedef struct zc_rows {
    int lanes; /* columns that `column_softmax` takes at most */
    /* Mean (0 with rms) and mean of the squared distances from it; sums in double. */
    void (*moments)(const float *x, int64_t n, bool rms, double *mean, double *var);
    /* y = (x - mean) * gain + shift: with numbers; with vectors. */
    void (*affine)(const float *x, int64_t n, float mean, float gain, float shift, float *y);
    void (*affines)(const float *x, int64_t n, const float *mean, const float *gain,
                    const float *shift, float *y);
    /* y = (x - mean) * inv * scale + bias; a NULL scale is 1, a NULL bias 0. */
    void (*scale)(const float *x, int64_t n, float mean, float inv, const float *scale,
                  const float *bias, float *y);
    /* y = a + b + c; a NULL c is 0. */
    void (*add)(const float *a, const float *b, const float *c, int64_t n, float *y);
    /* Softmax; zeros for minus infinities only. */
    void (*softmax)(const float *x, int64_t n, float *y);
    /* The same of `width` columns side by side, rows being `step` apart. */
    void (*column_softmax)(const float *x, int64_t n, int64_t step, int64_t width, float *y);
    /* out[r] = row r of m[rows][cols] times v. */
    void (*products)(const float *m, const float *v, int64_t rows, int64_t cols, float *out);
    /* An LSTM's new cell c and state h from the two parts of its four gates, n elements each. */
    void (*lstm_step)(const float *a, const float *b, int64_t n, float *c, float *h);
    /* A GRU's gates z and reset from their two parts, and v = reset * h. */
    void (*gru_gates)(const float *a, const float *b, int64_t n, const float *h, float *z,
                      float *reset, float *v);
    /* Its new state h, from a + (b + bias) * reset; a NULL bias is 0, a NULL reset 1. */
    void (*gru_state)(const float *a, const float *b, const float *bias, const float *reset,
                      const float *z, int64_t n, float *h);
} zc_rows;

/* In all of them y may be an operand of the same length. */
const zc_rows *zc_rows_at(zc_simd level);
static inline const zc_rows *zc_rows_get(void)
{
    return zc_rows_at(zc_simd_level());
}

#endif
