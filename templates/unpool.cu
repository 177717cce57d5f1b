// MaxUnpool: each element goes to the place that its index names, the rest is zero. Where several go to one place
// the last wins.
//
// spec.h: Z_X (an unsigned type of the elements' size), Z_RANK.
// Entries: 0 finds the owner of each place, 1 fills the places.
#include "zc/device.cuh"
#include "abi/unpool.h"
#include "spec.h"

ZC_KERNEL(0)(const __grid_constant__ zc_unpool_params p) {
    zc_begin();
    const i64 i = zc_thread();
    if (i >= p.count) return;
    const i64 index = p.index[i];
    bool ok = index >= 0 && index < p.range;
    i64 rest = ok ? index : 0, at = 0, step = 1;
#pragma unroll
    for (int d = Z_RANK - 1; d >= 0; d--) {
        const i64 size = ok ? p.implied[d] : 1, outer = rest / size, pos = rest - outer * size;
        ok = ok && pos < p.dims[d];
        at += pos * step;
        step *= p.dims[d];
        rest = outer;
    }
    if (!ok) {
        zc_report(p.fault, p.step, ZC_FAULT_INDEX, index, 0, p.range - 1);
        return;
    }
    zc_atomic_max(p.owner + at, (u32)(i + 1));
}

ZC_KERNEL(1)(const __grid_constant__ zc_unpool_params p) {
    zc_begin();
    const i64 i = zc_thread();
    if (i >= p.total) return;
    const u32 owner = p.owner[i];
    ((Z_X *)p.out)[i] = owner ? ((const Z_X *)p.in)[owner - 1] : (Z_X)0;
}
