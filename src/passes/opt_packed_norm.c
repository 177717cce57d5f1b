/* On Hopper, the root mean square of rows joins the products by codes that read it: each of their
 * blocks has the whole row anyway. Where rows are a sum, it is made for itself, and what makes one
 * of its terms may take it in. */
#include "ir/index.h"
#include "passes/passes.h"
#include "passes/query.h"

typedef struct packed_norms {
    zc_index x;
    zc_diag *diag;
    size_t *changes;
    zc_status status;
} packed_norms;

/* Does n read v as the rows of a product by codes, not normalised yet, and nowhere else? */
static bool reads_rows(const zc_node *n, zc_vid v)
{
    int uses = 0;
    for (int i = 0; i < n->nin; i++) uses += n->in[i] == v;
    return n->op == ZC_OP_PackedLinear && uses == 1 && n->in[ZC_IN_PackedLinear_x] == v &&
           !zc_node_in(n, ZC_IN_PackedLinear_gain) && !zc_op_epilogue(zc_op_get(n->op), n->attrs);
}

/* Do none but products by codes read v? */
static bool only_packed(const packed_norms *p, zc_vid v)
{
    uint32_t products = 0;
    for (uint32_t e = p->x.users.data[v]; e; e = p->x.edges.data[e].next)
        products +=
            zc_use_live(&p->x, e, v) && reads_rows(zc_node_at(p->x.g, p->x.edges.data[e].node), v);
    return products && products == p->x.uses.data[v];
}

/* Does it nothing beside its own work? */
static bool is_plain(const zc_node *n)
{
    const zc_op_info *info = zc_op_get(n->op);
    int extras;
    return !zc_op_epilogue(info, n->attrs) && !zc_op_prologue(info, n->attrs, &extras) &&
           !zc_op_also(info, n->attrs);
}

static bool fits(const zc_graph *g, const zc_node *n, const zc_row_norm *norm)
{
    const zc_type *y = &zc_val(g, n->out[0])->type, *gain = &zc_val(g, norm->gamma)->type;
    return norm->rms && !norm->bias && is_plain(n) && gain->rank == 1 && gain->dtype == y->dtype &&
           zc_dim_eq(gain->dims[0], y->dims[y->rank - 1]) &&
           zc_same_type(&zc_val(g, norm->a)->type, y) &&
           (!norm->skip || zc_same_type(&zc_val(g, norm->skip)->type, y));
}

/* The sum of what is normalised, in the place of the norm; 0: no memory. */
static zc_vid make_sum(packed_norms *p, zc_nid norm, const zc_row_norm *m)
{
    zc_graph *g = p->x.g;
    const zc_vid in[] = {m->a, m->skip};
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_Add, zc_node_at(g, norm)->name, 2, in, 1);
    if (!made || !zc_graph_inherit(g, made, norm)) return 0;
    if (m->sum)
        zc_node_at(g, made)->out[0] = m->sum;
    else if (!zc_graph_out(g, made, 0, "sum"))
        return 0;
    p->status = zc_graph_infer(g, made, p->diag);
    const zc_vid sum = zc_node_at(g, made)->out[0];
    return zc_index_take_place(&p->x, made, norm) ? sum : 0;
}

/* The product of the rows as they are. */
static bool normalise_in(packed_norms *p, zc_nid product, zc_vid rows, const zc_row_norm *m)
{
    zc_graph *g = p->x.g;
    const zc_node *n = zc_node_at(g, product);
    zc_vid in[] = {[ZC_IN_PackedLinear_x] = rows,
                   [ZC_IN_PackedLinear_w] = n->in[ZC_IN_PackedLinear_w],
                   [ZC_IN_PackedLinear_scale] = n->in[ZC_IN_PackedLinear_scale],
                   [ZC_IN_PackedLinear_zero] = zc_node_in(n, ZC_IN_PackedLinear_zero),
                   [ZC_IN_PackedLinear_bias] = zc_node_in(n, ZC_IN_PackedLinear_bias),
                   [ZC_IN_PackedLinear_gain] = m->gamma};
    const float alpha = ((const zc_attrs_PackedLinear *)n->attrs)->alpha;
    zc_nid made = zc_graph_node(g, NULL, n->op, n->name, (int)ZC_COUNTOF(in), in, 1);
    if (!made || !zc_graph_inherit(g, made, product)) return false;
    ZC_NODE_SET(g, PackedLinear, made, epsilon, m->epsilon);
    zc_set_packed_alpha(g, made, alpha);
    zc_node_at(g, made)->out[0] = zc_node_at(g, product)->out[0];
    return zc_index_take_place(&p->x, made, product);
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    packed_norms *p = user;
    const zc_node *n = zc_node_at(g, id);
    zc_row_norm m;
    if (p->status != ZC_OK || !zc_row_norm_of(g, n, &m) || !only_packed(p, n->out[0]) ||
        !fits(g, n, &m))
        return true;
    const zc_vid y = n->out[0], rows = m.skip ? make_sum(p, id, &m) : m.a;
    if (!rows) return false;
    if (p->status != ZC_OK) return true;
    for (uint32_t e = p->x.users.data[y], next; e; e = next) {
        next = p->x.edges.data[e].next;
        if (zc_use_live(&p->x, e, y) && !normalise_in(p, p->x.edges.data[e].node, rows, &m))
            return false;
    }
    ++*p->changes;
    return true;
}

zc_status zc_pass_opt_packed_norm(zc_pass *pass)
{
    if (!zc_pass_has(pass, ZC_FAMILY_gemv_packed_sm90)) return ZC_OK;
    packed_norms p = {.diag = pass->diag, .changes = &pass->changes};
    if (!zc_index_init(&p.x, pass->g)) return zc_fail_nomem(pass->diag, "uses", 0);
    zc_status status = zc_each_node(pass->g, &pass->g->top, visit, &p, pass->diag);
    zc_index_fini(&p.x);
    return status == ZC_OK ? p.status : status;
}
