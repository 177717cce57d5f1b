// Matrix products of any element type on the ordinary cores: y = epilogue(alpha * a b + beta * c).
//
// spec.h: see zc/gemm.cuh. Square tiles have 16 x 16 threads.
#include "zc/gemm.cuh"
#if Z_ROWS
#include "zc/gemv.cuh"
#else

typedef zc_compute<Z_T> number;

// One thread's share of a tile of LINES lines (rows of A, columns of B, elements T) along K: V neighbours.
template <class T, int LINES, bool ALONG_K> struct piece {
    static constexpr int V = sizeof(number) == 8 ? 2 : 4;
    static constexpr int DEPTH = ZC_GEMM_THREADS * V / LINES;
    static constexpr int LD = LINES + 16 / (int)sizeof(number); // of the tile in shared memory: [DEPTH][LD]
    zc_vec<T, V> x;

    static ZC_MEMBER int line() {
        return ALONG_K ? threadIdx.x / (DEPTH / V) : threadIdx.x % (LINES / V) * V;
    }
    static ZC_MEMBER int depth() {
        return ALONG_K ? threadIdx.x % (DEPTH / V) * V : threadIdx.x / (LINES / V);
    }
    // The tile that begins at (line0, depth0) of `lines` by `depths`; zeros beyond them.
    ZC_MEMBER void fetch(const T *from, i64 ld, i64 line0, i64 lines, i64 depth0, i64 depths, bool aligned) {
        const i64 l = line0 + line(), d = depth0 + depth();
        const i64 left = ALONG_K ? (l < lines ? depths - d : 0) : (d < depths ? lines - l : 0);
        const T *at = from + (ALONG_K ? l * ld + d : d * ld + l);
        if (aligned && left >= V) {
            x = *(const zc_vec<T, V> *)at;
            return;
        }
#pragma unroll
        for (int v = 0; v < V; v++) x.v[v] = v < left ? at[v] : T{};
    }
    ZC_MEMBER void store(number *tile) const {
#pragma unroll
        for (int v = 0; v < V; v++)
            tile[ALONG_K ? (depth() + v) * LD + line() : depth() * LD + line() + v] = zc_get(x.v[v]);
    }
};

// A thread has SIDE x SIDE elements, in groups of G neighbours, 16 groups apart.
template <int SIDE> struct square {
    static constexpr int LINES = 16 * SIDE, VECTOR = 16 / (int)sizeof(number), G = SIDE < VECTOR ? SIDE : VECTOR;
    typedef piece<Z_T, LINES, !Z_TA> piece_a;
    typedef piece<Z_B, LINES, Z_TB> piece_b;
    static constexpr int DEPTH = piece_a::DEPTH, LD = piece_a::LD, TILE = DEPTH * LD;

    static ZC_MEMBER int place(int thread, int i) { return i / G * 16 * G + thread * G + i % G; }
    static ZC_MEMBER void read(const number *line, int thread, number *out) {
#pragma unroll
        for (int g = 0; g < SIDE; g += G) {
            const zc_vec<number, G> x = *(const zc_vec<number, G> *)(line + place(thread, g));
#pragma unroll
            for (int i = 0; i < G; i++) out[g + i] = x.v[i];
        }
    }
    static ZC_MEMBER void multiply(const number *a, const number *b, Z_ACC (&sum)[SIDE][SIDE]) {
        const int down = threadIdx.x / 16, across = threadIdx.x % 16;
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            number x[SIDE], y[SIDE];
            read(a + d * LD, down, x);
            read(b + d * LD, across, y);
#pragma unroll
            for (int i = 0; i < SIDE; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++) sum[i][j] += (Z_ACC)x[i] * (Z_ACC)y[j];
        }
    }
};

ZC_DEV void simt(const zc_gemm_params &p) {
    constexpr int SIDE = Z_SIDE / 16;
    typedef square<SIDE> sq;
    ZC_DYNAMIC_SMEM(smem);
    number *const tiles = (number *)smem; // A, B, A, B
    const zc_gemm_tile at = zc_gemm_place(p.m, p.n, sq::LINES, sq::LINES);
    const bool a_aligned = p.aligned & ZC_GEMM_A_ALIGNED, b_aligned = p.aligned & ZC_GEMM_B_ALIGNED;
    const i64 begin = zc_gemm_begin(p), end = zc_gemm_end(p, begin);
    for (i64 i = blockIdx.z; i < p.batch; i += gridDim.z) {
        const zc_gemm_item item = zc_gemm_batch(p, i);
        Z_ACC sum[SIDE][SIDE] = {};
        typename sq::piece_a a;
        typename sq::piece_b b;
        a.fetch(item.a, p.a_ld, at.row, p.m, begin, end, a_aligned);
        b.fetch(item.b, p.b_ld, at.col, p.n, begin, end, b_aligned);
        a.store(tiles);
        b.store(tiles + sq::TILE);
        zc_sync();
        int now = 0;
        for (i64 k = begin + sq::DEPTH; k < end + sq::DEPTH; k += sq::DEPTH) {
            number *const next = tiles + (2 - now) * sq::TILE;
            if (k < end) {
                a.fetch(item.a, p.a_ld, at.row, p.m, k, end, a_aligned);
                b.fetch(item.b, p.b_ld, at.col, p.n, k, end, b_aligned);
            }
            sq::multiply(tiles + now * sq::TILE, tiles + (now + 1) * sq::TILE, sum);
            if (k < end) {
                a.store(next);
                b.store(next + sq::TILE);
            }
            zc_sync();
            now = 2 - now;
        }
#pragma unroll
        for (int r = 0; r < SIDE; r++) {
            const i64 row = at.row + sq::place(threadIdx.x / 16, r);
#pragma unroll
            for (int c = 0; c < SIDE; c++) {
                const i64 col = at.col + sq::place(threadIdx.x % 16, c);
                if (row >= p.m || col >= p.n) continue;
                if (zc_gemm_is_part(p))
                    zc_gemm_save_part(p, row, col, sum[r][c]);
                else
                    zc_gemm_save(p, item, row, col, sum[r][c]);
            }
        }
    }
}

#endif

#if Z_ROWS
ZC_KERNEL(0)(const __grid_constant__ zc_gemm_params p) { zc_begin(); zc_gemv<Z_ROWS>(p); }
#else
ZC_KERNEL(0)(const __grid_constant__ zc_gemm_params p) { zc_begin(); simt(p); }
#endif
#include "zc/gemm_second.cuh"
