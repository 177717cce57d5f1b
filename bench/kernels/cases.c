/* What is measured: products, attention, convolutions and normalisations of networks. */
#include <string.h>

#include "base/number.h"
#include "bench.h"

#define SQUARE(name_, type_, side, goal_)                                                          \
    .group = "gemm", .name = name_ "_" #side, .kind = KB_PRODUCT, .type = type_, .goal = goal_,    \
    .rows = side, .k = side, .n = side, .transposed = (type_) == ZC_F8E4M3FN || (type_) == ZC_I8,  \
    .variable = true
#define GEMM(type_name, type_, side, goal_) {SQUARE(type_name, type_, side, goal_)},
#define GEMM_E4M3(side)                     {SQUARE("e4m3", ZC_F8E4M3FN, side, 1.0), .scaled = true},
/* Beside a yardstick that adds up steps of e4m3's sums in f32, as zc does. */
#define GEMM_F32_SUMS(side)                                                                        \
    {SQUARE("e4m3_f32_sums", ZC_F8E4M3FN, side, 1.0), .scaled = true, .f32_sums = true},

/* Results of f32 by scales of the columns, which cuBLASLt does not give of bytes. */
#define GEMM_SCALED_BYTES(side) {SQUARE("s8_scaled", ZC_I8, side, 0), .scaled = true, .wide = true},

/* A transformer's four products, of `hidden` columns. */
#define LAYER(prefix, batch_, rows_, hidden, gelu)                                                 \
    {.group = "products",                                                                          \
     .name = prefix "_qkv",                                                                        \
     .type = ZC_F16,                                                                               \
     .batch = batch_,                                                                              \
     .rows = rows_,                                                                                \
     .k = hidden,                                                                                  \
     .n = 3 * (hidden),                                                                            \
     .bias = true},                                                                                \
        {.group = "products",                                                                      \
         .name = prefix "_out",                                                                    \
         .type = ZC_F16,                                                                           \
         .batch = batch_,                                                                          \
         .rows = rows_,                                                                            \
         .k = hidden,                                                                              \
         .n = hidden,                                                                              \
         .bias = true,                                                                             \
         .residual = true},                                                                        \
        {.group = "products",                                                                      \
         .name = prefix "_ffn1",                                                                   \
         .type = ZC_F16,                                                                           \
         .batch = batch_,                                                                          \
         .rows = rows_,                                                                            \
         .k = hidden,                                                                              \
         .n = 4 * (hidden),                                                                        \
         .bias = true,                                                                             \
         .act = gelu},                                                                             \
        {.group = "products",                                                                      \
         .name = prefix "_ffn2",                                                                   \
         .type = ZC_F16,                                                                           \
         .batch = batch_,                                                                          \
         .rows = rows_,                                                                            \
         .k = 4 * (hidden),                                                                        \
         .n = hidden,                                                                              \
         .bias = true,                                                                             \
         .residual = true},

#define LLAMA(name_, k_, ...)                                                                      \
    {.group = "products",                                                                          \
     .name = "llama_7b_512_" name_,                                                                \
     .type = ZC_F16,                                                                               \
     .batch = 1,                                                                                   \
     .rows = 512,                                                                                  \
     .k = k_,                                                                                      \
     .n = __VA_ARGS__},

/* Weights of so few rows are stored along the summed axis (rule few_rows). */
#define LINEAR(rows_, goal_)                                                                       \
    {.group = "linear",                                                                            \
     .name = "4096x4096_m" #rows_,                                                                 \
     .type = ZC_F16,                                                                               \
     .goal = goal_,                                                                                \
     .batch = 1,                                                                                   \
     .rows = rows_,                                                                                \
     .transposed = (rows_) <= 8,                                                                   \
     .k = 4096,                                                                                    \
     .n = 4096},

#define ATTENTION(batch_, heads_, rows_, ...)                                                      \
    {.group = "attention",                                                                         \
     .kind = KB_ATTENTION,                                                                         \
     .type = ZC_F16,                                                                               \
     .batch = batch_,                                                                              \
     .heads = heads_,                                                                              \
     .rows = rows_,                                                                                \
     .k = __VA_ARGS__},

#define CONV(group_, name_, batch_, size_, from, to, kernel_, ...)                                 \
    {.group = group_,                                                                              \
     .name = name_,                                                                                \
     .kind = KB_CONV,                                                                              \
     .type = ZC_F16,                                                                               \
     .batch = batch_,                                                                              \
     .size = size_,                                                                                \
     .k = from,                                                                                    \
     .n = to,                                                                                      \
     .kernel = kernel_,                                                                            \
     .bias = true,                                                                                 \
     .act = KB_RELU,                                                                               \
     .stride = __VA_ARGS__},

/* ResNet-50: the stem, and of each stage the first bottleneck's three convolutions and its
 * shortcut, then those of the others that differ: the first's is as wide as the stage, the second
 * has no stride. The first stage's shortcut has the sizes of its third convolution. */
#define RESNET50(group, batch)                                                                     \
    CONV(group, "stem", batch, 224, 3, 64, 7, 2, .image = true)                                    \
    CONV(group, "1_first", batch, 56, 64, 64, 1, 1)                                                \
    CONV(group, "1_second", batch, 56, 64, 64, 3, 1)                                               \
    CONV(group, "1_third", batch, 56, 64, 256, 1, 1, .residual = true)                             \
    CONV(group, "1_next", batch, 56, 256, 64, 1, 1)                                                \
    STAGE(group, "2", batch, 56, 28, 256, 128)                                                     \
    STAGE(group, "3", batch, 28, 14, 512, 256)                                                     \
    STAGE(group, "4", batch, 14, 7, 1024, 512)
#define STAGE(group, name, batch, before, after, in, mid)                                          \
    CONV(group, name "_first", batch, before, in, mid, 1, 1)                                       \
    CONV(group, name "_down", batch, before, mid, mid, 3, 2)                                       \
    CONV(group, name "_third", batch, after, mid, 4 * (mid), 1, 1, .residual = true)               \
    CONV(group, name "_shortcut", batch, before, in, 4 * (mid), 1, 2, .residual = true,            \
         .first = true)                                                                            \
    CONV(group, name "_next", batch, after, 4 * (mid), mid, 1, 1)                                  \
    CONV(group, name "_second", batch, after, mid, mid, 3, 1)

/* As the models' exports say it, one unit in the last place below 1/8. */
#define BERT_SCALE .scale = "0.124999993"

const kb_case kb_cases[] = {
    /* clang-format off */
    GEMM("f16", ZC_F16, 4096, 0.98)
    GEMM("bf16", ZC_BF16, 4096, 0.98)
    GEMM("f16", ZC_F16, 8192, 1.0)
    GEMM("bf16", ZC_BF16, 8192, 1.0)
    GEMM_E4M3(4096)
    GEMM_E4M3(8192)
    GEMM_F32_SUMS(4096)
    GEMM_F32_SUMS(8192)
    GEMM("s8", ZC_I8, 4096, 1.3)
    GEMM("s8", ZC_I8, 8192, 1.3)
    GEMM_SCALED_BYTES(4096)
    LAYER("bert_base_128", 1, 128, 768, KB_GELU)
    LAYER("bert_base_512", 1, 512, 768, KB_GELU)
    LAYER("bert_base_4096", 32, 128, 768, KB_GELU)
    LAYER("bert_base_16384", 32, 512, 768, KB_GELU)
    LAYER("gpt2_1024", 1, 1024, 768, KB_GELU_TANH)
    {.group = "products", .name = "gpt2_1024_head", .type = ZC_F16, .batch = 1, .rows = 1024, .k = 768, .n = 50257,
     .transposed = true, .wide = true},
    LLAMA("qkv", 4096, 12288)
    LLAMA("out", 4096, 4096, .residual = true)
    LLAMA("gate_up", 4096, 11008, .transposed = true, .gated = true)
    LLAMA("down", 11008, 4096, .residual = true)
    LLAMA("head", 4096, 32000)
    LINEAR(1, 1.35)
    LINEAR(8, 1.25)
    LINEAR(32, 1.25)
    LINEAR(128, 1.2)
    ATTENTION(1, 12, 128, 64, .name = "b1_h12_s128_d64", BERT_SCALE)
    ATTENTION(32, 12, 128, 64, .name = "b32_h12_s128_d64", BERT_SCALE)
    ATTENTION(32, 12, 512, 64, .name = "b32_h12_s512_d64", BERT_SCALE)
    ATTENTION(16, 32, 512, 64, .name = "b16_h32_s512_d64")
    ATTENTION(1, 32, 2048, 128, .name = "b1_h32_s2048_d128_causal", .causal = true)
    ATTENTION(1, 32, 8192, 128, .name = "b1_h32_s8192_d128_causal", .causal = true)
    ATTENTION(8, 16, 4096, 64, .name = "b8_h16_s4096_d64_causal", .causal = true)
    ATTENTION(8, 16, 4096, 128, .name = "b8_h16_s4096_d128")
    RESNET50("resnet50_b1", 1)
    RESNET50("resnet50_b32", 32)
    {.group = "rows", .name = "layer_norm", .kind = KB_LAYER_NORM, .type = ZC_F16, .rows = 16384, .n = 4096},
    {.group = "rows", .name = "residual_layer_norm", .kind = KB_LAYER_NORM, .type = ZC_F16, .rows = 16384, .n = 4096,
     .residual = true},
    {.group = "rows", .name = "softmax", .kind = KB_SOFTMAX, .type = ZC_F16, .rows = 16384, .n = 4096},
    /* Each kind once, small: does all of it work? */
    {.group = "smoke", .name = "gemm", .type = ZC_BF16, .rows = 96, .k = 128, .n = 64, .variable = true},
    {.group = "smoke", .name = "e4m3", .type = ZC_F8E4M3FN, .rows = 96, .k = 128, .n = 64, .transposed = true, .variable = true, .scaled = true},
    {.group = "smoke", .name = "s8", .type = ZC_I8, .rows = 96, .k = 144, .n = 64, .transposed = true, .variable = true},
    {.group = "smoke", .name = "linear", .type = ZC_F16, .batch = 1, .rows = 24, .k = 64, .n = 72, .bias = true,
     .residual = true},
    {.group = "smoke", .name = "gelu", .type = ZC_F16, .batch = 2, .rows = 40, .k = 64, .n = 64, .bias = true, .act = KB_GELU},
    {.group = "smoke", .name = "head", .type = ZC_F16, .batch = 1, .rows = 24, .k = 64, .n = 77, .transposed = true, .wide = true},
    {.group = "smoke", .name = "gate_up", .type = ZC_F16, .batch = 1, .rows = 72, .k = 64, .n = 64, .transposed = true, .gated = true},
    {.group = "smoke", .name = "attention", .kind = KB_ATTENTION, .type = ZC_F16, .batch = 2, .heads = 2, .rows = 72, .k = 64,
     .causal = true},
    {.group = "smoke", .name = "stem", .kind = KB_CONV, .type = ZC_F16, .batch = 1, .size = 20, .k = 3, .n = 64, .kernel = 7,
     .stride = 2, .bias = true, .act = KB_RELU, .image = true},
    {.group = "smoke", .name = "conv", .kind = KB_CONV, .type = ZC_F16, .batch = 2, .size = 9, .k = 64, .n = 64, .kernel = 3,
     .stride = 2, .bias = true, .act = KB_RELU, .residual = true},
    {.group = "smoke", .name = "layer_norm", .kind = KB_LAYER_NORM, .type = ZC_F16, .rows = 40, .n = 256, .residual = true},
    {.group = "smoke", .name = "softmax", .kind = KB_SOFTMAX, .type = ZC_F16, .rows = 40, .n = 256},
    /* clang-format on */
};
const size_t kb_case_count = ZC_COUNTOF(kb_cases);

const kb_group kb_groups[] = {
    {"gemm", 0, 0, false},      {"products", 1.15, 0.97, false}, {"linear", 0, 0, false},
    {"attention", 0, 0, false}, {"resnet50_b1", 1.5, 0, false},  {"resnet50_b32", 1.15, 0, false},
    {"rows", 0, 0.9, false},    {"smoke", 0, 0, true},
};
const size_t kb_group_count = ZC_COUNTOF(kb_groups);

const kb_group *kb_group_of(const kb_case *c)
{
    const kb_group *g = kb_groups;
    while (strcmp(g->name, c->group) != 0) g++;
    return g;
}

/* ---- as operations ---- */

static bool put_tensor(kb_problem *p, kb_role role, zc_dtype dtype, int rank, const int64_t *dims)
{
    kb_tensor *t = &p->t[role];
    *t = (kb_tensor){.dtype = dtype, .rank = rank, .count = 1};
    for (int d = 0; d < rank; d++) {
        t->dims[d] = dims[d];
        if (!zc_mul_i64(t->count, dims[d], &t->count)) return false;
    }
    if (!zc_dtype_bytes(dtype, t->count, &t->bytes)) return false;
    p->bytes += t->bytes;
    return true;
}
#define TENSOR(p, role, dtype, rank, ...)                                                          \
    put_tensor(p, role, dtype, rank, (const int64_t[]){__VA_ARGS__})

/* `least`: operands that are named even where they are left out. */
static void put_order(kb_problem *p, int least, int n, const kb_role *order)
{
    memcpy(p->order, order, (size_t)n * sizeof *order);
    p->nin = n;
    for (int i = 0; i < n; i++)
        if (order[i] != KB_OUT && !p->t[order[i]].dtype) p->order[i] = KB_OUT;
    while (p->nin > least && p->order[p->nin - 1] == KB_OUT) p->nin--;
}
#define ORDER(p, least, n, ...) put_order(p, least, n, (const kb_role[]){__VA_ARGS__})

static void constant_weights(kb_problem *p)
{
    p->t[KB_W].constant = p->t[KB_SECOND_W].constant = p->t[KB_BIAS].constant = true;
    p->t[KB_W].weight = p->t[KB_SECOND_W].weight = true;
}

static const char *product_epilogue(const kb_case *c)
{
    if (c->act == KB_GELU) return "0.5 * x0 * (1 + erf(x0 * 0.7071067811865476))";
    if (c->act == KB_GELU_TANH)
        return "0.5 * x0 * (1 + tanh(0.7978845608028654 * (x0 + 0.044715 * x0 * x0 * x0)))";
    if (c->residual) return "x0 + x1";
    return c->wide && !c->scaled ? "f32(x0)" : NULL;
}

static zc_dtype product_type(const kb_case *c)
{
    if (c->wide) return ZC_F32;
    if (c->scaled) return ZC_F16;
    return c->type == ZC_I8 ? ZC_I32 : c->type;
}

static const char *product_op(const kb_case *c)
{
    if (c->scaled) return "ScaledLinear";
    if (c->gated) return "GatedLinear";
    if (c->type == ZC_I8) return "MatMulInteger";
    return c->variable ? "MatMul" : "Linear";
}

static void put_product_attrs(const kb_case *c, kb_problem *p)
{
    const char *epilogue = product_epilogue(c);
    if (c->gated)
        zc_snprintf(p->attrs, sizeof p->attrs, "{activation = \"Swish\"}");
    else
        zc_snprintf(p->attrs, sizeof p->attrs, "{%s%s%s%s%s%s}",
                    c->scaled && !c->wide ? "to = f16, " : "", c->transposed ? "transB = 1" : "",
                    c->transposed && epilogue ? ", " : "", epilogue ? "epilogue = \"" : "",
                    epilogue ? epilogue : "", epilogue ? "\"" : "");
}

static bool product(const kb_case *c, kb_problem *p)
{
    const zc_dtype out = product_type(c);
    int rank = c->batch ? 3 : 2, skip = 3 - rank;
    const int64_t x[] = {c->batch, c->rows, c->k}, y[] = {c->batch, c->rows, c->n};
    bool ok =
        put_tensor(p, KB_X, c->type, rank, x + skip) &&
        put_tensor(p, KB_OUT, out, rank, y + skip) &&
        TENSOR(p, KB_W, c->type, 2, c->transposed ? c->n : c->k, c->transposed ? c->k : c->n) &&
        (!c->gated || TENSOR(p, KB_SECOND_W, c->type, 2, c->n, c->k)) &&
        (!c->scaled || TENSOR(p, KB_SCALE, ZC_F32, 1, c->n)) &&
        (!c->bias || TENSOR(p, KB_BIAS, c->type, 1, c->n)) &&
        (!c->residual || put_tensor(p, KB_RESIDUAL, c->type, rank, y + skip));
    p->op = product_op(c);
    constant_weights(p);
    p->t[KB_SCALE].constant = p->t[KB_SCALE].ones = true;
    p->t[KB_W].constant = !c->variable;
    put_product_attrs(c, p);
    if (c->scaled)
        ORDER(p, 3, 4, KB_X, KB_W, KB_SCALE, KB_BIAS);
    else if (c->gated)
        ORDER(p, 3, 3, KB_X, KB_W, KB_SECOND_W);
    else
        ORDER(p, 1, 4, KB_X, KB_W, KB_BIAS, KB_RESIDUAL);
    p->flops = (c->gated ? 4.0 : 2.0) * (double)p->t[KB_OUT].count * (double)c->k;
    return ok;
}

static bool conv(const kb_case *c, kb_problem *p)
{
    int64_t pad = c->kernel / 2, out = (c->size + 2 * pad - c->kernel) / c->stride + 1;
    const char *epilogue = !c->residual ? "max(x0, 0)"
                           : c->first   ? "t0_t0 = x1 + x0; max(t0_t0, 0)"
                                        : "t0_t0 = x0 + x1; max(t0_t0, 0)";
    bool ok = (c->image ? TENSOR(p, KB_X, ZC_F32, 4, c->batch, c->k, c->size, c->size)
                        : TENSOR(p, KB_X, c->type, 4, c->batch, c->size, c->size, c->k)) &&
              TENSOR(p, KB_W, c->type, 4, c->n, c->kernel, c->kernel, c->k) &&
              TENSOR(p, KB_BIAS, c->type, 1, c->n) &&
              TENSOR(p, KB_OUT, c->type, 4, c->batch, out, out, c->n) &&
              (!c->residual || TENSOR(p, KB_RESIDUAL, c->type, 4, c->batch, out, out, c->n));
    p->op = c->image ? "ConvImage" : "ConvNhwc";
    constant_weights(p);
    zc_snprintf(
        p->attrs, sizeof p->attrs,
        "{dilations = [1, 1], kernel_shape = [%lld, %lld], pads = [%lld, %lld, %lld, %lld], "
        "strides = [%lld, %lld], %sepilogue = \"%s\"}",
        (long long)c->kernel, (long long)c->kernel, (long long)pad, (long long)pad, (long long)pad,
        (long long)pad, (long long)c->stride, (long long)c->stride,
        c->image ? "" : "taps_first = 1, ", epilogue);
    if (c->image)
        ORDER(p, 1, 3, KB_X, KB_W, KB_BIAS);
    else /* its own residual is left out */
        ORDER(p, 4, 5, KB_X, KB_W, KB_BIAS, KB_OUT, KB_RESIDUAL);
    p->flops = 2.0 * (double)p->t[KB_OUT].count * (double)(c->k * c->kernel * c->kernel);
    return ok;
}

static bool attention(const kb_case *c, kb_problem *p)
{
    bool ok = TENSOR(p, KB_X, c->type, 3, c->batch, c->rows, 3 * c->heads * c->k) &&
              TENSOR(p, KB_OUT, c->type, 3, c->batch, c->rows, c->heads * c->k);
    p->op = "Attention";
    zc_snprintf(p->attrs, sizeof p->attrs, "{%skv_num_heads = %lld, q_num_heads = %lld%s%s}",
                c->causal ? "is_causal = 1, " : "", (long long)c->heads, (long long)c->heads,
                c->scale ? ", scale = " : "", c->scale ? c->scale : "");
    ORDER(p, 1, 1, KB_X);
    /* Of a triangle its half. */
    p->flops = (c->causal ? 2.0 : 4.0) * (double)p->t[KB_OUT].count * (double)c->rows;
    return ok;
}

static bool rows(const kb_case *c, kb_problem *p)
{
    bool norm = c->kind == KB_LAYER_NORM;
    bool ok =
        TENSOR(p, KB_X, c->type, 2, c->rows, c->n) &&
        TENSOR(p, KB_OUT, c->type, 2, c->rows, c->n) &&
        (!norm || (TENSOR(p, KB_W, c->type, 1, c->n) && TENSOR(p, KB_BIAS, c->type, 1, c->n))) &&
        (!c->residual || TENSOR(p, KB_RESIDUAL, c->type, 2, c->rows, c->n));
    p->op = norm ? "LayerNormalization" : "Softmax";
    p->t[KB_W].constant = p->t[KB_BIAS].constant = true;
    zc_snprintf(p->attrs, sizeof p->attrs, "{%s}",
                c->residual ? "prologue = \"x0 + x1\", prologue_inputs = 1" : "");
    ORDER(p, 1, 4, KB_X, KB_W, KB_BIAS, KB_RESIDUAL);
    return ok;
}

bool kb_describe(const kb_case *c, kb_problem *out)
{
    *out = (kb_problem){0};
    switch (c->kind) {
    case KB_PRODUCT:
        return product(c, out);
    case KB_CONV:
        return conv(c, out);
    case KB_ATTENTION:
        return attention(c, out);
    case KB_LAYER_NORM:
    case KB_SOFTMAX:
        return rows(c, out);
    }
    return false;
}
