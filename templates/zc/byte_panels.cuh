// Steps with two products of blocks of 64 channels by 64 pixels, and panels of 64 rows by 128 bytes, in lines of 128 as tensor maps
// swizzle them, by which their results leave. What is added to them lies in their place.
//
// spec.h: see zc/gemm_quant_sm90.cuh; Z_WGMMA: as in zc/gemm_sm90.cuh.
#pragma once
#include "zc/hopper.cuh"
#include "zc/turned_bytes.cuh"

ZC_WGMMA_ALONG(zc_product, 64, ZC_WGMMA_TURNED(Z_WGMMA))
// The same, whose first step must be known when compiling: it does not even read the sums.
ZC_DEV void zc_panel_product(i32 (&sum)[32], u64 a, u64 b, bool first) {
    if (first)
        zc_product(sum, a, b);
    else
        zc_product(sum, a, b, true);
}

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

// A block of 64 columns of a panel, the first or the second. make: as of zc_turned_lay.
template <bool ADDS, bool UPPER, class MAKE>
ZC_DEV void zc_panel_lay(int block, int thread, unsigned char *panel, MAKE make) {
    const int piece = block * 4 + thread / 32;
    const auto place_of = [&](int row) { return row * ZC_PANEL_LINE + (piece ^ row % 8) * 16; };
    const u32 to = zc_smem_address(panel);
    zc_turned_lay<64, ADDS, UPPER>([&](int row) { return panel + place_of(row); }, [&](int row) { return to + place_of(row); }, make);
}
// The same with the fused work on them; first: the block's first column of those whose factors are `columns`.
ZC_DEV void zc_panel_lay_finished(const zc_gq_shared &shared, const zc_gq_with &with, const zc_gq_columns &columns, int first, int block,
                                  int thread, const i32 (&sum)[32], unsigned char *panel) {
    zc_gq_column c[2];
    columns.get(first + zc_turned_column(thread), c);
    zc_panel_lay<ZC_PANEL_ADDS, ZC_GQ_UPPER>(block, thread, panel, [&](int place, int second, u32 other, int at) {
        return zc_gq_finished(zc_turned_numbers(shared, c, sum + place * 4 + second).y, other, at, with, [](i32(&)[2]) {});
    });
}
