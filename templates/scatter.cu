// ScatterElements and ScatterND into a copy of the data. Updates take effect in their order, whatever repeats.
//
// Without a reduction the last update of each target is found first, and it alone is written. With one, updates are
// sorted by target (stably), and one thread takes all of a target in order.
//
// spec.h: Z_INDEX (type of the indices), Z_UNIT (bytes that are written at once); with a reduction Z_IN (type) and Z_HOW: 1 add, 2 mul, 3 max, 4 min.
// Entries: 0 targets of ScatterElements, 1 of ScatterND; without reduction 2 the last updates, 3 writes;
// with one 2 sorts chunks, 3 merges pairs of runs, 4 applies.
#include "zc/index.cuh"
#include "zc/order.cuh"
#include "abi/scatter.h"
#include "spec.h"

ZC_KERNEL(0)(const __grid_constant__ zc_scatter_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.n; i += zc_threads()) {
        u64 rest = (u64)i;
        i64 v = (i64)((const Z_INDEX *)p.indices)[i], target = 0;
        const bool ok = zc_index_ok(&v, p.limit, p.fault, p.step);
        for (int d = p.rank - 1; d >= 0; d--) {
            const i64 at = (i64)zc_split(&rest, p.dims[d]);
            target += (d == p.axis ? v : at) * p.strides[d];
        }
        p.targets[i] = ok ? target : -1;
    }
}

ZC_KERNEL(1)(const __grid_constant__ zc_scatter_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.n; i += zc_threads()) {
        i64 target = 0;
        bool ok = true;
        for (int d = 0; d < p.rank && ok; d++) {
            i64 v = (i64)((const Z_INDEX *)p.indices)[i * p.rank + d];
            ok = zc_index_ok(&v, (i64)p.dims[d].d, p.fault, p.step);
            target = target * (i64)p.dims[d].d + v;
        }
        p.targets[i] = ok ? target : -1;
    }
}

#ifndef Z_HOW

ZC_KERNEL(2)(const __grid_constant__ zc_scatter_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.n; i += zc_threads()) {
        const i64 target = p.targets[i];
        if (target >= 0) zc_atomic_max(&p.last[target], (u32)i + 1u);
    }
}

template <int B> ZC_DEV void write(const zc_scatter_params &p) {
    const i64 slice = (i64)p.slice.d;
    for (i64 i = zc_thread(); i < p.n * slice; i += zc_threads()) {
        u64 update = (u64)i;
        const i64 at = (i64)zc_split(&update, p.slice), target = p.targets[update];
        if (target >= 0 && p.last[target] == (u32)update + 1u)
            ((zc_unit<B> *)p.out)[target * slice + at] = ((const zc_unit<B> *)p.updates)[i];
    }
}
ZC_UNIT_KERNEL(3, write, zc_scatter_params)

#else

struct by_target {
    const i64 *targets;
    ZC_MEMBER bool operator()(u32 a, u32 b) const { return targets[a] < targets[b]; }
};
struct by_key {
    const i64 *keys;
    u32 first;
    ZC_MEMBER bool operator()(u32 a, u32 b) const { return keys[a - first] < keys[b - first]; }
};

ZC_KERNEL(2)(const __grid_constant__ zc_scatter_params p) {
    zc_begin();
    __shared__ i64 keys[ZC_SCATTER_CHUNK];
    __shared__ u32 a[ZC_SCATTER_CHUNK], b[ZC_SCATTER_CHUNK];
    const i64 first = (i64)blockIdx.x * ZC_SCATTER_CHUNK;
    const u32 n = p.n - first < ZC_SCATTER_CHUNK ? (u32)(p.n - first) : (u32)ZC_SCATTER_CHUNK;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
        keys[i] = p.targets[first + i];
        a[i] = (u32)first + i;
    }
    const u32 *sorted = zc_sort_block(a, b, n, by_key{keys, (u32)first});
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) p.to[first + i] = sorted[i];
}

ZC_KERNEL(3)(const __grid_constant__ zc_scatter_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.n; i += zc_threads())
        zc_merge_item<i64>(p.from, p.to, i, p.n, p.run, by_target{p.targets});
}

typedef zc_compute<Z_IN> value;

template <class T> ZC_DEV T join(T a, T b) {
#if Z_HOW == 1
    return zx_add(a, b);
#elif Z_HOW == 2
    return zx_mul(a, b);
#elif Z_HOW == 3
    return a >= b || a != a ? a : b;
#else
    return a <= b || a != a ? a : b;
#endif
}
ZC_DEV bool join(bool a, bool b) { return Z_HOW == 1 || Z_HOW == 3 ? a || b : a && b; }

ZC_KERNEL(4)(const __grid_constant__ zc_scatter_params p) {
    zc_begin();
    const i64 slice = (i64)p.slice.d;
    for (i64 i = zc_thread(); i < p.n * slice; i += zc_threads()) {
        u64 place = (u64)i;
        const i64 at = (i64)zc_split(&place, p.slice);
        u32 update = p.from[place];
        const i64 target = p.targets[update];
        if (target < 0 || (place && p.targets[p.from[place - 1]] == target)) continue;
        value v = zc_load<Z_IN>(p.out, target * slice + at);
        do {
            v = zc_through<Z_IN>(join(v, zc_load<Z_IN>(p.updates, update * slice + at)));
            if ((i64)++place == p.n) break;
            update = p.from[place];
        } while (p.targets[update] == target);
        zc_save<Z_IN>(p.out, target * slice + at, v);
    }
}

#endif
