// Attention of few queries of f16 or bf16 on Hopper, as a step of decoding has it: reading keys and values is all the
// work. A block has all rows of a key head, the queries of its group, and a part of the keys; blocks of a cluster share
// the keys, and their sums meet in shared memory in the order of the parts. Past keys and values come by bulk copies
// through a ring of stages. New ones are normed and turned here, queries too, and with the past ones they leave for the
// present cache from where they lie in shared memory.
//
// spec.h: see zc/attention.cuh and zc/attention_prepare.cuh, and the configuration: Z_QUERIES (rows of a key head),
// Z_KEYS (a stage), Z_STAGES, Z_PARTS (blocks of a cluster); Z_PAST_EARLY: nothing in the plan writes the past.
#include "zc/attention.cuh"
#undef Z_ROWS
#define Z_ROWS 1
#include "zc/attention_prepare.cuh"
#include "zc/cluster.cuh"
#include "abi/attention_step_sm90.h"

ZC_DEV constexpr int lanes_for(int pieces, int at = 1) { return at < pieces ? lanes_for(pieces, at * 2) : at; }

template <int QUERIES, int KEYS, int STAGES, int PARTS> struct attention_step {
    static constexpr int THREADS = 256, WARPS = THREADS / 32, NEAR = 8; // neighbours that a thread has
    static constexpr int K_LANES = lanes_for(Z_D / NEAR), V_LANES = lanes_for(Z_DV / NEAR), GROUPS = THREADS / V_LANES;
    static constexpr int K_BYTES = KEYS * Z_D * 2, STAGE = K_BYTES + KEYS * Z_DV * 2;
    static constexpr int OWNED = (QUERIES + PARTS - 1) / PARTS; // rows that a block finishes, at most
    static constexpr int LINE = Z_DV + 4, LINE_BYTES = LINE * 4; // a row's values, maximum and sum
    static constexpr int SUMS = WARPS * QUERIES * Z_DV * 4; // of warps, in the stages' place
    static constexpr int QUERY = STAGES * STAGE > SUMS ? STAGES * STAGE : SUMS, WEIGHTS = QUERY + QUERIES * Z_D * 4;
    static constexpr int BY = WEIGHTS + QUERIES * KEYS * 4, OWN = BY + (QUERIES + 3) / 4 * 16;
    static constexpr int RECEIVED = OWN + QUERIES * LINE_BYTES;
    static constexpr int BARRIERS = RECEIVED + (PARTS - 1) * OWNED * LINE_BYTES;
    typedef zc_vec<Z_T, NEAR> near;

    const zc_attention_step_sm90_params &p;
    unsigned char *memory;
    u32 smem;
    int rank;
    i64 b, kv;
    sight s;
    i64 before, count, first, end; // keys in front of the new ones; keys; this block's
    int warp, lane;

    ZC_MEMBER attention_step(const zc_attention_step_sm90_params &p, unsigned char *memory)
        : p(p), memory(memory), smem(zc_smem_address(memory)) {
        const i64 item = blockIdx.x / PARTS;
        rank = PARTS > 1 ? (int)zc_cluster_rank() : 0;
        b = item / p.a.kv_heads;
        kv = item % p.a.kv_heads;
        warp = (int)threadIdx.x / 32;
        lane = (int)threadIdx.x % 32;
    }
    // Which keys are whose; reads lengths.
    ZC_MEMBER void place() {
        s = sight_of(p.a.len, b);
        before = Z_LENGTHS ? s.position : p.k.len.past;
        const i64 seen = span_of(p.a, s, p.a.len.nq - 1).hi, there = before + p.k.fresh;
        count = seen > there ? seen : there;
        const i64 part = ((count + PARTS - 1) / PARTS + NEAR - 1) / NEAR * NEAR;
        first = rank * part < count ? rank * part : count;
        end = first + part < count ? first + part : count;
    }
    ZC_MEMBER u32 full(int stage) const { return smem + BARRIERS + stage * 8; }
    ZC_MEMBER u32 arrived() const { return smem + BARRIERS + STAGES * 8; }
    ZC_MEMBER Z_T *k_of(int stage) const { return (Z_T *)(memory + stage * STAGE); }
    ZC_MEMBER Z_T *v_of(int stage) const { return (Z_T *)(memory + stage * STAGE + K_BYTES); }
    ZC_MEMBER f32 *query(int r) const { return (f32 *)(memory + QUERY) + r * Z_D; }
    ZC_MEMBER f32 *weights(int r) const { return (f32 *)(memory + WEIGHTS) + r * KEYS; }
    ZC_MEMBER f32 *by() const { return (f32 *)(memory + BY); }
    ZC_MEMBER f32 *own(int r) const { return (f32 *)(memory + OWN) + r * LINE; }
    // Row r / PARTS of those that block `of` finishes, from another part.
    ZC_MEMBER static int received(int part, int of, int r) {
        return RECEIVED + ((part < of ? part : part - 1) * OWNED + r / PARTS) * LINE_BYTES;
    }
    ZC_MEMBER static int owned(int of) { return (QUERIES - of + PARTS - 1) / PARTS; }

    ZC_MEMBER void begin() const {
        if (threadIdx.x == 0) {
            for (int i = 0; i < STAGES; i++) zc_barrier_init(full(i), 1);
            zc_barrier_init(arrived(), 1);
            zc_barrier_fence();
            if (PARTS > 1) zc_barrier_expect(arrived(), (PARTS - 1) * owned(rank) * LINE_BYTES);
        }
    }

    // ---- keys and values ----

    // Of step `step`, how many keys there are in front of `to`.
    ZC_MEMBER int keys_of(int step, i64 to) const {
        const i64 n = to - (first + (i64)step * KEYS);
        return n < 0 ? 0 : n < KEYS ? (int)n : KEYS;
    }
    template <bool EARLY> ZC_MEMBER void load(int step) const {
        const int stage = step % STAGES, n = keys_of(step, before < end ? before : end);
        const i64 at = first + (i64)step * KEYS;
        zc_barrier_expect(full(stage), n * (Z_D + Z_DV) * 2);
        if (n == 0) return;
        const Z_T *const k = (const Z_T *)p.k.past.data + b * p.k.past.batch + kv * p.k.past.head + at * Z_D;
        const Z_T *const v = (const Z_T *)p.v.past.data + b * p.v.past.batch + kv * p.v.past.head + at * Z_DV;
        if (EARLY) zc_constant_load();
        zc_bulk_load(zc_smem_address(k_of(stage)), k, n * Z_D * 2, full(stage));
        if (EARLY) zc_constant_load();
        zc_bulk_load(zc_smem_address(v_of(stage)), v, n * Z_DV * 2, full(stage));
    }
    ZC_MEMBER int steps() const { return (int)((end - first + KEYS - 1) / KEYS); }
    template <bool EARLY> ZC_MEMBER void load_first() const {
        if (threadIdx.x == 0)
            for (int i = 0; i < STAGES && i < steps(); i++) load<EARLY>(i);
    }
    ZC_MEMBER i64 cached(const zc_attention_rows_params &r, i64 j) const {
        return (b * p.a.kv_heads + kv) * r.room + j;
    }
    // A new row, by a warp: to shared memory and to the present cache.
    template <int SIZE> ZC_MEMBER void fresh(const zc_attention_rows_params &r, i64 j, Z_T *to) const {
        const i64 i = j - before;
        Z_T *const kept = r.to ? (Z_T *)r.to + cached(r, j) * SIZE : nullptr;
        source<Z_T> x = {(const Z_T *)r.x.data + b * r.x.batch + kv * r.x.head + i * r.x.pos, (const Z_T *)r.norm, 0};
        if (i < r.fresh && r.norm) x.inv = inverse_rms<Z_T, SIZE>(x.x, lane, r.eps);
        const i64 row = i < r.fresh && r.half ? table_row(r, b, i, s.position) : -1;
        for (int e = lane; e < SIZE; e += 32) {
            const Z_T v = i < r.fresh ? zc_put<Z_T>(turned<Z_T>(r, x, row, e)) : Z_T();
            to[e] = v;
            if (kept) kept[e] = v;
        }
    }
    ZC_MEMBER void make_fresh(int step) const {
        const i64 at = first + (i64)step * KEYS;
        for (int j = keys_of(step, before) + warp; j < keys_of(step, end); j += WARPS) {
            fresh<Z_D>(p.k, at + j, k_of(step % STAGES) + j * Z_D);
            fresh<Z_DV>(p.v, at + j, v_of(step % STAGES) + j * Z_DV);
        }
    }
    template <int SIZE>
    ZC_MEMBER void keep(const zc_attention_rows_params &r, i64 at, const Z_T *from, int n) const {
        if (!r.to || p.in_place) return;
        near *const to = (near *)((Z_T *)r.to + cached(r, at) * SIZE);
        for (int e = (int)threadIdx.x; e < n * (SIZE / NEAR); e += THREADS) to[e] = ((const near *)from)[e];
    }
    // Past rows of a step leave for the present cache.
    ZC_MEMBER void keep_past(int step) const {
        const int n = keys_of(step, before < end ? before : end);
        const i64 at = first + (i64)step * KEYS;
        keep<Z_D>(p.k, at, k_of(step % STAGES), n);
        keep<Z_DV>(p.v, at, v_of(step % STAGES), n);
    }
    // Behind the last key the cache is zero.
    template <int SIZE> ZC_MEMBER void clear(const zc_attention_rows_params &r) const {
        if (!r.to || p.in_place) return;
        near *const to = (near *)((Z_T *)r.to + cached(r, 0) * SIZE);
        for (i64 e = count * (SIZE / NEAR) + rank * THREADS + threadIdx.x; e < r.room * (SIZE / NEAR); e += PARTS * THREADS)
            to[e] = near();
    }

    // ---- rows ----

    ZC_MEMBER bool is_row(int r) const { return r < p.a.heads / p.a.kv_heads * p.a.len.nq; }
    ZC_MEMBER i64 head_of(int r) const { return kv * (p.a.heads / p.a.kv_heads) + r / p.a.len.nq; }
    ZC_MEMBER i64 place_of(int r) const { return r % p.a.len.nq; }
    ZC_MEMBER void make_queries() const {
        for (int r = warp; r < QUERIES; r += WARPS) {
            const i64 i = place_of(r);
            source<Z_T> x = {(const Z_T *)p.a.q.data + b * p.a.q.batch + head_of(r) * p.a.q.head + i * p.a.q.pos,
                             (const Z_T *)p.q.norm, 0};
            if (is_row(r) && p.q.norm) x.inv = inverse_rms<Z_T, Z_D>(x.x, lane, p.q.eps);
            const i64 row = is_row(r) && p.q.half ? table_row(p.q, b, i, s.position) : -1;
            for (int e = lane; e < Z_D; e += 32)
                query(r)[e] = is_row(r) ? zc_through<Z_T>(turned<Z_T>(p.q, x, row, e)) : 0.0f;
        }
    }
    // Products of all rows with a step's keys.
    ZC_MEMBER void multiply(int step, const f32 (&q)[QUERIES][NEAR]) const {
        constexpr int AT_ONCE = 32 / K_LANES;
        const int sub = lane % K_LANES, n = keys_of(step, end);
        const Z_T *const k = k_of(step % STAGES);
        for (int j0 = warp * AT_ONCE; j0 < n; j0 += WARPS * AT_ONCE) {
            const int j = j0 + lane / K_LANES;
            near x = {};
            if (j < n && sub * NEAR < Z_D) x = *(const near *)(k + j * Z_D + sub * NEAR);
#pragma unroll
            for (int r = 0; r < QUERIES; r++) {
                f32 sum = 0;
#pragma unroll
                for (int e = 0; e < NEAR; e++) sum += q[r][e] * zc_get(x.v[e]);
#pragma unroll
                for (int d = K_LANES / 2; d; d >>= 1) sum += zc_shfl_xor(sum, d);
                if (sub == 0 && j < n) weights(r)[j] = sum;
            }
        }
    }
    struct state { // of a warp's row
        f32 max, sum;
    };
    // Products become weights; what was summed before is scaled `by`.
    ZC_MEMBER void weigh(int step, int r, state &t) const {
        const i64 at = first + (i64)step * KEYS;
        const int n = keys_of(step, end);
        const ::query q = query_of(p.a, b, head_of(r), place_of(r));
        span seen = span_of(p.a, s, place_of(r));
        if (!is_row(r)) seen.hi = seen.lo;
        f32 score[KEYS / 32], top = least(), sum = 0;
#pragma unroll
        for (int x = 0; x < KEYS / 32; x++) {
            const int j = x * 32 + lane;
            score[x] = least();
            if (j < n && at + j >= seen.lo && at + j < seen.hi)
                score[x] = biased(p.a, q, at + j, capped(p.a, scaled(p.a, false, weights(r)[j])));
            top = score[x] > top ? score[x] : top;
        }
#pragma unroll
        for (int d = 16; d; d >>= 1) {
            const f32 other = zc_shfl_xor(top, d);
            top = other > top ? other : top;
        }
        const f32 max = top > t.max ? top : t.max, scale = rescale(t.max, max);
#pragma unroll
        for (int x = 0; x < KEYS / 32; x++) {
            const int j = x * 32 + lane;
            const f32 w = weight_of(score[x], max);
            sum += w;
            if (j < n) weights(r)[j] = w;
        }
#pragma unroll
        for (int d = 16; d; d >>= 1) sum += zc_shfl_xor(sum, d);
        if (lane == 0) by()[r] = scale;
        t.sum = t.sum * scale + sum;
        t.max = max;
    }
    ZC_MEMBER void add_values(int step, f32 (&y)[QUERIES][NEAR]) const {
        const int sub = (int)threadIdx.x % V_LANES, n = keys_of(step, end);
        const Z_T *const v = v_of(step % STAGES);
#pragma unroll
        for (int r = 0; r < QUERIES; r++)
#pragma unroll
            for (int e = 0; e < NEAR; e++) y[r][e] = weighed(y[r][e], by()[r]);
        if (sub * NEAR >= Z_DV) return;
        for (int j = (int)threadIdx.x / V_LANES; j < n; j += GROUPS) {
            const near x = *(const near *)(v + j * Z_DV + sub * NEAR);
#pragma unroll
            for (int r = 0; r < QUERIES; r++) {
                const f32 w = weights(r)[j];
                if (w == 0) continue;
#pragma unroll
                for (int e = 0; e < NEAR; e++) y[r][e] += w * zc_get(x.v[e]);
            }
        }
    }

    // ---- sums of threads, of blocks ----

    ZC_MEMBER void join(f32 (&y)[QUERIES][NEAR], const state *t) const {
        const int sub = lane % V_LANES;
#pragma unroll
        for (int r = 0; r < QUERIES; r++) {
#pragma unroll
            for (int e = 0; e < NEAR; e++)
#pragma unroll
                for (int d = 16; d >= V_LANES; d >>= 1) y[r][e] += zc_shfl_xor(y[r][e], d);
            f32 *const to = (f32 *)memory + (warp * QUERIES + r) * Z_DV + sub * NEAR;
            if (lane < V_LANES && sub * NEAR < Z_DV)
#pragma unroll
                for (int e = 0; e < NEAR; e++) to[e] = y[r][e];
        }
        for (int r = warp, x = 0; r < QUERIES; r += WARPS, x++)
            if (lane < 2) own(r)[Z_DV + lane] = lane ? t[x].sum : t[x].max;
        zc_sync();
        for (int at = (int)threadIdx.x; at < QUERIES * Z_DV; at += THREADS) {
            f32 sum = 0;
#pragma unroll
            for (int w = 0; w < WARPS; w++) sum += ((const f32 *)memory)[w * QUERIES * Z_DV + at];
            own(at / Z_DV)[at % Z_DV] = sum;
        }
        if (PARTS > 1) zc_async_fence();
        zc_sync();
    }
    ZC_MEMBER void exchange() const {
        const int r = (int)threadIdx.x, to = r % PARTS;
        if (r < QUERIES && to != rank)
            zc_bulk_send(zc_cluster_address(smem + received(rank, to, r), to), zc_smem_address(own(r)), LINE_BYTES,
                         zc_cluster_address(arrived(), to));
        zc_barrier_wait_cluster(arrived(), 0);
    }
    ZC_MEMBER const f32 *part_of(int part, int r) const {
        return part == rank ? own(r) : (const f32 *)(memory + received(part, rank, r));
    }
    ZC_MEMBER void finish(int r) const {
        const i64 h = head_of(r);
        const f32 sink = has_sink(p.a) ? sink_of(p.a, h) : least();
        f32 max = sink, sum = 0;
        for (int i = 0; i < PARTS; i++) max = part_of(i, r)[Z_DV] > max ? part_of(i, r)[Z_DV] : max;
        for (int i = 0; i < PARTS; i++) sum += part_of(i, r)[Z_DV + 1] * rescale(part_of(i, r)[Z_DV], max);
        if (has_sink(p.a)) sum += weight_of(sink, max);
        const i64 y = b * p.a.y.batch + h * p.a.y.head + place_of(r) * p.a.y.pos;
        for (int e = (int)threadIdx.x; e < Z_DV; e += THREADS) {
            f32 v = 0;
            for (int i = 0; i < PARTS; i++) v += weighed(part_of(i, r)[e], rescale(part_of(i, r)[Z_DV], max));
            put_y(p.a, y + e, sum == 0 ? 0.0f : v / sum);
        }
    }

    ZC_MEMBER void attend() const {
        f32 q[QUERIES][NEAR], y[QUERIES][NEAR] = {};
        state t[(QUERIES + WARPS - 1) / WARPS];
        for (state &of : t) of = {least(), 0};
        make_queries();
        zc_sync();
        const int sub = lane % K_LANES;
#pragma unroll
        for (int r = 0; r < QUERIES; r++)
#pragma unroll
            for (int e = 0; e < NEAR; e++) q[r][e] = sub * NEAR < Z_D ? query(r)[sub * NEAR + e] : 0.0f;
        for (int step = 0; step < steps(); step++) {
            if (keys_of(step, end) > keys_of(step, before)) {
                make_fresh(step);
                zc_sync();
            }
            zc_barrier_wait(full(step % STAGES), step / STAGES & 1);
            multiply(step, q);
            zc_sync();
#pragma unroll
            for (int x = 0; x < (QUERIES + WARPS - 1) / WARPS; x++)
                if (x * WARPS + warp < QUERIES) weigh(step, x * WARPS + warp, t[x]);
            zc_sync();
            add_values(step, y);
            keep_past(step);
            zc_sync();
            if (threadIdx.x == 0 && step + STAGES < steps()) load<false>(step + STAGES);
        }
        clear<Z_D>(p.k);
        clear<Z_DV>(p.v);
        join(y, t);
        if (PARTS > 1) exchange();
        for (int r = rank; r < QUERIES; r += PARTS)
            if (is_row(r)) finish(r);
    }
};

ZC_KERNEL_OF(0, 256)(const __grid_constant__ zc_attention_step_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    attention_step<Z_QUERIES, Z_KEYS, Z_STAGES, Z_PARTS> step(p, smem);
    step.begin();
#ifdef Z_PAST_EARLY
    step.place();
    step.load_first<true>();
#endif
    zc_meet<Z_PARTS>();
    zc_wait();
    zc_grid_launch();
#ifndef Z_PAST_EARLY
    step.place();
    step.load_first<false>();
#endif
    step.attend();
    if (Z_PARTS > 1) zc_cluster_meet(); // what this block sent has been read when its partners have it
}
