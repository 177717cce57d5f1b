// Convolutions of few pixels on Hopper, channels last: output channels are the product's rows and pixels its columns, and the
// blocks of a cluster share the summed axis. A block holds all operands of its part at once, and copies its weights before the
// kernel in front has ended. Each block then finishes some pixels, whose sums the others send.
//
// spec.h: see zc/sm90_rows.cuh; Z_WGMMA (F16, BF16, or with Z_ALONG, sums then being integers, S8, S8U8, U8S8, U8: of weights and of
// pixels), Z_B_CONSTANT (the weights are of the plan), Z_PIXELS (of a tile), Z_WARPGROUPS (64 channels each), Z_PARTS (of the
// summed axis: blocks of a cluster), Z_STEPS (of one part at most).
#pragma once
#include "zc/cluster.cuh"
#include "zc/index.cuh"
#include "zc/sm90_rows.cuh"

#ifdef Z_ALONG
ZC_WGMMA_ALONG(zc_product, Z_PIXELS, Z_WGMMA)
typedef i32 zc_few_sum;
#else
ZC_WGMMA(zc_product, Z_PIXELS, Z_WGMMA, 0)
typedef f32 zc_few_sum;
#endif

// OTHER: bytes of shared memory that the template has for itself, from OWN_MEMORY on.
template <int OTHER> struct zc_conv_few {
    static constexpr int LINE = 128, CHANNELS = Z_WARPGROUPS * 64, THREADS = Z_WARPGROUPS * 128;
    static constexpr int WEIGHTS = CHANNELS * LINE, PATCHES = Z_PIXELS * LINE; // bytes of a step
    static constexpr int PITCH = CHANNELS + 4;                                  // of sums [pixel][channel]
    static constexpr int OWN = (Z_PIXELS + Z_PARTS - 1) / Z_PARTS;              // pixels that a block finishes, at most
    static constexpr int OPERANDS = Z_STEPS * (WEIGHTS + PATCHES), SUMS = Z_PIXELS * PITCH * 4;
    static constexpr int SENT = OPERANDS > SUMS ? OPERANDS : (SUMS + 127) / 128 * 128; // sums of the other blocks
    static constexpr int OWN_MEMORY = SENT + (Z_PARTS - 1) * OWN * PITCH * 4, BARRIERS = OWN_MEMORY + OTHER;

    const zc_gemm_sm90_params &p;
    unsigned char *memory; // operands, and then sums in their place; sums of the other blocks; the template's; barriers
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
    // wait: for the kernel in front.
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
        zc_meet<Z_PARTS>();
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
    // read(i): under the products of a step.
    template <class READ> ZC_MEMBER void multiply(zc_few_sum (&sum)[Z_PIXELS / 2], READ read) const {
        const int group = zc_warpgroup();
        for (int i = 0; i < steps; i++) {
            const u32 a = weights_of(i) + group * 64 * LINE, b = patches_of(i);
            zc_barrier_wait(full(i), 0);
            zc_wgmma_fence();
#pragma unroll
            for (int part = 0; part < Z_LINE_PARTS; part++)
                zc_product(sum, zc_wgmma_along(a, part * 32), zc_wgmma_along(b, part * 32), i || part);
            zc_wgmma_commit();
            read(i);
        }
        zc_wgmma_wait<0>();
        zc_sync(); // all operands have been read: sums come in their place
    }
    ZC_MEMBER void put_sums(const zc_few_sum (&sum)[Z_PIXELS / 2]) const {
        const int lane = threadIdx.x % 32;
        zc_few_sum *const to = (zc_few_sum *)memory + threadIdx.x / 32 * 16 + lane / 4;
#pragma unroll
        for (int j = 0; j < Z_PIXELS / 8; j++) {
            zc_few_sum *const at = to + (j * 8 + lane % 4 * 2) * PITCH;
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
    // The others have what this block sent.
    ZC_MEMBER void end() const {
        if (Z_PARTS > 1) zc_cluster_meet();
    }

    // Eight neighbouring channels of a pixel that the block finishes: in its share, in the tile; of the result.
    struct place {
        int pixel, channel, r, c;
    };
    static constexpr int PIECES = (OWN * (CHANNELS / 8) + THREADS - 1) / THREADS; // of a thread
    ZC_MEMBER place place_of(int k) const {
        const int i = threadIdx.x + k * THREADS, pixel = i / (CHANNELS / 8), channel = i % (CHANNELS / 8) * 8;
        return {pixel, channel, row + rank * OWN + pixel, col + channel};
    }
    ZC_MEMBER bool finishes(const place &x) const {
        return x.pixel < pixels_of(rank) && x.r < (int)p.g.m && x.c < (int)p.g.n;
    }
    ZC_MEMBER void add_parts(const place &x, zc_few_sum (&sum)[8]) const {
        const zc_few_sum *const own = (const zc_few_sum *)memory + (rank * OWN + x.pixel) * PITCH + x.channel;
#pragma unroll
        for (int i = 0; i < 8; i++) sum[i] = own[i];
#pragma unroll
        for (int s = 0; s < Z_PARTS - 1; s++) {
            const zc_few_sum *const other =
                (const zc_few_sum *)(memory + SENT) + (s * pixels_of(rank) + x.pixel) * PITCH + x.channel;
#pragma unroll
            for (int i = 0; i < 8; i++) sum[i] += other[i];
        }
    }
};
