/* Interval arithmetic for zc_dim_known_ge and for folding MAX and MIN. */
#include "op/dim_poly.h"

static bool infinite(int64_t v)
{
    return v == INT64_MIN || v == INT64_MAX;
}

/* Keeps the values that mean "unbounded" for that meaning alone. */
static zc_range range_of(int64_t lo, int64_t hi)
{
    return (zc_range){.lo = lo == INT64_MAX ? INT64_MAX - 1 : lo,
                      .hi = hi == INT64_MIN ? INT64_MIN + 1 : hi};
}

static const zc_range everything = {INT64_MIN, INT64_MAX};

/* Both are the same kind of end, so that at most one sign of infinity occurs. */
static int64_t add_ends(int64_t x, int64_t y)
{
    int64_t r;
    if (infinite(x)) return x;
    if (infinite(y)) return y;
    if (zc_add_i64(x, y, &r)) return r;
    return x < 0 ? INT64_MIN : INT64_MAX;
}

static int64_t mul_ends(int64_t x, int64_t y)
{
    int64_t r;
    if (x == 0 || y == 0) return 0;
    if (!infinite(x) && !infinite(y) && zc_mul_i64(x, y, &r)) return r;
    return (x < 0) == (y < 0) ? INT64_MAX : INT64_MIN;
}

static int64_t least(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t most(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

static zc_range mul_range(zc_range a, zc_range b)
{
    const int64_t p = mul_ends(a.lo, b.lo), q = mul_ends(a.lo, b.hi);
    const int64_t r = mul_ends(a.hi, b.lo), s = mul_ends(a.hi, b.hi);
    return range_of(least(least(p, q), least(r, s)), most(most(p, q), most(r, s)));
}

/* floor(x/y) for an end x and a y > 0 that may be infinite. */
static int64_t div_ends(int64_t x, int64_t y)
{
    if (infinite(x)) return x;
    if (y == INT64_MAX) return x < 0 ? -1 : 0;
    const int64_t q = x / y;
    return q - (x % y < 0);
}

/* A divisor that is known to be >= 0 is >= 1 wherever the quotient has a value. */
static zc_range div_range(zc_range a, zc_range b)
{
    if (b.lo < 0) return everything;
    const int64_t least_b = most(b.lo, 1), most_b = most(b.hi, 1);
    return range_of(div_ends(a.lo, a.lo < 0 ? least_b : most_b),
                    div_ends(a.hi, a.hi < 0 ? most_b : least_b));
}

static zc_range mod_range(zc_range a, zc_range b)
{
    if (b.lo < 0) return everything;
    const int64_t below = infinite(b.hi) ? b.hi : most(b.hi, 1) - 1;
    return range_of(0, a.lo >= 0 ? least(a.hi, below) : below);
}

zc_range zc_range_apply(zc_dim_kind kind, zc_range a, zc_range b)
{
    switch (kind) {
    case ZC_DIM_ADD:
        return range_of(add_ends(a.lo, b.lo), add_ends(a.hi, b.hi));
    case ZC_DIM_MUL:
        return mul_range(a, b);
    case ZC_DIM_DIV:
        return div_range(a, b);
    case ZC_DIM_CDIV: {
        const zc_range r = div_range(a, b);
        return range_of(r.lo, add_ends(r.hi, 1));
    }
    case ZC_DIM_MOD:
        return mod_range(a, b);
    case ZC_DIM_MAX:
        return range_of(most(a.lo, b.lo), most(a.hi, b.hi));
    case ZC_DIM_MIN:
        return range_of(least(a.lo, b.lo), least(a.hi, b.hi));
    case ZC_DIM_SYM:
        break;
    }
    return everything;
}

zc_range zc_range_of(const zc_dims *t, zc_dim d)
{
    if (zc_dim_is_const(d)) return range_of(d.k, d.k);
    return (zc_range){t->nodes[d.e - 1].lo, t->nodes[d.e - 1].hi};
}

zc_range zc_range_poly(const zc_dims *t, const zc_poly *p)
{
    zc_range sum = {0, 0};
    for (size_t i = 0; i < p->n; i++) {
        const zc_term *term = &p->terms[i];
        zc_range product = {1, 1};
        for (uint32_t j = 0; j < term->n; j++)
            product = mul_range(product, zc_range_of(t, (zc_dim){.e = term->atoms[j]}));
        product = mul_range(product, range_of(term->coef, term->coef));
        sum = zc_range_apply(ZC_DIM_ADD, sum, product);
    }
    return sum;
}
