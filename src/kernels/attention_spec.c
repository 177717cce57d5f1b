/* Which attention operation is which when its kernel is chosen, and the specialisation that all of
 * attention's families share. */
#include "kernels/attention_form.h"

static int64_t last_dim(const zc_gen *g, int i)
{
    const zc_pvalue *v = zc_gen_in(g, i);
    return v && v->rank > 0 ? zc_gen_const_dim(v, v->rank - 1) : -1;
}

/* The head size in a dimension of that many heads. */
static int64_t head_size(int64_t dim, int64_t heads)
{
    return dim < 0 || heads < 1 ? -1 : dim / heads;
}

static zc_attention_shape onnx_shape(const zc_gen *g)
{
    const zc_attrs_Attention *a = ZC_ATTRS(g, Attention);
    bool wide = zc_gen_in(g, 0)->rank == 4;
    zc_attention_shape s = {.d = wide ? last_dim(g, 0) : head_size(last_dim(g, 0), a->q_num_heads),
                            .dv =
                                wide ? last_dim(g, 2) : head_size(last_dim(g, 2), a->kv_num_heads),
                            .heads = wide ? zc_gen_const_dim(zc_gen_in(g, 0), 1) : a->q_num_heads,
                            .lengths = 6,
                            .length_kind = 1,
                            .ids = -1,
                            .bias = {3, -1},
                            .mask = -1,
                            .rows = zc_gen_in(g, 4) || zc_gen_out(g, 1) || zc_gen_out(g, 2),
                            .softcap = a->softcap > 0,
                            .scores = zc_gen_out(g, 3) ? (int)a->qk_matmul_output_mode : -1};
    return s;
}

static zc_attention_shape ms_shape(const zc_gen *g)
{
    const zc_attrs_MsAttention *a = ZC_ATTRS(g, MsAttention);
    int64_t cols = last_dim(g, 1), hidden = a->qkv_hidden_sizes.n ? a->qkv_hidden_sizes.v[0]
                                            : cols < 0            ? -1
                                                                  : cols / 3;
    zc_attention_shape s = {.d = head_size(hidden, a->num_heads),
                            .dv = cols < 0 ? -1 : head_size(cols - 2 * hidden, a->num_heads),
                            .heads = a->num_heads,
                            .lengths = -1,
                            .ids = -1,
                            .bias = {-1, 5},
                            .mask = 3,
                            .rows = zc_gen_in(g, 4) || zc_gen_out(g, 1),
                            .project = true,
                            .scores = -1};
    return s;
}

static zc_attention_shape mha_shape(const zc_gen *g)
{
    int64_t heads = ZC_ATTRS(g, MsMultiHeadAttention)->num_heads;
    const zc_pvalue *q = zc_gen_in(g, 0), *k = zc_gen_in(g, 1);
    zc_attention_shape s = {.heads = heads, .lengths = -1, .ids = -1, .bias = {-1, 5}, .mask = 4};
    s.scores = zc_gen_out(g, 3) ? 2 : -1;
    s.d = q->rank == 5 ? last_dim(g, 0) : head_size(last_dim(g, 0), heads);
    s.dv = !k || k->rank == 5 ? s.d
           : k->rank == 4     ? last_dim(g, 2)
                              : head_size(last_dim(g, 2), heads);
    s.rows = zc_gen_in(g, 3) || zc_gen_in(g, 6) || zc_gen_out(g, 1) || zc_gen_out(g, 2);
    return s;
}

static zc_attention_shape gqa_shape(const zc_gen *g)
{
    const zc_attrs_MsGroupQueryAttention *a = ZC_ATTRS(g, MsGroupQueryAttention);
    int64_t heads = zc_gen_in(g, 1) ? a->num_heads : a->num_heads + 2 * a->kv_num_heads;
    zc_attention_shape s = {.d = head_size(last_dim(g, 0), heads),
                            .heads = a->num_heads,
                            .lengths = 5,
                            .length_kind = 2,
                            .ids = 9,
                            .bias = {-1, 10},
                            .mask = -1,
                            .rows = true,
                            .softcap = a->softcap > 0,
                            .scores = a->qk_output && zc_gen_out(g, 3) ? (a->qk_output == 1 ? 2 : 3)
                                                                       : -1};
    s.dv = s.d;
    return s;
}

static zc_attention_shape packed_shape(const zc_gen *g)
{
    const zc_attrs_PackedAttention *a = ZC_ATTRS(g, PackedAttention);
    zc_attention_shape s = {.d = head_size(last_dim(g, 0), a->num_heads + 2 * a->kv_num_heads),
                            .heads = a->num_heads,
                            .lengths = 4,
                            .length_kind = 3,
                            .ids = -1,
                            .bias = {1, -1},
                            .mask = -1,
                            .rows = zc_gen_in(g, 2),
                            .softcap = a->softcap > 0,
                            .scores = -1};
    s.dv = s.d;
    return s;
}

static zc_attention_shape shape_by_op(const zc_gen *g)
{
    switch ((int)g->step->op) {
    case ZC_OP_MsAttention:
        return ms_shape(g);
    case ZC_OP_MsMultiHeadAttention:
        return mha_shape(g);
    case ZC_OP_MsGroupQueryAttention:
        return gqa_shape(g);
    case ZC_OP_PackedAttention:
        return packed_shape(g);
    default:
        return onnx_shape(g);
    }
}

static zc_attention_shape shape_of(const zc_gen *g)
{
    zc_attention_shape s = shape_by_op(g);
    const zc_pvalue *q = zc_gen_in(g, 0);
    s.queries = q->dims[q->rank == 4 ? 2 : 1];
    s.type = q->dtype;
    s.v_type = g->step->op == ZC_OP_Attention ? zc_gen_in_type(g, 2) : q->dtype;
    return s;
}

static bool is_float(zc_dtype t)
{
    return zc_dtype_is_float(t) && zc_dtype_bits(t) >= 16;
}

/* All operands have types and ranks that the template handles; else declined. */
static zc_status check(zc_gen *g, const zc_attention_shape *s)
{
    for (uint32_t i = 0; i < g->step->nin; i++) {
        const zc_pvalue *v = zc_gen_in(g, (int)i);
        if (!v) continue;
        if (v->rank < 0) return zc_gen_decline(g, "rank known only when run");
        if (!zc_gen_plain_type(v->dtype))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(v->dtype));
    }
    if (!is_float(zc_gen_in_type(g, 0)))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(zc_gen_in_type(g, 0)));
    if (s->d < 0 || s->dv < 0) return zc_gen_decline(g, "head size known only when run");
    if (s->d < 1 || s->dv < 1 || s->d > ZC_ATTENTION_SIZE_MAX || s->dv > ZC_ATTENTION_SIZE_MAX)
        return zc_gen_decline(g, "head size %lld or %lld is not in [1, %d]", (long long)s->d,
                              (long long)s->dv, ZC_ATTENTION_SIZE_MAX);
    return ZC_OK;
}

static bool is_shared(const zc_pvalue *bias)
{
    return bias->rank < 2 ||
           (zc_dim_is_const(bias->dims[bias->rank - 2]) && bias->dims[bias->rank - 2].k == 1);
}

static void put_biases(zc_gen *g, const zc_attention_shape *s)
{
    static const char *const names[][2] = {{"BIAS0", "BIAS0_SHARED"}, {"BIAS1", "BIAS1_SHARED"}};
    for (int i = 0; i < 2; i++) {
        const zc_pvalue *bias = s->bias[i] < 0 ? NULL : zc_gen_in(g, s->bias[i]);
        if (!bias) continue;
        zc_gen_type(g, names[i][0], bias->dtype);
        zc_gen_define(g, names[i][1], "%d", is_shared(bias));
    }
    if (s->mask < 0 || !zc_gen_in(g, s->mask)) return;
    zc_gen_type(g, "MASK", zc_gen_in_type(g, s->mask));
    zc_gen_type(g, "BIAS0", ZC_F32);
    zc_gen_define(g, "BIAS0_SHARED", "%d", zc_gen_in(g, s->mask)->rank != 3);
}

zc_status zc_gen_attention_spec(zc_gen *g, zc_attention_shape *s)
{
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    *s = shape_of(g);
    bool lengths = s->lengths >= 0 && zc_gen_in(g, s->lengths),
         ids = s->ids >= 0 && zc_gen_in(g, s->ids);
    ZC_TRY(check(g, s));
    if (g->declined[0]) return ZC_OK;
    if (!is_float(s->v_type))
        return zc_gen_decline(g, "values of type %s", zc_dtype_name(s->v_type));
    zc_gen_type(g, "T", s->type);
    zc_gen_type(g, "V", s->v_type);
    zc_gen_type(g, "REAL", s->type == ZC_F64 || s->v_type == ZC_F64 ? ZC_F64 : ZC_F32);
    zc_gen_define(g, "D", "%lld", (long long)s->d);
    zc_gen_define(g, "DV", "%lld", (long long)s->dv);
    zc_gen_define(g, "LENGTHS", "%d", lengths ? s->length_kind : 0);
    zc_gen_type(g, "LENGTH_TYPE", lengths ? zc_gen_in_type(g, s->lengths) : ZC_I64);
    zc_gen_type(g, "ID_TYPE", ids ? zc_gen_in_type(g, s->ids) : ZC_I64);
    put_biases(g, s);
    zc_gen_define(g, "SOFTCAP", "%d", s->softcap);
    zc_gen_define(g, "SCORES", "%d", s->scores);
    zc_gen_define(g, "ROWS", "%d", s->rows);
    zc_gen_define(g, "PROJECT", "%d", s->project);
    return ZC_OK;
}
