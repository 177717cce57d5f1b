// What every kernel shares: element types, conversions, the functions of scalar expressions, fault reports.
//
// A storage type T has a compute type zc_compute<T>: f32 for floats up to 32 bits, f64, i32 and u32 for integers up
// to 32 bits, i64, u64, bool. zc_get(x) brings an element to its compute type, zc_put<T>(v) brings a compute value
// back: floats with one rounding, integers by their low bits.
#pragma once
#include "zc/ptx.cuh"

#define ZC_DEV static __device__ __forceinline__

struct f16 {
    u16 v;
};
struct bf16 {
    u16 v;
};
struct b8 {
    u8 v;
};
struct f8e8m0 {
    u8 v;
};

// A float of 8 bits: codes are without the sign; MAX is the largest finite one, INFINITE what overflow gives, NOT the
// NaN. With UNSIGNED_ZERO the code of -0 is the only NaN, and overflow goes there.
template <int EXP, int MAN, int BIAS, int MAX, int INFINITE, int NOT, int UNSIGNED_ZERO>
struct zc_minifloat {
    u8 v;
};
typedef zc_minifloat<4, 3, 7, 0x7E, 0x7F, 0x7F, 0> f8e4m3fn;
typedef zc_minifloat<4, 3, 8, 0x7F, 0x80, 0x80, 1> f8e4m3fnuz;
typedef zc_minifloat<5, 2, 15, 0x7B, 0x7C, 0x7E, 0> f8e5m2;
typedef zc_minifloat<5, 2, 16, 0x7F, 0x80, 0x80, 1> f8e5m2fnuz;

// ---- constants and classes ----

ZC_DEV f32 zc_inf32() { return zc_float(0x7F800000u); }
ZC_DEV f32 zc_nan32() { return zc_float(0x7FC00000u); }
ZC_DEV f64 zc_inf64() { return zc_double(0x7FF0000000000000ull); }
ZC_DEV f64 zc_nan64() { return zc_double(0x7FF8000000000000ull); }
ZC_DEV bool zc_isnan(f32 x) { return x != x; }
ZC_DEV bool zc_isnan(f64 x) { return x != x; }
ZC_DEV bool zc_isinf(f32 x) { return (zc_bits(x) & 0x7FFFFFFFu) == 0x7F800000u; }
ZC_DEV bool zc_isinf(f64 x) { return (zc_bits64(x) & 0x7FFFFFFFFFFFFFFFull) == 0x7FF0000000000000ull; }

template <class T> struct zc_traits;
#define ZC_TRAITS(T, C, FLOAT, SIGNED)                                                                                 \
    template <> struct zc_traits<T> {                                                                                  \
        typedef C compute;                                                                                             \
        static constexpr bool is_float = FLOAT, is_signed = SIGNED;                                                    \
    };
ZC_TRAITS(f32, f32, true, true)
ZC_TRAITS(f64, f64, true, true)
ZC_TRAITS(f16, f32, true, true)
ZC_TRAITS(bf16, f32, true, true)
ZC_TRAITS(f8e4m3fn, f32, true, true)
ZC_TRAITS(f8e4m3fnuz, f32, true, true)
ZC_TRAITS(f8e5m2, f32, true, true)
ZC_TRAITS(f8e5m2fnuz, f32, true, true)
ZC_TRAITS(f8e8m0, f32, true, false)
ZC_TRAITS(i8, i32, false, true)
ZC_TRAITS(i16, i32, false, true)
ZC_TRAITS(i32, i32, false, true)
ZC_TRAITS(i64, i64, false, true)
ZC_TRAITS(u8, u32, false, false)
ZC_TRAITS(u16, u32, false, false)
ZC_TRAITS(u32, u32, false, false)
ZC_TRAITS(u64, u64, false, false)
ZC_TRAITS(b8, bool, false, false)
template <class T> using zc_compute = typename zc_traits<T>::compute;

// ---- 8-bit floats ----

template <int EXP, int MAN, int BIAS, int MAX, int INFINITE, int NOT, int UNSIGNED_ZERO>
ZC_DEV f32 zc_get(zc_minifloat<EXP, MAN, BIAS, MAX, INFINITE, NOT, UNSIGNED_ZERO> x) {
    const u32 code = x.v & 0x7Fu, sign = (u32)(x.v >> 7) << 31;
    if (UNSIGNED_ZERO && sign && code == 0) return zc_nan32();
    if (code > MAX) return zc_float(sign | (INFINITE != NOT && code == INFINITE ? 0x7F800000u : 0x7FC00000u));
    const u32 man = code & ((1u << MAN) - 1u), exponent = code >> MAN;
    if (exponent) return zc_float(sign | ((exponent + 127u - BIAS) << 23) | (man << (23 - MAN)));
    const f32 unit = zc_float((u32)(128 - BIAS - MAN) << 23);
    return zc_float(zc_bits((f32)man * unit) | sign);
}

#ifdef ZC_HAS_E4M3
ZC_DEV f32 zc_get(f8e4m3fn x) { return zc_e4m3_to_f32(x.v); }
#endif

// The magnitude rounded to nearest even, as a code that may lie above MAX; m is finite.
template <int MAN, int BIAS> ZC_DEV u32 zc_round_code(u32 m) {
    const int exponent = (int)(m >> 23) - 127 + BIAS;
    const u32 sig = (m & 0x7FFFFFu) | 0x800000u;
    const int shift = 23 - MAN + (exponent <= 0 ? 1 - exponent : 0);
    if (shift > 24) return 0;
    const u32 rest = sig & ((1u << shift) - 1u), half = 1u << (shift - 1);
    u32 code = sig >> shift;
    code += rest > half || (rest == half && (code & 1u));
    return exponent <= 0 ? code : code + ((u32)(exponent - 1) << MAN);
}

template <int EXP, int MAN, int BIAS, int MAX, int INFINITE, int NOT, int UNSIGNED_ZERO>
ZC_DEV void zc_encode(f32 v, bool saturate, zc_minifloat<EXP, MAN, BIAS, MAX, INFINITE, NOT, UNSIGNED_ZERO> *out) {
    const u32 magnitude = zc_bits(v) & 0x7FFFFFFFu, sign = zc_bits(v) >> 31 << 7;
    u32 code;
    if (magnitude > 0x7F800000u) {
        code = NOT;
    } else {
        const u32 rounded = magnitude == 0x7F800000u ? 0xFFFFFFFFu : zc_round_code<MAN, BIAS>(magnitude);
        code = rounded <= (u32)MAX ? rounded : saturate ? (u32)MAX : (u32)INFINITE;
    }
    out->v = (u8)(UNSIGNED_ZERO && (code == 0 || code == NOT) ? code : code | sign);
}

ZC_DEV void zc_encode(f32 v, bool saturate, f8e4m3fn *out) {
#ifdef ZC_HAS_E4M3
    if (saturate) {
        out->v = (u8)zc_f32x2_to_e4m3x2(v, 0.0f);
        return;
    }
#endif
    zc_encode<4, 3, 7, 0x7E, 0x7F, 0x7F, 0>(v, saturate, out);
}

// Powers of two: round 0 up, 1 down, 2 to the nearest (ties up).
ZC_DEV void zc_encode(f32 v, bool saturate, f8e8m0 *out, int round = 0) {
    const u32 m = zc_bits(v) & 0x7FFFFFFFu;
    if (m > 0x7F800000u) {
        out->v = 0xFF;
        return;
    }
    const u32 exponent = m >> 23, man = m & 0x7FFFFFu;
    u32 code = exponent;
    if (m < 0x00400000u) { // below 2^-127
        out->v = saturate ? 0 : 0xFF;
        return;
    }
    if (exponent == 0) { // a subnormal in [2^-127, 2^-126)
        const bool up = round == 0 ? man > 0x400000u : round == 2 && man >= 0x600000u;
        code = up ? 1u : 0u;
    } else if ((round == 0 && man) || (round == 2 && man >= 0x400000u)) {
        code++;
    }
    out->v = (u8)(code > 0xFE ? (saturate ? 0xFE : 0xFF) : code);
}
ZC_DEV f32 zc_get(f8e8m0 x) {
    return x.v == 0xFF ? zc_nan32() : x.v ? zc_float((u32)x.v << 23) : zc_float(0x00400000u);
}

// ---- elements ----

ZC_DEV f32 zc_get(f32 x) { return x; }
ZC_DEV f64 zc_get(f64 x) { return x; }
ZC_DEV f32 zc_get(f16 x) { return zc_f16_to_f32(x.v); }
ZC_DEV f32 zc_get(bf16 x) { return zc_bf16_to_f32(x.v); }
ZC_DEV i32 zc_get(i8 x) { return x; }
ZC_DEV i32 zc_get(i16 x) { return x; }
ZC_DEV i32 zc_get(i32 x) { return x; }
ZC_DEV i64 zc_get(i64 x) { return x; }
ZC_DEV u32 zc_get(u8 x) { return x; }
ZC_DEV u32 zc_get(u16 x) { return x; }
ZC_DEV u32 zc_get(u32 x) { return x; }
ZC_DEV u64 zc_get(u64 x) { return x; }
ZC_DEV bool zc_get(b8 x) { return x.v != 0; }

// From a float: integers truncate and saturate, NaN gives 0, 8-bit floats saturate as the CPU's stores do.
template <class T> struct zc_store;
#define ZC_STORE_INT(T, LOW, ABOVE)                                                                                    \
    template <> struct zc_store<T> {                                                                                   \
        template <class F> static ZC_MEMBER T of_float(F v) {                                                          \
            if (!(v > (F)(LOW))) return v != v ? (T)0 : (T)(LOW);                                                      \
            return v >= (F)(ABOVE) ? (T)~((T)1 << (sizeof(T) * 8 - 1)) : (T)v;                                         \
        }                                                                                                              \
        static ZC_MEMBER T from(f64 v) { return of_float(v); }                                                         \
        static ZC_MEMBER T from(f32 v) { return of_float(v); }                                                         \
        static ZC_MEMBER T from(i32 v) { return (T)v; }                                                                \
        static ZC_MEMBER T from(u32 v) { return (T)v; }                                                                \
        static ZC_MEMBER T from(i64 v) { return (T)v; }                                                                \
        static ZC_MEMBER T from(u64 v) { return (T)v; }                                                                \
        static ZC_MEMBER T from(bool v) { return (T)v; }                                                               \
    };
#define ZC_STORE_UINT(T, ABOVE)                                                                                        \
    template <> struct zc_store<T> {                                                                                   \
        template <class F> static ZC_MEMBER T of_float(F v) {                                                          \
            return !(v > 0) ? (T)0 : v >= (F)(ABOVE) ? (T)~(T)0 : (T)v;                                                \
        }                                                                                                              \
        static ZC_MEMBER T from(f64 v) { return of_float(v); }                                                         \
        static ZC_MEMBER T from(f32 v) { return of_float(v); }                                                         \
        static ZC_MEMBER T from(i32 v) { return (T)v; }                                                                \
        static ZC_MEMBER T from(u32 v) { return (T)v; }                                                                \
        static ZC_MEMBER T from(i64 v) { return (T)v; }                                                                \
        static ZC_MEMBER T from(u64 v) { return (T)v; }                                                                \
        static ZC_MEMBER T from(bool v) { return (T)v; }                                                               \
    };
#define ZC_STORE_FLOAT(T, F32, F64)                                                                                    \
    template <> struct zc_store<T> {                                                                                   \
        static ZC_MEMBER T from(f32 v) { return F32; }                                                                 \
        static ZC_MEMBER T from(f64 v) { return F64; }                                                                 \
        static ZC_MEMBER T from(i32 i) { return from((f64)i); }                                                        \
        static ZC_MEMBER T from(u32 i) { return from((f64)i); }                                                        \
        static ZC_MEMBER T from(i64 i) { return from(zc_to_odd(i < 0, i < 0 ? 0 - (u64)i : (u64)i)); }                 \
        static ZC_MEMBER T from(u64 i) { return from(zc_to_odd(false, i)); }                                           \
        static ZC_MEMBER T from(bool i) { return from(i ? 1.0f : 0.0f); }                                              \
    };
#define ZC_MEMBER __device__ __forceinline__

// A magnitude as a double whose last bit is set when it is not exact, so that rounding the double again to a
// narrower type rounds the integer once.
ZC_DEV f64 zc_to_odd(bool negative, u64 m) {
    const u64 low = m & 0x7FF;
    const f64 d = (m >> 53) == 0 || low == 0 ? (f64)m : (f64)((m & ~0x7FFull) | 0x800ull);
    return negative ? -d : d;
}
// A float whose rounding to an 8-bit type equals that of the double: round to odd.
ZC_DEV f32 zc_narrow_odd(f64 v) {
    f32 f = (f32)v;
    if (v != v || (f64)f == v || zc_isinf(f)) return f;
    u32 b = zc_bits(f);
    const bool away = (f64)(f < 0 ? -f : f) > (v < 0 ? -v : v);
    if (away) b--;
    return zc_float(b | 1u);
}
template <class T> ZC_DEV T zc_mini(f32 v, bool saturate) {
    T r;
    zc_encode(v, saturate, &r);
    return r;
}

ZC_STORE_INT(i8, -128.0, 128.0)
ZC_STORE_INT(i16, -32768.0, 32768.0)
ZC_STORE_INT(i32, -2147483648.0, 2147483648.0)
ZC_STORE_INT(i64, -9223372036854775808.0, 9223372036854775808.0)
ZC_STORE_UINT(u8, 256.0)
ZC_STORE_UINT(u16, 65536.0)
ZC_STORE_UINT(u32, 4294967296.0)
ZC_STORE_UINT(u64, 18446744073709551616.0)
ZC_STORE_FLOAT(f16, f16{zc_f32_to_f16(v)}, f16{zc_f64_to_f16(v)})
ZC_STORE_FLOAT(bf16, bf16{zc_f32_to_bf16(v)}, bf16{zc_f64_to_bf16(v)})
ZC_STORE_FLOAT(f8e4m3fn, zc_mini<f8e4m3fn>(v, true), zc_mini<f8e4m3fn>(zc_narrow_odd(v), true))
ZC_STORE_FLOAT(f8e4m3fnuz, zc_mini<f8e4m3fnuz>(v, true), zc_mini<f8e4m3fnuz>(zc_narrow_odd(v), true))
ZC_STORE_FLOAT(f8e5m2, zc_mini<f8e5m2>(v, false), zc_mini<f8e5m2>(zc_narrow_odd(v), false))
ZC_STORE_FLOAT(f8e5m2fnuz, zc_mini<f8e5m2fnuz>(v, true), zc_mini<f8e5m2fnuz>(zc_narrow_odd(v), true))
ZC_STORE_FLOAT(f8e8m0, zc_mini<f8e8m0>(v, true), zc_mini<f8e8m0>((f32)v, true))
template <> struct zc_store<f32> {
    template <class V> static ZC_MEMBER f32 from(V v) { return (f32)v; }
};
template <> struct zc_store<f64> {
    template <class V> static ZC_MEMBER f64 from(V v) { return (f64)v; }
};
template <> struct zc_store<b8> {
    template <class V> static ZC_MEMBER b8 from(V v) { return b8{(u8)(v != (V)0)}; }
};

template <class T, class V> ZC_DEV T zc_put(V v) { return zc_store<T>::from(v); }
// most: T's largest number. What is finite stays so.
template <class T> ZC_DEV T zc_put_finite(f32 v, f32 most) {
    return zc_put<T>(zc_isinf(v) ? v : v > most ? most : v < -most ? -most : v);
}
// Two neighbours, the first in the low half.
ZC_DEV u32 zc_pack(f16, f32 a, f32 b) { return zc_f32x2_to_f16x2(a, b); }
ZC_DEV u32 zc_pack(bf16, f32 a, f32 b) { return zc_f32x2_to_bf16x2(a, b); }
ZC_DEV u16 zc_pack(f8e4m3fn, f32 a, f32 b) {
#ifdef ZC_HAS_E4M3
    return zc_f32x2_to_e4m3x2(a, b);
#else
    return (u16)(zc_put<f8e4m3fn>(a).v | zc_put<f8e4m3fn>(b).v << 8);
#endif
}
// Whole numbers of their range.
ZC_DEV u16 zc_pack_bytes(f32 a, f32 b) {
    return (u16)((zc_bits(a + 12582912.0f) & 255u) | (zc_bits(b + 12582912.0f) & 255u) << 8);
}
ZC_DEV u16 zc_pack(i8, f32 a, f32 b) { return zc_pack_bytes(a, b); }
ZC_DEV u16 zc_pack(u8, f32 a, f32 b) { return zc_pack_bytes(a, b); }
ZC_DEV u16 zc_pack(i8, i32 a, i32 b) { return (u16)((a & 255) | (b & 255) << 8); }
ZC_DEV u16 zc_pack(u8, u32 a, u32 b) { return (u16)((a & 255) | (b & 255) << 8); }
// Of two packed pairs the larger ones, NaN where one is.
ZC_DEV u32 zc_larger(f16, u32 a, u32 b) { return zc_larger_f16x2(a, b); }
ZC_DEV u32 zc_larger(bf16, u32 a, u32 b) { return zc_larger_bf16x2(a, b); }
// Of two numbers; of two zeros either.
ZC_DEV f32 zc_larger(f32 a, f32 b) { return zc_larger_f32(a, b); }
ZC_DEV f64 zc_larger(f64 a, f64 b) { return a != a ? a : b != b ? b : a > b ? a : b; }
// Memory of B bytes, moved at once.
struct alignas(16) zc_unit16 {
    u64 a, b;
};
template <int B> struct zc_unit_of;
template <> struct zc_unit_of<1> {
    typedef u8 type;
};
template <> struct zc_unit_of<2> {
    typedef u16 type;
};
template <> struct zc_unit_of<4> {
    typedef u32 type;
};
template <> struct zc_unit_of<8> {
    typedef u64 type;
};
template <> struct zc_unit_of<16> {
    typedef zc_unit16 type;
};
template <int B> using zc_unit = typename zc_unit_of<B>::type;

// Elements of arrays.
template <class T> ZC_DEV zc_compute<T> zc_load(const void *p, i64 i) { return zc_get(((const T *)p)[i]); }
// The same of a constant of the plan, before the kernel in front has ended, too.
template <class T> ZC_DEV zc_compute<T> zc_load_constant(const void *p, i64 i) {
    const auto bits = zc_constant_element((const zc_unit<sizeof(T)> *)p + i);
    return zc_get(*(const T *)&bits);
}
template <class T, class V> ZC_DEV void zc_save(void *p, i64 i, V v) { ((T *)p)[i] = zc_put<T>(v); }
// A compute value after it stood in an element of type T.
template <class T, class V> ZC_DEV zc_compute<T> zc_through(V v) { return zc_get(zc_put<T>(v)); }

// N elements read or written at once; N * sizeof(T) is a power of two up to 16.
template <class T, int N> struct alignas(sizeof(T) * N) zc_vec {
    T v[N];
};
ZC_DEV zc_vec<f32, 2> zc_pack(f32, f32 a, f32 b) { return {{a, b}}; }
// What zc_pack packed.
template <class T> ZC_DEV zc_vec<T, 2> zc_unpack(u32 two) { return {{{(u16)two}, {(u16)(two >> 16)}}}; }
template <class T> ZC_DEV zc_vec<T, 2> zc_unpack(u16 two) { return *(const zc_vec<T, 2> *)&two; }
template <class T> ZC_DEV zc_vec<T, 2> zc_unpack(const zc_vec<T, 2> &two) { return two; }

// ---- functions of scalar expressions (op/expr.h says what they mean) ----

#define ZC_FLOAT_FN(F, S)                                                                                              \
    ZC_DEV F zx_add(F a, F b) { return a + b; }                                                                        \
    ZC_DEV F zx_sub(F a, F b) { return a - b; }                                                                        \
    ZC_DEV F zx_mul(F a, F b) { return a * b; }                                                                        \
    ZC_DEV F zx_div(F a, F b) { return a / b; }                                                                        \
    ZC_DEV F zx_fmod(F a, F b) { return fmod##S(a, b); }                                                               \
    ZC_DEV F zx_mod(F a, F b) {                                                                                        \
        const F r = fmod##S(a, b);                                                                                     \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                                                               \
    }                                                                                                                  \
    ZC_DEV F zx_max(F a, F b) { return a != a ? a : b != b ? b : a > b ? a : b; }                                      \
    ZC_DEV F zx_min(F a, F b) { return a != a ? a : b != b ? b : a < b ? a : b; }                                      \
    ZC_DEV F zx_neg(F a) { return -a; }                                                                                \
    ZC_DEV F zx_abs(F a) { return fabs##S(a); }                                                                        \
    ZC_DEV F zx_acos(F a) { return acos##S(a); }                                                                       \
    ZC_DEV F zx_acosh(F a) { return acosh##S(a); }                                                                     \
    ZC_DEV F zx_asin(F a) { return asin##S(a); }                                                                       \
    ZC_DEV F zx_asinh(F a) { return asinh##S(a); }                                                                     \
    ZC_DEV F zx_atan(F a) { return atan##S(a); }                                                                       \
    ZC_DEV F zx_atanh(F a) { return atanh##S(a); }                                                                     \
    ZC_DEV F zx_ceil(F a) { return ceil##S(a); }                                                                       \
    ZC_DEV F zx_cos(F a) { return cos##S(a); }                                                                         \
    ZC_DEV F zx_cosh(F a) { return cosh##S(a); }                                                                       \
    ZC_DEV F zx_erf(F a) { return erf##S(a); }                                                                         \
    ZC_DEV F zx_exp(F a) { return exp##S(a); }                                                                         \
    ZC_DEV F zx_expm1(F a) { return expm1##S(a); }                                                                     \
    ZC_DEV F zx_floor(F a) { return floor##S(a); }                                                                     \
    ZC_DEV F zx_log(F a) { return log##S(a); }                                                                         \
    ZC_DEV F zx_log1p(F a) { return log1p##S(a); }                                                                     \
    ZC_DEV F zx_round(F a) { return rint##S(a); }                                                                      \
    ZC_DEV F zx_rsqrt(F a) { return (F)1 / sqrt##S(a); }                                                               \
    ZC_DEV F zx_sign(F a) { return a != a ? a : (F)((a > 0) - (a < 0)); }                                              \
    ZC_DEV F zx_sin(F a) { return sin##S(a); }                                                                         \
    ZC_DEV F zx_sinh(F a) { return sinh##S(a); }                                                                       \
    ZC_DEV F zx_sqrt(F a) { return sqrt##S(a); }                                                                       \
    ZC_DEV F zx_tan(F a) { return tan##S(a); }                                                                         \
    ZC_DEV F zx_tanh(F a) { return tanh##S(a); }                                                                       \
    ZC_DEV F zx_sigmoid(F a) { return (F)1 / ((F)1 + exp##S(-a)); }
ZC_FLOAT_FN(f32, f)
ZC_FLOAT_FN(f64, )

// Two neighbours: bytes saturate and are packed, the first one in the low half.
ZC_DEV u16 zc_saturated(i8, i32 a, i32 b) { return zc_saturated_s8x2(a, b); }
ZC_DEV u16 zc_saturated(u8, i32 a, i32 b) { return zc_saturated_u8x2(a, b); }
ZC_DEV zc_vec<i32, 2> zc_saturated(i32, i32 a, i32 b) { return {{a, b}}; }
// x / scale rounded, for a scale between 2^-100 and 2^100, where it is between 2^-20 and 2^20; what is larger stays so and what is
// smaller, too, NaN is -2^20. WITHIN: it is known to be below 2^20. high: 1 / scale in f32, low: what is left of it. There are no branches, so that elements are computed side by
// side. q is less than a unit in the last place from the quotient (half of one by its own rounding, 2^-23 by both factors'
// errors); so the rest is exact, and q + rest * high, rounded, is the quotient, rounded (Markstein).
template <bool WITHIN> ZC_DEV f32 zc_divided(f32 x, f32 scale, f32 high, f32 low) {
    const f32 most = scale * 1048576.0f, within = WITHIN ? x : fminf(fmaxf(x, -most), most);
    const f32 q = fmaf(within, high, within * low);
    return fmaf(fmaf(-q, scale, within), high, q);
}
// T(round(x / scale) + zero), T a byte.
template <class T, bool WITHIN> ZC_DEV zc_compute<T> zx_quantised(f32 x, f32 scale, f32 high, f32 low, i32 zero) {
    const f32 whole = zc_divided<WITHIN>(x, scale, high, low) + 12582912.0f; // 1.5 2^23, whose last digit counts 1
    const T y = (T)zc_saturated(T(), (i32)(zc_bits(whole) - 0x4B400000u) + zero, 0);
    return !WITHIN && zc_traits<T>::is_signed && x != x ? (T)0 : y;
}
// rint(a x + (b y + c)): a float times the least one is an integer. What is below 0 is some integer below it.
ZC_DEV i32 zc_sum_rounded(f32 x, f32 y, f32 a, f32 b, f32 c) { return (i32)zc_bits(fmaf(x, a, fmaf(y, b, c)) * zc_float(1u)); }
// That of two bytes, from the least T on, saturated.
template <class T> constexpr i32 ZC_LEAST_BYTE = zc_traits<T>::is_signed ? -128 : 0;
template <class T, class X, class Y> ZC_DEV zc_compute<T> zx_affine(X x, Y y, f32 a, f32 b, f32 c) {
    return (zc_compute<T>)zc_saturated(u8(), zc_sum_rounded((f32)x, (f32)y, a, b, c), 0) + ZC_LEAST_BYTE<T>;
}
// T(x / scale), T a float of 8 bits that saturates, or f32; 0 keeps its sign.
template <class T, bool WITHIN> ZC_DEV f32 zx_scaled(f32 x, f32 scale, f32 high, f32 low) {
    const f32 within = WITHIN ? x : zc_within(x, scale * 1048576.0f);
    return zc_through<T>(copysignf(zc_divided<true>(within, scale, high, low), x));
}

// The same for elements of 16 bits: errors of some 2^-19, no branches.
template <class T> ZC_DEV f32 zq_scaled(f32 x, f32 reciprocal) { return zc_through<T>(x * reciprocal); }
template <class T> ZC_DEV zc_compute<T> zq_quantised(f32 x, f32 reciprocal, i32 zero) {
    const bool is_signed = zc_traits<T>::is_signed;
    const f32 least = (f32)((is_signed ? -128 : 0) - zero), most = (f32)((is_signed ? 127 : 255) - zero);
    const f32 whole = fminf(fmaxf(x * reciprocal, least), most) + 12582912.0f; // as in zx_quantised
    const zc_compute<T> y = (zc_compute<T>)((i32)(zc_bits(whole) - 0x4B400000u) + zero);
    return is_signed && x != x ? (zc_compute<T>)0 : y;
}
ZC_DEV f32 zq_div(f32 a, f32 b) { return zc_div_approx(a, b); }
ZC_DEV f32 zq_sqrt(f32 a) { return zc_sqrt_approx(a); }
ZC_DEV f32 zq_rsqrt(f32 a) { return zc_rsqrt_approx(a); }
ZC_DEV f32 zc_exp_approx(f32 a) { return zc_exp2_approx(a * 1.44269504f); }
ZC_DEV f32 zq_sigmoid(f32 a) { return zc_reciprocal_approx(1.0f + zc_exp_approx(-a)); }
// 1 + tanh(a), which keeps its digits where it is small.
ZC_DEV f32 zq_one_plus_tanh(f32 a) { return 2.0f * zq_sigmoid(2.0f * a); }
ZC_DEV f32 zq_tanh(f32 a) {
    const f32 s = a * a, x = fabsf(a);
    const f32 low = a * (1.0f + s * (-0.333333333f + s * (0.133333333f + s * (-0.0539682540f + s * 0.0218694885f))));
    const f32 high = 1.0f - zq_one_plus_tanh(-x);
    return x < 0.4f ? low : copysignf(high, a);
}
// 2 to a polynomial of x.
template <int N> ZC_DEV f32 zc_exp2_of(const f32 (&c)[N], f32 x) {
    f32 e = c[N - 1];
#pragma unroll
    for (int i = N - 2; i >= 0; i--) e = e * x + c[i];
    return zc_exp2_approx(e);
}
// erfc of a number that is not negative: the polynomial is fitted to log2(erfc) on [0, 4]; beyond, it falls to 0 faster.
ZC_DEV f32 zc_erfc_tail(f32 x) {
    const f32 c[] = {1.60629952e-6f,    -1.62800145f,   -0.917567253f,   -0.151343435f,
                     0.0328677148f, -0.00474186055f, 0.000380641926f, -1.15549647e-5f};
    return zc_exp2_of(c, x);
}
ZC_DEV f32 zq_erf(f32 a) {
    const f32 s = a * a, x = fabsf(a);
    const f32 low = a * (1.12837917f + s * (-0.376126389f + s * (0.112837917f + s * (-0.0268661706f + s * 0.00522397763f))));
    return x < 0.45f ? low : copysignf(1.0f - zc_erfc_tail(x), a);
}
// 1 + erf(a), which keeps its digits where it is small.
ZC_DEV f32 zq_one_plus_erf(f32 a) {
    const f32 e = zc_erfc_tail(fabsf(a));
    return a < 0 ? e : 2.0f - e;
}
// 0.5 * a * (1 + erf(a / sqrt(2))); the polynomial is fitted to log2(erfc(x / sqrt(2)) / 2) on [0, 5.2], within
// 2^-13, and falls to 0 beyond.
ZC_DEV f32 zq_gelu(f32 a) {
    const f32 c[] = {-1.00016538f, -1.14857039f, -0.465406565f, -0.047297388f, 0.00555010825f, -0.000292132886f};
    const f32 e = zc_exp2_of(c, fabsf(a));
    return a * (a < 0 ? e : 1.0f - e);
}

#define ZC_INT_FN(I, U, BITS)                                                                                          \
    ZC_DEV I zx_add(I a, I b) { return (I)((U)a + (U)b); }                                                             \
    ZC_DEV I zx_sub(I a, I b) { return (I)((U)a - (U)b); }                                                             \
    ZC_DEV I zx_mul(I a, I b) { return (I)((U)a * (U)b); }                                                             \
    ZC_DEV I zx_max(I a, I b) { return a > b ? a : b; }                                                                \
    ZC_DEV I zx_min(I a, I b) { return a < b ? a : b; }                                                                \
    ZC_DEV I zx_neg(I a) { return (I)((U)0 - (U)a); }                                                                  \
    ZC_DEV I zx_bitnot(I a) { return ~a; }                                                                             \
    ZC_DEV I zx_bitand(I a, I b) { return a & b; }                                                                     \
    ZC_DEV I zx_bitor(I a, I b) { return a | b; }                                                                      \
    ZC_DEV I zx_bitxor(I a, I b) { return a ^ b; }                                                                     \
    template <class B> ZC_DEV I zx_pow(I a, B e) {                                                                     \
        U r = 1, b = (U)a;                                                                                             \
        if (e < (B)0) return (I)(b == 1 ? 1 : b == (U) ~(U)0 ? (e % 2 == 0 ? (U)1 : b) : (U)0);                       \
        for (; e; e >>= 1, b *= b)                                                                                     \
            if (e & 1) r *= b;                                                                                         \
        return (I)r;                                                                                                   \
    }
#define ZC_SINT_FN(I, U)                                                                                               \
    ZC_DEV I zx_div(I a, I b) { return b == 0 ? 0 : b == -1 ? zx_neg(a) : a / b; }                                     \
    ZC_DEV I zx_fmod(I a, I b) { return b == 0 || b == -1 ? 0 : a % b; }                                               \
    ZC_DEV I zx_mod(I a, I b) {                                                                                        \
        const I r = zx_fmod(a, b);                                                                                     \
        return r && (r < 0) != (b < 0) ? r + b : r;                                                                    \
    }                                                                                                                  \
    ZC_DEV I zx_abs(I a) { return a < 0 ? zx_neg(a) : a; }                                                             \
    ZC_DEV I zx_sign(I a) { return (I)((a > 0) - (a < 0)); }
#define ZC_UINT_FN(U)                                                                                                  \
    ZC_DEV U zx_div(U a, U b) { return b == 0 ? 0 : a / b; }                                                           \
    ZC_DEV U zx_fmod(U a, U b) { return b == 0 ? 0 : a % b; }                                                          \
    ZC_DEV U zx_mod(U a, U b) { return b == 0 ? 0 : a % b; }                                                           \
    ZC_DEV U zx_abs(U a) { return a; }                                                                                 \
    ZC_DEV U zx_sign(U a) { return a != 0; }
ZC_INT_FN(i32, u32, 32)
ZC_INT_FN(i64, u64, 64)
ZC_INT_FN(u32, u32, 32)
ZC_INT_FN(u64, u64, 64)
ZC_SINT_FN(i32, u32)
ZC_SINT_FN(i64, u64)
ZC_UINT_FN(u32)
ZC_UINT_FN(u64)
// Shifts of an element of BITS bits; by its width or more gives 0.
template <int BITS, class I> ZC_DEV I zx_shl(I a, I by) {
    return by < 0 || by >= (I)BITS ? (I)0 : (I)((u64)a << (u64)by);
}
template <int BITS, class I> ZC_DEV I zx_shr(I a, I by) {
    const u64 mask = BITS == 64 ? ~0ull : (1ull << (BITS & 63)) - 1ull;
    return by < 0 || by >= (I)BITS ? (I)0 : (I)(((u64)a & mask) >> (u64)by);
}
// Base and exponent of any two compute types; the base's type is the result's.
ZC_DEV f32 zx_pow(f32 a, f32 b) { return powf(a, b); }
ZC_DEV f64 zx_pow(f64 a, f64 b) { return pow(a, b); }
template <class B> ZC_DEV f32 zx_pow(f32 a, B b) { return (f32)pow((f64)a, (f64)b); }
template <class B> ZC_DEV f64 zx_pow(f64 a, B b) { return pow(a, (f64)b); }
ZC_DEV i32 zx_pow(i32 a, f32 b) { return zc_put<i32>(pow((f64)a, (f64)b)); }
ZC_DEV i32 zx_pow(i32 a, f64 b) { return zc_put<i32>(pow((f64)a, b)); }
ZC_DEV i64 zx_pow(i64 a, f32 b) { return zc_put<i64>(pow((f64)a, (f64)b)); }
ZC_DEV i64 zx_pow(i64 a, f64 b) { return zc_put<i64>(pow((f64)a, b)); }
ZC_DEV u32 zx_pow(u32 a, f32 b) { return zc_put<u32>(pow((f64)a, (f64)b)); }
ZC_DEV u32 zx_pow(u32 a, f64 b) { return zc_put<u32>(pow((f64)a, b)); }
ZC_DEV u64 zx_pow(u64 a, f32 b) { return zc_put<u64>(pow((f64)a, (f64)b)); }
ZC_DEV u64 zx_pow(u64 a, f64 b) { return zc_put<u64>(pow((f64)a, b)); }

// ---- faults: what only the device sees; the first report of a run wins ----

enum zc_fault_code { ZC_FAULT_NONE, ZC_FAULT_INDEX, ZC_FAULT_VALUE };
struct zc_fault_word {
    u32 step, code;
    i64 got, low, high;
};
// got is not in [low, high].
static __device__ __noinline__ void zc_report(zc_fault_word *f, u32 step, u32 code, i64 got, i64 low, i64 high) {
    if (zc_atomic_cas(&f->step, 0u, step) != 0u) return;
    f->code = code;
    f->got = got;
    f->low = low;
    f->high = high;
}

// ---- threads ----

ZC_DEV i64 zc_thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
ZC_DEV i64 zc_threads() { return (i64)gridDim.x * blockDim.x; }

// ---- how kernels begin ----

#ifndef ZC_STAMPED

// Every kernel begins with this: it may have been launched before the kernel in front of it was done, and reads or
// writes nothing until then; and the one behind it may be launched now.
ZC_DEV void zc_begin() {
    zc_grid_launch();
    zc_grid_wait();
}
// Where an entry has something to do before it waits.
ZC_DEV void zc_wait() { zc_grid_wait(); }
// if (...), in a warpgroup whose first warp alone has work: another one may wait where those that work do so elsewhere.
#define ZC_FIRST_WARP(...) if (__VA_ARGS__)

#else // for profiles: src/kernels/stamps.c gives every entry a zc_stamp

// When a step's first kernel began, when the kernels in front of it had ended, and its own where no kernel comes next. The
// host has the same struct.
struct zc_stamps {
    u64 begin, ready, end;
};
// Blocks begin in their order, so the first one notes. An end is what the next kernel waits for: to note it in the kernel
// itself would delay it.
struct zc_stamp {
    zc_stamps *const at;
    ZC_MEMBER bool notes(u32 thread) const { return threadIdx.x == thread && !(blockIdx.x | blockIdx.y | blockIdx.z); }
    ZC_MEMBER explicit zc_stamp(zc_stamps *stamps) : at(stamps) {
        if (notes(0)) zc_stamp_least(&at->begin, zc_clock_ns());
    }
    ZC_MEMBER void wait(u32 thread) const {
        zc_grid_wait();
        if (notes(thread)) zc_stamp_least(&at->ready, zc_clock_ns());
    }
    ZC_MEMBER void begin() const {
        zc_grid_launch();
        wait(0);
    }
};
#define zc_begin() zc_stamped.begin()
#define zc_wait() zc_stamped.wait(0)
#define ZC_FIRST_WARP(...)                                                                                            \
    if (threadIdx.x / 32 == 1)                                                                                         \
        zc_stamped.wait(32);                                                                                           \
    else if (__VA_ARGS__)

// Behind a kernel that no other one comes next to.
extern "C" __global__ void zc_stamp_end(zc_stamps *at) {
    zc_grid_wait();
    at->end = zc_clock_ns();
}

#endif

#define ZC_CAT2(a, b) a##b
#define ZC_CAT(a, b) ZC_CAT2(a, b)
// Entry point n of the template; spec.h defines ZC_NAME, and which entries the kernel has: those n for which it defines
// Z_TAKES_n, as a comma, are ZC_ENTRY, the others are Z_REST.
#define ZC_ENTRY(n) extern "C" __global__ void ZC_CAT(ZC_NAME, _##n)
#define ZC_NO_ENTRY(n) template <int> __global__ void ZC_CAT(ZC_NAME, _none_##n)
#define ZC_ENTRY_SECOND(a, b, ...) b
#define ZC_ENTRY_KIND(...) ZC_ENTRY_SECOND(__VA_ARGS__)
#define ZC_KERNEL(n) ZC_ENTRY_KIND(Z_TAKES_##n ZC_ENTRY, Z_REST, 0)(n)
// Of blocks of so many threads, some at a time on a multiprocessor, or one.
#define ZC_KERNEL_BESIDE(n, threads, blocks)                                                                           \
    extern "C" __global__ void __launch_bounds__(threads, blocks) ZC_CAT(ZC_NAME, _##n)
#define ZC_KERNEL_OF(n, threads) ZC_KERNEL_BESIDE(n, threads, 1)
