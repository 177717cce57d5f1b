#include "driver/explain.h"

#include <stdlib.h>
#include <string.h>

zc_status zc_explain_begin(zc_explain *e, zc_rules *rules, zc_diag *diag)
{
    e->rules = rules;
    zc_census_init(&e->census);
    e->is_begun = true;
    e->stats = zc_calloc(zc_rules_count(rules), sizeof *e->stats);
    e->report = (zc_rules_report){.stats = e->stats, .census = &e->census, .limit = e->limit};
    return e->stats ? ZC_OK : zc_fail_nomem(diag, "report", 0);
}

void zc_explain_fini(zc_explain *e)
{
    if (e->is_begun) zc_census_fini(&e->census);
    zc_tuning_fini(&e->tuning);
    zc_buf_fini(&e->compiled);
    zc_buf_fini(&e->precision);
    zc_buf_fini(&e->left);
    zc_rules_destroy(&e->rules);
    free(e->stats);
}

/* Does inference know its result, so that the kernels' launches need nothing else? */
static bool is_shape_arithmetic(const zc_graph *g, const zc_node *n)
{
    return n->nout > 0 && n->out[0] && zc_val(g, n->out[0])->vals.n >= 0;
}

static bool is_output(const zc_graph *g, zc_vid v)
{
    for (size_t i = 0; i < g->top.outputs.len; i++)
        if (g->top.outputs.data[i] == v || strcmp(g->output_names[i], zc_val(g, v)->name) == 0)
            return true;
    return false;
}

zc_status zc_explain_expose(zc_explain *e, zc_graph *g, size_t imported, zc_diag *diag)
{
    size_t room = g->top.outputs.len + imported;
    const char **names = zc_arena_alloc(&g->arena, room, sizeof *names);
    if (!names) return zc_fail_nomem(diag, "names of outputs", room * sizeof *names);
    if (g->top.outputs.len) memcpy(names, g->output_names, g->top.outputs.len * sizeof *names);
    g->output_names = names;
    for (size_t i = 0; i < g->top.nodes.len; i++) {
        const zc_node *n = zc_node_at(g, g->top.nodes.data[i]);
        for (int o = 0; o < n->nout; o++) {
            zc_vid v = n->out[o];
            if (!v || v >= imported || is_output(g, v)) continue;
            names[g->top.outputs.len] = zc_val(g, v)->name;
            if (!ZC_VEC_PUSH(&g->top.outputs, v)) return zc_fail_nomem(diag, "outputs", room);
            e->exposed++;
        }
    }
    return ZC_OK;
}

void zc_explain_graph(zc_explain *e, const zc_graph *g)
{
    for (size_t i = 1; i < g->nodes.len; i++) {
        const zc_node *n = &g->nodes.data[i];
        if (n->op == ZC_OP_NONE) continue;
        bool is_shape = is_shape_arithmetic(g, n);
        bool is_view = !is_shape && (zc_op_get(n->op)->flags & ZC_OPF_VIEW);
        e->shapes += is_shape;
        e->views += is_view;
        e->steps += !is_shape && !is_view;
        e->by_op[n->op] += !is_shape && !is_view;
    }
}

void zc_explain_program(zc_explain *e, const zc_program *p)
{
    e->has_gpu = true;
    e->kernels = p->nkernels;
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const zc_pstep *s = &p->steps[i];
        e->gpu_steps += s->nchoices != 0;
        e->cpu_steps += !s->nchoices && !(zc_op_get(s->op)->flags & ZC_OPF_VIEW);
    }
}
