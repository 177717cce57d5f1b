// Convolutions of images with up to four channels by tensor cores: x channels first, of floats, to y channels last, f16 or bf16. A
// block's part of the image lies in shared memory as pixels of four channels, 8 bytes each, so that two neighbouring taps of a
// window are 16 bytes in a row, which ldmatrix reads where they lie: windows overlap, and nothing is copied for them. Where
// windows may begin at odd pixels, a second copy lies one pixel further left.
//
// A block computes those pixels of the convolution that its tile of y needs, 16 at once; without pooling, these are y's. Else
// they are rounded and kept in shared memory, those beyond the convolution's result as -inf, and y is the largest of each
// window of them; what the windows of two tiles share, both compute.
//
// With Z_LINE, on Hopper, for every second pixel, 64 channels and pooling: warpgroups compute line by line, channels are the
// product's rows and weights stay in registers. A window's pairs of taps are 16 bytes behind those of the window before.
// The last tap of an odd number has its pixel once more in the second copy, with zeros for its neighbour.
//
// spec.h: Z_X (type of x), Z_T (of the others), Z_HAS_BIAS, Z_CHANNELS (of x), Z_OUT (of y), the convolution's window
// (zc/window.cuh; kernel and stride are constants), Z_POOLS, Z_POOL_KERNEL<axis> and Z_POOL_STRIDE<axis> (1 without pooling),
// Z_W_CONSTANT (the weights are of the plan), Z_MMA (the product), Z_MOST (largest finite number of Z_T), Z_ROWS and Z_COLS
// (of a tile of y), Z_WARPS, Z_EACH (pieces of 16 pixels of a warp), Z_SHARES (blocks that share a multiprocessor), Z_LINE
// (pixels of a warpgroup's product: those of the tile's line and some more; 0: by warps, Z_EACH).
#include "zc/device.cuh"
#include "abi/conv_image.h"
#include "spec.h"
#include "zc/fused.cuh"
#include "zc/window.cuh"
#if Z_LINE
#include "zc/hopper.cuh"
ZC_WGMMA_HELD(zc_line_product, Z_LINE, Z_WGMMA, 0)
#endif


struct zc_conv_image {
    static constexpr int THREADS = Z_WARPS * 32, PIXEL = 8, PAIR = 16;       // bytes of one, of two
    static constexpr int PAIRS = (Z_KERNEL2 + 3) / 4 * 2, STEPS = PAIRS / 2; // of a line of taps; 16 of the summed axis each
    static constexpr int ROWS = (Z_ROWS - 1) * Z_POOL_STRIDE1 + Z_POOL_KERNEL1; // of the convolution
    static constexpr int COLS = (Z_COLS - 1) * Z_POOL_STRIDE2 + Z_POOL_KERNEL2, PIXELS = ROWS * COLS;
    static constexpr int WIDE = (((Z_LINE ? Z_LINE : COLS) - 1) * Z_STRIDE2 + PAIRS * 2 + 1) / 2 * 2;
    static constexpr int HIGH = (ROWS - 1) * Z_STRIDE1 + Z_KERNEL1;
    static constexpr int LINE = WIDE * PIXEL, PLANE = HIGH * LINE, PLANES = 1 + (Z_LINE ? Z_KERNEL2 : Z_STRIDE2) % 2;
    static constexpr int GROUPS = (Z_OUT + 15) / 16 * 2;            // of 8 channels of y, in pairs
    static constexpr int PITCH = (Z_KERNEL1 * PAIRS + 1) * PAIR;    // of a channel's weights: an odd number of 16 bytes
    static constexpr int WEIGHTS = GROUPS * 8 * PITCH, TAPS = Z_KERNEL1 * Z_KERNEL2;
    static constexpr int PIECE = 8, KEPT = (Z_OUT / PIECE | 1) * PIECE * 2; // bytes of a kept pixel: an odd number of 16
    static constexpr int FIRST = Z_LINE && PIXELS * KEPT > WEIGHTS ? PIXELS * KEPT : WEIGHTS; // in front of the image

    const zc_conv_image_params &p;
    zc_window w; // of the convolution
    unsigned char *weights, *image, *kept;

    ZC_MEMBER zc_conv_image(const zc_conv_image_params &p, unsigned char *smem)
        : p(p), w(zc_window_of(p)), weights(smem), image(smem + FIRST),
          kept(Z_LINE ? smem : image + PLANES * PLANE) {}

    // ---- weights: [channel of y][taps' lines][pairs of taps][4 channels of x], what is not there is 0 ----

    ZC_MEMBER void load_weights() const {
        for (int i = threadIdx.x; i < WEIGHTS / PAIR; i += THREADS) ((zc_vec<u32, 4> *)weights)[i] = zc_vec<u32, 4>{};
        zc_sync();
        for (int i = threadIdx.x; i < Z_OUT * TAPS * Z_CHANNELS / PIECE; i += THREADS) {
            zc_vec<Z_T, PIECE> v;
#ifdef Z_W_CONSTANT
            zc_constant_load16(&v, (const Z_T *)p.w + i * PIECE);
#else
            v = ((const zc_vec<Z_T, PIECE> *)p.w)[i];
#endif
#pragma unroll
            for (int e = 0; e < PIECE; e++) {
                const int at = i * PIECE + e, tap = at / Z_CHANNELS, channel = tap / TAPS, down = tap % TAPS / Z_KERNEL2;
                const int pixel = down * PAIRS * 2 + tap % Z_KERNEL2;
                *(Z_T *)(weights + channel * PITCH + pixel * PIXEL + at % Z_CHANNELS * 2) = v.v[e];
            }
        }
    }

    // ---- the image ----

    ZC_MEMBER void load_image(i64 number, int top, int left) const {
        const i64 plane = (i64)w.in[1] * w.in[2];
#pragma unroll(Z_LINE ? 2 : 4)
        for (int i = threadIdx.x; i < HIGH * WIDE; i += THREADS) {
            const int row = i / WIDE, col = i - row * WIDE, y = top + row, x = left + col;
            const bool inside = (u32)y < (u32)w.in[1] && (u32)x < (u32)w.in[2];
            const i64 at = (i64)y * w.in[2] + x;
            const Z_X *const from = (const Z_X *)p.x + number * Z_CHANNELS * plane + at;
            zc_vec<Z_T, 4> pixel = {};
#pragma unroll
            for (int c = 0; c < Z_CHANNELS; c++)
                if (inside) pixel.v[c] = zc_put_finite<Z_T>((f32)zc_get(from[c * plane]), (f32)Z_MOST);
            *(zc_vec<Z_T, 4> *)(image + i * PIXEL) = pixel;
#if Z_LINE
            if (PLANES > 1) *(zc_vec<Z_T, 4> *)(image + PLANE + i * PIXEL) = col % 2 ? zc_vec<Z_T, 4>{} : pixel;
#else
            if (PLANES > 1 && col) *(zc_vec<Z_T, 4> *)(image + PLANE + (i - 1) * PIXEL) = pixel;
#endif
        }
    }

#if !Z_LINE
    // ---- by warps ----

    // Which of the block's pixels is row `row` of the warp's piece: the last ones may be none.
    static ZC_MEMBER int pixel_of(int piece, int row) {
        return ((int)threadIdx.x / 32 * Z_EACH + piece) * 16 + row;
    }
    static ZC_MEMBER void product(f32 (&sum)[4], const u32 *a, const u32 *b) { Z_MMA(sum, a, b); }
    ZC_MEMBER void multiply(f32 (&sum)[Z_EACH][GROUPS][4]) const {
#pragma unroll
        for (int i = 0; i < Z_EACH; i++)
#pragma unroll
            for (int n = 0; n < GROUPS; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) sum[i][n][e] = 0;
        const int lane = threadIdx.x % 32;
        const unsigned char *const b = weights + (lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * PAIR;
        const unsigned char *a[Z_EACH];
#pragma unroll
        for (int i = 0; i < Z_EACH; i++) {
            const int pixel = pixel_of(i, lane % 16), at = pixel < PIXELS ? pixel : PIXELS - 1, row = at / COLS;
            const int col = (at - row * COLS) * Z_STRIDE2, odd = PLANES > 1 ? col % 2 : 0;
            a[i] = image + odd * PLANE + row * Z_STRIDE1 * LINE + (col - odd) * PIXEL + lane / 16 * PAIR;
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

    // Two channels of a pixel of the convolution, as they come from a piece's product.
    ZC_MEMBER zc_vec<f32, 2> convolved(const f32 *sum, int channel) const {
        zc_vec<f32, 2> v = {{sum[0], sum[1]}};
#if Z_HAS_BIAS
        const auto bias = *(const zc_vec<Z_T, 2> *)((const Z_T *)p.bias + channel);
        v.v[0] += zc_get(bias.v[0]);
        v.v[1] += zc_get(bias.v[1]);
#endif
        return v;
    }
    ZC_MEMBER void keep(const f32 (&sum)[Z_EACH][GROUPS][4], int top, int left) const {
        const int lane = threadIdx.x % 32;
        const u32 least = zc_pack(Z_T(), -zc_inf32(), -zc_inf32());
#pragma unroll
        for (int i = 0; i < Z_EACH; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int at = pixel_of(i, lane / 4 + half * 8), row = at / COLS, col = at - row * COLS;
                const bool inside = (u32)(top + row) < (u32)w.out[1] && (u32)(left + col) < (u32)w.out[2];
                if (at >= PIXELS) continue;
#pragma unroll
                for (int n = 0; n < Z_OUT / 8; n++) {
                    const int channel = n * 8 + lane % 4 * 2;
                    const auto two = convolved(sum[i][n] + half * 2, channel);
                    *(u32 *)(kept + at * KEPT + channel * 2) = inside ? zc_pack(Z_T(), two.v[0], two.v[1]) : least;
                }
            }
    }
#else
    // ---- by warpgroups ----

    // The thread has this channel of a line's pixels, and the eighth behind it; their weights for each step of the product.
    static ZC_MEMBER int channel_of() { return threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4; }
    u32 held[Z_KERNEL1 * STEPS][4];
    ZC_MEMBER void hold() {
        const int lane = threadIdx.x % 32;
        zc_sync();
#pragma unroll
        for (int i = 0; i < Z_KERNEL1 * STEPS; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                held[i][e] = *(const u32 *)(weights + (channel_of() + e % 2 * 8) * PITCH + (i * 2 + e / 2) * PAIR + lane % 4 * 4);
    }
    ZC_MEMBER f32 bias_of(int channel) const { return Z_HAS_BIAS ? zc_get(((const Z_T *)p.bias)[channel]) : 0; }
    ZC_MEMBER void multiply_line(f32 (&sum)[Z_LINE / 2], int line) const {
        const u32 from = zc_smem_address(image) + line * Z_STRIDE1 * LINE;
        zc_wgmma_fence();
#pragma unroll
        for (int i = 0; i < Z_KERNEL1 * STEPS; i++) {
            const int down = i / STEPS, step = i % STEPS, single = step == STEPS - 1 && Z_KERNEL2 % 2;
            zc_line_product(sum, held[i], zc_wgmma_windows(from, down * LINE + step * 2 * PAIR, single * PLANE + PAIR), i > 0);
        }
        zc_wgmma_commit();
        zc_wgmma_wait<0>();
    }
    ZC_MEMBER void keep_line(int line, int top, int left) const {
        f32 sum[Z_LINE / 2];
        const int first = threadIdx.x % 4 * 2;
        const f32 bias[2] = {bias_of(channel_of()), bias_of(channel_of() + 8)};
        const bool inside = (u32)(top + line) < (u32)w.out[1];
        unsigned char *const to = kept + line * COLS * KEPT + channel_of() * 2;
        multiply_line(sum, line);
#pragma unroll
        for (int i = 0; i < Z_LINE / 2; i++) {
            const int col = i / 4 * 8 + first + i % 2, half = i / 2 % 2;
            const f32 v = inside && (u32)(left + col) < (u32)w.out[2] ? sum[i] + bias[half] : -zc_inf32();
            if (col < COLS) *(Z_T *)(to + col * KEPT + half * 16) = zc_put<Z_T>(v);
        }
    }
#endif

    // ---- the result ----

    template <int N, class V> ZC_MEMBER void finish(V *v, i64 pixel, int channel) const {
#if defined(Z_FUSED_CELLS) || !defined(Z_FUSED)
        zc_fused_near<N>(p.fused, v, pixel, channel, Z_OUT);
#else
        for (int e = 0; e < N; e++) v[e] = zc_fused(p.fused, v[e], pixel * Z_OUT + channel + e);
#endif
    }
    // The pairs of eight channels.
    ZC_MEMBER void store(i64 pixel, int channel, const u32 *r) const {
        *(zc_vec<u32, 4> *)((Z_T *)p.y + pixel * Z_OUT + channel) = zc_vec<u32, 4>{{r[0], r[1], r[2], r[3]}};
    }
#if !Z_POOLS
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
    // Two neighbours' sums as a pair of results.
    ZC_MEMBER u32 result(const f32 *sum, i64 pixel, int channel) const {
        auto two = convolved(sum, channel);
        finish<2>(two.v, pixel, channel);
        return zc_pack(Z_T(), two.v[0], two.v[1]);
    }
    // Eight channels of a pixel of y a lane, 64 bytes of four lanes.
    ZC_MEMBER void put(f32 (&sum)[Z_EACH][GROUPS][4], i64 number, int top, int left) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int i = 0; i < Z_EACH; i++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int at = pixel_of(i, lane / 4 + half * 8), row = top + at / COLS, col = left + at % COLS;
                const bool inside = at < PIXELS && row < p.sides[0] && col < p.sides[1];
                const i64 pixel = inside ? (number * p.sides[0] + row) * p.sides[1] + col : 0;
#pragma unroll
                for (int n = 0; n < GROUPS; n += 4) {
                    u32 r[4];
#pragma unroll
                    for (int k = 0; k < 4; k++) {
                        const int channel = (n + k) * 8 + lane % 4 * 2;
                        r[k] = 0;
                        if ((n + k) * 8 >= Z_OUT) continue;
                        r[k] = result(sum[i][n + k < GROUPS ? n + k : 0] + half * 2, pixel, channel);
                    }
                    exchange(r);
                    const int channel = (n + lane % 4) * 8;
                    if (inside && channel < Z_OUT) store(pixel, channel, r);
                }
            }
    }
#else
    // Of each of eight channels, of the window that begins there.
    static ZC_MEMBER zc_vec<u32, 4> largest(const unsigned char *from) {
        auto most = *(const zc_vec<u32, 4> *)from;
#pragma unroll
        for (int tap = 1; tap < Z_POOL_KERNEL1 * Z_POOL_KERNEL2; tap++) {
            const int row = tap / Z_POOL_KERNEL2, col = tap % Z_POOL_KERNEL2;
            const auto other = *(const zc_vec<u32, 4> *)(from + (row * COLS + col) * KEPT);
#pragma unroll
            for (int e = 0; e < 4; e++) most.v[e] = zc_larger(Z_T(), most.v[e], other.v[e]);
        }
        return most;
    }
    ZC_MEMBER void pool(i64 number, int top, int left) const {
        constexpr int PIECES = Z_OUT / PIECE;
        for (int i = threadIdx.x; i < Z_ROWS * Z_COLS * PIECES; i += THREADS) {
            const int at = i / PIECES, channel = (i - at * PIECES) * PIECE, row = at / Z_COLS, col = at - row * Z_COLS;
            if (top + row >= p.sides[0] || left + col >= p.sides[1]) continue;
            const i64 pixel = (number * p.sides[0] + top + row) * p.sides[1] + left + col;
            auto most = largest(kept + (row * Z_POOL_STRIDE1 * COLS + col * Z_POOL_STRIDE2) * KEPT + channel * 2);
            f32 v[PIECE];
#pragma unroll
            for (int e = 0; e < PIECE; e++) v[e] = zc_get(zc_unpack<Z_T>(most.v[e / 2]).v[e % 2]);
            finish<PIECE>(v, pixel, channel);
#pragma unroll
            for (int e = 0; e < PIECE / 2; e++) most.v[e] = zc_pack(Z_T(), v[e * 2], v[e * 2 + 1]);
            store(pixel, channel, most.v);
        }
    }
#endif

    ZC_MEMBER void tile(int number) const {
        const int above = number / p.across, row = above % p.down * Z_ROWS, col = (number - above * p.across) * Z_COLS; // of y
        const int top = row * Z_POOL_STRIDE1 - p.before[0], left = col * Z_POOL_STRIDE2 - p.before[1];
        const i64 of = above / p.down;
        load_image(of, top * Z_STRIDE1 - w.begin[1], left * Z_STRIDE2 - w.begin[2]);
#if Z_LINE
        zc_async_fence();
        zc_sync(); // nobody reads what is kept of the tile before, either
        for (int line = zc_warpgroup(); line < ROWS; line += Z_WARPS / 4) keep_line(line, top, left);
#else
        f32 sum[Z_EACH][GROUPS][4];
        zc_sync();
        multiply(sum);
#if Z_POOLS
        keep(sum, top, left);
#endif
#endif
        zc_sync();
#if Z_POOLS
        pool(of, row, col);
#else
        put(sum, of, top, left);
#endif
    }
};

ZC_KERNEL_BESIDE(0, Z_WARPS * 32, Z_SHARES)(const __grid_constant__ zc_conv_image_params p) {
    ZC_DYNAMIC_SMEM(smem);
    zc_conv_image block(p, smem);
#ifdef Z_W_CONSTANT
    block.load_weights();
    zc_begin();
#else
    zc_begin();
    block.load_weights();
#endif
#if Z_LINE
    block.hold();
#endif
    for (int i = blockIdx.x; i < p.tiles; i += gridDim.x) block.tile(i);
}
