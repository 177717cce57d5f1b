// Convolutions of images of bytes with up to four channels by tensor cores, x and y channels last. A block's part of the image
// lies in shared memory as pixels of four bytes, so that a lane's four bytes of a product's first factor are one tap of one
// pixel: windows overlap and begin anywhere, and nothing is copied for them. A step of the product has two times four taps of a
// line. What lies beyond the image is x's zero point: each window has all its taps, so zero points count the same for all
// pixels, but for those of weights, by which the sum of a window's pixels (a product with ones) counts.
//
// A warp has 16 Z_EACH columns of the convolution and goes down its tile, as many lines at once as windows of the pooling are
// apart. As scales are positive, the largest sum has the largest byte: of each window that a line belongs to (that which ends
// and that which begins) the largest sums so far stay in registers, and become bytes when it ends. These the warp lays down in
// shared memory of its own, least where there is no column, and y is the largest of those side by side. Without pooling windows
// are points.
//
// On Hopper, where every second line and pixel has a window, the same by warpgroups (Z_TEAM): four pixels lie together as a square,
// 16 bytes, so that the windows of a line's 64 columns are a factor in shared memory as it stands: each 16 bytes behind the one
// before (zc_wgmma_windows). The sums of a line come while what ended with the line in front becomes bytes.
//
// spec.h: Z_X, Z_W, Z_Y and Z_PLAIN (types of x, weights, y, and y before fused work), Z_XS, Z_WS and Z_YS (of scales),
// Z_SMALL_SCALES, Z_SCALES_CONSTANT and Z_WHOLES (zc/gemm_quant.cuh), Z_W_CONSTANT (so are weights), Z_HAS_BIAS, Z_W_ZERO
// (have weights zero points?), Z_CHANNELS (of x), Z_OUT (of y), the convolution's window (zc/window.cuh; kernel and stride are
// constants), Z_POOLS, Z_POOL_KERNEL<axis> and Z_POOL_STRIDE<axis> (1 without pooling), Z_MMA (the product), Z_ROWS and Z_COLS (of
// a tile of y), Z_EACH, Z_TEAM (warps that have neighbouring columns: 1, or 4, a warpgroup, whose product's types Z_WGMMA
// says, and their number Z_TEAM_CHANNELS), Z_PARTS (teams that share the channels of the same columns), Z_WARPS, Z_SHARES (blocks that share a multiprocessor).
#include "zc/device.cuh"
#include "abi/conv_image_quant.h"
#include "spec.h"
#include "zc/fused.cuh"
#include "zc/quant_channel.cuh"
#include "zc/window.cuh"
#if Z_TEAM > 1
#include "zc/hopper.cuh"
ZC_WGMMA_ALONG(zc_image_product, Z_TEAM_CHANNELS, Z_WGMMA)
#endif

struct zc_conv_image_quant {
    static constexpr int THREADS = Z_WARPS * 32, PIXEL = 4, QUAD = 16, PIECE = 8; // bytes of one pixel, of four; channels
    static constexpr bool SQUARES = Z_TEAM > 1;                                    // by warpgroups
    static constexpr int QUAD_HIGH = SQUARES ? 2 : 1, QUAD_WIDE = 4 / QUAD_HIGH;
    static constexpr int DOWN = (Z_KERNEL1 + QUAD_HIGH - 1) / QUAD_HIGH;     // quads of a window
    static constexpr int ACROSS = (Z_KERNEL2 + QUAD_WIDE - 1) / QUAD_WIDE;
    static constexpr int QUADS = DOWN * ACROSS, STEPS = (QUADS + 1) / 2, TAPS = Z_KERNEL1 * Z_KERNEL2;
    static constexpr int OWN = ((Z_OUT + 15) / 16 + Z_PARTS - 1) / Z_PARTS * 2; // groups of 8 channels of a warp, in pairs
    static constexpr int CHANNELS = OWN * 8 * Z_PARTS; // with some that y does not have
    // From a channel's weights to the next one's, where warps read them an odd number of 16 bytes, and from a quad's to the next one's.
    static constexpr int PITCH = SQUARES ? QUAD : (STEPS * 2 + 1) * QUAD, APART = SQUARES ? CHANNELS * QUAD : QUAD;
    static constexpr int WEIGHTS = SQUARES ? STEPS * 2 * APART : CHANNELS * PITCH;
    static constexpr int STRIPS = Z_WARPS / Z_TEAM / Z_PARTS, SIDE = 16 * Z_EACH * Z_TEAM; // a strip's columns
    static constexpr int TAKEN = Z_COLS / STRIPS;                                          // of y
    static_assert((TAKEN - 1) * Z_POOL_STRIDE2 + Z_POOL_KERNEL2 <= SIDE, "a strip has what its part of y needs");
    static constexpr bool AHEAD = Z_POOL_KERNEL1 > Z_POOL_STRIDE1; // does a window begin before the one above has ended?
    static constexpr int ENDING = AHEAD ? Z_POOL_KERNEL1 - Z_POOL_STRIDE1 : 0;    // lines that it has in common with that
    static constexpr int AT_ONCE = AHEAD ? Z_POOL_STRIDE1 : Z_POOL_KERNEL1;       // lines
    static constexpr int LINES = (Z_ROWS - 1) * Z_POOL_STRIDE1 + Z_POOL_KERNEL1;  // of the convolution
    static constexpr int HIGH = (LINES - 1) * Z_STRIDE1 + DOWN * QUAD_HIGH;       // of the image
    static constexpr int WIDE = (((STRIPS - 1) * TAKEN * Z_POOL_STRIDE2 + SIDE - 1) * Z_STRIDE2 + ACROSS * QUAD_WIDE + 3) / 4 * 4;
    static constexpr int LINE = WIDE * QUAD_HIGH * PIXEL, IMAGE = HIGH * WIDE * PIXEL; // of quads
    static_assert(!SQUARES || (Z_STRIDE1 == 2 && Z_STRIDE2 == 2 && Z_EACH == 1), "a quad for each window");
    static constexpr int KEPT = (OWN / 2 | 1) * 16; // bytes of a kept column: an odd number of 16

#ifdef Z_W_CONSTANT
    static constexpr bool EARLY = ZC_SCALES_CONSTANT; // they are read before the kernel in front has ended
#else
    static constexpr bool EARLY = false;
#endif

    typedef i32 sums[Z_EACH * OWN][4];

    const zc_conv_image_quant_params &p;
    zc_window w; // of the convolution
    zc_quant_channel *channels;
    unsigned char *weights, *image, *kept;
    int team, part, strip; // of this warp; which of those that share the columns, and which columns
    int member;            // this thread, of its team

    ZC_MEMBER zc_conv_image_quant(const zc_conv_image_quant_params &p, unsigned char *smem) : p(p), w(zc_window_of(p)) {
#if Z_TEAM > 1
        team = zc_warpgroup();
#else
        team = threadIdx.x / 32;
#endif
        weights = smem;
        image = weights + WEIGHTS;
        channels = (zc_quant_channel *)(image + IMAGE);
        kept = (unsigned char *)(channels + CHANNELS) + team * SIDE * KEPT;
        part = team % Z_PARTS;
        strip = team / Z_PARTS;
        member = threadIdx.x % (Z_TEAM * 32);
    }
    ZC_MEMBER void meet_team() const {
#if Z_TEAM > 1
        zc_named_sync(1 + team, Z_TEAM * 32);
#else
        zc_sync_warp();
#endif
    }

    // ---- weights: of each channel of y its taps in quads, of 4 channels of x, what is not there is 0 ----

    // Eight weights; of constants of the plan the kernel in front may not have ended.
    ZC_MEMBER zc_vec<Z_W, PIECE> piece_of(int i) const {
        if constexpr (EARLY) {
            const u64 piece = zc_constant_element((const u64 *)p.w + i);
            return *(const zc_vec<Z_W, PIECE> *)&piece;
        }
        return ((const zc_vec<Z_W, PIECE> *)p.w)[i];
    }
    ZC_MEMBER void load_weights() const {
        for (int i = threadIdx.x; i < WEIGHTS / QUAD; i += THREADS) ((zc_vec<u32, 4> *)weights)[i] = zc_vec<u32, 4>{};
        zc_sync();
        for (int i = threadIdx.x; i < Z_OUT * TAPS * Z_CHANNELS / PIECE; i += THREADS) {
            const auto v = piece_of(i);
#pragma unroll
            for (int e = 0; e < PIECE; e++) {
                const int at = i * PIECE + e, tap = at / Z_CHANNELS, channel = tap / TAPS, down = tap % TAPS / Z_KERNEL2;
                const int across = tap % Z_KERNEL2, quad = down / QUAD_HIGH * ACROSS + across / QUAD_WIDE;
                const int pixel = down % QUAD_HIGH * QUAD_WIDE + across % QUAD_WIDE;
                *(Z_W *)(weights + channel * PITCH + quad * APART + pixel * PIXEL + at % Z_CHANNELS) = v.v[e];
            }
        }
        zc_sync();
    }
    ZC_MEMBER i32 weights_of(int channel) const {
        u32 sum = 0;
        for (int i = 0; i < STEPS * 2 * 4; i++) {
            const u32 four = *(const u32 *)(weights + channel * PITCH + i / 4 * APART + i % 4 * PIXEL);
            sum = zc_traits<Z_W>::is_signed ? (u32)zc_dp4a((i32)four, 0x01010101, (i32)sum) : zc_dp4a_uu(four, 0x01010101u, sum);
        }
        return (i32)sum;
    }
    ZC_MEMBER void load_channels() const {
        const zc_quant_shared shared = zc_quant_share(p);
        for (int i = threadIdx.x; i < CHANNELS; i += THREADS)
            channels[i] = i < Z_OUT ? zc_quant_channel_of(p, shared, i, weights_of(i), TAPS * Z_CHANNELS) : zc_quant_channel();
    }

    ZC_MEMBER void load_constants() const {
        load_weights();
        load_channels();
    }

    // ---- the image ----

    // Four bytes from bit `from` on of eight.
    static ZC_MEMBER u32 bytes_of(u32 low, u32 high, int from) { return (u32)(((u64)high << 32 | low) >> from); }
    // The bytes of x behind its last whole word.
    ZC_MEMBER u32 last_bytes() const {
        u32 last = 0;
        for (int i = 0; i < p.bytes % 4; i++) last |= (u32)((const u8 *)p.x)[p.bytes / 4 * 4 + i] << i * 8;
        return last;
    }
    // The words of x that four pixels from byte `at` on lie in, `last` for what lies behind the last of them; anything where
    // they lie beyond x.
    ZC_MEMBER void ask(u32 (&word)[Z_CHANNELS + 1], i64 at, bool inside, u32 last) const {
        const i64 first = at >> 2, behind = (p.bytes >> 2) - first;
        const int begin = first < 0 ? (int)-first : 0, end = !inside ? 0 : behind > Z_CHANNELS ? Z_CHANNELS + 1 : (int)behind;
        const u32 *const from = (const u32 *)p.x + first;
#pragma unroll
        for (int i = 0; i <= Z_CHANNELS; i++) word[i] = i >= begin && i < end ? from[i] : last;
    }
    // The pixels that begin at bit `bit` of these.
    static ZC_MEMBER zc_vec<u32, 4> pixels_of(u32 (&word)[Z_CHANNELS + 1], int bit) {
        zc_vec<u32, 4> r;
#pragma unroll
        for (int i = 0; i < Z_CHANNELS; i++) word[i] = bytes_of(word[i], word[i + 1], bit);
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int byte = i * Z_CHANNELS;
            r.v[i] = bytes_of(word[byte / 4], word[(byte + Z_CHANNELS - 1) / 4], byte % 4 * 8);
        }
        return r;
    }
    // Of four pixels of each of so many lines, from `row` of the tile's on.
    template <int N> ZC_MEMBER void lay(const zc_vec<u32, 4> (&pixels)[N], int row, int four) const {
#pragma unroll
        for (int e = 0; e < N; e += QUAD_HIGH) {
            if (row + e >= HIGH) break;
            zc_vec<u32, 4> *const to = (zc_vec<u32, 4> *)(image + (row + e) / QUAD_HIGH * LINE) + four * QUAD_HIGH;
#pragma unroll
            for (int quad = 0; quad < QUAD_HIGH; quad++) {
                zc_vec<u32, 4> v;
#pragma unroll
                for (int i = 0; i < 4; i++) v.v[i] = pixels[e + i / QUAD_WIDE].v[quad * QUAD_WIDE + i % QUAD_WIDE];
                to[quad] = v;
            }
        }
    }
    // Four pixels of each of some lines a thread, all of which are asked for before the first is needed.
    ZC_MEMBER void load_image(int number, int top, int left) const {
        constexpr int FOURS = WIDE / 4, BATCH = 4;
        const u32 nothing = (u32)*(const u8 *)p.x_zero * 0x01010101u, last = last_bytes();
        for (int i = threadIdx.x; i < (HIGH + BATCH - 1) / BATCH * FOURS; i += THREADS) {
            const int row = i / FOURS * BATCH, four = i - i / FOURS * FOURS, x = left + four * 4;
            u32 word[BATCH][Z_CHANNELS + 1];
            i64 at[BATCH];
            bool inside[BATCH];
#pragma unroll
            for (int e = 0; e < BATCH; e++) {
                const int y = top + row + e;
                at[e] = (((i64)number * w.in[1] + y) * w.in[2] + x) * Z_CHANNELS;
                inside[e] = (u32)y < (u32)w.in[1];
                ask(word[e], at[e], inside[e], last);
            }
            zc_vec<u32, 4> pixels[BATCH];
#pragma unroll
            for (int e = 0; e < BATCH; e++) {
                pixels[e] = pixels_of(word[e], (int)(at[e] & 3) * 8);
#pragma unroll
                for (int k = 0; k < 4; k++)
                    if (!inside[e] || (u32)(x + k) >= (u32)w.in[2]) pixels[e].v[k] = nothing;
            }
            lay(pixels, row, four);
        }
    }

    // ---- products ----

    static ZC_MEMBER constexpr int quad_at(int quad) { return quad / ACROSS * LINE + quad % ACROSS * QUAD; }
    // Where windows of line `line` of the tile's begin, whose first is the convolution's line `top`. Lines that the convolution
    // or the tile has not are the nearest again: where a window of the pooling has the one, it has the other.
    ZC_MEMBER const unsigned char *line_at(int line, int top) const {
        const int last = w.out[1] - 1 - top;
        return image + zx_max(zx_min(line, zx_min(last, LINES - 1)), -top) * Z_STRIDE1 / QUAD_HIGH * LINE;
    }
#if Z_TEAM > 1
    // Each line's sums by themselves, which may not have come yet.
    ZC_MEMBER void multiply(sums (&sum)[AT_ONCE], int line, int top) const {
        const u32 b = zc_smem_address(weights) + part * OWN * 8 * QUAD;
        zc_wgmma_fence();
#pragma unroll
        for (int f = 0; f < AT_ONCE; f++) {
            const u32 a = zc_smem_address(line_at(line + f, top)) + strip * TAKEN * Z_POOL_STRIDE2 * QUAD;
#pragma unroll
            for (int step = 0; step < STEPS; step++) {
                const int quad = step * 2, next = quad + 1 < QUADS ? quad_at(quad + 1) - quad_at(quad) : QUAD;
                zc_image_product((i32(&)[OWN * 4])sum[f], zc_wgmma_windows(a, quad_at(quad), next), zc_wgmma_windows(b, quad * APART, APART), step > 0);
            }
            zc_wgmma_commit();
        }
    }
    // Those of all lines but the last N.
    template <int N> static ZC_MEMBER void await() { zc_wgmma_wait<N>(); }
#else
    template <int N> static ZC_MEMBER void await() {}
    static ZC_MEMBER void product(i32 (&sum)[4], const u32 *a, const u32 *b) { Z_MMA(sum, a, b); }
    // The first of this lane's pixels and taps.
    ZC_MEMBER const unsigned char *pixels(int line, int top) const {
        const int lane = threadIdx.x % 32, col = strip * TAKEN * Z_POOL_STRIDE2 + lane / 4;
        return line_at(line, top) + (col * Z_STRIDE2 + lane % 4) * PIXEL;
    }
#if Z_W_ZERO
    // For step `step`: 1 for each channel of each tap.
    static ZC_MEMBER void ones(u32 (&b)[2], int step) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int quad = step * 2 + half, tap = quad % ACROSS * 4 + (int)threadIdx.x % 4;
            b[half] = quad < QUADS && tap < Z_KERNEL2 ? 0x01010101u >> (4 - Z_CHANNELS) * 8 : 0;
        }
    }
#endif
    ZC_MEMBER void multiply(sums (&sum)[AT_ONCE], int line, int top) const {
        const int lane = threadIdx.x % 32;
        const unsigned char *const b = weights + (part * OWN * 8 + lane / 16 * 8 + lane % 8) * PITCH + lane / 8 % 2 * QUAD;
        const unsigned char *a[AT_ONCE];
#pragma unroll
        for (int f = 0; f < AT_ONCE; f++) a[f] = pixels(line + f, top);
#pragma unroll
        for (int f = 0; f < AT_ONCE; f++)
#pragma unroll
            for (int n = 0; n < Z_EACH * OWN; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) sum[f][n][e] = 0;
#if Z_W_ZERO
        i32 windows[AT_ONCE][Z_EACH][4] = {};
#endif
#pragma unroll
        for (int step = 0; step < STEPS; step++) {
            u32 x[AT_ONCE][Z_EACH][4];
#pragma unroll
            for (int f = 0; f < AT_ONCE; f++)
#pragma unroll
                for (int i = 0; i < Z_EACH; i++)
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        const int quad = step * 2 + e / 2, col = i * 16 + e % 2 * 8;
                        x[f][i][e] = *(const u32 *)(a[f] + quad_at(quad < QUADS ? quad : 0) + col * Z_STRIDE2 * PIXEL);
                    }
#if Z_W_ZERO
            u32 one[2];
            ones(one, step);
#pragma unroll
            for (int f = 0; f < AT_ONCE; f++)
#pragma unroll
                for (int i = 0; i < Z_EACH; i++) product(windows[f][i], x[f][i], one);
#endif
#pragma unroll
            for (int n = 0; n < OWN; n += 2) {
                u32 y[4];
                zc_ldmatrix_x4(y, b + n * 8 * PITCH + step * 2 * QUAD);
#pragma unroll
                for (int f = 0; f < AT_ONCE; f++)
#pragma unroll
                    for (int i = 0; i < Z_EACH; i++) {
                        product(sum[f][i * OWN + n], x[f][i], y);
                        product(sum[f][i * OWN + n + 1], x[f][i], y + 2);
                    }
            }
        }
#if Z_W_ZERO
#pragma unroll
        for (int n = 0; n < OWN; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const i32 zero = channels[channel_of(n) + e % 2].zero;
#pragma unroll
                for (int f = 0; f < AT_ONCE; f++)
#pragma unroll
                    for (int i = 0; i < Z_EACH; i++) sum[f][i * OWN + n][e] -= zero * windows[f][i][e];
            }
#endif
    }
#endif

    // ---- the result ----

    // This lane has two neighbours of each group of channels.
    ZC_MEMBER int channel_of(int group) const { return (part * OWN + group) * 8 + (int)threadIdx.x % 4 * 2; }
    static ZC_MEMBER void raise(sums &most, const sums &sum) {
#pragma unroll
        for (int n = 0; n < Z_EACH * OWN; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) most[n][e] = zx_max(most[n][e], sum[n][e]);
    }
    static ZC_MEMBER void begin(sums &most, const sums &sum) {
#pragma unroll
        for (int n = 0; n < Z_EACH * OWN; n++)
#pragma unroll
            for (int e = 0; e < 4; e++) most[n][e] = sum[n][e];
    }
    // Bytes of the strip's columns, of which `left` is the first.
    ZC_MEMBER void keep(const sums &most, int left) const {
        const i32 zero = Z_WHOLES ? 0 : (i32)*(const Z_PLAIN *)p.y_zero;
        const int lane = threadIdx.x % 32, side = member / 32 * 16;
        meet_team(); // nobody reads those of the row before
#pragma unroll
        for (int n = 0; n < OWN; n++) {
            const zc_quant_channel c[2] = {channels[channel_of(n)], channels[channel_of(n) + 1]};
#pragma unroll
            for (int half = 0; half < Z_EACH * 2; half++) {
                const int col = side + half * 8 + lane / 4;
                const i32 *const sum = &most[half / 2 * OWN + n][half % 2 * 2];
                *(u16 *)(kept + col * KEPT + n * 8 + lane % 4 * 2) = zc_quant_two({sum[0], sum[1]}, c, zero);
            }
        }
#if Z_POOLS
#pragma unroll
        for (int half = 0; half < Z_EACH * 2; half++) {
            const int col = side + half * 8 + lane / 4;
            if ((u32)(left + col) < (u32)w.out[2]) continue;
#pragma unroll
            for (int n = 0; n < OWN; n++)
                *(u16 *)(kept + col * KEPT + n * 8 + lane % 4 * 2) = zc_traits<Z_PLAIN>::is_signed ? 0x8080 : 0;
        }
#endif
        meet_team();
    }
    template <int N, class V> ZC_MEMBER void finish(V *v, i64 pixel, int channel) const {
#if defined(Z_FUSED_CELLS) || !defined(Z_FUSED)
        zc_fused_near<N>(p.fused, v, pixel, channel, Z_OUT);
#else
        for (int e = 0; e < N; e++) v[e] = zc_fused(p.fused, v[e], pixel * Z_OUT + channel + e);
#endif
    }
    // Bytes 0 and 2 as numbers whose order they have in 16 bits without a sign, where they are the least that f16 has; or back.
    static ZC_MEMBER u32 ordered(u32 bytes) { return (bytes & 0x00FF00FFu) ^ (zc_traits<Z_PLAIN>::is_signed ? 0x00800080u : 0); }
    // y's row of which `pixel` is this strip's first one, column `left`: some channels of a pixel a thread.
    ZC_MEMBER void store(i64 pixel, int left) const {
#ifdef Z_FUSED
        constexpr int TOGETHER = PIECE;
#else
        constexpr int TOGETHER = Z_OUT % (PIECE * 2) ? PIECE : PIECE * 2;
#endif
        constexpr int PIECES = OWN * PIECE / TOGETHER;
        typedef zc_vec<u32, TOGETHER / 4> piece;
        for (int i = member; i < TAKEN * PIECES; i += Z_TEAM * 32) {
            const int col = i / PIECES, in = (i - col * PIECES) * TOGETHER, channel = part * OWN * PIECE + in;
            if (channel >= Z_OUT || left + col >= p.sides[1]) continue;
            const unsigned char *const from = kept + col * Z_POOL_STRIDE2 * KEPT + in;
            u32 most[TOGETHER / 4][2];
#pragma unroll
            for (int tap = 0; tap < Z_POOL_KERNEL2; tap++) {
                const auto next = *(const piece *)(from + tap * KEPT);
#pragma unroll
                for (int e = 0; e < TOGETHER / 2; e++) {
                    const u32 two = ordered(next.v[e / 2] >> e % 2 * 8);
                    most[e / 2][e % 2] = tap ? zc_larger(f16(), most[e / 2][e % 2], two) : two;
                }
            }
            piece y;
#pragma unroll
            for (int e = 0; e < TOGETHER / 4; e++) y.v[e] = ordered(most[e][0]) | ordered(most[e][1]) << 8;
#ifdef Z_FUSED
            i32 v[PIECE];
#pragma unroll
            for (int e = 0; e < PIECE; e++) v[e] = (i32)(Z_PLAIN)(y.v[e / 4] >> e % 4 * 8);
            finish<PIECE>(v, pixel + col, channel);
#pragma unroll
            for (int e = 0; e < PIECE / 4; e++)
                y.v[e] = zc_pack(i8(), v[e * 4], v[e * 4 + 1]) | (u32)zc_pack(i8(), v[e * 4 + 2], v[e * 4 + 3]) << 16;
#endif
            *(piece *)((Z_Y *)p.y + (pixel + col) * Z_OUT + channel) = y;
        }
    }

    ZC_MEMBER void tile(int number) const {
        const int above = number / p.across, row = above % p.down * Z_ROWS, col = (number - above * p.across) * Z_COLS; // of y
        const int top = row * Z_POOL_STRIDE1 - p.before[0], left = col * Z_POOL_STRIDE2 - p.before[1]; // of the convolution
        const int first = col + strip * TAKEN, from = first * Z_POOL_STRIDE2 - p.before[1];            // of this warp
        const int of = above / p.down;
        zc_sync(); // nobody reads the image of the tile before
        load_image(of, top * Z_STRIDE1 - w.begin[1], left * Z_STRIDE2 - w.begin[2]);
#if Z_TEAM > 1
        zc_async_fence();
#endif
        zc_sync();
        sums most = {};
        for (int i = 0; i < Z_ROWS + AHEAD && row + i < p.sides[0] + AHEAD; i++) {
            sums sum[AT_ONCE];
            multiply(sum, i * Z_POOL_STRIDE1, top);
            await<AT_ONCE - ENDING>();
#pragma unroll
            for (int f = 0; f < ENDING; f++) raise(most, sum[f]);
            const int ended = row + i - AHEAD; // of y
            if (AHEAD && i > 0) finish_row(most, of, ended, first, from);
            await<0>();
            begin(most, sum[0]);
#pragma unroll
            for (int f = 1; f < AT_ONCE; f++) raise(most, sum[f]);
            if (!AHEAD) finish_row(most, of, ended, first, from);
        }
    }
    ZC_MEMBER void finish_row(const sums &most, int of, int row, int first, int from) const {
        keep(most, from);
        store(((i64)of * p.sides[0] + row) * p.sides[1] + first, first);
    }
};

ZC_KERNEL_BESIDE(0, Z_WARPS * 32, Z_SHARES)(const __grid_constant__ zc_conv_image_quant_params p) {
    ZC_DYNAMIC_SMEM(smem);
    zc_conv_image_quant block(p, smem);
    if (zc_conv_image_quant::EARLY) block.load_constants();
    zc_begin();
    if (!zc_conv_image_quant::EARLY) block.load_constants();
    for (int i = blockIdx.x; i < p.tiles; i += gridDim.x) block.tile(i);
}
