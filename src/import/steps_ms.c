/* Operators of com.microsoft that are a few pointwise operations. */
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
