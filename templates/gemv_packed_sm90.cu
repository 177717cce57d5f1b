// Products of few rows of f16 or bf16 on Hopper by a matrix of codes of 4 or 8 bits: reading the
// codes is all the work. A block has tiles of columns, one after another, and up to 16 rows; each
// of its warps has a part of the summed axis and a ring of slots of its own in shared memory: 16
// columns of the matrix, over all of the warp's part, with their scales and zero points, by one
// bulk copy each. The first ones are on their way before the kernel in front has ended. Columns of
// the result are the rows of the products, rows of x their columns; the warp's part of x stays in
// registers.
//
// A code c becomes the f16 1024 + c by its bits alone, and loses 1024 and its zero point by one
// step, exactly. So sums of products are those of integers; they count the scale in f32.
//
// Along the summed axis a lane has eight neighbouring codes of 4 bits (four of 8) of a piece of 16
// bytes, as one word, and gives them to the products in the order in which their bits come out:
// first and fifth, second and sixth ... x is read in that order.
//
// The warps' sums meet in shared memory, in the order of their parts. Where blocks of a cluster
// share the summed axis, each has one tile, and the first one gets the sums of the others.
//
// spec.h: see zc/packed_linear.cuh, and the configuration: Z_ROWS (of a block), Z_COLS (of a tile),
// Z_WARPS, Z_PARTS (blocks of a cluster), Z_STEPS (of two pieces, of a warp), Z_SLOTS (of a warp),
// Z_SCALES (of a column, in a slot), Z_SHARES (blocks that fit on a multiprocessor); Z_CONSTANT:
// the matrix is a constant of the plan.
#include "zc/packed_linear.cuh"
#include "zc/gemv_sums.cuh"
#include "zc/ring.cuh"
#include "zc/hopper.cuh"

// ---- codes ----

// begins: d = a b, else d += a b.
ZC_DEV void product(f16, bool begins, f32 *d, const u32 *a, const u32 *b) {
    begins ? zc_mma_new_m16n8k16_f16(d, a, b) : zc_mma_m16n8k16_f16(d, a, b);
}
ZC_DEV void product(bf16, bool begins, f32 *d, const u32 *a, const u32 *b) {
    begins ? zc_mma_new_m16n8k16_bf16(d, a, b) : zc_mma_m16n8k16_bf16(d, a, b);
}

// What is taken off is written as the bits of two numbers: -(1024 + n) is 0xE400 + n, -(64 + n) 0xD400 + 16 n in f16,
// -(128 + n) 0xC300 + n in bf16.
ZC_DEV u32 twice(u32 half) { return half * 0x00010001u; }
#if Z_BITS == 4
// Codes without a sign: i4 has 8 added by turning its highest bit.
static constexpr u32 RAISED = Z_SIGNED ? 8 : 0;
template <class T> struct decoder;
template <> struct decoder<f16> {
    u32 low, high; // of the first and the second of neighbours
    ZC_MEMBER void set(u32 zero) {
        low = twice(0xE400u + RAISED + zero);
        high = twice(0xD400u + 16 * (RAISED + zero));
    }
    ZC_MEMBER void pair(u32 codes, u32 *w) const {
        const u32 one = twice(0x3C00u);
        w[0] = zc_fma_f16x2((codes & 0x000F000Fu) ^ twice(0x6400u | RAISED), one, low);
        w[1] = zc_fma_f16x2((codes & 0x00F000F0u) ^ twice(0x5400u | RAISED << 4), one, high);
    }
    ZC_MEMBER void operator()(u32 codes, u32 *w) const {
        pair(codes, w);
        pair(codes >> 8, w + 2);
    }
};
template <> struct decoder<bf16> {
    u32 low;
    ZC_MEMBER void set(u32 zero) { low = twice(0xC300u + RAISED + zero); }
    ZC_MEMBER void operator()(u32 codes, u32 *w) const {
        const u32 one = twice(0x3F80u);
#pragma unroll
        for (int i = 0; i < 4; i++)
            w[i] = zc_fma_bf16x2((codes >> 4 * i & 0x000F000Fu) ^ twice(0x4300u | RAISED), one, low);
    }
};
#else
static constexpr u32 RAISED = Z_SIGNED ? 128 : 0;
template <class T> struct decoder;
template <> struct decoder<f16> {
    u32 low;
    ZC_MEMBER void set(u32 zero) { low = twice(0xE400u + RAISED + zero); }
    ZC_MEMBER void operator()(u32 codes, u32 *w) const {
        const u32 raised = codes ^ RAISED * 0x01010101u, one = twice(0x3C00u);
        w[0] = zc_fma_f16x2(zc_permute(raised, 0x64646464u, 0x4140), one, low);
        w[1] = zc_fma_f16x2(zc_permute(raised, 0x64646464u, 0x4342), one, low);
    }
};
// bf16 holds the differences, but not 256 codes beside one exponent: f32 does, as 2^23 + n.
template <> struct decoder<bf16> {
    f32 low;
    ZC_MEMBER void set(u32 zero) { low = zc_float(0x4B000000u + RAISED + zero); }
    ZC_MEMBER f32 difference(u32 raised, u32 i) const {
        return zc_float(zc_permute(raised, 0x4B000000u, 0x7650u + i)) - low;
    }
    ZC_MEMBER void operator()(u32 codes, u32 *w) const {
        const u32 raised = codes ^ RAISED * 0x01010101u;
        w[0] = zc_pack(bf16(), difference(raised, 0), difference(raised, 1));
        w[1] = zc_pack(bf16(), difference(raised, 2), difference(raised, 3));
    }
};
#endif

// What a lane needs of a piece of a row of x, in the order of the codes' pairs.
ZC_DEV void order(const zc_vec<u32, 4> &x, u32 *to) {
    to[0] = zc_permute(x.v[0], x.v[2], 0x5410);
    to[1] = zc_permute(x.v[0], x.v[2], 0x7632);
    to[2] = zc_permute(x.v[1], x.v[3], 0x5410);
    to[3] = zc_permute(x.v[1], x.v[3], 0x7632);
}
ZC_DEV void order(const zc_vec<u32, 2> &x, u32 *to) { to[0] = x.v[0], to[1] = x.v[1]; }

ZC_DEV constexpr int common(int a, int b) { return b ? common(b, a % b) : a; }

// ---- the product ----

template <int ROWS, int COLS, int WARPS, int PARTS, int STEPS, int SLOTS> struct gemv_packed {
    static constexpr int PIECE = ZC_PACKED_PIECE, STEP = 2 * PIECE,
                         STEP_BYTES = 2 * ZC_PACKED_BYTES * ZC_PACKED_COLUMNS;
    static constexpr int GROUP = ZC_PACKED_COLUMNS, GROUPS = COLS / GROUP;
    static constexpr int OWN = STEPS * STEP;                       // of the summed axis, a warp's
    static constexpr bool WHOLE = OWN * WARPS * PARTS == Z_SUMMED; // is every warp's part full?
    static constexpr int RUN = common(common(OWN, Z_BLOCK), 128);  // codes that have one scale
    static constexpr int STRIDE = RUN > STEP ? RUN : STEP;
    static constexpr int TILES = (ROWS + 7) / 8;                   // of eight rows of x
    static constexpr int PRODUCTS = PIECE / 16,
                         PAIRS = 2 * PRODUCTS; // of a piece; of a lane's words of x
    static constexpr int SCALE = STEPS * STEP_BYTES, ZERO = SCALE + Z_SCALES * GROUP * (int)sizeof(Z_S);
    static constexpr int SLOT = ZERO + Z_ZERO * Z_SCALES * GROUP;
    typedef zc_gemv_sums<ROWS, COLS, WARPS, PARTS> tile_sums;
    static constexpr int MEET = WARPS * SLOTS * SLOT, BARRIERS = MEET + tile_sums::BYTES;
    static constexpr int NEAR = tile_sums::NEAR, LANES = tile_sums::LANES, PASSES = tile_sums::PASSES;
    typedef typename tile_sums::pair pair;
    typedef f32 sums[TILES][4];
    typedef u32 words[TILES][2 * STEPS][PAIRS]; // of x

    const zc_packed_linear_params &p;
    unsigned char *memory;
    u32 smem;
    int warp, lane, rank;
    int from, left;  // of the summed axis: where this warp's part begins, how long it is
    i64 tiles, row0; // of the block
    int rows;
    tile_sums met;

    ZC_MEMBER gemv_packed(const zc_packed_linear_params &p, unsigned char *memory)
        : p(p),
          memory(memory),
          smem(zc_smem_address(memory)) {
        warp = zc_warp();
        lane = (int)threadIdx.x % 32;
        rank = PARTS > 1 ? (int)zc_cluster_rank() : 0;
        from = (rank * WARPS + warp) * OWN;
        left = WHOLE || Z_SUMMED - from > OWN ? OWN : Z_SUMMED - from;
        tiles = (p.n + COLS - 1) / COLS;
        row0 = (i64)blockIdx.y * ROWS;
        rows = p.m - row0 < ROWS ? (int)(p.m - row0) : ROWS;
        met = {memory + MEET, arrived(), rank};
    }
    ZC_MEMBER i64 first_tile() const { return blockIdx.x / PARTS; }
    ZC_MEMBER i64 tile_step() const { return gridDim.x / PARTS; }
    ZC_MEMBER int slot_of(int slot) const { return (warp * SLOTS + slot) * SLOT; }
    ZC_MEMBER u32 full(int slot) const { return smem + BARRIERS + (warp * SLOTS + slot) * 8; }
    ZC_MEMBER u32 arrived() const { return smem + BARRIERS + WARPS * SLOTS * 8; }
    ZC_MEMBER int groups_of(i64 tile) const {
        const i64 cols = p.n - tile * COLS;
        return cols < COLS ? (int)(cols / GROUP) : GROUPS;
    }

    // ---- the matrix ----

    struct place {
        i64 tile;
        int group;
    };
    ZC_MEMBER bool is_there(const place &at) const { return at.tile < tiles; }
    ZC_MEMBER void next(place &at) const {
        if (++at.group < groups_of(at.tile)) return;
        at.group = 0;
        at.tile += tile_step();
    }
    template <bool EARLY> ZC_MEMBER static void copy(u32 to, const void *data, i64 at, int bytes, u32 barrier) {
        if (EARLY) zc_constant_load();
        zc_bulk_load(to, (const u8 *)data + at, (u32)bytes, barrier);
    }
    template <bool EARLY> ZC_MEMBER void load(int slot, const place &at) const {
        if (lane) return;
        const i64 group = at.tile * GROUPS + at.group;
        const int codes = left / STEP * STEP_BYTES, first = from / Z_BLOCK;
        const int scales = ((from + left - 1) / Z_BLOCK - first + 1) * GROUP, bytes = scales * (int)sizeof(Z_S);
        const i64 scale = (group * (Z_SUMMED / Z_BLOCK) + first) * GROUP;
        const u32 to = smem + slot_of(slot);
        zc_barrier_expect(full(slot), (u32)(codes + bytes + Z_ZERO * scales));
        copy<EARLY>(to, p.w, (group * (Z_SUMMED / STEP) + from / STEP) * STEP_BYTES, codes, full(slot));
        copy<EARLY>(to + SCALE, p.scale, scale * (i64)sizeof(Z_S), bytes, full(slot));
        if (Z_ZERO) copy<EARLY>(to + ZERO, p.zero, scale, scales, full(slot));
    }
    // All slots; `ahead` is then what comes next.
    template <bool EARLY> ZC_MEMBER void fill(place &ahead) const {
        for (int slot = 0; slot < SLOTS && is_there(ahead); slot++, next(ahead)) load<EARLY>(slot, ahead);
    }
    // The kernel behind begins to copy when all of this one's copies are asked for, so that the
    // memory is never idle.
    ZC_MEMBER void launch_behind(const place &ahead) const {
        if (!is_there(ahead)) zc_grid_launch();
    }
    ZC_MEMBER void prepare(place &ahead) const {
        if (lane == 0) {
            for (int slot = 0; slot < SLOTS; slot++) zc_barrier_init(full(slot), 1);
            if (PARTS > 1 && warp == 0) zc_barrier_init(arrived(), 1);
            zc_barrier_fence();
            if (PARTS > 1 && warp == 0 && rank == 0) zc_barrier_expect(arrived(), (PARTS - 1) * tile_sums::SENT);
        }
        zc_sync_warp();
#ifdef Z_CONSTANT
        fill<true>(ahead);
#endif
    }

    // ---- x ----

    // Of the row that is lane / 4.
    ZC_MEMBER void load_rows(words &x) const {
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const int row = t * 8 + lane / 4;
            const Z_T *const of =
                (const Z_T *)p.x + (row < rows ? row0 + row : 0) * Z_SUMMED + from + lane % 4 * 2 * PAIRS;
#pragma unroll
            for (int piece = 0; piece < 2 * STEPS; piece++) {
                zc_vec<u32, PAIRS> v = {};
                if (row < rows && (WHOLE || piece * PIECE < left))
                    v = *(const zc_vec<u32, PAIRS> *)(of + piece * PIECE);
                order(v, x[t][piece]);
            }
        }
    }

    // ---- products ----

    struct block { // scales and zero points of the columns lane / 4 and 8 more
        f32 scale[2];
        decoder<Z_T> decode[2];
    };
    ZC_MEMBER void read_block(int slot, int k, block &b) const {
        const unsigned char *const at = memory + slot_of(slot);
        const int i = (OWN % Z_BLOCK == 0 ? k / Z_BLOCK : (from % Z_BLOCK + k) / Z_BLOCK) * GROUP + lane / 4;
#pragma unroll
        for (int half = 0; half < 2; half++) {
            b.scale[half] = zc_get(((const Z_S *)(at + SCALE))[i + half * 8]);
            b.decode[half].set(Z_ZERO ? (u32)((const zc_packed_zero_type *)(at + ZERO))[i + half * 8] : 0u);
        }
    }
    ZC_MEMBER static void add_run(const block &b, const sums &run, sums &sum) {
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int i = 0; i < 4; i += ROWS > 1 ? 1 : 2) sum[t][i] += run[t][i] * b.scale[i / 2];
    }
    // Both pieces of a step, in turn, so that neighbouring products do not wait for each other.
    ZC_MEMBER void multiply_step(int slot, int step, bool begins, const words &x, const block (&b)[2],
                                 sums (&run)[2]) const {
        u32 codes[4], w[2][2][PAIRS];
        zc_ldmatrix_x4(codes, memory + slot_of(slot) + step * STEP_BYTES + lane * ZC_PACKED_BYTES);
#pragma unroll
        for (int i = 0; i < 4; i++) b[i / 2].decode[i % 2](codes[i], w[i / 2][i % 2]);
#pragma unroll
        for (int i = 0; i < PAIRS; i += 2)
#pragma unroll
            for (int piece = 0; piece < 2; piece++) {
                const u32 a[4] = {w[piece][0][i], w[piece][1][i], w[piece][0][i + 1], w[piece][1][i + 1]};
#pragma unroll
                for (int t = 0; t < TILES; t++)
                    product(Z_T(), begins && i == 0, run[piece][t], a, x[t][2 * step + piece] + i);
            }
    }
    // The products of a run, or of both runs of a step.
    ZC_MEMBER void multiply_run(int slot, int k, const words &x, sums &sum) const {
        sums run[2];
        block b[2];
        read_block(slot, k, b[0]);
        if (RUN == PIECE)
            read_block(slot, k + PIECE, b[1]);
        else
            b[1] = b[0];
#pragma unroll
        for (int i = 0; i < STRIDE / STEP; i++) multiply_step(slot, k / STEP + i, i == 0, x, b, run);
        add_run(b[0], run[0], sum);
        add_run(b[1], run[1], sum);
    }
    // The sums of a group, over this warp's part.
    ZC_MEMBER void multiply(const words &x, zc_ring_slot<SLOTS> &at, place &ahead, sums &sum) const {
        zc_barrier_wait(full(at.stage), at.parity);
#pragma unroll
        for (int k = 0; k < OWN; k += STRIDE)
            if (WHOLE || k < left) multiply_run(at.stage, k, x, sum);
        zc_sync_warp(); // all have read
        if (is_there(ahead)) {
            load<false>(at.stage, ahead);
            next(ahead);
            launch_behind(ahead);
        }
        at.next();
    }
    ZC_MEMBER void keep(int buffer, int group, const sums &sum) const {
        f32 *const to = met.of_warp(buffer, warp);
#pragma unroll
        for (int i = 0; i < TILES * 4; i++) {
            const int row = i / 4 * 8 + lane % 4 * 2 + i % 2, col = group * GROUP + lane / 4 + i % 4 / 2 * 8;
            if (row < ROWS) to[row * COLS + col] = sum[i / 4][i % 4];
        }
    }

    // ---- results ----

    struct operands { // beside the sums: asked for before the products, used after them
        f32 bias[NEAR];
        zc_fused_cells<NEAR> cells[PASSES];
    };
    ZC_MEMBER bool is_mine(i64 tile, int pass) const { return tile_sums::near_row(pass) < rows && tile * COLS + tile_sums::near_col() < p.n; }
    ZC_MEMBER void ask(i64 tile, operands &o) const {
        const i64 col = tile * COLS + tile_sums::near_col();
        if (!is_mine(tile, 0)) return;
#pragma unroll
        for (int e = 0; e < NEAR; e++) o.bias[e] = zc_packed_bias(p, col + e);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++)
            if (is_mine(tile, pass)) o.cells[pass].load(p.fused, row0 + tile_sums::near_row(pass), col, p.n);
    }
    ZC_MEMBER void save(const operands &o, i64 col, int pass, const pair &sum) const {
        f32 y[NEAR];
#pragma unroll
        for (int e = 0; e < NEAR; e++) y[e] = sum.v[e] + o.bias[e];
        o.cells[pass].apply(y);
        zc_vec<Z_Y, NEAR> out;
#pragma unroll
        for (int e = 0; e < NEAR; e++) out.v[e] = zc_put<Z_Y>(y[e]);
        *(zc_vec<Z_Y, NEAR> *)((Z_Y *)p.y + (row0 + tile_sums::near_row(pass)) * p.n + col) = out;
    }
    ZC_MEMBER void finish(i64 tile, int buffer, const operands &o) const {
        if (PARTS > 1) zc_barrier_wait_cluster(arrived(), 0);
#pragma unroll
        for (int pass = 0; pass < PASSES; pass++) {
            if (!is_mine(tile, pass)) continue;
            save(o, tile * COLS + tile_sums::near_col(), pass, met.all(buffer, pass));
        }
    }

    ZC_MEMBER void run() const {
        words x;
        place ahead = {first_tile(), 0};
        zc_ring_slot<SLOTS> at = {0, 0};
        int buffer = 0;
        prepare(ahead);
        if (PARTS > 1) tile_sums::meet_cluster();
        zc_grid_wait();
#ifndef Z_CONSTANT
        fill<false>(ahead);
#endif
        launch_behind(ahead);
        load_rows(x);
        for (i64 tile = first_tile(); tile < tiles; tile += tile_step(), buffer ^= 1) {
            operands o;
            ask(tile, o);
            for (int group = 0; group < groups_of(tile); group++) {
                sums sum = {};
                multiply(x, at, ahead, sum);
                keep(buffer, group, sum);
            }
            zc_sync();
            if (PARTS > 1 && rank > 0)
                met.send(buffer);
            else
                finish(tile, buffer, o);
        }
        if (PARTS > 1) tile_sums::meet_cluster(); // what this block sent has been read when the first one has it
    }
};

ZC_KERNEL_BESIDE(0, Z_WARPS * 32, Z_SHARES)(const __grid_constant__ zc_packed_linear_params p) {
    ZC_SWIZZLED_SMEM(smem);
    gemv_packed<Z_ROWS, Z_COLS, Z_WARPS, Z_PARTS, Z_STEPS, Z_SLOTS>(p, smem).run();
}
