// Attention of f16 or bf16 on Hopper: y = softmax(scale * q k^T, capped, + biases) v. The copy engine fills a ring of
// keys and values, products of whole warpgroups empty it. One warpgroup is the producer (one thread of it issues
// copies); each of the others has 64 rows of a tile of queries. While the tensor cores multiply one step's weights and
// the next step's scores, a warpgroup turns scores into weights; warpgroups ask for products in turn, so that one's
// weights are computed under the others' products. Blocks are persistent.
//
// AHEAD: queries of two tiles have room, so that the next tile's operands are on their way while one is computed; where a
// tile lies takes no divisions; and the end of the keys may lie in the last ENDS of a step without a look at the others.
// SHARE, with that: two warpgroups have the same rows and take steps of keys in turn, each those of its own stages (a
// barrier is waited for by one of them, or the other's phases would be taken for its own); their sums are joined in the end.
//
// KEPT: what biases that are the same for all queries add to a step's scores is made once, by a warp of its own, and comes
// with the keys; most steps have nothing or finite numbers, which takes no look at each score.
//
// spec.h: see zc/attention.cuh and zc/attention_prepare.cuh, and the configuration: Z_WARPGROUPS, Z_KEYS (a step),
// Z_STAGES, Z_COLUMNS (Z_DV, rounded up to 16), Z_AHEAD, Z_SHARE; Z_KEPT; Z_WGMMA (F16, BF16). Entries: 0 attention; 2 and 3
// what prepares its operands.
#include "zc/attention_sm90.cuh"
#include "zc/ring.cuh"

ZC_WGMMA(zc_score_product, Z_KEYS, Z_WGMMA, 0)
ZC_WGMMA_HELD(zc_value_product, Z_COLUMNS, Z_WGMMA, 1)

#if defined(Z_BIAS0) && !Z_BIAS0_SHARED
#define OWN_BIAS0 Z_BIAS0
#endif
#if defined(Z_BIAS1) && !Z_BIAS1_SHARED
#define OWN_BIAS1 Z_BIAS1
#endif

// A bias of a step's keys, as it stands in memory, for a thread's two rows. It is asked for before the products are waited
// for.
template <class T, int KEYS> struct bias_part {
    zc_vec<T, 2> at[2][KEYS / 8];
    // from: where each row's keys begin; j: the thread's first key; keys from `end` on are not there.
    ZC_MEMBER void load(const T *const (&from)[2], i64 step, int j, int end) {
        bool pairs = step == 1 && j - (int)threadIdx.x % 4 * 2 + KEYS <= end;
#pragma unroll
        for (int l = 0; l < 2; l++) pairs = pairs && (u64)(from[l] + j) % (2 * sizeof(T)) == 0;
        if (pairs) {
#pragma unroll
            for (int l = 0; l < 2; l++)
#pragma unroll
                for (int n = 0; n < KEYS / 8; n++) at[l][n] = *(const zc_vec<T, 2> *)(from[l] + j + n * 8);
            return;
        }
#pragma unroll
        for (int l = 0; l < 2; l++)
#pragma unroll
            for (int n = 0; n < KEYS / 8; n++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int at_key = j + n * 8 + e;
                    at[l][n].v[e] = at_key < end ? from[l][at_key * step] : T();
                }
    }
    ZC_MEMBER f32 get(int row, int n, int e) const { return as_bias(at[row][n].v[e]); }
};

// What a step's scores get besides, in powers of two, the same for all queries. Numbers lie as a thread of the products needs
// them: those of 4 columns, two of each of two groups of 8, are neighbours.
template <int KEYS> struct kept_biases {
    enum { SAME, FINITE, ANY };
    zc_vec<f32, 4> four[KEYS / 4];
    i32 kind;
    f32 first; // of the same, all: 0 where there is nothing, or what masks them
    i32 unused[2];
    ZC_MEMBER void put(int key, f32 x) {
        four[key / 16 * 4 + key % 8 / 2].v[key / 8 % 2 * 2 + key % 2] = x;
    }
    // Of the thread's columns.
    ZC_MEMBER f32 get(int n, int e) const { return four[n / 2 * 4 + threadIdx.x % 4].v[n % 2 * 2 + e]; }
};

template <int WARPGROUPS, int KEYS, int STAGES, bool AHEAD, bool SHARE> struct attention_sm90 {
    static constexpr int SHARES = SHARE ? WARPGROUPS : 1; // warpgroups with the same rows
    static_assert(STAGES % SHARES == 0, "stages belong to one warpgroup");
    static constexpr int ROWS = WARPGROUPS / SHARES * 64;
    static constexpr int Q_BYTES = ZC_Q_PANELS * ROWS * ZC_LINE, Y_BYTES = ZC_Y_PANELS * ROWS * ZC_LINE;
    static constexpr int K_BYTES = ZC_Q_PANELS * KEYS * ZC_LINE, V_BYTES = ZC_V_PANELS * KEYS * ZC_LINE;
    static constexpr int TILES = AHEAD ? 2 : 1; // of queries
    static constexpr int ENDS = AHEAD ? 16 : 0;
    static constexpr f32 STAYS = 8; // in powers of two: a maximum stays while no weight is greater than 2^8
    static constexpr int Y_AT = TILES * Q_BYTES, SUMS_AT = Y_AT + Y_BYTES;
    static constexpr int SUMS = Z_COLUMNS / 2 + 4; // of a thread: values, two maxima, two sums
    static constexpr int RING = SUMS_AT + (SHARE ? SUMS * 128 * 4 : 0), BARRIERS = RING + STAGES * (K_BYTES + V_BYTES);
    enum { K_FULL, V_FULL, K_EMPTY, V_EMPTY, KINDS };
    static constexpr bool KEPT = Z_KEPT;
    static constexpr int KEPT_AT = BARRIERS + (TILES * 2 + KINDS * STAGES) * 8;
    // Named barriers: a warpgroup's turn; the second one's sums are there, were read; all of a warpgroup have seen a tile.
    enum { TURNS = 1, JOINED = 1, READ, SEEN };

    const zc_attention_sm90_params &p;
    unsigned char *memory; // queries, results, sums of warpgroups, the ring, barriers
    u32 smem;
    f32 factor; // of products, to scores in powers of two

    ZC_MEMBER attention_sm90(const zc_attention_sm90_params &p, unsigned char *memory)
        : p(p), memory(memory), smem(zc_smem_address(memory)), factor((f32)p.a.scale * ZC_LOG2E) {}

    ZC_MEMBER u32 k_of(int stage) const { return smem + RING + stage * (K_BYTES + V_BYTES); }
    ZC_MEMBER u32 v_of(int stage) const { return k_of(stage) + K_BYTES; }
    ZC_MEMBER u32 q_of(int of) const { return smem + of * Q_BYTES; }
    ZC_MEMBER u32 q_full(int of) const { return smem + BARRIERS + of * 16; }
    ZC_MEMBER u32 q_empty(int of) const { return q_full(of) + 8; }
    ZC_MEMBER u32 barrier(int kind, int stage) const {
        return smem + BARRIERS + (TILES * 2 + kind * STAGES + stage) * 8;
    }

    typedef zc_ring_slot<STAGES> slot;
    typedef kept_biases<KEYS> kept;
    // Two for each stage, by turns: when a stage's keys have been read, those of the phase before need no biases any more.
    ZC_MEMBER kept &kept_of(int stage, int turn) const { return ((kept *)(memory + KEPT_AT))[turn * STAGES + stage]; }

    typedef zc_ring_slot<TILES> tile_slot;
    // Where a tile lies. Causal ones with the most keys come first, others by heads, whose keys they share.
    ZC_MEMBER place place_at(int n) const {
        const int outer = (int)zc_divide((u32)n, p.a.causal ? p.by_items : p.by_down);
        const int inner = n - outer * (p.a.causal ? p.items : p.down);
        const int item = p.a.causal ? inner : outer, row = p.a.causal ? p.down - 1 - outer : inner;
        return place_of(p, item, row * ROWS);
    }
    ZC_MEMBER tile tile_at(const place &at) const { return tile_of<ROWS, KEYS>(p, at); }

    ZC_MEMBER void begin() const {
        if (threadIdx.x == 0) {
            for (int i = 0; i < TILES; i++) {
                zc_barrier_init(q_full(i), 1);
                zc_barrier_init(q_empty(i), WARPGROUPS);
            }
            for (int s = 0; s < STAGES; s++)
                for (int kind = 0; kind < KINDS; kind++)
                    zc_barrier_init(barrier(kind, s), kind == K_FULL ? 1 + KEPT : kind == V_FULL ? 1 : WARPGROUPS / SHARES);
            zc_barrier_fence();
            zc_tensor_prefetch(&p.q);
            zc_tensor_prefetch(&p.k);
            zc_tensor_prefetch(&p.v);
            zc_tensor_prefetch(&p.y);
        }
        zc_sync();
    }

    // ---- the producer ----

    ZC_MEMBER void load_tile(const place &pl, const tile &t, slot &at, tile_slot &q) const {
        if (t.lo >= t.hi) return;
        const int of = q.stage, kv = (int)t.kv;
        zc_barrier_wait(q_empty(of), q.parity);
        q.next();
        load_head(q_of(of), &p.q, q_full(of), ZC_Q_PANELS, ROWS, pl.first, pl.h, pl.b);
        for (int j = t.lo; j < t.hi; j += KEYS, at.next()) {
            zc_barrier_wait(barrier(K_EMPTY, at.stage), at.parity);
            load_head(k_of(at.stage), &p.k, barrier(K_FULL, at.stage), ZC_Q_PANELS, KEYS, j, kv, pl.b);
            zc_barrier_wait(barrier(V_EMPTY, at.stage), at.parity);
            load_head(v_of(at.stage), &p.v, barrier(V_FULL, at.stage), ZC_V_PANELS, KEYS, j, kv, pl.b);
        }
    }

    // ---- what all queries' biases add: a warp of the producer's warpgroup ----

    ZC_MEMBER void keep_tile(const place &pl, const tile &t, slot &at) const {
        if (t.lo >= t.hi) return;
        const query row = query_of(p.a, pl.b, pl.h, 0);
        lane_biases own;
        ask_kept(row, t.lo, t.hi, own);
        for (int j = t.lo; j < t.hi; j += KEYS, at.next()) {
            zc_barrier_wait(barrier(K_EMPTY, at.stage), at.parity);
            keep(own, kept_of(at.stage, at.parity ^ 1));
            if (lane() == 0) zc_barrier_arrive(barrier(K_FULL, at.stage));
            ask_kept(row, j + KEYS, t.hi, own);
        }
    }

    // A lane's part of the biases of a step's keys, as they stand in memory.
    static constexpr int LANE_KEYS = (KEYS + 31) / 32;
    struct lane_biases {
#if defined(Z_BIAS0) && Z_BIAS0_SHARED
        Z_BIAS0 one[LANE_KEYS];
#endif
#if defined(Z_BIAS1) && Z_BIAS1_SHARED
        Z_BIAS1 two[LANE_KEYS];
#endif
    };
    static ZC_MEMBER int lane() { return (int)threadIdx.x % 32; }
    // Keys from `end` on are not there.
    template <class T> ZC_MEMBER void ask_kept(int x, i64 row, int j0, int end, T (&to)[LANE_KEYS]) const {
        const T *const from = (const T *)p.a.bias[x];
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++) {
            const int j = j0 + i * 32 + lane();
            to[i] = from && j < end ? from[row + j * p.a.bias_steps[x][3]] : no_bias(T());
        }
    }
    ZC_MEMBER void ask_kept([[maybe_unused]] const query &row, int j0, int end, [[maybe_unused]] lane_biases &to) const {
#if defined(Z_BIAS0) && Z_BIAS0_SHARED
        ask_kept(0, row.bias0, j0, end, to.one);
#endif
#if defined(Z_BIAS1) && Z_BIAS1_SHARED
        ask_kept(1, row.bias1, j0, end, to.two);
#endif
    }
    // What they add to the scores, and which kind it is.
    ZC_MEMBER void keep(const lane_biases &b, kept &to) const {
        f32 one[LANE_KEYS] = {}, two[LANE_KEYS] = {}, first = 0;
        bool some = false, odd = false, differ = false;
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++) {
#if defined(Z_BIAS0) && Z_BIAS0_SHARED
            one[i] = as_bias(b.one[i]);
#endif
#if defined(Z_BIAS1) && Z_BIAS1_SHARED
            two[i] = as_bias(b.two[i]);
#endif
            some = some || one[i] != 0 || two[i] != 0;
        }
        some = zc_any(some);
#pragma unroll
        for (int i = 0; i < LANE_KEYS; i++) {
            const int key = i * 32 + lane();
            const f32 x = some ? both(one[i], two[i]) * ZC_LOG2E : 0.0f;
            if (i == 0) first = zc_shfl(x, 0);
            if (key >= KEYS) continue;
            odd = odd || !zc_isfinite(x);
            differ = differ || x != first;
            to.put(key, x);
        }
        if (some) {
            odd = zc_any(odd);
            differ = zc_any(differ);
        }
        if (lane() == 0) {
            to.kind = odd ? kept::ANY : differ ? kept::FINITE : kept::SAME;
            to.first = first;
        }
        zc_sync_warp();
    }
    // Blocks go through the tiles one way and the other by turns where tiles become shorter: then the last are spread.
    ZC_MEMBER int stride() const { return (int)(AHEAD ? 2 * (gridDim.x - blockIdx.x) - 1 : gridDim.x); }
    ZC_MEMBER void next(int &n, int &by) const {
        n += by;
        if (AHEAD) by = 2 * (int)gridDim.x - by;
    }
    // f of each tile of this block. Where the first one lies is known before the kernel in front has ended, unless lengths say.
    template <class F> ZC_MEMBER void each_tile(F f) const {
        place pl = place_at((int)blockIdx.x);
        if (Z_LENGTHS) zc_grid_wait();
        tile t = tile_at(pl);
        if (!Z_LENGTHS) zc_grid_wait();
        zc_grid_launch();
        for (int n = (int)blockIdx.x, by = stride();;) {
            f(pl, t);
            next(n, by);
            if (n >= p.down * p.items) return;
            pl = place_at(n);
            t = tile_at(pl);
        }
    }
    ZC_MEMBER void produce() const {
        slot at = {0, 1};
        tile_slot q = {0, 1};
        each_tile([&](const place &pl, const tile &t) { load_tile(pl, t, at, q); });
    }
    ZC_MEMBER void keep_biases() const {
        slot at = {0, 1};
        each_tile([&](const place &pl, const tile &t) { keep_tile(pl, t, at); });
    }

    // ---- the consumers: a thread has parts of two rows, as a product's sums lie ----

    typedef f32 scores[KEYS / 2];
    typedef u32 weights[KEYS / 16][4];

    // What a thread keeps of its tile while it goes over the keys.
    struct rows {
        int from[2], to[2];  // keys that each row sees
        int lo, hi;          // keys that any row of the tile may see
        int all_lo, all_hi;  // keys that every row sees; none, where a greater product is no greater score
        bool even;
        f32 max[2], sum[2];  // maxima in powers of two; sums of this thread's keys
        i64 bias0[2], bias1[2];
    };
    ZC_MEMBER rows rows_of(const place &pl, int first) const {
        const tile t = tile_at(pl);
        const state sink = begin_state(p.a, pl.h);
        rows r;
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const line l = line_at(p.a, pl, t, first + i * 8);
            r.from[i] = l.seen.lo;
            r.to[i] = l.seen.hi;
            r.max[i] = sink.max * ZC_LOG2E;
            r.sum[i] = threadIdx.x % 4 || (SHARE && threadIdx.x >= 256) ? 0 : sink.sum;
            r.bias0[i] = l.q.bias0;
            r.bias1[i] = l.q.bias1;
        }
        r.lo = t.lo;
        r.hi = t.hi;
        r.even = is_even(p.a, t.s);
        r.all_lo = factor > 0 && !r.even ? span_of(p.a, t.s, last_of<ROWS>(p, pl)).lo : t.hi;
        r.all_hi = span_of(p.a, t.s, pl.first).hi;
        return r;
    }

    ZC_MEMBER void take_turn(int warpgroup) const {
        if (WARPGROUPS > SHARES) zc_named_sync(TURNS + warpgroup, 256);
    }
    ZC_MEMBER void pass_turn(int warpgroup) const {
        if (WARPGROUPS > SHARES) zc_named_arrive(TURNS + (warpgroup + 1) % WARPGROUPS, 256);
    }
    ZC_MEMBER void release(u32 empty) const {
        if (threadIdx.x % 128 == 0) zc_barrier_arrive(empty);
    }
    ZC_MEMBER void multiply_keys(int warpgroup, u32 q, const slot &at, scores &s) const {
        zc_barrier_wait(barrier(K_FULL, at.stage), at.parity);
        zc_wgmma_fence();
#pragma unroll
        for (int part = 0; part < (Z_D + 15) / 16; part++)
            zc_score_product(
                s, zc_wgmma_along(q + (SHARE ? 0 : warpgroup) * 64 * ZC_LINE, part / 4 * ROWS * ZC_LINE + part % 4 * 32),
                zc_wgmma_along(k_of(at.stage), part / 4 * KEYS * ZC_LINE + part % 4 * 32), part > 0);
        zc_wgmma_commit();
    }
    ZC_MEMBER void multiply_values(const slot &at, const weights &w, values &y) const {
        zc_barrier_wait(barrier(V_FULL, at.stage), at.parity);
        zc_wgmma_fence();
#pragma unroll
        for (int part = 0; part < KEYS / 16; part++)
            zc_value_product(y, w[part], zc_wgmma_across(v_of(at.stage), part * 16 * ZC_LINE, KEYS * ZC_LINE), true);
        zc_wgmma_commit();
    }

    // What is added to the scores of a step. OWN: by biases of each query.
#if defined(OWN_BIAS0) || defined(OWN_BIAS1)
    static constexpr bool OWN = true;
#else
    static constexpr bool OWN = false;
#endif
    struct biases {
        const kept *all; // of all queries
#ifdef OWN_BIAS0
        bias_part<OWN_BIAS0, KEYS> one;
#endif
#ifdef OWN_BIAS1
        bias_part<OWN_BIAS1, KEYS> two;
#endif
    };
    template <class T> ZC_MEMBER void ask(bias_part<T, KEYS> &to, const i64 (&begin)[2], const rows &r, int x, int j) const {
        const T *const from[2] = {(const T *)p.a.bias[x] + begin[0], (const T *)p.a.bias[x] + begin[1]};
        to.load(from, p.a.bias_steps[x][3], j, p.a.bias[x] ? r.hi : 0);
    }
    ZC_MEMBER void ask_biases(const rows &r, const slot &at, int j0, biases &b) const {
        [[maybe_unused]] const int j = j0 + threadIdx.x % 4 * 2;
        b.all = KEPT ? &kept_of(at.stage, at.parity) : nullptr;
#ifdef OWN_BIAS0
        ask(b.one, r.bias0, r, 0, j);
#endif
#ifdef OWN_BIAS1
        ask(b.two, r.bias1, r, 1, j);
#endif
    }
    // The score of a product, in powers of two.
    ZC_MEMBER f32 score(const biases &b, bool even, int row, int n, int e, f32 dot) const {
        f32 s = Z_SOFTCAP ? capped(p.a, scaled(p.a, even, dot)) * ZC_LOG2E : even ? 0.0f : dot * factor;
        f32 kept = 0, one = 0, two = 0;
        if (KEPT) s += kept = b.all->get(n, e);
#ifdef OWN_BIAS0
        if (p.a.bias[0]) one = b.one.get(row, n, e);
#endif
#ifdef OWN_BIAS1
        if (p.a.bias[1]) two = b.two.get(row, n, e);
#endif
        if (OWN) s += (one + two) * ZC_LOG2E;
        return kept == least() || one == least() || two == least() ? (f32)p.a.mask_value * ZC_LOG2E : s;
    }

    // Scores to weights; by: what the sums so far are to be multiplied with. ALL: both rows see every key. FORM: of PRODUCTS,
    // which they stay until their maximum is known, where biases are the same for all keys; or of these and what all queries'
    // biases add, where nothing is masked; or of whatever the score is. The two rows, and two neighbours of each, are independent: there are few warps to hide
    // latencies.
    enum form { PRODUCTS, SUMS_OF_KEPT, SCORES };
    template <bool ALL, form FORM>
    ZC_MEMBER void soften(rows &r, int j, const biases &b, scores &s, f32 (&by)[2]) const {
        constexpr bool PLAIN = FORM == PRODUCTS;
        const f32 same = KEPT && PLAIN ? b.all->first : 0.0f;
        f32 top[4] = {least(), least(), least(), least()}, part[4] = {0, 0, 0, 0}, from[2];
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            const int n = i / 4, row = i / 2 % 2, e = i % 2;
            if (FORM == SCORES) s[i] = score(b, !ALL && r.even, row, n, e, s[i]);
            if (FORM == SUMS_OF_KEPT) s[i] = fmaf(s[i], factor, b.all->get(n, e));
            if (!ALL && (j + n * 8 + e < r.from[row] || j + n * 8 + e >= r.to[row])) s[i] = least();
            top[i % 4] = fmaxf(top[i % 4], s[i]);
        }
#pragma unroll
        for (int row = 0; row < 2; row++) {
            f32 max = fmaxf(top[row * 2], top[row * 2 + 1]);
            max = fmaxf(max, zc_shfl_xor(max, 1));
            max = fmaxf(max, zc_shfl_xor(max, 2));
            max = fmaxf(r.max[row], PLAIN ? fmaf(max, factor, same) : max);
            if (max <= r.max[row] + STAYS) max = r.max[row];
            by[row] = r.max[row] == max ? 1.0f : zc_exp2_approx(r.max[row] - max);
            from[row] = (max == least() ? 0.0f : max) - same;
            r.max[row] = max;
        }
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++) {
            s[i] = zc_exp2_approx(PLAIN ? fmaf(s[i], factor, -from[i / 2 % 2]) : s[i] - from[i / 2 % 2]);
            part[i % 4] += s[i];
        }
#pragma unroll
        for (int row = 0; row < 2; row++) r.sum[row] = r.sum[row] * by[row] + (part[row * 2] + part[row * 2 + 1]);
    }
    // Keys behind a row's last, of the step's last LAST.
    template <int LAST> ZC_MEMBER void cut(const rows &r, int j, scores &s) const {
#pragma unroll
        for (int i = (KEYS - LAST) / 2; i < KEYS / 2; i++)
            if (j + i / 4 * 8 + i % 2 >= r.to[i / 2 % 2]) s[i] = least();
    }
    // Nothing but minus infinity is left of what is masked, whatever its product was.
    ZC_MEMBER void hide(const biases &b, scores &s) const {
#pragma unroll
        for (int i = 0; i < KEYS / 2; i++)
            if (b.all->get(i / 4, i % 2) == least()) s[i] = 0;
    }
    ZC_MEMBER void soften_rows(rows &r, int j0, const biases &b, scores &s, f32 (&by)[2]) const {
        const int j = j0 + threadIdx.x % 4 * 2;
        const bool begins = j0 >= r.all_lo, most = begins && j0 + KEYS - ENDS <= r.all_hi;
        const bool all = most && (!AHEAD || j0 + KEYS <= r.all_hi);
        if ((AHEAD ? begins : most) && simple(b, kept::SAME)) {
            if (AHEAD && !most)
                cut<KEYS>(r, j, s);
            else if (AHEAD && !all)
                cut<ENDS>(r, j, s);
            soften<true, PRODUCTS>(r, j, b, s, by);
        } else if constexpr (KEPT && SIMPLE) {
            const bool masks = all && p.a.mask_value == (f64)least() && simple(b, kept::ANY);
            if (masks || (most && simple(b, kept::FINITE))) {
                if (masks)
                    hide(b, s);
                else if (AHEAD && !all)
                    cut<ENDS>(r, j, s);
                soften<true, SUMS_OF_KEPT>(r, j, b, s, by);
            } else
                soften<false, SCORES>(r, j, b, s, by);
        } else if (all && !SIMPLE)
            soften<true, SCORES>(r, j, b, s, by);
        else
            soften<false, SCORES>(r, j, b, s, by);
    }
    // Scores are products and what all queries' biases add.
    static constexpr bool SIMPLE = !OWN && !Z_SOFTCAP;
    ZC_MEMBER bool simple(const biases &b, int kind) const { return SIMPLE && (KEPT ? b.all->kind : kept::SAME) == kind; }
    ZC_MEMBER void pack(const scores &s, weights &w) const {
#pragma unroll
        for (int i = 0; i < KEYS / 2; i += 2) w[i / 8][i % 8 / 2] = zc_pack(Z_T(), s[i], s[i + 1]);
    }

    // from: this warpgroup's first key.
    ZC_MEMBER void attend(int warpgroup, const tile_slot &tile, int from, slot &at, rows &r, values &y) const {
        const u32 q = q_of(tile.stage);
        scores s;
        weights w;
        biases b;
        f32 by[2];
        zc_barrier_wait(q_full(tile.stage), tile.parity);
        take_turn(warpgroup);
        multiply_keys(warpgroup, q, at, s);
        pass_turn(warpgroup);
        ask_biases(r, at, from, b);
        zc_wgmma_wait<0>();
        release(barrier(K_EMPTY, at.stage));
        soften_rows(r, from, b, s, by);
        pack(s, w);
        for (int j0 = from + SHARES * KEYS; j0 < r.hi; j0 += SHARES * KEYS) {
            const slot old = at;
            pass_steps(at, SHARES);
            take_turn(warpgroup);
            multiply_keys(warpgroup, q, at, s);
            multiply_values(old, w, y);
            pass_turn(warpgroup);
            ask_biases(r, at, j0, b);
            zc_wgmma_wait<1>();
            release(barrier(K_EMPTY, at.stage));
            soften_rows(r, j0, b, s, by);
            zc_wgmma_wait<0>();
            release(barrier(V_EMPTY, old.stage));
            if (zc_any(by[0] != 1 || by[1] != 1)) {
#pragma unroll
                for (int i = 0; i < Z_COLUMNS / 2; i++) y[i] *= by[i / 2 % 2];
            }
            pack(s, w);
        }
        release(q_empty(tile.stage));
        multiply_values(at, w, y);
        zc_wgmma_wait<0>();
        release(barrier(V_EMPTY, at.stage));
    }
    ZC_MEMBER static void pass_steps(slot &at, int n) {
        if (SHARE)
            at.skip(n);
        else
            at.next();
    }
    // A tile's steps of this warpgroup; at: the tile's first step, then the one behind its last.
    ZC_MEMBER void attend_steps(int warpgroup, const tile_slot &tile, slot &at, rows &r, values &y) const {
        if (!SHARE) {
            attend(warpgroup, tile, r.lo, at, r, y);
            at.next();
            return;
        }
        slot own = at;
        const int behind = (warpgroup + at.stage) % SHARES;
        own.skip(behind);
        const int from = r.lo + behind * KEYS;
        if (from < r.hi)
            attend(warpgroup, tile, from, own, r, y);
        else {
            zc_barrier_wait(q_full(tile.stage), tile.parity);
            zc_named_sync(SEEN + warpgroup, 128);
            release(q_empty(tile.stage));
        }
        at.skip((r.hi - r.lo + KEYS - 1) / KEYS);
        if (warpgroup)
            give(r, y);
        else
            join(r, y);
    }

    // ---- sums of warpgroups that share rows ----

    ZC_MEMBER zc_vec<f32, 4> *sums() const {
        return (zc_vec<f32, 4> *)(memory + SUMS_AT) + threadIdx.x % 128;
    }
    ZC_MEMBER void give(const rows &r, const values &y) const {
        zc_vec<f32, 4> *const to = sums();
        zc_named_sync(READ, 256);
        to[0] = {r.max[0], r.max[1], r.sum[0], r.sum[1]};
#pragma unroll
        for (int i = 0; i < Z_COLUMNS / 8; i++) to[(i + 1) * 128] = {y[i * 4], y[i * 4 + 1], y[i * 4 + 2], y[i * 4 + 3]};
        zc_named_arrive(JOINED, 256);
    }
    ZC_MEMBER void join(rows &r, values &y) const {
        const zc_vec<f32, 4> *const from = sums();
        f32 own[2], other[2];
        zc_named_sync(JOINED, 256);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const f32 max = fmaxf(r.max[i], from->v[i]), at = max == least() ? 0.0f : max;
            own[i] = zc_exp2_approx(r.max[i] - at);
            other[i] = zc_exp2_approx(from->v[i] - at);
            r.sum[i] = r.sum[i] * own[i] + from->v[2 + i] * other[i];
            r.max[i] = max;
        }
#pragma unroll
        for (int i = 0; i < Z_COLUMNS / 8; i++) {
            const zc_vec<f32, 4> x = from[(i + 1) * 128];
#pragma unroll
            for (int e = 0; e < 4; e++) y[i * 4 + e] = y[i * 4 + e] * own[e / 2] + x.v[e] * other[e / 2];
        }
        zc_named_arrive(READ, 256);
    }
    ZC_MEMBER void finish(const place &pl, rows &r, int first, const values &y) const {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            r.sum[i] += zc_shfl_xor(r.sum[i], 1);
            r.sum[i] += zc_shfl_xor(r.sum[i], 2);
        }
        finish_rows<ROWS>(p, pl, memory + Y_AT, first, y, r.max, r.sum);
    }

    ZC_MEMBER void consume(int warpgroup) const {
        const int thread = threadIdx.x % 128;
        const int first = (SHARE ? 0 : warpgroup) * 64 + thread / 32 * 16 + thread % 32 / 4;
        slot at = {0, 0};
        tile_slot q = {0, 0};
        zc_grid_wait();
        zc_grid_launch();
        if (WARPGROUPS > 1 && warpgroup == WARPGROUPS - 1) pass_turn(warpgroup);
        if (SHARE && warpgroup == 0) zc_named_arrive(READ, 256);
        for (int n = (int)blockIdx.x, by = stride(); n < p.down * p.items; next(n, by)) {
            rows r = rows_of(place_at(n), first);
            values y;
#pragma unroll
            for (int i = 0; i < Z_COLUMNS / 2; i++) y[i] = 0;
            if (r.lo < r.hi) {
                attend_steps(warpgroup, q, at, r, y);
                q.next();
            }
            if (!SHARE || warpgroup == 0) finish(place_at(n), r, first, y);
        }
        if (zc_elect()) zc_bulk_wait<0>();
    }
};

constexpr int PRODUCER = Z_KEPT ? 32 : 24; // registers of its threads
constexpr int ALL = 512 / (Z_WARPGROUPS + 1) / 8 * 8 * (Z_WARPGROUPS + 1); // of a thread of each warpgroup, as the block begins

ZC_KERNEL_OF(0, Z_WARPGROUPS * 128 + 128)(const __grid_constant__ zc_attention_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    const attention_sm90<Z_WARPGROUPS, Z_KEYS, Z_STAGES, Z_AHEAD, Z_SHARE> attention(p, smem);
    attention.begin();
    if (threadIdx.x < 128) {
        if constexpr (Z_WARPGROUPS > 1) zc_registers_drop<PRODUCER>();
        const int warp = zc_warp();
        ZC_FIRST_WARP(warp == 0 && zc_elect()) attention.produce();
        else if (Z_KEPT && warp == 2) attention.keep_biases();
    } else {
        if constexpr (Z_WARPGROUPS > 1) zc_registers_take<(ALL - PRODUCER) / Z_WARPGROUPS / 8 * 8>();
        attention.consume(zc_warpgroup() - 1);
    }
}
