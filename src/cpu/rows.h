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
    void (*products)(const float *m, const float *v, int64_t rows, int64_t cols, double *out);
} zc_rows;

/* In all of them y may be an operand of the same length. */
const zc_rows *zc_rows_at(zc_simd level);
static inline const zc_rows *zc_rows_get(void)
{
    return zc_rows_at(zc_simd_level());
}

#endif
