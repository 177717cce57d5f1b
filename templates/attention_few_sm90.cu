// Attention of f16 or bf16 on Hopper for few keys: all that a head has lie in shared memory at once. A block has 64
// queries of a head; its warpgroups share the keys, KEYS for each, which has the scores of these at once. The warpgroups
// agree on each row's maximum before they make weights of scores, so that their sums need only be added, which is done in
// the order of the keys.
//
// spec.h: see zc/attention.cuh and zc/attention_prepare.cuh, and the configuration: Z_GROUPS (warpgroups), Z_KEYS (of
// each), Z_COLUMNS (Z_DV, rounded up to 16); Z_WGMMA (F16, BF16). Entries: 0 attention; 2 and 3 what prepares its operands.
#include "zc/attention_prepare.cuh"
#include "zc/attention_scores.cuh"
#include "zc/hopper.cuh"
#include "abi/attention_sm90.h"

ZC_WGMMA(zc_score_product, Z_KEYS, Z_WGMMA, 0)
ZC_WGMMA_HELD(zc_value_product, Z_COLUMNS, Z_WGMMA, 1)

template <int GROUPS, int KEYS> struct attention_few {
    static constexpr int LINE = 128, WIDTH = 64; // a panel has lines of 64 elements
    static constexpr int ROWS = 64, THREADS = GROUPS * 128, NEAR = 8; // NEAR columns are finished by one thread
    static constexpr int Q_PANELS = (Z_D + WIDTH - 1) / WIDTH, V_PANELS = (Z_DV + WIDTH - 1) / WIDTH;
    static constexpr int Q_BYTES = Q_PANELS * ROWS * LINE;
    static constexpr int K_BYTES = Q_PANELS * KEYS * LINE, V_BYTES = V_PANELS * KEYS * LINE; // of a warpgroup
    static constexpr int PITCH = Z_COLUMNS + 8, SUMS = ROWS * PITCH * 4; // of f32, in place of queries and keys
    static constexpr int FIRST = Q_BYTES + GROUPS * K_BYTES, HELD = FIRST > GROUPS * SUMS ? FIRST : GROUPS * SUMS;
    static constexpr int VALUES = (HELD + 1023) / 1024 * 1024;
    static constexpr int STATES = VALUES + GROUPS * V_BYTES; // maximum and sum of each row, of each warpgroup
    static constexpr int ADDENDS = STATES + GROUPS * ROWS * 8, BARRIERS = ADDENDS + GROUPS * KEYS * 4;
    static constexpr bool PRODUCTS = ZC_SCORES_ARE_PRODUCTS;

    const zc_attention_sm90_params &p;
    unsigned char *memory;
    u32 smem;
    int group, b, h, first; // of this thread; the block's head and first query
    zc_attention_scores scoring;

    ZC_MEMBER attention_few(const zc_attention_sm90_params &p, unsigned char *memory)
        : p(p), memory(memory), smem(zc_smem_address(memory)), group(zc_warpgroup()),
          b((int)blockIdx.x / p.down / (int)p.a.heads), h((int)blockIdx.x / p.down % (int)p.a.heads),
          first((int)blockIdx.x % p.down * ROWS), scoring(p.a, memory + ADDENDS, b, h) {}

    ZC_MEMBER u32 k_of(int of) const { return smem + Q_BYTES + of * K_BYTES; }
    ZC_MEMBER u32 v_of(int of) const { return smem + VALUES + of * V_BYTES; }
    ZC_MEMBER u32 q_full() const { return smem + BARRIERS; }
    ZC_MEMBER u32 k_full(int of) const { return smem + BARRIERS + (1 + of) * 8; }
    ZC_MEMBER u32 v_full(int of) const { return smem + BARRIERS + (1 + GROUPS + of) * 8; }
    ZC_MEMBER f32 *max_of(int of) const { return (f32 *)(memory + STATES) + of * ROWS; }
    ZC_MEMBER f32 *sum_of(int of) const { return (f32 *)(memory + STATES) + (GROUPS + of) * ROWS; }
    ZC_MEMBER f32 *values_of(int of) const { return (f32 *)(memory + of * SUMS); }

    ZC_MEMBER tile tile_of() const {
        const i64 shared = p.a.heads / p.a.kv_heads, in = h % shared * p.a.len.nq;
        return tile_at<ROWS, KEYS>(p.a, b, h / shared, in + first, in + p.a.len.nq);
    }
    // Does any of the tile's rows see keys of this warpgroup?
    static ZC_MEMBER bool has_keys(const tile &t, int of) { return of * KEYS < t.hi && of * KEYS + KEYS > t.lo; }

    // ---- operands ----

    ZC_MEMBER void prepare() const {
        if (threadIdx.x == 0) {
            for (int i = 0; i < 1 + 2 * GROUPS; i++) zc_barrier_init(smem + BARRIERS + i * 8, 1);
            zc_barrier_fence();
            zc_tensor_prefetch(&p.q);
            zc_tensor_prefetch(&p.k);
            zc_tensor_prefetch(&p.v);
        }
        zc_sync();
    }
    ZC_MEMBER void load(u32 to, const zc_tensor_map *map, u32 full, int panels, int lines, int pos, int head) const {
        zc_barrier_expect(full, panels * lines * LINE);
        for (int panel = 0; panel < panels; panel++)
            zc_tensor_load(to + panel * lines * LINE, map, full, panel * WIDTH, pos, head, b);
    }
    ZC_MEMBER void ask(const tile &t) const {
        if (zc_warp() % 4 || !zc_elect()) return;
        if (group == 0 && t.lo < t.hi) load(smem, &p.q, q_full(), Q_PANELS, ROWS, first, h);
        if (!has_keys(t, group)) return;
        load(k_of(group), &p.k, k_full(group), Q_PANELS, KEYS, group * KEYS, (int)t.kv);
        load(v_of(group), &p.v, v_full(group), V_PANELS, KEYS, group * KEYS, (int)t.kv);
    }

    // ---- scores: a thread has parts of two rows, as a product's sums lie ----

    typedef f32 scores[KEYS / 2];
    typedef f32 values[Z_COLUMNS / 2];
    typedef zc_vec<f32, 4> four;

    ZC_MEMBER int own_row(int i) const { return (int)threadIdx.x % 128 / 32 * 16 + (int)threadIdx.x % 32 / 4 + i * 8; }
    ZC_MEMBER int own_key() const { return group * KEYS + (int)threadIdx.x % 4 * 2; }

    ZC_MEMBER void multiply_keys(scores &s) const {
        zc_barrier_wait(q_full(), 0);
        zc_barrier_wait(k_full(group), 0);
        zc_wgmma_fence();
#pragma unroll
        for (int part = 0; part < (Z_D + 15) / 16; part++)
            zc_score_product(s, zc_wgmma_along(smem, part / 4 * ROWS * LINE + part % 4 * 32),
                             zc_wgmma_along(k_of(group), part / 4 * KEYS * LINE + part % 4 * 32), part > 0);
        zc_wgmma_commit();
        zc_wgmma_wait<0>();
    }
    // Products to scores, and the greatest of each row. ALL: both rows see every key of this warpgroup, and with PRODUCTS
    // scores stay products until their maximum is known.
    template <bool ALL> ZC_MEMBER void score(const tile &t, const span (&seen)[2], scores &s, f32 (&max)[2]) const {
        f32 top[4] = {least(), least(), least(), least()};
        const bool even = !ALL && is_even(p.a, t.s);
        const query q[2] = {query_of(p.a, b, h, first + own_row(0)), query_of(p.a, b, h, first + own_row(1))};
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            const int row = i / 2 % 2, j = own_key() + i / 4 * 8 + i % 2;
            if (!ALL || !PRODUCTS) s[i] = scoring.of(q[row], even, s[i], j, (int)t.hi);
            if (!ALL && (j < seen[row].lo || j >= seen[row].hi)) s[i] = least();
            top[i % 4] = fmaxf(top[i % 4], s[i]);
        }
#pragma unroll
        for (int row = 0; row < 2; row++) {
            f32 m = fmaxf(top[row * 2], top[row * 2 + 1]);
            m = fmaxf(m, zc_shfl_xor(m, 1));
            m = fmaxf(m, zc_shfl_xor(m, 2));
            max[row] = ALL && PRODUCTS ? m * scoring.factor : m;
        }
    }
    // Scores to weights; their sums.
    template <bool ALL> ZC_MEMBER void weigh(scores &s, const f32 (&max)[2], f32 (&sum)[2]) const {
        const f32 from[2] = {max[0] == least() ? 0.0f : max[0], max[1] == least() ? 0.0f : max[1]};
        f32 part[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            const f32 at = from[i / 2 % 2];
            s[i] = zc_exp2_approx(ALL && PRODUCTS ? fmaf(s[i], scoring.factor, -at) : s[i] - at);
            part[i % 4] += s[i];
        }
#pragma unroll
        for (int row = 0; row < 2; row++) {
            sum[row] = part[row * 2] + part[row * 2 + 1];
            sum[row] += zc_shfl_xor(sum[row], 1);
            sum[row] += zc_shfl_xor(sum[row], 2);
        }
    }

    // ---- what the warpgroups tell each other ----

    ZC_MEMBER f32 joined_max(const tile &t, int row) const {
        f32 max = scoring.begin().max;
#pragma unroll
        for (int of = 0; of < GROUPS; of++)
            if (has_keys(t, of)) max = fmaxf(max, max_of(of)[row]);
        return max;
    }
    ZC_MEMBER void tell(f32 *to, const f32 (&v)[2]) const {
        if (threadIdx.x % 4) return;
        to[own_row(0)] = v[0];
        to[own_row(1)] = v[1];
    }
    ZC_MEMBER void multiply_values(const scores &s) const {
        values y;
        u32 w[KEYS / 16][4];
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 2) w[i / 8][i % 8 / 2] = zc_pack(Z_T(), s[i], s[i + 1]);
        zc_barrier_wait(v_full(group), 0);
        zc_wgmma_fence();
#pragma unroll
        for (int part = 0; part < KEYS / 16; part++)
            zc_value_product(y, w[part], zc_wgmma_across(v_of(group), part * 16 * LINE, KEYS * LINE), part > 0);
        zc_wgmma_commit();
        zc_wgmma_wait<0>();
        f32 *const to = values_of(group) + (int)threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < Z_COLUMNS / 2; i += 2)
            *(zc_vec<f32, 2> *)(to + own_row(i / 2 % 2) * PITCH + i / 4 * 8) = {y[i], y[i + 1]};
    }
    template <bool ALL> ZC_MEMBER void add_up(const tile &t, scores &s) const {
        const f32 max[2] = {joined_max(t, own_row(0)), joined_max(t, own_row(1))};
        f32 sum[2];
        weigh<ALL>(s, max, sum);
        tell(sum_of(group), sum);
        multiply_values(s);
    }

    // ---- the result ----

    ZC_MEMBER void put(const tile &t, int row, int col) const {
        const state sink = scoring.begin();
        const f32 max = joined_max(t, row);
        f32 y[NEAR] = {}, sum = sink.sum == 0 ? 0.0f : sink.sum * zc_exp2_approx(sink.max - max);
#pragma unroll
        for (int of = 0; of < GROUPS; of++) {
            if (!has_keys(t, of)) continue;
            sum += sum_of(of)[row];
            const four *const v = (const four *)(values_of(of) + row * PITCH + col);
#pragma unroll
            for (int e = 0; e < NEAR; e++) y[e] += v[e / 4].v[e % 4];
        }
        scoring.put<NEAR>(t, row, first + row, col, y, max, sum);
    }

    ZC_MEMBER void run() const {
        prepare();
        if (Z_LENGTHS) zc_grid_wait();
        const tile t = tile_of();
        const i64 last = first + ROWS < p.a.len.nq ? first + ROWS - 1 : p.a.len.nq - 1;
        span seen[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int at = first + own_row(i);
            seen[i] = span_of(p.a, t.s, at);
            if (at >= p.a.len.nq) seen[i].hi = seen[i].lo;
        }
        const int k0 = group * KEYS;
        const bool all = !is_even(p.a, t.s) && scoring.factor > 0 && k0 >= span_of(p.a, t.s, last).lo &&
                         k0 + KEYS <= span_of(p.a, t.s, first).hi;
        if (!Z_LENGTHS) zc_grid_wait();
        zc_grid_launch();
        ask(t);
        scoring.keep(GROUPS * KEYS, THREADS, (int)t.hi);
        if (ZC_BIASED) zc_sync();
        const bool busy = has_keys(t, group);
        scores s;
        if (busy) {
            f32 max[2];
            multiply_keys(s);
            if (all)
                score<true>(t, seen, s, max);
            else
                score<false>(t, seen, s, max);
            tell(max_of(group), max);
        }
        zc_sync();
        if (busy && all)
            add_up<true>(t, s);
        else if (busy)
            add_up<false>(t, s);
        zc_sync();
        for (int at = (int)threadIdx.x; at < ROWS * (Z_DV / NEAR); at += THREADS) {
            const int row = at / (Z_DV / NEAR);
            if (first + row < p.a.len.nq) put(t, row, at % (Z_DV / NEAR) * NEAR);
        }
    }
};

ZC_KERNEL_OF(0, Z_GROUPS * 128)(const __grid_constant__ zc_attention_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    attention_few<Z_GROUPS, Z_KEYS>(p, smem).run();
}
