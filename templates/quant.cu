// QuantizeLinear and DequantizeLinear.
//
// spec.h: Z_X, Z_SCALE, Z_Y (types, packed ones by their names), Z_WORK (type of the arithmetic), Z_PRECISION (type
// that the quotient is rounded to), Z_SATURATE, Z_HAS_ZERO, Z_ZERO (type), Z_QUANTIZE; Z_AXIS, Z_INNER, Z_BLOCK,
// Z_BLOCKS and Z_BY_INNER: constants or parameters.
#include "zc/packed.cuh"
#include "abi/quant.h"
#include "spec.h"

ZC_DEV i64 scale_at(const zc_quant_params &p, i64 i) {
    if (Z_BLOCK == 0) return 0;
    const i64 row = i / Z_INNER, outer = row / Z_AXIS, along = (row - outer * Z_AXIS) / Z_BLOCK;
    return Z_BY_INNER ? (outer * Z_BLOCKS + along) * Z_INNER + (i - row * Z_INNER) : along;
}

ZC_DEV Z_WORK zero_at(const zc_quant_params &p, i64 s) {
#if Z_HAS_ZERO
    return (Z_WORK)zc_load_item<Z_ZERO>(p.zero, s);
#else
    return (Z_WORK)0;
#endif
}

typedef zc_item<Z_X>::unit x_unit;
typedef zc_item<Z_Y>::unit y_unit;

#if Z_QUANTIZE
// ---- from the quotient to an element ----

ZC_DEV f32 nearest(f32 v) { return rintf(v); }
ZC_DEV f64 nearest(f64 v) { return rint(v); }
ZC_DEV f32 narrow(f32 v) { return v; }
ZC_DEV f32 narrow(f64 v) { return zc_narrow_odd(v); }

template <class T, bool FLOAT = zc_item<T>::is_float> struct quantised { // integers
    static ZC_MEMBER typename zc_item<T>::unit from(Z_WORK q, Z_WORK zero) {
        const int bits = zc_item<T>::bits;
        const Z_WORK low = zc_item<T>::is_signed ? -(Z_WORK)(1 << (bits - 1)) : (Z_WORK)0;
        const Z_WORK high = (Z_WORK)((1 << (zc_item<T>::is_signed ? bits - 1 : bits)) - 1);
        q = nearest(q) + zero;
        const i32 r = q != q ? 0 : (i32)(q < low ? low : q > high ? high : q);
        if constexpr (bits < 8) return (u32)r & ((1u << bits) - 1u);
        else return (T)r;
    }
};
template <class T> struct quantised<T, true> {
    static ZC_MEMBER T from(Z_WORK q, Z_WORK) { return zc_mini<T>(narrow(q), Z_SATURATE); }
};
template <> struct quantised<f4e2m1, true> {
    static ZC_MEMBER u32 from(Z_WORK q, Z_WORK zero) { return zc_item<f4e2m1>::put(narrow(q + zero)); }
};

ZC_DEV y_unit convert(const zc_quant_params &p, x_unit x, i64 s) {
    const Z_WORK quotient = (Z_WORK)zc_item<Z_X>::get(x) / (Z_WORK)zc_load<Z_SCALE>(p.scale, s);
    return quantised<Z_Y>::from((Z_WORK)zc_through<Z_PRECISION>(quotient), zero_at(p, s));
}
#else
ZC_DEV y_unit convert(const zc_quant_params &p, x_unit x, i64 s) {
    const Z_WORK centred = (Z_WORK)zc_item<Z_X>::get(x) - zero_at(p, s);
    return zc_put<Z_Y>(centred * (Z_WORK)zc_load<Z_SCALE>(p.scale, s));
}
#endif

ZC_KERNEL(0)(const __grid_constant__ zc_quant_params p) {
    zc_begin();
    for (i64 i = zc_thread() * 4; i < p.total; i += zc_threads() * 4) {
        const int n = p.total - i < 4 ? (int)(p.total - i) : 4;
        const bool whole = p.aligned && n == 4;
        zc_four<Z_X> x;
        zc_four<Z_Y> y;
        if (whole) x.load4(p.x, i);
        else x.load(p.x, i, n);
#pragma unroll
        for (int j = 0; j < 4; j++) y.set(j, convert(p, x.get(j), j < n ? scale_at(p, i + j) : 0));
        if (whole) y.store4(p.y, i);
        else y.store(p.y, i, n);
    }
}
