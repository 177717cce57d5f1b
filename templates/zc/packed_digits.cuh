// One row of x by a slot of codes, as bytes: sums of products are those of integers, of which a product has twice as many as
// of f16, and codes need next to nothing to become bytes.
//
// A warp's part of the row counts in a power of two, so that its largest element is a number of 22 bits, and has three digits
// of 8 bits with signs: the three first of the eight columns of the products. So what is 2^-12 of the part's largest element
// is as exact as f16 has it, and nothing is off by more than 2^-23 of the largest one. Where an element is not finite, or the
// largest one so small that f32 has no such power of two (bf16 below 2^-105), the part is multiplied as it is.
//
// Along the summed axis a lane has eight neighbouring codes of 4 bits (four of 8) of a piece of 16 bytes, as one word, whose
// bytes are the first of each two neighbours or, shifted, the second. i4 is taken 16-fold: what has its bits above 4 others.
// e2m1 counts halves: twice its numbers are whole, from -12 to 12, and each four neighbours become bytes by a table.
#pragma once
#include "zc/packed_slot.cuh"

template <int STEPS> struct zc_packed_digits {
    typedef zc_packed_slot<STEPS> slot;
    static constexpr int PIECE = slot::PIECE, STEP = slot::STEP, OWN = slot::OWN, RUN = slot::RUN, STRIDE = slot::STRIDE;
    static constexpr int DIGITS = 3, VECTOR = 8, TURN = 32 * VECTOR; // elements that a warp makes digits of at once
    static constexpr int TURNS = (OWN + TURN - 1) / TURN, PITCH = TURN + 32;
    static constexpr int BYTES = DIGITS * PITCH; // of shared memory, a warp's
    static constexpr int WORDS = PIECE / 16;     // of a lane, of a piece
    static constexpr int TIMES = Z_E2M1 ? 2 : Z_BITS == 4 && Z_SIGNED ? 16 : 1; // what bytes are of numbers
    static constexpr bool IN_TURN = Z_BITS == 4 && !Z_E2M1; // are a word's bytes those of every second code?
    typedef f32 sums[4];
    typedef i32 integers[4];
    static constexpr int RUNS = slot::RUNS, SHARES = slot::SHARES;
    typedef integers runs[RUNS > 2 ? RUNS : 2];
    typedef zc_vec<u32, VECTOR / 2> vector;

    int lane, left; // left: of the part
    const Z_T *row;
    bool counted;                                    // or is the part multiplied as it is?
    f32 counts;                                      // what the row counts, where it is normalised
    vector gain[Z_NORM ? TURNS : 1];
    f32 unit[2];                                     // what this lane's two columns of the products count
    u32 small;                                       // of e2m1: see four
    u32 x[2 * STEPS][WORDS];                         // digits of a piece
    i32 taken[Z_ZERO ? OWN / RUN : 1][2];            // sums of the digits of a run: what a zero point counts

    // ---- x ----

    ZC_MEMBER static f32 element(const vector &v, int i) { return zc_get(((const Z_T *)v.v)[i]); }
    ZC_MEMBER static int place(int turn, int lane) { return turn * TURN + lane * VECTOR; }
    // Before the kernel in front has ended, as gain is a constant; nothing else does.
    template <bool EARLY> ZC_MEMBER void load_gain(const zc_packed_linear_params &p, int from) {
        if (!Z_NORM) return;
        const Z_T *const all = (const Z_T *)p.gain + from;
#pragma unroll
        for (int t = 0; t < TURNS; t++) {
            gain[t] = {};
            if (place(t, lane) >= left) continue;
            if (EARLY)
                zc_constant_load16(&gain[t], all + place(t, lane));
            else
                gain[t] = *(const vector *)(all + place(t, lane));
        }
    }
    ZC_MEMBER void load_row(f32 (&v)[TURNS][VECTOR]) const {
        vector x[TURNS] = {};
#pragma unroll
        for (int t = 0; t < TURNS; t++)
            if (place(t, lane) < left) x[t] = *(const vector *)(row + place(t, lane));
#pragma unroll
        for (int t = 0; t < TURNS; t++)
#pragma unroll
            for (int i = 0; i < VECTOR; i++) v[t][i] = element(x[t], i);
    }
    // meet: see zc_packed_share.
    ZC_MEMBER void normalise(const zc_packed_linear_params &p, int warp, f32 *meet, f32 (&v)[TURNS][VECTOR]) {
        f32 squares = 0;
#pragma unroll
        for (int t = 0; t < TURNS; t++)
#pragma unroll
            for (int i = 0; i < VECTOR; i++) squares += v[t][i] * v[t][i];
        for (int by = 16; by; by /= 2) squares += zc_shfl_xor(squares, by);
        if (lane == 0) zc_packed_share(meet, 0, warp, squares);
        zc_sync();
        counts = zc_packed_row_scale(p, meet, 0);
#pragma unroll
        for (int t = 0; t < TURNS; t++)
#pragma unroll
            for (int i = 0; i < VECTOR; i++) v[t][i] = zc_through<Z_T>(v[t][i] * counts * element(gain[t], i));
    }
    // The bits of the largest element's magnitude.
    ZC_MEMBER static u32 largest(const f32 (&v)[TURNS][VECTOR]) {
        u32 most = 0;
#pragma unroll
        for (int t = 0; t < TURNS; t++)
#pragma unroll
            for (int i = 0; i < VECTOR; i++) {
                const u32 bits = zc_bits(v[t][i]) & 0x7FFFFFFFu;
                most = bits > most ? bits : most;
            }
        for (int by = 16; by; by /= 2) {
            const u32 other = zc_shfl_xor(most, by);
            most = other > most ? other : most;
        }
        return most;
    }
    // Sets the power of two; what x is multiplied by.
    ZC_MEMBER f32 count(u32 most) {
        static constexpr u32 LEAST = 22;
        const u32 exponent = most >> 23 < LEAST ? LEAST : most >> 23;
        const f32 down = zc_float((exponent - 21) << 23) / TIMES;
        counted = exponent < 255 && (most >> 23 >= LEAST || most == 0);
        unit[0] = lane % 4 == 0 ? 65536 * down : lane % 4 == 1 ? down : 0.0f;
        unit[1] = lane % 4 == 0 ? 256 * down : 0.0f;
        if (!counted) unit[0] = 1, unit[1] = 0;
        return zc_float((275 - exponent) << 23);
    }
    // Digits of four numbers of 24 bits, of which 0x808080 has been added: to[digit], the highest first.
    ZC_MEMBER static void transpose(const u32 (&v)[4], u32 (&to)[DIGITS]) {
        const u32 ab = zc_permute(v[0], v[1], 0x5140), cd = zc_permute(v[2], v[3], 0x5140);
        to[2] = zc_permute(ab, cd, 0x5410) ^ 0x80808080u;
        to[1] = zc_permute(ab, cd, 0x7632) ^ 0x80808080u;
        to[0] = zc_permute(zc_permute(v[0], v[1], 0x0062), zc_permute(v[2], v[3], 0x0062), 0x5410) ^ 0x80808080u;
    }
    // The digits of eight neighbours, in the order of the codes' bytes.
    ZC_MEMBER void put(const f32 (&v)[VECTOR], f32 up, unsigned char *turning) const {
        u32 each[2][4], digits[2][DIGITS];
#pragma unroll
        for (int i = 0; i < VECTOR; i++) {
            // 1.5 * 2^23 and a number is the number in the bits
            const u32 number = zc_bits(v[i] * up + 12582912.0f) - 0x4B400000u + 0x808080u;
            IN_TURN ? each[i % 2][i / 2] = number : each[i / 4][i % 4] = number;
        }
        transpose(each[0], digits[0]);
        transpose(each[1], digits[1]);
#pragma unroll
        for (int d = 0; d < DIGITS; d++)
            *(zc_vec<u32, 2> *)(turning + d * PITCH + lane * VECTOR) = {{digits[0][d], digits[1][d]}};
    }
    // What this lane's column of the products has of the pieces of a turn.
    ZC_MEMBER void take(int turn, const unsigned char *turning) {
        static constexpr int PIECES = TURN / PIECE;
#pragma unroll
        for (int i = 0; i < PIECES; i++) {
            const int piece = turn * PIECES + i;
            if (piece >= 2 * STEPS) continue;
            zc_vec<u32, WORDS> w = {};
            if (lane / 4 < DIGITS)
                w = *(const zc_vec<u32, WORDS> *)(turning + lane / 4 * PITCH + (i * 4 + lane % 4) * WORDS * 4);
#pragma unroll
            for (int j = 0; j < WORDS; j++) x[piece][j] = w.v[j];
        }
    }
    // from: where the warp's part begins. turning: BYTES of shared memory.
    ZC_MEMBER void load(const zc_packed_linear_params &p, int from, i64 of_row, int, int warp, f32 *meet,
                        unsigned char *turning) {
        f32 v[TURNS][VECTOR];
        // A condition that always holds: else each use moves the constant to a register first.
        if (Z_E2M1) small = lane < 2 * p.n ? 0x03020100u : 0u;
        row = (const Z_T *)p.x + of_row * Z_SUMMED + from;
        load_row(v);
        if (Z_NORM) normalise(p, warp, meet, v);
        const f32 up = count(largest(v));
#pragma unroll
        for (int t = 0; t < TURNS; t++) {
            put(v[t], up, turning);
            zc_sync_warp();
            take(t, turning);
            zc_sync_warp();
        }
        if (!Z_ZERO) return;
#pragma unroll
        for (int k = 0; k < OWN; k += STRIDE) count_digits(k);
    }
    // The sums of digits are what codes of 1 make of them.
    ZC_MEMBER void count_digits(int k) {
        static constexpr u32 ONES = Z_BITS == 4 ? 0x11111111u : 0x01010101u;
        const u32 codes[4] = {ONES, ONES, ONES, ONES};
        runs run = {};
#pragma unroll
        for (int i = 0; i < STRIDE / STEP; i++) multiply_step(k / STEP + i, codes, run);
        join(run);
#pragma unroll
        for (int i = 0; i < RUNS; i++)
#pragma unroll
            for (int j = 0; j < 2; j++) taken[k / RUN + i][j] = run[i][j];
    }

    // ---- products ----

    ZC_MEMBER static void product(integers &d, u32 a0, u32 a1, u32 a2, u32 a3, u32 b0, u32 b1) {
        const u32 a[4] = {a0, a1, a2, a3}, b[2] = {b0, b1};
        Z_SIGNED ? zc_mma_m16n8k32_s8(d, a, b) : zc_mma_m16n8k32_u8s8(d, a, b);
    }
#if Z_E2M1
    // Of the four low codes: what has no sign, less what has one; a byte of one is 0 in the other, and lends nothing.
    ZC_MEMBER u32 four(u32 codes, u32 opposite) const {
        const u32 large = 0x0C080604u, most = 0x80808080u;
        return zc_permute_signs(small, large, codes) + most - zc_permute_signs(small, large, opposite) ^ most;
    }
    ZC_MEMBER u32 first(u32 codes) const { return four(codes, codes ^ 0x88888888u); }
    ZC_MEMBER u32 second(u32 codes) const { return four(codes >> 16, (codes ^ 0x88888888u) >> 16); }
#elif Z_BITS == 4
    ZC_MEMBER u32 first(u32 codes) const { return Z_SIGNED ? codes << 4 & 0xF0F0F0F0u : codes & 0x0F0F0F0Fu; }
    ZC_MEMBER u32 second(u32 codes) const { return Z_SIGNED ? codes & 0xF0F0F0F0u : codes >> 4 & 0x0F0F0F0Fu; }
#endif
#if Z_BITS == 4
    // Both pieces of a step, by themselves, and shares that have scales of their own: of x, the others' places are 0.
    ZC_MEMBER void multiply_step(int step, const u32 (&c)[4], runs &run) const {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const u32 *const by = x[2 * step + i], *const w = c + 2 * i;
            const u32 bytes[4] = {first(w[0]), first(w[1]), second(w[0]), second(w[1])};
#pragma unroll
            for (int share = 0; share < SHARES; share++) {
                const bool mine = slot::is_of(lane, share);
                product(run[i * SHARES + share], bytes[0], bytes[1], bytes[2], bytes[3], mine ? by[0] : 0, mine ? by[1] : 0);
            }
        }
    }
#else
    // Both pieces of a step: together, or by themselves where they have scales of their own.
    ZC_MEMBER void multiply_step(int step, const u32 (&c)[4], runs &run) const {
        const u32 first = x[2 * step][0], second = x[2 * step + 1][0];
        if (RUN > PIECE) return product(run[step % 2], c[0], c[1], c[2], c[3], first, second);
        product(run[0], c[0], c[1], 0, 0, first, second);
        product(run[1], 0, 0, c[2], c[3], first, second);
    }
#endif
    ZC_MEMBER static void join(runs &run) {
        if (RUNS > 1) return;
#pragma unroll
        for (int i = 0; i < 4; i++) run[0][i] += run[1][i];
    }
    // Where a run's sums begin: with what its zero points take off.
    ZC_MEMBER void begin(const slot &w, int k, integers &run) const {
#pragma unroll
        for (int i = 0; i < 4; i++) run[i] = Z_ZERO ? -w.zero(k, i / 2) * taken[k / RUN][i % 2] : 0;
    }
    ZC_MEMBER static void add(const slot &w, int k, const integers &run, sums &sum) {
#pragma unroll
        for (int i = 0; i < 4; i++) sum[i] += (f32)run[i] * w.scale(k, i / 2);
    }
    // The products of a run, or of all runs of a step.
    ZC_MEMBER void multiply_run(const slot &w, int k, sums &sum) const {
        runs run = {};
#pragma unroll
        for (int i = 0; i < RUNS; i++) begin(w, k + i * RUN, run[i]);
#pragma unroll
        for (int i = 0; i < STRIDE / STEP; i++) {
            u32 codes[4];
            w.codes(k / STEP + i, codes);
            multiply_step(k / STEP + i, codes, run);
        }
        join(run);
#pragma unroll
        for (int i = 0; i < RUNS; i++) add(w, k + i * RUN, run[i], sum);
    }
    // The products of a slot.
    template <bool WHOLE> ZC_MEMBER void multiply(const zc_packed_linear_params &p, const slot &w, sums &sum) const {
        if (!counted) return multiply_plainly(p, w, sum);
#pragma unroll
        for (int k = 0; k < OWN; k += STRIDE) {
            if (Z_E2M1 && k) zc_sync_warp(); // or the compiler makes bytes of all codes before the first products
            if (WHOLE || k < left) multiply_run(w, k, sum);
        }
    }
    ZC_MEMBER f32 plain_element(const zc_packed_linear_params &p, int from, int k) const {
        const f32 x = zc_get(row[k]);
        return Z_NORM ? zc_through<Z_T>(x * counts * zc_get(((const Z_T *)p.gain)[from + k])) : x;
    }
    // The same of a part that is not counted.
    ZC_MEMBER void multiply_plainly(const zc_packed_linear_params &p, const slot &w, sums &sum) const {
        static constexpr int OF_WORD = slot::WORD;
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll 1
            for (int i = 0; i < left / PIECE * OF_WORD; i++) {
                const int k = i / OF_WORD * PIECE + lane % 4 * OF_WORD, place = i % OF_WORD;
                const u32 code = w.word(k / PIECE, half) >> place * Z_BITS & (1u << Z_BITS) - 1u;
                const f32 factor = (zc_packed_number(code) - (f32)w.zero(k, half)) * w.scale(k, half);
                sum[2 * half] += plain_element(p, w.from, k + place) * factor;
            }
    }
    // to: the slot's columns of the only row.
    ZC_MEMBER void keep(const sums &sum, f32 *to, int) const {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            f32 all = sum[2 * half] * unit[0] + sum[2 * half + 1] * unit[1];
            all += zc_shfl_xor(all, 1);
            all += zc_shfl_xor(all, 2);
            if (lane % 4 == 0) to[lane / 4 + 8 * half] = all;
        }
    }
};
