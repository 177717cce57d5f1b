/* Attributes in samples. */
#include <string.h>

#include "prover/sample_parts.h"

typedef zc_rl_maker maker;
#define below zc_rl_below

/* ---- words ---- */

enum { WORDS_MAX = 7 };

/* Words that may stand for each other. */
static const char *const families[][WORDS_MAX] = {
    {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"},
    {"constant", "reflect", "edge", "wrap"},
    {"none", "add", "mul", "max", "min", "mean", "sum"},
    {"nearest", "linear", "cubic", "circular"},
    {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"},
    {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"},
    {"stretch", "not_larger", "not_smaller"},
    {"forward", "reverse", "bidirectional"},
    {"zeros", "border", "reflection"},
    {"TF", "IDF", "TFIDF"},
    {"DCR", "CRD"},
    {"avg", "max"}};

/* The family of a word, how large it is, and where the word stands there; NULL: it has none. */
static const char *const *family_of(const char *word, int *size, int *at)
{
    for (size_t f = 0; word && f < ZC_COUNTOF(families); f++) {
        *at = -1;
        for (*size = 0; *size < WORDS_MAX && families[f][*size]; ++*size)
            if (strcmp(families[f][*size], word) == 0) *at = *size;
        if (*at >= 0) return families[f];
    }
    return NULL;
}

/* Another word of the family, the turn-th one. */
static const char *other_word(const char *word, int turn)
{
    int size, at;
    const char *const *family = family_of(word, &size, &at);
    return family ? family[(at + 1 + turn % (size - 1)) % size] : word;
}

/* ---- values ---- */

static const float reals[] = {0.25F, -0.5F, 0, 2, 0.5F, -1, 1, 3, 1e-3F, 0.75F};
enum { INTEGERS = 5 };

/* Lists are drawn anew each time: windows have many. */
int zc_rl_attr_turns(const zc_attr_field *f)
{
    int size = 0, at;
    switch (f->kind) {
    case ZC_ATTR_STR:
        return family_of(f->def_str, &size, &at) ? size - 1 : 0;
    case ZC_ATTR_INT:
        return INTEGERS;
    case ZC_ATTR_FLOAT:
        return 4;
    case ZC_ATTR_INTS:
        return 8;
    default:
        return 2;
    }
}

/* An integer that is not v: a flag, an axis, a count. */
static int64_t other_integer(const maker *m, int64_t v)
{
    const int64_t integers[INTEGERS] = {0, 1, -1, 2, m->rank - 1};
    int64_t other = integers[m->c->turn % INTEGERS];
    return other == v ? 3 : other;
}

/* An order of dimensions: that of the sample, or another one. */
static zc_ints draw_perm(maker *m)
{
    int64_t *v = below(m, 2) ? zc_arena_alloc(&m->arena, (size_t)m->rank, sizeof *v) : NULL;
    if (!v) return (zc_ints){m->rank, m->perm};
    for (int i = 0; i < m->rank; i++) {
        int at = (int)below(m, i + 1);
        v[i] = v[at];
        v[at] = i;
    }
    return (zc_ints){m->rank, v};
}

static bool is_window_list(const zc_attr_field *f)
{
    static const char *const names[] = {"kernel_shape", "strides", "dilations", "pads",
                                        "output_padding"};
    for (size_t i = 0; i < ZC_COUNTOF(names); i++)
        if (strcmp(f->name, names[i]) == 0) return f->kind == ZC_ATTR_INTS;
    return false;
}

/* A window of an image, its steps or what surrounds it; other lists are orders of dimensions. */
static zc_ints draw_list(maker *m, const zc_attr_field *f)
{
    bool is_pads = strcmp(f->name, "pads") == 0, is_more = strcmp(f->name, "output_padding") == 0;
    int axes = m->rank > 2 ? m->rank - 2 : 1;
    int64_t *v = is_window_list(f) ? zc_arena_alloc(&m->arena, 2 * ZC_RL_BASE, sizeof *v) : NULL;
    if (!v) return draw_perm(m);
    for (int i = 0; i < 2 * axes; i++) v[i] = is_pads || is_more ? below(m, 2) : 1 + below(m, 3);
    return (zc_ints){is_pads ? 2 * axes : axes, v};
}

/* Any value, or one that is not what the attribute has. */
static zc_rl_val draw_value(maker *m, const zc_attr_field *f, zc_rl_val v, bool is_other)
{
    static const zc_dtype types[] = {ZC_F32, ZC_F16, ZC_F64,  ZC_I64, ZC_I32,
                                     ZC_U8,  ZC_I8,  ZC_BOOL, ZC_BF16};
    int turn = is_other ? m->c->turn : (int)below(m, 32);
    switch (v.type) {
    case ZC_RT_INT:
        v.dim = zc_dim_const(is_other ? other_integer(m, v.dim.k) : zc_rl_small_integer(m));
        break;
    case ZC_RT_REAL:
        v.real = (double)reals[turn % (int)ZC_COUNTOF(reals)];
        break;
    case ZC_RT_INTS:
        v.ints = draw_list(m, f);
        break;
    case ZC_RT_DTYPE:
        v.dtype = below(m, 2) ? m->c->dtype : types[below(m, (int64_t)ZC_COUNTOF(types))];
        break;
    case ZC_RT_STR:
        v.str = other_word(v.str, turn);
        break;
    default:
        break;
    }
    return v;
}

static zc_rl_val draw_attr(maker *m, const zc_op_info *info, const void *attrs, int field)
{
    zc_rl_val v = zc_rl_attr_value(info, attrs, field);
    bool is_perm = field == ZC_AT_Transpose_perm && info == zc_op_get(ZC_OP_Transpose);
    return is_perm || below(m, 3) ? draw_value(m, &info->fields[field], v, false) : v;
}

static void take_number(const zc_rl_val *from, zc_rl_val *to)
{
    if (to->type == ZC_RT_INT) to->dim = from->dim;
    if (to->type == ZC_RT_REAL) to->real = from->real;
}

/* A value that the attribute's condition allows, or any. */
static zc_rl_val choose_attr(maker *m, const zc_op_info *info, const void *attrs,
                             const zc_rl_attr *a)
{
    zc_rl_env env = zc_rl_env_of(m);
    if (a->is_capture && m->has_attr[a->var]) return m->attr[a->var];
    if (!a->is_capture &&
        (a->op == ZC_RE_EQ || a->op == ZC_RE_NEAR || a->op == ZC_RE_GE || a->op == ZC_RE_LE))
        return zc_rl_eval(&env, a->value);
    if (a->op == ZC_RE_IN)
        return zc_rl_eval(&env, zc_rl_expr_at(&a->value->args, (int)below(m, a->value->args.n)));
    zc_rl_val v = draw_attr(m, info, attrs, a->field);
    if (a->is_capture) {
        zc_rl_solver s = zc_rl_solver_of(m, a->var);
        if (m->own)
            take_number(&m->own->attr[a->var], &v);
        else
            zc_rl_hint_attr(&s, &v);
        m->attr[a->var] = m->out->attr[a->var] = v;
        m->has_attr[a->var] = true;
    }
    return v;
}

static bool set_attr(maker *m, const zc_op_info *info, void *attrs, int field, const zc_rl_val *v)
{
    if (!zc_rl_attr_set(&m->arena, &info->fields[field], v, zc_attr_at(info, attrs, field)))
        return false;
    zc_attr_mark(attrs, field);
    return true;
}

/* One number that is not 0. */
static bool set_tensor(maker *m, const zc_op_info *info, void *attrs, int field)
{
    zc_tensor *t = zc_arena_alloc(&m->arena, 1, sizeof *t);
    void *data = zc_arena_alloc(&m->arena, 2, sizeof(uint64_t));
    if (!t || !data) return false;
    *t = (zc_tensor){.dtype = zc_rl_widened(m, m->c->dtype), .rank = 1, .dims = {1}, .data = data};
    zc_store_f64(t->dtype, data, 0, 1 + m->c->turn);
    *(const zc_tensor **)zc_attr_at(info, attrs, field) = t;
    zc_attr_mark(attrs, field);
    return true;
}

/* ---- what the pattern says of them ---- */

/* Made by passes behind the rules: no model has them. */
static bool is_internal(const zc_attr_field *f)
{
    return strcmp(f->name, "prologue") == 0 || strcmp(f->name, "epilogue") == 0;
}

static bool is_named(const zc_rl_pat *p, int field)
{
    for (int i = 0; i < p->attrs.n; i++)
        if (zc_rl_attr_at(&p->attrs, i)->field == field) return true;
    return false;
}

bool zc_rl_is_free_attr(const zc_rl_pat *p, int field)
{
    const zc_attr_field *f = &zc_op_get(p->op)->fields[field];
    return p->any_attrs && !is_named(p, field) && !is_internal(f);
}

static bool set_other(maker *m, const zc_op_info *info, void *attrs, int field, bool is_varied)
{
    if (info->fields[field].kind == ZC_ATTR_TENSOR) return set_tensor(m, info, attrs, field);
    zc_rl_val v = zc_rl_attr_value(info, attrs, field);
    v = is_varied ? draw_value(m, &info->fields[field], v, true) : draw_attr(m, info, attrs, field);
    return set_attr(m, info, attrs, field, &v);
}

static bool is_wanted(const maker *m, const zc_rl_pat *p)
{
    return m->c->vary && m->c->want == p->node + 1;
}

/* `{ ... }`: what the pattern does not name may have any value. */
static bool set_others(maker *m, const zc_rl_pat *p, const zc_op_info *info, void *attrs)
{
    for (int i = 0; i < info->field_count; i++) {
        bool is_varied = is_wanted(m, p) && m->c->vary == i + 1;
        if (!zc_rl_is_free_attr(p, i)) continue;
        if (!is_varied && below(m, m->c->vary ? 8 : 3)) continue;
        if (!set_other(m, info, attrs, i, is_varied)) return false;
    }
    return true;
}

/* ---- windows ---- */

static int find_field(const zc_op_info *info, const char *name)
{
    return zc_attr_find(info, name, strlen(name));
}

/* What a list has for an axis of the image, or what it is when left out. */
static int64_t entry(const zc_op_info *info, const void *attrs, const char *name, int axis,
                     int64_t otherwise)
{
    int field = find_field(info, name);
    zc_rl_val v = {.ints = {0}};
    if (field >= 0) v = zc_rl_attr_value(info, attrs, field);
    return axis < v.ints.n ? v.ints.v[axis] : otherwise;
}

/* The same, where an attribute that the pattern leaves open counts as left out. */
static int64_t named_entry(const zc_rl_pat *p, const void *attrs, const char *name, int axis)
{
    const zc_op_info *info = zc_op_get(p->op);
    int field = find_field(info, name);
    return field >= 0 && !zc_rl_is_free_attr(p, field) ? entry(info, attrs, name, axis, 1) : 1;
}

/* The padding with which an axis of n gives as much as a rule's emit side does that forgets the
 * attributes that the pattern leaves open: with another one its rewrite is refused. */
static int64_t even_padding(maker *m, const zc_rl_pat *p, const void *attrs, int axis, int64_t n,
                            int64_t window)
{
    const zc_op_info *info = zc_op_get(p->op);
    int64_t stride = entry(info, attrs, "strides", axis, 1), k = window - 1;
    int64_t reach = entry(info, attrs, "dilations", axis, 1) * k + 1;
    int64_t plain_stride = named_entry(p, attrs, "strides", axis);
    int64_t plain_reach = named_entry(p, attrs, "dilations", axis) * k + 1;
    if (p->op == ZC_OP_ConvTranspose)
        return (stride - plain_stride) * (n - 1) + reach - plain_reach +
               entry(info, attrs, "output_padding", axis, 0);
    return stride * ((n - plain_reach) / plain_stride) + reach - n + below(m, stride);
}

static bool set_even_pads(maker *m, const zc_rl_pat *p, const zc_node *node, void *attrs)
{
    const zc_op_info *info = zc_op_get(p->op);
    const zc_type *x = &zc_val(m->g, node->in[0])->type;
    const zc_type *w = node->nin > 1 ? &zc_val(m->g, node->in[1])->type : NULL;
    int pads = find_field(info, "pads"), axes = x->rank - 2;
    int64_t *v = zc_arena_alloc(&m->arena, 2 * ZC_MAX_RANK, sizeof *v);
    if (!v) return false;
    for (int i = 0; i < axes; i++) {
        int64_t own = w && w->rank == x->rank ? w->dims[2 + i].k : 1;
        int64_t window = entry(info, attrs, "kernel_shape", i, own);
        int64_t all = even_padding(m, p, attrs, i, x->dims[2 + i].k, window);
        v[i] = all > 0 ? (all + 1) / 2 : 0;
        v[axes + i] = all > 0 ? all / 2 : 0;
    }
    zc_rl_val even = {.type = ZC_RT_INTS, .ints = {2 * axes, v}};
    return set_attr(m, info, attrs, pads, &even);
}

/* Is it the turn of an open window? */
static bool has_even_pads(const maker *m, const zc_rl_pat *p, const zc_node *node)
{
    const zc_op_info *info = zc_op_get(p->op);
    int pads = find_field(info, "pads");
    if (!is_wanted(m, p) || pads < 0 || !zc_rl_is_free_attr(p, pads) || !(m->c->turn & 2))
        return false;
    const zc_type *x = &zc_val(m->g, node->in[0])->type;
    bool is_known = is_window_list(&info->fields[m->c->vary - 1]) && x->rank > 2;
    for (int i = 2; is_known && i < x->rank; i++) is_known = zc_dim_is_const(x->dims[i]);
    return is_known;
}

/* ---- all of an operation ---- */

bool zc_rl_set_attrs(maker *m, const zc_rl_pat *p, zc_nid n)
{
    const zc_op_info *info = zc_op_get(p->op);
    zc_node *node = zc_node_at(m->g, n);
    for (int i = 0; i < p->attrs.n; i++) {
        const zc_rl_attr *a = zc_rl_attr_at(&p->attrs, i);
        zc_rl_val v = choose_attr(m, info, node->attrs, a);
        if (!set_attr(m, info, node->attrs, a->field, &v)) return false;
    }
    if (p->any_attrs && !set_others(m, p, info, node->attrs)) return false;
    if (has_even_pads(m, p, node) && !set_even_pads(m, p, node, node->attrs)) return false;
    void *own = zc_graph_attrs_dup(m->g, p->op, node->attrs);
    node->attrs = own;
    return own != NULL;
}
