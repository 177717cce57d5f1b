/* Operators of com.microsoft that are a few pointwise operations, of which some are behind a norm.
 */
#include "import/steps.h"

zc_status zc_step_ms_bias_add(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 3));
    zc_vid in[] = {zc_imp_op2(im, n, ZC_OP_Add, n->in[0], n->in[1]), n->in[2]};
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Add, 2, in);
}

zc_status zc_step_ms_bias_gelu(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    zc_vid x = zc_imp_op2(im, n, ZC_OP_Add, n->in[0], n->in[1]);
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Gelu, 1, &x);
}

/* The bias may be left out. */
zc_status zc_step_ms_fast_gelu(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 2));
    zc_vid x = n->nin == 2 ? zc_imp_op2(im, n, ZC_OP_Add, n->in[0], n->in[1]) : n->in[0];
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_GeluTanh, 1, &x);
}

/* x * sigmoid(alpha * x) */
zc_status zc_step_ms_quick_gelu(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    double alpha = zc_imp_take_float(im, n, "alpha", 1.702f);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    zc_nid id = zc_imp_node(im, n, ZC_OP_Swish, 1, n->in, 1);
    ZC_IMP_SET(im, Swish, id, alpha, (float)alpha);
    return zc_imp_finish(im, n, id);
}

/* The halves a, b of x + bias along the last axis: a * gelu(b). */
zc_status zc_step_ms_bias_split_gelu(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    zc_vid x = zc_imp_op2(im, n, ZC_OP_Add, n->in[0], n->in[1]);
    zc_nid split = zc_imp_node(im, n, ZC_OP_Split, 1, &x, 2);
    ZC_IMP_SET(im, Split, split, axis, -1);
    ZC_IMP_SET(im, Split, split, num_outputs, 2);
    zc_vid a = zc_imp_done(im, n, split);
    zc_vid b = a ? zc_imp_op1(im, n, ZC_OP_Gelu, zc_node_at(im->g, split)->out[1]) : 0;
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Mul, 2, (zc_vid[]){a, b});
}

/* x + y * gate, where each row has one gate. */
zc_status zc_step_ms_gated_add(zc_imp *im, zc_inode *n)
{
    if (zc_imp_in(n, 3))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "GatedAdd with gate_weight is not supported: no CPU has it");
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 3));
    const zc_vid in[] = {n->in[0], zc_imp_op2(im, n, ZC_OP_Mul, n->in[1], n->in[2])};
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Add, 2, in);
}

/* Swish of x times a number, which is an operand or an attribute. */
zc_status zc_step_ms_scaled_silu(zc_imp *im, zc_inode *n)
{
    const double alpha = zc_imp_take_float(im, n, "alpha", 1);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 2));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    const zc_dtype dtype = zc_imp_dtype(im, n->in[0]);
    const zc_vid scale =
        n->nin == 2 ? zc_imp_cast(im, n, n->in[1], dtype) : zc_imp_scalar(im, dtype, alpha);
    const zc_vid z = zc_imp_op2(im, n, ZC_OP_Mul, n->in[0], scale);
    return zc_imp_finish(im, n, zc_imp_node(im, n, ZC_OP_Swish, 1, &z, 1));
}

/* x[..., groups * size], normalised by groups of the weight's size. */
static zc_vid norm_of_groups(zc_imp *im, zc_inode *n, zc_vid x, zc_vid weight, double epsilon)
{
    const int rank = zc_imp_rank(im, x);
    const zc_dim size = zc_val(im->g, weight)->type.dims[0];
    int64_t shape[ZC_MAX_RANK + 1] = {0}; /* 0: as it is */
    if (rank == ZC_MAX_RANK || !zc_dim_is_const(size)) {
        zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                    "GatedRMSNorm needs a scale of known size, and at "
                    "most %d axes",
                    ZC_MAX_RANK - 1);
        return 0;
    }
    shape[rank - 1] = -1;
    shape[rank] = size.k;
    const zc_vid in[] = {zc_imp_reshape(im, n, x, shape, rank + 1), weight};
    zc_nid id = zc_imp_node(im, n, ZC_OP_RMSNormalization, 2, in, 1);
    ZC_IMP_SET(im, RMSNormalization, id, epsilon, (float)epsilon);
    return zc_imp_reshape(im, n, zc_imp_done(im, n, id), shape, rank);
}

zc_status zc_step_ms_gated_rms_norm(zc_imp *im, zc_inode *n)
{
    const double epsilon = zc_imp_take_float(im, n, "epsilon", 1e-5f);
    const char *name = zc_imp_take_str(im, n, "activation", "silu");
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 3));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    const bool sigmoid = strcmp(name, "sigmoid") == 0;
    if (!sigmoid && strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "activation is unknown (got '" ZC_NAME "', need silu, swish or sigmoid)",
                           name);
    if (zc_imp_rank(im, n->in[0]) < 1 || zc_imp_rank(im, n->in[1]) != 1)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "an input has a wrong rank (got %d and %d, need at least 1, and 1)",
                           zc_imp_rank(im, n->in[0]), zc_imp_rank(im, n->in[1]));
    const zc_vid in[] = {norm_of_groups(im, n, n->in[0], n->in[1], epsilon),
                         zc_imp_op1(im, n, sigmoid ? ZC_OP_Sigmoid : ZC_OP_Swish, n->in[2])};
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_Mul, 2, in);
}

/* scale * softplus(a + bias) as f32, and the sigmoid of b. */
zc_status zc_step_ms_linear_attention_gate(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 4));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    const bool beta = n->nout > 1 && *n->out[1];
    if (beta && !zc_imp_in(n, 3))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "beta needs input 3, which is left out");
    zc_vid sum = zc_imp_op2(im, n, ZC_OP_Add, zc_imp_cast(im, n, n->in[0], ZC_F32), n->in[1]);
    const zc_vid in[] = {n->in[2], zc_imp_op1(im, n, ZC_OP_Softplus, sum)};
    zc_vid decay = zc_imp_op2(im, n, ZC_OP_Mul, in[0], in[1]);
    zc_nid cast = zc_imp_node(im, n, ZC_OP_Cast, 1, &decay, 1);
    ZC_IMP_SET(im, Cast, cast, to, zc_imp_dtype(im, n->in[0]));
    ZC_TRY(zc_imp_finish_first(im, n, cast, 2));
    if (!beta) return ZC_OK;
    zc_vid b = zc_imp_op1(im, n, ZC_OP_Sigmoid, n->in[3]);
    return im->status == ZC_OK ? zc_imp_bind(im, n, 1, b) : im->status;
}
