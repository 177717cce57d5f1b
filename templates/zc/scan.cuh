// Numbering the elements that satisfy a condition, in order: count by tiles, scan the counts, place.
#pragma once
#include "zc/device.cuh"

#define ZC_SCAN_BLOCK 256  // threads of every block here
#define ZC_SCAN_TILE  2048 // elements of one block

// How many threads before this one in the block have set the flag, and how many have in all.
ZC_DEV u32 zc_block_rank(bool flag, u32 *all) {
    __shared__ u32 sums[ZC_SCAN_BLOCK / 32];
    const u32 set = zc_ballot(flag), lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    zc_sync();
    if (lane == 0) sums[warp] = (u32)zc_popc(set);
    zc_sync();
    u32 before = 0, total = 0;
    for (u32 w = 0; w < ZC_SCAN_BLOCK / 32; w++) {
        if (w == warp) before = total;
        total += sums[w];
    }
    *all = total;
    return before + (u32)zc_popc(set & ((1u << lane) - 1u));
}

// counts[tile]: how many of the tile's elements satisfy flag(i). A block a tile.
template <class FLAG> ZC_DEV void zc_count_tile(i64 *counts, i64 n, const FLAG &flag) {
    i64 sum = 0;
    for (int r = 0; r < ZC_SCAN_TILE / ZC_SCAN_BLOCK; r++) {
        const i64 i = (i64)blockIdx.x * ZC_SCAN_TILE + r * ZC_SCAN_BLOCK + threadIdx.x;
        u32 all;
        zc_block_rank(i < n && flag(i), &all);
        sum += all;
    }
    if (threadIdx.x == 0) counts[blockIdx.x] = sum;
}

// Calls put(i, number) for the elements that satisfy flag(i); counts have been scanned. A block a tile.
template <class FLAG, class PUT>
ZC_DEV void zc_place_tile(const i64 *counts, i64 n, const FLAG &flag, const PUT &put) {
    i64 base = counts[blockIdx.x];
    for (int r = 0; r < ZC_SCAN_TILE / ZC_SCAN_BLOCK; r++) {
        const i64 i = (i64)blockIdx.x * ZC_SCAN_TILE + r * ZC_SCAN_BLOCK + threadIdx.x;
        const bool set = i < n && flag(i);
        u32 all;
        const u32 rank = zc_block_rank(set, &all);
        if (set) put(i, base + rank);
        base += all;
    }
}

// counts[i] becomes the sum of those before it, counts[n] that of all. One block.
ZC_DEV void zc_scan_counts(i64 *counts, i64 n) {
    __shared__ i64 part[2][ZC_SCAN_BLOCK];
    i64 base = 0;
    for (i64 first = 0; first < n; first += ZC_SCAN_BLOCK) {
        const i64 i = first + threadIdx.x, mine = i < n ? counts[i] : 0;
        int from = 0;
        part[0][threadIdx.x] = mine;
        zc_sync();
        for (u32 step = 1; step < ZC_SCAN_BLOCK; step *= 2, from ^= 1) {
            const i64 more = threadIdx.x >= step ? part[from][threadIdx.x - step] : 0;
            part[from ^ 1][threadIdx.x] = part[from][threadIdx.x] + more;
            zc_sync();
        }
        const i64 upto = part[from][threadIdx.x];
        if (i < n) counts[i] = base + upto - mine;
        base += part[from][ZC_SCAN_BLOCK - 1];
        zc_sync();
    }
    if (threadIdx.x == 0) counts[n] = base;
}
