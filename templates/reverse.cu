// ReverseSequence: the first lengths[b] times of batch entry b in reverse order. spec.h: Z_UNIT (bytes that are copied at once).
#include "zc/index.cuh"
#include "abi/reverse.h"
#include "spec.h"

template <int B> ZC_DEV void reverse(const zc_reverse_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 rest = (u64)i;
        zc_split(&rest, p.inner);
        const i64 second = (i64)zc_split(&rest, p.second), first = (i64)rest;
        const i64 time = p.time_axis ? second : first, n = p.lengths[p.time_axis ? first : second];
        i64 from = i;
        if (n < 0 || n > p.times)
            zc_report(p.fault, p.step, ZC_FAULT_VALUE, n, 0, p.times);
        else if (time < n)
            from += (n - 1 - 2 * time) * p.time_stride;
        ((zc_unit<B> *)p.out)[i] = ((const zc_unit<B> *)p.in)[from];
    }
}
ZC_UNIT_KERNEL(0, reverse, zc_reverse_params)
