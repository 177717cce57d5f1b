/* Softmax, normalisation and products of rows of f32: a template over instruction sets (simd.h). */

/* Elements that are added up in f32 before the sum goes on in double. */
#define CHUNK 1024

/* ---- reductions ---- */

SIMD_INLINE vf SIMD_FN(tail)(const float *x, int64_t n, float fill)
{
    return n >= SIMD_VL ? SIMD_FN(load)(x) : SIMD_FN(load_part)(x, n, fill);
}

SIMD_INLINE double SIMD_FN(row_sum)(const float *x, int64_t n)
{
    double sum = 0;
    for (int64_t c = 0; c < n; c += CHUNK) {
        int64_t end = n - c < CHUNK ? n : c + CHUNK, i = c;
        vf a = {0}, b = {0};
        for (; i + 2 * SIMD_VL <= end; i += 2 * SIMD_VL) {
            a = a + SIMD_FN(load)(x + i);
            b = b + SIMD_FN(load)(x + i + SIMD_VL);
        }
        for (; i < end; i += SIMD_VL) a = a + SIMD_FN(tail)(x + i, end - i, 0);
        sum += (double)SIMD_FN(sum)(a + b);
    }
    return sum;
}

/* Sum of (x - mean)^2. */
SIMD_INLINE double SIMD_FN(row_squares)(const float *x, int64_t n, float mean)
{
    double sum = 0;
    for (int64_t c = 0; c < n; c += CHUNK) {
        int64_t end = n - c < CHUNK ? n : c + CHUNK, i = c;
        vf a = {0}, b = {0};
        for (; i + 2 * SIMD_VL <= end; i += 2 * SIMD_VL) {
            vf u = SIMD_FN(load)(x + i) - mean, v = SIMD_FN(load)(x + i + SIMD_VL) - mean;
            a = a + u * u;
            b = b + v * v;
        }
        for (; i < end; i += SIMD_VL) {
            vf u = SIMD_FN(tail)(x + i, end - i, mean) - mean;
            a = a + u * u;
        }
        sum += (double)SIMD_FN(sum)(a + b);
    }
    return sum;
}

SIMD_FUNC void SIMD_FN(row_moments)(const float *x, int64_t n, bool rms, double *mean, double *var)
{
    *mean = rms ? 0 : SIMD_FN(row_sum)(x, n) / (double)n;
    *var = SIMD_FN(row_squares)(x, n, (float)*mean) / (double)n;
}

/* ---- element by element ---- */

/* y = (x - mean) * gain + shift */
SIMD_FUNC void SIMD_FN(row_affine)(const float *x, int64_t n, float mean, float gain, float shift,
                                   float *y)
{
    int64_t i = 0;
    for (; i + SIMD_VL <= n; i += SIMD_VL)
        SIMD_FN(store)(y + i, (SIMD_FN(load)(x + i) - mean) * gain + shift);
    for (; i < n; i++) y[i] = (x[i] - mean) * gain + shift;
}

/* y = (x - mean) * inv * scale + bias, by element; a NULL scale is 1, a NULL bias 0. */
SIMD_FUNC void SIMD_FN(row_scale)(const float *x, int64_t n, float mean, float inv,
                                  const float *scale, const float *bias, float *y)
{
    int64_t i = 0;
    for (; i + SIMD_VL <= n; i += SIMD_VL) {
        vf v = (SIMD_FN(load)(x + i) - mean) * inv;
        if (scale) v = v * SIMD_FN(load)(scale + i);
        if (bias) v = v + SIMD_FN(load)(bias + i);
        SIMD_FN(store)(y + i, v);
    }
    for (; i < n; i++) y[i] = (x[i] - mean) * inv * (scale ? scale[i] : 1) + (bias ? bias[i] : 0);
}

/* y = (x - mean) * gain + shift, each with its own parameters. */
SIMD_FUNC void SIMD_FN(row_affines)(const float *x, int64_t n, const float *mean, const float *gain,
                                    const float *shift, float *y)
{
    int64_t i = 0;
    for (; i + SIMD_VL <= n; i += SIMD_VL) {
        vf v = (SIMD_FN(load)(x + i) - SIMD_FN(load)(mean + i)) * SIMD_FN(load)(gain + i);
        SIMD_FN(store)(y + i, v + SIMD_FN(load)(shift + i));
    }
    for (; i < n; i++) y[i] = (x[i] - mean[i]) * gain[i] + shift[i];
}

/* y = a + b + c; a NULL c is 0. */
SIMD_FUNC void SIMD_FN(row_add)(const float *a, const float *b, const float *c, int64_t n, float *y)
{
    int64_t i = 0;
    for (; i + SIMD_VL <= n; i += SIMD_VL) {
        vf v = SIMD_FN(load)(a + i) + SIMD_FN(load)(b + i);
        if (c) v = v + SIMD_FN(load)(c + i);
        SIMD_FN(store)(y + i, v);
    }
    for (; i < n; i++) y[i] = a[i] + b[i] + (c ? c[i] : 0);
}

/* ---- softmax ---- */

SIMD_INLINE float SIMD_FN(row_top)(const float *x, int64_t n)
{
    const float lowest = -(float)INFINITY;
    vf a = SIMD_FN(splat)(lowest), b = a;
    int64_t i = 0;
    for (; i + 2 * SIMD_VL <= n; i += 2 * SIMD_VL) {
        a = SIMD_MAX(SIMD_FN(load)(x + i), a);
        b = SIMD_MAX(SIMD_FN(load)(x + i + SIMD_VL), b);
    }
    for (; i < n; i += SIMD_VL) a = SIMD_MAX(SIMD_FN(tail)(x + i, n - i, lowest), a);
    float top = SIMD_FN(top)(SIMD_MAX(a, b));
    return top == lowest ? 0 : top;
}

/* Of a row of minus infinities: zeros. */
SIMD_FUNC void SIMD_FN(row_softmax)(const float *x, int64_t n, float *y)
{
    float top = SIMD_FN(row_top)(x, n);
    double sum = 0;
    for (int64_t c = 0; c < n; c += CHUNK) {
        int64_t end = n - c < CHUNK ? n : c + CHUNK, i = c;
        vf a = {0};
        for (; i + SIMD_VL <= end; i += SIMD_VL) {
            vf e = SIMD_FN(vm_exp)(SIMD_FN(load)(x + i) - top);
            SIMD_FN(store)(y + i, e);
            a = a + e;
        }
        if (i < end) {
            vf e = SIMD_FN(vm_exp)(SIMD_FN(load_part)(x + i, end - i, -(float)INFINITY) - top);
            SIMD_FN(store_part)(y + i, e, end - i);
            a = a + e;
        }
        sum += (double)SIMD_FN(sum)(a);
    }
    SIMD_FN(row_affine)(y, n, 0, sum == 0 ? 0 : (float)(1 / sum), 0, y);
}

/* The same of `width` columns side by side, rows being `step` apart; width at most SIMD_VL. */
SIMD_FUNC void SIMD_FN(column_softmax)(const float *x, int64_t n, int64_t step, int64_t width,
                                       float *y)
{
    const float lowest = -(float)INFINITY;
    vf top = SIMD_FN(splat)(lowest), sum = {0};
    for (int64_t i = 0; i < n; i++) top = SIMD_MAX(SIMD_FN(tail)(x + i * step, width, 0), top);
    top = SIMD_FN(choose)(top == lowest, (vf){0}, top);
    for (int64_t i = 0; i < n; i++) {
        vf e = SIMD_FN(vm_exp)(SIMD_FN(tail)(x + i * step, width, 0) - top);
        SIMD_FN(store_part)(y + i * step, e, width);
        sum = sum + e;
    }
    vf by = SIMD_FN(choose)(sum == 0, (vf){0}, 1 / sum);
    for (int64_t i = 0; i < n; i++)
        SIMD_FN(store_part)(y + i * step, SIMD_FN(tail)(y + i * step, width, 0) * by, width);
}

/* ---- products ---- */

SIMD_INLINE void SIMD_FN(some_products)(const float *m, const float *v, int64_t rows, int64_t cols,
                                        float *out)
{
    vf a[4] = {{0}}, b[4] = {{0}};
    int64_t i = 0;
    for (; i + 2 * SIMD_VL <= cols; i += 2 * SIMD_VL) {
        vf p = SIMD_FN(load)(v + i), q = SIMD_FN(load)(v + i + SIMD_VL);
        SIMD_UNROLL
        for (int64_t r = 0; r < rows; r++) {
            const float *x = m + r * cols + i;
            a[r] = SIMD_FMA(SIMD_FN(load)(x), p, a[r]);
            b[r] = SIMD_FMA(SIMD_FN(load)(x + SIMD_VL), q, b[r]);
        }
    }
    for (; i < cols; i += SIMD_VL) {
        vf p = SIMD_FN(tail)(v + i, cols - i, 0);
        SIMD_UNROLL
        for (int64_t r = 0; r < rows; r++)
            a[r] = SIMD_FMA(SIMD_FN(tail)(m + r * cols + i, cols - i, 0), p, a[r]);
    }
    SIMD_UNROLL
    for (int64_t r = 0; r < rows; r++) out[r] = SIMD_FN(sum)(a[r] + b[r]);
}

/* out[r] = row r of m[rows][cols] times v. */
SIMD_FUNC void SIMD_FN(row_products)(const float *m, const float *v, int64_t rows, int64_t cols,
                                     float *out)
{
    int64_t r = 0;
    for (; r + 4 <= rows; r += 4) SIMD_FN(some_products)(m + r * cols, v, 4, cols, out + r);
    for (; r < rows; r++) SIMD_FN(some_products)(m + r * cols, v, 1, cols, out + r);
}

/* ---- steps of recurrent layers ---- */

SIMD_INLINE vf SIMD_FN(gate_sum)(const float *a, const float *b, int64_t n)
{
    return SIMD_FN(tail)(a, n, 0) + SIMD_FN(tail)(b, n, 0);
}

SIMD_INLINE void SIMD_FN(put)(float *p, vf v, int64_t n)
{
    if (n >= SIMD_VL)
        SIMD_FN(store)(p, v);
    else
        SIMD_FN(store_part)(p, v, n);
}

SIMD_FUNC void SIMD_FN(lstm_step)(const float *a, const float *b, int64_t n, float *c, float *h)
{
    for (int64_t i = 0; i < n; i += SIMD_VL) {
        vf in = SIMD_FN(vm_sigmoid)(SIMD_FN(gate_sum)(a + i, b + i, n - i));
        vf out = SIMD_FN(vm_sigmoid)(SIMD_FN(gate_sum)(a + n + i, b + n + i, n - i));
        vf forget = SIMD_FN(vm_sigmoid)(SIMD_FN(gate_sum)(a + 2 * n + i, b + 2 * n + i, n - i));
        vf fresh = SIMD_FN(vm_tanh)(SIMD_FN(gate_sum)(a + 3 * n + i, b + 3 * n + i, n - i));
        vf cell = forget * SIMD_FN(tail)(c + i, n - i, 0) + in * fresh;
        SIMD_FN(put)(c + i, cell, n - i);
        SIMD_FN(put)(h + i, out * SIMD_FN(vm_tanh)(cell), n - i);
    }
}

SIMD_FUNC void SIMD_FN(gru_gates)(const float *a, const float *b, int64_t n, const float *h,
                                  float *z, float *reset, float *v)
{
    for (int64_t i = 0; i < n; i += SIMD_VL) {
        vf r = SIMD_FN(vm_sigmoid)(SIMD_FN(gate_sum)(a + n + i, b + n + i, n - i));
        SIMD_FN(put)(z + i, SIMD_FN(vm_sigmoid)(SIMD_FN(gate_sum)(a + i, b + i, n - i)), n - i);
        SIMD_FN(put)(reset + i, r, n - i);
        SIMD_FN(put)(v + i, r * SIMD_FN(tail)(h + i, n - i, 0), n - i);
    }
}

SIMD_FUNC void SIMD_FN(gru_state)(const float *a, const float *b, const float *bias,
                                  const float *reset, const float *z, int64_t n, float *h)
{
    for (int64_t i = 0; i < n; i += SIMD_VL) {
        vf rec = SIMD_FN(tail)(b + i, n - i, 0);
        if (bias) rec = rec + SIMD_FN(tail)(bias + i, n - i, 0);
        if (reset) rec = rec * SIMD_FN(tail)(reset + i, n - i, 0);
        vf fresh = SIMD_FN(vm_tanh)(SIMD_FN(tail)(a + i, n - i, 0) + rec);
        vf keep = SIMD_FN(tail)(z + i, n - i, 0), was = SIMD_FN(tail)(h + i, n - i, 0);
        SIMD_FN(put)(h + i, (1.0f - keep) * fresh + keep * was, n - i);
    }
}

#undef CHUNK
