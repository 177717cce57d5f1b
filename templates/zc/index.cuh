// What kernels that move elements share: units of memory, division by parameters, checked indices.
#pragma once
#include "zc/device.cuh"
#include "abi/divisor.h"

// n / by: a multiplication for n below 2^32, exact since the error of magic is below by / 2^64.
ZC_DEV u64 zc_divide(u64 n, const zc_divisor &by) {
    if (by.magic == 0) return n;
    return n >> 32 ? n / by.d : zc_mulhi64(n, by.magic);
}
// Takes the innermost index off `rest`.
ZC_DEV u64 zc_split(u64 *rest, const zc_divisor &by) {
    const u64 outer = zc_divide(*rest, by), at = *rest - outer * by.d;
    *rest = outer;
    return at;
}

// Entry point n for units of Z_UNIT bytes.
#define ZC_UNIT_KERNEL(n, F, P) ZC_KERNEL(n)(const __grid_constant__ P p) { zc_begin(); F<Z_UNIT>(p); }

// Brings an index in [-limit, limit) to [0, limit); reports any other and returns false.
ZC_DEV bool zc_index_ok(i64 *v, i64 limit, zc_fault_word *fault, u32 step) {
    if (*v < -limit || *v >= limit) {
        zc_report(fault, step, ZC_FAULT_INDEX, *v, -limit, limit - 1);
        return false;
    }
    if (*v < 0) *v += limit;
    return true;
}
