// NonZero and Compress: positions of elements that are not zero, in order.
//
// spec.h: Z_IN (type of the elements that are examined), Z_UNIT (bytes that are copied at once). Entries: 0 counts by tiles, 1 scans the counts, 2 writes
// coordinates, 3 writes positions, 4 copies the rows at these positions.
#include "zc/index.cuh"
#include "zc/scan.cuh"
#include "abi/select.h"
#include "spec.h"

struct is_set {
    const zc_select_params &p;
    ZC_MEMBER bool operator()(i64 i) const {
        if (zc_load<Z_IN>(p.flags, i) == (zc_compute<Z_IN>)0) return false;
        if (i < p.limit) return true;
        zc_report(p.fault, p.step, ZC_FAULT_INDEX, i, 0, p.limit - 1);
        return false;
    }
};

ZC_KERNEL(0)(const __grid_constant__ zc_select_params p) { zc_begin(); zc_count_tile(p.counts, p.n, is_set{p}); }
ZC_KERNEL(1)(const __grid_constant__ zc_select_params p) { zc_begin(); zc_scan_counts(p.counts, p.tiles); }

struct put_coordinates {
    const zc_select_params &p;
    ZC_MEMBER void operator()(i64 i, i64 at) const {
        u64 rest = (u64)i;
        for (int d = p.rank - 1; d >= 0; d--) p.out[d * p.found + at] = (i64)zc_split(&rest, p.dims[d]);
    }
};
ZC_KERNEL(2)(const __grid_constant__ zc_select_params p) {
    zc_begin();
    zc_place_tile(p.counts, p.n, is_set{p}, put_coordinates{p});
}

struct put_position {
    i64 *map;
    ZC_MEMBER void operator()(i64 i, i64 at) const { map[at] = i; }
};
ZC_KERNEL(3)(const __grid_constant__ zc_select_params p) {
    zc_begin();
    zc_place_tile(p.counts, p.n, is_set{p}, put_position{p.map});
}

template <int B> ZC_DEV void rows(const zc_select_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 outer = (u64)i;
        const i64 at = (i64)zc_split(&outer, p.run), row = p.map[zc_split(&outer, p.picked)];
        ((zc_unit<B> *)p.rows)[i] = ((const zc_unit<B> *)p.data)[((i64)outer * p.limit + row) * (i64)p.run.d + at];
    }
}
ZC_UNIT_KERNEL(4, rows, zc_select_params)
