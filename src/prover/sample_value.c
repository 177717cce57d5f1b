/* Numbers in samples. */
#include <math.h>
#include <string.h>

#include "prover/sample_parts.h"

#define KIND(name, words, ints) words,
const char *zc_rl_values_name(zc_rl_values v)
{
    static const char *const names[] = {ZC_VALUES(KIND)};
    return names[v];
}
#undef KIND

uint64_t zc_rl_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- numbers that a rule names ---- */

static void add_number(zc_rl_choice *c, double v)
{
    for (int i = 0; i < c->number_count; i++)
        if (c->numbers[i] == v) return;
    if (c->number_count < (int)ZC_COUNTOF(c->numbers)) c->numbers[c->number_count++] = v;
}

static void add_pat(zc_rl_choice *c, const zc_rl_pat *p)
{
    if (p->kind == ZC_RP_NUM) add_number(c, p->num);
    for (int i = 0; (p->kind == ZC_RP_NODE || p->kind == ZC_RP_ALT) && i < p->args.n; i++)
        add_pat(c, zc_rl_pat_at(&p->args, i));
}

/* What stands beside value(), element() and the like. */
static void add_expr(zc_rl_choice *c, const zc_rl_expr *e)
{
    if (e->kind == ZC_RE_REAL) add_number(c, e->real);
    if (e->kind == ZC_RE_INT) add_number(c, (double)e->i);
    for (int i = 0; i < e->args.n; i++) add_expr(c, zc_rl_expr_at(&e->args, i));
}

static bool speaks_of_numbers(const zc_rl_expr *e)
{
    bool speaks = e->kind == ZC_RE_CALL && (e->index == ZC_RF_value || e->index == ZC_RF_element ||
                                            e->index == ZC_RF_least || e->index == ZC_RF_greatest);
    for (int i = 0; i < e->args.n && !speaks; i++)
        speaks = speaks_of_numbers(zc_rl_expr_at(&e->args, i));
    return speaks;
}

void zc_rl_choose_numbers(const zc_rl_rule *rule, zc_rl_choice *c)
{
    c->number_count = 0;
    for (int i = 0; i < rule->match.n; i++) add_pat(c, zc_rl_stmt_at(&rule->match, i)->pat);
    for (int i = 0; i < rule->emit.n; i++) add_pat(c, zc_rl_stmt_at(&rule->emit, i)->pat);
    for (int i = 0; i < rule->where.n; i++)
        if (speaks_of_numbers(zc_rl_expr_at(&rule->where, i)))
            add_expr(c, zc_rl_expr_at(&rule->where, i));
}

/* ---- integers ---- */

/* Near a power of two, zero included; of both signs. */
static int64_t extreme_integer(zc_dtype dtype, uint64_t z)
{
    static const int8_t near[] = {0, 1, -1, 2, -2};
    unsigned bits = zc_dtype_bits(dtype);
    unsigned at = z % 3 ? bits - 1 : (unsigned)(z >> 8) % (bits + 1);
    uint64_t power = at >= 64 ? 0 : UINT64_C(1) << at;
    power += (uint64_t)near[(z >> 16) % ZC_COUNTOF(near)];
    return (int64_t)(z >> 32 & 1 ? 0 - power : power);
}

static int64_t own_integer(const zc_rl_choice *c, zc_dtype dtype, uint64_t z)
{
    if (!c->number_count || z % 4 == 0) return extreme_integer(dtype, z >> 8);
    double v = c->numbers[(z >> 8) % (uint64_t)c->number_count];
    if (!(fabs(v) < 0x1p62)) return extreme_integer(dtype, z >> 8);
    int64_t k = (int64_t)v + (int64_t)(z >> 40) % 3 - 1;
    return z >> 50 & 1 ? -k : k;
}

static int64_t integer(const zc_rl_choice *c, zc_dtype dtype, int var, uint64_t z)
{
    switch (c->values) {
    case ZC_VALUES_LARGE:
        return (int64_t)(z % 4001) - 2000;
    case ZC_VALUES_HUGE:
        return (int64_t)z;
    case ZC_VALUES_TINY:
        return (int64_t)(z % 3) - 1;
    case ZC_VALUES_EQUAL:
        return -7 - var;
    case ZC_VALUES_ZERO:
        return 0;
    case ZC_VALUES_ODD:
        return extreme_integer(dtype, z);
    case ZC_VALUES_EDGES:
        return own_integer(c, dtype, z);
    default:
        return (int64_t)(z % 17) - 8;
    }
}

/* ---- numbers ---- */

static double plain(uint64_t z)
{
    double u = (double)(z >> 11) * 0x1p-53, sign = z & 1 ? 1 : -1;
    return sign * 3 * u * u + (z & 6 ? 0.01 : 0);
}

/* Next to v in a type of that precision, or half of its unit off. */
static double own_number(const zc_rl_choice *c, zc_dtype dtype, uint64_t z)
{
    static const double often[] = {0, 1, -1, 10, 20, -20, 88, -88, 100};
    double step = dtype == ZC_F16 ? 0x1p-10 : dtype == ZC_BF16 ? 0x1p-7 : 0x1p-23;
    uint64_t k = (z >> 8) % ((uint64_t)c->number_count + 2);
    double v = k < (uint64_t)c->number_count ? c->numbers[k] : often[(z >> 20) % ZC_COUNTOF(often)];
    double most = dtype == ZC_F64 && c->is_narrow ? 100 : 1e4; /* attributes are f32 */
    if (fabs(v) > most) v = fmod(v, most);
    if (z >> 30 & 1) v = -v;
    switch (z >> 40 & 7) {
    case 0:
        return v * (1 + step);
    case 1:
        return v * (1 - step);
    case 2:
        return v + 0.5;
    case 3:
        return v - 0.5;
    default:
        return v;
    }
}

static double number(const zc_rl_choice *c, zc_dtype dtype, int var, uint64_t z)
{
    double v = plain(z);
    bool small = dtype == ZC_F16;
    switch (c->values) {
    case ZC_VALUES_LARGE:
        return v * (small             ? 30
                    : dtype == ZC_F64 ? 100
                                      : 1000); /* f64 has no wider type to check it */
    case ZC_VALUES_HUGE:
        return v * (small ? 2e4 : 1e30);
    case ZC_VALUES_TINY:
        return v * (small ? 1e-5 : 1e-30);
    case ZC_VALUES_EQUAL:
        return 0.7 + var;
    case ZC_VALUES_ZERO:
        return z & 1 ? 0.0 : -0.0;
    case ZC_VALUES_ODD:
        return z % 7 == 0 ? NAN : z % 7 == 1 ? INFINITY : z % 7 == 2 ? -INFINITY : v;
    case ZC_VALUES_HALVES:
        return (double)((int64_t)(z % 19) - 9) / 2;
    case ZC_VALUES_EDGES:
        return own_number(c, dtype, z);
    default:
        return v;
    }
}

void zc_rl_store(zc_dtype own, zc_dtype as, void *data, int64_t i, double v)
{
    uint64_t slot[2] = {0};
    zc_store_f64(own, slot, 0, v);
    zc_store_f64(as, data, i, own == as ? v : zc_load_f64(own, slot, 0));
}

void zc_rl_sample_store(const zc_rl_choice *c, zc_dtype own, zc_dtype as, int var, int64_t i,
                        void *data)
{
    uint64_t state =
        c->value_seed ^ ((uint64_t)var << 40) ^ ((uint64_t)c->values << 56) ^ (uint64_t)i;
    uint64_t z = zc_rl_random(&state);
    if (own == ZC_BOOL)
        zc_store_i64(as, data, i,
                     c->values == ZC_VALUES_ZERO    ? 0
                     : c->values == ZC_VALUES_EQUAL ? 1
                                                    : (int64_t)(z >> 7 & 1));
    else if (zc_dtype_is_float(own))
        zc_rl_store(own, as, data, i, number(c, own, var, z));
    else
        zc_store_i64(as, data, i, integer(c, own, var, z));
}

/* ---- constants ---- */

/* Two constants of f16, or that become f16 beside others, may be multiplied. */
static double bound_for_half(const zc_rl_maker *m, zc_dtype own, double v)
{
    bool is_half = own == ZC_F16 || m->c->dtype == ZC_F16;
    for (int i = 0; i < m->rule->nvars; i++) is_half |= m->out->own[i] == ZC_F16;
    return is_half && fabs(v) > 200 ? copysign(200, v) : v;
}

/* Numbers that constants are in models, and extremes. The first variants are what most have. */
static double scalar(const zc_rl_maker *m, int var, zc_dtype own, bool fills_masks)
{
    static const double numbers[] = {1e-5, 0.5,   1,   2,   -1,    0,    3,    1e-12,
                                     -2.5, 0.125, 10,  1e3, -40,   1e-6, -0.5, 6e4,
                                     1e30, -1e30, 1.5, 7,   -1e-6, 1e-20};
    static const double fills[] = {-INFINITY, -3.4028234663852886e38, -1e9, 0};
    uint64_t k = (uint64_t)m->c->constants + 5 * (uint64_t)var;
    if (fills_masks && m->c->constants < 8) return fills[k % ZC_COUNTOF(fills)];
    return bound_for_half(m, own, numbers[k % ZC_COUNTOF(numbers)]);
}

static int64_t integer_scalar(const zc_rl_maker *m, int var, zc_dtype own)
{
    static const int8_t numbers[] = {1, 2, 0, -1, 3, 7, -2, 4, -7, 16, 100, -128};
    uint64_t k = (uint64_t)m->c->constants + 5 * (uint64_t)var;
    if (k % 16 < ZC_COUNTOF(numbers)) return numbers[k % 16];
    uint64_t z = k * 0x9e3779b97f4a7c15u;
    return extreme_integer(own, z);
}

int64_t zc_rl_small_integer(zc_rl_maker *m)
{
    static const int64_t often[] = {-1, -1, 1, 0, 2};
    if (zc_rl_below(m, 3)) return often[zc_rl_below(m, (int64_t)ZC_COUNTOF(often))];
    return zc_rl_below(m, 2) ? m->rank - 1 : zc_rl_below(m, 8);
}

/* An index of what Gather takes from, from the end too. */
static int64_t index_in(zc_rl_maker *m)
{
    bool is_gather = m->user && m->place == 1 &&
                     (m->user->op == ZC_OP_Gather || m->user->op == ZC_OP_GatherElements);
    const zc_type *of = is_gather ? &zc_val(m->g, m->others[0])->type : NULL;
    int64_t k = zc_rl_below(m, 3);
    return of && of->rank == 1 && zc_dim_is_const(of->dims[0]) && of->dims[0].k > k &&
                   zc_rl_below(m, 2)
               ? -1 - k
               : k;
}

/* Long constants repeat themselves. */
enum { PERIOD = 1021 };

static int64_t period_of(const zc_tensor *t)
{
    int64_t n = zc_tensor_numel(t);
    return n > PERIOD && zc_dtype_bits(t->dtype) >= 8 ? PERIOD : n;
}

static void repeat_const(zc_tensor *t)
{
    size_t unit = zc_dtype_bits(t->dtype) / 8, size = (size_t)zc_tensor_numel(t) * unit;
    for (size_t done = PERIOD * unit; done < size; done *= 2)
        memcpy((char *)t->data + done, t->data, done < size - done ? done : size - done);
}

static void fill_integers(zc_rl_maker *m, int var, const zc_rl_role *what, zc_tensor *t)
{
    zc_rl_choice own = *m->c;
    int64_t n = zc_tensor_numel(t), filled = period_of(t);
    bool is_one = n == 1 || m->c->constants % 2;
    own.values = m->c->constants % 4 == 2 ? ZC_VALUES_ODD : ZC_VALUES_PLAIN;
    for (int64_t i = 0; i < filled; i++) {
        if (what->is_host)
            zc_store_i64(t->dtype, t->data, i, zc_rl_small_integer(m));
        else if (what->is & ZC_ROLE_INDEX)
            zc_store_i64(t->dtype, t->data, i, index_in(m));
        else if (is_one)
            zc_store_i64(t->dtype, t->data, i, integer_scalar(m, var, t->dtype));
        else
            zc_rl_sample_store(&own, t->dtype, t->dtype, var, i, t->data);
    }
    if (filled < n) repeat_const(t);
}

void zc_rl_fill_const(zc_rl_maker *m, int var, zc_dtype own, const zc_rl_role *what, zc_tensor *t)
{
    static const zc_rl_values kinds[] = {ZC_VALUES_PLAIN, ZC_VALUES_HALVES, ZC_VALUES_PLAIN,
                                         ZC_VALUES_ZERO};
    zc_rl_choice c = *m->c;
    int64_t half = what->halves && t->rank ? t->dims[t->rank - 1] / 2 : 0, n = zc_tensor_numel(t);
    bool is_one = n == 1 || m->c->constants % 2;
    c.values = kinds[m->c->constants / 2 % (int)ZC_COUNTOF(kinds)];
    if (zc_dtype_is_int(own) || what->is_host) {
        fill_integers(m, var, what, t);
        return;
    }
    int64_t filled = half ? n : period_of(t);
    for (int64_t i = 0; i < filled; i++) {
        int64_t like = half && i / half % 2 ? i - half : i;
        if (is_one && own != ZC_BOOL)
            zc_rl_store(own, t->dtype, t->data, i,
                        scalar(m, var, own, n == 1 && what->is & ZC_ROLE_FILL));
        else if (like != i)
            zc_store_f64(t->dtype, t->data, i, zc_load_f64(t->dtype, t->data, like));
        else
            zc_rl_sample_store(&c, own, t->dtype, var, i, t->data);
    }
    if (filled < n) repeat_const(t);
}

/* Up to this much a tolerance is for the rounding of what models say; the edges of more are
 * sampled.
 */
#define ROUNDING_TOLERANCE 1e-3

double zc_rl_draw_number(zc_rl_maker *m, const zc_rl_pat *p)
{
    static const double edges[] = {0, 0.999, -0.999};
    double scale = fabs(p->num) > 1e-30 ? fabs(p->num) : 1;
    if (p->tol <= ROUNDING_TOLERANCE) return p->num;
    return p->num + edges[m->c->constants % (int)ZC_COUNTOF(edges)] * p->tol * scale;
}
