/* A normalisation of rows joins the Linear that makes them, with the residual between: LinearNorm.
 */
#include <stdlib.h>
#include <string.h>

#include "ir/index.h"
#include "passes/passes.h"
#include "passes/query.h"

typedef struct joining {
    zc_index x;
    size_t *changes;
    bool hopper;
} joining;

static const zc_node *linear_of(const zc_graph *g, const joining *j, zc_nid norm_id, zc_vid v)
{
    zc_nid p = zc_producer(g, v);
    if (!p || j->x.uses.data[v] != 1 ||
        zc_index_place(&j->x, p)->block != zc_index_place(&j->x, norm_id)->block)
        return NULL;
    const zc_node *n = zc_node_at(g, p);
    return n->op == ZC_OP_Linear && !zc_op_epilogue(zc_op_get(n->op), n->attrs) ? n : NULL;
}

static bool is_row(const zc_graph *g, zc_vid v, const zc_type *y)
{
    const zc_type *t = &zc_val(g, v)->type;
    return t->dtype == y->dtype && t->rank == 1 && zc_dim_eq(t->dims[0], y->dims[y->rank - 1]);
}

/* Do all operands have the forms that LinearNorm takes? */
static bool fits(const zc_graph *g, const zc_row_norm *m, const zc_node *linear)
{
    const zc_type *y = &zc_val(g, linear->out[0])->type;
    bool is_float =
        y->dtype == ZC_F64 || y->dtype == ZC_F32 || y->dtype == ZC_F16 || y->dtype == ZC_BF16;
    return is_float && y->rank > 0 && m->gamma && is_row(g, m->gamma, y) &&
           (!m->beta || is_row(g, m->beta, y)) && (!m->bias || is_row(g, m->bias, y)) &&
           !(m->bias && zc_node_in(linear, ZC_IN_Linear_bias)) &&
           (!m->skip || zc_same_type(&zc_val(g, m->skip)->type, y));
}

/* Rows that no kernel of Hopper's normalises within the product: sums in f32, which another one
 * reads again, are twice the bytes of the result as it is stored. */
static bool better_apart(const joining *j, const zc_node *linear)
{
    const zc_type *y = &zc_val(j->x.g, linear->out[0])->type;
    const zc_dim n = y->dims[y->rank - 1];
    return j->hopper && zc_family_makes(ZC_FAMILY_linear_norm_sm90, y->dtype) &&
           zc_dim_is_const(n) && n.k > ZC_NORM_SM90_MOST && zc_certain_rows(y) >= ZC_MANY_ROWS;
}

static bool join(zc_index *x, zc_nid at, const zc_row_norm *m, zc_nid linear)
{
    zc_graph *g = x->g;
    const zc_attrs_Linear *from = zc_node_at(g, linear)->attrs;
    const zc_node *l = zc_node_at(g, linear);
    const zc_vid inputs[] = {
        [ZC_IN_LinearNorm_x] = l->in[ZC_IN_Linear_x],
        [ZC_IN_LinearNorm_w] = l->in[ZC_IN_Linear_w],
        [ZC_IN_LinearNorm_bias] = m->bias ? m->bias : zc_node_in(l, ZC_IN_Linear_bias),
        [ZC_IN_LinearNorm_skip] = m->skip,
        [ZC_IN_LinearNorm_gamma] = m->gamma,
        [ZC_IN_LinearNorm_beta] = m->beta,
    };
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_LinearNorm, zc_node_at(g, at)->name, m->beta ? 6 : 5,
                                inputs, m->sum ? 2 : 1);
    if (!made || !zc_graph_inherit(g, made, linear) || !zc_graph_inherit(g, made, at)) return false;
    ZC_NODE_SET(g, LinearNorm, made, epsilon, m->epsilon);
    if (from->transB) ZC_NODE_SET(g, LinearNorm, made, transB, from->transB);
    if (from->alpha != 1) ZC_NODE_SET(g, LinearNorm, made, alpha, from->alpha);
    if (m->rms) ZC_NODE_SET(g, LinearNorm, made, rms, 1);
    zc_node *n = zc_node_at(g, made);
    n->out[0] = zc_node_at(g, at)->out[0];
    if (m->sum) n->out[1] = m->sum;
    zc_index_remove(x, linear);
    return zc_index_take_place(x, made, at);
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    joining *j = user;
    zc_row_norm m;
    if (!zc_row_norm_of(g, zc_node_at(g, id), &m)) return true;
    const zc_node *linear = linear_of(g, j, id, m.a);
    if (!linear && m.skip) { /* the sum commutes */
        zc_vid skip = m.skip;
        m.skip = m.a;
        m.a = skip;
        linear = linear_of(g, j, id, m.a);
    }
    if (!linear || !fits(g, &m, linear) || better_apart(j, linear)) return true;
    ++*j->changes;
    return join(&j->x, id, &m, zc_producer(g, m.a));
}

zc_status zc_pass_opt_linear_norm(zc_pass *p)
{
    joining j = {.changes = &p->changes, .hopper = zc_pass_has(p, ZC_FAMILY_linear_norm_sm90)};
    if (!zc_index_init(&j.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &j, p->diag);
    zc_index_fini(&j.x);
    return status;
}
