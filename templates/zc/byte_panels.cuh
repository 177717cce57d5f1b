// Panels of 64 rows by up to 128 bytes, in lines of 128 as tensor maps swizzle them: results of products of a warpgroup whose columns
// are dealt out (zc_sm90_deal), so that each of a row's four threads has HAND neighbours, in pieces of 16. What is added to them lies
// in their place. Of steps with two products, behind zc/gemm_quant_sm90.cuh.
#pragma once
#include "zc/gemm_quant_sm90.cuh"

constexpr int ZC_PANEL_LINE = 128, ZC_PANEL = 64 * ZC_PANEL_LINE;

#if defined(Z_B_CONSTANT) && defined(Z_SCALES_CONSTANT)
constexpr bool ZC_PANEL_CONSTANTS = true; // which are read before the kernel in front has ended
#else
constexpr bool ZC_PANEL_CONSTANTS = false;
#endif
#ifdef Z_FUSED_SUM
constexpr bool ZC_PANEL_ADDS = true;
#else
constexpr bool ZC_PANEL_ADDS = false;
#endif

// What two neighbours' sums are before they are bytes.
struct zc_panel_numbers {
    i32 y[2];
    ZC_MEMBER zc_panel_numbers(const zc_gq_shared &shared, const zc_gq_column *c, const i32 *sum)
        : y{zc_gq_number_of(sum[0], c[0], shared), zc_gq_number_of(sum[1], c[1], shared)} {}
};

// Which of the product's columns is column `in` of 4 * HAND.
template <int HAND> ZC_DEV int zc_panel_dealt(int in) { return in % HAND / 2 * 8 + in / HAND * 2 + in % 2; }
// Where the factors of a column lie: four of a thread's neighbours beside those of its row's other threads.
template <int HAND> ZC_DEV int zc_panel_place(int column) {
    return column / (4 * HAND) * (4 * HAND) + column % HAND / 4 * 16 + column / HAND % 4 * 4 + column % 4;
}
// Piece `piece` of a thread's results of both its rows, so many of its four words computed side by side as there are registers for;
// columns: factors from the product's first column on; finish(two numbers, what is added to, the first of its bytes): as of
// zc_gq_saturated.
template <int HAND, int TOGETHER, bool ADDS, bool UPPER, class F>
ZC_DEV void zc_panel_lay(const zc_gq_shared &shared, const zc_gq_columns &columns, int from, int thread, int piece,
                         const i32 (&sum)[2 * HAND], unsigned char *panel, F finish) {
    typedef zc_vec<u32, 4> bytes;
    const int line = thread / 32 * 16 + thread % 32 / 4, own = thread % 4;
    bytes *const to = (bytes *)(panel + line * ZC_PANEL_LINE + ((own * (HAND / 16) + piece) ^ line % 8) * 16);
    bytes other[2] = {}, out[2];
#pragma unroll
    for (int row = 0; row < 2; row++)
        if (ADDS) other[row] = to[row * 8 * ZC_PANEL_LINE / 16];
#pragma unroll
    for (int word = 0; word < 4; word++) {
        const int four = piece * 4 + word;
        if (word && word % TOGETHER == 0) zc_sync_warp();
        zc_gq_column c[4];
        columns.get(from + four * 16 + own * 4, c);
#pragma unroll
        for (int row = 0; row < 2; row++) {
            const i32 *const of = sum + four * 8 + row * 2;
            out[row].v[word] = zc_gq_word<UPPER>(finish(zc_panel_numbers(shared, c, of), other[row].v[word], 0),
                                                 finish(zc_panel_numbers(shared, c + 2, of + 4), other[row].v[word], 2));
        }
    }
#pragma unroll
    for (int row = 0; row < 2; row++) to[row * 8 * ZC_PANEL_LINE / 16] = out[row];
}
// The same with the fused work on them.
template <int HAND, int TOGETHER>
ZC_DEV void zc_panel_lay_finished(const zc_gq_shared &shared, const zc_gq_with &with, const zc_gq_columns &columns, int from,
                                  int thread, int piece, const i32 (&sum)[2 * HAND], unsigned char *panel) {
    zc_panel_lay<HAND, TOGETHER, ZC_PANEL_ADDS, ZC_GQ_UPPER>(
        shared, columns, from, thread, piece, sum, panel, [&](const zc_panel_numbers &n, u32 other, int first) {
            return zc_gq_finished(n.y, other, first, with, [](i32(&)[2]) {});
        });
}
