#include "cpu/bytes_avx2.h"

#include <string.h>

#include "cpu/bytes_finish_avx2.h"

#if SIMD_X86
enum { LANES = ZC_AVX2_LANES, VECTORS = ZC_AVX2_VECTORS, DEEP = 4, ROWS = 6, BLOCK = 60 };
enum { GROUP = DEEP * ZC_BYTE_COLUMNS, STRETCH = ZC_AVX2_STRETCH };
_Static_assert(BLOCK % ROWS == 0, "whole tiles");

/* ---- products ----
 *
 * vpmaddubsw adds two products of bytes in 16 bits. These hold the sum, or even that of two groups
 * together, where weights of one sign and bytes of the left operand are small enough: what is known
 * of a group's weights since they were packed meets the greatest byte of the rows at hand. Other
 * groups multiply 16 bits. */

enum { TOO_MUCH = 1 << 15 /* for 16 bits */, FEW = 3 /* rows whose bytes are not looked at */ };

/* Of two weights, those of one sign together. */
static int reach_of(int a, int b)
{
    const int above = (a > 0 ? a : 0) + (b > 0 ? b : 0), below = above - a - b;
    return above > below ? above : below;
}

static uint16_t reach_of_group(const int8_t *group)
{
    int most = 0;
    for (int i = 0; i < GROUP; i += 2) {
        const int reach = reach_of(group[i], group[i + 1]);
        if (reach > most) most = reach;
    }
    return (uint16_t)most;
}

/* Which of 16 groups' sums are at least `least`, a power of two, in unsigned 16 bits. */
ZC_INLINE ZC_AVX2 uint64_t reaching(__m128i low, __m128i high, int least)
{
    const __m128i bits = _mm_set1_epi16((int16_t)-least), none = _mm_setzero_si128();
    const __m128i l = _mm_cmpeq_epi16(_mm_and_si128(low, bits), none);
    const __m128i h = _mm_cmpeq_epi16(_mm_and_si128(high, bits), none);
    return (uint64_t)(~_mm_movemask_epi8(_mm_packs_epi16(l, h)) & 0xffff);
}

ZC_AVX2 zc_avx2_order zc_avx2_order_of(const uint16_t *reach, const uint8_t *greatest, int64_t n)
{
    enum { HALF = 8 };
    const uint64_t all = n < STRETCH ? (1ull << n) - 1 : ~0ull;
    uint64_t no_four = 0, singles = 0;
    for (int g = 0; g < STRETCH; g += 2 * HALF) {
        const __m128i x = _mm_loadu_si128((const void *)(greatest + g));
        const __m128i low =
            _mm_mullo_epi16(_mm_cvtepu8_epi16(x), _mm_loadu_si128((const void *)(reach + g)));
        const __m128i high = _mm_mullo_epi16(_mm_unpackhi_epi8(x, _mm_setzero_si128()),
                                             _mm_loadu_si128((const void *)(reach + g + HALF)));
        no_four |= reaching(low, high, TOO_MUCH / 2) << g;
        singles |= reaching(low, high, TOO_MUCH) << g;
    }
    const uint64_t fours = all & ~no_four;
    const uint64_t odd = __builtin_popcountll(fours) % 2 ? fours & -fours : 0;
    return (zc_avx2_order){fours ^ odd, (all & no_four & ~singles) | odd, all & singles};
}

static int64_t groups_of_stretch(int64_t depth, int64_t stretch)
{
    const int64_t left = depth / DEEP - stretch * STRETCH;
    return left < STRETCH ? left : STRETCH;
}

void zc_avx2_weigh(const int8_t *panel, int64_t depth, zc_avx2_stretch *to)
{
    uint8_t any[STRETCH];
    memset(any, 255, sizeof any);
    for (int64_t s = 0; s < zc_avx2_stretches(depth); s++, panel += STRETCH * GROUP) {
        const int64_t n = groups_of_stretch(depth, s);
        for (int64_t g = 0; g < n; g++) to[s].reach[g] = reach_of_group(panel + g * GROUP);
        to[s].order = zc_avx2_order_of(to[s].reach, any, n);
    }
}

/* Sums of a panel's columns. */
typedef int32_t row_sums[ZC_BYTE_COLUMNS];

/* Some rows of the left operand. */
typedef struct left {
    const uint8_t *a;
    int64_t lda;
} left;

typedef __m256i tile[ROWS][VECTORS];

/* A sum and two of 16 bits a lane. */
ZC_INLINE ZC_AVX2 __m256i add_both(__m256i sum, __m256i both)
{
    return zc_avx2_add_products(sum, both, _mm256_set1_epi16(1));
}

/* The next of the groups. */
ZC_INLINE int take(uint64_t *groups)
{
    const int first = __builtin_ctzll(*groups);
    *groups &= *groups - 1;
    return first;
}

/* Asks for the next stretch, a group for each that is multiplied. */
ZC_INLINE void ask(const int8_t **ahead)
{
    _mm_prefetch((const char *)*ahead, _MM_HINT_T0);
    *ahead += GROUP;
}

/* Products of two groups as one sum. The number of rows is a constant where this is inlined. */
ZC_INLINE ZC_AVX2 void add_fours(int rows, const int8_t *w, uint64_t groups, const left *x,
                                 const int8_t **ahead, tile sum)
{
    for (int n = __builtin_popcountll(groups); n > 0; n -= 2) {
        const int g = take(&groups), h = take(&groups);
        const int8_t *v = w + g * GROUP, *u = w + h * GROUP;
        const uint8_t *a = x->a + g * DEEP, *b = x->a + h * DEEP;
        const __m256i v0 = zc_avx2_load(v), v1 = zc_avx2_load(v + GROUP / 2);
        const __m256i u0 = zc_avx2_load(u), u1 = zc_avx2_load(u + GROUP / 2);
        ask(ahead);
        ask(ahead);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i p = zc_avx2_repeat(a + r * x->lda), q = zc_avx2_repeat(b + r * x->lda);
            sum[r][0] = add_both(sum[r][0], _mm256_add_epi16(_mm256_maddubs_epi16(p, v0),
                                                             _mm256_maddubs_epi16(q, u0)));
            sum[r][1] = add_both(sum[r][1], _mm256_add_epi16(_mm256_maddubs_epi16(p, v1),
                                                             _mm256_maddubs_epi16(q, u1)));
        }
    }
}

ZC_INLINE ZC_AVX2 void add_pairs(int rows, const int8_t *w, uint64_t groups, const left *x,
                                 const int8_t **ahead, tile sum)
{
    for (int n = __builtin_popcountll(groups); n > 0; n--) {
        const int g = take(&groups);
        const int8_t *v = w + g * GROUP;
        const uint8_t *a = x->a + g * DEEP;
        const __m256i v0 = zc_avx2_load(v), v1 = zc_avx2_load(v + GROUP / 2);
        ask(ahead);
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            const __m256i p = zc_avx2_repeat(a + r * x->lda);
            sum[r][0] = add_both(sum[r][0], _mm256_maddubs_epi16(p, v0));
            sum[r][1] = add_both(sum[r][1], _mm256_maddubs_epi16(p, v1));
        }
    }
}

/* The second and fourth byte of each four as 16 bits, or the first and third. */
ZC_INLINE ZC_AVX2 __m256i weights_of(bool odd, __m256i w)
{
    return _mm256_srai_epi16(odd ? w : _mm256_slli_epi16(w, 8), 8);
}

ZC_INLINE ZC_AVX2 __m256i bytes_of(bool odd, __m256i x)
{
    return odd ? _mm256_srli_epi16(x, 8) : _mm256_and_si256(x, _mm256_set1_epi16(255));
}

/* Half of a group. */
ZC_INLINE ZC_AVX2 void add_half(bool odd, int rows, const int8_t *w, const uint8_t *a, int64_t lda,
                                tile sum)
{
    const __m256i w0 = weights_of(odd, zc_avx2_load(w));
    const __m256i w1 = weights_of(odd, zc_avx2_load(w + GROUP / 2));
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        const __m256i x = bytes_of(odd, zc_avx2_repeat(a + r * lda));
        sum[r][0] = zc_avx2_add_products(sum[r][0], x, w0);
        sum[r][1] = zc_avx2_add_products(sum[r][1], x, w1);
    }
}

/* One half of all groups, then the other: of a whole one GCC adds the products first, for which
 * only few rows leave registers. */
ZC_INLINE ZC_AVX2 void add_singles(int rows, const int8_t *w, uint64_t groups, const left *x,
                                   const int8_t **ahead, tile sum)
{
    uint64_t again = rows > FEW ? groups : 0;
    for (int n = __builtin_popcountll(groups); n > 0; n--) {
        const int g = take(&groups);
        ask(ahead);
        add_half(false, rows, w + g * GROUP, x->a + g * DEEP, x->lda, sum);
        if (rows <= FEW) add_half(true, rows, w + g * GROUP, x->a + g * DEEP, x->lda, sum);
    }
    for (int n = __builtin_popcountll(again); n > 0; n--) {
        const int g = take(&again);
        add_half(true, rows, w + g * GROUP, x->a + g * DEEP, x->lda, sum);
    }
}

/* All groups of a stretch, added to the sums of some rows. */
ZC_INLINE ZC_AVX2 void add(int rows, const int8_t *w, const zc_avx2_order *order, const left *x,
                           row_sums *sums)
{
    const int8_t *ahead = w + STRETCH * GROUP;
    tile sum;
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        sum[r][0] = zc_avx2_load(sums[r]);
        sum[r][1] = zc_avx2_load(sums[r] + LANES);
    }
    add_fours(rows, w, order->fours, x, &ahead, sum);
    add_pairs(rows, w, order->pairs, x, &ahead, sum);
    add_singles(rows, w, order->singles, x, &ahead, sum);
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm256_storeu_si256((void *)sums[r], sum[r][0]);
        _mm256_storeu_si256((void *)(sums[r] + LANES), sum[r][1]);
    }
}

typedef void (*add_fn)(const int8_t *w, const zc_avx2_order *order, const left *x, row_sums *sums);

#define ADD(rows)                                                                                  \
    static ZC_AVX2 void add_##rows(const int8_t *w, const zc_avx2_order *order, const left *x,     \
                                   row_sums *sums)                                                 \
    {                                                                                              \
        add(rows, w, order, x, sums);                                                              \
    }
ADD(1)
ADD(2)
ADD(3)
ADD(4)
ADD(5)
ADD(6)
#undef ADD

static const add_fn add_of[ROWS] = {add_1, add_2, add_3, add_4, add_5, add_6};

/* A stretch, which stays in the nearest cache, meets m rows: tiles of about as many. */
static void add_stretch(const int8_t *w, const zc_avx2_order *order, int64_t m, left x,
                        row_sums *sums)
{
    const int64_t tiles = (m + ROWS - 1) / ROWS, least = m / tiles, more = m % tiles;
    for (int64_t i = 0; i < tiles; i++) {
        const int64_t rows = least + (i < more);
        add_of[rows - 1](w, order, &x, sums);
        x.a += rows * x.lda;
        sums += rows;
    }
}

/* Of m rows, for each group. */
static ZC_AVX2 void find_greatest(int64_t m, const left *x, int64_t depth, uint8_t *to)
{
    for (int64_t d = 0; d < depth; d += STRETCH * DEEP) {
        const int64_t n = depth - d < STRETCH * DEEP ? depth - d : STRETCH * DEEP;
        const uint8_t *a = x->a + d;
        uint8_t most[STRETCH * DEEP] = {0};
        for (int64_t r = 0; r < m; r++, a += x->lda)
            for (int64_t i = 0; i < n; i++) most[i] = a[i] > most[i] ? a[i] : most[i];
        for (int64_t i = 0; i < n; i += DEEP) {
            const uint8_t p = most[i] > most[i + 1] ? most[i] : most[i + 1];
            const uint8_t q = most[i + 2] > most[i + 3] ? most[i + 2] : most[i + 3];
            *to++ = p > q ? p : q;
        }
    }
}

/* Of one panel: m rows, whose parts are those of zc_bytes_part. greatest: NULL where groups are
 * multiplied as any bytes allow. */
static ZC_AVX2 void multiply_panel(const zc_byte_product *p, const int8_t *panel,
                                   const zc_avx2_stretch *stretch, int64_t m, const left *x,
                                   const uint8_t *greatest, const int32_t *parts, int64_t column,
                                   int64_t n, uint8_t *y, int64_t ldy)
{
    const zc_avx2_range limits = zc_avx2_range_of(&p->s);
    const int64_t depth = zc_bytes_row(p->k);
    row_sums sums[BLOCK];
    for (int64_t r = 0; r < m; r++) {
        const __m256i part = _mm256_set1_epi32(parts[r]);
        SIMD_UNROLL
        for (int v = 0; v < VECTORS; v++)
            _mm256_storeu_si256(
                (void *)(sums[r] + v * LANES),
                _mm256_sub_epi32(zc_avx2_load(p->offset + column + v * LANES), part));
    }
    for (int64_t s = 0; s < zc_avx2_stretches(depth); s++, stretch++) {
        const left at = {x->a + s * STRETCH * DEEP, x->lda};
        const zc_avx2_order order = greatest
                                        ? zc_avx2_order_of(stretch->reach, greatest + s * STRETCH,
                                                           groups_of_stretch(depth, s))
                                        : stretch->order;
        add_stretch(panel + s * STRETCH * GROUP, &order, m, at, sums);
    }
    for (int64_t r = 0; r < m; r++, y += ldy) {
        const __m256i s[VECTORS] = {zc_avx2_load(sums[r]), zc_avx2_load(sums[r] + LANES)};
        zc_avx2_finish(&p->s, &limits, s, column, n, y);
    }
}

/* At most BLOCK rows. */
static void multiply_block(const zc_avx2_panels *b, const zc_byte_product *p, int64_t m,
                           const left *x, int64_t from, int64_t to, uint8_t *y, int64_t ldy)
{
    const int64_t depth = zc_bytes_row(p->k), size = (int64_t)zc_bytes_size(p);
    int32_t parts[BLOCK];
    uint8_t room[ZC_AVX2_DEPTH / DEEP + STRETCH], *greatest = m > FEW ? room : NULL;
    for (int64_t r = 0; r < m; r++) parts[r] = zc_bytes_part(p, x->a + r * x->lda);
    if (greatest) find_greatest(m, x, depth, greatest);
    for (int64_t c = from, i = 0; c < to; c += ZC_BYTE_COLUMNS, i++)
        multiply_panel(p, b->w + i * depth * ZC_BYTE_COLUMNS,
                       b->stretches + i * zc_avx2_stretches(depth), m, x, greatest, parts, c,
                       to - c < ZC_BYTE_COLUMNS ? to - c : ZC_BYTE_COLUMNS, y + (c - from) * size,
                       ldy * size);
}

/* Rows at a time: whole tiles, and about as many each time. */
static int64_t block_of(int64_t m)
{
    const int64_t times = (m + BLOCK - 1) / BLOCK, tiles = (m + ROWS - 1) / ROWS;
    return (tiles + times - 1) / times * ROWS;
}

void zc_avx2_multiply(const zc_avx2_panels *b, const zc_byte_product *p, int64_t m,
                      const uint8_t *a, int64_t lda, int64_t from, int64_t to, void *y, int64_t ldy)
{
    const int64_t block = block_of(m);
    for (int64_t r = 0; r < m; r += block)
        multiply_block(b, p, m - r < block ? m - r : block, &(left){a + r * lda, lda}, from, to,
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
zc_avx2_order zc_avx2_order_of(const uint16_t *reach, const uint8_t *greatest, int64_t n)
{
    return (zc_avx2_order){0};
}
void zc_avx2_weigh(const int8_t *panel, int64_t depth, zc_avx2_stretch *to) {}
void zc_avx2_multiply(const zc_avx2_panels *b, const zc_byte_product *p, int64_t m,
                      const uint8_t *a, int64_t lda, int64_t from, int64_t to, void *y, int64_t ldy)
{
}
int64_t zc_avx2_each(const zc_byte_each *e, const int16_t *w, const uint8_t *const *x, void *y)
{
    return 0;
}
#endif
