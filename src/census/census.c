/* What there is to fuse: one short question for each kind, asked of every node. */
#include "census/census.h"

#include <string.h>

#include "ir/index.h"

/* Nodes looked at in one search, and how many may wait. */
enum { VISITS_MAX = 200, QUEUE_MAX = 64, CHAIN_MAX = 4 };

typedef struct counter {
    const zc_graph *g;
    zc_index x;
} counter;

typedef bool test(const counter *c, const zc_node *n);

/* ---- around a node ---- */

static const zc_node *maker(const counter *c, zc_vid v)
{
    const zc_value *value = v ? zc_val(c->g, v) : NULL;
    return value && value->kind == ZC_VALUE_NODE ? zc_node_at(c->g, value->producer) : NULL;
}

static zc_vid operand(const zc_node *n, int i)
{
    return n && i < n->nin ? n->in[i] : 0;
}

static const zc_node *maker_at(const counter *c, const zc_node *n, int i)
{
    return maker(c, operand(n, i));
}

static bool is(const zc_node *n, zc_op op)
{
    return n && n->op == op;
}

/* A matrix that is read both ways stays one constant, transposed for some. */
static bool is_const(const counter *c, zc_vid v)
{
    const zc_node *n = maker(c, v);
    if (is(n, ZC_OP_Transpose)) v = n->in[0];
    return v && zc_val(c->g, v)->kind == ZC_VALUE_CONST;
}

static bool is_shared(const counter *c, zc_vid v)
{
    return c->x.uses.data[v] != 1;
}

/* The first user of v that passes. */
static const zc_node *find_user(const counter *c, zc_vid v, test *wanted)
{
    for (uint32_t e = v ? c->x.users.data[v] : 0; e; e = c->x.edges.data[e].next) {
        const zc_node *n = zc_node_at(c->g, c->x.edges.data[e].node);
        if (n->op != ZC_OP_NONE && wanted(c, n)) return n;
    }
    return NULL;
}

static bool is_pointwise(const counter *c, const zc_node *n)
{
    return n->op == ZC_OP_Cast || (zc_op_get(n->op)->flags & ZC_OPF_POINTWISE);
}

static bool is_cheap(const counter *c, const zc_node *n)
{
    switch (n->op) {
    case ZC_OP_Reshape:
    case ZC_OP_Transpose:
    case ZC_OP_Squeeze:
    case ZC_OP_Unsqueeze:
    case ZC_OP_Flatten:
    case ZC_OP_Identity:
    case ZC_OP_Dropout:
    case ZC_OP_Expand:
        return true;
    default:
        return is_pointwise(c, n);
    }
}

/* ---- searches ---- */

typedef struct search {
    zc_vid queue[QUEUE_MAX];
    int n;
} search;

static void add_values(search *s, const zc_vid *v, int n)
{
    for (int i = 0; i < n && s->n < QUEUE_MAX; i++)
        if (v[i]) s->queue[s->n++] = v[i];
}

/* The nearest wanted node that v is computed from, through cheap ones; NULL: none. */
static const zc_node *find_source(const counter *c, zc_vid v, test *wanted)
{
    search s = {.queue = {v}, .n = 1};
    for (int i = 0; i < s.n && i < VISITS_MAX; i++) {
        const zc_node *n = maker(c, s.queue[i]);
        if (!n) continue;
        if (wanted(c, n)) return n;
        if (is_cheap(c, n)) add_values(&s, n->in, n->nin);
    }
    return NULL;
}

/* Is v computed from `from`, through cheap ones? */
static bool is_from(const counter *c, zc_vid v, zc_vid from)
{
    search s = {.queue = {v}, .n = 1};
    for (int i = 0; i < s.n && i < VISITS_MAX; i++) {
        if (s.queue[i] == from) return true;
        const zc_node *n = maker(c, s.queue[i]);
        if (n && is_cheap(c, n)) add_values(&s, n->in, n->nin);
    }
    return false;
}

/* Does a wanted node compute something from v, through cheap ones? */
static bool reaches(const counter *c, zc_vid v, test *wanted)
{
    search s = {.queue = {v}, .n = v ? 1 : 0};
    int visits = 0;
    for (int i = 0; i < s.n; i++) {
        for (uint32_t e = c->x.users.data[s.queue[i]]; e; e = c->x.edges.data[e].next) {
            const zc_node *n = zc_node_at(c->g, c->x.edges.data[e].node);
            if (n->op == ZC_OP_NONE || ++visits > VISITS_MAX) continue;
            if (wanted(c, n)) return true;
            if (is_cheap(c, n)) add_values(&s, n->out, n->nout);
        }
    }
    return false;
}

/* ---- products ---- */

static bool is_product(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_MatMul) || is(n, ZC_OP_Gemm) || is(n, ZC_OP_Linear);
}

static bool is_projection(const counter *c, const zc_node *n)
{
    return is_product(c, n) && is_const(c, operand(n, 1)) && !is_const(c, operand(n, 0));
}

static bool is_mixing(const counter *c, const zc_node *n)
{
    return (is(n, ZC_OP_MatMul) && !is_const(c, operand(n, 0)) && !is_const(c, operand(n, 1))) ||
           is(n, ZC_OP_Einsum);
}

static bool is_heavy(const counter *c, const zc_node *n)
{
    return is_product(c, n) || is(n, ZC_OP_Conv) || is(n, ZC_OP_ConvTranspose);
}

static bool count_linear(const counter *c, const zc_node *n)
{
    return (is(n, ZC_OP_MatMul) || is(n, ZC_OP_Gemm)) && is_projection(c, n) &&
           zc_val(c->g, n->in[1])->type.rank == 2;
}

static bool count_batch_norm(const counter *c, const zc_node *n)
{
    const zc_node *p = is(n, ZC_OP_BatchNormalization) ? maker_at(c, n, 0) : NULL;
    return p && is_heavy(c, p) && !is_shared(c, n->in[0]);
}

/* ---- attention ---- */

static bool count_attention(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Softmax) && find_source(c, n->in[0], is_mixing) &&
           reaches(c, n->out[0], is_mixing);
}

/* The first of at least three projections of one value that go into a product with each other. */
static bool count_qkv(const counter *c, const zc_node *n)
{
    int count = 0;
    if (!is_projection(c, n) || !reaches(c, n->out[0], is_mixing)) return false;
    for (uint32_t e = c->x.users.data[n->in[0]]; e; e = c->x.edges.data[e].next) {
        const zc_node *other = zc_node_at(c->g, c->x.edges.data[e].node);
        if (!is_projection(c, other) || other->in[0] != n->in[0]) continue;
        if (other < n) return false;
        count++;
    }
    return count >= 3;
}

static bool is_negation(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Neg);
}

static bool is_part(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Slice) || is(n, ZC_OP_Split) || is(n, ZC_OP_Gather);
}

/* Two parts of one value that change places, one of them negated. */
static bool count_rope(const counter *c, const zc_node *n)
{
    if (!is(n, ZC_OP_Concat) || n->nin != 2) return false;
    const zc_node *minus = find_source(c, n->in[0], is_negation);
    const zc_node *from = minus ? find_source(c, minus->in[0], is_part) : NULL;
    const zc_node *other = find_source(c, n->in[1], is_part);
    return from && other && operand(from, 0) == operand(other, 0);
}

/* ---- normalisations ---- */

static bool is_square(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Pow) || (is(n, ZC_OP_Mul) && n->in[0] == n->in[1]);
}

static bool is_mean(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_ReduceMean);
}

/* x - mean(x) */
static bool is_centred(const counter *c, const zc_node *n)
{
    const zc_node *m = is(n, ZC_OP_Sub) ? maker_at(c, n, 1) : NULL;
    return is(m, ZC_OP_ReduceMean) && m->in[0] == n->in[0];
}

static bool is_mean_square(const counter *c, const zc_node *n)
{
    const zc_node *s = is_mean(c, n) ? maker_at(c, n, 0) : NULL;
    return s && is_square(c, s);
}

static bool squares_to_mean(const counter *c, const zc_node *n)
{
    return is_square(c, n) && find_user(c, n->out[0], is_mean);
}

static bool is_reshape(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Reshape);
}

/* Is n's operand another value whose last dimensions were joined, as groups of channels are? */
static bool is_of_groups(const counter *c, const zc_node *n)
{
    const zc_node *r = maker_at(c, n, 0);
    if (!is(r, ZC_OP_Reshape)) return false;
    const zc_type *from = &zc_val(c->g, r->in[0])->type, *to = &zc_val(c->g, r->out[0])->type;
    return to->rank == 3 && from->rank > 2 &&
           !zc_dim_eq(from->dims[from->rank - 1], to->dims[to->rank - 1]);
}

/* A difference whose squares become a variance. */
static bool is_normalised(const counter *c, const zc_node *n)
{
    return is_centred(c, n) && find_user(c, n->out[0], squares_to_mean);
}

static bool count_layer_norm(const counter *c, const zc_node *n)
{
    return is_normalised(c, n) && !is_of_groups(c, n);
}

static bool count_rms_norm(const counter *c, const zc_node *n)
{
    const zc_node *square = is_mean_square(c, n) ? maker_at(c, n, 0) : NULL;
    const zc_node *from = maker_at(c, square, 0);
    return square && !(from && is_centred(c, from));
}

static bool count_group_norm(const counter *c, const zc_node *n)
{
    bool is_instance = is(n, ZC_OP_InstanceNormalization) && is(maker_at(c, n, 0), ZC_OP_Reshape);
    if (is_instance) return find_user(c, n->out[0], is_reshape);
    return is_normalised(c, n) && is_of_groups(c, n);
}

static bool begins_norm(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_LayerNormalization) || is(n, ZC_OP_RMSNormalization) ||
           count_layer_norm(c, n) || squares_to_mean(c, n);
}

static bool is_table(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Gather) && is_const(c, operand(n, 0)) &&
           zc_val(c->g, n->in[0])->type.rank == 2;
}

/* A sum of two values, and not of one and a constant. */
static bool is_sum(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Add) && !is_const(c, n->in[0]) && !is_const(c, n->in[1]);
}

/* A row of an embedding table, or a sum that has one. */
static bool is_embedded(const counter *c, zc_vid v)
{
    for (int i = 0; i < CHAIN_MAX; i++) {
        const zc_node *n = maker(c, v);
        if (!n) return false;
        if (is_table(c, n)) return true;
        if (!is(n, ZC_OP_Add) && !is(n, ZC_OP_Expand) && !is(n, ZC_OP_Reshape)) return false;
        const zc_node *second = maker_at(c, n, 1);
        if (second && is_table(c, second)) return true;
        v = n->in[0];
    }
    return false;
}

/* A row for each position, known already. */
static bool is_positions(const counter *c, zc_vid v)
{
    const zc_type *t = &zc_val(c->g, v)->type;
    return is_const(c, v) && t->rank >= 2 && !zc_dim_is(t->dims[t->rank - 2], 1);
}

static bool is_embedding_sum(const counter *c, const zc_node *n)
{
    if (!is(n, ZC_OP_Add)) return false;
    for (int i = 0; i < 2; i++)
        if (is_embedded(c, n->in[i]))
            return is_embedded(c, n->in[1 - i]) || is_positions(c, n->in[1 - i]);
    return false;
}

static bool count_embedding(const counter *c, const zc_node *n)
{
    return is_embedding_sum(c, n) && !find_user(c, n->out[0], is_embedding_sum);
}

static bool count_skip_norm(const counter *c, const zc_node *n)
{
    return is_sum(c, n) && !is_embedding_sum(c, n) && find_user(c, n->out[0], begins_norm);
}

/* ---- activations ---- */

static bool is_multiplied(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Mul) || is(n, ZC_OP_Div);
}

static bool is_add(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Add);
}

/* Is n a product with x, or with what x is scaled from? */
static bool multiplies(const counter *c, const zc_node *n, zc_vid x)
{
    const zc_node *scaled = maker(c, x);
    for (int i = 0; n && i < n->nin && i < 2; i++) {
        if (n->in[i] == x) return true;
        for (int k = 0; scaled && k < scaled->nin && is_pointwise(c, scaled); k++)
            if (n->in[i] == scaled->in[k] && !is_const(c, n->in[i])) return true;
    }
    return false;
}

/* x * s(x), with s a sigmoid or what is used as one */
static bool is_gate_of_itself(const counter *c, const zc_node *n)
{
    switch (n->op) {
    case ZC_OP_Sigmoid:
    case ZC_OP_HardSigmoid:
    case ZC_OP_Clip:
        return multiplies(c, find_user(c, n->out[0], is_multiplied), n->in[0]);
    case ZC_OP_Min: /* min(relu(x), 6) */
        return is(maker_at(c, n, 0), ZC_OP_Relu) &&
               multiplies(c, find_user(c, n->out[0], is_multiplied), maker_at(c, n, 0)->in[0]);
    default:
        return false;
    }
}

static bool is_negative_exp(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Exp) && is(maker_at(c, n, 0), ZC_OP_Neg);
}

/* 1 / (1 + exp(-x)), log(1 + exp(x)) */
static bool is_of_exp(const counter *c, const zc_node *n)
{
    int of = is(n, ZC_OP_Div) ? 1 : 0;
    const zc_node *sum = maker_at(c, n, of);
    if (!is(sum, ZC_OP_Add) || sum->nin != 2) return false;
    bool is_inverse = is(n, ZC_OP_Div) || is(n, ZC_OP_Reciprocal);
    for (int i = 0; i < 2; i++) {
        const zc_node *e = is_const(c, sum->in[1 - i]) ? maker_at(c, sum, i) : NULL;
        if (is_inverse && e && is_negative_exp(c, e)) return true;
        if (is(n, ZC_OP_Log) && is(e, ZC_OP_Exp)) return true;
    }
    return false;
}

static bool count_activation(const counter *c, const zc_node *n)
{
    if (is(n, ZC_OP_Erf) || is_of_exp(c, n)) return true;
    if (is(n, ZC_OP_Tanh))
        return is(maker_at(c, n, 0), ZC_OP_Softplus) ||
               (is(maker_at(c, n, 0), ZC_OP_Mul) && find_user(c, n->out[0], is_add));
    return is_gate_of_itself(c, n);
}

/* The product of one half of a projection, and the other one activated. */
static bool is_gate_of_halves(const counter *c, const zc_node *n)
{
    for (int i = 0; i < 2; i++) {
        const zc_node *half = maker_at(c, n, i);
        const zc_node *other =
            half && is_part(c, half) ? find_source(c, n->in[1 - i], is_part) : NULL;
        if (!other || operand(other, 0) != operand(half, 0) || is_from(c, n->in[1 - i], n->in[i]))
            continue;
        const zc_node *p = find_source(c, half->in[0], is_product);
        if (p && is_projection(c, p)) return true;
    }
    return false;
}

/* The product of an activation of one projection of x, and another one. */
static bool count_gated_mlp(const counter *c, const zc_node *n)
{
    if (!is(n, ZC_OP_Mul)) return false;
    if (is_gate_of_halves(c, n)) return true;
    const zc_node *a = find_source(c, n->in[0], is_product);
    const zc_node *b = find_source(c, n->in[1], is_product);
    return a && b && a != b && is_projection(c, a) && is_projection(c, b) && a->in[0] == b->in[0];
}

static bool is_squeeze(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_GlobalAveragePool) || (is_mean(c, n) && !is_mean_square(c, n));
}

static bool is_conv(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Conv);
}

/* x * s(conv(... conv(mean(x)))); by matrix products it is as short as it can be */
static bool count_squeeze_excite(const counter *c, const zc_node *n)
{
    if (!is(n, ZC_OP_Mul)) return false;
    for (int side = 0; side < 2; side++) {
        zc_vid v = n->in[side];
        const zc_node *heavy = NULL;
        for (int i = 0; i < CHAIN_MAX && (heavy = find_source(c, v, is_conv)); i++) {
            const zc_node *mean = find_source(c, heavy->in[0], is_squeeze);
            if (mean && mean->in[0] == n->in[1 - side]) return true;
            v = heavy->in[0];
        }
    }
    return false;
}

/* sum(e), of the value e that something made with `op` */
static bool is_sum_of(const counter *c, const zc_node *sum, zc_vid e, zc_op op)
{
    return is(sum, ZC_OP_ReduceSum) && (!e || sum->in[0] == e) && is(maker_at(c, sum, 0), op);
}

/* exp(x) / sum(exp(x)), or x - log(sum(exp(x))) */
static bool count_softmax(const counter *c, const zc_node *n)
{
    const zc_node *by = n->nin > 1 ? maker_at(c, n, 1) : NULL;
    if (is(n, ZC_OP_Div)) return is_sum_of(c, by, n->in[0], ZC_OP_Exp);
    if (is(n, ZC_OP_Mul) && is(by, ZC_OP_Reciprocal))
        return is_sum_of(c, maker_at(c, by, 0), n->in[0], ZC_OP_Exp);
    if (!is(n, ZC_OP_Sub)) return false;
    if (is(by, ZC_OP_ReduceLogSumExp)) return by->in[0] == n->in[0];
    const zc_node *sum = is(by, ZC_OP_Log) ? maker_at(c, by, 0) : NULL;
    return is_sum_of(c, sum, 0, ZC_OP_Exp) && operand(maker_at(c, sum, 0), 0) == n->in[0];
}

static bool count_layout(const counter *c, const zc_node *n)
{
    return is(n, ZC_OP_Transpose) && is(maker_at(c, n, 0), ZC_OP_Transpose);
}

/* ---- groups ---- */

static bool is_computed(const counter *c, const zc_node *n)
{
    return n->op != ZC_OP_Cast && is_pointwise(c, n) && zc_val(c->g, n->out[0])->vals.n < 0;
}

static bool count_epilogue(const counter *c, const zc_node *n)
{
    if (!is_computed(c, n)) return false;
    for (int i = 0; i < n->nin; i++) {
        const zc_node *p = maker_at(c, n, i);
        if (p && is_heavy(c, p) && !is_shared(c, n->in[i])) return true;
    }
    return false;
}

static bool count_pointwise(const counter *c, const zc_node *n)
{
    if (!is_computed(c, n) || count_epilogue(c, n)) return false;
    for (int i = 0; i < n->nin; i++) {
        const zc_node *p = maker_at(c, n, i);
        if (p && is_computed(c, p) && !is_shared(c, n->in[i])) return true;
    }
    return false;
}

/* ---- all of them ---- */

static const struct {
    zc_rule_kind kind;
    const char *before;
    test *asks;
} questions[] = {
#define KIND(name, how, before, what) {ZC_RULE_##name, #before, count_##name},
#include "census/kinds.def"
#undef KIND
};

static void ask_all(zc_census *census, const counter *c, size_t question)
{
    for (zc_nid n = 1; n < c->g->nodes.len; n++) {
        const zc_node *node = zc_node_at(c->g, n);
        if (node->op == ZC_OP_NONE || node->nin == 0 || node->nout == 0) continue;
        if (node->in[0] && node->out[0] && questions[question].asks(c, node))
            zc_census_add(census, questions[question].kind, c->g, n);
    }
}

void zc_census_take(zc_census *census, zc_graph *g, const char *pass)
{
    counter c = {.g = g};
    bool ready = false;
    for (size_t i = 0; i < ZC_COUNTOF(questions); i++) {
        if (strcmp(questions[i].before, pass) != 0) continue;
        if (!ready && !zc_index_init(&c.x, g)) {
            census->nomem = true;
            break;
        }
        ready = true;
        ask_all(census, &c, i);
    }
    zc_index_fini(&c.x);
}
