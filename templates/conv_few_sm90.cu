// Convolutions of few pixels on Hopper, f16 or bf16, channels last: output channels are the product's rows and pixels its
// columns, and the blocks of a cluster share the summed axis. A block holds all operands of its part at once, and copies
// its weights before the kernel in front has ended. Each block then finishes some pixels, whose sums the others send.
//
// spec.h: see zc/gemm.cuh and zc/sm90_rows.cuh; Z_WGMMA (F16, BF16), Z_B_CONSTANT (the weights are of the plan), Z_PIXELS
// (of a tile), Z_WARPGROUPS (64 channels each), Z_PARTS (of the summed axis: blocks of a cluster), Z_STEPS (of one part at
// most).
#include "zc/gemm.cuh"
#include "zc/sm90_rows.cuh"

ZC_WGMMA(zc_product, Z_PIXELS, Z_WGMMA, 0)

struct zc_conv_few {
    static constexpr int LINE = 128, CHANNELS = Z_WARPGROUPS * 64, THREADS = Z_WARPGROUPS * 128;
    static constexpr int WEIGHTS = CHANNELS * LINE, PATCHES = Z_PIXELS * LINE; // bytes of a step
    static constexpr int PITCH = CHANNELS + 4;                                  // of sums [pixel][channel]
    static constexpr int OWN = (Z_PIXELS + Z_PARTS - 1) / Z_PARTS;              // pixels that a block finishes, at most
    static constexpr int OPERANDS = Z_STEPS * (WEIGHTS + PATCHES), SUMS = Z_PIXELS * PITCH * 4;
    static constexpr int SENT = OPERANDS > SUMS ? OPERANDS : (SUMS + 127) / 128 * 128; // sums of the other blocks
    static constexpr int BARRIERS = SENT + (Z_PARTS - 1) * OWN * PITCH * 4;

    const zc_gemm_sm90_params &p;
    unsigned char *memory; // operands, and then sums in their place; sums of the other blocks; barriers
    u32 smem;
    int rank, row, col, first, steps; // of the tile; of the part

    ZC_MEMBER zc_conv_few(const zc_gemm_sm90_params &p, unsigned char *memory)
        : p(p), memory(memory), smem(zc_smem_address(memory)) {
        const int tile = blockIdx.x / Z_PARTS, line = (int)zc_divide((u32)tile, p.order.by_group);
        const int all = zc_sm90_rows::steps(p);
        rank = Z_PARTS > 1 ? (int)zc_cluster_rank() : 0;
        row = line * Z_PIXELS;
        col = (tile - line * p.order.across) * CHANNELS;
        first = rank * all / Z_PARTS;
        steps = (rank + 1) * all / Z_PARTS - first;
    }
    ZC_MEMBER u32 weights_of(int i) const { return smem + i * WEIGHTS; }
    ZC_MEMBER u32 patches_of(int i) const { return smem + Z_STEPS * WEIGHTS + i * PATCHES; }
    ZC_MEMBER u32 full(int i) const { return smem + BARRIERS + i * 8; }
    ZC_MEMBER u32 received() const { return full(Z_STEPS); }
    static ZC_MEMBER int pixels_of(int rank) {
        const int left = Z_PIXELS - rank * OWN;
        return left < 0 ? 0 : left < OWN ? left : OWN;
    }

    template <bool EARLY> ZC_MEMBER void load_weights() const {
        for (int i = 0; i < steps; i++) {
            const int step = first + i;
            if (EARLY) zc_constant_load();
            zc_tensor_load(weights_of(i), zc_sm90_rows::b(p, step), full(i), zc_sm90_rows::depth(p, step), col,
                           zc_sm90_rows::b_item(p, 0, step));
        }
    }
    template <class WAIT> ZC_MEMBER void begin(WAIT wait) const {
        if (threadIdx.x == 0) {
            for (int i = 0; i <= Z_STEPS; i++) zc_barrier_init(full(i), 1);
            zc_barrier_fence();
            for (int i = 0; i < steps; i++) zc_barrier_expect(full(i), WEIGHTS + PATCHES);
            if (Z_PARTS > 1 && pixels_of(rank)) zc_barrier_expect(received(), (Z_PARTS - 1) * pixels_of(rank) * PITCH * 4);
#ifdef Z_B_CONSTANT
            load_weights<true>();
#endif
            zc_tensor_prefetch(&p.a);
        }
        meet();
        wait();
        zc_grid_launch();
        if (threadIdx.x == 0) {
            const zc_sm90_rows rows(p, row, col, 0);
            for (int i = 0; i < steps; i++) rows.load(patches_of(i), full(i), first + i);
#ifndef Z_B_CONSTANT
            load_weights<false>();
#endif
        }
    }
    ZC_MEMBER void meet() const {
        if (Z_PARTS > 1) {
            zc_sync_warp();
            zc_cluster_arrive_relaxed();
            zc_cluster_wait();
        } else {
            zc_sync();
        }
    }
    ZC_MEMBER void multiply(f32 (&sum)[Z_PIXELS / 2]) const {
        const int group = zc_warpgroup();
        for (int i = 0; i < steps; i++) {
            const u32 a = weights_of(i) + group * 64 * LINE, b = patches_of(i);
            zc_barrier_wait(full(i), 0);
            zc_wgmma_fence();
#pragma unroll
            for (int part = 0; part < 4; part++)
                zc_product(sum, zc_wgmma_along(a, part * 32), zc_wgmma_along(b, part * 32), i || part);
            zc_wgmma_commit();
        }
        zc_wgmma_wait<0>();
        zc_sync(); // all operands have been read: sums come in their place
    }
    ZC_MEMBER void put_sums(const f32 (&sum)[Z_PIXELS / 2]) const {
        const int lane = threadIdx.x % 32;
        f32 *const to = (f32 *)memory + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < Z_PIXELS / 8; j++) {
            f32 *const at = to + (j * 8 + lane % 4 * 2) * PITCH;
            at[0] = sum[j * 4];
            at[PITCH] = sum[j * 4 + 1];
            at[8] = sum[j * 4 + 2];
            at[PITCH + 8] = sum[j * 4 + 3];
        }
    }
    // Each block's pixels to it, into the place of this block's rank, its own left out.
    ZC_MEMBER void exchange() const {
        if (Z_PARTS > 1) zc_async_fence();
        zc_sync();
        if (Z_PARTS == 1) return;
        const int to = threadIdx.x;
        if (to < Z_PARTS && to != rank && pixels_of(to)) {
            const int place = rank < to ? rank : rank - 1;
            zc_bulk_send(zc_cluster_address(smem + SENT + place * pixels_of(to) * PITCH * 4, to),
                         smem + to * OWN * PITCH * 4, pixels_of(to) * PITCH * 4, zc_cluster_address(received(), to));
        }
        if (pixels_of(rank)) zc_barrier_wait_cluster(received(), 0);
    }
    // Eight neighbouring channels of a pixel: what is added to their sum is asked for before the products.
    struct piece {
        int r, c, pixel, channel;
        zc_gemm_addend<8> addend;
        zc_fused_cells<8> cells;
    };
    static constexpr int PIECES = (OWN * (CHANNELS / 8) + THREADS - 1) / THREADS; // of a thread
    ZC_MEMBER void ask(const zc_gemm_item &item, piece (&all)[PIECES]) const {
#pragma unroll
        for (int k = 0; k < PIECES; k++) {
            piece &x = all[k];
            const int i = threadIdx.x + k * THREADS, last = (int)p.g.m - 1, end = (int)p.g.n - 8;
            x.pixel = i / (CHANNELS / 8);
            x.channel = i % (CHANNELS / 8) * 8;
            x.r = row + rank * OWN + x.pixel;
            x.c = col + x.channel;
            x.addend.load(item, x.c < end ? x.c : end);
            x.cells.load(p.g.fused, x.r < last ? x.r : last, x.c < end ? x.c : end, p.g.n);
        }
    }
    ZC_MEMBER void finish(const zc_gemm_item &item, const piece &x) const {
        const int mine = pixels_of(rank);
        if (x.pixel >= mine || x.r >= (int)p.g.m || x.c >= (int)p.g.n) return;
        f32 sum[8], v[8];
        const f32 *const own = (const f32 *)memory + (rank * OWN + x.pixel) * PITCH + x.channel;
#pragma unroll
        for (int i = 0; i < 8; i++) sum[i] = own[i];
#pragma unroll
        for (int s = 0; s < Z_PARTS - 1; s++) {
            const f32 *const other = (const f32 *)(memory + SENT) + (s * mine + x.pixel) * PITCH + x.channel;
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] += other[i];
        }
        zc_vec<u32, 4> out;
#pragma unroll
        for (int i = 0; i < 8; i++) v[i] = zc_epilogue(x.addend.value(p.g, item, x.r, x.c, i, sum[i]));
        x.cells.apply(v);
#pragma unroll
        for (int i = 0; i < 8; i += 2) out.v[i / 2] = zc_pack(Z_T(), v[i], v[i + 1]);
        *(zc_vec<u32, 4> *)(item.y + (i64)x.r * p.g.y_ld + x.c) = out;
    }
    // wait: for the kernel in front.
    template <class WAIT> ZC_MEMBER void run(WAIT wait) const {
        f32 sum[Z_PIXELS / 2];
        piece pieces[PIECES];
        const zc_gemm_item item = zc_gemm_batch(p.g, 0);
        begin(wait);
        ask(item, pieces);
        multiply(sum);
        put_sums(sum);
        exchange();
#pragma unroll
        for (int k = 0; k < PIECES; k++) finish(item, pieces[k]);
        if (Z_PARTS > 1) meet(); // the others have what this block sent
    }
};

ZC_KERNEL_OF(0, Z_WARPGROUPS * 128)(const __grid_constant__ zc_gemm_sm90_params p) {
    ZC_SWIZZLED_SMEM(smem);
    zc_conv_few(p, smem).run([&] { zc_wait(); });
}
