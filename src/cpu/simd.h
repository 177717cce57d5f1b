/* Vector code for several instruction sets from one text.
 *
 * A source file sets SIMD_SOURCE to a header of functions and includes simd_each.h, which includes
 * that header once for each set, with
 *   SIMD_FN(name)     the function's name for this set
 *   SIMD_FUNC         what stands before a function; SIMD_INLINE: before one to be inlined
 *   SIMD_VL           floats in a vector
 *   SIMD_ROWS         rows of a register tile two vectors wide
 *   SIMD_FMA(a,b,c)   a*b+c, in one rounding where the set has it
 *   SIMD_MAX(a,b)     the greater; b where one is NaN; SIMD_MIN(a,b): the smaller
 *   SIMD_BLEND(m,a,b) a where m, the result of a comparison, holds, else b
 *   SIMD_WHOLE(v)     the nearest integers, ties to even, below 2^22
 *   SIMD_BYTES(p)     SIMD_VL unsigned bytes from p on as integers
 *   SIMD_PUT_BYTES(p,v) integers as such bytes, saturated
 *   vf, vi            vectors of floats and of 32-bit integers: + - * / and comparisons work on
 *                     elements, a scalar operand is repeated
 * SIMD_PICK(level, name) is the function for a level. */
#ifndef ZC_CPU_SIMD_H
#define ZC_CPU_SIMD_H

#include <stdint.h>
#include <string.h>

#if defined(__x86_64__)
#define SIMD_X86 1
#include <immintrin.h>
#else
#define SIMD_X86 0
#endif

typedef float simd_f4 __attribute__((vector_size(16)));
typedef float simd_f8 __attribute__((vector_size(32)));
typedef float simd_f16 __attribute__((vector_size(64)));
typedef int32_t simd_i4 __attribute__((vector_size(16)));
typedef int32_t simd_i8 __attribute__((vector_size(32)));
typedef int32_t simd_i16 __attribute__((vector_size(64)));

typedef enum zc_simd {
    ZC_SIMD_BASE, /* what every machine of the architecture has */
    ZC_SIMD_AVX2,
    ZC_SIMD_AVX512,
    ZC_SIMD_LEVELS
} zc_simd;

/* The best level of this machine. */
static inline zc_simd zc_simd_level(void)
{
#if SIMD_X86
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
        __builtin_cpu_supports("avx512dq"))
        return ZC_SIMD_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return ZC_SIMD_AVX2;
#endif
    return ZC_SIMD_BASE;
}

#if SIMD_X86
#define SIMD_PICK(level, name)                                                                     \
    ((level) == ZC_SIMD_AVX512 ? name##_avx512                                                     \
     : (level) == ZC_SIMD_AVX2 ? name##_avx2                                                       \
                               : name##_base)
#else
#define SIMD_PICK(level, name) ((void)(level), name##_base)
#endif

/* Before a loop whose bounds are constants once the function is inlined. */
#ifdef __clang__
#define SIMD_UNROLL _Pragma("clang loop unroll(full)")
#else
#define SIMD_UNROLL _Pragma("GCC unroll 16")
#endif

#endif
