/* RNN, GRU and LSTM of f32, and LSTM with weights of bytes: all inputs are projected by one matrix
 * product, and the recurrence uses vector code. LSTM and GRU with their usual activations run in
 * f32; the rest keeps its state in double, as the reference kernel does. */
#include <string.h>

#include "cpu/bytes.h"
#include "cpu/fast.h"
#include "cpu/rnn.h"
#include "cpu/rows.h"

typedef struct products {
    const zc_rows *rows;
    zc_tensor out[2];      /* a direction each: [length * batch][gates * hidden] */
    const float *bias;     /* [directions][gates * hidden], added to `out`; NULL: none */
    const zc_rnn_bytes *r; /* NULL: R is f32 */
    zc_kctx *shared;       /* whose threads share each product of the one sequence; NULL: none do */
} products;

static zc_status make_room(zc_kctx *k, const zc_rnn *n, zc_tensor *out)
{
    size_t bytes;
    *out = (zc_tensor){ZC_F32, 2, {n->length * n->batch, n->r.gates * n->hidden}, NULL};
    if (zc_tensor_bytes(out, &bytes)) out->data = zc_scratch_get(k->scratch, bytes);
    return out->data ? ZC_OK : zc_fail_nomem(k->diag, "projected inputs", 0);
}

/* out = x W^T (+ bias) of direction d, through the Gemm kernels. */
static zc_status multiply(zc_kctx *k, const zc_rnn *n, int64_t d, const float *bias, zc_tensor *out)
{
    zc_attrs_Gemm attrs;
    int64_t rows = n->r.gates * n->hidden;
    zc_attrs_default(zc_op_get(ZC_OP_Gemm), &attrs);
    attrs.transB = 1;
    ZC_TRY(make_room(k, n, out));
    float *w = (float *)n->w->data + d * rows * n->input;
    zc_tensor in[] = {{ZC_F32, 2, {n->length * n->batch, n->input}, n->x->data},
                      {ZC_F32, 2, {rows, n->input}, w},
                      {ZC_F32, 1, {rows}, (float *)(uintptr_t)bias}};
    zc_kctx inner = zc_inner(k, ZC_OP_Gemm, &attrs, bias ? 3 : 2, in, out);
    return zc_kernel_run(&inner, false);
}

/* What W makes of step t of sequence b in direction d. */
static const float *projected(const zc_rnn *n, int64_t d, int64_t t, int64_t b)
{
    const products *p = n->user;
    int64_t step = n->input ? zc_rnn_x_at(n, t, b) / n->input : 0;
    return (const float *)p->out[d].data + step * n->r.gates * n->hidden;
}

/* ---- in double ---- */

static void project(const zc_rnn *n, int64_t d, int64_t t, int64_t b, double *out)
{
    const float *from = projected(n, d, t, b);
    for (int64_t i = 0; i < n->r.gates * n->hidden; i++) out[i] = (double)from[i];
}

static void recur(const zc_rnn *n, int64_t d, int64_t first, int64_t count, const double *v,
                  float *tmp, double *out)
{
    enum { ROWS = 64 };
    const products *p = n->user;
    const int64_t row = d * n->r.gates * n->hidden + first;
    float sums[ROWS];
    for (int64_t i = 0; i < n->hidden; i++) tmp[i] = (float)v[i];
    for (int64_t at = 0; at < count; at += ROWS) {
        int64_t rows = count - at < ROWS ? count - at : ROWS;
        p->rows->products((const float *)n->rec->data + (row + at) * n->hidden, tmp, rows,
                          n->hidden, sums);
        for (int64_t i = 0; i < rows; i++) out[at + i] = (double)sums[i];
    }
}

/* ---- in f32 ---- */

/* One sequence in one direction. */
typedef struct seq {
    const zc_rnn *n;
    const products *p;
    int64_t d;
    float *h, *c, *rec, *z, *reset, *v; /* rec: gates * hidden, the others hidden */
} seq;

enum { SEQ_VECTORS = 5 }; /* of `hidden` beside rec */

/* Rows [0, rows) of R times v, to out. */
typedef struct product {
    const zc_rows *rows;
    const float *r, *v;
    int64_t count, hidden;
    float *out;
} product;

enum { PRODUCT_PARTS = 8, SHARED_LEAST = 1 << 19 }; /* floats of R that are worth several threads */

static void product_part(void *arg, int i)
{
    const product *p = arg;
    const int64_t from = p->count * i / PRODUCT_PARTS, to = p->count * (i + 1) / PRODUCT_PARTS;
    p->rows->products(p->r + from * p->hidden, p->v, to - from, p->hidden, p->out + from);
}

static void multiply_state(const seq *s, const float *r, const float *v, int64_t count, float *out)
{
    product p = {s->p->rows, r, v, count, s->n->hidden, out};
    if (s->p->shared)
        zc_parts(s->p->shared, PRODUCT_PARTS, product_part, &p);
    else
        s->p->rows->products(r, v, count, p.hidden, out);
}

static void step_lstm(const seq *s, const float *pre)
{
    const zc_rnn *n = s->n;
    const float *r = (const float *)n->rec->data + s->d * 4 * n->hidden * n->hidden;
    if (s->p->r)
        zc_rnn_bytes_times(s->p->r, s->d, 1, s->h, NULL, (uint8_t *)s->v, s->rec);
    else
        multiply_state(s, r, s->h, 4 * n->hidden, s->rec);
    s->p->rows->lstm_step(pre, s->rec, n->hidden, s->c, s->h);
}

static void step_gru(const seq *s, const float *pre)
{
    const zc_rnn *n = s->n;
    const int64_t hidden = n->hidden, gates = 2 * hidden;
    const bool linear = n->r.linear_first;
    const float *r = (const float *)n->rec->data + s->d * 3 * hidden * hidden, *bias = NULL;
    if (linear && n->bias) bias = (const float *)n->bias->data + s->d * 6 * hidden + 5 * hidden;
    multiply_state(s, r, s->h, linear ? 3 * hidden : gates, s->rec);
    s->p->rows->gru_gates(pre, s->rec, hidden, s->h, s->z, s->reset, s->v);
    if (!linear) multiply_state(s, r + gates * hidden, s->v, hidden, s->rec + gates);
    s->p->rows->gru_state(pre + gates, s->rec + gates, bias, linear ? s->reset : NULL, s->z, hidden,
                          s->h);
}

static void start_state(const zc_tensor *t, int64_t at, int64_t hidden, float *to)
{
    if (t)
        memcpy(to, (const float *)t->data + at, (size_t)hidden * sizeof *to);
    else
        memset(to, 0, (size_t)hidden * sizeof *to);
}

static void store(const zc_tensor *t, int64_t at, int64_t hidden, const float *from)
{
    if (!t) return;
    float *to = (float *)t->data + at;
    if (from)
        memcpy(to, from, (size_t)hidden * sizeof *to);
    else
        memset(to, 0, (size_t)hidden * sizeof *to);
}

static void run_sequence(const zc_rnn *n, int64_t task)
{
    const int64_t hidden = n->hidden, b = task % n->batch;
    float *work = (float *)(void *)n->work + task * (SEQ_VECTORS + n->r.gates) * hidden;
    seq s = {.n = n, .p = n->user, .d = task / n->batch, .h = work, .c = work + hidden};
    s.z = s.c + hidden;
    s.reset = s.z + hidden;
    s.v = s.reset + hidden;
    s.rec = s.v + hidden;
    const int64_t state = zc_rnn_state_at(n, s.d, b);
    const int64_t valid = n->lengths ? zc_geti(n->lengths, b) : n->length;
    start_state(n->h0, state, hidden, s.h);
    start_state(n->c0, state, hidden, s.c);
    for (int64_t i = 0; i < valid && !zc_stopped(n->k); i++) {
        int64_t t = n->r.reverse || s.d == 1 ? valid - 1 - i : i;
        if (n->r.gates == 4)
            step_lstm(&s, projected(n, s.d, t, b));
        else
            step_gru(&s, projected(n, s.d, t, b));
        store(n->y, zc_rnn_y_at(n, s.d, t, b), hidden, s.h);
    }
    for (int64_t t = valid; t < n->length; t++)
        store(n->y, zc_rnn_y_at(n, s.d, t, b), hidden, NULL);
    store(n->yh, state, hidden, s.h);
    store(n->yc, state, hidden, s.c);
}

static void sequences(void *arg, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) run_sequence(arg, i);
}

static bool is_usual(const zc_rnn *n)
{
    return n->r.gates > 1 && !n->r.clips && !n->r.input_forget && !n->peepholes &&
           zc_rnn_acts_are_usual(&n->r);
}

/* What can be added before the recurrence: W's biases and R's, but for a GRU's that is multiplied.
 */
static zc_status add_biases(zc_kctx *k, const zc_rnn *n, products *p)
{
    const int64_t rows = n->r.gates * n->hidden;
    if (!n->bias) return ZC_OK;
    float *sum = zc_scratch_get(k->scratch, (size_t)(n->r.directions * rows) * sizeof *sum);
    if (!sum) return zc_fail_nomem(k->diag, "biases", (size_t)rows * sizeof *sum);
    for (int64_t i = 0; i < n->r.directions * rows; i++) {
        const float *from = (const float *)n->bias->data + i / rows * 2 * rows + i % rows;
        bool apart = n->r.gates == 3 && n->r.linear_first && i % rows >= 2 * n->hidden;
        sum[i] = apart ? from[0] : from[0] + from[rows];
    }
    p->bias = sum;
    return ZC_OK;
}

static zc_status run_usual(zc_kctx *k, zc_rnn *n, products *p)
{
    const int64_t tasks = n->r.directions * n->batch;
    size_t bytes = 0;
    if (zc_mul_size((size_t)tasks, (size_t)((SEQ_VECTORS + n->r.gates) * n->hidden) * sizeof(float),
                    &bytes))
        n->work = zc_scratch_get(k->scratch, bytes);
    if (!n->work) return zc_fail_nomem(k->diag, "recurrent state", bytes);
    n->k = k;
    if (tasks == 1 && n->r.gates * n->hidden * n->hidden >= SHARED_LEAST) {
        p->shared = k;
        run_sequence(n, 0);
    } else {
        zc_parallel(k, tasks, 1, sequences, n);
    }
    return ZC_OK;
}

bool zc_fits_recurrent(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32 && zc_tensor_numel(&k->in[0]) > 0;
}

zc_status zc_fast_recurrent(zc_kctx *k)
{
    products p = {.rows = zc_rows_get()};
    zc_rnn n = {.project = project, .recur = recur, .user = &p};
    ZC_TRY(zc_rnn_of(k, &n));
    bool usual = is_usual(&n);
    if (usual) ZC_TRY(add_biases(k, &n, &p));
    for (int64_t d = 0; d < n.r.directions; d++)
        ZC_TRY(multiply(k, &n, d, p.bias ? p.bias + d * n.r.gates * n.hidden : NULL, &p.out[d]));
    return usual ? run_usual(k, &n, &p) : zc_rnn_run(k, &n);
}

/* ---- with weights of bytes ---- */

bool zc_fits_quantised_lstm(const zc_kctx *k)
{
    return zc_fits_recurrent(k) &&
           zc_rnn_bytes_fit(k, ZC_IN_DynamicQuantizeLSTM_w, ZC_IN_DynamicQuantizeLSTM_w_scale) &&
           zc_rnn_bytes_fit(k, ZC_IN_DynamicQuantizeLSTM_r, ZC_IN_DynamicQuantizeLSTM_r_scale);
}

typedef struct projection {
    const zc_rnn *n;
    const zc_rnn_bytes *w;
    products *p;
    uint8_t *room; /* a direction each */
    int64_t bytes; /* of it */
} projection;

static void project_bytes(void *arg, int d)
{
    const projection *j = arg;
    const float *bias = j->p->bias;
    zc_rnn_bytes_times(j->w, d, j->n->length * j->n->batch, j->n->x->data,
                       bias ? bias + d * j->w->columns : NULL, j->room + d * j->bytes,
                       j->p->out[d].data);
}

zc_status zc_fast_quantised_lstm(zc_kctx *k)
{
    products p = {.rows = zc_rows_get()};
    zc_rnn n = {.user = &p};
    zc_rnn_bytes w, r;
    ZC_TRY(zc_rnn_of(k, &n));
    if (!is_usual(&n)) return zc_k_DynamicQuantizeLSTM(k);
    ZC_TRY(add_biases(k, &n, &p));
    ZC_TRY(
        zc_rnn_bytes_of(k, &n, ZC_IN_DynamicQuantizeLSTM_w, ZC_IN_DynamicQuantizeLSTM_w_scale, &w));
    ZC_TRY(
        zc_rnn_bytes_of(k, &n, ZC_IN_DynamicQuantizeLSTM_r, ZC_IN_DynamicQuantizeLSTM_r_scale, &r));
    projection j = {.n = &n, .w = &w, .p = &p, .bytes = n.length * n.batch * zc_bytes_row(w.depth)};
    for (int64_t d = 0; d < n.r.directions; d++) ZC_TRY(make_room(k, &n, &p.out[d]));
    j.room = zc_scratch_get(k->scratch, (size_t)(n.r.directions * j.bytes));
    if (!j.room) return zc_fail_nomem(k->diag, "quantised inputs", (size_t)j.bytes);
    zc_parts(k, (int)n.r.directions, project_bytes, &j);
    p.r = &r;
    return run_usual(k, &n, &p);
}
