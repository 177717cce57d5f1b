/* One variant of a case on the GPU: guarded and poisoned outputs, every size and kind, eager and
 * replayed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "runtime/gpu.h"

/* Outputs are aligned to 64 bytes, inputs to 16, and to no more. */
enum { GUARD = 320, OFFSET = 272, CANARY = 0xA5 };

typedef struct runner {
    const kc_options *o;
    zc_device *d;
    const kc_variant *v;
    kc_result *result;
    kc_program p;
    zc_session *s;
    zc_diag *diag;
    bool fixed;
    kc_sizes sizes; /* of a fixed program */
    kc_operand in[KC_OPERANDS];
    int nin;
    kc_kind kind;
    int planted, turn; /* operand that holds NaN and infinity, -1: none; how (kc_plant) */
    zc_cu_ptr out[2][KC_OUTPUTS], dev_in[KC_OPERANDS];
    size_t bytes[KC_OUTPUTS];
    uint8_t *got[2][2][KC_OUTPUTS]; /* by run, copy and output */
} runner;

static const char *const kind_names[KC_KINDS] = {"normal", "big",    "cancel", "equal",
                                                 "tiny",   "masked", "special"};

static bool fail(runner *r, const char *what)
{
    char shapes[512] = "", planted[64] = "";
    size_t n = 0;
    for (int i = 0; i < r->nin && n < sizeof shapes; i++) {
        char one[128] = "-";
        if (!r->in[i].absent) zc_tensor_type_text(&r->in[i].t, one, sizeof one);
        n += (size_t)snprintf(shapes + n, sizeof shapes - n, "%s%s", i ? " " : "", one);
    }
    if (r->planted >= 0)
        snprintf(planted, sizeof planted, ", NaN and infinity in operand %d, turn %d", r->planted,
                 r->turn);
    printf("FAIL %s/%s %s:%s %s (%s) %s%s%s: %s\n", r->v->c->op, r->v->c->family, r->v->t, r->v->u,
           r->v->c->attrs ? r->v->c->attrs : "", shapes, kind_names[r->kind], planted,
           r->fixed ? " static" : "", what);
    fflush(stdout);
    r->result->failed++;
    return false;
}

static bool fail_diag(runner *r, const char *when)
{
    char text[600];
    snprintf(text, sizeof text, "%s: %.500s", when, zc_diag_text(r->diag, 0));
    return fail(r, text);
}

/* ---- memory ---- */

static bool driver(runner *r, int code, const char *what)
{
    return zc_device_check(r->d, code, what, r->diag) == ZC_OK || fail_diag(r, what);
}

/* data between two guards, poisoned. */
static bool make_output(runner *r, zc_cu_ptr *p, size_t bytes)
{
    return zc_device_alloc(r->d, bytes + 2 * GUARD, "output", p, r->diag) == ZC_OK ||
           fail_diag(r, "output");
}

static bool poison(runner *r, zc_cu_ptr p, size_t bytes, int byte)
{
    return driver(r, r->d->cu.fill(p, CANARY, bytes + 2 * GUARD, NULL), "guard") &&
           (!bytes ||
            driver(r, r->d->cu.fill(p + GUARD, (unsigned char)byte, bytes, NULL), "poison"));
}

static bool fetch(runner *r, zc_cu_ptr p, size_t bytes, uint8_t **out)
{
    size_t all = bytes + 2 * GUARD;
    uint8_t *b = zc_calloc(all, 1);
    if (!b) return fail(r, "no memory");
    *out = b;
    if (!driver(r, r->d->cu.copy_out(b, p, all, NULL), "copy") ||
        !driver(r, r->d->cu.stream_wait(NULL), "wait"))
        return false;
    for (size_t i = 0; i < GUARD; i++) {
        char text[96];
        bool after = b[GUARD + bytes + i] != CANARY;
        if (b[i] == CANARY && !after) continue;
        snprintf(text, sizeof text, "wrote byte %zu %s an output of %zu bytes",
                 after ? i + 1 : GUARD - i, after ? "after" : "before", bytes);
        return fail(r, text);
    }
    return true;
}

/* ---- one run ---- */

static bool host_operand(const runner *r, int i)
{
    return r->in[i].listed || (zc_op_host_inputs(r->p.step->op) >> i & 1);
}

static zc_view view_of(const zc_tensor *t, void *data, bool on_device)
{
    zc_view v = {.elem = (zc_elem)t->dtype, .rank = t->rank, .data = data, .on_device = on_device};
    memcpy(v.dims, t->dims, sizeof v.dims);
    (void)zc_tensor_bytes(t, &v.bytes);
    return v;
}

static bool set_inputs(runner *r)
{
    for (int i = 0; i < r->nin; i++) {
        const kc_operand *o = &r->in[i];
        size_t bytes;
        if (o->input < 0) continue;
        (void)zc_tensor_bytes(&o->t, &bytes);
        zc_view v = view_of(&o->t, o->t.data, false);
        if (!host_operand(r, i)) {
            if (zc_device_alloc(r->d, bytes + OFFSET, "input", &r->dev_in[i], r->diag) != ZC_OK)
                return fail_diag(r, "input");
            if (bytes &&
                !driver(r, r->d->cu.copy_in(r->dev_in[i] + OFFSET, o->t.data, bytes, NULL), "copy"))
                return false;
            v = view_of(&o->t, (void *)(uintptr_t)(r->dev_in[i] + OFFSET), true);
        }
        if (!driver(r, r->d->cu.stream_wait(NULL), "wait")) return false;
        if (zc_session_set_input(r->s, (size_t)o->input, &v, true, r->diag) != ZC_OK)
            return fail_diag(r, "input");
    }
    return true;
}

static bool bind_outputs(runner *r, const kc_reference *ref)
{
    for (int c = 0, slot = 0; c < r->p.copies; c++) {
        for (int o = 0; o < r->p.nout; o++) {
            if (!r->p.wanted[o]) continue;
            (void)zc_tensor_bytes(&ref->same[o], &r->bytes[o]);
            if (!make_output(r, &r->out[c][o], r->bytes[o])) return false;
            if (zc_session_bind_output_device(r->s, (size_t)slot++,
                                              (void *)(uintptr_t)(r->out[c][o] + GUARD),
                                              r->bytes[o], r->diag) != ZC_OK)
                return fail_diag(r, "bind");
        }
    }
    return true;
}

static bool same_type(runner *r, int slot, const zc_tensor *want)
{
    zc_view got;
    char text[256], a[128];
    if (zc_session_output(r->s, (size_t)slot, &got, r->diag) != ZC_OK)
        return fail_diag(r, "output");
    if (got.elem == (zc_elem)want->dtype && got.rank == want->rank &&
        (!got.rank || memcmp(got.dims, want->dims, (size_t)got.rank * sizeof *got.dims) == 0))
        return true;
    snprintf(text, sizeof text, "output %d is not %s", slot,
             zc_tensor_type_text(want, a, sizeof a));
    return fail(r, text);
}

/* Kernels leave their counters at zero (zc_launch_counters). */
static bool counters_are_zero(runner *r)
{
    const zc_gpu_room *room = &r->s->gpu->counters;
    uint8_t *bytes = zc_calloc(room->cap + 1, 1);
    bool ok = bytes || fail(r, "no memory");
    if (ok && room->cap)
        ok = driver(r, r->d->cu.copy_out(bytes, room->p, room->cap, NULL), "counters") &&
             driver(r, r->d->cu.stream_wait(NULL), "wait");
    for (size_t i = 0; ok && i < room->cap; i++)
        if (bytes[i]) ok = fail(r, "a kernel left a counter that is not zero");
    free(bytes);
    return ok;
}

static bool run_once(runner *r, kc_reference *ref, int run)
{
    for (int c = 0; c < r->p.copies; c++)
        for (int o = 0; o < r->p.nout; o++)
            if (r->p.wanted[o] && !poison(r, r->out[c][o], r->bytes[o], run ? 0x5A : 0xFF))
                return false;
    if (!driver(r, r->d->cu.stream_wait(NULL), "wait")) return false;
    if (zc_session_run(r->s, r->diag) != ZC_OK) return fail_diag(r, run ? "replay" : "run");
    if (!counters_are_zero(r)) return false;
    for (int c = 0, slot = 0; c < r->p.copies; c++)
        for (int o = 0; o < r->p.nout; o++)
            if (r->p.wanted[o] && (!same_type(r, slot++, &ref->same[o]) ||
                                   !fetch(r, r->out[c][o], r->bytes[o], &r->got[run][c][o])))
                return false;
    return true;
}

static bool agree(runner *r)
{
    for (int o = 0; o < r->p.nout; o++) {
        if (!r->p.wanted[o]) continue;
        const uint8_t *first = r->got[0][0][o] + GUARD;
        if (memcmp(first, r->got[0][1][o] + GUARD, r->bytes[o]) != 0)
            return fail(r, "the same step gave other bits");
        for (int c = 0; c < 2; c++)
            if (memcmp(first, r->got[1][c][o] + GUARD, r->bytes[o]) != 0)
                return fail(r, "the second run gave other bits");
    }
    return true;
}

static bool on_gpu(runner *r)
{
    zc_device_info info;
    char text[160];
    bool replays = !r->o->no_graphs && !(zc_op_get(r->p.step->op)->flags & ZC_OPF_DYNAMIC);
    for (int i = 0; i < r->nin; i++) replays = replays && !r->in[i].listed;
    if (zc_session_device(r->s, &info) != ZC_OK) return fail(r, "no device");
    snprintf(text, sizeof text, "%zu steps on the GPU, %zu on the CPU, %zu for shapes, %zu graphs",
             info.gpu_steps, info.cpu_steps, info.shape_steps, info.graphs);
    bool right = info.cpu_steps == 0 && info.shape_steps == 0 && (!replays || info.graphs == 1);
    return right || fail(r, text);
}

static void free_memory(runner *r)
{
    for (int i = 0; i < KC_OPERANDS; i++) zc_device_free(r->d, &r->dev_in[i]);
    for (int c = 0; c < 2; c++) {
        for (int o = 0; o < KC_OUTPUTS; o++) {
            zc_device_free(r->d, &r->out[c][o]);
            for (int run = 0; run < 2; run++) {
                free(r->got[run][c][o]);
                r->got[run][c][o] = NULL;
            }
        }
    }
}

/* Do the operands that the case says lie in something larger, and no others? */
static bool lie_in_halves(runner *r)
{
    const zc_subview *subviews = r->s->now->subviews;
    const zc_pstep *step = r->p.step;
    const unsigned pitched = r->v->c->pitched;
    char text[64];
    for (uint32_t i = 0; i < step->nin; i++) {
        snprintf(text, sizeof text, "operand %u lies by itself or does not", i);
        if ((subviews[step->in[i]].pitch != 0) != (pitched >> i & 1)) return fail(r, text);
    }
    return (subviews[step->out[0]].pitch != 0) == ((pitched & KC_RESULT) != 0) ||
           fail(r, "the result lies by itself or does not");
}

static bool run_and_compare(runner *r, kc_reference *ref)
{
    bool ok = set_inputs(r) && bind_outputs(r, ref) && run_once(r, ref, 0) && run_once(r, ref, 1) &&
              on_gpu(r) && agree(r) && lie_in_halves(r);
    for (int o = 0; ok && o < r->p.nout; o++) {
        char text[400], whole[440];
        if (!r->p.wanted[o] ||
            kc_compare(ref, o, r->got[0][0][o] + GUARD, r->result, text, sizeof text))
            continue;
        snprintf(whole, sizeof whole, "output %d: %s", o, text);
        ok = fail(r, whole);
    }
    return ok;
}

static bool run_kind(runner *r, kc_kind kind, kc_random *random)
{
    kc_reference ref;
    r->kind = kind;
    for (int i = 0; i < r->nin; i++)
        if (!kc_fill(&r->in[i], kind, random)) return fail(r, "no memory");
    if (r->planted >= 0) kc_plant(&r->in[r->planted], r->turn);
    r->result->runs++;
    if (kc_reference_make(r->v, &r->p, r->in, r->planted >= 0, &ref, r->diag) != ZC_OK)
        return fail_diag(r, "reference");
    if (!ref.has_exact && !ref.planted && !(r->v->c->flags & KC_EXACT)) r->result->without_f64++;
    bool ok = run_and_compare(r, &ref);
    free_memory(r);
    kc_reference_free(&ref);
    return ok;
}

/* NaN and infinity in each operand by itself: everywhere at the first sizes, somewhere at others.
 */
static bool run_planted(runner *r, bool edges, kc_random *random)
{
    bool ok = true;
    if (!edges && !r->v->fixed) return true;
    for (int i = 0; i < r->nin; i++) {
        int turns = kc_plant_turns(r->v->c, r->in, i);
        r->planted = i;
        for (r->turn = 0; r->turn < (edges ? turns : turns / 3); r->turn++)
            ok = run_kind(r, KC_NORMAL, random) && ok;
    }
    r->planted = -1;
    return ok;
}

/* Every kind at one of the sizes. */
static bool run_sizes(runner *r, const kc_sizes *sizes, bool edges)
{
    bool ok = true;
    uint64_t key = r->o->seed;
    for (const char *c = r->v->c->in; *c; c++) key = key * 31 + (unsigned char)*c;
    kc_random random = {.key = key};
    if (!kc_operands(r->v, sizes, r->in, &r->nin)) return fail(r, "the case's operands are wrong");
    for (int k = 0; ok && k < KC_KINDS; k++) {
        bool wanted =
            k == KC_NORMAL || (edges && r->v->c->flags & (unsigned)(KC_WITH_BIG << (k - 1)));
        if (wanted) ok = run_kind(r, (kc_kind)k, &random);
    }
    if (r->o->planted) ok = ok && run_planted(r, edges, &random);
    for (int i = 0; i < r->nin; i++) free(r->in[i].t.data);
    return ok;
}

/* ---- a program ---- */

static bool open_program(runner *r, const kc_sizes *fixed)
{
    if (kc_build(r->v, fixed, 2, true, r->d->arch, &r->p, r->diag) != ZC_OK)
        return fail_diag(r, "build");
    if (!r->p.family || strcmp(r->p.family, r->v->c->family) != 0) {
        char text[300];
        snprintf(text, sizeof text, "the family does not serve it: %s", r->p.why);
        return fail(r, text);
    }
    if (zc_session_create(r->p.plan,
                          ZC_SESSION_PARAMS(.threads = 1, .device = ZC_DEVICE_CUDA,
                                            .ordinal = r->o->ordinal, .no_graphs = r->o->no_graphs),
                          &r->s, r->diag) != ZC_OK)
        return fail_diag(r, "session");
    return true;
}

typedef struct sizes_walk {
    runner *r;
    int i;
} sizes_walk;

static bool one_size(void *arg, const char *item)
{
    sizes_walk *w = arg;
    kc_sizes sizes;
    if (!kc_sizes_parse(item, &sizes)) return fail(w->r, "the case's sizes are wrong");
    return run_sizes(w->r, &sizes, w->i++ == 0);
}

static bool fixed_size(void *arg, const char *item)
{
    sizes_walk *w = arg;
    runner *r = w->r;
    kc_sizes sizes;
    if (!kc_sizes_parse(item, &sizes)) return fail(r, "the case's sizes are wrong");
    r->fixed = true;
    r->sizes = sizes;
    bool ok = open_program(r, &sizes) && run_sizes(r, &sizes, w->i++ == 0);
    (void)zc_session_destroy(&r->s);
    kc_program_free(&r->p);
    return ok && !(r->v->c->flags & KC_STATIC ? false : true);
}

static void run_program(runner *r)
{
    const kc_case *c = r->v->c;
    sizes_walk walk = {.r = r};
    bool is_static = c->flags & KC_STATIC || !c->sizes;
    if (!is_static) {
        bool ok = open_program(r, NULL) && kc_each(c->sizes, ';', one_size, &walk);
        if (ok && c->large && r->o->real && !r->o->small)
            ok = kc_each(c->large, ';', one_size, &walk);
        (void)zc_session_destroy(&r->s);
        kc_program_free(&r->p);
        r->p = (kc_program){0};
        if (!ok) return;
    }
    if (!is_static && !r->v->fixed) return;
    /* With sizes as constants: the first, or all when the case says so. */
    walk.i = is_static ? 0 : 1;
    (void)kc_each(c->sizes ? c->sizes : "x=1", ';', fixed_size, &walk);
}

bool kc_check_variant(const kc_options *o, zc_device *d, const kc_variant *v, kc_result *result)
{
    runner r = {.o = o, .d = d, .v = v, .result = result, .planted = -1, .diag = zc_diag_create()};
    int before = result->failed;
    if (zc_device_enter(d, r.diag) != ZC_OK) return fail_diag(&r, "device");
    run_program(&r);
    zc_device_leave(d);
    zc_diag_destroy(&r.diag);
    return result->failed == before;
}
