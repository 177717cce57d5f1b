// Normalisation of groups of channels over a plane, channels last, f16 or bf16. A thread has eight neighbouring channels of
// every LINES-th pixel, so that all reads are of whole lines.
//
// spec.h: Z_X (type), Z_S (of scale and bias), Z_CHANNELS, Z_GROUPS, Z_SILU: y * sigmoid(y).
// Entries: 0 statistics of the parts of each image; 1 joins them and writes the result, which may overwrite x.
#include "zc/device.cuh"
#include "abi/plane_norm.h"
#include "spec.h"
#include "zc/fused.cuh"

struct zc_plane_norm {
    static constexpr int THREADS = 512, EACH = 8, OCTETS = Z_CHANNELS / EACH, LINES = THREADS / OCTETS;
    static constexpr int WIDTH = Z_CHANNELS / Z_GROUPS; // of a group
    static constexpr int TEAM = 8, TEAMS = THREADS / TEAM; // threads that join a group's states
    static constexpr int AHEAD = 8;                        // pixels that are asked for at once
    typedef zc_vec<Z_X, EACH> vec;
    struct state {
        f32 mean, squares; // the sum of squared differences from it
    };

    const zc_plane_norm_params &p;
    i64 image, begin, end; // pixels of the block
    int octet, line;

    ZC_MEMBER zc_plane_norm(const zc_plane_norm_params &p, i64 chunk) : p(p), image(blockIdx.y) {
        begin = (i64)blockIdx.x * chunk;
        end = begin + chunk < p.pixels ? begin + chunk : p.pixels;
        octet = (int)threadIdx.x % OCTETS;
        line = (int)threadIdx.x / OCTETS;
    }
    ZC_MEMBER i64 place_of(i64 pixel) const { return (image * p.pixels + pixel) * Z_CHANNELS + octet * EACH; }

    // work(vector, pixel) of the thread's pixels, in order.
    template <class F> ZC_MEMBER void walk(F work) const {
        const Z_X *const x = (const Z_X *)p.x;
        for (i64 pixel = line < LINES ? begin + line : end; pixel < end; pixel += AHEAD * LINES) {
            vec v[AHEAD];
#pragma unroll
            for (int i = 0; i < AHEAD; i++) // behind the end any will do
                v[i] = *(const vec *)(x + place_of(pixel + i * LINES < end ? pixel + i * LINES : pixel));
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                if (pixel + i * LINES < end) work(v[i], pixel + i * LINES);
        }
    }

    static ZC_MEMBER f32 team_sum(f32 v) {
#pragma unroll
        for (int mask = TEAM / 2; mask; mask >>= 1) v += zc_shfl_xor(v, mask);
        return v;
    }
    // put(group, elements, state) by one thread for each group, of `count` states by at(group, i) with size(i) elements.
    template <class A, class N, class P> static ZC_MEMBER void join(int count, A at, N size, P put) {
        const int lane = (int)threadIdx.x % TEAM;
        for (int first = 0; first < Z_GROUPS; first += TEAMS) {
            const int group = first + (int)threadIdx.x / TEAM, own = group < Z_GROUPS ? group : 0;
            f32 n = 0, sum = 0, squares = 0;
            for (int i = lane; i < count; i += TEAM) {
                n += size(i);
                sum += size(i) * at(own, i).mean;
            }
            n = team_sum(n);
            const f32 mean = team_sum(sum) / n;
            for (int i = lane; i < count; i += TEAM) {
                const state s = at(own, i);
                const f32 d = s.mean - mean;
                if (size(i) > 0) squares += s.squares + size(i) * d * d;
            }
            squares = team_sum(squares);
            if (lane == 0 && group < Z_GROUPS) put(group, n, state{mean, squares});
        }
    }

    // ---- statistics ----

    // The pixels that a line of threads has.
    ZC_MEMBER f32 size_of(int line) const {
        const i64 n = end - begin - line;
        return n > 0 ? (f32)((n + LINES - 1) / LINES) : 0;
    }
    // By channel: sums of differences from the thread's first element, which lies within the spread of the others.
    ZC_MEMBER void channels(state (*lines)[Z_CHANNELS]) const {
        f32 zero[EACH], sum[EACH], squares[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) zero[e] = sum[e] = squares[e] = 0;
        bool first = true;
        walk([&](const vec &v, i64) {
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const f32 x = zc_get(v.v[e]);
                zero[e] = first ? x : zero[e];
                const f32 d = x - zero[e];
                sum[e] += d;
                squares[e] += d * d;
            }
            first = false;
        });
        if (line >= LINES) return;
        const f32 n = size_of(line), inverse = n > 0 ? 1 / n : 0;
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const f32 off = sum[e] * inverse, rest = squares[e] - sum[e] * off;
            lines[line][octet * EACH + e] = state{zero[e] + off, rest < 0 ? 0 : rest};
        }
    }
    ZC_MEMBER void statistics(state (*lines)[Z_CHANNELS]) const {
        channels(lines);
        zc_sync();
        state *const to = (state *)p.states + (image * p.parts + blockIdx.x) * Z_GROUPS;
        join(LINES * WIDTH, [&](int group, int i) { return lines[i / WIDTH][group * WIDTH + i % WIDTH]; },
             [&](int i) { return size_of(i / WIDTH); }, [&](int group, f32, state s) { to[group] = s; });
    }

    // ---- the result ----

    // What became of each group: its mean, and 1 / sqrt(variance + eps) in place of the squares.
    ZC_MEMBER void groups(state *parts, state *out) const {
        const state *const from = (const state *)p.states + image * p.parts * Z_GROUPS;
        const int count = (int)p.parts * Z_GROUPS;
#pragma unroll 8
        for (int i = threadIdx.x; i < count; i += THREADS) parts[i] = from[i];
        zc_sync();
        join((int)p.parts, [&](int group, int i) { return parts[i * Z_GROUPS + group]; },
             [&](int i) { return (f32)((i + 1) * p.chunk < p.pixels ? p.chunk : p.pixels - i * p.chunk); },
             [&](int group, f32 n, state s) { out[group] = state{s.mean, 1 / zx_sqrt(s.squares / (n * WIDTH) + p.eps)}; });
        zc_sync();
    }
    ZC_MEMBER void result(const state *group) const {
        f32 mean[EACH], scale[EACH], bias[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const int channel = octet * EACH + e;
            const state s = group[channel / WIDTH];
            mean[e] = s.mean;
            scale[e] = s.squares * (f32)zc_get(((const Z_S *)p.scale)[channel]);
            bias[e] = zc_get(((const Z_S *)p.bias)[channel]);
        }
        walk([&](const vec &x, i64 pixel) {
            f32 v[EACH];
            vec out;
            zc_fused_cells<EACH> cells;
            cells.load(p.fused, image * p.pixels + pixel, octet * EACH, Z_CHANNELS);
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                v[e] = (zc_get(x.v[e]) - mean[e]) * scale[e] + bias[e];
#ifdef Z_SILU
                v[e] = v[e] / (1 + zx_exp(-v[e]));
#endif
            }
            cells.apply(v);
#pragma unroll
            for (int e = 0; e < EACH; e++) out.v[e] = zc_put<Z_X>(v[e]);
            *(vec *)((Z_X *)p.y + place_of(pixel)) = out;
        });
    }
};

ZC_KERNEL_OF(0, 512)(const __grid_constant__ zc_plane_norm_params p) {
    __shared__ zc_plane_norm::state lines[zc_plane_norm::LINES][Z_CHANNELS];
    zc_begin();
    zc_plane_norm(p, p.chunk).statistics(lines);
}

ZC_KERNEL_OF(1, 512)(const __grid_constant__ zc_plane_norm_params p) {
    __shared__ zc_plane_norm::state parts[ZC_PLANE_NORM_STATES], group[Z_GROUPS];
    zc_begin();
    const zc_plane_norm block(p, p.chunk_of_result);
    block.groups(parts, group);
    block.result(group);
}
