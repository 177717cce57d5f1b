/* f32 values become f16 or bf16 where the options ask for it. THE rules are precision.def.
 * Two kinds of values stay f32 until they meet narrow ones: what is computed from integers and
 * constants alone (positions, masks, sizes), and what is computed from the graph's inputs before
 * the first operation that is lowered. Values carried around loops stay f32 too, because sums grow
 * there.
 *
 * A pointwise operation of narrow and f32 operands works in f32 and gives a narrow result: grouping
 * makes the conversions part of it, so that they cost no memory traffic. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "passes/passes.h"
#include "passes/precision.h"
#include "passes/precision_rules.h"
#include "passes/query.h"
#include "passes/scaled.h"

static const uint64_t wide_inputs[ZC_OP_COUNT] = {
#define WIDE(op, input) [ZC_OP_##op] = UINT64_C(1) << ZC_IN_##op##_##input,
#include "passes/precision.def"
};

typedef struct pass {
    zc_precision values;
    zc_hollow_twins hollow;  /* of emulation */
    const zc_mixed *mixed;   /* types by part; NULL: everything that may */
    const uint32_t *part_of; /* by node, of the first `nodes` ones */
    size_t nodes;
    bool gpu;
    zc_graph *g;
    size_t *changes;
    zc_diag *diag;
} pass;

static zc_status no_memory(const pass *p)
{
    return zc_fail_nomem(p->diag, "precision", 0);
}

/* ---- what an operation does ---- */

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
        zc_vid v = zc_precision_pointwise(node) ? zc_precision_wide_for(&p->values, node->in[i], n)
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

static zc_status follow(pass *p, zc_nid n, zc_precision_rule r)
{
    const zc_node *node = zc_node_at(p->g, n);
    operands o = count(p, node);
    bool pointwise = zc_precision_pointwise(node);
    if (o.narrow + o.wide + o.constants == 0) return ZC_OK;
    if (!o.narrow && (o.wide || !zc_precision_reads_table(p->g, node))) return keep(p, n);
    if (!o.in_range && r != ZC_RULE_CLAMP) return keep(p, n);
    if (pointwise && o.vanish) return keep(p, n);
    if (pointwise && o.wide) return mix(p, n);
    return lower(p, n);
}

/* The type of the node's part. */
static zc_precision_type type_of(const pass *p, zc_nid n)
{
    uint32_t part = n < p->nodes ? p->part_of[n] : 0;
    return part ? p->mixed->types[part - 1] : ZC_PRECISION_f32;
}

/* Of the values of part i. */
static zc_dtype part_dtype(const pass *p, size_t i)
{
    return zc_precision_dtype(p->mixed->types[i], &p->mixed->parts.data[i], p->gpu);
}

/* Is the node of a part whose values get the narrow type? */
static bool is_chosen(const pass *p, zc_nid n)
{
    const uint32_t part = n < p->nodes && p->mixed ? p->part_of[n] : 0;
    return !p->mixed || (part && part_dtype(p, part - 1) == p->values.narrow);
}

static void lower_result(pass *p, zc_nid n)
{
    zc_vid v = zc_node_at(p->g, n)->out[0];
    if (!zc_precision_ours(&p->values, v)) return;
    if (zc_node_at(p->g, n)->op == ZC_OP_ScaledConv)
        ZC_NODE_SET(p->g, ScaledConv, n, to, p->values.narrow);
    else
        ZC_NODE_SET(p->g, ScaledLinear, n, to, p->values.narrow);
    zc_precision_lower(&p->values, v);
    ++*p->changes;
}

static zc_status lower_plain(pass *p, zc_nid n)
{
    const zc_node *node = zc_node_at(p->g, n);
    zc_precision_rule r = zc_precision_rule_of(p->g, node);
    if (r != ZC_RULE_ANY && !is_chosen(p, n)) return keep(p, n);
    switch (r) {
    case ZC_RULE_ANY:
        return ZC_OK;
    case ZC_RULE_FOLLOW:
    case ZC_RULE_CLAMP:
        return follow(p, n, r);
    case ZC_RULE_LOWER:
        return count(p, node).in_range ? lower(p, n) : keep(p, n);
    case ZC_RULE_RESULT:
        lower_result(p, n);
        return ZC_OK;
    case ZC_RULE_NONE:
    case ZC_RULE_KEEP:
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

static zc_status lower_to(zc_pass *p, pass *q, zc_dtype narrow)
{
    zc_status status = zc_precision_init(&q->values, p->g, narrow, p->diag);
    const bool emulates = q->mixed && q->mixed->emulate;
    q->values.hollow = emulates ? &q->hollow : NULL;
    q->values.kept = emulates ? q->mixed->kept : NULL;
    if (status == ZC_OK) status = lower_graph(q);
    if (status == ZC_OK) status = zc_each_node(p->g, &p->g->top, drop_cast, &p->changes, p->diag);
    zc_precision_fini(&q->values);
    return status;
}

/* ---- types by part ---- */

static bool has_type(const pass *q, zc_dtype values)
{
    for (size_t i = 0; i < q->mixed->parts.len; i++)
        if (part_dtype(q, i) == values) return true;
    return false;
}

static void mark_tf32(const pass *q)
{
    for (zc_nid n = 1; n < q->nodes; n++) {
        zc_node *node = zc_node_at(q->g, n);
        node->tf32 = type_of(q, n) == ZC_PRECISION_tf32 && zc_precision_is_product(node->op);
    }
}

/* One type after the other: what the earlier ones made is not f32 any more. */
static zc_status lower_parts(zc_pass *p, pass *q)
{
    static const zc_dtype narrow[] = {ZC_F16, ZC_BF16};
    for (size_t i = 0; i < ZC_COUNTOF(narrow); i++)
        if (has_type(q, narrow[i])) ZC_TRY(lower_to(p, q, narrow[i]));
    mark_tf32(q);
    return ZC_OK;
}

/* ---- products of e4m3 ---- */

/* Is node n the product of a part that scales? */
static bool is_scalable(const pass *q, zc_nid n, zc_scalable *out)
{
    uint32_t part = n < q->nodes ? q->part_of[n] : 0;
    return part && q->mixed->parts.data[part - 1].scales &&
           zc_scalable_of(q->g, zc_node_at(q->g, n), out);
}

/* The floats of the weights' codes. 0: no memory. */
static zc_vid scaled_weights(const pass *q, const zc_scalable *s)
{
    const int form = zc_kept_form_of(ZC_PRECISION_fp8, s);
    const zc_vid kept = zc_kept_use(q->mixed->kept, q->g, s->w, form);
    zc_tensor made;
    if (kept) return kept;
    if (!zc_scaled_weights(q->g, s, &made)) return 0;
    return zc_kept_take(q->mixed->kept, q->g, s->w, form, &made);
}

/* Puts node n's first factor, in e4m3, in front of it; factors: by value, those that are made. */
static zc_status scale_product(const pass *q, const zc_parted *parts, zc_nid n, zc_scalable *s,
                               zc_vid *factors, zc_block *b)
{
    zc_graph *g = q->g;
    const bool emulate = q->mixed->emulate;
    const zc_span *x = &q->mixed->spans[q->part_of[n] - 1].of[ZC_SPAN_OPERAND];
    const double scale = zc_scale_for(fmax(fabs(x->low), fabs(x->high)));
    ZC_TRY(zc_parts_limit(parts, s));
    if (!factors[s->x]) {
        zc_nid made =
            emulate ? zc_scaled_rounding(g, s->x, scale) : zc_scaled_factor(g, s->x, scale);
        if (!made || !ZC_VEC_PUSH(&b->nodes, made)) return no_memory(q);
        factors[s->x] = zc_node_at(g, made)->out[0];
    }
    if (!emulate) return zc_scaled_become(g, n, s, factors[s->x], scale) ? ZC_OK : no_memory(q);
    const zc_vid w = scaled_weights(q, s);
    if (!w) return no_memory(q);
    zc_node_at(g, n)->in[0] = factors[s->x];
    zc_node_at(g, n)->in[1] = w;
    return ZC_OK;
}

static zc_status scale_products(const pass *q, const zc_parted *parts)
{
    zc_block *b = &q->g->top, old = *b;
    zc_vid *factors = zc_calloc(q->g->values.len, sizeof *factors);
    if (!factors) return no_memory(q);
    zc_status status = ZC_OK;
    memset(&b->nodes, 0, sizeof b->nodes);
    for (size_t i = 0; i < old.nodes.len && status == ZC_OK; i++) {
        zc_nid n = old.nodes.data[i];
        zc_scalable s;
        if (type_of(q, n) == ZC_PRECISION_fp8 && is_scalable(q, n, &s))
            status = scale_product(q, parts, n, &s, factors, b);
        if (status == ZC_OK && !ZC_VEC_PUSH(&b->nodes, n)) status = no_memory(q);
    }
    ZC_VEC_FINI(&old.nodes);
    free(factors);
    return status;
}

/* ---- integers ---- */

/* Passes that lie before this one have to see what was quantised here, too. */
static zc_status run_again(zc_pass *p, const char *name, zc_pass_fn fn)
{
    if (zc_pass_is_skipped(p->options, name)) return ZC_OK;
    ZC_TRY(fn(p));
    zc_graph_resolve(p->g);
    zc_graph_compact(p->g);
    return ZC_OK;
}

#define RUN_AGAIN(p, pass) run_again(p, #pass, zc_pass_##pass)

/* On a GPU, whose kernels multiply bytes as they are, trials multiply the floats of them. */
static zc_status join_quantised(zc_pass *p, const zc_mixed *m)
{
    ZC_TRY(RUN_AGAIN(p, opt_bytes));
    ZC_TRY(RUN_AGAIN(p, opt_integers));
    ZC_TRY(RUN_AGAIN(p, opt_dce)); /* what it leaves would count as readers */
    if (!m->emulate) return RUN_AGAIN(p, opt_scaled);
    return zc_pass_on_cpu(p) ? ZC_OK : RUN_AGAIN(p, opt_fold);
}

static zc_status quantise_parts(zc_pass *p, const zc_parted *parts)
{
    bool any = false;
    for (size_t i = 0; i < parts->mixed->parts.len; i++)
        any |= parts->mixed->types[i] == ZC_PRECISION_int8;
    if (!any) return ZC_OK;
    ZC_TRY(zc_parts_quantise(parts));
    return join_quantised(p, parts->mixed);
}

/* ---- codes ---- */

/* Where kernels read them. */
static zc_status keep_codes(zc_pass *p, const zc_parted *parts, const zc_parts_coded *coded)
{
    if (!coded->len || parts->mixed->emulate || !zc_pass_has(p, ZC_FAMILY_gemv_packed_sm90) ||
        zc_pass_is_skipped(p->options, "opt_packed"))
        return ZC_OK;
    ZC_TRY(zc_parts_keep_codes(parts, coded));
    return RUN_AGAIN(p, opt_packed);
}

/* ---- types by part, all together ---- */

static zc_status lower_and_emulate(zc_pass *p, pass *q)
{
    size_t count = p->g->values.len;
    zc_dtype *was = zc_calloc(count, sizeof *was);
    if (!was) return no_memory(q);
    for (zc_vid v = 1; v < count; v++) was[v] = zc_val(p->g, v)->type.dtype;
    zc_status status = lower_parts(p, q);
    if (status == ZC_OK)
        status = zc_precision_emulate(p->g, was, count, &q->hollow, q->mixed->kept, p->diag);
    if (status == ZC_OK) status = zc_each_node(p->g, &p->g->top, drop_cast, &p->changes, p->diag);
    free(was);
    ZC_VEC_FINI(&q->hollow);
    return status;
}

static zc_status lower_chosen(zc_pass *p, pass *q, const zc_parted *parts)
{
    zc_parts_coded coded = {.len = 0};
    zc_status status = scale_products(q, parts);
    if (status == ZC_OK) status = quantise_parts(p, parts);
    if (status == ZC_OK) status = zc_parts_code(parts, &coded);
    if (status == ZC_OK) status = zc_parts_prune(parts);
    if (status == ZC_OK) status = q->mixed->emulate ? lower_and_emulate(p, q) : lower_parts(p, q);
    if (status == ZC_OK) status = keep_codes(p, parts, &coded);
    ZC_VEC_FINI(&coded);
    return status;
}

static zc_status lower_mixed(zc_pass *p, pass *q, zc_mixed *m)
{
    uint32_t *part_of;
    zc_status status = zc_mixed_find(p->g, m, &part_of, p->diag);
    q->mixed = m;
    q->part_of = part_of;
    q->nodes = p->g->nodes.len;
    q->gpu = !zc_pass_on_cpu(p);
    const zc_parted parts = {p->g, m, part_of, q->nodes, p->diag};
    if (status == ZC_OK && m->observe)
        status = zc_parts_observe(&parts);
    else if (status == ZC_OK && m->types)
        status = lower_chosen(p, q, &parts);
    free(part_of);
    return status;
}

zc_status zc_pass_lower_precision(zc_pass *p)
{
    pass q = {.g = p->g, .changes = &p->changes, .diag = p->diag};
    if (p->options->mixed) return lower_mixed(p, &q, p->options->mixed);
    return p->options->precision == ZC_NONE ? ZC_OK : lower_to(p, &q, p->options->precision);
}
