/* Sums of two products of bytes for one instruction set; see byte_map.c. */

/* flips: is anything signed? */
SIMD_INLINE void SIMD_FN(sum_vector)(sum s, const uint8_t *x, const uint8_t *y, uint8_t *to,
                                     bool flips)
{
    vi a = SIMD_BYTES(x), b = SIMD_BYTES(y);
    if (flips) {
        a ^= s.flip[0];
        b ^= s.flip[1];
    }
    const vf v = SIMD_FMA(SIMD_FN(splat)(s.factor[0]), __builtin_convertvector(a, vf),
                          SIMD_FMA(SIMD_FN(splat)(s.factor[1]), __builtin_convertvector(b, vf),
                                   SIMD_FN(splat)(s.addend)));
    vi q = SIMD_WHOLE(v);
    if (flips) {
        q &= q > 0;
        q = ((q & (q < 255)) | (255 & (q >= 255))) ^ s.flip[2];
    }
    SIMD_PUT_BYTES(to, q);
}

SIMD_INLINE void SIMD_FN(sum_vectors)(sum s, const uint8_t *x, const uint8_t *y, int64_t n,
                                      uint8_t *to, bool flips)
{
    uint8_t a[SIMD_VL] = {0}, b[SIMD_VL] = {0};
    int64_t i = 0;
    for (; i + SIMD_VL <= n; i += SIMD_VL) SIMD_FN(sum_vector)(s, x + i, y + i, to + i, flips);
    if (i == n) return;
    memcpy(a, x + i, (size_t)(n - i));
    memcpy(b, y + i, (size_t)(n - i));
    SIMD_FN(sum_vector)(s, a, b, a, flips);
    memcpy(to + i, a, (size_t)(n - i));
}

SIMD_FUNC void SIMD_FN(byte_sum)(sum s, const uint8_t *x, const uint8_t *y, int64_t n, uint8_t *to)
{
    if (s.flip[0] | s.flip[1] | s.flip[2])
        SIMD_FN(sum_vectors)(s, x, y, n, to, true);
    else
        SIMD_FN(sum_vectors)(s, x, y, n, to, false);
}
