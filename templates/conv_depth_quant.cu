// Convolutions of each channel by itself, of bytes, channels last. A thread has four neighbouring channels, a word, of a run of
// neighbouring pixels, and goes down some lines of the result. Of a line of the image it makes words of four taps of each window
// and channel, once for all the windows that see the line, and keeps them while the windows go down; a dot product adds four taps
// to a sum. What lies beyond the image is x's zero point (zc/quant_channel.cuh). Weights lie in shared memory as words of four
// taps.
//
// spec.h: see zc/quant_channel.cuh and zc/depth_place.cuh (Z_EACH is 4, Z_KERNEL0 1; kernel, stride and dilation are constants);
// Z_Y (type of y), Z_W_CONSTANT (the weights are of the plan).
#include "zc/device.cuh"
#include "spec.h"
#include "zc/depth_place.cuh"
#include "zc/fused.cuh"
#include "zc/quant_channel.cuh"

struct zc_conv_depth_quant : zc_depth_place {
    static constexpr int WORDS = (Z_KERNEL2 + 3) / 4; // of a line of a window's taps
    static constexpr int SPAN = (Z_RUN - 1) * Z_STRIDE2 + (Z_KERNEL2 - 1) * Z_DILATION2 + 1; // pixels of a line that a run sees
    // Lines of a window that the one above does not have.
    static constexpr int FRESH = Z_DILATION1 == 1 && Z_STRIDE1 < Z_KERNEL1 ? Z_STRIDE1 : Z_KERNEL1;
    // A tap that would be a word's only one: all channels' words are the pixel then, and the weight stands where its channel does.
    static constexpr bool LONE = Z_KERNEL2 % 4 == 1;
#ifdef Z_W_CONSTANT
    static constexpr bool W_CONSTANT = true;
#else
    static constexpr bool W_CONSTANT = false;
#endif
    static constexpr bool EARLY = W_CONSTANT && ZC_SCALES_CONSTANT; // they are read before the kernel in front has ended

    struct memory {
        u32 taps[Z_KERNEL1][WORDS][CHANNELS];
        zc_quant_channel channels[CHANNELS];
    };
    typedef u32 line[Z_RUN][WORDS][Z_EACH];
    typedef i32 sums[Z_RUN][Z_EACH];

    memory &m;
    u32 nothing; // four times x's zero point
    i32 y_zero;

    ZC_MEMBER zc_conv_depth_quant(const zc_conv_params &p, memory &m) : zc_depth_place(p), m(m) {}

    static ZC_MEMBER i32 dot(u32 x, u32 weights, i32 sum) {
        constexpr bool X = zc_traits<Z_X>::is_signed, W = zc_traits<Z_W>::is_signed;
        return X && W ? zc_dp4a((i32)x, (i32)weights, sum)
               : W    ? zc_dp4a_us(x, (i32)weights, sum)
               : X    ? zc_dp4a_su((i32)x, weights, sum)
                      : (i32)zc_dp4a_uu(x, weights, (u32)sum);
    }

    // ---- weights, and how sums become bytes ----

    ZC_MEMBER u8 weight(i64 at) const { return W_CONSTANT ? zc_constant_element((const u8 *)p.w + at) : ((const u8 *)p.w)[at]; }
    // Adds the channel's weights to `sum`.
    ZC_MEMBER void load_taps(int i, i32 &sum) const {
        for (int a = 0; a < Z_KERNEL1; a++)
#pragma unroll
            for (int t = 0; t < WORDS; t++) {
                u32 word = 0;
#pragma unroll
                for (int k = 0; k < 4 && t * 4 + k < Z_KERNEL2; k++) {
                    const u32 byte = weight(((i64)(chunk + i) * Z_KERNEL1 + a) * Z_KERNEL2 + t * 4 + k);
                    word |= byte << (LONE && t == WORDS - 1 ? i % 4 : k) * 8;
                    sum += zc_traits<Z_W>::is_signed ? (i32)(i8)byte : (i32)byte;
                }
                m.taps[a][t][i] = word;
            }
    }
    ZC_MEMBER void load_constants() const {
        const zc_quant_shared shared = zc_quant_share(p);
        for (int i = threadIdx.x; i < CHANNELS; i += THREADS) {
            i32 sum = 0;
            load_taps(i, sum);
            m.channels[i] = zc_quant_channel_of(p, shared, chunk + i, sum, TAPS);
        }
    }
    ZC_MEMBER void load_zeros() {
        nothing = (u32)*(const u8 *)p.x_zero * 0x01010101u;
        y_zero = Z_WHOLES ? 0 : (i32)*(const Z_PLAIN *)p.y_zero;
    }

    // ---- lines of the image ----

    // Two pixels' bytes of one channel side by side: of the first two channels, or the others.
    static ZC_MEMBER u32 first_two(u32 a, u32 b) { return zc_permute(a, b, 0x5140); }
    static ZC_MEMBER u32 last_two(u32 a, u32 b) { return zc_permute(a, b, 0x7362); }
    static ZC_MEMBER void turn(const u32 (&pixel)[SPAN], int first, int count, u32 (&out)[Z_EACH]) {
        u32 of[4];
#pragma unroll
        for (int k = 0; k < 4; k++) of[k] = pixel[first + (k < count ? k : count - 1) * Z_DILATION2];
        const u32 low[2] = {first_two(of[0], of[1]), first_two(of[2], of[3])};
        const u32 high[2] = {last_two(of[0], of[1]), last_two(of[2], of[3])};
        out[0] = zc_permute(low[0], low[1], 0x5410);
        out[1] = zc_permute(low[0], low[1], 0x7632);
        out[2] = zc_permute(high[0], high[1], 0x5410);
        out[3] = zc_permute(high[0], high[1], 0x7632);
    }
    // Of a line that the image may not have.
    ZC_MEMBER void ask(int y, u32 (&pixel)[SPAN]) const {
        const int start = col * Z_STRIDE2 - w.begin[2];
        const Z_X *const from = (const Z_X *)p.x + (((image * w.in[1] + y) * w.in[2] + start) * Z_channels + chunk + channel());
        const bool inside = (u32)y < (u32)w.in[1];
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            pixel[i] = nothing;
            if (inside && (u32)(start + i) < (u32)w.in[2]) pixel[i] = *(const u32 *)(from + (i64)i * Z_channels);
        }
    }
    static ZC_MEMBER void turn(const u32 (&pixel)[SPAN], line &out) {
#pragma unroll
        for (int r = 0; r < Z_RUN; r++)
#pragma unroll
            for (int t = 0; t < WORDS; t++) {
                const int first = r * Z_STRIDE2 + t * 4 * Z_DILATION2, left = Z_KERNEL2 - t * 4;
                if (left == 1) {
#pragma unroll
                    for (int e = 0; e < Z_EACH; e++) out[r][t][e] = pixel[first];
                } else {
                    turn(pixel, first, left < 4 ? left : 4, out[r][t]);
                }
            }
    }

    // ---- sums ----

#if Z_W_ZERO
    // 1 for each tap of a word.
    static ZC_MEMBER u32 ones(int t, int e) {
        const int left = Z_KERNEL2 - t * 4;
        return left == 1 ? 1u << e * 8 : 0x01010101u >> (left < 4 ? 4 - left : 0) * 8;
    }
#endif
    ZC_MEMBER void add_line(const line &x, int a, sums &sum) const {
#pragma unroll
        for (int t = 0; t < WORDS; t++) {
            const auto weights = *(const zc_vec<u32, Z_EACH> *)&m.taps[a][t][channel()];
#pragma unroll
            for (int r = 0; r < Z_RUN; r++)
#pragma unroll
                for (int e = 0; e < Z_EACH; e++) {
                    sum[r][e] = dot(x[r][t][e], weights.v[e], sum[r][e]);
#if Z_W_ZERO
                    const u32 one = ones(t, e);
                    const i32 seen = zc_traits<Z_X>::is_signed ? zc_dp4a((i32)x[r][t][e], (i32)one, 0) : (i32)zc_dp4a_uu(x[r][t][e], one, 0);
                    sum[r][e] -= m.channels[channel() + e].zero * seen;
#endif
                }
        }
    }
    ZC_MEMBER void put(const sums &sum, int row) const {
        zc_quant_channel c[2][2];
#pragma unroll
        for (int e = 0; e < Z_EACH; e++) c[e / 2][e % 2] = m.channels[channel() + e];
#pragma unroll
        for (int r = 0; r < Z_RUN; r++) {
            if (col + r >= w.out[2]) return;
            const i64 pixel = pixel_at(row, col + r);
            const u16 low = zc_quant_two({sum[r][0], sum[r][1]}, c[0], y_zero), high = zc_quant_two({sum[r][2], sum[r][3]}, c[1], y_zero);
            u32 four = low | (u32)high << 16;
#ifdef Z_FUSED
            i32 v[Z_EACH];
#pragma unroll
            for (int e = 0; e < Z_EACH; e++) v[e] = (i32)(Z_PLAIN)(four >> e * 8);
            zc_fused_near<Z_EACH>(p.fused, v, pixel, chunk + channel(), Z_channels);
            four = zc_pack(i8(), v[0], v[1]) | (u32)zc_pack(i8(), v[2], v[3]) << 16;
#endif
            *(u32 *)((Z_Y *)p.y + pixel * Z_channels + chunk + channel()) = four;
        }
    }
    // Lines of the image are asked for while those before them are multiplied.
    ZC_MEMBER void lines(int first) const {
        line held[Z_KERNEL1];
        u32 fresh[Z_KERNEL1][SPAN];
        const int above = first * Z_STRIDE1 - w.begin[1];
#pragma unroll
        for (int a = 0; a < Z_KERNEL1; a++) ask(above + a * Z_DILATION1, fresh[a]);
#pragma unroll
        for (int i = 0; i < Z_REPEAT; i++) {
            if (first + i >= w.out[1]) return;
            constexpr int KEPT = Z_KERNEL1 - FRESH;
#pragma unroll
            for (int a = 0; a < Z_KERNEL1; a++) {
                if (i == 0)
                    turn(fresh[a], held[a]);
                else if (a < KEPT)
                    keep(held[a + FRESH], held[a]);
                else
                    turn(fresh[a - KEPT], held[a]);
            }
#pragma unroll
            for (int f = 0; f < FRESH; f++)
                if (i + 1 < Z_REPEAT) ask(above + (i + 1) * Z_STRIDE1 + (KEPT + f) * Z_DILATION1, fresh[f]);
            sums sum = {};
#pragma unroll
            for (int a = 0; a < Z_KERNEL1; a++) add_line(held[a], a, sum);
            put(sum, first + i);
        }
    }
    static ZC_MEMBER void keep(const line &from, line &to) {
#pragma unroll
        for (int r = 0; r < Z_RUN; r++)
#pragma unroll
            for (int t = 0; t < WORDS; t++)
#pragma unroll
                for (int e = 0; e < Z_EACH; e++) to[r][t][e] = from[r][t][e];
    }
};

ZC_KERNEL_OF(0, Z_GROUPS * Z_ACROSS * Z_DOWN)(const __grid_constant__ zc_conv_params p) {
    __shared__ __align__(16) zc_conv_depth_quant::memory memory;
    zc_conv_depth_quant block(p, memory);
    if (zc_conv_depth_quant::EARLY) block.load_constants();
    zc_begin();
    if (!zc_conv_depth_quant::EARLY) block.load_constants();
    block.load_zeros();
    zc_sync();
    block.lines(block.top + block.down * Z_REPEAT);
}
