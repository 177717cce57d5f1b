/* Vectors of AVX2, and what its products of bytes end in. */
#ifndef ZC_CPU_BYTES_FINISH_AVX2_H
#define ZC_CPU_BYTES_FINISH_AVX2_H

#include "cpu/bytes_finish.h"

#if SIMD_X86
#define ZC_AVX2 __attribute__((target("avx2,fma")))

enum { ZC_AVX2_LANES = 8, ZC_AVX2_VECTORS = ZC_BYTE_COLUMNS / ZC_AVX2_LANES };

ZC_INLINE ZC_AVX2 __m256i zc_avx2_load(const void *from)
{
    return _mm256_loadu_si256(from);
}

ZC_INLINE ZC_AVX2 __m256i zc_avx2_repeat(const void *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return _mm256_set1_epi32(four);
}

/* Asks for weights a page ahead of those that are read: where a page ends the processor does not go
 * on by itself. */
ZC_INLINE ZC_AVX2 void zc_avx2_ask_ahead(const void *w)
{
    enum { PAGE = 4096 };
    _mm_prefetch((const char *)w + PAGE, _MM_HINT_T0);
}

/* A sum and the products of two 16 bits a lane. */
ZC_INLINE ZC_AVX2 __m256i zc_avx2_add_products(__m256i sum, __m256i x, __m256i w)
{
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
}

/* What all results of a call have in common. */
typedef struct zc_avx2_range {
    __m256d low, high, none;
    __m128i zero;
    __m256i near_zero; /* of unsigned bytes, as 16 bits */
    __m128i flip;      /* what makes these the kind wanted */
} zc_avx2_range;

ZC_INLINE ZC_AVX2 zc_avx2_range zc_avx2_range_of(const zc_byte_scaling *s)
{
    const double least = (s->y_signed ? -128 : 0) - s->y_zero;
    return (zc_avx2_range){_mm256_set1_pd(least),
                           _mm256_set1_pd(least + 255),
                           _mm256_set1_pd(-s->y_zero),
                           _mm_set1_epi32(s->y_zero),
                           _mm256_set1_epi16((int16_t)-least),
                           _mm_set1_epi8((char)(s->y_signed ? 0x80 : 0))};
}

/* Clamped and rounded; NaN gives 0 less the zero point. */
ZC_INLINE ZC_AVX2 void zc_avx2_quantise4(const zc_avx2_range *r, const int32_t *sums,
                                         const double *scale, uint8_t *y)
{
    const __m256d q = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm_loadu_si128((const void *)sums)),
                                    _mm256_loadu_pd(scale));
    const __m256d c = _mm256_min_pd(_mm256_max_pd(q, r->low), r->high);
    const __m256d v = _mm256_blendv_pd(c, r->none, _mm256_cmp_pd(q, q, _CMP_UNORD_Q));
    const __m128i wide = _mm_add_epi32(_mm256_cvtpd_epi32(v), r->zero);
    const int four = _mm_cvtsi128_si32(_mm_shuffle_epi8(wide, _mm_set1_epi32(0x0c080400)));
    memcpy(y, &four, sizeof four);
}

static inline ZC_AVX2 void zc_avx2_quantise(const zc_byte_scaling *s, const zc_avx2_range *r,
                                            const int32_t *sums, int64_t column, int64_t n,
                                            uint8_t *y)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) zc_avx2_quantise4(r, sums + i, s->scale + column + i, y + i);
    zc_bytes_finish(s, sums + i, column + i, n - i, y + i);
}

/* 16 by f32, whose error is below ZC_BYTE_DOUBT for all that is not clamped; false: something lies
 * that near to the middle of two integers, or is no number. */
ZC_INLINE ZC_AVX2 bool zc_avx2_quantise16(const zc_avx2_range *r,
                                          const __m256i sums[ZC_AVX2_VECTORS], const float *scale,
                                          uint8_t *y)
{
    const __m256 most = _mm256_set1_ps(0x1p16f), edge = _mm256_set1_ps(0.5f - ZC_BYTE_DOUBT);
    __m256i whole[ZC_AVX2_VECTORS];
    __m256 doubt = _mm256_setzero_ps();
    SIMD_UNROLL
    for (int v = 0; v < ZC_AVX2_VECTORS; v++) {
        const __m256 q =
            _mm256_mul_ps(_mm256_cvtepi32_ps(sums[v]), _mm256_loadu_ps(scale + v * ZC_AVX2_LANES));
        const __m256 c = _mm256_min_ps(most, q); /* NaN stays */
        whole[v] = _mm256_cvtps_epi32(c);
        const __m256 off = _mm256_sub_ps(c, _mm256_cvtepi32_ps(whole[v]));
        const __m256 far = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), off);
        doubt = _mm256_or_ps(doubt, _mm256_cmp_ps(far, edge, _CMP_NLT_UQ));
    }
    const __m256i words = _mm256_adds_epi16(
        _mm256_permute4x64_epi64(_mm256_packs_epi32(whole[0], whole[1]), 0xd8), r->near_zero);
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128((void *)y, _mm_xor_si128(bytes, r->flip));
    return !_mm256_movemask_ps(doubt);
}

/* Those n of 16 columns that there are, from `column` on, to y. */
ZC_INLINE ZC_AVX2 void zc_avx2_finish(const zc_byte_scaling *s, const zc_avx2_range *r,
                                      const __m256i sums[ZC_AVX2_VECTORS], int64_t column,
                                      int64_t n, void *y)
{
    const float *near = s->near + column;
    int32_t kept[ZC_BYTE_COLUMNS];
    uint8_t bytes[ZC_BYTE_COLUMNS];
    if (s->scale && n == ZC_BYTE_COLUMNS && zc_avx2_quantise16(r, sums, near, y)) return;
    if (s->scale && n < ZC_BYTE_COLUMNS && zc_avx2_quantise16(r, sums, near, bytes)) {
        memcpy(y, bytes, (size_t)n);
        return;
    }
    SIMD_UNROLL
    for (int v = 0; v < ZC_AVX2_VECTORS; v++)
        _mm256_storeu_si256((void *)(kept + v * ZC_AVX2_LANES), sums[v]);
    if (s->scale)
        zc_avx2_quantise(s, r, kept, column, n, y);
    else
        memcpy(y, kept, (size_t)n * sizeof *kept);
}
#endif

#endif
