#include "abi/rotary.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

zc_status zc_gen_rotary(zc_gen *g)
{
    bool ms = g->step->op == ZC_OP_MsRotaryEmbedding;
    const zc_pvalue *x = zc_gen_in(g, 0), *ids = zc_gen_in(g, ms ? 1 : 3);
    int64_t interleaved = ms ? ZC_ATTRS(g, MsRotaryEmbedding)->interleaved
                             : ZC_ATTRS(g, RotaryEmbedding)->interleaved;
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_kernel_type(x->dtype) || zc_dtype_bits(x->dtype) < 16)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (ids && !zc_kernel_type(ids->dtype))
        return zc_gen_decline(g, "position ids of type %s", zc_dtype_name(ids->dtype));
    zc_gen_type(g, "T", x->dtype);
    zc_gen_define(g, "INTERLEAVED", "%d", interleaved != 0);
    zc_gen_type(g, "ID", ids ? ids->dtype : ZC_I64);
    return ZC_OK;
}

/* ---- the launch ---- */

/* What the two operations call differently. */
typedef struct rotary_op {
    int cos, ids; /* inputs; the sines come after the cosines */
    int64_t heads, dim;
} rotary_op;

static zc_status wrong(zc_launch *l, const char *what, int64_t got, int64_t need)
{
    return zc_fail(l->diag, ZC_ERR_INPUT, l->subject, "%s do not fit (got %lld, need %lld)", what,
                   (long long)got, (long long)need);
}

/* Sizes of the heads; a 3-D input without a number of heads has as many as the tables make of it.
 */
static void heads_of(const zc_tensor *x, const rotary_op *op, int64_t cols,
                     struct zc_rotary_params *p)
{
    if (x->rank == 4) {
        p->heads = x->dims[1];
        p->length = x->dims[2];
        p->size = x->dims[3];
        p->head_step = p->length * p->size;
        p->pos_step = p->size;
    } else {
        p->length = x->dims[1];
        p->size = op->heads ? x->dims[2] / op->heads : 2 * cols;
        p->heads = p->size ? x->dims[2] / p->size : 0;
        p->head_step = p->size;
        p->pos_step = p->heads * p->size;
    }
    p->batch_step = p->heads * p->length * p->size;
    p->half = op->dim ? op->dim / 2 : p->size / 2;
}

static zc_status check(zc_launch *l, const rotary_op *op, const struct zc_rotary_params *p)
{
    const zc_tensor *x = &l->in[0], *cos = &l->in[op->cos], *sin = &l->in[op->cos + 1];
    int64_t cols = cos->dims[cos->rank - 1], positions = x->dims[0] * p->length;
    if (cols != p->half) return wrong(l, "columns of cos_cache", cols, p->half);
    if (zc_tensor_numel(sin) != zc_tensor_numel(cos))
        return wrong(l, "elements of sin_cache", zc_tensor_numel(sin), zc_tensor_numel(cos));
    if (x->dims[0] * p->batch_step != zc_tensor_numel(x))
        return wrong(l, "sizes of the heads", x->dims[0] * p->batch_step, zc_tensor_numel(x));
    if (2 * p->half > p->size) return wrong(l, "elements to rotate", 2 * p->half, p->size);
    if (p->id_mode == 1 && zc_tensor_numel(&l->in[op->ids]) != positions)
        return wrong(l, "position ids", zc_tensor_numel(&l->in[op->ids]), positions);
    return ZC_OK;
}

zc_status zc_launch_rotary(zc_launch *l)
{
    bool ms = l->info == zc_op_get(ZC_OP_MsRotaryEmbedding);
    rotary_op op = {.cos = ms ? 2 : 1, .ids = ms ? 1 : 3};
    op.heads =
        ms ? ZC_ATTRS(l, MsRotaryEmbedding)->num_heads : ZC_ATTRS(l, RotaryEmbedding)->num_heads;
    op.dim = ms ? ZC_ATTRS(l, MsRotaryEmbedding)->rotary_embedding_dim
                : ZC_ATTRS(l, RotaryEmbedding)->rotary_embedding_dim;
    const zc_tensor *x = &l->in[0], *cos = &l->in[op.cos];
    struct zc_rotary_params p = {.x = x->data,
                                 .cos = cos->data,
                                 .sin = l->in[op.cos + 1].data,
                                 .ids = zc_launch_in(l, op.ids),
                                 .y = l->out[0].data,
                                 .fault = l->fault,
                                 .step = l->step_id};
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    heads_of(x, &op, cos->dims[cos->rank - 1], &p);
    if (zc_launch_has(l, op.ids)) p.id_mode = ms && zc_tensor_numel(&l->in[op.ids]) == 1 ? 2 : 1;
    if (!ms && p.id_mode == 0 && cos->dims[0] == 1) p.id_mode = 3;
    ZC_TRY(check(l, &op, &p));
    p.rows = p.half ? zc_tensor_numel(cos) / p.half : INT64_MAX;
    p.total = x->dims[0] * p.length * p.heads * (p.size - p.half);
    zc_dim3 grid = {zc_launch_blocks(p.total, 256, 32 * (int64_t)l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, 256, 0, &p, sizeof p);
}
