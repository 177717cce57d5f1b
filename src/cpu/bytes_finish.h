/* What the products of bytes end in, compiled into each of them for its instruction set. */
#ifndef ZC_CPU_BYTES_FINISH_H
#define ZC_CPU_BYTES_FINISH_H

#include "cpu/bytes.h"
#include "cpu/simd.h"

#define ZC_INLINE static inline __attribute__((always_inline))
#if SIMD_X86
#ifdef __clang__
#define ZC_VNNI_WIDTH "" /* clang knows it as a compiler option alone */
#else
#define ZC_VNNI_WIDTH ",prefer-vector-width=512"
#endif
#define ZC_VNNI                                                                                    \
    __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,avx2,"                    \
                          "fma" ZC_VNNI_WIDTH)))
#endif

static inline bool zc_has_vnni(void)
{
#if SIMD_X86
    return __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
#else
    return false;
#endif
}

/* Does bytes_avx2.c multiply them? It has packed weights of its own. */
static inline bool zc_bytes_by_avx2(void)
{
    return !zc_has_vnni() && zc_simd_level() >= ZC_SIMD_AVX2;
}

/* Of a sum as f32, times a scale as f32: three roundings of numbers that are below 256 once they
 * are clamped, 3 * 2^-24 * 256 at most. */
#define ZC_BYTE_DOUBT 0x1p-14f

ZC_INLINE void zc_bytes_quantise(const int32_t *sums, const double *scale, int64_t n, int y_zero,
                                 bool is_signed, uint8_t *y)
{
    const double low = (is_signed ? -128 : 0) - y_zero, high = low + 255, none = -y_zero;
    const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
    for (int64_t i = 0; i < n; i++) {
        double q = (double)sums[i] * scale[i];
        q = q < low ? low : q > high ? high : q == q ? q : none;
        y[i] = (uint8_t)(int32_t)((q + magic) - magic + y_zero);
    }
}

ZC_INLINE void zc_bytes_finish(const zc_byte_scaling *s, const int32_t *sums, int64_t from,
                               int64_t n, void *y)
{
    if (s->scale)
        zc_bytes_quantise(sums, s->scale + from, n, s->y_zero, s->y_signed, y);
    else
        memcpy(y, sums, (size_t)n * sizeof *sums);
}

/* Of a result. */
static inline size_t zc_bytes_size(const zc_byte_product *p)
{
    return p->s.scale ? 1 : sizeof(int32_t);
}

/* What the right operand's zero point takes off all sums of a row. */
ZC_INLINE int32_t zc_bytes_part(const zc_byte_product *p, const uint8_t *a)
{
    uint32_t sum = 0;
    if (!p->b_zero) return 0;
    for (int64_t i = 0; i < p->k; i++) sum += a[i];
    return (int32_t)((uint32_t)p->b_zero * sum);
}

#if SIMD_X86
/* What all results of a call have in common. */
typedef struct zc_byte_range {
    __m512 low, high;
    __m512i zero;
} zc_byte_range;

ZC_INLINE ZC_VNNI zc_byte_range zc_bytes_range(const zc_byte_scaling *s)
{
    const float least = (float)((s->y_signed ? -128 : 0) - s->y_zero);
    return (zc_byte_range){_mm512_set1_ps(least), _mm512_set1_ps(least + 255),
                           _mm512_set1_epi32(s->y_zero)};
}

/* Scales of those of 16 columns that the mask has, from `column` on, in f32. */
ZC_INLINE ZC_VNNI __m512 zc_bytes_scales16(const zc_byte_scaling *s, int64_t column, __mmask16 m)
{
    if (!s->scale) return _mm512_setzero_ps();
    const double *scale = s->scale + column;
    const __m256 a = _mm512_cvtpd_ps(_mm512_maskz_loadu_pd((__mmask8)m, scale));
    const __m256 b = _mm512_cvtpd_ps(_mm512_maskz_loadu_pd((__mmask8)(m >> 8), scale + 8));
    return _mm512_insertf32x8(_mm512_castps256_ps512(a), b, 1);
}

/* Eight of them, clamped and rounded; NaN gives 0 less the zero point. */
ZC_INLINE ZC_VNNI __m256i zc_bytes_round8(const zc_byte_scaling *s, __m256i sums, __m512d scale)
{
    const double least = (s->y_signed ? -128 : 0) - s->y_zero;
    const __m512d q = _mm512_mul_pd(_mm512_cvtepi32_pd(sums), scale);
    const __m512d c =
        _mm512_min_pd(_mm512_max_pd(q, _mm512_set1_pd(least)), _mm512_set1_pd(least + 255));
    return _mm512_cvtpd_epi32(
        _mm512_mask_mov_pd(c, _mm512_cmp_pd_mask(q, q, _CMP_UNORD_Q), _mm512_set1_pd(-s->y_zero)));
}

/* 16 by double. Seldom called: see zc_bytes_finish16. */
__attribute__((noinline, cold, unused)) static ZC_VNNI __m512i
zc_bytes_round16(const zc_byte_scaling *s, __m512i sums, int64_t column, __mmask16 m)
{
    const double *scale = s->scale + column;
    const __m512d a = _mm512_maskz_loadu_pd((__mmask8)m, scale);
    const __m512d b = _mm512_maskz_loadu_pd((__mmask8)(m >> 8), scale + 8);
    const __m256i u = zc_bytes_round8(s, _mm512_castsi512_si256(sums), a);
    const __m256i v = zc_bytes_round8(s, _mm512_extracti64x4_epi64(sums, 1), b);
    return _mm512_inserti64x4(_mm512_castsi256_si512(u), v, 1);
}

/* Those of 16 columns that the mask has, from `column` on, to y; by f32, unless something lies
 * within its error of the middle of two integers, or is no number. */
ZC_INLINE ZC_VNNI void zc_bytes_finish16(const zc_byte_scaling *s, const zc_byte_range *r,
                                         __m512 scale, __m512i sums, int64_t column, __mmask16 m,
                                         void *y)
{
    if (!s->scale) {
        _mm512_mask_storeu_epi32(y, m, sums);
        return;
    }
    const __m512 q = _mm512_mul_ps(_mm512_cvtepi32_ps(sums), scale);
    const __m512 c = _mm512_min_ps(r->high, _mm512_max_ps(r->low, q)); /* NaN stays */
    __m512i whole = _mm512_cvtps_epi32(c);
    const __m512 far = _mm512_abs_ps(_mm512_sub_ps(c, _mm512_cvtepi32_ps(whole)));
    if (_mm512_mask_cmp_ps_mask(m, far, _mm512_set1_ps(0.5f - ZC_BYTE_DOUBT), _CMP_NLT_UQ))
        whole = zc_bytes_round16(s, sums, column, m);
    _mm512_mask_cvtepi32_storeu_epi8(y, m, _mm512_add_epi32(whole, r->zero));
}

/* The first n of 16, if there are so many. */
static inline uint16_t zc_bytes_mask(int64_t n)
{
    return n >= 16 ? 0xffff : n <= 0 ? 0 : (uint16_t)((1U << n) - 1);
}
#endif

#endif
