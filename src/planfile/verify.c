#include <stdlib.h>
#include <string.h>

#include "planfile/format.h"
#include "planfile/program.h"

typedef enum seen { UNSEEN = 0, LIVE, ENDED } seen;

typedef struct verifier {
    zc_program *p;
    zc_pvalue *values; /* the program's, writable */
    seen *state;       /* by value */
    bool *step_seen, *block_seen;
    zc_diag *diag;
} verifier;

#define bad(v, ...) zc_fail((v)->diag, ZC_ERR_FORMAT, NULL, __VA_ARGS__)

static zc_status walk_block(verifier *v, uint32_t b, unsigned depth);

static zc_status define(verifier *v, uint32_t id, zc_pkind kind)
{
    const zc_pvalue *value = &v->values[id];
    if (id == 0 || value->kind != kind)
        return bad(v, "value %s is not what defines it", value->name);
    if (v->state[id] != UNSEEN) return bad(v, "value %s is defined twice", value->name);
    v->state[id] = LIVE;
    return ZC_OK;
}

static zc_status use(verifier *v, uint32_t id)
{
    const zc_pvalue *value = &v->values[id];
    if (id == 0 || value->kind == ZC_P_CONST || v->state[id] == LIVE) return ZC_OK;
    return bad(v, "value %s is used before it is defined or outside its block", value->name);
}

/* Params and outputs that the blocks of a control-flow step must have. */
static bool has_shape(const verifier *v, const zc_pstep *s)
{
    const zc_pblock *b = &v->p->blocks[s->nblocks ? s->blocks[0] : 0];
    const zc_pblock *e = &v->p->blocks[s->nblocks > 1 ? s->blocks[1] : 0];
    switch (s->op) {
    case ZC_OP_If:
        return s->nblocks == 2 && s->in[0] && !b->nparams && !e->nparams && b->nouts == s->nout &&
               e->nouts == s->nout;
    case ZC_OP_Loop:
        return s->nblocks == 1 && b->nparams == s->nin && b->nouts == s->nout + 1 &&
               s->nout + 2 >= s->nin;
    case ZC_OP_Scan: {
        const zc_attrs_Scan *a = s->attrs;
        return s->nblocks == 1 && a->num_scan_inputs >= 1 &&
               a->num_scan_inputs <= (int64_t)s->nin && b->nparams == s->nin &&
               b->nouts == s->nout && s->nout >= s->nin - (uint32_t)a->num_scan_inputs;
    }
    default:
        return s->nblocks == 0;
    }
}

/* Values that the runtime hands through control flow keep their element type. 0: absent. */
static bool same_type(const verifier *v, const uint32_t *a, const uint32_t *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i] && b[i] && v->values[a[i]].dtype != v->values[b[i]].dtype) return false;
    return true;
}

/* Blocks have passed has_shape. */
static bool has_types(const verifier *v, const zc_pstep *s)
{
    const zc_pblock *b = &v->p->blocks[s->nblocks ? s->blocks[0] : 0];
    switch (s->op) {
    case ZC_OP_If:
        return same_type(v, v->p->blocks[s->blocks[0]].outs, s->out, s->nout) &&
               same_type(v, v->p->blocks[s->blocks[1]].outs, s->out, s->nout);
    case ZC_OP_Loop:
        return v->values[b->params[0]].dtype == ZC_I64 &&
               v->values[b->params[1]].dtype == ZC_BOOL &&
               same_type(v, b->params + 2, s->in + 2, s->nin - 2) &&
               same_type(v, b->params + 2, b->outs + 1, s->nin - 2) &&
               same_type(v, b->outs + 1, s->out, s->nout);
    case ZC_OP_Scan:
        return same_type(v, b->params, s->in, s->nin) && same_type(v, b->outs, s->out, s->nout) &&
               same_type(v, b->params, b->outs,
                         s->nin - (uint32_t)((const zc_attrs_Scan *)s->attrs)->num_scan_inputs);
    default:
        return true;
    }
}

static bool needs_input(const zc_pstep *s, uint32_t i)
{
    if (s->op == ZC_OP_Loop) return i >= 2;
    return i < (uint32_t)zc_op_get(s->op)->min_in || s->op == ZC_OP_Scan;
}

static zc_status walk_step(verifier *v, uint32_t i, unsigned depth)
{
    const zc_pstep *s = &v->p->steps[i];
    if (v->step_seen[i]) return bad(v, "step %s stands in the plan twice", s->name);
    v->step_seen[i] = true;
    if (!has_shape(v, s)) return bad(v, "step %s has wrong blocks", s->name);
    if (!has_types(v, s)) return bad(v, "step %s and its blocks differ in element types", s->name);
    for (uint32_t j = 0; j < s->nin; j++) {
        if (!s->in[j] && needs_input(s, j)) return bad(v, "step %s lacks input %u", s->name, j);
        ZC_TRY(use(v, s->in[j]));
    }
    for (uint32_t j = 0; j < s->nblocks; j++) ZC_TRY(walk_block(v, s->blocks[j], depth + 1));
    for (uint32_t j = 0; j < s->nout; j++) {
        if (!s->out[j]) continue;
        ZC_TRY(define(v, s->out[j], ZC_P_STEP));
        if (depth || s->nblocks) v->values[s->out[j]].planned = false;
    }
    return ZC_OK;
}

/* Values of a block end with it. */
static void end_block(verifier *v, const zc_pblock *block)
{
    for (uint32_t i = 0; i < block->nparams; i++) v->state[block->params[i]] = ENDED;
    for (uint32_t i = 0; i < block->nsteps; i++) {
        const zc_pstep *s = &v->p->steps[block->steps[i]];
        for (uint32_t j = 0; j < s->nout; j++)
            if (s->out[j]) v->state[s->out[j]] = ENDED;
    }
}

static zc_status walk_block(verifier *v, uint32_t b, unsigned depth)
{
    const zc_pblock *block = &v->p->blocks[b];
    if (depth > ZC_PLAN_DEPTH_MAX)
        return bad(v, "blocks are nested too deep (limit %d)", ZC_PLAN_DEPTH_MAX);
    if (v->block_seen[b]) return bad(v, "block %u belongs to two steps", b);
    v->block_seen[b] = true;
    for (uint32_t i = 0; i < block->nparams; i++) {
        ZC_TRY(define(v, block->params[i], depth ? ZC_P_PARAM : ZC_P_INPUT));
        if (depth) v->values[block->params[i]].planned = false;
        if (!depth && v->values[block->params[i]].rank < 0) return bad(v, "an input has no rank");
    }
    for (uint32_t i = 0; i < block->nsteps; i++) ZC_TRY(walk_step(v, block->steps[i], depth));
    for (uint32_t i = 0; i < block->nouts; i++) {
        if (!block->outs[i]) return bad(v, "block %u gives an absent value", b);
        ZC_TRY(use(v, block->outs[i]));
    }
    if (depth) end_block(v, block);
    return ZC_OK;
}

/* Every index is in range; checks what must hold between records: each value is defined exactly
 * once and before its uses, blocks nest without sharing and at most ZC_PLAN_DEPTH_MAX deep, control
 * flow has the blocks it needs. Marks values of inner blocks and of control flow as not planned. */
static zc_status verify(zc_program *p, zc_diag *diag)
{
    verifier v = {.p = p, .values = (zc_pvalue *)(uintptr_t)p->values, .diag = diag};
    v.state = zc_calloc(p->nvalues, sizeof *v.state);
    v.step_seen = zc_calloc(p->nsteps, sizeof *v.step_seen);
    v.block_seen = zc_calloc(p->nblocks, sizeof *v.block_seen);
    zc_status status = v.state && v.step_seen && v.block_seen
                           ? walk_block(&v, 0, 0)
                           : zc_fail_nomem(diag, "plan", p->nvalues);
    free(v.state);
    free(v.step_seen);
    free(v.block_seen);
    return status;
}

static zc_status value_texts(const zc_dims *dims, zc_pvalue *value, zc_arena *arena, zc_diag *diag)
{
    const char **texts = zc_arena_alloc(arena, ZC_MAX_RANK, sizeof *texts);
    if (!texts) return zc_fail_nomem(diag, "plan", 0);
    for (int d = 0; d < value->rank; d++) {
        zc_buf b = {0};
        zc_dim_print(dims, value->dims[d], &b);
        texts[d] = b.failed || !b.data ? NULL : zc_arena_strdup(arena, b.data);
        zc_buf_fini(&b);
        if (!texts[d]) return zc_fail_nomem(diag, "plan", 0);
    }
    value->dim_texts = texts;
    return ZC_OK;
}

/* Of inputs and outputs. */
static zc_status fill_texts(zc_program *p, zc_arena *arena, zc_diag *diag)
{
    zc_dims dims = {.nodes = (zc_dim_node *)(uintptr_t)p->dim_nodes, .count = p->ndims};
    zc_pvalue *values = (zc_pvalue *)(uintptr_t)p->values;
    const zc_pblock *top = &p->blocks[0];
    for (uint32_t i = 0; i < top->nparams; i++)
        ZC_TRY(value_texts(&dims, &values[top->params[i]], arena, diag));
    for (uint32_t i = 0; i < top->nouts; i++)
        ZC_TRY(value_texts(&dims, &values[top->outs[i]], arena, diag));
    return ZC_OK;
}

zc_status zc_program_complete(zc_program *p, zc_arena *arena, zc_diag *diag)
{
    ZC_TRY(verify(p, diag));
    return fill_texts(p, arena, diag);
}
