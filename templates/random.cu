// Random numbers, and elements kept or dropped by them.
//
// spec.h: Z_KIND (0 uniform, 1 normal, 2 1 with the probability that the input says, 3 dropout), Z_OUT and, for kinds
// 2 and 3, Z_IN (types).
#include "zc/random.cuh"
#include "abi/random.h"
#include "spec.h"

ZC_DEV void put(const zc_random_params &p, i64 i, f64 v) {
#if Z_KIND == 2
    zc_save<Z_OUT>(p.out, i, v < (f64)zc_load<Z_IN>(p.in, i));
#elif Z_KIND == 3
    const bool keep = v >= p.offset;
    if (p.out) zc_save<Z_OUT>(p.out, i, keep ? (f64)zc_load<Z_IN>(p.in, i) / p.scale : 0.0);
    if (p.mask) ((u8 *)p.mask)[i] = keep;
#else
    zc_save<Z_OUT>(p.out, i, p.offset + v * p.scale);
#endif
}

ZC_KERNEL(0)(const __grid_constant__ zc_random_params p) {
    zc_begin();
    for (i64 pair = zc_thread(); 2 * pair < p.total; pair += zc_threads()) {
        f64 v[2];
#if Z_KIND == 1
        zc_random_normals(p.key, (u64)pair, v);
#else
        zc_random_uniforms(p.key, (u64)pair, v);
#endif
        put(p, 2 * pair, v[0]);
        if (2 * pair + 1 < p.total) put(p, 2 * pair + 1, v[1]);
    }
}
