// Tiles of 64 queries, 64 keys at a time, on the ordinary cores: 16 x 16 threads with 4 x 4 scores and 4 x 4 values of
// every 64 each.
#pragma once
#include "zc/attention_tile.cuh"

enum { LD = 68, CHUNK = 32, VALUES = (Z_DV + 63) / 64 };

// [64][CHUNK] of the keys from j0 on, transposed; zeros beyond.
ZC_DEV void load_keys(const zc_attention_params &p, const Z_T *k, i64 j0, i64 hi, int d0, f32 *ks) {
#pragma unroll
    for (int n = 0; n < 64 * CHUNK / 256; n++) {
        const int x = (int)threadIdx.x + n * 256, key = x / CHUNK, d = x % CHUNK;
        ks[d * LD + key] = j0 + key < hi && d0 + d < Z_D ? zc_get(k[(j0 + key) * p.k.pos + d0 + d]) : 0.0f;
    }
}
ZC_DEV void load_values(const zc_attention_params &p, const Z_V *v, i64 j0, i64 hi, int e0, f32 *vs) {
#pragma unroll
    for (int n = 0; n < 64 * CHUNK / 256; n++) {
        const int x = (int)threadIdx.x + n * 256, key = x / 64, e = x % 64;
        vs[key * LD + e] = j0 + key < hi && e0 + e < Z_DV ? zc_get(v[(j0 + key) * p.v.pos + e0 + e]) : 0.0f;
    }
}
// s[i][j] += sum over `depth` of a[d][4 ty + i] * b[d][4 tx + j].
ZC_DEV void multiply(const f32 *a, const f32 *b, int depth, f32 (&s)[4][4]) {
    const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
#pragma unroll 8
    for (int d = 0; d < depth; d++) {
        const zc_vec<f32, 4> x = *(const zc_vec<f32, 4> *)(a + d * LD + ty * 4);
        const zc_vec<f32, 4> y = *(const zc_vec<f32, 4> *)(b + d * LD + tx * 4);
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < 4; j++) s[i][j] += x.v[i] * y.v[j];
    }
}

// Scores to weights; by: what the sums so far are to be multiplied with.
ZC_DEV void soften(const zc_attention_params &p, const line &l, i64 j0, f32 (&s)[4], state *st, f32 *by) {
    f32 top = least(), sum = 0;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        s[j] = line_score(p, l, j0 + j, s[j]);
        top = s[j] > top ? s[j] : top;
    }
#pragma unroll
    for (int d = 8; d; d >>= 1) {
        const f32 other = zc_shfl_xor(top, d);
        top = other > top ? other : top;
    }
    const f32 max = top > st->max ? top : st->max;
    *by = rescale(st->max, max);
#pragma unroll
    for (int j = 0; j < 4; j++) {
        s[j] = weight_of(s[j], max);
        sum += s[j];
    }
#pragma unroll
    for (int d = 8; d; d >>= 1) sum += zc_shfl_xor(sum, d);
    st->max = max;
    st->sum = st->sum * *by + sum;
}

ZC_DEV void attend_tile(const zc_attention_params &p) {
    ZC_DYNAMIC_SMEM(smem);
    f32 *qs = (f32 *)smem, *ps = qs + (Z_D + CHUNK - 1) / CHUNK * CHUNK * LD, *chunk = ps + 64 * LD;
    const int ty = (int)threadIdx.x / 16, tx = (int)threadIdx.x % 16;
    const tile t = tile_of(p);
    const Z_T *k = (const Z_T *)p.k.data + t.b * p.k.batch + t.kv * p.k.head;
    const Z_V *v = (const Z_V *)p.v.data + t.b * p.v.batch + t.kv * p.v.head;
    line lines[4];
    state st[4];
    f32 sum[VALUES][4][4] = {};
#pragma unroll
    for (int i = 0; i < 4; i++) {
        lines[i] = line_of(p, t, ty * 4 + i);
        st[i] = begin_state(p, lines[i].q.h);
    }
    for (int x = (int)threadIdx.x; x < 64 * Z_D; x += 256) {
        const Z_T *q = line_q(p, t, x / Z_D);
        qs[x % Z_D * LD + x / Z_D] = q ? zc_get(q[x % Z_D]) : 0.0f;
    }
    for (i64 j0 = t.lo; j0 < t.hi; j0 += 64) {
        f32 s[4][4] = {};
        for (int d0 = 0; d0 < Z_D; d0 += CHUNK) {
            zc_sync();
            load_keys(p, k, j0, t.hi, d0, chunk);
            zc_sync();
            multiply(qs + d0 * LD, chunk, Z_D - d0 < CHUNK ? Z_D - d0 : CHUNK, s);
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            f32 by;
            soften(p, lines[i], j0 + tx * 4, s[i], &st[i], &by);
#pragma unroll
            for (int n = 0; n < VALUES; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) sum[n][i][e] *= by;
#pragma unroll
            for (int j = 0; j < 4; j++) ps[(tx * 4 + j) * LD + ty * 4 + i] = s[i][j];
        }
#pragma unroll
        for (int half = 0; half < 64; half += CHUNK) {
#pragma unroll
            for (int n = 0; n < VALUES; n++) {
                zc_sync();
                load_values(p, v, j0 + half, t.hi, n * 64, chunk);
                zc_sync();
                multiply(ps + half * LD, chunk, CHUNK, sum[n]);
            }
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if (t.first + ty * 4 + i >= t.end) continue;
        bool finite = true;
#pragma unroll
        for (int n = 0; n < VALUES; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) finite = finite && zc_isfinite(sum[n][i][e]);
        if (!finite && zc_isfinite(st[i].sum)) {
            put_seen<4, 64>(p, t, lines[i], ty * 4 + i, st[i], tx * 4);
            continue;
        }
        const i64 y = line_y(p, lines[i]);
        const f32 by = st[i].sum == 0 ? 0.0f : 1 / st[i].sum;
#pragma unroll
        for (int n = 0; n < VALUES; n++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (n * 64 + tx * 4 + e < Z_DV) put_y(p, y + n * 64 + tx * 4 + e, sum[n][i][e] * by);
    }
}
