/* The specialisation that all of attention's families share. */
#include "kernels/attention_form.h"

#define IN(input) zc_gen_in(g, ZC_IN_Attention_##input)

static int64_t last_dim(const zc_pvalue *v)
{
    return zc_gen_const_dim(v, v->rank - 1);
}

/* The head size in a dimension of that many heads. */
static int64_t head_size(const zc_pvalue *v, int64_t heads)
{
    int64_t dim = last_dim(v);
    return v->rank > 3 ? dim : dim < 0 || heads < 1 ? -1 : dim / heads;
}

static zc_attention_shape shape_of(const zc_gen *g)
{
    const zc_attrs_Attention *a = ZC_ATTRS(g, Attention);
    const zc_pvalue *q = IN(q), *k = IN(k), *v = IN(v);
    bool wide = q->rank == 4;
    zc_attention_shape s = {.heads = wide ? zc_gen_const_dim(q, 1) : a->q_num_heads,
                            .queries = q->dims[wide ? 2 : 1],
                            .past = IN(past_k) || IN(total),
                            .scores = zc_gen_out(g, 3) ? (int)a->qk_matmul_output_mode : -1,
                            .type = q->dtype,
                            .v_type = v ? v->dtype : q->dtype};
    s.keys = k ? k->dims[k->rank == 4 ? 2 : 1] : s.queries;
    s.d = head_size(q, k ? s.heads : s.heads + 2 * a->kv_num_heads);
    s.dv = v ? head_size(v, a->kv_num_heads) : s.d;
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
        if (!zc_kernel_type(v->dtype))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(v->dtype));
    }
    if (!is_float(s->type)) return zc_gen_decline(g, "element type %s", zc_dtype_name(s->type));
    if (!is_float(s->v_type))
        return zc_gen_decline(g, "values of type %s", zc_dtype_name(s->v_type));
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

static void put_bias(zc_gen *g, int number, zc_dtype type, bool shared, zc_attention_shape *s)
{
    static const char *const names[][2] = {{"BIAS0", "BIAS0_SHARED"}, {"BIAS1", "BIAS1_SHARED"}};
    zc_gen_type(g, names[number][0], type);
    zc_gen_define(g, names[number][1], "%d", shared);
    *(shared ? &s->kept : &s->biases) += 1;
}

static void put_biases(zc_gen *g, zc_attention_shape *s)
{
    if (IN(mask)) put_bias(g, 0, IN(mask)->dtype, is_shared(IN(mask)), s);
    if (IN(bias)) put_bias(g, 1, IN(bias)->dtype, is_shared(IN(bias)), s);
    if (!IN(hidden)) return;
    zc_gen_type(g, "MASK", IN(hidden)->dtype);
    put_bias(g, 0, ZC_F32, IN(hidden)->rank != 3, s);
}

/* Are any heads moved before they are computed with? */
static bool moves_rows(const zc_gen *g)
{
    return IN(past_k) || IN(total) || IN(cos) || IN(q_norm) || IN(k_norm) || zc_gen_out(g, 1) ||
           zc_gen_out(g, 2);
}

/* Z_LENGTHS */
static int lengths_of(const zc_gen *g)
{
    return !IN(lengths) ? 0 : IN(total) ? 2 : IN(k) ? 1 : 3;
}

zc_status zc_gen_attention_spec(zc_gen *g, zc_attention_shape *s)
{
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    *s = shape_of(g);
    ZC_TRY(check(g, s));
    if (g->declined[0]) return ZC_OK;
    zc_gen_type(g, "T", s->type);
    zc_gen_type(g, "V", s->v_type);
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    zc_gen_type(g, "REAL", s->type == ZC_F64 || s->v_type == ZC_F64 ? ZC_F64 : ZC_F32);
    zc_gen_define(g, "D", "%lld", (long long)s->d);
    zc_gen_define(g, "DV", "%lld", (long long)s->dv);
    zc_gen_define(g, "LENGTHS", "%d", lengths_of(g));
    zc_gen_type(g, "LENGTH_TYPE", IN(lengths) ? IN(lengths)->dtype : ZC_I64);
    zc_gen_type(g, "ID_TYPE", IN(positions) ? IN(positions)->dtype : ZC_I64);
    put_biases(g, s);
    zc_gen_define(g, "SOFTCAP", "%d", ZC_ATTRS(g, Attention)->softcap > 0);
    zc_gen_define(g, "SCORES", "%d", s->scores);
    zc_gen_define(g, "ROWS", "%d", moves_rows(g));
    return ZC_OK;
}

zc_status zc_gen_attention_products(zc_gen *g, int64_t most, zc_attention_shape *s)
{
    ZC_TRY(zc_gen_attention_spec(g, s));
    if (g->declined[0]) return ZC_OK;
    if (s->v_type != s->type)
        return zc_gen_decline(g, "no products of %s and %s", zc_dtype_name(s->type),
                              zc_dtype_name(s->v_type));
    if (s->scores >= 0) return zc_gen_decline(g, "scores are wanted");
    if (s->d % 8 || s->dv % 8 || s->d > most || s->dv > most)
        return zc_gen_decline(g, "head size %lld or %lld is no multiple of 8 up to %lld",
                              (long long)s->d, (long long)s->dv, (long long)most);
    return ZC_OK;
}
