/* On Hopper, constant matrices of f32 products that round their factors to tf32 are stored N x K:
 * warpgroups multiply 32-bit factors only where both lie along the summed axis. */
#include <stdlib.h>

#include "passes/passes.h"
#include "passes/query.h"

enum { PIECE = 4 }; /* elements of 16 bytes, which the lines have as a whole */

typedef struct turning {
    const zc_pass *pass;
    size_t *changes;
    zc_vid *turned; /* by matrix, 0: not yet */
} turning;

/* Would a kernel take the product if its matrix lay along the summed axis? */
static bool would_serve(const turning *t, const zc_graph *g, const zc_node *n)
{
    if (n->op != ZC_OP_Linear || ((const zc_attrs_Linear *)n->attrs)->transB) return false;
    const zc_value *w = zc_val(g, n->in[ZC_IN_Linear_w]);
    const int64_t rows = zc_certain_rows(&zc_val(g, n->in[ZC_IN_Linear_x])->type);
    const bool rounds = t->pass->options->tf32 || n->tf32;
    if (!rounds || w->kind != ZC_VALUE_CONST || w->type.dtype != ZC_F32 || w->type.rank != 2)
        return false;
    return w->type.dims[0].k % PIECE == 0 &&
           (!rows || rows >= zc_family_rows(ZC_FAMILY_gemm_tf32_sm90).low);
}

static bool turn(zc_graph *g, zc_nid n, void *user)
{
    turning *t = user;
    if (!would_serve(t, g, zc_node_at(g, n))) return true;
    const zc_vid w = zc_node_at(g, n)->in[ZC_IN_Linear_w];
    if (!t->turned[w]) t->turned[w] = zc_linear_matrix(g, n, true);
    if (!t->turned[w]) return false;
    zc_node_at(g, n)->in[ZC_IN_Linear_w] = t->turned[w];
    ZC_NODE_SET(g, Linear, n, transB, 1);
    ++*t->changes;
    return true;
}

zc_status zc_pass_opt_along(zc_pass *p)
{
    if (!zc_pass_has(p, ZC_FAMILY_gemm_tf32_sm90)) return ZC_OK;
    turning t = {
        .pass = p, .changes = &p->changes, .turned = zc_calloc(p->g->values.len, sizeof *t.turned)};
    if (!t.turned) return zc_fail_nomem(p->diag, "matrices", 0);
    const zc_status status = zc_each_node(p->g, &p->g->top, turn, &t, p->diag);
    free(t.turned);
    return status;
}
