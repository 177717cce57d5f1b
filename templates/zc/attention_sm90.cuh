// What kernels of attention on Hopper share: where a tile of a head's queries lies, and how its result leaves. To be
// included before other headers of attention.
//
// spec.h: see zc/attention.cuh and zc/attention_prepare.cuh; Z_COLUMNS (Z_DV, rounded up to 16).
#pragma once
#define ZC_POSITION int // zc_attention_sm90_params checks that they fit
#include "zc/attention_prepare.cuh"
#include "zc/attention_tile.cuh"
#include "zc/hopper.cuh"
#include "zc/index.cuh"
#include "abi/attention_sm90.h"

constexpr f32 ZC_LOG2E = 1.44269504f;
constexpr int ZC_LINE = 128, ZC_WIDTH = 64; // bytes and elements of a panel's line
constexpr int ZC_Q_PANELS = (Z_D + ZC_WIDTH - 1) / ZC_WIDTH, ZC_V_PANELS = (Z_DV + ZC_WIDTH - 1) / ZC_WIDTH;

// ---- tiles ----

// Queries of one head, from `first` on.
struct place {
    int b, h, first;
};
// item: a head of all of the batch.
ZC_DEV place place_of(const zc_attention_sm90_params &p, int item, int first) {
    const int b = (int)zc_divide((u32)item, p.by_heads);
    return {b, item - b * (int)p.by_heads.d, first};
}
template <int ROWS> ZC_DEV int last_of(const zc_attention_sm90_params &p, const place &at) {
    const int nq = (int)p.a.len.nq;
    return (at.first + ROWS < nq ? at.first + ROWS : nq) - 1;
}
template <int ROWS, int KEYS> ZC_DEV tile tile_of(const zc_attention_sm90_params &p, const place &at) {
    const int kv = (int)zc_divide((u32)at.h, p.by_group), nq = (int)p.a.len.nq;
    const int row = (at.h - kv * (int)p.by_group.d) * nq;
    tile t = {at.b, kv, row + at.first, row + nq, 0, 0, sight_of(p.a.len, at.b)};
    t.lo = span_of(p.a, t.s, at.first).lo / KEYS * KEYS;
    t.hi = span_of(p.a, t.s, last_of<ROWS>(p, at)).hi;
    return t;
}
// Row r of the tile.
ZC_DEV line line_at(const zc_attention_params &p, const place &pl, const tile &t, int r) {
    const int at = pl.first + r, nq = (int)p.len.nq, i = at < nq ? at : nq - 1;
    line l = {query_of(p, pl.b, pl.h, i), span_of(p, t.s, i), is_even(p, t.s)};
    if (at != i) l.seen = {0, 0};
    return l;
}

// ---- operands: by one thread ----

// `lines` positions of a head.
ZC_DEV void load_head(u32 to, const zc_tensor_map *map, u32 full, int panels, int lines, int pos, int head, int b) {
    zc_barrier_expect(full, panels * lines * ZC_LINE);
#pragma unroll
    for (int panel = 0; panel < panels; panel++)
        zc_tensor_load(to + panel * lines * ZC_LINE, map, full, panel * ZC_WIDTH, pos, head, b);
}

// ---- results: a thread has parts of two rows of its warp's 16, `first` and the one 8 behind, as a product's sums lie ----

typedef f32 values[Z_COLUMNS / 2];

// May values leave together? Not with pointwise work on operands.
#if defined(Z_FUSED) && Z_FUSED_COUNT > 0
constexpr bool ZC_TOGETHER = false;
#else
constexpr bool ZC_TOGETHER = true;
#endif
constexpr int ZC_Y_WIDTH = ZC_LINE / (int)sizeof(Z_Y), ZC_Y_PANELS = (Z_DV + ZC_Y_WIDTH - 1) / ZC_Y_WIDTH;
typedef decltype(zc_pack(Z_Y(), 0.0f, 0.0f)) result_pair; // neighbours of a row

ZC_DEV result_pair paired(const zc_attention_params &p, f32 a, f32 b) {
    return zc_pack(Z_Y(), (f32)zc_fused(p.fused, a, 0), (f32)zc_fused(p.fused, b, 0));
}
// Not where they are not finite because of values that their rows do not see.
ZC_DEV bool are_finite(const values &y) {
    bool finite = true;
#pragma unroll
    for (int i = 0; i < Z_COLUMNS / 2; i++) finite &= zc_isfinite(y[i]);
    return finite;
}
// Element by element. max: in powers of two; by: 1 / sum.
ZC_DEV void put_rows(const zc_attention_params &p, const place &pl, const tile &t, int first, const values &y,
                     const f32 (&max)[2], const f32 (&sum)[2], const f32 (&by)[2]) {
    const int e0 = threadIdx.x % 4 * 2;
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const int r = first + i * 8;
        if (t.first + r >= t.end) continue;
        const line l = line_at(p, pl, t, r);
        bool finite = true;
#pragma unroll
        for (int n = 0; n < Z_COLUMNS / 8; n++)
            finite = finite && zc_isfinite(y[n * 4 + i * 2]) && zc_isfinite(y[n * 4 + i * 2 + 1]);
        if (!finite && zc_isfinite(sum[i])) {
            put_seen<2, 8>(p, t, l, r, {max[i] / ZC_LOG2E, sum[i]}, e0);
            continue;
        }
        const i64 to = line_y(p, l);
#pragma unroll
        for (int n = 0; n < Z_COLUMNS / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++)
                if (n * 8 + e0 + e < Z_DV) put_y(p, to + n * 8 + e0 + e, y[n * 4 + i * 2 + e] * by[i]);
    }
}
// Through panels of LINES lines in shared memory, of which the warp takes those of its rows. The elected thread's stores
// have to be waited for before the block ends.
template <int LINES>
ZC_DEV void copy_rows(const zc_attention_sm90_params &p, const place &pl, unsigned char *to, int first, const values &y,
                      const f32 (&by)[2]) {
    const int lane = threadIdx.x % 32, top = first - lane / 4, row = top + lane % 16;
    const u32 smem = zc_smem_address(to);
    if (zc_elect()) zc_bulk_wait_read<0>();
    zc_sync_warp();
#pragma unroll
    for (int n = 0; n < Z_COLUMNS / 8; n += 2) {
        result_pair out[4]; // of two groups of 8 columns, two rows each
#pragma unroll
        for (int i = 0; i < 4; i++) out[i] = paired(p.a, y[n * 4 + i * 2] * by[i % 2], y[n * 4 + i * 2 + 1] * by[i % 2]);
        if constexpr (sizeof(Z_Y) == 2) {
            const u32 four[] = {out[0], out[1], out[2], out[3]};
            zc_stmatrix_x4(smem + (n / 8 * LINES + row) * ZC_LINE + ((n % 8 + lane / 16) ^ row % 8) * 16, four);
        } else {
            unsigned char *const piece = to + (n / 16 * LINES + first) * ZC_LINE + (n / 2 % 8 ^ first % 8) * 16 + lane % 4 * 2;
#pragma unroll
            for (int i = 0; i < 4; i++) *(result_pair *)(piece + i % 2 * 8 * ZC_LINE + i / 2 * 8) = out[i];
        }
    }
    zc_async_fence();
    zc_sync_warp();
    if (!zc_elect()) return;
#pragma unroll
    for (int panel = 0; panel < ZC_Y_PANELS; panel++)
        zc_tensor_store(&p.y, smem + (panel * LINES + top) * ZC_LINE, panel * ZC_Y_WIDTH, pl.first + top, pl.h, pl.b);
    zc_bulk_commit();
}
// The rows of a warp.
template <int LINES>
ZC_DEV void finish_rows(const zc_attention_sm90_params &p, const place &pl, unsigned char *to, int first, const values &y,
                        const f32 (&max)[2], const f32 (&sum)[2]) {
    const f32 by[2] = {sum[0] == 0 ? 0.0f : 1 / sum[0], sum[1] == 0 ? 0.0f : 1 / sum[1]};
    if constexpr (ZC_TOGETHER)
        if (!zc_any(!are_finite(y))) {
            copy_rows<LINES>(p, pl, to, first, y, by);
            return;
        }
    put_rows(p.a, pl, tile_of<LINES, 1>(p, pl), first, y, max, sum, by);
}
