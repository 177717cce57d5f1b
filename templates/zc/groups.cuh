// Blocks that walk the elements of a reduction's outputs (abi/groups.h) and join what their threads saw. The block has
// ZC_GROUP_BLOCK threads and as many states of dynamic shared memory.
//
// spec.h: what is certain of the sizes; 0 where a run says it. Z_VECTOR: elements a thread takes at once; Z_AXES: 1 when
// the elements of an output lie at one stride; Z_LANES: threads that share an output; Z_SPLIT: 1 when an output is one
// block's, 2 when it is several blocks'.
#pragma once
#include "abi/groups.h"
#include "zc/index.cuh"
#include "spec.h"

ZC_DEV i64 zc_unravel(i64 i, int groups, const zc_divisor *dims, const long long *strides) {
    u64 rest = (u64)i;
    i64 at = 0;
    for (int d = groups - 1; d > 0; d--) at += (i64)zc_split(&rest, dims[d]) * strides[d];
    return at + (i64)rest * strides[0];
}

ZC_DEV int zc_lanes(const zc_groups &g) { return Z_LANES ? Z_LANES : g.lanes; }

// A thread's place: its output, where that begins in the input, and the elements [begin, end) that the block sees of
// it; none for a thread without an output. slot: the output's number within the block.
struct zc_place {
    i64 out, base, begin, end;
    int lane, slot;
    bool valid;
};

ZC_DEV zc_place zc_place_of(const zc_groups &g) {
    zc_place at;
    const int t = (int)threadIdx.x, lanes = zc_lanes(g), per = ZC_GROUP_BLOCK / lanes;
    at.lane = g.along ? t % lanes : t / per;
    at.slot = g.along ? t / lanes : t % per;
    at.out = (i64)blockIdx.x * per + at.slot;
    at.valid = at.out < g.outputs;
    at.base = at.valid ? zc_unravel(at.out, g.kept, g.kept_dims, g.kept_strides) : 0;
    at.begin = at.valid ? (i64)blockIdx.y * g.chunk : 0;
    at.end = at.valid ? at.begin + g.chunk : 0;
    if (at.end > g.count) at.end = g.count;
    return at;
}

// What is done with an element: nothing of a fused expression; one; one that divides by what only a run knows. The more it
// is the fewer elements are under way, for each is code of its own.
enum { ZC_NO_WORK, ZC_SHORT_WORK, ZC_LONG_WORK };
#if defined(Z_PRE_DIVIDES)
constexpr int ZC_PRE_WORK = ZC_LONG_WORK;
#elif defined(Z_PRE)
constexpr int ZC_PRE_WORK = ZC_SHORT_WORK;
#else
constexpr int ZC_PRE_WORK = ZC_NO_WORK;
#endif
#if defined(Z_FUSED_DIVIDES)
constexpr int ZC_ALL_WORK = ZC_LONG_WORK;
#elif defined(Z_FUSED)
constexpr int ZC_ALL_WORK = ZC_PRE_WORK ? ZC_PRE_WORK : ZC_SHORT_WORK;
#else
constexpr int ZC_ALL_WORK = ZC_PRE_WORK;
#endif

// f(run of V elements, offset of the first in the input, its number in the output), UNROLL runs under way.
template <class T, int V, int UNROLL, class F>
ZC_DEV void zc_walk_by(const zc_groups &g, const zc_place &at, const void *in, F f) {
    typedef zc_vec<T, V> run;
    const T *x = (const T *)in + at.base;
    const i64 first = at.begin + (i64)at.lane * V, step = (i64)zc_lanes(g) * V;
    if (Z_AXES == 1 || (!Z_AXES && g.reduced <= 1)) {
        const i64 stride = V > 1 ? 1 : g.reduced_strides[0];
#pragma unroll UNROLL
        for (i64 r = first; r < at.end; r += step) f(*(const run *)(x + r * stride), at.base + r * stride, r);
    } else {
#pragma unroll 1
        for (i64 r = first; r < at.end; r += step) {
            const i64 off = zc_unravel(r, g.reduced, g.reduced_dims, g.reduced_strides);
            f(*(const run *)(x + off), at.base + off, r);
        }
    }
}

// So for this thread's elements, in order; a run is of as many neighbours as the sizes and the work allow.
template <class T, int WORK, class F>
ZC_DEV void zc_walk_runs(const zc_groups &g, const zc_place &at, const void *in, F f) {
    constexpr int V = WORK == ZC_LONG_WORK ? 1 : Z_VECTOR, WIDE = V ? V : 16 / (int)sizeof(T);
    if constexpr (V != 1)
        if (V || g.vec) return zc_walk_by<T, WIDE, WORK == ZC_NO_WORK ? 4 : 1>(g, at, in, f);
    if constexpr (V <= 1) zc_walk_by<T, 1, WORK == ZC_LONG_WORK ? 1 : 4>(g, at, in, f);
}

// f(element, its offset in the input, its number in the output). (NVRTC takes generic lambdas for host functions.)
template <class T, class F> struct zc_each {
    F f;
    template <int V> ZC_MEMBER void operator()(const zc_vec<T, V> &run, i64 off, i64 r) {
#pragma unroll
        for (int k = 0; k < V; k++) f(run.v[k], off + k, r + k);
    }
};
template <class T, class F> ZC_DEV void zc_walk(const zc_groups &g, const zc_place &at, const void *in, F f) {
    zc_walk_runs<T, ZC_PRE_WORK>(g, at, in, zc_each<T, F>{f});
}

// The joined state of a thread's output, in each thread that works on it. All threads of the block call it.
template <class S> ZC_DEV S zc_join_lanes(const zc_groups &g, const zc_place &at, S s) {
    const int lanes = zc_lanes(g), per = ZC_GROUP_BLOCK / lanes;
    if (lanes == 1) return s;
    if (g.along && lanes <= 32) {
        for (int mask = 1; mask < lanes; mask *= 2) s = s.join(s.other(mask));
        return s;
    }
    ZC_DYNAMIC_SMEM(smem);
    S *slots = (S *)smem;
    zc_sync();
    slots[at.lane * per + at.slot] = s;
    for (int half = lanes / 2; half; half /= 2) {
        zc_sync();
        if (at.lane >= half) continue;
        s = s.join(slots[(at.lane + half) * per + at.slot]);
        slots[at.lane * per + at.slot] = s;
    }
    zc_sync();
    return slots[at.slot];
}
