// Unique: rows are sorted, equal neighbours make a group; groups stay in that order or come by first occurrence.
//
// spec.h: Z_IN (type). Entries: 0 sorts chunks, 1 merges pairs of runs, 2 counts group starts by tiles, 3 scans, 4
// groups the rows, 5 counts first rows by tiles, 6 numbers groups by first row, 7 writes one entry a group, 8 one a
// row, 9 the values.
#include "zc/index.cuh"
#include "zc/order.cuh"
#include "zc/scan.cuh"
#include "abi/unique.h"
#include "spec.h"

// Negative, zero or positive as row a stands before b, is equal or stands behind.
ZC_DEV int compare(const zc_unique_params &p, u32 a, u32 b) {
    for (i64 o = 0; o < p.outer; o++) {
        const i64 at_a = (o * p.rows + a) * p.inner, at_b = (o * p.rows + b) * p.inner;
        for (i64 j = 0; j < p.inner; j++) {
            const auto x = zc_key(zc_load<Z_IN>(p.in, at_a + j)), y = zc_key(zc_load<Z_IN>(p.in, at_b + j));
            if (x != y) return x < y ? -1 : 1;
        }
    }
    return 0;
}
struct by_row {
    const zc_unique_params &p;
    ZC_MEMBER bool operator()(u32 a, u32 b) const { return compare(p, a, b) < 0; }
};

ZC_KERNEL(0)(const __grid_constant__ zc_unique_params p) {
    zc_begin();
    __shared__ u32 a[ZC_UNIQUE_CHUNK], b[ZC_UNIQUE_CHUNK];
    const i64 first = (i64)blockIdx.x * ZC_UNIQUE_CHUNK;
    const u32 n = p.rows - first < ZC_UNIQUE_CHUNK ? (u32)(p.rows - first) : (u32)ZC_UNIQUE_CHUNK;
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) a[i] = (u32)first + i;
    const u32 *sorted = zc_sort_block(a, b, n, by_row{p});
    for (u32 i = threadIdx.x; i < n; i += blockDim.x) p.to[first + i] = sorted[i];
}
ZC_KERNEL(1)(const __grid_constant__ zc_unique_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.rows; i += zc_threads())
        zc_merge_item<i64>(p.from, p.to, i, p.rows, p.run, by_row{p});
}

struct starts_group {
    const zc_unique_params &p;
    ZC_MEMBER bool operator()(i64 i) const { return i == 0 || compare(p, p.from[i - 1], p.from[i]) != 0; }
};
ZC_KERNEL(2)(const __grid_constant__ zc_unique_params p) { zc_begin(); zc_count_tile(p.tiles, p.rows, starts_group{p}); }
ZC_KERNEL(3)(const __grid_constant__ zc_unique_params p) { zc_begin(); zc_scan_counts(p.tiles, p.ntiles); }

ZC_KERNEL(4)(const __grid_constant__ zc_unique_params p) {
    zc_begin();
    i64 base = p.tiles[blockIdx.x];
    const starts_group starts = {p};
    for (int r = 0; r < ZC_SCAN_TILE / ZC_SCAN_BLOCK; r++) {
        const i64 i = (i64)blockIdx.x * ZC_SCAN_TILE + r * ZC_SCAN_BLOCK + threadIdx.x;
        const bool set = i < p.rows && starts(i);
        u32 all;
        const i64 upto = base + zc_block_rank(set, &all) + set;
        if (i < p.rows) p.group[p.from[i]] = (u32)(upto - 1);
        if (set) {
            p.first[upto - 1] = p.from[i];
            p.start[upto - 1] = (u32)i;
        }
        if (i == p.rows - 1) p.start[upto] = (u32)p.rows;
        base += all;
    }
}

struct is_first {
    const zc_unique_params &p;
    ZC_MEMBER bool operator()(i64 row) const { return p.first[p.group[row]] == (u32)row; }
};
struct put_number {
    const zc_unique_params &p;
    ZC_MEMBER void operator()(i64 row, i64 at) const { p.number[p.group[row]] = (u32)at; }
};
ZC_KERNEL(5)(const __grid_constant__ zc_unique_params p) { zc_begin(); zc_count_tile(p.tiles, p.rows, is_first{p}); }
ZC_KERNEL(6)(const __grid_constant__ zc_unique_params p) {
    zc_begin();
    zc_place_tile(p.tiles, p.rows, is_first{p}, put_number{p});
}

ZC_KERNEL(7)(const __grid_constant__ zc_unique_params p) {
    zc_begin();
    for (i64 g = zc_thread(); g < p.groups; g += zc_threads()) {
        const i64 to = p.number ? p.number[g] : g;
        p.picked[to] = p.first[g];
        if (p.firsts) p.firsts[to] = p.first[g];
        if (p.counts) p.counts[to] = p.start[g + 1] - p.start[g];
    }
}
ZC_KERNEL(8)(const __grid_constant__ zc_unique_params p) {
    zc_begin();
    for (i64 row = zc_thread(); row < p.rows; row += zc_threads())
        p.inverse[row] = p.number ? p.number[p.group[row]] : p.group[row];
}
ZC_KERNEL(9)(const __grid_constant__ zc_unique_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.outer * p.groups * p.inner; i += zc_threads()) {
        u64 outer = (u64)i;
        const i64 j = (i64)zc_split(&outer, p.by_inner), row = p.picked[zc_split(&outer, p.by_groups)];
        ((Z_IN *)p.values)[i] = ((const Z_IN *)p.in)[((i64)outer * p.rows + row) * p.inner + j];
    }
}
