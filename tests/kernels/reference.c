/* What results are held to.
 *
 * A float result may be off by twice the error of the reference kernel in the same type plus two
 * units in the last place; and, where that is not enough, by what inputs would do to it that are
 * wrong by a few units of the type in which it is summed (f32 for the small types): such errors no
 * order of summation avoids. A fused operation that rounds values in between gets the units of its
 * own type there.
 *
 * Where an operand holds NaN or infinity, results must be NaN, inf and -inf at the same places; how
 * near the others are has been seen with other operands. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

/* How often inputs are perturbed: a few times, and twice as often, up to many, as long as there is
 * an element that this does not excuse. Each round allows more, so many rounds at once would not
 * find more. */
enum { PERTURBED_FEW = 1, PERTURBED_MANY = 32 };

static bool complex_type(zc_dtype t)
{
    return zc_dtype_class(t) == ZC_CLASS_COMPLEX;
}

static zc_status eval(const kc_reference *r, const zc_tensor *in, zc_tensor *out, zc_diag *diag)
{
    const zc_pstep *step = r->p->step;
    for (int o = 0; o < r->p->nout; o++)
        out[o] = (zc_tensor){.dtype = r->p->wanted[o] ? ZC_F32 : ZC_NONE};
    return zc_cpu_eval(step->op, step->attrs, r->p->nin, in, r->p->nout, out, true, "node", diag);
}

/* The operand in f64, each element times 1 + eps * u, u in [-1, 1], plus some of the smallest
 * subnormal numbers. */
static bool upcast(const kc_operand *o, double eps, kc_random *random, zc_tensor *out)
{
    double quantum = o->t.dtype == ZC_F64 ? 0x1p-1072 : 0x1p-147;
    size_t bytes;
    int64_t n = zc_tensor_numel(&o->t);
    *out = o->t;
    out->dtype = ZC_F64;
    if (!zc_tensor_bytes(out, &bytes) || !(out->data = zc_calloc(bytes + 8, 1))) return false;
    for (int64_t i = 0; i < n; i++) {
        double v = zc_load_f64(o->t.dtype, o->t.data, i);
        if (eps > 0)
            v = v * (1 + eps * (2 * kc_unit(random) - 1)) + quantum * (2 * kc_unit(random) - 1);
        ((double *)out->data)[i] = v;
    }
    return true;
}

static bool widens(const kc_operand *o)
{
    return o->of_t && zc_dtype_is_float(o->t.dtype) && zc_dtype_bits(o->t.dtype) >= 16;
}

static void release(zc_tensor *t, int n)
{
    for (int i = 0; i < n; i++) {
        free(t[i].data);
        t[i] = (zc_tensor){0};
    }
}

static zc_status eval_wide(const kc_reference *r, double eps, kc_random *random, zc_tensor *out,
                           zc_diag *diag)
{
    zc_tensor in[KC_OPERANDS];
    bool own[KC_OPERANDS] = {false}, room = true;
    for (int i = 0; i < r->p->nin; i++) {
        in[i] = r->in[i].absent ? (zc_tensor){0} : r->in[i].t;
        if (r->in[i].absent || !widens(&r->in[i])) continue;
        room = room && upcast(&r->in[i], eps, random, &in[i]);
        own[i] = room;
    }
    zc_status status = room ? eval(r, in, out, diag) : ZC_ERR_NOMEM;
    for (int i = 0; i < r->p->nin; i++)
        if (own[i]) free(in[i].data);
    return status;
}

static bool same_shapes(const kc_reference *r)
{
    for (int o = 0; o < r->p->nout; o++)
        if (r->p->wanted[o] && zc_tensor_numel(&r->same[o]) != zc_tensor_numel(&r->exact[o]))
            return false;
    return true;
}

/* f32 on the tensor cores: factors are rounded to tf32. */
static bool rounds_factors(const kc_variant *v)
{
    return (strcmp(v->c->family, "gemm_mma") == 0 && strcmp(v->t, "f32") == 0) ||
           strcmp(v->c->family, "gemm_tf32_sm90") == 0;
}

/* The numbers with 10 binary digits behind the point, to nearest, ties to even, as the copy engine
 * rounds, or away from zero; NULL: no memory. */
static uint32_t *to_tf32(const zc_tensor *t, bool even)
{
    int64_t n = zc_tensor_numel(t);
    uint32_t *out = zc_calloc((size_t)n + 1, sizeof *out);
    for (int64_t i = 0; out && i < n; i++) {
        uint32_t v = ((const uint32_t *)t->data)[i];
        out[i] = (v + (even ? 0xfff + (v >> 13 & 1) : 0x1000)) & ~0x1fffu;
    }
    return out;
}

static zc_status eval_same(kc_reference *r, zc_diag *diag)
{
    zc_tensor in[KC_OPERANDS];
    for (int i = 0; i < r->p->nin; i++) in[i] = r->in[i].absent ? (zc_tensor){0} : r->in[i].t;
    if (!rounds_factors(r->v)) return eval(r, in, r->same, diag);
    bool even = strcmp(r->v->c->family, "gemm_tf32_sm90") == 0;
    in[0].data = to_tf32(&in[0], even);
    in[1].data = to_tf32(&in[1], even);
    zc_status status =
        in[0].data && in[1].data ? eval(r, in, r->same, diag) : zc_fail_nomem(diag, "factors", 0);
    release(in, 2);
    return status;
}

zc_status kc_reference_make(const kc_variant *v, const kc_program *p, const kc_operand *in,
                            bool planted, kc_reference *r, zc_diag *diag)
{
    *r = (kc_reference){.v = v, .p = p, .in = in, .planted = planted, .random = {.key = 77}};
    ZC_TRY(eval_same(r, diag));
    if (planted || v->c->flags & KC_EXACT) return ZC_OK;
    bool wider = false;
    for (int i = 0; i < p->nin; i++) wider = wider || (!in[i].absent && widens(&in[i]));
    if (!wider) return ZC_OK;
    zc_status status = eval_wide(r, 0, NULL, r->exact, NULL);
    r->has_exact = status == ZC_OK && same_shapes(r);
    return ZC_OK;
}

void kc_reference_free(kc_reference *r)
{
    release(r->same, KC_OUTPUTS);
    release(r->exact, KC_OUTPUTS);
    for (int o = 0; o < KC_OUTPUTS; o++) {
        free(r->changes[o]);
        free(r->slack[o]);
    }
}

/* ---- slack ---- */

static double at(const zc_tensor *t, int64_t i)
{
    zc_dtype half = t->dtype == ZC_C64 ? ZC_F32 : ZC_F64;
    return zc_load_f64(complex_type(t->dtype) ? half : t->dtype, t->data, i);
}

static double epsilon(zc_dtype t)
{
    return t == ZC_F64 ? 0x1p-52 : t == ZC_F16 ? 0x1p-10 : t == ZC_BF16 ? 0x1p-7 : 0x1p-23;
}

/* Sums of so many terms leave more than the usual rounding, in f32 and in the f64 reference. */
static bool is_long(const kc_reference *r)
{
    return zc_tensor_numel(&r->in[0].t) > 100000;
}

static double perturbation(const kc_reference *r)
{
    zc_dtype t = zc_dtype_parse(r->v->t);
    bool fused = r->v->c->flags & KC_FUSED;
    double eps = fused || t == ZC_F64 ? epsilon(t) : 0x1p-23;
    return eps * (r->v->c->flags & KC_WIDE || t == ZC_F64 || is_long(r) ? 32
                  : fused && eps > 0x1p-20                              ? 2
                                                                        : 4);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The number that `share` of them are not greater than. */
static double quantile(double *v, int64_t n, double share)
{
    if (n) qsort(v, (size_t)n, sizeof *v, by_value);
    return n ? v[(int64_t)((double)n * share)] : 0;
}

/* The perturbed inputs may by chance have left an element alone: every element gets the usual
 * relative change, twice the usual change of a long sum, and what f64 itself cannot tell
 * beside the largest element. */
static void level_slack(const kc_reference *r, int o)
{
    const zc_tensor *x = r->has_exact ? &r->exact[o] : &r->same[o];
    int64_t n = zc_tensor_numel(x), used = 0;
    double *change = zc_calloc((size_t)n + 1, sizeof *change), largest = 0;
    for (int64_t i = 0; change && i < n; i++) {
        double v = fabs(at(x, i));
        if (!isfinite(v) || v == 0) continue;
        if (v > largest) largest = v;
        change[used++] = r->slack[o][i] / v;
    }
    double relative = quantile(change, used, 0.5), absolute = 0;
    if (change && (is_long(r) || r->v->c->flags & KC_CLIPS)) {
        memcpy(change, r->slack[o], (size_t)n * sizeof *change);
        absolute = quantile(change, n, 0.75) * 2; /* half of them may be clipped */
    }
    if (r->v->c->flags & KC_COARSE) absolute = fmax(absolute, 0x1p-9 * largest);
    for (int64_t i = 0; i < n; i++) {
        double least = fmax(2 * relative * fabs(at(x, i)), absolute);
        double f64 = (is_long(r) ? 1024 : 64) * 0x1p-52 * largest + 16 * DBL_TRUE_MIN;
        if (isfinite(least) && r->slack[o][i] < least) r->slack[o][i] = least;
        r->slack[o][i] += f64;
    }
    free(change);
}

/* What rounding to the type does to a small rest of numbers of the first operand's size. */
static void add_rests(const kc_reference *r, int o)
{
    const zc_tensor *in = &r->in[0].t;
    int64_t n = zc_tensor_numel(&r->same[o]);
    for (int64_t i = 0; i < n && zc_tensor_numel(in) == n; i++) {
        double v = fabs(zc_get(in, i));
        if (isfinite(v)) r->slack[o][i] += epsilon(in->dtype) * (v < 1 ? v : 1);
    }
}

static void add_changes(kc_reference *r, const zc_tensor *out)
{
    for (int o = 0; o < r->p->nout; o++) {
        bool floats = r->p->wanted[o] && zc_dtype_is_float(out[o].dtype) &&
                      zc_tensor_numel(&out[o]) == zc_tensor_numel(&r->same[o]);
        for (int64_t i = 0; floats && i < zc_tensor_numel(&out[o]); i++) {
            double d = fabs(zc_get(&out[o], i) - zc_get(&r->exact[o], i));
            if (d > r->changes[o][i]) r->changes[o][i] = d;
        }
    }
}

/* Numbers of output o's elements: a complex one has two. */
static size_t slack_room(const kc_reference *r, int o)
{
    return (size_t)(r->p->wanted[o] ? zc_tensor_numel(&r->same[o]) : 0) * 2 + 1;
}

/* After so many rounds, those before included. */
static void find_slack(kc_reference *r, int rounds)
{
    for (int o = 0; o < r->p->nout; o++) {
        if (!r->changes[o]) r->changes[o] = zc_calloc(slack_room(r, o), sizeof(double));
        if (!r->slack[o]) r->slack[o] = zc_calloc(slack_room(r, o), sizeof(double));
    }
    for (; r->rounds < rounds && r->has_exact; r->rounds++) {
        zc_tensor out[KC_OUTPUTS];
        if (eval_wide(r, perturbation(r), &r->random, out, NULL) != ZC_OK) break;
        add_changes(r, out);
        release(out, r->p->nout);
    }
    r->rounds = rounds;
    for (int o = 0; o < r->p->nout; o++) {
        memcpy(r->slack[o], r->changes[o], slack_room(r, o) * sizeof(double));
        if (!r->p->wanted[o] || !zc_dtype_is_float(r->same[o].dtype)) continue;
        level_slack(r, o);
        if (r->v->c->flags & KC_CANCELS) add_rests(r, o);
    }
}

/* ---- comparing ---- */

static double ulp(zc_dtype t, double v)
{
    int exponent, digits = t == ZC_F64        ? 53
                           : t == ZC_F32      ? 24
                           : t == ZC_F16      ? 11
                           : t == ZC_BF16     ? 8
                           : t == ZC_F8E4M3FN ? 4
                                              : 3;
    int lowest = t == ZC_F64        ? -1074
                 : t == ZC_F32      ? -149
                 : t == ZC_F16      ? -24
                 : t == ZC_BF16     ? -133
                 : t == ZC_F8E4M3FN ? -9
                                    : -16;
    (void)frexp(v, &exponent);
    exponent -= digits;
    return v == 0 || exponent < lowest ? ldexp(1, lowest) : ldexp(1, exponent);
}

static double rounded(zc_dtype t, double v)
{
    union {
        double f;
        char bytes[8];
    } slot = {0};
    zc_store_f64(t, &slot, 0, v);
    return zc_load_f64(t, &slot, 0);
}

/* Is element e of output o close enough? `off`: its error in units in the last place. */
static bool close_enough(kc_reference *r, int o, int64_t e, double g, double *off, double *share)
{
    zc_dtype t = r->same[o].dtype;
    double s = at(&r->same[o], e), x = r->has_exact ? zc_get(&r->exact[o], e) : s;
    *off = *share = 0;
    if (g == s || (isnan(g) && isnan(s))) return true;
    if (r->v->c->flags & KC_EXACT) return false;
    const double near = r->v->c->flags & KC_COARSE ? 0.1 : 0.03;
    if (r->planted && isfinite(g) && isfinite(s))
        return fabs(g - s) <= fmax(near * (1 + fabs(s)), ulp(t, fmax(fabs(g), fabs(s))));
    if (r->planted) return r->v->c->mixes && isnan(g) && isinf(s);
    double whole = rounded(t, x);
    if (g == whole || (isnan(g) && isnan(x))) return true;
    if (!isfinite(x) || !isfinite(g)) {
        /* At the edge of the range: the neighbour of the largest number is infinity. */
        return isinf(g) && isfinite(x) && fabs(x) >= rounded(t, fabs(x)) &&
               isinf(rounded(t, x * (1 + 4 * epsilon(t)))) && (g > 0) == (x > 0);
    }
    double u = ulp(t, x), err = fabs(g - x), same = isfinite(s) ? fabs(s - x) : 0,
           allowed = 2 * same + 2 * u;
    if (err > allowed) {
        if (!r->rounds) find_slack(r, PERTURBED_FEW);
        while (err > allowed + r->slack[o][e] && r->rounds < PERTURBED_MANY)
            find_slack(r, 2 * r->rounds);
        allowed += r->slack[o][e];
    }
    *off = err / u;
    *share = err / allowed;
    return err <= allowed;
}

static bool compare_bytes(const kc_reference *r, const zc_tensor *want, const void *got, char *text,
                          size_t n)
{
    size_t bytes;
    const uint8_t *a = got, *b = want->data;
    if (!zc_tensor_bytes(want, &bytes)) return false;
    for (size_t i = 0; i < bytes; i++) {
        if (a[i] == b[i]) continue;
        int64_t e = (int64_t)(i * 8 / zc_dtype_bits(want->dtype));
        zc_tensor g = *want;
        g.data = (void *)(uintptr_t)got;
        if (r->v->c->flags & KC_OFF_BY_ONE && llabs(zc_geti(&g, e) - zc_geti(want, e)) <= 1)
            continue;
        snprintf(text, n, "element %lld of %lld is %lld, need %lld", (long long)e,
                 (long long)zc_tensor_numel(want), (long long)zc_geti(&g, e),
                 (long long)zc_geti(want, e));
        return false;
    }
    return true;
}

bool kc_compare(kc_reference *r, int o, const void *got, kc_result *result, char *text, size_t n)
{
    const zc_tensor *want = &r->same[o];
    zc_tensor g = *want;
    if (!zc_dtype_is_float(want->dtype) && !complex_type(want->dtype))
        return compare_bytes(r, want, got, text, n);
    g.data = (void *)(uintptr_t)got;
    int64_t count = zc_tensor_numel(want) * (complex_type(want->dtype) ? 2 : 1), wrong = 0,
            first = 0;
    for (int64_t e = 0; e < count; e++) {
        double off, share;
        if (!close_enough(r, o, e, at(&g, e), &off, &share) && wrong++ == 0) first = e;
        if (off > result->worst) result->worst = off;
        if (share > result->tightest) result->tightest = share;
    }
    if (wrong)
        snprintf(text, n,
                 "%lld of %lld elements differ, first %lld: got %.9g, need %.9g, same type %.9g%s",
                 (long long)wrong, (long long)count, (long long)first, at(&g, first),
                 r->has_exact ? zc_get(&r->exact[o], first) : at(want, first), at(want, first),
                 r->slack[o] ? "" : " (exactly)");
    return wrong == 0;
}
