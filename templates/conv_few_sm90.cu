// Convolutions of few pixels on Hopper, f16 or bf16, channels last (zc/conv_few.cuh).
//
// spec.h: see zc/gemm.cuh and zc/conv_few.cuh.
#include "zc/gemm.cuh"
#include "zc/conv_few.cuh"

struct zc_conv_few_floats : zc_conv_few<0> {
    using zc_conv_few::zc_conv_few;

    // What is added to the sums of a place is asked for before the products.
    struct piece {
        place at;
        zc_gemm_addend<8> addend;
        zc_fused_cells<8> cells;
    };
    ZC_MEMBER void ask(const zc_gemm_item &item, piece (&all)[PIECES]) const {
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            piece &x = all[k];
            const int last = (int)p.g.m - 1, end = (int)p.g.n - 8;
            x.at = place_of(k);
            x.addend.load(item, x.at.c < end ? x.at.c : end);
            x.cells.load(p.g.fused, x.at.r < last ? x.at.r : last, x.at.c < end ? x.at.c : end, p.g.n);
        }
    }
    ZC_MEMBER void finish(const zc_gemm_item &item, const piece &x) const {
        if (!finishes(x.at)) return;
        f32 sum[8], v[8];
        add_parts(x.at, sum);
        zc_vec<u32, 4> out;
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = zc_epilogue(x.addend.value(p.g, item, x.at.r, x.at.c, i, sum[i]));
        x.cells.apply(v);
#pragma unroll
        for (int i = 0; i < 8; i += 2) out.v[i / 2] = zc_pack(Z_T(), v[i], v[i + 1]);
        *(zc_vec<u32, 4> *)(item.y + (i64)x.at.r * p.g.y_ld + x.at.c) = out;
    }
    template <class WAIT> ZC_MEMBER void run(WAIT wait) const {
        f32 sum[Z_PIXELS / 2];
        piece pieces[PIECES];
        const zc_gemm_item item = zc_gemm_batch(p.g, 0);
        begin(wait);
        ask(item, pieces);
        multiply(sum, [](int) {});
        put_sums(sum);
        exchange();
#pragma unroll
        for (int k = 0; k < PIECES; k++) finish(item, pieces[k]);
        end();
    }
};

ZC_KERNEL_OF(0, Z_WARPGROUPS * 128)(const __grid_constant__ zc_gemm_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    zc_conv_few_floats(p, smem).run([&] { zc_wait(); });
}
