/* Shapes in samples: of operands in terms of one base shape (..., k) and another length n. */
#include <stdio.h>
#include <string.h>

#include "prover/sample_parts.h"

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
        const zc_rl_role *what = &c->roles[i];
        if (!is_operand(&rule->vars[i])) continue;
        bool is_matrix = what->is & ZC_ROLE_MATRIX, is_bias = what->is & ZC_ROLE_BIAS;
        bool is_rows = what->is & ZC_ROLE_ROWS;
        uint64_t z = zc_rl_random(random);
        bool is_const = rule->vars[i].flags & ZC_RC_CONST;
        if (rule->vars[i].flags & ZC_RC_SCALAR)
            c->form[i] = z % 2 ? FORM_SCALAR : FORM_ONE;
        else if (what->is_half || what->halves)
            c->form[i] = what->halves ? FORM_TWICE : FORM_HALF;
        else if (what->is & ZC_ROLE_TABLE)
            c->form[i] = FORM_TABLE;
        else if (alike && is_const && (is_rows || what->is & ZC_ROLE_SCALE))
            c->form[i] = is_rows ? FORM_N_K : FORM_LAST;
        else if (alike && (is_matrix || is_bias))
            c->form[i] = is_bias ? FORM_N : matrix;
        else if (is_matrix)
            c->form[i] = of_matrices[z % ZC_COUNTOF(of_matrices)];
        else if (alike && !is_const)
            c->form[i] = z % 8 ? FORM_BASE : FORM_MORE;
        else if (is_const)
            c->form[i] = of_consts[z % ZC_COUNTOF(of_consts)];
        else
            c->form[i] = of_values[z % ZC_COUNTOF(of_values)];
    }
}

/* ---- the base ---- */

/* Conditions' own numbers take part. */
static int64_t draw_dim(zc_rl_maker *m)
{
    static const int64_t dims[] = {1, 2, 3, 5, 7, 2, 3, 4, 1, 8, 16, 6, 12};
    static const int64_t many[] = {6, 7, 8, 9, 12, 16};
    zc_rl_solver s = zc_rl_solver_of(m, 0);
    int64_t asked;
    if (zc_rl_below(m, 2) && zc_rl_hint_number(&s, ZC_RF_dim, &asked)) return asked;
    if (m->c->sizes == ZC_SIZES_MANY) return many[zc_rl_below(m, (int64_t)ZC_COUNTOF(many))];
    return dims[zc_rl_below(m, (int64_t)ZC_COUNTOF(dims))];
}

static int draw_rank(zc_rl_maker *m)
{
    zc_rl_solver s = zc_rl_solver_of(m, 0);
    int64_t rank = zc_rl_below(m, 4) + 1, asked;
    bool is_asked = zc_rl_below(m, 4) != 0 && zc_rl_hint_number(&s, ZC_RF_rank, &asked);
    if (is_asked && asked > 0 && asked <= ZC_RL_BASE) rank = asked;
    return (int)rank;
}

/* Long dimensions go with short ones. */
static void bound_base(zc_rl_maker *m)
{
    enum { ELEMENTS_MAX = 512 };
    int64_t n = m->n > 0 ? m->n : 1;
    for (int i = m->rank - 1; i >= 0; i--) {
        if (i < m->rank - 1 && n * m->base[i] > ELEMENTS_MAX)
            m->base[i] = n < ELEMENTS_MAX ? 1 + zc_rl_below(m, 2) : 1;
        n *= m->base[i] > 0 ? m->base[i] : 1;
    }
}

/* Different sizes, so that a size says which symbol it is. */
static void draw_symbols(zc_rl_maker *m)
{
    static const int64_t sizes[ZC_RL_BASE + 1] = {3, 5, 2, 7, 4, 6};
    int64_t first = zc_rl_below(m, ZC_RL_BASE + 1), one = zc_rl_below(m, m->rank);
    for (int i = 0; i <= ZC_RL_BASE; i++) {
        int64_t *dim = i < ZC_RL_BASE ? &m->base[i] : &m->n;
        m->is_symbol[i] = i == one || zc_rl_below(m, 2);
        if (zc_rl_below(m, 4)) *dim = sizes[(first + i) % (ZC_RL_BASE + 1)];
    }
}

void zc_rl_draw_base(zc_rl_maker *m)
{
    m->rank = draw_rank(m);
    for (int i = 0; i < ZC_RL_BASE; i++) m->base[i] = draw_dim(m);
    m->n = draw_dim(m);
    for (int i = 0; m->c->sizes == ZC_SIZES_SQUARE && i < m->rank; i++) m->base[i] = m->n;
    if (m->c->sizes == ZC_SIZES_SYMBOLIC) draw_symbols(m);
    bound_base(m);
    if (m->c->sizes == ZC_SIZES_ZERO) {
        int64_t at = zc_rl_below(m, m->rank + 1);
        *(at < m->rank ? &m->base[at] : &m->n) = 0;
    }
    m->ones = zc_rl_below(m, 1 << ZC_RL_BASE);
    m->tables = zc_rl_below(m, 2) ? 1 : m->base[0];
    m->pieces = 2 * (zc_rl_below(m, 6) + 1);
    for (int i = 0; i < m->rank; i++) m->perm[i] = i;
    for (int i = m->rank - 1; i > 0; i--) {
        int64_t j = zc_rl_below(m, i + 1), t = m->perm[i];
        m->perm[i] = m->perm[j];
        m->perm[j] = t;
    }
}

/* ---- operands ---- */

static void set_shape(zc_tensor *t, int rank, const int64_t *dims)
{
    t->rank = rank;
    for (int i = 0; i < rank; i++) t->dims[i] = dims[i];
}

/* How long a window is; where strides and the like are tried, one of 1 would not show them. */
static int64_t draw_tap(zc_rl_maker *m)
{
    bool is_long = zc_rl_below(m, 4) == 0, is_varied = m->c->vary && zc_rl_below(m, 2);
    return is_long || is_varied ? 3 : 1;
}

/* Weights of a convolution of x, or its bias. */
static void draw_filter(zc_rl_maker *m, const zc_type *x, zc_tensor *t)
{
    int to = m->user->op == ZC_OP_ConvTranspose; /* the dimension of channels that come out */
    if (m->place == 2) {
        set_shape(t, 1, &(int64_t){zc_val(m->g, m->others[1])->type.dims[to].k});
        return;
    }
    t->rank = x->rank;
    for (int i = 2; i < t->rank; i++) t->dims[i] = draw_tap(m);
    t->dims[to] = m->n;
    t->dims[1 - to] = x->dims[1].k;
}

/* Weights of a recurrent layer of one direction, for its input or its state. */
static void draw_gates(zc_rl_maker *m, const zc_type *x, zc_tensor *t)
{
    int64_t gates = m->user->op == ZC_OP_LSTM ? 4 : m->user->op == ZC_OP_GRU ? 3 : 1;
    if (m->place > 2 || x->rank != 3 || !zc_dim_is_const(x->dims[2])) return;
    set_shape(t, 3, (int64_t[]){1, gates * m->n, m->place == 1 ? x->dims[2].k : m->n});
}

/* Weights whose shape the operands before them decide. */
static void draw_weight(zc_rl_maker *m, zc_tensor *t)
{
    const zc_type *x = m->place ? &zc_val(m->g, m->others[0])->type : NULL;
    if (!x || x->rank < 2 || !zc_dim_is_const(x->dims[1]) || !zc_rl_below(m, 8)) return;
    switch (m->user->op) {
    case ZC_OP_InstanceNormalization:
    case ZC_OP_GroupNormalization:
    case ZC_OP_BatchNormalization:
        set_shape(t, 1, &(int64_t){x->dims[1].k});
        break;
    case ZC_OP_Conv:
    case ZC_OP_ConvTranspose:
        draw_filter(m, x, t);
        break;
    case ZC_OP_RNN:
    case ZC_OP_GRU:
    case ZC_OP_LSTM:
        draw_gates(m, x, t);
        break;
    default:
        break;
    }
}

void zc_rl_draw_shape(zc_rl_maker *m, int var, zc_tensor *t)
{
    int64_t k = m->base[m->rank - 1];
    int form = m->c->form[var], skip = (int)zc_rl_below(m, m->rank);
    set_shape(t, m->rank, m->base);
    switch (form) {
    case FORM_LAST:
        set_shape(t, 1, &k);
        break;
    case FORM_ONES:
        for (int i = 0; i < t->rank; i++)
            if (zc_rl_below(m, 2)) t->dims[i] = 1;
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
        if (t->rank > 1 && zc_rl_below(m, 2))
            set_shape(t, t->rank - 1, (int64_t[ZC_RL_BASE]){t->dims[1], 1, 1, 1, 1});
        break;
    case FORM_BATCH:
        if (t->rank >= 2) t->dims[t->rank - 2] = k;
        t->dims[t->rank - 1] = m->n;
        break;
    default:
        break;
    }
    if (m->user) draw_weight(m, t);
}

/* ---- symbols ---- */

static zc_dim symbol(zc_rl_maker *m, const char *name, int64_t size)
{
    zc_rl_sample *out = m->out;
    int i = 0;
    while (i < out->symbol_count && strcmp(out->symbols[i].name, name) != 0) i++;
    if (i == ZC_RL_SYMBOLS_MAX) return zc_dim_const(size);
    if (i == out->symbol_count) {
        out->symbols[i].size = size;
        snprintf(out->symbols[out->symbol_count++].name, sizeof out->symbols[i].name, "%s", name);
    }
    return zc_dim_input(&m->g->dims, name);
}

/* A dimension that base says is a symbol; sometimes one of its own, which broadcasts or not. */
static zc_dim input_dim(zc_rl_maker *m, int64_t size)
{
    char name[8];
    if (!zc_rl_below(m, 8)) {
        snprintf(name, sizeof name, "p%d", m->out->symbol_count);
        return symbol(m, name, size);
    }
    for (int i = 0; i <= ZC_RL_BASE; i++) {
        bool is_used = i < m->rank || i == ZC_RL_BASE;
        if (!is_used || !m->is_symbol[i] || size < 2) continue;
        if (size != (i < ZC_RL_BASE ? m->base[i] : m->n)) continue;
        snprintf(name, sizeof name, "s%d", i);
        return symbol(m, name, size);
    }
    return zc_dim_const(size);
}

zc_type zc_rl_input_type(zc_rl_maker *m, int var, const zc_tensor *t)
{
    bool may = m->c->sizes == ZC_SIZES_SYMBOLIC && !(m->rule->vars[var].flags & ZC_RC_SCALAR);
    zc_type type = {.dtype = t->dtype, .rank = t->rank};
    for (int i = 0; i < t->rank; i++)
        type.dims[i] = may ? input_dim(m, t->dims[i]) : zc_dim_const(t->dims[i]);
    return type;
}
