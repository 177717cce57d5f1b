/* For one set of input shapes: every dimension's value, who shares whose memory, where it lies. */
#include <stdlib.h>
#include <string.h>

#include "runtime/gpu.h"
#include "runtime/subviews.h"

/* ---- dimensions ---- */

#define UNBOUND INT64_MIN

static zc_status bind_symbol(zc_session *s, const zc_pvalue *value, const char *name, int axis,
                             int64_t got, zc_diag *diag)
{
    zc_dim d = value->dims[axis];
    if (zc_dim_is_const(d)) {
        if (got == d.k) return ZC_OK;
        return zc_fail(diag, ZC_ERR_INPUT, name, "wrong size of dimension %d (got %lld, need %lld)",
                       axis, (long long)got, (long long)d.k);
    }
    const zc_dim_node *node = &s->program->dim_nodes[d.e - 1];
    if (node->kind != ZC_DIM_SYM) return ZC_OK;
    int64_t *slot = &s->dim_values[d.e - 1];
    if (*slot != UNBOUND && *slot != got)
        return zc_fail(diag, ZC_ERR_INPUT, name,
                       "dimension %d (%s) differs from another input's (got %lld, need %lld)", axis,
                       node->name, (long long)got, (long long)*slot);
    *slot = got;
    return ZC_OK;
}

static zc_status bind_inputs(zc_session *s, zc_diag *diag)
{
    const zc_program *p = s->program;
    const zc_pblock *top = &p->blocks[0];
    for (uint32_t i = 0; i < p->ndims; i++) s->dim_values[i] = UNBOUND;
    for (uint32_t i = 0; i < top->nparams; i++) {
        const zc_pvalue *value = &p->values[top->params[i]];
        for (int d = 0; d < value->rank; d++)
            ZC_TRY(bind_symbol(s, value, p->input_names[i], d, s->inputs[i].value.dims[d], diag));
    }
    /* Unknowns that a step binds count as 1 here: nothing planned depends on them. */
    for (uint32_t i = 0; i < p->ndims; i++)
        if (p->dim_nodes[i].kind == ZC_DIM_SYM && s->dim_values[i] == UNBOUND) s->dim_values[i] = 1;
    size_t bad;
    if (!zc_dims_eval(p->dim_nodes, p->ndims, s->dim_values, &bad))
        return zc_fail(
            diag, ZC_ERR_INPUT, NULL,
            "these input shapes make a dimension overflow or divide by zero (expression %zu)", bad);
    return ZC_OK;
}

/* An input dimension that is an expression must agree with the symbols that other inputs bound. */
static zc_status check_inputs(zc_session *s, zc_diag *diag)
{
    const zc_pblock *top = &s->program->blocks[0];
    for (uint32_t i = 0; i < top->nparams; i++) {
        const zc_pvalue *value = &s->program->values[top->params[i]];
        for (int d = 0; d < value->rank; d++) {
            int64_t need = zc_dim_value(value->dims[d], s->dim_values);
            int64_t got = s->inputs[i].value.dims[d];
            if (got != need)
                return zc_fail(diag, ZC_ERR_INPUT, s->program->input_names[i],
                               "wrong size of dimension %d (got %lld, need %lld)", d,
                               (long long)got, (long long)need);
        }
    }
    return ZC_OK;
}

static zc_status shape_values(zc_session *s, zc_diag *diag)
{
    const zc_program *p = s->program;
    for (uint32_t v = 1; v < p->nvalues; v++) {
        const zc_pvalue *value = &p->values[v];
        if (value->kind == ZC_P_CONST) continue;
        zc_tensor *t = &s->values[v];
        *t = (zc_tensor){.dtype = ZC_NONE};
        if (s->gpu) s->gpu->on_device[v] = false;
        if (value->kind != ZC_P_STEP || !value->planned) continue;
        t->dtype = value->dtype;
        t->rank = value->rank;
        for (int d = 0; d < t->rank; d++) t->dims[d] = zc_dim_value(value->dims[d], s->dim_values);
        size_t bytes;
        if (!zc_tensor_bytes(t, &bytes))
            return zc_fail(diag, ZC_ERR_INPUT, value->name,
                           "these input shapes make a tensor negative or too large");
    }
    return ZC_OK;
}

/* ---- sharing ---- */

static size_t bytes_of(const zc_tensor *t)
{
    size_t bytes = 0;
    return zc_tensor_bytes(t, &bytes) ? bytes : 0;
}

static bool is_planned_step_value(const zc_session *s, uint32_t v)
{
    return v && s->program->values[v].kind == ZC_P_STEP && s->program->values[v].planned;
}

static bool shares_root_with_other_input(const zc_session *s, const zc_pstep *step, uint32_t slot)
{
    uint32_t root = s->roots[step->in[slot]];
    for (uint32_t i = 0; i < step->nin; i++)
        if (i != slot && step->in[i] && s->roots[step->in[i]] == root) return true;
    return false;
}

/* Is v a part of the memory that it lies in? (a view of less than its operand) */
static bool lies_in_more(const zc_session *s, uint32_t v)
{
    return bytes_of(&s->values[v]) != bytes_of(&s->values[s->roots[v]]);
}

/* May output 0 of the step at position `at` overwrite input `slot`? */
static bool can_overwrite(const zc_session *s, const zc_pstep *step, uint32_t slot, int32_t at)
{
    uint32_t in = step->in[slot], out = step->out[0];
    /* Its memory must be the arena's: not an input's or a constant's under another shape. */
    if (!in || !is_planned_step_value(s, in) || !is_planned_step_value(s, s->roots[in]))
        return false;
    const zc_op_info *info = zc_op_get(step->op);
    if (zc_dtype_bits(s->values[in].dtype) != zc_dtype_bits(s->values[out].dtype)) return false;
    if (zc_tensor_numel(&s->values[in]) != zc_tensor_numel(&s->values[out])) return false;
    if (lies_in_more(s, in)) return false; /* a result's memory may have room for it alone */
    if (!(info->flags & ZC_OPF_POINTWISE) && shares_root_with_other_input(s, step, slot))
        return false;
    return s->root_last[s->roots[in]] <= at;
}

static void share(zc_session *s, const zc_pstep *step, uint32_t slot)
{
    uint32_t root = s->roots[step->in[slot]], out = step->out[0];
    s->now->roots[out] = root;
    if (s->root_last[root] < s->plan->last[out]) s->root_last[root] = s->plan->last[out];
}

static bool is_result(const zc_session *s, uint32_t v)
{
    const zc_pblock *top = &s->program->blocks[0];
    for (uint32_t i = 0; i < top->nouts; i++)
        if (top->outs[i] == v) return true;
    return false;
}

static void share_step(zc_session *s, const zc_pstep *step, int32_t at)
{
    const zc_op_info *info = zc_op_get(step->op);
    if (!step->nin || !step->nout || !is_planned_step_value(s, step->out[0])) return;
    if ((info->flags & ZC_OPF_VIEW) && step->in[0]) {
        const zc_pvalue *in = &s->program->values[step->in[0]];
        if (in->kind == ZC_P_CONST || in->kind == ZC_P_INPUT || in->planned) share(s, step, 0);
        if (lies_in_more(s, step->out[0]) && is_result(s, step->out[0]))
            s->now->roots[step->out[0]] = step->out[0];
        return;
    }
    if (!(info->flags & (ZC_OPF_INPLACE | ZC_OPF_INPLACE_LAST)) || step->nout > 1) return;
    uint32_t own = (uint32_t)zc_op_own_inputs(info, (int)step->nin);
    const zc_subview *place = &s->now->subviews[step->out[0]];
    if (place->pitch || place->holds) return; /* its memory is settled */
    bool last = info->flags & ZC_OPF_INPLACE_LAST;
    if (last && own < (uint32_t)info->max_in) return;
    uint32_t first = last ? own - 1 : 0;
    uint32_t end = info->flags & ZC_OPF_POINTWISE ? step->nin : first + 1;
    for (uint32_t slot = first; slot < end; slot++) {
        if (can_overwrite(s, step, slot, at)) {
            share(s, step, slot);
            return;
        }
    }
}

/* A root's memory is needed as long as anything that lies in it. */
static void join_lives(zc_session *s)
{
    for (uint32_t v = 1; v < s->program->nvalues; v++) {
        const uint32_t root = s->roots[v];
        if (s->root_first[root] > s->plan->first[v]) s->root_first[root] = s->plan->first[v];
        if (s->root_last[root] < s->plan->last[v]) s->root_last[root] = s->plan->last[v];
    }
}

static zc_status find_roots(zc_session *s, zc_diag *diag)
{
    const zc_program *p = s->program;
    const zc_pblock *top = &p->blocks[0];
    for (uint32_t v = 0; v < p->nvalues; v++) {
        s->now->roots[v] = v;
        s->now->subviews[v] = (zc_subview){0};
        s->root_first[v] = s->plan->first[v];
        s->root_last[v] = s->plan->last[v];
        s->now->external[v] = false;
    }
    if ((s->gpu || s->arch) && !s->no_subviews) ZC_TRY(zc_subviews_find(s, diag));
    join_lives(s);
    for (uint32_t i = 0; i < top->nsteps; i++) share_step(s, &p->steps[top->steps[i]], (int32_t)i);
    for (uint32_t i = 0; i < top->nouts; i++) {
        uint32_t root = s->roots[top->outs[i]];
        if (is_planned_step_value(s, root)) s->now->external[root] = true;
    }
    return ZC_OK;
}

/* ---- placing ---- */

static zc_status grow_arena(zc_session *s, size_t need, zc_diag *diag)
{
    if (need <= s->arena_bytes) return ZC_OK;
    zc_tensor_free(&s->allocator, s->arena, s->arena_bytes);
    s->arena_bytes = 0;
    s->arena = zc_tensor_alloc(&s->allocator, need);
    if (!s->arena) return zc_fail_nomem(diag, "working memory", need);
    s->arena_bytes = need;
    return ZC_OK;
}

static zc_status place(zc_session *s, zc_diag *diag)
{
    const zc_program *p = s->program;
    zc_shapes *e = s->now;
    e->nitems = 0;
    for (uint32_t v = 1; v < p->nvalues; v++) {
        if (!is_planned_step_value(s, v) || s->roots[v] != v || s->external[v]) continue;
        int32_t last = s->root_last[v] < s->plan->first[v] ? s->plan->first[v] : s->root_last[v];
        e->items[e->nitems++] = (zc_placement){
            .bytes = bytes_of(&s->values[v]), .first = s->root_first[v], .last = last, .id = v};
    }
    if (zc_place(e->items, e->nitems, &e->arena_bytes)) return ZC_OK;
    return zc_fail(diag, ZC_ERR_INPUT, NULL, "these input shapes need too much working memory");
}

zc_status zc_session_plan(zc_session *s, zc_diag *diag)
{
    s->now = NULL;
    s->prepared = s->checked = false;
    ZC_TRY(bind_inputs(s, diag));
    ZC_TRY(check_inputs(s, diag));
    ZC_TRY(shape_values(s, diag));
    ZC_TRY(zc_shapes_find(s, &s->now, diag));
    s->roots = s->now->roots;
    s->external = s->now->external;
    if (s->now->planned) return ZC_OK;
    ZC_TRY(find_roots(s, diag));
    ZC_TRY(place(s, diag));
    s->now->planned = true;
    return ZC_OK;
}

static zc_status make_room(zc_session *s, zc_diag *diag)
{
    const zc_shapes *e = s->now;
    if (s->gpu) return zc_gpu_place(s, e->items, e->nitems, e->arena_bytes, diag);
    ZC_TRY(grow_arena(s, e->arena_bytes, diag));
    for (size_t i = 0; i < e->nitems; i++) {
        /* An empty tensor gets a valid pointer too. */
        s->values[e->items[i].id].data =
            e->arena_bytes ? s->arena + e->items[i].offset : (void *)e->items;
    }
    return ZC_OK;
}

zc_status zc_session_make_ready(zc_session *s, zc_diag *diag)
{
    ZC_TRY(zc_session_plan(s, diag));
    ZC_TRY(make_room(s, diag));
    s->checked = s->now->checked;
    if (s->gpu) ZC_TRY(zc_gpu_prepare(s, diag));
    s->prepared = true;
    return ZC_OK;
}
