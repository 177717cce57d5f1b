/* Signed bytes become unsigned ones, 128 more with their zero point: the same numbers. The CPU's
 * products have an unsigned factor. On Hopper those of a zero point of -128 do, as what follows a
 * Relu has them: borders of zeros, as the copy engine gathers them, then are zero points, and sums
 * of products need no correction.
 *
 * Values that only quantisation makes, what moves or compares bytes passes on, and convolutions and
 * DequantizeLinear read. */
#include <stdlib.h>

#include "passes/passes.h"
#include "passes/quantised.h"

enum { SHIFT = 128 };

/* By value: its uses, those of them that may read it unsigned, and whether it now is. */
typedef struct turning {
    zc_use_counts uses;
    uint32_t *readers;
    bool *is_turned;
    bool any; /* zero point */
} turning;

/* The operand that is the zero point of the first one's, of a node that computes with bytes; -1:
 * it does not. */
static int zero_of_input(const zc_node *n)
{
    return n->op == ZC_OP_DequantizeLinear ? ZC_IN_DequantizeLinear_zero
           : n->op == ZC_OP_QLinearConv    ? ZC_IN_QLinearConv_x_zero
                                           : -1;
}

static int zero_of_result(const zc_node *n)
{
    return n->op == ZC_OP_QuantizeLinear ? ZC_IN_QuantizeLinear_zero
           : n->op == ZC_OP_QLinearConv  ? ZC_IN_QLinearConv_y_zero
                                         : -1;
}

/* The zero point; false: it is left out, not known, or more than one. */
static bool zero_at(const zc_graph *g, const zc_node *n, int i, int64_t *zero)
{
    const zc_tensor *t = zc_known(g, zc_node_in(n, i));
    if (!t || t->dtype != ZC_I8 || zc_tensor_numel(t) != 1) return false;
    *zero = zc_load_i64(t->dtype, t->data, 0);
    return true;
}

static bool is_signed(const zc_graph *g, zc_vid v)
{
    return v && zc_val(g, v)->type.dtype == ZC_I8;
}

/* Does it only move bytes, or take the largest of some? */
static bool passes_on(const zc_node *n)
{
    return zc_only_moves(n->op) || (n->op == ZC_OP_MaxPool && !zc_node_out(n, 1));
}

/* May node n read its first operand unsigned? */
static bool may_read(const zc_graph *g, const zc_node *n, const turning *t)
{
    int64_t zero;
    const int i = zero_of_input(n);
    if (i >= 0) return zero_at(g, n, i, &zero);
    return passes_on(n) && t->readers[n->out[0]] == t->uses.of[n->out[0]];
}

/* Does node n make bytes that can be unsigned? */
static bool makes(const zc_graph *g, const zc_node *n, const turning *t)
{
    int64_t zero;
    const int i = zero_of_result(n);
    if (i < 0 || !is_signed(g, n->out[0]) || t->readers[n->out[0]] != t->uses.of[n->out[0]])
        return false;
    if (n->op == ZC_OP_QuantizeLinear &&
        ((const zc_attrs_QuantizeLinear *)n->attrs)->output_dtype != 0)
        return false;
    return zero_at(g, n, i, &zero) && (t->any || zero == -SHIFT);
}

/* Operand i of n, a zero point, counted from 128 lower; false: no memory. */
static bool shift(zc_graph *g, zc_nid n, int i)
{
    int64_t zero = 0;
    zero_at(g, zc_node_at(g, n), i, &zero);
    const uint8_t byte = (uint8_t)(zero + SHIFT);
    zc_tensor t = {.dtype = ZC_U8, .rank = 0, .data = (void *)(uintptr_t)&byte};
    const zc_vid v = zc_graph_const(g, NULL, &t, false);
    if (v) zc_node_at(g, n)->in[i] = v;
    return v != 0;
}

static bool turn(zc_graph *g, zc_nid n, const turning *t)
{
    const zc_node *node = zc_node_at(g, n);
    const bool reads = node->nin > 0 && t->is_turned[node->in[0]];
    const bool made = makes(g, node, t) || (reads && passes_on(node));
    if (reads && zero_of_input(node) >= 0 && !shift(g, n, zero_of_input(node))) return false;
    node = zc_node_at(g, n);
    if (!made) return true;
    if (zero_of_result(node) >= 0 && !shift(g, n, zero_of_result(node))) return false;
    const zc_vid v = zc_node_at(g, n)->out[0];
    zc_val(g, v)->type.dtype = ZC_U8;
    t->is_turned[v] = true;
    return true;
}

/* Of the whole graph's own nodes: what a region uses stays as it is. */
static zc_status run(zc_pass *p, turning *t)
{
    zc_graph *g = p->g;
    const zc_block *b = &g->top;
    for (size_t i = b->nodes.len; i-- > 0;) {
        const zc_node *n = zc_node_at(g, b->nodes.data[i]);
        if (n->op != ZC_OP_NONE && n->nin > 0 && is_signed(g, n->in[0]) && may_read(g, n, t))
            t->readers[n->in[0]]++;
    }
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_nid n = b->nodes.data[i];
        if (zc_node_at(g, n)->op == ZC_OP_NONE) continue;
        if (makes(g, zc_node_at(g, n), t)) p->changes++;
        if (!turn(g, n, t)) return zc_fail_nomem(p->diag, "unsigned bytes", 0);
    }
    return ZC_OK;
}

zc_status zc_pass_opt_unsigned(zc_pass *p)
{
    if (!zc_pass_bytes(p)) return ZC_OK;
    turning t = {.any = zc_pass_on_cpu(p)};
    const size_t values = p->g->values.len;
    const bool room = zc_count_uses(p->g, &t.uses) &&
                      (t.readers = zc_calloc(values, sizeof *t.readers)) &&
                      (t.is_turned = zc_calloc(values, sizeof *t.is_turned));
    zc_status status = room ? run(p, &t) : zc_fail_nomem(p->diag, "unsigned bytes", values);
    free(t.uses.of);
    free(t.readers);
    free(t.is_turned);
    return status;
}
