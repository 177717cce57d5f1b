#include <stdlib.h>
#include <string.h>

#include "runtime/alternatives.h"
#include "runtime/gpu.h"

enum { COMPARED_MS = 20000 }; /* of one choice: more is for ever */

const zc_program *zc_plan_program(const zc_plan *plan)
{
    return &plan->program;
}

/* ---- forcing ---- */

/* Another kernel may not take the pitches that the one which holds does, and whole results are
 * compared: from now on every value lies by itself. */
static void plan_anew(zc_session *s)
{
    s->no_subviews = true;
    zc_shapes_doubt(&s->shapes);
    for (zc_shapes *e = s->shapes.newest; e; e = e->older) {
        zc_gpu_free_parts(s, e);
        e->planned = false;
    }
    s->checked = s->prepared = false;
}

static zc_status force(zc_session *s, uint32_t step, uint32_t choice, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    const zc_program *p = g->image->program;
    if (step >= p->nsteps || choice >= p->steps[step].nchoices)
        return zc_fail(diag, ZC_ERR_ARG, "choice", "no such choice (got %u of step %u)", choice,
                       step);
    if (!g->forced) g->forced = zc_calloc(p->nsteps, sizeof *g->forced);
    if (!g->forced) return zc_fail_nomem(diag, "choices", p->nsteps);
    g->forced[step] = choice + 1;
    plan_anew(s);
    return ZC_OK;
}

static zc_status leave(zc_session *s, zc_status status, zc_diag *diag)
{
    zc_gpu_leave(s);
    return zc_session_leave(s, status, diag);
}

zc_status zc_session_force(zc_session *s, uint32_t step, uint32_t choice, zc_diag *diag)
{
    ZC_TRY(zc_session_enter(s, diag));
    zc_status status = zc_gpu_enter(s, diag);
    if (status == ZC_OK) status = force(s, step, choice, diag);
    return leave(s, status, diag);
}

/* ---- comparing ---- */

/* A step's results on the host: as they were before it, as they are to be, as an alternative made
 * them. */
typedef struct results {
    zc_tensor *before, *need, *got;
} results;

static void drop(const zc_pstep *step, results *r)
{
    zc_tensor *const all[] = {r->before, r->need, r->got};
    for (size_t k = 0; k < ZC_COUNTOF(all); k++) {
        for (uint32_t o = 0; all[k] && o < step->nout; o++) free(all[k][o].data);
        free(all[k]);
    }
}

static zc_status allocate(zc_session *s, const zc_pstep *step, zc_tensor **out, zc_diag *diag)
{
    *out = zc_calloc(step->nout, sizeof **out);
    if (!*out) return zc_fail_nomem(diag, "results", step->nout);
    for (uint32_t o = 0; o < step->nout; o++) {
        size_t bytes = 0;
        (*out)[o] = s->values[step->out[o]];
        (*out)[o].data = NULL;
        if (!step->out[o] || !zc_tensor_bytes(&(*out)[o], &bytes)) continue;
        (*out)[o].data = zc_calloc(bytes, 1);
        if (!(*out)[o].data) return zc_fail_nomem(diag, "results", bytes);
    }
    return ZC_OK;
}

static zc_status move(zc_session *s, const zc_pstep *step, zc_tensor *host, bool to_host,
                      zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    for (uint32_t o = 0; o < step->nout; o++) {
        size_t bytes = 0;
        if (!host[o].data || !zc_tensor_bytes(&host[o], &bytes) || !bytes) continue;
        zc_cu_ptr at = g->at[step->out[o]];
        int code = to_host ? d->cu.copy_out(host[o].data, at, bytes, g->stream)
                           : d->cu.copy_in(at, host[o].data, bytes, g->stream);
        ZC_TRY(zc_device_check(d, code, step->name, diag));
    }
    return zc_gpu_sync(s, step->name, diag);
}

/* An input may share an output's memory. Where none does, what is not written is to be seen. */
static void spoil(const zc_session *s, const zc_pstep *step, zc_tensor *before)
{
    for (uint32_t o = 0; o < step->nout; o++) {
        size_t bytes = 0;
        bool shared = false;
        for (uint32_t i = 0; i < step->nin; i++)
            shared |= s->gpu->at[step->in[i]] == s->gpu->at[step->out[o]];
        if (before[o].data && !shared && zc_tensor_bytes(&before[o], &bytes))
            memset(before[o].data, 0xff, bytes);
    }
}

/* The failure of one choice is told; only a device that is lost ends it all. */
static zc_status compare_choice(zc_session *s, const zc_pstep *step, uint32_t choice, results *r,
                                zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    uint32_t number = (uint32_t)(step - s->program->steps);
    ZC_TRY(move(s, step, r->before, false, diag));
    zc_diag *own = zc_diag_create();
    g->forced[number] = choice + 1;
    zc_status status = zc_gpu_step(s, step, own);
    if (status == ZC_OK) status = zc_gpu_wait(s, own);
    if (status == ZC_OK) status = move(s, step, r->got, true, own);
    zc_status alive = zc_device_alive(&g->image->device, diag);
    g->comparing.told(g->comparing.user, number, choice, (int)step->nout, r->got, r->need,
                      status == ZC_OK ? NULL : zc_diag_text(own, 0), alive != ZC_OK);
    zc_diag_destroy(&own);
    return alive;
}

static zc_status compare_all(zc_session *s, const zc_pstep *step, results *r, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    uint32_t number = (uint32_t)(step - s->program->steps), held = g->forced[number];
    uint32_t holds = zc_gpu_choice(s, step);
    ZC_TRY(allocate(s, step, &r->before, diag));
    ZC_TRY(allocate(s, step, &r->need, diag));
    ZC_TRY(allocate(s, step, &r->got, diag));
    ZC_TRY(move(s, step, r->before, true, diag));
    spoil(s, step, r->before);
    ZC_TRY(zc_exec_step(s, step, diag));
    ZC_TRY(move(s, step, r->need, true, diag));
    zc_status status = ZC_OK;
    for (uint32_t c = 0; status == ZC_OK && c < step->nchoices; c++)
        if (c != holds) status = compare_choice(s, step, c, r, diag);
    g->forced[number] = held;
    return status == ZC_OK ? move(s, step, r->need, false, diag) : status;
}

zc_status zc_gpu_compare(zc_session *s, const zc_pstep *step, zc_diag *diag)
{
    results r = {NULL, NULL, NULL};
    if (!s->gpu->comparing.steps[step - s->program->steps]) return zc_exec_step(s, step, diag);
    zc_status status = compare_all(s, step, &r, diag);
    drop(step, &r);
    return status;
}

zc_status zc_session_compare(zc_session *s, const bool *steps, zc_compared_fn told, void *user,
                             zc_diag *diag)
{
    ZC_TRY(zc_session_enter(s, diag));
    zc_status status = zc_gpu_enter(s, diag);
    if (status == ZC_OK) plan_anew(s);
    ZC_TRY(leave(s, status, diag));
    ZC_TRY(zc_session_run(s, diag)); /* from here on every shape and address is known */
    struct zc_gpu *g = s->gpu;
    if (!g->forced) g->forced = zc_calloc(s->program->nsteps, sizeof *g->forced);
    if (!g->forced) return zc_fail_nomem(diag, "choices", s->program->nsteps);
    g->comparing.steps = steps;
    g->comparing.told = told;
    g->comparing.user = user;
    zc_shapes_doubt(&s->shapes); /* alternatives may need more scratch memory */
    s->checked = false;
    const uint32_t limit = g->launcher.limit_ms;
    g->launcher.limit_ms = COMPARED_MS; /* a kernel that hangs is found here, where its name is */
    status = zc_session_run(s, diag);
    g->launcher.limit_ms = limit;
    g->comparing.steps = NULL;
    return status;
}
