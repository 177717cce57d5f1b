#include "runtime/subviews.h"

#include <stdlib.h>

#include "op/slice.h"
#include "runtime/gpu.h"

/* ---- kernels ---- */

const zc_pkernel *zc_session_kernel(const zc_session *s, const zc_pstep *step)
{
    if (!step->nchoices) return NULL;
    if (s->gpu) return &s->gpu->image->program->kernels[zc_gpu_kernel(s, step)];
    const zc_pchoice *c = zc_program_choice(step, (uint32_t)s->arch, s->dim_values);
    return c ? &s->program->kernels[c->kernel] : NULL;
}

/* ---- steps that say what lies in what ---- */

/* Lines of the last axis of `whole` hold those of the parts, one behind the other from `first` on.
 */
typedef struct lines {
    uint32_t whole, n;
    const uint32_t *parts;
    int64_t first;
} lines;

/* dtype ZC_NONE: absent, or known only when run. */
static zc_tensor type_of(const zc_session *s, uint32_t v)
{
    const zc_pvalue *value = &s->program->values[v];
    if (value->kind != ZC_P_INPUT) return s->values[v];
    zc_tensor t = {.dtype = value->dtype, .rank = value->rank};
    for (int d = 0; d < t.rank; d++) t.dims[d] = zc_dim_value(value->dims[d], s->dim_values);
    return t;
}

static int64_t length(const zc_session *s, uint32_t v)
{
    const zc_tensor t = type_of(s, v);
    return t.dims[t.rank - 1];
}

/* Element e of an operand that the host has. */
static int64_t element(const zc_session *s, const zc_pstep *step, uint32_t i, int64_t e)
{
    const zc_tensor *t = &s->values[step->in[i]];
    return zc_load_i64(t->dtype, t->data, e);
}

static bool is_constant(const zc_session *s, uint32_t v)
{
    return s->program->values[v].kind == ZC_P_CONST;
}

/* Neighbours of the last axis, and all of the others? Sets where they begin. */
static bool slice_first(const zc_session *s, const zc_pstep *step, int64_t *first)
{
    const zc_tensor x = type_of(s, step->in[0]);
    const int last = x.rank - 1;
    const int64_t bounds = zc_tensor_numel(&s->values[step->in[1]]);
    int64_t count = x.dims[last];
    *first = 0;
    for (uint32_t i = 1; i < step->nin; i++)
        if (step->in[i] &&
            (!is_constant(s, step->in[i]) || zc_tensor_numel(&s->values[step->in[i]]) != bounds))
            return false;
    for (int64_t j = 0; j < bounds; j++) {
        int64_t axis = step->nin > 3 && step->in[3] ? element(s, step, 3, j) : j;
        int64_t by = step->nin > 4 && step->in[4] ? element(s, step, 4, j) : 1;
        if (by != 1) return false;
        if (axis == last || axis == -1)
            zc_slice_span(x.dims[last], element(s, step, 1, j), element(s, step, 2, j), by, first,
                          &count);
    }
    const zc_tensor y = type_of(s, step->out[0]);
    return y.rank == x.rank && count == y.dims[last];
}

static bool fits(const zc_session *s, const lines *l)
{
    const zc_tensor whole = type_of(s, l->whole);
    int64_t sum = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const zc_tensor part = type_of(s, l->parts[i]);
        if (!l->parts[i] || part.dtype != whole.dtype || part.rank != whole.rank) return false;
        for (int d = 0; d + 1 < whole.rank; d++)
            if (part.dims[d] != whole.dims[d]) return false;
        if (!zc_add_i64(sum, length(s, l->parts[i]), &sum)) return false;
    }
    return l->first >= 0 && sum <= length(s, l->whole) - l->first;
}

/* Is it along the last axis? Of a Slice, sets l->first. */
static bool is_along_lines(const zc_session *s, const zc_pstep *step, lines *l)
{
    const int rank = type_of(s, l->whole).rank;
    if (rank < 1) return false;
    if (step->op == ZC_OP_Slice) return slice_first(s, step, &l->first);
    const int64_t axis = step->op == ZC_OP_Concat ? ((const zc_attrs_Concat *)step->attrs)->axis
                                                  : ((const zc_attrs_Split *)step->attrs)->axis;
    return axis == -1 || axis == rank - 1;
}

/* Of a step of block 0. */
static bool lines_of(const zc_session *s, const zc_pstep *step, lines *l)
{
    const zc_pkernel *k = zc_session_kernel(s, step);
    if (!k || k->pitched != ZC_PITCHED_ALL) return false;
    if (step->op == ZC_OP_Concat)
        *l = (lines){.whole = step->out[0], .n = step->nin, .parts = step->in};
    else if (step->op == ZC_OP_Split || step->op == ZC_OP_Slice)
        *l = (lines){.whole = step->in[0], .n = step->nout, .parts = step->out};
    else
        return false;
    return is_along_lines(s, step, l) && fits(s, l);
}

/* ---- which values may have a pitch ---- */

static bool is_planned(const zc_session *s, uint32_t v)
{
    return v && s->program->values[v].kind == ZC_P_STEP && s->program->values[v].planned;
}

static void forbid(bool *may, const uint32_t *values, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) may[values[i]] = false;
}

/* Operands that the step does not take with a pitch. */
static void forbid_step(const zc_session *s, const zc_pstep *step, bool *may)
{
    const zc_pkernel *k = zc_session_kernel(s, step);
    lines l;
    if (lines_of(s, step, &l)) return;
    /* That takes all, but not along its axis. */
    const uint32_t takes = k && k->pitched != ZC_PITCHED_ALL ? k->pitched : 0;
    for (uint32_t i = 0; i < step->nin; i++)
        if (i >= ZC_PITCHED_INPUTS || !(takes >> i & 1)) may[step->in[i]] = false;
    if (!(takes & ZC_PITCHED_RESULTS)) forbid(may, step->out, step->nout);
}

/* Values that a step of block 0 makes and no others read, all by kernels that take a pitch. */
static void find_may(const zc_session *s, bool *may)
{
    const zc_program *p = s->program;
    for (uint32_t v = 0; v < p->nvalues; v++) may[v] = is_planned(s, v);
    for (uint32_t b = 0; b < p->nblocks; b++) {
        const zc_pblock *block = &p->blocks[b];
        for (uint32_t i = 0; i < block->nsteps; i++) {
            const zc_pstep *step = &p->steps[block->steps[i]];
            if (b == 0)
                forbid_step(s, step, may);
            else
                forbid(may, step->in, step->nin);
        }
        forbid(may, block->outs, block->nouts);
    }
}

/* ---- what lies where ---- */

/* Which value a value lies in, itself where it lies alone, and from which element of a line on. Two
 * values that share elements of a root agree on them: a step that says so put each there. */
typedef struct place {
    uint32_t in;
    int64_t first;
} place;

typedef struct finder {
    zc_session *s;
    bool *may;        /* by value: have a pitch */
    place *places;    /* by value */
    uint32_t *slices; /* work space: those of one value */
} finder;

static place root_of(const finder *f, uint32_t v)
{
    place p = {.in = v};
    while (f->places[p.in].in != p.in) {
        p.first += f->places[p.in].first;
        p.in = f->places[p.in].in;
    }
    return p;
}

static bool lies_alone(const finder *f, uint32_t v)
{
    return f->places[v].in == v;
}

/* Are so many elements a multiple of what kernels read at once? */
static bool aligned(const zc_tensor *t, int64_t elements)
{
    enum { BITS = 128 };
    return elements % (BITS / (int64_t)zc_dtype_bits(t->dtype)) == 0;
}

/* A value that a kernel makes. */
static bool may_hold(const zc_session *s, uint32_t v)
{
    const zc_program *p = s->program;
    return is_planned(s, v) && zc_tensor_numel(&s->values[v]) <= INT32_MAX &&
           p->steps[p->blocks[0].steps[s->plan->first[v]]].nchoices;
}

/* Puts v, which lies alone, into another value where that may be. */
static void put(finder *f, uint32_t v, uint32_t to, int64_t first)
{
    const zc_tensor *t = &f->s->values[v];
    const place whole = root_of(f, to);
    const int64_t room = length(f->s, whole.in);
    if (f->may[v] && whole.in != v && may_hold(f->s, whole.in) && zc_dtype_bits(t->dtype) >= 8 &&
        zc_tensor_numel(t) > 0 && length(f->s, v) < room && aligned(t, whole.first + first) &&
        aligned(t, room))
        f->places[v] = (place){.in = to, .first = first};
}

/* Do all parts lie in another value, one behind the other, and are they the whole? */
static bool are_joined(const finder *f, const lines *l, place *at)
{
    int64_t first = 0;
    *at = root_of(f, l->parts[0]);
    for (uint32_t i = 0; i < l->n; first += length(f->s, l->parts[i++])) {
        const place p = root_of(f, l->parts[i]);
        if (lies_alone(f, l->parts[i]) || p.in != at->in || p.first != at->first + first)
            return false;
    }
    return first == length(f->s, l->whole);
}

static void put_whole(finder *f, const lines *l)
{
    place at;
    if (lies_alone(f, l->whole) && are_joined(f, l, &at)) put(f, l->whole, at.in, at.first);
}

static void put_parts(finder *f, const lines *l)
{
    int64_t first = l->first;
    for (uint32_t i = 0; i < l->n; first += length(f->s, l->parts[i++]))
        if (lies_alone(f, l->parts[i])) put(f, l->parts[i], l->whole, first);
}

/* The slice of the whole that begins there; 0: none. */
static uint32_t slice_at(const zc_session *s, uint32_t whole, int64_t first)
{
    const zc_program *p = s->program;
    lines l;
    for (uint32_t i = 0; i < p->blocks[0].nsteps; i++) {
        const zc_pstep *step = &p->steps[p->blocks[0].steps[i]];
        if (step->op == ZC_OP_Slice && step->in[0] == whole && lines_of(s, step, &l) &&
            l.first == first && length(s, step->out[0]) > 0)
            return step->out[0];
    }
    return 0;
}

/* Slices that follow each other are what a Split is, which the first of them stands for. */
static void put_sliced(finder *f, uint32_t whole)
{
    lines all = {.whole = whole, .parts = f->slices};
    const int64_t end = length(f->s, whole);
    for (int64_t first = 0; first < end; first += length(f->s, f->slices[all.n++]))
        if (!(f->slices[all.n] = slice_at(f->s, whole, first))) return;
    put_whole(f, &all);
}

/* The last steps say most: what they put together holds what earlier ones did. */
static void find_places(finder *f)
{
    const zc_program *p = f->s->program;
    lines l;
    for (uint32_t v = 0; v < p->nvalues; v++) f->places[v] = (place){.in = v};
    for (uint32_t i = p->blocks[0].nsteps; i-- > 0;) {
        const zc_pstep *step = &p->steps[p->blocks[0].steps[i]];
        if (!lines_of(f->s, step, &l)) continue;
        if (step->op != ZC_OP_Slice)
            put_whole(f, &l);
        else if (l.first == 0)
            put_sliced(f, l.whole);
        put_parts(f, &l);
    }
}

static void take_places(const finder *f)
{
    zc_session *s = f->s;
    for (uint32_t v = 1; v < s->program->nvalues; v++) {
        if (lies_alone(f, v)) continue;
        const place p = root_of(f, v);
        const size_t bytes = zc_dtype_bits(s->values[v].dtype) / 8;
        s->now->roots[v] = p.in;
        s->now->subviews[v] =
            (zc_subview){.pitch = length(s, p.in), .offset = (size_t)p.first * bytes};
        s->now->subviews[p.in].holds = true;
    }
}

zc_status zc_subviews_find(zc_session *s, zc_diag *diag)
{
    const uint32_t n = s->program->nvalues;
    finder f = {.s = s,
                .may = zc_calloc(n, sizeof *f.may),
                .places = zc_calloc(n, sizeof *f.places),
                .slices = zc_calloc(n, sizeof *f.slices)};
    const bool room = f.may && f.places && f.slices;
    if (room) {
        find_may(s, f.may);
        find_places(&f);
        take_places(&f);
    }
    free(f.may);
    free(f.places);
    free(f.slices);
    return room ? ZC_OK : zc_fail_nomem(diag, "subviews", n);
}

bool zc_subviews_in_place(const zc_session *s, const zc_pstep *step)
{
    const zc_subview *subviews = s->now->subviews;
    lines l;
    if (!lines_of(s, step, &l)) return false;
    int64_t first = l.first;
    const size_t bytes = zc_dtype_bits(s->values[l.whole].dtype) / 8;
    for (uint32_t i = 0; i < l.n; first += length(s, l.parts[i++])) {
        const zc_subview *part = &subviews[l.parts[i]];
        if (!part->pitch || s->roots[l.parts[i]] != s->roots[l.whole] ||
            part->offset != subviews[l.whole].offset + (size_t)first * bytes)
            return false;
    }
    return true;
}
