/* Pointwise expressions over f32, f16, bf16 and bool, a block of elements at a time: each node of
 * the expression is one loop over a block that stays in cache. Other element types take the
 * reference kernel. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/pointwise.h"
#include "cpu/vmath.h"

#define SIMD_SOURCE "cpu/pointwise_tmpl.h"
#include "cpu/simd_each.h"

#define BLOCK     256
#define SLOTS_MAX 48

typedef void (*block_fn)(float *d, const float *p, const float *q, const float *r, int64_t n);

static block_fn block_function(zc_expr_op op, zc_simd level)
{
    switch (op) {
#define PW1(name, text)                                                                            \
    case ZC_EX_##name:                                                                             \
        return SIMD_PICK(level, pw_##name);
#define PW2(name, text) PW1(name, text)
#define PWS(name, text) PW1(name, text)
#include "cpu/pointwise_ops.h"
        PW1(SELECT, )
        PW1(POW, )
        PW1(FMOD, )
        PW1(MOD, )
#undef PW1
#undef PW2
#undef PWS
    default:
        return NULL;
    }
}

/* ---- the program: made once a step ---- */

typedef struct instruction {
    zc_expr_op op;
    block_fn fn;
    int16_t slot, arg[3]; /* slots */
    int16_t input;
    float value; /* CONST */
    zc_dtype dtype, from;
} instruction;

typedef struct program {
    int count, slots;
    int nresults;
    int16_t result[ZC_EXPR_MAX_RESULTS]; /* slots */
    instruction code[ZC_EXPR_MAX_NODES];
} program;

static bool is_block_dtype(zc_dtype d)
{
    return d == ZC_F32 || d == ZC_F16 || d == ZC_BF16 || d == ZC_BOOL;
}

/* Slots are given to nodes in order and taken back after their last use. */
static bool assign_slots(const zc_expr *e, program *p)
{
    int last[ZC_EXPR_MAX_NODES] = {0};
    bool taken[SLOTS_MAX] = {false};
    for (int i = 0; i < e->count; i++)
        for (int a = 0; a < 3; a++)
            if (e->nodes[i].arg[a] >= 0) last[e->nodes[i].arg[a]] = i;
    for (int r = 0; r < e->nresults; r++) last[e->result[r]] = e->count;
    for (int i = 0; i < e->count; i++) {
        int s = 0;
        while (s < SLOTS_MAX && taken[s]) s++;
        if (s == SLOTS_MAX) return false;
        taken[s] = true;
        p->code[i].slot = (int16_t)s;
        if (s >= p->slots) p->slots = s + 1;
        for (int a = 0; a < 3; a++) {
            int n = e->nodes[i].arg[a];
            p->code[i].arg[a] = n >= 0 ? p->code[n].slot : -1;
            if (n >= 0 && last[n] == i) taken[p->code[n].slot] = false;
        }
    }
    p->nresults = e->nresults;
    for (int r = 0; r < e->nresults; r++) p->result[r] = p->code[e->result[r]].slot;
    return true;
}

/* false: not an expression for blocks. */
static bool translate(const zc_expr *e, program *p)
{
    zc_simd level = zc_simd_level();
    p->count = e->count;
    p->slots = 0;
    for (int i = 0; i < e->count; i++) {
        const zc_expr_node *n = &e->nodes[i];
        instruction *in = &p->code[i];
        zc_dtype from = n->arg[0] >= 0 ? e->nodes[n->arg[0]].dtype : n->dtype;
        *in = (instruction){.op = n->op, .input = n->input, .dtype = n->dtype, .from = from};
        if (!is_block_dtype(n->dtype)) return false;
        if (n->op == ZC_EX_CONST) in->value = n->dtype == ZC_BOOL ? (float)n->i : (float)n->f;
        bool plain = n->op == ZC_EX_CONST || n->op == ZC_EX_INPUT || n->op == ZC_EX_CAST;
        if (!plain && !(in->fn = block_function(n->op, level))) return false;
        bool needs_float = n->op == ZC_EX_POW;
        if (needs_float && !zc_dtype_is_float(e->nodes[n->arg[1]].dtype)) return false;
    }
    return assign_slots(e, p);
}

/* ---- inputs and outputs of a block ---- */

typedef enum access { WHOLE, SCALAR, STRIDED } access;

typedef struct stream {
    const zc_tensor *t;
    access how;
    int rank; /* STRIDED: axes merged as far as this input allows */
    int64_t dims[ZC_MAX_RANK], strides[ZC_MAX_RANK];
} stream;

typedef struct job {
    const program *p;
    stream in[ZC_EXPR_MAX_INPUTS];
    zc_tensor *out;
    int nout;
} job;

static stream stream_of(const zc_tensor *t, const zc_tensor *out)
{
    int64_t strides[ZC_MAX_RANK];
    stream s = {.t = t, .how = STRIDED};
    zc_broadcast_strides(t, out, strides);
    for (int d = 0; d < out->rank; d++) {
        if (out->dims[d] == 1) continue;
        bool merge = s.rank && s.strides[s.rank - 1] == strides[d] * out->dims[d];
        if (merge) {
            s.dims[s.rank - 1] *= out->dims[d];
            s.strides[s.rank - 1] = strides[d];
        } else {
            s.dims[s.rank] = out->dims[d];
            s.strides[s.rank++] = strides[d];
        }
    }
    if (s.rank == 0 || (s.rank == 1 && s.strides[0] == 0)) s.how = SCALAR;
    if (s.rank == 1 && s.strides[0] == 1) s.how = WHOLE;
    return s;
}

/* Elements [at, at+n) of a tensor as floats. */
static void load_run(const zc_tensor *t, int64_t at, int64_t n, float *to)
{
    switch (t->dtype) {
    case ZC_F32:
        memcpy(to, (const float *)t->data + at, (size_t)n * sizeof *to);
        return;
    case ZC_F16:
        for (int64_t i = 0; i < n; i++) to[i] = zc_f16_to_f32(((const uint16_t *)t->data)[at + i]);
        return;
    case ZC_BF16:
        for (int64_t i = 0; i < n; i++) to[i] = zc_bf16_to_f32(((const uint16_t *)t->data)[at + i]);
        return;
    default:
        for (int64_t i = 0; i < n; i++) to[i] = ((const uint8_t *)t->data)[at + i] != 0;
    }
}

static void load_strided(const stream *s, int64_t at, int64_t n, float *to)
{
    int64_t idx[ZC_MAX_RANK], inner = s->dims[s->rank - 1], step = s->strides[s->rank - 1], off = 0;
    int64_t rest = at;
    for (int d = s->rank - 1; d >= 0; d--) {
        idx[d] = rest % s->dims[d];
        rest /= s->dims[d];
    }
    for (int64_t done = 0; done < n;) {
        off = 0;
        for (int d = 0; d < s->rank - 1; d++) off += idx[d] * s->strides[d];
        int64_t run = inner - idx[s->rank - 1];
        if (run > n - done) run = n - done;
        if (step == 1) {
            load_run(s->t, off + idx[s->rank - 1], run, to + done);
        } else {
            float v;
            load_run(s->t, off, 1, &v);
            for (int64_t i = 0; i < run; i++) to[done + i] = v;
        }
        done += run;
        idx[s->rank - 1] = 0;
        for (int d = s->rank - 2; d >= 0 && ++idx[d] == s->dims[d]; d--) idx[d] = 0;
    }
}

static void store_run(zc_tensor *t, int64_t at, int64_t n, const float *from)
{
    switch (t->dtype) {
    case ZC_F32:
        memcpy((float *)t->data + at, from, (size_t)n * sizeof *from);
        return;
    case ZC_F16:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)t->data)[at + i] = zc_f32_to_f16(from[i]);
        return;
    case ZC_BF16:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)t->data)[at + i] = zc_f32_to_bf16(from[i]);
        return;
    default:
        for (int64_t i = 0; i < n; i++) ((uint8_t *)t->data)[at + i] = from[i] != 0;
    }
}

/* ---- running ---- */

static void convert(const instruction *c, const float *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float v = from[i];
        if (c->dtype == ZC_BOOL) v = v != 0;
        if (c->dtype == ZC_F16) v = zc_f16_to_f32(zc_f32_to_f16(v));
        if (c->dtype == ZC_BF16) v = zc_bf16_to_f32(zc_f32_to_bf16(v));
        to[i] = v;
    }
}

static void run_block(const job *j, int64_t at, int64_t n, float (*slots)[BLOCK])
{
    int64_t whole = (n + 15) & ~(int64_t)15; /* whole vectors of every instruction set */
    for (int i = 0; i < j->p->count; i++) {
        const instruction *c = &j->p->code[i];
        float *d = slots[c->slot];
        if (c->fn) {
            c->fn(d, slots[c->arg[0]], c->arg[1] >= 0 ? slots[c->arg[1]] : NULL,
                  c->arg[2] >= 0 ? slots[c->arg[2]] : NULL, whole);
        } else if (c->op == ZC_EX_CAST) {
            convert(c, slots[c->arg[0]], d, n);
        } else if (c->op == ZC_EX_INPUT && j->in[c->input].how == WHOLE) {
            load_run(j->in[c->input].t, at, n, d);
        } else if (c->op == ZC_EX_INPUT && j->in[c->input].how == STRIDED) {
            load_strided(&j->in[c->input], at, n, d);
        } else {
            float v = c->value;
            if (c->op == ZC_EX_INPUT) load_run(j->in[c->input].t, 0, 1, &v);
            for (int64_t k = 0; k < whole; k++) d[k] = v;
        }
    }
    for (int r = 0; r < j->p->nresults && r < j->nout; r++)
        if (zc_present(&j->out[r])) store_run(&j->out[r], at, n, slots[j->p->result[r]]);
}

static void run_part(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    float slots[SLOTS_MAX][BLOCK] __attribute__((aligned(64)));
    memset(slots, 0,
           (size_t)j->p->slots * sizeof *slots); /* what lies past a short block is defined */
    for (int64_t b = begin; b < end; b++) {
        int64_t at = b * BLOCK, all = zc_tensor_numel(j->out);
        run_block(j, at, all - at < BLOCK ? all - at : BLOCK, slots);
    }
}

/* The program for this step: kept in the state; count 0 says that the reference kernel must run. */
static program *program_of(zc_kctx *k)
{
    if (k->state && k->state->p) return k->state->p;
    program *p = zc_calloc(1, sizeof *p);
    zc_expr *e = zc_scratch_get(k->scratch, sizeof *e);
    if (!p || !e || zc_pointwise_parse(k, e) != ZC_OK || !translate(e, p)) {
        if (p) p->count = 0;
    }
    if (p && k->state) *k->state = (zc_kstate){.p = p, .destroy = free, .bytes = sizeof *p};
    return p;
}

zc_status zc_fast_pointwise(zc_kctx *k)
{
    bool fits = k->nin <= ZC_EXPR_MAX_INPUTS;
    for (int i = 0; fits && i < k->nout; i++)
        fits = !zc_present(&k->out[i]) || is_block_dtype(k->out[i].dtype);
    for (int i = 0; fits && i < k->nin; i++) fits = is_block_dtype(k->in[i].dtype);
    program *p = fits ? program_of(k) : NULL;
    zc_status status = ZC_OK;
    if (!p || !p->count) {
        status = zc_k_pointwise(k);
    } else if (zc_tensor_numel(&k->out[0]) > 0) {
        job j = {.p = p, .out = k->out, .nout = k->nout};
        for (int i = 0; i < k->nin; i++) j.in[i] = stream_of(&k->in[i], &k->out[0]);
        int64_t blocks = (zc_tensor_numel(&k->out[0]) + BLOCK - 1) / BLOCK;
        zc_parallel(k, blocks, 16, run_part, &j);
    }
    if (!k->state) free(p);
    return status;
}
