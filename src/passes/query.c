#include "passes/query.h"

#include "op/activation.h"

bool zc_same_shape(const zc_type *a, const zc_type *b)
{
    if (a->rank < 0 || a->rank != b->rank) return false;
    for (int i = 0; i < a->rank; i++)
        if (!zc_dim_eq(a->dims[i], b->dims[i])) return false;
    return true;
}

bool zc_same_type(const zc_type *a, const zc_type *b)
{
    return a->dtype == b->dtype && zc_same_shape(a, b);
}

bool zc_is_splat(const zc_graph *g, zc_vid v, double x)
{
    double all;
    return zc_graph_splat(g, v, &all) && all == x;
}

zc_vid zc_transposed_const(zc_graph *g, zc_vid v, int64_t rows, int64_t columns,
                           const zc_type *type)
{
    const zc_value *from = zc_val(g, v);
    const size_t size = zc_dtype_bits(type->dtype) / 8;
    const uint8_t *x = from->data->data;
    zc_tensor t = {.dtype = type->dtype, .rank = type->rank};
    if (!x) return zc_graph_hollow(g, from->name, type);
    int64_t n = zc_tensor_numel(from->data);
    uint8_t *y = zc_calloc((size_t)n, size);
    if (!y) return 0;
    for (int64_t i = 0; i < n; i++) {
        int64_t line = i / columns, column = i - line * columns, matrix = line / rows;
        int64_t to = (matrix * columns + column) * rows + line - matrix * rows;
        memcpy(y + (size_t)to * size, x + (size_t)i * size, size);
    }
    for (int d = 0; d < type->rank; d++) t.dims[d] = type->dims[d].k;
    t.data = y;
    return zc_graph_const(g, from->name, &t, true);
}

int64_t zc_certain_rows(const zc_type *x)
{
    int64_t rows = 1;
    for (int d = 0; d + 1 < x->rank; d++)
        if (!zc_dim_is_const(x->dims[d]) || !zc_mul_i64(rows, x->dims[d].k, &rows)) return 0;
    return rows;
}

zc_vid zc_linear_matrix(zc_graph *g, zc_nid linear, bool along)
{
    const zc_node *n = zc_node_at(g, linear);
    zc_vid w = n->in[ZC_IN_Linear_w];
    if ((((const zc_attrs_Linear *)n->attrs)->transB != 0) == along) return w;
    zc_type type = zc_val(g, w)->type;
    const int64_t rows = type.dims[0].k, columns = type.dims[1].k;
    type.dims[0] = zc_dim_const(columns);
    type.dims[1] = zc_dim_const(rows);
    return zc_transposed_const(g, w, rows, columns, &type);
}

bool zc_activation_of(zc_graph *g, zc_nid activation, const char **name, zc_floats *params)
{
    const zc_node *n = zc_node_at(g, activation);
    float v[ZC_ACTIVATION_PARAMS];
    *name = zc_op_get(n->op)->name;
    *params = (zc_floats){.n = zc_activation_params(n->op, n->attrs, v)};
    if (params->n) params->v = zc_arena_dup(&g->arena, v, (size_t)params->n, sizeof *v);
    return !params->n || params->v;
}

void zc_set_packed_alpha(zc_graph *g, zc_nid n, float alpha)
{
    if (alpha != 1) ZC_NODE_SET(g, PackedLinear, n, alpha, alpha);
}

zc_nid zc_producer(const zc_graph *g, zc_vid v)
{
    return v && zc_val(g, v)->kind == ZC_VALUE_NODE ? zc_val(g, v)->producer : 0;
}

bool zc_only_moves(zc_op op)
{
    return (zc_op_get(op)->flags & ZC_OPF_VIEW) || op == ZC_OP_Transpose ||
           op == ZC_OP_DepthToSpace || op == ZC_OP_SpaceToDepth;
}

zc_status zc_each_node(zc_graph *g, zc_block *b, bool (*fn)(zc_graph *g, zc_nid n, void *user),
                       void *user, zc_diag *diag)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        zc_nid n = b->nodes.data[i];
        zc_node *node = zc_node_at(g, n);
        if (node->op == ZC_OP_NONE) continue;
        for (int r = 0; r < node->nregions; r++)
            ZC_TRY(zc_each_node(g, node->regions[r], fn, user, diag));
        for (int j = 0; j < node->nin; j++) node->in[j] = zc_graph_resolved(g, node->in[j]);
        if (!fn(g, n, user)) return zc_fail_nomem(diag, "rewriting", 0);
    }
    return ZC_OK;
}

static bool last_axis(const zc_graph *g, const zc_node *n, int64_t axis)
{
    int rank = zc_val(g, n->in[0])->type.rank;
    return rank > 0 && (axis == -1 || axis == rank - 1);
}

bool zc_row_norm_of(const zc_graph *g, const zc_node *n, zc_row_norm *out)
{
    bool skips =
        n->op == ZC_OP_SkipLayerNormalization || n->op == ZC_OP_SkipSimplifiedLayerNormalization;
    *out = (zc_row_norm){.a = zc_node_in(n, 0)};
    if (zc_node_out(n, 1) || zc_node_out(n, 2) || !zc_node_out(n, 0)) return false;
    if (skips) {
        out->rms = n->op == ZC_OP_SkipSimplifiedLayerNormalization;
        out->skip = zc_node_in(n, ZC_IN_SkipLayerNormalization_skip);
        out->gamma = zc_node_in(n, ZC_IN_SkipLayerNormalization_gamma);
        out->beta = out->rms ? 0 : zc_node_in(n, ZC_IN_SkipLayerNormalization_beta);
        out->bias = zc_node_in(n, out->rms ? ZC_IN_SkipSimplifiedLayerNormalization_bias
                                           : ZC_IN_SkipLayerNormalization_bias);
        out->sum = zc_node_out(n, 3);
        out->epsilon = out->rms
                           ? ((const zc_attrs_SkipSimplifiedLayerNormalization *)n->attrs)->epsilon
                           : ((const zc_attrs_SkipLayerNormalization *)n->attrs)->epsilon;
        return true;
    }
    out->gamma = zc_node_in(n, ZC_IN_LayerNormalization_scale);
    if (n->op == ZC_OP_LayerNormalization) {
        const zc_attrs_LayerNormalization *a = n->attrs;
        out->beta = zc_node_in(n, ZC_IN_LayerNormalization_bias);
        out->epsilon = a->epsilon;
        return last_axis(g, n, a->axis);
    }
    if (n->op != ZC_OP_RMSNormalization) return false;
    const zc_attrs_RMSNormalization *a = n->attrs;
    out->rms = true;
    out->epsilon = a->epsilon;
    return last_axis(g, n, a->axis);
}
