/* Old forms of pointwise operators and reductions, and operators that are several operations. */
#include <math.h>

#include "import/steps.h"
#include "op/expr.h"

/* ---- broadcasting before opset 7 ---- */

/* Appends axes of length 1 to v, so that its axis 0 stands at `axis` of a tensor of that rank. */
static zc_vid place_at(zc_imp *im, zc_inode *n, zc_vid v, int64_t axis, int rank)
{
    int own = zc_imp_need_rank(im, n, v, "its second input");
    if (im->status != ZC_OK) return 0;
    if (axis < 0) axis += rank;
    if (axis < 0 || axis > rank - own) {
        zc_imp_fail(im, n, ZC_ERR_MODEL, "axis out of range (got %lld, need [0, %d])",
                    (long long)axis, rank - own);
        return 0;
    }
    int64_t axes[ZC_MAX_RANK];
    int count = rank - own - (int)axis;
    for (int i = 0; i < count; i++) axes[i] = own + i;
    return count ? zc_imp_op2(im, n, ZC_OP_Unsqueeze, v, zc_imp_ints(im, axes, count, 1)) : v;
}

/* With broadcast=1, the second input's axes stood at `axis` of the first, by default at its end;
 * without, the shapes were equal. */
zc_status zc_step_axis_broadcast(zc_imp *im, zc_inode *n)
{
    int64_t broadcast = zc_imp_take_int(im, n, "broadcast", 0);
    bool placed = zc_imp_has_attr(n, "axis") && broadcast;
    int64_t axis = zc_imp_take_int(im, n, "axis", 0);
    if (!placed) return im->status;
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    int rank = zc_imp_need_rank(im, n, n->in[0], "its first input");
    n->in[1] = place_at(im, n, n->in[1], axis, rank);
    return im->status;
}

/* A slope of one number a channel. */
zc_status zc_step_prelu_per_channel(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    int rank = zc_imp_need_rank(im, n, n->in[0], "its first input");
    if (zc_imp_rank(im, n->in[1]) != 1 || rank < 3) return im->status;
    n->in[1] = place_at(im, n, n->in[1], 1, rank);
    return im->status;
}

/* ---- renamed and split by attribute ---- */

static zc_status bad_choice(zc_imp *im, const zc_inode *n, const char *attr, const char *got,
                            const char *need)
{
    if (im->status != ZC_OK) return im->status;
    return zc_imp_fail(im, n, ZC_ERR_MODEL,
                       "attribute '%s' is unknown (got '" ZC_NAME "', need %s)", attr, got, need);
}

zc_status zc_step_bit_shift(zc_imp *im, zc_inode *n)
{
    const char *direction = zc_imp_take_str(im, n, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        return bad_choice(im, n, "direction", direction, "LEFT or RIGHT");
    return zc_imp_finish_op(im, n, left ? ZC_OP_ShiftLeft : ZC_OP_ShiftRight, n->nin, n->in);
}

zc_status zc_step_gelu(zc_imp *im, zc_inode *n)
{
    const char *form = zc_imp_take_str(im, n, "approximate", "none");
    if (strcmp(form, "tanh") == 0)
        n->op = ZC_OP_GeluTanh;
    else if (strcmp(form, "none") != 0)
        return bad_choice(im, n, "approximate", form, "none or tanh");
    return im->status;
}

zc_status zc_step_mod(zc_imp *im, zc_inode *n)
{
    int64_t fmod = zc_imp_take_int(im, n, "fmod", 0);
    if (fmod != 0 && fmod != 1 && im->status == ZC_OK)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "attribute 'fmod' (got %lld, need 0 or 1)",
                           (long long)fmod);
    if (fmod) n->op = ZC_OP_FMod;
    return im->status;
}

zc_status zc_step_selu_defaults(zc_imp *im, zc_inode *n)
{
    if (!zc_imp_has_attr(n, "alpha")) zc_imp_set_float(im, n, "alpha", 1.6732f);
    if (!zc_imp_has_attr(n, "gamma")) zc_imp_set_float(im, n, "gamma", 1.0507f);
    return im->status;
}

zc_status zc_step_cast_by_name(zc_imp *im, zc_inode *n)
{
    const char *name = zc_imp_take_str(im, n, "to", "");
    ZC_TRY(im->status);
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value_by_name(
        &onnx__tensor_proto__data_type__descriptor, name);
    if (!v) return bad_choice(im, n, "to", name, "the name of a data type, such as FLOAT");
    zc_imp_set_int(im, n, "to", v->value);
    return im->status;
}

/* ---- Clip ---- */

zc_status zc_step_clip_attributes(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    zc_dtype dtype = zc_imp_dtype(im, n->in[0]);
    bool has_min = zc_imp_has_attr(n, "min"), has_max = zc_imp_has_attr(n, "max");
    double min = zc_imp_take_float(im, n, "min", 0), max = zc_imp_take_float(im, n, "max", 0);
    if (has_min) zc_imp_set_in(im, n, 1, zc_imp_scalar(im, dtype, min));
    if (has_max) zc_imp_set_in(im, n, 2, zc_imp_scalar(im, dtype, max));
    return im->status;
}

/* A bound as a tensor of rank 0: some writers give one of shape [1]. */
static zc_vid bound(zc_imp *im, zc_inode *n, zc_vid v)
{
    if (!v || zc_imp_rank(im, v) <= 0) return v;
    return zc_imp_reshape(im, n, v, NULL, 0);
}

zc_status zc_step_clip(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 3));
    zc_vid x = n->in[0], lo = bound(im, n, zc_imp_in(n, 1)), hi = bound(im, n, zc_imp_in(n, 2));
    ZC_TRY(im->status);
    if (lo && hi) return zc_imp_finish_op(im, n, ZC_OP_Clip, 3, (zc_vid[]){x, lo, hi});
    if (lo) return zc_imp_finish_op(im, n, ZC_OP_Max, 2, (zc_vid[]){x, lo});
    if (hi) return zc_imp_finish_op(im, n, ZC_OP_Min, 2, (zc_vid[]){x, hi});
    return zc_imp_finish_value(im, n, x);
}

/* ---- operators of any number of inputs ---- */

/* "x0 + x1 + x2", or "max(max(x0, x1), x2)" with a function's name. */
static void write_chain(zc_buf *out, const char *function, int n)
{
    for (int i = 1; function && i < n; i++) zc_buf_printf(out, "%s(", function);
    for (int i = 0; i < n; i++) {
        if (i) zc_buf_puts(out, function ? ", " : " + ");
        zc_buf_printf(out, "x%d", i);
        if (function && i) zc_buf_puts(out, ")");
    }
}

static zc_nid chain(zc_imp *im, zc_inode *n, const char *function, int nin, const zc_vid *in,
                    int divisor)
{
    zc_buf text = {0};
    if (divisor > 1) zc_buf_puts(&text, "(");
    write_chain(&text, function, nin);
    if (divisor > 1) zc_buf_printf(&text, ") / %d", divisor);
    if (text.failed) zc_imp_nomem(im, "an expression");
    zc_nid id = im->status == ZC_OK ? zc_imp_expr(im, n, nin, in, text.data) : 0;
    zc_buf_fini(&text);
    return id;
}

/* Combines inputs in groups until one expression can take them all. */
static zc_status variadic(zc_imp *im, zc_inode *n, zc_op binary, const char *function, bool mean)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, ZC_VARIADIC));
    ZC_TRY(zc_imp_need_all(im, n, 0));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (n->nin == 1) return zc_imp_finish_value(im, n, n->in[0]);
    if (n->nin == 2 && !mean) return zc_imp_finish_op(im, n, binary, 2, n->in);
    int count = n->nin;
    while (count > ZC_EXPR_MAX_INPUTS) {
        int groups = 0;
        for (int i = 0; i < count && im->status == ZC_OK; i += ZC_EXPR_MAX_INPUTS) {
            int len = count - i < ZC_EXPR_MAX_INPUTS ? count - i : ZC_EXPR_MAX_INPUTS;
            zc_vid v =
                len == 1 ? n->in[i] : zc_imp_done(im, n, chain(im, n, function, len, n->in + i, 1));
            n->in[groups++] = v;
        }
        ZC_TRY(im->status);
        count = groups;
    }
    return zc_imp_finish(im, n, chain(im, n, function, count, n->in, mean ? n->nin : 1));
}

zc_status zc_step_max(zc_imp *im, zc_inode *n)
{
    return variadic(im, n, ZC_OP_Max, "max", false);
}

zc_status zc_step_min(zc_imp *im, zc_inode *n)
{
    return variadic(im, n, ZC_OP_Min, "min", false);
}

zc_status zc_step_sum(zc_imp *im, zc_inode *n)
{
    return variadic(im, n, ZC_OP_Add, NULL, false);
}

zc_status zc_step_mean(zc_imp *im, zc_inode *n)
{
    return variadic(im, n, ZC_OP_NONE, NULL, true);
}

/* ---- pooling by a p that was a float ---- */

zc_status zc_step_float_p(zc_imp *im, zc_inode *n)
{
    double p = zc_imp_take_float(im, n, "p", 2);
    ZC_TRY(im->status);
    if (!(p >= 1 && p <= 1e6) || p != floor(p))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "attribute 'p' is not supported (got %g, need a whole number from 1)",
                           p);
    zc_imp_set_int(im, n, "p", (int64_t)p);
    return im->status;
}
