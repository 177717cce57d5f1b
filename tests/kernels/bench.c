/* Measuring one variant: a graph of copies of the step, whose operands together exceed the L2 cache
 * twice. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { COPIES_MAX = 32, REPLAYS = 10 };
#define ROTATED (UINT64_C(128) << 20) /* bytes: more than twice any GPU's L2 */
#define MOST    (UINT64_C(4) << 30)

/* Peaks of dense arithmetic in TFLOP/s, multiply and add counted as two. */
static const struct {
    const char *name;
    double f32, f16;
} peaks[] = {{"H200", 67, 989},
             {"H100", 67, 989},
             {"A100", 19.5, 312},
             {"L40", 90.5, 181},
             {"B200", 80, 2250}};

typedef struct timing {
    const kc_options *o;
    zc_device *d;
    const kc_variant *v;
    zc_diag *diag;
    kc_program p;
    zc_session *s;
    zc_cu_stream stream;
    zc_cu_event start, end;
    zc_cu_ptr in[KC_OPERANDS * COPIES_MAX];
    int nin_device;
    zc_cu_ptr out[KC_OUTPUTS * COPIES_MAX];
    int nout_device;
    kc_operand operands[KC_OPERANDS];
    int n;
    uint64_t bytes; /* read and written by one step */
} timing;

static double bandwidth; /* GB/s of a large copy; 0: not yet measured */

static bool fail(const timing *t, const char *what)
{
    printf("FAIL bench %s/%s %s: %s\n", t->v->c->op, t->v->c->family, t->v->t, what);
    return false;
}

static bool fail_diag(const timing *t)
{
    return fail(t, zc_diag_text(t->diag, 0));
}

static bool elapsed(timing *t, float *ms)
{
    const zc_cu *cu = &t->d->cu;
    int code = cu->event_wait(t->end);
    if (!code) code = cu->event_ms(ms, t->start, t->end);
    return zc_device_check(t->d, code, "event", t->diag) == ZC_OK;
}

static bool measure_bandwidth(timing *t)
{
    const zc_cu *cu = &t->d->cu;
    size_t bytes = t->o->real ? (size_t)1 << 30 : (size_t)1 << 22;
    zc_cu_ptr a = 0, b = 0;
    float ms = 0;
    bool ok = zc_device_alloc(t->d, bytes, "copy", &a, t->diag) == ZC_OK &&
              zc_device_alloc(t->d, bytes, "copy", &b, t->diag) == ZC_OK;
    for (int i = 0; ok && i < 6; i++) {
        if (i == 1) ok = cu->event_record(t->start, t->stream) == 0;
        ok = ok && cu->copy_within(b, a, bytes, t->stream) == 0;
    }
    ok = ok && cu->event_record(t->end, t->stream) == 0 && elapsed(t, &ms);
    if (ok && ms > 0) bandwidth = 5.0 * 2 * (double)bytes / ms / 1e6;
    zc_device_free(t->d, &a);
    zc_device_free(t->d, &b);
    return ok;
}

static bool add_bytes(timing *t, const zc_tensor *x)
{
    size_t bytes;
    if (!zc_tensor_bytes(x, &bytes)) return false;
    t->bytes += bytes;
    return true;
}

static bool count_inputs(timing *t)
{
    t->bytes = 0;
    for (int i = 0; i < t->n; i++)
        if (!t->operands[i].absent && !add_bytes(t, &t->operands[i].t)) return false;
    return true;
}

/* After a run, which tells their sizes. They stay on the device: a copy to the host takes longer
 * than most kernels. */
static bool keep_outputs(timing *t)
{
    int outputs = 0;
    for (int o = 0; o < t->p.nout; o++) outputs += t->p.wanted[o];
    for (int slot = 0; slot < outputs * t->p.copies; slot++) {
        zc_view v;
        zc_cu_ptr *p = &t->out[t->nout_device];
        if (zc_session_output(t->s, (size_t)slot, &v, t->diag) != ZC_OK ||
            zc_device_alloc(t->d, v.bytes, "output", p, t->diag) != ZC_OK)
            return false;
        t->nout_device++;
        if (zc_session_bind_output_device(t->s, (size_t)slot, (void *)(uintptr_t)*p, v.bytes,
                                          t->diag) != ZC_OK)
            return false;
        if (slot < outputs) t->bytes += v.bytes;
    }
    return true;
}

static bool give_input(timing *t, int i, int copy)
{
    kc_operand *o = &t->operands[i];
    zc_view v = {.elem = (zc_elem)o->t.dtype, .rank = o->t.rank, .data = o->t.data};
    memcpy(v.dims, o->t.dims, sizeof v.dims);
    if (o->input < 0) return true;
    (void)zc_tensor_bytes(&o->t, &v.bytes);
    if (!o->listed && !(zc_op_host_inputs(t->p.step->op) >> i & 1)) {
        zc_cu_ptr *p = &t->in[t->nin_device++];
        if (zc_device_alloc(t->d, v.bytes, "input", p, t->diag) != ZC_OK ||
            (v.bytes && t->d->cu.copy_in(*p, v.data, v.bytes, t->stream)))
            return false;
        v.data = (void *)(uintptr_t)*p;
        v.on_device = true;
    }
    /* Inputs stand operand by operand, each with its copies. */
    return zc_session_set_input(t->s, (size_t)(o->input * t->p.copies + copy), &v, true, t->diag) ==
           ZC_OK;
}

static bool set_inputs(timing *t)
{
    kc_random random = {.key = t->o->seed};
    for (int i = 0; i < t->n; i++) {
        if (!kc_fill(&t->operands[i], KC_NORMAL, &random)) return false;
        for (int c = 0; c < t->p.copies; c++)
            if (!give_input(t, i, c)) return false;
    }
    return t->d->cu.stream_wait(t->stream) == 0;
}

/* Workers prepare at once and measure one after the other. */
static bool turn(const timing *t, short how)
{
    struct flock whole = {.l_type = how, .l_whence = SEEK_SET};
    return t->o->turn < 0 || fcntl(t->o->turn, F_SETLKW, &whole) == 0;
}

static bool replay(timing *t, int n, float *ms)
{
    const zc_cu *cu = &t->d->cu;
    bool ok = cu->event_record(t->start, t->stream) == 0;
    for (int i = 0; ok && i < n; i++) ok = zc_session_enqueue(t->s, t->diag) == ZC_OK;
    return ok && cu->event_record(t->end, t->stream) == 0 &&
           zc_session_wait(t->s, t->diag) == ZC_OK && elapsed(t, ms);
}

static double peak_of(const timing *t)
{
    bool half = strcmp(t->v->t, "f16") == 0 || strcmp(t->v->t, "bf16") == 0;
    for (size_t i = 0; i < ZC_COUNTOF(peaks); i++)
        if (strstr(t->d->name, peaks[i].name)) return half ? peaks[i].f16 : peaks[i].f32;
    return 0;
}

static void print_result(const timing *t, const kc_sizes *sizes, double us)
{
    const kc_case *c = t->v->c;
    char shape[200] = "";
    size_t n = 0;
    for (int i = 0; i < KC_SYMBOLS; i++)
        if (sizes->v[i] >= 0)
            n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%c=%lld", n ? "," : "", 'a' + i,
                                  (long long)sizes->v[i]);
    double flops = c->flops ? kc_evaluate(c->flops, sizes) : 0, gbs = (double)t->bytes / us / 1e3,
           tf = flops / us / 1e6;
    char candidate[8] = "";
    if (c->candidate) snprintf(candidate, sizeof candidate, "#%d", c->candidate);
    double peak = peak_of(t), of_memory = bandwidth > 0 ? 100 * gbs / bandwidth : 0,
           of_math = peak > 0 ? 100 * tf / peak : 0;
    if (t->o->json)
        printf("{\"op\": \"%s\", \"family\": \"%s\", \"candidate\": %d, \"types\": \"%s:%s\", "
               "\"shape\": \"%s\", \"us\": %.3f, \"gb_s\": %.1f, "
               "\"tflop_s\": %.3f, \"memory_percent\": %.1f, \"math_percent\": %.1f}\n",
               c->op, c->family, c->candidate, t->v->t, t->v->u, shape, us, gbs, tf, of_memory,
               of_math);
    else
        printf("%-20s %-14s %3s %-5s %-24s %10.2f us %8.1f GB/s %5.1f%% %9.3f TFLOP/s %5.1f%%\n",
               c->op, c->family, candidate, t->v->t, shape, us, gbs, of_memory, tf, of_math);
}

static int copies_for(const timing *t)
{
    uint64_t n = t->bytes ? ROTATED / t->bytes + 1 : COPIES_MAX;
    if (!t->o->real) return 2;
    if (n * t->bytes > MOST) n = MOST / t->bytes;
    return n < 2 ? 2 : n > COPIES_MAX ? COPIES_MAX : (int)n;
}

static void clear(timing *t)
{
    (void)zc_session_destroy(&t->s);
    kc_program_free(&t->p);
    t->p = (kc_program){0};
    for (int i = 0; i < t->nin_device; i++) zc_device_free(t->d, &t->in[i]);
    for (int i = 0; i < t->nout_device; i++) zc_device_free(t->d, &t->out[i]);
    t->nin_device = t->nout_device = 0;
}

static bool measure(timing *t, const kc_sizes *sizes)
{
    float ms = 0;
    int replays = t->o->real ? REPLAYS : 1;
    zc_session_params params = {.size = sizeof params,
                                .device = ZC_DEVICE_CUDA,
                                .ordinal = t->o->ordinal,
                                .stream = t->stream};
    if (!count_inputs(t)) return false;
    int copies = copies_for(t);
    if (kc_build(t->v, sizes, copies, false, t->d->arch, &t->p, t->diag) != ZC_OK ||
        zc_session_create(t->p.plan, &params, &t->s, t->diag) != ZC_OK || !set_inputs(t))
        return false;
    if (!replay(t, 1, &ms) || !keep_outputs(t) || !turn(t, F_WRLCK)) return false;
    bool ok = replay(t, 3, &ms) && replay(t, replays, &ms);
    if (!turn(t, F_UNLCK) || !ok) return false;
    print_result(t, sizes, 1e3 * (double)ms / replays / copies);
    return true;
}

static bool one_size(void *arg, const char *item)
{
    timing *t = arg;
    kc_sizes sizes;
    if (!kc_sizes_parse(item, &sizes) || !kc_operands(t->v, &sizes, t->operands, &t->n))
        return fail(t, "the case is wrong");
    bool ok = measure(t, &sizes);
    if (!ok) (void)fail_diag(t);
    clear(t);
    for (int i = 0; i < t->n; i++) {
        free(t->operands[i].t.data);
        t->operands[i].t.data = NULL;
    }
    return ok;
}

static bool open_events(timing *t)
{
    const zc_cu *cu = &t->d->cu;
    int code = cu->stream_create(&t->stream, ZC_CU_STREAM_NON_BLOCKING);
    if (!code) code = cu->event_create(&t->start, 0);
    if (!code) code = cu->event_create(&t->end, 0);
    return zc_device_check(t->d, code, "events", t->diag) == ZC_OK &&
           (bandwidth > 0 || measure_bandwidth(t));
}

bool kc_bench_variant(const kc_options *o, zc_device *d, const kc_variant *v)
{
    if (!v->c->bench) return true;
    timing *t = zc_calloc(1, sizeof *t);
    if (!t) return false;
    t->o = o;
    t->d = d;
    t->v = v;
    t->diag = zc_diag_create();
    bool ok = zc_device_enter(d, t->diag) == ZC_OK;
    if (ok) {
        ok = open_events(t) && kc_each(v->c->bench, ';', one_size, t);
        if (t->start) (void)d->cu.event_destroy(t->start);
        if (t->end) (void)d->cu.event_destroy(t->end);
        if (t->stream) (void)d->cu.stream_destroy(t->stream);
        zc_device_leave(d);
    }
    zc_diag_destroy(&t->diag);
    free(t);
    return ok;
}
