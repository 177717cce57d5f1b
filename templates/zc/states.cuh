// What reductions keep of the elements seen so far. Each has join (with a state of later or other elements) and other
// (the state of the lane whose number differs in the bits of mask).
#pragma once
#include "zc/device.cuh"

ZC_DEV f32 zc_inf_of(f32) { return zc_inf32(); }
ZC_DEV f64 zc_inf_of(f64) { return zc_inf64(); }
ZC_DEV f32 zc_nan_of(f32) { return zc_nan32(); }
ZC_DEV f64 zc_nan_of(f64) { return zc_nan64(); }
template <class A> ZC_DEV bool zc_isfinite(A x) { return zx_abs(x) < zc_inf_of(x); }

// For sums in floats; f64 for f64.
template <class T> struct zc_float_of {
    typedef f32 type;
};
template <> struct zc_float_of<f64> {
    typedef f64 type;
};

template <class A> struct zc_sum {
    A v;
    static ZC_MEMBER zc_sum none() { return {(A)0}; }
    ZC_MEMBER zc_sum join(zc_sum b) const { return {zx_add(v, b.v)}; }
    ZC_MEMBER zc_sum other(int mask) const { return {zc_shfl_xor(v, mask)}; }
};

// Greatest element; NaN wins.
template <class A> struct zc_top {
    A v;
    static ZC_MEMBER zc_top none() { return {-zc_inf_of((A)0)}; }
    ZC_MEMBER zc_top join(zc_top b) const { return {zc_larger(v, b.v)}; }
    ZC_MEMBER zc_top other(int mask) const { return {zc_shfl_xor(v, mask)}; }
};

// The sum of exp(x - top), and top, which is NaN once an element was.
template <class A> struct zc_exps {
    A top, sum;
    static ZC_MEMBER zc_exps none() { return {-zc_inf_of((A)0), (A)0}; }
    ZC_MEMBER void add(A x) {
        if (x <= top) {
            sum += x == top ? (A)1 : zx_exp(x - top);
        } else {
            sum = x > top ? sum * zx_exp(top - x) + (A)1 : sum;
            top = top != top ? top : x;
        }
    }
    ZC_MEMBER zc_exps join(zc_exps b) const {
        const A t = zx_max(top, b.top);
        return {t, (top == t ? sum : sum * zx_exp(top - t)) + (b.top == t ? b.sum : b.sum * zx_exp(b.top - t))};
    }
    ZC_MEMBER zc_exps other(int mask) const { return {zc_shfl_xor(top, mask), zc_shfl_xor(sum, mask)}; }
};

// The greatest (least) element and its index, -1 before the first; of equal ones the first (last). NaN wins.
ZC_DEV bool zc_is_nan(f32 x) { return x != x; }
ZC_DEV bool zc_is_nan(f64 x) { return x != x; }
template <class A> ZC_DEV bool zc_is_nan(A) { return false; }
template <class A, bool MIN, bool LAST> struct zc_best {
    A v;
    i64 index;
    static ZC_MEMBER zc_best none() { return {(A)0, -1}; }
    ZC_MEMBER zc_best join(zc_best b) const {
        if (index < 0 || b.index < 0) return index < 0 ? b : *this;
        const bool nan = zc_is_nan(v), b_nan = zc_is_nan(b.v);
        const bool same = nan || b_nan ? nan == b_nan : v == b.v;
        const bool later = LAST ? b.index > index : b.index < index;
        const bool wins = same ? later : nan || b_nan ? b_nan : MIN ? b.v < v : b.v > v;
        return wins ? b : *this;
    }
    ZC_MEMBER zc_best other(int mask) const { return {zc_shfl_xor(v, mask), zc_shfl_xor(index, mask)}; }
};

// The number of elements, their mean and the sum of squared differences from it.
template <class A> struct zc_moments {
    A n, mean, m2;
    static ZC_MEMBER zc_moments none() { return {(A)0, (A)0, (A)0}; }
    ZC_MEMBER zc_moments join(zc_moments b) const {
        const A all = n + b.n, part = all > (A)0 ? b.n / all : (A)0, d = b.mean - mean;
        if (n == (A)0) return b;
        if (b.n == (A)0) return *this;
        return {all, mean + d * part, m2 + b.m2 + d * d * n * part};
    }
    ZC_MEMBER zc_moments other(int mask) const {
        return {zc_shfl_xor(n, mask), zc_shfl_xor(mean, mask), zc_shfl_xor(m2, mask)};
    }
};
