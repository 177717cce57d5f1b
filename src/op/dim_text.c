/* Printed form of symbolic integers, and its parser. The grammar:
 *   sum     = product { ("+" | "-") product }
 *   product = unary { ("*" | "/" | "%") unary }
 *   unary   = { "-" } primary
 *   primary = number | name | "(" sum ")" | ("cdiv" | "max" | "min") "(" sum "," sum ")"
 * "/" and "%" round downwards. Blanks may stand between tokens. */
#include <string.h>

#include "base/number.h"

#include "op/dim_poly.h"

#define NESTING_MAX 200
#define LENGTH_MAX  16384

static bool name_part(char c)
{
    return zc_is_name_char(c) || c == '.';
}

static bool bare_name(const zc_dim_node *symbol)
{
    const char *s = symbol->name;
    if (!symbol->is_input) {
        if (*s++ != '?') return false;
    } else if (!zc_is_name_start(*s)) {
        return false;
    }
    while (name_part(*s)) s++;
    return *s == '\0';
}

static void print_name(const zc_dim_node *symbol, zc_buf *out)
{
    if (bare_name(symbol)) {
        zc_buf_puts(out, symbol->name);
        return;
    }
    if (!symbol->is_input) zc_buf_puts(out, "?");
    const char *s = symbol->name + (symbol->is_input ? 0 : 1);
    zc_buf_puts(out, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            zc_buf_printf(out, "\\x%02X", (unsigned char)*s);
        else if ((unsigned char)*s >= 0x20 && (unsigned char)*s < 0x7F)
            zc_buf_append(out, s, 1);
        else
            zc_buf_printf(out, "\\x%02X", (unsigned char)*s);
    }
    zc_buf_puts(out, "\"");
}

/* How tightly a text binds; an operand that binds less tightly than asked stands in parentheses. */
enum { BIND_SUM, BIND_PRODUCT, BIND_PRIMARY };

typedef struct printer {
    const zc_dims *t;
    zc_buf *out;
    size_t limit; /* length of out at which to stop */
    unsigned nesting;
} printer;

static void print(printer *p, zc_dim d, int binding);

static int binding_of(const printer *p, zc_dim d)
{
    if (zc_dim_is_const(d)) return d.k < 0 ? BIND_SUM : BIND_PRIMARY;
    switch (p->t->nodes[d.e - 1].kind) {
    case ZC_DIM_ADD:
        return BIND_SUM;
    case ZC_DIM_MUL:
    case ZC_DIM_DIV:
    case ZC_DIM_MOD:
        return BIND_PRODUCT;
    default:
        return BIND_PRIMARY;
    }
}

static void print_call(printer *p, const char *function, const zc_dim_node *node)
{
    zc_buf_puts(p->out, function);
    zc_buf_puts(p->out, "(");
    print(p, node->a, BIND_SUM);
    zc_buf_puts(p->out, ",");
    print(p, node->b, BIND_SUM);
    zc_buf_puts(p->out, ")");
}

static void print_infix(printer *p, zc_dim a, const char *op, zc_dim b, int left, int right)
{
    print(p, a, left);
    zc_buf_puts(p->out, op);
    print(p, b, right);
}

/* A quotient or remainder as the left factor of a product needs no parentheses to be read back,
 * but reads better with them; only a product chain goes without. */
static int factor_binding(const printer *p, zc_dim d)
{
    return d.e && p->t->nodes[d.e - 1].kind == ZC_DIM_MUL ? BIND_PRODUCT : BIND_PRIMARY;
}

/* A constant factor comes first: 2*n, -n. */
static void print_product(printer *p, const zc_dim_node *node)
{
    if (!zc_dim_is_const(node->b)) {
        print_infix(p, node->a, "*", node->b, factor_binding(p, node->a), BIND_PRIMARY);
        return;
    }
    if (node->b.k == -1)
        zc_buf_puts(p->out, "-");
    else
        zc_buf_printf(p->out, "%lld*", (long long)node->b.k);
    print(p, node->a, factor_binding(p, node->a));
}

static int64_t coefficient(const zc_dims *t, zc_dim d)
{
    if (zc_dim_is_const(d)) return d.k;
    const zc_dim_node *node = &t->nodes[d.e - 1];
    return node->kind == ZC_DIM_MUL && zc_dim_is_const(node->b) ? node->b.k : 1;
}

/* A negative second term brings its own sign along. -INT64_MIN is no number, so that "-" and the
 * digits could not be read as a difference. */
static void print_sum(printer *p, const zc_dim_node *node)
{
    const int64_t c = coefficient(p->t, node->b);
    print(p, node->a, BIND_SUM);
    if (c >= 0 || c == INT64_MIN) zc_buf_puts(p->out, "+");
    print(p, node->b, zc_dim_is_const(node->b) ? BIND_SUM : BIND_PRODUCT);
}

static void print_node(printer *p, const zc_dim_node *node)
{
    switch (node->kind) {
    case ZC_DIM_SYM:
        print_name(node, p->out);
        break;
    case ZC_DIM_ADD:
        print_sum(p, node);
        break;
    case ZC_DIM_MUL:
        print_product(p, node);
        break;
    case ZC_DIM_DIV:
        print_infix(p, node->a, "/", node->b, BIND_PRIMARY, BIND_PRIMARY);
        break;
    case ZC_DIM_MOD:
        print_infix(p, node->a, "%", node->b, BIND_PRIMARY, BIND_PRIMARY);
        break;
    case ZC_DIM_CDIV:
        print_call(p, "cdiv", node);
        break;
    case ZC_DIM_MAX:
        print_call(p, "max", node);
        break;
    case ZC_DIM_MIN:
        print_call(p, "min", node);
        break;
    }
}

static void print(printer *p, zc_dim d, int binding)
{
    if (p->nesting == NESTING_MAX || p->out->len >= p->limit) {
        zc_buf_puts(p->out, "...");
        return;
    }
    p->nesting++;
    const bool parens = binding_of(p, d) < binding;
    if (parens) zc_buf_puts(p->out, "(");
    if (zc_dim_is_const(d))
        zc_buf_printf(p->out, "%lld", (long long)d.k);
    else
        print_node(p, &p->t->nodes[d.e - 1]);
    if (parens) zc_buf_puts(p->out, ")");
    p->nesting--;
}

void zc_dim_print(const zc_dims *t, zc_dim d, zc_buf *out)
{
    printer p = {.t = t, .out = out};
    if (!zc_add_size(out->len, LENGTH_MAX, &p.limit)) p.limit = SIZE_MAX;
    print(&p, d, BIND_SUM);
}

typedef struct parser {
    zc_dims *t;
    const char *pos, *end;
    unsigned nesting;
} parser;

static bool parse_sum(parser *p, zc_dim *out);

static char peek(parser *p)
{
    while (p->pos < p->end && (*p->pos == ' ' || *p->pos == '\t')) p->pos++;
    return p->pos < p->end ? *p->pos : '\0';
}

static bool accept(parser *p, char c)
{
    if (c == '\0' || peek(p) != c) return false;
    p->pos++;
    return true;
}

/* Digits, with their sign so that INT64_MIN can be read. */
static bool parse_number(parser *p, bool negative, zc_dim *out)
{
    int64_t v = 0;
    for (; p->pos < p->end && *p->pos >= '0' && *p->pos <= '9'; p->pos++) {
        const int64_t digit = *p->pos - '0';
        if (!zc_mul_i64(v, 10, &v) || !zc_add_i64(v, negative ? -digit : digit, &v)) return false;
    }
    *out = zc_dim_const(v);
    return true;
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

/* One character of a quoted name; false on a bad escape or a NUL. */
static bool parse_char(parser *p, char *out)
{
    *out = *p->pos++;
    if (*out == '\\') {
        if (p->end - p->pos < 3 || p->pos[0] != 'x') return false;
        const int high = hex_digit(p->pos[1]), low = hex_digit(p->pos[2]);
        if (high < 0 || low < 0) return false;
        *out = (char)(high << 4 | low);
        p->pos += 3;
    }
    return *out != '\0';
}

/* A quoted name, which may follow a '?'. */
static bool parse_quoted(parser *p, bool is_input, zc_dim *out)
{
    zc_buf name = {0};
    bool ok = true;
    zc_buf_puts(&name, is_input ? "" : "?");
    p->pos++;
    while (ok && p->pos < p->end && *p->pos != '"') {
        char c;
        ok = parse_char(p, &c);
        zc_buf_append(&name, &c, 1);
    }
    ok = ok && p->pos < p->end && !name.failed;
    if (ok) {
        p->pos++;
        *out = zc_dims_symbol(p->t, name.data, name.len, is_input);
    }
    zc_buf_fini(&name);
    return ok;
}

static bool parse_operands(parser *p, zc_dim *a, zc_dim *b)
{
    return accept(p, '(') && parse_sum(p, a) && accept(p, ',') && parse_sum(p, b) && accept(p, ')');
}

zc_dim_fn *zc_dim_fn_of(const char *word, size_t len)
{
    static const struct {
        const char *word;
        zc_dim_fn *fn;
    } all[] = {{"+", zc_dim_add}, {"-", zc_dim_sub},     {"*", zc_dim_mul},   {"/", zc_dim_div},
               {"%", zc_dim_mod}, {"cdiv", zc_dim_cdiv}, {"max", zc_dim_max}, {"min", zc_dim_min}};
    for (size_t i = 0; i < ZC_COUNTOF(all); i++)
        if (strlen(all[i].word) == len && memcmp(all[i].word, word, len) == 0) return all[i].fn;
    return NULL;
}

/* A symbol or a function call. */
static bool parse_name(parser *p, zc_dim *out)
{
    const char *start = p->pos;
    const bool is_input = *p->pos != '?';
    if (!is_input) p->pos++;
    if (p->pos < p->end && *p->pos == '"') return parse_quoted(p, is_input, out);
    while (p->pos < p->end && name_part(*p->pos)) p->pos++;
    const size_t len = (size_t)(p->pos - start);
    zc_dim_fn *make = zc_dim_fn_of(start, len);
    if (make && peek(p) == '(') {
        zc_dim a, b;
        if (!parse_operands(p, &a, &b)) return false;
        *out = make(p->t, a, b);
        return true;
    }
    *out = zc_dims_symbol(p->t, start, len, is_input);
    return true;
}

static bool parse_primary(parser *p, bool negative, zc_dim *out)
{
    const char c = peek(p);
    const bool number = c >= '0' && c <= '9';
    bool ok;
    if (number)
        ok = parse_number(p, negative, out);
    else if (c == '(')
        ok = accept(p, '(') && parse_sum(p, out) && accept(p, ')');
    else
        ok = (zc_is_name_start(c) || c == '"' || c == '?') && parse_name(p, out);
    if (ok && negative && !number) *out = zc_dim_sub(p->t, zc_dim_const(0), *out);
    return ok;
}

static bool parse_unary(parser *p, zc_dim *out)
{
    bool negative = false;
    while (accept(p, '-')) negative = !negative;
    return parse_primary(p, negative, out);
}

/* What one of these signs does, if one comes next. */
static zc_dim_fn *accept_sign(parser *p, const char *signs)
{
    const char c = peek(p);
    if (!c || !strchr(signs, c)) return NULL;
    return zc_dim_fn_of(p->pos++, 1);
}

static bool parse_product(parser *p, zc_dim *out)
{
    bool ok = parse_unary(p, out);
    for (zc_dim_fn *make; ok && (make = accept_sign(p, "*/%"));) {
        zc_dim right;
        ok = parse_unary(p, &right);
        if (ok) *out = make(p->t, *out, right);
    }
    return ok;
}

static bool parse_terms(parser *p, zc_dim *out)
{
    bool ok = parse_product(p, out);
    for (zc_dim_fn *make; ok && (make = accept_sign(p, "+-"));) {
        zc_dim right;
        ok = parse_product(p, &right);
        if (ok) *out = make(p->t, *out, right);
    }
    return ok;
}

/* Every recursion passes through here. */
static bool parse_sum(parser *p, zc_dim *out)
{
    if (p->nesting == NESTING_MAX) return false;
    p->nesting++;
    const bool ok = parse_terms(p, out);
    p->nesting--;
    return ok;
}

size_t zc_dim_parse(zc_dims *t, const char *text, size_t len, zc_dim *out)
{
    parser p = {.t = t, .pos = text, .end = text + len};
    if (!parse_sum(&p, out) || t->failed) return 0;
    return (size_t)(p.pos - text);
}
