#include "cpu/bytes_avx2.h"

#include <string.h>

#include "cpu/bytes_finish.h"

#if SIMD_X86
#define AVX2 __attribute__((target("avx2,fma")))

enum { LANES = 8, DEEP = 4, ROWS = 4, VECTORS = ZC_BYTE_COLUMNS / LANES, BLOCK = 64 };
enum { WIDE_BYTES = 48 << 10, LEAST_WIDE = 8 };

/* Four bytes a lane, as 16 bits: the first and third, the second and fourth. */
typedef struct halves {
    __m256i even, odd;
} halves;

ZC_INLINE AVX2 halves widen_unsigned(__m256i v)
{
    return (halves){_mm256_and_si256(v, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(v, 8)};
}

ZC_INLINE AVX2 halves widen_signed(__m256i v)
{
    return (halves){_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
}

ZC_INLINE AVX2 __m256i add_products(__m256i sum, halves x, halves w)
{
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x.even, w.even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x.odd, w.odd));
}

ZC_INLINE AVX2 __m256i load(const void *from)
{
    return _mm256_loadu_si256(from);
}

/* ---- results ---- */

typedef struct range {
    __m256d low, high, none;
    __m128i zero;
    __m256 near_low, near_high;
} range;

ZC_INLINE AVX2 range range_of(const zc_byte_scaling *s)
{
    const double least = (s->y_signed ? -128 : 0) - s->y_zero;
    return (range){_mm256_set1_pd(least),        _mm256_set1_pd(least + 255),
                   _mm256_set1_pd(-s->y_zero),   _mm_set1_epi32(s->y_zero),
                   _mm256_set1_ps((float)least), _mm256_set1_ps((float)least + 255)};
}

/* Clamped and rounded; NaN gives 0 less the zero point. */
ZC_INLINE AVX2 void quantise4(const range *r, const int32_t *sums, const double *scale, uint8_t *y)
{
    const __m256d q = _mm256_mul_pd(_mm256_cvtepi32_pd(_mm_loadu_si128((const void *)sums)),
                                    _mm256_loadu_pd(scale));
    const __m256d c = _mm256_min_pd(_mm256_max_pd(q, r->low), r->high);
    const __m256d v = _mm256_blendv_pd(c, r->none, _mm256_cmp_pd(q, q, _CMP_UNORD_Q));
    const __m128i wide = _mm_add_epi32(_mm256_cvtpd_epi32(v), r->zero);
    const int four = _mm_cvtsi128_si32(_mm_shuffle_epi8(wide, _mm_set1_epi32(0x0c080400)));
    memcpy(y, &four, sizeof four);
}

static AVX2 void quantise(const zc_byte_scaling *s, const range *r, const int32_t *sums,
                          int64_t column, int64_t n, uint8_t *y)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) quantise4(r, sums + i, s->scale + column + i, y + i);
    zc_bytes_finish(s, sums + i, column + i, n - i, y + i);
}

/* Scales in f32. */
ZC_INLINE AVX2 __m256 near_scales(const double *scale)
{
    return _mm256_set_m128(_mm256_cvtpd_ps(_mm256_loadu_pd(scale + 4)),
                           _mm256_cvtpd_ps(_mm256_loadu_pd(scale)));
}

/* The same in f32, whose error is below ZC_BYTE_DOUBT: false: something lies that near to the
 * middle of two integers, or is no number. */
ZC_INLINE AVX2 bool quantise8(const range *r, __m256i sums, __m256 scale, uint8_t *y)
{
    const __m256 q = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), scale);
    const __m256 c = _mm256_min_ps(r->near_high, _mm256_max_ps(r->near_low, q)); /* NaN stays */
    const __m256i whole = _mm256_cvtps_epi32(c);
    const __m256 off = _mm256_sub_ps(c, _mm256_cvtepi32_ps(whole));
    const __m256 far = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), off);
    const __m256 doubt = _mm256_cmp_ps(far, _mm256_set1_ps(0.5f - ZC_BYTE_DOUBT), _CMP_NLT_UQ);
    const __m256i bytes = _mm256_and_si256(
        _mm256_add_epi32(whole, _mm256_set_m128i(r->zero, r->zero)), _mm256_set1_epi32(255));
    const __m128i half =
        _mm_packs_epi32(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
    _mm_storel_epi64((void *)y, _mm_packus_epi16(half, half));
    return !_mm256_movemask_ps(doubt);
}

/* ---- products ---- */

/* Rows as 16 bits, which all panels read: of each four bytes the even ones, then the odd ones. */
static AVX2 void widen_rows(const uint8_t *a, int64_t lda, int64_t rows, int64_t depth, uint8_t *to)
{
    const __m128i low = _mm_set1_epi16(0xff);
    for (int64_t r = 0; r < rows; r++, a += lda) {
        int64_t d = 0;
        for (; d + 16 <= depth; d += 16, to += 32) {
            const __m128i v = _mm_loadu_si128((const void *)(a + d));
            const __m128i even = _mm_and_si128(v, low), odd = _mm_srli_epi16(v, 8);
            _mm_storeu_si128((void *)to, _mm_unpacklo_epi32(even, odd));
            _mm_storeu_si128((void *)(to + 16), _mm_unpackhi_epi32(even, odd));
        }
        for (; d < depth; d += DEEP, to += 2 * DEEP) {
            uint32_t four, two[2];
            memcpy(&four, a + d, sizeof four);
            two[0] = four & 0xff00ff;
            two[1] = four >> 8 & 0xff00ff;
            memcpy(to, two, sizeof two);
        }
    }
}

ZC_INLINE AVX2 __m256i repeat(const uint8_t *from)
{
    int32_t four;
    memcpy(&four, from, sizeof four);
    return _mm256_set1_epi32(four);
}

/* A panel's sums with some rows, whose number is a constant where this is inlined. wide: they are
 * widened. */
ZC_INLINE AVX2 void multiply_panel(int rows, bool wide, const int8_t *b, int64_t depth,
                                   const uint8_t *a, int64_t lda, int32_t (*to)[ZC_BYTE_COLUMNS])
{
    __m256i sum[ROWS][VECTORS];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    for (int64_t d = 0; d < depth; d += DEEP, b += DEEP * ZC_BYTE_COLUMNS) {
        const halves w[VECTORS] = {widen_signed(load(b)), widen_signed(load(b + DEEP * LANES))};
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            const uint8_t *at = a + r * lda + (wide ? 2 * d : d);
            const halves x =
                wide ? (halves){repeat(at), repeat(at + DEEP)} : widen_unsigned(repeat(at));
            sum[r][0] = add_products(sum[r][0], x, w[0]);
            sum[r][1] = add_products(sum[r][1], x, w[1]);
        }
    }
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) {
        _mm256_storeu_si256((void *)to[r], sum[r][0]);
        _mm256_storeu_si256((void *)(to[r] + LANES), sum[r][1]);
    }
}

ZC_INLINE AVX2 void sums_of(int64_t rows, bool wide, const int8_t *b, int64_t depth,
                            const uint8_t *a, int64_t lda, int32_t (*to)[ZC_BYTE_COLUMNS])
{
    switch (rows) {
    case 1:
        multiply_panel(1, wide, b, depth, a, lda, to);
        break;
    case 2:
        multiply_panel(2, wide, b, depth, a, lda, to);
        break;
    case 3:
        multiply_panel(3, wide, b, depth, a, lda, to);
        break;
    default:
        multiply_panel(ROWS, wide, b, depth, a, lda, to);
    }
}

static AVX2 void sums_of_bytes(int64_t rows, const int8_t *b, int64_t depth, const uint8_t *a,
                               int64_t lda, int32_t (*to)[ZC_BYTE_COLUMNS])
{
    sums_of(rows, false, b, depth, a, lda, to);
}

static AVX2 void sums_of_wide(int64_t rows, const int8_t *b, int64_t depth, const uint8_t *a,
                              int64_t lda, int32_t (*to)[ZC_BYTE_COLUMNS])
{
    sums_of(rows, true, b, depth, a, lda, to);
}

/* What the rows of a panel have in common. */
typedef struct columns {
    __m256i offset[VECTORS];
    __m256 scale[VECTORS];
} columns;

ZC_INLINE AVX2 columns columns_of(const zc_byte_product *p, int64_t column, int64_t n)
{
    double scale[ZC_BYTE_COLUMNS] = {0};
    if (p->s.scale) memcpy(scale, p->s.scale + column, (size_t)n * sizeof *scale);
    return (columns){{load(p->offset + column), load(p->offset + column + LANES)},
                     {near_scales(scale), near_scales(scale + LANES)}};
}

ZC_INLINE AVX2 void finish_row(const zc_byte_scaling *s, const range *r, const columns *c,
                               int32_t part, int32_t *sums, int64_t column, int64_t n, void *y)
{
    int64_t i = 0;
    SIMD_UNROLL
    for (int v = 0; v < VECTORS; v++) {
        const __m256i more = _mm256_sub_epi32(c->offset[v], _mm256_set1_epi32(part));
        _mm256_storeu_si256((void *)(sums + v * LANES),
                            _mm256_add_epi32(load(sums + v * LANES), more));
    }
    if (!s->scale) {
        memcpy(y, sums, (size_t)n * sizeof *sums);
        return;
    }
    for (; i + LANES <= n; i += LANES)
        if (!quantise8(r, load(sums + i), c->scale[i / LANES], (uint8_t *)y + i))
            quantise(s, r, sums + i, column + i, LANES, (uint8_t *)y + i);
    if (i < n) quantise(s, r, sums + i, column + i, n - i, (uint8_t *)y + i);
}

/* Rows that are widened at a time; 0: they are few, or read once. */
static int64_t wide_rows(int64_t depth, int64_t m, int64_t width)
{
    if (width <= ZC_BYTE_COLUMNS || m < ROWS || depth * 2 * LEAST_WIDE > WIDE_BYTES) return 0;
    return depth * 2 * BLOCK < WIDE_BYTES ? BLOCK : WIDE_BYTES / (2 * depth) / ROWS * ROWS;
}

/* At most BLOCK rows. */
static AVX2 void multiply_block(const zc_byte_product *p, const int8_t *panels, bool wide,
                                int64_t m, const uint8_t *a, int64_t lda, int64_t from, int64_t to,
                                void *y, int64_t ldy)
{
    const int64_t depth = zc_bytes_row(p->k);
    const range limits = range_of(&p->s);
    int32_t parts[BLOCK], sums[ROWS][ZC_BYTE_COLUMNS];
    uint8_t room[WIDE_BYTES];
    for (int64_t r = 0; r < m; r++) parts[r] = zc_bytes_part(p, a + r * lda);
    if (wide) {
        widen_rows(a, lda, m, depth, room);
        a = room;
        lda = 2 * depth;
    }
    for (int64_t c = from; c < to; c += ZC_BYTE_COLUMNS, panels += depth * ZC_BYTE_COLUMNS) {
        const int64_t n = to - c < ZC_BYTE_COLUMNS ? to - c : ZC_BYTE_COLUMNS;
        const columns both = columns_of(p, c, n);
        for (int64_t at = 0; at < m; at += ROWS) {
            const int64_t rows = m - at < ROWS ? m - at : ROWS;
            (wide ? sums_of_wide : sums_of_bytes)(rows, panels, depth, a + at * lda, lda, sums);
            for (int64_t r = 0; r < rows; r++) {
                uint8_t *row =
                    (uint8_t *)y + (size_t)((at + r) * ldy + c - from) * zc_bytes_size(p);
                finish_row(&p->s, &limits, &both, parts[at + r], sums[r], c, n, row);
            }
        }
    }
}

void zc_avx2_multiply(const zc_byte_product *p, const int8_t *panels, int64_t m, const uint8_t *a,
                      int64_t lda, int64_t from, int64_t to, void *y, int64_t ldy)
{
    const int64_t wide = wide_rows(zc_bytes_row(p->k), m, to - from), block = wide ? wide : BLOCK;
    for (int64_t r = 0; r < m; r += block)
        multiply_block(p, panels, wide > 0, m - r < block ? m - r : block, a + r * lda, lda, from,
                       to, (uint8_t *)y + (size_t)(r * ldy) * zc_bytes_size(p), ldy);
}

/* ---- one a channel: the packed blocks of 64 channels by halves ---- */

enum { HALF = 32, QUARTERS = 4 };

/* Four taps of HALF channels, a lane for each channel: four of each 16 a vector. */
ZC_INLINE AVX2 void turn_taps(const __m256i t[DEEP], __m256i to[QUARTERS])
{
    const __m256i a = _mm256_unpacklo_epi8(t[0], t[1]), b = _mm256_unpackhi_epi8(t[0], t[1]);
    const __m256i c = _mm256_unpacklo_epi8(t[2], t[3]), d = _mm256_unpackhi_epi8(t[2], t[3]);
    to[0] = _mm256_unpacklo_epi16(a, c);
    to[1] = _mm256_unpackhi_epi16(a, c);
    to[2] = _mm256_unpacklo_epi16(b, d);
    to[3] = _mm256_unpackhi_epi16(b, d);
}

/* Their sums, in the channels' order; the mask has which fours of channels there are. */
ZC_INLINE AVX2 void sum_half(const zc_byte_each *e, const int8_t *w, const uint8_t *const *x,
                             int64_t from, __m256i mask, __m256i to[QUARTERS])
{
    __m256i sum[QUARTERS] = {0};
    for (int64_t first = 0; first < e->taps; first += DEEP, w += QUARTERS * BLOCK) {
        __m256i t[DEEP], s[QUARTERS];
        SIMD_UNROLL
        for (int i = 0; i < DEEP; i++) { /* what is behind the last meets zeros */
            const int64_t tap = first + i < e->taps ? first + i : 0;
            t[i] = _mm256_maskload_epi32((const void *)(x[tap] + from), mask);
        }
        turn_taps(t, s);
        SIMD_UNROLL
        for (int q = 0; q < QUARTERS; q++)
            sum[q] = add_products(sum[q], widen_unsigned(s[q]), widen_signed(load(w + q * BLOCK)));
    }
    to[0] = _mm256_permute2x128_si256(sum[0], sum[1], 0x20);
    to[1] = _mm256_permute2x128_si256(sum[2], sum[3], 0x20);
    to[2] = _mm256_permute2x128_si256(sum[0], sum[1], 0x31);
    to[3] = _mm256_permute2x128_si256(sum[2], sum[3], 0x31);
}

/* n of eight channels. */
ZC_INLINE AVX2 void finish_eight(const zc_byte_scaling *s, const range *r, __m256i sums,
                                 int64_t channel, int64_t n, void *y)
{
    int32_t kept[LANES];
    if (s->scale && n >= LANES && quantise8(r, sums, near_scales(s->scale + channel), y)) return;
    _mm256_storeu_si256((void *)kept, sums);
    if (n > LANES) n = LANES;
    if (s->scale)
        quantise(s, r, kept, channel, n, y);
    else
        memcpy(y, kept, (size_t)n * sizeof *kept);
}

AVX2 int64_t zc_avx2_each(const zc_byte_each *e, const int8_t *w, const uint8_t *const *x, void *y)
{
    const int64_t whole = e->channels / 4 * 4, block = (e->taps + DEEP - 1) / DEEP * DEEP * BLOCK;
    const __m256i places = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const range limits = range_of(&e->s);
    const size_t size = e->s.scale ? 1 : sizeof(int32_t);
    __m256i sums[QUARTERS];
    for (int64_t from = 0; from < whole; from += HALF) {
        const __m256i left = _mm256_set1_epi32((int)(whole - from < HALF ? whole - from : HALF));
        sum_half(e, w + from / BLOCK * block + from % BLOCK, x, from,
                 _mm256_cmpgt_epi32(left, places), sums);
        SIMD_UNROLL
        for (int v = 0; v < QUARTERS; v++) {
            const int64_t c = from + v * LANES;
            if (c < whole)
                finish_eight(&e->s, &limits, _mm256_add_epi32(sums[v], load(e->offset + c)), c,
                             whole - c, (uint8_t *)y + (size_t)c * size);
        }
    }
    return whole;
}
#else
void zc_avx2_multiply(const zc_byte_product *p, const int8_t *panels, int64_t m, const uint8_t *a,
                      int64_t lda, int64_t from, int64_t to, void *y, int64_t ldy)
{
}
int64_t zc_avx2_each(const zc_byte_each *e, const int8_t *w, const uint8_t *const *x, void *y)
{
    return 0;
}
#endif
