// TopK. Chunks of each line are sorted in shared memory, their best are merged.
//
// spec.h: Z_IN (type), Z_LARGEST. Entries: 0 sorts chunks (a block each), 1 merges pairs of runs, 2 writes the result.
#include "zc/index.cuh"
#include "zc/order.cuh"
#include "abi/topk.h"
#include "spec.h"

typedef zc_key_of<Z_IN> key;

// The best have the smallest keys.
ZC_DEV key key_at(const zc_topk_params &p, i64 base, i64 i) {
    const key k = zc_key(zc_load<Z_IN>(p.in, base + i * (i64)p.inner.d));
    return Z_LARGEST ? ~k : k;
}
ZC_DEV i64 line_base(const zc_topk_params &p, i64 line) {
    u64 outer = (u64)line;
    const i64 j = (i64)zc_split(&outer, p.inner);
    return (i64)outer * p.length * (i64)p.inner.d + j;
}

struct in_chunk {
    const key *keys;
    u32 first;
    ZC_MEMBER bool operator()(u32 a, u32 b) const { return keys[a - first] < keys[b - first]; }
};
struct in_line {
    const zc_topk_params &p;
    i64 base;
    ZC_MEMBER bool operator()(u32 a, u32 b) const { return key_at(p, base, a) < key_at(p, base, b); }
};

ZC_KERNEL(0)(const __grid_constant__ zc_topk_params p) {
    zc_begin();
    ZC_DYNAMIC_SMEM(smem);
    key *keys = (key *)smem;
    u32 *a = (u32 *)(keys + p.chunk), *b = a + p.chunk;
    for (i64 c = blockIdx.x; c < p.lines * (i64)p.chunks.d; c += gridDim.x) {
        u64 line = (u64)c;
        const u32 first = (u32)zc_split(&line, p.chunks) * p.chunk;
        const u32 n = p.length - first < p.chunk ? (u32)(p.length - first) : p.chunk;
        const i64 base = line_base(p, (i64)line);
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
            keys[i] = key_at(p, base, first + i);
            a[i] = first + i;
        }
        const u32 *sorted = zc_sort_block(a, b, n, in_chunk{keys, first});
        for (u32 i = threadIdx.x; i < p.keep; i += blockDim.x) p.to[c * p.keep + i] = i < n ? sorted[i] : ZC_SORT_NONE;
        zc_sync();
    }
}

ZC_KERNEL(1)(const __grid_constant__ zc_topk_params p) {
    zc_begin();
    const i64 list = (i64)p.list.d;
    for (i64 i = zc_thread(); i < p.lines * list; i += zc_threads()) {
        u64 line = (u64)i;
        const i64 at = (i64)zc_split(&line, p.list);
        const in_line less = {p, line_base(p, (i64)line)};
        zc_merge_item<i64>(p.from + (i64)line * list, p.to + (i64)line * list, at, list, p.run, less);
    }
}

ZC_KERNEL(2)(const __grid_constant__ zc_topk_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.lines * p.k; i += zc_threads()) {
        u64 rest = (u64)i; // as the result lies: (o, rank, j)
        const i64 j = (i64)zc_split(&rest, p.inner), rank = (i64)zc_split(&rest, p.kth);
        const i64 line = (i64)rest * (i64)p.inner.d + j;
        const i64 item = p.from[line * (i64)p.list.d + rank];
        if (p.values)
            ((Z_IN *)p.values)[i] = ((const Z_IN *)p.in)[((i64)rest * p.length + item) * (i64)p.inner.d + j];
        if (p.indices) p.indices[i] = item;
    }
}
