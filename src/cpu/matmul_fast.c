/* f32 matrix products: batch items, or parts of one product, on the session's threads. */
#include <stdatomic.h>
#include <string.h>

#include "cpu/dnnl.h"
#include "cpu/fast.h"
#include "cpu/gemm.h"
#include "cpu/matmul_panels.h"

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
    const zc_finish *epilogue;
    int64_t row_parts, col_parts; /* of each product */
    atomic_int status;
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

/* Part p of `parts` of [0, n), in whole units. */
static int64_t part_begin(int64_t n, int64_t unit, int64_t p, int64_t parts)
{
    int64_t at = (n + unit - 1) / unit * p / parts * unit;
    return at < n ? at : n;
}

static void part(void *arg, int i)
{
    mm_job *j = arg;
    const zc_mm *mm = j->mm;
    int64_t p = i % (j->row_parts * j->col_parts), item = i / (j->row_parts * j->col_parts);
    int64_t rp = p / j->col_parts, cp = p % j->col_parts, a_off, b_off;
    zc_mm_offsets(mm, item, &a_off, &b_off);
    int64_t row = part_begin(mm->m, 1, rp, j->row_parts);
    int64_t rows = part_begin(mm->m, 1, rp + 1, j->row_parts) - row;
    int64_t col = part_begin(mm->n, 16, cp, j->col_parts); /* whole vectors */
    int64_t cols = part_begin(mm->n, 16, cp + 1, j->col_parts) - col;
    if (rows <= 0 || cols <= 0) return;
    bool ta = mm->a_col != 1 && mm->k > 1, tb = mm->b_col != 1 && mm->n > 1;
    float *y = j->y + item * mm->m * mm->n + row * mm->n + col;
    if (j->c) start_from_c(j, y, row, rows, col, cols);
    zc_status status = zc_sgemm(
        ta, tb, rows, cols, mm->k, (float)mm->alpha, j->a + a_off + row * mm->a_row,
        leading(mm->a_row, mm->a_col, ta, ta ? rows : mm->k), j->b + b_off + col * mm->b_col,
        leading(mm->b_row, mm->b_col, tb, tb ? mm->k : cols), j->c ? 1.0f : 0.0f, y, mm->n);
    if (status != ZC_OK) atomic_store(&j->status, (int)status);
    bool joined = cols == mm->n; /* rows lie side by side */
    zc_finish_run(j->epilogue, y - j->y, joined ? 1 : rows, joined ? rows * cols : cols, mm->n);
}

/* Work that is worth another thread. */
#define PART_FLOPS 200000.0
/* Parts of all products together, and how small they may be: each packs operands anew. More where a
 * part would keep those who cancel a run waiting. */
#define PARTS       8
#define LONG_FLOPS  2e8
#define MANY_PARTS  4096
#define PART_COLS   192
#define PART_ROWS   64
#define COSTLY_ROWS 256

static int64_t within(int64_t n, int64_t most)
{
    return n < 1 ? 1 : n < most ? n : most;
}

/* By the shape alone, never by the number of threads: how the library sums depends on the sizes
 * that it is given, and results must not depend on threads. */
static void divide(mm_job *j, double flops)
{
    const zc_mm *mm = j->mm;
    int64_t most = flops > 2 * PART_FLOPS ? within(PARTS / mm->batch, PARTS) : 1;
    if (flops > LONG_FLOPS * (double)most)
        most = flops < LONG_FLOPS * MANY_PARTS ? (int64_t)(flops / LONG_FLOPS) : MANY_PARTS;
    j->col_parts = within(mm->n / PART_COLS, most);
    int64_t least = j->col_parts < PARTS / 2 ? PART_ROWS : COSTLY_ROWS;
    j->row_parts = within(mm->m / least, most / j->col_parts);
}

zc_status zc_fast_matmul_f32(zc_kctx *k)
{
    zc_mm mm;
    ZC_TRY(zc_mm_of(k, 0, 1, &mm));
    if (zc_tensor_numel(&k->out[0]) == 0) return ZC_OK;
    mm_job j = {.mm = &mm,
                .a = k->in[0].data,
                .b = k->in[1].data,
                .c = mm.c && mm.beta != 0 ? mm.c->data : NULL,
                .y = k->out[0].data};
    if (mm.k == 0) { /* an empty sum, which the library does not define */
        for (int64_t i = 0; i < zc_tensor_numel(&k->out[0]); i++) j.y[i] = 0;
        for (int64_t i = 0; j.c && i < mm.batch; i++)
            start_from_c(&j, j.y + i * mm.m * mm.n, 0, mm.m, 0, mm.n);
        return ZC_OK;
    }
    bool done;
    ZC_TRY(zc_matmul_panels(k, &mm, &done));
    if (done) return ZC_OK;
    double flops = 2.0 * (double)mm.m * (double)mm.n * (double)mm.k;
    divide(&j, flops);
    int64_t parts = mm.batch * j.row_parts * j.col_parts;
    if (parts > INT32_MAX) return zc_kernel_unsupported(k, "more than 2^31 matrix products");
    ZC_TRY(zc_finish_begin(k, &j.epilogue));
    if (flops * (double)mm.batch < 2 * PART_FLOPS)
        zc_pool_run(NULL, (int)parts, part, &j);
    else
        zc_parts(k, (int)parts, part, &j);
    return zc_dnnl_report(k, (zc_status)atomic_load(&j.status), "matrix product");
}
