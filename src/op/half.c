#include "op/half.h"

static void widen(zc_dtype t, const uint16_t *x, float *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = t == ZC_F16 ? zc_f16_to_f32(x[i]) : zc_bf16_to_f32(x[i]);
}

static void narrow(zc_dtype t, const float *x, uint16_t *y, int64_t n)
{
    for (int64_t i = 0; i < n; i++) y[i] = t == ZC_F16 ? zc_f32_to_f16(x[i]) : zc_f32_to_bf16(x[i]);
}

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>

/* f16 by the machine's own conversions, which agree but for the bits of NaN: eight elements with
 * one are left to the loops above. Each returns how many elements it converted. */
enum { EACH = 8 };
#define F16C __attribute__((target("avx2,f16c")))

/* Not all compilers can ask for F16C, which every processor with AVX2 has. */
static bool has_f16c(void)
{
    return __builtin_cpu_supports("avx2");
}

F16C static int64_t widen_f16(const uint16_t *x, float *y, int64_t n)
{
    int64_t i = 0;
    for (; i + EACH <= n; i += EACH) {
        const __m128i h = _mm_loadu_si128((const __m128i *)(const void *)(x + i));
        const __m128i magnitude = _mm_and_si128(h, _mm_set1_epi16(0x7FFF));
        if (_mm_movemask_epi8(_mm_cmpgt_epi16(magnitude, _mm_set1_epi16(0x7C00))))
            widen(ZC_F16, x + i, y + i, EACH);
        else
            _mm256_storeu_ps(y + i, _mm256_cvtph_ps(h));
    }
    return i;
}

F16C static int64_t narrow_f16(const float *x, uint16_t *y, int64_t n)
{
    int64_t i = 0;
    for (; i + EACH <= n; i += EACH) {
        const __m256 v = _mm256_loadu_ps(x + i);
        if (_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q)))
            narrow(ZC_F16, x + i, y + i, EACH);
        else
            _mm_storeu_si128((__m128i *)(void *)(y + i),
                             _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
    }
    return i;
}
#else
static bool has_f16c(void)
{
    return false;
}

static int64_t widen_f16(const uint16_t *x, float *y, int64_t n)
{
    return 0;
}

static int64_t narrow_f16(const float *x, uint16_t *y, int64_t n)
{
    return 0;
}
#endif

void zc_floats_of_halves(zc_dtype t, const uint16_t *x, float *y, int64_t n)
{
    const int64_t done = t == ZC_F16 && has_f16c() ? widen_f16(x, y, n) : 0;
    widen(t, x + done, y + done, n - done);
}

void zc_halves_of_floats(zc_dtype t, const float *x, uint16_t *y, int64_t n)
{
    const int64_t done = t == ZC_F16 && has_f16c() ? narrow_f16(x, y, n) : 0;
    narrow(t, x + done, y + done, n - done);
}
