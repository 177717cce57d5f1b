/* f32 values become f16 or bf16 where the options ask for it. THE rules are precision.def.
 * Two kinds of values stay f32 until they meet narrow ones: what is computed from integers and
 * constants alone (positions, masks, sizes), and what is computed from the graph's inputs before
 * the first operation that is lowered. Values carried around loops stay f32 too, because sums grow
 * there.
 *
 * A pointwise operation of narrow and f32 operands works in f32 and gives a narrow result: grouping
 * makes the conversions part of it, so that they cost no memory traffic. */
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "passes/precision.h"
#include "passes/query.h"

typedef enum rule { RULE_NONE, LOWER, FOLLOW, CLAMP, ANY, KEEP } rule;

static const rule rules[ZC_OP_COUNT] = {
#define PRECISION(op, r) [ZC_OP_##op] = (r),
#include "passes/precision.def"
};

static const uint64_t wide_inputs[ZC_OP_COUNT] = {
#define WIDE(op, input) [ZC_OP_##op] = UINT64_C(1) << ZC_IN_##op##_##input,
#include "passes/precision.def"
};

typedef struct pass {
    zc_precision values;
    zc_graph *g;
    size_t *changes;
    zc_diag *diag;
} pass;

static zc_status no_memory(const pass *p)
{
    return zc_fail_nomem(p->diag, "precision", 0);
}

/* ---- what an operation does ---- */

static bool is_pointwise(const zc_node *n)
{
    return zc_op_get(n->op)->flags & ZC_OPF_POINTWISE;
}

static bool is_one(const zc_type *t, int axis)
{
    return t->rank > axis && axis >= 0 && zc_dim_is(t->dims[axis], 1);
}

/* Is every index of the operands one of the result's? */
static bool is_outer_einsum(const char *equation)
{
    const char *arrow = equation ? strstr(equation, "->") : NULL;
    for (const char *c = equation; arrow && c < arrow; c++)
        if (*c != ' ' && *c != ',' && !strchr(arrow + 2, *c)) return false;
    return arrow != NULL;
}

/* A product without sums: angles of position encodings are written so. */
static bool is_outer_product(const zc_graph *g, const zc_node *n)
{
    const zc_type *x = &zc_val(g, n->in[0])->type;
    switch (n->op) {
    case ZC_OP_MatMul:
    case ZC_OP_Linear:
        return is_one(x, x->rank - 1);
    case ZC_OP_Gemm:
        return is_one(x, ((const zc_attrs_Gemm *)n->attrs)->transA ? 0 : 1);
    case ZC_OP_Einsum:
        return is_outer_einsum(((const zc_attrs_Einsum *)n->attrs)->equation);
    default:
        return false;
    }
}

/* Scattered elements that meet are added or multiplied one after the other. */
static bool accumulates(const zc_node *n)
{
    const char *reduction =
        n->op == ZC_OP_ScatterElements ? ((const zc_attrs_ScatterElements *)n->attrs)->reduction
        : n->op == ZC_OP_ScatterND     ? ((const zc_attrs_ScatterND *)n->attrs)->reduction
                                       : NULL;
    return reduction && (strcmp(reduction, "add") == 0 || strcmp(reduction, "mul") == 0);
}

static rule rule_of(const zc_graph *g, const zc_node *n)
{
    rule r = rules[n->op];
    if (r == RULE_NONE) r = is_pointwise(n) ? FOLLOW : KEEP;
    if (n->op == ZC_OP_Cast && ((const zc_attrs_Cast *)n->attrs)->to != ZC_F32) return ANY;
    if (n->op == ZC_OP_Mul && n->in[0] == n->in[1]) return KEEP; /* a square */
    if (r == FOLLOW && accumulates(n)) return KEEP;
    if (r == LOWER && is_outer_product(g, n)) return FOLLOW;
    return r;
}

/* Is input i an f32 operand that may be lowered? */
static bool is_operand(const pass *p, const zc_node *n, int i)
{
    uint64_t wide = wide_inputs[n->op] | zc_op_host_inputs(n->op);
    return zc_precision_ours(&p->values, n->in[i]) && !(i < 64 && wide >> i & 1);
}

typedef struct operands {
    int narrow, wide, constants;
    bool in_range, vanish; /* of the constants */
} operands;

static operands count(pass *p, const zc_node *n)
{
    operands o = {.in_range = true};
    for (int i = 0; i < n->nin; i++) {
        if (!is_operand(p, n, i)) continue;
        if (zc_precision_is_const(&p->values, n->in[i])) {
            o.constants++;
            o.in_range &= zc_precision_in_range(&p->values, n->in[i]);
            o.vanish |= zc_precision_vanishes(&p->values, n->in[i]);
        } else if (zc_precision_is_narrow(&p->values, n->in[i])) {
            o.narrow++;
        } else {
            o.wide++;
        }
    }
    return o;
}

/* ---- keeping f32 ---- */

static zc_status keep(pass *p, zc_nid n)
{
    for (int i = 0; i < zc_node_at(p->g, n)->nin; i++) {
        const zc_node *node = zc_node_at(p->g, n);
        if (!zc_precision_ours(&p->values, node->in[i])) continue;
        zc_vid v = is_pointwise(node) ? zc_precision_wide_for(&p->values, node->in[i], n)
                                      : zc_precision_wide(&p->values, node->in[i]);
        if (!v) return no_memory(p);
        zc_node_at(p->g, n)->in[i] = v;
    }
    return ZC_OK;
}

/* f32 inside, narrow outside. */
static zc_status mix(pass *p, zc_nid n)
{
    ZC_TRY(keep(p, n));
    zc_vid v = zc_node_at(p->g, n)->out[0];
    if (zc_precision_ours(&p->values, v)) zc_precision_prefer_narrow(&p->values, v);
    ++*p->changes;
    return ZC_OK;
}

/* ---- lowering ---- */

static zc_operand operand(const pass *p, const zc_node *n, int i)
{
    if (!n->in[i]) return (zc_operand){.type = {.dtype = ZC_NONE, .rank = -1}, .vals = {.n = -1}};
    const zc_value *value = zc_val(p->g, n->in[i]);
    zc_operand o = {.type = value->type, .vals = value->vals, .data = value->data};
    if (!zc_precision_ours(&p->values, n->in[i])) return o;
    zc_dtype to = is_operand(p, n, i) ? p->values.narrow : ZC_F32;
    if (o.type.dtype != to) o.data = NULL;
    o.type.dtype = to;
    return o;
}

/* The results' types from the lowered operands' by the operation's own rules. *ok: the operation
 * takes them, and only f32 results change. */
static zc_status try_types(pass *p, const zc_node *n, zc_operand *out, bool *ok)
{
    zc_operand *in = zc_calloc((size_t)n->nin, sizeof *in);
    if (!in) return no_memory(p);
    for (int i = 0; i < n->nin; i++) in[i] = operand(p, n, i);
    /* Without the caller's own operators, which keep the model's types. */
    zc_infer f = {.op = n->op,
                  .info = zc_op_get(n->op),
                  .attrs = n->attrs,
                  .dims = &p->g->dims,
                  .arena = &p->g->arena,
                  .nin = n->nin,
                  .nout = n->nout,
                  .in = in,
                  .out = out,
                  .subject = n->name};
    zc_status status = zc_infer_run(&f);
    free(in);
    *ok = status == ZC_OK;
    for (int i = 0; i < n->nout && *ok; i++) {
        if (!n->out[i]) continue;
        zc_dtype was = zc_val(p->g, n->out[i])->type.dtype, is = out[i].type.dtype;
        *ok = is == was || (was == ZC_F32 && is == p->values.narrow);
    }
    return status == ZC_ERR_NOMEM ? no_memory(p) : ZC_OK;
}

static zc_status narrow_inputs(pass *p, zc_nid n)
{
    for (int i = 0; i < zc_node_at(p->g, n)->nin; i++) {
        const zc_node *node = zc_node_at(p->g, n);
        if (!zc_precision_ours(&p->values, node->in[i])) continue;
        zc_vid v = is_operand(p, node, i) ? zc_precision_narrow(&p->values, node->in[i])
                                          : zc_precision_wide(&p->values, node->in[i]);
        if (!v) return no_memory(p);
        zc_node_at(p->g, n)->in[i] = v;
    }
    return ZC_OK;
}

static zc_status lower(pass *p, zc_nid n)
{
    const zc_node *node = zc_node_at(p->g, n);
    int nout = node->nout;
    bool ok = false;
    zc_operand *out = zc_calloc((size_t)nout, sizeof *out);
    if (!out) return no_memory(p);
    zc_status status = try_types(p, node, out, &ok);
    if (status == ZC_OK) status = ok ? narrow_inputs(p, n) : keep(p, n);
    for (int i = 0; status == ZC_OK && ok && i < nout; i++) {
        zc_vid v = zc_node_at(p->g, n)->out[i];
        if (v && zc_val(p->g, v)->type.dtype != out[i].type.dtype)
            zc_precision_lower(&p->values, v);
    }
    *p->changes += ok;
    free(out);
    return status;
}

/* A table of rows, such as an embedding, and not a vector of numbers. */
static bool reads_table(const zc_graph *g, const zc_node *n)
{
    return (n->op == ZC_OP_Gather || n->op == ZC_OP_GatherND) &&
           zc_val(g, n->in[0])->type.rank >= 2;
}

static zc_status follow(pass *p, zc_nid n, rule r)
{
    const zc_node *node = zc_node_at(p->g, n);
    operands o = count(p, node);
    bool pointwise = is_pointwise(node);
    if (o.narrow + o.wide + o.constants == 0) return ZC_OK;
    if (!o.narrow && (o.wide || !reads_table(p->g, node))) return keep(p, n);
    if (!o.in_range && r != CLAMP) return keep(p, n);
    if (pointwise && o.vanish) return keep(p, n);
    if (pointwise && o.wide) return mix(p, n);
    return lower(p, n);
}

static zc_status lower_plain(pass *p, zc_nid n)
{
    const zc_node *node = zc_node_at(p->g, n);
    rule r = rule_of(p->g, node);
    switch (r) {
    case ANY:
        return ZC_OK;
    case FOLLOW:
    case CLAMP:
        return follow(p, n, r);
    case LOWER:
        return count(p, node).in_range ? lower(p, n) : keep(p, n);
    case RULE_NONE:
    case KEEP:
        break;
    }
    return keep(p, n);
}

/* ---- control flow ---- */

static zc_status lower_block(pass *p, zc_block *b);

static zc_status widen(pass *p, zc_vid *v)
{
    if (!zc_precision_ours(&p->values, *v)) return ZC_OK;
    *v = zc_precision_wide(&p->values, *v);
    return *v ? ZC_OK : no_memory(p);
}

static zc_status narrow(pass *p, zc_vid *v)
{
    *v = zc_precision_narrow(&p->values, *v);
    return *v ? ZC_OK : no_memory(p);
}

static bool is_narrow(const pass *p, zc_vid v)
{
    return zc_precision_ours(&p->values, v) && zc_precision_is_narrow(&p->values, v);
}

static void resolve_outputs(const pass *p, zc_block *b)
{
    for (size_t i = 0; i < b->outputs.len; i++)
        b->outputs.data[i] = zc_graph_resolved(p->g, b->outputs.data[i]);
}

static zc_status lower_region(pass *p, zc_block *b)
{
    ZC_TRY(lower_block(p, b));
    resolve_outputs(p, b);
    return ZC_OK;
}

/* A result of an If is narrow when both branches give it so. */
static zc_status lower_if(pass *p, zc_nid n)
{
    zc_block *then_b = zc_node_at(p->g, n)->regions[0], *else_b = zc_node_at(p->g, n)->regions[1];
    ZC_TRY(lower_region(p, then_b));
    ZC_TRY(lower_region(p, else_b));
    for (int i = 0; i < zc_node_at(p->g, n)->nout; i++) {
        zc_vid *a = &then_b->outputs.data[i], *b = &else_b->outputs.data[i];
        if (is_narrow(p, *a) && is_narrow(p, *b)) {
            ZC_TRY(narrow(p, a));
            ZC_TRY(narrow(p, b));
            if (zc_node_at(p->g, n)->out[i])
                zc_precision_lower(&p->values, zc_node_at(p->g, n)->out[i]);
        } else {
            ZC_TRY(widen(p, a));
            ZC_TRY(widen(p, b));
        }
    }
    return ZC_OK;
}

/* What the body gives for result i of the node: carried values stay f32, stacked ones are as they
 * come. */
static zc_status body_output(pass *p, zc_nid n, int i, zc_vid *v, bool carried)
{
    if (carried || !is_narrow(p, *v)) return widen(p, v);
    ZC_TRY(narrow(p, v));
    zc_vid out = zc_node_at(p->g, n)->out[i];
    if (out) zc_precision_lower(&p->values, out);
    return ZC_OK;
}

static zc_status lower_loop(pass *p, zc_nid n)
{
    zc_node *node = zc_node_at(p->g, n);
    int carried = node->nin - 2, nout = node->nout;
    zc_block *body = node->regions[0];
    for (int i = 2; i < node->nin; i++) {
        zc_vid v = node->in[i];
        ZC_TRY(widen(p, &v));
        node = zc_node_at(p->g, n);
        node->in[i] = v;
    }
    ZC_TRY(lower_region(p, body));
    for (int i = 0; i < nout; i++)
        ZC_TRY(body_output(p, n, i, &body->outputs.data[i + 1], i < carried));
    return ZC_OK;
}

static zc_status lower_scan(pass *p, zc_nid n)
{
    zc_node *node = zc_node_at(p->g, n);
    int states = node->nin - (int)((const zc_attrs_Scan *)node->attrs)->num_scan_inputs;
    int nin = node->nin, nout = node->nout;
    zc_block *body = node->regions[0];
    for (int i = 0; i < nin; i++) {
        zc_vid v = zc_node_at(p->g, n)->in[i];
        if (i >= states && is_narrow(p, v)) {
            ZC_TRY(narrow(p, &v));
            zc_precision_lower(&p->values, body->params.data[i]);
        } else {
            ZC_TRY(widen(p, &v));
        }
        zc_node_at(p->g, n)->in[i] = v;
    }
    ZC_TRY(lower_region(p, body));
    for (int i = 0; i < nout; i++) ZC_TRY(body_output(p, n, i, &body->outputs.data[i], i < states));
    return ZC_OK;
}

/* ---- the walk ---- */

static zc_status lower_node(pass *p, zc_nid n)
{
    zc_node *node = zc_node_at(p->g, n);
    for (int i = 0; i < node->nin; i++) node->in[i] = zc_graph_resolved(p->g, node->in[i]);
    switch (node->op) {
    case ZC_OP_NONE:
        return ZC_OK;
    case ZC_OP_If:
        return lower_if(p, n);
    case ZC_OP_Loop:
        return lower_loop(p, n);
    case ZC_OP_Scan:
        return lower_scan(p, n);
    default:
        return lower_plain(p, n);
    }
}

static zc_status lower_block(pass *p, zc_block *b)
{
    for (size_t i = 0; i < b->nodes.len; i++) ZC_TRY(lower_node(p, b->nodes.data[i]));
    return ZC_OK;
}

static zc_status lower_graph(pass *p)
{
    ZC_TRY(lower_region(p, &p->g->top));
    for (size_t i = 0; i < p->g->top.outputs.len; i++) ZC_TRY(widen(p, &p->g->top.outputs.data[i]));
    return zc_precision_place(&p->values);
}

/* A cast of the model's own, of what has that type by now. */
static bool drop_cast(zc_graph *g, zc_nid n, void *user)
{
    size_t *changes = user;
    const zc_node *node = zc_node_at(g, n);
    if (node->op != ZC_OP_Cast ||
        zc_val(g, node->in[0])->type.dtype != zc_val(g, node->out[0])->type.dtype)
        return true;
    zc_graph_forward(g, node->out[0], node->in[0]);
    zc_graph_remove(g, n);
    ++*changes;
    return true;
}

zc_status zc_pass_lower_precision(zc_pass *p)
{
    if (p->options->precision == ZC_NONE) return ZC_OK;
    pass q = {.g = p->g, .changes = &p->changes, .diag = p->diag};
    zc_status status = zc_precision_init(&q.values, p->g, p->options->precision, p->diag);
    if (status == ZC_OK) status = lower_graph(&q);
    if (status == ZC_OK) status = zc_each_node(p->g, &p->g->top, drop_cast, &p->changes, p->diag);
    zc_precision_fini(&q.values);
    return status;
}
