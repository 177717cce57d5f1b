#include "rules/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "rules/hints.h"
#include "rules/sample_target.h"

const char *const zc_rl_values_names[] = {"plain", "large",           "huge", "tiny", "equal",
                                          "zero",  "NaN and infinite"};

/* Shapes of operands in terms of one base shape (..., k) and another length n. */
enum {
    FORM_BASE,
    FORM_LAST,     /* [k] */
    FORM_ONES,     /* base with some dimensions 1 */
    FORM_SUFFIX,   /* the last dimensions of base */
    FORM_SCALAR,   /* [] */
    FORM_ONE,      /* [1] */
    FORM_K_N,      /* [k, n] */
    FORM_N_K,      /* [n, k] */
    FORM_N,        /* [n] */
    FORM_MORE,     /* base with dimension 1 doubled */
    FORM_BATCH,    /* base with k, n last */
    FORM_HALF,     /* base with half its last dimension, and some 1 */
    FORM_TWICE,    /* the same with all of it */
    FORM_TABLE,    /* of angles: a row for each position of a sequence, or of each sequence */
    FORM_CHANNELS, /* [c, 1, ...] with base's second dimension, and maybe a 1 before it */
    FORM_COUNT
};

typedef struct maker {
    const zc_rl_rule *rule;
    const zc_rl_choice *c;
    bool wide;
    uint64_t random;
    zc_graph *g;
    int64_t base[4], n;
    int rank;
    zc_vid value[ZC_RL_VARS_MAX];
    zc_rl_val attr[ZC_RL_VARS_MAX];
    bool has_attr[ZC_RL_VARS_MAX];
    int64_t perm[4];
    zc_rl_targets targets;
    const zc_rl_pat *user; /* what the operand being made is for, as operand `place` */
    const zc_vid *others;  /* that operation's operands before it */
    int place;
    int64_t ones;           /* bit i: dimension i of FORM_HALF is 1 */
    int64_t tables, pieces; /* of FORM_TABLE: how many, and what part of k a row has */
    zc_arena arena;
} maker;

uint64_t zc_rl_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t below(maker *m, int64_t n)
{
    return (int64_t)(zc_rl_random(&m->random) % (uint64_t)n);
}

/* ---- what the operations say of an operand ---- */

typedef struct role {
    bool is_host;  /* an integer list that must be known */
    bool is_index; /* i64 elements */
    bool is_bool;
    bool is_matrix;
    bool is_bias;  /* of a product */
    bool is_table; /* of angles */
    bool is_half;  /* joined with itself */
    bool halves;   /* a constant whose halves are equal */
    bool is_fill;  /* what Where puts where a mask is */
    bool is_rows;  /* what Gather takes from */
    bool is_scale; /* of a normalisation */
    bool is_count; /* where Range ends */
} role;

/* Is operand i integers, whatever the others are? */
static bool is_list(zc_op op, int i)
{
    bool is_index =
        i == 1 && (op == ZC_OP_Gather || op == ZC_OP_GatherElements || op == ZC_OP_Trilu);
    bool is_word = op == ZC_OP_EmbedLayerNormalization && (i < 2 || i == 8);
    return is_index || is_word || (i < 64 && (zc_op_host_inputs(op) >> i & 1));
}

static void find_role(const zc_rl_rule *rule, int var, role *out)
{
    *out = (role){.is_host = false};
    for (int i = 0; i < rule->nnodes; i++) {
        const zc_rl_pat *p = rule->nodes[i];
        for (int k = 0; k < p->args.n; k++) {
            const zc_rl_pat *a = zc_rl_pat_at(&p->args, k);
            if (a->kind != ZC_RP_NAME || a->var != var) continue;
            out->is_host |= k < 64 && ((zc_op_host_inputs(p->op) >> k) & 1);
            out->is_index |= is_list(p->op, k);
            out->is_bool |= k == 0 && p->op == ZC_OP_Where;
            bool is_embed = p->op == ZC_OP_EmbedLayerNormalization;
            out->is_rows |= k == 0 && p->op == ZC_OP_Gather;
            out->is_rows |= is_embed && k > 1 && k < 5;
            out->is_scale |= k > 0 && p->op == ZC_OP_LayerNormalization;
            out->is_scale |= is_embed && (k == 5 || k == 6);
            out->is_count |= k == 1 && p->op == ZC_OP_Range;
            out->is_fill |= k > 0 && p->op == ZC_OP_Where;
            out->is_bool |= p->op == ZC_OP_Not || p->op == ZC_OP_And || p->op == ZC_OP_Or;
            out->is_half |= k > 0 && p->op == ZC_OP_Concat &&
                            zc_rl_pat_at(&p->args, 0)->kind == ZC_RP_NAME &&
                            zc_rl_pat_at(&p->args, 0)->var == var;
            out->is_table |= (k == 1 || k == 2) && p->op == ZC_OP_RotaryEmbedding;
            out->is_bias |= k == 2 && (p->op == ZC_OP_Gemm || p->op == ZC_OP_Linear);
            out->is_matrix |=
                k == 1 && (p->op == ZC_OP_MatMul || p->op == ZC_OP_Gemm || p->op == ZC_OP_Linear);
        }
    }
    for (int i = 0; i < rule->where.n; i++) {
        const zc_rl_expr *e = zc_rl_expr_at(&rule->where, i);
        if (e->kind == ZC_RE_CALL && e->index == ZC_RF_halves)
            out->halves |= zc_rl_expr_at(&e->args, 0)->index == var;
    }
}

static bool is_operand(const zc_rl_var *v)
{
    return v->kind == ZC_RV_VALUE && v->in_match && v->stmt < 0;
}

void zc_rl_choose_forms(const zc_rl_rule *rule, uint64_t *random, zc_rl_choice *c)
{
    static const uint8_t of_consts[] = {FORM_LAST, FORM_LAST,   FORM_SCALAR,  FORM_ONE,
                                        FORM_K_N,  FORM_SUFFIX, FORM_N,       FORM_ONES,
                                        FORM_BASE, FORM_N_K,    FORM_CHANNELS};
    static const uint8_t of_values[] = {FORM_BASE, FORM_BASE, FORM_BASE,   FORM_BASE,  FORM_ONES,
                                        FORM_LAST, FORM_K_N,  FORM_SUFFIX, FORM_BATCH, FORM_N};
    static const uint8_t of_matrices[] = {FORM_K_N, FORM_K_N,   FORM_K_N,
                                          FORM_N_K, FORM_BATCH, FORM_BASE};
    bool alike = zc_rl_random(random) % 3 == 0;
    uint8_t matrix = zc_rl_random(random) % 2 ? FORM_K_N : FORM_N_K;
    for (int i = 0; i < rule->nvars; i++) {
        role what;
        if (!is_operand(&rule->vars[i])) continue;
        find_role(rule, i, &what);
        uint64_t z = zc_rl_random(random);
        bool is_const = rule->vars[i].flags & ZC_RC_CONST;
        if (rule->vars[i].flags & ZC_RC_SCALAR)
            c->form[i] = z % 2 ? FORM_SCALAR : FORM_ONE;
        else if (what.is_half || what.halves)
            c->form[i] = what.halves ? FORM_TWICE : FORM_HALF;
        else if (what.is_table)
            c->form[i] = FORM_TABLE;
        else if (alike && is_const && (what.is_rows || what.is_scale))
            c->form[i] = what.is_rows ? FORM_N_K : FORM_LAST;
        else if (alike && (what.is_matrix || what.is_bias))
            c->form[i] = what.is_bias ? FORM_N : matrix;
        else if (what.is_matrix)
            c->form[i] = of_matrices[z % ZC_COUNTOF(of_matrices)];
        else if (alike && !is_const)
            c->form[i] = z % 8 ? FORM_BASE : FORM_MORE;
        else if (is_const)
            c->form[i] = of_consts[z % ZC_COUNTOF(of_consts)];
        else
            c->form[i] = of_values[z % ZC_COUNTOF(of_values)];
    }
}

/* ---- shapes ---- */

static int64_t draw_dim(maker *m)
{
    static const int64_t dims[] = {1, 2, 3, 5, 7, 2, 3, 4, 1, 8, 16, 6, 12, 0};
    return dims[below(m, (int64_t)ZC_COUNTOF(dims))];
}

static void draw_base(maker *m)
{
    int asked = zc_rl_hint_rank(m->rule, (int)below(m, 4));
    m->rank = (int)below(m, 4) + 1;
    if (asked && asked <= (int)ZC_COUNTOF(m->base)) m->rank = asked;
    for (int i = 0; i < m->rank; i++) m->base[i] = draw_dim(m);
    m->n = draw_dim(m);
    m->ones = below(m, 16);
    m->tables = below(m, 2) ? 1 : m->base[0];
    m->pieces = 2 * (below(m, 6) + 1);
    for (int i = 0; i < m->rank; i++) m->perm[i] = i;
    for (int i = m->rank - 1; i > 0; i--) {
        int64_t j = below(m, i + 1), t = m->perm[i];
        m->perm[i] = m->perm[j];
        m->perm[j] = t;
    }
}

static void set_shape(zc_tensor *t, int rank, const int64_t *dims)
{
    t->rank = rank;
    for (int i = 0; i < rank; i++) t->dims[i] = dims[i];
}

static void draw_shape(maker *m, int form, zc_tensor *t)
{
    int64_t k = m->base[m->rank - 1];
    int skip = (int)below(m, m->rank);
    set_shape(t, m->rank, m->base);
    switch (form) {
    case FORM_LAST:
        set_shape(t, 1, &k);
        break;
    case FORM_ONES:
        for (int i = 0; i < t->rank; i++)
            if (below(m, 2)) t->dims[i] = 1;
        break;
    case FORM_SUFFIX:
        set_shape(t, m->rank - skip, m->base + skip);
        break;
    case FORM_SCALAR:
        t->rank = 0;
        break;
    case FORM_ONE:
        set_shape(t, 1, &(int64_t){1});
        break;
    case FORM_K_N:
        set_shape(t, 2, (int64_t[]){k, m->n});
        break;
    case FORM_N_K:
        set_shape(t, 2, (int64_t[]){m->n, k});
        break;
    case FORM_N:
        set_shape(t, 1, &m->n);
        break;
    case FORM_HALF:
    case FORM_TWICE:
        for (int i = 0; i < t->rank; i++)
            if (m->ones >> i & 1) t->dims[i] = 1;
        t->dims[t->rank - 1] = form == FORM_HALF ? k / 2 : k;
        break;
    case FORM_TABLE:
        set_shape(t, 3,
                  (int64_t[]){m->tables, m->base[m->rank > 3 ? 2 : m->rank / 2], k / m->pieces});
        break;
    case FORM_MORE:
        if (t->rank > 1) t->dims[1] *= 2;
        break;
    case FORM_CHANNELS:
        for (int i = 0; i < t->rank; i++)
            if (i != 1) t->dims[i] = 1;
        if (t->rank > 1 && below(m, 2)) set_shape(t, t->rank - 1, (int64_t[]){t->dims[1], 1, 1});
        break;
    case FORM_BATCH:
        if (t->rank >= 2) t->dims[t->rank - 2] = k;
        t->dims[t->rank - 1] = m->n;
        break;
    default:
        break;
    }
}

/* ---- values ---- */

static double plain(uint64_t z)
{
    double u = (double)(z >> 11) * 0x1p-53, sign = z & 1 ? 1 : -1;
    return sign * 3 * u * u + (z & 6 ? 0.01 : 0);
}

double zc_rl_sample_value(const zc_rl_choice *c, zc_dtype dtype, int var, int64_t i)
{
    uint64_t state = c->value_seed ^ ((uint64_t)var << 40) ^ (uint64_t)i;
    uint64_t z = zc_rl_random(&state);
    double v = plain(z);
    bool small = dtype == ZC_F16;
    if (dtype == ZC_BOOL) return (double)(z >> 7 & 1);
    switch (c->values) {
    case ZC_VALUES_LARGE:
        return v * (small ? 30 : 1000);
    case ZC_VALUES_HUGE:
        return v * (small ? 2e4 : 1e30);
    case ZC_VALUES_TINY:
        return v * (small ? 1e-5 : 1e-30);
    case ZC_VALUES_EQUAL:
        return 0.7 + var;
    case ZC_VALUES_ZERO:
        return z & 1 ? 0.0 : -0.0;
    case ZC_VALUES_ODD:
        return z % 7 == 0 ? NAN : z % 7 == 1 ? INFINITY : z % 7 == 2 ? -INFINITY : v;
    default:
        return v;
    }
}

/* Numbers that constants are in models. */
static double constant(maker *m, int var, zc_dtype dtype, int64_t i, int64_t n, bool fills_masks)
{
    static const double numbers[] = {1e-5, 1e-6, 1e-12, 0.5, 1, 2, -1, 0, 0.125, 3};
    static const double fills[] = {-INFINITY, -3.4028234663852886e38, -1e9, 0};
    zc_rl_choice plain_values = *m->c;
    plain_values.values = m->c->values == ZC_VALUES_EQUAL ? ZC_VALUES_EQUAL : ZC_VALUES_PLAIN;
    uint64_t state = m->c->value_seed ^ (uint64_t)var;
    if (n == 1 && fills_masks) return fills[zc_rl_random(&state) % ZC_COUNTOF(fills)];
    if (n == 1) return numbers[zc_rl_random(&state) % ZC_COUNTOF(numbers)];
    return zc_rl_sample_value(&plain_values, dtype, var, i);
}

static int64_t small_integer(maker *m)
{
    static const int64_t often[] = {-1, -1, 1, 0, 2};
    if (below(m, 3)) return often[below(m, (int64_t)ZC_COUNTOF(often))];
    return below(m, 2) ? m->rank - 1 : below(m, 8);
}

/* ---- operands ---- */

static zc_dtype wide_type(const maker *m, zc_dtype d)
{
    return m->wide && zc_dtype_is_float(d) ? ZC_F64 : d;
}

/* Stores a number as its own type rounds it, so that the wide sample has the same. */
static void store(zc_dtype own, zc_dtype as, void *data, int64_t i, double v)
{
    uint64_t slot[2] = {0};
    zc_store_f64(own, slot, 0, v);
    if (own == as)
        zc_store_f64(as, data, i, v);
    else
        zc_store_f64(as, data, i, zc_load_f64(own, slot, 0));
}

static zc_vid make_const(maker *m, int var, zc_tensor *t, zc_dtype own, const role *what,
                         const zc_rl_hint *hint)
{
    size_t bytes;
    int64_t half = what->halves && t->rank ? t->dims[t->rank - 1] / 2 : 0;
    if (!zc_tensor_bytes(t, &bytes)) return 0;
    t->data = zc_calloc(bytes, 1);
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; t->data && i < n; i++) {
        int64_t like = half && i / half % 2 ? i - half : i;
        if (hint->has_value)
            store(own, t->dtype, t->data, i, hint->value);
        else if (zc_dtype_is_int(own))
            zc_store_i64(own, t->data, i, what->is_host ? small_integer(m) : below(m, 3));
        else
            store(own, t->dtype, t->data, i, constant(m, var, own, like, n, what->is_fill));
    }
    return t->data ? zc_graph_const(m->g, m->rule->vars[var].name, t, true) : 0;
}

static zc_vid make_input(maker *m, int var, const zc_tensor *t)
{
    zc_type type = {.dtype = t->dtype, .rank = t->rank};
    for (int i = 0; i < t->rank; i++) type.dims[i] = zc_dim_const(t->dims[i]);
    zc_vid v = zc_graph_value(m->g, m->rule->vars[var].name, ZC_VALUE_PARAM, &type);
    if (!v || !ZC_VEC_PUSH(&m->g->top.params, v)) return 0;
    return v;
}

/* Weights whose shape the operands before them decide. */
static void draw_weight(maker *m, zc_tensor *t)
{
    const zc_type *x = m->place ? &zc_val(m->g, m->others[0])->type : NULL;
    if (!x || x->rank < 2 || !below(m, 8)) return;
    switch (m->user->op) {
    case ZC_OP_InstanceNormalization:
    case ZC_OP_GroupNormalization:
    case ZC_OP_BatchNormalization:
        set_shape(t, 1, &(int64_t){x->dims[1].k});
        break;
    case ZC_OP_Conv:
        if (m->place == 2) {
            set_shape(t, 1, &(int64_t){zc_val(m->g, m->others[1])->type.dims[0].k});
            break;
        }
        t->rank = x->rank;
        for (int i = 2; i < t->rank; i++) t->dims[i] = below(m, 4) ? 1 : 3;
        t->dims[0] = m->n;
        t->dims[1] = x->dims[1].k;
        break;
    default:
        break;
    }
}

static zc_rl_env env_of(maker *m)
{
    static const zc_rule_target none = {.cuda = false};
    return (zc_rl_env){.rule = m->rule,
                       .g = m->g,
                       .value = m->value,
                       .attr = m->attr,
                       .target = &none,
                       .arena = &m->arena};
}

static zc_vid make_operand(maker *m, int var)
{
    const zc_rl_var *v = &m->rule->vars[var];
    zc_tensor t = {.rank = 0};
    role what;
    find_role(m->rule, var, &what);
    zc_dtype own = v->dtype                        ? v->dtype
                   : what.is_host || what.is_index ? ZC_I64
                   : what.is_bool                  ? ZC_BOOL
                                                   : m->c->dtype;
    draw_shape(m, m->c->form[var], &t);
    if (what.is_host) {
        t.rank = below(m, 8) ? 1 : 0;
        t.dims[0] = below(m, 4) ? 1 : below(m, 4);
    }
    if (what.is_count) {
        int64_t end = m->base[below(m, m->rank)];
        t = (zc_tensor){.dtype = ZC_I64, .data = &end};
        return zc_graph_const(m->g, v->name, &t, false);
    }
    zc_rl_hint hint;
    zc_rl_env env = env_of(m);
    zc_rl_hint_find(&env, var, &hint);
    if (m->user) draw_weight(m, &t);
    zc_rl_hint_apply(&hint, &t);
    t.dtype = wide_type(m, own);
    bool is_const = what.is_host || (v->flags & ZC_RC_CONST) || zc_dtype_is_int(own);
    return is_const ? make_const(m, var, &t, own, &what, &hint) : make_input(m, var, &t);
}

static zc_vid make_target(maker *m, zc_op op, int var, zc_vid of)
{
    zc_rl_dims base = {.n = m->rank};
    memcpy(base.v, m->base, (size_t)base.n * sizeof *base.v);
    return zc_rl_target(&m->targets, m->g, &m->random, &base, op, of, m->rule->vars[var].name);
}

/* ---- operations ---- */

static zc_vid make(maker *m, const zc_rl_pat *p);

static zc_vid make_number(maker *m, const zc_rl_pat *p, zc_dtype like)
{
    uint64_t bytes[2] = {0};
    zc_tensor t = {.dtype = like ? like : wide_type(m, m->c->dtype),
                   .rank = (int)below(m, 2),
                   .dims = {1},
                   .data = bytes};
    if (zc_dtype_is_float(t.dtype))
        store(m->c->dtype, t.dtype, bytes, 0, p->num);
    else
        zc_store_f64(t.dtype, bytes, 0, p->num);
    return zc_graph_const(m->g, NULL, &t, false);
}

static zc_rl_val draw_attr(maker *m, const zc_op_info *info, const void *attrs, int field)
{
    zc_rl_val v = zc_rl_attr_value(info, attrs, field);
    if (v.type == ZC_RT_INT && below(m, 2)) v.dim = zc_dim_const(small_integer(m));
    if (v.type == ZC_RT_REAL && below(m, 2))
        v.real = (double)(float)(0.25 + (double)below(m, 8) / 4);
    bool is_perm = field == ZC_AT_Transpose_perm && info == zc_op_get(ZC_OP_Transpose);
    if (v.type == ZC_RT_INTS && (is_perm || below(m, 2))) v.ints = (zc_ints){m->rank, m->perm};
    if (v.type == ZC_RT_DTYPE) v.dtype = m->c->dtype;
    return v;
}

/* A value that the attribute's condition allows, or any. */
static zc_rl_val choose_attr(maker *m, const zc_op_info *info, const void *attrs,
                             const zc_rl_attr *a)
{
    zc_rl_env env = env_of(m);
    if (a->is_capture && m->has_attr[a->var]) return m->attr[a->var];
    if (!a->is_capture &&
        (a->op == ZC_RE_EQ || a->op == ZC_RE_NEAR || a->op == ZC_RE_GE || a->op == ZC_RE_LE))
        return zc_rl_eval(&env, a->value);
    if (a->op == ZC_RE_IN)
        return zc_rl_eval(&env, zc_rl_expr_at(&a->value->args, (int)below(m, a->value->args.n)));
    zc_rl_val v = draw_attr(m, info, attrs, a->field);
    if (a->is_capture) {
        m->attr[a->var] = v;
        m->has_attr[a->var] = true;
    }
    return v;
}

static bool set_attrs(maker *m, const zc_rl_pat *p, zc_nid n)
{
    const zc_op_info *info = zc_op_get(p->op);
    void *attrs = zc_node_at(m->g, n)->attrs;
    for (int i = 0; i < p->attrs.n; i++) {
        const zc_rl_attr *a = zc_rl_attr_at(&p->attrs, i);
        zc_rl_val v = choose_attr(m, info, attrs, a);
        if (!zc_rl_attr_set(&m->arena, &info->fields[a->field], &v,
                            zc_attr_at(info, attrs, a->field)))
            return false;
        *(uint64_t *)attrs |= UINT64_C(1) << a->field;
    }
    void *own = zc_graph_attrs_dup(m->g, p->op, attrs);
    zc_node_at(m->g, n)->attrs = own;
    return own != NULL;
}

static zc_dtype type_of(const maker *m, zc_vid v)
{
    return v ? zc_val(m->g, v)->type.dtype : ZC_NONE;
}

static bool make_operands(maker *m, const zc_rl_pat *p, zc_vid *in)
{
    zc_dtype like = ZC_NONE;
    int n = p->loose < 0 ? p->args.n : p->loose + (int)below(m, 4);
    for (int i = 0; i < n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (a->kind == ZC_RP_NUM || a->kind == ZC_RP_ABSENT) continue;
        bool is_target = (p->op == ZC_OP_Reshape || p->op == ZC_OP_Expand) && i == 1 &&
                         a->kind == ZC_RP_NAME && m->rule->vars[a->var].stmt < 0;
        if (is_target && !m->value[a->var]) m->value[a->var] = make_target(m, p->op, a->var, in[0]);
        m->user = p;
        m->others = in;
        m->place = i;
        in[i] = make(m, a);
        if (!in[i]) return false;
        if (like == ZC_NONE || like == ZC_BOOL) like = type_of(m, in[i]);
    }
    for (int i = 0; i < n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (a->kind != ZC_RP_NUM) continue;
        in[i] = make_number(m, a, is_list(p->op, i) ? ZC_I64 : like);
        if (!in[i]) return false;
    }
    return true;
}

static zc_nid make_node(maker *m, const zc_rl_pat *p, zc_vid *in)
{
    int nin = p->args.n, nout = p->nouts ? p->nouts : 1;
    while (nin > 0 && !in[nin - 1]) nin--;
    zc_nid n = zc_graph_node(m->g, &m->g->top, p->op, p->text, nin, nout);
    if (!n) return 0;
    bool swap = (zc_op_get(p->op)->flags & ZC_OPF_COMMUTATIVE) && nin == 2 && below(m, 2);
    for (int i = 0; i < nin; i++) zc_node_at(m->g, n)->in[i] = in[swap ? 1 - i : i];
    for (int i = 0; i < nout; i++)
        if (!zc_graph_out(m->g, n, i, NULL)) return 0;
    return set_attrs(m, p, n) && zc_graph_infer(m->g, n, NULL) == ZC_OK ? n : 0;
}

static void name_results(maker *m, const zc_rl_pat *p, const zc_vid *out, int nout)
{
    for (int i = 0; i < p->nouts && i < nout; i++)
        if (p->outs[i] >= 0) m->value[p->outs[i]] = out[i];
}

static zc_vid make_op(maker *m, const zc_rl_pat *p)
{
    zc_vid in[ZC_RL_LIST_MAX] = {0};
    if (p->optional && below(m, 2)) {
        zc_vid v = make(m, zc_rl_pat_at(&p->args, p->through));
        name_results(m, p, &v, 1);
        return v;
    }
    zc_nid n = make_operands(m, p, in) ? make_node(m, p, in) : 0;
    if (!n) return 0;
    name_results(m, p, zc_node_at(m->g, n)->out, zc_node_at(m->g, n)->nout);
    return zc_node_at(m->g, n)->out[0];
}

/* The value that is already there and that a condition says var to be, too. */
static zc_vid same_operand(const maker *m, int var)
{
    for (int i = 0; i < m->rule->where.n; i++) {
        const zc_rl_expr *e = zc_rl_expr_at(&m->rule->where, i);
        if (e->kind != ZC_RE_CALL || e->index != ZC_RF_same) continue;
        int a = zc_rl_expr_at(&e->args, 0)->index, b = zc_rl_expr_at(&e->args, 1)->index;
        if (a == var || b == var) return m->value[a == var ? b : a];
    }
    return 0;
}

static zc_vid make(maker *m, const zc_rl_pat *p)
{
    switch (p->kind) {
    case ZC_RP_NAME:
        if (!m->value[p->var] && m->rule->vars[p->var].stmt < 0)
            m->value[p->var] = same_operand(m, p->var);
        if (!m->value[p->var] && m->rule->vars[p->var].stmt < 0)
            m->value[p->var] = make_operand(m, p->var);
        return m->value[p->var];
    case ZC_RP_NUM:
        return make_number(m, p, ZC_NONE);
    case ZC_RP_NODE:
        return make_op(m, p);
    case ZC_RP_ALT: {
        zc_vid v = make(m, zc_rl_pat_at(&p->args, (int)below(m, p->args.n)));
        name_results(m, p, &v, 1);
        return v;
    }
    case ZC_RP_ABSENT:
    case ZC_RP_LIST:
        break;
    }
    return 0;
}

static bool make_outputs(maker *m)
{
    size_t n = 0;
    for (int i = 0; i < m->rule->nvars; i++)
        if (m->rule->vars[i].is_output) {
            if (!m->value[i] || !ZC_VEC_PUSH(&m->g->top.outputs, m->value[i])) return false;
            n++;
        }
    m->g->output_names = zc_arena_alloc(&m->g->arena, n + 1, sizeof *m->g->output_names);
    m->g->input_names =
        zc_arena_alloc(&m->g->arena, m->g->top.params.len + 1, sizeof *m->g->input_names);
    if (!m->g->output_names || !m->g->input_names) return false;
    for (size_t i = 0; i < n; i++)
        m->g->output_names[i] = zc_val(m->g, m->g->top.outputs.data[i])->name;
    for (size_t i = 0; i < m->g->top.params.len; i++)
        m->g->input_names[i] = zc_val(m->g, m->g->top.params.data[i])->name;
    return true;
}

bool zc_rl_sample(const zc_rl_rule *rule, const zc_rl_choice *c, bool wide, zc_graph **out)
{
    maker *m = zc_calloc(1, sizeof *m);
    *out = NULL;
    if (!m) return false;
    *m = (maker){.rule = rule, .c = c, .wide = wide, .random = c->shape_seed};
    zc_arena_init(&m->arena, 0);
    bool ok = zc_graph_create(rule->name.text, &m->g, NULL) == ZC_OK;
    draw_base(m);
    for (int i = 0; ok && i < rule->match.n; i++)
        ok = make(m, zc_rl_stmt_at(&rule->match, i)->pat) != 0;
    ok = ok && make_outputs(m);
    if (ok) *out = m->g;
    if (!ok) zc_graph_destroy(&m->g);
    zc_arena_fini(&m->arena);
    free(m);
    return ok;
}
