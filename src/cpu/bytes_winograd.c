#include "cpu/bytes_winograd.h"

#include <string.h>

#include "base/mem.h"
#include "cpu/bytes_finish_avx2.h"

/* Tiles of step x step results come of side x side pixels, transformed to as many points. */
enum { TAPS = 3, SMALL = 2, LARGE = 4, SIDE = LARGE + TAPS - 1 /* at most */ };
enum { CHANNELS = 16 /* at a time */, PAIR = 2 /* of channels, whose products are one sum */ };
enum { COLUMNS = ZC_BYTE_COLUMNS, ROWS = 6, PARTS = 8 };

/* For which 32 bits hold four times the results. */
enum { CHANNELS_MAX = INT32_MAX / (4 * TAPS * TAPS * 255 * 128) };
/* Of a column's weights of one sign: then 32 bits hold 64 times the results. */
enum { SUM_MAX = INT32_MAX / (64 * 255) };

static int side_of(int step)
{
    return step + TAPS - 1;
}

static int points_of(int step)
{
    return side_of(step) * side_of(step);
}

bool zc_winograd_fits(const zc_conv *c)
{
    const zc_window *w = &c->w;
    if (w->axes != 2 || c->groups != 1 || c->ic % CHANNELS || c->ic > CHANNELS_MAX) return false;
    for (int i = 0; i < w->axes; i++)
        if (w->kernel[i] != TAPS || w->stride[i] != 1 || w->dilation[i] != 1) return false;
    return true;
}

/* Along an axis. */
static int64_t tiles_along(const zc_conv *c, int axis, int step)
{
    return (c->w.out[axis] + step - 1) / step;
}

static int64_t tiles_of(const zc_conv *c, int step)
{
    return c->batch * tiles_along(c, 0, step) * tiles_along(c, 1, step);
}

/* Products for each two channels; to read a weight takes as long as those of some tiles. */
static int64_t cost_of(const zc_conv *c, int step)
{
    enum { READING = 12 };
    return points_of(step) * (tiles_of(c, step) + READING);
}

/* Transforms, and weights 3.6 times as long, take half as many products more. */
int zc_winograd_step(const zc_conv *c)
{
    if (!zc_bytes_by_avx2() || !zc_winograd_fits(c)) return 0;
    const int64_t products = tiles_of(c, SMALL) * points_of(SMALL);
    if (products + products / 2 > c->batch * c->out_plane * c->taps) return 0;
    return cost_of(c, LARGE) < cost_of(c, SMALL) ? LARGE : SMALL;
}

/* ---- packed weights: sums of all columns, then a header, and panels of 16 columns, in them a
 * matrix for each point, of two rows at a time ---- */

typedef struct header {
    int32_t step, none[15]; /* as long as a line */
} header;

static int64_t panels_of(int64_t n)
{
    return (n + COLUMNS - 1) / COLUMNS;
}

static header *header_of(const void *packed, int64_t n)
{
    return (header *)(void *)((int32_t *)packed + panels_of(n) * COLUMNS);
}

static int16_t *weights_of(const void *packed, int64_t n)
{
    return (int16_t *)(void *)(header_of(packed, n) + 1);
}

/* Of one point and panel. */
static int64_t matrix_size(int64_t channels)
{
    return channels * COLUMNS;
}

/* Three taps, `gap` apart, for points 0, 1, -1, and of large tiles 2 and -2, and infinity: each in
 * the least whole multiple of its transform. */
static void transform_taps(int step, const int *w, int gap, int to[SIDE])
{
    const int a = w[0], b = w[gap], c = w[2 * gap];
    to[0] = a;
    to[1] = a + b + c;
    to[2] = a - b + c;
    if (step == LARGE) {
        to[3] = a + 2 * b + 4 * c;
        to[4] = a - 2 * b + 4 * c;
    }
    to[side_of(step) - 1] = c;
}

static void transform_window(int step, const int w[TAPS * TAPS], int to[SIDE][SIDE])
{
    int across[TAPS][SIDE], down[SIDE];
    for (int h = 0; h < TAPS; h++) transform_taps(step, w + h * TAPS, 1, across[h]);
    for (int v = 0; v < side_of(step); v++) {
        transform_taps(step, &across[0][v], SIDE, down);
        for (int h = 0; h < side_of(step); h++) to[h][v] = down[h];
    }
}

static void read_window(const zc_byte_matrix *m, const uint8_t *from, int64_t channel,
                        int to[TAPS * TAPS])
{
    for (int t = 0; t < TAPS * TAPS; t++) {
        const uint8_t byte = from[t * m->outer_step + channel * m->inner_step];
        to[t] = m->is_signed ? (int8_t)byte : byte - 128;
    }
}

/* `to`: the column's first weight of the first point. */
static void pack_column(int step, const zc_byte_matrix *m, const uint8_t *from, int16_t *to)
{
    for (int64_t c = 0; c < m->inner; c++) {
        int w[TAPS * TAPS], points[SIDE][SIDE];
        read_window(m, from, c, w);
        transform_window(step, w, points);
        int16_t *at = to + c / PAIR * PAIR * COLUMNS + c % PAIR;
        for (int i = 0; i < points_of(step); i++)
            at[i * matrix_size(m->inner)] = (int16_t)points[i / side_of(step)][i % side_of(step)];
    }
}

/* A column's sum; can its tiles be large? */
static bool sum_column(const zc_byte_matrix *m, const uint8_t *from, int32_t *sum)
{
    int32_t above = 0, below = 0;
    for (int64_t c = 0; c < m->inner; c++) {
        int w[TAPS * TAPS];
        read_window(m, from, c, w);
        for (int t = 0; t < TAPS * TAPS; t++) *(w[t] > 0 ? &above : &below) += w[t];
    }
    *sum = above + below;
    return above <= SUM_MAX && below >= -SUM_MAX;
}

typedef struct format {
    zc_pack_format base;
    zc_byte_matrix m;
    int step; /* at most */
} format;

static bool same_format(const zc_pack_format *fa, const zc_pack_format *fb)
{
    const format *a = (const void *)fa, *b = (const void *)fb;
    return fa->pack == fb->pack && a->m.inner == b->m.inner && a->m.n == b->m.n &&
           a->m.inner_step == b->m.inner_step && a->step == b->step;
}

static bool pack(const zc_pack_format *base, const void *from, void *to)
{
    const format *f = (const void *)base;
    const zc_byte_matrix *m = &f->m;
    int32_t *sums = to;
    bool large = f->step == LARGE;
    memset(to, 0, base->bytes);
    for (int64_t c = 0; c < m->n; c++)
        large &= sum_column(m, (const uint8_t *)from + c * m->column_step, &sums[c]);
    const int step = large ? LARGE : SMALL;
    header_of(to, m->n)->step = step;
    for (int64_t c = 0; c < m->n; c++)
        pack_column(step, m, (const uint8_t *)from + c * m->column_step,
                    weights_of(to, m->n) + c / COLUMNS * points_of(step) * matrix_size(m->inner) +
                        c % COLUMNS * PAIR);
    return true;
}

static bool gives_back(const zc_pack_format *base, const void *packed, const void *plain)
{
    return false;
}

zc_status zc_winograd_packed(zc_kctx *k, int input, const zc_byte_matrix *m, int step,
                             const void **out)
{
    const size_t weights = (size_t)m->inner * (size_t)points_of(step) * sizeof(int16_t);
    format f = {{0, same_format, pack, NULL, gives_back, NULL}, *m, step};
    if (!zc_mul_size((size_t)panels_of(m->n) * COLUMNS, weights + sizeof(int32_t), &f.base.bytes))
        return zc_fail_nomem(k->diag, "packed bytes", 0);
    f.base.bytes += sizeof(header);
    return zc_packs_get_plain(k->packs, k->in[input].data, &f.base, sizeof f, out, k->diag);
}

int zc_winograd_step_of(const void *packed, int64_t n)
{
    return header_of(packed, n)->step;
}

#if SIMD_X86
/* ---- tiles ---- */

/* Tiles of a block, at most. */
enum { SMALL_BLOCK = 60, LARGE_BLOCK = 30, BLOCK_ROWS = LARGE_BLOCK * SIDE * SIDE };
_Static_assert(SMALL_BLOCK % ROWS == 0 && LARGE_BLOCK % ROWS == 0, "whole tiles of sums");
_Static_assert(SMALL_BLOCK *(SMALL + TAPS - 1) * (SMALL + TAPS - 1) <= BLOCK_ROWS, "room");

static int64_t block_room(int step)
{
    return step == SMALL ? SMALL_BLOCK : LARGE_BLOCK;
}

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

static place place_of(const zc_conv *c, int step, int64_t tile)
{
    const int64_t across = tiles_along(c, 1, step), down = tiles_along(c, 0, step);
    return (place){tile / across / down, tile / across % down * step, tile % across * step};
}

static void next_place(const zc_conv *c, int step, place *p)
{
    p->w += step;
    if (p->w < c->w.out[1]) return;
    p->w = 0;
    p->h += step;
    if (p->h < c->w.out[0]) return;
    p->h = 0;
    p->image++;
}

static int64_t result_at(const zc_conv *c, const place *p, int64_t column)
{
    return ((p->image * c->w.out[0] + p->h) * c->w.out[1] + p->w) * c->oc + column;
}

static void list_pixels(const zc_winograd *w, int step, const place *p,
                        const uint8_t *to[SIDE * SIDE])
{
    const zc_window *of = &w->c->w;
    const int side = side_of(step);
    for (int h = 0; h < side; h++)
        for (int v = 0; v < side; v++) {
            const int64_t ih = p->h - of->begin[0] + h, iw = p->w - of->begin[1] + v;
            const bool inside = ih >= 0 && ih < of->in[0] && iw >= 0 && iw < of->in[1];
            const int64_t pixel = (p->image * of->in[0] + ih) * of->in[1] + iw;
            *to++ = inside ? w->x + pixel * w->c->ic : w->padding;
        }
}

enum { LANES = ZC_AVX2_LANES, VECTORS = ZC_AVX2_VECTORS };

ZC_INLINE ZC_AVX2 __m256i widen(const uint8_t *from)
{
    return _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)from));
}

ZC_INLINE ZC_AVX2 __m256i times(__m256i a, int log2)
{
    return _mm256_slli_epi16(a, log2);
}

/* Pixels along an axis. */
ZC_INLINE ZC_AVX2 void transform_pixels(int step, const __m256i d[SIDE], __m256i to[SIDE])
{
    if (step == SMALL) {
        to[0] = _mm256_sub_epi16(d[0], d[2]);
        to[1] = _mm256_add_epi16(d[1], d[2]);
        to[2] = _mm256_sub_epi16(d[2], d[1]);
        to[3] = _mm256_sub_epi16(d[1], d[3]);
        return;
    }
    const __m256i a = _mm256_sub_epi16(d[4], times(d[2], 2));
    const __m256i b = _mm256_sub_epi16(d[3], times(d[1], 2));
    const __m256i e = _mm256_sub_epi16(d[4], d[2]), o = _mm256_sub_epi16(d[3], d[1]);
    to[0] = _mm256_add_epi16(times(_mm256_sub_epi16(d[0], d[2]), 2), e);
    to[1] = _mm256_add_epi16(a, b);
    to[2] = _mm256_sub_epi16(a, b);
    to[3] = _mm256_add_epi16(e, times(o, 1));
    to[4] = _mm256_sub_epi16(e, times(o, 1));
    to[5] = _mm256_sub_epi16(_mm256_sub_epi16(d[5], d[3]), times(o, 2));
}

/* One tile's rows, of which those of two points are `gap` apart. The step is a constant where this
 * is inlined. */
ZC_INLINE ZC_AVX2 void transform_tile(int step, const uint8_t *const *x, int64_t channels,
                                      int64_t gap, int16_t *to)
{
    const int side = step + TAPS - 1;
    for (int64_t c = 0; c < channels; c += CHANNELS) {
        __m256i across[SIDE][SIDE], line[SIDE], down[SIDE];
        SIMD_UNROLL
        for (int h = 0; h < side; h++) {
            SIMD_UNROLL
            for (int v = 0; v < side; v++) line[v] = widen(x[h * side + v] + c);
            transform_pixels(step, line, across[h]);
        }
        SIMD_UNROLL
        for (int v = 0; v < side; v++) {
            SIMD_UNROLL
            for (int h = 0; h < side; h++) line[h] = across[h][v];
            transform_pixels(step, line, down);
            SIMD_UNROLL
            for (int h = 0; h < side; h++)
                _mm256_storeu_si256((void *)(to + (h * side + v) * gap + c), down[h]);
        }
    }
}

static ZC_AVX2 void transform_small(const uint8_t *const *x, int64_t channels, int64_t gap,
                                    int16_t *to)
{
    transform_tile(SMALL, x, channels, gap, to);
}

static ZC_AVX2 void transform_large(const uint8_t *const *x, int64_t channels, int64_t gap,
                                    int16_t *to)
{
    transform_tile(LARGE, x, channels, gap, to);
}

/* Tiles [from, to) of the block. */
static void transform_block(const zc_winograd *w, int step, const block *b, int64_t from,
                            int64_t to)
{
    const uint8_t *x[SIDE * SIDE];
    place at = place_of(w->c, step, b->first + from);
    for (int64_t i = from; i < to; i++, next_place(w->c, step, &at)) {
        list_pixels(w, step, &at, x);
        (step == SMALL ? transform_small : transform_large)(x, w->c->ic, b->n * w->c->ic,
                                                            b->rows + i * w->c->ic);
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

ZC_INLINE ZC_AVX2 __m256i sum(__m256i a, __m256i b)
{
    return _mm256_add_epi32(a, b);
}

ZC_INLINE ZC_AVX2 __m256i difference(__m256i a, __m256i b)
{
    return _mm256_sub_epi32(a, b);
}

ZC_INLINE ZC_AVX2 __m256i twice(__m256i a)
{
    return _mm256_add_epi32(a, a);
}

/* Points along an axis: twice the results; or 24, 12, 6 and 6 times. */
ZC_INLINE ZC_AVX2 void transform_points(int step, const __m256i m[SIDE], __m256i to[LARGE])
{
    const __m256i a = sum(m[1], m[2]), b = difference(m[1], m[2]);
    if (step == SMALL) {
        to[0] = sum(twice(m[0]), a);
        to[1] = difference(b, twice(m[3]));
        return;
    }
    const __m256i c = sum(m[3], m[4]), d = difference(m[3], m[4]);
    const __m256i first = sum(m[0], twice(m[0])), last = sum(m[5], twice(m[5]));
    to[0] = sum(twice(difference(first, twice(a))), c);
    to[1] = difference(d, twice(b));
    to[2] = difference(c, a);
    to[3] = difference(twice(sum(last, d)), b);
}

/* The power of two in these multiples. */
static int power_of(int step, int i)
{
    static const int large[LARGE] = {3, 2, 1, 1};
    return step == SMALL ? 1 : large[i];
}

/* Of one tile in a vector of columns; the sums of two points are `gap` apart. An odd factor goes by
 * its inverse modulo 2^32. */
ZC_INLINE ZC_AVX2 void transform_sums(int step, row_sums *sums, int64_t gap, int64_t column,
                                      __m256i to[LARGE][LARGE])
{
    const int side = step + TAPS - 1;
    const __m256i ninth = _mm256_set1_epi32(0x38e38e39);
    __m256i down[SIDE][LARGE], line[SIDE];
    SIMD_UNROLL
    for (int v = 0; v < side; v++) {
        SIMD_UNROLL
        for (int h = 0; h < side; h++) line[h] = zc_avx2_load(sums[(h * side + v) * gap] + column);
        transform_points(step, line, down[v]);
    }
    SIMD_UNROLL
    for (int h = 0; h < step; h++) {
        SIMD_UNROLL
        for (int v = 0; v < side; v++) line[v] = down[v][h];
        transform_points(step, line, to[h]);
        SIMD_UNROLL
        for (int v = 0; v < step; v++) {
            if (step == LARGE) to[h][v] = _mm256_mullo_epi32(to[h][v], ninth);
            to[h][v] = _mm256_srai_epi32(to[h][v], power_of(step, h) + power_of(step, v));
        }
    }
}

/* One tile in a panel's columns. */
ZC_INLINE ZC_AVX2 void finish_tile(int step, const zc_winograd *w, const zc_avx2_range *range,
                                   row_sums *sums, int64_t gap, const place *tile, int64_t column)
{
    const zc_conv *c = w->c;
    const int64_t n = c->oc - column < COLUMNS ? c->oc - column : COLUMNS;
    const size_t size = w->s.scale ? 1 : sizeof(int32_t);
    __m256i y[VECTORS][LARGE][LARGE], result[VECTORS];
    SIMD_UNROLL
    for (int i = 0; i < VECTORS; i++) transform_sums(step, sums, gap, i * LANES, y[i]);
    for (int i = 0; i < step * step; i++) {
        const place at = {tile->image, tile->h + i / step, tile->w + i % step};
        if (at.h >= c->w.out[0] || at.w >= c->w.out[1]) continue;
        SIMD_UNROLL
        for (int v = 0; v < VECTORS; v++)
            result[v] = _mm256_add_epi32(y[v][i / step][i % step],
                                         zc_avx2_load(w->offset + column + v * LANES));
        zc_avx2_finish(&w->s, range, result, column, n,
                       w->y + (size_t)result_at(c, &at, column) * size);
    }
}

static ZC_AVX2 void finish_small(const zc_winograd *w, const zc_avx2_range *range, row_sums *sums,
                                 int64_t gap, const place *tile, int64_t column)
{
    finish_tile(SMALL, w, range, sums, gap, tile, column);
}

static ZC_AVX2 void finish_large(const zc_winograd *w, const zc_avx2_range *range, row_sums *sums,
                                 int64_t gap, const place *tile, int64_t column)
{
    finish_tile(LARGE, w, range, sums, gap, tile, column);
}

/* A block in a panel's columns. */
static ZC_AVX2 void multiply_panel(const zc_winograd *w, int step, const block *b, int64_t column)
{
    const int64_t channels = w->c->ic, size = matrix_size(channels), points = points_of(step);
    const int16_t *weights = weights_of(w->w, w->c->oc) + column / COLUMNS * points * size;
    const zc_avx2_range range = zc_avx2_range_of(&w->s);
    place at = place_of(w->c, step, b->first);
    row_sums sums[BLOCK_ROWS];
    for (int64_t i = 0; i < points; i++)
        for (int64_t r = 0; r < b->n; r += ROWS) {
            const int64_t row = i * b->n + r, rows = b->n - r < ROWS ? b->n - r : ROWS;
            multiply_of[rows - 1](b->rows + row * channels, weights + i * size, channels,
                                  sums + row);
        }
    for (int64_t i = 0; i < b->n; i++, next_place(w->c, step, &at))
        (step == SMALL ? finish_small : finish_large)(w, &range, sums + i, b->n, &at, column);
}

/* ---- the whole ---- */

/* The epilogue of a block's tiles in columns [from, to): of what lies in one row of tiles at a
 * time. */
static void finish_block(const zc_winograd *w, int step, const block *b, int64_t from, int64_t to)
{
    const zc_conv *c = w->c;
    const int64_t end = b->first + b->n, across = tiles_along(c, 1, step), n = to - from;
    for (int64_t tile = b->first, next; tile < end; tile = next) {
        place at = place_of(c, step, tile);
        next = (tile / across + 1) * across;
        const int64_t width = next <= end ? c->w.out[1] - at.w : (end - tile) * step;
        for (int i = 0; i < step && at.h < c->w.out[0]; i++, at.h++)
            zc_finish_run(w->epilogue, result_at(c, &at, from), n == c->oc ? 1 : width,
                          n == c->oc ? width * n : n, c->oc);
    }
}

typedef struct job {
    const zc_kctx *k;
    const zc_winograd *w;
    int step;
    int64_t blocks, bands; /* of tiles, and of columns */
    int16_t *rooms;        /* for transformed blocks */
} job;

/* For one block. */
static int64_t room_of(const job *j)
{
    return points_of(j->step) * block_room(j->step) * j->w->c->ic;
}

/* Block i, about as long as all others. */
static block block_of(const job *j, int64_t i, int64_t room)
{
    const zc_conv *c = j->w->c;
    const int64_t tiles = tiles_of(c, j->step), units = (tiles + ROWS - 1) / ROWS;
    const int64_t from = units * i / j->blocks * ROWS, to = units * (i + 1) / j->blocks * ROWS;
    return (block){from, (to < tiles ? to : tiles) - from, j->rooms + room * room_of(j)};
}

static void multiply_block(const job *j, const block *b, int64_t from, int64_t to)
{
    for (int64_t c = from; c < to; c += COLUMNS) {
        if (zc_stopped(j->k)) return;
        multiply_panel(j->w, j->step, b, c);
    }
    finish_block(j->w, j->step, b, from, to);
}

/* Of many blocks, all columns of some. */
static void blocks_part(void *arg, int i)
{
    const job *j = arg;
    for (int64_t n = j->blocks * i / PARTS; n < j->blocks * (i + 1) / PARTS; n++) {
        const block b = block_of(j, n, i);
        transform_block(j->w, j->step, &b, 0, b.n);
        multiply_block(j, &b, 0, j->w->c->oc);
    }
}

/* Of few, first a part of one's tiles, then a part of its columns. */
static void transform_part(void *arg, int i)
{
    const job *j = arg;
    const block b = block_of(j, i / PARTS, i / PARTS);
    transform_block(j->w, j->step, &b, b.n * (i % PARTS) / PARTS, b.n * (i % PARTS + 1) / PARTS);
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
    const int step = zc_winograd_step_of(w->w, w->c->oc);
    job j = {.k = k, .w = w, .step = step};
    j.blocks = (tiles_of(w->c, step) + block_room(step) - 1) / block_room(step);
    const int64_t rooms = j.blocks < PARTS ? j.blocks : PARTS;
    const size_t bytes = (size_t)(rooms * room_of(&j)) * sizeof *j.rooms;
    j.rooms = zc_scratch_get(k->scratch, bytes);
    if (!j.rooms) return zc_fail_nomem(k->diag, "integer convolution", bytes);
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
#else
zc_status zc_winograd_run(zc_kctx *k, const zc_winograd *w)
{
    return ZC_OK;
}
#endif
