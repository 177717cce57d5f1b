// OneHot. spec.h: Z_INDEX (type of the indices), Z_UNIT (bytes of a value).
#include "zc/index.cuh"
#include "abi/one_hot.h"
#include "spec.h"

template <int B> ZC_DEV void one_hot(const zc_one_hot_params &p) {
    const zc_unit<B> off = ((const zc_unit<B> *)p.values)[0], on = ((const zc_unit<B> *)p.values)[1];
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 outer = (u64)i;
        const i64 inner = (i64)zc_split(&outer, p.inner), at = (i64)zc_split(&outer, p.depth);
        i64 hot = zc_put<i64>(zc_load<Z_INDEX>(p.indices, (i64)outer * (i64)p.inner.d + inner));
        if (hot < 0) hot += (i64)p.depth.d;
        ((zc_unit<B> *)p.out)[i] = hot == at ? on : off;
    }
}
ZC_UNIT_KERNEL(0, one_hot, zc_one_hot_params)
