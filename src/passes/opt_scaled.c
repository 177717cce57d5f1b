/* On Hopper, products of dequantised e4m3 whose second factor is a constant matrix become those of
 * e4m3 itself: the sums are of exact products in f32 and scaled once, where floats are scaled
 * first.
 *
 * Before constants are folded: weights would become floats. */
#include <stdlib.h>

#include "passes/passes.h"
#include "passes/quantised.h"
#include "passes/scaled.h"

static bool is_e4m3(const zc_graph *g, zc_vid v)
{
    return zc_val(g, v)->type.dtype == ZC_F8E4M3FN;
}

static bool is_row(const zc_graph *g, zc_vid v, int64_t columns)
{
    const zc_type *t = &zc_val(g, v)->type;
    return t->rank == 1 && zc_dim_is(t->dims[0], columns);
}

/* What each column's sums count. 0: no memory. */
static zc_vid scales_of(zc_graph *g, const zc_linear *l, int64_t columns)
{
    const zc_tensor *a = zc_known(g, l->a.scale), *b = zc_known(g, l->b.scale);
    zc_tensor t = {.dtype = ZC_F32, .rank = 1, .dims = {columns}};
    float *y = zc_calloc((size_t)columns, sizeof *y);
    if (!y) return 0;
    for (int64_t i = 0; i < columns; i++) y[i] = (float)(zc_scale_at(a, 0) * zc_scale_at(b, i));
    t.data = y;
    return zc_graph_const(g, NULL, &t, true);
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    size_t *changes = user;
    zc_linear l;
    if (!zc_linear_of(g, zc_node_at(g, n), &l)) return true;
    const zc_tensor *w = zc_known(g, l.b.x);
    if (!is_e4m3(g, l.a.x) || !is_e4m3(g, l.b.x) || !w || w->rank != 2 ||
        zc_val(g, l.a.x)->type.rank < 2)
        return true;
    const int64_t columns = w->dims[l.turned ? 0 : 1];
    if (l.bias && !is_row(g, l.bias, columns)) return true;
    const zc_vid rows = l.turned ? l.b.x : zc_turned(g, l.b.x);
    const zc_vid scales = rows ? scales_of(g, &l, columns) : 0;
    if (!scales || !zc_scaled_linear(g, n, l.a.x, rows, scales, l.bias)) return false;
    ++*changes;
    return true;
}

zc_status zc_pass_opt_scaled(zc_pass *p)
{
    if (!zc_pass_has(p, ZC_FAMILY_gemm_f8_sm90)) return ZC_OK;
    return zc_each_node(p->g, &p->g->top, visit, &p->changes, p->diag);
}
