// What all kernels of attention share: which keys a query sees, biases, scores and their weights, the result.
//
// spec.h: Z_T (queries and keys), Z_V (values), Z_Y (results), Z_REAL (f32 or f64), Z_D, Z_DV (head sizes), Z_LENGTHS (0 none, 1
// lengths, 2 last positions, 3 lengths of keys alone), Z_LENGTH_TYPE, Z_BIAS0 and Z_BIAS1 (types, undefined: none),
// Z_BIAS0_SHARED and Z_BIAS1_SHARED (the bias is the same for all queries), Z_SOFTCAP, Z_SCORES (mode, -1: not wanted).
#pragma once
#include "zc/device.cuh"
#include "abi/attention.h"
#include "spec.h"
#include "zc/fused.cuh"

typedef Z_REAL real;

// Numbers of keys and of rows. A kernel whose launch function refuses more than 31 bits says so before it includes this.
#ifndef ZC_POSITION
#define ZC_POSITION i64
#endif
typedef ZC_POSITION position;

ZC_DEV real least() { return (real)-zc_inf32(); }

// ---- which keys count ----

struct sight {
    i64 keys, position; // valid keys; where query 0 stands among them
    bool even;          // there are none, but hidden keys have a score: all have the same
};

// Lengths that do not fit are reported and brought within bounds.
ZC_DEV i64 bounded(const zc_attention_lengths &l, i64 got, i64 low, i64 high) {
    if (got >= low && got <= high) return got;
    zc_report(l.fault, l.step, ZC_FAULT_VALUE, got, low, high);
    return got < low ? low : high;
}
ZC_DEV sight sight_of(const zc_attention_lengths &l, i64 b) {
#if Z_LENGTHS == 1 // numbers of valid keys
    const i64 n = bounded(l, (i64)zc_load<Z_LENGTH_TYPE>(l.lengths, b), 0, l.nk);
    return {n, n - l.nq, n == 0};
#elif Z_LENGTHS == 2 // numbers of valid keys less one; with as many new tokens as there are in all, no past counts
    const i64 last = bounded(l, (i64)zc_load<Z_LENGTH_TYPE>(l.lengths, b), 0, l.nk - 1);
    return {last + 1, l.nk == l.nq ? 0 : bounded(l, last + 1 - l.nq, 0, l.past), false};
#elif Z_LENGTHS == 3 // numbers of valid keys; the queries begin with the first key
    const i64 n = bounded(l, (i64)zc_load<Z_LENGTH_TYPE>(l.lengths, b), 0, l.nk);
    return {n, l.past, n == 0};
#else
    return {l.nk, l.past, false};
#endif
}

ZC_DEV bool is_even(const zc_attention_params &p, const sight &s) { return s.even && p.mask_value != (f64)least(); }

struct span {
    position lo, hi; // keys
};
ZC_DEV span span_of(const zc_attention_params &p, const sight &s, position i) {
    const position at = (position)s.position + i, nk = (position)p.len.nk, window = (position)p.window;
    span r = {0, (position)s.keys < nk ? (position)s.keys : nk};
    if (is_even(p, s)) r.hi = nk;
    if (p.causal && r.hi > at + 1) r.hi = at + 1;
    if (window > 0 && at + 1 > window) r.lo = at + 1 - window;
#ifdef Z_BIAS0
    if (p.bias[0] && r.hi > (position)p.bias_cols[0]) r.hi = (position)p.bias_cols[0];
#endif
    if (r.hi < r.lo) r.hi = r.lo;
    return r;
}

// ---- scores ----

ZC_DEV real as_bias(b8 v) { return zc_get(v) ? (real)0 : least(); }
template <class T> ZC_DEV real as_bias(T v) { return (real)zc_get(v); }
// What adds nothing.
ZC_DEV b8 no_bias(b8) { return {1}; }
template <class T> ZC_DEV T no_bias(T) { return {}; }

// A query and where its biases begin.
struct query {
    i64 b, h, i, bias0, bias1;
};
ZC_DEV query query_of(const zc_attention_params &p, i64 b, i64 h, i64 i) {
    query q = {b, h, i, 0, 0};
#ifdef Z_BIAS0
    q.bias0 = b * p.bias_steps[0][0] + h * p.bias_steps[0][1] + i * p.bias_steps[0][2];
#endif
#ifdef Z_BIAS1
    q.bias1 = b * p.bias_steps[1][0] + h * p.bias_steps[1][1] + i * p.bias_steps[1][2];
#endif
    return q;
}
// What q k^T becomes before its biases.
ZC_DEV real scaled(const zc_attention_params &p, bool even, real dot) { return even ? (real)0 : dot * (real)p.scale; }
ZC_DEV real capped(const zc_attention_params &p, real s) {
    return Z_SOFTCAP ? zx_tanh(s / (real)p.softcap) * (real)p.softcap : s;
}
// The score with its biases; minus infinity masks whatever the score is, and becomes mask_value.
ZC_DEV real biased(const zc_attention_params &p, const query &q, i64 j, real s) {
    real one = 0, two = 0;
#ifdef Z_BIAS0
    if (p.bias[0]) one = as_bias(((const Z_BIAS0 *)p.bias[0])[q.bias0 + j * p.bias_steps[0][3]]);
#endif
#ifdef Z_BIAS1
    if (p.bias[1]) two = as_bias(((const Z_BIAS1 *)p.bias[1])[q.bias1 + j * p.bias_steps[1][3]]);
#endif
    return one == least() || two == least() ? (real)p.mask_value : s + (one + two);
}

// What two biases add; minus infinity masks whatever the other is.
ZC_DEV real both(real one, real two) { return one == least() || two == least() ? least() : one + two; }

// What values summed under the maximum `was` weigh under the maximum `now`; nothing was summed under minus infinity.
ZC_DEV real rescale(real was, real now) { return was == least() || was == now ? (real)1 : zx_exp(was - now); }
// v with weight w; nothing has a weight of 0, infinity neither.
ZC_DEV real weighed(real v, real w) { return w == 0 ? (real)0 : v * w; }
ZC_DEV real weight_of(real s, real max) { return s == least() ? (real)0 : zx_exp(s - max); }

ZC_DEV bool has_sink(const zc_attention_params &p) { return p.sink || p.zero_sink; }
ZC_DEV real sink_of(const zc_attention_params &p, i64 h) { return p.sink ? (real)zc_load<Z_T>(p.sink, h) : (real)0; }

// Element `at` of the result.
ZC_DEV void put_y(const zc_attention_params &p, i64 at, real v) {
    zc_save<Z_Y>((void *)p.y.data, at, zc_fused(p.fused, v, at));
}
