#include "cpu/matmul_panels.h"

#include "cpu/panels.h"

bool zc_matmul_packs(zc_op op, zc_dtype a, zc_dtype b, int b_rank)
{
    const bool product = op == ZC_OP_MatMul || op == ZC_OP_Gemm || op == ZC_OP_Linear ||
                         op == ZC_OP_LinearNorm || op == ZC_OP_FusedMatMul;
    return product && zc_panels_wanted() && a == ZC_F32 && b == ZC_F32 && b_rank == 2;
}

typedef struct panels_job {
    const zc_kctx *k;
    zc_panel_product p;
    const float *a;
    int64_t rows, lda, panels;
    int64_t row_parts, col_parts;
    const zc_finish *epilogue;
} panels_job;

static void multiply_part(void *arg, int i)
{
    const panels_job *j = arg;
    const int64_t rp = i / j->col_parts, cp = i % j->col_parts;
    const int64_t first = j->rows * rp / j->row_parts, last = j->rows * (rp + 1) / j->row_parts;
    const int64_t from = j->panels * cp / j->col_parts, to = j->panels * (cp + 1) / j->col_parts;
    const int64_t column = from * ZC_PANEL, end = to == j->panels ? j->p.n : to * ZC_PANEL;
    const int64_t blocks = (last - first + ZC_PANEL_BLOCK - 1) / ZC_PANEL_BLOCK;
    const float *x[ZC_PANEL_BLOCK];
    for (int64_t b = 0; b < blocks && !zc_stopped(j->k); b++) {
        const int64_t row = first + (last - first) * b / blocks;
        const int64_t n = first + (last - first) * (b + 1) / blocks - row;
        zc_panel_product p = j->p;
        for (int64_t r = 0; r < n; r++) x[r] = j->a + (row + r) * j->lda;
        p.y += row * p.ldy;
        if (p.residual) p.residual += row * p.ldy;
        zc_panels_multiply(&p, n, x, 0, from, to);
    }
    const int64_t rows = last - first, width = end - column;
    const bool joined = width == j->p.n; /* rows lie side by side */
    zc_finish_run(j->epilogue, first * j->p.n + column, joined ? 1 : rows,
                  joined ? rows * width : width, j->p.n);
}

static int64_t within(int64_t n, int64_t most)
{
    return n < 1 ? 1 : n < most ? n : most;
}

/* Parts for the threads, of rows first: each packs nothing, but reads its panels. */
static void divide(panels_job *j)
{
    enum { PARTS = 8, LEAST_PANELS = 12 };
    const double flops = 2.0 * (double)j->rows * (double)j->p.n * (double)j->p.depth;
    const int64_t most = flops < 4e5 ? 1 : PARTS;
    j->row_parts = within(j->rows / ZC_PANEL_BLOCK, most);
    j->col_parts = within(j->panels / LEAST_PANELS, most / j->row_parts);
}

/* One matrix for all rows, which lie one after the other; c is a row or has one for each. */
static bool suits(const zc_kctx *k, const zc_mm *mm)
{
    const bool rows = mm->a_col == 1 && (mm->m == 1 || mm->a_row == mm->k || mm->batch == 1) &&
                      (mm->batch == 1 || zc_tensor_numel(&k->in[0]) == mm->batch * mm->m * mm->k);
    const bool added = !mm->c || (mm->beta == 1 && (mm->c_col == 1 || mm->n == 1) &&
                                  (mm->c_row == 0 || (mm->c_row == mm->n && mm->batch == 1)));
    return rows && added && mm->alpha == 1;
}

zc_status zc_matmul_panels(zc_kctx *k, const zc_mm *mm, bool *done)
{
    const zc_panel_matrix m = {.groups = 1,
                               .n = mm->n,
                               .depth = mm->k,
                               .taps = 1,
                               .column_step = mm->b_col,
                               .depth_step = mm->b_row};
    panels_job j = {.k = k,
                    .p = {.n = mm->n, .depth = mm->k, .taps = 1, .y = k->out[0].data, .ldy = mm->n},
                    .a = k->in[0].data,
                    .rows = mm->batch * mm->m,
                    .lda = mm->m == 1 ? mm->k : mm->a_row,
                    .panels = zc_panels_of(mm->n)};
    const void *packed;
    *done = false;
    if (!k->packs || !(k->const_in & 2) ||
        !zc_matmul_packs(k->op, k->in[0].dtype, k->in[1].dtype, k->in[1].rank))
        return ZC_OK;
    if (!suits(k, mm)) return zc_packs_keep(k->packs, k->diag); /* the original is read */
    ZC_TRY(zc_panels_packed(k, 1, &m, &packed));
    j.p.w = packed;
    if (mm->c && mm->c_row == 0) j.p.bias = mm->c->data;
    if (mm->c && mm->c_row != 0) j.p.residual = mm->c->data;
    divide(&j);
    ZC_TRY(zc_finish_begin(k, &j.epilogue));
    zc_parts(k, (int)(j.row_parts * j.col_parts), multiply_part, &j);
    *done = true;
    return ZC_OK;
}
