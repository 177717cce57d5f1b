// An order over all element types, and a stable merge sort of item numbers.
#pragma once
#include "zc/device.cuh"

// ---- keys: unsigned integers in the order of the elements; all NaN equal and above the rest, -0 equal to 0 ----

#define ZC_KEY_NAN 0xFFFFFFFFu
ZC_DEV u32 zc_key(f32 x) {
    if (zc_isnan(x)) return ZC_KEY_NAN;
    const u32 b = x == 0 ? 0u : zc_bits(x);
    return b >> 31 ? ~b : b | 0x80000000u;
}
ZC_DEV u64 zc_key(f64 x) {
    if (zc_isnan(x)) return ~0ull;
    const u64 b = x == 0 ? 0ull : zc_bits64(x);
    return b >> 63 ? ~b : b | 0x8000000000000000ull;
}
ZC_DEV u32 zc_key(i32 x) { return (u32)x ^ 0x80000000u; }
ZC_DEV u64 zc_key(i64 x) { return (u64)x ^ 0x8000000000000000ull; }
ZC_DEV u32 zc_key(u32 x) { return x; }
ZC_DEV u64 zc_key(u64 x) { return x; }
ZC_DEV u32 zc_key(bool x) { return x; }
template <class T> using zc_key_of = decltype(zc_key(zc_compute<T>()));

// ---- sorting ----
//
// What is sorted are numbers of items; less(a, b) tells whether item a stands before item b, and is false when they
// are equal. NONE pads lists: it is no item and stands behind all.

#define ZC_SORT_NONE 0xFFFFFFFFu

template <class LESS> ZC_DEV bool zc_before(u32 a, u32 b, const LESS &less) {
    return a != ZC_SORT_NONE && (b == ZC_SORT_NONE || less(a, b));
}

// Item i of `from`, where runs of `run` are sorted, to its place in `to`, where two of them make one. Of equal items
// those of the left run come first.
template <class INDEX, class LESS>
ZC_DEV void zc_merge_item(const u32 *from, u32 *to, INDEX i, INDEX n, INDEX run, const LESS &less) {
    const INDEX lo = i / (2 * run) * (2 * run), mid = n - lo < run ? n : lo + run;
    const INDEX hi = n - mid < run ? n : mid + run;
    const bool left = i < mid;
    const u32 item = from[i];
    INDEX first = left ? mid : lo, end = left ? hi : mid;
    const INDEX base = first;
    while (first < end) { // how many of the other run stand before it
        const INDEX at = first + (end - first) / 2;
        const u32 other = from[at];
        if (left ? zc_before(other, item, less) : !zc_before(item, other, less))
            first = at + 1;
        else
            end = at;
    }
    to[(left ? i : lo + (i - mid)) + (first - base)] = item;
}

// Sorts n items of a with the whole block; b is as large. Returns the one that holds the result; both in shared
// memory. Begins and ends with a barrier.
template <class LESS> ZC_DEV u32 *zc_sort_block(u32 *a, u32 *b, u32 n, const LESS &less) {
    zc_sync();
    for (u32 run = 1; run < n; run *= 2) {
        for (u32 i = threadIdx.x; i < n; i += blockDim.x) zc_merge_item<u32>(a, b, i, n, run, less);
        zc_sync();
        u32 *const swap = a;
        a = b;
        b = swap;
    }
    return a;
}
