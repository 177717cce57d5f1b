#include "passes/quantised.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "op/half.h"

bool zc_is_bytes(const zc_graph *g, zc_vid v)
{
    const zc_dtype t = zc_val(g, v)->type.dtype;
    return t == ZC_U8 || t == ZC_I8;
}

static bool is_real(zc_dtype t)
{
    return t == ZC_F32 || t == ZC_F16 || t == ZC_BF16;
}

static bool has_one(const zc_type *t)
{
    return t->rank == 0 || (t->rank == 1 && zc_dim_is(t->dims[0], 1));
}

const zc_tensor *zc_known(const zc_graph *g, zc_vid v)
{
    const zc_tensor *t = v ? zc_val(g, v)->data : NULL;
    return t && t->data ? t : NULL;
}

/* May integers stand for what is divided by, or multiplied with, the scale? Scales of 16 bits have
 * to be known, and so that no byte is beyond the floats' range. */
static bool is_countable(const zc_graph *g, zc_vid scale, zc_vid real)
{
    const zc_dtype counts = zc_val(g, scale)->type.dtype, made = zc_val(g, real)->type.dtype;
    const zc_tensor *t = zc_known(g, scale);
    const double most = made == ZC_F16 ? ZC_F16_MAX : (double)FLT_MAX;
    if (!is_real(counts) || !is_real(made)) return false;
    if (counts == ZC_F32 && made == ZC_F32) return true;
    for (int64_t i = 0; t && i < zc_tensor_numel(t); i++)
        if (!(255 * fabs(zc_scale_at(t, i)) <= most)) return false;
    return t != NULL;
}

bool zc_dequantised(const zc_graph *g, zc_vid v, zc_quantised *out)
{
    zc_nid n = zc_producer(g, v);
    const zc_node *node = n ? zc_node_at(g, n) : NULL;
    if (!node || node->op != ZC_OP_DequantizeLinear) return false;
    const zc_attrs_DequantizeLinear *a = node->attrs;
    const zc_type *scale = &zc_val(g, node->in[ZC_IN_DequantizeLinear_scale])->type;
    const int rank = zc_val(g, v)->type.rank;
    *out = (zc_quantised){.by = n,
                          .x = node->in[ZC_IN_DequantizeLinear_x],
                          .scale = node->in[ZC_IN_DequantizeLinear_scale],
                          .zero = zc_node_in(node, ZC_IN_DequantizeLinear_zero),
                          .axis = -1};
    if (!has_one(scale)) out->axis = a->axis < 0 ? a->axis + rank : a->axis;
    return a->block_size == 0 && is_countable(g, out->scale, v);
}

bool zc_is_quantised(const zc_graph *g, const zc_node *n)
{
    if (n->op != ZC_OP_QuantizeLinear) return false;
    const zc_attrs_QuantizeLinear *a = n->attrs;
    const zc_type *scale = &zc_val(g, n->in[ZC_IN_QuantizeLinear_scale])->type;
    return a->block_size == 0 && has_one(scale) &&
           (!a->precision || is_real((zc_dtype)a->precision)) &&
           is_countable(g, n->in[1], n->in[0]) && zc_is_bytes(g, n->out[0]);
}

zc_vid zc_as_f32(zc_graph *g, zc_vid v)
{
    const zc_tensor *t = zc_known(g, v);
    if (!t || t->dtype == ZC_F32) return v;
    const int64_t n = zc_tensor_numel(t);
    zc_tensor wide = *t;
    float *y = zc_calloc((size_t)(n ? n : 1), sizeof *y);
    if (!y) return 0;
    for (int64_t i = 0; i < n; i++) y[i] = (float)zc_load_f64(t->dtype, t->data, i);
    wide.dtype = ZC_F32;
    wide.data = y;
    return zc_graph_const(g, zc_val(g, v)->name, &wide, true);
}

bool zc_is_finite(const zc_tensor *t)
{
    const float *x = t->data;
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

bool zc_only_chooses(const zc_graph *g, const zc_node *n)
{
    const bool pool =
        n->op == ZC_OP_MaxPool && !zc_node_out(n, 1) && zc_val(g, n->in[0])->type.rank == 4;
    return pool || n->op == ZC_OP_Slice || zc_only_moves(n->op);
}

zc_vid zc_chosen_from(const zc_graph *g, zc_vid v)
{
    zc_nid n;
    while ((n = zc_producer(g, v)) && zc_only_chooses(g, zc_node_at(g, n)))
        v = zc_node_at(g, n)->in[0];
    return v;
}

double zc_scale_at(const zc_tensor *t, int64_t i)
{
    return zc_load_f64(t->dtype, t->data, zc_tensor_numel(t) == 1 ? 0 : i);
}

bool zc_count_uses(const zc_graph *g, zc_use_counts *out)
{
    *out = (zc_use_counts){.of = zc_graph_uses(g), .values = g->values.len};
    return out->of != NULL;
}

bool zc_used_once(const zc_use_counts *uses, zc_vid v)
{
    return v < uses->values && uses->of[v] == 1;
}

void zc_drop(zc_graph *g, const zc_use_counts *uses, zc_nid n)
{
    if (n && zc_used_once(uses, zc_node_at(g, n)->out[0])) zc_graph_remove(g, n);
}

static bool is_plain_gemm(const zc_node *n, zc_linear *l)
{
    const zc_attrs_Gemm *a = n->attrs;
    l->bias = zc_node_in(n, ZC_IN_Gemm_c);
    l->turned = a->transB != 0;
    return !a->transA && a->alpha == 1 && (!l->bias || a->beta == 1);
}

static bool is_plain_linear(const zc_node *n, zc_linear *l)
{
    const zc_attrs_Linear *a = n->attrs;
    l->bias = zc_node_in(n, ZC_IN_Linear_bias);
    l->turned = a->transB != 0;
    return a->alpha == 1;
}

static bool is_plain_product(const zc_graph *g, const zc_node *n, zc_linear *l)
{
    bool plain = n->op == ZC_OP_MatMul || (n->op == ZC_OP_Gemm && is_plain_gemm(n, l)) ||
                 (n->op == ZC_OP_Linear && is_plain_linear(n, l));
    return plain && (!l->bias || is_real(zc_val(g, l->bias)->type.dtype));
}

bool zc_linear_of(const zc_graph *g, const zc_node *n, zc_linear *l)
{
    *l = (zc_linear){0};
    if (!is_plain_product(g, n, l)) return false;
    if (zc_op_epilogue(zc_op_get(n->op), n->attrs)) return false;
    if (!zc_dequantised(g, n->in[0], &l->a) || !zc_dequantised(g, n->in[1], &l->b)) return false;
    const int rank = zc_val(g, l->b.x)->type.rank;
    const int64_t column = l->turned ? 0 : 1;
    return l->a.axis < 0 && zc_val(g, l->a.x)->type.rank >= 1 && rank >= 2 &&
           (l->b.axis < 0 || (rank == 2 && l->b.axis == column)) && zc_known(g, l->a.scale) &&
           zc_known(g, l->b.scale);
}

zc_vid zc_turned(zc_graph *g, zc_vid v)
{
    const zc_tensor *t = zc_val(g, v)->data;
    const zc_type type = {
        .dtype = t->dtype, .rank = 2, .dims = {zc_dim_const(t->dims[1]), zc_dim_const(t->dims[0])}};
    return zc_transposed_const(g, v, t->dims[0], t->dims[1], &type);
}
