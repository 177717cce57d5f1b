/* Rows between f32 and bytes; see quant_fast.c. */

/* saturate(round(x / scale) + zero), in the lowest byte of each; NaN gives 0. */
SIMD_INLINE vi SIMD_FN(quantized)(vf x, float scale, int32_t zero, bool is_signed)
{
    const float none = (float)-zero, low = (is_signed ? -128.0f : 0.0f) + none;
    const vf magic = SIMD_FN(splat)(12582912.0f); /* 1.5 * 2^23: adding it rounds to an integer */
    vf q = x / scale;
    const vf c = SIMD_MIN(SIMD_MAX(q, SIMD_FN(splat)(low)), SIMD_FN(splat)(low + 255));
    q = SIMD_FN(choose)(q == q, c, SIMD_FN(splat)(none)) + magic;
    return (vi)q + zero;
}

SIMD_FUNC void SIMD_FN(quantize)(const float *x, int64_t n, float scale, int32_t zero,
                                 bool is_signed, uint8_t *y)
{
    int64_t i = 0;
    for (; i + SIMD_VL <= n; i += SIMD_VL) {
        const vi q = SIMD_FN(quantized)(SIMD_FN(load)(x + i), scale, zero, is_signed) & 255;
        SIMD_PUT_BYTES(y + i, q);
    }
    if (i == n) return;
    const vi q = SIMD_FN(quantized)(SIMD_FN(load_part)(x + i, n - i, 0), scale, zero, is_signed);
    for (int64_t p = i; p < n; p++) y[p] = (uint8_t)q[p - i];
}

/* Exact differences, one rounding. */
SIMD_FUNC void SIMD_FN(dequantize_u8)(const uint8_t *x, int64_t n, float scale, int32_t zero,
                                      float *y)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)((int32_t)x[i] - zero) * scale;
}

SIMD_FUNC void SIMD_FN(dequantize_i8)(const int8_t *x, int64_t n, float scale, int32_t zero,
                                      float *y)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)((int32_t)x[i] - zero) * scale;
}

/* Those of 32-bit integers go by double. */
SIMD_FUNC void SIMD_FN(dequantize_i32)(const int32_t *x, int64_t n, float scale, int32_t zero,
                                       float *y)
{
    for (int64_t i = 0; i < n; i++) y[i] = (float)(((double)x[i] - (double)zero) * (double)scale);
}

/* The least and the greatest of x and 0; NaN where there is one. */
SIMD_FUNC void SIMD_FN(range)(const float *x, int64_t n, float *low, float *high)
{
    vf least = {0}, most = {0};
    vi odd = {0};
    for (int64_t i = 0; i < n; i += SIMD_VL) {
        const vf v = n - i < SIMD_VL ? SIMD_FN(load_part)(x + i, n - i, 0) : SIMD_FN(load)(x + i);
        least = SIMD_MIN(v, least);
        most = SIMD_MAX(v, most);
        odd |= v != v;
    }
    *low = *high = 0;
    for (int i = 0; i < SIMD_VL; i++) {
        *low = odd[i] || least[i] < *low ? (odd[i] ? NAN : least[i]) : *low;
        *high = odd[i] || most[i] > *high ? (odd[i] ? NAN : most[i]) : *high;
    }
}

/* One multiplication and one addition, as they stand. */
SIMD_FUNC void SIMD_FN(real)(const int32_t *sums, int64_t n, int32_t zero, const int32_t *columns,
                             float by, const float *scale, const float *bias, float *y)
{
    for (int64_t i = 0; i < n; i++) {
        const uint32_t less = (uint32_t)zero * (uint32_t)columns[i];
        const float v = (float)(int32_t)((uint32_t)sums[i] - less) * (by * scale[i]);
        y[i] = bias ? v + bias[i] : v;
    }
}
