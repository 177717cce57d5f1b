// NonMaxSuppression: the boxes of each segment by falling score; each one that is kept suppresses those behind it that
// overlap it.
//
// spec.h: Z_BOX and Z_SCORE (types), Z_CENTRED. Entries: 0 sorts chunks, 1 merges pairs of runs, 2 suppresses (a block
// a segment), 3 scans the counts, 4 writes the result.
#include "zc/order.cuh"
#include "zc/scan.cuh"
#include "abi/nms.h"
#include "spec.h"

#define OUT_OF_RACE 0xFFFFFFFFu

// The best have the smallest keys; NaN is behind all numbers, and boxes that do not take part behind that.
ZC_DEV u32 rank_key(const zc_nms_params &p, i64 at) {
    const f32 score = (f32)zc_load<Z_SCORE>(p.scores, at);
    if (p.by_score && !(score > p.least)) return OUT_OF_RACE;
    return zc_isnan(score) ? OUT_OF_RACE - 1 : ~zc_key(score);
}

struct in_chunk {
    const u32 *keys;
    u32 first;
    ZC_MEMBER bool operator()(u32 a, u32 b) const { return keys[a - first] < keys[b - first]; }
};
struct in_segment {
    const zc_nms_params &p;
    i64 base;
    ZC_MEMBER bool operator()(u32 a, u32 b) const { return rank_key(p, base + a) < rank_key(p, base + b); }
};

ZC_KERNEL(0)(const __grid_constant__ zc_nms_params p) {
    zc_begin();
    __shared__ u32 keys[ZC_NMS_CHUNK], a[ZC_NMS_CHUNK], b[ZC_NMS_CHUNK];
    for (i64 c = blockIdx.x; c < p.segments * p.chunks; c += gridDim.x) {
        const i64 segment = c / p.chunks, first = c % p.chunks * ZC_NMS_CHUNK;
        const u32 n = p.n - first < ZC_NMS_CHUNK ? (u32)(p.n - first) : (u32)ZC_NMS_CHUNK;
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) {
            keys[i] = rank_key(p, segment * p.n + first + i);
            a[i] = (u32)first + i;
        }
        const u32 *sorted = zc_sort_block(a, b, n, in_chunk{keys, (u32)first});
        for (u32 i = threadIdx.x; i < ZC_NMS_CHUNK; i += blockDim.x)
            p.to[c * ZC_NMS_CHUNK + i] = i < n ? sorted[i] : ZC_SORT_NONE;
        zc_sync();
    }
}
ZC_KERNEL(1)(const __grid_constant__ zc_nms_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.segments * p.list; i += zc_threads()) {
        const i64 segment = i / p.list, base = segment * p.list;
        zc_merge_item<i64>(p.from + base, p.to + base, i - base, p.list, p.run, in_segment{p, segment * p.n});
    }
}

struct box {
    f32 low[2], high[2];
};
ZC_DEV box box_at(const zc_nms_params &p, i64 at) {
    box b;
    for (int d = 0; d < 2; d++) {
        const f32 x = (f32)zc_load<Z_BOX>(p.boxes, at * 4 + d), y = (f32)zc_load<Z_BOX>(p.boxes, at * 4 + 2 + d);
#if Z_CENTRED
        b.low[d] = x - y / 2;
        b.high[d] = x + y / 2;
#else
        b.low[d] = x < y ? x : y;
        b.high[d] = x < y ? y : x;
#endif
    }
    return b;
}
// Rounded before it is added to anything: the product of two f32 is exact in f64.
ZC_DEV f32 product(f32 a, f32 b) { return (f32)((f64)a * (f64)b); }
ZC_DEV f32 area(const box &b) { return product(b.high[0] - b.low[0], b.high[1] - b.low[1]); }
ZC_DEV bool overlaps(const box &a, const box &b, f32 threshold) {
    f32 side[2];
    for (int d = 0; d < 2; d++) {
        const f32 low = a.low[d] > b.low[d] ? a.low[d] : b.low[d], high = a.high[d] < b.high[d] ? a.high[d] : b.high[d];
        if (!(high > low)) return false;
        side[d] = high - low;
    }
    const f32 common = product(side[0], side[1]), area_a = area(a), area_b = area(b);
    const f32 all = area_a + area_b - common;
    return area_a > 0 && area_b > 0 && all > 0 && common / all > threshold;
}

ZC_KERNEL(2)(const __grid_constant__ zc_nms_params p) {
    zc_begin();
    for (i64 segment = blockIdx.x; segment < p.segments; segment += gridDim.x) {
        const u32 *items = p.from + segment * p.list;
        u8 *gone = p.gone + segment * p.list;
        const i64 boxes = segment / p.classes * p.n;
        i64 kept = 0;
        for (i64 i = 0; i < p.n && kept < p.most; i++) {
            const u32 item = items[i];
            if (rank_key(p, segment * p.n + item) == OUT_OF_RACE) break;
            if (gone[i]) continue;
            if (threadIdx.x == 0) p.kept[segment * p.most + kept] = item;
            kept++;
            const box mine = box_at(p, boxes + item);
            for (i64 j = i + 1 + threadIdx.x; j < p.n; j += blockDim.x)
                if (!gone[j] && overlaps(mine, box_at(p, boxes + items[j]), p.iou)) gone[j] = 1;
            zc_sync();
        }
        if (threadIdx.x == 0) p.counts[segment] = kept;
    }
}
ZC_KERNEL(3)(const __grid_constant__ zc_nms_params p) { zc_begin(); zc_scan_counts(p.counts, p.segments); }
ZC_KERNEL(4)(const __grid_constant__ zc_nms_params p) {
    zc_begin();
    for (i64 i = zc_thread(); i < p.segments * p.most; i += zc_threads()) {
        const i64 segment = i / p.most, at = i % p.most, first = p.counts[segment];
        if (at >= p.counts[segment + 1] - first) continue;
        i64 *row = p.out + (first + at) * 3;
        row[0] = segment / p.classes;
        row[1] = segment % p.classes;
        row[2] = p.kept[i];
    }
}
