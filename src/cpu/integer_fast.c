/* MatMulInteger and QLinearMatMul of bytes. The left operand is taken as unsigned bytes and the
 * right one as signed ones; what is the other kind is shifted by 128, and so is its zero point. */
#include <string.h>

#include "cpu/bytes.h"
#include "cpu/fast.h"
#include "cpu/integer.h"
#include "cpu/matmul.h"
#include "op/requant.h"

int zc_zero_of(const zc_kctx *k, int i)
{
    return zc_input(k, i) ? (int)zc_geti(&k->in[i], 0) : 0;
}

/* One zero point for all: the products know no other. */
bool zc_is_single(const zc_kctx *k, int i)
{
    if (!zc_input(k, i)) return true;
    const uint8_t *zeros = k->in[i].data;
    const size_t size = zc_dtype_bits(k->in[i].dtype) / 8;
    const int64_t n = zc_tensor_numel(&k->in[i]);
    return n > 0 && memcmp(zeros, zeros + size, (size_t)(n - 1) * size) == 0;
}

/* scale[i] = t[i] * by / over (op/requant.h), of one number or one a column. */
zc_status zc_scaling_of(zc_kctx *k, const zc_tensor *t, double by, double over, int64_t columns,
                        zc_byte_scaling *s)
{
    const bool each = zc_tensor_numel(t) > 1;
    const size_t room = (size_t)(columns + ZC_BYTE_COLUMNS);
    double *scale = zc_scratch_get(k->scratch, (size_t)columns * sizeof *scale);
    float *near = zc_scratch_get(k->scratch, room * sizeof *near);
    if (!scale || !near) return zc_fail_nomem(k->diag, "scales", (size_t)columns * sizeof *scale);
    if (each && t->dtype == ZC_F32)
        for (int64_t i = 0; i < columns; i++)
            scale[i] = zc_requant_scale((double)((const float *)t->data)[i] * by / over);
    else
        for (int64_t i = 0; i < columns; i++)
            scale[i] = zc_requant_scale(zc_get(t, each ? i : 0) * by / over);
    memset(near, 0, room * sizeof *near);
    for (int64_t i = 0; i < columns; i++) near[i] = (float)scale[i];
    s->scale = scale;
    s->near = near;
    return ZC_OK;
}

enum { ROW_UNIT = 48 }; /* rows of whole tiles, whatever multiplies them */

typedef struct product_job {
    const zc_mm *mm;
    zc_byte_product p;
    const uint8_t *a;
    const void *const *b; /* an item each, or one for all */
    const int32_t *offsets;
    bool each;
    int a_zero;
    uint8_t *y;
    size_t size; /* of a result */
    int64_t lda, items, parts;
    bool by_rows;
    const zc_finish *epilogue;
} product_job;

static void product_part(void *arg, int i)
{
    const product_job *j = arg;
    const zc_mm *mm = j->mm;
    const int64_t item = i / j->parts, part = i % j->parts;
    const int64_t all = j->by_rows ? mm->m : mm->n, unit = j->by_rows ? ROW_UNIT : ZC_BYTE_COLUMNS;
    const int64_t units = (all + unit - 1) / unit, from = units * part / j->parts * unit;
    int64_t to = units * (part + 1) / j->parts * unit, a = 0, b = 0;
    if (to > all) to = all;
    const int64_t row = j->by_rows ? from : 0, rows = j->by_rows ? to - from : mm->m;
    const int64_t column = j->by_rows ? 0 : from, end = j->by_rows ? mm->n : to;
    if (j->items > 1) zc_mm_offsets(mm, item, &a, &b);
    zc_byte_product p = j->p;
    p.b = j->b[j->each ? item : 0];
    p.offset = j->offsets + (j->each ? item * zc_bytes_room(mm->n) : 0);
    const int64_t at = (item * mm->m + row) * mm->n + column;
    zc_bytes_multiply(&p, rows, j->a + (a / mm->k + row) * j->lda, j->lda, column, end,
                      j->y + (size_t)at * j->size, mm->n);
    const bool joined = end - column == mm->n; /* rows lie side by side */
    zc_finish_run(j->epilogue, at, joined ? 1 : rows, joined ? rows * mm->n : end - column, mm->n);
}

/* Rows of k bytes as rows of which whole words can be read. */
static zc_status widen(zc_kctx *k, int64_t rows, int64_t depth, int64_t lda, const uint8_t **a)
{
    uint8_t *to = zc_scratch_get(k->scratch, (size_t)(rows * lda));
    if (!to) return zc_fail_nomem(k->diag, "bytes", (size_t)(rows * lda));
    for (int64_t r = 0; r < rows; r++) {
        memcpy(to + r * lda, *a + r * depth, (size_t)depth);
        memset(to + r * lda + depth, 0, (size_t)(lda - depth));
    }
    *a = to;
    return ZC_OK;
}

static bool is_one_matrix(const zc_mm *mm)
{
    for (int d = 0; d < mm->batch_rank; d++)
        if (mm->b_batch[d] && mm->batch_dims[d] > 1) return false;
    return true;
}

/* The right operand of each item, or the only one. */
static zc_status pack_right(zc_kctx *k, int bi, product_job *j)
{
    const zc_mm *mm = j->mm;
    const int64_t n = j->each ? mm->batch : 1;
    const zc_byte_matrix m = {.k = mm->k,
                              .n = mm->n,
                              .inner = mm->k,
                              .inner_step = mm->b_row,
                              .column_step = mm->b_col,
                              .is_signed = k->in[bi].dtype == ZC_I8};
    size_t bytes = 0;
    const void **b = zc_scratch_get(k->scratch, (size_t)n * sizeof *b);
    int32_t *offsets = NULL;
    if (zc_mul_size((size_t)(n * zc_bytes_room(mm->n)), sizeof *offsets, &bytes))
        offsets = zc_scratch_get(k->scratch, bytes);
    if (!b || !offsets) return zc_fail_nomem(k->diag, "integer product", bytes);
    for (int64_t i = 0; i < n; i++) {
        int64_t at = 0, offset = 0;
        if (j->each) zc_mm_offsets(mm, i, &at, &offset);
        ZC_TRY(zc_bytes_packed(k, bi, offset, &m, &b[i]));
        zc_bytes_offset(b[i], mm->k, mm->n, j->a_zero, j->p.b_zero, NULL,
                        offsets + i * zc_bytes_room(mm->n));
    }
    j->b = b;
    j->offsets = offsets;
    return ZC_OK;
}

/* Parts for the threads: of the columns while the left operand, which each then reads, stays in
 * cache. */
static void divide(product_job *j)
{
    enum { PARTS = 8, LEAST_COLUMNS = 64, LEFT_MOST = 1 << 20 };
    const zc_mm *mm = j->mm;
    const bool large = (double)mm->m * (double)mm->n * (double)mm->k > 1e6;
    j->by_rows = mm->n < PARTS * LEAST_COLUMNS || mm->m * mm->k > LEFT_MOST;
    j->parts = j->items < PARTS && large ? PARTS : 1;
}

static zc_status multiply(zc_kctx *k, zc_mm *mm, int ai, int bi, int a_zero, int b_zero,
                          const zc_byte_scaling *s)
{
    product_job j = {.mm = mm,
                     .p = {.k = mm->k, .n = mm->n, .b_zero = zc_zero_of(k, b_zero), .s = *s},
                     .a_zero = zc_zero_of(k, a_zero),
                     .each = !is_one_matrix(mm),
                     .items = mm->batch,
                     .y = k->out[0].data,
                     .size = zc_dtype_bits(k->out[0].dtype) / 8,
                     .lda = zc_bytes_row(mm->k)};
    const int64_t rows = zc_tensor_numel(&k->in[ai]) / mm->k;
    if (zc_tensor_numel(&k->out[0]) == 0) return ZC_OK;
    ZC_TRY(zc_bytes_unsigned(k, ai, &j.a_zero, &j.a));
    if (k->in[bi].dtype == ZC_U8) j.p.b_zero -= 128;
    ZC_TRY(pack_right(k, bi, &j));
    if (j.lda != mm->k) ZC_TRY(widen(k, rows, mm->k, j.lda, &j.a));
    if (!j.each && rows == mm->batch * mm->m) { /* all rows meet the same matrix */
        mm->m = rows;
        j.items = 1;
    }
    divide(&j);
    ZC_TRY(zc_finish_begin(k, &j.epilogue));
    zc_parts(k, (int)(j.items * j.parts), product_part, &j);
    return ZC_OK;
}

static bool fits_product(const zc_kctx *k, int ai, int bi, int a_zero, int b_zero)
{
    const zc_tensor *a = &k->in[ai], *b = &k->in[bi];
    bool sizes = a->rank >= 1 && b->rank >= 2 && zc_tensor_numel(a) > 0 && zc_tensor_numel(b) > 0 &&
                 zc_tensor_numel(&k->out[0]) < INT32_MAX / 8;
    return sizes && zc_is_byte(a) && zc_is_byte(b) && zc_is_single(k, a_zero) &&
           zc_is_single(k, b_zero);
}

bool zc_fits_matmul_integer(const zc_kctx *k)
{
    return fits_product(k, ZC_IN_MatMulInteger_a, ZC_IN_MatMulInteger_b, ZC_IN_MatMulInteger_a_zero,
                        ZC_IN_MatMulInteger_b_zero);
}

zc_status zc_fast_matmul_integer(zc_kctx *k)
{
    zc_mm mm;
    const zc_byte_scaling s = {.scale = NULL};
    ZC_TRY(zc_mm_of(k, ZC_IN_MatMulInteger_a, ZC_IN_MatMulInteger_b, &mm));
    return multiply(k, &mm, ZC_IN_MatMulInteger_a, ZC_IN_MatMulInteger_b,
                    ZC_IN_MatMulInteger_a_zero, ZC_IN_MatMulInteger_b_zero, &s);
}

/* One scale, or one a column of the right operand; sums of 32 bits. */
bool zc_fits_qlinear_matmul(const zc_kctx *k)
{
    const zc_tensor *b = &k->in[ZC_IN_QLinearMatMul_b],
                    *scale = &k->in[ZC_IN_QLinearMatMul_b_scale];
    int64_t n = zc_tensor_numel(scale);
    int depth = b->rank - (ZC_ATTRS(k, QLinearMatMul)->transB ? 1 : 2);
    bool columns = scale->rank == 1 && b->rank >= 2 && n == b->dims[2 * b->rank - 3 - depth];
    return zc_is_byte(&k->out[0]) && zc_tensor_numel(&k->in[ZC_IN_QLinearMatMul_a_scale]) == 1 &&
           (n == 1 || columns) && b->rank >= 2 && b->dims[depth] <= ZC_BYTE_DEPTH_MAX &&
           fits_product(k, ZC_IN_QLinearMatMul_a, ZC_IN_QLinearMatMul_b, ZC_IN_QLinearMatMul_a_zero,
                        ZC_IN_QLinearMatMul_b_zero);
}

zc_status zc_fast_qlinear_matmul(zc_kctx *k)
{
    zc_mm mm;
    zc_byte_scaling s = {.y_zero = zc_zero_of(k, ZC_IN_QLinearMatMul_y_zero),
                         .y_signed = k->out[0].dtype == ZC_I8};
    ZC_TRY(zc_mm_of(k, ZC_IN_QLinearMatMul_a, ZC_IN_QLinearMatMul_b, &mm));
    ZC_TRY(zc_scaling_of(k, &k->in[ZC_IN_QLinearMatMul_b_scale],
                         zc_get(&k->in[ZC_IN_QLinearMatMul_a_scale], 0),
                         zc_get(&k->in[ZC_IN_QLinearMatMul_y_scale], 0), mm.n, &s));
    return multiply(k, &mm, ZC_IN_QLinearMatMul_a, ZC_IN_QLinearMatMul_b,
                    ZC_IN_QLinearMatMul_a_zero, ZC_IN_QLinearMatMul_b_zero, &s);
}
