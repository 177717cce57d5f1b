// Elements of any type, packed ones included: four neighbours at once, which always fill whole bytes.
#pragma once
#include "zc/device.cuh"

// Tags of the packed types; codes lie in the low bits first.
struct i4 {};
struct u4 {};
struct i2 {};
struct u2 {};
struct f4e2m1 {};
typedef zc_minifloat<2, 1, 1, 0x7, 0x7, 0x7, 0> zc_e2m1;

// get: the compute value of a code or element; put: the code or element of a compute value.
template <class T> struct zc_item {
    static constexpr int bits = sizeof(T) * 8;
    static constexpr bool is_float = zc_traits<T>::is_float, is_signed = zc_traits<T>::is_signed;
    typedef T unit;
    typedef zc_compute<T> value;
    static ZC_MEMBER value get(T v) { return zc_get(v); }
};
template <int BITS, bool SIGNED, class V> struct zc_item_packed {
    static constexpr int bits = BITS;
    static constexpr bool is_float = false, is_signed = SIGNED;
    typedef u32 unit;
    typedef V value;
    static ZC_MEMBER V get(u32 code) {
        const u32 sign = SIGNED ? 1u << (BITS - 1) : 0u;
        return (V)((code ^ sign) - sign);
    }
};
template <> struct zc_item<i4> : zc_item_packed<4, true, i32> {};
template <> struct zc_item<u4> : zc_item_packed<4, false, u32> {};
template <> struct zc_item<i2> : zc_item_packed<2, true, i32> {};
template <> struct zc_item<u2> : zc_item_packed<2, false, u32> {};
template <> struct zc_item<f4e2m1> {
    static constexpr int bits = 4;
    static constexpr bool is_float = true, is_signed = true;
    typedef u32 unit;
    typedef f32 value;
    static ZC_MEMBER f32 get(u32 c) { return zc_get(zc_e2m1{(u8)((c & 7u) | (c & 8u) << 4)}); }
    static ZC_MEMBER u32 put(f32 v) {
        const u32 c = zc_mini<zc_e2m1>(v, true).v;
        return zc_isnan(v) ? 7u : (c & 7u) | (c >> 7) << 3;
    }
};

template <class T, bool PACKED = (zc_item<T>::bits < 8)> struct zc_four {
    zc_vec<T, 4> v;
    static constexpr int size = sizeof(T) * 4;
    ZC_MEMBER T get(int j) const { return v.v[j]; }
    ZC_MEMBER void set(int j, T x) { v.v[j] = x; }
    // The first n of the four at index i of an array.
    ZC_MEMBER void load(const void *p, i64 i, int n) {
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (j < n) v.v[j] = ((const T *)p)[i + j];
            else v.v[j] = T();
    }
    ZC_MEMBER void store(void *p, i64 i, int n) const {
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (j < n) ((T *)p)[i + j] = v.v[j];
    }
    ZC_MEMBER void load4(const void *p, i64 i) { v = *(const zc_vec<T, 4> *)((const T *)p + i); }
    ZC_MEMBER void store4(void *p, i64 i) const { *(zc_vec<T, 4> *)((T *)p + i) = v; }
};
template <class T> struct zc_four<T, true> {
    u32 v;
    static constexpr int bits = zc_item<T>::bits, bytes = bits / 2;
    ZC_MEMBER u32 get(int j) const { return (v >> (j * bits)) & ((1u << bits) - 1u); }
    ZC_MEMBER void set(int j, u32 x) { v = j ? v | x << (j * bits) : x; } // in order from j = 0
    ZC_MEMBER void load(const void *p, i64 i, int n) {
        const u8 *at = (const u8 *)p + i * bits / 8;
        v = at[0];
        if (n * bits > 8) v |= (u32)at[bytes - 1] << 8;
    }
    ZC_MEMBER void store(void *p, i64 i, int n) const {
        u8 *at = (u8 *)p + i * bits / 8;
        const u32 kept = v & ((1u << (n * bits)) - 1u);
        at[0] = (u8)kept;
        if (n * bits > 8) at[bytes - 1] = (u8)(kept >> 8);
    }
    ZC_MEMBER void load4(const void *p, i64 i) { load(p, i, 4); }
    ZC_MEMBER void store4(void *p, i64 i) const { store(p, i, 4); }
};

// One element.
template <class T> ZC_DEV typename zc_item<T>::value zc_load_item(const void *p, i64 i) {
    if constexpr (zc_item<T>::bits < 8) {
        const int per = 8 / zc_item<T>::bits;
        const u32 byte = ((const u8 *)p)[i / per];
        return zc_item<T>::get((byte >> (int)(i % per * zc_item<T>::bits)) & ((1u << zc_item<T>::bits) - 1u));
    } else {
        return zc_load<T>(p, i);
    }
}
