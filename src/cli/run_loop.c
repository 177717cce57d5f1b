/* Runs: once, or in a loop with outputs fed back and inputs taken in parts. */
#include <stdlib.h>
#include <string.h>

#include "cli/run.h"

typedef struct feed {
    size_t output, input;
} feed;

typedef struct loop {
    const zc_plan *plan;
    zc_session *session;
    const run_options *o;
    zc_plan_info info;
    cli_inputs in;
    cli_values values;
    feed feeds[CLI_LIST_MAX];
    cli_slice *slices; /* by input */
    bool *fed;         /* by input */
    bool *kept;        /* by output: of every run */
    run_results *out;
    zc_diag *diag;
} loop;

/* ---- names ---- */

static const char *io_name(const loop *l, bool is_input, size_t i)
{
    zc_io_info io;
    zc_status status =
        is_input ? zc_plan_input(l->plan, i, &io, NULL) : zc_plan_output(l->plan, i, &io, NULL);
    return status == ZC_OK ? io.name : "";
}

/* The input or output of a name of n bytes; the number of them when there is none. */
static size_t find(const loop *l, bool is_input, const char *name, size_t n)
{
    size_t count = is_input ? l->info.inputs : l->info.outputs, i = 0;
    for (; i < count; i++) {
        const char *have = io_name(l, is_input, i);
        if (strlen(have) == n && memcmp(have, name, n) == 0) break;
    }
    return i;
}

static zc_status unknown(const loop *l, bool is_input, const char *name, size_t n)
{
    size_t count = is_input ? l->info.inputs : l->info.outputs;
    zc_buf names = {0};
    char given[256];
    snprintf(given, sizeof given, "%.*s", (int)(n < sizeof given ? n : sizeof given - 1), name);
    for (size_t i = 0; i < count; i++)
        zc_buf_printf(&names, "%s" ZC_NAME, i ? ", " : "", io_name(l, is_input, i));
    zc_status status =
        zc_fail(l->diag, ZC_ERR_ARG, given, "the plan has no %s of this name (it has %s)",
                is_input ? "input" : "output", names.len ? names.data : "none");
    zc_buf_fini(&names);
    return status;
}

/* Names may have a '=' too: it is cut where both sides are known. */
static zc_status parse_feed(loop *l, const char *text, feed *out)
{
    const char *eq = text;
    while ((eq = strchr(eq, '='))) {
        out->output = find(l, false, text, (size_t)(eq - text));
        out->input = find(l, true, eq + 1, strlen(eq + 1));
        if (out->output < l->info.outputs && out->input < l->info.inputs) return ZC_OK;
        eq++;
    }
    eq = strchr(text, '=');
    return find(l, false, text, (size_t)(eq - text)) == l->info.outputs
               ? unknown(l, false, text, (size_t)(eq - text))
               : unknown(l, true, eq + 1, strlen(eq + 1));
}

static zc_status parse_feeds(loop *l)
{
    for (size_t i = 0; i < l->o->feeds.n; i++) {
        feed *f = &l->feeds[i];
        ZC_TRY(parse_feed(l, l->o->feeds.v[i], f));
        if (l->fed[f->input])
            return zc_fail(l->diag, ZC_ERR_ARG, io_name(l, true, f->input),
                           "--feed gives it two values");
        l->fed[f->input] = true;
        l->kept[f->output] = false;
    }
    return ZC_OK;
}

/* "INPUT=AXIS" or "INPUT=AXIS:SIZE" */
static zc_status parse_slice(loop *l, const char *text)
{
    char word[64];
    const char *eq = strrchr(text, '=');
    size_t i = find(l, true, text, (size_t)(eq - text));
    int64_t axis, size = 0;
    if (i == l->info.inputs) return unknown(l, true, text, (size_t)(eq - text));
    snprintf(word, sizeof word, "%s", eq + 1);
    char *colon = strchr(word, ':');
    if (colon) *colon++ = 0;
    if (!cli_int(word, 0, ZC_RANK_MAX - 1, &axis) ||
        (colon && !cli_int(colon, 1, INT64_MAX, &size)))
        return zc_fail(l->diag, ZC_ERR_ARG, "--slice",
                       "got '%.100s', need INPUT=AXIS or INPUT=AXIS:SIZE", text);
    if (l->slices[i].axis >= 0 || l->fed[i])
        return zc_fail(l->diag, ZC_ERR_ARG, io_name(l, true, i),
                       l->fed[i] ? "--slice and --feed exclude each other"
                                 : "--slice is given twice");
    l->slices[i] = (cli_slice){.axis = (int)axis, .size = size};
    return ZC_OK;
}

static zc_status parse_names(loop *l)
{
    for (size_t i = 0; i < l->info.outputs; i++) l->kept[i] = true;
    for (size_t i = 0; i < l->info.inputs; i++) l->slices[i].axis = -1;
    ZC_TRY(parse_feeds(l));
    for (size_t i = 0; i < l->o->slices.n; i++) ZC_TRY(parse_slice(l, l->o->slices.v[i]));
    for (size_t i = 0; i < l->o->outputs.n; i++) {
        const char *name = l->o->outputs.v[i];
        if (find(l, false, name, strlen(name)) == l->info.outputs)
            return unknown(l, false, name, strlen(name));
    }
    return ZC_OK;
}

/* ---- parts ---- */

static bool has_tail(const loop *l, const char *how)
{
    return strcmp(l->o->tail ? l->o->tail : "drop", how) == 0;
}

/* How many runs the parts of input i are for. */
static int64_t count_parts(const loop *l, size_t i)
{
    int64_t all = l->values.v[i].dims[l->slices[i].axis], size = l->slices[i].size;
    int64_t rest = all % size;
    if (rest && has_tail(l, "drop"))
        fprintf(stderr,
                "zc: note: the last %lld of %lld along axis %d are left out (--tail pad or short "
                "takes them)\n",
                (long long)rest, (long long)all, l->slices[i].axis);
    return all / size + (rest && !has_tail(l, "drop"));
}

static zc_status count_steps(loop *l, int64_t *steps)
{
    *steps = l->o->loop;
    for (size_t i = 0; i < l->info.inputs; i++) {
        if (l->slices[i].axis < 0) continue;
        int64_t parts = count_parts(l, i);
        if (!parts || parts < *steps)
            return zc_fail(l->diag, ZC_ERR_ARG, io_name(l, true, i),
                           "--slice: too few parts (got %lld, need %lld)", (long long)parts,
                           (long long)(*steps ? *steps : 1));
        if (!l->o->loop && *steps && parts != *steps)
            return zc_fail(l->diag, ZC_ERR_ARG, io_name(l, true, i),
                           "--slice: another number of parts than the inputs before it (got %lld, "
                           "need %lld, or --loop N)",
                           (long long)parts, (long long)*steps);
        if (!*steps) *steps = parts;
    }
    if (!*steps) *steps = 1;
    return ZC_OK;
}

/* Products of dimensions of a tensor in memory do not overflow. */
static size_t bytes_of(const zc_tensor *t, int first, int end)
{
    size_t n = zc_dtype_bits(t->dtype) / 8;
    for (int d = first; d < end; d++) n *= (size_t)t->dims[d];
    return n;
}

static size_t count_rows(const zc_tensor *t, int axis)
{
    size_t n = 1;
    for (int d = 0; d < axis; d++) n *= (size_t)t->dims[d];
    return n;
}

static zc_status give_part(loop *l, size_t i, int64_t step)
{
    const zc_tensor *all = &l->values.v[i];
    int axis = l->slices[i].axis;
    int64_t size = l->slices[i].size, begin = step * size, left = all->dims[axis] - begin;
    int64_t have = left < size ? left : size;
    zc_tensor part = *all;
    size_t bytes, unit = bytes_of(all, axis + 1, all->rank), rows = count_rows(all, axis);
    part.dims[axis] = has_tail(l, "short") ? have : size;
    if (!zc_tensor_bytes(&part, &bytes) || !(part.data = zc_calloc(bytes, 1)))
        return zc_fail_nomem(l->diag, io_name(l, true, i), 0);
    for (size_t r = 0; r < rows && bytes; r++)
        memcpy((char *)part.data + r * (size_t)part.dims[axis] * unit,
               (const char *)all->data + (r * (size_t)all->dims[axis] + (size_t)begin) * unit,
               (size_t)have * unit);
    zc_view v = cli_view(&part);
    zc_status status = zc_session_set_input(l->session, i, &v, false, l->diag);
    free(part.data);
    return status;
}

/* ---- results ---- */

static bool is_wanted(const loop *l, size_t output)
{
    const char *name = io_name(l, false, output);
    for (size_t i = 0; i < l->o->outputs.n; i++)
        if (strcmp(l->o->outputs.v[i], name) == 0) return true;
    return l->o->outputs.n == 0;
}

static zc_status keep(loop *l, size_t i, int64_t step, bool copy)
{
    zc_view v;
    size_t bytes;
    ZC_TRY(zc_session_output(l->session, i, &v, l->diag));
    run_result r = {.name = io_name(l, false, i), .number = i, .step = step, .t = cli_tensor(&v)};
    if (copy && zc_tensor_bytes(&r.t, &bytes)) {
        void *own = zc_calloc(bytes, 1);
        if (!own) return zc_fail_nomem(l->diag, r.name, bytes);
        if (bytes) memcpy(own, r.t.data, bytes);
        r.t.data = own;
        r.is_owned = true;
    }
    if (ZC_VEC_PUSH(&l->out->list, r)) return ZC_OK;
    if (r.is_owned) free(r.t.data);
    return zc_fail_nomem(l->diag, r.name, sizeof r);
}

static zc_status keep_results(loop *l, int64_t step, int64_t steps)
{
    bool is_last = step + 1 == steps;
    for (size_t i = 0; i < l->info.outputs; i++)
        if (is_wanted(l, i) && (l->kept[i] || l->o->each || is_last))
            ZC_TRY(keep(l, i, steps > 1 ? step : -1, steps > 1));
    return ZC_OK;
}

/* The shape of all results of one output, joined. */
static zc_status join_shape(const loop *l, size_t output, int axis, zc_tensor *out)
{
    const run_result *first = NULL;
    for (size_t i = 0; i < l->out->list.len; i++) {
        const run_result *r = &l->out->list.data[i];
        if (r->number != output) continue;
        if (!first && axis >= r->t.rank)
            return zc_fail(l->diag, ZC_ERR_ARG, r->name,
                           "--concat: it has no axis %d (it has %d; --each keeps runs apart)", axis,
                           r->t.rank);
        if (!first) *out = r->t, out->dims[axis] = 0;
        first = first ? first : r;
        for (int d = 0; d < out->rank; d++)
            if (r->t.rank != out->rank || (d != axis && r->t.dims[d] != out->dims[d]))
                return zc_fail(l->diag, ZC_ERR_INPUT, r->name,
                               "its shape differs between runs: --each keeps them apart");
        if (!zc_add_i64(out->dims[axis], r->t.dims[axis], &out->dims[axis]))
            return zc_fail(l->diag, ZC_ERR_LIMIT, r->name, "too large");
    }
    if (zc_dtype_bits(out->dtype) >= 8) return ZC_OK;
    return zc_fail(
        l->diag, ZC_ERR_UNSUPPORTED, first->name,
        "elements of less than a byte cannot be joined (got %s): --each keeps runs apart",
        zc_dtype_name(out->dtype));
}

/* Copies them there and frees them; the list is left with one of them, the joined one. */
static zc_status join(loop *l, size_t output, int axis)
{
    zc_tensor all = {.rank = 0};
    run_result joined = {.number = output, .step = -1, .is_owned = true};
    size_t bytes, at = 0, n = 0;
    ZC_TRY(join_shape(l, output, axis, &all));
    if (!zc_tensor_bytes(&all, &bytes) || !(all.data = zc_calloc(bytes, 1)))
        return zc_fail_nomem(l->diag, io_name(l, false, output), 0);
    size_t stride = bytes_of(&all, axis, all.rank);
    for (size_t i = 0; i < l->out->list.len; i++) {
        run_result *r = &l->out->list.data[i];
        if (r->number != output) {
            l->out->list.data[n++] = *r;
            continue;
        }
        size_t own = bytes_of(&r->t, axis, r->t.rank), rows = count_rows(&r->t, axis);
        for (size_t row = 0; row < rows && own; row++)
            memcpy((char *)all.data + row * stride + at, (char *)r->t.data + row * own, own);
        at += own;
        free(r->t.data);
    }
    joined.name = io_name(l, false, output);
    joined.t = all;
    l->out->list.data[n++] = joined;
    l->out->list.len = n;
    return ZC_OK;
}

static int by_number(const void *a, const void *b)
{
    const run_result *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

static zc_status join_results(loop *l)
{
    int axis = l->o->concat < 0 ? 0 : (int)l->o->concat;
    for (size_t i = 0; i < l->info.outputs; i++)
        if (is_wanted(l, i) && l->kept[i]) ZC_TRY(join(l, i, axis));
    for (size_t i = 0; i < l->out->list.len; i++) l->out->list.data[i].step = -1;
    if (l->out->list.len)
        qsort(l->out->list.data, l->out->list.len, sizeof *l->out->list.data, by_number);
    return ZC_OK;
}

/* ---- running ---- */

static zc_status prepare(loop *l, int64_t step)
{
    for (size_t i = 0; step && i < l->o->feeds.n; i++) {
        zc_view v;
        ZC_TRY(zc_session_output(l->session, l->feeds[i].output, &v, l->diag));
        ZC_TRY(zc_session_set_input(l->session, l->feeds[i].input, &v, false, l->diag));
    }
    for (size_t i = 0; i < l->info.inputs; i++) {
        zc_view v = cli_view(&l->values.v[i]);
        if (l->slices[i].axis >= 0)
            ZC_TRY(give_part(l, i, step));
        else if (!step)
            ZC_TRY(zc_session_set_input(l->session, i, &v, false, l->diag));
    }
    return ZC_OK;
}

static zc_status run_steps(loop *l)
{
    int64_t steps;
    ZC_TRY(cli_read_inputs(l->plan, &l->in, &l->values, l->diag));
    ZC_TRY(count_steps(l, &steps));
    for (int64_t k = 0; k < steps; k++) {
        ZC_TRY(prepare(l, k));
        double start = cli_now();
        ZC_TRY(zc_session_run(l->session, l->diag));
        l->out->seconds += cli_now() - start;
        ZC_TRY(keep_results(l, k, steps));
    }
    l->out->steps = steps;
    return steps > 1 && !l->o->each ? join_results(l) : ZC_OK;
}

zc_status cli_run(const zc_plan *plan, zc_session *session, const run_options *o, run_results *out,
                  zc_diag *diag)
{
    loop l = {.plan = plan, .session = session, .o = o, .in = o->in, .out = out, .diag = diag};
    *out = (run_results){.steps = 0};
    ZC_TRY(zc_plan_info_get(plan, &l.info));
    l.slices = zc_calloc(l.info.inputs, sizeof *l.slices);
    l.fed = zc_calloc(l.info.inputs, sizeof *l.fed);
    l.kept = zc_calloc(l.info.outputs, sizeof *l.kept);
    l.in.slices = l.slices;
    l.in.zeros = l.fed;
    zc_status status = l.slices && l.fed && l.kept ? parse_names(&l)
                                                   : zc_fail_nomem(diag, "inputs", l.info.inputs);
    if (status == ZC_OK) status = run_steps(&l);
    cli_free_values(&l.values);
    free(l.slices);
    free(l.fed);
    free(l.kept);
    return status;
}

void cli_run_free(run_results *r)
{
    for (size_t i = 0; i < r->list.len; i++)
        if (r->list.data[i].is_owned) free(r->list.data[i].t.data);
    ZC_VEC_FINI(&r->list);
}
