/* FlexAttention: Attention when it has no graphs, else what its definition says, the graphs in
 * their places. */
#include <math.h>

#include "import/composite.h"
#include "import/steps.h"

/* x[B, H, S, D] with each head `repeat` times, one after the other. */
static zc_vid repeat_heads(zc_imp *im, zc_inode *n, zc_vid x, int64_t heads, int64_t repeat)
{
    if (repeat == 1 || im->status != ZC_OK) return x;
    const int64_t two = 2, times[] = {1, 1, repeat, 1, 1};
    zc_vid apart = zc_imp_op2(im, n, ZC_OP_Unsqueeze, x, zc_imp_ints(im, &two, 1, 1));
    zc_vid wide = zc_imp_op2(im, n, ZC_OP_Expand, apart, zc_imp_ints(im, times, 5, 1));
    zc_vid sizes[3];
    const int64_t all = heads * repeat;
    sizes[0] = zc_imp_sizes(im, n, x, 0, 1);
    sizes[1] = zc_imp_ints(im, &all, 1, 1);
    sizes[2] = zc_imp_sizes(im, n, x, 2, 4);
    zc_nid shape = zc_imp_node(im, n, ZC_OP_Concat, 3, sizes, 1);
    ZC_IMP_SET(im, Concat, shape, axis, 0);
    return zc_imp_op2(im, n, ZC_OP_Reshape, wide, zc_imp_done(im, n, shape));
}

/* The number of heads, or the head size, which must be known. */
static int64_t known_dim(zc_imp *im, zc_inode *n, zc_vid v, int i, const char *what)
{
    if (im->status != ZC_OK) return 1;
    const zc_type *t = &zc_val(im->g, v)->type;
    if (t->rank != 4) {
        zc_imp_fail(im, n, ZC_ERR_MODEL, "an input has a wrong rank (got %d, need 4)", t->rank);
        return 1;
    }
    if (zc_dim_is_const(t->dims[i]) && t->dims[i].k > 0) return t->dims[i].k;
    zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "%s must be known and positive", what);
    return 1;
}

/* The graph that changes scores or probabilities, when there is one. */
static zc_vid modify(zc_imp *im, zc_inode *n, const Onnx__GraphProto *graph, zc_vid v)
{
    zc_vid out = 0;
    if (!graph || im->status != ZC_OK) return v;
    if (graph->n_output != 1) {
        zc_imp_fail(im, n, ZC_ERR_MODEL,
                    "the graph has a wrong number of outputs (got %zu, need 1)", graph->n_output);
        return 0;
    }
    zc_imp_splice(im, n, graph, NULL, 1, &v, &out);
    if (im->status == ZC_OK) zc_need_tensors(im, n, &out, 1, "a graph's output");
    return out;
}

/* The scores of q[B, H, L, D] and k[B, H, S, D] in the softmax's type. */
static zc_vid scores(zc_imp *im, zc_inode *n, zc_vid q, zc_vid k, double scale, zc_dtype precision)
{
    static const int64_t perm[] = {0, 1, 3, 2};
    zc_vid keys = zc_imp_done(im, n, zc_imp_transpose(im, n, k, perm, 4));
    zc_vid product = zc_imp_op2(im, n, ZC_OP_MatMul, q, keys);
    zc_vid wide = zc_imp_cast(im, n, product, precision);
    return zc_imp_op2(im, n, ZC_OP_Mul, wide, zc_imp_scalar(im, precision, scale));
}

static zc_status expand(zc_imp *im, zc_inode *n, const Onnx__GraphProto *score_mod,
                        const Onnx__GraphProto *prob_mod)
{
    zc_vid q = n->in[0], k = n->in[1], v = n->in[2];
    const zc_dtype dtype = zc_imp_dtype(im, q);
    int64_t precision =
        zc_imp_take_int(im, n, "softmax_precision", dtype == ZC_F64 ? ZC_F64 : ZC_F32);
    int64_t heads = known_dim(im, n, q, 1, "the number of heads"),
            kv_heads = known_dim(im, n, k, 1, "the number of heads"),
            size = known_dim(im, n, q, 3, "the head size");
    double scale = zc_imp_take_float(im, n, "scale", 1 / sqrt((double)size));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (heads % kv_heads)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "numbers of heads (got %lld and %lld, need a multiple)",
                           (long long)heads, (long long)kv_heads);
    if (precision < 0 || precision > INT32_MAX || !zc_dtype_is_float((zc_dtype)precision))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "softmax_precision is no type of floats (got %lld)",
                           (long long)precision);
    k = repeat_heads(im, n, k, kv_heads, heads / kv_heads);
    v = repeat_heads(im, n, v, kv_heads, heads / kv_heads);
    zc_vid s = scores(im, n, q, k, scale, (zc_dtype)precision);
    zc_vid p = zc_imp_op1(im, n, ZC_OP_Softmax, modify(im, n, score_mod, s));
    p = zc_imp_cast(im, n, modify(im, n, prob_mod, p), dtype);
    ZC_TRY(im->status);
    return zc_imp_finish_op(im, n, ZC_OP_MatMul, 2, (zc_vid[]){p, v});
}

zc_status zc_step_flex_attention(zc_imp *im, zc_inode *n)
{
    const Onnx__GraphProto *score_mod = zc_imp_take_graph(im, n, "score_mod");
    const Onnx__GraphProto *prob_mod = zc_imp_take_graph(im, n, "prob_mod");
    ZC_TRY(im->status);
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 3));
    if (score_mod || prob_mod) return expand(im, n, score_mod, prob_mod);
    n->op = ZC_OP_Attention;
    return zc_imp_finish_plain(im, n);
}
