// TensorScatter: the update goes into a copy of the cache from each batch entry's position on. spec.h: Z_UNIT
// (bytes that are copied at once).
#include "zc/index.cuh"
#include "abi/tensor_scatter.h"
#include "spec.h"

template <int B> ZC_DEV void tensor_scatter(const zc_tensor_scatter_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 rest = (u64)i;
        const i64 inner = (i64)zc_split(&rest, p.inner), at = (i64)zc_split(&rest, p.n);
        i64 to = p.at ? p.at[zc_divide(rest, p.middle)] : 0;
        if (p.circular) {
            to %= p.room;
            if (to < 0) to += p.room;
        } else if (to < 0 || to > p.room - (i64)p.n.d) {
            zc_report(p.fault, p.step, ZC_FAULT_VALUE, to, 0, p.room - (i64)p.n.d);
            continue;
        }
        to += at;
        if (to >= p.room) to -= p.room;
        ((zc_unit<B> *)p.out)[((i64)rest * p.room + to) * (i64)p.inner.d + inner] = ((const zc_unit<B> *)p.update)[i];
    }
}
ZC_UNIT_KERNEL(0, tensor_scatter, zc_tensor_scatter_params)
