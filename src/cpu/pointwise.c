/* The reference kernel of every pointwise operation: one element at a time, floats in double with
 * libm. */
#include "cpu/pointwise.h"

#include <math.h>
#include <string.h>

#include "op/activation.h"

typedef union scalar {
    double f;
    int64_t i;
} scalar;

/* ---- the expression ---- */

zc_status zc_pointwise_parse(const zc_kctx *k, zc_expr *out)
{
    zc_dtype in[ZC_EXPR_MAX_INPUTS];
    for (int i = 0; i < k->nin && i < ZC_EXPR_MAX_INPUTS; i++) in[i] = k->in[i].dtype;
    return zc_pointwise_expr(k->info, k->attrs, k->nin, in, out, k->subject, k->diag);
}

/* ---- integers ---- */

/* As the value stands in an element of that type. */
static int64_t wrap(zc_dtype dtype, int64_t v)
{
    unsigned bits = zc_dtype_bits(dtype);
    if (dtype == ZC_BOOL) return v != 0;
    if (bits >= 64) return v;
    uint64_t u = (uint64_t)v << (64 - bits);
    return zc_dtype_class(dtype) == ZC_CLASS_UINT ? (int64_t)(u >> (64 - bits))
                                                  : (int64_t)u >> (64 - bits);
}

static uint64_t int_power(uint64_t base, int64_t exponent)
{
    uint64_t r = 1;
    if (exponent < 0)
        return base == 1                                 ? 1
               : base == UINT64_MAX && exponent % 2 == 0 ? 1
               : base == UINT64_MAX                      ? base
                                                         : 0;
    for (; exponent; exponent >>= 1, base *= base)
        if (exponent & 1) r *= base;
    return r;
}

static int64_t divide_signed(int64_t a, int64_t b)
{
    if (b == 0) return 0;
    return b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b;
}

static int64_t remainder_signed(int64_t a, int64_t b, bool sign_of_divisor)
{
    if (b == 0 || b == -1) return 0;
    int64_t r = a % b;
    return sign_of_divisor && r && (r < 0) != (b < 0) ? r + b : r;
}

/* Shifts by the type's width or more give 0. */
static uint64_t shift(uint64_t v, int64_t by, bool left, unsigned bits)
{
    if (by < 0 || by >= (int64_t)bits) return 0;
    return left ? v << by : v >> by;
}

static int64_t int_op(zc_expr_op op, zc_dtype dtype, int64_t a, int64_t b)
{
    bool is_unsigned = zc_dtype_class(dtype) == ZC_CLASS_UINT;
    uint64_t ua = (uint64_t)a, ub = (uint64_t)b;
    unsigned bits = zc_dtype_bits(dtype);
    switch (op) {
    case ZC_EX_NEG:
        return (int64_t)(0 - ua);
    case ZC_EX_BITNOT:
        return (int64_t)~ua;
    case ZC_EX_ABS:
        return is_unsigned || a >= 0 ? a : (int64_t)(0 - ua);
    case ZC_EX_SIGN:
        return is_unsigned ? a != 0 : (a > 0) - (a < 0);
    case ZC_EX_ADD:
        return (int64_t)(ua + ub);
    case ZC_EX_SUB:
        return (int64_t)(ua - ub);
    case ZC_EX_MUL:
        return (int64_t)(ua * ub);
    case ZC_EX_DIV:
        return is_unsigned ? (ub ? (int64_t)(ua / ub) : 0) : divide_signed(a, b);
    case ZC_EX_MOD:
        return is_unsigned ? (ub ? (int64_t)(ua % ub) : 0) : remainder_signed(a, b, true);
    case ZC_EX_FMOD:
        return is_unsigned ? (ub ? (int64_t)(ua % ub) : 0) : remainder_signed(a, b, false);
    case ZC_EX_MAX:
        return is_unsigned ? (ua > ub ? a : b) : (a > b ? a : b);
    case ZC_EX_MIN:
        return is_unsigned ? (ua < ub ? a : b) : (a < b ? a : b);
    case ZC_EX_BITAND:
        return a & b;
    case ZC_EX_BITOR:
        return a | b;
    case ZC_EX_BITXOR:
        return a ^ b;
    case ZC_EX_SHL:
        return (int64_t)shift(ua, b, true, bits);
    case ZC_EX_SHR:
        return (int64_t)shift((uint64_t)wrap(dtype, a), b, false, bits);
    default:
        return 0;
    }
}

static bool int_compare(zc_expr_op op, bool is_unsigned, int64_t a, int64_t b)
{
    bool less = is_unsigned ? (uint64_t)a < (uint64_t)b : a < b;
    switch (op) {
    case ZC_EX_EQ:
        return a == b;
    case ZC_EX_NE:
        return a != b;
    case ZC_EX_LT:
        return less;
    case ZC_EX_LE:
        return less || a == b;
    case ZC_EX_GT:
        return !less && a != b;
    default:
        return !less;
    }
}

/* ---- floats ---- */

static bool float_compare(zc_expr_op op, double a, double b)
{
    switch (op) {
    case ZC_EX_EQ:
        return a == b;
    case ZC_EX_NE:
        return a != b;
    case ZC_EX_LT:
        return a < b;
    case ZC_EX_LE:
        return a <= b;
    case ZC_EX_GT:
        return a > b;
    default:
        return a >= b;
    }
}

/* ---- one element ---- */

/* A value of one type as another: through the storage of the type, which rounds and saturates. */
static scalar convert(zc_dtype from, zc_dtype to, scalar v)
{
    union {
        double f;
        int64_t i;
    } slot = {.i = 0};
    bool from_float = zc_dtype_is_float(from), to_float = zc_dtype_is_float(to);
    if (from_float)
        zc_store_f64(to, &slot, 0, v.f);
    else if (from == ZC_U64 && to_float)
        zc_store_f64(to, &slot, 0, (double)(uint64_t)v.i);
    else
        zc_store_i64(to, &slot, 0, v.i);
    return to_float ? (scalar){.f = zc_load_f64(to, &slot, 0)}
                    : (scalar){.i = zc_load_i64(to, &slot, 0)};
}

static scalar power(const zc_expr *e, const zc_expr_node *n, scalar a, scalar b)
{
    zc_dtype da = e->nodes[n->arg[0]].dtype, db = e->nodes[n->arg[1]].dtype;
    bool fa = zc_dtype_is_float(da), fb = zc_dtype_is_float(db);
    if (!fa && !fb) return (scalar){.i = wrap(da, (int64_t)int_power((uint64_t)a.i, b.i))};
    double r = pow(fa ? a.f : (double)a.i, fb ? b.f : (double)b.i);
    return fa ? (scalar){.f = r} : convert(ZC_F64, da, (scalar){.f = r});
}

static scalar eval_node(const zc_expr *e, const zc_expr_node *n, const scalar *v)
{
    zc_dtype operand = n->arg[0] >= 0 ? e->nodes[n->arg[0]].dtype : n->dtype;
    scalar a = n->arg[0] >= 0 ? v[n->arg[0]] : (scalar){.i = 0};
    scalar b = n->arg[1] >= 0 ? v[n->arg[1]] : (scalar){.i = 0};
    bool is_float = zc_dtype_is_float(operand);
    switch (n->op) {
    case ZC_EX_CONST:
        return is_float ? (scalar){.f = n->f} : (scalar){.i = n->i};
    case ZC_EX_CAST:
        return convert(operand, n->dtype, a);
    case ZC_EX_POW:
        return power(e, n, a, b);
    case ZC_EX_SELECT:
        return a.i ? b : v[n->arg[2]];
    case ZC_EX_NOT:
        return (scalar){.i = !a.i};
    case ZC_EX_AND:
        return (scalar){.i = a.i && b.i};
    case ZC_EX_OR:
        return (scalar){.i = a.i || b.i};
    case ZC_EX_ISNAN:
        return (scalar){.i = isnan(a.f) != 0};
    case ZC_EX_ISINF:
        return (scalar){.i = isinf(a.f) != 0};
    default:
        break;
    }
    if (n->op >= ZC_EX_EQ && n->op <= ZC_EX_GE) {
        bool is_unsigned = zc_dtype_class(operand) == ZC_CLASS_UINT;
        return (scalar){.i = is_float ? float_compare(n->op, a.f, b.f)
                                      : int_compare(n->op, is_unsigned, a.i, b.i)};
    }
    if (!is_float) return (scalar){.i = wrap(n->dtype, int_op(n->op, n->dtype, a.i, b.i))};
    return (scalar){.f = n->arg[1] >= 0 ? zc_expr_float_binary(n->op, a.f, b.f)
                                        : zc_expr_float_unary(n->op, a.f)};
}

static scalar load(const zc_tensor *t, int64_t i)
{
    return zc_dtype_is_float(t->dtype) ? (scalar){.f = zc_get(t, i)} : (scalar){.i = zc_geti(t, i)};
}

static void store(zc_tensor *t, int64_t i, scalar v)
{
    if (zc_dtype_is_float(t->dtype))
        zc_put(t, i, v.f);
    else
        zc_puti(t, i, v.i);
}

zc_status zc_k_pointwise(zc_kctx *k)
{
    const zc_tensor *out = &k->out[0];
    int64_t n = zc_tensor_numel(out);
    zc_expr *e = zc_scratch_get(k->scratch, sizeof *e);
    scalar *v = zc_scratch_get(k->scratch, ZC_EXPR_MAX_NODES * sizeof *v);
    if (!e || !v) return zc_fail_nomem(k->diag, "expression", sizeof *e);
    ZC_TRY(zc_pointwise_parse(k, e));
    int64_t strides[ZC_EXPR_MAX_INPUTS][ZC_MAX_RANK], off[ZC_EXPR_MAX_INPUTS] = {0},
                                                      idx[ZC_MAX_RANK] = {0};
    for (int j = 0; j < k->nin; j++) zc_broadcast_strides(&k->in[j], out, strides[j]);
    for (int64_t i = 0; i < n; i++) {
        for (int j = 0; j < e->count; j++) {
            const zc_expr_node *node = &e->nodes[j];
            v[j] = node->op == ZC_EX_INPUT ? load(&k->in[node->input], off[node->input])
                                           : eval_node(e, node, v);
        }
        for (int r = 0; r < e->nresults && r < k->nout; r++)
            if (zc_output(k, r)) store(&k->out[r], i, v[e->result[r]]);
        zc_index_next(out->rank, out->dims, idx, k->nin, (const int64_t(*)[ZC_MAX_RANK])strides,
                      off);
    }
    return ZC_OK;
}

zc_status zc_k_Pointwise(zc_kctx *k)
{
    return zc_k_pointwise(k);
}

/* ---- activations ---- */

zc_status zc_activate(zc_kctx *k, const char *name, const float *params, int n, zc_tensor *t)
{
    zc_op op = zc_activation_find(name);
    if (op == ZC_OP_NONE) return ZC_OK;
    const zc_op_info *info = zc_op_get(op);
    void *attrs = zc_scratch_get(k->scratch, info->attrs_size + 2 * sizeof(double));
    if (!attrs) return zc_fail_nomem(k->diag, "activation", info->attrs_size);
    zc_activation_attrs(op, params, n, attrs);
    zc_tensor in[3] = {*t, {.dtype = t->dtype}, {.dtype = t->dtype}};
    for (int i = 1; i < 3; i++) { /* the bounds of Clip */
        in[i].data = (char *)attrs + info->attrs_size + (size_t)(i - 1) * sizeof(double);
        zc_put(&in[i], 0, n >= i ? params[i - 1] : i == 1 ? -(double)INFINITY : (double)INFINITY);
    }
    zc_kctx inner = zc_inner(k, op, attrs, info->max_in, in, t);
    return zc_kernel_run(&inner, false);
}
