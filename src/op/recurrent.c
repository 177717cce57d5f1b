#include "op/recurrent.h"

#include <math.h>
#include <string.h>

/* ---- activations ---- */

typedef enum act_kind {
    ACT_RELU,
    ACT_TANH,
    ACT_SIGMOID,
    ACT_AFFINE,
    ACT_LEAKY_RELU,
    ACT_THRESHOLDED_RELU,
    ACT_SCALED_TANH,
    ACT_HARD_SIGMOID,
    ACT_ELU,
    ACT_SOFTSIGN,
    ACT_SOFTPLUS
} act_kind;

/* params: how many of alpha, beta an activation takes from the attributes. */
static const struct {
    const char *name;
    int params;
    double alpha, beta;
} acts[] = {
    [ACT_RELU] = {"Relu", 0, 0, 0},
    [ACT_TANH] = {"Tanh", 0, 0, 0},
    [ACT_SIGMOID] = {"Sigmoid", 0, 0, 0},
    [ACT_AFFINE] = {"Affine", 2, 1, 0},
    [ACT_LEAKY_RELU] = {"LeakyRelu", 1, 0.01f, 0},
    [ACT_THRESHOLDED_RELU] = {"ThresholdedRelu", 1, 1, 0},
    [ACT_SCALED_TANH] = {"ScaledTanh", 2, 1, 1},
    [ACT_HARD_SIGMOID] = {"HardSigmoid", 2, 0.2f, 0.5f},
    [ACT_ELU] = {"Elu", 1, 1, 0},
    [ACT_SOFTSIGN] = {"Softsign", 0, 0, 0},
    [ACT_SOFTPLUS] = {"Softplus", 0, 0, 0},
};

double zc_rnn_act_apply(const zc_rnn_act *act, double x)
{
    double a = act->alpha, b = act->beta;
    switch ((act_kind)act->kind) {
    case ACT_RELU:
        return x < 0 ? 0 : x;
    case ACT_TANH:
        return tanh(x);
    case ACT_SIGMOID:
        return 1 / (1 + exp(-x));
    case ACT_AFFINE:
        return a * x + b;
    case ACT_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case ACT_THRESHOLDED_RELU:
        return x < a ? 0 : x;
    case ACT_SCALED_TANH:
        return a * tanh(b * x);
    case ACT_HARD_SIGMOID:
        x = a * x + b;
        return x < 0 ? 0 : x > 1 ? 1 : x;
    case ACT_ELU:
        return x < 0 ? a * expm1(x) : x;
    case ACT_SOFTSIGN:
        return x / (1 + fabs(x));
    case ACT_SOFTPLUS:
        return fmax(x, 0) + log1p(exp(-fabs(x)));
    }
    return x;
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* Names compare without regard to case. */
static int find_act(const char *name, size_t len)
{
    for (size_t i = 0; i < ZC_COUNTOF(acts); i++) {
        size_t n = 0;
        if (strlen(acts[i].name) != len) continue;
        while (n < len && lower(acts[i].name[n]) == lower(name[n])) n++;
        if (n == len) return (int)i;
    }
    return -1;
}

/* ---- attributes ---- */

typedef struct attrs {
    const char *activations, *direction;
    zc_floats alpha, beta;
    int64_t layout, hidden;
} attrs;

#define ATTRS(a)                                                                                   \
    ((attrs){(a)->activations, (a)->direction, (a)->activation_alpha, (a)->activation_beta,        \
             (a)->layout, (a)->hidden_size})

#define LSTM_ATTRS(name, op)                                                                       \
    static attrs name(const zc_attrs_##op *a, zc_recurrent *r)                                     \
    {                                                                                              \
        r->gates = 4;                                                                              \
        r->functions = 3;                                                                          \
        r->clips = ZC_ATTR_GIVEN(op, a, clip);                                                     \
        r->clip = a->clip;                                                                         \
        r->hidden = ZC_ATTR_GIVEN(op, a, hidden_size) ? a->hidden_size : -1;                       \
        r->input_forget = a->input_forget != 0;                                                    \
        return ATTRS(a);                                                                           \
    }
LSTM_ATTRS(lstm_attrs, LSTM)
LSTM_ATTRS(quantised_lstm_attrs, DynamicQuantizeLSTM)
#undef LSTM_ATTRS

static attrs read_attrs(zc_op op, const void *from, zc_recurrent *r)
{
    if (op == ZC_OP_RNN) {
        const zc_attrs_RNN *a = from;
        r->gates = r->functions = 1;
        r->clips = ZC_ATTR_GIVEN(RNN, a, clip);
        r->clip = a->clip;
        r->hidden = ZC_ATTR_GIVEN(RNN, a, hidden_size) ? a->hidden_size : -1;
        return ATTRS(a);
    }
    if (op == ZC_OP_GRU) {
        const zc_attrs_GRU *a = from;
        r->gates = 3;
        r->functions = 2;
        r->clips = ZC_ATTR_GIVEN(GRU, a, clip);
        r->clip = a->clip;
        r->hidden = ZC_ATTR_GIVEN(GRU, a, hidden_size) ? a->hidden_size : -1;
        r->linear_first = a->linear_before_reset != 0;
        return ATTRS(a);
    }
    return op == ZC_OP_LSTM ? lstm_attrs(from, r) : quantised_lstm_attrs(from, r);
}

typedef struct names {
    const char *at[7];
    size_t len[7];
    int n; /* 7: too many */
} names;

static names split(const char *list)
{
    names out = {.n = 0};
    while (list && list[0] && out.n < 7) {
        const char *end = strchr(list, ',');
        out.at[out.n] = list;
        out.len[out.n++] = end ? (size_t)(end - list) : strlen(list);
        list = end ? end + 1 : NULL;
    }
    return out;
}

/* Parameters go to the activations that take them, in order; those left out are the defaults. */
static void take_params(zc_rnn_act *act, const attrs *a, int *alpha, int *beta)
{
    act->alpha = acts[act->kind].alpha;
    act->beta = acts[act->kind].beta;
    if (acts[act->kind].params > 0 && *alpha < a->alpha.n) act->alpha = a->alpha.v[(*alpha)++];
    if (acts[act->kind].params > 1 && *beta < a->beta.n) act->beta = a->beta.v[(*beta)++];
}

static zc_status read_acts(const attrs *a, const char *subject, zc_diag *diag, zc_recurrent *r)
{
    static const int usual[] = {ACT_SIGMOID, ACT_TANH, ACT_TANH};
    names list = split(a->activations);
    int need = r->functions * r->directions, alpha = 0, beta = 0;
    if (list.n && list.n != need)
        return zc_fail(diag, ZC_ERR_MODEL, subject,
                       "activations has a wrong length (got %d%s, need %d)", list.n,
                       list.n == 7 ? " or more" : "", need);
    for (int i = 0; i < need; i++) {
        int plain = r->gates == 1 ? ACT_TANH : usual[i % r->functions];
        r->act[i].kind = list.n ? find_act(list.at[i], list.len[i]) : plain;
        if (r->act[i].kind < 0) {
            int len = list.len[i] < 64 ? (int)list.len[i] : 64;
            return zc_fail(diag, ZC_ERR_MODEL, subject, "unknown activation (got \"%.*s\")", len,
                           list.at[i]);
        }
        take_params(&r->act[i], a, &alpha, &beta);
    }
    return ZC_OK;
}

zc_status zc_recurrent_of(zc_op op, const void *from, const char *subject, zc_diag *diag,
                          zc_recurrent *out)
{
    *out = (zc_recurrent){.directions = 1};
    attrs a = read_attrs(op, from, out);
    const char *direction = a.direction ? a.direction : "";
    if (strcmp(direction, "bidirectional") == 0)
        out->directions = 2;
    else if (strcmp(direction, "reverse") == 0)
        out->reverse = true;
    else if (strcmp(direction, "forward") != 0)
        return zc_fail(diag, ZC_ERR_MODEL, subject,
                       "direction must be forward, reverse or bidirectional (got \"" ZC_NAME "\")",
                       direction);
    if (a.layout != 0 && a.layout != 1)
        return zc_fail(diag, ZC_ERR_MODEL, subject, "layout must be 0 or 1 (got %lld)",
                       (long long)a.layout);
    out->batch_first = a.layout == 1;
    return read_acts(&a, subject, diag, out);
}

bool zc_rnn_acts_are_usual(const zc_recurrent *r)
{
    for (int i = 0; i < r->directions * r->functions; i++) {
        bool is_gate = r->functions > 1 && i % r->functions == 0;
        if (r->act[i].kind != (is_gate ? ACT_SIGMOID : ACT_TANH)) return false;
    }
    return true;
}
