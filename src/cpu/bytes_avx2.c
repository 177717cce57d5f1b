#include "cpu/bytes_avx2.h"

#include <string.h>

#include "cpu/bytes_finish.h"

#if SIMD_X86
#define AVX2 __attribute__((target("avx2,fma")))

enum { LANES = 8, DEEP = 4, ROWS = 4, VECTORS = ZC_BYTE_COLUMNS / LANES, BLOCK = 64 };

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
} range;

ZC_INLINE AVX2 range range_of(const zc_byte_scaling *s)
{
    const double least = (s->y_signed ? -128 : 0) - s->y_zero;
    return (range){_mm256_set1_pd(least), _mm256_set1_pd(least + 255), _mm256_set1_pd(-s->y_zero),
                   _mm_set1_epi32(s->y_zero)};
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

ZC_INLINE AVX2 void finish(const zc_byte_scaling *s, const range *r, const int32_t *sums,
                           int64_t column, int64_t n, void *y)
{
    int64_t i = 0;
    if (s->scale)
        for (; i + 4 <= n; i += 4) quantise4(r, sums + i, s->scale + column + i, (uint8_t *)y + i);
    zc_bytes_finish(s, sums + i, column + i, n - i, (uint8_t *)y + i);
}

/* ---- products ---- */

/* A panel's sums with some rows, whose number is a constant where this is inlined. */
ZC_INLINE AVX2 void multiply_panel(int rows, const int8_t *b, int64_t depth, const uint8_t *a,
                                   int64_t lda, int32_t (*to)[ZC_BYTE_COLUMNS])
{
    __m256i sum[ROWS][VECTORS];
    SIMD_UNROLL
    for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = _mm256_setzero_si256();
    for (int64_t d = 0; d < depth; d += DEEP, b += DEEP * ZC_BYTE_COLUMNS) {
        const halves w[VECTORS] = {widen_signed(load(b)), widen_signed(load(b + DEEP * LANES))};
        SIMD_UNROLL
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, a + r * lda + d, sizeof four);
            const halves x = widen_unsigned(_mm256_set1_epi32(four));
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

static AVX2 void sums_of(int64_t rows, const int8_t *b, int64_t depth, const uint8_t *a,
                         int64_t lda, int32_t (*to)[ZC_BYTE_COLUMNS])
{
    switch (rows) {
    case 1:
        multiply_panel(1, b, depth, a, lda, to);
        break;
    case 2:
        multiply_panel(2, b, depth, a, lda, to);
        break;
    case 3:
        multiply_panel(3, b, depth, a, lda, to);
        break;
    default:
        multiply_panel(ROWS, b, depth, a, lda, to);
    }
}

ZC_INLINE AVX2 void shift_sums(int32_t *sums, const int32_t *offset, int32_t part)
{
    for (int i = 0; i < ZC_BYTE_COLUMNS; i += LANES) {
        const __m256i more = _mm256_sub_epi32(load(offset + i), _mm256_set1_epi32(part));
        _mm256_storeu_si256((void *)(sums + i), _mm256_add_epi32(load(sums + i), more));
    }
}

/* At most BLOCK rows. */
static AVX2 void multiply_block(const zc_byte_product *p, const int8_t *panels, int64_t m,
                                const uint8_t *a, int64_t lda, int64_t from, int64_t to, void *y,
                                int64_t ldy)
{
    const int64_t depth = zc_bytes_row(p->k);
    const range limits = range_of(&p->s);
    int32_t parts[BLOCK], sums[ROWS][ZC_BYTE_COLUMNS];
    for (int64_t r = 0; r < m; r++) parts[r] = zc_bytes_part(p, a + r * lda);
    for (int64_t c = from; c < to; c += ZC_BYTE_COLUMNS, panels += depth * ZC_BYTE_COLUMNS) {
        const int64_t n = to - c < ZC_BYTE_COLUMNS ? to - c : ZC_BYTE_COLUMNS;
        for (int64_t at = 0; at < m; at += ROWS) {
            const int64_t rows = m - at < ROWS ? m - at : ROWS;
            sums_of(rows, panels, depth, a + at * lda, lda, sums);
            for (int64_t r = 0; r < rows; r++) {
                uint8_t *row =
                    (uint8_t *)y + (size_t)((at + r) * ldy + c - from) * zc_bytes_size(p);
                shift_sums(sums[r], p->offset + c, parts[at + r]);
                finish(&p->s, &limits, sums[r], c, n, row);
            }
        }
    }
}

void zc_avx2_multiply(const zc_byte_product *p, const int8_t *panels, int64_t m, const uint8_t *a,
                      int64_t lda, int64_t from, int64_t to, void *y, int64_t ldy)
{
    for (int64_t r = 0; r < m; r += BLOCK)
        multiply_block(p, panels, m - r < BLOCK ? m - r : BLOCK, a + r * lda, lda, from, to,
                       (uint8_t *)y + (size_t)(r * ldy) * zc_bytes_size(p), ldy);
}

/* ---- one a channel: the packed blocks of 64 channels by halves ---- */

enum { HALF = 32, QUARTERS = 4, LANE = 16 };

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
                             int64_t from, __m256i mask, int32_t sums[HALF])
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
    SIMD_UNROLL
    for (int q = 0; q < QUARTERS; q++) {
        _mm_storeu_si128((void *)(sums + q * 4), _mm256_castsi256_si128(sum[q]));
        _mm_storeu_si128((void *)(sums + LANE + q * 4), _mm256_extracti128_si256(sum[q], 1));
    }
}

AVX2 int64_t zc_avx2_each(const zc_byte_each *e, const int8_t *w, const uint8_t *const *x, void *y)
{
    const int64_t whole = e->channels / 4 * 4, block = (e->taps + DEEP - 1) / DEEP * DEEP * BLOCK;
    const __m256i places = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    const range limits = range_of(&e->s);
    int32_t sums[HALF];
    for (int64_t c = 0; c < whole; c += HALF) {
        const int64_t n = whole - c < HALF ? whole - c : HALF;
        const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), places);
        sum_half(e, w + c / BLOCK * block + c % BLOCK, x, c, mask, sums);
        for (int64_t i = 0; i < n; i++) sums[i] += e->offset[c + i];
        finish(&e->s, &limits, sums, c, n,
               (uint8_t *)y + (size_t)c * (e->s.scale ? 1 : sizeof(int32_t)));
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
