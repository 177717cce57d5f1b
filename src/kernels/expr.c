/* Scalar expressions as straight-line device functions. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/gen.h"
#include "op/activation.h"
#include "op/affine.h"
#include "op/pointwise.h"

static const char *const functions[ZC_EXPR_OP_COUNT] = {
    [ZC_EX_NEG] = "neg",     [ZC_EX_BITNOT] = "bitnot", [ZC_EX_ADD] = "add",
    [ZC_EX_SUB] = "sub",     [ZC_EX_MUL] = "mul",       [ZC_EX_DIV] = "div",
    [ZC_EX_MOD] = "mod",     [ZC_EX_FMOD] = "fmod",     [ZC_EX_POW] = "pow",
    [ZC_EX_MAX] = "max",     [ZC_EX_MIN] = "min",       [ZC_EX_BITAND] = "bitand",
    [ZC_EX_BITOR] = "bitor", [ZC_EX_BITXOR] = "bitxor", [ZC_EX_ABS] = "abs",
    [ZC_EX_ACOS] = "acos",   [ZC_EX_ACOSH] = "acosh",   [ZC_EX_ASIN] = "asin",
    [ZC_EX_ASINH] = "asinh", [ZC_EX_ATAN] = "atan",     [ZC_EX_ATANH] = "atanh",
    [ZC_EX_CEIL] = "ceil",   [ZC_EX_COS] = "cos",       [ZC_EX_COSH] = "cosh",
    [ZC_EX_ERF] = "erf",     [ZC_EX_EXP] = "exp",       [ZC_EX_FLOOR] = "floor",
    [ZC_EX_LOG] = "log",     [ZC_EX_LOG1P] = "log1p",   [ZC_EX_EXPM1] = "expm1",
    [ZC_EX_ROUND] = "round", [ZC_EX_RSQRT] = "rsqrt",   [ZC_EX_SIGN] = "sign",
    [ZC_EX_SIN] = "sin",     [ZC_EX_SINH] = "sinh",     [ZC_EX_SQRT] = "sqrt",
    [ZC_EX_TAN] = "tan",     [ZC_EX_TANH] = "tanh",     [ZC_EX_SIGMOID] = "sigmoid",
};

/* With faster versions for elements of 16 bits. */
static const bool has_quick[ZC_EXPR_OP_COUNT] = {
    [ZC_EX_DIV] = true,     [ZC_EX_ERF] = true,  [ZC_EX_RSQRT] = true,
    [ZC_EX_SIGMOID] = true, [ZC_EX_SQRT] = true, [ZC_EX_TANH] = true,
};

static bool is_quick(const zc_expr_node *n)
{
    return n->dtype == ZC_F16 || n->dtype == ZC_BF16;
}

/* The f of 1 + f(v), or f(v) + 1, that has a faster version as a whole; else NULL. */
static const zc_expr_node *one_plus(const zc_expr *e, const zc_expr_node *n)
{
    if (n->op != ZC_EX_ADD || !is_quick(n)) return NULL;
    for (int i = 0; i < 2; i++) {
        const zc_expr_node *one = &e->nodes[n->arg[i]], *f = &e->nodes[n->arg[1 - i]];
        if (one->op == ZC_EX_CONST && one->f == 1 && (f->op == ZC_EX_ERF || f->op == ZC_EX_TANH))
            return f;
    }
    return NULL;
}

/* The v of k * v or v * k; else -1. */
static int times(const zc_expr *e, int of, double k)
{
    const zc_expr_node *n = &e->nodes[of];
    for (int i = 0; n->op == ZC_EX_MUL && i < 2; i++) {
        const zc_expr_node *factor = &e->nodes[n->arg[i]];
        if (factor->op == ZC_EX_CONST && fabs(factor->f - k) < 1e-7) return n->arg[1 - i];
    }
    return -1;
}

/* The v of 0.5 * v * (1 + erf(v / sqrt(2))), as Gelu is written; else -1. */
static int gelu_of(const zc_expr *e, const zc_expr_node *n)
{
    if (n->op != ZC_EX_MUL || !is_quick(n)) return -1;
    const zc_expr_node *f = one_plus(e, &e->nodes[n->arg[1]]);
    int v = times(e, n->arg[0], 0.5);
    bool is = v >= 0 && f && f->op == ZC_EX_ERF && times(e, f->arg[0], 0.70710678118654752) == v;
    return is ? v : -1;
}

/* A bound of a node's magnitude, from those of the nodes in front; infinite where there is none. */
static double magnitude(const zc_expr_node *node, const double *most)
{
    switch (node->op) {
    case ZC_EX_INPUT:
        return zc_dtype_is_int(node->dtype) && zc_dtype_bits(node->dtype) == 8 ? 255 : INFINITY;
    case ZC_EX_CONST:
        if (!zc_dtype_is_float(node->dtype)) return fabs((double)node->i);
        return isnan(node->f) ? INFINITY : fabs(node->f);
    case ZC_EX_CAST:
        return node->dtype == ZC_F32 ? most[node->arg[0]] : INFINITY;
    case ZC_EX_ADD:
    case ZC_EX_SUB:
    case ZC_EX_MAX:
    case ZC_EX_MIN:
        return most[node->arg[0]] + most[node->arg[1]]; /* NaN stays NaN, which is below nothing */
    case ZC_EX_MUL:
        return most[node->arg[0]] * most[node->arg[1]];
    default:
        return INFINITY;
    }
}

static double magnitude_of(const zc_expr *e, int n)
{
    double most[ZC_EXPR_MAX_NODES];
    for (int i = 0; i <= n; i++) most[i] = magnitude(&e->nodes[i], most);
    return most[n];
}

/* Where an expression stands: its results are computed with, or go to memory; at the end input 0 is
 * what a kernel computed, not what memory holds. */
typedef enum place { BETWEEN, STORED, AT_END } place;

static bool is_computed_in_f32(const zc_expr_node *n)
{
    return zc_dtype_is_float(n->dtype) && n->dtype != ZC_F64;
}

/* Is node n a float that whoever stores it rounds, and nobody else reads? */
static bool is_rounded_later(const zc_expr *e, int n, place at)
{
    const zc_expr_node *cast = &e->nodes[n];
    bool is_result = false;
    if (at == BETWEEN || cast->op != ZC_EX_CAST || !is_computed_in_f32(cast) ||
        !is_computed_in_f32(&e->nodes[cast->arg[0]]))
        return false;
    for (int r = 0; r < e->nresults; r++) is_result = is_result || e->result[r] == n;
    for (int i = n + 1; i < e->count; i++)
        for (int a = 0; a < 3; a++) is_result = is_result && e->nodes[i].arg[a] != n;
    return is_result;
}

/* Is node n an f16 or bf16 that no operation rounded to its type? Then neither need a division of
 * it be exact. */
static bool is_unrounded(const zc_expr *e, int n, place at)
{
    bool is[ZC_EXPR_MAX_NODES];
    for (int i = 0; i <= n; i++) {
        const zc_expr_node *v = &e->nodes[i];
        switch (v->op) {
        case ZC_EX_INPUT:
            is[i] = at == AT_END && v->input == 0 && is_quick(v);
            break;
        case ZC_EX_CAST:
            is[i] = v->dtype == ZC_F32 && is[v->arg[0]];
            break;
        case ZC_EX_CONST:
            is[i] = false;
            break;
        case ZC_EX_NEG:
        case ZC_EX_ABS:
            is[i] = is[v->arg[0]];
            break;
        case ZC_EX_MAX:
        case ZC_EX_MIN:
            is[i] = is[v->arg[0]] || is[v->arg[1]];
            break;
        default:
            is[i] = is_quick(v);
        }
    }
    return is[n];
}

bool zc_gen_is_sum(const zc_expr *e, zc_affine *out)
{
    return e->nresults == 1 && zc_affine_of(e, e->result[0], out);
}

static void put_sum(zc_buf *b, zc_dtype dtype, const zc_affine *sum)
{
    zc_buf_printf(b, "zx_affine<%s>(x%d, x%d, %af, %af, %af)", zc_gen_type_name(dtype), sum->x[0],
                  sum->x[1], (double)sum->factor[0], (double)sum->factor[1], (double)sum->addend);
}

/* The scale's reciprocal is two floats, as zc_divided wants it. */
static void put_quantised(zc_buf *b, const zc_expr *e, int n, const zc_quantised *q, place at)
{
    const bool within = magnitude_of(e, q->x) < 0x1p19 * (double)q->scale;
    const double reciprocal = 1 / (double)q->scale;
    const float high = (float)reciprocal, low = (float)(reciprocal - (double)high);
    const zc_dtype dtype = is_rounded_later(e, n, at) ? ZC_F32 : e->nodes[n].dtype;
    const bool bytes = zc_dtype_is_int(dtype);
    const char *type = zc_gen_type_name(dtype), *how = bytes ? "quantised" : "scaled";
    if (is_unrounded(e, q->x, at))
        zc_buf_printf(b, "zq_%s<%s>(v%d, %af", how, type, q->x, (double)high);
    else
        zc_buf_printf(b, "zx_%s<%s, %s>(v%d, %af, %af, %af", how, type, within ? "true" : "false",
                      q->x, (double)q->scale, (double)high, (double)low);
    if (bytes) zc_buf_printf(b, ", %d", q->zero);
    zc_buf_puts(b, ")");
}

/* Are there quantised numbers? Then products are rounded before they are added, as elsewhere the
 * compiler need not: a byte, or e4m3's number, is to be the one that the graph says. */
static bool has_quantised(const zc_expr *e)
{
    zc_quantised q;
    for (int i = 0; i < e->count; i++)
        if (zc_quantised_of(e, i, &q)) return true;
    return false;
}

static const char *const comparisons[ZC_EXPR_OP_COUNT] = {
    [ZC_EX_EQ] = "==", [ZC_EX_NE] = "!=", [ZC_EX_LT] = "<",   [ZC_EX_LE] = "<=",
    [ZC_EX_GT] = ">",  [ZC_EX_GE] = ">=", [ZC_EX_AND] = "&&", [ZC_EX_OR] = "||",
};

const char *zc_gen_compute_type(zc_dtype dtype)
{
    switch (zc_dtype_class(dtype)) {
    case ZC_CLASS_FLOAT:
        return dtype == ZC_F64 ? "f64" : "f32";
    case ZC_CLASS_INT:
        return dtype == ZC_I64 ? "i64" : "i32";
    case ZC_CLASS_UINT:
        return dtype == ZC_U64 ? "u64" : "u32";
    default:
        return "bool";
    }
}

static void put_constant(zc_buf *b, const zc_expr_node *n)
{
    bool wide = n->dtype == ZC_F64;
    switch (zc_dtype_class(n->dtype)) {
    case ZC_CLASS_FLOAT:
        if (isnan(n->f))
            zc_buf_printf(b, "zc_nan%d()", wide ? 64 : 32);
        else if (isinf(n->f))
            zc_buf_printf(b, "%szc_inf%d()", n->f < 0 ? "-" : "", wide ? 64 : 32);
        else if (wide)
            zc_buf_printf(b, "%a", n->f);
        else
            zc_buf_printf(b, "%af", (double)(float)n->f);
        break;
    case ZC_CLASS_UINT:
        zc_buf_printf(b, "(%s)%lluull", zc_gen_compute_type(n->dtype), (unsigned long long)n->i);
        break;
    case ZC_CLASS_INT:
        /* The most negative number has no literal. */
        zc_buf_printf(b, "(%s)0x%llxull", zc_gen_compute_type(n->dtype), (unsigned long long)n->i);
        break;
    default:
        zc_buf_puts(b, n->i ? "true" : "false");
    }
}

/* Integers narrower than the compute type stand in their own type after each operation. */
static bool must_wrap(const zc_expr_node *n)
{
    return zc_dtype_is_int(n->dtype) && zc_dtype_bits(n->dtype) < 32;
}

static void put_node(zc_buf *b, const zc_expr *e, int at, place where)
{
    const zc_expr_node *n = &e->nodes[at];
    int x = n->arg[0], y = n->arg[1], z = n->arg[2];
    const char *type = zc_gen_type_name(n->dtype);
    const zc_expr_node *f = one_plus(e, n);
    int gelu = gelu_of(e, n);
    zc_quantised q;
    zc_affine sum;
    if (gelu >= 0) {
        zc_buf_printf(b, "zq_gelu(v%d)", gelu);
    } else if (zc_affine_of(e, at, &sum)) {
        put_sum(b, n->dtype, &sum);
    } else if (zc_quantised_of(e, at, &q)) {
        put_quantised(b, e, at, &q, where);
    } else if (n->op == ZC_EX_MUL && n->dtype == ZC_F32 && has_quantised(e)) {
        zc_buf_printf(b, "zc_product32(v%d, v%d)", x, y);
    } else if (f) {
        zc_buf_printf(b, "zq_one_plus_%s(v%d)", functions[f->op], f->arg[0]);
    } else if (n->op == ZC_EX_INPUT) {
        zc_buf_printf(b, "x%d", n->input);
    } else if (n->op == ZC_EX_CONST) {
        put_constant(b, n);
    } else if (is_rounded_later(e, at, where)) {
        zc_buf_printf(b, "v%d", x);
    } else if (n->op == ZC_EX_CAST) {
        zc_buf_printf(b, "zc_through<%s>(v%d)", type, x);
    } else if (n->op == ZC_EX_SELECT) {
        zc_buf_printf(b, "v%d ? v%d : v%d", x, y, z);
    } else if (n->op == ZC_EX_NOT) {
        zc_buf_printf(b, "!v%d", x);
    } else if (n->op == ZC_EX_ISNAN || n->op == ZC_EX_ISINF) {
        zc_buf_printf(b, "%s(v%d)", n->op == ZC_EX_ISNAN ? "zc_isnan" : "zc_isinf", x);
    } else if (comparisons[n->op]) {
        zc_buf_printf(b, "v%d %s v%d", x, comparisons[n->op], y);
    } else {
        if (must_wrap(n)) zc_buf_printf(b, "zc_through<%s>(", type);
        if (n->op == ZC_EX_SHL || n->op == ZC_EX_SHR)
            zc_buf_printf(b, "zx_%s<%u>", n->op == ZC_EX_SHL ? "shl" : "shr",
                          zc_dtype_bits(n->dtype));
        else
            zc_buf_printf(b, "%s_%s", has_quick[n->op] && is_quick(n) ? "zq" : "zx",
                          functions[n->op]);
        zc_buf_printf(b, "(v%d", x);
        if (y >= 0) zc_buf_printf(b, ", v%d", y);
        zc_buf_puts(b, must_wrap(n) ? "))" : ")");
    }
}

static void put_body(zc_buf *b, const zc_expr *e, const char *type, const char *name,
                     const zc_dtype *in, place where)
{
    zc_buf_printf(b, "ZC_DEV %s %s(", type, name);
    for (int i = 0; i < e->ninputs; i++)
        zc_buf_printf(b, "%s%s x%d", i ? ", " : "", zc_gen_compute_type(in[i]), i);
    zc_buf_puts(b, ")\n{\n");
    for (int i = 0; i < e->count; i++) {
        zc_buf_printf(b, "    const %s v%d = ", zc_gen_compute_type(e->nodes[i].dtype), i);
        put_node(b, e, i, where);
        zc_buf_puts(b, ";\n");
    }
}

/* ---- numbers that a run gives ---- */

/* A fraction that people write, such as 0.5, -3 or 1/6, of which a compiler makes use. */
static bool is_written(double v)
{
    const double n = v * 240;
    return fabs(v) <= 64 && fabs(n - rint(n)) <= 1e-6 * fabs(n);
}

/* Numbers do not decide how the expression is written. */
static bool is_free_of_patterns(const zc_expr *e)
{
    for (int i = 0; i < e->count; i++)
        if (one_plus(e, &e->nodes[i])) return false;
    return !has_quantised(e);
}

void zc_gen_literals(zc_gen *g, zc_expr *e, zc_dtype *types)
{
    if (!is_free_of_patterns(e)) return;
    for (int i = 0; i < e->count && g->nliterals < ZC_LITERALS; i++) {
        zc_expr_node *n = &e->nodes[i];
        if (n->op != ZC_EX_CONST || !is_computed_in_f32(n) || !isfinite(n->f) || is_written(n->f))
            continue;
        g->literals[g->nliterals++] = (float)n->f;
        types[e->ninputs] = n->dtype;
        *n = (zc_expr_node){.op = ZC_EX_INPUT,
                            .dtype = n->dtype,
                            .arg = {-1, -1, -1},
                            .input = (int16_t)e->ninputs++};
    }
}

static zc_status written(zc_gen *g)
{
    return g->spec.failed ? zc_fail_nomem(g->diag, "kernel source", g->spec.len) : ZC_OK;
}

zc_status zc_gen_expr(zc_gen *g, const char *name, const zc_expr *e, const zc_dtype *in,
                      bool at_end)
{
    put_body(&g->spec, e, zc_gen_compute_type(zc_expr_dtype(e, 0)), name, in,
             at_end ? AT_END : BETWEEN);
    zc_buf_printf(&g->spec, "    return v%d;\n}\n", e->result[0]);
    return written(g);
}

/* The Gelu of input 0, an f16 that nobody rounded, as codes whose scale f16 holds well: the scale's
 * reciprocal and the zero point are q's. */
static bool is_gelu_in_codes(const zc_expr *e, zc_quantised *q)
{
    if (e->nresults != 1 || !zc_quantised_of(e, e->result[0], q)) return false;
    const zc_expr_node *n = &e->nodes[q->x];
    if (n->op == ZC_EX_CAST && n->dtype == ZC_F32) n = &e->nodes[n->arg[0]];
    const int x = gelu_of(e, n);
    return x >= 0 && n->dtype == ZC_F16 && e->nodes[x].op == ZC_EX_INPUT &&
           e->nodes[x].input == 0 && q->scale >= 0x1p-10f && q->scale <= 0x1p10f;
}

void zc_gen_pair(zc_gen *g, const char *name, const zc_expr *e)
{
    zc_quantised q;
    if (!is_gelu_in_codes(e, &q)) return;
    zc_buf_printf(&g->spec, "#define Z_%s_PAIR(a, b) zq_gelu_codes<%s>(a, b, 0x%xu, %d)\n", name,
                  zc_gen_type_name(zc_expr_dtype(e, 0)), zc_f32_to_f16(1 / q.scale), q.zero);
}

zc_status zc_gen_results(zc_gen *g, const char *name, const zc_expr *e, const zc_dtype *in)
{
    zc_buf *b = &g->spec;
    char type[64];
    snprintf(type, sizeof type, "struct %s_results", name);
    zc_buf_printf(b, "%s {", type);
    for (int r = 0; r < e->nresults; r++)
        zc_buf_printf(b, " %s y%d;", zc_gen_compute_type(zc_expr_dtype(e, r)), r);
    zc_buf_puts(b, " };\n");
    put_body(b, e, type + strlen("struct "), name, in, STORED);
    zc_buf_puts(b, "    return {");
    for (int r = 0; r < e->nresults; r++) zc_buf_printf(b, "%sv%d", r ? ", " : "", e->result[r]);
    zc_buf_puts(b, "};\n}\n");
    return written(g);
}

zc_status zc_gen_activation(zc_gen *g, const char *name, const char *activation, int nparams,
                            const float *params, zc_dtype dtype)
{
    zc_op op = zc_activation_find(activation);
    const zc_op_info *info = zc_op_get(op);
    const char *text = op == ZC_OP_NONE ? "x" : info->expr;
    zc_expr_const consts[ZC_POINTWISE_CONSTS];
    int n = 0;
    if (op == ZC_OP_Clip) { /* its bounds are inputs elsewhere */
        text = "min(max(x, low), high)";
        consts[n++] =
            (zc_expr_const){"low", nparams > 0 ? (double)params[0] : -(double)INFINITY, false};
        consts[n++] =
            (zc_expr_const){"high", nparams > 1 ? (double)params[1] : (double)INFINITY, false};
    } else if (op != ZC_OP_NONE) {
        void *attrs = zc_arena_alloc(g->arena, 1, info->attrs_size);
        if (!attrs) return zc_fail_nomem(g->diag, "activation", info->attrs_size);
        zc_activation_attrs(op, params, nparams, attrs);
        n = zc_pointwise_consts(info, attrs, consts, n);
    }
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "activation", sizeof *e);
    ZC_TRY(zc_expr_parse(text, &dtype, 1, consts, n, e, g->step->name, g->diag));
    if (zc_dtype_is_float(zc_expr_dtype(e, 0)) != zc_dtype_is_float(dtype))
        return zc_gen_decline(g, "activation of another element type");
    return zc_gen_expr(g, name, e, &dtype, false);
}
