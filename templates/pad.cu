// A box of the source inside a border: Pad and CenterCropPad. spec.h: Z_UNIT (bytes of an element).
#include "zc/index.cuh"
#include "abi/pad.h"
#include "spec.h"

ZC_DEV i64 modulo(i64 a, i64 n) {
    const i64 r = a % n;
    return r < 0 ? r + n : r;
}
// The element of [0, n) that extends to position `at`.
ZC_DEV i64 extend(int mode, i64 at, i64 n) {
    if (at >= 0 && at < n) return at;
    if (mode == ZC_PAD_EDGE) return at < 0 ? 0 : n - 1;
    if (mode == ZC_PAD_WRAP || n == 1) return modulo(at, n);
    const i64 m = modulo(at, 2 * (n - 1));
    return m < n ? m : 2 * (n - 1) - m;
}

template <int B> ZC_DEV void pad(const zc_pad_params &p) {
    for (i64 i = zc_thread(); i < p.total; i += zc_threads()) {
        u64 rest = (u64)i;
        i64 from = 0;
        bool inside = true;
        for (int d = p.rank - 1; d >= 0; d--) {
            i64 at = (i64)zc_split(&rest, p.axes[d].dim) - p.axes[d].lead;
            if (p.mode == ZC_PAD_CONSTANT)
                inside = inside && at >= 0 && at < p.axes[d].n;
            else
                at = extend(p.mode, at, p.axes[d].n);
            from += at * p.axes[d].stride;
        }
        zc_unit<B> v = {};
        if (inside)
            v = ((const zc_unit<B> *)p.in)[from];
        else if (p.value)
            v = *(const zc_unit<B> *)p.value;
        ((zc_unit<B> *)p.out)[i] = v;
    }
}
ZC_UNIT_KERNEL(0, pad, zc_pad_params)
