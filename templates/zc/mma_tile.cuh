// Operand tiles of tensor core products in shared memory: 64 bytes of the summed axis (DEPTH) by LINES rows of A or
// columns of B, as pieces of 16 bytes, swizzled so that neither copies nor ldmatrix meet bank conflicts.
//
// "Along K": the summed axis is contiguous; a line has 4 pieces. "Across K" (not for bytes): lines are contiguous; a
// piece holds 8 of them at one of 32 steps along K, or 4 at one of 16 (f32).
#pragma once
#include "zc/device.cuh"

enum { ZC_TILE_BYTES_DEPTH = 64, ZC_TILE_STAGES = 3 };

ZC_DEV int zc_piece_along(int line, int piece) { return (line * 4 + (piece ^ (line >> 1 & 3))) * 16; }
template <class T, int LINES> ZC_DEV int zc_piece_across(int step, int piece) {
    constexpr int PIECES = LINES * (int)sizeof(T) / 16;
    return (step * PIECES + (piece ^ (sizeof(T) == 4 ? (step & 3) * 2 : step & 7))) * 16;
}

// Copies the tile at (line0, k0) of a matrix of `lines` by `depth`, zeros beyond it. aligned: whole pieces in the
// background, the caller commits and waits. A piece that the matrix ends in is read by elements: a copy of part of it
// reads all 16 bytes.
template <class T, int LINES, bool ALONG_K, int THREADS>
ZC_DEV void zc_tile_stage(unsigned char *tile, const T *from, i64 ld, i64 line0, i64 lines, i64 k0, i64 depth,
                          bool aligned) {
    constexpr int PER = 16 / sizeof(T);
#pragma unroll
    for (int i = 0; i < LINES * 4 / THREADS; i++) {
        const int at = threadIdx.x + i * THREADS;
        const int major = ALONG_K ? at / 4 : at / (LINES / PER), piece = ALONG_K ? at % 4 : at % (LINES / PER);
        const i64 m = (ALONG_K ? line0 : k0) + major, c = (ALONG_K ? k0 : line0) + piece * PER;
        const i64 left = m < (ALONG_K ? lines : depth) ? (ALONG_K ? depth : lines) - c : 0;
        const int valid = left < 0 ? 0 : left < PER ? (int)left : PER;
        const T *source = valid ? from + m * ld + c : from;
        unsigned char *to = tile + (ALONG_K ? zc_piece_along(major, piece) : zc_piece_across<T, LINES>(major, piece));
        if (aligned && (valid == PER || valid == 0)) {
            zc_cp_async16(to, source, valid != 0);
        } else {
            zc_vec<T, PER> x;
#pragma unroll
            for (int v = 0; v < PER; v++) x.v[v] = v < valid ? source[v] : T{};
            *(zc_vec<T, PER> *)to = x;
        }
    }
}

// One f32 of a tile across K.
template <int LINES> ZC_DEV u32 zc_tile_word(const unsigned char *tile, int line, int k) {
    return *(const u32 *)(tile + zc_piece_across<f32, LINES>(k, line / 4) + line % 4 * 4);
}

// Fragments for step `step` of the tile (32 bytes along K each): of A 16 lines from `line` on, of B two times 8.
template <class T, int LINES, bool ALONG_K> ZC_DEV void zc_tile_a(const unsigned char *tile, int line, int step, u32 *r) {
    const int lane = threadIdx.x % 32;
    if constexpr (ALONG_K) {
        zc_ldmatrix_x4(r, tile + zc_piece_along(line + lane % 16, step * 2 + lane / 16));
    } else if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = zc_tile_word<LINES>(tile, line + i % 2 * 8 + lane / 4, step * 8 + i / 2 * 4 + lane % 4);
    } else {
        zc_ldmatrix_x4_trans(r, tile + zc_piece_across<T, LINES>(step * 16 + lane / 16 * 8 + lane % 8,
                                                                  line / 8 + lane / 8 % 2));
    }
}
template <class T, int LINES, bool ALONG_K> ZC_DEV void zc_tile_b(const unsigned char *tile, int line, int step, u32 *r) {
    const int lane = threadIdx.x % 32;
    if constexpr (ALONG_K) {
        zc_ldmatrix_x4(r, tile + zc_piece_along(line + lane / 16 * 8 + lane % 8, step * 2 + lane / 8 % 2));
    } else if constexpr (sizeof(T) == 4) {
#pragma unroll
        for (int i = 0; i < 4; i++)
            r[i] = zc_tile_word<LINES>(tile, line + i / 2 * 8 + lane / 4, step * 8 + i % 2 * 4 + lane % 4);
    } else {
        zc_ldmatrix_x4_trans(r, tile + zc_piece_across<T, LINES>(step * 16 + lane / 8 % 2 * 8 + lane % 8,
                                                                  line / 8 + lane / 16));
    }
}
