#include "cpu/panels.h"

#include "cpu/simd.h"

/* ---- packing ---- */

typedef struct format {
    zc_pack_format base;
    zc_panel_matrix m;
} format;

static bool same_format(const zc_pack_format *fa, const zc_pack_format *fb)
{
    const zc_panel_matrix *a = &((const format *)(const void *)fa)->m,
                          *b = &((const format *)(const void *)fb)->m;
    return fa->pack == fb->pack && memcmp(a, b, sizeof *a) == 0; /* all of it is int64_t */
}

/* Runs a statement for all elements, with their indices in the constant and packed. */
#define EACH_ELEMENT(m, plain, packed, ...)                                                        \
    do {                                                                                           \
        int64_t row_ = 0; /* of a panel */                                                         \
        for (int64_t g_ = 0; g_ < (m)->groups; g_++)                                               \
            for (int64_t c_ = 0; c_ < (m)->n; c_ += ZC_PANEL)                                      \
                for (int64_t t_ = 0; t_ < (m)->taps; t_++)                                         \
                    for (int64_t d_ = 0; d_ < (m)->depth; d_++, row_++)                            \
                        for (int64_t i_ = 0; i_ < ZC_PANEL && c_ + i_ < (m)->n; i_++) {            \
                            const int64_t packed = row_ * ZC_PANEL + i_;                           \
                            const int64_t plain = g_ * (m)->group_step + t_ * (m)->tap_step +      \
                                                  d_ * (m)->depth_step +                           \
                                                  (c_ + i_) * (m)->column_step;                    \
                            __VA_ARGS__;                                                           \
                        }                                                                          \
    } while (0)

static bool pack(const zc_pack_format *base, const void *from, void *to)
{
    const zc_panel_matrix *m = &((const format *)(const void *)base)->m;
    const float *plain = from;
    float *panels = to;
    memset(to, 0, base->bytes);
    EACH_ELEMENT(m, i, at, panels[at] = plain[i]);
    return true;
}

static bool unpack(const zc_pack_format *base, const void *from, void *to)
{
    const zc_panel_matrix *m = &((const format *)(const void *)base)->m;
    const float *panels = from;
    float *plain = to;
    EACH_ELEMENT(m, i, at, plain[i] = panels[at]);
    return true;
}

static bool gives_back(const zc_pack_format *base, const void *packed, const void *plain)
{
    const zc_panel_matrix *m = &((const format *)(const void *)base)->m;
    const uint32_t *a = packed, *b = plain; /* bits: NaN is given back, too */
    bool same = true;
    EACH_ELEMENT(m, i, at, same = same && a[at] == b[i]);
    return same;
}

zc_status zc_panels_packed(zc_kctx *k, int input, const zc_panel_matrix *m, const void **out)
{
    format f = {{0, same_format, pack, unpack, gives_back, NULL}, *m};
    const size_t column = (size_t)(m->taps * m->depth) * sizeof(float);
    if (!zc_mul_size((size_t)(zc_panels_of(m->n) * ZC_PANEL * m->groups), column, &f.base.bytes))
        return zc_fail_nomem(k->diag, "packed weights", 0);
    return zc_packs_get_plain(k->packs, k->in[input].data, &f.base, sizeof f, out, k->diag);
}

/* ---- products ---- */

bool zc_panels_wanted(void)
{
    return zc_simd_level() == ZC_SIMD_AVX2;
}

#if SIMD_X86
#define AVX2      __attribute__((target("avx2,fma")))
#define ZC_INLINE static inline __attribute__((always_inline))

enum { LANES = 8, VECTORS = ZC_PANEL / LANES, ROWS = 6 };

/* The first n of a vector. */
ZC_INLINE AVX2 __m256i mask_of(int64_t n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

ZC_INLINE AVX2 __m256 load(const float *from, int64_t n)
{
    return n >= LANES ? _mm256_loadu_ps(from) : _mm256_maskload_ps(from, mask_of(n));
}

/* What follows a sum of n <= LANES results. Relu keeps NaN, which the second operand gives. */
ZC_INLINE AVX2 void store(const zc_panel_product *p, __m256 v, int64_t at, int64_t n)
{
    if (p->residual) v = _mm256_add_ps(v, load(p->residual + at, n));
    if (p->relu) v = _mm256_max_ps(_mm256_setzero_ps(), v);
    if (n >= LANES)
        _mm256_storeu_ps(p->y + at, v);
    else
        _mm256_maskstore_ps(p->y + at, mask_of(n), v);
}

/* Rows from `row` on by n columns from `column` on, of which there are as many vectors; rows and
 * vectors are constants where this is inlined. */
ZC_INLINE AVX2 void tile(int rows, int vectors, const zc_panel_product *p, int64_t row,
                         int64_t column, int64_t n, const float *const *x, int64_t shift)
{
    const float *w = p->w + column * p->taps * p->depth;
    __m256 sum[ROWS][VECTORS];
    SIMD_UNROLL
    for (int v = 0; v < vectors; v++) {
        const __m256 first =
            p->bias ? load(p->bias + column + v * LANES, n - v * LANES) : _mm256_setzero_ps();
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) sum[r][v] = first;
    }
    for (int64_t t = 0; t < p->taps; t++) {
        const float *from[ROWS];
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) from[r] = x[t * ZC_PANEL_BLOCK + row + r] + shift;
        for (int64_t d = 0; d < p->depth; d++, w += ZC_PANEL) {
            __m256 columns[VECTORS];
            SIMD_UNROLL
            for (int v = 0; v < vectors; v++) columns[v] = _mm256_loadu_ps(w + v * LANES);
            SIMD_UNROLL
            for (int r = 0; r < rows; r++) {
                const __m256 one = _mm256_broadcast_ss(from[r] + d);
                SIMD_UNROLL
                for (int v = 0; v < vectors; v++)
                    sum[r][v] = _mm256_fmadd_ps(one, columns[v], sum[r][v]);
            }
        }
    }
    int64_t at = row * p->ldy + column;
    if (n == vectors * LANES && !p->residual && !p->relu) {
        SIMD_UNROLL
        for (int r = 0; r < rows; r++, at += p->ldy) {
            SIMD_UNROLL
            for (int v = 0; v < vectors; v++) _mm256_storeu_ps(p->y + at + v * LANES, sum[r][v]);
        }
        return;
    }
    SIMD_UNROLL
    for (int r = 0; r < rows; r++, at += p->ldy) {
        SIMD_UNROLL
        for (int v = 0; v < vectors; v++) store(p, sum[r][v], at + v * LANES, n - v * LANES);
    }
}

typedef void (*tile_fn)(const zc_panel_product *p, int64_t row, int64_t column, int64_t n,
                        const float *const *x, int64_t shift);

#define TILE(rows, vectors)                                                                        \
    static AVX2 void tile_##rows##_##vectors(const zc_panel_product *p, int64_t row,               \
                                             int64_t column, int64_t n, const float *const *x,     \
                                             int64_t shift)                                        \
    {                                                                                              \
        tile(rows, vectors, p, row, column, n, x, shift);                                          \
    }
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
#undef TILES
#undef TILE

static tile_fn tile_of(int64_t rows, int64_t n)
{
    static const tile_fn tiles[ROWS][VECTORS] = {{tile_1_1, tile_1_2}, {tile_2_1, tile_2_2},
                                                 {tile_3_1, tile_3_2}, {tile_4_1, tile_4_2},
                                                 {tile_5_1, tile_5_2}, {tile_6_1, tile_6_2}};
    return tiles[rows - 1][n > LANES];
}

void zc_panels_multiply(const zc_panel_product *p, int64_t m, const float *const *x, int64_t shift,
                        int64_t from, int64_t to)
{
    const int64_t tiles = (m + ROWS - 1) / ROWS; /* of about the same number of rows */
    for (int64_t i = from; i < to; i++) {
        const int64_t column = i * ZC_PANEL;
        const int64_t n = p->n - column < ZC_PANEL ? p->n - column : ZC_PANEL;
        for (int64_t t = 0; t < tiles; t++) {
            const int64_t row = m * t / tiles, rows = m * (t + 1) / tiles - row;
            tile_of(rows, n)(p, row, column, n, x, shift);
        }
    }
}
#else
void zc_panels_multiply(const zc_panel_product *p, int64_t m, const float *const *x, int64_t shift,
                        int64_t from, int64_t to)
{
}
#endif
