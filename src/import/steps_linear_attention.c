/* com.microsoft's LinearAttention and CausalConvWithState, which are ONNX's with attributes more,
 * and GatedDeltaNet, which becomes LinearAttention. */
#include <string.h>

#include "import/steps.h"

/* Takes an attribute away that may say what ONNX's operator does, and no more. */
static zc_status only(zc_imp *im, zc_inode *n, const char *name, int64_t value)
{
    const int64_t got = zc_imp_take_int(im, n, name, value);
    if (im->status != ZC_OK || got == value) return im->status;
    return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "attribute '%s' (got %lld, need %lld)", name,
                       (long long)got, (long long)value);
}

zc_status zc_step_ms_linear_attention(zc_imp *im, zc_inode *n)
{
    return only(im, n, "state_window", 0);
}

zc_status zc_step_ms_causal_conv(zc_imp *im, zc_inode *n)
{
    static const struct {
        const char *name;
        int64_t value;
    } given[] = {{"channels_last", 0},  {"dilation", 1},     {"input_channel_offset", 0},
                 {"input_channels", 0}, {"ndim", 1},         {"state_channels_last", -1},
                 {"state_length", 0},   {"state_window", 0}, {"state_update_capacity", 0}};
    for (size_t i = 0; i < ZC_COUNTOF(given); i++)
        ZC_TRY(only(im, n, given[i].name, given[i].value));
    return im->status;
}

/* ---- GatedDeltaNet ---- */

enum { QUERY, KEY, VALUE, ENDS, DECAY, BETA, STATE, A_LOG, DT_BIAS, DELTA_INPUTS };
#define LINEAR(input) ZC_IN_LinearAttention_##input

/* How a decay is computed from what stands in its place. */
typedef enum gate { GATE_NONE, GATE_SOFTPLUS, GATE_SIGMOID } gate;

typedef struct delta {
    gate gate;
    double bound; /* of GATE_SIGMOID */
    bool normed;  /* queries and keys get length 1 */
    bool flat;    /* tokens of all sequences stand along one axis */
    int64_t q_heads, heads, dk, dv;
} delta;

/* These sizes, and numbers behind them. */
static zc_vid shape_of(zc_imp *im, zc_inode *n, zc_vid sizes, const int64_t *rest, int count)
{
    const zc_vid parts[] = {sizes, zc_imp_ints(im, rest, count, 1)};
    zc_nid shape = zc_imp_node(im, n, ZC_OP_Concat, 2, parts, 1);
    ZC_IMP_SET(im, Concat, shape, axis, 0);
    return zc_imp_done(im, n, shape);
}

/* v in one more axis, batch and length, where it stands flat. */
static zc_vid by_sequences(zc_imp *im, zc_inode *n, const delta *d, zc_vid v)
{
    int64_t rest[ZC_MAX_RANK] = {-1};
    const int rank = zc_imp_rank(im, v);
    if (!d->flat || im->status != ZC_OK) return v;
    for (int i = 1; i < rank; i++) rest[i] = zc_val(im->g, v)->type.dims[i].k;
    const zc_vid batch = zc_imp_sizes(im, n, n->in[STATE], 0, 1);
    return zc_imp_op2(im, n, ZC_OP_Reshape, v, shape_of(im, n, batch, rest, rank));
}

/* Input i as f32[batch, length, heads ...]. */
static zc_vid each_token(zc_imp *im, zc_inode *n, const delta *d, int i)
{
    return by_sequences(im, n, d, zc_imp_cast(im, n, n->in[i], ZC_F32));
}

static zc_vid joined(zc_imp *im, zc_inode *n, zc_vid x)
{
    const int64_t shape[] = {0, 0, -1};
    return zc_imp_reshape(im, n, x, shape, 3);
}

/* Input i, where it is there, has one of those ranks, and behind those of tokens known sizes of
 * which two can be multiplied. */
static zc_status need_heads(zc_imp *im, zc_inode *n, int i, int tokens, int least, int most)
{
    const zc_vid v = zc_imp_in(n, i);
    const int rank = zc_imp_rank(im, v);
    if (!v) return ZC_OK;
    if (rank < least || rank > most)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "input %d has a wrong rank (got %d, need %d to %d)",
                           i, rank, least, most);
    for (int axis = tokens; axis < rank; axis++) {
        const zc_dim size = zc_val(im->g, v)->type.dims[axis];
        if (!zc_dim_is_const(size))
            return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                               "numbers and sizes of heads must be known (dimension %d of input %d "
                               "is not)",
                               axis, i);
        if (size.k > INT32_MAX)
            return zc_imp_fail(im, n, ZC_ERR_LIMIT,
                               "dimension %d of input %d is too large (got %lld, need at most %d)",
                               axis, i, (long long)size.k, INT32_MAX);
    }
    return ZC_OK;
}

/* Of queries, keys and values side by side: the state says how many of them are values, and what a
 * key's size is. */
static void packed_sizes(const zc_imp *im, const zc_inode *n, int tokens, delta *d)
{
    const zc_dim *state = zc_val(im->g, n->in[STATE])->type.dims;
    const int64_t width = zc_val(im->g, n->in[QUERY])->type.dims[tokens].k;
    d->heads = state[1].k;
    d->dv = state[2].k;
    d->dk = state[3].k;
    d->q_heads = d->dk ? (width - d->heads * d->dv) / 2 / d->dk : 0;
}

static void plain_sizes(const zc_imp *im, const zc_inode *n, int tokens, delta *d)
{
    const zc_dim *q = zc_val(im->g, n->in[QUERY])->type.dims + tokens;
    const zc_dim *v = zc_val(im->g, n->in[VALUE])->type.dims + tokens;
    d->q_heads = q[0].k;
    d->dk = q[1].k;
    d->heads = v[0].k;
    d->dv = v[1].k;
}

static zc_status delta_sizes(zc_imp *im, zc_inode *n, delta *d)
{
    const bool packed = !zc_imp_in(n, KEY) && !zc_imp_in(n, VALUE);
    const int rank = zc_imp_rank(im, n->in[QUERY]), heads = packed ? 1 : 2, tokens = rank - heads;
    ZC_TRY(need_heads(im, n, QUERY, tokens, 1 + heads, 2 + heads));
    d->flat = tokens == 1;
    if (!packed && (!zc_imp_in(n, KEY) || !zc_imp_in(n, VALUE)))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "of keys and values only one is there");
    if ((d->flat || packed) && !zc_imp_in(n, STATE))
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "input %d, the initial state, is missing, which says what the query is",
                           STATE);
    for (int i = KEY; i <= VALUE; i++) ZC_TRY(need_heads(im, n, i, tokens, rank, rank));
    ZC_TRY(need_heads(im, n, DECAY, tokens, tokens + 1, tokens + 2));
    ZC_TRY(need_heads(im, n, BETA, tokens, tokens + 1, tokens + 1));
    ZC_TRY(need_heads(im, n, STATE, 1, 4, 4));
    (packed ? packed_sizes : plain_sizes)(im, n, tokens, d);
    if (d->q_heads < 1 || d->heads < 1 || d->heads % d->q_heads)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "heads of values must be a multiple of the query's (got %lld and %lld)",
                           (long long)d->heads, (long long)d->q_heads);
    return ZC_OK;
}

/* Queries, keys and values as f32, batch and length first. */
static void three_parts(zc_imp *im, zc_inode *n, const delta *d, zc_vid *out)
{
    const int64_t keys = d->q_heads * d->dk, sizes[] = {keys, keys, d->heads * d->dv};
    for (int i = QUERY; i <= VALUE && zc_imp_in(n, i); i++) out[i] = each_token(im, n, d, i);
    if (zc_imp_in(n, KEY)) return;
    const zc_vid in[] = {out[QUERY], zc_imp_ints(im, sizes, 3, 1)};
    zc_nid split = zc_imp_node(im, n, ZC_OP_Split, 2, in, 3);
    ZC_IMP_SET(im, Split, split, axis, 2);
    if (!zc_imp_done(im, n, split)) return;
    memcpy(out, zc_node_at(im->g, split)->out, 3 * sizeof *out);
}

/* x[batch, length, q_heads * dk]: each head of it as often as there are heads of values for it. */
static zc_vid query_heads(zc_imp *im, zc_inode *n, const delta *d, zc_vid x)
{
    const int64_t apart[] = {0, 0, d->q_heads, 1, d->dk}, last = -1;
    const int64_t times[] = {1, 1, 1, d->heads / d->q_heads, 1};
    x = zc_imp_reshape(im, n, x, apart, 5);
    if (d->normed) {
        const zc_vid squares =
            zc_imp_op2(im, n, ZC_OP_ReduceSumSquare, x, zc_imp_ints(im, &last, 1, 1));
        const double epsilon = d->gate == GATE_SIGMOID ? 1e-6 : 1e-12; /* ONNX Runtime's */
        const zc_vid of[] = {x, squares, zc_imp_scalar(im, ZC_F32, epsilon)};
        x = zc_imp_done(im, n, zc_imp_expr(im, n, 3, of, "x0 / sqrt(x1 + x2)"));
    }
    if (times[3] > 1) x = zc_imp_op2(im, n, ZC_OP_Expand, x, zc_imp_ints(im, times, 5, 1));
    return joined(im, n, x);
}

static zc_vid gated(zc_imp *im, zc_inode *n, const delta *d, zc_vid x)
{
    const bool wide = zc_imp_rank(im, n->in[DECAY]) == (d->flat ? 3 : 4);
    const int64_t apart[] = {0, 0, d->heads, wide ? d->dk : 1};
    const int64_t one[] = {d->heads, 1}, bias[] = {d->heads, wide ? -1 : 1};
    if (d->gate == GATE_NONE) return x;
    const zc_vid rate = zc_imp_op1(im, n, ZC_OP_Exp, zc_imp_reshape(im, n, n->in[A_LOG], one, 2));
    x = zc_imp_op2(im, n, ZC_OP_Add, zc_imp_reshape(im, n, x, apart, 4),
                   zc_imp_reshape(im, n, n->in[DT_BIAS], bias, 2));
    if (d->gate == GATE_SOFTPLUS)
        return zc_imp_op2(im, n, ZC_OP_Mul, zc_imp_op1(im, n, ZC_OP_Neg, rate),
                          zc_imp_op1(im, n, ZC_OP_Softplus, x));
    x = zc_imp_op1(im, n, ZC_OP_Sigmoid, zc_imp_op2(im, n, ZC_OP_Mul, rate, x));
    return zc_imp_op2(im, n, ZC_OP_Mul, zc_imp_scalar(im, ZC_F32, d->bound), x);
}

static zc_status take_gate(zc_imp *im, zc_inode *n, delta *d)
{
    d->bound = zc_imp_take_float(im, n, "gate_lower_bound", -5);
    const char *name = zc_imp_take_str(im, n, "gate_activation", "none");
    ZC_TRY(im->status);
    const bool none = strcmp(name, "none") == 0;
    if (strcmp(name, "softplus") == 0 || strcmp(name, "qwen") == 0)
        d->gate = GATE_SOFTPLUS;
    else if (strcmp(name, "sigmoid") == 0 || strcmp(name, "kda") == 0)
        d->gate = GATE_SIGMOID;
    else if (!none)
        return zc_imp_fail(
            im, n, ZC_ERR_MODEL,
            "gate_activation is unknown (got '" ZC_NAME "', need none, softplus or sigmoid)", name);
    if (!zc_imp_in(n, A_LOG) == none && !zc_imp_in(n, DT_BIAS) == none) return ZC_OK;
    return zc_imp_fail(im, n, ZC_ERR_MODEL, "gate_activation '" ZC_NAME "' %s a_log and dt_bias",
                       name, none ? "excludes" : "needs");
}

static zc_status take_decays(zc_imp *im, zc_inode *n, const delta *d, zc_vid *in)
{
    const char *name = zc_imp_take_str(im, n, "beta_activation", "none");
    ZC_TRY(im->status);
    const bool sigmoid = strcmp(name, "sigmoid") == 0;
    if (!sigmoid && strcmp(name, "none") != 0)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "beta_activation is unknown (got '" ZC_NAME "', need none or sigmoid)",
                           name);
    if (zc_imp_in(n, DECAY))
        in[LINEAR(decay)] = joined(im, n, gated(im, n, d, each_token(im, n, d, DECAY)));
    if (zc_imp_in(n, BETA)) in[LINEAR(beta)] = joined(im, n, each_token(im, n, d, BETA));
    if (zc_imp_in(n, BETA) && sigmoid)
        in[LINEAR(beta)] = zc_imp_op1(im, n, ZC_OP_Sigmoid, in[LINEAR(beta)]);
    return im->status;
}

/* The node of ONNX's operator: every head of values has one of queries and keys. */
static zc_nid linear_attention(zc_imp *im, zc_inode *n, const delta *d, const zc_vid *in)
{
    const char *rule = zc_imp_take_str(im, n, "update_rule", "gated_delta");
    const double scale = zc_imp_take_float(im, n, "scale", 0);
    int nin = ZC_IN_LinearAttention_COUNT;
    zc_imp_take_int(im, n, "chunk_size", 0); /* says how fast */
    if (zc_imp_no_more_attrs(im, n) != ZC_OK) return 0;
    while (!in[nin - 1]) nin--;
    zc_nid id = zc_imp_node(im, n, ZC_OP_LinearAttention, nin, in, 2);
    const char *own = zc_arena_strdup(&im->g->arena, rule);
    if (!own) zc_imp_nomem(im, "an attribute");
    ZC_IMP_SET(im, LinearAttention, id, update_rule, own);
    ZC_IMP_SET(im, LinearAttention, id, scale, (float)scale);
    ZC_IMP_SET(im, LinearAttention, id, q_num_heads, d->heads);
    ZC_IMP_SET(im, LinearAttention, id, kv_num_heads, d->heads);
    return id;
}

/* States stand with values before keys; the result as its tokens did. */
static zc_status finish_delta(zc_imp *im, zc_inode *n, const delta *d, zc_nid id)
{
    static const int64_t swapped[] = {0, 1, 3, 2};
    const int64_t heads[] = {d->heads, d->dv};
    zc_vid y = zc_imp_cast(im, n, zc_imp_done(im, n, id), zc_imp_dtype(im, n->in[QUERY]));
    const zc_vid tokens = zc_imp_sizes(im, n, n->in[QUERY], 0, d->flat ? 1 : 2);
    const zc_vid in[] = {y, shape_of(im, n, tokens, heads, 2)};
    ZC_TRY(zc_imp_finish_first(im, n, zc_imp_node(im, n, ZC_OP_Reshape, 2, in, 1), 2));
    if (n->nout < 2 || !*n->out[1]) return im->status;
    const zc_vid state = zc_node_at(im->g, id)->out[1];
    const zc_vid last = zc_imp_done(im, n, zc_imp_transpose(im, n, state, swapped, 4));
    return im->status == ZC_OK ? zc_imp_bind(im, n, 1, last) : im->status;
}

zc_status zc_step_ms_gated_delta_net(zc_imp *im, zc_inode *n)
{
    static const int64_t swapped[] = {0, 1, 3, 2};
    delta d = {0};
    zc_vid in[ZC_IN_LinearAttention_COUNT] = {0};
    ZC_TRY(only(im, n, "state_update_capacity", 0));
    ZC_TRY(zc_imp_need_inputs(im, n, 1, DELTA_INPUTS));
    if (zc_imp_in(n, ENDS))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "GatedDeltaNet with cu_seqlens: sequences of one length each alone");
    d.normed = zc_imp_take_int(im, n, "qk_l2_norm", 0) != 0;
    ZC_TRY(take_gate(im, n, &d));
    ZC_TRY(delta_sizes(im, n, &d));
    three_parts(im, n, &d, in);
    for (int i = QUERY; i <= KEY; i++) in[i] = query_heads(im, n, &d, in[i]);
    in[VALUE] = joined(im, n, in[VALUE]);
    if (zc_imp_in(n, STATE))
        in[LINEAR(state)] = zc_imp_done(im, n, zc_imp_transpose(im, n, n->in[STATE], swapped, 4));
    ZC_TRY(take_decays(im, n, &d, in));
    return finish_delta(im, n, &d, linear_attention(im, n, &d, in));
}
