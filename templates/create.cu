// Tensors that are made from a pattern.
//
// spec.h: Z_UNIT (bytes that are written at once), Z_HOW (fill, eye: a diagonal of ones, trilu: a triangle of the source).
#include "zc/index.cuh"
#include "abi/create.h"
#include "spec.h"

ZC_DEV void put_value(const zc_create_params &p, zc_unit16 *v) { *v = zc_unit16{p.value[0], p.value[1]}; }
template <class T> ZC_DEV void put_value(const zc_create_params &p, T *v) { *v = (T)p.value[0]; }

template <int B> ZC_DEV void fill(const zc_create_params &p) {
    zc_unit<B> v;
    put_value(p, &v);
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) ((zc_unit<B> *)p.out)[i] = v;
}

template <int B> ZC_DEV void eye(const zc_create_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 row = (u64)i;
        const i64 col = (i64)zc_split(&row, p.cols);
        zc_unit<B> v = {};
        if (col - (i64)row == p.k) put_value(p, &v);
        ((zc_unit<B> *)p.out)[i] = v;
    }
}

template <int B> ZC_DEV void trilu(const zc_create_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 rest = (u64)i;
        const i64 col = (i64)zc_split(&rest, p.cols), row = (i64)zc_split(&rest, p.rows);
        zc_unit<B> v = {};
        if (p.upper ? col - row >= p.k : col - row <= p.k) v = ((const zc_unit<B> *)p.in)[i];
        ((zc_unit<B> *)p.out)[i] = v;
    }
}
ZC_UNIT_KERNEL(0, Z_HOW, zc_create_params)
