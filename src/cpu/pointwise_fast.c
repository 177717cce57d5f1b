/* Pointwise expressions over f32, f16, bf16 and bool, a block of elements at a time: each node of
 * the expression is one loop over a block that stays in cache. Other element types take the
 * reference kernel. What makes bytes of bytes is run so once for all bytes that there are, and is
 * one loop from then on (byte_map.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/byte_map.h"
#include "cpu/integer.h"
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

/* Of 32-bit integers. */
static block_fn integer_function(zc_expr_op op, zc_simd level)
{
    switch (op) {
    case ZC_EX_ADD:
        return SIMD_PICK(level, pw_int_ADD);
    case ZC_EX_SUB:
        return SIMD_PICK(level, pw_int_SUB);
    case ZC_EX_MUL:
        return SIMD_PICK(level, pw_int_MUL);
    case ZC_EX_EQ:
        return SIMD_PICK(level, pw_int_EQ);
    case ZC_EX_NE:
        return SIMD_PICK(level, pw_int_NE);
    case ZC_EX_LT:
        return SIMD_PICK(level, pw_int_LT);
    case ZC_EX_LE:
        return SIMD_PICK(level, pw_int_LE);
    case ZC_EX_GT:
        return SIMD_PICK(level, pw_int_GT);
    case ZC_EX_GE:
        return SIMD_PICK(level, pw_int_GE);
    case ZC_EX_CAST:
        return SIMD_PICK(level, pw_int_CAST);
    default:
        return NULL;
    }
}

/* To bytes. */
static block_fn byte_function(zc_dtype dtype, zc_simd level)
{
    return dtype == ZC_U8 ? SIMD_PICK(level, pw_cast_u8) : SIMD_PICK(level, pw_cast_i8);
}

/* Bounds, as of Relu and Clip; NULL: node i is something else. */
static block_fn bound_function(const zc_expr *e, int i, zc_simd level)
{
    const zc_expr_node *n = &e->nodes[i];
    const zc_expr_node *b = n->arg[1] >= 0 ? &e->nodes[n->arg[1]] : NULL;
    if (!b || b->op != ZC_EX_CONST || !zc_dtype_is_float(b->dtype) || isnan(b->f)) return NULL;
    return n->op == ZC_EX_MAX   ? SIMD_PICK(level, pw_MAX_NUMBER)
           : n->op == ZC_EX_MIN ? SIMD_PICK(level, pw_MIN_NUMBER)
                                : NULL;
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
    zc_byte_map *map;                    /* the same, of bytes alone; NULL: none */
    instruction code[ZC_EXPR_MAX_NODES];
} program;

static bool is_block_dtype(zc_dtype d)
{
    return d == ZC_F32 || d == ZC_F16 || d == ZC_BF16 || d == ZC_F8E4M3FN || d == ZC_BOOL;
}

/* Is node i an integer operand of which nothing is used but its conversion to f32? A block holds
 * that. */
static bool is_converted(const zc_expr *e, int i)
{
    const zc_expr_node *n = &e->nodes[i];
    bool kind = n->dtype == ZC_I64 || n->dtype == ZC_U8 || n->dtype == ZC_I8;
    if (n->op != ZC_EX_INPUT || !kind) return false;
    for (int u = 0; u < e->count; u++)
        for (int a = 0; a < 3; a++)
            if (e->nodes[u].arg[a] == i &&
                (e->nodes[u].op != ZC_EX_CAST || e->nodes[u].dtype != ZC_F32))
                return false;
    for (int r = 0; r < e->nresults; r++)
        if (e->result[r] == i) return false;
    return true;
}

/* Is node i a byte that is made of f32, and stored or made f32 again? */
static bool is_byte_result(const zc_expr *e, int i)
{
    const zc_expr_node *n = &e->nodes[i];
    if (n->op != ZC_EX_CAST || (n->dtype != ZC_U8 && n->dtype != ZC_I8)) return false;
    for (int u = i + 1; u < e->count; u++)
        for (int a = 0; a < 3; a++)
            if (e->nodes[u].arg[a] == i &&
                (e->nodes[u].op != ZC_EX_CAST || e->nodes[u].dtype != ZC_F32))
                return false;
    return e->nodes[n->arg[0]].dtype == ZC_F32;
}

/* 32-bit integers are added, subtracted, multiplied, compared with one another and turned into f32;
 * nothing else. */
static bool is_integer_work(const zc_expr *e, int i)
{
    const zc_expr_node *n = &e->nodes[i];
    int integers = 0, args = 0;
    for (int a = 0; a < 3 && n->arg[a] >= 0; a++, args++)
        integers += e->nodes[n->arg[a]].dtype == ZC_I32;
    if (n->op == ZC_EX_CAST) return n->dtype != ZC_I32 && (!integers || n->dtype == ZC_F32);
    if (n->dtype == ZC_I32) return integers == args;
    return !integers || (n->dtype == ZC_BOOL && integers == 2 && args == 2);
}

/* Slots are given to nodes in order and taken back after their last use. Those of constants, which
 * are filled once, come first and are kept. */
static bool assign_slots(const zc_expr *e, program *p)
{
    int last[ZC_EXPR_MAX_NODES] = {0};
    bool taken[SLOTS_MAX] = {false};
    for (int i = 0; i < e->count; i++) {
        if (e->nodes[i].op != ZC_EX_CONST) continue;
        if (p->slots == SLOTS_MAX) return false;
        taken[p->slots] = true;
        p->code[i].slot = (int16_t)p->slots++;
    }
    for (int i = 0; i < e->count; i++)
        for (int a = 0; a < 3; a++)
            if (e->nodes[i].arg[a] >= 0) last[e->nodes[i].arg[a]] = i;
    for (int r = 0; r < e->nresults; r++) last[e->result[r]] = e->count;
    for (int i = 0; i < e->count; i++) {
        int s = 0;
        if (e->nodes[i].op == ZC_EX_CONST) continue;
        while (s < SLOTS_MAX && taken[s]) s++;
        if (s == SLOTS_MAX) return false;
        taken[s] = true;
        p->code[i].slot = (int16_t)s;
        if (s >= p->slots) p->slots = s + 1;
        for (int a = 0; a < 3; a++) {
            int n = e->nodes[i].arg[a];
            p->code[i].arg[a] = n >= 0 ? p->code[n].slot : -1;
            bool kept = n >= 0 && e->nodes[n].op == ZC_EX_CONST;
            if (n >= 0 && last[n] == i && !kept) taken[p->code[n].slot] = false;
        }
    }
    p->nresults = e->nresults;
    for (int r = 0; r < e->nresults; r++) p->result[r] = p->code[e->result[r]].slot;
    return true;
}

/* The number, or an integer's bits. */
static float constant_of(const zc_expr_node *n)
{
    if (n->dtype == ZC_BOOL) return (float)n->i;
    if (n->dtype != ZC_I32) return (float)n->f;
    const int32_t i = (int32_t)n->i;
    float v;
    memcpy(&v, &i, sizeof v);
    return v;
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
        const bool integer = n->dtype == ZC_I32;
        if (!is_integer_work(e, i)) return false;
        const bool byte = is_byte_result(e, i);
        if (!is_block_dtype(n->dtype) && !integer && !byte && !is_converted(e, i)) return false;
        if (n->op == ZC_EX_CONST) in->value = constant_of(n);
        const bool of_integers = integer || from == ZC_I32;
        const bool kept = n->op == ZC_EX_CAST && n->dtype == ZC_F32 && !of_integers;
        bool plain = n->op == ZC_EX_CONST || n->op == ZC_EX_INPUT ||
                     (n->op == ZC_EX_CAST && !byte && !of_integers && !kept);
        in->fn = plain         ? NULL
                 : kept        ? SIMD_PICK(level, pw_copy)
                 : byte        ? byte_function(n->dtype, level)
                 : of_integers ? integer_function(n->op, level)
                               : block_function(n->op, level);
        if (!plain && !in->fn) return false;
        block_fn bound = bound_function(e, i, level);
        if (bound) in->fn = bound;
        bool needs_float = n->op == ZC_EX_POW;
        if (needs_float && !zc_dtype_is_float(e->nodes[n->arg[1]].dtype)) return false;
    }
    return assign_slots(e, p);
}

/* ---- inputs and outputs of a block ---- */

#define PERIOD_MAX 8192

typedef enum access { WHOLE, PERIODIC, STRIDED } access;

typedef struct stream {
    const zc_tensor *t;
    access how;
    int rank; /* STRIDED: axes merged as far as this input allows */
    int64_t dims[ZC_MAX_RANK], strides[ZC_MAX_RANK];
    int64_t period; /* PERIODIC: elements that come over and over, as one a channel, or one */
    const float *repeated; /* so that each block finds its own in one piece */
} stream;

typedef struct job {
    const program *p;
    const zc_byte_map *map; /* of operands that are WHOLE; NULL: blocks */
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
    if (s.rank == 1 && s.strides[0] == 0) s.period = 1;
    if (s.rank == 2 && s.strides[0] == 0 && s.strides[1] == 1) s.period = s.dims[1];
    if (s.period > 0 && s.period <= PERIOD_MAX) s.how = PERIODIC;
    if (s.rank == 0 || (s.rank == 1 && s.strides[0] == 1)) s.how = WHOLE;
    return s;
}

/* Elements [at, at+n) of a tensor as floats. */
static void load_run(const zc_tensor *t, int64_t at, int64_t n, float *to)
{
    switch (t->dtype) {
    case ZC_F32:
    case ZC_I32: /* its bits */
        memcpy(to, (const float *)t->data + at, (size_t)n * sizeof *to);
        return;
    case ZC_F16:
        for (int64_t i = 0; i < n; i++) to[i] = zc_f16_to_f32(((const uint16_t *)t->data)[at + i]);
        return;
    case ZC_BF16:
        for (int64_t i = 0; i < n; i++) to[i] = zc_bf16_to_f32(((const uint16_t *)t->data)[at + i]);
        return;
    case ZC_F8E4M3FN:
        for (int64_t i = 0; i < n; i++)
            to[i] = zc_f8_to_f32(t->dtype, ((const uint8_t *)t->data)[at + i]);
        return;
    case ZC_I64:
        for (int64_t i = 0; i < n; i++) to[i] = (float)((const int64_t *)t->data)[at + i];
        return;
    case ZC_U8:
        SIMD_PICK(zc_simd_level(), pw_load_u8)((const uint8_t *)t->data + at, n, to);
        return;
    case ZC_I8:
        SIMD_PICK(zc_simd_level(), pw_load_i8)((const int8_t *)t->data + at, n, to);
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

/* What a kernel has yet to make, its result, is never among them. */
static zc_status repeat_periods(zc_kctx *k, stream *in, int nin)
{
    for (stream *s = in; s < in + nin; s++) {
        if (s->how != PERIODIC) continue;
        const int64_t n = s->period + BLOCK;
        float *to = zc_scratch_get(k->scratch, (size_t)n * sizeof *to);
        if (!to) return zc_fail_nomem(k->diag, "repeated elements", (size_t)n * sizeof *to);
        load_run(s->t, 0, s->period, to);
        for (int64_t i = s->period; i < n; i++) to[i] = to[i - s->period];
        s->repeated = to;
    }
    return ZC_OK;
}

static void store_run(zc_tensor *t, int64_t at, int64_t n, const float *from)
{
    switch (t->dtype) {
    case ZC_F32:
    case ZC_I32:
        memcpy((float *)t->data + at, from, (size_t)n * sizeof *from);
        return;
    case ZC_F16:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)t->data)[at + i] = zc_f32_to_f16(from[i]);
        return;
    case ZC_BF16:
        for (int64_t i = 0; i < n; i++) ((uint16_t *)t->data)[at + i] = zc_f32_to_bf16(from[i]);
        return;
    case ZC_F8E4M3FN:
        for (int64_t i = 0; i < n; i++)
            ((uint8_t *)t->data)[at + i] = zc_f32_to_f8(t->dtype, from[i], true);
        return;
    case ZC_U8:
        SIMD_PICK(zc_simd_level(), pw_store_u8)(from, n, (uint8_t *)t->data + at);
        return;
    case ZC_I8:
        SIMD_PICK(zc_simd_level(), pw_store_i8)(from, n, (int8_t *)t->data + at);
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
        if (c->dtype == ZC_F8E4M3FN) v = zc_f8_to_f32(c->dtype, zc_f32_to_f8(c->dtype, v, true));
        to[i] = v;
    }
}

/* Where the values of a block are: a slot's own room, or an operand's memory. */
typedef struct frame {
    float room[SLOTS_MAX][BLOCK] __attribute__((aligned(64)));
    const float *at[SLOTS_MAX];
} frame;

static void spread(float v, float *to)
{
    for (int64_t k = 0; k < BLOCK; k++) to[k] = v;
}

static void start(const program *p, frame *f)
{
    memset(f->room, 0,
           (size_t)p->slots * sizeof *f->room); /* what lies past a short block is defined */
    for (int i = 0; i < p->slots; i++) f->at[i] = f->room[i];
    for (int i = 0; i < p->count; i++)
        if (p->code[i].op == ZC_EX_CONST) spread(p->code[i].value, f->room[p->code[i].slot]);
}

static void load_input(const stream *s, int64_t at, int64_t n, bool whole, frame *f, int slot)
{
    float *room = f->room[slot];
    f->at[slot] = room;
    if (s->how == STRIDED) {
        load_strided(s, at, n, room);
    } else if (s->how == PERIODIC) {
        f->at[slot] = s->repeated + at % s->period;
    } else if (whole && s->t->dtype == ZC_F32) {
        f->at[slot] = (const float *)s->t->data + at;
    } else {
        load_run(s->t, at, n, room);
    }
}

/* Where instruction i puts its result: what comes last may lie where it belongs at once. */
static float *room_of(const job *j, int i, int64_t at, bool whole, frame *f)
{
    const instruction *c = &j->p->code[i];
    bool direct = whole && i == j->p->count - 1 && j->p->nresults == 1 && j->nout == 1 &&
                  j->p->result[0] == c->slot && j->out->dtype == ZC_F32;
    float *to = direct ? (float *)j->out->data + at : f->room[c->slot];
    f->at[c->slot] = to;
    return to;
}

static void run_block(const job *j, int64_t at, int64_t n, frame *f)
{
    int64_t vectors = (n + 15) & ~(int64_t)15; /* whole vectors of every instruction set */
    bool whole = n == vectors;
    for (int i = 0; i < j->p->count; i++) {
        const instruction *c = &j->p->code[i];
        const float *a[3];
        for (int k = 0; k < 3; k++) a[k] = c->arg[k] >= 0 ? f->at[c->arg[k]] : NULL;
        if (c->fn)
            c->fn(room_of(j, i, at, whole, f), a[0], a[1], a[2], vectors);
        else if (c->op == ZC_EX_CAST)
            convert(c, a[0], room_of(j, i, at, whole, f), n);
        else if (c->op == ZC_EX_INPUT)
            load_input(&j->in[c->input], at, n, whole, f, c->slot);
    }
    for (int r = 0; r < j->p->nresults && r < j->nout; r++) {
        const float *made = f->at[j->p->result[r]];
        zc_tensor *out = &j->out[r];
        if (zc_present(out) && made != (const float *)out->data + at) store_run(out, at, n, made);
    }
}

static void run_map(const job *j, int64_t at, int64_t n)
{
    const uint8_t *x = j->in[0].t->data, *y = j->in[1].t ? j->in[1].t->data : x;
    zc_byte_map_run(j->map, x + at, y + at, n, (uint8_t *)j->out->data + at);
}

/* `rows` stretches of n elements, `step` apart. */
static void run_range(const job *j, int64_t at, int64_t rows, int64_t n, int64_t step)
{
    frame f;
    for (int64_t r = 0; j->map && r < rows; r++) run_map(j, at + r * step, n);
    if (j->map) return;
    start(j->p, &f);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < n; i += BLOCK)
            run_block(j, at + r * step + i, n - i < BLOCK ? n - i : BLOCK, &f);
}

static void run_part(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t all = zc_tensor_numel(j->out);
    int64_t at = begin * BLOCK, to = end * BLOCK < all ? end * BLOCK : all;
    run_range(j, at, 1, to - at, 0);
}

/* ---- bytes of bytes ---- */

typedef struct byte_work {
    const zc_kctx *k;
    const program *p;
} byte_work;

/* The operands as tensors of one axis. */
static void run_bytes(void *arg, const uint8_t *x, const uint8_t *y, int64_t n, uint8_t *to)
{
    const byte_work *w = arg;
    const uint8_t *from[] = {x, y};
    zc_tensor in[2], out = {.dtype = w->k->out[0].dtype, .rank = 1, .dims = {n}, .data = to};
    job j = {.p = w->p, .out = &out, .nout = 1};
    for (int i = 0; i < w->k->nin; i++) {
        in[i] = (zc_tensor){
            .dtype = w->k->in[i].dtype, .rank = 1, .dims = {n}, .data = (void *)(uintptr_t)from[i]};
        j.in[i] = stream_of(&in[i], &out);
    }
    run_range(&j, 0, 1, n, 0);
}

static bool is_of_bytes(const zc_kctx *k)
{
    bool is = k->nin >= 1 && k->nin <= 2 && k->nout == 1 && zc_is_byte(&k->out[0]);
    for (int i = 0; is && i < k->nin; i++) is = zc_is_byte(&k->in[i]);
    return is;
}

/* NULL: there is none, or running blocks costs less than finding it. */
static zc_byte_map *map_of(const zc_kctx *k, const zc_expr *e, const program *p)
{
    enum { RUNS = 16 };
    zc_affine_line line;
    byte_work w = {k, p};
    if (!is_of_bytes(k) || zc_tensor_numel(&k->out[0]) < zc_byte_map_all(k->nin) / RUNS)
        return NULL;
    const bool is_line = zc_affine_line_of(e, e->result[0], &line);
    return zc_byte_map_new(k->nin, run_bytes, &w, is_line ? &line : NULL, k->out[0].dtype == ZC_I8);
}

static void free_program(void *p)
{
    if (p) free(((program *)p)->map);
    free(p);
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
    if (!p || !k->state) return p;
    if (p->count) p->map = map_of(k, e, p);
    *k->state = (zc_kstate){.p = p,
                            .destroy = free_program,
                            .bytes = sizeof *p + (p->map ? zc_byte_map_bytes(p->map) : 0)};
    return p;
}

static bool is_stored(zc_dtype d)
{
    return is_block_dtype(d) || d == ZC_I32 || d == ZC_U8 || d == ZC_I8;
}

/* false: the reference kernel must run. */
static bool prepare(zc_kctx *k, job *j)
{
    bool fits = k->nin <= ZC_EXPR_MAX_INPUTS;
    for (int i = 0; fits && i < k->nout; i++)
        fits = !zc_present(&k->out[i]) || is_stored(k->out[i].dtype);
    *j = (job){.p = fits ? program_of(k) : NULL, .out = k->out, .nout = k->nout};
    if (!j->p || !j->p->count) return false;
    j->map = j->p->map;
    for (int i = 0; i < k->nin; i++) {
        j->in[i] = stream_of(&k->in[i], &k->out[0]);
        if (j->in[i].how != WHOLE) j->map = NULL;
    }
    return true;
}

bool zc_pointwise_fits_blocks(zc_kctx *k)
{
    zc_kctx own = *k;
    job j;
    own.state = NULL;
    bool fits = prepare(&own, &j);
    free((void *)(uintptr_t)j.p);
    return fits;
}

zc_status zc_fast_pointwise(zc_kctx *k)
{
    job j;
    zc_status status = ZC_OK;
    if (!prepare(k, &j)) {
        status = zc_k_pointwise(k);
    } else if (zc_tensor_numel(&k->out[0]) > 0) {
        int64_t blocks = (zc_tensor_numel(&k->out[0]) + BLOCK - 1) / BLOCK;
        status = repeat_periods(k, j.in, k->nin);
        if (status == ZC_OK) zc_parallel(k, blocks, j.map ? 64 : 16, run_part, &j);
    }
    if (!k->state) free((void *)(uintptr_t)j.p);
    return status;
}

/* ---- as a part of other kernels ---- */

struct zc_finish {
    zc_fused room;
    job j;
};

zc_status zc_finish_begin(zc_kctx *k, const zc_finish **f)
{
    const zc_kctx *step = k->step;
    *f = NULL;
    if (!step || !step->epilogue_state) return ZC_OK;
    const zc_tensor plain = zc_plain_result(step);
    if (zc_dtype_bits(plain.dtype) > zc_dtype_bits(step->out[0].dtype))
        return ZC_OK; /* elsewhere */
    zc_finish *made = zc_scratch_get(k->scratch, sizeof *made);
    if (!made) return zc_fail_nomem(k->diag, "epilogue", sizeof *made);
    zc_kctx work = zc_fused_step(step, zc_op_epilogue(step->info, step->attrs), &plain,
                                 zc_op_epilogue_first(step->info, step->attrs), step->nin,
                                 &step->out[0], &made->room);
    work.state = step->epilogue_state;
    if (!prepare(&work, &made->j)) return ZC_OK;
    ZC_TRY(repeat_periods(k, made->j.in, work.nin));
    k->finished = true;
    *f = made;
    return ZC_OK;
}

void zc_finish_run(const zc_finish *f, int64_t at, int64_t rows, int64_t n, int64_t step)
{
    if (f) run_range(&f->j, at, rows, n, step);
}
