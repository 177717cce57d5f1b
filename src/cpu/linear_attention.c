/* LinearAttention and CausalConvWithState: reference kernels. */
#include <math.h>
#include <string.h>

#include "cpu/copy.h"

/* ---- LinearAttention ---- */

typedef struct job {
    const zc_tensor *q, *key, *v, *decay, *beta; /* decay, beta NULL: the rule has none */
    zc_tensor *y, *state_out;
    int64_t length, heads, kv_heads, dk, dv;
    int64_t decay_size; /* elements a head: 1 or dk */
    int64_t beta_heads; /* 1 or kv_heads */
    double scale;
    double *state; /* dk * dv + dv for every batch item and key head */
} job;

/* One key head of one batch item. */
typedef struct head {
    const job *j;
    int64_t b, h;
    double *s, *v; /* state [dk][dv]; the value to write */
} head;

static void decay_state(const head *t, int64_t at)
{
    const job *j = t->j;
    for (int64_t d = 0; j->decay && d < j->dk; d++) {
        int64_t i = (at * j->kv_heads + t->h) * j->decay_size + (j->decay_size > 1 ? d : 0);
        double g = exp(zc_get(j->decay, i));
        for (int64_t m = 0; m < j->dv; m++) t->s[d * j->dv + m] *= g;
    }
}

/* The value, or with beta beta * (value - what the state holds for the key). */
static void make_value(const head *t, int64_t at, int64_t key_at)
{
    const job *j = t->j;
    double beta = 1;
    if (j->beta) beta = zc_get(j->beta, at * j->beta_heads + (j->beta_heads > 1 ? t->h : 0));
    for (int64_t m = 0; m < j->dv; m++) {
        double held = 0;
        for (int64_t d = 0; j->beta && d < j->dk; d++)
            held += t->s[d * j->dv + m] * zc_get(j->key, key_at + d);
        t->v[m] = beta * (zc_get(j->v, (at * j->kv_heads + t->h) * j->dv + m) - held);
    }
}

static void read_state(const head *t, int64_t at)
{
    const job *j = t->j;
    int64_t group = j->heads / j->kv_heads;
    for (int64_t h = t->h * group; h < (t->h + 1) * group; h++) {
        int64_t q = (at * j->heads + h) * j->dk, y = (at * j->heads + h) * j->dv;
        for (int64_t m = 0; m < j->dv; m++) {
            double sum = 0;
            for (int64_t d = 0; d < j->dk; d++) sum += zc_get(j->q, q + d) * t->s[d * j->dv + m];
            if (zc_present(j->y)) zc_put(j->y, y + m, sum * j->scale);
        }
    }
}

static void step(const head *t, int64_t i)
{
    const job *j = t->j;
    int64_t at = t->b * j->length + i, key_at = (at * j->kv_heads + t->h) * j->dk;
    decay_state(t, at);
    make_value(t, at, key_at);
    for (int64_t d = 0; d < j->dk; d++) {
        double key = zc_get(j->key, key_at + d);
        for (int64_t m = 0; m < j->dv; m++) t->s[d * j->dv + m] += key * t->v[m];
    }
    read_state(t, at);
}

static void heads(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t n = j->dk * j->dv;
    for (int64_t i = begin; i < end; i++) {
        head t = {j, i / j->kv_heads, i % j->kv_heads, j->state + i * (n + j->dv), NULL};
        t.v = t.s + n;
        for (int64_t s = 0; s < j->length; s++) step(&t, s);
        for (int64_t e = 0; zc_present(j->state_out) && e < n; e++)
            zc_put(j->state_out, i * n + e, t.s[e]);
    }
}

static zc_status begin_state(zc_kctx *k, job *j, int64_t tasks, const zc_tensor *past)
{
    int64_t n = j->dk * j->dv, dims[] = {tasks, n + j->dv};
    size_t bytes;
    if (zc_dtype_bytes(ZC_F64, zc_numel(2, dims), &bytes))
        j->state = zc_scratch_get(k->scratch, bytes);
    if (!j->state) return zc_fail_nomem(k->diag, "linear attention state", 0);
    for (int64_t i = 0; i < tasks; i++)
        for (int64_t e = 0; e < n; e++)
            j->state[i * (n + j->dv) + e] = past ? zc_get(past, i * n + e) : 0;
    return ZC_OK;
}

static zc_status check_linear(zc_kctx *k, const job *j, const zc_tensor *past)
{
    int64_t b = j->q->dims[0], t = j->length, none[] = {0, 0, 0};
    const int64_t key[] = {b, t, j->kv_heads * j->dk}, value[] = {b, t, j->kv_heads * j->dv};
    const int64_t state[] = {b, j->kv_heads, j->dk, j->dv};
    const int64_t decay[] = {b, t, j->kv_heads * j->decay_size}, beta[] = {b, t, j->beta_heads};
    ZC_TRY(zc_check_shape(k, j->key, 3, key, "key"));
    ZC_TRY(zc_check_shape(k, j->v, 3, value, "value"));
    if (past) ZC_TRY(zc_check_shape(k, past, 4, state, "past_state"));
    if (j->decay) ZC_TRY(zc_check_shape(k, j->decay, 3, j->decay_size ? decay : none, "decay"));
    if (j->beta) ZC_TRY(zc_check_shape(k, j->beta, 3, j->beta_heads ? beta : none, "beta"));
    return ZC_OK;
}

zc_status zc_k_LinearAttention(zc_kctx *k)
{
    const zc_attrs_LinearAttention *a = ZC_ATTRS(k, LinearAttention);
    const zc_tensor *past = zc_input(k, ZC_IN_LinearAttention_state);
    job j = {.q = &k->in[ZC_IN_LinearAttention_q],
             .key = &k->in[ZC_IN_LinearAttention_k],
             .v = &k->in[ZC_IN_LinearAttention_v],
             .decay = zc_input(k, ZC_IN_LinearAttention_decay),
             .beta = zc_input(k, ZC_IN_LinearAttention_beta),
             .y = &k->out[0],
             .state_out = &k->out[1],
             .length = k->in[ZC_IN_LinearAttention_q].dims[1],
             .heads = a->q_num_heads,
             .kv_heads = a->kv_num_heads,
             .dk = k->in[ZC_IN_LinearAttention_q].dims[2] / a->q_num_heads,
             .dv = k->in[ZC_IN_LinearAttention_v].dims[2] / a->kv_num_heads};
    if (j.decay) j.decay_size = j.decay->dims[2] == j.kv_heads * j.dk ? j.dk : 1;
    if (j.beta) j.beta_heads = j.beta->dims[2] == 1 ? 1 : j.kv_heads;
    j.scale = a->scale != 0 ? a->scale : 1 / sqrt((double)j.dk);
    ZC_TRY(check_linear(k, &j, past));
    int64_t tasks = k->in[ZC_IN_LinearAttention_q].dims[0] * j.kv_heads;
    if (tasks == 0) return ZC_OK;
    ZC_TRY(begin_state(k, &j, tasks, past));
    zc_parallel(k, tasks, 1, heads, &j);
    return ZC_OK;
}

/* ---- CausalConvWithState ---- */

/* Element t of the row that past and input make together; t < 0 counts back from the input. */
static double padded(const zc_tensor *x, const zc_tensor *past, int64_t row, int64_t length,
                     int64_t kept, int64_t t)
{
    if (t >= 0) return zc_get(x, row * length + t);
    return past ? zc_get(past, row * kept + kept + t) : 0;
}

static zc_status check_conv(zc_kctx *k, int64_t kept)
{
    const zc_tensor *x = &k->in[ZC_IN_CausalConvWithState_x];
    int64_t channels = x->dims[1];
    const int64_t weight[] = {channels, 1, kept + 1}, state[] = {x->dims[0], channels, kept};
    ZC_TRY(zc_check_shape(k, &k->in[ZC_IN_CausalConvWithState_w], 3, weight, "weight"));
    if (zc_input(k, ZC_IN_CausalConvWithState_bias))
        ZC_TRY(zc_check_shape(k, &k->in[ZC_IN_CausalConvWithState_bias], 1, &channels, "bias"));
    if (zc_input(k, ZC_IN_CausalConvWithState_state))
        ZC_TRY(zc_check_shape(k, &k->in[ZC_IN_CausalConvWithState_state], 3, state, "past_state"));
    return ZC_OK;
}

zc_status zc_k_CausalConvWithState(zc_kctx *k)
{
    const zc_tensor *x = &k->in[ZC_IN_CausalConvWithState_x],
                    *w = &k->in[ZC_IN_CausalConvWithState_w],
                    *bias = zc_input(k, ZC_IN_CausalConvWithState_bias),
                    *past = zc_input(k, ZC_IN_CausalConvWithState_state);
    bool silu = strcmp(ZC_ATTRS(k, CausalConvWithState)->activation, "none") != 0;
    int64_t rows = x->dims[0] * x->dims[1], length = x->dims[2], kept = w->dims[2] - 1;
    ZC_TRY(check_conv(k, kept));
    for (int64_t r = 0; r < rows; r++) {
        int64_t c = r % x->dims[1];
        for (int64_t t = 0; zc_present(&k->out[0]) && t < length; t++) {
            double sum = bias ? zc_get(bias, c) : 0;
            for (int64_t i = 0; i <= kept; i++)
                sum +=
                    zc_get(w, c * (kept + 1) + i) * padded(x, past, r, length, kept, t - kept + i);
            zc_put(&k->out[0], r * length + t, silu ? sum / (1 + exp(-sum)) : sum);
        }
        for (int64_t i = 0; zc_present(&k->out[1]) && i < kept; i++)
            zc_put(&k->out[1], r * kept + i, padded(x, past, r, length, kept, length - kept + i));
    }
    return ZC_OK;
}
