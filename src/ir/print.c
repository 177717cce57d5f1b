/* The graph as text. docs/ir.md describes the form; parse.c reads it. */
#include <inttypes.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"

#define INLINE_ELEMENTS_MAX 64

typedef struct printer {
    const zc_graph *g;
    bool full;
    zc_buf *out;
} printer;

static void print_block(printer *p, const zc_block *b, int indent);

/* ---- words ---- */

static void put_quoted(printer *p, const char *s)
{
    zc_buf_puts(p->out, "\"");
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c == '"' || c == '\\' || c < 0x20 || c == 0x7f)
            zc_buf_printf(p->out, "\\x%02x", c);
        else
            zc_buf_append(p->out, s, 1);
    }
    zc_buf_puts(p->out, "\"");
}

static bool is_plain(const char *s)
{
    static const char chars[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:-";
    return *s && s[strspn(s, chars)] == 0;
}

static void put_value(printer *p, zc_vid v)
{
    if (!v) {
        zc_buf_puts(p->out, "_");
        return;
    }
    const char *name = zc_val(p->g, v)->name;
    zc_buf_puts(p->out, "%");
    if (is_plain(name))
        zc_buf_puts(p->out, name);
    else
        put_quoted(p, name);
}

static void put_indent(printer *p, int indent)
{
    for (int i = 0; i < indent; i++) zc_buf_puts(p->out, "  ");
}

static void put_typed(printer *p, zc_vid v)
{
    put_value(p, v);
    zc_buf_puts(p->out, ": ");
    zc_type_print(&p->g->dims, &zc_val(p->g, v)->type, p->out);
}

/* ---- constants and attributes ---- */

static void put_tensor_type(printer *p, const zc_tensor *t)
{
    zc_type type = {.dtype = t->dtype, .rank = t->rank};
    for (int d = 0; d < t->rank; d++) type.dims[d] = zc_dim_const(t->dims[d]);
    zc_type_print(NULL, &type, p->out); /* no symbols */
}

/* Floats with enough digits to come back exactly; other elements as integers. */
static void put_element(printer *p, const zc_tensor *t, int64_t i)
{
    if (zc_dtype_is_float(t->dtype))
        zc_buf_printf(p->out, t->dtype == ZC_F64 ? "%.17g" : "%.9g",
                      zc_load_f64(t->dtype, t->data, i));
    else if (t->dtype == ZC_U64)
        zc_buf_printf(p->out, "%" PRIu64, (uint64_t)zc_load_i64(t->dtype, t->data, i));
    else
        zc_buf_printf(p->out, "%" PRId64, zc_load_i64(t->dtype, t->data, i));
}

static void put_hash(printer *p, const zc_tensor *t)
{
    uint8_t digest[32];
    size_t bytes = 0;
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    if (zc_tensor_bytes(t, &bytes)) sha256_update(&ctx, bytes, t->data);
    sha256_digest(&ctx, sizeof digest, digest);
    zc_buf_puts(p->out, "sha256:");
    for (size_t i = 0; i < sizeof digest; i++) zc_buf_printf(p->out, "%02x", digest[i]);
}

static void put_contents(printer *p, const zc_tensor *t)
{
    int64_t n = zc_tensor_numel(t);
    if (n && !t->data) {
        zc_buf_puts(p->out, "absent");
        return;
    }
    bool has_values = zc_dtype_class(t->dtype) != ZC_CLASS_COMPLEX;
    if (!has_values || (!p->full && n > INLINE_ELEMENTS_MAX)) {
        put_hash(p, t);
        return;
    }
    zc_buf_puts(p->out, "[");
    for (int64_t i = 0; i < n; i++) {
        if (i) zc_buf_puts(p->out, ", ");
        put_element(p, t, i);
    }
    zc_buf_puts(p->out, "]");
}

static void put_list(printer *p, const void *at, bool is_float)
{
    const zc_ints *ints = at;
    const zc_floats *floats = at;
    int n = is_float ? floats->n : ints->n;
    zc_buf_puts(p->out, "[");
    for (int i = 0; i < n; i++) {
        if (i) zc_buf_puts(p->out, ", ");
        if (is_float)
            zc_buf_printf(p->out, "%.9g", (double)floats->v[i]);
        else
            zc_buf_printf(p->out, "%" PRId64, ints->v[i]);
    }
    zc_buf_puts(p->out, "]");
}

static void put_attr_value(printer *p, const zc_attr_field *f, const void *at)
{
    switch (f->kind) {
    case ZC_ATTR_INT:
        zc_buf_printf(p->out, "%" PRId64, *(const int64_t *)at);
        break;
    case ZC_ATTR_FLOAT:
        zc_buf_printf(p->out, "%.9g", (double)*(const float *)at);
        break;
    case ZC_ATTR_STR:
        put_quoted(p, *(const char *const *)at ? *(const char *const *)at : "");
        break;
    case ZC_ATTR_DTYPE:
        zc_buf_puts(p->out, zc_dtype_name(*(const zc_dtype *)at));
        break;
    case ZC_ATTR_INTS:
    case ZC_ATTR_FLOATS:
        put_list(p, at, f->kind == ZC_ATTR_FLOATS);
        break;
    case ZC_ATTR_TENSOR: {
        const zc_tensor *t = *(const zc_tensor *const *)at;
        if (!t) break;
        put_tensor_type(p, t);
        zc_buf_puts(p->out, " ");
        put_contents(p, t);
        break;
    }
    }
}

static void put_attrs(printer *p, zc_op op, const void *attrs)
{
    const zc_op_info *info = zc_op_get(op);
    const char *separator = " {";
    for (int i = 0; i < info->field_count; i++) {
        if (!(*(const uint64_t *)attrs >> i & 1)) continue;
        zc_buf_printf(p->out, "%s%s = ", separator, info->fields[i].name);
        put_attr_value(p, &info->fields[i], zc_attr_at(info, (void *)(uintptr_t)attrs, i));
        separator = ", ";
    }
    if (*separator == ',') zc_buf_puts(p->out, "}");
}

void zc_attrs_print(zc_op op, const void *attrs, zc_buf *out)
{
    printer p = {.out = out};
    put_attrs(&p, op, attrs);
}

void zc_attr_print(const zc_attr_field *field, const void *at, zc_buf *out)
{
    printer p = {.out = out};
    put_attr_value(&p, field, at);
}

/* ---- nodes and blocks ---- */

static void put_node(printer *p, const zc_node *n, int indent)
{
    put_indent(p, indent);
    for (int i = 0; i < n->nout; i++) {
        if (i) zc_buf_puts(p->out, ", ");
        if (n->out[i])
            put_typed(p, n->out[i]);
        else
            zc_buf_puts(p->out, "_");
    }
    zc_buf_printf(p->out, " = %s(", zc_op_get(n->op)->name);
    for (int i = 0; i < n->nin; i++) {
        if (i) zc_buf_puts(p->out, ", ");
        put_value(p, n->in[i]);
    }
    zc_buf_puts(p->out, ")");
    put_attrs(p, n->op, n->attrs);
    zc_buf_puts(p->out, " @ ");
    put_quoted(p, n->name);
    for (int i = 0; i < n->nprov; i++) {
        zc_buf_puts(p->out, i ? ", " : " from ");
        put_quoted(p, n->prov[i]);
    }
    for (int r = 0; r < n->nregions; r++) {
        zc_buf_puts(p->out, " (");
        const zc_block *b = n->regions[r];
        for (size_t i = 0; i < b->params.len; i++) {
            if (i) zc_buf_puts(p->out, ", ");
            put_typed(p, b->params.data[i]);
        }
        zc_buf_puts(p->out, ") {\n");
        print_block(p, b, indent + 1);
        put_indent(p, indent + 1);
        zc_buf_puts(p->out, "yield");
        for (size_t i = 0; i < b->outputs.len; i++) {
            zc_buf_puts(p->out, i ? ", " : " ");
            put_value(p, b->outputs.data[i]);
        }
        zc_buf_puts(p->out, "\n");
        put_indent(p, indent);
        zc_buf_puts(p->out, "}");
    }
    zc_buf_puts(p->out, "\n");
}

static void print_block(printer *p, const zc_block *b, int indent)
{
    for (size_t i = 0; i < b->nodes.len; i++) {
        const zc_node *n = zc_node_at(p->g, b->nodes.data[i]);
        if (n->op != ZC_OP_NONE) put_node(p, n, indent);
    }
}

static void print_constants(printer *p, const uint32_t *uses)
{
    for (zc_vid v = 1; v < p->g->values.len; v++) {
        const zc_value *value = zc_val(p->g, v);
        if (value->kind != ZC_VALUE_CONST || value->forward || (uses && !uses[v])) continue;
        zc_buf_puts(p->out, "  const ");
        put_typed(p, v);
        zc_buf_puts(p->out, " = ");
        put_contents(p, value->data);
        zc_buf_puts(p->out, "\n");
    }
}

void zc_graph_print(const zc_graph *g, bool full, zc_buf *out)
{
    printer p = {.g = g, .full = full, .out = out};
    uint32_t *uses = zc_graph_uses(g);
    zc_buf_puts(out, "graph ");
    put_quoted(&p, g->name);
    zc_buf_puts(out, " {\n");
    for (size_t i = 0; i < g->top.params.len; i++) {
        zc_buf_puts(out, "  input ");
        put_typed(&p, g->top.params.data[i]);
        zc_buf_puts(out, " as ");
        put_quoted(&p, g->input_names[i]);
        zc_buf_puts(out, "\n");
    }
    print_constants(&p, uses);
    print_block(&p, &g->top, 1);
    for (size_t i = 0; i < g->top.outputs.len; i++) {
        zc_buf_puts(out, "  output ");
        put_value(&p, g->top.outputs.data[i]);
        zc_buf_puts(out, " as ");
        put_quoted(&p, g->output_names[i]);
        zc_buf_puts(out, "\n");
    }
    zc_buf_puts(out, "}\n");
    free(uses);
}
