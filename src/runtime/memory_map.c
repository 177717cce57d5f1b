#include "runtime/memory_map.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/workspace.h"
#include "runtime/subviews.h"

/* ---- the arena over the steps ---- */

static zc_tensor type_of(const zc_session *s, uint32_t v)
{
    zc_tensor t = s->values[v];
    t.data = NULL;
    return t;
}

static void take_items(const zc_session *s, zc_memory_map *m)
{
    for (size_t i = 0; i < s->now->nitems; i++) {
        const zc_placement *item = &s->now->items[i];
        m->values[i] = (zc_memory_value){.name = s->program->values[item->id].name,
                                         .type = type_of(s, item->id),
                                         .bytes = zc_align_up(item->bytes, ZC_TENSOR_ALIGN),
                                         .offset = item->offset,
                                         .first = (size_t)item->first,
                                         .last = (size_t)item->last};
        if (m->values[i].last >= m->nsteps) m->values[i].last = m->nsteps - 1;
        for (size_t step = m->values[i].first; step <= m->values[i].last; step++)
            m->steps[step].live += m->values[i].bytes;
    }
    m->nvalues = s->now->nitems;
    for (size_t i = 1; i < m->nsteps; i++)
        if (m->steps[i].live > m->steps[m->peak].live) m->peak = i;
}

static void take_subviews(const zc_session *s, zc_memory_map *m)
{
    for (uint32_t v = 1; v < s->program->nvalues; v++) {
        const zc_subview *at = &s->now->subviews[v];
        if (!at->pitch) continue;
        m->subviews[m->nsubviews++] =
            (zc_memory_subview){.name = s->program->values[v].name,
                                .root = s->program->values[s->roots[v]].name,
                                .type = type_of(s, v),
                                .offset = at->offset,
                                .pitch = at->pitch};
    }
}

/* ---- workspace ---- */

/* The value's shape and, of a constant, its data; false: a run alone can tell. */
static bool operand(const zc_session *s, uint32_t v, zc_tensor *out)
{
    const zc_program *p = s->program;
    *out = (zc_tensor){.dtype = ZC_NONE};
    if (!v) return true;
    *out = s->values[v];
    for (uint32_t i = 0; i < p->blocks[0].nparams; i++)
        if (p->blocks[0].params[i] == v) *out = s->inputs[i].value;
    return out->dtype != ZC_NONE;
}

/* -1: not known. */
static int64_t workspace_of(const zc_session *s, const zc_pstep *step, int arch)
{
    uint64_t bytes = 0;
    if (!arch) return -1;
    if (!step->nchoices) return 0; /* on the CPU, or a view */
    zc_tensor *all = zc_calloc(step->nin + step->nout, sizeof *all);
    bool known = all != NULL;
    for (uint32_t i = 0; known && i < step->nin; i++) known = operand(s, step->in[i], &all[i]);
    for (uint32_t i = 0; known && i < step->nout; i++)
        known = operand(s, step->out[i], &all[step->nin + i]);
    if (known) {
        known =
            zc_step_workspace(step, zc_session_kernel(s, step), arch, all, all + step->nin, &bytes);
    }
    free(all);
    return known ? (int64_t)bytes : -1;
}

static void take_steps(const zc_session *s, zc_memory_map *m)
{
    const zc_program *p = s->program;
    for (size_t i = 0; i < m->nsteps; i++) {
        const zc_pstep *step = &p->steps[p->blocks[0].steps[i]];
        zc_memory_step *out = &m->steps[i];
        out->name = step->name;
        out->op = zc_op_get(step->op)->name;
        out->in_place = zc_subviews_in_place(s, step);
        out->workspace = workspace_of(s, step, m->arch);
        if (out->workspace > (int64_t)m->workspace) m->workspace = (uint64_t)out->workspace;
        m->unknown += out->workspace < 0;
    }
    for (uint32_t i = 0; i < p->nbinaries; i++)
        if (p->binaries[i].arch == (uint32_t)m->arch) m->code_bytes += p->binaries[i].bytes;
}

/* ---- all ---- */

static zc_status make(zc_session *s, const zc_io_info *inputs, size_t n, zc_memory_map *m,
                      zc_diag *diag)
{
    ZC_TRY(zc_session_take_shapes(s, inputs, n, diag));
    ZC_TRY(zc_session_plan(s, diag));
    m->info = zc_session_measure(s);
    m->nsteps = s->program->blocks[0].nsteps;
    m->steps = zc_calloc(m->nsteps + 1, sizeof *m->steps);
    m->values = zc_calloc(s->now->nitems + 1, sizeof *m->values);
    m->subviews = zc_calloc(s->program->nvalues, sizeof *m->subviews);
    if (!m->steps || !m->values || !m->subviews)
        return zc_fail_nomem(diag, "memory map", m->nsteps);
    take_items(s, m);
    take_subviews(s, m);
    take_steps(s, m);
    return ZC_OK;
}

zc_status zc_memory_map_make(const zc_plan *plan, int arch, const zc_io_info *inputs, size_t n,
                             zc_memory_map *out, zc_diag *diag)
{
    zc_session *s;
    zc_plan *shared = (zc_plan *)(uintptr_t)plan; /* its references are counted */
    *out = (zc_memory_map){.arch = arch};
    ZC_TRY(zc_session_new(shared, 1, &s, diag));
    s->arch = arch;
    zc_status status = make(s, inputs, n, out, diag);
    zc_session_free(s);
    return status;
}

void zc_memory_map_free(zc_memory_map *map)
{
    free(map->steps);
    free(map->values);
    free(map->subviews);
    *map = (zc_memory_map){0};
}
