// Attention of f16 or bf16 on Hopper for few keys: all that a head has lie in shared memory at once. A block has 64
// queries of a head; its warpgroups share the keys, KEYS for each, which has the scores of these at once. The warpgroups
// agree on each row's maximum before they make weights of scores, so that their sums need only be added, which is done in
// the order of the keys.
//
// spec.h: see zc/attention.cuh and zc/attention_prepare.cuh, and the configuration: Z_GROUPS (warpgroups), Z_KEYS (of
// each), Z_COLUMNS (Z_DV, rounded up to 16); Z_WGMMA (F16, BF16). Entries: 0 attention; 2 and 3 what prepares its operands.
#include "zc/attention_sm90.cuh"
#include "zc/attention_scores.cuh"

ZC_WGMMA(zc_score_product, Z_KEYS, Z_WGMMA, 0)
ZC_WGMMA_HELD(zc_value_product, Z_COLUMNS, Z_WGMMA, 1)

template <int GROUPS, int KEYS> struct attention_few {
    static constexpr int ROWS = 64, THREADS = GROUPS * 128;
    static constexpr int NEAR = 8, NEARS = Z_DV / NEAR; // columns that one thread adds up; such of a row
    static constexpr int Q_BYTES = ZC_Q_PANELS * ROWS * ZC_LINE, Y_BYTES = ZC_Y_PANELS * ROWS * ZC_LINE;
    static constexpr int K_BYTES = ZC_Q_PANELS * KEYS * ZC_LINE, V_BYTES = ZC_V_PANELS * KEYS * ZC_LINE; // of a warpgroup
    static constexpr int PITCH = Z_COLUMNS + 8, SUMS = ROWS * PITCH * 4; // of f32, in place of queries and keys
    static constexpr int FIRST = Q_BYTES + GROUPS * K_BYTES, HELD = FIRST > GROUPS * SUMS ? FIRST : GROUPS * SUMS;
    static constexpr int VALUES = (HELD + 1023) / 1024 * 1024;
    static constexpr int STATES = VALUES + GROUPS * V_BYTES; // maximum and sum of each row, of each warpgroup
    static constexpr int ADDENDS = STATES + GROUPS * ROWS * 8, BARRIERS = ADDENDS + GROUPS * KEYS * 4;
    static_assert(Y_BYTES <= VALUES && GROUPS * KEYS <= THREADS, "room for results, a thread for each key");

    const zc_attention_sm90_params &p;
    unsigned char *memory;
    u32 smem;
    int group; // of this thread
    place at;
    zc_attention_scores scoring;

    ZC_MEMBER attention_few(const zc_attention_sm90_params &p, unsigned char *memory, const place &at)
        : p(p), memory(memory), smem(zc_smem_address(memory)), group(GROUPS > 1 ? zc_warpgroup() : 0), at(at),
          scoring(p.a, memory + ADDENDS, at.b, at.h) {}

    ZC_MEMBER u32 k_of(int of) const { return smem + Q_BYTES + of * K_BYTES; }
    ZC_MEMBER u32 v_of(int of) const { return smem + VALUES + of * V_BYTES; }
    ZC_MEMBER u32 q_full() const { return smem + BARRIERS; }
    ZC_MEMBER u32 k_full(int of) const { return smem + BARRIERS + (1 + of) * 8; }
    ZC_MEMBER u32 v_full(int of) const { return smem + BARRIERS + (1 + GROUPS + of) * 8; }
    ZC_MEMBER f32 *max_of(int of) const { return (f32 *)(memory + STATES) + of * ROWS; }
    ZC_MEMBER f32 *sum_of(int of) const { return (f32 *)(memory + STATES) + (GROUPS + of) * ROWS; }
    ZC_MEMBER f32 *values_of(int of) const { return (f32 *)(memory + of * SUMS); }

    // Does any of the tile's rows see keys of this warpgroup?
    static ZC_MEMBER bool has_keys(const tile &t, int of) { return of * KEYS < t.hi && of * KEYS + KEYS > t.lo; }

    // ---- operands: the thread that copies for a warpgroup makes their barriers, and need not wait for others ----

    ZC_MEMBER void prepare() const {
        if (group == 0) zc_barrier_init(q_full(), 1);
        zc_barrier_init(k_full(group), 1);
        zc_barrier_init(v_full(group), 1);
        zc_barrier_fence();
        zc_tensor_prefetch(&p.q);
        zc_tensor_prefetch(&p.k);
        zc_tensor_prefetch(&p.v);
    }
    ZC_MEMBER void ask(const tile &t) const {
        const int j = group * KEYS, kv = (int)t.kv;
        if (group == 0 && t.lo < t.hi) load_head(smem, &p.q, q_full(), ZC_Q_PANELS, ROWS, at.first, at.h, at.b);
        if (!has_keys(t, group)) return;
        load_head(k_of(group), &p.k, k_full(group), ZC_Q_PANELS, KEYS, j, kv, at.b);
        load_head(v_of(group), &p.v, v_full(group), ZC_V_PANELS, KEYS, j, kv, at.b);
    }

    // ---- scores: a thread has parts of two rows, as a product's sums lie ----

    typedef f32 scores[KEYS / 2];
    typedef f32 pair[2]; // of its rows
    typedef zc_vec<f32, 4> four;

    ZC_MEMBER int own_row(int i) const { return (int)(threadIdx.x % 128 / 32 * 16 + threadIdx.x % 32 / 4) + i * 8; }
    ZC_MEMBER int own_key() const { return group * KEYS + (int)(threadIdx.x % 4 * 2); }

    ZC_MEMBER void multiply_keys(scores &s) const {
        zc_barrier_wait(q_full(), 0);
        zc_barrier_wait(k_full(group), 0);
        zc_wgmma_fence();
#pragma unroll
        for (int part = 0; part < (Z_D + 15) / 16; part++)
            zc_score_product(s, zc_wgmma_along(smem, part / 4 * ROWS * ZC_LINE + part % 4 * 32),
                             zc_wgmma_along(k_of(group), part / 4 * KEYS * ZC_LINE + part % 4 * 32), part > 0);
        zc_wgmma_commit();
        zc_wgmma_wait<0>();
    }
    // Products to scores, and the greatest of each row. ALL: both rows see every key of this warpgroup. FORM: scores stay
    // PRODUCTS until their maximum is known, or are SUMS of a product and what its key's score gets besides, or ANY.
    enum form { PRODUCTS, SUMS_OF_KEPT, ANY };
    template <bool ALL, form FORM> ZC_MEMBER void score(const tile &t, scores &s, pair &max) const {
        f32 top[4] = {least(), least(), least(), least()};
        const bool even = !ALL && is_even(p.a, t.s);
        query q[2];
        span seen[2];
#pragma unroll
        for (int row = 0; row < 2; row++) {
            const int i = at.first + own_row(row);
            q[row] = query_of(p.a, at.b, at.h, i);
            seen[row] = span_of(p.a, t.s, i);
            if (i >= (int)p.a.len.nq) seen[row].hi = seen[row].lo;
        }
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            const int row = i / 2 % 2, j = own_key() + i / 4 * 8 + i % 2;
            const f32 add = FORM == PRODUCTS ? 0.0f : scoring.kept_of(own_key() + i / 4 * 8).v[i % 2];
            if (FORM == SUMS_OF_KEPT) s[i] = ZC_BIASED ? fmaf(s[i], scoring.factor, add) : s[i] * scoring.factor;
            if (FORM == ANY) s[i] = scoring.of(q[row], even, s[i], add, j, t.hi);
            if (!ALL && (j < seen[row].lo || j >= seen[row].hi)) s[i] = least();
            top[i % 4] = fmaxf(top[i % 4], s[i]);
        }
#pragma unroll
        for (int row = 0; row < 2; row++) {
            f32 m = fmaxf(top[row * 2], top[row * 2 + 1]);
            m = fmaxf(m, zc_shfl_xor(m, 1));
            max[row] = fmaxf(m, zc_shfl_xor(m, 2));
        }
    }
    ZC_MEMBER int kind() const { return scoring.template kind_of<KEYS>(group * KEYS); }
    // kind: of what the keys get. Returns what the scores are to be multiplied with; the maxima are.
    ZC_MEMBER f32 score_keys(const tile &t, int kind, scores &s, pair &max) const {
        const int k0 = group * KEYS, last = last_of<ROWS>(p, at);
        const bool even = is_even(p.a, t.s);
        const bool all = !even && k0 >= span_of(p.a, t.s, last).lo && k0 + KEYS <= span_of(p.a, t.s, at.first).hi;
        if constexpr (ZC_SCORES_ARE_SUMS) {
            if (all && kind == zc_attention_scores::NOTHING && scoring.factor > 0) {
                score<true, PRODUCTS>(t, s, max);
#pragma unroll
                for (int row = 0; row < 2; row++) max[row] *= scoring.factor;
                return scoring.factor;
            }
            if (even || kind == zc_attention_scores::ANY)
                score<false, ANY>(t, s, max);
            else if (ZC_BIASED && all)
                score<true, SUMS_OF_KEPT>(t, s, max);
            else
                score<false, SUMS_OF_KEPT>(t, s, max);
        } else if (all)
            score<true, ANY>(t, s, max);
        else
            score<false, ANY>(t, s, max);
        return 1;
    }
    // Scores, times `by`, to weights; their sums.
    ZC_MEMBER void weigh(scores &s, f32 by, const pair &max, pair &sum) const {
        const f32 from[2] = {max[0] == least() ? 0.0f : max[0], max[1] == least() ? 0.0f : max[1]};
        f32 part[4] = {0, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            s[i] = zc_exp2_approx(fmaf(s[i], by, -from[i / 2 % 2]));
            part[i % 4] += s[i];
        }
#pragma unroll
        for (int row = 0; row < 2; row++) {
            sum[row] = part[row * 2] + part[row * 2 + 1];
            sum[row] += zc_shfl_xor(sum[row], 1);
            sum[row] += zc_shfl_xor(sum[row], 2);
        }
    }
    ZC_MEMBER void multiply_values(const scores &s, values &y) const {
        u32 w[KEYS / 16][4];
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 2) w[i / 8][i % 8 / 2] = zc_pack(Z_T(), s[i], s[i + 1]);
        zc_barrier_wait(v_full(group), 0);
        zc_wgmma_fence();
#pragma unroll
        for (int part = 0; part < KEYS / 16; part++)
            zc_value_product(y, w[part], zc_wgmma_across(v_of(group), part * 16 * ZC_LINE, KEYS * ZC_LINE), part > 0);
        zc_wgmma_commit();
        zc_wgmma_wait<0>();
    }
    // A row's sum of weights with the sink's, under `max`.
    static ZC_MEMBER f32 sink_sum(const state &sink, f32 max) {
        return sink.sum == 0 ? 0.0f : sink.sum * zc_exp2_approx(sink.max - max);
    }

    // ---- one warpgroup: its threads have all of their rows ----

    ZC_MEMBER void attend_alone(const tile &t) const {
        const state sink = scoring.begin();
        pair max = {sink.max, sink.max}, sum = {};
        values y = {};
        if (has_keys(t, 0)) {
            const int kept = kind();
            scores s;
            pair top;
            multiply_keys(s);
            const f32 by = score_keys(t, kept, s, top);
#pragma unroll
            for (int i = 0; i < 2; i++) max[i] = fmaxf(max[i], top[i]);
            weigh(s, by, max, sum);
            multiply_values(s, y);
        }
#pragma unroll
        for (int i = 0; i < 2; i++) sum[i] = sink_sum(sink, max[i]) + sum[i];
        if (Y_BYTES > Q_BYTES) zc_sync(); // else a warp's results take the place of its own queries
        finish_rows<ROWS>(p, at, memory, own_row(0), y, max, sum);
        if (zc_elect()) zc_bulk_wait<0>();
    }

    // ---- several: what they tell each other, and the result, of which a thread has NEAR columns ----

    ZC_MEMBER f32 joined_max(const tile &t, const state &sink, int row) const {
        f32 max = sink.max;
#pragma unroll
        for (int of = 0; of < GROUPS; of++)
            if (has_keys(t, of)) max = fmaxf(max, max_of(of)[row]);
        return max;
    }
    ZC_MEMBER void tell(f32 *to, const pair &v) const {
        if (threadIdx.x % 4) return;
        to[own_row(0)] = v[0];
        to[own_row(1)] = v[1];
    }
    ZC_MEMBER void add_up(const tile &t, const state &sink, scores &s, f32 by) const {
        const pair max = {joined_max(t, sink, own_row(0)), joined_max(t, sink, own_row(1))};
        pair sum;
        values y;
        weigh(s, by, max, sum);
        tell(sum_of(group), sum);
        multiply_values(s, y);
        f32 *const to = values_of(group) + own_row(0) * PITCH + threadIdx.x % 4 * 2;
#pragma unroll
        for (int i = 0; i < Z_COLUMNS / 2; i += 2)
            *(zc_vec<f32, 2> *)(to + i / 2 % 2 * 8 * PITCH + i / 4 * 8) = {y[i], y[i + 1]};
    }
    ZC_MEMBER void put(const tile &t, const state &sink, int row, int col) const {
        const f32 max = joined_max(t, sink, row);
        f32 y[NEAR] = {}, sum = sink_sum(sink, max);
#pragma unroll
        for (int of = 0; of < GROUPS; of++) {
            if (!has_keys(t, of)) continue;
            sum += sum_of(of)[row];
            const four *const v = (const four *)(values_of(of) + row * PITCH + col);
#pragma unroll
            for (int e = 0; e < NEAR; e++) y[e] += v[e / 4].v[e % 4];
        }
        const f32 by = sum == 0 ? 0.0f : 1 / sum;
        bool finite = true;
#pragma unroll
        for (int e = 0; e < NEAR; e++) finite = finite && zc_isfinite(y[e]);
        if (!finite && zc_isfinite(sum)) {
            put_seen<NEAR, Z_DV>(p.a, t, line_at(p.a, at, t, row), row, {max / ZC_LOG2E, sum}, col);
            return;
        }
        const i64 to = at.b * p.a.y.batch + at.h * p.a.y.head + (at.first + row) * p.a.y.pos + col;
        if constexpr (ZC_TOGETHER) {
            zc_vec<result_pair, NEAR / 2> out;
#pragma unroll
            for (int e = 0; e < NEAR / 2; e++) out.v[e] = paired(p.a, y[e * 2] * by, y[e * 2 + 1] * by);
            *(zc_vec<result_pair, NEAR / 2> *)((Z_Y *)p.a.y.data + to) = out;
        } else {
#pragma unroll
            for (int e = 0; e < NEAR; e++) put_y(p.a, to + e, y[e] * by);
        }
    }
    ZC_MEMBER void attend_together(const tile &t) const {
        const state sink = scoring.begin();
        const bool busy = has_keys(t, group);
        scores s;
        f32 by = 1;
        if (busy) {
            const int kept = kind();
            pair max;
            multiply_keys(s);
            by = score_keys(t, kept, s, max);
            tell(max_of(group), max);
        }
        zc_sync();
        if (busy) add_up(t, sink, s, by);
        zc_sync();
        for (u32 n = threadIdx.x; n < ROWS * NEARS; n += THREADS) {
            const int row = (int)(n / NEARS), col = (int)(n % NEARS * NEAR);
            if (at.first + row < (int)p.a.len.nq) put(t, sink, row, col);
        }
    }

    // wait: for the kernel in front.
    template <class WAIT> ZC_MEMBER void run(WAIT wait) const {
        const bool copies = zc_warp() % 4 == 0; // one thread of it
        if (copies && zc_elect()) prepare();
        if (Z_LENGTHS) wait();
        const tile t = tile_of<ROWS, KEYS>(p, at);
        if (!Z_LENGTHS) wait();
        zc_grid_launch();
        if (copies && zc_elect()) ask(t);
        scoring.template keep<GROUPS * KEYS>(t.hi);
        zc_sync();
        if constexpr (GROUPS == 1)
            attend_alone(t);
        else
            attend_together(t);
    }
};

ZC_KERNEL_OF(0, Z_GROUPS * 128)(const __grid_constant__ zc_attention_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const int item = (int)zc_divide(blockIdx.x, p.by_down), row = (int)blockIdx.x - item * p.down;
    attention_few<Z_GROUPS, Z_KEYS>(p, smem, place_of(p, item, row * 64)).run([&] { zc_wait(); });
}
