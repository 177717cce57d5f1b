/* Single elements of results, in f64. */
#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "bench.h"

typedef struct element {
    const kb_case *c;
    const kb_problem *p;
    const float *value[KB_ROLES]; /* of the operands' pools */
    int64_t place[KB_ROLES];
    kb_form form;
} element;

static double at(const element *e, kb_role role, int64_t i)
{
    return (double)e->value[role][(e->place[role] + i) % KB_POOL];
}

static bool has(const element *e, kb_role role)
{
    return e->p->t[role].dtype != ZC_NONE;
}

static double act(kb_act a, double v)
{
    if (a == KB_RELU) return v > 0 ? v : 0;
    if (a == KB_GELU) return 0.5 * v * (1 + erf(v * 0.7071067811865476));
    if (a == KB_GELU_TANH)
        return 0.5 * v * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    return v;
}

static double product_by(const element *e, kb_role w, int64_t index)
{
    int64_t n = e->c->n, k = e->c->k, row = index / n, column = index % n;
    double sum = 0;
    for (int64_t i = 0; i < k; i++)
        sum += at(e, KB_X, row * k + i) *
               at(e, w, e->form.transposed ? column * k + i : i * n + column);
    return sum;
}

static double gate(const element *e, int64_t index)
{
    double second = product_by(e, KB_SECOND_W, index);
    if (e->form.ungated) return second;
    double first = product_by(e, KB_W, index);
    return first / (1 + exp(-first)) * second;
}

static double product(const element *e, int64_t index)
{
    if (e->c->gated) return gate(e, index);
    double sum = product_by(e, KB_W, index);
    if (has(e, KB_BIAS)) sum += at(e, KB_BIAS, index % e->c->n);
    sum = act(e->form.act, sum);
    return has(e, KB_RESIDUAL) ? sum + at(e, KB_RESIDUAL, index) : sum;
}

static int64_t pixel(const element *e, int64_t b, int64_t y, int64_t x, int64_t channel)
{
    int64_t size = e->c->size, k = e->c->k;
    return e->form.channels_last ? ((b * size + y) * size + x) * k + channel
                                 : ((b * k + channel) * size + y) * size + x;
}

static double conv(const element *e, int64_t index)
{
    const kb_case *c = e->c;
    int64_t side = e->p->t[KB_OUT].dims[1], m = index % c->n, at_pixel = index / c->n;
    int64_t left = at_pixel % side * c->stride - c->kernel / 2,
            top = at_pixel / side % side * c->stride - c->kernel / 2, b = at_pixel / side / side;
    double sum = at(e, KB_BIAS, m);
    for (int64_t i = 0; i < c->kernel * c->kernel * c->k; i++) {
        int64_t y = top + i / c->k / c->kernel, x = left + i / c->k % c->kernel;
        if (y < 0 || y >= c->size || x < 0 || x >= c->size) continue;
        sum += at(e, KB_X, pixel(e, b, y, x, i % c->k)) *
               at(e, KB_W, m * c->kernel * c->kernel * c->k + i);
    }
    if (has(e, KB_RESIDUAL)) sum += at(e, KB_RESIDUAL, index);
    return act(e->form.act, sum);
}

static double attention(const element *e, int64_t index)
{
    const kb_case *c = e->c;
    int64_t width = c->heads * c->k, column = index % width, row = index / width % c->rows;
    int64_t item = index / width / c->rows * c->rows, head = column / c->k * c->k;
    int64_t keys = c->causal ? row + 1 : c->rows;
    double most = -INFINITY, sum = 0, all = 0,
           scale = c->scale ? zc_strtod(c->scale, NULL) : 1 / sqrt((double)c->k);
    for (int64_t key = 0; key < keys; key++) {
        double score = 0;
        for (int64_t i = 0; i < c->k; i++)
            score += at(e, KB_X, (item + row) * 3 * width + head + i) *
                     at(e, KB_X, ((item + key) * 3 + 1) * width + head + i);
        score *= scale;
        double before = most, value = at(e, KB_X, ((item + key) * 3 + 2) * width + column);
        most = fmax(most, score);
        double old = exp(before - most), share = exp(score - most);
        all = all * old + share;
        sum = sum * old + share * value;
    }
    return sum / all;
}

static double summand(const element *e, int64_t i)
{
    return at(e, KB_X, i) + (has(e, KB_RESIDUAL) ? at(e, KB_RESIDUAL, i) : 0);
}

static double layer_norm(const element *e, int64_t index)
{
    int64_t n = e->c->n, row = index / n * n, column = index % n;
    double mean = 0, variance = 0;
    for (int64_t i = 0; i < n; i++) mean += summand(e, row + i) / (double)n;
    for (int64_t i = 0; i < n; i++) variance += pow(summand(e, row + i) - mean, 2) / (double)n;
    return (summand(e, index) - mean) / sqrt(variance + 1e-5) * at(e, KB_W, column) +
           at(e, KB_BIAS, column);
}

static double softmax(const element *e, int64_t index)
{
    int64_t n = e->c->n, row = index / n * n;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) sum += exp(at(e, KB_X, row + i));
    return exp(at(e, KB_X, index)) / sum;
}

double kb_reference(const kb_case *c, const kb_problem *p, const kb_pools *pools,
                    const kb_form *form, int copy, int64_t index)
{
    element e = {.c = c, .p = p, .form = *form};
    for (int role = 0; role < KB_ROLES; role++) {
        e.value[role] = pools->value[kb_pool_of(&p->t[role])];
        e.place[role] = kb_place((kb_role)role, copy);
    }
    switch (c->kind) {
    case KB_PRODUCT:
        return product(&e, index);
    case KB_CONV:
        return conv(&e, index);
    case KB_ATTENTION:
        return attention(&e, index);
    case KB_LAYER_NORM:
        return layer_norm(&e, index);
    case KB_SOFTMAX:
        return softmax(&e, index);
    }
    return NAN;
}
