/* Text to a graph: what print.c writes, and what people write in tests. A hand-written descent,
 * because the form is small; nesting of regions is bounded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "ir/graph.h"

#define DEPTH_MAX 32
#define WORD_MAX  512
#define LIST_MAX  4096

typedef struct parser {
    const char *text, *at, *end;
    zc_graph *g; /* NULL: attributes alone */
    zc_arena *arena;
    zc_diag *diag;
    zc_status status; /* sticky: the first error */
} parser;

static zc_status parse_nodes(parser *p, zc_block *b, unsigned depth);

/* ---- characters and words ---- */

static zc_status fail(parser *p, const char *what)
{
    if (p->status != ZC_OK) return p->status;
    size_t line = 1, column = 1;
    for (const char *c = p->text; c < p->at; c++) {
        column = *c == '\n' ? 1 : column + 1;
        line += *c == '\n';
    }
    p->status =
        zc_fail(p->diag, ZC_ERR_FORMAT, NULL, "line %zu, column %zu: %s", line, column, what);
    return p->status;
}

static void skip_space(parser *p)
{
    while (p->at < p->end) {
        if (*p->at == '#')
            while (p->at < p->end && *p->at != '\n') p->at++;
        else if (strchr(" \t\r\n", *p->at) && *p->at)
            p->at++;
        else
            break;
    }
}

static bool peek(parser *p, const char *word)
{
    skip_space(p);
    size_t n = strlen(word);
    return (size_t)(p->end - p->at) >= n && memcmp(p->at, word, n) == 0;
}

static bool take(parser *p, const char *word)
{
    if (p->status != ZC_OK || !peek(p, word)) return false;
    p->at += strlen(word);
    return true;
}

static zc_status expect(parser *p, const char *word)
{
    char what[64];
    if (take(p, word)) return ZC_OK;
    snprintf(what, sizeof what, "expected '%s'", word);
    return fail(p, what);
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static zc_status quoted(parser *p, char out[WORD_MAX])
{
    size_t n = 0;
    ZC_TRY(expect(p, "\""));
    while (p->at < p->end && *p->at != '"') {
        char c = *p->at++;
        if (n + 1 >= WORD_MAX) return fail(p, "text too long");
        if (c == '\\') {
            int hi = p->end - p->at >= 3 && p->at[0] == 'x' ? hex_digit(p->at[1]) : -1;
            int lo = hi >= 0 ? hex_digit(p->at[2]) : -1;
            if (lo < 0 || hi * 16 + lo == 0) return fail(p, "bad escape (need \\xNN)");
            c = (char)(hi * 16 + lo);
            p->at += 3;
        }
        out[n++] = c;
    }
    out[n] = 0;
    if (p->at == p->end) return fail(p, "text without its closing quote");
    p->at++;
    return ZC_OK;
}

static zc_status word(parser *p, char out[WORD_MAX])
{
    static const char chars[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-";
    skip_space(p);
    size_t n = 0;
    while (p->at + n < p->end && p->at[n] && strchr(chars, p->at[n])) n++;
    if (n == 0) return fail(p, "expected a name");
    if (n >= WORD_MAX) return fail(p, "name too long");
    memcpy(out, p->at, n);
    out[n] = 0;
    p->at += n;
    return ZC_OK;
}

static zc_status value_name(parser *p, char out[WORD_MAX])
{
    ZC_TRY(expect(p, "%"));
    if (p->at < p->end && *p->at == '"') return quoted(p, out);
    ZC_TRY(word(p, out));
    /* "%x: f32": the colon of a type is not part of the name. */
    size_t n = strlen(out);
    if (out[n - 1] == ':') {
        out[n - 1] = 0;
        p->at--;
    }
    return ZC_OK;
}

/* A number's text, copied so that it ends. */
static zc_status number_text(parser *p, char out[64])
{
    skip_space(p);
    size_t n = 0;
    while (p->at + n < p->end && n < 63 && p->at[n] && strchr("0123456789+-.eEinfaINFAN", p->at[n]))
        n++;
    if (n == 0) return fail(p, "expected a number");
    memcpy(out, p->at, n);
    out[n] = 0;
    p->at += n;
    return ZC_OK;
}

static zc_status integer(parser *p, int64_t *out)
{
    char text[64], *end;
    ZC_TRY(number_text(p, text));
    errno = 0;
    *out = text[0] == '-' ? strtoll(text, &end, 10) : (int64_t)strtoull(text, &end, 10);
    return *end || errno ? fail(p, "not an integer") : ZC_OK;
}

static zc_status real(parser *p, double *out)
{
    char text[64], *end;
    ZC_TRY(number_text(p, text));
    *out = zc_strtod(text, &end);
    return *end ? fail(p, "not a number") : ZC_OK;
}

/* ---- types ---- */

static zc_status dtype(parser *p, zc_dtype *out)
{
    char name[WORD_MAX];
    ZC_TRY(word(p, name));
    *out = zc_dtype_parse(name);
    return *out == ZC_NONE ? fail(p, "no such element type") : ZC_OK;
}

static zc_status type(parser *p, zc_type *out)
{
    *out = (zc_type){.rank = 0};
    ZC_TRY(dtype(p, &out->dtype));
    ZC_TRY(expect(p, "["));
    if (take(p, "*]")) {
        out->rank = -1;
        return ZC_OK;
    }
    while (!take(p, "]")) {
        if (out->rank == ZC_MAX_RANK) return fail(p, "too many dimensions");
        if (out->rank) ZC_TRY(expect(p, ","));
        skip_space(p);
        size_t n =
            zc_dim_parse(&p->g->dims, p->at, (size_t)(p->end - p->at), &out->dims[out->rank]);
        if (n == 0) return fail(p, "not a dimension");
        p->at += n;
        out->rank++;
    }
    return ZC_OK;
}

/* ---- constants ---- */

static zc_status element(parser *p, zc_tensor *t, int64_t i)
{
    if (zc_dtype_is_float(t->dtype)) {
        double v = 0;
        ZC_TRY(real(p, &v));
        zc_store_f64(t->dtype, t->data, i, v);
        return ZC_OK;
    }
    int64_t v = 0;
    ZC_TRY(integer(p, &v));
    zc_store_i64(t->dtype, t->data, i, v);
    return ZC_OK;
}

static zc_status contents(parser *p, zc_tensor *t)
{
    size_t bytes;
    int64_t n = zc_tensor_numel(t);
    if (!zc_tensor_bytes(t, &bytes) || n > p->end - p->at)
        return fail(p, "constant too large for its text");
    if (zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX)
        return fail(p, "complex constants have no text");
    t->data = zc_calloc(bytes, 1);
    if (!t->data) return zc_fail_nomem(p->diag, "constant", bytes);
    ZC_TRY(expect(p, "["));
    for (int64_t i = 0; i < n; i++) {
        if (i) ZC_TRY(expect(p, ","));
        ZC_TRY(element(p, t, i));
    }
    return expect(p, "]");
}

static zc_status tensor(parser *p, zc_tensor *out)
{
    zc_type ty;
    *out = (zc_tensor){.data = NULL};
    ZC_TRY(type(p, &ty));
    if (ty.rank < 0) return fail(p, "a constant needs a rank");
    *out = (zc_tensor){.dtype = ty.dtype, .rank = ty.rank};
    for (int d = 0; d < ty.rank; d++) {
        if (!zc_dim_is_const(ty.dims[d])) return fail(p, "a constant's dimensions are numbers");
        out->dims[d] = ty.dims[d].k;
    }
    (void)take(p, "=");
    zc_status status = contents(p, out);
    if (status != ZC_OK) {
        free(out->data);
        out->data = NULL;
    }
    return status;
}

static zc_status constant(parser *p)
{
    char name[WORD_MAX];
    zc_tensor t;
    ZC_TRY(value_name(p, name));
    ZC_TRY(expect(p, ":"));
    if (zc_graph_find(p->g, name)) return fail(p, "a value of this name exists");
    ZC_TRY(tensor(p, &t));
    return zc_graph_const(p->g, name, &t, true) ? ZC_OK : zc_fail_nomem(p->diag, "graph", 0);
}

/* ---- attributes ---- */

static zc_status int_list(parser *p, zc_ints *out)
{
    int64_t *v = zc_arena_alloc(p->arena, LIST_MAX, sizeof *v);
    if (!v) return zc_fail_nomem(p->diag, "list", 0);
    int n = 0;
    ZC_TRY(expect(p, "["));
    while (!take(p, "]")) {
        if (n == LIST_MAX) return fail(p, "list too long");
        if (n) ZC_TRY(expect(p, ","));
        ZC_TRY(integer(p, &v[n++]));
    }
    *out = (zc_ints){n, v};
    return ZC_OK;
}

static zc_status float_list(parser *p, zc_floats *out)
{
    float *v = zc_arena_alloc(p->arena, LIST_MAX, sizeof *v);
    if (!v) return zc_fail_nomem(p->diag, "list", 0);
    int n = 0;
    ZC_TRY(expect(p, "["));
    while (!take(p, "]")) {
        double x = 0;
        if (n == LIST_MAX) return fail(p, "list too long");
        if (n) ZC_TRY(expect(p, ","));
        ZC_TRY(real(p, &x));
        v[n++] = (float)x;
    }
    *out = (zc_floats){n, v};
    return ZC_OK;
}

static zc_status tensor_attr(parser *p, const zc_tensor **out)
{
    zc_tensor t, *own;
    if (!p->g) return fail(p, "a tensor belongs to a graph");
    ZC_TRY(tensor(p, &t));
    if (!ZC_VEC_PUSH(&p->g->buffers, t.data)) {
        free(t.data);
        return zc_fail_nomem(p->diag, "graph", 0);
    }
    own = zc_arena_dup(p->arena, &t, 1, sizeof t);
    *out = own;
    return own ? ZC_OK : zc_fail_nomem(p->diag, "graph", 0);
}

static zc_status attr_value(parser *p, zc_attr_kind kind, void *at)
{
    char text[WORD_MAX];
    double real_value = 0;
    switch (kind) {
    case ZC_ATTR_INT:
        return integer(p, at);
    case ZC_ATTR_FLOAT:
        ZC_TRY(real(p, &real_value));
        *(float *)at = (float)real_value;
        return ZC_OK;
    case ZC_ATTR_STR:
        ZC_TRY(quoted(p, text));
        *(const char **)at = zc_arena_strdup(p->arena, text);
        return *(const char **)at ? ZC_OK : zc_fail_nomem(p->diag, "graph", 0);
    case ZC_ATTR_DTYPE:
        return dtype(p, at);
    case ZC_ATTR_INTS:
        return int_list(p, at);
    case ZC_ATTR_FLOATS:
        return float_list(p, at);
    case ZC_ATTR_TENSOR:
        return tensor_attr(p, at);
    }
    return fail(p, "no such attribute kind");
}

static zc_status attributes(parser *p, zc_op op, void *attrs)
{
    char name[WORD_MAX];
    const zc_op_info *info = zc_op_get(op);
    if (!take(p, "{")) return p->status;
    do {
        ZC_TRY(word(p, name));
        int i = zc_attr_find(info, name, strlen(name));
        if (i < 0) return fail(p, "the operation has no such attribute");
        ZC_TRY(expect(p, "="));
        ZC_TRY(attr_value(p, info->fields[i].kind, zc_attr_at(info, attrs, i)));
        zc_attr_mark(attrs, i);
    } while (take(p, ","));
    return expect(p, "}");
}

zc_status zc_attrs_parse(const char *text, size_t len, zc_op op, void *attrs, zc_arena *arena,
                         zc_diag *diag)
{
    parser p = {.text = text, .at = text, .end = text + len, .arena = arena, .diag = diag};
    ZC_TRY(attributes(&p, op, attrs));
    skip_space(&p);
    return p.at == p.end ? ZC_OK : fail(&p, "text follows the attributes");
}

/* ---- nodes ---- */

static zc_status existing(parser *p, zc_vid *out)
{
    char name[WORD_MAX];
    *out = 0;
    if (take(p, "_")) return ZC_OK;
    ZC_TRY(value_name(p, name));
    *out = zc_graph_find(p->g, name);
    return *out ? ZC_OK : fail(p, "no value of this name has been defined");
}

static zc_status new_value(parser *p, zc_value_kind kind, zc_vid *out)
{
    char name[WORD_MAX];
    zc_type ty;
    ZC_TRY(value_name(p, name));
    ZC_TRY(expect(p, ":"));
    ZC_TRY(type(p, &ty));
    if (zc_graph_find(p->g, name)) return fail(p, "a value of this name exists");
    *out = zc_graph_value(p->g, name, kind, &ty);
    return *out ? ZC_OK : zc_fail_nomem(p->diag, "graph", 0);
}

static zc_status results(parser *p, zc_vid *out, int *n)
{
    *n = 0;
    do {
        if (*n == LIST_MAX) return fail(p, "too many results");
        out[*n] = 0;
        if (!take(p, "_")) ZC_TRY(new_value(p, ZC_VALUE_NODE, &out[*n]));
        ++*n;
    } while (take(p, ","));
    return expect(p, "=");
}

static zc_status operands(parser *p, zc_vid *in, int *n)
{
    *n = 0;
    ZC_TRY(expect(p, "("));
    while (!take(p, ")")) {
        if (*n == LIST_MAX) return fail(p, "too many operands");
        if (*n) ZC_TRY(expect(p, ","));
        ZC_TRY(existing(p, &in[(*n)++]));
    }
    return ZC_OK;
}

static zc_status provenance(parser *p, zc_nid n)
{
    char text[WORD_MAX];
    ZC_TRY(expect(p, "@"));
    ZC_TRY(quoted(p, text));
    zc_node_at(p->g, n)->name = zc_arena_strdup(p->arena, text);
    if (!take(p, "from ")) return p->status;
    ZC_VEC(const char *) list = {0};
    zc_status status;
    do {
        status = quoted(p, text);
        if (status == ZC_OK && !ZC_VEC_PUSH(&list, zc_arena_strdup(p->arena, text)))
            status = zc_fail_nomem(p->diag, "graph", 0);
    } while (status == ZC_OK && take(p, ","));
    zc_node *node = zc_node_at(p->g, n);
    node->prov = zc_arena_dup(p->arena, list.data, list.len, sizeof *list.data);
    node->nprov = node->prov ? (int)list.len : 0;
    ZC_VEC_FINI(&list);
    return status;
}

static zc_status region(parser *p, zc_nid n, unsigned depth)
{
    zc_block *b = zc_graph_region(p->g, n, zc_node_at(p->g, n)->nregions);
    if (!b) return zc_fail_nomem(p->diag, "graph", 0);
    if (depth >= DEPTH_MAX) return fail(p, "regions are nested too deep");
    while (!take(p, ")")) {
        zc_vid v = 0;
        if (b->params.len) ZC_TRY(expect(p, ","));
        ZC_TRY(new_value(p, ZC_VALUE_PARAM, &v));
        if (!ZC_VEC_PUSH(&b->params, v)) return zc_fail_nomem(p->diag, "graph", 0);
    }
    ZC_TRY(expect(p, "{"));
    ZC_TRY(parse_nodes(p, b, depth + 1));
    ZC_TRY(expect(p, "yield"));
    while (!take(p, "}")) {
        zc_vid v = 0;
        if (b->outputs.len) ZC_TRY(expect(p, ","));
        ZC_TRY(existing(p, &v));
        if (!ZC_VEC_PUSH(&b->outputs, v)) return zc_fail_nomem(p->diag, "graph", 0);
    }
    return ZC_OK;
}

static zc_status node_with(parser *p, zc_block *b, zc_vid *lists, unsigned depth)
{
    char name[WORD_MAX];
    zc_vid *out = lists, *in = lists + LIST_MAX;
    int nout, nin;
    ZC_TRY(results(p, out, &nout));
    ZC_TRY(word(p, name));
    zc_op op = zc_op_find(name, strlen(name));
    if (op == ZC_OP_NONE) return fail(p, "no such operation");
    ZC_TRY(operands(p, in, &nin));
    zc_nid n = zc_graph_node(p->g, b, op, NULL, nin, in, nout);
    if (!n) return zc_fail_nomem(p->diag, "graph", 0);
    for (int i = 0; i < nout; i++) {
        zc_node_at(p->g, n)->out[i] = out[i];
        if (out[i]) zc_val(p->g, out[i])->producer = n;
    }
    ZC_TRY(attributes(p, op, zc_node_at(p->g, n)->attrs));
    ZC_TRY(provenance(p, n));
    while (take(p, "(")) ZC_TRY(region(p, n, depth));
    return p->status;
}

static zc_status parse_nodes(parser *p, zc_block *b, unsigned depth)
{
    while (peek(p, "%") || peek(p, "_")) {
        zc_vid *lists = zc_calloc(2 * LIST_MAX, sizeof *lists);
        if (!lists) return zc_fail_nomem(p->diag, "graph", 0);
        zc_status status = node_with(p, b, lists, depth);
        free(lists);
        ZC_TRY(status);
    }
    return p->status;
}

/* ---- the whole ---- */

static zc_status io_name(parser *p, const char ***names, size_t n)
{
    char text[WORD_MAX];
    ZC_TRY(expect(p, "as"));
    ZC_TRY(quoted(p, text));
    const char **grown = zc_arena_alloc(p->arena, n + 1, sizeof *grown);
    if (!grown) return zc_fail_nomem(p->diag, "graph", 0);
    if (n) memcpy(grown, *names, n * sizeof *grown);
    grown[n] = zc_arena_strdup(p->arena, text);
    *names = grown;
    return grown[n] ? ZC_OK : zc_fail_nomem(p->diag, "graph", 0);
}

static zc_status parse_graph(parser *p)
{
    zc_graph *g = p->g;
    char name[WORD_MAX];
    ZC_TRY(expect(p, "graph"));
    ZC_TRY(quoted(p, name));
    g->name = zc_arena_strdup(&g->arena, name);
    ZC_TRY(expect(p, "{"));
    while (take(p, "input ")) {
        zc_vid v = 0;
        ZC_TRY(new_value(p, ZC_VALUE_PARAM, &v));
        ZC_TRY(io_name(p, &g->input_names, g->top.params.len));
        if (!ZC_VEC_PUSH(&g->top.params, v)) return zc_fail_nomem(p->diag, "graph", 0);
    }
    while (take(p, "const ")) ZC_TRY(constant(p));
    ZC_TRY(parse_nodes(p, &g->top, 0));
    while (take(p, "output ")) {
        zc_vid v = 0;
        ZC_TRY(existing(p, &v));
        ZC_TRY(io_name(p, &g->output_names, g->top.outputs.len));
        if (!ZC_VEC_PUSH(&g->top.outputs, v)) return zc_fail_nomem(p->diag, "graph", 0);
    }
    ZC_TRY(expect(p, "}"));
    skip_space(p);
    return p->at == p->end ? ZC_OK : fail(p, "text follows the graph");
}

zc_status zc_graph_parse(const char *text, size_t len, zc_graph **out, zc_diag *diag)
{
    parser p = {.text = text, .at = text, .end = text + len, .diag = diag};
    *out = NULL;
    ZC_TRY(zc_graph_create("", &p.g, diag));
    p.arena = &p.g->arena;
    zc_status status = parse_graph(&p);
    if (status == ZC_OK) status = zc_graph_validate(p.g, NULL, diag);
    if (status == ZC_OK) status = zc_graph_infer_all(p.g, diag);
    if (status != ZC_OK) {
        zc_graph_destroy(&p.g);
        return status;
    }
    *out = p.g;
    return ZC_OK;
}
