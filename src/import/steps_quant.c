/* Quantised operators of com.microsoft: what they mean between DequantizeLinear and QuantizeLinear.
 */
#include "import/quant.h"
#include "import/steps.h"

/* A scale or zero point of shape [1] as one of rank 0. */
static zc_vid per_tensor(zc_imp *im, zc_inode *n, zc_vid v)
{
    if (zc_imp_rank(im, v) != 1 || !zc_dim_is(zc_val(im->g, v)->type.dims[0], 1)) return v;
    return zc_imp_reshape(im, n, v, NULL, 0);
}

static zc_nid linear_node(zc_imp *im, zc_inode *n, zc_op op, zc_vid x, zc_vid scale, zc_vid zero)
{
    const zc_vid in[] = {x, per_tensor(im, n, scale), per_tensor(im, n, zero)};
    return zc_imp_node(im, n, op, zero ? 3 : 2, in, 1);
}

/* An input of the node; those at `scale` and `zero` are its scale, and its zero point or nothing.
 */
static zc_vid real_input_at(zc_imp *im, zc_inode *n, int i, int scale, int zero)
{
    return zc_imp_done(im, n,
                       linear_node(im, n, ZC_OP_DequantizeLinear, zc_imp_in(n, i),
                                   zc_imp_in(n, scale), zc_imp_in(n, zero)));
}

/* Inputs i, i + 1 and i + 2. */
static zc_vid real_input(zc_imp *im, zc_inode *n, int i)
{
    return real_input_at(im, n, i, i + 1, i + 2);
}

/* y, quantised by inputs i and i + 1, is the node's output. */
static zc_status finish_quantised(zc_imp *im, zc_inode *n, zc_vid y, int i)
{
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return zc_imp_finish(
        im, n, linear_node(im, n, ZC_OP_QuantizeLinear, y, zc_imp_in(n, i), zc_imp_in(n, i + 1)));
}

static zc_status need_at(zc_imp *im, zc_inode *n, int i)
{
    if (zc_imp_in(n, i)) return ZC_OK;
    return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s needs input %d, which is left out", n->op_type, i);
}

static zc_status binary(zc_imp *im, zc_inode *n, zc_op op)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 8));
    ZC_TRY(need_at(im, n, 3));
    ZC_TRY(need_at(im, n, 4));
    ZC_TRY(need_at(im, n, 6));
    zc_vid a = real_input(im, n, 0), b = real_input(im, n, 3);
    return finish_quantised(im, n, zc_imp_op2(im, n, op, a, b), 6);
}

zc_status zc_step_ms_qlinear_add(zc_imp *im, zc_inode *n)
{
    return binary(im, n, ZC_OP_Add);
}

zc_status zc_step_ms_qlinear_mul(zc_imp *im, zc_inode *n)
{
    return binary(im, n, ZC_OP_Mul);
}

/* Inputs: a tensor, its scale and zero point, those of the result, whose type is the tensor's. */
static zc_status unary_inputs(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 5));
    ZC_TRY(need_at(im, n, 3));
    if (!zc_imp_in(n, 4)) zc_imp_set_in(im, n, 4, zc_imp_scalar(im, zc_imp_dtype(im, n->in[0]), 0));
    return im->status;
}

/* An operation of one input, whose channels may come last, and the node's attributes. */
static zc_status over_image(zc_imp *im, zc_inode *n, zc_op op, bool last)
{
    ZC_TRY(unary_inputs(im, n));
    zc_inode inner = *n;
    zc_vid x = real_input(im, n, 0);
    if (last) x = zc_imp_channels_first(im, n, x);
    inner.op = op;
    inner.in = &x;
    inner.nin = inner.nout = 1;
    zc_vid y = zc_imp_done(im, n, zc_imp_plain(im, &inner));
    if (last) y = zc_imp_done(im, n, zc_imp_channels_last(im, n, y));
    n->nattrs = 0;
    return finish_quantised(im, n, y, 3);
}

static zc_status unary(zc_imp *im, zc_inode *n, zc_op op)
{
    return over_image(im, n, op, false);
}

static zc_status pool(zc_imp *im, zc_inode *n, zc_op op)
{
    const bool last = zc_imp_take_int(im, n, "channels_last", 0) != 0;
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 5));
    zc_imp_need_rank(im, n, n->in[0], "its input");
    ZC_TRY(im->status);
    return over_image(im, n, op, last);
}

zc_status zc_step_ms_qlinear_sigmoid(zc_imp *im, zc_inode *n)
{
    return unary(im, n, ZC_OP_Sigmoid);
}

zc_status zc_step_ms_qlinear_leaky_relu(zc_imp *im, zc_inode *n)
{
    return unary(im, n, ZC_OP_LeakyRelu);
}

/* Of an operator set before 13 over the last axis alone, where both forms mean the same. */
zc_status zc_step_ms_qlinear_softmax(zc_imp *im, zc_inode *n)
{
    const int64_t opset = zc_imp_take_int(im, n, "opset", 13);
    const int64_t axis = zc_imp_take_int(im, n, "axis", -1);
    ZC_TRY(im->status);
    const int rank = zc_imp_rank(im, zc_imp_in(n, 0));
    if (opset < 13 && axis != -1 && axis != rank - 1)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "QLinearSoftmax of operator set %lld over axis %lld (need the last)",
                           (long long)opset, (long long)axis);
    zc_imp_set_int(im, n, "axis", axis);
    return unary(im, n, ZC_OP_Softmax);
}

/* Condition, x and y with scale and zero point each, those of the output. */
zc_status zc_step_ms_qlinear_where(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 8, 9));
    const zc_vid in[] = {n->in[0], real_input(im, n, 1), real_input(im, n, 4)};
    zc_vid y = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Where, 3, in, 1));
    return finish_quantised(im, n, y, 7);
}

zc_status zc_step_ms_qlinear_average_pool(zc_imp *im, zc_inode *n)
{
    return pool(im, n, ZC_OP_AveragePool);
}

zc_status zc_step_ms_qlinear_global_average_pool(zc_imp *im, zc_inode *n)
{
    return pool(im, n, ZC_OP_GlobalAveragePool);
}

zc_status zc_step_ms_qlinear_reduce_mean(zc_imp *im, zc_inode *n)
{
    zc_ints axes = {0};
    (void)zc_imp_take_ints(im, n, "axes", &axes);
    const int64_t keep = zc_imp_take_int(im, n, "keepdims", 1);
    ZC_TRY(unary_inputs(im, n));
    const zc_vid in[] = {real_input(im, n, 0), zc_imp_ints(im, axes.v, axes.n, 1)};
    zc_nid id = zc_imp_node(im, n, ZC_OP_ReduceMean, 2, in, 1);
    ZC_IMP_SET(im, ReduceMean, id, keepdims, keep);
    return finish_quantised(im, n, zc_imp_done(im, n, id), 3);
}

/* Inputs: the output's scale and zero point, then three for each part. */
zc_status zc_step_ms_qlinear_concat(zc_imp *im, zc_inode *n)
{
    int64_t axis = zc_imp_take_int(im, n, "axis", 0);
    int parts = (n->nin - 2) / 3;
    if (n->nin < 5 || n->nin != 2 + 3 * parts)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "wrong number of inputs (got %d, need 2 and 3 for each part)", n->nin);
    ZC_TRY(zc_imp_need_all(im, n, 0));
    zc_vid *in = zc_arena_alloc(n->arena, (size_t)parts, sizeof *in);
    if (!in) return zc_imp_nomem(im, "inputs");
    for (int i = 0; i < parts; i++) in[i] = real_input(im, n, 2 + 3 * i);
    zc_nid id = zc_imp_node(im, n, ZC_OP_Concat, parts, in, 1);
    ZC_IMP_SET(im, Concat, id, axis, axis);
    return finish_quantised(im, n, zc_imp_done(im, n, id), 0);
}

/* ---- matrix products ---- */

zc_nid zc_quant_product(zc_imp *im, zc_inode *n, const zc_vid in[4], zc_vid a_scale, zc_vid b_scale,
                        zc_vid bias)
{
    zc_vid y = zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_MatMulInteger, 4, in, 1));
    y = zc_imp_cast(im, n, y, zc_imp_dtype(im, a_scale));
    zc_vid scale = zc_imp_op2(im, n, ZC_OP_Mul, a_scale, b_scale);
    if (!bias) return zc_imp_node(im, n, ZC_OP_Mul, 2, (zc_vid[]){y, scale}, 1);
    zc_vid scaled = zc_imp_op2(im, n, ZC_OP_Mul, y, scale);
    return zc_imp_node(im, n, ZC_OP_Add, 2, (zc_vid[]){scaled, bias}, 1);
}

static zc_status product(zc_imp *im, zc_inode *n, const zc_vid in[4], zc_vid a_scale,
                         zc_vid b_scale, zc_vid bias)
{
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    return zc_imp_finish(im, n, zc_quant_product(im, n, in, a_scale, b_scale, bias));
}

zc_status zc_step_ms_matmul_integer_to_float(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 4, 7));
    const zc_vid in[] = {n->in[0], n->in[1], zc_imp_in(n, 4), zc_imp_in(n, 5)};
    return product(im, n, in, n->in[2], n->in[3], zc_imp_in(n, 6));
}

zc_status zc_step_ms_dynamic_quantize_matmul(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 5));
    zc_nid id = zc_imp_node(im, n, ZC_OP_DynamicQuantizeLinear, 1, n->in, 3);
    zc_vid a = zc_imp_done(im, n, id);
    if (!a) return im->status;
    const zc_vid *out = zc_node_at(im->g, id)->out;
    const zc_vid scale = out[1], zero = out[2];
    return product(im, n, (zc_vid[]){a, n->in[1], zero, zc_imp_in(n, 3)}, scale, n->in[2],
                   zc_imp_in(n, 4));
}

/* Sums of i32, which wrap. */
zc_status zc_step_ms_matmul_integer16(zc_imp *im, zc_inode *n)
{
    zc_vid in[2];
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    for (int i = 0; i < 2; i++) {
        const zc_dtype dtype = zc_imp_dtype(im, n->in[i]);
        if (dtype != ZC_I16)
            return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                               "input %d has a wrong type (got %s, need i16)", i,
                               zc_dtype_name(dtype));
        in[i] = zc_imp_cast(im, n, n->in[i], ZC_I32);
    }
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_MatMul, 2, in);
}

/* alpha (A x B + C), C of integers in the scale of the product; a float without y's scale. */
zc_status zc_step_ms_qgemm(zc_imp *im, zc_inode *n)
{
    const double alpha = zc_imp_take_float(im, n, "alpha", 1);
    const bool trans_a = zc_imp_take_int(im, n, "transA", 0) != 0;
    const bool trans_b = zc_imp_take_int(im, n, "transB", 0) != 0;
    ZC_TRY(zc_imp_need_inputs(im, n, 6, 9));
    zc_vid b_scale = per_tensor(im, n, n->in[4]);
    zc_nid real_b = linear_node(im, n, ZC_OP_DequantizeLinear, n->in[3], n->in[4], n->in[5]);
    ZC_IMP_SET(im, DequantizeLinear, real_b, axis, trans_b ? 0 : 1);
    const zc_vid in[] = {real_input(im, n, 0), zc_imp_done(im, n, real_b)};
    zc_nid id = zc_imp_node(im, n, ZC_OP_Gemm, 2, in, 1);
    ZC_IMP_SET(im, Gemm, id, alpha, (float)alpha);
    ZC_IMP_SET(im, Gemm, id, transA, trans_a);
    ZC_IMP_SET(im, Gemm, id, transB, trans_b);
    zc_vid y = zc_imp_done(im, n, id);
    if (zc_imp_in(n, 6)) {
        zc_vid scale = zc_imp_op2(im, n, ZC_OP_Mul, per_tensor(im, n, n->in[1]), b_scale);
        scale = zc_imp_op2(im, n, ZC_OP_Mul, scale, zc_imp_scalar(im, ZC_F32, alpha));
        zc_vid c = zc_imp_op2(im, n, ZC_OP_Mul, zc_imp_cast(im, n, n->in[6], ZC_F32), scale);
        y = zc_imp_op2(im, n, ZC_OP_Add, y, c);
    }
    if (zc_imp_in(n, 7)) return finish_quantised(im, n, y, 7);
    ZC_TRY(im->status);
    return zc_imp_finish_value(im, n, y);
}

/* ---- embeddings ---- */

/* Rows of a quantised table; its scale and zero point are inputs of the node. */
static zc_vid real_rows(zc_imp *im, zc_inode *n, zc_vid table, zc_vid rows, int scale, int zero)
{
    zc_vid quantised = zc_imp_op2(im, n, ZC_OP_Gather, table, rows);
    return zc_imp_done(
        im, n, linear_node(im, n, ZC_OP_DequantizeLinear, quantised, n->in[scale], n->in[zero]));
}

/* 0, 1, ... for words[batch, length]. */
static zc_vid positions_of(zc_imp *im, zc_inode *n, zc_vid words)
{
    const zc_vid in[] = {zc_imp_scalar(im, ZC_I64, 0),
                         zc_imp_reshape(im, n, zc_imp_sizes(im, n, words, 1, 2), NULL, 0),
                         zc_imp_scalar(im, ZC_I64, 1)};
    return zc_imp_done(im, n, zc_imp_node(im, n, ZC_OP_Range, 3, in, 1));
}

/* How many of each row of mask[batch, length] are 1; without a mask 0. */
static zc_vid count_ones(zc_imp *im, zc_inode *n, zc_vid mask, zc_vid words)
{
    const int64_t axis = 1;
    if (!mask)
        return zc_imp_op2(im, n, ZC_OP_Expand, zc_imp_scalar(im, ZC_I32, 0),
                          zc_imp_sizes(im, n, words, 0, 1));
    zc_vid ones = zc_imp_op2(im, n, ZC_OP_Equal, mask, zc_imp_scalar(im, ZC_I32, 1));
    const zc_vid in[] = {zc_imp_cast(im, n, ones, ZC_I32), zc_imp_ints(im, &axis, 1, 1)};
    zc_nid sum = zc_imp_node(im, n, ZC_OP_ReduceSum, 2, in, 1);
    ZC_IMP_SET(im, ReduceSum, sum, keepdims, 0);
    return zc_imp_done(im, n, sum);
}

enum { WORDS, SEGMENTS, WORD_TABLE, POSITION_TABLE, SEGMENT_TABLE, GAMMA, BETA, MASK };
enum { WORD_SCALE = 8, POSITION_SCALE, SEGMENT_SCALE, GAMMA_SCALE, BETA_SCALE };
enum { WORD_ZERO = 13, POSITION_ZERO, SEGMENT_ZERO, GAMMA_ZERO, BETA_ZERO };

/* The four inputs that speak of segments are there or not together. */
static zc_status embedding_inputs(zc_imp *im, zc_inode *n)
{
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 18));
    const bool segments = zc_imp_in(n, SEGMENTS) != 0;
    for (int i = 0; i <= BETA_ZERO; i++) {
        const bool of_segments =
            i == SEGMENTS || i == SEGMENT_TABLE || i == SEGMENT_SCALE || i == SEGMENT_ZERO;
        if (!of_segments && i != MASK) ZC_TRY(need_at(im, n, i));
        if (of_segments && segments != (zc_imp_in(n, i) != 0))
            return zc_imp_fail(im, n, ZC_ERR_MODEL, "inputs %d and %d: one is there, one is not",
                               SEGMENTS, i);
    }
    return ZC_OK;
}

/* Only the rows that are looked up become floats. */
zc_status zc_step_ms_qembed_layer_normalization(zc_imp *im, zc_inode *n)
{
    const float epsilon = (float)zc_imp_take_float(im, n, "epsilon", 1e-12f);
    ZC_TRY(embedding_inputs(im, n));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    const zc_vid words = n->in[WORDS], segments = n->in[SEGMENTS];
    zc_vid sum = real_rows(im, n, n->in[WORD_TABLE], words, WORD_SCALE, WORD_ZERO);
    sum = zc_imp_op2(im, n, ZC_OP_Add, sum,
                     real_rows(im, n, n->in[POSITION_TABLE], positions_of(im, n, words),
                               POSITION_SCALE, POSITION_ZERO));
    if (segments)
        sum = zc_imp_op2(
            im, n, ZC_OP_Add, sum,
            real_rows(im, n, n->in[SEGMENT_TABLE], segments, SEGMENT_SCALE, SEGMENT_ZERO));
    const zc_vid in[] = {sum, real_input_at(im, n, GAMMA, GAMMA_SCALE, GAMMA_ZERO),
                         real_input_at(im, n, BETA, BETA_SCALE, BETA_ZERO)};
    zc_nid id = zc_imp_node(im, n, ZC_OP_LayerNormalization, 3, in, 1);
    ZC_IMP_SET(im, LayerNormalization, id, epsilon, epsilon);
    ZC_TRY(zc_imp_finish_first(im, n, id, 2));
    if (n->nout < 2 || !*n->out[1]) return ZC_OK;
    zc_vid ones = count_ones(im, n, n->in[MASK], words);
    return im->status == ZC_OK ? zc_imp_bind(im, n, 1, ones) : im->status;
}
