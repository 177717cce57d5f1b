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
    return (vf)(((vi)a & mask) | ((vi)b & ~mask));
}

/* The greater; b where one is NaN. */
SIMD_INLINE vf SIMD_FN(max)(vf a, vf b)
{
    return SIMD_FN(choose)(a > b, a, b);
}

/* Sum of the elements, always in the same order. */
SIMD_INLINE float SIMD_FN(sum)(vf v)
{
    float t[SIMD_VL];
    SIMD_FN(store)(t, v);
    SIMD_UNROLL
    for (int w = SIMD_VL / 2; w; w /= 2)
        for (int i = 0; i < w; i++) t[i] += t[i + w];
    return t[0];
}

SIMD_INLINE float SIMD_FN(top)(vf v)
{
    float t[SIMD_VL];
    SIMD_FN(store)(t, v);
    for (int i = 1; i < SIMD_VL; i++) t[0] = t[i] > t[0] ? t[i] : t[0];
    return t[0];
}

#define VM_F       vf
#define VM_I       vi
#define VM_MASK(c) (c)
#define VM_FN(n)   SIMD_FN(vm_##n)
#define VM_INLINE  SIMD_INLINE
#include "cpu/vmath_tmpl.h"
#undef VM_F
#undef VM_I
#undef VM_MASK
#undef VM_FN
#undef VM_INLINE
