// Discrete Fourier transforms of any length: Stockham's algorithm with the length's prime factors (and 4) as radices.
//
// Before a stage of radix r, with `before` the product of the radices of earlier stages, the buffer holds transforms
// of length `before`; the stage joins r of them. An output element is a sum of r products with points of the unit
// circle, and a prime length is the plain sum. Entry 0 computes the points, 1 transforms lines that fit in shared
// memory, 2 to 4 load, transform one stage and store lines that do not.
//
// spec.h: Z_TYPE (elements), Z_WINDOW (type of the window), Z_C (f32 or f64: sums).
#include "zc/unit_root.cuh"
#include "abi/fourier.h"
#include "spec.h"

struct alignas(2 * sizeof(Z_C)) pair {
    Z_C re, im;
};

ZC_KERNEL(0)(const __grid_constant__ zc_fourier_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.n; i += zc_threads()) {
        f64 c, s;
        zc_unit_root(i, p.n, &c, &s);
        ((pair *)p.roots)[i] = pair{(Z_C)c, (Z_C)(p.inverse ? s : -s)};
    }
}

// ---- elements ----

ZC_DEV i64 place(const zc_fourier_side &s, i64 line, int i) {
    const i64 group = line / s.group;
    return (group * s.outer + (line - group * s.group) * s.line + i * s.step) * s.parts;
}

ZC_DEV pair read(const zc_fourier_params &p, i64 line, int i) {
    const bool mirrored = p.mirror && i > p.n / 2;
    const int at = mirrored ? p.n - i : i;
    if (at >= p.from.count) return pair{0, 0};
    const i64 where = place(p.from, line, at);
    pair v = {(Z_C)zc_load<Z_TYPE>(p.in, where), 0};
    if (p.from.parts == 2) v.im = (Z_C)zc_load<Z_TYPE>(p.in, where + 1);
    if (p.window) {
        const Z_C w = (Z_C)zc_load<Z_WINDOW>(p.window, i);
        v = pair{v.re * w, v.im * w};
    }
    // Half a spectrum of real numbers: its ends are real, whatever they hold.
    if (p.mirror) v.im = at == 0 || at == p.n - at ? (Z_C)0 : mirrored ? -v.im : v.im;
    return v;
}

ZC_DEV void write(const zc_fourier_params &p, i64 line, int i, pair v) {
    const i64 where = place(p.to, line, i);
    zc_save<Z_TYPE>(p.out, where, v.re * (Z_C)p.scale);
    if (p.to.parts == 2) zc_save<Z_TYPE>(p.out, where + 1, v.im * (Z_C)p.scale);
}

// ---- one stage ----

// Output element `at` of a line. Parts of 32 products are summed first, so that long sums stay accurate.
ZC_DEV pair join(const pair *line, const pair *roots, u32 n, u32 radix, u32 before, u32 at) {
    const u32 span = before * radix, block = at / span, within = at - block * span;
    const u32 step = within * (n / span), stride = n / radix;
    const pair *x = line + block * before + within % before;
    u32 angle = 0;
    pair sum = {0, 0};
    for (u32 first = 0; first < radix; first += 32) {
        const u32 end = first + 32 < radix ? first + 32 : radix;
        pair part = {0, 0};
        for (u32 r = first; r < end; r++) {
            const pair v = x[(u64)r * stride], w = roots[angle];
            part.re += v.re * w.re - v.im * w.im;
            part.im += v.re * w.im + v.im * w.re;
            angle += step;
            if (angle >= n) angle -= n;
        }
        sum.re += part.re;
        sum.im += part.im;
    }
    return sum;
}

// ---- lines in shared memory ----

// Elements of a block's lines in an order in which neighbours in memory come together: calls f(line, i).
template <class F> ZC_DEV void each(const zc_fourier_side &s, u32 lines, u32 count, const F &f) {
    for (u32 w = threadIdx.x; w < lines * count; w += blockDim.x) {
        const u32 by = s.step == 1 ? count : lines, outer = w / by, inner = w - outer * by;
        if (s.step == 1)
            f(outer, inner);
        else
            f(inner, outer);
    }
}

ZC_KERNEL(1)(const __grid_constant__ zc_fourier_params p) {
    zc_begin();
    ZC_DYNAMIC_SMEM(smem);
    const u32 n = (u32)p.n;
    for (i64 first = (i64)blockIdx.x * p.per_block; first < p.lines; first += (i64)gridDim.x * p.per_block) {
        const i64 left = p.lines - first;
        const u32 lines = left < p.per_block ? (u32)left : (u32)p.per_block;
        pair *x = (pair *)smem, *y = x + (u32)p.per_block * n;
        zc_sync();
        each(p.from, lines, n, [&](u32 line, u32 i) { x[line * n + i] = read(p, first + line, (int)i); });
        u32 before = 1;
        for (int s = 0; s < p.stages; s++) {
            const u32 radix = (u32)p.radix[s];
            zc_sync();
            for (u32 w = threadIdx.x; w < lines * n; w += blockDim.x) {
                const u32 line = w / n;
                y[w] = join(x + line * n, (const pair *)p.roots, n, radix, before, w - line * n);
            }
            before *= radix;
            pair *swap = x;
            x = y;
            y = swap;
        }
        zc_sync();
        each(p.to, lines, (u32)p.to.count,
             [&](u32 line, u32 i) { write(p, first + line, (int)i, x[line * n + i]); });
    }
}

// ---- long lines ----

ZC_KERNEL(2)(const __grid_constant__ zc_fourier_params p) {
    zc_begin();
    for (i64 w = zc_thread(); w < p.lines * p.n; w += zc_threads()) {
        const i64 line = w / p.n;
        ((pair *)p.work[0])[w] = read(p, p.first + line, (int)(w - line * p.n));
    }
}

ZC_KERNEL(3)(const __grid_constant__ zc_fourier_params p) {
    zc_begin();
    for (i64 w = zc_thread(); w < p.lines * p.n; w += zc_threads()) {
        const i64 line = w / p.n;
        ((pair *)p.work[1])[w] = join((const pair *)p.work[0] + line * p.n, (const pair *)p.roots, (u32)p.n,
                                      (u32)p.radix_now, (u32)p.span_before, (u32)(w - line * p.n));
    }
}

ZC_KERNEL(4)(const __grid_constant__ zc_fourier_params p) {
    zc_begin();
    for (i64 w = zc_thread(); w < p.lines * p.to.count; w += zc_threads()) {
        const i64 line = w / p.to.count, i = w - line * p.to.count;
        write(p, p.first + line, (int)i, ((const pair *)p.work[0])[line * p.n + i]);
    }
}
