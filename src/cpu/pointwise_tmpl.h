/* Pointwise operations on blocks of floats for one instruction set: see pointwise_fast.c and
 * simd.h. n is a multiple of SIMD_VL; bools are 1 and 0. */

#define PW1(name, text)                                                                            \
    SIMD_FUNC void SIMD_FN(pw_##name)(float *d, const float *p, const float *q, const float *r,    \
                                      int64_t n)                                                   \
    {                                                                                              \
        (void)q;                                                                                   \
        (void)r;                                                                                   \
        for (int64_t i = 0; i < n; i += SIMD_VL) {                                                 \
            vf a = SIMD_FN(load)(p + i);                                                           \
            SIMD_FN(store)(d + i, text);                                                           \
        }                                                                                          \
    }
#define PW2(name, text)                                                                            \
    SIMD_FUNC void SIMD_FN(pw_##name)(float *d, const float *p, const float *q, const float *r,    \
                                      int64_t n)                                                   \
    {                                                                                              \
        (void)r;                                                                                   \
        for (int64_t i = 0; i < n; i += SIMD_VL) {                                                 \
            vf a = SIMD_FN(load)(p + i), b = SIMD_FN(load)(q + i);                                 \
            SIMD_FN(store)(d + i, text);                                                           \
        }                                                                                          \
    }
/* Functions of libm, element by element. */
#define PWS(name, text)                                                                            \
    SIMD_FUNC void SIMD_FN(pw_##name)(float *d, const float *p, const float *q, const float *r,    \
                                      int64_t n)                                                   \
    {                                                                                              \
        (void)q;                                                                                   \
        (void)r;                                                                                   \
        for (int64_t i = 0; i < n; i++) {                                                          \
            float a = p[i];                                                                        \
            d[i] = text;                                                                           \
        }                                                                                          \
    }
#define TRUTH(c) SIMD_FN(choose)((c), SIMD_FN(splat)(1), SIMD_FN(splat)(0))

#include "cpu/pointwise_ops.h"
/* Of numbers b, which no NaN is among. */
PW2(MAX_NUMBER, SIMD_MAX(b, a))
PW2(MIN_NUMBER, SIMD_MIN(b, a))

SIMD_FUNC void SIMD_FN(pw_SELECT)(float *d, const float *p, const float *q, const float *r,
                                  int64_t n)
{
    for (int64_t i = 0; i < n; i += SIMD_VL) {
        vf c = SIMD_FN(load)(p + i), a = SIMD_FN(load)(q + i), b = SIMD_FN(load)(r + i);
        SIMD_FN(store)(d + i, SIMD_FN(choose)(c != 0, a, b));
    }
}

SIMD_FUNC void SIMD_FN(pw_POW)(float *d, const float *p, const float *q, const float *r, int64_t n)
{
    (void)r;
    for (int64_t i = 0; i < n; i++) {
        float x = p[i], y = q[i];
        d[i] = y == 2 ? x * x : y == 3 ? x * x * x : y == 1 ? x : powf(x, y);
    }
}

SIMD_FUNC void SIMD_FN(pw_FMOD)(float *d, const float *p, const float *q, const float *r, int64_t n)
{
    (void)r;
    for (int64_t i = 0; i < n; i++) d[i] = fmodf(p[i], q[i]);
}

SIMD_FUNC void SIMD_FN(pw_MOD)(float *d, const float *p, const float *q, const float *r, int64_t n)
{
    (void)r;
    for (int64_t i = 0; i < n; i++) {
        float m = fmodf(p[i], q[i]);
        d[i] = m != 0 && (m < 0) != (q[i] < 0) ? m + q[i] : m;
    }
}

/* 32-bit integers, whose bits lie in the floats' places. */
#define PWI(name, op)                                                                              \
    SIMD_FUNC void SIMD_FN(pw_int_##name)(float *d, const float *p, const float *q,                \
                                          const float *r, int64_t n)                               \
    {                                                                                              \
        (void)r;                                                                                   \
        for (int64_t i = 0; i < n; i += SIMD_VL) {                                                 \
            SIMD_FN(words) a, b;                                                                   \
            memcpy(&a, p + i, sizeof a);                                                           \
            memcpy(&b, q + i, sizeof b);                                                           \
            a = a op b;                                                                            \
            memcpy(d + i, &a, sizeof a);                                                           \
        }                                                                                          \
    }
typedef uint32_t SIMD_FN(words) __attribute__((vector_size(4 * SIMD_VL)));
PWI(ADD, +)
PWI(SUB, -)
PWI(MUL, *)
/* Comparisons: 1.0 and 0.0. */
#define PWIC(name, op)                                                                             \
    SIMD_FUNC void SIMD_FN(pw_int_##name)(float *d, const float *p, const float *q,                \
                                          const float *r, int64_t n)                               \
    {                                                                                              \
        (void)r;                                                                                   \
        for (int64_t i = 0; i < n; i += SIMD_VL) {                                                 \
            vi a, b;                                                                               \
            memcpy(&a, p + i, sizeof a);                                                           \
            memcpy(&b, q + i, sizeof b);                                                           \
            SIMD_FN(store)(d + i, TRUTH(a op b));                                                  \
        }                                                                                          \
    }
PWIC(EQ, ==)
PWIC(NE, !=)
PWIC(LT, <)
PWIC(LE, <=)
PWIC(GT, >)
PWIC(GE, >=)
/* As a float. */
SIMD_FUNC void SIMD_FN(pw_int_CAST)(float *d, const float *p, const float *q, const float *r,
                                    int64_t n)
{
    (void)q;
    (void)r;
    for (int64_t i = 0; i < n; i += SIMD_VL) {
        vi a;
        memcpy(&a, p + i, sizeof a);
        SIMD_FN(store)(d + i, __builtin_convertvector(a, vf));
    }
}

/* What a block holds as a float already. */
SIMD_FUNC void SIMD_FN(pw_copy)(float *d, const float *p, const float *q, const float *r, int64_t n)
{
    (void)q;
    (void)r;
    for (int64_t i = 0; i < n; i += SIMD_VL) SIMD_FN(store)(d + i, SIMD_FN(load)(p + i));
}

/* Bytes, as the floats that they are. */
#define PWB(name, type, low, high)                                                                 \
    SIMD_FUNC void SIMD_FN(pw_cast_##name)(float *d, const float *p, const float *q,               \
                                           const float *r, int64_t n)                              \
    {                                                                                              \
        (void)q;                                                                                   \
        (void)r;                                                                                   \
        const vf least = SIMD_FN(splat)(low), most = SIMD_FN(splat)(high);                         \
        for (int64_t i = 0; i < n; i += SIMD_VL) {                                                 \
            const vf a = SIMD_FN(load)(p + i), c = SIMD_MIN(SIMD_MAX(a, least), most);             \
            const vi whole =                                                                       \
                __builtin_convertvector(SIMD_FN(choose)(a == a, c, SIMD_FN(splat)(0)), vi);        \
            SIMD_FN(store)(d + i, __builtin_convertvector(whole, vf));                             \
        }                                                                                          \
    }                                                                                              \
    SIMD_FUNC void SIMD_FN(pw_load_##name)(const type *x, int64_t n, float *d)                     \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) d[i] = (float)x[i];                                        \
    }                                                                                              \
    SIMD_FUNC void SIMD_FN(pw_store_##name)(const float *p, int64_t n, type *y)                    \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) y[i] = (type)(int32_t)p[i];                                \
    }
PWB(u8, uint8_t, 0, 255)
PWB(i8, int8_t, -128, 127)
#undef PWB
#undef PWIC
#undef PWI
#undef PW1
#undef PW2
#undef PWS
#undef TRUTH
