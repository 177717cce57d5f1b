// Blocks that walk the elements of a reduction's outputs (abi/groups.h) and join what their threads saw. The block has
// ZC_GROUP_BLOCK threads and as many states of dynamic shared memory.
#pragma once
#include "abi/groups.h"
#include "zc/device.cuh"

ZC_DEV i64 zc_unravel(i64 i, int groups, const long long *dims, const long long *strides) {
    i64 at = 0;
    for (int d = groups - 1; d > 0; d--) {
        const u64 size = (u64)dims[d], outer = (u64)i / size;
        at += (i - (i64)(outer * size)) * strides[d];
        i = (i64)outer;
    }
    return at + i * strides[0];
}

// A thread's place: its output, where that begins in the input, and the elements [begin, end) that the block sees of
// it; none for a thread without an output. slot: the output's number within the block.
struct zc_place {
    i64 out, base, begin, end;
    int lane, slot;
    bool valid;
};

ZC_DEV zc_place zc_place_of(const zc_groups &g) {
    zc_place at;
    const int t = (int)threadIdx.x, per = (int)blockDim.x / g.lanes;
    at.lane = g.along ? t % g.lanes : t / per;
    at.slot = g.along ? t / g.lanes : t % per;
    at.out = (i64)blockIdx.x * per + at.slot;
    at.valid = at.out < g.outputs;
    at.base = at.valid ? zc_unravel(at.out, g.kept, g.kept_dims, g.kept_strides) : 0;
    at.begin = at.valid ? (i64)blockIdx.y * g.chunk : 0;
    at.end = at.valid ? at.begin + g.chunk : 0;
    if (at.end > g.count) at.end = g.count;
    return at;
}

// f(element, its offset in the input, its number in the output) for this thread's elements, in order.
template <class T, class F> ZC_DEV void zc_walk(const zc_groups &g, const zc_place &at, const void *in, F f) {
    const T *x = (const T *)in + at.base;
    if (g.vec) {
        constexpr int V = 16 / (int)sizeof(T);
#pragma unroll 4
        for (i64 r = at.begin + (i64)at.lane * V; r < at.end; r += (i64)g.lanes * V) {
            const zc_vec<T, V> v = *(const zc_vec<T, V> *)(x + r);
#pragma unroll
            for (int k = 0; k < V; k++) f(v.v[k], at.base + r + k, r + k);
        }
    } else if (g.reduced <= 1) {
        const i64 step = g.reduced_strides[0];
#pragma unroll 4
        for (i64 r = at.begin + at.lane; r < at.end; r += g.lanes) f(x[r * step], at.base + r * step, r);
    } else {
        for (i64 r = at.begin + at.lane; r < at.end; r += g.lanes) {
            const i64 off = zc_unravel(r, g.reduced, g.reduced_dims, g.reduced_strides);
            f(x[off], at.base + off, r);
        }
    }
}

// The joined state of a thread's output, in each thread that works on it. All threads of the block call it.
template <class S> ZC_DEV S zc_join_lanes(const zc_groups &g, const zc_place &at, S s) {
    if (g.lanes == 1) return s;
    if (g.along && g.lanes <= 32) {
        for (int mask = 1; mask < g.lanes; mask *= 2) s = s.join(s.other(mask));
        return s;
    }
    ZC_DYNAMIC_SMEM(smem);
    S *slots = (S *)smem;
    const int per = (int)blockDim.x / g.lanes;
    zc_sync();
    slots[at.lane * per + at.slot] = s;
    for (int half = g.lanes / 2; half; half /= 2) {
        zc_sync();
        if (at.lane >= half) continue;
        s = s.join(slots[(at.lane + half) * per + at.slot]);
        slots[at.lane * per + at.slot] = s;
    }
    zc_sync();
    return slots[at.slot];
}
