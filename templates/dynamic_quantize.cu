// DynamicQuantizeLinear: least and greatest element of each block (entry 0); elements, by the scale and zero point that
// every block finds in these (entry 1).
//
// spec.h: Z_X (type).
#include "zc/packed.cuh"
#include "abi/dynamic_quantize.h"
#include "spec.h"

struct range {
    f32 low, high; // 0 belongs to it; NaN makes both NaN
};
ZC_DEV void widen(range *r, f32 v) {
    r->low = zx_min(r->low, v);
    r->high = zx_max(r->high, v);
}

// The range of all threads of the block, in thread 0.
ZC_DEV range block_range(range r) {
    __shared__ range warps[32];
#pragma unroll
    for (int d = 16; d; d >>= 1) {
        const f32 low = zc_shfl_xor(r.low, d), high = zc_shfl_xor(r.high, d);
        widen(&r, low);
        widen(&r, high);
    }
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = r;
    zc_sync();
    if (threadIdx.x == 0) {
        for (u32 w = 1; w < blockDim.x / 32; w++) {
            widen(&r, warps[w].low);
            widen(&r, warps[w].high);
        }
    }
    return r;
}

ZC_KERNEL(0)(const __grid_constant__ zc_dynamic_quantize_params p) {
    zc_begin();
    range r = {0, 0};
    for (i64 i = zc_thread() * 4; i < p.total; i += zc_threads() * 4) {
        const int n = p.total - i < 4 ? (int)(p.total - i) : 4;
        zc_four<Z_X> x;
        if (p.aligned && n == 4) x.load4(p.x, i);
        else x.load(p.x, i, n); // zeros behind the n, which change nothing
#pragma unroll
        for (int j = 0; j < 4; j++) widen(&r, (f32)zc_get(x.get(j)));
    }
    r = block_range(r);
    if (threadIdx.x == 0) {
        p.parts[2 * blockIdx.x] = r.low;
        p.parts[2 * blockIdx.x + 1] = r.high;
    }
}

ZC_DEV u8 to_byte(f32 v) { return (u8)(!(v > 0) ? 0.0f : v > 255 ? 255.0f : v); }

struct quanta {
    f32 scale;
    u8 zero;
};
// Of all blocks' ranges, in every thread.
ZC_DEV quanta quanta_of(const zc_dynamic_quantize_params &p) {
    __shared__ quanta all;
    range r = {0, 0};
    for (int i = (int)threadIdx.x; i < 2 * p.part_count; i += (int)blockDim.x) widen(&r, p.parts[i]);
    r = block_range(r);
    if (threadIdx.x == 0) {
        const f32 scale = (r.high - r.low) / 255.0f;
        all.scale = scale == 0 ? 1 : scale;
        all.zero = to_byte(rintf(-r.low / all.scale));
    }
    zc_sync();
    return all;
}

ZC_KERNEL(1)(const __grid_constant__ zc_dynamic_quantize_params p) {
    zc_begin();
    const quanta q = quanta_of(p);
    if (zc_thread() == 0) {
        *p.scale = q.scale;
        *p.zero = q.zero;
    }
    for (i64 i = zc_thread() * 4; i < p.total; i += zc_threads() * 4) {
        const int n = p.total - i < 4 ? (int)(p.total - i) : 4;
        zc_four<Z_X> x;
        zc_four<u8> y;
        if (p.aligned && n == 4) x.load4(p.x, i);
        else x.load(p.x, i, n);
#pragma unroll
        for (int j = 0; j < 4; j++) y.set(j, to_byte(rintf((f32)zc_get(x.get(j)) / q.scale) + (f32)q.zero));
        if (p.aligned && n == 4) y.store4(p.y, i);
        else y.store(p.y, i, n);
    }
}
