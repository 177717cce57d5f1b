// Tiles of 64 queries, 64 keys at a time, on the tensor cores: 4 warps with 16 rows each, f16 or bf16 with f32 sums.
#pragma once
#include "zc/attention_tile.cuh"

enum { DP = (Z_D + 15) / 16 * 16, VP = (Z_DV + 15) / 16 * 16, LDK = DP + 8, LDV = VP + 8, MMA_THREADS = 128 };

ZC_DEV void mma(f16, f32 *d, const u32 *a, const u32 *b) { zc_mma_m16n8k16_f16(d, a, b); }
ZC_DEV void mma(bf16, f32 *d, const u32 *a, const u32 *b) { zc_mma_m16n8k16_bf16(d, a, b); }

// 64 rows of N elements to shared memory, zeros beyond them; `row` gives a row's elements, NULL: none.
template <int N, int LD, class ROW> ZC_DEV void fetch_rows(Z_T *to, bool aligned, ROW row) {
    const int pieces = (N + 15) / 16 * 2;
    for (int x = (int)threadIdx.x; x < 64 * pieces; x += MMA_THREADS) {
        const int r = x / pieces, c = x % pieces * 8;
        const Z_T *from = row(r);
        Z_T *at = to + r * LD + c;
        if (aligned && N % 8 == 0) {
            const bool some = from && c < N;
            zc_cp_async16(at, some ? from + c : row(0), some);
        } else {
            zc_vec<Z_T, 8> v;
#pragma unroll
            for (int e = 0; e < 8; e++) v.v[e] = from && c + e < N ? from[c + e] : Z_T();
            *(zc_vec<Z_T, 8> *)at = v;
        }
    }
    zc_cp_async_commit();
}

// s[16 rows][64 keys] of this warp.
ZC_DEV void mma_scores(const Z_T *qs, const Z_T *ks, int lane, f32 (&s)[8][4]) {
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) s[n][i] = 0;
#pragma unroll
    for (int d = 0; d < DP; d += 16) {
        u32 a[4], b[4];
        zc_ldmatrix_x4(a, qs + (lane / 8 % 2 * 8 + lane % 8) * LDK + d + lane / 16 * 8);
#pragma unroll
        for (int n = 0; n < 8; n += 2) {
            zc_ldmatrix_x4(b, ks + (n * 8 + lane / 16 * 8 + lane % 8) * LDK + d + lane / 8 % 2 * 8);
            mma(Z_T(), s[n], a, b);
            mma(Z_T(), s[n + 1], a, b + 2);
        }
    }
}
ZC_DEV void mma_values(const f32 (&s)[8][4], const Z_T *vs, int lane, f32 (&o)[VP / 8][4]) {
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const u32 a[4] = {zc_pack(Z_T(), s[2 * k][0], s[2 * k][1]), zc_pack(Z_T(), s[2 * k][2], s[2 * k][3]),
                          zc_pack(Z_T(), s[2 * k + 1][0], s[2 * k + 1][1]), zc_pack(Z_T(), s[2 * k + 1][2], s[2 * k + 1][3])};
#pragma unroll
        for (int n = 0; n < VP / 8; n += 2) {
            u32 b[4];
            zc_ldmatrix_x4_trans(b, vs + (k * 16 + lane / 8 % 2 * 8 + lane % 8) * LDV + n * 8 + lane / 16 * 8);
            mma(Z_T(), o[n], a, b);
            mma(Z_T(), o[n + 1], a, b + 2);
        }
    }
}

// Scores of one of the thread's two rows to weights; returns what the sums so far are to be multiplied with.
ZC_DEV f32 mma_soften(const zc_attention_params &p, const line &l, i64 j0, int half, f32 (&s)[8][4], state *st) {
    f32 top = least(), sum = 0;
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            f32 *v = &s[n][half * 2 + e];
            *v = line_score(p, l, j0 + n * 8 + e, *v);
            top = *v > top ? *v : top;
        }
#pragma unroll
    for (int d = 2; d; d >>= 1) {
        const f32 other = zc_shfl_xor(top, d);
        top = other > top ? other : top;
    }
    const f32 max = top > st->max ? top : st->max, by = rescale(st->max, max);
#pragma unroll
    for (int n = 0; n < 8; n++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
            f32 *v = &s[n][half * 2 + e];
            *v = weight_of(*v, max);
            sum += *v;
        }
#pragma unroll
    for (int d = 2; d; d >>= 1) sum += zc_shfl_xor(sum, d);
    st->max = max;
    st->sum = st->sum * by + sum;
    return by;
}

ZC_DEV void attend_mma(const zc_attention_params &p) {
    ZC_DYNAMIC_SMEM(smem);
    Z_T *qs = (Z_T *)smem, *ks = qs + 64 * LDK, *vs = ks + 64 * LDK;
    const int lane = (int)threadIdx.x % 32, first = (int)threadIdx.x / 32 * 16;
    const tile t = tile_of(p);
    const Z_T *k = (const Z_T *)p.k.data + t.b * p.k.batch + t.kv * p.k.head;
    const Z_T *v = (const Z_T *)p.v.data + t.b * p.v.batch + t.kv * p.v.head;
    line lines[2];
    state st[2];
    f32 o[VP / 8][4];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        lines[i] = line_of(p, t, first + lane / 4 + i * 8);
        st[i] = begin_state(p, lines[i].q.h);
    }
#pragma unroll
    for (int n = 0; n < VP / 8; n++)
#pragma unroll
        for (int i = 0; i < 4; i++) o[n][i] = 0;
    fetch_rows<Z_D, LDK>(qs, p.aligned_k, [&](int r) { return line_q(p, t, r); });
    const auto fetch_keys = [&](i64 j0) {
        fetch_rows<Z_D, LDK>(ks, p.aligned_k, [&](int r) { return j0 + r < t.hi ? k + (j0 + r) * p.k.pos : nullptr; });
    };
    if (t.lo < t.hi) fetch_keys(t.lo);
    for (i64 j0 = t.lo; j0 < t.hi; j0 += 64) {
        fetch_rows<Z_DV, LDV>(vs, p.aligned_v, [&](int r) { return j0 + r < t.hi ? v + (j0 + r) * p.v.pos : nullptr; });
        ZC_CP_ASYNC_WAIT(1);
        zc_sync(); // the keys are there
        f32 s[8][4];
        mma_scores(qs + first * LDK, ks, lane, s);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const f32 by = mma_soften(p, lines[i], j0 + lane % 4 * 2, i, s, &st[i]);
#pragma unroll
            for (int n = 0; n < VP / 8; n++) {
                o[n][i * 2] *= by;
                o[n][i * 2 + 1] *= by;
            }
        }
        ZC_CP_ASYNC_WAIT(0);
        zc_sync(); // the values are there, the keys are done with
        if (j0 + 64 < t.hi) fetch_keys(j0 + 64);
        mma_values(s, vs, lane, o);
        zc_sync();
    }
    ZC_CP_ASYNC_WAIT(0);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if (t.first + first + lane / 4 + i * 8 >= t.end) continue;
        bool finite = true;
#pragma unroll
        for (int n = 0; n < VP / 8; n++) finite = finite && zc_isfinite(o[n][i * 2]) && zc_isfinite(o[n][i * 2 + 1]);
        if (!finite && zc_isfinite(st[i].sum)) {
            put_seen<2, 8>(p, t, lines[i], first + lane / 4 + i * 8, st[i], lane % 4 * 2);
            continue;
        }
        const i64 y = line_y(p, lines[i]);
        const f32 by = st[i].sum == 0 ? 0.0f : 1 / st[i].sum;
#pragma unroll
        for (int n = 0; n < VP / 8; n++)
#pragma unroll
            for (int e = 0; e < 2; e++) {
                const int at = n * 8 + lane % 4 * 2 + e;
                if (at < Z_DV) put_y(p, y + at, o[n][i * 2 + e] * by);
            }
    }
}
