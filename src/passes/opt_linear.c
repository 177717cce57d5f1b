/* MatMul with a constant matrix, Gemm without surprises, and a bias added after either become
 * Linear: the one form that later fusions and kernels look for. */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

typedef struct linear_pass {
    uint32_t *uses;
    size_t *changes;
} linear_pass;

static bool is_const_of_rank(const zc_graph *g, zc_vid v, int rank)
{
    return v && zc_val(g, v)->data && zc_val(g, v)->type.rank == rank;
}

static bool become_linear(zc_graph *g, zc_nid n, zc_vid x, zc_vid w, zc_vid bias, int64_t trans_b,
                          float alpha)
{
    if (!zc_graph_become(g, n, ZC_OP_Linear, bias ? 3 : 2, (zc_vid[]){x, w, bias})) return false;
    ZC_NODE_SET(g, Linear, n, transB, trans_b);
    ZC_NODE_SET(g, Linear, n, alpha, alpha);
    return true;
}

/* A bias vector of w's N columns. */
static bool is_bias(const zc_graph *g, zc_vid v, zc_vid w, int64_t trans_b)
{
    if (!is_const_of_rank(g, v, 1) || zc_val(g, v)->type.dtype != zc_val(g, w)->type.dtype)
        return false;
    return zc_dim_eq(zc_val(g, v)->type.dims[0], zc_val(g, w)->type.dims[trans_b ? 0 : 1]);
}

static bool is_float(const zc_graph *g, zc_vid v)
{
    return zc_dtype_is_float(zc_val(g, v)->type.dtype);
}

static bool from_matmul(zc_graph *g, zc_nid n, linear_pass *p)
{
    const zc_node *node = zc_node_at(g, n);
    if (!is_const_of_rank(g, node->in[1], 2) || zc_val(g, node->in[0])->type.rank < 1) return true;
    if (!is_float(g, node->in[0])) return true;
    ++*p->changes;
    return become_linear(g, n, node->in[0], node->in[1], 0, 0, 1.0f);
}

static bool from_gemm(zc_graph *g, zc_nid n, linear_pass *p)
{
    const zc_node *node = zc_node_at(g, n);
    const zc_attrs_Gemm *a = node->attrs;
    zc_vid bias = zc_node_in(node, ZC_IN_Gemm_c);
    if (a->transA || !is_const_of_rank(g, node->in[1], 2) || !is_float(g, node->in[0])) return true;
    if (bias && (a->beta != 1.0f || !is_bias(g, bias, node->in[1], a->transB))) return true;
    ++*p->changes;
    return become_linear(g, n, node->in[0], node->in[1], bias, a->transB, a->alpha);
}

/* Add(Linear(x, w), bias), in either order. */
static bool from_add(zc_graph *g, zc_nid n, linear_pass *p)
{
    const zc_node *node = zc_node_at(g, n);
    for (int i = 0; i < 2; i++) {
        zc_nid l = zc_producer(g, node->in[i]);
        if (!l || zc_node_at(g, l)->op != ZC_OP_Linear || zc_node_at(g, l)->nin != 2) continue;
        const zc_node *linear = zc_node_at(g, l);
        const zc_attrs_Linear *a = linear->attrs;
        if (p->uses[node->in[i]] != 1 ||
            !is_bias(g, node->in[1 - i], linear->in[ZC_IN_Linear_w], a->transB))
            continue;
        if (!zc_same_type(&zc_val(g, node->in[i])->type, &zc_val(g, node->out[0])->type)) continue;
        zc_vid x = linear->in[ZC_IN_Linear_x], w = linear->in[ZC_IN_Linear_w],
               bias = node->in[1 - i];
        if (!become_linear(g, n, x, w, bias, a->transB, a->alpha) || !zc_graph_inherit(g, n, l))
            return false;
        zc_graph_remove(g, l);
        ++*p->changes;
        return true;
    }
    return true;
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    switch (zc_node_at(g, n)->op) {
    case ZC_OP_MatMul:
        return from_matmul(g, n, user);
    case ZC_OP_Gemm:
        return from_gemm(g, n, user);
    case ZC_OP_Add:
        return from_add(g, n, user);
    default:
        return true;
    }
}

zc_status zc_pass_opt_linear(zc_pass *p)
{
    linear_pass q = {.uses = zc_graph_uses(p->g), .changes = &p->changes};
    if (!q.uses) return zc_fail_nomem(p->diag, "use counts", p->g->values.len);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &q, p->diag);
    free(q.uses);
    return status;
}
