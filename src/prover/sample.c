#include "prover/sample.h"

#include <stdlib.h>
#include <string.h>

#include "prover/sample_parts.h"

typedef zc_rl_maker maker;
typedef zc_rl_role role;
#define below zc_rl_below

/* ---- what the operations say of an operand ---- */

/* What operand k of the pattern's operation adds to its role. */
static void add_role(const zc_rl_pat *p, int k, zc_rl_role *out)
{
    const zc_rl_pat *first = zc_rl_pat_at(&p->args, 0), *a = zc_rl_pat_at(&p->args, k);
    if (p->is_chain && k > 1) k = 1;
    bool is_repeated = k > 0 && first->kind == ZC_RP_NAME && first->var == a->var;
    out->is |= zc_op_role_of(p->op, k);
    out->is_host |= k < 64 && (zc_op_host_inputs(p->op) >> k & 1);
    out->is_list |= zc_rl_is_list(p->op, k);
    out->is_half |= is_repeated && p->op == ZC_OP_Concat;
}

void zc_rl_find_roles(const zc_rl_rule *rule, zc_rl_role *out)
{
    memset(out, 0, (size_t)rule->nvars * sizeof *out);
    for (int i = 0; i < rule->nnodes; i++) {
        const zc_rl_pat *p = rule->nodes[i];
        for (int k = 0; k < p->args.n; k++)
            if (zc_rl_pat_at(&p->args, k)->kind == ZC_RP_NAME)
                add_role(p, k, &out[zc_rl_pat_at(&p->args, k)->var]);
    }
    for (int i = 0; i < rule->where.n; i++) {
        const zc_rl_expr *e = zc_rl_expr_at(&rule->where, i);
        if (e->kind == ZC_RE_CALL && e->index == ZC_RF_halves)
            out[zc_rl_expr_at(&e->args, 0)->index].halves = true;
    }
}

/* ---- operands ---- */

zc_rl_env zc_rl_env_of(maker *m)
{
    return (zc_rl_env){.rule = m->rule,
                       .g = m->g,
                       .value = m->value,
                       .attr = m->attr,
                       .target = &m->c->target,
                       .arena = &m->arena};
}

/* Conditions speak of a collected value by its list's name, as of those collected with it. */
static int spoken_of(maker *m, int var)
{
    const zc_rl_var *vars = m->rule->vars;
    int list = var;
    if (!vars[var].is_listed) return var;
    while (vars[list].is_listed) list--;
    for (int k = 0; k < m->rule->nvars; k++)
        if (vars[k].kind == ZC_RV_LIST && vars[k].group == vars[list].group)
            m->value[k] = m->value[vars[k].first + var - vars[list].first];
    return list;
}

zc_rl_solver zc_rl_solver_of(maker *m, int var)
{
    var = spoken_of(m, var);
    return (zc_rl_solver){
        .env = zc_rl_env_of(m), .random = &m->hint_random, .var = var, .draft = m->draft};
}

zc_dtype zc_rl_widened(const maker *m, zc_dtype d)
{
    return m->exactness != ZC_SAMPLE_OWN && zc_dtype_is_float(d) ? ZC_F64 : d;
}

/* The elements that the sample in its own types has. */
static void copy_const(const zc_tensor *from, zc_tensor *t)
{
    int64_t n = zc_tensor_numel(t);
    size_t bytes;
    if (from->dtype == t->dtype && zc_tensor_bytes(t, &bytes)) {
        if (bytes) memcpy(t->data, from->data, bytes);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        if (zc_dtype_is_float(t->dtype))
            zc_store_f64(t->dtype, t->data, i, zc_load_f64(from->dtype, from->data, i));
        else
            zc_store_i64(t->dtype, t->data, i, zc_load_i64(from->dtype, from->data, i));
    }
}

static zc_vid make_const(maker *m, int var, zc_tensor *t, zc_dtype own, const role *what)
{
    zc_rl_solver s = zc_rl_solver_of(m, var);
    size_t bytes;
    if (!zc_tensor_bytes(t, &bytes)) return 0;
    t->data = zc_calloc(bytes, 1);
    if (!t->data) return 0;
    const zc_tensor *from = m->own ? zc_val(m->own->g, m->own->value[var])->data : NULL;
    if (m->own && (!from || zc_tensor_numel(from) != zc_tensor_numel(t))) {
        free(t->data);
        return 0;
    }
    zc_rl_fill_const(m, var, own, what, t);
    if (from)
        copy_const(from, t);
    else
        zc_rl_hint_data(&s, t);
    return zc_graph_const(m->g, m->rule->vars[var].name, t, true);
}

static zc_vid make_input(maker *m, int var, const zc_tensor *t)
{
    zc_type type = zc_rl_input_type(m, var, t);
    zc_vid v = zc_graph_value(m->g, m->rule->vars[var].name, ZC_VALUE_PARAM, &type);
    if (!v || !ZC_VEC_PUSH(&m->g->top.params, v)) return 0;
    return v;
}

/* What conditions made of the shape. */
static void settle_shape(maker *m, int var, zc_tensor *t)
{
    zc_rl_solver s = zc_rl_solver_of(m, var);
    if (!m->own) {
        zc_rl_hint_shape(&s, t);
        m->out->shape[var].n = t->rank;
        memcpy(m->out->shape[var].v, t->dims, sizeof t->dims);
        return;
    }
    t->rank = m->own->shape[var].n;
    memcpy(t->dims, m->own->shape[var].v, sizeof t->dims);
}

static zc_dtype own_type(maker *m, int var, const role *what)
{
    const zc_rl_var *v = &m->rule->vars[var];
    zc_rl_solver s = zc_rl_solver_of(m, var);
    zc_dtype own = v->dtype                   ? v->dtype
                   : what->is_list            ? ZC_I64
                   : what->is & ZC_ROLE_TRUTH ? ZC_BOOL
                                              : m->c->dtype;
    zc_rl_hint_dtype(&s, &own);
    return own;
}

/* More elements tell no more. */
static bool is_small(const maker *m, int rank, const int64_t *dims)
{
    int64_t n = 1;
    for (int i = 0; i < rank && n <= m->c->elements; i++) n *= dims[i];
    return n <= m->c->elements;
}

static zc_vid make_operand(maker *m, int var)
{
    const zc_rl_var *v = &m->rule->vars[var];
    zc_tensor t = {.rank = 0};
    const role *what = &m->c->roles[var];
    zc_dtype own = own_type(m, var, what);
    zc_rl_draw_shape(m, var, &t);
    if (what->is_host) {
        t.rank = below(m, 8) ? 1 : 0;
        t.dims[0] = below(m, 4) ? 1 : below(m, 4);
    }
    if (what->is & ZC_ROLE_LIMIT) {
        int64_t end = m->base[below(m, m->rank)];
        t = (zc_tensor){.dtype = ZC_I64, .data = &end};
        return zc_graph_const(m->g, v->name, &t, false);
    }
    m->out->own[var] = own;
    t.dtype = zc_rl_widened(m, own);
    settle_shape(m, var, &t);
    if (!is_small(m, t.rank, t.dims)) return 0;
    bool is_const = what->is_list || (v->flags & ZC_RC_CONST);
    return is_const ? make_const(m, var, &t, own, what) : make_input(m, var, &t);
}

/* ---- targets of Reshape and Expand ---- */

static int64_t elements_of(const zc_type *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->rank; i++)
        if (!zc_dim_is_const(t->dims[i]) || !zc_mul_i64(n, t->dims[i].k, &n)) return -1;
    return n;
}

/* Some dimension takes what the others leave of n elements. false: none can that conditions let. */
static bool fill_up(const zc_rl_solver *s, int64_t n, zc_tensor *t)
{
    for (int i = t->rank - 1; i >= 0 && zc_tensor_numel(t) != n; i--) {
        zc_tensor other = *t;
        other.dims[i] = 1;
        int64_t rest = zc_tensor_numel(&other);
        if (rest < 1 || n % rest) continue;
        other.dims[i] = n / rest;
        zc_rl_hint_shape(s, &other);
        if (zc_tensor_numel(&other) == n) *t = other;
    }
    return zc_tensor_numel(t) == n;
}

/* What conditions ask of the result becomes the target's, now and then not. */
static void settle_target(maker *m, zc_op op, int result, zc_vid of, zc_rl_dims *target)
{
    int64_t n = elements_of(&zc_val(m->g, of)->type);
    zc_tensor t = {.dtype = zc_val(m->g, of)->type.dtype, .rank = target->n};
    if (result < 0 || n < 0 || zc_rl_random(&m->hint_random) % 4 == 0) return;
    zc_rl_solver s = zc_rl_solver_of(m, result);
    memcpy(t.dims, target->v, sizeof t.dims);
    zc_rl_hint_shape(&s, &t);
    if (op == ZC_OP_Reshape && !fill_up(&s, n, &t)) return;
    target->n = t.rank;
    memcpy(target->v, t.dims, sizeof t.dims);
}

/* result: the variable of what the operation computes, or -1. */
static zc_vid make_target(maker *m, zc_op op, int var, int result, zc_vid of)
{
    zc_rl_dims base = {.n = m->rank}, t;
    memcpy(base.v, m->base, (size_t)base.n * sizeof *base.v);
    zc_vid v = zc_rl_draw_target(&m->targets, m->g, &m->random, &base, op, of, &t);
    if (v) return v;
    const zc_tensor *own = m->own ? zc_val(m->own->g, m->own->value[var])->data : NULL;
    for (int i = 0; own && i < own->dims[0]; i++) t.v[i] = ((const int64_t *)own->data)[i];
    if (own)
        t.n = (int)own->dims[0];
    else
        settle_target(m, op, result, of, &t);
    v = zc_graph_const_i64(m->g, m->rule->vars[var].name, t.v, t.n, 1);
    zc_rl_keep_target(&m->targets, op, of, v);
    return v;
}

/* ---- operations ---- */

static zc_vid make(maker *m, const zc_rl_pat *p);

static zc_vid make_number(maker *m, const zc_rl_pat *p, zc_dtype like)
{
    uint64_t bytes[2] = {0}, rounded[2] = {0};
    double v = zc_rl_draw_number(m, p);
    zc_dtype own = m->c->dtype;
    zc_tensor t = {.dtype = like ? like : zc_rl_widened(m, own),
                   .rank = (int)below(m, 2),
                   .dims = {1},
                   .data = bytes};
    bool is_float = zc_dtype_is_float(t.dtype) && zc_dtype_is_float(own);
    zc_store_f64(own, rounded, 0, v);
    m->out->is_rounded |= is_float && zc_load_f64(own, rounded, 0) != v;
    if (is_float && m->exactness != ZC_SAMPLE_EXACT)
        zc_rl_store(own, t.dtype, bytes, 0, v);
    else
        zc_store_f64(t.dtype, bytes, 0, v);
    return zc_graph_const(m->g, NULL, &t, false);
}

static zc_dtype type_of(const maker *m, zc_vid v)
{
    return v ? zc_val(m->g, v)->type.dtype : ZC_NONE;
}

/* seen: statements; NULL: names are not followed. */
static bool has_wanted_in(const maker *m, const zc_rl_pat *p, uint64_t *seen)
{
    uint64_t none = 0;
    int stmt = p->kind == ZC_RP_NAME && seen ? m->rule->vars[p->var].stmt : -1;
    if (stmt >= 0 && !(*seen >> stmt & 1)) {
        *seen |= UINT64_C(1) << stmt;
        return has_wanted_in(m, zc_rl_stmt_at(&m->rule->match, stmt)->pat, seen);
    }
    if (p->kind == ZC_RP_NAME && p->optional)
        return m->rule->nnodes + p->var == abs(m->c->want) - 1;
    if (p->kind != ZC_RP_NODE && p->kind != ZC_RP_ALT) return false;
    if (p->kind == ZC_RP_NODE && p->node == abs(m->c->want) - 1) return true;
    if (p->base && p->through < 0 && !seen) seen = &none;
    for (int i = 0; i < p->args.n; i++)
        if (has_wanted_in(m, zc_rl_pat_at(&p->args, i), seen)) return true;
    return false;
}

/* Is the operation that is wanted among p's? A named pattern that is repeated has the next one
 * behind a name. */
static bool has_wanted(const maker *m, const zc_rl_pat *p)
{
    return has_wanted_in(m, p, NULL);
}

static bool is_left_out(maker *m, const zc_rl_pat *p)
{
    if (!p->optional) return false;
    bool by_chance = below(m, 2);
    int number = p->kind == ZC_RP_NAME ? m->rule->nnodes + p->var : p->node;
    if (!m->c->want || !has_wanted(m, p)) return by_chance;
    return number == -m->c->want - 1;
}

/* The patterns that this operation has operands for: of a run, some. */
static int choose_operands(maker *m, const zc_rl_pat *p, const zc_rl_pat **out)
{
    static const zc_rl_pat absent = {.kind = ZC_RP_ABSENT};
    int n = 0, run = 0, left = 0;
    for (int i = 0; i < p->args.n; i++) {
        out[n] = zc_rl_pat_at(&p->args, i);
        if (out[n]->kind == ZC_RP_NAME && is_left_out(m, out[n])) out[n] = &absent;
        if (out[n]->run && out[n]->run != run) left = (int)below(m, 4);
        run = out[n]->run;
        n += !run || left-- > 0 || has_wanted(m, out[n]);
    }
    return n;
}

static bool make_operands(maker *m, const zc_rl_pat *p, int result, const zc_rl_pat *const *args,
                          int n, zc_vid *in)
{
    zc_dtype like = ZC_NONE;
    for (int i = 0; i < n; i++) {
        const zc_rl_pat *a = args[i];
        if (a->kind == ZC_RP_NUM || a->kind == ZC_RP_ABSENT) continue;
        bool is_target = (p->op == ZC_OP_Reshape || p->op == ZC_OP_Expand) && i == 1 &&
                         a->kind == ZC_RP_NAME && m->rule->vars[a->var].stmt < 0;
        if (is_target && !m->value[a->var])
            m->value[a->var] = make_target(m, p->op, a->var, result, in[0]);
        m->user = p;
        m->others = in;
        m->place = i;
        in[i] = make(m, a);
        if (!in[i]) return false;
        if (like == ZC_NONE || like == ZC_BOOL) like = type_of(m, in[i]);
    }
    for (int i = 0; i < n; i++) {
        const zc_rl_pat *a = args[i];
        if (a->kind != ZC_RP_NUM) continue;
        in[i] = make_number(m, a, zc_rl_is_list(p->op, i) ? ZC_I64 : like);
        if (!in[i]) return false;
    }
    return true;
}

static zc_nid make_node(maker *m, const zc_rl_pat *p, int nin, const zc_vid *in)
{
    int nout = p->nouts ? p->nouts : 1;
    while (nin > 0 && !in[nin - 1]) nin--;
    zc_nid n = zc_graph_node(m->g, &m->g->top, p->op, p->text, nin, in, nout);
    if (!n) return 0;
    bool swap = (zc_op_get(p->op)->flags & ZC_OPF_COMMUTATIVE) && nin == 2 && below(m, 2);
    for (int i = 0; swap && i < 2; i++) zc_node_at(m->g, n)->in[i] = in[1 - i];
    for (int i = 0; i < nout; i++)
        if (!zc_graph_out(m->g, n, i, NULL)) return 0;
    if (!zc_rl_set_attrs(m, p, n) || zc_graph_infer(m->g, n, NULL) != ZC_OK) return 0;
    const zc_type *t = &zc_val(m->g, zc_node_at(m->g, n)->out[0])->type;
    int64_t sizes[ZC_MAX_RANK];
    for (int i = 0; i < t->rank; i++) sizes[i] = zc_dim_is_const(t->dims[i]) ? t->dims[i].k : 1;
    return is_small(m, t->rank, sizes) ? n : 0;
}

/* A chain's operands in any order, joined in any way. */
static zc_nid make_chain(maker *m, const zc_rl_pat *p, int n, zc_vid *in)
{
    zc_nid last = 0;
    while (n > 1) {
        zc_vid pair[2];
        for (int i = 0; i < 2; i++) {
            int at = (int)below(m, n);
            pair[i] = in[at];
            in[at] = in[--n];
        }
        last = make_node(m, p, 2, pair);
        if (!last) return 0;
        in[n++] = zc_node_at(m->g, last)->out[0];
    }
    return last;
}

static void name_results(maker *m, const zc_rl_pat *p, const zc_vid *out, int nout)
{
    for (int i = 0; i < p->nouts && i < nout; i++)
        if (p->outs[i] >= 0) m->value[p->outs[i]] = out[i];
}

static zc_vid make_op(maker *m, const zc_rl_pat *p)
{
    zc_vid in[ZC_RL_LIST_MAX] = {0};
    int result = p->nouts ? p->outs[0] : m->result;
    m->result = -1;
    if (is_left_out(m, p)) {
        m->out->absent[p->node] = true;
        zc_vid v = make(m, p->through < 0 ? p->base : zc_rl_pat_at(&p->args, p->through));
        name_results(m, p, &v, 1);
        return v;
    }
    if (p->is_nested && m->made[p->twin] && below(m, 2)) return m->made[p->twin];
    const zc_rl_pat *args[ZC_RL_LIST_MAX + 1];
    int nin = choose_operands(m, p, args);
    if (!make_operands(m, p, result, args, nin, in)) return 0;
    zc_nid n = p->is_chain ? make_chain(m, p, nin, in) : make_node(m, p, nin, in);
    if (!n) return 0;
    m->made[p->twin] = zc_node_at(m->g, n)->out[0];
    m->out->made[p->node] = true;
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

static const zc_rl_pat *choose_alternative(maker *m, const zc_rl_pat *p)
{
    const zc_rl_pat *one = zc_rl_pat_at(&p->args, (int)below(m, p->args.n));
    for (int i = 0; m->c->want && i < p->args.n; i++)
        if (has_wanted(m, zc_rl_pat_at(&p->args, i))) one = zc_rl_pat_at(&p->args, i);
    return one;
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
        m->result = p->nouts ? p->outs[0] : -1;
        zc_vid v = make(m, choose_alternative(m, p));
        name_results(m, p, &v, 1);
        return v;
    }
    case ZC_RP_ABSENT:
    case ZC_RP_LIST:
    case ZC_RP_REST:
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

bool zc_rl_make_exact(const zc_rl_rule *rule, const zc_rl_choice *c, zc_rl_exactness exactness,
                      const zc_rl_sample *own, zc_rl_sample *out)
{
    static const zc_type none = {.dtype = ZC_F32};
    maker *m = zc_calloc(1, sizeof *m);
    *out = (zc_rl_sample){.g = NULL};
    if (!m) return false;
    *m = (maker){.rule = rule,
                 .c = c,
                 .exactness = exactness,
                 .random = c->shape_seed,
                 .hint_random = ~c->shape_seed,
                 .own = own,
                 .out = out};
    zc_arena_init(&m->arena, 0);
    bool ok = zc_graph_create(rule->name.text, &m->g, NULL) == ZC_OK;
    if (ok) m->draft = zc_graph_value(m->g, NULL, ZC_VALUE_PARAM, &none);
    ok = ok && m->draft;
    if (ok) zc_rl_draw_base(m);
    m->result = -1;
    for (int i = 0; ok && i < rule->match.n; i++) {
        m->user = NULL;
        ok = make(m, zc_rl_stmt_at(&rule->match, i)->pat) != 0;
    }
    ok = ok && make_outputs(m);
    if (ok) out->g = m->g;
    memcpy(out->value, m->value, sizeof m->value);
    if (!ok) zc_graph_destroy(&m->g);
    zc_arena_fini(&m->arena);
    free(m);
    return ok;
}

bool zc_rl_make_sample(const zc_rl_rule *rule, const zc_rl_choice *c, zc_rl_sample *out)
{
    return zc_rl_make_exact(rule, c, ZC_SAMPLE_OWN, NULL, out);
}
