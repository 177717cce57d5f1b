/* Parts of 8 bits: what samples are asked about them, and the quantisations around the convolutions
 * and products of those that are int8.
 *
 * A convolution's result is made bytes at once, behind a Relu, for all who read it. Other operands
 * become bytes where a convolution or product of int8 first reads them; from there on what follows
 * a convolution (a residual that is added) reads the same bytes. */
#include <stdlib.h>
#include <string.h>

#include "passes/quantise.h"
#include "passes/quantised.h"
#include "passes/query.h"

typedef struct lowering {
    const zc_parted *p;
    zc_nid *begin, *last; /* by part: its product; what makes the convolution's result */
    zc_vid *bytes;        /* by value: the same as floats of bytes; 0: there are none */
    size_t values;
    zc_block *b;
} lowering;

static zc_status no_memory(const zc_parted *p)
{
    return zc_fail_nomem(p->diag, "precision", 0);
}

/* ---- products and results ---- */

static uint32_t number_of(const zc_parted *p, zc_nid n)
{
    return n < p->nodes ? p->part_of[n] : 0;
}

/* A Relu, or a Clip that is one up to its maximum: quantisation cuts off the same. */
static bool is_relu(const zc_graph *g, const zc_node *n)
{
    return n->op == ZC_OP_Relu || (n->op == ZC_OP_Clip && zc_is_splat(g, zc_node_in(n, 1), 0) &&
                                   zc_node_in(n, 2) && zc_known(g, n->in[2]));
}

static void find_node(lowering *l, const uint32_t *uses, zc_nid n)
{
    const zc_node *node = zc_node_at(l->p->g, n);
    const uint32_t part = number_of(l->p, n);
    if (!part) return;
    if (!l->begin[part - 1]) {
        l->begin[part - 1] = l->last[part - 1] = n;
    } else if (is_relu(l->p->g, node) && uses[node->in[0]] == 1 &&
               zc_producer(l->p->g, node->in[0]) == l->last[part - 1]) {
        l->last[part - 1] = n;
    }
}

static void drop(lowering *l)
{
    free(l->begin);
    free(l->last);
    free(l->bytes);
}

/* The caller drops it, also after a failure. */
static zc_status find(const zc_parted *p, lowering *l)
{
    const size_t parts = p->mixed->parts.len + 1;
    uint32_t *uses = zc_graph_uses(p->g);
    *l = (lowering){.p = p,
                    .begin = zc_calloc(parts, sizeof *l->begin),
                    .last = zc_calloc(parts, sizeof *l->last),
                    .bytes = zc_calloc(p->g->values.len, sizeof *l->bytes),
                    .values = p->g->values.len,
                    .b = &p->g->top};
    const bool ok = uses && l->begin && l->last && l->bytes;
    for (size_t i = 0; ok && i < l->b->nodes.len; i++) find_node(l, uses, l->b->nodes.data[i]);
    free(uses);
    return ok ? ZC_OK : no_memory(p);
}

/* ---- what samples show ---- */

/* One more output, by v's name: its least or greatest element. */
static zc_status observe(const zc_parted *p, zc_op op, zc_vid v)
{
    zc_graph *g = p->g;
    const size_t n = g->top.outputs.len;
    zc_nid extreme = zc_graph_node(g, &g->top, op, "observed", 1, &v, 1);
    zc_vid y = extreme ? zc_graph_out(g, extreme, 0, NULL) : 0;
    const char **names = y ? zc_arena_alloc(&g->arena, n + 1, sizeof *names) : NULL;
    if (!names || !ZC_VEC_PUSH(&g->top.outputs, y)) return no_memory(p);
    memcpy(names, g->output_names, n * sizeof *names);
    names[n] = zc_val(g, v)->name;
    g->output_names = names;
    return zc_graph_infer(g, extreme, p->diag);
}

/* Quantisation comes before what only chooses elements (opt_bytes). */
static zc_status observe_part(const lowering *l, size_t part)
{
    const zc_graph *g = l->p->g;
    const int spans = l->p->mixed->parts.data[part].spans;
    for (int i = 0; i < spans; i++) {
        const zc_vid v = i == ZC_SPAN_OPERAND
                             ? zc_chosen_from(g, zc_node_at(g, l->begin[part])->in[0])
                             : zc_node_at(g, l->last[part])->out[0];
        ZC_TRY(observe(l->p, ZC_OP_ReduceMin, v));
        ZC_TRY(observe(l->p, ZC_OP_ReduceMax, v));
    }
    return ZC_OK;
}

zc_status zc_parts_observe(const zc_parted *p)
{
    lowering l;
    zc_status status = find(p, &l);
    for (size_t i = 0; i < p->mixed->parts.len && status == ZC_OK; i++)
        status = observe_part(&l, i);
    drop(&l);
    return status;
}

/* ---- quantisations ---- */

static zc_status push(const lowering *l, zc_nid n)
{
    return n && ZC_VEC_PUSH(&l->b->nodes, n) ? ZC_OK : no_memory(l->p);
}

static zc_status push_pair(const lowering *l, zc_quantised_pair made)
{
    ZC_TRY(push(l, made.first));
    return made.second ? push(l, made.second) : ZC_OK;
}

static zc_quanta quanta_of(const lowering *l, uint32_t part, int span)
{
    return zc_quanta_of(&l->p->mixed->spans[part - 1].of[span]);
}

/* Node n, of that part, reads bytes and weights of bytes. */
static zc_status quantise_operands(const lowering *l, zc_nid n, uint32_t part, zc_scalable *s)
{
    const zc_quanta q = quanta_of(l, part, ZC_SPAN_OPERAND);
    ZC_TRY(zc_parts_limit(l->p, s));
    if (!l->bytes[s->x]) {
        const zc_quantised_pair made = zc_quantise(l->p->g, s->x, &q, "int8");
        ZC_TRY(push_pair(l, made));
        l->bytes[s->x] = zc_node_at(l->p->g, made.second)->out[0];
    }
    zc_node_at(l->p->g, n)->in[0] = l->bytes[s->x];
    return push_pair(l, zc_quantise_weights(l->p->g, n, s, &q));
}

/* What node n makes is made bytes before anyone reads it. */
static zc_status quantise_result(const lowering *l, zc_nid n, uint32_t part)
{
    zc_graph *g = l->p->g;
    const zc_vid v = zc_node_at(g, n)->out[0];
    const zc_type type = zc_val(g, v)->type;
    const zc_quanta q = quanta_of(l, part, ZC_SPAN_RESULT);
    const zc_vid exact = zc_graph_value(g, zc_val(g, v)->name, ZC_VALUE_NODE, &type);
    if (!exact) return no_memory(l->p);
    const zc_quantised_pair made = zc_quantise(g, exact, &q, zc_node_at(g, n)->name);
    ZC_TRY(push_pair(l, made));
    zc_val(g, exact)->producer = n;
    zc_node_at(g, n)->out[0] = exact;
    zc_val(g, v)->producer = made.second;
    zc_node_at(g, made.second)->out[0] = v;
    l->bytes[v] = v;
    return ZC_OK;
}

/* The node follows a convolution. */
static void read_bytes(const lowering *l, const zc_node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] < l->values && l->bytes[n->in[i]]) n->in[i] = l->bytes[n->in[i]];
}

static zc_status quantise_node(const lowering *l, zc_nid n)
{
    const zc_parted *p = l->p;
    const uint32_t part = number_of(p, n);
    if (!part || p->mixed->types[part - 1] != ZC_PRECISION_int8) return push(l, n);
    const zc_nid begin = l->begin[part - 1];
    const bool conv = zc_node_at(p->g, begin)->op == ZC_OP_Conv;
    zc_scalable s;
    if (n == begin && zc_quantisable_of(p->g, zc_node_at(p->g, n), &s))
        ZC_TRY(quantise_operands(l, n, part, &s));
    else if (conv)
        read_bytes(l, zc_node_at(p->g, n));
    ZC_TRY(push(l, n));
    return conv && n == l->last[part - 1] ? quantise_result(l, n, part) : ZC_OK;
}

static zc_status quantise(const lowering *l)
{
    zc_block old = *l->b;
    zc_status status = ZC_OK;
    memset(&l->b->nodes, 0, sizeof l->b->nodes);
    for (size_t i = 0; i < old.nodes.len && status == ZC_OK; i++)
        status = quantise_node(l, old.nodes.data[i]);
    ZC_VEC_FINI(&old.nodes);
    return status;
}

zc_status zc_parts_quantise(const zc_parted *p)
{
    lowering l;
    zc_status status = find(p, &l);
    if (status == ZC_OK) status = quantise(&l);
    drop(&l);
    return status;
}
