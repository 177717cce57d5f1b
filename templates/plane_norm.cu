// Normalisation of groups of channels over a plane, channels last, f16 or bf16. A thread has eight neighbouring channels of
// so many-th pixel (a line), so that all reads are of whole lines. How many channels there are is a parameter: networks
// have stages of many widths.
//
// spec.h: Z_X (type), Z_S (of scale and bias), Z_GROUPS, Z_RUN (neighbouring channels of one group whose sums a thread keeps
// as one: 8, 4, 2 or 1), Z_SILU: y * sigmoid(y).
// Entries: 0 statistics of the parts of each image; 1 joins them and writes the result, which may overwrite x.
#include "zc/device.cuh"
#include "abi/plane_norm.h"
#include "spec.h"
#include "zc/fused.cuh"
#include "zc/index.cuh"

struct zc_plane_norm {
    static constexpr int THREADS = 512, EACH = 8, RUN = Z_RUN, RUNS = EACH / RUN;
    static constexpr int TEAM = ZC_PLANE_NORM_TEAM(Z_GROUPS), TEAMS = THREADS / TEAM; // threads that join a group's states
    static constexpr int STATES = (THREADS * RUNS / Z_GROUPS + TEAM - 1) / TEAM;      // each of them, of a part's, at most
    static constexpr int AHEAD = 8; // pixels that are asked for at once
    typedef zc_vec<Z_X, EACH> vec;
    typedef zc_fused_run<Z_S, EACH, false, true, false> row;
    struct alignas(8) state {
        f32 mean, squares; // the sum of squared differences from it
    };

    const zc_plane_norm_params &p;
    i64 image, begin, end; // pixels of the block
    int octet, line;

    ZC_MEMBER zc_plane_norm(const zc_plane_norm_params &p, i64 chunk) : p(p), image(blockIdx.y) {
        begin = (i64)blockIdx.x * chunk;
        end = begin + chunk < p.pixels ? begin + chunk : p.pixels;
        line = (int)zc_divide(threadIdx.x * EACH, p.by_channels);
        octet = (int)threadIdx.x - line * (channels() / EACH);
    }
    ZC_MEMBER int channels() const { return (int)p.by_channels.d; }
    ZC_MEMBER int width() const { return (int)p.by_width.d; } // of a group
    ZC_MEMBER int lines() const { return (int)p.by_lines.d; }
    ZC_MEMBER i64 place_of(i64 pixel) const { return (image * p.pixels + pixel) * channels() + octet * EACH; }
    ZC_MEMBER int step() const { return lines() * channels(); } // from one pixel of the thread to the next
    ZC_MEMBER i64 first() const { return line < lines() ? begin + line : end; }

    // The thread's pixels from `pixel` on; behind the end any will do.
    ZC_MEMBER void ask(i64 pixel, vec (&v)[AHEAD]) const {
        const Z_X *const from = (const Z_X *)p.x + place_of(pixel);
#pragma unroll
        for (int i = 0; i < AHEAD; i++)
            if (pixel < end) v[i] = *(const vec *)(from + (pixel + i * lines() < end ? i * step() : 0));
    }
    // work(vector, pixel, place) of the thread's pixels, in order; v: the first of them, asked for.
    template <class F> ZC_MEMBER void walk(vec (&v)[AHEAD], F work) const {
        for (i64 pixel = first(); pixel < end; pixel += AHEAD * lines()) {
            const i64 place = place_of(pixel);
            if (pixel != first()) ask(pixel, v);
#pragma unroll
            for (int i = 0; i < AHEAD; i++)
                if (pixel + i * lines() < end) work(v[i], pixel + i * lines(), place + i * step());
        }
    }

    static ZC_MEMBER f32 team_sum(f32 v) {
#pragma unroll
        for (int mask = TEAM / 2; mask; mask >>= 1) v += zc_shfl_xor(v, mask);
        return v;
    }
    // put(group, elements, state) by one thread for each group, of `count` states by at(group, i) with size(i) elements,
    // MOST of them at most for each thread of a team.
    template <int MOST, class A, class N, class P> static ZC_MEMBER void join(int count, A at, N size, P put) {
        const int lane = (int)threadIdx.x % TEAM;
        for (int first = 0; first < Z_GROUPS; first += TEAMS) {
            const int group = first + (int)threadIdx.x / TEAM, own = group < Z_GROUPS ? group : 0;
            state s[MOST];
            f32 n = 0, sum = 0, squares = 0;
#pragma unroll
            for (int i = 0; i < MOST; i++) s[i] = lane + i * TEAM < count ? at(own, lane + i * TEAM) : state{};
#pragma unroll
            for (int i = 0; i < MOST; i++) {
                const f32 own_size = lane + i * TEAM < count ? size(lane + i * TEAM) : 0;
                n += own_size;
                sum += own_size * s[i].mean;
            }
            n = team_sum(n);
            const f32 mean = team_sum(sum) / n;
#pragma unroll
            for (int i = 0; i < MOST; i++) {
                const f32 own_size = lane + i * TEAM < count ? size(lane + i * TEAM) : 0, d = s[i].mean - mean;
                if (own_size > 0) squares += s[i].squares + own_size * d * d;
            }
            squares = team_sum(squares);
            if (lane == 0 && group < Z_GROUPS) put(group, n, state{mean, squares});
        }
    }

    // ---- statistics ----

    // Elements of each run that a line of threads has.
    ZC_MEMBER f32 size_of(int line) const {
        const i64 n = end - begin - line;
        return n > 0 ? (f32)(zc_divide((u32)(n + lines() - 1), p.by_lines) * RUN) : 0;
    }
    // By runs of channels: sums of differences from the thread's first element, which lies within the spread of the others.
    ZC_MEMBER void runs(state (*own)[RUNS]) const {
        vec v[AHEAD];
        f32 zero[RUNS], sum[RUNS] = {}, squares[RUNS] = {};
        ask(first(), v);
#pragma unroll
        for (int r = 0; r < RUNS; r++) zero[r] = first() < end ? zc_get(v[0].v[r * RUN]) : 0;
        walk(v, [&](const vec &x, i64, i64) {
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                const f32 d = zc_get(x.v[e]) - zero[e / RUN];
                sum[e / RUN] += d;
                squares[e / RUN] += d * d;
            }
        });
        if (line >= lines()) return;
        const f32 n = size_of(line), inverse = n > 0 ? 1 / n : 0;
#pragma unroll
        for (int r = 0; r < RUNS; r++) {
            const f32 off = sum[r] * inverse, rest = squares[r] - sum[r] * off;
            own[threadIdx.x][r] = state{zero[r] + off, rest < 0 ? 0 : rest};
        }
    }
    ZC_MEMBER void statistics(state (*own)[RUNS]) const {
        const int runs_of_group = width() / RUN, runs_of_line = channels() / RUN;
        runs(own);
        zc_sync();
        const state *const all = own[0];
        state *const to = (state *)p.states + image * Z_GROUPS * p.parts + blockIdx.x;
        const auto line_of = [&](int i) { return (int)zc_divide((u32)i * RUN, p.by_width); };
        join<STATES>(lines() * runs_of_group,
                     [&](int group, int i) {
                         const int in_line = i - line_of(i) * runs_of_group;
                         return all[line_of(i) * runs_of_line + group * runs_of_group + in_line];
                     },
                     [&](int i) { return size_of(line_of(i)); }, [&](int group, f32, state s) { to[group * p.parts] = s; });
    }

    // ---- the result ----

    // What became of each group: its mean, and 1 / sqrt(variance + eps) in place of the squares.
    ZC_MEMBER void groups(state *out) const {
        const state *const from = (const state *)p.states + image * Z_GROUPS * p.parts;
        join<ZC_PLANE_NORM_EACH>(
            (int)p.parts, [&](int group, int i) { return from[group * p.parts + i]; },
            [&](int i) { return (f32)((i + 1) * p.chunk < p.pixels ? p.chunk : p.pixels - i * p.chunk) * width(); },
            [&](int group, f32 n, state s) { out[group] = state{s.mean, 1 / zx_sqrt(s.squares / n + p.eps)}; });
        zc_sync();
    }
    ZC_MEMBER void result(state *group) const {
        vec v[AHEAD];
        f32 mean[EACH], scale[EACH], bias[EACH];
        ask(first(), v);
        row gamma, beta;
        gamma.load(p.scale, 0, octet * EACH, channels(), 0);
        beta.load(p.bias, 0, octet * EACH, channels(), 0);
        groups(group);
#pragma unroll
        for (int e = 0; e < EACH; e++) {
            const state s = group[zc_divide((u32)(octet * EACH + e / RUN * RUN), p.by_width)];
            mean[e] = s.mean;
            scale[e] = s.squares * (f32)gamma.get(e);
            bias[e] = beta.get(e);
        }
        walk(v, [&](const vec &x, i64 pixel, i64 place) {
            f32 y[EACH];
            vec out;
            zc_fused_cells<EACH> cells;
            cells.load(p.fused, image * p.pixels + pixel, octet * EACH, channels());
#pragma unroll
            for (int e = 0; e < EACH; e++) {
                y[e] = (zc_get(x.v[e]) - mean[e]) * scale[e] + bias[e];
#ifdef Z_SILU
                y[e] = y[e] / (1 + zx_exp(-y[e]));
#endif
            }
            cells.apply(y);
#pragma unroll
            for (int e = 0; e < EACH; e++) out.v[e] = zc_put<Z_X>(y[e]);
            *(vec *)((Z_X *)p.y + place) = out;
        });
    }
};

ZC_KERNEL_OF(0, 512)(const __grid_constant__ zc_plane_norm_params p) {
    __shared__ zc_plane_norm::state own[zc_plane_norm::THREADS][zc_plane_norm::RUNS];
    zc_begin();
    zc_plane_norm(p, p.chunk).statistics(own);
}

ZC_KERNEL_OF(1, 512)(const __grid_constant__ zc_plane_norm_params p) {
    __shared__ zc_plane_norm::state group[Z_GROUPS];
    zc_begin();
    zc_plane_norm(p, p.chunk_of_result).result(group);
}
