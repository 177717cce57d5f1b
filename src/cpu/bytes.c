#include "cpu/bytes.h"

#include <string.h>

#include "cpu/bytes_avx2.h"
#include "cpu/bytes_finish.h"
#include "cpu/bytes_tiles.h"

enum { LANES = ZC_BYTE_COLUMNS, DEEP = 4, PANELS = 4, ROWS = 12 };

/* ---- packed matrices: sums of all columns, then panels of 16 columns, in them four rows at a
 * time, then what AVX2 knows of each panel ---- */

static int64_t panels_of(int64_t n)
{
    return (n + LANES - 1) / LANES;
}

/* Deeper ones are multiplied plainly. */
static bool by_avx2(int64_t k)
{
    return zc_bytes_by_avx2() && k <= ZC_AVX2_DEPTH;
}

static bool packed_bytes(int64_t k, int64_t n, size_t *bytes)
{
    const size_t column = (size_t)zc_bytes_row(k) + sizeof(int32_t);
    const size_t stretches = by_avx2(k) ? (size_t)zc_avx2_stretches(zc_bytes_row(k)) : 0;
    return zc_mul_size((size_t)panels_of(n), LANES * column + stretches * sizeof(zc_avx2_stretch),
                       bytes);
}

static void pack_column(const zc_byte_matrix *m, const uint8_t *from, int32_t *sum, int8_t *to)
{
    const uint8_t flip = m->is_signed ? 0 : 0x80;
    for (int64_t p = 0; p < m->k; p++) {
        uint8_t v = from[p / m->inner * m->outer_step + p % m->inner * m->inner_step] ^ flip;
        to[p / DEEP * LANES * DEEP + p % DEEP] = (int8_t)v;
        *sum = (int32_t)((uint32_t)*sum + (uint32_t)(int8_t)v);
    }
}

static void pack_matrix(const zc_byte_matrix *m, const uint8_t *from, void *to, size_t bytes)
{
    int32_t *sums = to;
    int8_t *panels = (int8_t *)(sums + panels_of(m->n) * LANES);
    const int64_t depth = zc_bytes_row(m->k);
    memset(to, 0, bytes);
    for (int64_t c = 0; c < m->n; c++)
        pack_column(m, from + c * m->column_step, &sums[c],
                    panels + c / LANES * LANES * depth + c % LANES * DEEP);
    if (!by_avx2(m->k)) return;
    zc_avx2_stretch *known = (void *)(panels + panels_of(m->n) * LANES * depth);
    for (int64_t i = 0; i < panels_of(m->n); i++)
        zc_avx2_weigh(panels + i * LANES * depth, depth, known + i * zc_avx2_stretches(depth));
}

typedef struct format {
    zc_pack_format base;
    int64_t offset;
    zc_byte_matrix m;
} format;

static bool same_format(const zc_pack_format *fa, const zc_pack_format *fb)
{
    const format *a = (const void *)fa, *b = (const void *)fb;
    return fa->pack == fb->pack && a->offset == b->offset && a->m.k == b->m.k && a->m.n == b->m.n &&
           a->m.inner == b->m.inner && a->m.outer_step == b->m.outer_step &&
           a->m.inner_step == b->m.inner_step && a->m.column_step == b->m.column_step;
}

static bool pack(const zc_pack_format *base, const void *from, void *to)
{
    const format *f = (const void *)base;
    pack_matrix(&f->m, (const uint8_t *)from + f->offset, to, base->bytes);
    return true;
}

/* Originals stay: they are read where sizes or devices differ. */
static bool gives_back(const zc_pack_format *base, const void *packed, const void *plain)
{
    return false;
}

zc_status zc_bytes_packed(zc_kctx *k, int input, int64_t offset, const zc_byte_matrix *m,
                          const void **out)
{
    const zc_tensor *t = &k->in[input];
    size_t bytes;
    if (!packed_bytes(m->k, m->n, &bytes)) return zc_fail_nomem(k->diag, "packed bytes", 0);
    if (k->packs && (k->const_in >> input & 1)) {
        const format f = {{bytes, same_format, pack, NULL, gives_back, NULL}, offset, *m};
        return zc_packs_get_plain(k->packs, t->data, &f.base, sizeof f, out, k->diag);
    }
    void *room = zc_scratch_get(k->scratch, bytes);
    if (!room) return zc_fail_nomem(k->diag, "packed bytes", bytes);
    pack_matrix(m, (const uint8_t *)t->data + offset, room, bytes);
    *out = room;
    return ZC_OK;
}

zc_status zc_bytes_unsigned(zc_kctx *k, int input, int *zero, const uint8_t **out)
{
    const zc_tensor *t = &k->in[input];
    const size_t n = (size_t)zc_tensor_numel(t);
    *out = t->data;
    if (t->dtype == ZC_U8) return ZC_OK;
    uint8_t *to = zc_scratch_get(k->scratch, n);
    if (!to) return zc_fail_nomem(k->diag, "bytes", n);
    const uint8_t *from = t->data;
    for (size_t i = 0; i < n; i++) to[i] = from[i] ^ 0x80;
    *zero += 128;
    *out = to;
    return ZC_OK;
}

/* ---- products ---- */

void zc_bytes_offset(const void *packed, int64_t k, int64_t n, int a_zero, int b_zero,
                     const int32_t *bias, int32_t *to)
{
    const int32_t *sums = packed;
    const uint32_t both = (uint32_t)k * (uint32_t)a_zero * (uint32_t)b_zero;
    memset(to, 0, (size_t)zc_bytes_room(n) * sizeof *to);
    for (int64_t c = 0; c < n; c++)
        to[c] =
            (int32_t)((bias ? (uint32_t)bias[c] : 0) + both - (uint32_t)a_zero * (uint32_t)sums[c]);
}

typedef void (*tile_fn)(const zc_byte_product *p, int64_t rows, const uint8_t *a, int64_t lda,
                        int64_t from, int64_t n, void *y, int64_t ldy);

static const int8_t *panel_at(const zc_byte_product *p, int64_t column)
{
    const int8_t *panels = (const int8_t *)((const int32_t *)p->b + panels_of(p->n) * LANES);
    return panels + column * zc_bytes_row(p->k);
}

static zc_avx2_panels avx2_panels(const zc_byte_product *p, int64_t column)
{
    const zc_avx2_stretch *known = (const void *)panel_at(p, panels_of(p->n) * LANES);
    return (zc_avx2_panels){panel_at(p, column),
                            known + column / LANES * zc_avx2_stretches(zc_bytes_row(p->k))};
}

static void tile_plainly(const zc_byte_product *p, int64_t rows, const uint8_t *a, int64_t lda,
                         int64_t from, int64_t n, void *y, int64_t ldy)
{
    int32_t sums[PANELS * LANES];
    for (int64_t r = 0; r < rows; r++, a += lda) {
        const uint32_t part = (uint32_t)zc_bytes_part(p, a);
        for (int64_t i = 0; i < n; i++) {
            const int8_t *b = panel_at(p, from + i / LANES * LANES) + i % LANES * DEEP;
            uint32_t sum = (uint32_t)p->offset[from + i] - part;
            for (int64_t d = 0; d < p->k; d++)
                sum += (uint32_t)(a[d] * b[d / DEEP * DEEP * LANES + d % DEEP]);
            sums[i] = (int32_t)sum;
        }
        zc_bytes_finish(&p->s, sums, from, n, (uint8_t *)y + (size_t)(r * ldy) * zc_bytes_size(p));
    }
}

#if SIMD_X86
/* rows x (panels * 16) sums in registers; both counts are constants where this is inlined. */
ZC_INLINE ZC_VNNI void tile_vnni(int rows, int panels, const zc_byte_product *p, const uint8_t *a,
                                 int64_t lda, int64_t from, int64_t n, void *y, int64_t ldy)
{
    const int64_t depth = zc_bytes_row(p->k);
    const int8_t *b = panel_at(p, from);
    const zc_byte_range range = zc_bytes_range(&p->s);
    __m512i sum[ROWS][PANELS];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        SIMD_UNROLL
        for (int v = 0; v < panels; v++)
            sum[r][v] = _mm512_loadu_si512(p->offset + from + v * LANES);
    }
    for (int64_t d = 0; d < depth; d += DEEP, b += DEEP * LANES) {
        __m512i w[PANELS];
        SIMD_UNROLL
        for (int v = 0; v < panels; v++) w[v] = _mm512_loadu_si512(b + v * LANES * depth);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, a + r * lda + d, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
            SIMD_UNROLL
            for (int v = 0; v < panels; v++) sum[r][v] = _mm512_dpbusd_epi32(sum[r][v], x, w[v]);
        }
    }
    __m512 scale[PANELS];
    SIMD_UNROLL
    for (int v = 0; v < panels; v++)
        scale[v] = zc_bytes_scales16(&p->s, from + v * LANES, zc_bytes_mask(n - v * LANES));
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        const __m512i part = _mm512_set1_epi32(zc_bytes_part(p, a + r * lda));
        SIMD_UNROLL
        for (int v = 0; v < panels; v++)
            zc_bytes_finish16(&p->s, &range, scale[v], _mm512_sub_epi32(sum[r][v], part),
                              from + v * LANES, zc_bytes_mask(n - v * LANES),
                              (uint8_t *)y + (size_t)(r * ldy + v * LANES) * zc_bytes_size(p));
    }
}

/* As many rows as leave registers for the panels: 24 sums. */
#define TILE(rows, panels)                                                                         \
    static ZC_VNNI void tile_##rows##_##panels(const zc_byte_product *p, int64_t count,            \
                                               const uint8_t *a, int64_t lda, int64_t from,        \
                                               int64_t n, void *y, int64_t ldy)                    \
    {                                                                                              \
        (void)count;                                                                               \
        tile_vnni(rows, panels, p, a, lda, from, n, y, ldy);                                       \
    }
#define TILES(rows) TILE(rows, 1) TILE(rows, 2) TILE(rows, 3) TILE(rows, 4)
TILES(1)
TILES(2)
TILES(3)
TILES(4)
TILES(5)
TILES(6)
TILE(12, 1)
TILE(12, 2)
#undef TILES
#undef TILE

static tile_fn vnni_tile(int64_t rows, int64_t panels)
{
#define ROW(rows)                                                                                  \
    {                                                                                              \
        tile_##rows##_1, tile_##rows##_2, tile_##rows##_3, tile_##rows##_4                         \
    }
    static const tile_fn few[6][PANELS] = {ROW(1), ROW(2), ROW(3), ROW(4), ROW(5), ROW(6)};
#undef ROW
    static const tile_fn many[] = {tile_12_1, tile_12_2};
    return rows == ROWS ? many[panels - 1] : few[rows - 1][panels - 1];
}
#endif

/* Rows of the next tile, of `left`. */
static int64_t tile_rows(int64_t left, int64_t panels)
{
    if (left >= ROWS && panels <= 2) return ROWS;
    return left < ROWS / 2 ? left : ROWS / 2;
}

/* Rows that tiles take, in whole tiles: sums deep enough to be worth it. */
static int64_t tiled_rows(const zc_byte_product *p, int64_t m)
{
    return p->k >= ZC_TILE_DEPTH / 2 && m >= ZC_TILE_ROWS && zc_has_tiles()
               ? m / ZC_TILE_ROWS * ZC_TILE_ROWS
               : 0;
}

static void multiply_tiled(const zc_byte_product *p, int64_t m, const uint8_t *a, int64_t lda,
                           int64_t from, int64_t to, void *y, int64_t ldy)
{
    zc_tiles_begin();
    for (int64_t c = from; c < to; c += 2 * LANES)
        for (int64_t r = 0; r < m; r += 2 * ZC_TILE_ROWS)
            zc_tiles_multiply(p, panel_at(p, c),
                              m - r < 2 * ZC_TILE_ROWS ? m - r : 2 * ZC_TILE_ROWS, a + r * lda, lda,
                              c, to - c < 2 * LANES ? to - c : 2 * LANES,
                              (uint8_t *)y + (size_t)(r * ldy + c - from) * zc_bytes_size(p), ldy);
    zc_tiles_end();
}

static void multiply_rows(const zc_byte_product *p, int64_t m, const uint8_t *a, int64_t lda,
                          int64_t from, int64_t to, void *y, int64_t ldy)
{
    const bool vnni = zc_has_vnni();
    if (by_avx2(p->k)) {
        const zc_avx2_panels panels = avx2_panels(p, from);
        zc_avx2_multiply(&panels, p, m, a, lda, from, to, y, ldy);
        return;
    }
    for (int64_t c = from; c < to; c += PANELS * LANES) {
        const int64_t n = to - c < PANELS * LANES ? to - c : PANELS * LANES, panels = panels_of(n);
        for (int64_t r = 0, rows; r < m; r += rows) {
            rows = tile_rows(m - r, panels);
            tile_fn tile = tile_plainly;
#if SIMD_X86
            if (vnni) tile = vnni_tile(rows, panels);
#endif
            tile(p, rows, a + r * lda, lda, c, n,
                 (uint8_t *)y + (size_t)(r * ldy + c - from) * zc_bytes_size(p), ldy);
        }
    }
}

void zc_bytes_multiply(const zc_byte_product *p, int64_t m, const uint8_t *a, int64_t lda,
                       int64_t from, int64_t to, void *y, int64_t ldy)
{
    const int64_t rows = tiled_rows(p, m);
    if (rows) multiply_tiled(p, rows, a, lda, from, to, y, ldy);
    if (rows < m)
        multiply_rows(p, m - rows, a + rows * lda, lda, from, to,
                      (uint8_t *)y + (size_t)(rows * ldy) * zc_bytes_size(p), ldy);
}
