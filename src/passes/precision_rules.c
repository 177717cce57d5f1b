#include "passes/precision_rules.h"

#include <string.h>

static const zc_precision_rule rules[ZC_OP_COUNT] = {
#define PRECISION(op, r) [ZC_OP_##op] = ZC_RULE_##r,
#include "passes/precision.def"
};

static const char *const sensitive[ZC_OP_COUNT] = {
#define SENSITIVE(op, why) [ZC_OP_##op] = (why),
#include "passes/precision.def"
};

static const bool products[ZC_OP_COUNT] = {
#define PRODUCT(op) [ZC_OP_##op] = true,
#include "passes/precision.def"
};

const char *zc_precision_sensitive(zc_op op)
{
    return sensitive[op];
}

bool zc_precision_is_product(zc_op op)
{
    return products[op];
}

bool zc_precision_pointwise(const zc_node *n)
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

zc_precision_rule zc_precision_rule_of(const zc_graph *g, const zc_node *n)
{
    zc_precision_rule r = rules[n->op];
    if (r == ZC_RULE_NONE) r = zc_precision_pointwise(n) ? ZC_RULE_FOLLOW : ZC_RULE_KEEP;
    if (n->op == ZC_OP_Cast && ((const zc_attrs_Cast *)n->attrs)->to != ZC_F32) return ZC_RULE_ANY;
    if (n->op == ZC_OP_Mul && n->in[0] == n->in[1]) return ZC_RULE_KEEP; /* a square */
    if (r == ZC_RULE_FOLLOW && accumulates(n)) return ZC_RULE_KEEP;
    if (r == ZC_RULE_LOWER && is_outer_product(g, n)) return ZC_RULE_FOLLOW;
    return r;
}

bool zc_precision_reads_table(const zc_graph *g, const zc_node *n)
{
    return (n->op == ZC_OP_Gather || n->op == ZC_OP_GatherND) &&
           zc_val(g, n->in[0])->type.rank >= 2;
}
