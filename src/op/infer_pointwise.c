#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "op/infer_common.h"
#include "op/pointwise.h"

zc_status zc_dt_cast(zc_infer *f);
zc_status zc_dt_cast_bits(zc_infer *f);
zc_status zc_infer_cast(zc_infer *f);
zc_status zc_infer_bitcast(zc_infer *f);

/* ---- element types ---- */

/* Types the expression's results with the inputs' types, which also checks it. */
static zc_status type_expression(zc_infer *f, zc_dtype out[ZC_EXPR_MAX_RESULTS])
{
    zc_dtype in[ZC_EXPR_MAX_INPUTS];
    for (int i = 0; i < f->nin && i < ZC_EXPR_MAX_INPUTS; i++) {
        if (!zc_in_present(f, i)) return zc_infer_fail(f, "input %d is left out", i);
        in[i] = zc_in(f, i)->dtype;
    }
    zc_expr *e = f->temp ? zc_arena_alloc(f->temp, 1, sizeof *e) : zc_calloc(1, sizeof *e);
    if (!e) return zc_fail_nomem(f->diag, "expression", sizeof *e);
    zc_status status = zc_pointwise_expr(f->info, f->attrs, f->nin, in, e, f->subject, f->diag);
    if (status == ZC_OK && e->nresults != f->nout)
        status = zc_infer_fail(f, "the expression has a wrong number of results (got %d, need %d)",
                               e->nresults, f->nout);
    for (int i = 0; status == ZC_OK && i < e->nresults; i++) out[i] = zc_expr_dtype(e, i);
    if (!f->temp) free(e);
    return status;
}

zc_status zc_dt_pointwise(zc_infer *f)
{
    zc_dtype out[ZC_EXPR_MAX_RESULTS];
    ZC_TRY(type_expression(f, out));
    for (int i = 0; i < f->nout; i++) f->out[i].type.dtype = out[i];
    return ZC_OK;
}

static zc_status given_dtype(zc_infer *f, zc_dtype to)
{
    if (to == ZC_NONE) return zc_infer_fail(f, "attribute 'to' is missing");
    f->out[0].type.dtype = to;
    return ZC_OK;
}

zc_status zc_dt_cast(zc_infer *f)
{
    return given_dtype(f, ZC_ATTRS(f, Cast)->to);
}
zc_status zc_dt_cast_bits(zc_infer *f)
{
    return given_dtype(f, ZC_ATTRS(f, BitCast)->to);
}

/* ---- symbolic elements ---- */

/* Integers and bools as they stand in a tensor of that type. */
static int64_t wrapped(zc_dtype dtype, int64_t v)
{
    int64_t slot = 0;
    zc_store_i64(dtype, &slot, 0, v);
    return zc_load_i64(dtype, &slot, 0);
}

static bool is_integral(zc_dtype d)
{
    return zc_dtype_is_int(d) || d == ZC_BOOL;
}

static zc_dim divided(zc_infer *f, zc_dim a, zc_dim b)
{
    /* ONNX truncates, dimensions floor: the same where neither is negative. */
    bool same = zc_dim_known_ge(f->dims, a, 0) && zc_dim_known_ge(f->dims, b, 1);
    if (zc_dim_is_const(a) && zc_dim_is_const(b) && b.k > 0) return zc_dim_const(a.k / b.k);
    return same ? zc_dim_div(f->dims, a, b) : zc_dim_fresh(f->dims);
}

/* Order of a and b: -1, 0, 1, or 2 when it is not certain. */
static int compare(zc_infer *f, zc_dim a, zc_dim b)
{
    if (zc_dim_eq(a, b)) return 0;
    zc_dim d = zc_dim_sub(f->dims, a, b);
    if (zc_dim_is_const(d)) return d.k < 0 ? -1 : d.k > 0;
    if (zc_dim_dynamic(f->dims, d)) return 2;
    if (zc_dim_known_ge(f->dims, d, 1)) return 1;
    return zc_dim_known_ge(f->dims, zc_dim_sub(f->dims, b, a), 1) ? -1 : 2;
}

static zc_dim truth(zc_infer *f, int order, bool less, bool equal, bool greater)
{
    if (order == 2) return zc_dim_fresh(f->dims);
    return zc_dim_const(order < 0 ? less : order > 0 ? greater : equal);
}

static zc_dim choice(zc_infer *f, zc_dim c, zc_dim a, zc_dim b)
{
    if (zc_dim_is_const(c)) return c.k ? a : b;
    return zc_dim_eq(a, b) ? a : zc_dim_fresh(f->dims);
}

static bool both_const(zc_dim a, zc_dim b)
{
    return zc_dim_is_const(a) && zc_dim_is_const(b);
}

/* One element of the result; false: this operation has no symbolic form. */
static bool element(zc_infer *f, const zc_dim v[3], zc_dim *out)
{
    switch (f->op) {
    case ZC_OP_Add:
        *out = zc_dim_add(f->dims, v[0], v[1]);
        return true;
    case ZC_OP_Sub:
        *out = zc_dim_sub(f->dims, v[0], v[1]);
        return true;
    case ZC_OP_Mul:
        *out = zc_dim_mul(f->dims, v[0], v[1]);
        return true;
    case ZC_OP_Div:
        *out = divided(f, v[0], v[1]);
        return true;
    case ZC_OP_Max:
        *out = zc_dim_max(f->dims, v[0], v[1]);
        return true;
    case ZC_OP_Min:
        *out = zc_dim_min(f->dims, v[0], v[1]);
        return true;
    case ZC_OP_Neg:
        *out = zc_dim_sub(f->dims, zc_dim_const(0), v[0]);
        return true;
    case ZC_OP_Equal:
        *out = truth(f, compare(f, v[0], v[1]), false, true, false);
        return true;
    case ZC_OP_Less:
        *out = truth(f, compare(f, v[0], v[1]), true, false, false);
        return true;
    case ZC_OP_LessOrEqual:
        *out = truth(f, compare(f, v[0], v[1]), true, true, false);
        return true;
    case ZC_OP_Greater:
        *out = truth(f, compare(f, v[0], v[1]), false, false, true);
        return true;
    case ZC_OP_GreaterOrEqual:
        *out = truth(f, compare(f, v[0], v[1]), false, true, true);
        return true;
    case ZC_OP_Where:
        *out = choice(f, v[0], v[1], v[2]);
        return true;
    case ZC_OP_Not:
        *out = zc_dim_is_const(v[0]) ? zc_dim_const(!v[0].k) : zc_dim_fresh(f->dims);
        return true;
    case ZC_OP_And:
        *out = both_const(v[0], v[1]) ? zc_dim_const(v[0].k && v[1].k) : zc_dim_fresh(f->dims);
        return true;
    case ZC_OP_Or:
        *out = both_const(v[0], v[1]) ? zc_dim_const(v[0].k || v[1].k) : zc_dim_fresh(f->dims);
        return true;
    case ZC_OP_Mod:
        if (!both_const(v[0], v[1]) || v[0].k < 0 || v[1].k < 1) return false;
        *out = zc_dim_const(v[0].k % v[1].k);
        return true;
    default:
        return false;
    }
}

static zc_status propagate(zc_infer *f)
{
    int n = 1;
    bool vector = false;
    for (int i = 0; i < f->nin; i++) {
        const zc_operand *in = &f->in[i];
        if (in->vals.n < 0 || !is_integral(in->type.dtype)) return ZC_OK;
        if (in->type.rank == 1) vector = true;
        if (in->vals.n != 1) n = in->vals.n;
    }
    if (!is_integral(f->out[0].type.dtype) || f->nin > 3) return ZC_OK;
    zc_dim *out = zc_infer_vals(f, 0, vector ? n : 1);
    for (int e = 0; out && e < f->out[0].vals.n; e++) {
        zc_dim v[3] = {{0}};
        for (int i = 0; i < f->nin; i++) v[i] = f->in[i].vals.v[f->in[i].vals.n == 1 ? 0 : e];
        if (!element(f, v, &out[e])) {
            f->out[0].vals = (zc_vals){.n = -1};
            return ZC_OK;
        }
        if (zc_dim_is_const(out[e])) out[e].k = wrapped(f->out[0].type.dtype, out[e].k);
    }
    return ZC_OK;
}

/* ---- shapes ---- */

zc_status zc_infer_pointwise(zc_infer *f)
{
    zc_dtype computed[ZC_EXPR_MAX_RESULTS];
    zc_type t = {.rank = 0};
    ZC_TRY(type_expression(f, computed));
    for (int i = 0; i < f->nout; i++)
        if (computed[i] != f->out[i].type.dtype)
            return zc_infer_fail(f, "%s on these element types gives %s, not %s", f->info->name,
                                 zc_dtype_name(computed[i]), zc_dtype_name(f->out[i].type.dtype));
    for (int i = 0; i < f->nin; i++) ZC_TRY(zc_infer_broadcast(f, &t, zc_in(f, i), &t));
    for (int i = 0; i < f->nout; i++) ZC_TRY(zc_infer_set(f, i, t.rank, t.dims));
    return propagate(f);
}

zc_status zc_infer_cast(zc_infer *f)
{
    zc_infer_copy(f, 0, 0);
    const zc_vals *from = &f->in[0].vals;
    zc_dtype to = f->out[0].type.dtype;
    if (from->n < 0 || !is_integral(to)) return ZC_OK;
    zc_dim *v = zc_infer_vals(f, 0, from->n);
    for (int i = 0; v && i < from->n; i++) {
        v[i] = from->v[i];
        if (zc_dim_is_const(v[i])) v[i].k = wrapped(to, v[i].k);
        /* A dimension survives in any type that holds dimensions; a truth value of it is unknown.
         */
        else if (zc_dtype_bits(to) < 32)
            v[i] = zc_dim_fresh(f->dims);
    }
    return ZC_OK;
}

/* The last dimension shrinks or grows with the element size. */
zc_status zc_infer_bitcast(zc_infer *f)
{
    unsigned from = zc_dtype_bits(zc_in(f, 0)->dtype), to = zc_dtype_bits(f->out[0].type.dtype);
    if (from != to) return zc_infer_fail(f, "element sizes differ (got %u and %u bits)", from, to);
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}
