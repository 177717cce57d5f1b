// QLinearConv and ConvInteger of few pixels on Hopper, 8-bit integers, channels last (zc/conv_few.cuh). Of each block's part of the
// sums that is taken away which zero points are of it, by sums of its own lines, before the blocks exchange them.
//
// spec.h: see zc/gemm_quant_sm90.cuh and zc/conv_few.cuh.
#include "zc/gemm_quant.cuh"
#ifdef Z_FUSED_SUM // of eight neighbours, which a thread has
#define ZC_GQ_SUM
#endif
#include "zc/gemm_quant_sm90.cuh"
#include "zc/conv_few.cuh"

typedef zc_gq_lines<Z_PIXELS, Z_WARPGROUPS * 64> zc_few_lines;

struct zc_conv_few_bytes : zc_conv_few<zc_few_lines::BYTES> {
    const zc_gemm_quant_params &q;
    const zc_gq_item item;
    const zc_few_lines lines;

    ZC_MEMBER zc_conv_few_bytes(const zc_gemm_quant_sm90_params &p, unsigned char *memory)
        : zc_conv_few(p.product, memory), q(p.quant), item(zc_gq_batch(q, 0)), lines(memory + OWN_MEMORY) {}

    // ---- sums of lines, and columns: each thread has a channel's, or a pixel's line ----

    ZC_MEMBER bool has_channel() const { return threadIdx.x < CHANNELS; }
    ZC_MEMBER int line() const { return threadIdx.x % CHANNELS; }
    ZC_MEMBER void clear_sums() const {
        if (has_channel())
            for (int corner = 0; corner < ZC_GQ_CORNERS; corner++) lines.sums[corner * CHANNELS + line()] = 0;
        else if (line() < Z_PIXELS)
            lines.rows[line()] = 0;
    }
    ZC_MEMBER void add_line(int i) const {
        if (Z_ZERO_A && has_channel()) {
            const int corner = ZC_GQ_EDGES ? zc_gq_corner((first + i) / ZC_GQ_TAP_STEPS) : 0;
            u32 *const sum = lines.sums + corner * CHANNELS + line();
            *sum = zc_gq_add_line(memory + i * WEIGHTS, line(), *sum, zc_traits<Z_B>::is_signed);
        } else if (Z_ZERO_B && !has_channel() && line() < Z_PIXELS) {
            u32 *const sum = lines.rows + line();
            *sum = zc_gq_add_line(memory + Z_STEPS * WEIGHTS + i * PATCHES, line(), *sum, zc_traits<Z_A>::is_signed);
        }
    }
    ZC_MEMBER zc_gq_own ask_column() const {
        const i64 at = col + line();
        return zc_gq_ask(q, item, at < q.n ? at : q.n - 1);
    }
    // What does not go with a part is the first one's.
    ZC_MEMBER u32 depth(i64 k) const { return rank ? 0u : (u32)k; }
    // zero_a: asked for before the products.
    ZC_MEMBER void drop_zeros(u32 zero_a) const {
        constexpr int ACROSS = CHANNELS / 8;
        zc_gq_row r = {};
        r.zero = zero_a;
        for (int i = threadIdx.x; i < Z_PIXELS * ACROSS; i += THREADS) {
            const int pixel = i / ACROSS, channel = i % ACROSS * 8, at = row + pixel;
            i32 *const sum = (i32 *)memory + pixel * PITCH + channel;
            if (Z_ZERO_B) r.sum = lines.rows[pixel];
            if (ZC_GQ_EDGES) zc_few_lines::put_edges(p.window, at < q.m ? at : (int)q.m - 1, r);
#pragma unroll
            for (int e = 0; e < 8; e++)
                sum[e] = zc_few_lines::less_zeros(sum[e], r, lines.zeros[channel + e], depth(p.g.k), lines.sums + channel + e);
        }
    }

    // ---- results ----

    // Operands of the fused work are asked for before the products.
    struct piece {
        place at;
        zc_fused_cells<8> cells;
    };
    ZC_MEMBER void ask(piece (&all)[PIECES]) const {
        const int last = (int)q.m - 1, end = (int)q.n - 8;
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            piece &x = all[k];
            x.at = place_of(k);
            x.cells.load(p.g.fused, x.at.r < last ? x.at.r : last, x.at.c < end ? x.at.c : end, q.n);
        }
    }
    static ZC_MEMBER u16 other_of(const piece &x, int e) {
#ifdef ZC_GQ_SUM
        return zc_pack(zc_gq_other(), x.cells.run0.get(e), x.cells.run0.get(e + 1));
#else
        return 0;
#endif
    }
    ZC_MEMBER void finish(const piece &x, const zc_gq_shared &shared, const zc_gq_with &with) const {
        constexpr int TOGETHER = sizeof(zc_gq_two) > 4 ? 2 : 4; // pairs that are stored at once
        if (!finishes(x.at)) return;
        i32 sum[8];
        add_parts(x.at, sum);
        Z_STORED *const to = (Z_STORED *)q.y + (i64)x.at.r * q.n + x.at.c;
#pragma unroll
        for (int i = 0; i < 8; i += 2 * TOGETHER) {
            zc_vec<zc_gq_two, TOGETHER> out;
#pragma unroll
            for (int j = 0; j < TOGETHER; j++) {
                const int e = i + j * 2;
                zc_gq_column c[2];
                lines.columns.get(x.at.channel + e, c);
                const i32 y[2] = {zc_gq_number_of(sum[e], c[0], shared), zc_gq_number_of(sum[e + 1], c[1], shared)};
                out.v[j] = zc_gq_two_of<Z_STORED, ZC_GQ_UPPER>(zc_gq_finished(
                    y, other_of(x, e), 0, with, [&](i32(&all)[2]) { x.cells.template apply<2>(all, all, e); }));
            }
            *(zc_vec<zc_gq_two, TOGETHER> *)(to + i) = out;
        }
    }
    template <class WAIT> ZC_MEMBER void run(WAIT wait) const {
        i32 sum[Z_PIXELS / 2];
        piece pieces[PIECES];
        zc_gq_shared shared;
        zc_gq_made made;
        const auto make = [&] {
            shared = zc_gq_share(q);
            made = zc_gq_make(shared, ask_column());
        };
        begin([&] {
            if (ZC_SCALES_CONSTANT) make();
            wait();
        });
        if (!ZC_SCALES_CONSTANT) make();
        if (Z_ZERO_A || Z_ZERO_B) clear_sums();
        ask(pieces);
        const u32 zero_a = (u32)zc_gq_zero_a(q, item, 0);
        multiply(sum, [&](int i) { add_line(i); });
        if (has_channel()) lines.lay(line(), made, depth(q.k));
        put_sums(sum);
        if (Z_ZERO_A || Z_ZERO_B) {
            zc_sync();
            drop_zeros(zero_a);
        }
        exchange();
        const zc_gq_with with = zc_gq_with_of(p.g.fused);
#pragma unroll
        for (int k = 0; k < PIECES; k++) finish(pieces[k], shared, with);
        end();
    }
};

ZC_KERNEL_OF(0, Z_WARPGROUPS * 128)(const __grid_constant__ zc_gemm_quant_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    zc_conv_few_bytes(p, smem).run([&] { zc_wait(); });
}
