#include "rules/rewrite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cpu/kernel.h"
#include "rules/binding/binding.h"
#include "rules/check.h"

/* Emitted operations on constants are computed at once up to this size, or that of their inputs. */
#define FOLD_MAX ((size_t)1 << 22)

static bool refuse(zc_rl_patch *p, const char *fmt, ...) ZC_PRINTF(2, 3);
static bool refuse(zc_rl_patch *p, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(p->why, sizeof p->why, fmt, args);
    va_end(args);
    return false;
}

static bool no_memory(zc_rl_patch *p)
{
    p->nomem = true;
    return refuse(p, "out of memory");
}

/* ---- values ---- */

static zc_vid value_of(const zc_rl_patch *p, int var)
{
    const zc_rl_var *v = &p->m->rule->vars[var];
    if (v->kind == ZC_RV_LIST) return p->m->value[v->first + p->nth];
    return p->value[var] ? p->value[var] : p->m->value[var];
}

/* Stores what the expression of a number gives. */
static bool compute_number(zc_rl_patch *p, const zc_rl_pat *pat, zc_dtype dtype, void *out)
{
    zc_arena arena;
    zc_arena_init(&arena, 0);
    zc_rl_env env = zc_rl_match_env(p->m, &arena);
    zc_rl_val v = zc_rl_eval(&env, pat->computed);
    zc_arena_fini(&arena);
    if (v.type == ZC_RT_INT && zc_dim_is_const(v.dim))
        zc_store_i64(dtype, out, 0, v.dim.k);
    else if (v.type == ZC_RT_REAL)
        zc_store_f64(dtype, out, 0, v.real);
    else
        return refuse(p, "the number in line %d is not known yet", pat->loc.line);
    return true;
}

/* A constant of one number. */
static bool make_number(zc_rl_patch *p, const zc_rl_pat *pat, zc_dtype dtype, zc_vid *out)
{
    uint64_t bytes[2] = {0};
    zc_tensor t = {.dtype = dtype, .rank = 0, .data = bytes};
    if (zc_dtype_class(dtype) == ZC_CLASS_COMPLEX)
        return refuse(p, "the number in line %d would be complex", pat->loc.line);
    if (!pat->computed)
        zc_store_f64(dtype, bytes, 0, pat->num);
    else if (!compute_number(p, pat, dtype, bytes))
        return false;
    *out = zc_graph_const(p->x->g, pat->text, &t, false);
    return *out || no_memory(p);
}

static bool make_list(zc_rl_patch *p, const zc_rl_pat *pat, zc_vid *out)
{
    int64_t v[ZC_RL_LIST_MAX];
    zc_arena arena;
    bool ok = true;
    zc_arena_init(&arena, 0);
    zc_rl_env env = zc_rl_match_env(p->m, &arena);
    for (int i = 0; ok && i < pat->args.n; i++) {
        zc_rl_val e = zc_rl_eval(&env, zc_rl_expr_at(&pat->args, i));
        ok = e.type == ZC_RT_INT && zc_dim_is_const(e.dim);
        if (ok) v[i] = e.dim.k;
    }
    zc_arena_fini(&arena);
    if (!ok) return refuse(p, "the list in line %d is not known yet", pat->loc.line);
    *out = zc_graph_const_i64(p->x->g, NULL, v, pat->args.n, 1);
    return *out || no_memory(p);
}

/* ---- attributes ---- */

static bool set_kernel(zc_rl_patch *p, const zc_rl_pat *pat, const zc_rl_env *env, zc_nid n)
{
    const zc_node *node = zc_node_at(p->x->g, n);
    switch (zc_rl_set_kernel(env, pat->kernel, node->in, node->attrs)) {
    case ZC_RL_SET_NOMEM:
        return no_memory(p);
    case ZC_RL_SET_UNKNOWN:
        return refuse(p, "an attribute in the meaning of %s is not known yet", pat->text);
    case ZC_RL_SET_OK:
        break;
    }
    return true;
}

/* What was matched by that operation of match, or by the one in another part of its ( | ). */
static zc_nid passing_node(const zc_rl_matcher *m, int like)
{
    const zc_rl_pat *first = m->rule->nodes[like];
    for (int i = like; i < m->rule->nnodes; i++) {
        const zc_rl_pat *p = m->rule->nodes[i];
        bool is_one = p == first || (first->choice && p->choice == first->choice);
        if (!is_one || p->op != first->op || !p->any_attrs) continue;
        if (m->node[i] || m->node[p->twin]) return m->node[m->node[i] ? i : p->twin];
    }
    return 0;
}

/* The attributes that `{ ... }` passes on, as far as they are given. */
static bool pass_attrs(const zc_rl_patch *p, const zc_rl_pat *pat, zc_arena *arena, void *attrs)
{
    const zc_op_info *info = zc_op_get(pat->op);
    zc_nid n = passing_node(p->m, pat->like);
    if (!n) return true;
    const zc_node *from = zc_node_at(p->x->g, n);
    if (from->op == pat->op) {
        memcpy(attrs, from->attrs, info->attrs_size);
        return true;
    }
    const zc_op_info *own = zc_op_get(from->op);
    uint64_t given; /* the first field of every struct */
    memcpy(&given, from->attrs, sizeof given);
    for (int i = 0; i < zc_op_own_fields(own); i++) {
        int at = zc_attr_find(info, own->fields[i].name, strlen(own->fields[i].name));
        zc_rl_val v = zc_rl_attr_value(own, from->attrs, i);
        if (!(given >> i & 1)) continue;
        if (at < 0 || !zc_rl_attr_set(arena, &info->fields[at], &v, zc_attr_at(info, attrs, at)))
            return false;
        zc_attr_mark(attrs, at);
    }
    return true;
}

static bool set_attrs(zc_rl_patch *p, const zc_rl_pat *pat, zc_nid n)
{
    const zc_op_info *info = zc_op_get(pat->op);
    void *attrs = zc_node_at(p->x->g, n)->attrs;
    zc_arena arena;
    bool ok = true;
    zc_arena_init(&arena, 0);
    zc_rl_env env = zc_rl_match_env(p->m, &arena);
    if (pat->like >= 0 && !pass_attrs(p, pat, &arena, attrs))
        ok = refuse(p, "%s cannot have the attributes that are passed on", pat->text);
    for (int i = 0; ok && !pat->pointwise && i < pat->attrs.n; i++) {
        const zc_rl_attr *a = zc_rl_attr_at(&pat->attrs, i);
        zc_rl_val v = zc_rl_eval(&env, a->value);
        if (v.type == ZC_RT_ANY && v.absent) continue; /* of an absent operand: the default */
        ok = zc_rl_attr_set(&arena, &info->fields[a->field], &v, zc_attr_at(info, attrs, a->field));
        zc_attr_mark(attrs, a->field);
        if (!ok)
            refuse(p, "attribute '%s' in line %d is not known yet", a->name.text, a->name.loc.line);
    }
    if (ok && pat->pointwise) {
        const char *expr = zc_rl_pointwise_expr(&env, pat);
        ok = expr || refuse(p, "an attribute of %s is not known yet", pat->text);
        ZC_ATTR_SET(Pointwise, (zc_attrs_Pointwise *)attrs, expr, expr);
    }
    if (ok && pat->kernel) ok = set_kernel(p, pat, &env, n);
    void *own = ok ? zc_graph_attrs_dup(p->x->g, pat->op, attrs) : attrs;
    zc_arena_fini(&arena);
    zc_node_at(p->x->g, n)->attrs = own ? own : attrs;
    return own ? ok : no_memory(p);
}

/* ---- operations ---- */

static bool emit(zc_rl_patch *p, const zc_rl_pat *pat, zc_dtype hint, zc_vid *out);

/* The element type that numbers among the operands take. */
static zc_dtype number_type(const zc_rl_patch *p, const zc_vid *in, int n)
{
    zc_dtype d = ZC_NONE;
    for (int i = 0; i < n; i++) {
        zc_dtype own = in[i] ? zc_val(p->x->g, in[i])->type.dtype : ZC_NONE;
        if (d == ZC_NONE || d == ZC_BOOL) d = own ? own : d;
    }
    return d ? d : ZC_F32;
}

/* Operands by number, with those that a name collected one by one. */
typedef struct operands {
    zc_vid v[ZC_RL_LIST_MAX];
    const zc_rl_pat *number[ZC_RL_LIST_MAX]; /* a number, or NULL */
    int n;
} operands;

static bool add_operand(zc_rl_patch *p, const zc_rl_pat *pat, operands *in, zc_vid v)
{
    int most = pat->is_chain ? ZC_RL_LIST_MAX : zc_op_get(pat->op)->max_in;
    if (in->n >= ZC_RL_LIST_MAX || in->n >= most)
        return refuse(p, "%s would have too many operands (need at most %d)", pat->text,
                      most < ZC_RL_LIST_MAX ? most : ZC_RL_LIST_MAX);
    in->v[in->n++] = v;
    return true;
}

/* One operand for each that was collected: the value, or what the pattern makes of it. */
static bool emit_each(zc_rl_patch *p, const zc_rl_pat *pat, const zc_rl_pat *a, operands *in)
{
    const zc_rl_var *list = &p->m->rule->vars[a->var];
    bool ok = true;
    for (int i = 0; ok && i < list->count; i++) {
        zc_vid v = p->m->value[list->first + i];
        p->nth = i;
        if (v)
            ok = (a->kind == ZC_RP_NAME || emit(p, a, ZC_NONE, &v)) && add_operand(p, pat, in, v);
    }
    p->nth = -1;
    return ok;
}

static bool emit_operands(zc_rl_patch *p, const zc_rl_pat *pat, operands *in)
{
    for (int i = 0; i < pat->args.n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&pat->args, i);
        zc_vid v = 0;
        if (a->spread && p->nth < 0) {
            if (!emit_each(p, pat, a, in)) return false;
            continue;
        }
        if (a->kind != ZC_RP_NUM && !emit(p, a, ZC_NONE, &v)) return false;
        if (!add_operand(p, pat, in, v)) return false;
        if (a->kind == ZC_RP_NUM) in->number[in->n - 1] = a;
    }
    zc_dtype hint = number_type(p, in->v, in->n);
    for (int i = 0; i < in->n; i++) {
        zc_dtype own = zc_rl_is_list(pat->op, i) ? ZC_I64 : hint;
        if (in->number[i] && !emit(p, in->number[i], own, &in->v[i])) return false;
    }
    return true;
}

static bool is_foldable(const zc_graph *g, const zc_node *n)
{
    size_t in = 0;
    if (n->nout != 1 || n->nin == 0) return false;
    if (zc_op_get(n->op)->flags & (ZC_OPF_RANDOM | ZC_OPF_REGIONS | ZC_OPF_DYNAMIC)) return false;
    for (int i = 0; i < n->nin; i++) {
        size_t bytes = 0;
        const zc_tensor *t = n->in[i] ? zc_val(g, n->in[i])->data : NULL;
        if (n->in[i] && (!t || !zc_tensor_bytes(t, &bytes))) return false;
        in += bytes;
    }
    zc_tensor out = {.dtype = zc_val(g, n->out[0])->type.dtype,
                     .rank = zc_val(g, n->out[0])->type.rank};
    size_t bytes = 0;
    for (int d = 0; d < out.rank; d++) {
        zc_dim dim = zc_val(g, n->out[0])->type.dims[d];
        if (!zc_dim_is_const(dim)) return false;
        out.dims[d] = dim.k;
    }
    return out.rank >= 0 && zc_tensor_bytes(&out, &bytes) &&
           (bytes <= in || bytes - in <= FOLD_MAX);
}

static bool has_hollow_operand(const zc_graph *g, const zc_node *n)
{
    for (int i = 0; i < n->nin; i++)
        if (n->in[i] && zc_graph_is_hollow(g, n->in[i])) return true;
    return false;
}

/* The result of a node on constants as a constant, 0 when it cannot be computed. false: no memory.
 */
static bool compute(zc_graph *g, const zc_node *n, zc_vid *out)
{
    zc_tensor in[ZC_RL_LIST_MAX] = {{0}}, result = {.dtype = ZC_F32};
    *out = 0;
    if (has_hollow_operand(g, n)) {
        *out = zc_graph_hollow(g, NULL, &zc_val(g, n->out[0])->type);
        return *out != 0;
    }
    for (int i = 0; i < n->nin; i++)
        if (n->in[i]) in[i] = *zc_val(g, n->in[i])->data;
    zc_status status = zc_cpu_eval(n->op, n->attrs, n->nin, in, 1, &result, true, n->name, NULL);
    if (status == ZC_OK) *out = zc_graph_const(g, NULL, &result, true);
    return status != ZC_ERR_NOMEM && (*out || status != ZC_OK);
}

/* Views of a constant that change nothing leave it as it is, with its name. */
static bool is_same(const zc_graph *g, const zc_node *n)
{
    const zc_type *a = &zc_val(g, n->in[0])->type, *b = &zc_val(g, n->out[0])->type;
    bool same = zc_op_get(n->op)->flags & ZC_OPF_VIEW && a->dtype == b->dtype && a->rank == b->rank;
    for (int d = 0; same && d < a->rank; d++) same = zc_dim_eq(a->dims[d], b->dims[d]);
    return same;
}

/* A node on constants becomes its result; *out stays when that cannot be computed. */
static bool fold(zc_rl_patch *p, zc_nid n, zc_vid *out)
{
    zc_graph *g = p->x->g;
    const zc_node *node = zc_node_at(g, n);
    zc_vid v;
    if (!is_foldable(g, node)) return true;
    if (is_same(g, node))
        v = node->in[0];
    else if (!compute(g, node, &v))
        return no_memory(p);
    if (!v) return true;
    *out = v;
    zc_graph_remove(g, n);
    p->nmade--;
    return true;
}

/* Types the node; what is wrong with it refuses the patch. */
static bool infer(zc_rl_patch *p, zc_nid n)
{
    zc_diag *diag = zc_diag_create();
    zc_status status = zc_graph_infer(p->x->g, n, diag);
    if (status != ZC_OK) refuse(p, "%.200s", zc_diag_text(diag, 0));
    if (status == ZC_ERR_NOMEM) p->nomem = true;
    zc_diag_destroy(&diag);
    return status == ZC_OK;
}

/* Results that match has none of are not made. */
static bool is_wanted(const zc_rl_patch *p, const zc_rl_pat *pat, int i)
{
    if (pat->kernel || pat->nouts == 0 || i < zc_op_get(pat->op)->min_out) return true;
    int var = pat->outs[i];
    return var >= 0 && (!p->m->rule->vars[var].is_output || p->m->bound[var]);
}

static bool make_node(zc_rl_patch *p, const zc_rl_pat *pat, int nin, const zc_vid *in, zc_nid *out)
{
    zc_graph *g = p->x->g;
    int nout = pat->nouts ? pat->nouts : 1;
    int least = pat->kernel ? pat->kernel->params.n : zc_op_get(pat->op)->min_in;
    if (pat->kernel) nout = pat->kernel->nresults;
    while (nout > 1 && !is_wanted(p, pat, nout - 1)) nout--;
    while (nin > 0 && !in[nin - 1]) nin--;
    if (p->nmade == ZC_RL_MADE_MAX) return refuse(p, "too many operations");
    if (nin < least) return refuse(p, "%s lacks an operand", pat->text);
    const char *name = zc_node_at(g, p->m->root)->name;
    zc_nid n = zc_graph_node(g, NULL, pat->op, name, nin, in, nout);
    if (!n) return no_memory(p);
    p->made[p->nmade++] = n;
    for (int i = 0; i < nout; i++) {
        if (is_wanted(p, pat, i) && !zc_graph_out(g, n, i, NULL)) return no_memory(p);
    }
    *out = n;
    return set_attrs(p, pat, n) && infer(p, n);
}

/* out[i]: the node's results. */
static bool emit_with(zc_rl_patch *p, const zc_rl_pat *pat, int nin, const zc_vid *in, zc_vid *out)
{
    zc_nid n;
    if (!make_node(p, pat, nin, in, &n)) return false;
    const zc_node *node = zc_node_at(p->x->g, n);
    for (int i = 0; i < node->nout; i++) out[i] = node->out[i];
    return fold(p, n, &out[0]);
}

/* The first two operands, the result and the next one, and so on; of one operand, that. */
static bool emit_chain(zc_rl_patch *p, const zc_rl_pat *pat, const operands *in, zc_vid *out)
{
    *out = in->v[0];
    for (int i = 1; i < in->n; i++)
        if (!emit_with(p, pat, 2, (zc_vid[]){*out, in->v[i]}, out)) return false;
    return *out || refuse(p, "%s lacks an operand", pat->text);
}

/* Of a first operand that match left out, what an operation would compute is absent, too. */
static bool is_left_out(const zc_rl_pat *pat, const operands *in)
{
    const zc_rl_pat *first = zc_rl_pat_at(&pat->args, 0);
    bool is_value = first->kind == ZC_RP_NAME || first->kind == ZC_RP_NODE;
    return !pat->is_chain && in->n && !in->v[0] && is_value && !first->spread;
}

static bool emit_node(zc_rl_patch *p, const zc_rl_pat *pat, zc_vid *out)
{
    operands in = {.n = 0};
    if (!emit_operands(p, pat, &in)) return false;
    if (is_left_out(pat, &in)) return true;
    return pat->is_chain ? emit_chain(p, pat, &in, out) : emit_with(p, pat, in.n, in.v, out);
}

static bool emit(zc_rl_patch *p, const zc_rl_pat *pat, zc_dtype hint, zc_vid *out)
{
    zc_vid results[8] = {0};
    *out = 0;
    switch (pat->kind) {
    case ZC_RP_NAME:
        *out = value_of(p, pat->var);
        return true;
    case ZC_RP_NUM:
        return make_number(p, pat, hint ? hint : ZC_F32, out);
    case ZC_RP_LIST:
        return make_list(p, pat, out);
    case ZC_RP_NODE:
        if (!emit_node(p, pat, results)) return false;
        *out = results[0];
        return true;
    case ZC_RP_ABSENT:
    case ZC_RP_ALT:
    case ZC_RP_REST:
        return true;
    }
    return true;
}

static bool emit_stmt(zc_rl_patch *p, const zc_rl_stmt *st)
{
    zc_vid results[8] = {0};
    bool ok = st->pat->kind == ZC_RP_NODE ? emit_node(p, st->pat, results)
                                          : emit(p, st->pat, ZC_NONE, &results[0]);
    for (int i = 0; ok && i < st->pat->nouts; i++)
        if (st->pat->outs[i] >= 0) p->value[st->pat->outs[i]] = results[i];
    return ok;
}

/* ---- checking ---- */

static bool same_type(const zc_type *a, const zc_type *b)
{
    if (a->dtype != b->dtype || a->rank != b->rank || a->rank < 0) return false;
    for (int i = 0; i < a->rank; i++)
        if (!zc_dim_eq(a->dims[i], b->dims[i])) return false;
    return true;
}

static bool is_result(const zc_rl_patch *p, int var)
{
    return p->m->rule->vars[var].is_output && p->m->bound[var];
}

static bool check_types(zc_rl_patch *p)
{
    const zc_graph *g = p->x->g;
    for (int i = 0; i < p->m->rule->nvars; i++) {
        if (!is_result(p, i)) continue;
        const char *name = p->m->rule->vars[i].name;
        if (!p->value[i]) return refuse(p, "'%s' would be missing", name);
        const zc_type *new = &zc_val(g, p->value[i])->type, *old = &zc_val(g, p->m->value[i])->type;
        if (same_type(new, old)) continue;
        zc_buf text = {0};
        zc_type_print(&g->dims, new, &text);
        zc_buf_puts(&text, ", need ");
        zc_type_print(&g->dims, old, &text);
        refuse(p, "'%s' would have another type (got %.180s)", name, text.data ? text.data : "");
        zc_buf_fini(&text);
        return false;
    }
    return true;
}

/* ---- placing ---- */

static uint64_t order_of(const zc_rl_patch *p, zc_nid n)
{
    return zc_index_place(p->x, n)->order;
}

/* The later of `last` and the node of the matched nodes' block that computes v; either may be 0. */
static zc_nid later(const zc_rl_patch *p, zc_nid last, zc_vid v)
{
    const zc_value *value = zc_val(p->x->g, v);
    zc_nid at = v && value->kind == ZC_VALUE_NODE ? value->producer : 0;
    if (!at || at >= p->x->places.len) return last;
    at = zc_index_within(p->x, at, p->m->block);
    if (!at || !order_of(p, at)) return last;
    return !last || order_of(p, at) > order_of(p, last) ? at : last;
}

/* The last of the matched nodes' block that computes something the patch reads, or gives as a
 * result as it is; 0: none. */
static zc_nid last_operand(const zc_rl_patch *p)
{
    zc_nid last = 0;
    for (int i = 0; i < p->nmade; i++) {
        const zc_node *n = zc_node_at(p->x->g, p->made[i]);
        for (int k = 0; k < n->nin; k++) last = later(p, last, n->in[k]);
    }
    for (int i = 0; i < p->m->rule->nvars; i++)
        if (is_result(p, i)) last = later(p, last, p->value[i]);
    return last;
}

static bool is_result_value(const zc_rl_patch *p, zc_vid v)
{
    for (int i = 0; i < p->m->rule->nvars; i++)
        if (is_result(p, i) && p->m->value[i] == v) return true;
    return false;
}

/* Is a result of matched node i that is not defined anew used by a node that stays? */
static bool is_needed(const zc_rl_patch *p, const bool *stays, int i)
{
    const zc_node *node = zc_node_at(p->x->g, p->m->node[i]);
    for (int k = 0; k < node->nout; k++) {
        zc_vid v = node->out[k];
        if (!v || is_result_value(p, v)) continue;
        uint32_t goes = 0;
        for (int j = 0; j < p->m->rule->nnodes; j++) {
            if (!p->m->node[j] || stays[j]) continue;
            const zc_node *user = zc_node_at(p->x->g, p->m->node[j]);
            for (int a = 0; a < user->nin; a++) goes += user->in[a] == v;
        }
        if (p->x->uses.data[v] > goes) return true;
    }
    return false;
}

/* Which matched nodes the rewrite leaves. */
static void find_staying(const zc_rl_patch *p, bool *stays)
{
    for (bool again = true; again;) {
        again = false;
        for (int i = 0; i < p->m->rule->nnodes; i++) {
            if (!p->m->node[i] || stays[i] || !is_needed(p, stays, i)) continue;
            stays[i] = again = true;
        }
    }
}

static bool goes_away(const zc_rl_patch *p, const bool *stays, zc_nid n)
{
    for (int i = 0; i < p->m->rule->nnodes; i++)
        if (p->m->node[i] == n) return !stays[i];
    return false;
}

/* The first node that stays and reads a result of the match; 0: none. */
static zc_nid first_user(const zc_rl_patch *p)
{
    bool stays[ZC_RL_NODES_MAX] = {0};
    zc_nid first = 0;
    find_staying(p, stays);
    for (int i = 0; i < p->m->rule->nvars; i++) {
        if (!is_result(p, i)) continue;
        zc_vid v = p->m->value[i];
        for (uint32_t e = p->x->users.data[v]; e; e = p->x->edges.data[e].next) {
            zc_nid n = p->x->edges.data[e].node;
            if (!zc_use_live(p->x, e, v) || goes_away(p, stays, n)) continue;
            n = zc_index_within(p->x, n, p->m->block);
            if (n && (!first || order_of(p, n) < order_of(p, first))) first = n;
        }
    }
    return first;
}

static bool has_one_result(const zc_rl_patch *p)
{
    int n = 0;
    bool is_root = false;
    for (int i = 0; i < p->m->rule->nvars; i++) {
        if (!is_result(p, i)) continue;
        is_root = zc_val(p->x->g, p->m->value[i])->producer == p->m->root;
        n++;
    }
    return n == 1 && p->m->rule->nextra == 0 && is_root;
}

/* The node that the new ones go before (0: the end of the block): after what they read, before
 * what reads them. */
static bool find_place(zc_rl_patch *p, zc_nid *before)
{
    *before = p->m->root;
    if (has_one_result(p)) return true;
    zc_nid last = last_operand(p);
    *before = first_user(p);
    return !last || !*before || order_of(p, last) < order_of(p, *before) ||
           refuse(p, "a result is used before all operands are there");
}

/* ---- putting it in ---- */

static bool add_label(zc_graph *g, zc_nid n, const char *label)
{
    zc_node *node = zc_node_at(g, n);
    const char **prov = zc_arena_alloc(&g->arena, (size_t)node->nprov + 1, sizeof *prov);
    if (!prov) return false;
    for (int i = 0; i < node->nprov; i++) {
        if (strcmp(node->prov[i], label) == 0) return true;
        prov[i] = node->prov[i];
    }
    prov[node->nprov++] = label;
    node->prov = prov;
    return true;
}

static bool link_nodes(zc_rl_patch *p, zc_nid before)
{
    zc_graph *g = p->x->g;
    if (!zc_index_grow(p->x)) return no_memory(p);
    for (int i = 0; i < p->nmade; i++) {
        for (int k = 0; k < p->m->rule->nnodes; k++)
            if (p->m->node[k] && !zc_graph_inherit(g, p->made[i], p->m->node[k]))
                return no_memory(p);
        if (!add_label(g, p->made[i], p->label)) return no_memory(p);
        zc_index_link(p->x, p->made[i], p->m->block, before);
        if (!zc_index_add(p->x, p->made[i])) return no_memory(p);
    }
    return true;
}

/* The result `old` has a new meaning; its former node gets a value of its own to write to. */
static bool take_over(zc_rl_patch *p, zc_vid old, zc_vid new)
{
    zc_graph *g = p->x->g;
    zc_nid from = zc_val(g, old)->producer, to = zc_val(g, new)->producer;
    bool is_made = false;
    for (int i = 0; i < p->nmade; i++) is_made |= p->made[i] == to;
    if (zc_val(g, new)->kind != ZC_VALUE_NODE || !is_made || p->x->uses.data[new]) {
        zc_graph_forward(g, old, new);
        return zc_index_replace(p->x, old, new) || no_memory(p);
    }
    zc_node *a = zc_node_at(g, from), *b = zc_node_at(g, to);
    for (int i = 0; i < a->nout; i++)
        if (a->out[i] == old) a->out[i] = new;
    for (int i = 0; i < b->nout; i++)
        if (b->out[i] == new) b->out[i] = old;
    zc_val(g, old)->producer = to;
    zc_val(g, new)->producer = from;
    return true;
}

static bool is_unused(const zc_rl_patch *p, zc_nid n)
{
    const zc_node *node = zc_node_at(p->x->g, n);
    for (int i = 0; i < node->nout; i++)
        if (node->out[i] && p->x->uses.data[node->out[i]]) return false;
    return true;
}

enum { CHAIN_MOST = 64 }; /* what is left of longer ones goes when the rules are through */

/* Node n, and what stood in front of it for its sake alone: uses that are none would keep other
 * rules from what they look for. */
static void remove_chain(zc_rl_patch *p, zc_nid n, int depth)
{
    const zc_node *node = zc_node_at(p->x->g, n);
    const zc_vid *in = node->in;
    int nin = node->nin;
    zc_index_remove(p->x, n);
    for (int i = 0; i < nin && depth < CHAIN_MOST; i++) {
        zc_nid from = in[i] ? zc_val(p->x->g, in[i])->producer : 0;
        if (!from || zc_node_at(p->x->g, from)->op == ZC_OP_NONE) continue;
        if (zc_node_at(p->x->g, from)->nregions == 0 && is_unused(p, from))
            remove_chain(p, from, depth + 1);
    }
}

/* Users before what they use, so that whole chains go. */
static void remove_matched(zc_rl_patch *p)
{
    for (;;) {
        zc_nid last = 0;
        for (int i = 0; i < p->m->rule->nnodes; i++) {
            zc_nid n = p->m->node[i];
            if (!n || zc_node_at(p->x->g, n)->op == ZC_OP_NONE || !is_unused(p, n)) continue;
            if (!last || order_of(p, n) > order_of(p, last)) last = n;
        }
        if (!last) return;
        remove_chain(p, last, 0);
    }
}

static void discard(zc_rl_patch *p)
{
    for (int i = 0; i < p->nmade; i++) zc_graph_remove(p->x->g, p->made[i]);
    p->nmade = 0;
}

static bool is_removed(const zc_rl_patch *p, zc_nid n)
{
    return zc_node_at(p->x->g, n)->op == ZC_OP_NONE;
}

bool zc_rl_rewrite(zc_rl_patch *p)
{
    const zc_rl_rule *rule = p->m->rule;
    zc_nid before;
    p->nmade = 0;
    p->nth = -1;
    p->nomem = false;
    memset(p->value, 0, sizeof p->value);
    bool ok = true;
    for (int i = 0; ok && i < rule->emit.n; i++) ok = emit_stmt(p, zc_rl_stmt_at(&rule->emit, i));
    if (!ok || !check_types(p) || !find_place(p, &before)) {
        discard(p);
        return false;
    }
    if (!link_nodes(p, before)) return false;
    for (int i = 0; i < rule->nvars; i++)
        if (is_result(p, i) && !take_over(p, p->m->value[i], p->value[i])) return false;
    remove_matched(p);
    p->resume = p->nmade ? p->made[p->nmade - 1] : p->m->root;
    while (p->resume && is_removed(p, p->resume)) p->resume = zc_index_place(p->x, p->resume)->prev;
    return true;
}
