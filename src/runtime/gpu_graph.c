/* Runs of steps as CUDA graphs: issued once by the same functions while the stream records, then
 * replayed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu.h"

/* ---- parts ---- */

static void drop_exec(zc_device *d, zc_gpu_part *part)
{
    if (part->exec && !d->lost) (void)d->cu.graph_exec_destroy(part->exec);
    part->exec = NULL;
}

static void free_part(zc_device *d, zc_gpu_part *part)
{
    drop_exec(d, part);
    free(part->needs);
    free(part->pointers);
    *part = (zc_gpu_part){0};
}

void zc_gpu_free_parts(zc_session *s, zc_shapes *e)
{
    for (uint32_t i = 0; i < e->nparts; i++) free_part(&s->gpu->image->device, &e->parts[i]);
    free(e->parts);
    e->parts = NULL;
    e->nparts = 0;
}

/* Which values are the same in every run with these shapes? */
static void find_fixed(const zc_session *s, bool *fixed)
{
    const zc_program *p = s->program;
    const zc_pblock *top = &p->blocks[0];
    for (uint32_t v = 0; v < p->nvalues; v++) fixed[v] = v == 0 || p->values[v].kind == ZC_P_CONST;
    for (uint32_t i = 0; i < top->nsteps; i++) {
        const zc_pstep *step = &p->steps[top->steps[i]];
        unsigned flags = zc_op_get(step->op)->flags;
        bool all = !(flags & (ZC_OPF_RANDOM | ZC_OPF_REGIONS));
        for (uint32_t n = 0; n < step->nin && !(flags & ZC_OPF_SHAPE_ONLY); n++)
            all &= fixed[step->in[n]];
        for (uint32_t o = 0; o < step->nout; o++) fixed[step->out[o]] = all;
    }
    fixed[0] = true;
}

static bool outputs_planned(const zc_session *s, const zc_pstep *step)
{
    for (uint32_t o = 0; o < step->nout; o++)
        if (step->out[o] && !s->program->values[step->out[o]].planned) return false;
    return true;
}

static bool outputs_fixed(const zc_pstep *step, const bool *fixed)
{
    for (uint32_t o = 0; o < step->nout; o++)
        if (!fixed[step->out[o]]) return false;
    return true;
}

/* May the step stand in a graph? Kernels whose parameters the shapes decide, views, and CPU steps
 * that need not run again because the shapes decide their results. */
static bool can_record(const zc_session *s, const zc_pstep *step, const bool *fixed)
{
    unsigned flags = zc_op_get(step->op)->flags;
    if (flags & (ZC_OPF_REGIONS | ZC_OPF_DYNAMIC) || !outputs_planned(s, step)) return false;
    if (flags & ZC_OPF_VIEW) return true;
    if (!step->nchoices) return outputs_fixed(step, fixed);
    uint64_t host = zc_op_host_inputs(step->op);
    for (uint32_t n = 0; n < step->nin && n < 64; n++)
        if ((host >> n & 1) && !fixed[step->in[n]]) return false;
    return true;
}

static const zc_pstep *step_at(const zc_session *s, uint32_t i)
{
    return &s->program->steps[s->program->blocks[0].steps[i]];
}

static bool reads_on_device(const zc_pstep *step, uint32_t n)
{
    if (zc_op_get(step->op)->flags & ZC_OPF_VIEW) return n == 0;
    return step->nchoices && !(n < 64 && (zc_op_host_inputs(step->op) >> n & 1));
}

/* The values from outside that the part's kernels read, each once. `mark` is by value, 0 at first
 * and afterwards. */
static zc_status find_needs(zc_session *s, zc_gpu_part *part, uint8_t *mark, zc_diag *diag)
{
    enum { MADE = 1, NEEDED = 2 };
    uint32_t outs = 0;
    size_t most = 0;
    for (uint32_t i = part->first; i < part->end; i++) most += step_at(s, i)->nin;
    part->needs = zc_calloc(most, sizeof *part->needs);
    if (!part->needs) return zc_fail_nomem(diag, "graph", most);
    for (uint32_t i = part->first; i < part->end; i++) {
        const zc_pstep *step = step_at(s, i);
        for (uint32_t n = 0; n < step->nin; n++) {
            uint32_t v = step->in[n];
            if (!v || mark[v] || !reads_on_device(step, n) ||
                s->program->values[v].kind == ZC_P_CONST)
                continue;
            mark[v] = NEEDED;
            part->needs[part->nneeds++] = v;
        }
        /* What a CPU step makes comes from outside the graph. */
        bool inside = step->nchoices || zc_op_get(step->op)->flags & ZC_OPF_VIEW;
        outs += step->nout;
        for (uint32_t o = 0; inside && o < step->nout; o++) mark[step->out[o]] = MADE;
    }
    for (uint32_t i = 0; i < part->nneeds; i++) mark[part->needs[i]] = 0;
    for (uint32_t i = part->first; i < part->end; i++)
        for (uint32_t o = 0; o < step_at(s, i)->nout; o++) mark[step_at(s, i)->out[o]] = 0;
    part->npointers = part->nneeds + outs + 2;
    part->pointers = zc_calloc(part->npointers, sizeof *part->pointers);
    return part->pointers ? ZC_OK : zc_fail_nomem(diag, "graph", part->npointers);
}

static uint32_t kernels_in(const zc_session *s, uint32_t first, uint32_t end)
{
    uint32_t n = 0;
    for (uint32_t i = first; i < end; i++) n += step_at(s, i)->nchoices != 0;
    return n;
}

static zc_status find_parts(zc_session *s, zc_shapes *e, bool *fixed, uint8_t *mark, zc_diag *diag)
{
    uint32_t n = s->program->blocks[0].nsteps;
    find_fixed(s, fixed);
    for (uint32_t first = 0, end; first < n; first = end) {
        for (end = first; end < n && can_record(s, step_at(s, end), fixed);) end++;
        if (end == first) {
            end++;
            continue;
        }
        if (kernels_in(s, first, end) < 2) continue;
        zc_gpu_part *part = &e->parts[e->nparts++];
        *part = (zc_gpu_part){.first = first, .end = end};
        ZC_TRY(find_needs(s, part, mark, diag));
    }
    return ZC_OK;
}

static zc_status make_parts(zc_session *s, zc_shapes *e, zc_diag *diag)
{
    bool *fixed = zc_calloc(s->program->nvalues, sizeof *fixed);
    uint8_t *mark = zc_calloc(s->program->nvalues, sizeof *mark);
    e->parts = zc_calloc(s->program->blocks[0].nsteps, sizeof *e->parts);
    zc_status status = fixed && mark && e->parts ? ZC_OK : zc_fail_nomem(diag, "graphs", 0);
    if (status == ZC_OK && s->gpu->graphs) status = find_parts(s, e, fixed, mark, diag);
    if (status != ZC_OK) zc_gpu_free_parts(s, e);
    free(fixed);
    free(mark);
    return status;
}

zc_status zc_gpu_prepare(zc_session *s, zc_diag *diag)
{
    return s->now->parts ? ZC_OK : make_parts(s, s->now, diag);
}

/* ---- recording ---- */

/* Do the addresses that a graph holds still stand? Writes the current ones. */
static bool same_pointers(zc_session *s, zc_gpu_part *part)
{
    struct zc_gpu *g = s->gpu;
    bool same = true;
    uint32_t n = 0;
    for (uint32_t i = 0; i < part->nneeds; i++, n++) {
        same &= part->pointers[n] == g->at[part->needs[i]];
        part->pointers[n] = g->at[part->needs[i]];
    }
    for (uint32_t i = part->first; i < part->end; i++) {
        const zc_pstep *step = step_at(s, i);
        bool view = zc_op_get(step->op)->flags & ZC_OPF_VIEW;
        for (uint32_t o = 0; o < step->nout; o++, n++) {
            zc_cu_ptr at = view || !step->nchoices ? 0 : g->at[step->out[o]];
            same &= part->pointers[n] == at;
            part->pointers[n] = at;
        }
    }
    same &= part->pointers[n] == g->scratch.p;
    part->pointers[n++] = g->scratch.p;
    same &= part->pointers[n] == g->counters.p;
    part->pointers[n] = g->counters.p;
    return same;
}

static zc_status record_steps(zc_session *s, zc_gpu_part *part, zc_diag *diag)
{
    for (uint32_t i = part->first; i < part->end; i++) {
        const zc_pstep *step = step_at(s, i);
        if (zc_op_get(step->op)->flags & ZC_OPF_VIEW) {
            ZC_TRY(zc_gpu_view(s, step, diag));
        } else if (step->nchoices) {
            ZC_TRY(zc_gpu_stamp(s, i, diag));
            ZC_TRY(zc_gpu_step(s, step, diag));
        }
    }
    return zc_launcher_close(&s->gpu->launcher, diag);
}

static zc_status instantiate(zc_session *s, zc_gpu_part *part, zc_cu_graph graph, zc_diag *diag)
{
    zc_device *d = &s->gpu->image->device;
    zc_cu_update_info info = {0};
    if (part->exec && d->cu.graph_update(part->exec, graph, &info) == 0) return ZC_OK;
    drop_exec(d, part);
    return zc_device_check(d, d->cu.graph_instantiate(&part->exec, graph, 0), "cuGraphInstantiate",
                           diag);
}

static zc_status record(zc_session *s, zc_gpu_part *part, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    zc_cu_graph graph = NULL;
    uint64_t before = g->launcher.launches;
    ZC_TRY(zc_device_check(d, d->cu.capture_begin(g->stream, ZC_CU_CAPTURE_THREAD_LOCAL),
                           "cuStreamBeginCapture", diag));
    zc_status status = record_steps(s, part, diag);
    zc_status ended =
        zc_device_check(d, d->cu.capture_end(g->stream, &graph), "cuStreamEndCapture", diag);
    /* A stream that is left recording would run nothing any more. */
    if (ended != ZC_OK && !d->lost) (void)d->cu.capture_end(g->stream, &graph);
    if (status == ZC_OK) status = ended;
    part->launches = g->launcher.launches - before;
    g->launcher.launches = before;
    if (status == ZC_OK) status = instantiate(s, part, graph, diag);
    if (status == ZC_OK) zc_count(&s->plan->counts.captures, 1);
    if (graph) (void)d->cu.graph_destroy(graph);
    return status;
}

/* ---- replaying ---- */

static zc_status run_steps(zc_session *s, uint32_t first, uint32_t end, zc_diag *diag)
{
    for (uint32_t i = first; i < end; i++) {
        ZC_TRY(zc_gpu_stamp(s, i, diag));
        ZC_TRY(zc_exec_step(s, step_at(s, i), diag));
    }
    return zc_launcher_close(&s->gpu->launcher, diag);
}

/* CPU steps whose results the shapes decide run only when these are gone. Their place on the device
 * may have served others since. */
static zc_status refresh(zc_session *s, const zc_gpu_part *part, zc_diag *diag)
{
    for (uint32_t i = part->first; i < part->end; i++) {
        const zc_pstep *step = step_at(s, i);
        if (step->nchoices || zc_op_get(step->op)->flags & ZC_OPF_VIEW) continue;
        if (step->out[0] && !s->values[step->out[0]].data) ZC_TRY(zc_exec_step(s, step, diag));
        for (uint32_t o = 0; o < step->nout; o++) zc_gpu_wrote_host(s, step->out[o]);
    }
    return ZC_OK;
}

/* The host's view of what the graph does. */
static zc_status follow(zc_session *s, const zc_gpu_part *part, zc_diag *diag)
{
    for (uint32_t i = part->first; i < part->end; i++) {
        const zc_pstep *step = step_at(s, i);
        if (zc_op_get(step->op)->flags & ZC_OPF_VIEW) {
            if (s->roots[step->out[0]] == step->out[0])
                zc_gpu_wrote_device(s, step->out[0]);
            else
                ZC_TRY(zc_gpu_view(s, step, diag));
        } else if (step->nchoices) {
            for (uint32_t o = 0; o < step->nout; o++)
                if (step->out[o]) zc_gpu_wrote_device(s, step->out[o]);
        }
    }
    return ZC_OK;
}

/* Records the part; when that is refused, keeps the reason and leaves the part to be issued step by
 * step. */
static zc_status try_record(zc_session *s, zc_gpu_part *part, zc_diag *diag)
{
    zc_diag *why = zc_diag_create();
    if (record(s, part, why) != ZC_OK) {
        part->refused = true;
        s->gpu->launcher.open.stamps = 0;
        drop_exec(&s->gpu->image->device, part);
        snprintf(s->gpu->refusal, sizeof s->gpu->refusal, "%s",
                 zc_diag_count(why) ? zc_diag_text(why, 0) : "no memory");
    }
    zc_diag_destroy(&why);
    return zc_device_alive(&s->gpu->image->device, diag);
}

static zc_status run_part(zc_session *s, zc_gpu_part *part, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    zc_device *d = &g->image->device;
    if (part->refused) return run_steps(s, part->first, part->end, diag);
    ZC_TRY(zc_launcher_close(&g->launcher, diag));
    ZC_TRY(refresh(s, part, diag));
    for (uint32_t i = 0; i < part->nneeds; i++) ZC_TRY(zc_gpu_to_device(s, part->needs[i], diag));
    if (!same_pointers(s, part) || !part->exec) {
        ZC_TRY(follow(s, part, diag));
        ZC_TRY(try_record(s, part, diag));
        if (part->refused) return run_steps(s, part->first, part->end, diag);
    }
    g->launcher.launches += part->launches;
    ZC_TRY(zc_device_check(d, d->cu.graph_launch(part->exec, g->stream), "cuGraphLaunch", diag));
    return follow(s, part, diag);
}

zc_status zc_gpu_run_block(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    const uint32_t n = s->program->blocks[0].nsteps;
    uint32_t part = 0;
    bool compares = g->comparing.steps != NULL, replay = s->now->checked && !compares;
    for (uint32_t i = 0; i < n;) {
        if (replay && part < s->now->nparts && s->now->parts[part].first == i) {
            ZC_TRY(run_part(s, &s->now->parts[part], diag));
            i = s->now->parts[part++].end;
            continue;
        }
        ZC_TRY(zc_gpu_stamp(s, i, diag));
        ZC_TRY((compares ? zc_gpu_compare : zc_exec_step)(s, step_at(s, i), diag));
        i++;
    }
    return zc_launcher_close(&g->launcher, diag);
}

zc_status zc_gpu_run(zc_session *s, zc_diag *diag)
{
    struct zc_gpu *g = s->gpu;
    g->launcher.launches = 0;
    ZC_TRY((g->step_ms ? zc_gpu_profile_run : zc_gpu_run_block)(s, diag));
    g->launches = g->launcher.launches;
    return ZC_OK;
}
