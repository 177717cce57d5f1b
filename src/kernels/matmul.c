/* Matrix products: what the families of kernels share of the specialisation and the launch. */
#include <math.h>
#include <string.h>

#include "base/number.h"
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

bool zc_gen_rounds_factors(const zc_gen *g)
{
    return g->program->tf32 || g->step->tf32;
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
    zc_dtype dtype = zc_gen_in_type(g, form->a), made = zc_gen_out_type(g, 0);
    bool is_float = zc_dtype_is_float(dtype), wide = zc_dtype_bits(dtype) == 64;
    bool scaled = zc_matmul_scales_ints(form, dtype), bytes = form->scale && !is_float;
    zc_gen_type(g, "T", dtype);
    if (made != dtype) zc_gen_type(g, "Y", made);
    zc_gen_define(g, "TA", "%d", !form->a_along_k);
    zc_gen_define(g, "TB", "%d", form->b_along_k);
    zc_gen_define(g, "ADDEND", "%d", form->c >= 0);
    if (bytes) zc_gen_type(g, "B", zc_gen_in_type(g, form->b));
    if (form->scale) {
        zc_gen_define(g, "COLUMN_SCALES", "1");
        zc_gen_type(g, "C", ZC_F32);
    }
    if (form->c >= 0 && is_row(zc_gen_in(g, form->c), zc_gen_out(g, 0)))
        zc_gen_define(g, "ADDEND_ROW", "1");
    zc_gen_define(g, "ACC", "%s%d", is_float ? "f" : bytes ? "i" : "u", wide || scaled ? 64 : 32);
    bool unscaled = form->alpha == 1 && (form->c < 0 || form->beta == 1);
    if (is_float || bytes) zc_gen_define(g, "SCALE", "f%d", wide ? 64 : 32);
    if ((is_float || bytes) && unscaled) zc_gen_define(g, "UNSCALED", "1");
    if (scaled) {
        zc_gen_define(g, "SCALE", "f64");
        zc_gen_define(g, "SIGNED_SUM", "1");
    }
    if (form->norm) put_norm(g);
    if (form->activation) {
        zc_gen_define(g, "EPILOGUE", "1");
        ZC_TRY(zc_gen_activation(g, "zc_epilogue", form->activation, form->activation_params.n,
                                 form->activation_params.v, dtype));
    }
    return zc_gen_epilogue(g);
}

/* ---- the choice ---- */

enum {
    PART_MIN = 128 /* shorter parts of the summed axis cost more than they bring */
};

/* Into how many parts the summed axis goes, so that every multiprocessor has about two blocks. */
static int64_t parts_of(int64_t k, int64_t tiles, int sm_count)
{
    int64_t wanted = 2 * (int64_t)sm_count / (tiles ? tiles : 1), most = k / PART_MIN;
    if (wanted < 2 || most < 2) return 1;
    if (wanted > most) wanted = most;
    return wanted < ZC_GEMM_SPLITS ? wanted : ZC_GEMM_SPLITS;
}

/* The axes of A that are the product's rows; -1: only a run knows. Batch axes that B lacks join
 * A's rows, from the inside out. */
static int rows_of(const zc_gen *g, const zc_matmul_form *f, zc_dim factors[ZC_MAX_RANK])
{
    const zc_pvalue *a = zc_gen_in(g, f->a), *b = zc_gen_in(g, f->b);
    int n = 0, lines = f->by_axes ? f->side_a.line_count : f->flat ? a->rank - 1 : 0;
    for (int i = 0; i < lines; i++) factors[n++] = a->dims[f->side_a.line_first + i];
    if (f->by_axes || f->flat || a->rank < 2) return n;
    if (f->trans_batch_a) return -1;
    factors[n++] = a->dims[f->trans_a ? a->rank - 1 : a->rank - 2];
    bool joins = f->a_along_k && f->c < 0;
    for (int d = a->rank - 3; d >= 0; d--) {
        int e = (b->rank > 1 ? b->rank : 2) - (a->rank - d);
        zc_dim in_a = a->dims[d], in_b = e >= 0 ? b->dims[e] : zc_dim_const(1);
        bool lacks = zc_dim_is_const(in_b) && in_b.k == 1;
        if (zc_dim_is_const(in_a) && in_a.k == 1) {
            joins = joins && lacks;
        } else if (!lacks) {
            if (!zc_dim_is_const(in_b) && !zc_dim_eq(in_a, in_b)) return -1;
            joins = false;
        } else if (joins) {
            factors[n++] = in_a;
        } else if (f->a_along_k && f->c < 0) {
            return -1;
        }
    }
    return n;
}

static int64_t known(zc_dim d)
{
    return zc_dim_is_const(d) ? d.k : -1;
}

/* The product of axes [first, first + count) of v; -1 where one is not certain. */
static int64_t span_of(const zc_pvalue *v, int first, int count)
{
    int64_t n = 1;
    for (int d = first; d < first + count; d++)
        if (known(v->dims[d]) < 0 || !zc_mul_i64(n, known(v->dims[d]), &n)) return -1;
    return n;
}

static int64_t depth_of(const zc_pvalue *a, const zc_matmul_form *f)
{
    if (f->by_axes) return span_of(a, f->side_a.depth_first, f->side_a.depth_count);
    if (a->rank < 2 || !f->trans_a) return known(a->dims[a->rank - 1]);
    return known(a->dims[f->trans_batch_a ? 0 : a->rank - 2]);
}

static int64_t columns_of(const zc_pvalue *b, const zc_matmul_form *f)
{
    if (f->by_axes) return span_of(b, f->side_b.line_first, f->side_b.line_count);
    if (b->rank < 2) return 1;
    if (!f->trans_b) return known(b->dims[b->rank - 1]);
    return known(b->dims[f->trans_batch_b ? 0 : b->rank - 2]);
}

void zc_gen_matmul_rows(zc_gen *g, const zc_dim *factors, int n, int64_t *low, int64_t *high)
{
    static const int64_t bounds[] = {1, ZC_GEMM_SMALL_M, 64, 256, 1024};
    zc_gen_size(g, factors, n, bounds, ZC_COUNTOF(bounds), low, high);
}

zc_matmul_sizes zc_gen_matmul_sizes(zc_gen *g, const zc_matmul_form *form)
{
    const zc_pvalue *a = zc_gen_in(g, form->a), *b = zc_gen_in(g, form->b), *y = zc_gen_out(g, 0);
    zc_matmul_sizes s = {.m_high = INT64_MAX, .batch = -1};
    zc_dim factors[ZC_MAX_RANK];
    int n = rows_of(g, form, factors);
    if (n >= 0) zc_gen_matmul_rows(g, factors, n, &s.m_low, &s.m_high);
    s.n = columns_of(b, form);
    s.k = depth_of(a, form);
    int64_t all = span_of(y, 0, y->rank);
    if (form->flat) s.batch = 1;
    if (all > 0 && s.n > 0 && s.m_low > 0 && s.m_low == s.m_high) s.batch = all / s.n / s.m_low;
    return s;
}

/* Columns of a block of the kernels for few rows where B's rows lie one after another. */
static int small_width(int bytes, size_t sum_bytes)
{
    return bytes <= 2 && sum_bytes == 4 ? 64 : 32;
}

static void choose_rows(zc_gen *g, const zc_matmul_form *form, int64_t m, size_t sum_bytes)
{
    int bytes = (int)zc_dtype_bits(zc_gen_in_type(g, form->a)) / 8;
    int rows = m <= 1 ? 1 : m <= 4 ? 4 : ZC_GEMM_SMALL_M;
    g->config[ZC_MM_ROWS] = rows;
    zc_snprintf(g->why, sizeof g->why, "no tensor cores: few rows");
    g->threads = form->b_along_k ? ZC_GEMM_THREADS : ZC_GEMV_WARPS * 32;
    if (!form->b_along_k)
        g->smem =
            (uint32_t)(ZC_GEMV_WARPS * rows * small_width(bytes, sum_bytes)) * (uint32_t)sum_bytes;
}

int zc_gen_matmul_side(const zc_gen *g, const zc_matmul_sizes *s, const zc_matmul_tiling *t)
{
    if (g->candidate) return t->large;
    bool exact = s->m_low == s->m_high;
    int64_t m = exact ? s->m_high : s->m_high == INT64_MAX ? ZC_MM_FAR : s->m_high / 2;
    int64_t n = s->n < 0 ? m : s->n, batch = s->batch < 0 ? 1 : s->batch;
    int64_t blocks =
        zc_ceil_div(m, t->large) * zc_ceil_div(n, t->large) * (batch < 65535 ? batch : 65535);
    bool large = s->m_low > 0 && m > t->least && n > t->least && blocks >= g->sm_count;
    return large ? t->large : t->small;
}

static int split_of(const zc_gen *g, const zc_matmul_sizes *s, int side)
{
    if (s->batch >= 0 && s->batch != 1) return ZC_MM_SPLIT_NEVER;
    int64_t k = s->k < 0 ? INT64_MAX : s->k, across = s->n < 0 ? 1 : zc_ceil_div(s->n, side);
    bool may = parts_of(k, zc_ceil_div(s->m_low, side) * across, g->sm_count) > 1;
    bool exact = s->batch == 1 && s->n >= 0 && s->k >= 0 && s->m_low == s->m_high;
    if (!may) return ZC_MM_SPLIT_NEVER;
    return exact ? ZC_MM_SPLIT_ALWAYS : ZC_MM_SPLIT_FEW;
}

void zc_gen_matmul_tiles(zc_gen *g, const zc_matmul_form *form, const zc_matmul_tiling *t)
{
    zc_matmul_sizes s = zc_gen_matmul_sizes(g, form);
    if (s.m_high <= ZC_GEMM_SMALL_M) {
        choose_rows(g, form, s.m_high, t->sum_bytes);
        return;
    }
    int side = zc_gen_matmul_side(g, &s, t);
    g->config[ZC_MM_SIDE] = side;
    if (side == t->small) g->config[ZC_MM_SPLIT] = split_of(g, &s, side);
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
    p->sum = zc_launch_out(l, 1);
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
    p->scale = form->scale ? l->in[form->scale].data : NULL;
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

zc_status zc_matmul_grid(zc_launch *l, const zc_matmul *mm, int height, int width, zc_dim3 *grid)
{
    int64_t tiles;
    if (!zc_mul_i64(zc_ceil_div(mm->m, height), zc_ceil_div(mm->n, width), &tiles) ||
        tiles > INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)mm->m, (long long)mm->n);
    *grid = (zc_dim3){(uint32_t)tiles, 1, (uint32_t)(mm->batch < 65535 ? mm->batch : 65535)};
    return ZC_OK;
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
    bool brief = p->n <= ZC_GEMM_NORM_SHORT;
    zc_dim3 grid = {(uint32_t)zc_ceil_div(p->m, brief ? ZC_GEMM_NORM_WARPS : 1), 1, 1};
    uint32_t threads = brief ? ZC_GEMM_NORM_WARPS * 32 : ZC_GEMM_NORM;
    return zc_launch_kernel(l, 1, grid, threads, 32 * sizeof(double), p, sizeof *p);
}

/* Entry 0, and what adds its parts up or normalises its rows. */
static zc_status launch_parts(zc_launch *l, const zc_matmul_form *form, const zc_matmul *mm,
                              zc_dim3 grid, size_t sum_bytes, struct zc_gemm_params *p)
{
    int64_t split = l->kernel->config[ZC_MM_SPLIT], parts = 1;
    if (split && mm->batch == 1) parts = parts_of(mm->k, grid.x, l->sm_count);
    bool adds = split == ZC_MM_SPLIT_ALWAYS || parts > 1;
    p->split_k = mm->k;
    if (adds || form->norm) ZC_TRY(zc_matmul_partial_sums(l, mm, parts, sum_bytes, p));
    grid.y = parts > 1 ? (uint32_t)p->splits : 1;
    ZC_TRY(zc_launch_configured(l, grid, p, sizeof *p));
    if (form->norm) return zc_matmul_launch_norm(l, p);
    if (!adds) return ZC_OK;
    zc_dim3 flat = {zc_launch_blocks(mm->m * mm->n, ZC_GEMM_THREADS, 8 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 1, flat, ZC_GEMM_THREADS, 0, p, sizeof *p);
}

zc_status zc_matmul_launch(zc_launch *l, int vector_bytes, size_t sum_bytes)
{
    const int64_t *config = l->kernel->config;
    zc_matmul_form form;
    zc_matmul mm;
    struct zc_gemm_params p;
    zc_dim3 grid;
    ZC_TRY(zc_matmul_form_launch(l, &form));
    ZC_TRY(zc_matmul_of(l, &form, &mm));
    zc_matmul_simplify(&form, &mm);
    if (mm.batch == 0) return ZC_OK;
    int height = (int)config[ZC_MM_SIDE], width = height;
    int bytes = (int)zc_dtype_bits(l->in[form.a].dtype) / 8;
    if (config[ZC_MM_ROWS]) {
        height = (int)config[ZC_MM_ROWS];
        width = form.b_along_k ? ZC_GEMM_THREADS / 32 : small_width(bytes, sum_bytes);
        vector_bytes = !form.b_along_k ? width / 32 * bytes : bytes == 1 ? 8 : 16;
        if (mm.m > height)
            return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject,
                           "more rows than its kernel has (got %lld, need at most %d)",
                           (long long)mm.m, height);
    }
    ZC_TRY(zc_matmul_params(l, &form, &mm, vector_bytes, &p));
    ZC_TRY(zc_matmul_grid(l, &mm, height, width, &grid));
    return launch_parts(l, &form, &mm, grid, sum_bytes, &p);
}
