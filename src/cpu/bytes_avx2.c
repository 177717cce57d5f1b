#include "cpu/bytes_avx2.h"

#include <string.h>

#include "cpu/bytes_finish_avx2.h"

#if SIMD_X86
enum { LANES = ZC_AVX2_LANES, VECTORS = ZC_AVX2_VECTORS, DEEP = 4, ROWS = 6, BLOCK = 66 };
enum { GROUP = DEEP * ZC_BYTE_COLUMNS, PAIRS = GROUP / 2, WIDE_BYTES = 128 << 10 };
enum { STRETCH = 128 /* groups */ };
_Static_assert(BLOCK % ROWS == 0, "whole tiles");
_Static_assert(WIDE_BYTES / sizeof(uint16_t) >= ZC_AVX2_DEPTH, "room for a row");

/* ---- products ----
 *
 * vpmaddubsw adds two products of bytes in 16 bits, which hold them if the weights of one sign are
 * no more than 128 together. Groups of four rows of a panel where all pairs are such come first;
 * the others multiply 16 bits. */

/* Do 16 bits hold both products, whatever the left operand's bytes are? */
static bool is_narrow(int a, int b)
{
    const int above = (a > 0 ? a : 0) + (b > 0 ? b : 0), below = a + b - above;
    return above <= 128 && below >= -128;
}

static bool are_narrow(const int8_t *group)
{
    for (int i = 0; i < GROUP; i += 2)
        if (!is_narrow(group[i], group[i + 1])) return false;
    return true;
}

/* All columns' first two rows, then the last two. */
static void part_pairs(int8_t *group)
{
    int8_t from[GROUP];
    memcpy(from, group, sizeof from);
    for (int i = 0; i < GROUP; i += 2)
        memcpy(group + i % DEEP / 2 * PAIRS + i / DEEP * 2, from + i, 2);
}

static void swap_groups(int8_t *a, int8_t *b)
{
    int8_t t[GROUP];
    memcpy(t, a, GROUP);
    memcpy(a, b, GROUP);
    memcpy(b, t, GROUP);
}

void zc_avx2_order(int8_t *panel, int64_t depth, int32_t *order)
{
    const int64_t groups = depth / DEEP;
    int32_t *at = order + 1;
    int64_t narrow = 0;
    for (int64_t g = 0; g < groups; g++) at[g] = (int32_t)(g * DEEP);
    for (int64_t end = groups; narrow < end;) {
        if (are_narrow(panel + narrow * GROUP)) {
            narrow++;
            continue;
        }
        const int32_t first = at[narrow];
        at[narrow] = at[--end];
        at[end] = first;
        swap_groups(panel + narrow * GROUP, panel + end * GROUP);
    }
    for (int64_t g = narrow; g < groups; g++) part_pairs(panel + g * GROUP);
    order[0] = (int32_t)narrow;
}

/* Some rows of the left operand, as bytes and as 16 bits. */
typedef struct left {
    const uint8_t *bytes;
    const uint16_t *wide;
    int64_t lda, depth;
} left;

static ZC_AVX2 void widen_rows(const uint8_t *a, int64_t lda, int64_t rows, int64_t depth,
                               uint16_t *to)
{
    for (int64_t r = 0; r < rows; r++, a += lda, to += depth) {
        int64_t d = 0;
        for (; d + 16 <= depth; d += 16)
            _mm256_storeu_si256((void *)(to + d),
                                _mm256_cvtepu8_epi16(_mm_loadu_si128((const void *)(a + d))));
        for (; d < depth; d++) to[d] = a[d];
    }
}

ZC_INLINE ZC_AVX2 __m256i load_wide(const int8_t *from)
{
    return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)from));
}

/* Sums of a panel's columns. */
typedef int32_t row_sums[ZC_BYTE_COLUMNS];

ZC_INLINE ZC_AVX2 void load_sums(int rows, row_sums *from, __m256i to[ROWS][VECTORS])
{
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        to[r][0] = zc_avx2_load(from[r]);
        to[r][1] = zc_avx2_load(from[r] + LANES);
    }
}

ZC_INLINE ZC_AVX2 void store_sums(int rows, __m256i from[ROWS][VECTORS], row_sums *to)
{
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm256_storeu_si256((void *)to[r], from[r][0]);
        _mm256_storeu_si256((void *)(to[r] + LANES), from[r][1]);
    }
}

/* n groups by bytes, whose first rows are `at`, added to the sums of some rows, whose number is a
 * constant where this is inlined. */
ZC_INLINE ZC_AVX2 void add_narrow(int rows, const int8_t *w, const int32_t *at, int64_t n,
                                  const left *a, row_sums *sums)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum[ROWS][VECTORS];
    load_sums(rows, sums, sum);
    for (int64_t g = 0; g < n; g++, w += GROUP) {
        const __m256i w0 = zc_avx2_load(w), w1 = zc_avx2_load(w + GROUP / 2);
        zc_avx2_ask_ahead(w);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i x = zc_avx2_repeat(a->bytes + r * a->lda + at[g]);
            sum[r][0] = zc_avx2_add_products(sum[r][0], _mm256_maddubs_epi16(x, w0), ones);
            sum[r][1] = zc_avx2_add_products(sum[r][1], _mm256_maddubs_epi16(x, w1), ones);
        }
    }
    store_sums(rows, sum, sums);
}

/* The same by 16 bits. */
ZC_INLINE ZC_AVX2 void add_wide(int rows, const int8_t *w, const int32_t *at, int64_t n,
                                const left *a, row_sums *sums)
{
    __m256i sum[ROWS][VECTORS];
    load_sums(rows, sums, sum);
    for (int64_t pair = 0; pair < 2 * n; pair++, w += PAIRS) {
        const __m256i w0 = load_wide(w), w1 = load_wide(w + PAIRS / 2);
        if (pair % 2 == 0) zc_avx2_ask_ahead(w);
        const uint16_t *from = a->wide + at[pair / 2] + pair % 2 * 2;
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i x = zc_avx2_repeat(from + r * a->depth);
            sum[r][0] = zc_avx2_add_products(sum[r][0], x, w0);
            sum[r][1] = zc_avx2_add_products(sum[r][1], x, w1);
        }
    }
    store_sums(rows, sum, sums);
}

typedef void (*add_fn)(const int8_t *w, const int32_t *at, int64_t n, const left *a,
                       row_sums *sums);

#define ADD(name, rows)                                                                            \
    static ZC_AVX2 void name##_##rows(const int8_t *w, const int32_t *at, int64_t n,               \
                                      const left *a, row_sums *sums)                               \
    {                                                                                              \
        name(rows, w, at, n, a, sums);                                                             \
    }
#define ADDS(name)                                                                                 \
    ADD(name, 1)                                                                                   \
    ADD(name, 2)                                                                                   \
    ADD(name, 3)                                                                                   \
    ADD(name, 4)                                                                                   \
    ADD(name, 5)                                                                                   \
    ADD(name, 6)                                                                                   \
    static const add_fn name##_of[ROWS] = {name##_1, name##_2, name##_3,                           \
                                           name##_4, name##_5, name##_6};
ADDS(add_narrow)
ADDS(add_wide)
#undef ADDS
#undef ADD

/* n groups with m rows: some that stay in the nearest cache meet all rows. */
static void add_groups(const add_fn of[ROWS], const int8_t *w, const int32_t *at, int64_t n,
                       int64_t m, const left *all, row_sums *sums)
{
    for (int64_t g = 0; g < n; g += STRETCH) {
        left a = *all;
        for (int64_t r = 0; r < m; r += ROWS) {
            const int64_t rows = m - r < ROWS ? m - r : ROWS;
            of[rows - 1](w + g * GROUP, at + g, n - g < STRETCH ? n - g : STRETCH, &a, sums + r);
            a.bytes += ROWS * a.lda;
            a.wide += ROWS * a.depth;
        }
    }
}

/* Of one panel: m rows, whose parts are those of zc_bytes_part. */
static ZC_AVX2 void multiply_panel(const zc_byte_product *p, const int8_t *panel,
                                   const int32_t *order, int64_t m, const left *a,
                                   const int32_t *parts, int64_t column, int64_t n, uint8_t *y,
                                   int64_t ldy)
{
    const zc_avx2_range limits = zc_avx2_range_of(&p->s);
    const int64_t narrow = order[0];
    row_sums sums[BLOCK];
    for (int64_t r = 0; r < m; r++) {
        const __m256i part = _mm256_set1_epi32(parts[r]);
        SIMD_UNROLL
        for (int v = 0; v < VECTORS; v++)
            _mm256_storeu_si256(
                (void *)(sums[r] + v * LANES),
                _mm256_sub_epi32(zc_avx2_load(p->offset + column + v * LANES), part));
    }
    add_groups(add_narrow_of, panel, order + 1, narrow, m, a, sums);
    add_groups(add_wide_of, panel + narrow * GROUP, order + 1 + narrow, a->depth / DEEP - narrow, m,
               a, sums);
    for (int64_t r = 0; r < m; r++, y += ldy) {
        const __m256i s[VECTORS] = {zc_avx2_load(sums[r]), zc_avx2_load(sums[r] + LANES)};
        zc_avx2_finish(&p->s, &limits, s, column, n, y);
    }
}

/* At most BLOCK rows. */
static ZC_AVX2 void multiply_block(const zc_avx2_panels *b, bool wide, const zc_byte_product *p,
                                   int64_t m, const uint8_t *a, int64_t lda, int64_t from,
                                   int64_t to, uint8_t *y, int64_t ldy)
{
    const int64_t depth = zc_bytes_row(p->k), size = (int64_t)zc_bytes_size(p);
    int32_t parts[BLOCK];
    uint16_t room[WIDE_BYTES / sizeof(uint16_t)];
    for (int64_t r = 0; r < m; r++) parts[r] = zc_bytes_part(p, a + r * lda);
    if (wide) widen_rows(a, lda, m, depth, room);
    const left rows = {a, room, lda, depth};
    for (int64_t c = from, i = 0; c < to; c += ZC_BYTE_COLUMNS, i++)
        multiply_panel(p, b->w + i * depth * ZC_BYTE_COLUMNS,
                       b->order + i * zc_avx2_order_size(depth), m, &rows, parts, c,
                       to - c < ZC_BYTE_COLUMNS ? to - c : ZC_BYTE_COLUMNS, y + (c - from) * size,
                       ldy * size);
}

/* Has one of n panels groups that multiply 16 bits? */
static bool any_wide(const zc_avx2_panels *b, int64_t depth, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (b->order[i * zc_avx2_order_size(depth)] < depth / DEEP) return true;
    return false;
}

/* Rows at a time: whole tiles where they have room, and about as many each time. */
static int64_t block_of(int64_t m, bool wide, int64_t depth)
{
    int64_t most = wide ? WIDE_BYTES / (int64_t)sizeof(uint16_t) / depth : BLOCK;
    if (most > BLOCK) most = BLOCK;
    if (most < ROWS) return most;
    most = most / ROWS * ROWS;
    const int64_t times = (m + most - 1) / most, tiles = (m + ROWS - 1) / ROWS;
    return (tiles + times - 1) / times * ROWS;
}

void zc_avx2_multiply(const zc_avx2_panels *b, const zc_byte_product *p, int64_t m,
                      const uint8_t *a, int64_t lda, int64_t from, int64_t to, void *y, int64_t ldy)
{
    const int64_t depth = zc_bytes_row(p->k);
    const bool wide = any_wide(b, depth, (to - from + ZC_BYTE_COLUMNS - 1) / ZC_BYTE_COLUMNS);
    const int64_t block = block_of(m, wide, depth);
    for (int64_t r = 0; r < m; r += block)
        multiply_block(b, wide, p, m - r < block ? m - r : block, a + r * lda, lda, from, to,
                       (uint8_t *)y + (size_t)(r * ldy) * zc_bytes_size(p), ldy);
}

/* ---- one a channel ---- */

enum { HALF = 32, QUARTERS = 4 };

/* Two taps of HALF channels as 16 bits, a lane for each channel: four of each 16 a vector. */
ZC_INLINE ZC_AVX2 void turn_taps(__m256i a, __m256i b, __m256i to[QUARTERS])
{
    const __m256i none = _mm256_setzero_si256();
    const __m256i low = _mm256_unpacklo_epi8(a, b), high = _mm256_unpackhi_epi8(a, b);
    to[0] = _mm256_unpacklo_epi8(low, none);
    to[1] = _mm256_unpackhi_epi8(low, none);
    to[2] = _mm256_unpacklo_epi8(high, none);
    to[3] = _mm256_unpackhi_epi8(high, none);
}

/* Their sums, in the channels' order; the mask has which fours of channels there are. */
ZC_INLINE ZC_AVX2 void sum_half(const zc_byte_each *e, const int16_t *w, const uint8_t *const *x,
                                int64_t from, __m256i mask, __m256i to[QUARTERS])
{
    __m256i sum[QUARTERS] = {0};
    for (int64_t t = 0; t < e->taps; t += 2, w += 2 * HALF) {
        const int64_t next = t + 1 < e->taps ? t + 1 : t; /* behind the last: it meets zeros */
        __m256i both[QUARTERS];
        turn_taps(_mm256_maskload_epi32((const void *)(x[t] + from), mask),
                  _mm256_maskload_epi32((const void *)(x[next] + from), mask), both);
        SIMD_UNROLL
        for (int q = 0; q < QUARTERS; q++)
            sum[q] = zc_avx2_add_products(sum[q], both[q], zc_avx2_load(w + q * 2 * LANES));
    }
    to[0] = _mm256_permute2x128_si256(sum[0], sum[1], 0x20);
    to[1] = _mm256_permute2x128_si256(sum[2], sum[3], 0x20);
    to[2] = _mm256_permute2x128_si256(sum[0], sum[1], 0x31);
    to[3] = _mm256_permute2x128_si256(sum[2], sum[3], 0x31);
}

ZC_AVX2 int64_t zc_avx2_each(const zc_byte_each *e, const int16_t *w, const uint8_t *const *x,
                             void *y)
{
    const int64_t whole = e->channels / 4 * 4, half = (e->taps + 1) / 2 * 2 * HALF;
    const __m256i places = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const zc_avx2_range limits = zc_avx2_range_of(&e->s);
    const size_t size = e->s.scale ? 1 : sizeof(int32_t);
    __m256i sums[QUARTERS];
    for (int64_t from = 0; from < whole; from += HALF, w += half) {
        const __m256i there = _mm256_set1_epi32((int)(whole - from < HALF ? whole - from : HALF));
        sum_half(e, w, x, from, _mm256_cmpgt_epi32(there, places), sums);
        SIMD_UNROLL
        for (int v = 0; v < QUARTERS; v++)
            sums[v] = _mm256_add_epi32(sums[v], zc_avx2_load(e->offset + from + v * LANES));
        for (int64_t c = from, v = 0; v < QUARTERS && c < whole; c += ZC_BYTE_COLUMNS, v += VECTORS)
            zc_avx2_finish(&e->s, &limits, sums + v, c,
                           whole - c < ZC_BYTE_COLUMNS ? whole - c : ZC_BYTE_COLUMNS,
                           (uint8_t *)y + (size_t)c * size);
    }
    return whole;
}
#else
void zc_avx2_order(int8_t *panel, int64_t depth, int32_t *order) {}
void zc_avx2_multiply(const zc_avx2_panels *b, const zc_byte_product *p, int64_t m,
                      const uint8_t *a, int64_t lda, int64_t from, int64_t to, void *y, int64_t ldy)
{
}
int64_t zc_avx2_each(const zc_byte_each *e, const int16_t *w, const uint8_t *const *x, void *y)
{
    return 0;
}
#endif
