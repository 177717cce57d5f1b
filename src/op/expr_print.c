/* Scalar expressions as text, in one form: sums, products and their like are a chain whose operands
 * are sorted, constants last. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/expr_parse.h"

enum { ARENA_MOST = 1 << 18 }; /* a node that is used twice is written twice: texts may explode */

typedef struct written {
    const char *text;
    bool infix;        /* needs parentheses as an operand */
    size_t nparts;     /* of a chain: its operands */
    const char **part; /* their texts, sorted */
} written;

typedef struct printer {
    const zc_expr *e;
    zc_arena arena;
    written *of; /* by node */
} printer;

/* Operands may be exchanged, and brackets make no difference but rounding. */
static bool is_chain(zc_expr_op op)
{
    return op == ZC_EX_ADD || op == ZC_EX_MUL || op == ZC_EX_MAX || op == ZC_EX_MIN ||
           op == ZC_EX_AND || op == ZC_EX_OR || op == ZC_EX_BITAND || op == ZC_EX_BITOR ||
           op == ZC_EX_BITXOR;
}

static bool is_const(const printer *p, int node)
{
    return p->e->nodes[node].op == ZC_EX_CONST;
}

static const char *keep(printer *p, zc_buf *text)
{
    char *own = text->failed ? NULL : zc_arena_strndup(&p->arena, text->data, text->len);
    zc_buf_fini(text);
    return own;
}

/* ---- leaves ---- */

void zc_expr_put_number(double f, zc_buf *out)
{
    if (isnan(f))
        zc_buf_puts(out, "nan");
    else
        zc_buf_printf(out, "%.6g", f == 0 ? 0.0 : f); /* no -0, which would be parsed as 0 */
}

static const char *constant(printer *p, const zc_expr_node *n)
{
    zc_buf b = {0};
    if (n->dtype == ZC_BOOL)
        zc_buf_puts(&b, n->i ? "true" : "false");
    else if (zc_dtype_is_float(n->dtype))
        zc_expr_put_number(n->f, &b);
    else
        zc_buf_printf(&b, "%" PRId64, n->i);
    return keep(p, &b);
}

/* Where no other operand gives a constant its type: as the conversion that makes it. */
static const char *typed(printer *p, int node)
{
    const zc_expr_node *n = &p->e->nodes[node];
    int64_t slot = 0;
    zc_buf b = {0};
    if (n->op != ZC_EX_CONST || n->dtype == ZC_BOOL) return p->of[node].text;
    zc_buf_printf(&b, "%s(", zc_dtype_name(n->dtype));
    if (zc_dtype_is_float(n->dtype)) {
        zc_store_f64(n->dtype, &slot, 0, n->f);
        zc_expr_put_number(zc_load_f64(n->dtype, &slot, 0), &b);
    } else {
        zc_buf_puts(&b, p->of[node].text);
    }
    zc_buf_puts(&b, ")");
    return keep(p, &b);
}

/* An operand of a sign, or of a function. */
static const char *operand(printer *p, int node, bool type, bool of_sign)
{
    zc_buf b = {0};
    if (type) return typed(p, node);
    if (!of_sign || !p->of[node].infix) return p->of[node].text;
    zc_buf_printf(&b, "(%s)", p->of[node].text);
    return keep(p, &b);
}

/* ---- chains ---- */

static bool is_number(const char *text)
{
    return strchr("-0123456789", *text) || strcmp(text, "inf") == 0 || strcmp(text, "nan") == 0;
}

/* Numbers last: the parser computes what stands between two of them. */
static int by_text(const void *a, const void *b)
{
    const char *x = *(const char *const *)a, *y = *(const char *const *)b;
    int first = is_number(x), second = is_number(y);
    return first != second ? first - second : strcmp(x, y);
}

/* Adds an operand, or those of a chain of the same operation. */
static bool add_parts(printer *p, zc_expr_op op, int node, bool type, written *out)
{
    const written *w = &p->of[node];
    const char *one = NULL, *const *parts = &one;
    size_t n = 1;
    if (p->e->nodes[node].op == op) {
        parts = (const char *const *)w->part;
        n = w->nparts;
    } else if (!(one = operand(p, node, type, zc_ex_sign(op) != NULL))) {
        return false;
    }
    memcpy(out->part + out->nparts, parts, n * sizeof *parts);
    out->nparts += n;
    return true;
}

static size_t parts_of(const printer *p, zc_expr_op op, int node)
{
    return p->e->nodes[node].op == op ? p->of[node].nparts : 1;
}

static const char *join(printer *p, zc_expr_op op, const written *w)
{
    zc_buf b = {0};
    const char *sign = zc_ex_sign(op);
    for (size_t i = 1; !sign && i < w->nparts; i++) zc_buf_printf(&b, "%s(", zc_ex_function(op));
    zc_buf_puts(&b, w->part[0]);
    for (size_t i = 1; i < w->nparts; i++)
        if (sign)
            zc_buf_printf(&b, " %s %s", sign, w->part[i]);
        else
            zc_buf_printf(&b, ", %s)", w->part[i]);
    return keep(p, &b);
}

static bool chain(printer *p, const zc_expr_node *n, bool types, written *out)
{
    size_t most = parts_of(p, n->op, n->arg[0]) + parts_of(p, n->op, n->arg[1]);
    out->part = zc_arena_alloc(&p->arena, most, sizeof *out->part);
    if (!out->part || !add_parts(p, n->op, n->arg[0], types, out) ||
        !add_parts(p, n->op, n->arg[1], types, out))
        return false;
    qsort(out->part, out->nparts, sizeof *out->part, by_text);
    out->infix = zc_ex_sign(n->op) != NULL;
    out->text = join(p, n->op, out);
    return out->text != NULL;
}

/* ---- other operations ---- */

static bool infix(printer *p, const zc_expr_node *n, bool types, written *out)
{
    zc_buf b = {0};
    const char *x = operand(p, n->arg[0], types, true), *y = operand(p, n->arg[1], types, true);
    if (!x || !y) return false;
    bool turned = (n->op == ZC_EX_EQ || n->op == ZC_EX_NE) && by_text(&x, &y) > 0;
    zc_buf_printf(&b, "%s %s %s", turned ? y : x, zc_ex_sign(n->op), turned ? x : y);
    out->infix = true;
    out->text = keep(p, &b);
    return out->text != NULL;
}

/* "f(a, b)", "-a". */
static bool call(printer *p, const zc_expr_node *n, bool types, written *out)
{
    zc_buf b = {0};
    const char *name = n->op == ZC_EX_CAST ? zc_dtype_name(n->dtype) : zc_ex_function(n->op);
    zc_buf_puts(&b, name ? name : n->op == ZC_EX_NEG ? "-" : n->op == ZC_EX_NOT ? "!" : "~");
    for (int i = 0; i < 3 && n->arg[i] >= 0; i++) {
        const char *x = operand(p, n->arg[i], types, false);
        if (!x) b.failed = true;
        zc_buf_printf(&b, "%s%s", i ? ", " : "(", x ? x : "");
    }
    zc_buf_puts(&b, ")");
    out->text = keep(p, &b);
    return out->text != NULL;
}

static bool input(printer *p, const zc_expr_node *n, written *out)
{
    zc_buf b = {0};
    zc_buf_printf(&b, "x%d", n->input);
    out->text = keep(p, &b);
    return out->text != NULL;
}

/* Do only constants say of what type they are? Those of a choice stand behind its condition. */
static bool needs_types(const printer *p, const zc_expr_node *n)
{
    for (int i = n->op == ZC_EX_SELECT; i < 3 && n->arg[i] >= 0; i++)
        if (!is_const(p, n->arg[i])) return false;
    return true;
}

static bool write_node(printer *p, int i)
{
    const zc_expr_node *n = &p->e->nodes[i];
    written *out = &p->of[i];
    if (n->op == ZC_EX_INPUT) return input(p, n, out);
    if (n->op == ZC_EX_CONST) return (out->text = constant(p, n)) != NULL;
    bool types = needs_types(p, n);
    if (is_chain(n->op)) return chain(p, n, types, out);
    return n->arg[1] >= 0 && zc_ex_sign(n->op) ? infix(p, n, types, out) : call(p, n, types, out);
}

bool zc_expr_print(const zc_expr *e, zc_buf *out)
{
    printer p = {.e = e};
    zc_arena_init(&p.arena, ARENA_MOST);
    p.of = zc_arena_alloc(&p.arena, (size_t)e->count, sizeof *p.of);
    bool ok = p.of != NULL;
    for (int i = 0; ok && i < e->count; i++) ok = write_node(&p, i);
    for (int r = 0; ok && r < e->nresults; r++) {
        const char *text = typed(&p, e->result[r]);
        zc_buf_printf(out, "%s%s", r ? ", " : "", text ? text : "");
        ok = text != NULL;
    }
    zc_arena_fini(&p.arena);
    return ok && !out->failed;
}
