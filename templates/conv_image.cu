// Convolutions of images with up to four channels by tensor cores: x channels first, of floats, to y channels last, f16 or bf16;
// or of bytes, x and y channels last, whose differences from zero points are f16 and whose sums are f32, both exact. A block's part of the image lies in shared memory as pixels of four channels, 8 bytes each, so that two
// neighbouring taps of a window are 16 bytes in a row, which ldmatrix reads where they lie: windows overlap, and nothing is
// copied for them. Where windows may begin at odd pixels, a second copy lies one pixel further left.
//
// spec.h: Z_X (type of x), Z_T (of the others), Z_HAS_BIAS, Z_CHANNELS (of x), Z_OUT (of y), the window (zc/window.cuh; kernel
// and stride are constants), Z_W_CONSTANT (the weights are of the plan), Z_MMA (the product), Z_MOST (largest finite number of Z_T), Z_ACROSS and Z_DOWN (a tile's
// pieces of 8 x 2 pixels), Z_WARPS, Z_EACH (pieces of a warp). Of bytes: Z_QUANT, Z_W, Z_Y and Z_PLAIN (types of weights, y, and y before
// fused work), Z_XS, Z_WS and Z_YS (of scales).
#include "zc/device.cuh"
#include "abi/conv_image.h"
#include "spec.h"
#include "zc/fused.cuh"
#include "zc/quantised.cuh"
#include "zc/window.cuh"

#ifdef Z_QUANT
// How a channel's sums become bytes.
struct zc_image_channel {
    f64 scale, bias;
};
constexpr int ZC_IMAGE_CHANNEL = sizeof(zc_image_channel);
#else
typedef Z_T Z_W;
constexpr int ZC_IMAGE_CHANNEL = 0;
#endif

struct zc_conv_image {
    static constexpr int THREADS = Z_WARPS * 32, PIXEL = 8, PAIR = 16;       // bytes of one, of two
    static constexpr int PAIRS = (Z_KERNEL2 + 3) / 4 * 2, STEPS = PAIRS / 2; // of a line of taps; 16 of the summed axis each
    static constexpr int COLS = Z_ACROSS * 8, ROWS = Z_DOWN * 2;             // of a tile of y
    static constexpr int WIDE = ((COLS - 1) * Z_STRIDE2 + PAIRS * 2 + 1) / 2 * 2, HIGH = (ROWS - 1) * Z_STRIDE1 + Z_KERNEL1;
    static constexpr int LINE = WIDE * PIXEL, PLANE = HIGH * LINE, PLANES = 1 + Z_STRIDE2 % 2;
    static constexpr int GROUPS = (Z_OUT + 15) / 16 * 2;            // of 8 channels of y, in pairs
    static constexpr int PITCH = (Z_KERNEL1 * PAIRS + 1) * PAIR;    // of a channel's weights: an odd number of 16 bytes
    static constexpr int WEIGHTS = GROUPS * 8 * PITCH, TAPS = Z_KERNEL1 * Z_KERNEL2;

    const zc_conv_image_params &p;
    zc_window w;
    unsigned char *channels, *weights, *image;

    ZC_MEMBER zc_conv_image(const zc_conv_image_params &p, unsigned char *smem)
        : p(p), w(zc_window_of(p)), channels(smem), weights(smem + Z_OUT * ZC_IMAGE_CHANNEL), image(weights + WEIGHTS) {}

    // ---- weights: [channel of y][taps' lines][pairs of taps][4 channels of x], what is not there is 0 ----

    ZC_MEMBER void load_weights() const {
        enum { PIECE = 8 };
        for (int i = threadIdx.x; i < WEIGHTS / PAIR; i += THREADS) ((zc_vec<u32, 4> *)weights)[i] = zc_vec<u32, 4>{};
        zc_sync();
        for (int i = threadIdx.x; i < Z_OUT * TAPS * Z_CHANNELS / PIECE; i += THREADS) {
            zc_vec<Z_W, PIECE> v;
#ifdef Z_W_CONSTANT
            zc_constant_load16(&v, (const Z_W *)p.w + i * PIECE);
#else
            v = ((const zc_vec<Z_W, PIECE> *)p.w)[i];
#endif
#pragma unroll
            for (int e = 0; e < PIECE; e++) {
                const int at = i * PIECE + e, tap = at / Z_CHANNELS, channel = tap / TAPS, down = tap % TAPS / Z_KERNEL2;
                const int pixel = down * PAIRS * 2 + tap % Z_KERNEL2;
                *(Z_T *)(weights + channel * PITCH + pixel * PIXEL + at % Z_CHANNELS * 2) = weight(v.v[e], channel);
            }
        }
    }
#ifdef Z_QUANT
    ZC_MEMBER Z_T weight(Z_W v, int channel) const {
        return zc_put<Z_T>((f32)((i32)v - (i32)((const Z_W *)p.w_zero)[channel * p.w_zero_step]));
    }
    ZC_MEMBER void load_channels() const {
        const f64 xs = (f64)zc_load<Z_XS>(p.x_scale, 0), ys = (f64)zc_load<Z_YS>(p.y_scale, 0);
        for (int i = threadIdx.x; i < Z_OUT; i += THREADS)
            ((zc_image_channel *)channels)[i] = {xs * (f64)zc_load<Z_WS>(p.w_scale, i * p.w_scale_step) / ys,
                                                 Z_HAS_BIAS ? (f64)((const i32 *)p.bias)[i] : 0};
    }
#else
    static ZC_MEMBER Z_T weight(Z_W v, int) { return v; }
#endif

    // ---- the image ----

#ifdef Z_QUANT
    ZC_MEMBER Z_T pixel_of(Z_X v) const { return zc_put<Z_T>((f32)((i32)v - (i32)*(const Z_X *)p.x_zero)); }
#else
    static ZC_MEMBER Z_T pixel_of(Z_X x) { // what is finite stays so
        const f32 v = (f32)zc_get(x), most = (f32)Z_MOST;
        return zc_put<Z_T>(zc_isinf(v) ? v : v > most ? most : v < -most ? -most : v);
    }
#endif
    ZC_MEMBER void load_image(i64 number, int top, int left) const {
        const i64 plane = (i64)w.in[1] * w.in[2];
#pragma unroll 4
        for (int i = threadIdx.x; i < HIGH * WIDE; i += THREADS) {
            const int row = i / WIDE, col = i - row * WIDE, y = top + row, x = left + col;
            const bool inside = (u32)y < (u32)w.in[1] && (u32)x < (u32)w.in[2];
            const i64 at = (i64)y * w.in[2] + x;
            const Z_X *const from = (const Z_X *)p.x + number * Z_CHANNELS * plane + (ZC_IMAGE_CHANNEL ? at * Z_CHANNELS : at);
            zc_vec<Z_T, 4> pixel = {};
#pragma unroll
            for (int c = 0; c < Z_CHANNELS; c++)
                if (inside) pixel.v[c] = pixel_of(from[ZC_IMAGE_CHANNEL ? c : c * plane]);
            *(zc_vec<Z_T, 4> *)(image + i * PIXEL) = pixel;
            if (PLANES > 1 && col) *(zc_vec<Z_T, 4> *)(image + PLANE + (i - 1) * PIXEL) = pixel;
        }
    }

    // ---- products ----

    // Which pixel of the tile is row `row` of the warp's piece.
    static ZC_MEMBER int row_of(int piece, int row) {
        return ((int)threadIdx.x / 32 * Z_EACH + piece) / Z_ACROSS * 2 + row / 8;
    }
    static ZC_MEMBER int col_of(int piece, int row) {
        return ((int)threadIdx.x / 32 * Z_EACH + piece) % Z_ACROSS * 8 + row % 8;
    }
    static ZC_MEMBER void product(f32 (&sum)[4], const u32 *a, const u32 *b) { Z_MMA(sum, a, b); }
    ZC_MEMBER void multiply(f32 (&sum)[Z_EACH][GROUPS][4]) const {
        const int lane = threadIdx.x % 32;
        const unsigned char *const b = weights + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * PAIR;
        const unsigned char *a[Z_EACH];
#pragma unroll
        for (int i = 0; i < Z_EACH; i++) {
            const int col = col_of(i, lane % 16) * Z_STRIDE2, odd = PLANES > 1 ? col % 2 : 0;
            a[i] = image + odd * PLANE + row_of(i, lane % 16) * Z_STRIDE1 * LINE + (col - odd) * PIXEL + lane / 16 * PAIR;
        }
#pragma unroll 1
        for (int down = 0; down < Z_KERNEL1; down++)
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                u32 x[Z_EACH][4];
#pragma unroll
                for (int i = 0; i < Z_EACH; i++) {
                    zc_ldmatrix_x4(x[i], a[i] + down * LINE + step * 2 * PAIR);
                    // Taps beyond the window, whose pixels may be infinite.
#pragma unroll
                    for (int r = 0; r < 4; r++)
                        if (step * 4 + r / 2 * 2 + lane % 4 / 2 >= Z_KERNEL2) x[i][r] = 0;
                }
#pragma unroll
                for (int n = 0; n < GROUPS; n += 2) {
                    u32 y[4];
                    zc_ldmatrix_x4(y, b + n * 8 * PITCH + (down * PAIRS + step * 2) * PAIR);
#pragma unroll
                    for (int i = 0; i < Z_EACH; i++) {
                        product(sum[i][n], x[i], y);
                        product(sum[i][n + 1], x[i], y + 2);
                    }
                }
            }
    }

    // ---- the result ----

    // Of four lanes, each with a pair of each of four groups: all pairs of the lane's own group.
    static ZC_MEMBER void exchange(u32 (&r)[4]) {
        const int lane = threadIdx.x % 4;
#pragma unroll
        for (int mask = 1; mask < 4; mask *= 2)
#pragma unroll
            for (int i = 0; i < 4; i++) {
                if (i & mask) continue;
                const u32 got = zc_shfl_xor(lane & mask ? r[i] : r[i + mask], mask);
                (lane & mask ? r[i] : r[i + mask]) = got;
            }
    }
    template <class V> ZC_MEMBER void fuse(V *v, i64 pixel, int channel) const {
#if defined(Z_FUSED_CELLS) || !defined(Z_FUSED)
        zc_fused_near<2>(p.fused, v, pixel, channel, Z_OUT);
#else
        for (int e = 0; e < 2; e++) v[e] = zc_fused(p.fused, v[e], pixel * Z_OUT + channel + e);
#endif
    }
    // Two neighbours' sums as results; the pairs of eight channels in memory.
#ifdef Z_QUANT
    ZC_MEMBER u32 finish(const f32 *sum, i64 pixel, int channel) const {
        const zc_image_channel *const c = (const zc_image_channel *)channels + channel;
        const i32 zero = (i32)*(const Z_PLAIN *)p.y_zero;
        i32 v[2];
#pragma unroll
        for (int e = 0; e < 2; e++)
            v[e] = zc_quantised<Z_PLAIN>(zc_wide((i32)sum[e]) + c[e].bias, c[e].scale, zero);
        fuse(v, pixel, channel);
        return (u32)(u8)v[0] | (u32)(u8)v[1] << 8;
    }
    static ZC_MEMBER void save(void *y, i64 at, const u32 (&r)[4]) {
        *(zc_vec<u32, 2> *)((Z_Y *)y + at) = zc_vec<u32, 2>{{r[0] | r[1] << 16, r[2] | r[3] << 16}};
    }
#else
    ZC_MEMBER u32 finish(const f32 *sum, i64 pixel, int channel) const {
        f32 v[2] = {sum[0], sum[1]};
#if Z_HAS_BIAS
        const auto bias = *(const zc_vec<Z_T, 2> *)((const Z_T *)p.bias + channel);
        v[0] += zc_get(bias.v[0]);
        v[1] += zc_get(bias.v[1]);
#endif
        fuse(v, pixel, channel);
        return zc_pack(Z_T(), v[0], v[1]);
    }
    static ZC_MEMBER void save(void *y, i64 at, const u32 (&r)[4]) {
        *(zc_vec<u32, 4> *)((Z_T *)y + at) = zc_vec<u32, 4>{{r[0], r[1], r[2], r[3]}};
    }
#endif
    // Eight channels of a pixel of y a lane, 64 bytes of four lanes.
    ZC_MEMBER void put(f32 (&sum)[Z_EACH][GROUPS][4], i64 number, int top, int left) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < Z_EACH; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int row = top + row_of(i, lane / 4 + half * 8), col = left + col_of(i, lane / 4 + half * 8);
                const bool inside = row < w.out[1] && col < w.out[2];
                const i64 pixel = inside ? (number * w.out[1] + row) * w.out[2] + col : 0;
#pragma unroll
                for (int n = 0; n < GROUPS; n += 4) {
                    u32 r[4];
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const int channel = (n + k) * 8 + lane % 4 * 2;
                        r[k] = 0;
                        if ((n + k) * 8 >= Z_OUT) continue;
                        r[k] = finish(sum[i][n + k < GROUPS ? n + k : 0] + half * 2, pixel, channel);
                    }
                    exchange(r);
                    const int channel = (n + lane % 4) * 8;
                    if (inside && channel < Z_OUT) save(p.y, pixel * Z_OUT + channel, r);
                }
            }
    }
    ZC_MEMBER void tile(int number) const {
        const int line = number / p.across, top = line % p.down * ROWS, left = (number - line * p.across) * COLS;
        const i64 of = line / p.down;
        f32 sum[Z_EACH][GROUPS][4];
#pragma unroll
        for (int i = 0; i < Z_EACH; i++)
#pragma unroll
            for (int n = 0; n < GROUPS; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) sum[i][n][e] = 0;
        load_image(of, top * Z_STRIDE1 - w.begin[1], left * Z_STRIDE2 - w.begin[2]);
        zc_sync();
        multiply(sum);
        zc_sync();
        put(sum, of, top, left);
    }
};

ZC_KERNEL_OF(0, Z_WARPS * 32)(const __grid_constant__ zc_conv_image_params p) {
    ZC_DYNAMIC_SMEM(smem);
    const zc_conv_image block(p, smem);
#ifdef Z_W_CONSTANT
    block.load_weights();
    zc_begin();
#else
    zc_begin();
    block.load_weights();
#endif
#ifdef Z_QUANT
    block.load_channels();
#endif
    for (int i = blockIdx.x; i < p.tiles; i += gridDim.x) block.tile(i);
}
