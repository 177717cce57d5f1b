/* Matrix products: what the families of kernels share of the specialisation and the launch. */
#include <math.h>
#include <string.h>

#include "kernels/matmul.h"
#include "op/activation.h"

/* ---- the specialisation ---- */

/* Summed axes of an Einsum must be alike in both operands: 1 would broadcast. */
static bool depths_agree(const zc_matmul_form *form, const zc_pvalue *a, const zc_pvalue *b)
{
    for (int d = 0; d < form->side_a.depth_count; d++)
        if (!zc_dim_eq(a->dims[form->side_a.depth_first + d],
                       b->dims[form->side_b.depth_first + d]))
            return false;
    return true;
}

zc_status zc_gen_matmul_form(zc_gen *g, zc_matmul_form *form)
{
    int ranks[8], nin = (int)g->step->nin < (int)ZC_COUNTOF(ranks) ? (int)g->step->nin
                                                                   : (int)ZC_COUNTOF(ranks);
    for (int i = 0; i < nin; i++) {
        const zc_pvalue *v = zc_gen_in(g, i);
        ranks[i] = v ? v->rank : -1;
        if (v && v->rank < 0) return zc_gen_decline(g, "rank known only when run");
    }
    if (!zc_matmul_form_of(g->info, g->attrs, nin, ranks, form) ||
        (form->by_axes && !depths_agree(form, zc_gen_in(g, form->a), zc_gen_in(g, form->b))))
        return zc_gen_decline(g, "not one matrix product");
    return ZC_OK;
}

/* One row for all, as long as the result's? */
static bool is_row(const zc_pvalue *c, const zc_pvalue *y)
{
    for (int d = 0; d + 1 < c->rank; d++)
        if (!zc_dim_is_const(c->dims[d]) || c->dims[d].k != 1) return false;
    zc_dim last = c->rank > 0 ? c->dims[c->rank - 1] : zc_dim_const(1);
    return !(zc_dim_is_const(last) && last.k == 1) && zc_dim_eq(last, y->dims[y->rank - 1]);
}

static void put_norm(zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    int64_t n = zc_gen_const_dim(y, y->rank - 1);
    zc_gen_define(g, "NORM", "1");
    if (n > 0) zc_gen_define(g, "N", "%lldLL", (long long)n);
    if (ZC_ATTRS(g, LinearNorm)->rms) zc_gen_define(g, "RMS", "1");
}

zc_status zc_gen_matmul_spec(zc_gen *g, const zc_matmul_form *form)
{
    zc_dtype dtype = zc_gen_out_type(g, 0);
    bool is_float = zc_dtype_is_float(dtype), wide = zc_dtype_bits(dtype) == 64;
    bool scaled = zc_matmul_scales_ints(form, dtype);
    zc_gen_type(g, "T", dtype);
    zc_gen_define(g, "TA", "%d", !form->a_along_k);
    zc_gen_define(g, "TB", "%d", form->b_along_k);
    zc_gen_define(g, "ADDEND", "%d", form->c >= 0);
    if (form->c >= 0 && is_row(zc_gen_in(g, form->c), zc_gen_out(g, 0)))
        zc_gen_define(g, "ADDEND_ROW", "1");
    zc_gen_define(g, "ACC", "%s%d", is_float ? "f" : "u", wide || scaled ? 64 : 32);
    if (is_float) zc_gen_define(g, "SCALE", "f%d", wide ? 64 : 32);
    if (scaled) {
        zc_gen_define(g, "SCALE", "f64");
        zc_gen_define(g, "SIGNED_SUM", "1");
    }
    if (form->norm) put_norm(g);
    if (form->activation) {
        zc_gen_define(g, "EPILOGUE", "1");
        ZC_TRY(zc_gen_activation(g, "zc_epilogue", form->activation, form->activation_count,
                                 form->activation_params, dtype));
    }
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

bool zc_matmul_aligned(const zc_tensor *t, const zc_matmul_view *v, const zc_matmul *mm, int64_t ld,
                       int bytes)
{
    int64_t per = bytes / (int64_t)(zc_dtype_bits(t->dtype) / 8);
    if (per <= 0 || (uintptr_t)t->data % (uintptr_t)bytes || ld % per) return false;
    for (int d = 0; d < mm->batch_rank; d++)
        if (v->batch[d] % per) return false;
    return true;
}

static void norm_params(const zc_launch *l, struct zc_gemm_norm *p)
{
    p->skip = zc_launch_in(l, 3);
    p->gamma = zc_launch_in(l, 4);
    p->beta = zc_launch_in(l, 5);
    p->sum = l->nout > 1 && l->out[1].dtype != ZC_NONE ? l->out[1].data : NULL;
    p->epsilon = ZC_ATTRS(l, LinearNorm)->epsilon;
}

zc_status zc_matmul_params(const zc_launch *l, const zc_matmul_form *form, const zc_matmul *mm,
                           int vector_bytes, struct zc_gemm_params *p)
{
    const zc_matmul_view *a = &mm->view[ZC_MM_A], *b = &mm->view[ZC_MM_B], *y = &mm->view[ZC_MM_Y];
    memset(p, 0, sizeof *p);
    p->a = l->in[form->a].data;
    p->b = l->in[form->b].data;
    p->c = form->c >= 0 ? l->in[form->c].data : NULL;
    p->y = l->out[0].data;
    p->m = mm->m;
    p->n = mm->n;
    p->k = mm->k;
    p->batch = mm->batch;
    p->a_ld = form->a_along_k ? a->line : a->depth;
    p->b_ld = form->b_along_k ? b->line : b->depth;
    p->y_ld = y->line;
    p->c_row = mm->c_row;
    p->c_col = mm->c_col;
    p->alpha = form->alpha;
    p->beta = form->beta;
    p->batch_rank = mm->batch_rank;
    for (int d = 0; d < mm->batch_rank; d++) {
        p->batch_dims[d] = mm->batch_dims[d];
        p->a_batch[d] = a->batch[d];
        p->b_batch[d] = b->batch[d];
        p->y_batch[d] = y->batch[d];
    }
    if (zc_matmul_aligned(&l->in[form->a], a, mm, p->a_ld, vector_bytes))
        p->aligned |= ZC_GEMM_A_ALIGNED;
    if (zc_matmul_aligned(&l->in[form->b], b, mm, p->b_ld, vector_bytes))
        p->aligned |= ZC_GEMM_B_ALIGNED;
    if (mm->n % 2 == 0 &&
        zc_matmul_aligned(&l->out[0], y, mm, p->y_ld, 2 * (int)zc_dtype_bits(l->out[0].dtype) / 8))
        p->aligned |= ZC_GEMM_Y_ALIGNED;
    if (form->norm) norm_params(l, &p->norm);
    return zc_launch_epilogue(l, &p->fused);
}

static int64_t ceil_div(int64_t n, int64_t by)
{
    return n / by + (n % by != 0);
}

zc_status zc_matmul_grid(zc_launch *l, const zc_matmul *mm, int height, int width, zc_dim3 *grid)
{
    int64_t tiles;
    if (!zc_mul_i64(ceil_div(mm->m, height), ceil_div(mm->n, width), &tiles) || tiles > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)mm->m, (long long)mm->n);
    *grid = (zc_dim3){(uint32_t)tiles, 1, (uint32_t)(mm->batch < 65535 ? mm->batch : 65535)};
    return ZC_OK;
}

enum { PART_MIN = 128 }; /* shorter parts of the summed axis cost more than they bring */

/* Into how many parts the summed axis goes, so that every multiprocessor has about two blocks. */
static int64_t splits_for(const zc_launch *l, const zc_matmul *mm, const zc_matmul_tiles *t)
{
    int64_t wanted = 2 * (int64_t)l->sm_count / t->grid.x, most = mm->k / PART_MIN;
    if (t->split_entry < 0 || mm->batch != 1 || wanted < 2 || most < 2) return 1;
    if (wanted > most) wanted = most;
    return wanted < ZC_GEMM_SPLITS ? wanted : ZC_GEMM_SPLITS;
}

zc_status zc_matmul_partial_sums(zc_launch *l, const zc_matmul *mm, int64_t splits,
                                 size_t sum_bytes, struct zc_gemm_params *p)
{
    size_t bytes;
    int64_t elements;
    if (!zc_mul_i64(mm->m, mm->n, &elements) ||
        !zc_mul_size((size_t)elements, (size_t)splits * sum_bytes, &bytes))
        return zc_fail_nomem(l->diag, "partial sums", 0);
    p->split_k = splits > 1 ? ((mm->k - 1) / splits / PART_MIN + 1) * PART_MIN : mm->k;
    p->splits = splits > 1 ? (mm->k - 1) / p->split_k + 1 : 1;
    return zc_launch_scratch(l, bytes, &p->partial);
}

zc_status zc_matmul_launch_norm(zc_launch *l, const struct zc_gemm_params *p)
{
    if (p->m > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "too many rows (got %lld)", p->m);
    zc_dim3 rows = {(uint32_t)p->m, 1, 1};
    return zc_launch_kernel(l, 7, rows, ZC_GEMM_NORM, 32 * sizeof(double), p, sizeof *p);
}

zc_status zc_matmul_launch_tiles(zc_launch *l, const zc_matmul_form *form, const zc_matmul *mm,
                                 const zc_matmul_tiles *tiles, struct zc_gemm_params *p)
{
    int64_t splits = splits_for(l, mm, tiles);
    zc_dim3 grid = tiles->grid;
    if (splits > 1 || form->norm)
        ZC_TRY(zc_matmul_partial_sums(l, mm, splits, tiles->sum_bytes, p));
    if (splits > 1) grid.y = (uint32_t)p->splits;
    ZC_TRY(zc_launch_kernel(l, splits > 1 ? tiles->split_entry : tiles->entry, grid, tiles->threads,
                            tiles->smem, p, sizeof *p));
    if (form->norm) return zc_matmul_launch_norm(l, p);
    if (splits <= 1) return ZC_OK;
    zc_dim3 flat = {zc_launch_blocks(mm->m * mm->n, ZC_GEMM_THREADS, 8 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 6, flat, ZC_GEMM_THREADS, 0, p, sizeof *p);
}

zc_status zc_matmul_launch_small(zc_launch *l, const zc_matmul_form *form, const zc_matmul *mm,
                                 int first, size_t sum_bytes)
{
    struct zc_gemm_params p;
    zc_dim3 grid;
    int bytes = (int)zc_dtype_bits(l->in[form->a].dtype) / 8, rows = mm->m <= 1   ? 1
                                                                     : mm->m <= 4 ? 4
                                                                                  : 8;
    int entry = first + (rows == 1 ? 0 : rows == 4 ? 1 : 2);
    if (form->b_along_k) {
        ZC_TRY(zc_matmul_params(l, form, mm, bytes == 1 ? 8 : 16, &p));
        ZC_TRY(zc_matmul_grid(l, mm, ZC_GEMM_SMALL_M, ZC_GEMM_THREADS / 32, &grid));
        if (form->norm) ZC_TRY(zc_matmul_partial_sums(l, mm, 1, sum_bytes, &p));
        ZC_TRY(zc_launch_kernel(l, entry, grid, ZC_GEMM_THREADS, 0, &p, sizeof p));
        return form->norm ? zc_matmul_launch_norm(l, &p) : ZC_OK;
    }
    int each = bytes <= 2 && sum_bytes == 4 ? 2 : 1; /* columns a lane */
    ZC_TRY(zc_matmul_params(l, form, mm, each * bytes, &p));
    ZC_TRY(zc_matmul_grid(l, mm, ZC_GEMM_SMALL_M, 32 * each, &grid));
    uint32_t smem = (uint32_t)(ZC_GEMV_WARPS * rows * 32 * each) * (uint32_t)sum_bytes;
    if (form->norm) ZC_TRY(zc_matmul_partial_sums(l, mm, 1, sum_bytes, &p));
    ZC_TRY(zc_launch_kernel(l, entry, grid, ZC_GEMV_WARPS * 32, smem, &p, sizeof p));
    return form->norm ? zc_matmul_launch_norm(l, &p) : ZC_OK;
}
