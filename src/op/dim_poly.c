#include "op/dim_poly.h"

#include <string.h>

int zc_term_order(const zc_term *a, const zc_term *b)
{
    if (a->n != b->n) return a->n > b->n ? -1 : 1;
    for (uint32_t i = 0; i < a->n; i++)
        if (a->atoms[i] != b->atoms[i]) return a->atoms[i] < b->atoms[i] ? -1 : 1;
    return 0;
}

/* Adds one term, keeping the order. */
static bool add_term(zc_poly *p, const zc_term *term)
{
    if (term->coef == 0) return true;
    size_t i = 0;
    int order = 1;
    while (i < p->n && (order = zc_term_order(&p->terms[i], term)) < 0) i++;
    zc_term *at = &p->terms[i];
    if (i < p->n && order == 0) {
        if (!zc_add_i64(at->coef, term->coef, &at->coef)) return false;
        if (at->coef == 0) memmove(at, at + 1, (--p->n - i) * sizeof *at);
        return true;
    }
    if (p->n == ZC_POLY_TERMS) return false;
    memmove(at + 1, at, (p->n++ - i) * sizeof *at);
    *at = *term;
    return true;
}

static bool add_factor(zc_term *term, uint32_t atom)
{
    if (term->n == ZC_POLY_FACTORS) return false;
    uint32_t i = term->n++;
    for (; i > 0 && term->atoms[i - 1] > atom; i--) term->atoms[i] = term->atoms[i - 1];
    term->atoms[i] = atom;
    return true;
}

static bool term_mul(const zc_term *a, const zc_term *b, zc_term *out)
{
    zc_term r = *a;
    if (!zc_mul_i64(a->coef, b->coef, &r.coef)) return false;
    for (uint32_t i = 0; i < b->n; i++)
        if (!add_factor(&r, b->atoms[i])) return false;
    *out = r;
    return true;
}

bool zc_term_div(const zc_term *a, const zc_term *b, zc_term *out)
{
    zc_term r = {0};
    if (b->coef == 0 || (b->coef == -1 && a->coef == INT64_MIN)) return false;
    if (a->coef % b->coef != 0) return false;
    r.coef = a->coef / b->coef;
    uint32_t j = 0;
    for (uint32_t i = 0; i < a->n; i++) {
        if (j < b->n && a->atoms[i] == b->atoms[j])
            j++;
        else
            r.atoms[r.n++] = a->atoms[i];
    }
    *out = r;
    return j == b->n;
}

static bool is_sum_or_product(const zc_dims *t, zc_dim d)
{
    const zc_dim_kind kind = t->nodes[d.e - 1].kind;
    return kind == ZC_DIM_ADD || kind == ZC_DIM_MUL;
}

/* Takes apart a chain of products ((x*y)*z)*constant. */
static bool factors_of(const zc_dims *t, zc_dim d, zc_term *term)
{
    *term = (zc_term){.coef = 1};
    while (!zc_dim_is_const(d)) {
        const zc_dim_node *node = &t->nodes[d.e - 1];
        if (node->kind != ZC_DIM_MUL || (node->b.e && is_sum_or_product(t, node->b)))
            return add_factor(term, d.e);
        if (zc_dim_is_const(node->b)) {
            if (!zc_mul_i64(term->coef, node->b.k, &term->coef)) return false;
        } else if (!add_factor(term, node->b.e)) {
            return false;
        }
        d = node->a;
    }
    return zc_mul_i64(term->coef, d.k, &term->coef);
}

static bool add_dim(const zc_dims *t, zc_poly *p, zc_dim d)
{
    zc_term term;
    if (!factors_of(t, d, &term)) term = (zc_term){.coef = 1, .n = 1, .atoms = {d.e}};
    return add_term(p, &term);
}

void zc_poly_of(const zc_dims *t, zc_dim d, zc_poly *out)
{
    out->n = 0;
    zc_dim rest = d;
    bool fits = true;
    while (fits && rest.e && t->nodes[rest.e - 1].kind == ZC_DIM_ADD) {
        fits = add_dim(t, out, t->nodes[rest.e - 1].b);
        rest = t->nodes[rest.e - 1].a;
    }
    if (fits && add_dim(t, out, rest)) return;
    out->n = 1;
    out->terms[0] = (zc_term){.coef = 1, .n = 1, .atoms = {d.e}};
}

static zc_dim term_dim(zc_dims *t, const zc_term *term)
{
    if (term->n == 0) return zc_dim_const(term->coef);
    zc_dim d = {.e = term->atoms[0]};
    for (uint32_t i = 1; i < term->n; i++)
        d = zc_dims_intern(t, ZC_DIM_MUL, d, (zc_dim){.e = term->atoms[i]});
    return term->coef == 1 ? d : zc_dims_intern(t, ZC_DIM_MUL, d, zc_dim_const(term->coef));
}

zc_dim zc_poly_dim(zc_dims *t, const zc_poly *p)
{
    if (p->n == 0) return zc_dim_const(0);
    zc_dim sum = term_dim(t, &p->terms[0]);
    for (size_t i = 1; i < p->n; i++)
        sum = zc_dims_intern(t, ZC_DIM_ADD, sum, term_dim(t, &p->terms[i]));
    return sum;
}

bool zc_poly_add_scaled(zc_poly *dst, const zc_poly *src, const zc_term *scale)
{
    for (size_t i = 0; i < src->n; i++) {
        zc_term term;
        if (!term_mul(&src->terms[i], scale, &term) || !add_term(dst, &term)) return false;
    }
    return true;
}

bool zc_poly_mul(const zc_poly *a, const zc_poly *b, zc_poly *out)
{
    out->n = 0;
    for (size_t i = 0; i < a->n; i++)
        if (!zc_poly_add_scaled(out, b, &a->terms[i])) return false;
    return true;
}

bool zc_poly_div(const zc_poly *a, const zc_poly *b, zc_poly *quotient)
{
    if (b->n == 0) return false;
    zc_poly rest = *a;
    quotient->n = 0;
    /* Each round removes the leading term and brings in only later ones, so the quotient's terms
     * are all different and the limit on them bounds the rounds. */
    while (rest.n > 0) {
        zc_term q;
        if (!zc_term_div(&rest.terms[0], &b->terms[0], &q) || !add_term(quotient, &q)) return false;
        if (!zc_mul_i64(q.coef, -1, &q.coef) || !zc_poly_add_scaled(&rest, b, &q)) return false;
    }
    return true;
}

/* Divides one term by a positive constant: towards zero for a coefficient, so that -n stays -n,
 * but downwards for the constant term. */
static void split_by_constant(const zc_term *term, int64_t c, zc_term *q, zc_term *r)
{
    *q = *r = *term;
    q->coef = term->coef / c;
    r->coef = term->coef % c;
    if (term->n == 0 && r->coef < 0) {
        r->coef += c;
        q->coef--;
    }
}

bool zc_poly_split(const zc_poly *a, const zc_term *divisor, zc_poly *quotient, zc_poly *rest)
{
    quotient->n = rest->n = 0;
    for (size_t i = 0; i < a->n; i++) {
        zc_term q = {0}, r = {0};
        if (divisor->n == 0 && divisor->coef > 0)
            split_by_constant(&a->terms[i], divisor->coef, &q, &r);
        else if (!zc_term_div(&a->terms[i], divisor, &q)) {
            q = (zc_term){0};
            r = a->terms[i];
        }
        if (!add_term(quotient, &q) || !add_term(rest, &r)) return false;
    }
    return true;
}

static uint64_t gcd(uint64_t a, uint64_t b)
{
    while (b) {
        const uint64_t r = a % b;
        a = b;
        b = r;
    }
    return a;
}

static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

uint64_t zc_poly_content(const zc_poly *p, bool skip_constant, int64_t c)
{
    uint64_t g = magnitude(c);
    for (size_t i = 0; i < p->n; i++)
        if (!skip_constant || p->terms[i].n) g = gcd(g, magnitude(p->terms[i].coef));
    return g;
}
