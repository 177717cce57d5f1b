#include "passes/compose.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "op/expr.h"
#include "passes/query.h"

static bool is_expr_dtype(zc_dtype d)
{
    return zc_dtype_bits(d) >= 8 && zc_dtype_class(d) != ZC_CLASS_COMPLEX &&
           (d <= ZC_F8E4M3FN || d == ZC_BF16);
}

static bool is_number(const zc_graph *g, zc_vid v)
{
    const zc_value *value = zc_val(g, v);
    return value->kind == ZC_VALUE_CONST && value->data && value->data->data &&
           zc_tensor_numel(value->data) == 1;
}

/* A conversion to e4m3 saturates in expressions. */
static bool saturates(const zc_node *n)
{
    return n->op == ZC_OP_Cast ? ((const zc_attrs_Cast *)n->attrs)->saturate != 0
           : n->op == ZC_OP_QuantizeLinear
               ? ((const zc_attrs_QuantizeLinear *)n->attrs)->saturate != 0
               : true;
}

/* Floats between which and bytes expressions convert. Scales of 16 bits become numbers of the text.
 */
static bool is_quantised(const zc_graph *g, zc_vid scale, zc_dtype real)
{
    const zc_dtype counts = zc_val(g, scale)->type.dtype;
    const bool narrow = counts == ZC_F16 || counts == ZC_BF16;
    return (counts == ZC_F32 || (narrow && is_number(g, scale))) &&
           (real == ZC_F32 || real == ZC_F16 || real == ZC_BF16);
}

/* Between floats and bytes, with one scale? */
static bool is_quantisation(const zc_graph *g, const zc_node *n)
{
    const bool down = n->op == ZC_OP_QuantizeLinear, up = n->op == ZC_OP_DequantizeLinear;
    if ((!down && !up) || n->nin < 2 || !n->in[1]) return false;
    const zc_type *scale = &zc_val(g, n->in[1])->type;
    const zc_dtype bytes = zc_val(g, down ? n->out[0] : n->in[0])->type.dtype;
    const zc_dtype real = zc_val(g, down ? n->in[0] : n->out[0])->type.dtype;
    const bool usual = !down || !((const zc_attrs_QuantizeLinear *)n->attrs)->precision;
    return scale->rank == 0 && is_quantised(g, n->in[1], real) && usual &&
           (bytes == ZC_U8 || bytes == ZC_I8 || bytes == ZC_F8E4M3FN);
}

bool zc_pw_is(const zc_graph *g, const zc_node *n)
{
    bool has_text = n->op == ZC_OP_Cast || (zc_op_get(n->op)->flags & ZC_OPF_POINTWISE) ||
                    is_quantisation(g, n);
    if (!has_text || n->nout != 1 || !n->out[0]) return false;
    const zc_type *out = &zc_val(g, n->out[0])->type;
    if (out->rank < 0 || !is_expr_dtype(out->dtype)) return false;
    if (out->dtype == ZC_F8E4M3FN && !saturates(n)) return false;
    for (int i = 0; i < n->nin; i++)
        if (!n->in[i] || !is_expr_dtype(zc_val(g, n->in[i])->type.dtype)) return false;
    return true;
}

bool zc_pw_add_input(zc_pw_group *gr, zc_vid v)
{
    for (int i = 0; i < gr->ninputs; i++)
        if (gr->inputs[i] == v) return true;
    if (gr->ninputs == ZC_PW_INPUTS) return false;
    gr->inputs[gr->ninputs++] = v;
    return true;
}

void zc_pw_inline(const zc_graph *g, zc_pw_group *gr, int first)
{
    int rank = 0, kept = first;
    for (int i = 0; i < gr->ninputs; i++)
        if ((i < first || !is_number(g, gr->inputs[i])) &&
            zc_val(g, gr->inputs[i])->type.rank > rank)
            rank = zc_val(g, gr->inputs[i])->type.rank;
    for (int i = first; i < gr->ninputs; i++) {
        zc_vid v = gr->inputs[i];
        if (is_number(g, v) && zc_val(g, v)->type.rank <= rank && (kept || i + 1 < gr->ninputs))
            gr->literals[gr->nliterals++] = v;
        else
            gr->inputs[kept++] = v;
    }
    gr->ninputs = kept;
}

/* A group, and how its text is written. */
typedef struct writing {
    const zc_graph *g;
    const zc_pw_group *gr;
    bool typed; /* literals name their type, for expressions where nothing else tells it */
    bool bound; /* every node's result has a name */
} writing;

/* Every digit that the type of the result tells apart. */
static int digits_of(zc_dtype dtype)
{
    return dtype == ZC_F64 ? 17 : 9;
}

static void put_literal(const writing *w, const zc_tensor *t, zc_buf *out)
{
    if (w->typed) zc_buf_puts(out, zc_dtype_name(t->dtype));
    if (t->dtype == ZC_BOOL && w->typed) {
        zc_buf_puts(out, zc_load_i64(t->dtype, t->data, 0) ? "(true)" : "(false)");
    } else if (zc_dtype_is_float(t->dtype)) {
        double v = zc_load_f64(t->dtype, t->data, 0);
        if (isnan(v) && w->typed)
            zc_buf_puts(out, "(nan)");
        else if (isnan(v))
            zc_buf_puts(out, "nan");
        else
            zc_buf_printf(out, "(%.*g)", digits_of(t->dtype), v);
    } else {
        zc_buf_printf(out, "(%lld)", (long long)zc_load_i64(t->dtype, t->data, 0));
    }
}

/* The name that value v has in the group's expression. */
static void put_value(const writing *w, zc_vid v, zc_buf *out)
{
    const zc_pw_group *gr = w->gr;
    for (int i = 0; i < gr->ninputs; i++) {
        if (gr->inputs[i] != v) continue;
        zc_buf_printf(out, "x%d", i);
        return;
    }
    for (int i = 0; i < gr->nliterals; i++) {
        if (gr->literals[i] != v) continue;
        put_literal(w, zc_val(w->g, v)->data, out);
        return;
    }
    for (int i = 0; i < gr->count; i++)
        if (zc_node_at(w->g, gr->nodes[i])->out[0] == v) zc_buf_printf(out, "t%d", i);
}

/* Which input a name means: x y z w, x0 x1 ...; -1: none. */
static int input_index(const char *name, size_t len)
{
    static const char letters[] = "xyzw";
    if (len == 1 && strchr(letters, name[0])) return (int)(strchr(letters, name[0]) - letters);
    if (len < 2 || len > 3 || name[0] != 'x') return -1;
    int i = 0;
    for (size_t k = 1; k < len; k++) {
        if (!isdigit((unsigned char)name[k])) return -1;
        i = i * 10 + (name[k] - '0');
    }
    return i;
}

static bool put_attr(const writing *w, const zc_node *n, const char *name, size_t len, zc_buf *out)
{
    const zc_op_info *info = zc_op_get(n->op);
    int digits = digits_of(zc_val(w->g, n->out[0])->type.dtype);
    int i = zc_attr_find(info, name, len);
    if (i < 0) return false;
    const void *at = zc_attr_at(info, n->attrs, i);
    if (info->fields[i].kind == ZC_ATTR_INT)
        zc_buf_printf(out, "(%lld)", (long long)*(const int64_t *)at);
    else if (info->fields[i].kind == ZC_ATTR_FLOAT)
        zc_buf_printf(out, "(%.*g)", digits, (double)*(const float *)at);
    else
        return false;
    return true;
}

/* Writes one identifier of node k's own text as the group's text needs it. */
static void put_name(const writing *w, int k, const char *name, size_t len, bool is_call,
                     zc_buf *out)
{
    const zc_node *n = zc_node_at(w->g, w->gr->nodes[k]);
    int input = input_index(name, len);
    static const char *const words[] = {"inf", "nan", "true", "false"};
    bool word = is_call;
    for (size_t i = 0; i < ZC_COUNTOF(words); i++)
        word |= strlen(words[i]) == len && memcmp(words[i], name, len) == 0;
    if (word)
        zc_buf_append(out, name, len);
    else if (input >= 0 && input < n->nin)
        put_value(w, n->in[input], out);
    else if (!put_attr(w, n, name, len, out))
        zc_buf_printf(out, "t%d_%.*s", k, (int)len, name); /* bound by the node's own text */
}

/* Node k's text with its names replaced. Numbers such as 1e-3 are copied whole. */
static void put_text(const writing *w, int k, const char *text, zc_buf *out)
{
    while (*text) {
        size_t len = 0;
        if (isdigit((unsigned char)*text) || *text == '.') {
            while (zc_is_name_char(text[len]) || text[len] == '.' ||
                   ((text[len] == '-' || text[len] == '+') &&
                    (text[len - 1] == 'e' || text[len - 1] == 'E')))
                len++;
            zc_buf_append(out, text, len);
        } else if (zc_is_name_char(*text)) {
            while (zc_is_name_char(text[len])) len++;
            put_name(w, k, text, len, text[len] == '(', out);
        } else {
            len = 1;
            zc_buf_append(out, text, 1);
        }
        text += len;
    }
}

/* Of a quantisation, in f32. The zero point of floats is 0, and their conversion rounds. */
static void down_text(zc_dtype made, bool narrow, bool zero, char *room, size_t size)
{
    const char *to = zc_dtype_name(made), *quotient = narrow ? "f32(x) / f32(y)" : "x / y";
    if (made == ZC_F8E4M3FN)
        snprintf(room, size, "%s(%s)", to, quotient);
    else
        snprintf(room, size, zero ? "%s(round(%s) + f32(z))" : "%s(round(%s))", to, quotient);
}

static void up_text(zc_dtype made, bool narrow, bool zero, char *room, size_t size)
{
    const char *bytes = zero ? "(f32(x) - f32(z))" : "f32(x)", *scale = narrow ? "f32(y)" : "y";
    if (made == ZC_F32)
        snprintf(room, size, "%s * %s", bytes, scale);
    else
        snprintf(room, size, "%s(%s * %s)", zc_dtype_name(made), bytes, scale);
}

/* Of a conversion, written to `room`, which it is: the text knows the type. */
static const char *conversion_text(const writing *w, const zc_node *n, char *room, size_t size)
{
    const zc_dtype made = zc_val(w->g, n->out[0])->type.dtype;
    const zc_dtype from = zc_val(w->g, n->in[0])->type.dtype;
    const bool narrow = n->nin > 1 && (zc_val(w->g, n->in[1])->type.dtype != ZC_F32);
    const bool zero = n->nin > 2 && n->in[2];
    if (n->op == ZC_OP_QuantizeLinear)
        down_text(made, narrow || from != ZC_F32, zero, room, size);
    else if (n->op == ZC_OP_DequantizeLinear)
        up_text(made, narrow, zero && from != ZC_F8E4M3FN, room, size);
    else
        snprintf(room, size, "%s(x)", zc_dtype_name(made));
    return room;
}

static const char *text_of(const writing *w, const zc_node *n, char *room, size_t size)
{
    if (n->op == ZC_OP_Pointwise) return ((const zc_attrs_Pointwise *)n->attrs)->expr;
    const char *text = zc_op_get(n->op)->expr;
    return text ? text : conversion_text(w, n, room, size);
}

/* What node k computes, bound to the name tk unless it is the last. */
static void put_node(const writing *w, int k, zc_buf *out)
{
    const zc_node *n = zc_node_at(w->g, w->gr->nodes[k]);
    bool is_root = !w->bound && k == w->gr->count - 1;
    char room[64];
    const char *text = text_of(w, n, room, sizeof room);
    const char *last = strrchr(text, ';');
    if (last) {
        zc_buf own = {0};
        zc_buf_append(&own, text, (size_t)(last + 1 - text));
        if (!own.failed) put_text(w, k, own.data, out);
        out->failed |= own.failed;
        zc_buf_fini(&own);
        zc_buf_puts(out, " ");
        text = last + 1;
    }
    while (*text == ' ') text++;
    if (!is_root) zc_buf_printf(out, "t%d = ", k);
    put_text(w, k, text, out);
    if (!is_root) zc_buf_puts(out, "; ");
}

/* x0: its element type. */
static bool parses(const zc_graph *g, const zc_pw_group *gr, zc_dtype x0, const char *text,
                   zc_expr *e)
{
    zc_dtype dtypes[ZC_PW_INPUTS] = {x0};
    for (int i = 1; i < gr->ninputs; i++) dtypes[i] = zc_val(g, gr->inputs[i])->type.dtype;
    if (zc_expr_parse_results(text, dtypes, gr->ninputs, NULL, 0, e, NULL, NULL) != ZC_OK)
        return false;
    for (int r = 0; r < gr->nresults; r++)
        if (zc_expr_dtype(e, r) != zc_val(g, gr->results[r])->type.dtype) return false;
    return e->nresults == gr->nresults;
}

static void put_group(const writing *w, zc_buf *out)
{
    for (int k = 0; k < w->gr->count; k++) put_node(w, k, out);
    for (int r = 0; w->bound && r < w->gr->nresults; r++) {
        if (r) zc_buf_puts(out, ", ");
        put_value(w, w->gr->results[r], out);
    }
}

zc_status zc_pw_compose(const zc_graph *g, const zc_pw_group *given, zc_buf *text, bool *fits,
                        zc_diag *diag)
{
    zc_pw_group gr = *given;
    zc_vid last = zc_node_at(g, gr.nodes[gr.count - 1])->out[0];
    if (gr.nresults == 0) gr.results[gr.nresults++] = last;
    writing w = {.g = g, .gr = &gr, .bound = gr.nresults > 1 || gr.results[0] != last};
    zc_dtype x0 = gr.ninputs ? zc_val(g, gr.inputs[0])->type.dtype : ZC_NONE;
    zc_expr *e = zc_calloc(1, sizeof *e);
    *fits = false;
    for (int typed = 0; e && !text->failed && !*fits && typed < 2; typed++) {
        w.typed = typed;
        text->len = 0;
        put_group(&w, text);
        *fits = !text->failed && text->len <= ZC_PW_TEXT && parses(g, &gr, x0, text->data, e) &&
                (!gr.widens || parses(g, &gr, ZC_F32, text->data, e));
    }
    zc_status status = text->failed || !e ? zc_fail_nomem(diag, "expression", text->len) : ZC_OK;
    free(e);
    return status;
}

bool zc_pw_has(const zc_pw_group *gr, zc_nid n)
{
    for (int i = 0; i < gr->count; i++)
        if (gr->nodes[i] == n) return true;
    return false;
}

void zc_pw_sort(const zc_index *x, zc_pw_group *gr)
{
    zc_nid *n = gr->nodes;
    for (int i = 1; i < gr->count; i++)
        for (int j = i;
             j > 0 && zc_index_place(x, n[j])->order < zc_index_place(x, n[j - 1])->order; j--) {
            zc_nid t = n[j];
            n[j] = n[j - 1];
            n[j - 1] = t;
        }
}

bool zc_pw_replace(zc_index *x, const zc_pw_group *gr, zc_nid at, const char *text)
{
    zc_graph *g = x->g;
    int nout = gr->nresults ? gr->nresults : 1;
    const char *expr = zc_arena_strdup(&g->arena, text);
    zc_nid made = zc_graph_node(g, NULL, ZC_OP_Pointwise, zc_node_at(g, at)->name, gr->ninputs,
                                gr->inputs, nout);
    if (!made || !expr) return false;
    ZC_NODE_SET(g, Pointwise, made, expr, expr);
    for (int i = 0; i < gr->count; i++)
        if (!zc_graph_inherit(g, made, gr->nodes[i])) return false;
    for (int i = 0; i < gr->nresults; i++) zc_node_at(g, made)->out[i] = gr->results[i];
    if (!gr->nresults)
        zc_node_at(g, made)->out[0] = zc_node_at(g, gr->nodes[gr->count - 1])->out[0];
    for (int i = 0; i < gr->count; i++)
        if (gr->nodes[i] != at) zc_index_remove(x, gr->nodes[i]);
    return zc_index_take_place(x, made, at);
}
