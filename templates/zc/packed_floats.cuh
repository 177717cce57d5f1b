// Up to 16 rows of x by a slot of codes: codes become f16 or bf16.
//
// An integer c becomes the f16 1024 + c by its bits alone, and loses 1024 and its zero point by one step, exactly. So sums of
// products are those of integers; they count the scale in f32.
//
// Along the summed axis a lane has eight neighbouring codes of 4 bits (four of 8) of a piece of 16 bytes, as one word, and
// gives them to the products in the order in which their bits come out: first and fifth, second and sixth ... x is read in
// that order, and stays in registers.
#pragma once
#include "zc/packed_slot.cuh"

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
#if Z_E2M1
// A code's sign, and its other bits where exponents end, are the number times a power of two, as small as that may be no
// normal one: this step may be given such numbers, products may not.
template <int DOWN> ZC_DEV u32 small_pair(u32 codes, int i) {
    const u32 at = codes << (12 - 4 * i);
    return at & 0x80008000u | (at & 0x70007000u) >> DOWN;
}
template <class T> struct decoder;
template <> struct decoder<f16> {
    ZC_MEMBER void set(u32) {}
    ZC_MEMBER void operator()(u32 codes, u32 *w) const {
#pragma unroll
        for (int i = 0; i < 4; i++) w[i] = zc_fma_f16x2(small_pair<3>(codes, i), twice(0x7400u), twice(0x8000u));
    }
};
template <> struct decoder<bf16> {
    ZC_MEMBER void set(u32) {}
    ZC_MEMBER void operator()(u32 codes, u32 *w) const {
#pragma unroll
        for (int i = 0; i < 4; i++) w[i] = zc_fma_bf16x2(small_pair<6>(codes, i), twice(0x7E80u), twice(0x8000u));
    }
};
#elif Z_BITS == 4
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

template <int ROWS, int STEPS> struct zc_packed_floats {
    typedef zc_packed_slot<STEPS> slot;
    static constexpr int PIECE = slot::PIECE, STEP = slot::STEP, RUN = slot::RUN, STRIDE = slot::STRIDE;
    static constexpr int TILES = (ROWS + 7) / 8;                        // of eight rows of x
    static constexpr int PRODUCTS = PIECE / 16, PAIRS = 2 * PRODUCTS;   // of a piece; of a lane's words of x
    static constexpr int BYTES = 0;                                     // of shared memory, a warp's
    static constexpr int RUNS = slot::RUNS, SHARES = slot::SHARES;
    typedef f32 sums[TILES][4];
    typedef sums runs[2 * SHARES];

    int lane, left; // left: of the part
    u32 x[TILES][2 * STEPS][PAIRS];

    template <bool EARLY> ZC_MEMBER void load_gain(const zc_packed_linear_params &, int) {}
    // A lane has the row that is lane / 4.
    ZC_MEMBER void load(const zc_packed_linear_params &p, int from, i64 row0, int rows, int warp, f32 *meet,
                        unsigned char *) {
        const int mine = lane % 4 * 2 * PAIRS;
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            const int row = t * 8 + lane / 4;
            const Z_T *const of = (const Z_T *)p.x + (row0 + (row < rows ? row : 0)) * Z_SUMMED + from + mine;
#pragma unroll
            for (int piece = 0; piece < 2 * STEPS; piece++) {
                zc_vec<u32, PAIRS> v = {};
                if (row < rows && piece * PIECE < left) v = *(const zc_vec<u32, PAIRS> *)(of + piece * PIECE);
                order(v, x[t][piece]);
            }
        }
        if (Z_NORM) normalise(p, (const Z_T *)p.gain + from + mine, warp, meet);
    }
    ZC_MEMBER static f32 half_of(u32 pair, int i) { return zc_get(((const Z_T *)&pair)[i]); }
    // meet: see zc_packed_share.
    ZC_MEMBER void normalise(const zc_packed_linear_params &p, const Z_T *gain, int warp, f32 *meet) {
#pragma unroll
        for (int t = 0; t < TILES; t++) {
            f32 squares = 0;
#pragma unroll
            for (int i = 0; i < 2 * STEPS * PAIRS * 2; i++) {
                const f32 v = half_of(x[t][i / 2 / PAIRS][i / 2 % PAIRS], i % 2);
                squares += v * v;
            }
            squares += zc_shfl_xor(squares, 1);
            squares += zc_shfl_xor(squares, 2);
            if (lane % 4 == 0) zc_packed_share(meet, t * 8 + lane / 4, warp, squares);
        }
        zc_sync();
        f32 counts[TILES];
#pragma unroll
        for (int t = 0; t < TILES; t++) counts[t] = zc_packed_row_scale(p, meet, t * 8 + lane / 4);
#pragma unroll
        for (int piece = 0; piece < 2 * STEPS; piece++) {
            zc_vec<u32, PAIRS> v = {};
            u32 by[PAIRS];
            if (piece * PIECE < left) v = *(const zc_vec<u32, PAIRS> *)(gain + piece * PIECE);
            order(v, by);
#pragma unroll
            for (int i = 0; i < TILES * PAIRS; i++) {
                u32 &pair = x[i / PAIRS][piece][i % PAIRS];
                const f32 count = counts[i / PAIRS];
                pair = zc_pack(Z_T(), half_of(pair, 0) * count * half_of(by[i % PAIRS], 0),
                               half_of(pair, 1) * count * half_of(by[i % PAIRS], 1));
            }
        }
    }

    typedef decoder<Z_T> decoders[2]; // of the columns lane / 4 and 8 more
    // Of this lane's word of the piece at k.
    ZC_MEMBER static void read_zeros(const slot &w, int k, decoders &decode) {
        const int own = SHARES > 1 ? k + w.lane % 4 * slot::WORD : k;
#pragma unroll
        for (int half = 0; half < 2; half++) decode[half].set((u32)w.zero(own, half));
    }
    ZC_MEMBER static void add_run(const slot &w, int k, const sums &run, sums &sum) {
        const f32 scale[2] = {w.scale(k, 0), w.scale(k, 1)};
#pragma unroll
        for (int t = 0; t < TILES; t++)
#pragma unroll
            for (int i = 0; i < 4; i++) sum[t][i] += run[t][i] * scale[i / 2];
    }
    // Both pieces of a step, in turn, so that neighbouring products do not wait for each other. Of x, places of other shares of
    // a piece are 0.
    ZC_MEMBER void multiply_step(const slot &w, int step, bool begins, const decoders (&decode)[2], runs &run) const {
        u32 codes[4], factors[2][2][PAIRS];
        w.codes(step, codes);
#pragma unroll
        for (int i = 0; i < 4; i++) decode[i / 2][i % 2](codes[i], factors[i / 2][i % 2]);
#pragma unroll
        for (int i = 0; i < PAIRS; i += 2)
#pragma unroll
            for (int part = 0; part < 2 * SHARES; part++) {
                const int piece = part / SHARES;
                const bool mine = slot::is_of(lane, part % SHARES);
                const u32 a[4] = {factors[piece][0][i], factors[piece][1][i], factors[piece][0][i + 1],
                                  factors[piece][1][i + 1]};
#pragma unroll
                for (int t = 0; t < TILES; t++) {
                    const u32 *const of = x[t][2 * step + piece] + i;
                    const u32 by[2] = {mine ? of[0] : 0u, mine ? of[1] : 0u};
                    product(Z_T(), begins && i == 0, run[part][t], a, by);
                }
            }
    }
    // The products of a run, or of all runs of a step.
    ZC_MEMBER void multiply_run(const slot &w, int k, sums &sum) const {
        runs run;
        decoders decode[2];
#pragma unroll
        for (int piece = 0; piece < 2; piece++) read_zeros(w, RUNS > 1 ? k + piece * PIECE : k, decode[piece]);
#pragma unroll
        for (int i = 0; i < STRIDE / STEP; i++) multiply_step(w, k / STEP + i, i == 0, decode, run);
#pragma unroll
        for (int i = 0; i < 2 * SHARES; i++) add_run(w, RUNS > 1 ? k + i * RUN : k, run[i], sum);
    }
    // The products of a slot. WHOLE: the part has all that it can have.
    template <bool WHOLE> ZC_MEMBER void multiply(const zc_packed_linear_params &, const slot &w, sums &sum) const {
#pragma unroll
        for (int k = 0; k < slot::OWN; k += STRIDE)
            if (WHOLE || k < left) multiply_run(w, k, sum);
    }
    // to: [rows][columns of a tile], at the slot's columns.
    ZC_MEMBER void keep(const sums &sum, f32 *to, int columns) const {
#pragma unroll
        for (int i = 0; i < TILES * 4; i++) {
            const int row = i / 4 * 8 + lane % 4 * 2 + i % 2;
            if (row < ROWS) to[row * columns + lane / 4 + i % 4 / 2 * 8] = sum[i / 4][i % 4];
        }
    }
};
