/* Exact products of bytes: rows of unsigned ones times a packed matrix of signed ones. Sums are
 * integers, so how the work is divided changes no bit. */
#ifndef ZC_CPU_BYTES_H
#define ZC_CPU_BYTES_H

#include "cpu/kernel.h"

/* Where a right operand of k rows and n columns lies: row p of column c at
 * data + (p / inner) * outer_step + (p % inner) * inner_step + c * column_step. */
typedef struct zc_byte_matrix {
    int64_t k, n, inner, outer_step, inner_step, column_step;
    bool is_signed; /* else its bytes are shifted by 128 */
} zc_byte_matrix;

/* The matrix, packed: of a constant once a plan, of anything else for this run. Whoever reads it
 * adds a zero point. */
zc_status zc_bytes_packed(zc_kctx *k, int input, int64_t offset, const zc_byte_matrix *m,
                          const void **out);
/* The constant or its copy for this run, as unsigned bytes. */
zc_status zc_bytes_unsigned(zc_kctx *k, int input, int *zero, const uint8_t **out);

/* How sums become results. */
typedef struct zc_byte_scaling {
    const double
        *scale; /* a column: y = saturate(round(sum * scale) + y_zero); NULL: sums as they are */
    const float *near; /* the same in f32, and ZC_BYTE_COLUMNS more to be read */
    int y_zero;
    bool y_signed;
} zc_byte_scaling;

/* a (b - b_zero) + offset. */
typedef struct zc_byte_product {
    const void *b; /* packed */
    int64_t k, n;
    int b_zero;
    const int32_t *offset; /* a column, zc_bytes_room(n) of them */
    zc_byte_scaling s;
} zc_byte_product;

static inline int64_t zc_bytes_room(int64_t n)
{
    return (n + 63) / 64 * 64;
}

/* What to add to products with `packed` of k rows and n columns, or one a channel of k taps and n
 * channels, for the left operand's zero point, for both and for a bias, which may be NULL. */
void zc_bytes_offset(const void *packed, int64_t k, int64_t n, int a_zero, int b_zero,
                     const int32_t *bias, int32_t *to);

/* Rows a row of `a` takes: k rounded up to what is read. */
static inline int64_t zc_bytes_row(int64_t k)
{
    return (k + 3) / 4 * 4;
}

/* m rows, `lda` bytes apart, of which zc_bytes_row(k) can be read, times columns [from, to); from
 * is a multiple of ZC_BYTE_COLUMNS. Row r, column from + c of the result is y[r * ldy + c]: an
 * int32_t or a byte. */
#define ZC_BYTE_COLUMNS 16
void zc_bytes_multiply(const zc_byte_product *p, int64_t m, const uint8_t *a, int64_t lda,
                       int64_t from, int64_t to, void *y, int64_t ldy);

/* ---- one a channel ---- */

enum { ZC_BYTE_TAPS = 64 }; /* at most */

/* y[c] = sum over taps t of x[t][c] (w[t][c] - w_zero), + offset[c]. */
typedef struct zc_byte_each {
    const void *w; /* packed */
    int64_t taps, channels;
    int w_zero;
    const int32_t *offset;
    zc_byte_scaling s;
} zc_byte_each;

/* w[channels][taps], packed, as zc_bytes_packed has it. */
zc_status zc_bytes_packed_each(zc_kctx *k, int input, int64_t channels, int64_t taps,
                               const void **out);
/* x: where each tap's channels are. */
void zc_bytes_each(const zc_byte_each *e, const uint8_t *const *x, void *y);

#endif
