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
#define vf                  simd_f4
#define vi                  simd_i4
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
#define vf                  simd_f8
#define vi                  simd_i8
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
#define vf simd_f16
#define vi simd_i16
#include "cpu/simd_types.h"
#include SIMD_SOURCE
#include "cpu/simd_undef.h"
#endif

#undef SIMD_INLINE
#undef SIMD_FUNC
#undef SIMD_SOURCE
