#include "cuda/launch.h"
#include "cuda/quant.h"

static int64_t at_least_1(int64_t n)
{
    return n < 1 ? 1 : n;
}

void zc_quant_map(const zc_tensor *x, const zc_tensor *scale, int64_t axis, int64_t block,
                  struct zc_quant_params *p)
{
    p->axis = p->inner = p->blocks = 1;
    p->block = 0;
    p->by_inner = 0;
    if (block == 0 && zc_tensor_numel(scale) == 1) return;
    int at = (int)(axis < 0 ? axis + x->rank : axis);
    p->axis = at_least_1(x->dims[at]);
    p->inner = at_least_1(zc_dims_span(x->dims, at + 1, x->rank));
    p->block = block ? block : 1;
    p->blocks = at_least_1(block ? scale->dims[at] : x->dims[at]);
    p->by_inner = block != 0;
}

/* Scales and zero points that shape inference has left open must be as many as the elements look
 * for. */
static zc_status check_scales(zc_launch *l, const struct zc_quant_params *p)
{
    const zc_tensor *x = &l->in[0];
    int64_t inner = p->by_inner ? p->inner : 1;
    int64_t outer = p->by_inner && p->block ? p->total / p->axis / p->inner : 1;
    int64_t need[] = {outer, p->block ? p->blocks : 1, inner}, needed = zc_numel(3, need);
    for (int i = 1; i <= 2 && p->total; i++) {
        if (!zc_launch_has(l, i) || zc_tensor_numel(&l->in[i]) >= needed) continue;
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "too few %s for %lld elements (got %lld, need %lld)",
                       i == 1 ? "scales" : "zero points", (long long)zc_tensor_numel(x),
                       (long long)zc_tensor_numel(&l->in[i]), (long long)needed);
    }
    if (p->by_inner && (p->blocks - 1) * p->block >= p->axis && p->total)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "more blocks than the axis has (got %lld of %lld)", (long long)p->blocks,
                       (long long)p->block);
    if (p->by_inner && p->total && p->blocks < (p->axis + p->block - 1) / p->block)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "too few blocks along the axis (got %lld of %lld)", (long long)p->blocks,
                       (long long)p->block);
    return ZC_OK;
}

static bool aligned(const zc_tensor *t)
{
    return (uintptr_t)t->data % (zc_dtype_bits(t->dtype) / 2) == 0;
}

zc_status zc_launch_quant(zc_launch *l)
{
    bool down = l->info == zc_op_get(ZC_OP_QuantizeLinear);
    int64_t axis = down ? ZC_ATTRS(l, QuantizeLinear)->axis : ZC_ATTRS(l, DequantizeLinear)->axis;
    int64_t block =
        down ? ZC_ATTRS(l, QuantizeLinear)->block_size : ZC_ATTRS(l, DequantizeLinear)->block_size;
    struct zc_quant_params p = {.x = l->in[0].data,
                                .scale = l->in[1].data,
                                .zero = zc_launch_in(l, 2),
                                .y = l->out[0].data,
                                .total = zc_tensor_numel(&l->in[0])};
    zc_quant_map(&l->in[0], &l->in[1], axis, block, &p);
    ZC_TRY(check_scales(l, &p));
    p.aligned = aligned(&l->in[0]) && aligned(&l->out[0]);
    zc_dim3 grid = {zc_launch_blocks((p.total + 3) / 4, 256, 32 * (int64_t)l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, 256, 0, &p, sizeof p);
}
