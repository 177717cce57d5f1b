// Counts of n-grams, weighted: a warp an output element.
//
// spec.h: Z_IN (type), Z_MOST_SKIPS, Z_SHORTEST and Z_LONGEST (the n-grams that are counted), Z_WEIGH (0 the count, 1
// the weight of what occurs, 2 both); and tables: z_pool, the n-grams' items; of each n-gram z_gram (its place in
// the pool), z_length and z_weight (an f32's bits); z_column: the output columns, each the sum of the n-grams from
// z_first[c] to z_first[c + 1].
#include "zc/device.cuh"
#include "abi/tfidf.h"
#include "spec.h"

ZC_DEV bool matches(const zc_tfidf_params &p, i64 at, i64 stride, int gram) {
    const int n = z_length[gram];
    for (int i = 0; i < n; i++)
        if ((i64)zc_load<Z_IN>(p.in, at + i * stride) != z_pool[z_gram[gram] + i]) return false;
    return true;
}

// How often this lane finds the n-gram in the row, its items `stride` apart for all strides.
ZC_DEV i64 count(const zc_tfidf_params &p, i64 row, int gram) {
    const i64 reach = z_length[gram] - 1, strides = reach ? Z_MOST_SKIPS : 0;
    i64 found = 0;
    if (z_length[gram] < Z_SHORTEST || z_length[gram] > Z_LONGEST) return 0;
    for (i64 stride = 1; stride <= p.width && stride - 1 <= strides; stride++) {
        if (reach > p.width / stride) break;
        for (i64 at = threadIdx.x % 32; at < p.width - reach * stride; at += 32)
            found += matches(p, row * p.width + at, stride, gram);
    }
    return found;
}

ZC_DEV f32 weigh(f32 v, int gram) {
    const f32 weight = zc_float(z_weight[gram]);
    return Z_WEIGH == 2 ? v * weight : Z_WEIGH == 1 ? (v > 0 ? weight : 0.0f) : v;
}

ZC_KERNEL(0)(const __grid_constant__ zc_tfidf_params p) {
    zc_begin();
    for (i64 w = zc_thread() / 32; w < p.rows * Z_COLUMNS; w += zc_threads() / 32) {
        const i64 row = w / Z_COLUMNS;
        const int c = (int)(w - row * Z_COLUMNS);
        i64 found = 0;
        for (int g = z_first[c]; g < z_first[c + 1]; g++) found += count(p, row, g);
        for (int mask = 16; mask; mask /= 2) found += zc_shfl_xor(found, mask);
        f32 v = (f32)found;
        for (int g = z_first[c]; g < z_first[c + 1]; g++) v = weigh(v, g);
        if (threadIdx.x % 32 == 0) ((f32 *)p.out)[row * p.columns + z_column[c]] = v;
    }
}
