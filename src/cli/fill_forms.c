/* From a tensor's uses to the distribution of its values. */
#include <math.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fill.h"

#define HOPS_MAX 8

static const struct {
    const char *op;
    size_t slot;
    form form;
} USES[] = {
    {"MatMul", 0, FORM_LEFT},
    {"MatMul", 1, FORM_RIGHT},
    {"FusedMatMul", 1, FORM_RIGHT},
    {"Gemm", 0, FORM_LEFT},
    {"Gemm", 1, FORM_RIGHT},
    {"Gemm", 2, FORM_SMALL},
    {"Conv", 1, FORM_CONV},
    {"FusedConv", 1, FORM_CONV},
    {"ConvTranspose", 1, FORM_CONV_TRANSPOSE},
    {"RNN", 1, FORM_LEFT},
    {"RNN", 2, FORM_LEFT},
    {"RNN", 3, FORM_SMALL},
    {"GRU", 1, FORM_LEFT},
    {"GRU", 2, FORM_LEFT},
    {"GRU", 3, FORM_SMALL},
    {"LSTM", 1, FORM_LEFT},
    {"LSTM", 2, FORM_LEFT},
    {"LSTM", 3, FORM_SMALL},
    {"Gather", 0, FORM_EMBEDDING},
    {"EmbedLayerNormalization", 2, FORM_EMBEDDING},
    {"EmbedLayerNormalization", 3, FORM_EMBEDDING},
    {"EmbedLayerNormalization", 4, FORM_EMBEDDING},
    {"EmbedLayerNormalization", 5, FORM_SCALE},
    {"BatchNormalization", 1, FORM_SCALE},
    {"BatchNormalization", 4, FORM_POSITIVE},
    {"InstanceNormalization", 1, FORM_SCALE},
    {"GroupNormalization", 1, FORM_SCALE},
    {"LayerNormalization", 1, FORM_SCALE},
    {"RMSNormalization", 1, FORM_SCALE},
    {"SimplifiedLayerNormalization", 1, FORM_SCALE},
    {"SkipLayerNormalization", 2, FORM_SCALE},
    {"SkipSimplifiedLayerNormalization", 2, FORM_SCALE},
    {"Mul", 0, FORM_SCALE},
    {"Mul", 1, FORM_SCALE},
    {"Div", 1, FORM_POSITIVE},
    {"QuantizeLinear", 1, FORM_POSITIVE},
    {"DequantizeLinear", 1, FORM_POSITIVE},
};

static const Onnx__AttributeProto *find_attribute(const Onnx__NodeProto *node, const char *name)
{
    for (size_t i = 0; i < node->n_attribute; i++)
        if (strcmp(text(node->attribute[i]->name), name) == 0) return node->attribute[i];
    return NULL;
}

static int64_t int_attribute(const Onnx__NodeProto *node, const char *name, int64_t otherwise)
{
    const Onnx__AttributeProto *a = find_attribute(node, name);
    return a && a->has_i ? a->i : otherwise;
}

static void transpose(const Onnx__NodeProto *node, size_t rank, int64_t *dims)
{
    const Onnx__AttributeProto *perm = find_attribute(node, "perm");
    int64_t old[ZC_RANK_MAX] = {0};
    memcpy(old, dims, rank * sizeof *dims);
    for (size_t i = 0; i < rank; i++) {
        int64_t from = perm && perm->n_ints == rank ? perm->ints[i] : (int64_t)(rank - 1 - i);
        if (from >= 0 && from < (int64_t)rank) dims[i] = old[from];
    }
}

static form form_of(const use *u, size_t rank)
{
    const char *op = text(u->node->op_type);
    for (size_t i = 0; i < ZC_COUNTOF(USES); i++) {
        if (USES[i].slot != u->slot || strcmp(USES[i].op, op) != 0) continue;
        return strcmp(op, "Mul") == 0 && rank != 1 ? FORM_NONE : USES[i].form;
    }
    return FORM_NONE;
}

/* Products that one result sums. */
static double fan_in(form use_form, const Onnx__NodeProto *node, size_t rank, const int64_t *dims)
{
    double product = 1;
    if (rank < 2) return rank ? (double)dims[0] : 1;
    switch (use_form) {
    case FORM_LEFT:
        return (double)dims[rank - (int_attribute(node, "transA", 0) ? 2 : 1)];
    case FORM_CONV:
        for (size_t i = 1; i < rank; i++) product *= (double)dims[i];
        return product;
    case FORM_CONV_TRANSPOSE:
        for (size_t i = 0; i < rank; i++) product *= i == 1 ? 1 : (double)dims[i];
        return product /
               (double)(int_attribute(node, "group", 1) > 1 ? int_attribute(node, "group", 1) : 1);
    default:
        return (double)dims[rank - (node && int_attribute(node, "transB", 0) ? 1 : 2)];
    }
}

static double deviation_of(form use_form, const Onnx__NodeProto *node, size_t rank,
                           const int64_t *dims)
{
    if (use_form == FORM_EMBEDDING) return 0.5;
    if (use_form == FORM_SMALL || use_form == FORM_SCALE) return 0.02;
    return 1 / sqrt(fmax(1, fan_in(use_form, node, rank, dims)));
}

/* Takes one use into account, looking through what only moves or converts the elements. */
static void judge_use(const fill *f, const use *u, piece *p)
{
    size_t rank = p->proto->n_dims;
    int64_t dims[ZC_RANK_MAX] = {0};
    for (size_t i = 0; i < rank; i++) dims[i] = p->proto->dims[i];
    for (int hops = 0; hops < HOPS_MAX; hops++) {
        const char *op = text(u->node->op_type);
        if (strcmp(op, "Transpose") == 0)
            transpose(u->node, rank, dims);
        else if (strcmp(op, "Identity") != 0 && strcmp(op, "Cast") != 0)
            break;
        size_t next =
            u->node->n_output ? cli_fill_first_use(f, text(u->node->output[0])) : f->uses.len;
        if (next == f->uses.len) return;
        u = &f->uses.data[next];
    }
    form found = form_of(u, rank);
    if (found <= p->form) return;
    p->form = found;
    p->deviation = deviation_of(found, u->node, rank, dims);
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

void cli_fill_judge(const fill *f, piece *p)
{
    size_t rank = p->proto->n_dims;
    for (size_t i = cli_fill_first_use(f, p->name); i < f->uses.len; i++) {
        if (strcmp(f->uses.data[i].name, p->name) != 0) break;
        judge_use(f, &f->uses.data[i], p);
    }
    if (p->form != FORM_NONE) return;
    p->form = ends_with(p->name, "norm.weight") || ends_with(p->name, "norm_weight") ? FORM_SCALE
              : rank < 2                                                             ? FORM_SMALL
                                                                                     : FORM_NONE;
    p->deviation = deviation_of(p->form, NULL, rank, p->proto->dims);
}
