/* Nodes that do nothing go; what remains has fewer forms. Every rule keeps every bit of the result.
 */
#include <string.h>

#include "base/mem.h"
#include "op/einsum.h"
#include "passes/passes.h"
#include "passes/query.h"

static const zc_type *in_type(const zc_graph *g, const zc_node *n, int i)
{
    return &zc_val(g, n->in[i])->type;
}
static const zc_type *out_type(const zc_graph *g, const zc_node *n)
{
    return &zc_val(g, n->out[0])->type;
}

static bool keeps_type(const zc_graph *g, const zc_node *n)
{
    return n->out[0] && zc_same_type(in_type(g, n, 0), out_type(g, n));
}

static bool is_identity_perm(const zc_node *n, int rank)
{
    const zc_attrs_Transpose *a = n->attrs;
    if (!ZC_ATTR_GIVEN(Transpose, a, perm)) return rank <= 1;
    for (int i = 0; i < a->perm.n; i++)
        if (a->perm.v[i] != i) return false;
    return true;
}

static bool all_positive(const zc_graph *g, zc_vid steps)
{
    if (!steps) return true;
    const zc_vals *v = &zc_val(g, steps)->vals;
    for (int i = 0; i < v->n; i++)
        if (!zc_dim_is_const(v->v[i]) || v->v[i].k <= 0) return false;
    return v->n >= 0;
}

/* Dropout outside training; a mask that is used keeps the node. */
static bool is_inference_dropout(const zc_graph *g, const zc_node *n)
{
    zc_vid training = zc_node_in(n, ZC_IN_Dropout_training);
    return !zc_node_out(n, 1) && (!training || zc_is_splat(g, training, 0));
}

/* Is output 0 input 0, bit for bit? */
static bool is_noop(const zc_graph *g, const zc_node *n)
{
    switch (n->op) {
    case ZC_OP_Identity:
        return true;
    case ZC_OP_Dropout:
        return is_inference_dropout(g, n);
    case ZC_OP_Cast:
    case ZC_OP_CastLike:
        return in_type(g, n, 0)->dtype == out_type(g, n)->dtype;
    case ZC_OP_Reshape:
    case ZC_OP_Flatten:
    case ZC_OP_Squeeze:
    case ZC_OP_Unsqueeze:
    case ZC_OP_Expand:
        return keeps_type(g, n);
    case ZC_OP_Concat:
        return n->nin == 1;
    case ZC_OP_Transpose:
        return in_type(g, n, 0)->rank >= 0 && is_identity_perm(n, in_type(g, n, 0)->rank);
    case ZC_OP_Slice:
        return keeps_type(g, n) && all_positive(g, zc_node_in(n, ZC_IN_Slice_steps));
    case ZC_OP_Mul:
    case ZC_OP_Div:
        return keeps_type(g, n) && zc_is_splat(g, n->in[1], 1);
    case ZC_OP_Sub:
        return keeps_type(g, n) && zc_is_splat(g, n->in[1], 0);
    default:
        return false;
    }
}

static int64_t perm_at(const zc_node *n, int i, int rank)
{
    const zc_attrs_Transpose *a = n->attrs;
    return ZC_ATTR_GIVEN(Transpose, a, perm) ? a->perm.v[i] : rank - 1 - i;
}

/* A transpose of a transpose becomes one. */
static bool join_transposes(zc_graph *g, zc_nid n)
{
    zc_node *node = zc_node_at(g, n);
    zc_nid p = zc_producer(g, node->in[0]);
    int rank = in_type(g, node, 0)->rank;
    if (!p || zc_node_at(g, p)->op != ZC_OP_Transpose || rank < 0) return true;
    int64_t *perm = zc_arena_alloc(&g->arena, (size_t)rank, sizeof *perm);
    if (!perm) return false;
    const zc_node *first = zc_node_at(g, p);
    for (int i = 0; i < rank; i++) perm[i] = perm_at(first, (int)perm_at(node, i, rank), rank);
    ZC_NODE_SET(g, Transpose, n, perm, (zc_ints){rank, perm});
    node->in[0] = first->in[0];
    return zc_graph_inherit(g, n, p);
}

/* CastLike only needs its second input's type, so it need not wait for it. */
static bool cast_like_to_cast(zc_graph *g, zc_nid n)
{
    const zc_node *node = zc_node_at(g, n);
    const zc_attrs_CastLike *like = node->attrs;
    if (!zc_graph_become(g, n, ZC_OP_Cast, 1, node->in)) return false;
    ZC_NODE_SET(g, Cast, n, to, out_type(g, node)->dtype);
    ZC_NODE_SET(g, Cast, n, saturate, like->saturate);
    ZC_NODE_SET(g, Cast, n, round_mode, like->round_mode);
    return true;
}

/* Steps of one are what a Slice has without saying so. */
static bool drop_unit_steps(const zc_graph *g, zc_node *node)
{
    zc_vid steps = zc_node_in(node, ZC_IN_Slice_steps);
    if (!steps || !zc_is_splat(g, steps, 1)) return false;
    node->nin = ZC_IN_Slice_steps;
    return true;
}

/* Letters in the order in which they first come: a, b, c, ... */
typedef struct renaming {
    char name[ZC_EINSUM_LABELS]; /* by label; 0: not come yet */
    int count;
    zc_buf text;
} renaming;

static void put_term(renaming *r, const zc_einsum_term *t)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    for (int i = 0; i < t->n; i++) {
        char *name = &r->name[t->label[i]];
        if (!*name) *name = letters[r->count++];
        zc_buf_append(&r->text, name, 1);
    }
}

static bool has_ellipsis(const zc_einsum_term *t)
{
    for (int i = 0; i < t->n; i++)
        if (t->label[i] >= ZC_EINSUM_LETTERS) return true;
    return false;
}

/* Equal sums have equal equations, so that one rule finds them. -1: no memory; 1: renamed. */
static int rename_labels(zc_graph *g, zc_node *node)
{
    zc_attrs_Einsum *a = node->attrs;
    int ranks[ZC_EINSUM_OPERANDS];
    zc_einsum e;
    if (node->nin > ZC_EINSUM_OPERANDS) return 0;
    for (int i = 0; i < node->nin; i++)
        if ((ranks[i] = in_type(g, node, i)->rank) < 0) return 0;
    if (zc_einsum_parse(a->equation, node->nin, ranks, &e, "equation", NULL) != ZC_OK) return 0;
    for (int i = 0; i < e.nin; i++)
        if (has_ellipsis(&e.in[i])) return 0;
    renaming r = {.count = 0};
    for (int i = 0; i < e.nin; i++) {
        if (i) zc_buf_puts(&r.text, ",");
        put_term(&r, &e.in[i]);
    }
    zc_buf_puts(&r.text, "->");
    put_term(&r, &e.out);
    bool same = !r.text.failed && strcmp(r.text.data, a->equation) == 0;
    const char *text = r.text.failed ? NULL : zc_arena_strdup(&g->arena, r.text.data);
    zc_buf_fini(&r.text);
    if (text) a->equation = text;
    return !text ? -1 : !same;
}

/* The input that lists axes, and how many dimensions they are of; -1: there is none. */
static int axes_input(const zc_graph *g, const zc_node *node, int *rank)
{
    int i = -1;
    switch (node->op) {
    case ZC_OP_ReduceSum:
    case ZC_OP_ReduceMean:
    case ZC_OP_ReduceMax:
    case ZC_OP_ReduceMin:
    case ZC_OP_ReduceProd:
    case ZC_OP_ReduceL1:
    case ZC_OP_ReduceL2:
    case ZC_OP_ReduceLogSum:
    case ZC_OP_ReduceLogSumExp:
    case ZC_OP_ReduceSumSquare:
    case ZC_OP_CumSum:
    case ZC_OP_CumProd:
    case ZC_OP_Squeeze:
    case ZC_OP_Unsqueeze:
        i = 1;
        break;
    case ZC_OP_Slice:
    case ZC_OP_Pad:
        i = 3;
        break;
    default:
        return -1;
    }
    *rank = (node->op == ZC_OP_Unsqueeze ? out_type(g, node) : in_type(g, node, 0))->rank;
    return *rank >= 0 && i < node->nin && node->in[i] ? i : -1;
}

/* Axes that are constants count from the front. -1: no memory; 1: they did not. */
static int count_from_front(zc_graph *g, zc_node *node)
{
    int64_t bytes[ZC_MAX_RANK];
    int rank, i = axes_input(g, node, &rank);
    const zc_tensor *axes = i < 0 ? NULL : zc_val(g, node->in[i])->data;
    int64_t n = axes && axes->data ? zc_tensor_numel(axes) : 0;
    bool changed = false;
    if (n < 1 || n > ZC_MAX_RANK) return 0;
    zc_tensor front = *axes;
    front.data = bytes;
    for (int64_t k = 0; k < n; k++) {
        int64_t axis = zc_load_i64(axes->dtype, axes->data, k);
        changed |= axis < 0;
        zc_store_i64(axes->dtype, bytes, k, axis < 0 ? axis + rank : axis);
    }
    if (!changed) return 0;
    zc_vid v = zc_graph_const(g, zc_val(g, node->in[i])->name, &front, false);
    if (v) node->in[i] = v;
    return v ? 1 : -1;
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    size_t *changes = user;
    zc_node *node = zc_node_at(g, n);
    int turned = count_from_front(g, node);
    if (turned < 0) return false;
    *changes += (size_t)turned;
    if (node->op == ZC_OP_CastLike) {
        if (!cast_like_to_cast(g, n)) return false;
        ++*changes;
    }
    if (node->op == ZC_OP_Slice && drop_unit_steps(g, node)) ++*changes;
    if (node->op == ZC_OP_Transpose && !join_transposes(g, n)) return false;
    if (node->op == ZC_OP_Einsum) {
        int renamed = rename_labels(g, node);
        if (renamed < 0) return false;
        *changes += (size_t)renamed;
    }
    node = zc_node_at(g, n);
    if (node->nin < 1 || node->nout < 1 || !node->in[0] || !node->out[0] || !is_noop(g, node))
        return true;
    zc_graph_forward(g, node->out[0], node->in[0]);
    zc_graph_remove(g, n);
    ++*changes;
    return true;
}

zc_status zc_pass_opt_canonicalize(zc_pass *p)
{
    return zc_each_node(p->g, &p->g->top, visit, &p->changes, p->diag);
}
