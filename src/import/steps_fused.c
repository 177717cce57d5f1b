/* Operators of com.microsoft that are a convolution or a product with what follows it, as ONNX
 * Runtime's optimisations leave them: each is its operations, which zc's own passes join. */
#include "import/steps.h"

#include "op/activation.h"

typedef struct activation {
    zc_op op; /* ZC_OP_NONE: nothing follows */
    float params[ZC_ACTIVATION_PARAMS];
    int count;
} activation;

/* Takes the activation's name away from the node. */
static zc_status take_name(zc_imp *im, zc_inode *n, activation *out)
{
    const char *name = zc_imp_take_str(im, n, "activation", "");
    ZC_TRY(im->status);
    out->op = zc_activation_find(name);
    if (*name && out->op == ZC_OP_NONE)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "unknown activation (got \"" ZC_NAME "\")",
                           name);
    return ZC_OK;
}

/* As a list. */
static zc_status take_activation(zc_imp *im, zc_inode *n, activation *out)
{
    zc_floats list = {0};
    ZC_TRY(take_name(im, n, out));
    (void)zc_imp_take_floats(im, n, "activation_params", &list);
    for (int i = 0; i < list.n && i < ZC_ACTIVATION_PARAMS; i++)
        out->params[out->count++] = list.v[i];
    return im->status;
}

/* As attributes; no activation has a third parameter. */
static zc_status take_activation_apart(zc_imp *im, zc_inode *n, activation *out)
{
    static const char *const names[ZC_ACTIVATION_PARAMS] = {"activation_alpha", "activation_beta"};
    ZC_TRY(take_name(im, n, out));
    for (int i = 0; i < ZC_ACTIVATION_PARAMS && zc_imp_has_attr(n, names[i]); i++)
        out->params[out->count++] = (float)zc_imp_take_float(im, n, names[i], 0);
    (void)zc_imp_take_float(im, n, "activation_gamma", 0);
    return im->status;
}

/* Node `id` and the activation behind it are the model's node. */
static zc_status finish(zc_imp *im, zc_inode *n, zc_nid id, const activation *a)
{
    if (a->op == ZC_OP_NONE) return zc_imp_finish(im, n, id);
    zc_vid in[1 + ZC_ACTIVATION_PARAMS] = {zc_imp_done(im, n, id)};
    const bool is_clip = a->op == ZC_OP_Clip; /* whose bounds are operands */
    for (int i = 0; is_clip && i < a->count; i++)
        in[1 + i] = zc_imp_scalar(im, zc_imp_dtype(im, in[0]), (double)a->params[i]);
    ZC_TRY(im->status);
    id = zc_imp_node(im, n, a->op, is_clip ? 1 + a->count : 1, in, 1);
    if (id && !is_clip) zc_activation_attrs(a->op, a->params, a->count, zc_imp_at(im, a->op, id));
    return zc_imp_finish(im, n, id);
}

/* A sum of input 3, where there is one, with the convolution of the others. */
static zc_nid convolution(zc_imp *im, zc_inode *n)
{
    const zc_vid residual = zc_imp_in(n, 3);
    if (n->nin > 3) n->nin = 3;
    n->op = ZC_OP_Conv;
    zc_nid id = zc_imp_plain(im, n);
    if (!residual || !id) return id;
    const zc_vid in[] = {zc_imp_done(im, n, id), residual};
    return im->status == ZC_OK ? zc_imp_node(im, n, ZC_OP_Add, 2, in, 1) : 0;
}

zc_status zc_step_ms_fused_conv(zc_imp *im, zc_inode *n)
{
    activation a = {0};
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 4));
    ZC_TRY(take_activation(im, n, &a));
    zc_nid id = convolution(im, n);
    ZC_TRY(im->status);
    return finish(im, n, id, &a);
}

/* Images and weights have their channels last. */
zc_status zc_step_ms_nhwc_conv(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 3));
    for (int i = 0; i < 2; i++) {
        if (zc_imp_need_rank(im, n, n->in[i], "an operand") != 4 && im->status == ZC_OK)
            return zc_imp_fail(im, n, ZC_ERR_MODEL, "input %d has a wrong rank (got %d, need 4)", i,
                               zc_imp_rank(im, n->in[i]));
        ZC_TRY(im->status);
        n->in[i] = zc_imp_channels_first(im, n, n->in[i]);
    }
    zc_vid y = zc_imp_done(im, n, convolution(im, n));
    ZC_TRY(im->status);
    return zc_imp_finish(im, n, zc_imp_channels_last(im, n, y));
}

/* Operation `op` over an image whose channels come last. */
static zc_status over_channels_last(zc_imp *im, zc_inode *n, zc_op op)
{
    if (zc_imp_need_rank(im, n, n->in[0], "its input") < 3 && im->status == ZC_OK)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "input 0 has a wrong rank (got %d, need at least 3)",
                           zc_imp_rank(im, n->in[0]));
    ZC_TRY(im->status);
    n->in[0] = zc_imp_channels_first(im, n, n->in[0]);
    n->op = op;
    zc_vid y = zc_imp_done(im, n, zc_imp_plain(im, n));
    ZC_TRY(im->status);
    return zc_imp_finish(im, n, zc_imp_channels_last(im, n, y));
}

zc_status zc_step_ms_nhwc_max_pool(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 1));
    return over_channels_last(im, n, ZC_OP_MaxPool);
}

/* Its weights have their channels first in any case. */
zc_status zc_step_ms_qlinear_conv(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 8, 9));
    const int64_t last = zc_imp_take_int(im, n, "channels_last", 0);
    ZC_TRY(im->status);
    if (last) return over_channels_last(im, n, ZC_OP_QLinearConv);
    n->op = ZC_OP_QLinearConv;
    return zc_imp_finish_plain(im, n);
}

/* Pads are an operand, which must be known. */
zc_status zc_step_ms_conv_transpose_with_dynamic_pads(zc_imp *im, zc_inode *n)
{
    zc_ints pads;
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 4));
    const zc_vid bias = zc_imp_in(n, 3);
    if (!zc_imp_known_ints(im, n, n->in[2], &pads))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "input 2, the pads, must be a constant");
    pads.v = zc_arena_dup(&im->g->arena, pads.v, (size_t)pads.n, sizeof *pads.v);
    if (!pads.v) return zc_imp_nomem(im, "an attribute");
    n->nin = 2;
    zc_imp_set_in(im, n, 2, bias);
    n->op = ZC_OP_ConvTranspose;
    zc_nid id = zc_imp_plain(im, n);
    ZC_IMP_SET(im, ConvTranspose, id, pads, pads);
    return zc_imp_finish(im, n, id);
}

zc_status zc_step_ms_fused_gemm(zc_imp *im, zc_inode *n)
{
    activation a = {0};
    ZC_TRY(take_activation_apart(im, n, &a));
    n->op = ZC_OP_Gemm;
    zc_nid id = zc_imp_plain(im, n);
    ZC_TRY(im->status);
    return finish(im, n, id, &a);
}

zc_status zc_step_ms_fused_matmul_activation(zc_imp *im, zc_inode *n)
{
    activation a = {0};
    ZC_TRY(take_activation_apart(im, n, &a));
    (void)zc_imp_take_int(im, n, "activation_axis",
                          0); /* of Softmax, which is no activation here */
    ZC_TRY(im->status);
    n->op = ZC_OP_FusedMatMul;
    zc_nid id = zc_imp_plain(im, n);
    ZC_TRY(im->status);
    return finish(im, n, id, &a);
}
