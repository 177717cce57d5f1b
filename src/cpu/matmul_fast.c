/* f32 matrix products: batch items, or parts of one product, on the session's threads. */
#include <stdatomic.h>
#include <string.h>

#include "cpu/fast.h"
#include "cpu/gemm.h"
#include "cpu/matmul.h"

bool zc_fits_matmul_f32(const zc_kctx *k)
{
    for (int i = 0; i < k->nin; i++)
        if (zc_present(&k->in[i]) && k->in[i].dtype != ZC_F32) return false;
    return k->out[0].dtype == ZC_F32;
}

typedef struct mm_job {
    const zc_mm *mm;
    const float *a, *b, *c;
    float *y;
    int64_t parts; /* of each product, along n or m */
    bool by_rows;
    atomic_bool failed;
} mm_job;

/* Rows [row, row+rows) x columns [col, col+cols) of y start as beta * c. */
static void start_from_c(const mm_job *j, float *y, int64_t row, int64_t rows, int64_t col,
                         int64_t cols)
{
    const zc_mm *mm = j->mm;
    float beta = (float)mm->beta;
    for (int64_t r = 0; r < rows; r++) {
        const float *c = j->c + (row + r) * mm->c_row + col * mm->c_col;
        float *to = y + r * mm->n;
        for (int64_t i = 0; i < cols; i++) to[i] = beta * c[i * mm->c_col];
    }
}

/* An operand is stored by rows or, transposed, by columns. */
static int64_t leading(int64_t row, int64_t col, bool trans, int64_t least)
{
    int64_t ld = trans ? col : row;
    return ld < least ? least : ld;
}

static void part(void *arg, int i)
{
    mm_job *j = arg;
    const zc_mm *mm = j->mm;
    int64_t item = i / j->parts, p = i % j->parts, a_off, b_off;
    zc_mm_offsets(mm, item, &a_off, &b_off);
    int64_t all = j->by_rows ? mm->m : mm->n,
            unit = j->by_rows ? 1 : 16; /* whole vectors of columns */
    int64_t units = (all + unit - 1) / unit;
    int64_t begin = units * p / j->parts * unit, end = units * (p + 1) / j->parts * unit;
    if (end > all) end = all;
    int64_t row = j->by_rows ? begin : 0, rows = j->by_rows ? end - begin : mm->m;
    int64_t col = j->by_rows ? 0 : begin, cols = j->by_rows ? mm->n : end - begin;
    if (rows <= 0 || cols <= 0) return;
    bool ta = mm->a_col != 1 && mm->k > 1, tb = mm->b_col != 1 && mm->n > 1;
    float *y = j->y + item * mm->m * mm->n + row * mm->n + col;
    if (j->c) start_from_c(j, y, row, rows, col, cols);
    bool ok = zc_sgemm(
        ta, tb, rows, cols, mm->k, (float)mm->alpha, j->a + a_off + row * mm->a_row,
        leading(mm->a_row, mm->a_col, ta, ta ? rows : mm->k), j->b + b_off + col * mm->b_col,
        leading(mm->b_row, mm->b_col, tb, tb ? mm->k : cols), j->c ? 1.0f : 0.0f, y, mm->n);
    if (!ok) atomic_store(&j->failed, true);
}

/* Work that is worth another thread. */
#define PART_FLOPS 200000.0

zc_status zc_fast_matmul_f32(zc_kctx *k)
{
    zc_mm mm;
    ZC_TRY(zc_mm_of(k, 0, 1, &mm));
    if (zc_tensor_numel(&k->out[0]) == 0) return ZC_OK;
    mm_job j = {.mm = &mm,
                .a = k->in[0].data,
                .b = k->in[1].data,
                .c = mm.c && mm.beta != 0 ? mm.c->data : NULL,
                .y = k->out[0].data,
                .parts = 1};
    if (mm.k == 0) { /* an empty sum, which the library does not define */
        for (int64_t i = 0; i < zc_tensor_numel(&k->out[0]); i++) j.y[i] = 0;
        for (int64_t i = 0; j.c && i < mm.batch; i++)
            start_from_c(&j, j.y + i * mm.m * mm.n, 0, mm.m, 0, mm.n);
        return ZC_OK;
    }
    int threads = zc_pool_threads(k->pool);
    double flops = 2.0 * (double)mm.m * (double)mm.n * (double)mm.k;
    j.by_rows = mm.n < 64 * threads;
    if (mm.batch < threads && flops > 2 * PART_FLOPS) j.parts = threads;
    if (mm.batch * j.parts > INT32_MAX)
        return zc_kernel_unsupported(k, "more than 2^31 matrix products");
    if (flops * (double)mm.batch < 2 * PART_FLOPS) {
        for (int i = 0; i < (int)(mm.batch * j.parts); i++) part(&j, i);
    } else {
        zc_pool_run(k->pool, (int)(mm.batch * j.parts), part, &j);
    }
    return atomic_load(&j.failed)
               ? zc_fail(k->diag, ZC_ERR_INTERNAL, k->subject, "oneDNN refused a matrix product")
               : ZC_OK;
}
