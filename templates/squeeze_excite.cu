// SqueezeExcite of f16 or bf16 in one kernel: y = x * gate(h w2 + bias2) of h = activation(mean(x) w1^T + bias1). A cluster has an
// image, each of its blocks a part of the pixels of a slice of the channels. What the first product makes of a block's sums
// is exchanged, so that every block has all of h, and the factors of its own slice. A thread has eight neighbouring
// channels of every LINES-th pixel, and keeps the first of them from the sums to the result, which may overwrite x.
//
// spec.h: Z_X (type), Z_CHANNELS, Z_HIDDEN (numbers of h), zc_activation and zc_gate, Z_W_CONSTANT (the weights are of the
// plan), Z_SLICES and Z_PARTS (of the channels, of the pixels: blocks of a cluster), Z_HELD (pixels that a thread keeps),
// Z_PIXELS (of an image; 0: only a run knows).
#include "zc/cluster.cuh"
#include "abi/squeeze_excite.h"
#include "spec.h"
#include "zc/fused.cuh"

struct zc_squeeze_excite {
    static constexpr int THREADS = 512, EACH = 8, WARPS = THREADS / 32, BLOCKS = Z_SLICES * Z_PARTS;
    static constexpr int SLICE = Z_CHANNELS / Z_SLICES, OCTETS = SLICE / EACH, LINES = THREADS / OCTETS;
    static constexpr int HIDDEN = (Z_HIDDEN + 3) / 4 * 4; // whole pieces of 16 bytes
    static constexpr int GROUPS = SLICE < THREADS ? THREADS / SLICE : 1; // threads that add up a column
    static constexpr int COLUMNS = (SLICE + THREADS - 1) / THREADS, NUMBERS = (Z_HIDDEN + THREADS - 1) / THREADS; // of a thread
    static constexpr int ROWS1 = (Z_HIDDEN + WARPS - 1) / WARPS, ALONG1 = (OCTETS + 31) / 32; // of w1: of a warp, of a lane
    static constexpr int ROWS2 = (Z_HIDDEN + LINES - 1) / LINES;                              // of w2: of a thread
    static constexpr int EARLY = 4; // pieces of each matrix that a thread asks for before the pixels, at most
    static constexpr bool EARLY1 = ROWS1 * ALONG1 <= EARLY, EARLY2 = ROWS2 <= EARLY;
    static constexpr int PART = (Z_PIXELS + Z_PARTS - 1) / Z_PARTS;
    static constexpr bool HOLDS_ALL = Z_PIXELS && PART <= Z_HELD * LINES; // there is no other pixel
    static constexpr int UNROLL1 = EARLY1 ? ROWS1 : 1, UNROLL2 = EARLY2 ? ROWS2 : 1;
    typedef zc_vec<Z_X, EACH> vec;
    typedef zc_vec<f32, 4> four;

    struct shared {
        f32 lines[LINES][SLICE], groups[GROUPS][SLICE];
        f32 column[SLICE];          // sums over the block's pixels, then factors
        f32 parts[BLOCKS][HIDDEN];  // the first product of each block's sums
        f32 h[Z_HIDDEN];
        u64 received;
    };
    struct early {
        vec w1[EARLY1 ? ROWS1 * ALONG1 : 1], w2[EARLY2 ? ROWS2 : 1];
        f32 bias1[NUMBERS], bias2[COLUMNS];
    };

    const zc_squeeze_excite_params &p;
    shared &s;
    i64 image;
    int pixels, begin, end; // of the image; the block's
    int rank, first;       // in the cluster; channel of the slice
    int octet, line;

    ZC_MEMBER zc_squeeze_excite(const zc_squeeze_excite_params &p, shared &s) : p(p), s(s) {
        rank = BLOCKS > 1 ? (int)zc_cluster_rank() : 0;
        image = blockIdx.x / BLOCKS;
        pixels = p.pixels; // as a constant, the compiler stores results piece by piece
        const int part = Z_PIXELS ? PART : (pixels + Z_PARTS - 1) / Z_PARTS;
        begin = rank / Z_SLICES * part;
        end = part < pixels - begin ? begin + part : pixels;
        first = rank % Z_SLICES * SLICE;
        octet = (int)threadIdx.x % OCTETS;
        line = (int)threadIdx.x / OCTETS;
    }
    static ZC_MEMBER int thread() { return (int)threadIdx.x; }
    static ZC_MEMBER int lane() { return (int)threadIdx.x % 32; }
    ZC_MEMBER u32 received() const { return zc_smem_address(&s.received); }

    // ---- what does not depend on the kernel in front ----

    static ZC_MEMBER vec weights(const void *w, int row, int channel) {
        const Z_X *const from = (const Z_X *)w + (i64)row * Z_CHANNELS + channel;
        vec v;
#ifdef Z_W_CONSTANT
        zc_constant_load16(&v, from);
#else
        v = *(const vec *)from;
#endif
        return v;
    }
    // Of w1, the lane's along-th piece of the warp's i-th row; of w2, the thread's of its i-th. Rows that are not there are 0.
    ZC_MEMBER vec weights1(int i, int along) const {
        const int row = thread() / 32 + i * WARPS, at = lane() + along * 32;
        return row < Z_HIDDEN && at < OCTETS ? weights(p.w1, row, first + at * EACH) : vec{};
    }
    ZC_MEMBER vec weights2(int i) const {
        const int row = line + i * LINES;
        return line < LINES && row < Z_HIDDEN ? weights(p.w2, row, first + octet * EACH) : vec{};
    }
    ZC_MEMBER void ask_weights(early &e) const {
        if (EARLY1)
#pragma unroll
            for (int i = 0; i < ROWS1 * ALONG1; i++) e.w1[i] = weights1(i / ALONG1, i % ALONG1);
        if (EARLY2)
#pragma unroll
            for (int i = 0; i < ROWS2; i++) e.w2[i] = weights2(i);
    }
    ZC_MEMBER void prepare() const {
        if (BLOCKS == 1) return;
        if (thread() == 0) {
            zc_barrier_init(received(), 1);
            zc_barrier_fence();
            zc_barrier_expect(received(), (BLOCKS - 1) * HIDDEN * 4);
        }
        zc_cluster_meet();
    }

    // ---- sums ----

    ZC_MEMBER void ask_bias(early &e) const {
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) {
            const int at = thread() + i * THREADS;
            e.bias1[i] = p.bias1 && at < Z_HIDDEN ? zc_get(((const Z_X *)p.bias1)[at]) : 0;
        }
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            const int at = thread() + i * THREADS;
            e.bias2[i] = p.bias2 && at < SLICE ? zc_get(((const Z_X *)p.bias2)[first + at]) : 0;
        }
    }
    ZC_MEMBER int pixel_of(int i) const { return line < LINES ? begin + line + i * LINES : end; }
    ZC_MEMBER i64 place_of(int pixel) const { return (image * pixels + pixel) * Z_CHANNELS + first + octet * EACH; }
    ZC_MEMBER vec pixel(int i) const {
        return pixel_of(i) < end ? *(const vec *)((const Z_X *)p.x + place_of(pixel_of(i))) : vec{};
    }
    static ZC_MEMBER void add(f32 (&sum)[EACH], const vec &v, f32 by = 1) {
#pragma unroll
        for (int e = 0; e < EACH; e++) sum[e] += zc_get(v.v[e]) * by;
    }
    // put(column, i, sum) of each column of the slice, its thread's i-th, by the sums of all lines.
    template <class P> ZC_MEMBER void add_lines(const f32 (&sum)[EACH], P put) const {
        if (line < LINES)
#pragma unroll
            for (int e = 0; e < EACH; e += 4)
                *(four *)&s.lines[line][octet * EACH + e] = {sum[e], sum[e + 1], sum[e + 2], sum[e + 3]};
        zc_sync();
        const int group = thread() / SLICE;
        if (GROUPS > 1 && group < GROUPS) {
            f32 v = 0;
            for (int l = group; l < LINES; l += GROUPS) v += s.lines[l][thread() % SLICE];
            s.groups[group][thread() % SLICE] = v;
        }
        if (GROUPS > 1) zc_sync();
#pragma unroll
        for (int i = 0; i < COLUMNS; i++) {
            const int column = thread() + i * THREADS;
            if (column >= SLICE) break;
            f32 v = 0;
#pragma unroll
            for (int l = 0; l < (GROUPS > 1 ? GROUPS : LINES); l++) v += GROUPS > 1 ? s.groups[l][column] : s.lines[l][column];
            put(column, i, v);
        }
        zc_sync();
    }
    ZC_MEMBER void squeeze(vec (&held)[Z_HELD]) const {
        f32 sum[EACH] = {};
#pragma unroll
        for (int i = 0; i < Z_HELD; i++) held[i] = pixel(i);
#pragma unroll
        for (int i = 0; i < Z_HELD; i++) add(sum, held[i]);
        if (!HOLDS_ALL)
#pragma unroll 8
            for (int i = Z_HELD; pixel_of(i) < end; i++) add(sum, pixel(i));
        add_lines(sum, [&](int column, int, f32 v) { s.column[column] = v; });
    }

    // ---- factors ----

    ZC_MEMBER void first_product(const early &e) const {
#pragma unroll UNROLL1
        for (int i = 0; i < ROWS1; i++) {
            f32 v = 0;
#pragma unroll
            for (int along = 0; along < ALONG1; along++) {
                const int at = lane() + along * 32;
                if (at >= OCTETS) break;
                const vec w = EARLY1 ? e.w1[i * ALONG1 + along] : weights1(i, along);
#pragma unroll
                for (int k = 0; k < EACH; k++) v += zc_get(w.v[k]) * s.column[at * EACH + k];
            }
#pragma unroll
            for (int mask = 16; mask; mask >>= 1) v += zc_shfl_xor(v, mask);
            const int row = thread() / 32 + i * WARPS;
            if (lane() == 0 && row < HIDDEN) s.parts[rank][row] = row < Z_HIDDEN ? v : 0;
        }
    }
    ZC_MEMBER void exchange() const {
        if (BLOCKS > 1) zc_async_fence();
        zc_sync();
        const int to = thread();
        if (BLOCKS > 1 && to < BLOCKS && to != rank) {
            const u32 own = zc_smem_address(s.parts[rank]);
            zc_bulk_send(zc_cluster_address(own, to), own, HIDDEN * 4, zc_cluster_address(received(), to));
        }
        if (BLOCKS > 1) zc_barrier_wait_cluster(received(), 0);
    }
    ZC_MEMBER void excite(const early &e) const {
        const f32 inverse = 1 / (f32)pixels;
        f32 sum[EACH] = {};
#pragma unroll
        for (int i = 0; i < NUMBERS; i++) {
            const int at = thread() + i * THREADS;
            if (at >= Z_HIDDEN) break;
            f32 v = 0;
#pragma unroll
            for (int b = 0; b < BLOCKS; b++) v += s.parts[b][at];
            s.h[at] = zc_activation(v * inverse + e.bias1[i]);
        }
        zc_sync();
#pragma unroll UNROLL2
        for (int i = 0; i < ROWS2; i++) {
            const int row = line + i * LINES;
            if (line < LINES && row < Z_HIDDEN) add(sum, EARLY2 ? e.w2[i] : weights2(i), s.h[row]);
        }
        add_lines(sum, [&](int column, int i, f32 v) { s.column[column] = zc_gate(v + e.bias2[i]); });
    }

    // ---- the result ----

    ZC_MEMBER void put(int pixel, const vec &x, const f32 (&factor)[EACH]) const {
        zc_fused_cells<EACH> cells;
        f32 v[EACH];
        zc_vec<u32, EACH / 2> out;
        cells.load(p.fused, image * pixels + pixel, first + octet * EACH, Z_CHANNELS);
#pragma unroll
        for (int e = 0; e < EACH; e++) v[e] = zc_get(x.v[e]) * factor[e];
        cells.apply(v);
#pragma unroll
        for (int e = 0; e < EACH; e += 2) out.v[e / 2] = zc_pack(Z_X(), v[e], v[e + 1]);
        *(zc_vec<u32, EACH / 2> *)((Z_X *)p.y + place_of(pixel)) = out;
    }
    ZC_MEMBER void scale(const vec (&held)[Z_HELD]) const {
        f32 factor[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) factor[e] = s.column[octet * EACH + e];
#pragma unroll
        for (int i = 0; i < Z_HELD; i++)
            if (pixel_of(i) < end) put(pixel_of(i), held[i], factor);
        if (!HOLDS_ALL)
#pragma unroll 4
            for (int i = Z_HELD; pixel_of(i) < end; i++) put(pixel_of(i), pixel(i), factor);
    }
};

ZC_KERNEL_OF(0, 512)(const __grid_constant__ zc_squeeze_excite_params p) {
    __shared__ __align__(16) zc_squeeze_excite::shared shared;
    const zc_squeeze_excite block(p, shared);
    zc_squeeze_excite::early early;
    zc_squeeze_excite::vec held[Z_HELD];
    block.prepare();
#ifdef Z_W_CONSTANT
    block.ask_weights(early);
    zc_begin();
#else
    zc_begin();
    block.ask_weights(early);
#endif
    block.ask_bias(early);
    block.squeeze(held);
    block.first_product(early);
    block.exchange();
    block.excite(early);
    block.scale(held);
    if (zc_squeeze_excite::BLOCKS > 1) zc_cluster_meet(); // the others have what this block sent
}
