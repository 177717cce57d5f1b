/* RNN, GRU and LSTM: the recurrence, and the reference products. */
#include "cpu/rnn.h"

#include <math.h>
#include <string.h>

/* One sequence in one direction, with its part of the scratch memory. */
typedef struct seq {
    const zc_rnn *n;
    int64_t d, b;
    const zc_rnn_act *act;
    double *h, *c;     /* state, hidden */
    double *pre, *rec; /* gates * hidden: input part with W's bias, recurrent part with R's */
    double *v;         /* hidden */
    float *tmp;        /* hidden */
} seq;

static int64_t work_doubles(const zc_rnn *n)
{
    return n->hidden * (4 + 2 * n->r.gates);
}

/* A gate: clipping bounds what goes into its activation; NaN stays NaN. */
static double gate(const seq *s, int which, double x)
{
    const zc_recurrent *r = &s->n->r;
    if (r->clips) x = x < -r->clip ? -r->clip : x > r->clip ? r->clip : x;
    return zc_rnn_act_apply(&s->act[which], x);
}

/* Adds part `half` of the bias: W's or R's. */
static void add_bias(const seq *s, int half, int64_t first, int64_t count, double *to)
{
    const zc_rnn *n = s->n;
    if (!n->bias) return;
    int64_t rows = n->r.gates * n->hidden, at = (s->d * 2 + half) * rows + first;
    for (int64_t i = 0; i < count; i++) to[i] += zc_get(n->bias, at + i);
}

static void recur(const seq *s, int64_t first, int64_t count, const double *v)
{
    s->n->recur(s->n, s->d, first, count, v, s->tmp, s->rec + first);
    add_bias(s, 1, first, count, s->rec + first);
}

/* ---- steps: from pre and the state to the new state ---- */

static void step_rnn(const seq *s)
{
    int64_t hidden = s->n->hidden;
    recur(s, 0, hidden, s->h);
    for (int64_t i = 0; i < hidden; i++) s->h[i] = gate(s, 0, s->pre[i] + s->rec[i]);
}

static void step_gru(const seq *s)
{
    int64_t hidden = s->n->hidden;
    bool linear = s->n->r.linear_first;
    double *z = s->pre, *reset = s->pre + hidden, *h = s->pre + 2 * hidden;
    recur(s, 0, 2 * hidden, s->h);
    for (int64_t i = 0; i < 2 * hidden; i++) z[i] = gate(s, 0, z[i] + s->rec[i]);
    for (int64_t i = 0; i < hidden; i++) s->v[i] = linear ? s->h[i] : reset[i] * s->h[i];
    recur(s, 2 * hidden, hidden, s->v);
    for (int64_t i = 0; i < hidden; i++) {
        double rec = s->rec[2 * hidden + i];
        double fresh = gate(s, 1, h[i] + (linear ? reset[i] * rec : rec));
        s->h[i] = (1 - z[i]) * fresh + z[i] * s->h[i];
    }
}

static double peephole(const seq *s, int gate, int64_t i, double cell)
{
    const zc_tensor *p = s->n->peepholes;
    return p ? zc_get(p, (s->d * 3 + gate) * s->n->hidden + i) * cell : 0;
}

static void step_lstm(const seq *s)
{
    int64_t hidden = s->n->hidden;
    recur(s, 0, 4 * hidden, s->h);
    for (int64_t i = 0; i < 4 * hidden; i++) s->pre[i] += s->rec[i];
    for (int64_t i = 0; i < hidden; i++) {
        const double *g = s->pre + i; /* input, output, forget, cell */
        double was = s->c[i];
        double in = gate(s, 0, g[0] + peephole(s, 0, i, was));
        double forget =
            s->n->r.input_forget ? 1 - in : gate(s, 0, g[2 * hidden] + peephole(s, 2, i, was));
        s->c[i] = forget * was + in * gate(s, 1, g[3 * hidden]);
        double out = gate(s, 0, g[hidden] + peephole(s, 1, i, s->c[i]));
        s->h[i] = out * zc_rnn_act_apply(&s->act[2], s->c[i]); /* the cell is not clipped */
    }
}

/* ---- sequences ---- */

static void load(const seq *s, const zc_tensor *t, double *to)
{
    for (int64_t i = 0; i < s->n->hidden; i++)
        to[i] = t ? zc_get(t, zc_rnn_state_at(s->n, s->d, s->b) + i) : 0;
}

static void store(const seq *s, zc_tensor *t, int64_t at, const double *from)
{
    for (int64_t i = 0; t && i < s->n->hidden; i++) zc_put(t, at + i, from ? from[i] : 0);
}

static seq seq_of(const zc_rnn *n, int64_t task)
{
    int64_t hidden = n->hidden, gates = n->r.gates * hidden;
    seq s = {.n = n, .d = task / n->batch, .b = task % n->batch};
    s.act = n->r.act + s.d * n->r.functions;
    s.h = n->work + task * work_doubles(n);
    s.c = s.h + hidden;
    s.v = s.c + hidden;
    s.tmp = (float *)(s.v + hidden);
    s.pre = s.v + 2 * hidden;
    s.rec = s.pre + gates;
    return s;
}

static void run_sequence(const zc_rnn *n, int64_t task)
{
    seq s = seq_of(n, task);
    int64_t valid = n->lengths ? zc_geti(n->lengths, s.b) : n->length;
    bool back = n->r.reverse || s.d == 1;
    load(&s, n->h0, s.h);
    load(&s, n->c0, s.c);
    for (int64_t i = 0; i < valid && !zc_stopped(n->k); i++) {
        int64_t t = back ? valid - 1 - i : i;
        n->project(n, s.d, t, s.b, s.pre);
        add_bias(&s, 0, 0, n->r.gates * n->hidden, s.pre);
        if (n->r.gates == 1)
            step_rnn(&s);
        else if (n->r.gates == 3)
            step_gru(&s);
        else
            step_lstm(&s);
        store(&s, n->y, zc_rnn_y_at(n, s.d, t, s.b), s.h);
    }
    for (int64_t t = valid; t < n->length; t++) store(&s, n->y, zc_rnn_y_at(n, s.d, t, s.b), NULL);
    store(&s, n->yh, zc_rnn_state_at(n, s.d, s.b), s.h);
    store(&s, n->yc, zc_rnn_state_at(n, s.d, s.b), s.c);
}

static void sequences(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) run_sequence(arg, i);
}

/* ---- set-up ---- */

static zc_status check_lengths(zc_kctx *k, const zc_rnn *n)
{
    for (int64_t b = 0; n->lengths && b < n->batch; b++) {
        int64_t len = zc_geti(n->lengths, b);
        if (len < 0 || len > n->length)
            return zc_kernel_fail(k, "sequence_lens[%lld] out of range (got %lld, need [0, %lld])",
                                  (long long)b, (long long)len, (long long)n->length);
    }
    return ZC_OK;
}

/* Element counts, which shape inference has left open where dimensions were symbolic. */
static zc_status check_sizes(zc_kctx *k, const zc_rnn *n)
{
    int64_t dirs = n->r.directions, gates = n->r.gates, hidden = n->hidden;
    const struct {
        const zc_tensor *t;
        int64_t dims[4];
        const char *what;
    } list[] = {{n->w, {dirs, gates, hidden, n->input}, "W"},
                {n->rec, {dirs, gates, hidden, hidden}, "R"},
                {n->bias, {dirs, gates, hidden, 2}, "B"},
                {n->lengths, {n->batch, 1, 1, 1}, "sequence_lens"},
                {n->h0, {dirs, n->batch, hidden, 1}, "initial_h"},
                {n->c0, {dirs, n->batch, hidden, 1}, "initial_c"},
                {n->peepholes, {dirs, 3, hidden, 1}, "P"}};
    for (size_t i = 0; i < ZC_COUNTOF(list); i++) {
        int64_t need = zc_numel(4, list[i].dims);
        if (!list[i].t || zc_tensor_numel(list[i].t) == need) continue;
        return zc_kernel_fail(k, "%s has a wrong size (got %lld elements, need %lld)", list[i].what,
                              (long long)zc_tensor_numel(list[i].t), (long long)need);
    }
    return check_lengths(k, n);
}

zc_status zc_rnn_of(zc_kctx *k, zc_rnn *n)
{
    ZC_TRY(zc_recurrent_of(k->op, k->attrs, k->subject, k->diag, &n->r));
    const bool cell = n->r.gates == 4, bytes = k->op == ZC_OP_DynamicQuantizeLSTM;
    const zc_tensor *x = n->x = zc_input(k, ZC_IN_LSTM_x);
    n->w = zc_input(k, ZC_IN_LSTM_w);
    n->rec = zc_input(k, ZC_IN_LSTM_r);
    n->bias = zc_input(k, ZC_IN_LSTM_bias);
    n->lengths = zc_input(k, ZC_IN_LSTM_lengths);
    n->h0 = zc_input(k, ZC_IN_LSTM_h);
    n->c0 = cell ? zc_input(k, ZC_IN_LSTM_c) : NULL;
    n->peepholes = cell ? zc_input(k, ZC_IN_LSTM_peepholes) : NULL;
    n->y = zc_output(k, 0);
    n->yh = zc_output(k, 1);
    n->yc = zc_output(k, 2);
    n->length = x->dims[n->r.batch_first ? 1 : 0];
    n->batch = x->dims[n->r.batch_first ? 0 : 1];
    n->input = x->dims[2];
    n->hidden = n->rec->dims[bytes ? 1 : 2];
    return check_sizes(k, n);
}

zc_status zc_rnn_run(zc_kctx *k, zc_rnn *n)
{
    int64_t tasks = n->r.directions * n->batch;
    size_t bytes = 0;
    bool fits = zc_mul_size((size_t)tasks, (size_t)work_doubles(n) * sizeof(double), &bytes);
    n->work = fits ? zc_scratch_get(k->scratch, bytes) : NULL;
    if (!n->work) return zc_fail_nomem(k->diag, "recurrent state", bytes);
    n->k = k;
    zc_parallel(k, tasks, 1, sequences, n);
    return ZC_OK;
}

/* ---- reference ---- */

static double dot(const zc_tensor *m, int64_t at, const double *v, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += zc_get(m, at + i) * v[i];
    return sum;
}

static void project_reference(const zc_rnn *n, int64_t d, int64_t t, int64_t b, double *out)
{
    int64_t rows = n->r.gates * n->hidden, x = zc_rnn_x_at(n, t, b);
    for (int64_t g = 0; g < rows; g++) {
        double sum = 0;
        for (int64_t i = 0; i < n->input; i++)
            sum += zc_get(n->w, (d * rows + g) * n->input + i) * zc_get(n->x, x + i);
        out[g] = sum;
    }
}

static void recur_reference(const zc_rnn *n, int64_t d, int64_t first, int64_t count,
                            const double *v, float *tmp, double *out)
{
    int64_t row = d * n->r.gates * n->hidden + first;
    for (int64_t i = 0; i < count; i++) out[i] = dot(n->rec, (row + i) * n->hidden, v, n->hidden);
}

static zc_status reference(zc_kctx *k)
{
    zc_rnn n = {.project = project_reference, .recur = recur_reference};
    ZC_TRY(zc_rnn_of(k, &n));
    return zc_rnn_run(k, &n);
}

zc_status zc_k_RNN(zc_kctx *k)
{
    return reference(k);
}

zc_status zc_k_GRU(zc_kctx *k)
{
    return reference(k);
}

zc_status zc_k_LSTM(zc_kctx *k)
{
    return reference(k);
}
