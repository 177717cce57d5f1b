/* ONNX's Attention, and which attention operation is which. */
#include <math.h>

#include "kernels/attention_form.h"
#include "kernels/gen.h"

/* ---- the specialisation ---- */

/* What the four operations have in common, read off each. */
typedef struct shape {
    int64_t d, dv;     /* head sizes; -1: not certain */
    int lengths;       /* input: which keys count; -1: none */
    int length_kind;   /* Z_LENGTHS */
    int ids;           /* input: positions; -1: none */
    int bias[2], mask; /* inputs: biases, a mask to make a bias of; -1: none */
    bool rows, project, softcap;
    int scores; /* mode; -1: not wanted */
} shape;

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

static shape onnx_shape(const zc_gen *g)
{
    const zc_attrs_Attention *a = ZC_ATTRS(g, Attention);
    bool wide = zc_gen_in(g, 0)->rank == 4;
    shape s = {.d = wide ? last_dim(g, 0) : head_size(last_dim(g, 0), a->q_num_heads),
               .dv = wide ? last_dim(g, 2) : head_size(last_dim(g, 2), a->kv_num_heads),
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

static shape ms_shape(const zc_gen *g)
{
    const zc_attrs_MsAttention *a = ZC_ATTRS(g, MsAttention);
    int64_t cols = last_dim(g, 1), hidden = a->qkv_hidden_sizes.n ? a->qkv_hidden_sizes.v[0]
                                            : cols < 0            ? -1
                                                                  : cols / 3;
    shape s = {.d = head_size(hidden, a->num_heads),
               .dv = cols < 0 ? -1 : head_size(cols - 2 * hidden, a->num_heads),
               .lengths = -1,
               .ids = -1,
               .bias = {-1, 5},
               .mask = 3,
               .rows = zc_gen_in(g, 4) || zc_gen_out(g, 1),
               .project = true,
               .scores = -1};
    return s;
}

static shape mha_shape(const zc_gen *g)
{
    int64_t heads = ZC_ATTRS(g, MsMultiHeadAttention)->num_heads;
    const zc_pvalue *q = zc_gen_in(g, 0), *k = zc_gen_in(g, 1);
    shape s = {
        .lengths = -1, .ids = -1, .bias = {-1, 5}, .mask = 4, .scores = zc_gen_out(g, 3) ? 2 : -1};
    s.d = q->rank == 5 ? last_dim(g, 0) : head_size(last_dim(g, 0), heads);
    s.dv = !k || k->rank == 5 ? s.d
           : k->rank == 4     ? last_dim(g, 2)
                              : head_size(last_dim(g, 2), heads);
    s.rows = zc_gen_in(g, 3) || zc_gen_in(g, 6) || zc_gen_out(g, 1) || zc_gen_out(g, 2);
    return s;
}

static shape gqa_shape(const zc_gen *g)
{
    const zc_attrs_MsGroupQueryAttention *a = ZC_ATTRS(g, MsGroupQueryAttention);
    int64_t heads = zc_gen_in(g, 1) ? a->num_heads : a->num_heads + 2 * a->kv_num_heads;
    shape s = {.d = head_size(last_dim(g, 0), heads),
               .lengths = 5,
               .length_kind = 2,
               .ids = 9,
               .bias = {-1, 10},
               .mask = -1,
               .rows = true,
               .softcap = a->softcap > 0,
               .scores = a->qk_output && zc_gen_out(g, 3) ? (a->qk_output == 1 ? 2 : 3) : -1};
    s.dv = s.d;
    return s;
}

static shape packed_shape(const zc_gen *g)
{
    const zc_attrs_PackedAttention *a = ZC_ATTRS(g, PackedAttention);
    shape s = {.d = head_size(last_dim(g, 0), a->num_heads + 2 * a->kv_num_heads),
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

static shape shape_of(const zc_gen *g)
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

static bool is_float(zc_dtype t)
{
    return zc_dtype_is_float(t) && zc_dtype_bits(t) >= 16;
}

/* All operands have types and ranks that the template handles; else declined. */
static zc_status check(zc_gen *g, const shape *s)
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

static void put_biases(zc_gen *g, const shape *s)
{
    static const char *const names[] = {"BIAS0", "BIAS1"};
    for (int i = 0; i < 2; i++)
        if (s->bias[i] >= 0 && zc_gen_in(g, s->bias[i]))
            zc_gen_type(g, names[i], zc_gen_in_type(g, s->bias[i]));
    if (s->mask < 0 || !zc_gen_in(g, s->mask)) return;
    zc_gen_type(g, "MASK", zc_gen_in_type(g, s->mask));
    zc_gen_type(g, "BIAS0", ZC_F32);
}

zc_status zc_gen_attention(zc_gen *g)
{
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    shape s = shape_of(g);
    bool lengths = s.lengths >= 0 && zc_gen_in(g, s.lengths),
         ids = s.ids >= 0 && zc_gen_in(g, s.ids);
    bool onnx = g->step->op == ZC_OP_Attention;
    zc_dtype t = zc_gen_in_type(g, 0), v = onnx ? zc_gen_in_type(g, 2) : t;
    ZC_TRY(check(g, &s));
    if (g->declined[0]) return ZC_OK;
    if (!is_float(v)) return zc_gen_decline(g, "values of type %s", zc_dtype_name(v));
    zc_gen_type(g, "T", t);
    zc_gen_type(g, "V", v);
    zc_gen_type(g, "REAL", t == ZC_F64 || v == ZC_F64 ? ZC_F64 : ZC_F32);
    zc_gen_define(g, "D", "%lld", (long long)s.d);
    zc_gen_define(g, "DV", "%lld", (long long)s.dv);
    zc_gen_define(g, "LENGTHS", "%d", lengths ? s.length_kind : 0);
    zc_gen_type(g, "LENGTH_TYPE", lengths ? zc_gen_in_type(g, s.lengths) : ZC_I64);
    zc_gen_type(g, "ID_TYPE", ids ? zc_gen_in_type(g, s.ids) : ZC_I64);
    put_biases(g, &s);
    zc_gen_define(g, "SOFTCAP", "%d", s.softcap);
    zc_gen_define(g, "SCORES", "%d", s.scores);
    zc_gen_define(g, "ROWS", "%d", s.rows);
    zc_gen_define(g, "PROJECT", "%d", s.project);
    zc_gen_define(g, "TILE", "%d", zc_attention_tile(t, v, s.d, s.dv, s.scores >= 0));
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

enum { IN_Q, IN_K, IN_V, IN_MASK, IN_PAST_K, IN_PAST_V, IN_LENGTHS };

/* Sizes and views of q, k, v as they come in; returns the new keys. */
static int64_t onnx_views(zc_attention *a)
{
    const zc_attrs_Attention *at = ZC_ATTRS(a->l, Attention);
    const zc_tensor *q = &a->l->in[IN_Q], *k = &a->l->in[IN_K], *v = &a->l->in[IN_V];
    bool wide = q->rank == 4;
    a->p.batch = q->dims[0];
    a->p.heads = wide ? q->dims[1] : at->q_num_heads;
    a->p.kv_heads = wide ? k->dims[1] : at->kv_num_heads;
    a->p.len.nq = q->dims[wide ? 2 : 1];
    int64_t fresh = k->dims[wide ? 2 : 1];
    a->d = wide ? q->dims[3] : q->dims[2] / a->p.heads;
    a->dv = wide ? v->dims[3] : v->dims[2] / a->p.kv_heads;
    struct zc_attention_view (*view)(const void *, int64_t, int64_t, int64_t) =
        wide ? zc_attention_4d : zc_attention_3d;
    a->p.q = view(q->data, a->p.heads, a->p.len.nq, a->d);
    a->p.k = view(k->data, a->p.kv_heads, fresh, a->d);
    a->p.v = view(v->data, a->p.kv_heads, fresh, a->dv);
    a->p.y = view(zc_attention_wanted(a->l, 0), a->p.heads, a->p.len.nq, a->dv);
    return fresh;
}

/* All that shape inference may have left open, so that no view leaves its tensor. */
static zc_status onnx_check(zc_attention *a, int64_t fresh, int64_t old)
{
    zc_launch *l = a->l;
    int64_t kv = a->p.batch * a->p.kv_heads;
    if (a->p.kv_heads < 1 || a->p.heads % a->p.kv_heads)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "query heads are not a multiple of key heads (got %lld and %lld)",
                       a->p.heads, a->p.kv_heads);
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_Q]),
                             a->p.batch * a->p.heads * a->p.len.nq * a->d, "size of the query"));
    ZC_TRY(
        zc_attention_same(a, zc_tensor_numel(&l->in[IN_K]), kv * fresh * a->d, "size of the key"));
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_V]), kv * fresh * a->dv,
                             "size of the value"));
    if (zc_launch_has(l, IN_LENGTHS))
        ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_LENGTHS]), a->p.batch,
                                 "nonpad_kv_seqlen length"));
    if (!zc_launch_has(l, IN_PAST_K)) return ZC_OK;
    ZC_TRY(zc_attention_same(a, zc_tensor_numel(&l->in[IN_PAST_K]), kv * old * a->d,
                             "size of past_key"));
    return zc_attention_same(a, zc_tensor_numel(&l->in[IN_PAST_V]), kv * old * a->dv,
                             "size of past_value");
}

static zc_status onnx_attention(zc_launch *l)
{
    const zc_attrs_Attention *at = ZC_ATTRS(l, Attention);
    zc_attention a = {.l = l, .type = l->in[IN_Q].dtype, .v_type = l->in[IN_V].dtype};
    int64_t fresh = onnx_views(&a),
            old = zc_launch_has(l, IN_PAST_K) ? l->in[IN_PAST_K].dims[2] : 0;
    ZC_TRY(onnx_check(&a, fresh, old));
    a.p.causal = at->is_causal != 0;
    a.p.softcap = at->softcap;
    a.p.mask_value = at->mask_value;
    a.p.scale = ZC_ATTR_GIVEN(Attention, at, scale) ? at->scale : 1 / sqrt((double)a.d);
    a.p.scores = zc_attention_wanted(l, 3);
    a.p.len.fault = l->fault;
    a.p.len.step = l->step_id;
    a.p.len.past = old;
    a.p.len.nk = old + fresh;
    a.p.len.lengths = zc_launch_in(l, IN_LENGTHS);
    ZC_TRY(zc_attention_append(&a, false, zc_launch_in(l, IN_PAST_K), old,
                               zc_attention_wanted(l, 1), fresh, &a.p.k));
    ZC_TRY(zc_attention_append(&a, true, zc_launch_in(l, IN_PAST_V), old, zc_attention_wanted(l, 2),
                               fresh, &a.p.v));
    if (zc_launch_has(l, IN_MASK)) ZC_TRY(zc_attention_bias(&a, 0, &l->in[IN_MASK]));
    return zc_attention_run(&a);
}

zc_status zc_launch_attention(zc_launch *l)
{
    if (l->info == zc_op_get(ZC_OP_MsAttention)) return zc_attention_ms(l);
    if (l->info == zc_op_get(ZC_OP_MsMultiHeadAttention)) return zc_attention_mha(l);
    if (l->info == zc_op_get(ZC_OP_MsGroupQueryAttention)) return zc_attention_gqa(l);
    if (l->info == zc_op_get(ZC_OP_PackedAttention)) return zc_attention_packed(l);
    return onnx_attention(l);
}
