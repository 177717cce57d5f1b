#include "op/work.h"

#include "op/attention.h"
#include "op/nhwc.h"
#include "op/pointwise.h"

typedef struct step {
    const zc_op_info *info;
    const void *attrs;
    int nin, nout;
    const zc_tensor *in, *out;
} step;

static double elements(const zc_tensor *t)
{
    int64_t n = zc_present(t) ? zc_tensor_numel(t) : 0;
    return n > 0 ? (double)n : 0;
}

static double bytes(const zc_tensor *t)
{
    size_t n = 0;
    return zc_present(t) && zc_tensor_bytes(t, &n) ? (double)n : 0;
}

/* ---- operations ---- */

/* The axis of A that is summed, counted from the last. */
static int summed_axis(const step *s)
{
    if (s->info == zc_op_get(ZC_OP_Gemm)) return ((const zc_attrs_Gemm *)s->attrs)->transA != 0;
    if (s->info == zc_op_get(ZC_OP_FusedMatMul))
        return ((const zc_attrs_FusedMatMul *)s->attrs)->transA != 0;
    return 0;
}

static double product(const step *s)
{
    const zc_tensor *a = &s->in[0];
    int axis = a->rank - 1 - summed_axis(s);
    return axis < 0 ? 0 : 2 * elements(&s->out[0]) * (double)a->dims[axis];
}

/* The part of a convolution's weights that is no zero of a band. */
static double within_band(const step *s, const zc_tensor *x, const zc_tensor *w)
{
    if (s->info != zc_op_get(ZC_OP_ConvNhwc)) return 1;
    const zc_attrs_ConvNhwc *a = s->attrs;
    const int last = w->rank - 1;
    if (!a->band || a->group < 1 || x->rank != w->rank || w->dims[last] < 1) return 1;
    return (double)x->dims[last] / (double)a->group / (double)w->dims[last];
}

/* Each element of the result sees as many of x as a channel has weights. */
static double convolution(const step *s)
{
    const bool bytes =
        s->info == zc_op_get(ZC_OP_QLinearConv) || s->info == zc_op_get(ZC_OP_QLinearConvPair);
    const zc_tensor *w = &s->in[bytes ? ZC_IN_QLinearConv_w : 1];
    if (w->rank < 1 || w->dims[0] < 1) return 0;
    return 2 * elements(&s->out[0]) * elements(w) / (double)w->dims[0] *
           within_band(s, &s->in[0], w);
}

/* Of all pixels, also where the result is a pooling of them. */
static double pooled_convolution(const step *s, zc_op op, int w)
{
    zc_tensor whole = s->out[0];
    step all = *s;
    if (s->in[0].rank != 4 || s->in[w].rank != 4 || whole.rank != 4) return -1;
    zc_conv_sides(op, s->attrs, &s->in[0], &s->in[w], whole.dims + 1);
    all.out = &whole;
    return convolution(&all);
}

static double image_convolution(const step *s)
{
    return pooled_convolution(s, ZC_OP_ConvImage, ZC_IN_ConvImage_w);
}

static double qlinear_convolution(const step *s)
{
    return zc_conv_pools(ZC_OP_QLinearConv, s->attrs)
               ? pooled_convolution(s, ZC_OP_QLinearConv, ZC_IN_QLinearConv_w)
               : convolution(s);
}

static double pair_of_convolutions(const step *s)
{
    const bool bytes = s->info == zc_op_get(ZC_OP_QLinearConvPair);
    const zc_tensor *v = &s->in[bytes ? (int)ZC_IN_QLinearConvPair_v : (int)ZC_IN_ConvPair_v];
    return convolution(s) + (v->rank == 4 ? 2 * elements(&s->out[0]) * (double)v->dims[3] : 0);
}

/* Each of the second one's products has a channel that all of the first one's weights made. */
static double chain_of_convolutions(const step *s)
{
    const zc_op op = s->info == zc_op_get(ZC_OP_QLinearConvNext) ? ZC_OP_QLinearConvNext
                                                                 : ZC_OP_QLinearConvChain;
    const zc_tensor *w = &s->in[zc_conv_half_inputs(op, false)[ZC_IN_QLinearConv_w]];
    const zc_tensor *v = &s->in[zc_conv_half_inputs(op, true)[ZC_IN_QLinearConv_w]];
    if (v->rank < 1 || v->dims[0] < 1) return 0;
    return 2 * elements(&s->out[s->nout - 1]) / (double)v->dims[0] * (elements(w) + elements(v));
}

/* Each element of x goes to as many of the result as a channel has weights. */
static double transposed_convolution(const step *s)
{
    const zc_tensor *w = &s->in[1];
    return w->rank < 1 || w->dims[0] < 1
               ? 0
               : 2 * elements(&s->in[0]) * elements(w) / (double)w->dims[0];
}

/* Two products of one operand. */
static double gated_product(const step *s)
{
    return 2 * product(s);
}

static double packed_product(const step *s)
{
    return *((const zc_attrs_PackedLinear *)s->attrs)->activation ? gated_product(s) : product(s);
}

/* By what is stored: two of each four. */
static double sparse_product(const step *s)
{
    return product(s) / 2;
}

static double attention(const step *s)
{
    zc_attention_form f;
    zc_attention_node n = {.attrs = s->attrs,
                           .nin = s->nin,
                           .nout = s->nout,
                           .in = s->in,
                           .out = s->out,
                           .total = -1,
                           .subject = ""};
    if (s->nin > ZC_IN_Attention_total && zc_present(&s->in[ZC_IN_Attention_total])) return -1;
    if (zc_attention_form_of(&n, &f) != ZC_OK) return -1;
    return 2 * (double)f.batch * (double)f.heads * (double)f.nq * (double)f.nk *
           (double)(f.d + f.dv);
}

/* x[steps, batch, input] or [batch, steps, input] times the weights of both operands. */
static double recurrent(const step *s)
{
    const zc_tensor *x = &s->in[0];
    if (x->rank != 3 || s->nin < 3) return -1;
    return 2 * (double)x->dims[0] * (double)x->dims[1] *
           (elements(&s->in[1]) + elements(&s->in[2]));
}

/* An operation for each node that is no operand and no constant. */
static double pointwise(const step *s)
{
    zc_expr e;
    zc_dtype types[ZC_EXPR_MAX_INPUTS];
    int n = 0;
    if (s->nin > ZC_EXPR_MAX_INPUTS) return -1;
    for (int i = 0; i < s->nin; i++) types[i] = s->in[i].dtype;
    if (zc_pointwise_expr(s->info, s->attrs, s->nin, types, &e, "", NULL) != ZC_OK) return -1;
    for (int i = 0; i < e.count; i++)
        n += e.nodes[i].op != ZC_EX_INPUT && e.nodes[i].op != ZC_EX_CONST;
    return (double)n * elements(&s->out[0]);
}

static const struct {
    zc_op op;
    double (*count)(const step *s);
} counts[] = {
    {ZC_OP_MatMul, product},
    {ZC_OP_Gemm, product},
    {ZC_OP_Linear, product},
    {ZC_OP_ScaledLinear, product},
    {ZC_OP_PackedLinear, packed_product},
    {ZC_OP_SparseLinear, sparse_product},
    {ZC_OP_GatedLinear, gated_product},
    {ZC_OP_LinearNorm, product},
    {ZC_OP_LinearMoments, product},
    {ZC_OP_MatMulInteger, product},
    {ZC_OP_QLinearMatMul, product},
    {ZC_OP_FusedMatMul, product},
    {ZC_OP_Conv, convolution},
    {ZC_OP_ConvInteger, convolution},
    {ZC_OP_QLinearConv, qlinear_convolution},
    {ZC_OP_ScaledConv, convolution},
    {ZC_OP_ConvNhwc, convolution},
    {ZC_OP_ConvImage, image_convolution},
    {ZC_OP_ConvPair, pair_of_convolutions},
    {ZC_OP_QLinearConvPair, pair_of_convolutions},
    {ZC_OP_QLinearConvChain, chain_of_convolutions},
    {ZC_OP_QLinearConvNext, chain_of_convolutions},
    {ZC_OP_ConvTranspose, transposed_convolution},
    {ZC_OP_Attention, attention},
    {ZC_OP_RNN, recurrent},
    {ZC_OP_GRU, recurrent},
    {ZC_OP_LSTM, recurrent},
    {ZC_OP_DynamicQuantizeLSTM, recurrent},
};

static double operations(const step *s)
{
    if (s->info->flags & ZC_OPF_VIEW) return 0;
    if (s->info->flags & ZC_OPF_POINTWISE) return pointwise(s);
    for (size_t i = 0; i < ZC_COUNTOF(counts); i++)
        if (s->info == zc_op_get(counts[i].op)) return counts[i].count(s);
    return -1;
}

/* ---- bytes ---- */

/* Operations that read of an operand no more than they write. */
static bool picks(const zc_op_info *info)
{
    static const zc_op ops[] = {ZC_OP_Gather, ZC_OP_GatherElements, ZC_OP_GatherND, ZC_OP_Slice,
                                ZC_OP_EmbedLayerNormalization};
    for (size_t i = 0; i < ZC_COUNTOF(ops); i++)
        if (info == zc_op_get(ops[i])) return true;
    return false;
}

static double bytes_in(const step *s, double written)
{
    double sum = 0;
    bool some = picks(s->info);
    for (int i = 0; i < s->nin; i++) {
        bool again = false;
        for (int j = 0; j < i; j++)
            again = again || (s->in[j].data && s->in[j].data == s->in[i].data);
        double all = again ? 0 : bytes(&s->in[i]);
        sum += some && written < all ? written : all;
    }
    return sum;
}

zc_work zc_work_of(const zc_op_info *info, const void *attrs, int nin, const zc_tensor *in,
                   int nout, const zc_tensor *out)
{
    const step s = {info, attrs, nin, nout, in, out};
    zc_work w = {.operations = operations(&s)};
    if (info->flags & (ZC_OPF_VIEW | ZC_OPF_SHAPE_ONLY)) return w;
    for (int i = 0; i < nout; i++) w.bytes_out += bytes(&out[i]);
    w.bytes_in = bytes_in(&s, w.bytes_out);
    return w;
}
