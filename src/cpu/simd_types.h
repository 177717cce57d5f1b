/* Functions on vectors of one instruction set, for the templates that simd_each.h includes. */

SIMD_INLINE vf SIMD_FN(load)(const float *p)
{
    vf v;
    memcpy(&v, p, sizeof v);
    return v;
}

SIMD_INLINE void SIMD_FN(store)(float *p, vf v)
{
    memcpy(p, &v, sizeof v);
}

/* n elements, n < SIMD_VL; the others are `fill`. */
SIMD_INLINE vf SIMD_FN(load_part)(const float *p, int64_t n, float fill)
{
    float t[SIMD_VL];
    for (int i = 0; i < SIMD_VL; i++) t[i] = i < n ? p[i] : fill;
    return SIMD_FN(load)(t);
}

SIMD_INLINE void SIMD_FN(store_part)(float *p, vf v, int64_t n)
{
    float t[SIMD_VL];
    SIMD_FN(store)(t, v);
    for (int64_t i = 0; i < n; i++) p[i] = t[i];
}

SIMD_INLINE vf SIMD_FN(splat)(float x)
{
    return x - (vf){0};
}

/* mask ? a : b; mask is the result of a comparison. */
SIMD_INLINE vf SIMD_FN(choose)(vi mask, vf a, vf b)
{
    return SIMD_BLEND(mask, a, b);
}

/* The elements in pairs, folded to four, by `step` on vectors of any size. */
#define SIMD_FOLD(v, step)                                                                         \
    float t[SIMD_VL];                                                                              \
    SIMD_FN(store)(t, v);                                                                          \
    simd_f4 q;                                                                                     \
    memcpy(&q, t, sizeof q);                                                                       \
    SIMD_UNROLL                                                                                    \
    for (int i = 4; i < SIMD_VL; i += 4) {                                                         \
        simd_f4 other;                                                                             \
        memcpy(&other, t + i, sizeof other);                                                       \
        q = step(q, other);                                                                        \
    }

/* Sum of the elements, always in the same order. */
SIMD_INLINE float SIMD_FN(sum)(vf v)
{
#define SIMD_STEP(a, b) ((a) + (b))
    SIMD_FOLD(v, SIMD_STEP)
#undef SIMD_STEP
    return (q[0] + q[1]) + (q[2] + q[3]);
}

/* The greatest element; NaN may get lost. */
SIMD_INLINE float SIMD_FN(top)(vf v)
{
#define SIMD_STEP(a, b) (simd_f4)(((simd_i4)(a) & ((a) > (b))) | ((simd_i4)(b) & ~((a) > (b))))
    SIMD_FOLD(v, SIMD_STEP)
#undef SIMD_STEP
    float a = q[0] > q[1] ? q[0] : q[1], b = q[2] > q[3] ? q[2] : q[3];
    return a > b ? a : b;
}
#undef SIMD_FOLD

#define VM_F         vf
#define VM_I         vi
#define VM_MASK(c)   (c)
#define VM_MAX(a, b) SIMD_MAX(SIMD_FN(splat)(a), b)
#define VM_MIN(a, b) SIMD_MIN(SIMD_FN(splat)(a), b)
#define VM_FN(n)     SIMD_FN(vm_##n)
#define VM_INLINE    SIMD_INLINE
#include "cpu/vmath_tmpl.h"
#undef VM_F
#undef VM_I
#undef VM_MASK
#undef VM_MAX
#undef VM_MIN
#undef VM_FN
#undef VM_INLINE
