#include <stdio.h>
#include <string.h>

#include "abi/epilogue.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

/* Pointwise work within a kernel, on x0 and inputs [first, first + n) that broadcast to it. */
typedef struct fused_work {
    const char *text;
    const char *prefix, *function; /* of what the template needs of it */
    const zc_pvalue *x0;
    int first, n;
} fused_work;

/* What is certain becomes constants. */
static bool put_shapes(zc_gen *g, const fused_work *w)
{
    char prefix[32];
    if (!w->n) return true;
    snprintf(prefix, sizeof prefix, "%s_", w->prefix);
    if (!zc_gen_broadcast_certain(g, w->x0, w->first, w->n)) {
        g->divides = true;
        zc_buf_printf(&g->spec, "#define Z_%sDIVIDES 1\n", prefix);
        return true;
    }
    return zc_gen_broadcast(g, prefix, w->x0, w->first, w->n, ZC_FUSED_RANK);
}

static void put_inputs(zc_gen *g, const fused_work *w, const zc_dtype *in)
{
    zc_buf *b = &g->spec;
    zc_buf_printf(b, "#define Z_%s 1\n#define Z_%s_COUNT %d\n", w->prefix, w->prefix, w->n);
    zc_buf_printf(b, "#define Z_%s_INPUTS(X)", w->prefix);
    for (int i = 0; i < w->n; i++) zc_buf_printf(b, " X(%d, %s)", i, zc_gen_type_name(in[i]));
    zc_buf_printf(b, "\n#define Z_%s_ARGS(A)", w->prefix);
    for (int i = 0; i < w->n; i++) zc_buf_printf(b, ", A(%d)", i);
    zc_buf_puts(b, "\n");
}

static zc_status put_work(zc_gen *g, fused_work *w)
{
    zc_dtype types[1 + ZC_FUSED_INPUTS];
    if (w->n < 0) w->n = 0;
    types[0] = w->x0->dtype;
    for (int i = 0; i < w->n; i++) {
        types[1 + i] = zc_gen_in_type(g, w->first + i);
        if (!zc_gen_plain_type(types[1 + i]))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(types[1 + i]));
    }
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "fused work", sizeof *e);
    ZC_TRY(zc_expr_parse(w->text, types, 1 + w->n, NULL, 0, e, g->step->name, g->diag));
    put_inputs(g, w, types + 1);
    if (!put_shapes(g, w))
        return zc_gen_decline(g, "broadcast pattern of more than %d axes", ZC_FUSED_RANK);
    e->ninputs = 1 + w->n;
    return zc_gen_expr(g, w->function, e, types);
}

zc_status zc_gen_epilogue(zc_gen *g)
{
    int first = zc_op_epilogue_first(g->info, g->attrs);
    fused_work w = {.text = zc_op_epilogue(g->info, g->attrs),
                    .prefix = "FUSED",
                    .function = "zc_fused_point",
                    .x0 = zc_gen_out(g, 0),
                    .first = first,
                    .n = (int)g->step->nin - first};
    g->takes_epilogue = true;
    return w.text ? put_work(g, &w) : ZC_OK;
}

/* How an operand of the result's rows of n elements differs: from row to row, from column to
 * column. false: in another way, as when it belongs to one of the leading axes alone. */
static bool cell_of(const zc_pvalue *y, const zc_pvalue *operand, bool *rows, bool *cols)
{
    int skip = y->rank - operand->rank;
    bool ones = true, all = skip == 0;
    zc_dim last = operand->rank ? operand->dims[operand->rank - 1] : zc_dim_const(1);
    if (y->rank < 1 || skip < 0) return false;
    for (int d = 0; d + 1 < operand->rank; d++) {
        ones = ones && zc_dim_is_const(operand->dims[d]) && operand->dims[d].k == 1;
        all = all && zc_dim_eq(operand->dims[d], y->dims[d + skip]);
    }
    *cols = !(zc_dim_is_const(last) && last.k == 1);
    *rows = all && !ones;
    return (ones || all) && (!*cols || zc_dim_eq(last, y->dims[y->rank - 1]));
}

bool zc_gen_epilogue_cells(zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    int first = zc_op_epilogue_first(g->info, g->attrs), n = (int)g->step->nin - first;
    bool rows[ZC_FUSED_INPUTS], cols[ZC_FUSED_INPUTS];
    if (!zc_op_epilogue(g->info, g->attrs)) return true;
    for (int i = 0; i < n; i++)
        if (i == ZC_FUSED_INPUTS || !cell_of(y, zc_gen_in(g, first + i), &rows[i], &cols[i]))
            return false;
    zc_buf_puts(&g->spec, "#define Z_FUSED_CELLS(X)");
    for (int i = 0; i < n; i++)
        zc_buf_printf(&g->spec, " X(%d, %s, %d, %d)", i,
                      zc_gen_type_name(zc_gen_in_type(g, first + i)), rows[i], cols[i]);
    zc_buf_puts(&g->spec, "\n");
    return true;
}

int zc_gen_epilogue_tile(const zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    int first = zc_op_epilogue_first(g->info, g->attrs), n = (int)g->step->nin - first;
    bool rows, cols;
    if (!zc_op_epilogue(g->info, g->attrs)) return -1;
    for (int i = 0; i < n && i < ZC_FUSED_INPUTS; i++) {
        zc_dtype dtype = zc_gen_in_type(g, first + i);
        if ((dtype == ZC_F16 || dtype == ZC_BF16) &&
            cell_of(y, zc_gen_in(g, first + i), &rows, &cols) && rows && cols)
            return i;
    }
    return -1;
}

zc_status zc_gen_prologue(zc_gen *g)
{
    fused_work w = {.prefix = "PRE",
                    .function = "zc_pre_point",
                    .x0 = zc_gen_in(g, 0),
                    .first = g->info->max_in};
    w.text = zc_op_prologue(g->info, g->attrs, &w.n);
    g->takes_prologue = true;
    if (w.text && !zc_dtype_is_float(w.x0->dtype))
        return zc_gen_decline(g, "prologue of element type %s", zc_dtype_name(w.x0->dtype));
    return w.text ? put_work(g, &w) : ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_broadcast(const zc_launch *l, const zc_tensor *to, int n,
                              const zc_tensor *operands, int most, zc_collapsed *out)
{
    zc_collapse_broadcast(to, n, operands, out);
    if (out->rank <= most) return ZC_OK;
    return zc_fail(
        l->diag, ZC_ERR_LIMIT, l->subject,
        "broadcast pattern too irregular for the GPU kernel (got %d axes, need at most %d)",
        out->rank, most);
}

_Static_assert((int)ZC_FUSED_INPUTS >= (int)ZC_PROLOGUE_INPUTS &&
                   (int)ZC_FUSED_INPUTS >= (int)ZC_EPILOGUE_INPUTS,
               "room for all operands of fused work");

/* Inputs [first, end) that broadcast to a tensor. */
static zc_status set_operands(const zc_launch *l, const zc_tensor *to, int first, int end,
                              struct zc_fused_params *p)
{
    zc_collapsed c;
    int n = end - first;
    memset(p, 0, sizeof *p);
    if (n <= 0) return ZC_OK;
    ZC_TRY(zc_launch_broadcast(l, to, n, l->in + first, ZC_FUSED_RANK, &c));
    p->rank = c.rank;
    for (int d = 0; d < c.rank; d++) p->dims[d] = c.dims[d];
    for (int i = 0; i < n; i++) {
        p->in[i] = l->in[first + i].data;
        for (int d = 0; d < c.rank; d++) p->strides[i][d] = c.strides[i][d];
    }
    return ZC_OK;
}

zc_status zc_launch_prologue(const zc_launch *l, struct zc_fused_params *p)
{
    int extras;
    zc_op_prologue(l->info, l->attrs, &extras);
    if (extras > l->nin - l->info->max_in) extras = l->nin - l->info->max_in;
    return set_operands(l, &l->in[0], l->info->max_in, l->info->max_in + extras, p);
}

zc_status zc_launch_epilogue(const zc_launch *l, struct zc_fused_params *p)
{
    return set_operands(l, &l->out[0], zc_op_epilogue_first(l->info, l->attrs), l->nin, p);
}
