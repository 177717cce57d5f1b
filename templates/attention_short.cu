// Attention of f16 or bf16 for short sequences at small batches: a block has 16 queries of a head, and its warps share
// the keys, KEYS for each. Operands go from memory into registers, all of them asked for at once: the summed axis of the
// scores is permuted alike for queries and keys, and so are keys and columns of the values, so that each thread reads 16
// bytes at a time. Each warp has a softmax of its keys; the warps' meet in shared memory, where they are joined in the
// order of the keys.
//
// spec.h: see zc/attention.cuh and zc/attention_prepare.cuh, and the configuration: Z_WARPS, Z_KEYS (of each). Entries: 0
// attention; 2 to 5 what prepares its operands.
#include "zc/attention_prepare.cuh"
#include "zc/attention_scores.cuh"

ZC_DEV void mma(f16, f32 *d, const u32 *a, const u32 *b) { zc_mma_m16n8k16_f16(d, a, b); }
ZC_DEV void mma(bf16, f32 *d, const u32 *a, const u32 *b) { zc_mma_m16n8k16_bf16(d, a, b); }

template <int WARPS, int KEYS> struct attention_short {
    static constexpr int ROWS = 16, NEAR = 8, THREADS = WARPS * 32;
    static constexpr int DEPTHS = (Z_D + 31) / 32, BLOCKS = (Z_DV + 63) / 64; // of the summed axis, of the values' columns
    static constexpr int PITCH = BLOCKS * 64 + 4, SUMS = ROWS * PITCH * 4;    // of f32
    static constexpr int STATES = WARPS * SUMS, ADDENDS = STATES + WARPS * ROWS * 8;
    typedef zc_vec<u32, 4> piece; // 8 elements
    typedef zc_vec<f32, 4> four;

    const zc_attention_params &p;
    unsigned char *memory;
    int lane, warp, down, b, h, first; // of this thread; tiles of a head, the block's head and first query
    zc_attention_scores scoring;

    ZC_MEMBER attention_short(const zc_attention_params &p, unsigned char *memory)
        : p(p), memory(memory), lane((int)threadIdx.x % 32), warp((int)threadIdx.x / 32),
          down((int)((p.len.nq + ROWS - 1) / ROWS)), b((int)blockIdx.x / down / (int)p.heads),
          h((int)blockIdx.x / down % (int)p.heads), first((int)blockIdx.x % down * ROWS),
          scoring(p, memory + ADDENDS, b, h) {}

    ZC_MEMBER f32 *values_of(int of) const { return (f32 *)(memory + of * SUMS); }
    ZC_MEMBER f32 *max_of(int of) const { return (f32 *)(memory + STATES) + of * ROWS; }
    ZC_MEMBER f32 *sum_of(int of) const { return (f32 *)(memory + STATES) + (WARPS + of) * ROWS; }
    ZC_MEMBER tile tile_of() const {
        const i64 shared = p.heads / p.kv_heads, in = h % shared * p.len.nq;
        return tile_at<ROWS, 1>(p, b, h / shared, in + first, in + p.len.nq);
    }
    // A thread has parts of two rows, and of each 8 keys two.
    ZC_MEMBER int own_row(int i) const { return lane / 4 + i * 8; }
    ZC_MEMBER int own_key(int n, int e) const { return warp * KEYS + n * 8 + lane % 4 * 2 + e; }

    // 8 elements from `col` on of a row of `size`; zeros where there is none.
    static ZC_MEMBER piece read(const Z_T *row, int col, int size) {
        piece none = {};
        return row && col < size ? *(const piece *)(row + col) : none;
    }
    ZC_MEMBER const Z_T *row_of(const zc_attention_view &v, i64 head, int pos, i64 count) const {
        return pos < count ? (const Z_T *)v.data + b * v.batch + head * v.head + pos * v.pos : nullptr;
    }
    struct operands {
        piece q[2][DEPTHS], k[KEYS / 8][DEPTHS], v[KEYS / 16][4][BLOCKS];
    };
    ZC_MEMBER void ask(const tile &t, operands &o) const {
#pragma unroll
        for (int i = 0; i < 2; i++)
#pragma unroll
            for (int d = 0; d < DEPTHS; d++)
                o.q[i][d] = read(row_of(p.q, h, first + own_row(i), p.len.nq), d * 32 + lane % 4 * 8, Z_D);
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int d = 0; d < DEPTHS; d++)
                o.k[n][d] = read(row_of(p.k, t.kv, warp * KEYS + n * 8 + lane / 4, t.hi), d * 32 + lane % 4 * 8, Z_D);
#pragma unroll
        for (int u = 0; u < KEYS / 16; u++)
#pragma unroll
            for (int i = 0; i < 4; i++)
#pragma unroll
                for (int c = 0; c < BLOCKS; c++)
                    o.v[u][i][c] = read(row_of(p.v, t.kv, own_key(u * 2 + i / 2, i % 2), t.hi), c * 64 + lane / 4 * 8, Z_DV);
    }
    ZC_MEMBER void multiply_keys(const operands &o, f32 (&s)[KEYS / 8][4]) const {
#pragma unroll
        for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
            for (int d = 0; d < DEPTHS; d++)
#pragma unroll
                for (int half = 0; half < 4; half += 2) {
                    const u32 a[4] = {o.q[0][d].v[half], o.q[1][d].v[half], o.q[0][d].v[half + 1], o.q[1][d].v[half + 1]};
                    mma(Z_T(), s[n], a, o.k[n][d].v + half);
                }
    }
    // Column 8 g + j of each 64 is column g of product j, for all of them.
    ZC_MEMBER void multiply_values(const operands &o, const f32 (&s)[KEYS / 8][4], f32 (&y)[BLOCKS][8][4]) const {
#pragma unroll
        for (int u = 0; u < KEYS / 16; u++) {
            const f32(&w)[4] = s[2 * u], (&x)[4] = s[2 * u + 1];
            const u32 a[4] = {zc_pack(Z_T(), w[0], w[1]), zc_pack(Z_T(), w[2], w[3]), zc_pack(Z_T(), x[0], x[1]),
                              zc_pack(Z_T(), x[2], x[3])};
#pragma unroll
            for (int c = 0; c < BLOCKS; c++)
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    u32 f[2];
#pragma unroll
                    for (int i = 0; i < 2; i++) {
                        const u32 one = o.v[u][i * 2][c].v[j / 2], two = o.v[u][i * 2 + 1][c].v[j / 2];
                        f[i] = j % 2 ? one >> 16 | (two & 0xffff0000u) : (one & 0xffff) | two << 16;
                    }
                    mma(Z_T(), y[c][j], a, f);
                }
        }
    }
    // Products to weights of this warp's keys.
    ZC_MEMBER void soften(const tile &t, f32 (&s)[KEYS / 8][4]) const {
        const bool even = is_even(p, t.s);
#pragma unroll
        for (int row = 0; row < 2; row++) {
            const int at = first + own_row(row);
            const query q = query_of(p, b, h, at);
            span seen = span_of(p, t.s, at);
            if (at >= p.len.nq) seen.hi = seen.lo;
            f32 max = least(), sum = 0;
#pragma unroll
            for (int i = 0; i < KEYS / 4; i++) {
                const int j = own_key(i / 2, i % 2);
                f32 &v = s[i / 2][row * 2 + i % 2];
                v = scoring.of(q, even, v, j, (int)t.hi);
                if (j < seen.lo || j >= seen.hi) v = least();
                max = fmaxf(max, v);
            }
            max = fmaxf(max, zc_shfl_xor(max, 1));
            max = fmaxf(max, zc_shfl_xor(max, 2));
            const f32 from = max == least() ? 0.0f : max;
#pragma unroll
            for (int i = 0; i < KEYS / 4; i++) {
                f32 &v = s[i / 2][row * 2 + i % 2];
                v = zc_exp2_approx(v - from);
                sum += v;
            }
            sum += zc_shfl_xor(sum, 1);
            sum += zc_shfl_xor(sum, 2);
            if (lane % 4) continue;
            max_of(warp)[own_row(row)] = max;
            sum_of(warp)[own_row(row)] = sum;
        }
    }
    ZC_MEMBER void keep(const f32 (&y)[BLOCKS][8][4]) const {
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int c = 0; c < BLOCKS; c++) {
                f32 *const to = values_of(warp) + own_row(i / 2) * PITCH + c * 64 + (lane % 4 * 2 + i % 2) * 8;
#pragma unroll
                for (int j = 0; j < 8; j += 4)
                    *(four *)(to + j) = {y[c][j][i], y[c][j + 1][i], y[c][j + 2][i], y[c][j + 3][i]};
            }
    }
    ZC_MEMBER void put(const tile &t, int row, int col) const {
        const state sink = scoring.begin();
        f32 max = sink.max;
#pragma unroll
        for (int of = 0; of < WARPS; of++) max = fmaxf(max, max_of(of)[row]);
        const f32 from = max == least() ? 0.0f : max;
        f32 y[NEAR] = {}, sum = sink.sum == 0 ? 0.0f : sink.sum * zc_exp2_approx(sink.max - from);
#pragma unroll
        for (int of = 0; of < WARPS; of++) {
            if (sum_of(of)[row] == 0) continue; // values of keys that nobody sees may be infinite
            const f32 by = zc_exp2_approx(max_of(of)[row] - from);
            sum += sum_of(of)[row] * by;
            const four *const v = (const four *)(values_of(of) + row * PITCH + col);
#pragma unroll
            for (int e = 0; e < NEAR; e++) y[e] += v[e / 4].v[e % 4] * by;
        }
        scoring.put<NEAR>(t, row, first + row, col, y, max, sum);
    }

    ZC_MEMBER void run() const {
        zc_grid_wait();
        zc_grid_launch();
        const tile t = tile_of();
        operands o;
        f32 s[KEYS / 8][4] = {}, y[BLOCKS][8][4] = {};
        ask(t, o);
        scoring.keep(WARPS * KEYS, THREADS, (int)t.hi);
        if (ZC_BIASED) zc_sync();
        multiply_keys(o, s);
        soften(t, s);
        multiply_values(o, s, y);
        keep(y);
        zc_sync();
        for (int at = (int)threadIdx.x; at < ROWS * (Z_DV / NEAR); at += THREADS) {
            const int row = at / (Z_DV / NEAR);
            if (first + row < p.len.nq) put(t, row, at % (Z_DV / NEAR) * NEAR);
        }
    }
};

ZC_KERNEL_OF(0, Z_WARPS * 32)(const __grid_constant__ zc_attention_params p) {
    ZC_DYNAMIC_SMEM(smem);
    attention_short<Z_WARPS, Z_KEYS>(p, smem).run();
}
