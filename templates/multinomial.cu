// Draws of classes: entry 0 sums the weights up, a block a row; entry 1 draws, a thread a sample.
//
// spec.h: Z_IN and Z_OUT (types).
#include "zc/random.cuh"
#include "abi/multinomial.h"
#include "spec.h"

#define BLOCK 256

// Each thread has neighbouring classes, so that the running sums never fall within them.
struct share {
    i64 begin, end;
};
ZC_DEV share share_of(i64 classes) {
    const i64 per = (classes + BLOCK - 1) / BLOCK, begin = per * threadIdx.x;
    return share{begin < classes ? begin : classes, begin + per < classes ? begin + per : classes};
}
// NaN stands behind every number, and comes back in the sums.
ZC_DEV f64 largest(const zc_multinomial_params &p, i64 row, share s, f64 *parts) {
    f64 most = -zc_inf64();
    for (i64 c = s.begin; c < s.end; c++) {
        const f64 v = (f64)zc_load<Z_IN>(p.in, row * p.classes + c);
        if (v > most) most = v;
    }
    zc_sync();
    parts[threadIdx.x] = most;
    zc_sync();
    for (int t = 0; t < BLOCK; t++) most = parts[t] > most ? parts[t] : most;
    return most;
}
ZC_DEV f64 weight(const zc_multinomial_params &p, i64 row, i64 c, f64 most) {
    return exp((f64)zc_load<Z_IN>(p.in, row * p.classes + c) - most);
}

ZC_KERNEL(0)(const __grid_constant__ zc_multinomial_params p) {
    zc_begin();
    __shared__ f64 parts[BLOCK];
    const share s = share_of(p.classes);
    for (i64 row = blockIdx.x; row < p.rows; row += gridDim.x) {
        const f64 most = largest(p, row, s, parts);
        f64 mine = 0, before = 0, total = 0;
        for (i64 c = s.begin; c < s.end; c++) mine += weight(p, row, c, most);
        zc_sync();
        parts[threadIdx.x] = mine;
        zc_sync();
        for (u32 t = 0; t < BLOCK; t++) {
            if (t == threadIdx.x) before = total;
            total += parts[t];
        }
        for (i64 c = s.begin; c < s.end; c++) p.sums[row * p.classes + c] = before += weight(p, row, c, most);
        if (threadIdx.x == 0) {
            p.totals[2 * row] = most;
            p.totals[2 * row + 1] = total;
            if (!(total > 0)) zc_report(p.fault, p.step, ZC_FAULT_VALUE, 0, 1, p.classes);
        }
    }
}

// The class at which the running sum passes `aim`: one of positive weight, the last such where none passes.
ZC_DEV i64 draw(const zc_multinomial_params &p, i64 row, f64 most, f64 aim) {
    i64 low = 0, high = p.classes;
    while (low < high) {
        const i64 middle = low + (high - low) / 2;
        if (p.sums[row * p.classes + middle] > aim)
            high = middle;
        else
            low = middle + 1;
    }
    i64 c = low;
    while (c < p.classes && !(weight(p, row, c, most) > 0)) c++;
    if (c == p.classes)
        for (c = low - 1; c > 0 && !(weight(p, row, c, most) > 0);) c--;
    return c > 0 ? c : 0;
}

ZC_KERNEL(1)(const __grid_constant__ zc_multinomial_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.rows * p.samples; i += zc_threads()) {
        const i64 row = i / p.samples;
        const f64 most = p.totals[2 * row], total = p.totals[2 * row + 1];
        const i64 c = total > 0 ? draw(p, row, most, zc_random_uniform(p.key, (u64)i) * total) : 0;
        zc_save<Z_OUT>(p.out, i, c);
    }
}
