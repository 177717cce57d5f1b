#include "random/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Elements of a value when each symbol is 8. */
#define NUMEL_MAX 8192

uint64_t below(growing *m, uint64_t n)
{
    m->state = m->state * 6364136223846793005u + 1442695040888963407u;
    return (m->state >> 33) % n;
}

bool one_in(growing *m, uint64_t n)
{
    return below(m, n) == 0;
}

/* ---- values ---- */

const zc_type *type_of(const growing *m, zc_vid v)
{
    return &zc_val(m->g, v)->type;
}

int rank_of(const growing *m, zc_vid v)
{
    return v ? type_of(m, v)->rank : -1;
}

int64_t dim_of(const growing *m, zc_vid v, int axis)
{
    int rank = rank_of(m, v);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return -1;
    zc_dim d = type_of(m, v)->dims[axis];
    return zc_dim_is_const(d) ? d.k : -1;
}

bool is_exact(const growing *m, zc_vid v)
{
    for (size_t i = 0; i < m->nexact; i++)
        if (m->exact[i] == v) return true;
    return zc_val(m->g, v)->kind != ZC_VALUE_NODE || zc_dtype_is_int(type_of(m, v)->dtype) ||
           type_of(m, v)->dtype == ZC_BOOL;
}

int either_way(growing *m, int axis, int rank)
{
    return one_in(m, 2) ? axis - rank : axis;
}

zc_vid pick(growing *m, int rank)
{
    for (int tries = 0; m->npool && tries < 12; tries++) {
        size_t a = below(m, m->npool), b = below(m, m->npool);
        zc_vid v = m->pool[a > b ? a : b];
        if (type_of(m, v)->dtype == m->real && (!rank || rank_of(m, v) == rank)) return v;
    }
    return 0;
}

void keep(growing *m, zc_vid v)
{
    if (v && m->npool < POOL_MAX) m->pool[m->npool++] = v;
}

zc_vid result(const growing *m, zc_vid v, int i)
{
    const zc_node *n = zc_node_at(m->g, zc_val(m->g, v)->producer);
    return v && i < n->nout ? n->out[i] : 0;
}

/* ---- constants ---- */

static zc_vid constant(growing *m, const zc_tensor *t)
{
    zc_vid v = zc_graph_const(m->g, NULL, t, false);
    m->failed |= !v;
    return v;
}

/* Numbers that every type holds. */
zc_vid reals(growing *m, int rank, const int64_t *dims, double lo, double hi)
{
    enum { STEPS = 64 };
    double bytes[1024];
    zc_tensor t = {.dtype = m->real, .rank = rank, .data = bytes};
    for (int d = 0; d < rank; d++) t.dims[d] = dims[d];
    int64_t n = zc_tensor_numel(&t), span = (int64_t)((hi - lo) * STEPS);
    if (n < 1 || n > (int64_t)ZC_COUNTOF(bytes)) return 0;
    for (int64_t i = 0; i < n; i++)
        zc_store_f64(t.dtype, bytes, i, lo + (double)below(m, (uint64_t)span + 1) / STEPS);
    return constant(m, &t);
}

zc_vid real(growing *m, double x)
{
    double bytes = 0;
    zc_tensor t = {.dtype = m->real, .rank = 0, .data = &bytes};
    zc_store_f64(t.dtype, &bytes, 0, x);
    return constant(m, &t);
}

zc_vid ints(growing *m, int n, const int64_t *v)
{
    zc_tensor t = {.dtype = ZC_I64, .rank = 1, .dims = {n}, .data = (void *)(uintptr_t)v};
    return constant(m, &t);
}

zc_vid number(growing *m, int64_t x)
{
    zc_tensor t = {.dtype = ZC_I64, .rank = 0, .data = &x};
    return constant(m, &t);
}

/* ---- nodes ---- */

const char *text_of(growing *m, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    const char *own = zc_arena_strdup(&m->g->arena, text);
    m->failed |= !own;
    return own ? own : "";
}

static void set_list(growing *m, zc_ints *out, const char *text)
{
    int64_t *v = zc_arena_alloc(&m->g->arena, ZC_MAX_RANK, sizeof *v);
    m->failed |= !v;
    *out = (zc_ints){.v = v};
    for (char *end; v && out->n < ZC_MAX_RANK; text = end + 1) {
        v[out->n++] = strtoll(text, &end, 10);
        if (*end != ',') return;
    }
}

/* false: there is no such attribute. */
static bool set_attr(growing *m, zc_nid n, const char *name, size_t len, const char *value)
{
    const zc_op_info *info = zc_op_get(zc_node_at(m->g, n)->op);
    int field = zc_attr_find(info, name, len);
    if (field < 0) return false;
    void *attrs = zc_node_at(m->g, n)->attrs, *at = zc_attr_at(info, attrs, field);
    if (info->fields[field].kind == ZC_ATTR_INT)
        *(int64_t *)at = strtoll(value, NULL, 10);
    else if (info->fields[field].kind == ZC_ATTR_FLOAT)
        *(float *)at = strtof(value, NULL);
    else if (info->fields[field].kind == ZC_ATTR_INTS)
        set_list(m, at, value);
    else if (info->fields[field].kind == ZC_ATTR_STR)
        *(const char **)at = text_of(m, "%.*s", (int)strcspn(value, " "), value);
    else if (info->fields[field].kind == ZC_ATTR_DTYPE)
        *(zc_dtype *)at = zc_dtype_parse(text_of(m, "%.*s", (int)strcspn(value, " "), value));
    else
        return false;
    zc_attr_mark(attrs, field);
    return true;
}

static bool set_attrs(growing *m, zc_nid n, const char *text)
{
    while (*text) {
        size_t len = strcspn(text, "=");
        if (!set_attr(m, n, text, len, text + len + 1)) return false;
        text += strcspn(text, " ");
        text += *text == ' ';
    }
    return true;
}

static bool fits(const growing *m, zc_vid v)
{
    const zc_type *t = type_of(m, v);
    int64_t n = 1;
    for (int d = 0; d < t->rank; d++) {
        n *= zc_dim_is_const(t->dims[d]) ? t->dims[d].k : 8;
        if (n < 1 || n > NUMEL_MAX) return false;
    }
    return t->rank >= 0 && t->rank <= 6;
}

/* Operations that keep every bit of what they move or choose. */
static bool is_exact_op(zc_op op)
{
    switch (op) {
    case ZC_OP_Transpose:
    case ZC_OP_Slice:
    case ZC_OP_Gather:
    case ZC_OP_Expand:
    case ZC_OP_Neg:
    case ZC_OP_Abs:
    case ZC_OP_Relu:
    case ZC_OP_Max:
    case ZC_OP_Min:
        return true;
    default:
        return zc_op_get(op)->flags & ZC_OPF_VIEW;
    }
}

static void note_exact(growing *m, zc_op op, int nin, const zc_vid *in, zc_vid out)
{
    bool exact = is_exact_op(op);
    for (int i = 0; exact && i < nin; i++) exact = in[i] == LEFT_OUT || is_exact(m, in[i]);
    if (exact && m->nexact < POOL_MAX) m->exact[m->nexact++] = out;
}

zc_vid make(growing *m, zc_op op, const char *attrs, int nin, const zc_vid *in, int nout)
{
    zc_graph *g = m->g;
    for (int i = 0; i < nin; i++)
        if (!in[i]) return 0;
    zc_nid n = zc_graph_node(g, &g->top, op, NULL, nin, NULL, nout);
    for (int i = 0; n && i < nout; i++) m->failed |= !zc_graph_out(g, n, i, NULL);
    m->failed |= !n;
    if (m->failed) return 0;
    for (int i = 0; i < nin; i++) zc_node_at(g, n)->in[i] = in[i] == LEFT_OUT ? 0 : in[i];
    bool ok = set_attrs(m, n, attrs) && zc_graph_infer(g, n, NULL) == ZC_OK;
    for (int i = 0; ok && i < nout; i++) ok = fits(m, zc_node_at(g, n)->out[i]);
    zc_vid out = zc_node_at(g, n)->out[0];
    if (ok) {
        note_exact(m, op, nin, in, out);
        return out;
    }
    g->top.nodes.len--;
    zc_graph_remove(g, n);
    return 0;
}
