// Running sums and products along an axis. The result may overwrite the input.
//
// spec.h: Z_T (type), Z_ACC (type of sums), Z_PRODUCT, Z_EXCLUSIVE, Z_REVERSE (true or false).
// Entries: 0 and 1 a chunk of a line a block: total, result; 2 and 3 a chunk of a line a thread: total, result.
#include "zc/device.cuh"
#include "abi/cumulate.h"
#include "spec.h"

typedef Z_ACC acc;
enum { BLOCK = 256, EACH = 4 };

ZC_DEV acc none() { return Z_PRODUCT ? (acc)1 : (acc)0; }
ZC_DEV acc both(acc a, acc b) { return Z_PRODUCT ? zx_mul(a, b) : zx_add(a, b); }

// Offset of the element that comes i-th in a line.
ZC_DEV i64 offset(const zc_cumulate_params &p, i64 line, i64 i) {
    const i64 at = Z_REVERSE ? p.length - 1 - i : i;
    return ((i64)((u64)line / (u64)p.inner) * p.length + at) * p.inner + (i64)((u64)line % (u64)p.inner);
}

struct span {
    i64 line, chunk, begin, end;
};
ZC_DEV span span_of(const zc_cumulate_params &p, i64 unit) {
    span s;
    s.line = (i64)((u64)unit % (u64)p.lines);
    s.chunk = (i64)((u64)unit / (u64)p.lines);
    s.begin = s.chunk * p.chunk;
    s.end = s.begin + p.chunk < p.length ? s.begin + p.chunk : p.length;
    return s;
}

// The values of the threads before this one joined, and in *all those of the block.
ZC_DEV acc before(acc v, acc *all) {
    ZC_DYNAMIC_SMEM(smem);
    acc *parts = (acc *)smem;
    const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
    acc run = v;
    for (int d = 1; d < 32; d *= 2) {
        const acc left = zc_shfl(run, lane - d < 0 ? lane : lane - d);
        if (lane >= d) run = both(left, run);
    }
    const acc left = zc_shfl(run, lane ? lane - 1 : 0);
    zc_sync();
    if (lane == 31) parts[warp] = run;
    zc_sync();
    acc ahead = none(), sum = none();
    for (int w = 0; w < BLOCK / 32; w++) {
        if (w == warp) ahead = sum;
        sum = both(sum, parts[w]);
    }
    *all = sum;
    return lane ? both(ahead, left) : ahead;
}

// What comes before a chunk: the totals of the chunks before it.
ZC_DEV acc start_of(const zc_cumulate_params &p, const span &s) {
    acc r = none();
    for (i64 c = 0; c < s.chunk; c++) r = both(r, ((const acc *)p.totals)[s.line * p.chunks + c]);
    return r;
}

ZC_KERNEL(0)(const __grid_constant__ zc_cumulate_params p) {
    zc_begin();
    const span s = span_of(p, blockIdx.x);
    acc sum = none(), all;
    for (i64 i = s.begin + threadIdx.x; i < s.end; i += BLOCK)
        sum = both(sum, zc_load<Z_T>(p.in, offset(p, s.line, i)));
    before(sum, &all);
    if (threadIdx.x == 0) ((acc *)p.totals)[s.line * p.chunks + s.chunk] = all;
}

ZC_KERNEL(1)(const __grid_constant__ zc_cumulate_params p) {
    zc_begin();
    const span s = span_of(p, blockIdx.x);
    acc sum = start_of(p, s);
    for (i64 tile = s.begin; tile < s.end; tile += BLOCK * EACH) {
        const i64 first = tile + (i64)threadIdx.x * EACH;
        acc v[EACH], mine = none(), all;
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            v[k] = first + k < s.end ? (acc)zc_load<Z_T>(p.in, offset(p, s.line, first + k)) : none();
            mine = both(mine, v[k]);
        }
        acc run = both(sum, before(mine, &all));
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const acc next = both(run, v[k]);
            if (first + k < s.end) zc_save<Z_T>(p.out, offset(p, s.line, first + k), Z_EXCLUSIVE ? run : next);
            run = next;
        }
        sum = both(sum, all);
    }
}

ZC_KERNEL(2)(const __grid_constant__ zc_cumulate_params p) {
    zc_begin();
    if (zc_thread() >= p.lines * p.chunks) return;
    const span s = span_of(p, zc_thread());
    acc sum = none();
    for (i64 i = s.begin; i < s.end; i++) sum = both(sum, zc_load<Z_T>(p.in, offset(p, s.line, i)));
    ((acc *)p.totals)[s.line * p.chunks + s.chunk] = sum;
}

ZC_KERNEL(3)(const __grid_constant__ zc_cumulate_params p) {
    zc_begin();
    if (zc_thread() >= p.lines * p.chunks) return;
    const span s = span_of(p, zc_thread());
    const i64 step = Z_REVERSE ? -p.inner : p.inner;
    acc sum = start_of(p, s);
    i64 at = offset(p, s.line, s.begin);
    for (i64 i = s.begin; i < s.end; i++, at += step) {
        const acc next = both(sum, zc_load<Z_T>(p.in, at));
        zc_save<Z_T>(p.out, at, Z_EXCLUSIVE ? sum : next);
        sum = next;
    }
}
