// Convolutions of one to three spatial axes: one matrix product a group, weights [oc, K] times patches [K, pixels],
// with K = ic * taps; the patches are gathered from the input as the product goes. Transposed convolutions are the
// same with other patches: window o of the input reaches pixel o * stride - begin + tap * dilation. So are deformable
// ones, whose patches are interpolated.
//
// spec.h: the window (zc/window.cuh); Z_X, Z_W, Z_Y, Z_BIAS (types), Z_PLAIN (of y before fused work); Z_ACC (sums), Z_OPERAND (what is multiplied);
// Z_LAST (channels are last; Z_TAPS_FIRST: of the weights, too; with Z_BAND these are a band of so many columns, Z_BAND_DEPTH
// channels each, at multiples of Z_BAND_PIECE: src/op/conv_band.h; with Z_PHASES groups are phases, which see all channels), Z_HAS_SCALE, Z_HAS_BIAS, Z_HAS_RESIDUAL, zc_act (activation); Z_QUANT (0 floats, 1 integer result, 2
// quantised result) with Z_HAS_X_ZERO, Z_HAS_W_ZERO and for 2 the types Z_XS, Z_WS, Z_YS; Z_batch,
// Z_groups, Z_ic, Z_oc; Z_TRANSPOSED; Z_DEFORM with Z_HAS_MASK, Z_AXES and Z_OFFSET_GROUPS; Z_TILE (the side of a
// block's tile; 0: a thread for each element) and Z_MMA (by tensor cores).
#include "zc/device.cuh"
#include "abi/conv.h"
#include "spec.h"
#include "zc/fused.cuh"
#include "zc/phases.cuh"
#include "zc/quantised.cuh"
#include "zc/window.cuh"

typedef Z_ACC acc_t;
typedef Z_OPERAND operand_t;

// ---- operands and results ----

struct geometry {
    zc_window w;
    i64 pixels, out_plane, in_plane, k;
    i64 in; // channels of all groups' input
    int taps, groups, ic, oc;
};
ZC_DEV geometry geometry_of(const zc_conv_params &p) {
    geometry g;
    g.w = zc_window_of(p);
    g.out_plane = zc_out_plane(g.w);
    g.in_plane = zc_in_plane(g.w);
    g.taps = (int)zc_taps(g.w);
    g.groups = (int)Z_groups;
    g.ic = (int)Z_ic;
    g.oc = (int)Z_oc;
    g.k = (i64)g.ic * g.taps;
#ifdef Z_PHASES
    g.in = g.ic;
#else
    g.in = (i64)g.groups * g.ic;
#endif
    g.pixels = Z_batch * g.out_plane;
    return g;
}

// What integer operands are relative to.
struct zeros {
    i32 x;
};
ZC_DEV zeros zeros_of(const zc_conv_params &p) {
    zeros z{0};
#if Z_HAS_X_ZERO
    z.x = (i32)zc_load<Z_X>(p.x_zero, 0);
#endif
    return z;
}
ZC_DEV operand_t load_x(const zc_conv_params &p, const zeros &z, i64 at) {
    return (operand_t)zc_load<Z_X>(p.x, at) - (operand_t)z.x;
}
ZC_DEV operand_t load_w(const zc_conv_params &p, i64 channel, i64 at) {
#if Z_HAS_W_ZERO
    return (operand_t)zc_load<Z_W>(p.w, at) - (operand_t)zc_load<Z_W>(p.w_zero, channel * p.w_zero_step);
#else
    return (operand_t)zc_load<Z_W>(p.w, at);
#endif
}

// Writes the sum of output channel `channel` to element `at`.
ZC_DEV void finish(const zc_conv_params &p, i64 at, i64 channel, acc_t sum) {
#if Z_QUANT == 0
#if Z_HAS_SCALE
    f32 y = (f32)sum * zc_load<f32>(p.w_scale, channel);
#else
    acc_t y = sum;
#endif
#if Z_HAS_BIAS
    y += zc_load<Z_BIAS>(p.bias, channel);
#endif
#if Z_HAS_RESIDUAL
    y += zc_load<Z_Y>(p.residual, at);
#endif
    zc_save<Z_Y>(p.y, at, zc_fused(p.fused, zc_act(y), at));
#elif Z_QUANT == 1
    ((i32 *)p.y)[at] = (i32)sum;
#else
    i64 total = sum;
#if Z_HAS_BIAS
    total += zc_load<Z_BIAS>(p.bias, channel);
#endif
    const f64 both = (f64)zc_load<Z_XS>(p.x_scale, 0) * (f64)zc_load<Z_WS>(p.w_scale, channel * p.w_scale_step);
    const f64 scale = zc_requant_scale(both / (f64)zc_load<Z_YS>(p.y_scale, 0));
    const i32 n = zc_requantised<false>((f64)total, scale, (i32)zc_load<Z_PLAIN>(p.y_zero, 0));
    ((Z_Y *)p.y)[at] = (Z_Y)zc_fused(p.fused, (Z_PLAIN)zc_saturated(Z_PLAIN(), n, 0), at);
#endif
}

ZC_DEV i64 result_at(const geometry &g, i64 image, i64 pixel, i64 channel) {
#if Z_LAST
    return (image * g.out_plane + pixel) * ((i64)g.groups * g.oc) + channel;
#else
    return (image * ((i64)g.groups * g.oc) + channel) * g.out_plane + pixel;
#endif
}
// ---- gathering patches ----

// Where the window of one pixel reads: of its group's channels, and tap 0.
struct patch {
    i64 base;
    int start[3];
#if Z_DEFORM
    i64 image, pixel;
#endif
};
ZC_DEV patch patch_of(const geometry &g, int group, i64 n) {
    patch r;
    if (n >= g.pixels) { // beyond the last: no tap is on the input
        r.base = 0;
        r.start[0] = r.start[1] = r.start[2] = -0x40000000;
#if Z_DEFORM
        r.image = r.pixel = 0;
#endif
        return r;
    }
    const i64 image = n / g.out_plane;
    int at[3];
    const zc_later later = zc_later_of(group);
    zc_coords((u32)(n - image * g.out_plane), g.w.out, at);
#pragma unroll
    for (int d = 0; d < 3; d++)
        r.start[d] = Z_TRANSPOSED ? at[d] + g.w.begin[d] : at[d] * g.w.stride[d] - g.w.begin[d] + later.by(d);
#if Z_DEFORM
    r.image = image;
    r.pixel = n - image * g.out_plane;
#endif
#if Z_LAST
    r.base = image * g.in_plane * g.in + (g.in > g.ic ? group * g.ic : 0);
#else
    r.base = (image * g.groups + group) * g.ic * g.in_plane;
#endif
    return r;
}

// Where tap t of the patch lies on axis d, in `pos`; false where it is not on the input.
ZC_DEV bool tap_on(const geometry &g, const patch &r, int d, int t, int *pos) {
#if Z_TRANSPOSED
    const int past = r.start[d] - t * g.w.dilation[d], window = past / g.w.stride[d];
    *pos = window;
    return past >= 0 && past == window * g.w.stride[d] && window < g.w.in[d];
#else
    *pos = r.start[d] + t * g.w.dilation[d];
    return (u32)*pos < (u32)g.w.in[d];
#endif
}

// Which channel and tap element k of a patch is.
ZC_DEV int channel_of(const geometry &g, int k, int *tap) {
#if Z_LAST
    *tap = k / g.ic;
    return k - *tap * g.ic;
#else
    const int c = k / g.taps;
    *tap = k - c * g.taps;
    return c;
#endif
}

// Offset of element k of the patch, or -1 where it is on padding or beyond K.
ZC_DEV i64 patch_at(const geometry &g, const patch &r, int k) {
    int tap, t[3], pos;
    const int c = channel_of(g, k, &tap);
    zc_coords((u32)tap, g.w.kernel, t);
    bool inside = k < g.k;
    i64 at = 0;
#pragma unroll
    for (int d = 0; d < 3; d++) {
        inside = tap_on(g, r, d, t[d], &pos) && inside;
        at = at * g.w.in[d] + pos;
    }
#if Z_LAST
    return inside ? r.base + at * g.in + c : -1;
#else
    return inside ? r.base + c * g.in_plane + at : -1;
#endif
}

// Weights of a tap with taps first, and where among them those of channel m of a group begin.
ZC_DEV int tap_weights(const geometry &g) {
#ifdef Z_BAND
    return Z_BAND_DEPTH;
#else
    return g.ic;
#endif
}
ZC_DEV int first_weight(const geometry &g, int group, int m) {
#ifdef Z_BAND
    return group * g.ic - (group * g.oc + m) / Z_BAND * Z_BAND / g.oc * g.ic / Z_BAND_PIECE * Z_BAND_PIECE;
#else
    return 0;
#endif
}

// Offset of element k of the weights of channel m of a group.
ZC_DEV i64 weight_at(const geometry &g, int group, int m, int k) {
    int tap;
    const int c = channel_of(g, k, &tap);
#if Z_TRANSPOSED
    return (((i64)group * g.ic + c) * g.oc + m) * g.taps + tap;
#elif Z_TAPS_FIRST
    return (((i64)group * g.oc + m) * g.taps + tap) * tap_weights(g) + first_weight(g, group, m) + c;
#else
    return (((i64)group * g.oc + m) * g.ic + c) * g.taps + tap;
#endif
}

#if Z_DEFORM
// The input near the tap's regular place plus its offsets, interpolated between neighbours; 0 outside.
ZC_DEV operand_t deformed(const zc_conv_params &p, const geometry &g, const patch &r, int group, int c, int tap) {
    int t[3], low[3];
    operand_t part[3];
    const int channel = group * g.ic + c, per = g.groups * g.ic / Z_OFFSET_GROUPS;
    const i64 row = (r.image * Z_OFFSET_GROUPS + channel / per) * g.taps + tap;
    zc_coords((u32)tap, g.w.kernel, t);
#pragma unroll
    for (int d = 0; d < 3; d++) {
        low[d] = 0;
        part[d] = 0;
        if (d < 3 - Z_AXES) continue;
        const operand_t off = zc_load<Z_X>(p.offset, (row * Z_AXES + d - (3 - Z_AXES)) * g.out_plane + r.pixel);
        if (!(off > -1e9f && off < 1e9f)) return 0;
        low[d] = r.start[d] + t[d] * g.w.dilation[d] + (int)zx_floor(off);
        part[d] = off - zx_floor(off);
    }
    operand_t sum = 0;
#pragma unroll
    for (int corner = 0; corner < 1 << Z_AXES; corner++) {
        operand_t weight = 1;
        i64 at = 0;
        bool inside = true;
#pragma unroll
        for (int d = 0; d < 3; d++) {
            const bool high = d >= 3 - Z_AXES && (corner >> (2 - d) & 1);
            const int pos = low[d] + high;
            weight *= high ? part[d] : (operand_t)1 - part[d];
            inside = inside && (u32)pos < (u32)g.w.in[d];
            at = at * g.w.in[d] + pos;
        }
        if (inside && weight != 0) sum += weight * zc_load<Z_X>(p.x, r.base + c * g.in_plane + at);
    }
#if Z_HAS_MASK
    sum *= zc_load<Z_X>(p.mask, row * g.out_plane + r.pixel);
#endif
    return sum;
}
#endif

// Element k of a patch.
ZC_DEV operand_t patch_value(const zc_conv_params &p, const geometry &g, const zeros &z, const patch &r, int group,
                             int k) {
#if Z_DEFORM
    int tap;
    const int c = channel_of(g, k, &tap);
    return k < g.k && r.start[2] > -0x40000000 ? deformed(p, g, r, group, c, tap) : (operand_t)0;
#else
    const i64 at = patch_at(g, r, k);
    return at >= 0 ? load_x(p, z, at) : (operand_t)0;
#endif
}

// The block's tile: output channels of a group times pixels.
struct tile {
    int group, m;
    i64 n;
};
template <int BM, int BN> ZC_DEV tile tile_of(const geometry &g) {
    const int rows = (g.oc + BM - 1) / BM;
    const i64 block = blockIdx.x, rest = block / rows;
    tile t;
    t.m = (int)(block - rest * rows) * BM;
    t.group = (int)(rest % g.groups);
    t.n = rest / g.groups * BN;
    return t;
}

// ---- tiles, each of 256 threads summing TM times TN elements ----

#if Z_TILE && !Z_MMA
template <int TM, int TN> struct tiles {
    static constexpr int BM = 16 * TM, BN = 16 * TN, BK = 16, PAD = 4;
    struct memory {
        alignas(16) operand_t a[2][BK][BM + PAD];
        alignas(16) operand_t b[2][BK][BN + PAD];
#if Z_LAST
        patch patches[BN];
#endif
    };
    struct fetched {
        operand_t a[TM], b[TN];
    };

    static ZC_MEMBER void fetch(const zc_conv_params &p, const geometry &g, const tile &t, const zeros &z,
                                const memory &s, const patch &own, int k0, fetched &f) {
        const int tid = (int)threadIdx.x;
#pragma unroll
        for (int i = 0; i < TM; i++) {
            const int k = k0 + tid % BK, m = t.m + tid / BK + i * 16;
            const i64 channel = (i64)t.group * g.oc + m;
            f.a[i] = m < g.oc && k < g.k ? load_w(p, channel, weight_at(g, t.group, m, k)) : (operand_t)0;
        }
#pragma unroll
        for (int i = 0; i < TN; i++) {
#if Z_LAST
            f.b[i] = patch_value(p, g, z, s.patches[tid / BK + i * 16], t.group, k0 + tid % BK);
#else
            f.b[i] = patch_value(p, g, z, own, t.group, k0 + tid / BN + i * (256 / BN));
#endif
        }
    }
    static ZC_MEMBER void put(memory &s, int buffer, const fetched &f) {
        const int tid = (int)threadIdx.x;
#pragma unroll
        for (int i = 0; i < TM; i++) s.a[buffer][tid % BK][tid / BK + i * 16] = f.a[i];
#pragma unroll
        for (int i = 0; i < TN; i++) {
#if Z_LAST
            s.b[buffer][tid % BK][tid / BK + i * 16] = f.b[i];
#else
            s.b[buffer][tid / BN + i * (256 / BN)][tid % BN] = f.b[i];
#endif
        }
    }
    // Row i (of TM) of a thread: groups of four neighbours, 64 apart.
    static ZC_MEMBER int place(int thread, int i) { return i / 4 * 64 + thread * 4 + i % 4; }

    static ZC_MEMBER void multiply(const memory &s, int buffer, acc_t sum[TM][TN]) {
        const int tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
#pragma unroll
        for (int k = 0; k < BK; k++) {
            operand_t a[TM], b[TN];
#pragma unroll
            for (int i = 0; i < TM; i++) a[i] = s.a[buffer][k][place(ty, i)];
#pragma unroll
            for (int i = 0; i < TN; i++) b[i] = s.b[buffer][k][place(tx, i)];
#pragma unroll
            for (int i = 0; i < TM; i++)
#pragma unroll
                for (int j = 0; j < TN; j++) sum[i][j] += (acc_t)a[i] * (acc_t)b[j];
        }
    }

    static ZC_MEMBER void run(const zc_conv_params &p, memory &s) {
        const geometry g = geometry_of(p);
        const tile t = tile_of<BM, BN>(g);
        const zeros z = zeros_of(p);
        const int tx = (int)threadIdx.x % 16, ty = (int)threadIdx.x / 16;
        acc_t sum[TM][TN];
#pragma unroll
        for (int i = 0; i < TM; i++)
#pragma unroll
            for (int j = 0; j < TN; j++) sum[i][j] = 0;
        patch own;
#if Z_LAST
        if ((int)threadIdx.x < BN) s.patches[threadIdx.x] = patch_of(g, t.group, t.n + threadIdx.x);
        zc_sync();
        own = s.patches[0];
#else
        own = patch_of(g, t.group, t.n + threadIdx.x % BN);
#endif
        fetched f;
        fetch(p, g, t, z, s, own, 0, f);
        put(s, 0, f);
        zc_sync();
        int buffer = 0;
        for (int k0 = 0; k0 < g.k; k0 += BK, buffer ^= 1) {
            const bool more = k0 + BK < g.k;
            if (more) fetch(p, g, t, z, s, own, k0 + BK, f);
            multiply(s, buffer, sum);
            if (more) put(s, buffer ^ 1, f);
            zc_sync();
        }
#pragma unroll
        for (int j = 0; j < TN; j++) {
            const i64 n = t.n + place(tx, j);
            if (n >= g.pixels) continue;
            const i64 image = n / g.out_plane, pixel = n - image * g.out_plane;
#pragma unroll
            for (int i = 0; i < TM; i++) {
                const int m = t.m + place(ty, i);
                const i64 channel = (i64)t.group * g.oc + m;
                if (m < g.oc) finish(p, result_at(g, image, pixel, channel), channel, sum[i][j]);
            }
        }
    }
};

#endif

// ---- a thread for each element: few channels a group ----

#if Z_TILE == 0
ZC_KERNEL(0)(const __grid_constant__ zc_conv_params p) {
    zc_begin();
    const geometry g = geometry_of(p);
    const zeros z = zeros_of(p);
    const i64 i = zc_thread(), channels = (i64)g.groups * g.oc;
    if (i >= g.pixels * channels) return;
#if Z_LAST
    const i64 n = i / channels, channel = i - n * channels;
#else
    const i64 row = i / g.out_plane, image = row / channels, channel = row - image * channels;
    const i64 n = image * g.out_plane + (i - row * g.out_plane);
#endif
    const int group = (int)(channel / g.oc), m = (int)(channel - (i64)group * g.oc);
    const patch r = patch_of(g, group, n);
    acc_t sum = 0;
#if Z_DEFORM
    for (int k = 0; k < g.k; k++)
        sum += (acc_t)patch_value(p, g, z, r, group, k) * (acc_t)load_w(p, channel, weight_at(g, group, m, k));
#else
    const i64 step = Z_LAST ? 1 : g.in_plane, w_tap = Z_TAPS_FIRST ? tap_weights(g) : 1;
    const i64 w_step = Z_TAPS_FIRST ? 1 : Z_TRANSPOSED ? (i64)g.oc * g.taps : g.taps;
    const i64 weights = Z_TRANSPOSED   ? ((i64)group * g.ic * g.oc + m) * g.taps
                        : Z_TAPS_FIRST ? weight_at(g, group, m, 0)
                                       : channel * g.ic * g.taps;
    int tap = 0;
    for (int a = 0; a < g.w.kernel[0]; a++)
        for (int b = 0; b < g.w.kernel[1]; b++)
            for (int e = 0; e < g.w.kernel[2]; e++, tap++) {
                int slab, line, col;
                bool on = tap_on(g, r, 0, a, &slab);
                on = tap_on(g, r, 1, b, &line) && on;
                on = tap_on(g, r, 2, e, &col) && on;
                if (!on) continue;
                const i64 at = ((i64)slab * g.w.in[1] + line) * g.w.in[2] + col;
                const i64 x = r.base + (Z_LAST ? at * g.in : at);
                for (int c = 0; c < g.ic; c++)
                    sum += (acc_t)load_x(p, z, x + c * step) * (acc_t)load_w(p, channel, weights + c * w_step + tap * w_tap);
            }
#endif
    finish(p, i, channel, sum);
}
#endif

// ---- tiles by tensor cores ----

#if Z_MMA
ZC_DEV void mma(f32 d[4], const u32 a[4], const u32 b[2], f16) { zc_mma_m16n8k16_f16(d, a, b); }
ZC_DEV void mma(f32 d[4], const u32 a[4], const u32 b[2], bf16) { zc_mma_m16n8k16_bf16(d, a, b); }

// 8 warps, 2 along channels and 4 along pixels.
template <int BM, int BN> struct mma_tiles {
    static constexpr int BK = 32, WM = BM / 2, WN = BN / 4, MT = WM / 16, NT = WN / 8;
    static constexpr int A_LOADS = BM * BK / 8 / 256, B_LOADS = BN * BK / 256, B_ROWS = 256 / BN;
    struct memory {
        alignas(16) u16 a[2][BM][BK + 8];
        alignas(16) u16 b[2][BK][BN + 8];
    };
    struct fetched {
        zc_vec<u16, 8> a[A_LOADS];
        u16 b[B_LOADS];
    };

    static ZC_MEMBER zc_vec<u16, 8> fetch_row(const zc_conv_params &p, const geometry &g, const tile &t, int m, int k) {
        zc_vec<u16, 8> r;
        const u16 *w = (const u16 *)p.w;
        if (!Z_TRANSPOSED && Z_LAST == Z_TAPS_FIRST && p.w_aligned && m < g.oc && k + 8 <= g.k)
            return *(const zc_vec<u16, 8> *)(w + weight_at(g, t.group, m, k));
#pragma unroll
        for (int i = 0; i < 8; i++)
            r.v[i] = m < g.oc && k + i < g.k ? w[weight_at(g, t.group, m, k + i)] : (u16)0;
        return r;
    }
    static ZC_MEMBER void fetch(const zc_conv_params &p, const geometry &g, const tile &t, const patch &own, int k0,
                                fetched &f) {
        const int tid = (int)threadIdx.x;
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            f.a[i] = fetch_row(p, g, t, t.m + tid / 4 + i * 64, k0 + tid % 4 * 8);
#pragma unroll
        for (int i = 0; i < B_LOADS; i++) {
            const i64 at = patch_at(g, own, k0 + tid / BN + i * B_ROWS);
            f.b[i] = at >= 0 ? ((const u16 *)p.x)[at] : (u16)0;
        }
    }
    static ZC_MEMBER void put(memory &s, int buffer, const fetched &f) {
        const int tid = (int)threadIdx.x;
#pragma unroll
        for (int i = 0; i < A_LOADS; i++)
            *(zc_vec<u16, 8> *)&s.a[buffer][tid / 4 + i * 64][tid % 4 * 8] = f.a[i];
#pragma unroll
        for (int i = 0; i < B_LOADS; i++) s.b[buffer][tid / BN + i * B_ROWS][tid % BN] = f.b[i];
    }
    static ZC_MEMBER void multiply(const memory &s, int buffer, f32 sum[MT][NT][4]) {
        const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
        const int m0 = warp % 2 * WM + lane % 16, n0 = warp / 2 * WN + lane / 16 * 8;
#pragma unroll
        for (int k = 0; k < BK; k += 16) {
            u32 a[MT][4], b[NT][2];
#pragma unroll
            for (int i = 0; i < MT; i++) zc_ldmatrix_x4(a[i], &s.a[buffer][m0 + i * 16][k + lane / 16 * 8]);
#pragma unroll
            for (int j = 0; j < NT; j += 2) {
                u32 both[4];
                zc_ldmatrix_x4_trans(both, &s.b[buffer][k + lane % 16][n0 + j * 8]);
                b[j][0] = both[0];
                b[j][1] = both[1];
                b[j + 1][0] = both[2];
                b[j + 1][1] = both[3];
            }
#pragma unroll
            for (int i = 0; i < MT; i++)
#pragma unroll
                for (int j = 0; j < NT; j++) mma(sum[i][j], a[i], b[j], Z_X{});
        }
    }
    static ZC_MEMBER void store(const zc_conv_params &p, const geometry &g, const tile &t, f32 sum[MT][NT][4]) {
        const int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
        const int m0 = t.m + warp % 2 * WM + lane / 4;
        const i64 n0 = t.n + warp / 2 * WN + lane % 4 * 2;
#pragma unroll
        for (int j = 0; j < NT; j++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const i64 n = n0 + j * 8 + e;
                if (n >= g.pixels) continue;
                const i64 image = n / g.out_plane, pixel = n - image * g.out_plane;
#pragma unroll
                for (int i = 0; i < MT; i++)
#pragma unroll
                    for (int h = 0; h < 2; h++) {
                        const int m = m0 + i * 16 + h * 8;
                        const i64 channel = (i64)t.group * g.oc + m;
                        if (m < g.oc) finish(p, result_at(g, image, pixel, channel), channel, sum[i][j][h * 2 + e]);
                    }
            }
    }
    static ZC_MEMBER void run(const zc_conv_params &p, memory &s) {
        const geometry g = geometry_of(p);
        const tile t = tile_of<BM, BN>(g);
        const patch own = patch_of(g, t.group, t.n + threadIdx.x % BN);
        f32 sum[MT][NT][4];
#pragma unroll
        for (int i = 0; i < MT * NT * 4; i++) sum[i / 4 / NT][i / 4 % NT][i % 4] = 0;
        fetched f;
        fetch(p, g, t, own, 0, f);
        put(s, 0, f);
        zc_sync();
        int buffer = 0;
        for (int k0 = 0; k0 < g.k; k0 += BK, buffer ^= 1) {
            const bool more = k0 + BK < g.k;
            if (more) fetch(p, g, t, own, k0 + BK, f);
            multiply(s, buffer, sum);
            if (more) put(s, buffer ^ 1, f);
            zc_sync();
        }
        store(p, g, t, sum);
    }
};

#endif

#if Z_TILE
ZC_KERNEL(0)(const __grid_constant__ zc_conv_params p) {
    zc_begin();
#if Z_MMA
    typedef mma_tiles<Z_TILE, Z_TILE> block;
#else
    typedef tiles<Z_TILE / 16, Z_TILE / 16> block;
#endif
    __shared__ block::memory s;
    block::run(p, s);
}
#endif
