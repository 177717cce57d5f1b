/* Quotients, remainders, MAX and MIN of symbolic integers. */
#include "op/dim_poly.h"

/* How often a rule that replaces the operands may start over. */
#define REWRITES_MAX 4

static zc_dim neg(zc_dims *t, zc_dim d)
{
    return zc_dim_mul(t, d, zc_dim_const(-1));
}

static zc_term constant_term(int64_t c)
{
    return (zc_term){.coef = c};
}

/* Is p within [lo, hi] for all inputs? Symbols bound by steps may turn out negative, so where one
 * occurs nothing is certain. */
static bool certainly_within(const zc_dims *t, const zc_poly *p, int64_t lo, int64_t hi)
{
    for (size_t i = 0; i < p->n; i++)
        for (uint32_t j = 0; j < p->terms[i].n; j++)
            if (zc_dim_dynamic(t, (zc_dim){.e = p->terms[i].atoms[j]})) return false;
    const zc_range r = zc_range_poly(t, p);
    return r.lo >= lo && r.hi <= hi;
}

/* Matches 1*atom + constant, where the atom is of that kind with a positive constant right side. */
static const zc_dim_node *match_atom(const zc_dims *t, const zc_poly *p, zc_dim_kind kind,
                                     int64_t *constant)
{
    if (p->n == 0 || p->n > 2 || p->terms[0].n != 1 || p->terms[0].coef != 1) return NULL;
    if (p->n == 2 && p->terms[1].n != 0) return NULL;
    *constant = p->n == 2 ? p->terms[1].coef : 0;
    const zc_dim_node *node = &t->nodes[p->terms[0].atoms[0] - 1];
    return node->kind == kind && zc_dim_is_const(node->b) && node->b.k > 0 ? node : NULL;
}

/* x + k*scale, or false when the product overflows. */
static bool add_product(zc_dims *t, zc_dim x, int64_t k, int64_t scale, zc_dim *out)
{
    int64_t product;
    if (!zc_mul_i64(k, scale, &product)) return false;
    *out = zc_dim_add(t, x, zc_dim_const(product));
    return true;
}

/* Divides the terms by g, the constant term downwards. g divides the other coefficients. */
static void shrink(zc_poly *p, int64_t g)
{
    zc_poly quotient, rest;
    const zc_term divisor = constant_term(g);
    if (g > 1 && zc_poly_split(p, &divisor, &quotient, &rest)) *p = quotient;
}

/* Cancels what all terms of a and b have in common: coefficients' divisor and factors. */
static void cancel(zc_poly *a, zc_poly *b)
{
    zc_term common = b->terms[0];
    const uint64_t g = zc_poly_content(a, false, 0);
    const uint64_t h = zc_poly_content(b, false, (int64_t)(g & INT64_MAX));
    common.coef = g <= INT64_MAX && h <= INT64_MAX && h > 0 ? (int64_t)h : 1;
    for (size_t i = 0; i < a->n + b->n; i++) {
        const zc_term *term = i < a->n ? &a->terms[i] : &b->terms[i - a->n];
        uint32_t kept = 0;
        for (uint32_t j = 0, k = 0; j < common.n && k < term->n;) {
            if (common.atoms[j] == term->atoms[k]) {
                common.atoms[kept++] = common.atoms[j++];
                k++;
            } else if (common.atoms[j] < term->atoms[k]) {
                j++;
            } else {
                k++;
            }
        }
        common.n = kept;
    }
    if (common.n == 0 && common.coef == 1) return;
    for (size_t i = 0; i < a->n; i++) zc_term_div(&a->terms[i], &common, &a->terms[i]);
    for (size_t i = 0; i < b->n; i++) zc_term_div(&b->terms[i], &common, &b->terms[i]);
}

static zc_dim floor_by_constant(zc_dims *t, zc_dim a, int64_t c, unsigned rewrites);

/* floor(rest/c) for a rest that has no multiples of c left. */
static zc_dim rest_by_constant(zc_dims *t, zc_poly *rest, int64_t c, unsigned rewrites)
{
    if (certainly_within(t, rest, 0, c - 1)) return zc_dim_const(0);
    /* floor((g*x + r) / (g*c)) == floor((x + floor(r/g)) / c) */
    const int64_t g = (int64_t)zc_poly_content(rest, true, c);
    shrink(rest, g);
    c /= g;
    /* floor((floor(x/b) + k) / c) == floor((x + k*b) / (b*c)) */
    int64_t k, product;
    zc_dim x;
    const zc_dim_node *inner = match_atom(t, rest, ZC_DIM_DIV, &k);
    if (inner && rewrites < REWRITES_MAX && zc_mul_i64(inner->b.k, c, &product) &&
        add_product(t, inner->a, k, inner->b.k, &x))
        return floor_by_constant(t, x, product, rewrites + 1);
    return zc_dims_intern(t, ZC_DIM_DIV, zc_poly_dim(t, rest), zc_dim_const(c));
}

/* floor(a/c), c > 0. The multiples of c are taken out: floor((q*c + r)/c) == q + floor(r/c). */
static zc_dim floor_by_constant(zc_dims *t, zc_dim a, int64_t c, unsigned rewrites)
{
    if (c == 1) return a;
    if (zc_dim_is_const(a)) return zc_dim_div(t, a, zc_dim_const(c));
    zc_poly p, quotient, rest;
    const zc_term divisor = constant_term(c);
    zc_poly_of(t, a, &p);
    if (!zc_poly_split(&p, &divisor, &quotient, &rest))
        return zc_dims_intern(t, ZC_DIM_DIV, a, zc_dim_const(c));
    if (rest.n == 0) return zc_poly_dim(t, &quotient);
    const zc_dim r = rest_by_constant(t, &rest, c, rewrites);
    return zc_dim_add(t, zc_poly_dim(t, &quotient), r);
}

/* DIV or CDIV of a by a nonzero constant. */
static zc_dim by_constant(zc_dims *t, zc_dim_kind kind, zc_dim a, int64_t c)
{
    if (c == INT64_MIN) return zc_dims_intern(t, kind, a, zc_dim_const(c));
    if (c < 0) {
        a = neg(t, a);
        c = -c;
    }
    if (kind == ZC_DIM_CDIV) a = zc_dim_add(t, a, zc_dim_const(c - 1));
    return floor_by_constant(t, a, c, 0);
}

/* DIV or CDIV by a symbolic divisor. */
static zc_dim by_symbols(zc_dims *t, zc_dim_kind kind, zc_dim a, zc_dim b)
{
    zc_poly p, d, quotient, rest;
    zc_poly_of(t, a, &p);
    zc_poly_of(t, b, &d);
    if (zc_poly_div(&p, &d, &quotient)) return zc_poly_dim(t, &quotient);
    if (d.n == 0) return zc_dims_intern(t, kind, a, b); /* an opaque sum that comes to 0 */
    zc_dim whole = zc_dim_const(0);
    if (d.n == 1 && zc_poly_split(&p, &d.terms[0], &quotient, &rest)) {
        whole = zc_poly_dim(t, &quotient);
        p = rest;
    }
    cancel(&p, &d);
    a = zc_poly_dim(t, &p);
    b = zc_poly_dim(t, &d);
    const zc_dim part =
        zc_dim_is_const(b) ? by_constant(t, kind, a, b.k) : zc_dims_intern(t, kind, a, b);
    return zc_dim_add(t, whole, part);
}

static zc_dim quotient_of(zc_dims *t, zc_dim_kind kind, zc_dim a, zc_dim b)
{
    zc_dim r;
    if (zc_dims_settled(t, kind, a, b, &r)) return r;
    if (zc_dim_is(b, 0)) return zc_dims_intern(t, kind, a, b); /* fails when evaluated */
    if (zc_dim_is(b, 1) || zc_dim_is(a, 0)) return a;
    if (zc_dim_is_const(b)) return by_constant(t, kind, a, b.k);
    return by_symbols(t, kind, a, b);
}

zc_dim zc_dim_div(zc_dims *t, zc_dim a, zc_dim b)
{
    return quotient_of(t, ZC_DIM_DIV, a, b);
}

zc_dim zc_dim_cdiv(zc_dims *t, zc_dim a, zc_dim b)
{
    return quotient_of(t, ZC_DIM_CDIV, a, b);
}

/* a mod c, c > 0 */
static zc_dim mod_constant(zc_dims *t, zc_dim a, int64_t c, unsigned rewrites)
{
    if (zc_dim_is_const(a)) return zc_dim_mod(t, a, zc_dim_const(c));
    zc_poly p, quotient, rest;
    const zc_term divisor = constant_term(c);
    zc_poly_of(t, a, &p);
    if (!zc_poly_split(&p, &divisor, &quotient, &rest))
        return zc_dims_intern(t, ZC_DIM_MOD, a, zc_dim_const(c));
    if (certainly_within(t, &rest, 0, c - 1)) return zc_poly_dim(t, &rest);
    /* (x mod (m*c) + k) mod c == (x + k) mod c */
    int64_t k;
    const zc_dim_node *inner = match_atom(t, &rest, ZC_DIM_MOD, &k);
    if (inner && inner->b.k % c == 0 && rewrites < REWRITES_MAX)
        return mod_constant(t, zc_dim_add(t, inner->a, zc_dim_const(k)), c, rewrites + 1);
    /* (g*x + r) mod (g*c) == g*((x + floor(r/g)) mod c) + r mod g */
    const int64_t g = (int64_t)zc_poly_content(&rest, true, c);
    const zc_term *last = &rest.terms[rest.n - 1];
    const int64_t r = last->n == 0 ? last->coef % g : 0;
    shrink(&rest, g);
    a = zc_poly_dim(t, &rest);
    const zc_dim m = g > 1 && rewrites < REWRITES_MAX
                         ? mod_constant(t, a, c / g, rewrites + 1)
                         : zc_dims_intern(t, ZC_DIM_MOD, a, zc_dim_const(c / g));
    return zc_dim_add(t, zc_dim_mul(t, m, zc_dim_const(g)), zc_dim_const(r));
}

static zc_dim mod_symbols(zc_dims *t, zc_dim a, zc_dim b)
{
    zc_poly p, d, quotient, rest;
    zc_poly_of(t, a, &p);
    zc_poly_of(t, b, &d);
    if (zc_poly_div(&p, &d, &quotient)) return zc_dim_const(0);
    if (d.n == 1 && zc_poly_split(&p, &d.terms[0], &quotient, &rest)) a = zc_poly_dim(t, &rest);
    return zc_dims_intern(t, ZC_DIM_MOD, a, b);
}

zc_dim zc_dim_mod(zc_dims *t, zc_dim a, zc_dim b)
{
    zc_dim r;
    if (zc_dims_settled(t, ZC_DIM_MOD, a, b, &r)) return r;
    if (zc_dim_is(b, 0) || zc_dim_is(b, INT64_MIN)) return zc_dims_intern(t, ZC_DIM_MOD, a, b);
    if (zc_dim_is(a, 0) || zc_dim_is(b, 1) || zc_dim_is(b, -1)) return zc_dim_const(0);
    if (!zc_dim_is_const(b)) return mod_symbols(t, a, b);
    if (b.k < 0) return neg(t, mod_constant(t, neg(t, a), -b.k, 0));
    return mod_constant(t, a, b.k, 0);
}

/* Is a >= b for all inputs? */
static bool certainly_ge(const zc_dims *t, zc_dim a, zc_dim b)
{
    if (zc_dim_is(a, INT64_MAX) || zc_dim_is(b, INT64_MIN)) return true; /* by representation */
    zc_poly p, q;
    const zc_term minus = constant_term(-1);
    zc_poly_of(t, a, &p);
    zc_poly_of(t, b, &q);
    return zc_poly_add_scaled(&p, &q, &minus) && certainly_within(t, &p, 0, INT64_MAX);
}

static bool is_operand(const zc_dims *t, zc_dim_kind kind, zc_dim d, zc_dim x)
{
    if (zc_dim_is_const(d) || t->nodes[d.e - 1].kind != kind) return false;
    return zc_dim_eq(t->nodes[d.e - 1].a, x) || zc_dim_eq(t->nodes[d.e - 1].b, x);
}

static zc_dim extreme(zc_dims *t, zc_dim_kind kind, zc_dim a, zc_dim b)
{
    zc_dim r;
    if (zc_dims_settled(t, kind, a, b, &r)) return r;
    if (zc_dim_eq(a, b) || is_operand(t, kind, a, b)) return a;
    if (is_operand(t, kind, b, a)) return b;
    const zc_dim_kind other = kind == ZC_DIM_MAX ? ZC_DIM_MIN : ZC_DIM_MAX;
    if (is_operand(t, other, b, a)) return a; /* max(x, min(x, y)) is x */
    if (is_operand(t, other, a, b)) return b;
    if (certainly_ge(t, a, b)) return kind == ZC_DIM_MAX ? a : b;
    if (certainly_ge(t, b, a)) return kind == ZC_DIM_MAX ? b : a;
    /* Commutative: the later expression last, a constant at the very end. */
    const bool swap = zc_dim_is_const(a) || (!zc_dim_is_const(b) && b.e < a.e);
    const zc_dim x = swap ? b : a, y = swap ? a : b;
    const zc_dim_node *node = &t->nodes[x.e - 1];
    if (zc_dim_is_const(y) && node->kind == kind && zc_dim_is_const(node->b))
        return extreme(t, kind, node->a, extreme(t, kind, node->b, y));
    return zc_dims_intern(t, kind, x, y);
}

zc_dim zc_dim_max(zc_dims *t, zc_dim a, zc_dim b)
{
    return extreme(t, ZC_DIM_MAX, a, b);
}

zc_dim zc_dim_min(zc_dims *t, zc_dim a, zc_dim b)
{
    return extreme(t, ZC_DIM_MIN, a, b);
}
