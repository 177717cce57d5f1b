/* A residual of a quantised network is a function of two bytes: both are made floats, scaled,
 * added, divided and rounded, which takes several times the instructions of one sum of two
 * products. Factors a digit off do as well where none of the 65,536 results tells the difference,
 * and that is found out by computing all of them. */
#include "op/affine.h"

#include <math.h>

enum { NODES = 48, CODES = 256, MOST = 64 /* of a factor of whole numbers */ };

/* ---- what quantises ---- */

static bool is_constant(const zc_expr_node *n, double least, double most)
{
    return n->op == ZC_EX_CONST && n->dtype == ZC_F32 && n->f >= least && n->f <= most;
}

bool zc_quantised_of(const zc_expr *e, int n, zc_quantised *out)
{
    const zc_expr_node *cast = &e->nodes[n];
    const bool bytes = cast->dtype == ZC_I8 || cast->dtype == ZC_U8;
    if (cast->op != ZC_EX_CAST || (!bytes && cast->dtype != ZC_F8E4M3FN)) return false;
    const zc_expr_node *round = &e->nodes[cast->arg[0]], *zero = NULL;
    if (bytes && round->op == ZC_EX_ADD) {
        zero = &e->nodes[round->arg[1]];
        round = &e->nodes[round->arg[0]];
        if (!is_constant(zero, -128, 255) || zero->f != rint(zero->f)) return false;
    }
    if (bytes && round->op != ZC_EX_ROUND) return false;
    const zc_expr_node *div = bytes ? &e->nodes[round->arg[0]] : round;
    if (div->op != ZC_EX_DIV || !is_constant(&e->nodes[div->arg[1]], 0x1p-100, 0x1p100))
        return false;
    *out = (zc_quantised){
        .x = div->arg[0], .scale = (float)e->nodes[div->arg[1]].f, .zero = zero ? (int)zero->f : 0};
    return true;
}

/* One node of those that the dividend needs. */
typedef struct step {
    const zc_expr_node *node;
    int arg[2];  /* steps */
    bool varies; /* with the second byte */
} step;

typedef struct form {
    step steps[NODES]; /* the dividend is the last */
    int count;
    int x[2]; /* inputs */
    bool is_signed[2];
} form;

/* The sum that a step is but for rounding and bounds: whether saturation does what a bound does is
 * found out later. */
typedef struct line {
    double factor[2], addend;
} line;

/* ---- the steps ---- */

/* The bytes that nodes need, in the order of inputs; false: none, more than two, or other numbers.
 */
static bool find_bytes(const zc_expr *e, const bool *needed, form *f)
{
    int found = 0;
    f->x[0] = f->x[1] = -1;
    for (int input = 0; input < e->ninputs; input++)
        for (int n = 0; n < e->count; n++) {
            const zc_expr_node *node = &e->nodes[n];
            if (!needed[n] || node->op != ZC_EX_INPUT || node->input != input) continue;
            if (found == 2 || (node->dtype != ZC_I8 && node->dtype != ZC_U8)) return false;
            f->x[found] = input;
            f->is_signed[found++] = node->dtype == ZC_I8;
        }
    return found > 0;
}

/* Between bytes nothing is rounded to 16 bits. */
static bool is_operand(const zc_expr_node *node)
{
    const zc_dtype t = node->dtype;
    switch (node->op) {
    case ZC_EX_INPUT:
        return true;
    case ZC_EX_CONST:
    case ZC_EX_CAST:
    case ZC_EX_ADD:
    case ZC_EX_SUB:
    case ZC_EX_MUL:
    case ZC_EX_MAX:
    case ZC_EX_MIN:
        return t == ZC_F32 || t == ZC_F16 || t == ZC_BF16;
    default:
        return false;
    }
}

/* What node `of` needs, in order. */
static bool collect(const zc_expr *e, int of, form *f)
{
    bool needed[ZC_EXPR_MAX_NODES] = {false};
    int place[ZC_EXPR_MAX_NODES];
    *f = (form){.count = 0};
    needed[of] = true;
    for (int n = of; n >= 0; n--)
        for (int a = 0; needed[n] && a < 2; a++)
            if (e->nodes[n].arg[a] >= 0) needed[e->nodes[n].arg[a]] = true;
    if (!find_bytes(e, needed, f)) return false;
    for (int n = 0; n <= of; n++) {
        const zc_expr_node *node = &e->nodes[n];
        if (!needed[n]) continue;
        if (!is_operand(node) || f->count == NODES) return false;
        step *s = &f->steps[f->count];
        *s = (step){.node = node};
        if (node->op == ZC_EX_INPUT) {
            s->arg[0] = node->input != f->x[0];
            s->varies = s->arg[0] == 1;
        }
        for (int a = 0; a < 2 && node->arg[a] >= 0; a++) {
            s->arg[a] = place[node->arg[a]];
            s->varies = s->varies || f->steps[s->arg[a]].varies;
        }
        place[n] = f->count++;
    }
    return true;
}

/* ---- the sum ---- */

static bool is_number(const line *l)
{
    return l->factor[0] == 0 && l->factor[1] == 0;
}

static line combined(const line *a, double x, const line *b, double y)
{
    return (line){{a->factor[0] * x + b->factor[0] * y, a->factor[1] * x + b->factor[1] * y},
                  a->addend * x + b->addend * y};
}

static bool line_of(const step *s, const line *before, line *out)
{
    const line *a = &before[s->arg[0]], *b = &before[s->arg[1]];
    switch (s->node->op) {
    case ZC_EX_INPUT:
        *out = (line){{s->arg[0] == 0, s->arg[0] == 1}, 0};
        return true;
    case ZC_EX_CONST:
        *out = (line){{0, 0}, (float)s->node->f};
        return isfinite(s->node->f);
    case ZC_EX_CAST:
        *out = *a;
        return true;
    case ZC_EX_MUL:
        *out = is_number(a) ? combined(b, a->addend, b, 0) : combined(a, b->addend, a, 0);
        return is_number(a) || is_number(b);
    case ZC_EX_MAX:
    case ZC_EX_MIN:
        *out = is_number(a) ? *b : *a;
        return is_number(a) || is_number(b);
    default:
        *out = combined(a, 1, b, s->node->op == ZC_EX_ADD ? 1 : -1);
        return true;
    }
}

static bool line_of_form(const form *f, line *out)
{
    line lines[NODES];
    for (int i = 0; i < f->count; i++)
        if (!line_of(&f->steps[i], lines, &lines[i])) return false;
    *out = lines[f->count - 1];
    return true;
}

/* ---- what the graph says ---- */

/* Results of all pairs of bytes, or of one byte. */
typedef struct table {
    int firsts, seconds;
    uint8_t results[CODES][CODES]; /* from the least byte on */
} table;

static uint8_t saturated(float v)
{
    return (uint8_t)(v < 0 ? 0 : v > CODES - 1 ? CODES - 1 : v);
}

static float number_of(const form *f, int i, int code)
{
    return (float)(f->is_signed[i] ? code - CODES / 2 : code);
}

/* In f32: a sum, product or quotient of such numbers that is rounded to f64 first is the same. */
static float value_of(const step *s, const float *x, const float *before)
{
    switch (s->node->op) {
    case ZC_EX_INPUT:
        return x[s->arg[0]];
    case ZC_EX_CONST:
        return (float)s->node->f;
    case ZC_EX_CAST:
        return before[s->arg[0]];
    default:
        return (float)zc_expr_float_binary(s->node->op, (double)before[s->arg[0]],
                                           (double)before[s->arg[1]]);
    }
}

/* Zero points are from the least byte on. */
static void compute(const form *f, const zc_quantised *q, table *t)
{
    float values[NODES], x[2];
    for (int first = 0; first < t->firsts; first++) {
        x[0] = number_of(f, 0, first);
        for (int second = 0; second < t->seconds; second++) {
            x[1] = number_of(f, 1, second);
            for (int i = 0; i < f->count; i++)
                if (second == 0 || f->steps[i].varies)
                    values[i] = value_of(&f->steps[i], x, values);
            float v = rintf((float)((double)values[f->count - 1] / (double)q->scale));
            t->results[first][second] = saturated(v + (float)q->zero);
        }
    }
}

/* ---- the search ---- */

/* Where the candidate before was wrong, at which its like are. */
typedef struct pair {
    int first, second;
} pair;

/* A sum before it is saturated. */
typedef float sum_fn(const zc_affine *a, float x, float y);

static float sum_of_floats(const zc_affine *a, float x, float y)
{
    return rintf(fmaf(a->factor[0], x, fmaf(a->factor[1], y, a->addend)));
}

static float sum_of_wholes(const zc_affine *a, float x, float y)
{
    const double one = 0x1p24;
    const double sum =
        rint(a->factor[0] * one) * x + rint(a->factor[1] * one) * y + rint((a->addend + 0.5) * one);
    return (float)floor(sum / one);
}

static bool is_right(sum_fn *sum, const zc_affine *a, const form *f, const table *t, pair at)
{
    float v = sum(a, number_of(f, 0, at.first), number_of(f, 1, at.second));
    return saturated(v) == t->results[at.first][at.second];
}

static bool is_right_everywhere(sum_fn *sum, const zc_affine *a, const form *f, const table *t,
                                pair *wrong)
{
    if (!is_right(sum, a, f, t, *wrong)) return false;
    for (pair at = {0, 0}; at.first < t->firsts; at.first++)
        for (at.second = 0; at.second < t->seconds; at.second++)
            if (!is_right(sum, a, f, t, at)) {
                *wrong = at;
                return false;
            }
    return true;
}

static float moved(double v, int digits)
{
    float f = (float)v;
    for (; digits > 0; digits--) f = nextafterf(f, INFINITY);
    for (; digits < 0; digits++) f = nextafterf(f, -INFINITY);
    return f;
}

/* Numbers 0, 1, -1, 2, -2. */
static int away(int i)
{
    return i % 2 ? (i + 1) / 2 : -i / 2;
}

zc_affine zc_affine_candidate(const zc_affine_line *l, int i)
{
    enum { EACH = 5 };
    _Static_assert(EACH * EACH * EACH == ZC_AFFINE_CANDIDATES, "each of three numbers");
    return (zc_affine){.x = {l->x[0], l->x[1]},
                       .factor = {moved(l->factor[0], away(i / EACH % EACH)),
                                  moved(l->factor[1], away(i / EACH / EACH))},
                       .addend = moved(l->addend, away(i % EACH))};
}

/* The form of what node n quantises, and the line. */
static bool line_of_node(const zc_expr *e, int n, form *f, zc_quantised *q, zc_affine_line *out)
{
    const double far = 0x1p20;
    const zc_dtype to = e->nodes[n].dtype;
    line l;
    if (!zc_dtype_is_int(to) || !zc_quantised_of(e, n, q) || !collect(e, q->x, f) ||
        !line_of_form(f, &l))
        return false;
    if (to == ZC_I8) q->zero += CODES / 2;
    l = combined(&l, 1 / (double)q->scale, &l, 0);
    l.addend += q->zero;
    *out = (zc_affine_line){.x = {f->x[0], f->x[1] < 0 ? f->x[0] : f->x[1]},
                            .is_signed = {f->is_signed[0], f->is_signed[f->x[1] >= 0]},
                            .factor = {l.factor[0], l.factor[1]},
                            .addend = l.addend};
    return CODES * (fabs(l.factor[0]) + fabs(l.factor[1])) + fabs(l.addend) < far;
}

bool zc_affine_line_of(const zc_expr *e, int n, zc_affine_line *out)
{
    zc_quantised q;
    form f;
    return line_of_node(e, n, &f, &q, out);
}

bool zc_affine_of(const zc_expr *e, int n, zc_affine *out)
{
    zc_quantised q;
    form f;
    zc_affine_line l;
    table t = {CODES, 1, {{0}}};
    pair wrong[2] = {{0, 0}, {0, 0}};
    bool found = false;
    if (!line_of_node(e, n, &f, &q, &l)) return false;
    if (f.x[1] >= 0) t.seconds = CODES;
    compute(&f, &q, &t);
    const bool small = fabs(l.factor[0]) < MOST && fabs(l.factor[1]) < MOST;
    for (int i = 0; i < ZC_AFFINE_CANDIDATES && !(found && (out->whole || !small)); i++) {
        zc_affine a = zc_affine_candidate(&l, i);
        if (!is_right_everywhere(sum_of_floats, &a, &f, &t, &wrong[0])) continue;
        a.whole = small && is_right_everywhere(sum_of_wholes, &a, &f, &t, &wrong[1]);
        if (!found || a.whole) *out = a;
        found = true;
    }
    return found;
}
