#include "cpu/bytes_winograd.h"

#include <string.h>

#include "base/mem.h"
#include "cpu/bytes_finish_avx2.h"

/* A tile of STEP x STEP results comes of SIDE x SIDE pixels, transformed to as many points. */
enum { TAPS = 3, STEP = 2, SIDE = STEP + TAPS - 1, POINTS = SIDE * SIDE };
enum { CHANNELS = 16 /* at a time */, PAIR = 2 /* of channels, whose products are one sum */ };
enum { COLUMNS = ZC_BYTE_COLUMNS, ROWS = 6, BLOCK = 60, PARTS = 8 };
_Static_assert(BLOCK % ROWS == 0, "whole tiles of sums");

/* For which 32 bits hold four times the results. */
enum { CHANNELS_MAX = INT32_MAX / (4 * TAPS * TAPS * 255 * 128) };

bool zc_winograd_fits(const zc_conv *c)
{
    const zc_window *w = &c->w;
    if (w->axes != 2 || c->groups != 1 || c->ic % CHANNELS || c->ic > CHANNELS_MAX) return false;
    for (int i = 0; i < w->axes; i++)
        if (w->kernel[i] != TAPS || w->stride[i] != 1 || w->dilation[i] != 1) return false;
    return true;
}

/* Along an axis. */
static int64_t tiles_along(const zc_conv *c, int axis)
{
    return (c->w.out[axis] + STEP - 1) / STEP;
}

static int64_t tiles_of(const zc_conv *c)
{
    return c->batch * tiles_along(c, 0) * tiles_along(c, 1);
}

/* By products, of which transforms and weights 3.6 times as long take half as many more. */
bool zc_winograd_pays(const zc_conv *c)
{
    const int64_t products = tiles_of(c) * POINTS;
    return zc_bytes_by_avx2() && zc_winograd_fits(c) &&
           products + products / 2 <= c->batch * c->out_plane * c->taps;
}

/* ---- packed weights: sums of all columns, then panels of 16 columns, in them a matrix for each
 * point, of two rows at a time ---- */

static int64_t panels_of(int64_t n)
{
    return (n + COLUMNS - 1) / COLUMNS;
}

static int16_t *weights_of(const void *packed, int64_t n)
{
    return (int16_t *)((int32_t *)packed + panels_of(n) * COLUMNS);
}

/* Of one point and panel. */
static int64_t matrix_size(int64_t channels)
{
    return channels * COLUMNS;
}

/* Twice the transform of three taps, `step` apart. */
static void transform_taps(const int *w, int step, int to[SIDE])
{
    to[0] = 2 * w[0];
    to[1] = w[0] + w[step] + w[2 * step];
    to[2] = w[0] - w[step] + w[2 * step];
    to[3] = 2 * w[2 * step];
}

static void transform_window(const int w[TAPS * TAPS], int to[SIDE][SIDE])
{
    int across[TAPS][SIDE], down[SIDE];
    for (int h = 0; h < TAPS; h++) transform_taps(w + h * TAPS, 1, across[h]);
    for (int v = 0; v < SIDE; v++) {
        transform_taps(&across[0][v], SIDE, down);
        for (int h = 0; h < SIDE; h++) to[h][v] = down[h];
    }
}

/* `to`: the column's first weight of the first point. */
static void pack_column(const zc_byte_matrix *m, const uint8_t *from, int32_t *sum, int16_t *to)
{
    for (int64_t c = 0; c < m->inner; c++) {
        int w[TAPS * TAPS], points[SIDE][SIDE];
        for (int t = 0; t < TAPS * TAPS; t++) {
            const uint8_t byte = from[t * m->outer_step + c * m->inner_step];
            w[t] = m->is_signed ? (int8_t)byte : byte - 128;
            *sum += w[t];
        }
        transform_window(w, points);
        int16_t *at = to + c / PAIR * PAIR * COLUMNS + c % PAIR;
        for (int i = 0; i < POINTS; i++)
            at[i * matrix_size(m->inner)] = (int16_t)points[i / SIDE][i % SIDE];
    }
}

typedef struct format {
    zc_pack_format base;
    zc_byte_matrix m;
} format;

static bool same_format(const zc_pack_format *fa, const zc_pack_format *fb)
{
    const format *a = (const void *)fa, *b = (const void *)fb;
    return fa->pack == fb->pack && a->m.inner == b->m.inner && a->m.n == b->m.n &&
           a->m.inner_step == b->m.inner_step;
}

static bool pack(const zc_pack_format *base, const void *from, void *to)
{
    const zc_byte_matrix *m = &((const format *)(const void *)base)->m;
    int32_t *sums = to;
    memset(to, 0, base->bytes);
    for (int64_t c = 0; c < m->n; c++)
        pack_column(m, (const uint8_t *)from + c * m->column_step, &sums[c],
                    weights_of(to, m->n) + c / COLUMNS * POINTS * matrix_size(m->inner) +
                        c % COLUMNS * PAIR);
    return true;
}

static bool gives_back(const zc_pack_format *base, const void *packed, const void *plain)
{
    return false;
}

zc_status zc_winograd_packed(zc_kctx *k, int input, const zc_byte_matrix *m, const void **out)
{
    const size_t column = (size_t)m->inner * POINTS * sizeof(int16_t) + sizeof(int32_t);
    format f = {{0, same_format, pack, NULL, gives_back, NULL}, *m};
    if (!zc_mul_size((size_t)panels_of(m->n) * COLUMNS, column, &f.base.bytes))
        return zc_fail_nomem(k->diag, "packed bytes", 0);
    return zc_packs_get_plain(k->packs, k->in[input].data, &f.base, sizeof f, out, k->diag);
}

/* ---- tiles ---- */

/* Some tiles, row by row of all images. Their pixels are, for each point, n rows of all
 * channels. */
typedef struct block {
    int64_t first, n;
    int16_t *rows;
} block;

/* Where a tile's first result is. */
typedef struct place {
    int64_t image, h, w;
} place;

static place place_of(const zc_conv *c, int64_t tile)
{
    const int64_t across = tiles_along(c, 1), down = tiles_along(c, 0);
    return (place){tile / across / down, tile / across % down * STEP, tile % across * STEP};
}

static void next_place(const zc_conv *c, place *p)
{
    p->w += STEP;
    if (p->w < c->w.out[1]) return;
    p->w = 0;
    p->h += STEP;
    if (p->h < c->w.out[0]) return;
    p->h = 0;
    p->image++;
}

static int64_t result_at(const zc_conv *c, const place *p, int64_t column)
{
    return ((p->image * c->w.out[0] + p->h) * c->w.out[1] + p->w) * c->oc + column;
}

static void list_pixels(const zc_winograd *w, const place *p, const uint8_t *to[POINTS])
{
    const zc_window *of = &w->c->w;
    for (int i = 0; i < POINTS; i++) {
        const int64_t ih = p->h - of->begin[0] + i / SIDE, iw = p->w - of->begin[1] + i % SIDE;
        const bool inside = ih >= 0 && ih < of->in[0] && iw >= 0 && iw < of->in[1];
        const int64_t pixel = (p->image * of->in[0] + ih) * of->in[1] + iw;
        to[i] = inside ? w->x + pixel * w->c->ic : w->padding;
    }
}

#if SIMD_X86
enum { LANES = ZC_AVX2_LANES, VECTORS = ZC_AVX2_VECTORS };

ZC_INLINE ZC_AVX2 __m256i widen(const uint8_t *from)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)from));
}

/* Four pixels along an axis. */
ZC_INLINE ZC_AVX2 void transform_pixels(__m256i a, __m256i b, __m256i c, __m256i d,
                                        __m256i to[SIDE])
{
    to[0] = _mm256_sub_epi16(a, c);
    to[1] = _mm256_add_epi16(b, c);
    to[2] = _mm256_sub_epi16(c, b);
    to[3] = _mm256_sub_epi16(b, d);
}

/* One tile's rows, of which those of two points are `step` apart. */
static ZC_AVX2 void transform_tile(const uint8_t *const x[POINTS], int64_t channels, int64_t step,
                                   int16_t *to)
{
    for (int64_t c = 0; c < channels; c += CHANNELS) {
        __m256i across[SIDE][SIDE], down[SIDE];
        SIMD_UNROLL
        for (int h = 0; h < SIDE; h++) {
            const uint8_t *const *row = x + h * SIDE;
            transform_pixels(widen(row[0] + c), widen(row[1] + c), widen(row[2] + c),
                             widen(row[3] + c), across[h]);
        }
        SIMD_UNROLL
        for (int v = 0; v < SIDE; v++) {
            transform_pixels(across[0][v], across[1][v], across[2][v], across[3][v], down);
            SIMD_UNROLL
            for (int h = 0; h < SIDE; h++)
                _mm256_storeu_si256((void *)(to + (h * SIDE + v) * step + c), down[h]);
        }
    }
}

/* Tiles [from, to) of the block. */
static void transform_block(const zc_winograd *w, const block *b, int64_t from, int64_t to)
{
    const uint8_t *x[POINTS];
    place at = place_of(w->c, b->first + from);
    for (int64_t i = from; i < to; i++, next_place(w->c, &at)) {
        list_pixels(w, &at, x);
        transform_tile(x, w->c->ic, b->n * w->c->ic, b->rows + i * w->c->ic);
    }
}

/* ---- products ---- */

/* Sums of a panel's columns. */
typedef int32_t row_sums[COLUMNS];

/* Some rows, whose number is a constant where this is inlined, times one matrix. */
ZC_INLINE ZC_AVX2 void multiply(int rows, const int16_t *a, const int16_t *w, int64_t channels,
                                row_sums *to)
{
    __m256i sum[ROWS][VECTORS];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    for (int64_t c = 0; c < channels; c += PAIR, w += PAIR * COLUMNS) {
        const __m256i w0 = zc_avx2_load(w), w1 = zc_avx2_load(w + PAIR * LANES);
        zc_avx2_ask_ahead(w);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i x = zc_avx2_repeat(a + r * channels + c);
            sum[r][0] = zc_avx2_add_products(sum[r][0], x, w0);
            sum[r][1] = zc_avx2_add_products(sum[r][1], x, w1);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm256_storeu_si256((void *)to[r], sum[r][0]);
        _mm256_storeu_si256((void *)(to[r] + LANES), sum[r][1]);
    }
}

typedef void (*multiply_fn)(const int16_t *a, const int16_t *w, int64_t channels, row_sums *to);

#define MULTIPLY(rows)                                                                             \
    static ZC_AVX2 void multiply_##rows(const int16_t *a, const int16_t *w, int64_t channels,      \
                                        row_sums *to)                                              \
    {                                                                                              \
        multiply(rows, a, w, channels, to);                                                        \
    }
MULTIPLY(1)
MULTIPLY(2)
MULTIPLY(3)
MULTIPLY(4)
MULTIPLY(5)
MULTIPLY(6)
#undef MULTIPLY

static const multiply_fn multiply_of[ROWS] = {multiply_1, multiply_2, multiply_3,
                                              multiply_4, multiply_5, multiply_6};

/* ---- results ---- */

/* Of four points along an axis. */
ZC_INLINE ZC_AVX2 void transform_points(const __m256i m[SIDE], __m256i to[STEP])
{
    to[0] = _mm256_add_epi32(_mm256_add_epi32(m[0], m[1]), m[2]);
    to[1] = _mm256_sub_epi32(_mm256_sub_epi32(m[1], m[2]), m[3]);
}

/* Of one tile in some columns; the sums of two points are `step` apart. */
ZC_INLINE ZC_AVX2 void transform_sums(row_sums *sums, int64_t step, int64_t column,
                                      __m256i to[STEP][STEP])
{
    __m256i down[SIDE][STEP], across[SIDE], m[SIDE];
    SIMD_UNROLL
    for (int v = 0; v < SIDE; v++) {
        SIMD_UNROLL
        for (int h = 0; h < SIDE; h++) m[h] = zc_avx2_load(sums[(h * SIDE + v) * step] + column);
        transform_points(m, down[v]);
    }
    SIMD_UNROLL
    for (int h = 0; h < STEP; h++) {
        SIMD_UNROLL
        for (int v = 0; v < SIDE; v++) across[v] = down[v][h];
        transform_points(across, to[h]);
        SIMD_UNROLL
        for (int v = 0; v < STEP; v++) to[h][v] = _mm256_srai_epi32(to[h][v], 2);
    }
}

/* One tile in a panel's columns. */
ZC_INLINE ZC_AVX2 void finish_tile(const zc_winograd *w, const zc_avx2_range *range, row_sums *sums,
                                   int64_t step, const place *tile, int64_t column)
{
    const zc_conv *c = w->c;
    const int64_t n = c->oc - column < COLUMNS ? c->oc - column : COLUMNS;
    const size_t size = w->s.scale ? 1 : sizeof(int32_t);
    __m256i y[VECTORS][STEP][STEP], result[VECTORS];
    SIMD_UNROLL
    for (int i = 0; i < VECTORS; i++) transform_sums(sums, step, i * LANES, y[i]);
    for (int i = 0; i < STEP * STEP; i++) {
        const place at = {tile->image, tile->h + i / STEP, tile->w + i % STEP};
        if (at.h == c->w.out[0] || at.w == c->w.out[1]) continue;
        SIMD_UNROLL
        for (int v = 0; v < VECTORS; v++)
            result[v] = _mm256_add_epi32(y[v][i / STEP][i % STEP],
                                         zc_avx2_load(w->offset + column + v * LANES));
        zc_avx2_finish(&w->s, range, result, column, n,
                       w->y + (size_t)result_at(c, &at, column) * size);
    }
}

/* A block in a panel's columns. */
static ZC_AVX2 void multiply_panel(const zc_winograd *w, const block *b, int64_t column)
{
    const int64_t channels = w->c->ic, size = matrix_size(channels);
    const int16_t *weights = weights_of(w->w, w->c->oc) + column / COLUMNS * POINTS * size;
    const zc_avx2_range range = zc_avx2_range_of(&w->s);
    place at = place_of(w->c, b->first);
    row_sums sums[POINTS * BLOCK];
    for (int64_t i = 0; i < POINTS; i++)
        for (int64_t r = 0; r < b->n; r += ROWS) {
            const int64_t row = i * b->n + r, rows = b->n - r < ROWS ? b->n - r : ROWS;
            multiply_of[rows - 1](b->rows + row * channels, weights + i * size, channels,
                                  sums + row);
        }
    for (int64_t i = 0; i < b->n; i++, next_place(w->c, &at))
        finish_tile(w, &range, sums + i, b->n, &at, column);
}
#else
static void transform_block(const zc_winograd *w, const block *b, int64_t from, int64_t to) {}
static void multiply_panel(const zc_winograd *w, const block *b, int64_t column) {}
#endif

/* ---- the whole ---- */

/* The epilogue of a block's tiles in columns [from, to): of what lies in one row of tiles at a
 * time. */
static void finish_block(const zc_winograd *w, const block *b, int64_t from, int64_t to)
{
    const zc_conv *c = w->c;
    const int64_t end = b->first + b->n, across = tiles_along(c, 1), n = to - from;
    for (int64_t tile = b->first, next; tile < end; tile = next) {
        place at = place_of(c, tile);
        next = (tile / across + 1) * across;
        const int64_t width = next <= end ? c->w.out[1] - at.w : (end - tile) * STEP;
        for (int i = 0; i < STEP && at.h < c->w.out[0]; i++, at.h++)
            zc_finish_run(w->epilogue, result_at(c, &at, from), n == c->oc ? 1 : width,
                          n == c->oc ? width * n : n, c->oc);
    }
}

typedef struct job {
    const zc_kctx *k;
    const zc_winograd *w;
    int64_t blocks, bands; /* of tiles, and of columns */
    int16_t *rooms;        /* for transformed blocks */
} job;

/* Block i, about as long as all others. */
static block block_of(const job *j, int64_t i, int64_t room)
{
    const zc_conv *c = j->w->c;
    const int64_t tiles = tiles_of(c), units = (tiles + ROWS - 1) / ROWS;
    const int64_t from = units * i / j->blocks * ROWS, to = units * (i + 1) / j->blocks * ROWS;
    return (block){from, (to < tiles ? to : tiles) - from,
                   j->rooms + room * POINTS * BLOCK * c->ic};
}

static void multiply_block(const job *j, const block *b, int64_t from, int64_t to)
{
    for (int64_t c = from; c < to; c += COLUMNS) {
        if (zc_stopped(j->k)) return;
        multiply_panel(j->w, b, c);
    }
    finish_block(j->w, b, from, to);
}

/* Of many blocks, all columns of some. */
static void blocks_part(void *arg, int i)
{
    const job *j = arg;
    for (int64_t n = j->blocks * i / PARTS; n < j->blocks * (i + 1) / PARTS; n++) {
        const block b = block_of(j, n, i);
        transform_block(j->w, &b, 0, b.n);
        multiply_block(j, &b, 0, j->w->c->oc);
    }
}

/* Of few, first a part of one's tiles, then a part of its columns. */
static void transform_part(void *arg, int i)
{
    const job *j = arg;
    const block b = block_of(j, i / PARTS, i / PARTS);
    transform_block(j->w, &b, b.n * (i % PARTS) / PARTS, b.n * (i % PARTS + 1) / PARTS);
}

static void columns_part(void *arg, int i)
{
    const job *j = arg;
    const block b = block_of(j, i / j->bands, i / j->bands);
    const int64_t oc = j->w->c->oc, band = i % j->bands;
    const int64_t from = panels_of(oc) * band / j->bands * COLUMNS;
    const int64_t to = panels_of(oc) * (band + 1) / j->bands * COLUMNS;
    multiply_block(j, &b, from, to < oc ? to : oc);
}

zc_status zc_winograd_run(zc_kctx *k, const zc_winograd *w)
{
    const int64_t panels = panels_of(w->c->oc);
    job j = {.k = k, .w = w, .blocks = (tiles_of(w->c) + BLOCK - 1) / BLOCK};
    const int64_t rooms = j.blocks < PARTS ? j.blocks : PARTS;
    const size_t room = (size_t)POINTS * BLOCK * (size_t)w->c->ic * sizeof *j.rooms;
    j.rooms = zc_scratch_get(k->scratch, (size_t)rooms * room);
    if (!j.rooms) return zc_fail_nomem(k->diag, "integer convolution", (size_t)rooms * room);
    if (j.blocks >= PARTS) {
        zc_parts(k, PARTS, blocks_part, &j);
        return ZC_OK;
    }
    j.bands = (PARTS + j.blocks - 1) / j.blocks;
    if (j.bands > panels) j.bands = panels;
    zc_parts(k, (int)j.blocks * PARTS, transform_part, &j);
    zc_parts(k, (int)(j.blocks * j.bands), columns_part, &j);
    return ZC_OK;
}
