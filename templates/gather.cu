// Gather, GatherND and GatherElements. An index out of range is reported, and its part of the result is zero.
//
// spec.h: Z_INDEX (type of the indices), Z_UNIT (bytes that are copied at once), Z_HOW (the operation's function).
#include "zc/index.cuh"
#include "abi/gather.h"
#include "spec.h"

template <int B> ZC_DEV void put(const zc_gather_params &p, i64 i, bool ok, i64 from) {
    zc_unit<B> v = {};
    if (ok) v = ((const zc_unit<B> *)p.in)[from];
    ((zc_unit<B> *)p.out)[i] = v;
}

template <int B> ZC_DEV void gather(const zc_gather_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 outer = (u64)i;
        const i64 at = (i64)zc_split(&outer, p.run), n = (i64)zc_split(&outer, p.n);
        i64 v = (i64)((const Z_INDEX *)p.indices)[n];
        const bool ok = zc_index_ok(&v, p.limit, p.fault, p.step);
        put<B>(p, i, ok, ((i64)outer * p.limit + v) * (i64)p.run.d + at);
    }
}

template <int B> ZC_DEV void gather_nd(const zc_gather_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 tuple = (u64)i;
        const i64 at = (i64)zc_split(&tuple, p.run);
        const Z_INDEX *index = (const Z_INDEX *)p.indices + (i64)tuple * p.rank;
        i64 from = (i64)zc_divide(tuple, p.n);
        bool ok = true;
        for (int d = 0; d < p.rank && ok; d++) {
            i64 v = (i64)index[d];
            ok = zc_index_ok(&v, (i64)p.dims[d].d, p.fault, p.step);
            from = from * (i64)p.dims[d].d + v;
        }
        put<B>(p, i, ok, from * (i64)p.run.d + at);
    }
}

template <int B> ZC_DEV void gather_elements(const zc_gather_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 rest = (u64)i;
        i64 v = (i64)((const Z_INDEX *)p.indices)[i];
        const bool ok = zc_index_ok(&v, p.limit, p.fault, p.step);
        i64 from = 0;
        for (int d = p.rank - 1; d >= 0; d--) {
            const i64 at = (i64)zc_split(&rest, p.dims[d]);
            from += (d == p.axis ? v : at) * p.strides[d];
        }
        put<B>(p, i, ok, from);
    }
}
ZC_UNIT_KERNEL(0, Z_HOW, zc_gather_params)
