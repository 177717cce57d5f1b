/* Which steps only compute shapes and other numbers that the host needs: they stay on the CPU. */
#include "kernels/host_steps.h"

typedef struct placer {
    const zc_program *p;
    bool *known;  /* by value: the host has or computes it without waiting for the GPU */
    bool *wanted; /* by value: the host needs it */
    bool *shapes; /* by step: the result */
} placer;

static bool small_integers(const zc_pvalue *v)
{
    return v->rank >= 0 && v->rank <= 1 && (zc_dtype_is_int(v->dtype) || v->dtype == ZC_BOOL);
}

static void know_block(placer *q, uint32_t block);

/* Other operations that read only shapes (EyeLike) make tensors. */
static bool asks_shape(const zc_pstep *s)
{
    return s->op == ZC_OP_Shape || s->op == ZC_OP_Size;
}

static bool knows_inputs(const placer *q, const zc_pstep *s)
{
    for (uint32_t i = 0; i < s->nin; i++)
        if (s->in[i] && !q->known[s->in[i]]) return false;
    return true;
}

/* Loop bodies are told the iteration and the condition. */
static void know_params(placer *q, const zc_pstep *s)
{
    for (uint32_t b = 0; b < s->nblocks; b++) {
        const zc_pblock *block = &q->p->blocks[s->blocks[b]];
        for (uint32_t i = 0; s->op == ZC_OP_Loop && i < 2 && i < block->nparams; i++)
            q->known[block->params[i]] = true;
        know_block(q, s->blocks[b]);
    }
}

/* Recursion is as deep as blocks nest, which the importer and the plan reader bound. */
static void know_block(placer *q, uint32_t b)
{
    const zc_pblock *block = &q->p->blocks[b];
    for (uint32_t i = 0; i < block->nsteps; i++) {
        const zc_pstep *s = &q->p->steps[block->steps[i]];
        unsigned flags = zc_op_get(s->op)->flags;
        if (flags & ZC_OPF_REGIONS) {
            know_params(q, s);
            continue;
        }
        bool known = asks_shape(s) || (!(flags & ZC_OPF_RANDOM) && knows_inputs(q, s));
        for (uint32_t o = 0; o < s->nout; o++)
            if (s->out[o]) q->known[s->out[o]] = known;
    }
}

static void want_block(placer *q, uint32_t b);

static void want_control(placer *q, const zc_pstep *s)
{
    for (uint32_t i = 0; s->op != ZC_OP_Scan && i < s->nin && i < (s->op == ZC_OP_Loop ? 2 : 1);
         i++)
        q->wanted[s->in[i]] = true;
    for (uint32_t b = 0; b < s->nblocks; b++) {
        const zc_pblock *block = &q->p->blocks[s->blocks[b]];
        if (s->op == ZC_OP_Loop && block->nouts) q->wanted[block->outs[0]] = true;
        want_block(q, s->blocks[b]);
    }
}

static bool outputs_wanted(const placer *q, const zc_pstep *s)
{
    for (uint32_t o = 0; o < s->nout; o++)
        if (s->out[o] && q->wanted[s->out[o]] && q->known[s->out[o]]) return true;
    return false;
}

static void want_block(placer *q, uint32_t b)
{
    const zc_pblock *block = &q->p->blocks[b];
    for (uint32_t i = block->nsteps; i-- > 0;) {
        uint32_t id = block->steps[i];
        const zc_pstep *s = &q->p->steps[id];
        unsigned flags = zc_op_get(s->op)->flags;
        if (flags & ZC_OPF_REGIONS) {
            want_control(q, s);
            continue;
        }
        uint64_t host = zc_op_host_inputs(s->op);
        q->shapes[id] = asks_shape(s) || outputs_wanted(q, s);
        if (q->shapes[id] && !asks_shape(s)) host = UINT64_MAX;
        for (uint32_t n = 0; n < s->nin && n < 64; n++)
            if (host >> n & 1) q->wanted[s->in[n]] = true;
    }
}

bool *zc_host_steps(const zc_program *p, zc_arena *arena)
{
    placer q = {.p = p,
                .known = zc_arena_alloc(arena, p->nvalues, sizeof(bool)),
                .wanted = zc_arena_alloc(arena, p->nvalues, sizeof(bool)),
                .shapes = zc_arena_alloc(arena, p->nsteps, sizeof(bool))};
    if (!q.known || !q.wanted || !q.shapes) return NULL;
    for (uint32_t v = 0; v < p->nvalues; v++) {
        const zc_pvalue *value = &p->values[v];
        q.known[v] =
            value->kind == ZC_P_CONST || (value->kind == ZC_P_INPUT && small_integers(value));
    }
    know_block(&q, 0);
    want_block(&q, 0);
    return q.shapes;
}
