// Rotary position embedding: pairs of each head turned by the angle of their position; what is beyond them copied.
//
// spec.h: Z_T (type), Z_INTERLEAVED, Z_ID (type of the ids).
#include "zc/device.cuh"
#include "abi/rotary.h"
#include "spec.h"

// The row of the tables for position s of sequence b; -1 and a report when there is none.
ZC_DEV i64 table_row(const zc_rotary_params &p, i64 b, i64 s) {
    i64 row = b * p.length + s;
    if (p.id_mode == 3) row = s;
    if (p.id_mode == 1) row = (i64)zc_load<Z_ID>(p.ids, row);
    if (p.id_mode == 2) row = (i64)((u64)(i64)zc_load<Z_ID>(p.ids, 0) + (u64)s);
    if (row >= 0 && row < p.rows) return row;
    zc_report(p.fault, p.step, ZC_FAULT_INDEX, row, 0, p.rows - 1);
    return -1;
}

ZC_KERNEL(0)(const __grid_constant__ zc_rotary_params p) {
    zc_begin();
    typedef zc_compute<Z_T> real;
    const i64 slots = p.size - p.half;
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        const i64 head = i / slots, e = i - head * slots;
        const i64 pos = head / p.heads, h = head - pos * p.heads, b = pos / p.length, s = pos - b * p.length;
        const i64 at = b * p.batch_step + h * p.head_step + s * p.pos_step;
        if (e >= p.half) {
            ((Z_T *)p.y)[at + p.half + e] = ((const Z_T *)p.x)[at + p.half + e];
            continue;
        }
        const i64 row = table_row(p, b, s);
        if (row < 0) continue;
        const i64 re = at + (Z_INTERLEAVED ? 2 * e : e), im = Z_INTERLEAVED ? re + 1 : re + p.half;
        const real c = zc_load<Z_T>(p.cos, row * p.half + e), d = zc_load<Z_T>(p.sin, row * p.half + e);
        const real x = zc_load<Z_T>(p.x, re), y = zc_load<Z_T>(p.x, im);
        zc_save<Z_T>(p.y, re, x * c - y * d);
        zc_save<Z_T>(p.y, im, x * d + y * c);
    }
}
