// LinearAttention: the state [dk][dv] of each batch item and key head is updated and read step by step. Its columns do
// not depend on each other: a warp has one, its lanes the rows, in registers.
//
// spec.h: Z_T (type), Z_STATE (type of the states), Z_DK, Z_HEADS, Z_KV_HEADS, Z_DECAY (elements a head; 0: none),
// Z_BETA (heads; 0: none).
#include "zc/device.cuh"
#include "abi/linear_attention.h"
#include "spec.h"

typedef zc_compute<Z_T> real;
enum { ROWS = (Z_DK + 31) / 32 };

ZC_DEV real sum_warp(real v) {
#pragma unroll
    for (int d = 16; d; d >>= 1) v += zc_shfl_xor(v, d);
    return v;
}

struct column {
    i64 head, m; // batch item and key head, column of its state
    i64 b, h;
    int lane;
    real s[ROWS];
};

// Elements [lane + 32 r] of a head's vector, zeros beyond its end.
template <class T> ZC_DEV void load_rows(const void *from, i64 at, i64 stride, int lane, real out[ROWS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int d = lane + 32 * r;
        out[r] = d < Z_DK ? (real)zc_load<T>(from, at + d * stride) : (real)0;
    }
}

ZC_DEV void decay_state(const zc_linear_attention_params &p, column *c, i64 at) {
#if Z_DECAY
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int d = c->lane + 32 * r;
        if (d < Z_DK)
            c->s[r] *= zx_exp(zc_load<Z_T>(p.decay, (at * Z_KV_HEADS + c->h) * Z_DECAY + (Z_DECAY > 1 ? d : 0)));
    }
#endif
}

// The value to write: with beta, beta * (value - what the state holds for the key).
ZC_DEV real make_value(const zc_linear_attention_params &p, const column *c, i64 at, const real key[ROWS]) {
    const real v = zc_load<Z_T>(p.v, (at * Z_KV_HEADS + c->h) * p.dv + c->m);
#if Z_BETA
    real held = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) held += c->s[r] * key[r];
    return zc_load<Z_T>(p.beta, at * Z_BETA + (Z_BETA > 1 ? c->h : 0)) * (v - sum_warp(held));
#else
    return v;
#endif
}

ZC_DEV void read_state(const zc_linear_attention_params &p, const column *c, i64 at) {
    const int group = Z_HEADS / Z_KV_HEADS;
    for (int g = 0; g < group; g++) {
        const i64 h = c->h * group + g;
        real q[ROWS], sum = 0;
        load_rows<Z_T>(p.q, (at * Z_HEADS + h) * Z_DK, 1, c->lane, q);
#pragma unroll
        for (int r = 0; r < ROWS; r++) sum += q[r] * c->s[r];
        sum = sum_warp(sum);
        if (c->lane == 0) zc_save<Z_T>(p.y, (at * Z_HEADS + h) * p.dv + c->m, sum * (real)p.scale);
    }
}

ZC_KERNEL(0)(const __grid_constant__ zc_linear_attention_params p) {
    zc_begin();
    const i64 at_column = zc_thread() / 32;
    if (at_column >= p.columns) return;
    column c;
    c.lane = (int)(threadIdx.x % 32);
    c.head = at_column / p.dv;
    c.m = at_column - c.head * p.dv;
    c.b = c.head / Z_KV_HEADS;
    c.h = c.head - c.b * Z_KV_HEADS;
    if (p.past) {
        load_rows<Z_STATE>(p.past, c.head * Z_DK * p.dv + c.m, p.dv, c.lane, c.s);
    } else {
#pragma unroll
        for (int r = 0; r < ROWS; r++) c.s[r] = 0;
    }
    for (i64 t = 0; t < p.length; t++) {
        const i64 at = c.b * p.length + t;
        real key[ROWS];
        load_rows<Z_T>(p.k, (at * Z_KV_HEADS + c.h) * Z_DK, 1, c.lane, key);
        decay_state(p, &c, at);
        const real v = make_value(p, &c, at, key);
#pragma unroll
        for (int r = 0; r < ROWS; r++) c.s[r] += key[r] * v;
        if (p.y) read_state(p, &c, at);
    }
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const int d = c.lane + 32 * r;
        if (p.state && d < Z_DK) zc_save<Z_STATE>(p.state, (c.head * Z_DK + d) * p.dv + c.m, c.s[r]);
    }
}
