/* On Hopper, three and more products by codes of the same rows (queries, keys, values) become one
 * with all their columns, and a Split of them: fewer steps, and Attention may read them as they
 * lie. Two are left for opt_gate. */
#include <string.h>

#include "ir/index.h"
#include "op/packed.h"
#include "passes/passes.h"
#include "passes/query.h"

enum { LEAST = 3, MOST = 8 };

typedef struct joining {
    zc_index x;
    zc_diag *diag;
    size_t *changes;
    zc_status status;
} joining;

typedef struct siblings {
    zc_nid of[MOST]; /* in the order of the block */
    int n;
} siblings;

/* ---- what fits ---- */

/* Constants a and b (or neither is there) that differ in their first axis alone. */
static bool alike(const zc_graph *g, zc_vid a, zc_vid b)
{
    if (!a || !b) return a == b;
    const zc_tensor *s = zc_val(g, a)->data, *t = zc_val(g, b)->data;
    return s && t && s->dtype == t->dtype && s->rank == t->rank &&
           !memcmp(s->dims + 1, t->dims + 1, (size_t)(s->rank - 1) * sizeof *s->dims);
}

static bool is_plain(const zc_graph *g, const zc_node *n)
{
    return n->op == ZC_OP_PackedLinear && !zc_node_in(n, ZC_IN_PackedLinear_gain) &&
           !*((const zc_attrs_PackedLinear *)n->attrs)->activation &&
           !zc_op_epilogue(zc_op_get(n->op), n->attrs) &&
           zc_val(g, n->in[ZC_IN_PackedLinear_w])->data;
}

static bool belong_together(const zc_graph *g, const zc_node *a, const zc_node *b)
{
    const zc_attrs_PackedLinear *of = a->attrs, *other = b->attrs;
    for (int i = ZC_IN_PackedLinear_w; i <= ZC_IN_PackedLinear_bias; i++)
        if (!alike(g, zc_node_in(a, i), zc_node_in(b, i))) return false;
    return of->alpha == other->alpha && a->in[ZC_IN_PackedLinear_x] == b->in[ZC_IN_PackedLinear_x];
}

static void add(const joining *j, siblings *s, zc_nid n)
{
    int at = s->n;
    if (s->n == MOST) return;
    const uint64_t order = zc_index_place(&j->x, n)->order;
    for (; at && zc_index_place(&j->x, s->of[at - 1])->order > order; at--)
        s->of[at] = s->of[at - 1];
    s->of[at] = n;
    s->n++;
}

/* All that multiply the rows of node `first` and stand in its block. */
static siblings find(const joining *j, zc_nid first)
{
    const zc_graph *g = j->x.g;
    const zc_vid rows = zc_node_at(g, first)->in[ZC_IN_PackedLinear_x];
    siblings s = {.n = 0};
    for (uint32_t e = j->x.users.data[rows]; e; e = j->x.edges.data[e].next) {
        const zc_nid n = j->x.edges.data[e].node;
        const zc_node *of = zc_node_at(g, n);
        if (zc_use_live(&j->x, e, rows) && is_plain(g, of) &&
            zc_index_place(&j->x, n)->block == zc_index_place(&j->x, first)->block &&
            belong_together(g, zc_node_at(g, first), of))
            add(j, &s, n);
    }
    return s;
}

/* ---- the nodes ---- */

/* The constants of all siblings one behind another, 0 where there are none. false: no memory. */
static bool concatenate(zc_graph *g, const siblings *s, int input, zc_vid *out)
{
    const zc_vid first = zc_node_in(zc_node_at(g, s->of[0]), input);
    *out = 0;
    if (!first) return true;
    zc_tensor all = *(const zc_tensor *)zc_val(g, first)->data;
    size_t bytes, at = 0;
    for (int i = 1; i < s->n; i++) {
        const zc_tensor *t = zc_val(g, zc_node_at(g, s->of[i])->in[input])->data;
        if (__builtin_add_overflow(all.dims[0], t->dims[0], &all.dims[0])) return false;
    }
    if (!zc_tensor_bytes(&all, &bytes) || !(all.data = zc_calloc(bytes, 1))) return false;
    for (int i = 0; i < s->n; i++) {
        const zc_tensor *t = zc_val(g, zc_node_at(g, s->of[i])->in[input])->data;
        zc_tensor_bytes(t, &bytes);
        memcpy((char *)all.data + at, t->data, bytes);
        at += bytes;
    }
    *out = zc_graph_const(g, zc_val(g, first)->name, &all, true);
    return *out != 0;
}

static zc_vid lengths_of(zc_graph *g, const siblings *s)
{
    zc_tensor t = {.dtype = ZC_I64, .rank = 1, .dims = {s->n}};
    int64_t *v = zc_calloc((size_t)s->n, sizeof *v);
    if (!v) return 0;
    for (int i = 0; i < s->n; i++) {
        const zc_tensor *w = zc_val(g, zc_node_at(g, s->of[i])->in[ZC_IN_PackedLinear_w])->data;
        v[i] = w->dims[0] * ZC_PACKED_COLUMNS;
    }
    t.data = v;
    return zc_graph_const(g, NULL, &t, true);
}

/* The product of all columns; 0: no memory. */
static zc_nid make_product(joining *j, const siblings *s)
{
    zc_graph *g = j->x.g;
    zc_vid in[ZC_IN_PackedLinear_bias + 1] = {zc_node_at(g, s->of[0])->in[ZC_IN_PackedLinear_x]};
    for (int i = ZC_IN_PackedLinear_w; i <= ZC_IN_PackedLinear_bias; i++)
        if (!concatenate(g, s, i, &in[i])) return 0;
    const zc_node *first = zc_node_at(g, s->of[0]);
    const float alpha = ((const zc_attrs_PackedLinear *)first->attrs)->alpha;
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_PackedLinear, first->name, first->nin, in, 1);
    if (!made || !zc_graph_out(g, made, 0, "joined")) return 0;
    zc_set_packed_alpha(g, made, alpha);
    for (int i = 0; i < s->n; i++)
        if (!zc_graph_inherit(g, made, s->of[i])) return 0;
    j->status = zc_graph_infer(g, made, j->diag);
    return made;
}

static bool join(joining *j, const siblings *s)
{
    zc_graph *g = j->x.g;
    const zc_nid product = make_product(j, s);
    if (!product) return false;
    if (j->status != ZC_OK) return true;
    const zc_vid in[] = {zc_node_at(g, product)->out[0], lengths_of(g, s)};
    zc_nid split =
        in[1] ? zc_graph_node(g, NULL, ZC_OP_Split, zc_node_at(g, s->of[0])->name, 2, in, s->n) : 0;
    if (!split || !zc_graph_inherit(g, split, s->of[0])) return false;
    ZC_NODE_SET(g, Split, split, axis, -1);
    for (int i = 0; i < s->n; i++) zc_node_at(g, split)->out[i] = zc_node_at(g, s->of[i])->out[0];
    if (!zc_index_grow(&j->x) || !zc_index_add(&j->x, product)) return false;
    zc_index_link(&j->x, product, zc_index_place(&j->x, s->of[0])->block, s->of[0]);
    if (!zc_index_take_place(&j->x, split, s->of[0])) return false;
    for (int i = 1; i < s->n; i++) zc_index_remove(&j->x, s->of[i]);
    ++*j->changes;
    return true;
}

static bool visit(zc_graph *g, zc_nid id, void *user)
{
    joining *j = user;
    if (j->status != ZC_OK || !is_plain(g, zc_node_at(g, id))) return true;
    const siblings s = find(j, id);
    return s.n < LEAST || join(j, &s);
}

zc_status zc_pass_opt_packed_join(zc_pass *p)
{
    if (!zc_pass_has(p, ZC_FAMILY_gemv_packed_sm90)) return ZC_OK;
    joining j = {.diag = p->diag, .changes = &p->changes};
    if (!zc_index_init(&j.x, p->g)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &j, p->diag);
    if (status == ZC_OK) status = j.status;
    if (status == ZC_OK && !zc_index_finish(&j.x)) status = zc_fail_nomem(p->diag, "nodes", 0);
    zc_index_fini(&j.x);
    return status;
}
