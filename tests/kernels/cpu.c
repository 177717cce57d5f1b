/* NaN and infinity through the CPU's fast kernels: one variant of a case against the reference
 * kernel. How exact they are elsewhere is what tests/unit asks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "cpu/fast.h"
#include "op/kernels.h"

static const struct {
    const char *op, *kernel;
    bool (*fits)(const zc_kctx *k);
} fast[] = {
#define FAST(op, fits, kernel, use) {#op, #kernel, fits},
#include "cpu/fast.def"
#undef FAST
};
_Static_assert(ZC_COUNTOF(fast) <= KC_FAST, "KC_FAST is too small");

typedef struct runner {
    const kc_options *o;
    const kc_variant *v;
    kc_result *result;
    bool *ran; /* by row of fast.def */
    kc_program p;
    kc_operand in[KC_OPERANDS];
    int nin, sizes;
    zc_diag *diag;
} runner;

static bool fail(runner *r, const char *where, const char *what)
{
    printf("FAIL %s on the CPU %s:%s %s (%s) %s: %s\n", r->v->c->op, r->v->t, r->v->u,
           r->v->c->attrs ? r->v->c->attrs : "", r->v->c->in, where, what);
    r->result->failed++;
    return false;
}

/* Notes which fast kernel takes these operands. */
static void note(const runner *r, const zc_kctx *k)
{
    zc_kctx own = *k;
    own.nin = zc_op_own_inputs(k->info, k->nin);
    for (size_t i = 0; i < ZC_COUNTOF(fast); i++) {
        if (strcmp(fast[i].op, r->v->c->op) != 0 || !fast[i].fits(&own)) continue;
        r->ran[i] = true;
        return;
    }
}

/* As a session runs a step, the second operand being a constant of the plan. */
static zc_status run_step(runner *r, const zc_tensor *in, zc_tensor *out)
{
    const zc_pstep *step = r->p.step;
    zc_scratch scratch = {0};
    zc_kstate states[3] = {0};
    zc_packs packs;
    zc_packs_init(&packs);
    zc_kctx k = {.op = step->op,
                 .info = zc_op_get(step->op),
                 .attrs = step->attrs,
                 .nin = r->nin,
                 .nout = r->p.nout,
                 .in = in,
                 .const_in = 2,
                 .out = out,
                 .scratch = &scratch,
                 .state = &states[0],
                 .prologue_state = &states[1],
                 .epilogue_state = &states[2],
                 .packs = &packs,
                 .subject = "node",
                 .diag = r->diag};
    note(r, &k);
    zc_status status = zc_kernel_run(&k, false);
    for (int i = 0; i < 3; i++)
        if (states[i].destroy) states[i].destroy(states[i].p);
    zc_packs_fini(&packs);
    zc_scratch_fini(&scratch);
    return status;
}

static bool compare(runner *r, kc_reference *ref, const zc_tensor *in, const char *where)
{
    zc_tensor out[KC_OUTPUTS] = {0};
    bool ok = true;
    for (int o = 0; o < r->p.nout; o++) {
        size_t bytes;
        if (!r->p.wanted[o] || !zc_tensor_bytes(&ref->same[o], &bytes)) continue;
        out[o] = ref->same[o];
        out[o].data = zc_calloc(bytes + 64, 1);
        ok = ok && out[o].data;
    }
    if (!ok) fail(r, where, "no memory");
    if (ok && run_step(r, in, out) != ZC_OK) ok = fail(r, where, zc_diag_text(r->diag, 0));
    for (int o = 0; o < r->p.nout; o++) {
        char text[400];
        if (ok && r->p.wanted[o] && !kc_compare(ref, o, out[o].data, r->result, text, sizeof text))
            ok = fail(r, where, text);
        free(out[o].data);
    }
    return ok;
}

static bool run_kind(runner *r, kc_kind kind, int planted, int turn, kc_random *random)
{
    kc_reference ref;
    zc_tensor in[KC_OPERANDS];
    char where[128];
    snprintf(where, sizeof where, "sizes %d, kind %d, NaN and infinity in operand %d, turn %d",
             r->sizes, (int)kind, planted, turn);
    for (int i = 0; i < r->nin; i++)
        if (!kc_fill(&r->in[i], kind, random)) return fail(r, where, "no memory");
    if (planted >= 0) kc_plant(&r->in[planted], turn);
    for (int i = 0; i < r->nin; i++) in[i] = r->in[i].absent ? (zc_tensor){0} : r->in[i].t;
    r->result->runs++;
    zc_status status = kc_reference_make(r->v, &r->p, r->in, true, &ref, r->diag);
    bool ok =
        status == ZC_OK ? compare(r, &ref, in, where) : fail(r, where, zc_diag_text(r->diag, 0));
    kc_reference_free(&ref);
    return ok;
}

static bool run_sizes(runner *r)
{
    bool ok = true;
    const int before = r->result->runs;
    kc_random random = {.key = r->o->seed};
    if (r->v->c->flags & KC_WITH_MASKED) ok = run_kind(r, KC_MASKED, -1, 0, &random);
    if (r->v->c->flags & KC_WITH_SPECIAL) ok = run_kind(r, KC_SPECIAL, -1, 0, &random) && ok;
    for (int i = 0; i < r->nin; i++)
        for (int turn = 0, n = kc_plant_turns(r->v->c, r->in, i); turn < (r->sizes ? n / 3 : n);
             turn++)
            ok = run_kind(r, KC_NORMAL, i, turn, &random) && ok;
    if (r->result->runs == before) ok = run_kind(r, KC_NORMAL, -1, 0, &random); /* integers alone */
    return ok;
}

static bool one_size(void *arg, const char *item)
{
    runner *r = arg;
    kc_sizes sizes;
    bool ok = kc_sizes_parse(item, &sizes) && kc_operands(r->v, &sizes, r->in, &r->nin);
    if (!ok) return fail(r, item, "the case's sizes or operands are wrong");
    ok = kc_lower(r->v, &sizes, 1, true, NULL, 0, &r->p, r->diag) == ZC_OK
             ? run_sizes(r)
             : fail(r, item, zc_diag_text(r->diag, 0));
    for (int i = 0; i < r->nin; i++) free(r->in[i].t.data);
    kc_program_free(&r->p);
    r->sizes++;
    return ok;
}

/* Families differ on a GPU alone. */
static bool is_repeated(const kc_case *c)
{
    const char *attrs = c->attrs ? c->attrs : "";
    for (const kc_case *d = kc_cases; d < c; d++)
        if (strcmp(c->op, d->op) == 0 && strcmp(c->in, d->in) == 0 &&
            strcmp(attrs, d->attrs ? d->attrs : "") == 0)
            return true;
    return false;
}

static bool has_fast(const kc_variant *v)
{
    if (is_repeated(v->c)) return false;
    if (zc_op_get(zc_op_find(v->c->op, strlen(v->c->op)))->flags & ZC_OPF_POINTWISE) return true;
    const bool bytes = strcmp(v->t, "i8") == 0 || strcmp(v->t, "u8") == 0;
    for (size_t i = 0; i < ZC_COUNTOF(fast); i++)
        if (strcmp(fast[i].op, v->c->op) == 0) return bytes || strcmp(v->t, "f32") == 0;
    return false;
}

bool kc_check_cpu(const kc_options *o, const kc_variant *v, bool ran[KC_FAST], kc_result *result)
{
    runner r = {.o = o, .v = v, .result = result, .ran = ran, .diag = zc_diag_create()};
    int before = result->failed;
    if (has_fast(v)) (void)kc_each(v->c->sizes ? v->c->sizes : "x=1", ';', one_size, &r);
    zc_diag_destroy(&r.diag);
    return result->failed == before;
}

int kc_check_cpu_rows(const bool ran[KC_FAST])
{
    int missing = 0;
    for (size_t i = 0; i < ZC_COUNTOF(fast); i++) {
        /* Cases are of kernels on a GPU, too; what has none there is compared in tests/unit. */
        const bool cases = zc_family_of(zc_op_find(fast[i].op, strlen(fast[i].op)), 0) >= 0;
        if (ran[i] || !cases) continue;
        printf("FAIL the row FAST(%s, %s) was not executed\n", fast[i].op, fast[i].kernel);
        missing++;
    }
    return missing;
}
