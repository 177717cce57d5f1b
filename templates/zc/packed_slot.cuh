// What gemv_packed_sm90 multiplies at once: 16 columns of a matrix of codes over a warp's part of the summed axis, with their
// scales and zero points, in a slot of shared memory.
#pragma once
#include "zc/packed_linear.cuh"

ZC_DEV constexpr int zc_common(int a, int b) { return b ? zc_common(b, a % b) : a; }

// What a row counts whose part's squares a warp has added up, where all warps of the block have all of it. meet: f32[rows][warps].
ZC_DEV void zc_packed_share(f32 *meet, int row, int warp, f32 squares) { meet[row * Z_WARPS + warp] = squares; }
ZC_DEV f32 zc_packed_row_scale(const zc_packed_linear_params &p, const f32 *meet, int row) {
    f32 sum = 0;
#pragma unroll
    for (int w = 0; w < Z_WARPS; w++) sum += meet[row * Z_WARPS + w];
    return zx_rsqrt(sum / Z_SUMMED + p.epsilon);
}

// Scales are finite.
template <class S> ZC_DEV f32 zc_packed_scale(S scale) { return zc_get(scale); }
ZC_DEV f32 zc_packed_scale(f8e8m0 scale) {
    return fmaxf(zc_float((u32)scale.v << 23), zc_float(0x00400000u)); // 2^-127 is no normal number
}

template <int STEPS> struct zc_packed_slot {
    static constexpr int PIECE = ZC_PACKED_PIECE, GROUP = ZC_PACKED_COLUMNS;
    static constexpr int STEP = 2 * PIECE, STEP_BYTES = 2 * ZC_PACKED_BYTES * GROUP;
    static constexpr int OWN = STEPS * STEP;                             // of the summed axis, a warp's
    static constexpr int RUN = zc_common(zc_common(OWN, Z_BLOCK), 128);  // codes that have one scale
    static constexpr int STRIDE = RUN > STEP ? RUN : STEP;
    static constexpr int RUNS = STRIDE / RUN;                            // of a stride
    static constexpr int SHARES = RUN < PIECE ? PIECE / RUN : 1;         // of a piece, in runs of their own
    static constexpr int WORD = 32 / Z_BITS;                             // codes
    static constexpr int SCALE = STEPS * STEP_BYTES, ZERO = SCALE + Z_SCALES * GROUP * (int)sizeof(Z_S);
    static constexpr int BYTES = ZERO + Z_ZERO * Z_SCALES * GROUP;

    const unsigned char *memory;
    int from; // where the warp's part begins
    int lane;

    // A lane's words of both pieces of a step, of the columns lane / 4 and 8 more each.
    ZC_MEMBER void codes(int step, u32 (&to)[4]) const {
        zc_ldmatrix_x4(to, memory + step * STEP_BYTES + lane * ZC_PACKED_BYTES);
    }
    // Has the lane's word of a piece codes of that share?
    ZC_MEMBER static bool is_of(int lane, int share) { return SHARES == 1 || lane % 4 * SHARES / 4 == share; }
    // One of these by itself.
    ZC_MEMBER u32 word(int piece, int half) const {
        return ((const u32 *)memory)[(piece * GROUP + lane / 4 + half * 8) * (ZC_PACKED_BYTES / 4) + lane % 4];
    }
    // Scale and zero point of place k of the part, of column lane / 4 or (half 1) 8 more. The lane's place comes first, so that
    // what is left is part of the instruction.
    template <class T> ZC_MEMBER T of_block(int begin, int k, int half) const {
        const int block = OWN % Z_BLOCK == 0 ? k / Z_BLOCK : (from % Z_BLOCK + k) / Z_BLOCK;
        return ((const T *)(memory + begin) + lane / 4)[block * GROUP + half * 8];
    }
    ZC_MEMBER f32 scale(int k, int half) const { return zc_packed_scale(of_block<Z_S>(SCALE, k, half)); }
    ZC_MEMBER i32 zero(int k, int half) const { return Z_ZERO ? (i32)of_block<zc_packed_zero_type>(ZERO, k, half) : 0; }
};
