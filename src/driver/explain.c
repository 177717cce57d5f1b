#include "driver/explain.h"

#include <stdlib.h>

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
    zc_rules_destroy(&e->rules);
    free(e->stats);
}

/* Does inference know its result, so that the kernels' launches need nothing else? */
static bool is_shape_arithmetic(const zc_graph *g, const zc_node *n)
{
    return n->nout > 0 && n->out[0] && zc_val(g, n->out[0])->vals.n >= 0;
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
