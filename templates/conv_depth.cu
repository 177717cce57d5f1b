// Convolutions of each channel by itself, f16 or bf16, channels last. A thread has some neighbouring channels of a run of
// neighbouring pixels, and keeps its sums while it goes along the lines of the image that the windows see, some taps of a line
// at once: each pixel is read and converted once for these. A block has a chunk of channels, whose weights it turns in shared memory to
// [tap][channel], f32, before the kernel in front has ended where they are of the plan.
//
// spec.h: Z_X (type), Z_HAS_BIAS, Z_W_CONSTANT (the weights are of the plan), Z_HELD (taps of a line at once), and what
// zc/depth_place.cuh names; the window's kernel, stride and dilation are constants. A thread's lines are Z_DOWN apart.
#include "zc/device.cuh"
#include "spec.h"
#include "zc/depth_place.cuh"
#include "zc/fused.cuh"

// Elements from pixel to pixel: the compiler knows them where x and y are no parts of larger tensors.
#ifdef Z_PITCHED
#define ZC_PIXEL_PITCH(of) (of)
#else
#define ZC_PIXEL_PITCH(of) Z_channels
#endif

struct zc_conv_depth : zc_depth_place {
    static constexpr int PIECE = 8, FOUR = Z_EACH < 4 ? Z_EACH : 4;
    static constexpr int UNROLL = Z_RUN * Z_EACH <= 8 ? Z_KERNEL1 : 1;
    typedef zc_vec<Z_X, Z_EACH> vec;
    typedef f32 taps[TAPS][CHANNELS];

    using zc_depth_place::zc_depth_place;

    ZC_MEMBER void load_taps(taps &out) const {
        const Z_X *const from = (const Z_X *)p.w + (i64)chunk * TAPS;
        for (int i = threadIdx.x; i < CHANNELS * TAPS / PIECE; i += THREADS) {
            zc_vec<Z_X, PIECE> v;
#ifdef Z_W_CONSTANT
            zc_constant_load16(&v, from + i * PIECE);
#else
            v = *(const zc_vec<Z_X, PIECE> *)(from + i * PIECE);
#endif
#pragma unroll
            for (int e = 0; e < PIECE; e++) {
                const int at = i * PIECE + e;
                out[at % TAPS][at / TAPS] = zc_get(v.v[e]);
            }
        }
    }
    // Adds the products of COUNT taps of a line: x, where the first of them lies of the run's first window.
    template <int COUNT>
    ZC_MEMBER void add_taps(const Z_X *x, int start, const f32 (*taps)[CHANNELS], f32 (&sum)[Z_RUN][Z_EACH]) const {
        constexpr int SPAN = (Z_RUN - 1) * Z_STRIDE2 + (COUNT - 1) * Z_DILATION2 + 1; // pixels that a run sees
        f32 tap[COUNT][Z_EACH];
#pragma unroll
        for (int t = 0; t < COUNT; t++)
#pragma unroll
            for (int e = 0; e < Z_EACH; e += FOUR) {
                const auto four = *(const zc_vec<f32, FOUR> *)&taps[t][channel() + e];
#pragma unroll
                for (int i = 0; i < FOUR; i++) tap[t][e + i] = four.v[i];
            }
        vec v[SPAN];
#pragma unroll
        for (int i = 0; i < SPAN; i++) {
            v[i] = vec{};
            if ((u32)(start + i) < (u32)w.in[2]) v[i] = *(const vec *)(x + (i64)i * ZC_PIXEL_PITCH(p.x_pitch));
        }
#pragma unroll
        for (int i = 0; i < SPAN; i++)
#pragma unroll
            for (int e = 0; e < Z_EACH; e++) {
                const f32 value = zc_get(v[i].v[e]);
#pragma unroll
                for (int r = 0; r < Z_RUN; r++) {
                    const int along = i - r * Z_STRIDE2, t = along / Z_DILATION2;
                    if (along >= 0 && along % Z_DILATION2 == 0 && t < COUNT) sum[r][e] += value * tap[t][e];
                }
            }
    }
    // The same of a whole line.
    ZC_MEMBER void add_line(const Z_X *x, int start, const f32 (*taps)[CHANNELS], f32 (&sum)[Z_RUN][Z_EACH]) const {
        constexpr int WHOLE = Z_KERNEL2 / Z_HELD * Z_HELD, REST = Z_KERNEL2 - WHOLE;
#pragma unroll 1
        for (int t = 0; t < WHOLE; t += Z_HELD)
            add_taps<Z_HELD>(x + (i64)t * Z_DILATION2 * ZC_PIXEL_PITCH(p.x_pitch), start + t * Z_DILATION2, taps + t, sum);
        if constexpr (REST > 0)
            add_taps<REST>(x + (i64)WHOLE * Z_DILATION2 * ZC_PIXEL_PITCH(p.x_pitch), start + WHOLE * Z_DILATION2, taps + WHOLE, sum);
    }
    ZC_MEMBER void put(const f32 (&sum)[Z_RUN][Z_EACH], int row) const {
#pragma unroll
        for (int r = 0; r < Z_RUN; r++) {
            if (col + r >= w.out[2]) return;
            const i64 pixel = pixel_at(row, col) + r;
            zc_fused_cells<Z_EACH> cells;
            f32 v[Z_EACH];
            vec out;
#pragma unroll
            for (int e = 0; e < Z_EACH; e++) v[e] = sum[r][e];
            cells.load(p.fused, pixel, chunk + channel(), Z_channels);
            cells.apply(v);
#pragma unroll
            for (int e = 0; e < Z_EACH; e++) out.v[e] = zc_put<Z_X>(v[e]);
            *(vec *)((Z_X *)p.y + pixel * ZC_PIXEL_PITCH(p.y_pitch) + chunk + channel()) = out;
        }
    }
    ZC_MEMBER void windows(const taps &all, int row) const {
        f32 sum[Z_RUN][Z_EACH];
        const int top = row * w.stride[1] - w.begin[1], start = col * w.stride[2] - w.begin[2];
#pragma unroll
        for (int e = 0; e < Z_EACH; e++) {
            const f32 bias = Z_HAS_BIAS ? zc_get(((const Z_X *)p.bias)[chunk + channel() + e]) : 0;
#pragma unroll
            for (int r = 0; r < Z_RUN; r++) sum[r][e] = bias;
        }
#pragma unroll 1
        for (int b = 0; b < Z_KERNEL0; b++) {
            const int z = slab * w.stride[0] - w.begin[0] + b * w.dilation[0];
            if ((u32)z >= (u32)w.in[0]) continue;
#pragma unroll UNROLL
            for (int a = 0; a < Z_KERNEL1; a++) {
                const int y = top + a * w.dilation[1];
                const i64 line = (image * w.in[0] + z) * w.in[1] + y;
                const i64 at = (line * w.in[2] + start) * ZC_PIXEL_PITCH(p.x_pitch) + chunk + channel();
                if ((u32)y < (u32)w.in[1])
                    add_line((const Z_X *)p.x + at, start, &all[(b * Z_KERNEL1 + a) * Z_KERNEL2], sum);
            }
        }
        put(sum, row);
    }
};

ZC_KERNEL_OF(0, Z_GROUPS * Z_ACROSS * Z_DOWN)(const __grid_constant__ zc_conv_params p) {
    __shared__ __align__(16) zc_conv_depth::taps taps;
    const zc_conv_depth block(p);
#ifdef Z_W_CONSTANT
    block.load_taps(taps);
    zc_begin();
#else
    zc_begin();
    block.load_taps(taps);
#endif
    zc_sync();
    for (int i = 0; i < Z_REPEAT; i++) {
        const int row = block.row + i * Z_DOWN;
        if (row < block.w.out[1]) block.windows(taps, row);
    }
}
