#include "abi/row_norm.h"

#include <string.h>

#include "cuda/groups.h"
#include "cuda/rowplan.h"

enum { STATE = 16, ROW_SMEM = 32 * STATE };

/* Input i seen from x's elements; rows begin at axis `axis`. */
static struct zc_row_operand operand(const zc_launch *l, int i, int axis)
{
    const zc_tensor *x = &l->in[0], *t = &l->in[i];
    struct zc_row_operand o = {.mode = ZC_ROW_ABSENT};
    bool column = true, same = true;
    int64_t stride = 1;
    if (i == 0 || !zc_launch_has(l, i)) return o;
    o.data = t->data;
    for (int d = x->rank - 1; d >= 0; d--) {
        int own = d - (x->rank - t->rank);
        int64_t dim = own >= 0 ? t->dims[own] : 1;
        o.strides[d] = dim == 1 ? 0 : stride;
        stride *= dim;
        same = same && dim == x->dims[d];
        column = column && dim == (d < axis ? 1 : x->dims[d]);
    }
    o.mode = column ? ZC_ROW_COLUMN : same ? ZC_ROW_SAME : ZC_ROW_STRIDED;
    return o;
}

static void *wanted(const zc_launch *l, int i)
{
    return i > 0 && i < l->nout && l->out[i].dtype != ZC_NONE ? l->out[i].data : NULL;
}

static bool aligned(const void *const *p, int n)
{
    uintptr_t bits = 0;
    for (int i = 0; i < n; i++) bits |= (uintptr_t)p[i];
    return bits % 16 == 0;
}

/* Takes several elements at once where everything is aligned and nothing is strided. The types are
 * those of what is normalised and of the scale. */
static zc_status issue(zc_launch *l, struct zc_row_norm_params *p, zc_dtype x, zc_dtype scale)
{
    const struct zc_row_operand *const operands[] = {&p->skip, &p->skip_bias, &p->scale, &p->bias};
    const void *pointers[] = {
        p->x,          p->y,         p->sum,           p->skip.data,     p->skip_bias.data,
        p->scale.data, p->bias.data, p->table[0].data, p->table[1].data, p->table[2].data};
    unsigned a = zc_dtype_bits(x) / 8, b = zc_dtype_bits(scale) / 8;
    bool wide = p->N % (16 / (a > b ? a : b)) == 0 && aligned(pointers, (int)ZC_COUNTOF(pointers));
    for (size_t i = 0; i < ZC_COUNTOF(operands); i++)
        if (operands[i]->mode == ZC_ROW_STRIDED) wide = false;
    int entry = (zc_row_lanes(p->N) == 32 ? 0 : 2) + (wide ? 0 : 1);
    return zc_launch_kernel(l, entry, zc_row_grid(p->rows, p->N), zc_row_block(p->N), ROW_SMEM, p,
                            sizeof *p);
}

static void set_table(const zc_launch *l, struct zc_row_table *t, int table, int ids)
{
    if (!zc_launch_has(l, table)) return;
    t->data = l->in[table].data;
    t->entries = l->in[table].dims[0];
    if (!zc_launch_has(l, ids)) return;
    t->ids = l->in[ids].data;
    t->count = zc_tensor_numel(&l->in[ids]);
}

static zc_status check_ids(zc_launch *l, const struct zc_row_norm_params *p)
{
    for (int t = 0; t < 3; t++) {
        int64_t n = p->table[t].count;
        if (!p->table[t].ids || p->rows == 0 || n == p->rows || n == p->length || n == 1) continue;
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "wrong number of ids (got %lld, need %lld or %lld)", (long long)n,
                       (long long)p->rows, (long long)p->length);
    }
    if (p->mask && zc_tensor_numel(&l->in[7]) != p->rows)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject, "mask length (got %lld, need %lld)",
                       (long long)zc_tensor_numel(&l->in[7]), (long long)p->rows);
    return ZC_OK;
}

static zc_status embeddings(zc_launch *l, struct zc_row_norm_params *p)
{
    const zc_tensor *ids = &l->in[0];
    p->N = l->in[2].dims[1];
    p->rows = zc_tensor_numel(ids);
    p->length = ids->dims[1];
    p->eps = ZC_ATTRS(l, EmbedLayerNormalization)->epsilon;
    set_table(l, &p->table[0], 2, 0);
    set_table(l, &p->table[1], 3, 8);
    if (zc_launch_has(l, 1)) set_table(l, &p->table[2], 4, 1);
    p->scale = (struct zc_row_operand){.data = l->in[5].data, .mode = ZC_ROW_COLUMN};
    p->bias = (struct zc_row_operand){.data = l->in[6].data, .mode = ZC_ROW_COLUMN};
    p->mask = zc_launch_has(l, 7) ? l->in[7].data : NULL;
    p->counts = wanted(l, 1);
    p->sum = wanted(l, 2);
    ZC_TRY(check_ids(l, p));
    if (p->counts) {
        zc_dim3 grid = {zc_launch_blocks(ids->dims[0], 1, 0), 1, 1};
        ZC_TRY(zc_launch_kernel(l, 4, grid, 128, ROW_SMEM, p, sizeof *p));
    }
    return p->N ? issue(l, p, l->in[2].dtype, l->in[5].dtype) : ZC_OK;
}

/* Which inputs and outputs an operation's operands are; 0: it has none. */
typedef struct layout {
    int axis, skip, scale, bias, skip_bias, mean, inv, sum;
    double eps;
} layout;

static layout layout_of(const zc_launch *l, zc_op op)
{
    int rank = l->in[0].rank;
    switch (op) {
    case ZC_OP_LayerNormalization: {
        const zc_attrs_LayerNormalization *a = ZC_ATTRS(l, LayerNormalization);
        return (layout){.axis = zc_launch_axis(a->axis, rank),
                        .scale = 1,
                        .bias = 2,
                        .mean = 1,
                        .inv = 2,
                        .eps = a->epsilon};
    }
    case ZC_OP_RMSNormalization: {
        const zc_attrs_RMSNormalization *a = ZC_ATTRS(l, RMSNormalization);
        return (layout){
            .axis = zc_launch_axis(a->axis, rank), .scale = 1, .inv = 1, .eps = a->epsilon};
    }
    case ZC_OP_SkipLayerNormalization:
        return (layout){.axis = rank - 1,
                        .skip = 1,
                        .scale = 2,
                        .bias = 3,
                        .skip_bias = 4,
                        .mean = 1,
                        .inv = 2,
                        .sum = 3,
                        .eps = ZC_ATTRS(l, SkipLayerNormalization)->epsilon};
    default:
        return (layout){.axis = rank - 1,
                        .skip = 1,
                        .scale = 2,
                        .skip_bias = 3,
                        .mean = 1,
                        .inv = 2,
                        .sum = 3,
                        .eps = ZC_ATTRS(l, SkipSimplifiedLayerNormalization)->epsilon};
    }
}

zc_status zc_launch_row_norm(zc_launch *l)
{
    struct zc_row_norm_params p;
    const zc_tensor *x = &l->in[0];
    zc_op op = l->op;
    memset(&p, 0, sizeof p);
    p.fault = l->fault;
    p.step = l->step_id;
    p.y = l->out[0].dtype == ZC_NONE ? NULL : l->out[0].data;
    ZC_TRY(zc_launch_prologue(l, &p.pre));
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (op == ZC_OP_EmbedLayerNormalization) return embeddings(l, &p);
    layout at = layout_of(l, op);
    p.rows = zc_dims_span(x->dims, 0, at.axis);
    p.N = zc_dims_span(x->dims, at.axis, x->rank);
    if (p.rows <= 0 || p.N < 0) return ZC_OK;
    p.x = x->data;
    p.skip = operand(l, at.skip, at.axis);
    p.scale = operand(l, at.scale, at.axis);
    p.bias = operand(l, at.bias, at.axis);
    p.skip_bias = operand(l, at.skip_bias, at.axis);
    p.mean = wanted(l, at.mean);
    p.inv = wanted(l, at.inv);
    p.sum = wanted(l, at.sum);
    p.eps = at.eps;
    p.rank = x->rank;
    for (int d = 0; d < x->rank; d++) p.dims[d] = x->dims[d];
    return issue(l, &p, x->dtype, l->in[at.scale].dtype);
}
