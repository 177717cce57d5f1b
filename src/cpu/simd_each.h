/* Includes SIMD_SOURCE for every instruction set; see simd.h. */
#include "cpu/simd.h"

#define SIMD_INLINE static inline __attribute__((always_inline, unused)) SIMD_TARGET
#define SIMD_FUNC   static __attribute__((unused)) SIMD_TARGET

#define SIMD_FN(n) n##_base
#define SIMD_TARGET
#define SIMD_VL             4
#define SIMD_ROWS           4
#define SIMD_FMA(a, b, c)   ((a) * (b) + (c))
#define SIMD_MAX(a, b)      SIMD_FN(choose)((a) > (b), a, b)
#define SIMD_MIN(a, b)      SIMD_FN(choose)((a) < (b), a, b)
#define SIMD_BLEND(m, a, b) ((vf)(((vi)(a) & (m)) | ((vi)(b) & ~(m))))
#define SIMD_WHOLE(v)       __builtin_convertvector((v) + 12582912.0f - 12582912.0f, vi)
#define SIMD_BYTES(p)       ((vi){(p)[0], (p)[1], (p)[2], (p)[3]})
#define SIMD_PUT_BYTES(p, v)                                                                       \
    for (int i_ = 0; i_ < SIMD_VL; i_++)                                                           \
    (p)[i_] = (uint8_t)((v)[i_] < 0 ? 0 : (v)[i_] > 255 ? 255 : (v)[i_])
#define vf simd_f4
#define vi simd_i4
#include "cpu/simd_types.h"
#include SIMD_SOURCE
#include "cpu/simd_undef.h"

#if SIMD_X86
#define SIMD_FN(n)          n##_avx2
#define SIMD_TARGET         __attribute__((target("avx2,fma")))
#define SIMD_VL             8
#define SIMD_ROWS           6
#define SIMD_FMA(a, b, c)   ((vf)_mm256_fmadd_ps((__m256)(a), (__m256)(b), (__m256)(c)))
#define SIMD_MAX(a, b)      ((vf)_mm256_max_ps((__m256)(a), (__m256)(b)))
#define SIMD_MIN(a, b)      ((vf)_mm256_min_ps((__m256)(a), (__m256)(b)))
#define SIMD_BLEND(m, a, b) ((vf)_mm256_blendv_ps((__m256)(b), (__m256)(a), (__m256)(m)))
#define SIMD_WHOLE(v)       ((vi)_mm256_cvtps_epi32((__m256)(v)))
#define SIMD_BYTES(p)       ((vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64((const void *)(p))))
#define SIMD_PUT_BYTES(p, v)                                                                       \
    do {                                                                                           \
        const __m128i half_ = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)(v)),                \
                                              _mm256_extracti128_si256((__m256i)(v), 1));          \
        _mm_storel_epi64((void *)(p), _mm_packus_epi16(half_, half_));                             \
    } while (0)
#define vf simd_f8
#define vi simd_i8
#include "cpu/simd_types.h"
#include SIMD_SOURCE
#include "cpu/simd_undef.h"

#define SIMD_FN(n)        n##_avx512
#define SIMD_TARGET       __attribute__((target("avx512f,avx512vl,avx512dq,avx2,fma")))
#define SIMD_VL           16
#define SIMD_ROWS         8
#define SIMD_FMA(a, b, c) ((vf)_mm512_fmadd_ps((__m512)(a), (__m512)(b), (__m512)(c)))
#define SIMD_MAX(a, b)    ((vf)_mm512_max_ps((__m512)(a), (__m512)(b)))
#define SIMD_MIN(a, b)    ((vf)_mm512_min_ps((__m512)(a), (__m512)(b)))
#define SIMD_BLEND(m, a, b)                                                                        \
    ((vf)_mm512_mask_blend_ps(_mm512_movepi32_mask((__m512i)(m)), (__m512)(b), (__m512)(a)))
#define SIMD_WHOLE(v) ((vi)_mm512_cvtps_epi32((__m512)(v)))
#define SIMD_BYTES(p) ((vi)_mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(p))))
#define SIMD_PUT_BYTES(p, v)                                                                       \
    _mm_storeu_si128((void *)(p), _mm512_cvtusepi32_epi8(                                          \
                                      _mm512_max_epi32((__m512i)(v), _mm512_setzero_si512())))
#define vf simd_f16
#define vi simd_i16
#include "cpu/simd_types.h"
#include SIMD_SOURCE
#include "cpu/simd_undef.h"
#endif

#undef SIMD_INLINE
#undef SIMD_FUNC
#undef SIMD_SOURCE
