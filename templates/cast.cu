// Element type conversion, packed types included.
//
// spec.h: Z_IN and Z_OUT (types; of packed ones the 8-bit carrier), Z_IN_BITS and Z_OUT_BITS, Z_IN_PACK and
// Z_OUT_PACK (0 not packed, 1 signed integer, 2 unsigned integer, 3 e2m1 float), Z_SATURATE and Z_ROUND (8-bit
// floats).
#include "zc/device.cuh"
#include "abi/cast.h"
#include "spec.h"

typedef zc_minifloat<2, 1, 1, 0x7, 0x7, 0x7, 0> e2m1;

template <class T, int PACK> struct source {
    static ZC_MEMBER zc_compute<T> get(const void *in, i64 i) { return zc_load<T>(in, i); }
};
template <class T> struct packed {
    static ZC_MEMBER u32 code(const void *in, i64 i) {
        const int per = 8 / Z_IN_BITS;
        return ((u32)((const u8 *)in)[i / per] >> (i % per * Z_IN_BITS)) & ((1u << Z_IN_BITS) - 1u);
    }
};
template <class T> struct source<T, 1> {
    static ZC_MEMBER i32 get(const void *in, i64 i) {
        const u32 sign = 1u << (Z_IN_BITS - 1);
        return (i32)(packed<T>::code(in, i) ^ sign) - (i32)sign;
    }
};
template <class T> struct source<T, 2> {
    static ZC_MEMBER u32 get(const void *in, i64 i) { return packed<T>::code(in, i); }
};
template <class T> struct source<T, 3> {
    static ZC_MEMBER f32 get(const void *in, i64 i) {
        const u32 c = packed<T>::code(in, i);
        return zc_get(e2m1{(u8)((c & 7u) | (c & 8u) << 4)});
    }
};

// ---- to 8-bit floats: saturation and rounding are the operation's choice ----

template <class T> struct target {
    template <class V> static ZC_MEMBER T put(V v) { return zc_put<T>(v); }
};
template <int E, int M, int B, int MAX, int INF, int NOT, int UZ> struct target<zc_minifloat<E, M, B, MAX, INF, NOT, UZ>> {
    typedef zc_minifloat<E, M, B, MAX, INF, NOT, UZ> T;
    static ZC_MEMBER T put(f32 v) { return zc_mini<T>(v, Z_SATURATE); }
    template <class V> static ZC_MEMBER T put(V v) { return put((f32)v); }
};
template <> struct target<f8e8m0> {
    template <class V> static ZC_MEMBER f8e8m0 put(V v) {
        f8e8m0 r;
        zc_encode((f32)v, Z_SATURATE, &r, Z_ROUND);
        return r;
    }
};

// ---- to packed types: out of range keeps the low bits ----

ZC_DEV u32 low_bits(f32 v) { return v > -9e18f && v < 9e18f ? (u32)(u64)(i64)v : 0u; }
ZC_DEV u32 low_bits(f64 v) { return v > -9e18 && v < 9e18 ? (u32)(u64)(i64)v : 0u; }
template <class V> ZC_DEV u32 low_bits(V v) { return (u32)(u64)v; }
template <class V> ZC_DEV u32 nibble(V v) {
#if Z_OUT_PACK == 3
    const f32 f = (f32)v;
    if (zc_isnan(f)) return 7u;
    const u32 c = zc_mini<e2m1>(f, true).v;
    return (c & 7u) | (c >> 7) << 3;
#else
    return low_bits(v) & ((1u << Z_OUT_BITS) - 1u);
#endif
}

ZC_KERNEL(0)(const __grid_constant__ zc_cast_params p) {
    zc_begin();
    typedef source<Z_IN, Z_IN_PACK> from;
#if Z_OUT_PACK
    const int per = 8 / Z_OUT_BITS;
    for (i64 byte = zc_thread(); byte * per < p.total; byte += zc_threads()) {
        u32 r = 0;
        for (int j = 0; j < per; j++)
            if (byte * per + j < p.total) r |= nibble(from::get(p.in, byte * per + j)) << (j * Z_OUT_BITS);
        ((u8 *)p.out)[byte] = (u8)r;
    }
#else
    for (i64 i = zc_thread(); i < p.total; i += zc_threads())
        ((Z_OUT *)p.out)[i] = target<Z_OUT>::put(from::get(p.in, i));
#endif
}
