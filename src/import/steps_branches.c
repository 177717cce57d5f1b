/* com.microsoft's operators on streams side by side, x[..., branches, size], which may stand flat,
 * x[..., branches * size]. ONNX Runtime computes in f32, whatever the type. */
#include <math.h>

#include "import/steps.h"

typedef struct streams {
    zc_vid x;         /* f32[..., branches, size] */
    int rank;         /* of x */
    int64_t branches; /* of those that stand flat, else 0 */
} streams;

static zc_vid expression(zc_imp *im, zc_inode *n, zc_vid x, const char *text)
{
    return zc_imp_done(im, n, zc_imp_expr(im, n, 1, &x, text));
}

/* v[..., count * size] as v[..., count, size]. */
static zc_vid apart(zc_imp *im, zc_inode *n, zc_vid v, int64_t count)
{
    const int rank = zc_imp_rank(im, v);
    int64_t shape[ZC_MAX_RANK + 1] = {0}; /* 0: as it is */
    if (im->status != ZC_OK) return 0;
    shape[rank - 1] = count;
    shape[rank] = -1;
    return zc_imp_reshape(im, n, v, shape, rank + 1);
}

/* The reverse where streams stand flat in the model; and their type. */
static zc_status finish_streams(zc_imp *im, zc_inode *n, const streams *s, zc_vid y)
{
    int64_t shape[ZC_MAX_RANK] = {0};
    shape[s->rank - 2] = -1;
    if (s->branches) y = zc_imp_reshape(im, n, y, shape, s->rank - 1);
    y = zc_imp_cast(im, n, y, zc_imp_dtype(im, n->in[0]));
    ZC_TRY(im->status);
    return zc_imp_finish_value(im, n, y);
}

static zc_status take_streams(zc_imp *im, zc_inode *n, streams *s)
{
    s->branches = zc_imp_take_int(im, n, "num_branches", 0);
    ZC_TRY(im->status);
    if (s->branches < 0 || s->branches > INT32_MAX)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "num_branches out of range (got %lld, need [0, %d])",
                           (long long)s->branches, INT32_MAX);
    const int rank = zc_imp_rank(im, n->in[0]), flat = s->branches != 0;
    s->rank = rank + flat;
    if (s->rank < 2 || s->rank > ZC_MAX_RANK)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "input 0 has a wrong rank (got %d, need %d to %d)",
                           rank, 2 - flat, ZC_MAX_RANK - flat);
    s->x = zc_imp_cast(im, n, n->in[0], ZC_F32);
    if (flat) s->x = apart(im, n, s->x, s->branches);
    return im->status;
}

/* Input i as f32[..., branches, 1 or size]. */
static zc_vid mix(zc_imp *im, zc_inode *n, const streams *s, int i)
{
    const int64_t last = -1;
    const zc_vid v = zc_imp_cast(im, n, n->in[i], ZC_F32);
    const int rank = zc_imp_rank(im, v);
    if (im->status != ZC_OK || rank == s->rank) return v;
    if (rank != s->rank - 1) {
        zc_imp_fail(im, n, ZC_ERR_MODEL, "input %d has a wrong rank (got %d, need %d or %d)", i,
                    rank, s->rank - 1, s->rank);
        return 0;
    }
    if (s->branches) return apart(im, n, v, s->branches);
    return zc_imp_op2(im, n, ZC_OP_Unsqueeze, v, zc_imp_ints(im, &last, 1, 1));
}

/* Input i, one for all branches, as f32[..., 1, size]. */
static zc_vid shared(zc_imp *im, zc_inode *n, int i)
{
    const int64_t axis = -2;
    return zc_imp_op2(im, n, ZC_OP_Unsqueeze, zc_imp_cast(im, n, n->in[i], ZC_F32),
                      zc_imp_ints(im, &axis, 1, 1));
}

static zc_vid sum(zc_imp *im, zc_inode *n, zc_vid v, int64_t axis, bool keep)
{
    const zc_vid in[] = {v, zc_imp_ints(im, &axis, 1, 1)};
    zc_nid id = zc_imp_node(im, n, ZC_OP_ReduceSum, 2, in, 1);
    ZC_IMP_SET(im, ReduceSum, id, keepdims, keep);
    return zc_imp_done(im, n, id);
}

/* f32 rows normalised; scale, if there is one, is of every row or of a branch's. */
static zc_vid norm(zc_imp *im, zc_inode *n, zc_vid x, zc_vid scale, double epsilon)
{
    const zc_vid in[] = {x,
                         scale ? zc_imp_cast(im, n, scale, ZC_F32) : zc_imp_scalar(im, ZC_F32, 1)};
    zc_nid id = zc_imp_node(im, n, ZC_OP_RMSNormalization, 2, in, 1);
    ZC_IMP_SET(im, RMSNormalization, id, epsilon, (float)epsilon);
    return zc_imp_done(im, n, id);
}

/* ---- the operators ---- */

zc_status zc_step_ms_branchwise_rms_norm(zc_imp *im, zc_inode *n)
{
    streams s;
    const double epsilon = zc_imp_take_float(im, n, "epsilon", 1e-5f);
    ZC_TRY(zc_imp_need_inputs(im, n, 1, 2));
    ZC_TRY(take_streams(im, n, &s));
    const zc_dim *sizes = zc_val(im->g, s.x)->type.dims + s.rank - 2;
    zc_vid scale = zc_imp_in(n, 1);
    if (zc_imp_rank(im, scale) == 1 && !zc_dim_eq(zc_val(im->g, scale)->type.dims[0], sizes[1])) {
        if (!zc_dim_is_const(sizes[0]))
            return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                               "a scale of all branches needs a known number of them");
        scale = apart(im, n, scale, sizes[0].k);
    }
    return finish_streams(im, n, &s, norm(im, n, s.x, scale, epsilon));
}

/* Weighted sums over the branches. */
zc_status zc_step_ms_hyper_connection_pre_mix(zc_imp *im, zc_inode *n)
{
    streams s;
    const double scale = zc_imp_take_float(im, n, "reduction_scale", 1);
    ZC_TRY(zc_imp_need_inputs(im, n, 2, 2));
    ZC_TRY(take_streams(im, n, &s));
    zc_vid y = zc_imp_op2(im, n, ZC_OP_Mul, s.x, mix(im, n, &s, 1));
    y = sum(im, n, y, -2, false);
    if (scale != 1) y = zc_imp_op2(im, n, ZC_OP_Mul, y, zc_imp_scalar(im, ZC_F32, scale));
    y = zc_imp_cast(im, n, y, zc_imp_dtype(im, n->in[0]));
    ZC_TRY(im->status);
    return zc_imp_finish_value(im, n, y);
}

/* Streams, or sums of them, and what a block made of them. */
zc_status zc_step_ms_hyper_connection_post_mix(zc_imp *im, zc_inode *n)
{
    enum { STREAMS, BLOCK, POST, MATRIX };
    streams s;
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 4));
    ZC_TRY(take_streams(im, n, &s));
    if (zc_imp_in(n, MATRIX)) {
        const zc_vid in[] = {zc_imp_cast(im, n, n->in[MATRIX], ZC_F32), s.x};
        zc_nid product = zc_imp_node(im, n, ZC_OP_FusedMatMul, 2, in, 1);
        ZC_IMP_SET(im, FusedMatMul, product, transA, 1);
        s.x = zc_imp_done(im, n, product);
    }
    const zc_vid made = zc_imp_op2(im, n, ZC_OP_Mul, mix(im, n, &s, POST), shared(im, n, BLOCK));
    return finish_streams(im, n, &s, zc_imp_op2(im, n, ZC_OP_Add, s.x, made));
}

/* How alike key and query are, as a gate of the value. */
zc_status zc_step_ms_engram_gate(zc_imp *im, zc_inode *n)
{
    enum { KEY, QUERY, VALUE, KEY_SCALE, QUERY_SCALE, NEXT_SCALE };
    const double epsilon = zc_imp_take_float(im, n, "epsilon", 1e-5f);
    const zc_dtype dtype = zc_imp_dtype(im, zc_imp_in(n, KEY));
    const bool next = n->nout > 1 && *n->out[1];
    zc_vid rows[2];
    ZC_TRY(zc_imp_need_inputs(im, n, 5, 6));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (zc_imp_rank(im, n->in[KEY]) != 4)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "the key has a wrong rank (got %d, need 4)",
                           zc_imp_rank(im, n->in[KEY]));
    const zc_dim size = zc_val(im->g, n->in[KEY])->type.dims[3];
    if (!zc_dim_is_const(size))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "the key's last dimension must be known");
    if (next && !zc_imp_in(n, NEXT_SCALE))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "output 1 needs input %d, which is left out",
                           NEXT_SCALE);
    for (int i = KEY; i <= QUERY; i++)
        rows[i] = norm(im, n, zc_imp_cast(im, n, n->in[i], ZC_F32), n->in[KEY_SCALE + i], epsilon);
    zc_vid dot = sum(im, n, zc_imp_op2(im, n, ZC_OP_Mul, rows[0], rows[1]), -1, true);
    dot = zc_imp_op2(im, n, ZC_OP_Div, dot, zc_imp_scalar(im, ZC_F32, sqrt((double)size.k)));
    zc_vid gate = expression(im, n, dot, "sigmoid(sign(x0) * sqrt(max(abs(x0), 1e-6)))");
    zc_vid y = zc_imp_op2(im, n, ZC_OP_Mul, gate, shared(im, n, VALUE));
    zc_nid cast = zc_imp_node(im, n, ZC_OP_Cast, 1, &y, 1);
    ZC_IMP_SET(im, Cast, cast, to, dtype);
    ZC_TRY(zc_imp_finish_first(im, n, cast, 2));
    if (!next) return ZC_OK;
    const zc_vid normed = zc_imp_cast(im, n, norm(im, n, y, n->in[NEXT_SCALE], epsilon), dtype);
    return im->status == ZC_OK ? zc_imp_bind(im, n, 1, normed) : im->status;
}
