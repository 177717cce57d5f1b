#include "kernels/matmul.h"

#include "kernels/collapse.h"
#include "op/matrix.h"

/* ---- what operation, attributes and ranks decide ---- */

static bool is(const zc_op_info *info, zc_op op)
{
    return info == zc_op_get(op);
}

static void gemm_form(const zc_attrs_Gemm *at, zc_matmul_form *f)
{
    f->trans_a = at->transA;
    f->trans_b = at->transB;
    f->alpha = at->alpha;
    f->beta = at->beta;
}

static void linear_form(const zc_attrs_Linear *at, zc_matmul_form *f)
{
    f->flat = true;
    f->trans_b = at->transB;
    f->alpha = at->alpha;
}

static void scaled_linear_form(const zc_attrs_ScaledLinear *at, zc_matmul_form *f)
{
    f->flat = true;
    f->trans_b = at->transB;
    f->scale = ZC_IN_ScaledLinear_scale;
}

static void gated_linear_form(const zc_attrs_GatedLinear *at, zc_matmul_form *f)
{
    f->flat = true;
    f->trans_b = true;
    f->gate = ZC_IN_GatedLinear_v;
    f->gate_c = ZC_IN_GatedLinear_gate_bias;
    f->activation = *at->activation ? at->activation : NULL;
    f->activation_params = at->activation_params;
}

/* Once its codes are floats: of two matrices the second stands in place of the scales. */
static void packed_linear_form(const zc_attrs_PackedLinear *at, zc_matmul_form *f)
{
    f->flat = true;
    f->trans_b = true;
    if (!*at->activation) return;
    f->gate = ZC_IN_PackedLinear_scale;
    f->gate_c = ZC_IN_PackedLinear_bias;
    f->activation = at->activation;
    f->activation_params = at->activation_params;
}

static void linear_norm_form(const zc_attrs_LinearNorm *at, zc_matmul_form *f)
{
    f->flat = true;
    f->trans_b = at->transB;
    f->alpha = at->alpha;
    f->norm = true;
}

static void linear_moments_form(const zc_attrs_LinearMoments *at, zc_matmul_form *f)
{
    f->flat = true;
    f->trans_b = at->transB;
}

static void fused_matmul_form(const zc_attrs_FusedMatMul *at, zc_matmul_form *f)
{
    f->trans_a = at->transA;
    f->trans_b = at->transB;
    f->trans_batch_a = at->transBatchA;
    f->trans_batch_b = at->transBatchB;
    f->alpha = at->alpha;
}

static void qlinear_form(const zc_attrs_QLinearMatMul *at, zc_matmul_form *f)
{
    f->b = ZC_IN_QLinearMatMul_b;
    f->trans_b = at->transB;
}

/* The input that is added to the product; -1: the operation has none. */
static int addend_of(const zc_op_info *info)
{
    static const zc_op third[] = {ZC_OP_Gemm, ZC_OP_Linear, ZC_OP_LinearNorm, ZC_OP_LinearMoments};
    if (is(info, ZC_OP_ScaledLinear)) return ZC_IN_ScaledLinear_bias;
    if (is(info, ZC_OP_GatedLinear)) return ZC_IN_GatedLinear_bias;
    if (is(info, ZC_OP_PackedLinear)) return ZC_IN_PackedLinear_bias;
    for (size_t i = 0; i < ZC_COUNTOF(third); i++)
        if (is(info, third[i])) return 2;
    return -1;
}

bool zc_matmul_form_of(const zc_op_info *info, const void *attrs, int nin, const int *ranks,
                       zc_matmul_form *out)
{
    *out = (zc_matmul_form){.a = 0, .b = 1, .c = -1, .alpha = 1, .beta = 1};
    if (is(info, ZC_OP_Einsum))
        return nin == 2 &&
               zc_matmul_form_einsum(((const zc_attrs_Einsum *)attrs)->equation, ranks, out);
    if (is(info, ZC_OP_Gemm))
        gemm_form(attrs, out);
    else if (is(info, ZC_OP_Linear))
        linear_form(attrs, out);
    else if (is(info, ZC_OP_ScaledLinear))
        scaled_linear_form(attrs, out);
    else if (is(info, ZC_OP_GatedLinear))
        gated_linear_form(attrs, out);
    else if (is(info, ZC_OP_PackedLinear))
        packed_linear_form(attrs, out);
    else if (is(info, ZC_OP_LinearNorm))
        linear_norm_form(attrs, out);
    else if (is(info, ZC_OP_LinearMoments))
        linear_moments_form(attrs, out);
    else if (is(info, ZC_OP_FusedMatMul))
        fused_matmul_form(attrs, out);
    else if (is(info, ZC_OP_MatMulInteger))
        out->trans_b = ((const zc_attrs_MatMulInteger *)attrs)->transB;
    else if (is(info, ZC_OP_QLinearMatMul))
        qlinear_form(attrs, out);
    int c = addend_of(info);
    if (c >= 0 && nin > c && ranks[c] >= 0 && out->beta != 0) out->c = c;
    out->a_along_k = ranks[out->a] == 1 || !out->trans_a;
    out->b_along_k = ranks[out->b] == 1 || out->trans_b;
    return true;
}

zc_status zc_matmul_form_launch(zc_launch *l, zc_matmul_form *out)
{
    int ranks[8], nin = l->nin < (int)ZC_COUNTOF(ranks) ? l->nin : (int)ZC_COUNTOF(ranks);
    for (int i = 0; i < nin; i++) ranks[i] = zc_launch_has(l, i) ? l->in[i].rank : -1;
    if (zc_matmul_form_of(l->info, l->attrs, nin, ranks, out)) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_INTERNAL, l->subject, "is no matrix product");
}

bool zc_matmul_scales_ints(const zc_matmul_form *form, zc_dtype dtype)
{
    return !zc_dtype_is_float(dtype) && (form->alpha != 1 || (form->c >= 0 && form->beta != 1));
}

/* ---- sizes and strides ---- */

static zc_matrix axes_of(const zc_tensor *t, const zc_matmul_form *form, bool left)
{
    const zc_matmul_side *side = left ? &form->side_a : &form->side_b;
    int line_end = side->line_first + side->line_count,
        depth_end = side->depth_first + side->depth_count;
    int64_t s[ZC_MAX_RANK], lines = zc_dims_span(t->dims, side->line_first, line_end);
    int64_t depth = zc_dims_span(t->dims, side->depth_first, depth_end);
    zc_matrix m = {.batch_rank = form->axes_batch};
    zc_strides(t, s);
    if (lines < 0) lines = 0; /* overflows only where another axis is 0 */
    if (depth < 0) depth = 0;
    int64_t line = side->line_count ? s[line_end - 1] : 0,
            step = side->depth_count ? s[depth_end - 1] : 0;
    m.rows = left ? lines : depth;
    m.cols = left ? depth : lines;
    m.row = left ? line : step;
    m.col = left ? step : line;
    for (int d = 0; d < m.batch_rank; d++) {
        m.batch_dims[d] = side->batch[d] >= 0 ? t->dims[side->batch[d]] : 1;
        m.batch_strides[d] = side->batch[d] >= 0 ? s[side->batch[d]] : 0;
    }
    return m;
}

/* y as [batch][m][n]. */
static void set_contiguous(zc_matmul *mm)
{
    int64_t step = mm->batch ? mm->m * mm->n : 0;
    mm->view[ZC_MM_Y].line = mm->n;
    for (int d = mm->batch_rank - 1; mm->batch && d >= 0; d--) {
        mm->view[ZC_MM_Y].batch[d] = step;
        step *= mm->batch_dims[d];
    }
}

static bool combine(const zc_matrix *a, const zc_matrix *b, const zc_tensor *y, int matrix_rank,
                    zc_matmul *mm)
{
    *mm = (zc_matmul){
        .m = a->rows, .n = b->cols, .k = a->cols, .batch = 1, .batch_rank = y->rank - matrix_rank};
    if (mm->batch_rank < 0 || mm->batch_rank > ZC_GEMM_BATCH || a->cols != b->rows) return false;
    int64_t left = zc_tensor_numel(y); /* 0: nothing to do, and the parts may overflow */
    for (int d = 0; d < mm->batch_rank; d++) {
        mm->batch_dims[d] = y->dims[d];
        mm->batch = left > 0 ? mm->batch * y->dims[d] : 0;
    }
    if (left == 0) mm->batch = 0;
    mm->view[ZC_MM_A].line = a->row;
    mm->view[ZC_MM_A].depth = a->col;
    mm->view[ZC_MM_B].line = b->col;
    mm->view[ZC_MM_B].depth = b->row;
    set_contiguous(mm);
    return zc_matrix_batch(a, mm->batch_rank, mm->batch_dims, mm->view[ZC_MM_A].batch) &&
           zc_matrix_batch(b, mm->batch_rank, mm->batch_dims, mm->view[ZC_MM_B].batch) &&
           left == mm->batch * mm->m * mm->n;
}

static bool set_addend(const zc_tensor *c, zc_matmul *mm)
{
    int64_t y[2] = {mm->m, mm->n}, s[2] = {0, 0}, step = 1;
    if (c->rank > 2) return false;
    for (int d = c->rank - 1; d >= 0; d--) {
        int at = 2 - c->rank + d;
        if (c->dims[d] != 1 && c->dims[d] != y[at]) return false;
        s[at] = c->dims[d] == 1 ? 0 : step;
        step *= c->dims[d];
    }
    mm->c_row = s[0];
    mm->c_col = s[1];
    return true;
}

static bool by_axes(const zc_launch *l, const zc_matmul_form *form, zc_matmul *mm)
{
    const zc_tensor *y = &l->out[0];
    const zc_matmul_side *side = &form->side_y;
    zc_matrix a = axes_of(&l->in[form->a], form, true), b = axes_of(&l->in[form->b], form, false);
    zc_tensor shape = {.rank = form->axes_batch + 2};
    int64_t s[ZC_MAX_RANK];
    for (int d = 0; d < form->axes_batch; d++) shape.dims[d] = y->dims[side->batch[d]];
    shape.dims[form->axes_batch] = a.rows;
    shape.dims[form->axes_batch + 1] = b.cols;
    if (!combine(&a, &b, &shape, 2, mm) || zc_tensor_numel(y) != zc_tensor_numel(&shape))
        return false;
    zc_strides(y, s);
    for (int d = 0; d < form->axes_batch; d++) mm->view[ZC_MM_Y].batch[d] = s[side->batch[d]];
    mm->view[ZC_MM_Y].line = side->line_count ? s[side->line_first + side->line_count - 1] : 0;
    return true;
}

zc_status zc_matmul_of(zc_launch *l, const zc_matmul_form *form, zc_matmul *out)
{
    const zc_tensor *ta = &l->in[form->a], *tb = &l->in[form->b], *y = &l->out[0];
    zc_tensor flat = {.rank = 2};
    char text_a[128], text_b[128];
    bool ok = form->by_axes || (ta->rank > 0 && tb->rank > 0);
    zc_matrix a, b;
    if (ok && form->by_axes) {
        ok = by_axes(l, form, out);
    } else if (ok && form->flat) {
        a = zc_matrix_flat(ta);
        b = zc_matrix_of(tb, false, form->trans_b, false);
        flat.dims[0] = a.rows;
        flat.dims[1] = b.cols;
        ok = combine(&a, &b, &flat, 2, out) && zc_tensor_numel(y) == zc_tensor_numel(&flat);
    } else if (ok) {
        a = zc_matrix_of(ta, true, form->trans_a, form->trans_batch_a);
        b = zc_matrix_of(tb, false, form->trans_b, form->trans_batch_b);
        ok = combine(&a, &b, y, (ta->rank > 1) + (tb->rank > 1), out);
    }
    if (ok && form->c >= 0) ok = set_addend(&l->in[form->c], out);
    if (ok) return ZC_OK;
    return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                   "operands do not fit each other (got %s and %s)",
                   zc_tensor_type_text(ta, text_a, sizeof text_a),
                   zc_tensor_type_text(tb, text_b, sizeof text_b));
}

static bool broadcasts(const zc_tensor *t, const zc_tensor *operand, int summed)
{
    if (t->rank != operand->rank) return false;
    for (int d = 0; d < t->rank; d++)
        if (t->dims[d] != 1 && (d == summed || t->dims[d] != operand->dims[d])) return false;
    return true;
}

zc_status zc_matmul_param(zc_launch *l, const zc_matmul_form *form, int i, int view, zc_matmul *mm)
{
    if (!zc_launch_has(l, i) || zc_tensor_numel(&l->in[i]) == 1) return ZC_OK;
    bool left = view < ZC_MM_B;
    const zc_tensor *t = &l->in[i], *operand = &l->in[left ? form->a : form->b];
    zc_matmul_view *v = &mm->view[view];
    int rank = operand->rank, summed = rank - (left || form->trans_b ? 1 : 2),
        lines = 2 * rank - 3 - summed;
    if (t->rank == 1 && t->dims[0] == (left ? mm->m : mm->n)) {
        v->line = 1;
        return ZC_OK;
    }
    if (rank < 2 || !broadcasts(t, operand, summed)) {
        char text[128];
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "input %d does not fit its operand (got %s)", i,
                       zc_tensor_type_text(t, text, sizeof text));
    }
    int64_t s[ZC_MAX_RANK];
    zc_strides(t, s);
    int shift = mm->batch_rank - (rank - 2);
    for (int d = 0; d < rank - 2; d++) v->batch[d + shift] = t->dims[d] == 1 ? 0 : s[d];
    v->line = t->dims[lines] == 1 ? 0 : s[lines];
    return ZC_OK;
}

/* ---- fewer batch axes, more rows ---- */

static bool follows_rows(int view)
{
    return view < ZC_MM_B || view == ZC_MM_Y;
}

static bool joins_rows(const zc_matmul *mm, int d)
{
    for (int v = 0; v < ZC_MM_VIEWS; v++) {
        const zc_matmul_view *view = &mm->view[v];
        if (!follows_rows(v) ? view->batch[d] != 0
                             : mm->m != 1 && view->batch[d] != mm->m * view->line)
            return false;
    }
    return true;
}

static void collapse_batch(zc_matmul *mm)
{
    int64_t strides[ZC_COLLAPSE_OPERANDS][ZC_MAX_RANK];
    zc_collapsed c;
    for (int v = 0; v < ZC_MM_VIEWS; v++)
        for (int d = 0; d < mm->batch_rank; d++) strides[v][d] = mm->view[v].batch[d];
    zc_collapse(mm->batch_rank, mm->batch_dims, ZC_MM_VIEWS, (const int64_t(*)[ZC_MAX_RANK])strides,
                &c);
    mm->batch_rank = c.rank;
    for (int d = 0; d < c.rank; d++) {
        mm->batch_dims[d] = c.dims[d];
        for (int v = 0; v < ZC_MM_VIEWS; v++) mm->view[v].batch[d] = c.strides[v][d];
    }
}

void zc_matmul_simplify(const zc_matmul_form *form, zc_matmul *mm)
{
    if (mm->batch == 0) return;
    collapse_batch(mm);
    while (form->a_along_k && form->c < 0 && mm->batch_rank && joins_rows(mm, mm->batch_rank - 1)) {
        int d = --mm->batch_rank;
        for (int v = 0; v < ZC_MM_VIEWS; v++)
            if (follows_rows(v) && mm->m == 1) mm->view[v].line = mm->view[v].batch[d];
        mm->m *= mm->batch_dims[d];
        mm->batch /= mm->batch_dims[d];
    }
}
