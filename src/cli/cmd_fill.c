#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/cli.h"
#include "import/load.h"
#include "op/dtype.h"

const char cli_fill_help[] =
    "usage: zc fill MODEL -o DIR [OPTIONS]\n"
    "\n"
    "Completes a model whose external weights are missing: DIR gets model.onnx, a copy of MODEL, "
    "and\n"
    "the files that its tensors name. Tensors of a missing file get random values that keep the\n"
    "activations finite: scaled by the fan-in where they are multiplied. A file that lies beside\n"
    "MODEL is copied. The same seed always gives the same bytes.\n"
    "\n"
    "  -o, --output DIR         where to write; made when it does not exist\n"
    "      --seed N             another seed gives other values (default 0)\n"
    "  -q, --quiet              print nothing on success\n"
    "\n"
    "examples:\n"
    "  zc fill bert.onnx -o filled\n"
    "  zc fill llama.onnx -o filled --seed 7\n";

#define CHUNK_ELEMENTS 65536 /* a multiple of 8: sub-byte elements fill whole bytes */
#define CHUNK_BYTES    ((size_t)CHUNK_ELEMENTS * 8)
#define HOPS_MAX       8
/* Unused bytes between two tensors; more is an error in the model and not padding. */
#define GAP_MAX ((uint64_t)1 << 30)

/* How a tensor is used, weakest first: of several uses the strongest decides. */
typedef enum form {
    FORM_NONE,
    FORM_SMALL,     /* around 0: biases, means */
    FORM_EMBEDDING, /* rows that are looked up */
    FORM_SCALE,     /* around 1; for a Mul only when the tensor is a vector */
    FORM_POSITIVE,  /* 0.5 to 1.5: variances, divisors */
    FORM_LEFT,      /* left matrix: sums over its last axis, with transA over the one before */
    FORM_RIGHT,     /* right matrix: sums over the last axis but one, with transB over the last */
    FORM_CONV,
    FORM_CONV_TRANSPOSE,
} form;

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

typedef struct use {
    const char *name;
    const Onnx__NodeProto *node;
    size_t slot, order;
} use;

/* One external tensor. */
typedef struct piece {
    const Onnx__TensorProto *proto;
    const char *name, *location;
    uint64_t offset;
    size_t bytes;
    int64_t count;
    zc_dtype dtype;
    form form;
    double deviation;
} piece;

/* Nodes and initialisers of a graph, or the nodes of a function. */
typedef struct scope {
    Onnx__NodeProto **nodes;
    size_t node_count;
    const Onnx__GraphProto *graph;
} scope;

typedef struct fill {
    const char *model, *output;
    char *root; /* the directory of the model */
    uint64_t seed;
    zc_diag *diag;
    ZC_VEC(scope) scopes;
    ZC_VEC(use) uses;
    ZC_VEC(piece) pieces;
    uint8_t *chunk;
    size_t tensors, shared, copied; /* for the summary; copied counts files */
    uint64_t bytes;
} fill;

static const char *text(const char *s)
{
    return s ? s : "";
}

static zc_status nomem(fill *f)
{
    return zc_fail_nomem(f->diag, "the model's tensors", 0);
}

/* ---- which tensors ---- */

static bool is_external(const Onnx__TensorProto *t)
{
    return t && t->has_data_location &&
           t->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static zc_status read_shape(fill *f, piece *p)
{
    const Onnx__TensorProto *t = p->proto;
    if (!zc_dtype_valid(t->data_type) || zc_dtype_class((zc_dtype)t->data_type) == ZC_CLASS_COMPLEX)
        return zc_fail(f->diag, ZC_ERR_UNSUPPORTED, p->name,
                       "cannot make values of this data type (got %d, need numbers or bool)",
                       t->data_type);
    if (t->n_dims > ZC_RANK_MAX)
        return zc_fail(f->diag, ZC_ERR_LIMIT, p->name,
                       "too many dimensions (got %zu, need at most %d)", t->n_dims, ZC_RANK_MAX);
    p->dtype = (zc_dtype)t->data_type;
    p->count = 1;
    for (size_t i = 0; i < t->n_dims; i++)
        if (t->dims[i] < 0)
            return zc_fail(f->diag, ZC_ERR_MODEL, p->name, "negative dimension (got %lld)",
                           (long long)t->dims[i]);
    for (size_t i = 0; i < t->n_dims; i++)
        if (t->dims[i] == 0) p->count = 0;
    for (size_t i = 0; i < t->n_dims && p->count; i++)
        if (!zc_mul_i64(p->count, t->dims[i], &p->count))
            return zc_fail(f->diag, ZC_ERR_LIMIT, p->name, "too many elements");
    if (!zc_dtype_bytes(p->dtype, p->count, &p->bytes))
        return zc_fail(f->diag, ZC_ERR_LIMIT, p->name, "too many elements (got %lld)",
                       (long long)p->count);
    return ZC_OK;
}

static zc_status check_location(fill *f, const piece *p)
{
    const char *s = p->location;
    if (!s) return zc_fail(f->diag, ZC_ERR_MODEL, p->name, "external data has no key 'location'");
    if (!*s || strpbrk(s, "/\\") || strcmp(s, ".") == 0 || strcmp(s, "..") == 0)
        return zc_fail(f->diag, ZC_ERR_UNSUPPORTED, p->name,
                       "external data's location is not a plain file name (got '" ZC_NAME "')", s);
    if (strcmp(s, "model.onnx") == 0)
        return zc_fail(f->diag, ZC_ERR_UNSUPPORTED, p->name,
                       "external data's location is the name that the model itself gets (got '%s')",
                       s);
    return ZC_OK;
}

static zc_status read_external(fill *f, piece *p)
{
    int64_t offset = 0, length = -1;
    for (size_t i = 0; i < p->proto->n_external_data; i++) {
        const char *key = text(p->proto->external_data[i]->key);
        const char *value = text(p->proto->external_data[i]->value);
        int64_t *number = strcmp(key, "offset") == 0   ? &offset
                          : strcmp(key, "length") == 0 ? &length
                                                       : NULL;
        if (strcmp(key, "location") == 0) p->location = value;
        if (strcmp(key, "checksum") == 0)
            return zc_fail(f->diag, ZC_ERR_UNSUPPORTED, p->name,
                           "external data has a checksum, which random values cannot match");
        if (number && !cli_int(value, 0, INT64_MAX, number))
            return zc_fail(f->diag, ZC_ERR_MODEL, p->name,
                           "external data's %s is not a decimal number (got '%.64s')", key, value);
    }
    ZC_TRY(check_location(f, p));
    if (length >= 0 && (uint64_t)length != p->bytes)
        return zc_fail(f->diag, ZC_ERR_MODEL, p->name,
                       "external data's length does not fit the shape (got %lld bytes, need %zu)",
                       (long long)length, p->bytes);
    if (!zc_range_ok((uint64_t)offset, p->bytes, INT64_MAX))
        return zc_fail(f->diag, ZC_ERR_LIMIT, p->name,
                       "external data ends beyond any file (got offset %lld)", (long long)offset);
    p->offset = (uint64_t)offset;
    return ZC_OK;
}

static zc_status add_tensor(fill *f, const Onnx__TensorProto *t, const char *name)
{
    if (!is_external(t)) return ZC_OK;
    piece p = {.proto = t, .name = text(name)};
    ZC_TRY(read_shape(f, &p));
    ZC_TRY(read_external(f, &p));
    return ZC_VEC_PUSH(&f->pieces, p) ? ZC_OK : nomem(f);
}

static zc_status refuse_sparse(fill *f, const Onnx__SparseTensorProto *s, const char *name)
{
    if (!s || (!is_external(s->values) && !is_external(s->indices))) return ZC_OK;
    return zc_fail(f->diag, ZC_ERR_UNSUPPORTED, name,
                   "cannot make values of a sparse tensor with external data");
}

static zc_status add_graph(fill *f, const Onnx__GraphProto *g)
{
    scope s = {g->node, g->n_node, g};
    return ZC_VEC_PUSH(&f->scopes, s) ? ZC_OK : nomem(f);
}

static zc_status add_attribute(fill *f, const Onnx__NodeProto *node, const Onnx__AttributeProto *a)
{
    const char *name = node->n_output ? node->output[0] : node->name;
    ZC_TRY(add_tensor(f, a->t, name));
    for (size_t i = 0; i < a->n_tensors; i++) ZC_TRY(add_tensor(f, a->tensors[i], name));
    ZC_TRY(refuse_sparse(f, a->sparse_tensor, name));
    for (size_t i = 0; i < a->n_sparse_tensors; i++)
        ZC_TRY(refuse_sparse(f, a->sparse_tensors[i], name));
    if (a->g) ZC_TRY(add_graph(f, a->g));
    for (size_t i = 0; i < a->n_graphs; i++) ZC_TRY(add_graph(f, a->graphs[i]));
    return ZC_OK;
}

static zc_status add_node(fill *f, const Onnx__NodeProto *node)
{
    for (size_t i = 0; i < node->n_input; i++) {
        use u = {text(node->input[i]), node, i, f->uses.len};
        if (*u.name && !ZC_VEC_PUSH(&f->uses, u)) return nomem(f);
    }
    for (size_t i = 0; i < node->n_attribute; i++)
        ZC_TRY(add_attribute(f, node, node->attribute[i]));
    return ZC_OK;
}

static zc_status add_scope(fill *f, scope s)
{
    const Onnx__GraphProto *g = s.graph;
    for (size_t i = 0; g && i < g->n_initializer; i++)
        ZC_TRY(add_tensor(f, g->initializer[i], g->initializer[i]->name));
    for (size_t i = 0; g && i < g->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *sparse = g->sparse_initializer[i];
        ZC_TRY(refuse_sparse(f, sparse, sparse->values ? sparse->values->name : NULL));
    }
    for (size_t i = 0; i < s.node_count; i++) ZC_TRY(add_node(f, s.nodes[i]));
    return ZC_OK;
}

static int by_name(const void *a, const void *b)
{
    const use *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* Graphs within nodes join the list while it is worked off. Names are unique over nested graphs, so
 * one table of uses serves them all. */
static zc_status collect(fill *f, const Onnx__ModelProto *model)
{
    if (model->graph) ZC_TRY(add_graph(f, model->graph));
    for (size_t i = 0; i < model->n_functions; i++) {
        scope s = {model->functions[i]->node, model->functions[i]->n_node, NULL};
        if (!ZC_VEC_PUSH(&f->scopes, s)) return nomem(f);
    }
    for (size_t i = 0; i < f->scopes.len; i++) ZC_TRY(add_scope(f, f->scopes.data[i]));
    if (f->uses.len) qsort(f->uses.data, f->uses.len, sizeof *f->uses.data, by_name);
    return ZC_OK;
}

/* ---- which values ---- */

/* Index of the first use of a name; uses.len when there is none. */
static size_t first_use(const fill *f, const char *name)
{
    size_t low = 0, high = f->uses.len;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (strcmp(f->uses.data[mid].name, name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low < f->uses.len && strcmp(f->uses.data[low].name, name) == 0 ? low : f->uses.len;
}

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
        size_t next = u->node->n_output ? first_use(f, text(u->node->output[0])) : f->uses.len;
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

static void judge(const fill *f, piece *p)
{
    size_t rank = p->proto->n_dims;
    for (size_t i = first_use(f, p->name); i < f->uses.len; i++) {
        if (strcmp(f->uses.data[i].name, p->name) != 0) break;
        judge_use(f, &f->uses.data[i], p);
    }
    if (p->form != FORM_NONE) return;
    p->form = ends_with(p->name, "norm.weight") || ends_with(p->name, "norm_weight") ? FORM_SCALE
              : rank < 2                                                             ? FORM_SMALL
                                                                                     : FORM_NONE;
    p->deviation = deviation_of(p->form, NULL, rank, p->proto->dims);
}

/* ---- making values ---- */

/* Well-mixed bits of a number (the finalizer of splitmix64). */
static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* The tensor's stream, by seed and name alone. */
static uint64_t stream_of(uint64_t seed, const char *name)
{
    uint64_t h = mix(seed + UINT64_C(0x9E3779B97F4A7C15));
    for (; *name; name++) h = mix(h ^ (uint8_t)*name) + UINT64_C(0x9E3779B97F4A7C15);
    return h;
}

static uint64_t bits_at(uint64_t stream, int64_t i)
{
    return mix(stream + (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15));
}

/* Mean 0, deviation 1: a sum of four uniform numbers is close to normal, has no far outliers, and
 * is the same on every machine, as it needs no function of the mathematical library. */
static double normal(uint64_t bits)
{
    int64_t sum =
        (int64_t)((bits & 0xFFFF) + (bits >> 16 & 0xFFFF) + (bits >> 32 & 0xFFFF) + (bits >> 48));
    return (double)(sum - 131070) * (1 / 37837.227);
}

static double uniform(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

static void make_floats(const piece *p, uint64_t stream, int64_t first, int64_t n, uint8_t *out)
{
    double mean = p->form == FORM_SCALE ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t bits = bits_at(stream, first + i);
        double v =
            p->form == FORM_POSITIVE ? 0.5 + uniform(bits) : mean + p->deviation * normal(bits);
        if (p->dtype == ZC_F32)
            memcpy(out + 4 * i, &(float){(float)v}, 4);
        else
            zc_store_f64(p->dtype, out, i, v);
    }
}

static void make_ints(const piece *p, uint64_t stream, int64_t first, int64_t n, uint8_t *out)
{
    for (int64_t i = 0; i < n; i++)
        zc_store_i64(p->dtype, out, i, p->dtype == ZC_BOOL || bits_at(stream, first + i) >> 63);
}

static zc_status write_values(fill *f, const piece *p, zc_writer *w)
{
    uint64_t stream = stream_of(f->seed, p->name);
    for (int64_t first = 0; first < p->count; first += CHUNK_ELEMENTS) {
        int64_t n = p->count - first < CHUNK_ELEMENTS ? p->count - first : CHUNK_ELEMENTS;
        size_t bytes = 0;
        if (!zc_dtype_bytes(p->dtype, n, &bytes) || bytes > CHUNK_BYTES)
            return zc_fail(f->diag, ZC_ERR_INTERNAL, p->name,
                           "a chunk of values is too large (got %zu bytes)", bytes);
        if (zc_dtype_bits(p->dtype) < 8) memset(f->chunk, 0, bytes); /* padding bits */
        (zc_dtype_is_float(p->dtype) ? make_floats : make_ints)(p, stream, first, n, f->chunk);
        ZC_TRY(zc_writer_write(w, f->chunk, bytes, f->diag));
    }
    return ZC_OK;
}

/* ---- writing files ---- */

static char *join(const char *dir, const char *name)
{
    zc_buf b = {0};
    zc_buf_printf(&b, "%s/%s", dir, name);
    if (!b.failed) return b.data;
    zc_buf_fini(&b);
    return NULL;
}

static char *directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

/* Tensors of one file, sorted: by place, and of tensors that share one the strongest use first. */
static int by_place(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    int order = strcmp(x->location, y->location);
    if (order) return order;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    if (x->form != y->form) return x->form > y->form ? -1 : 1;
    return strcmp(x->name, y->name);
}

static zc_status pad(fill *f, const piece *p, uint64_t at, zc_writer *w)
{
    if (p->offset - at > GAP_MAX)
        return zc_fail(
            f->diag, ZC_ERR_LIMIT, p->name,
            "too many unused bytes before it in '" ZC_NAME "' (got %llu, need at most %llu)",
            p->location, (unsigned long long)(p->offset - at), (unsigned long long)GAP_MAX);
    if (at < p->offset) memset(f->chunk, 0, CHUNK_BYTES);
    while (at < p->offset) {
        size_t n = p->offset - at < CHUNK_BYTES ? (size_t)(p->offset - at) : CHUNK_BYTES;
        ZC_TRY(zc_writer_write(w, f->chunk, n, f->diag));
        at += n;
    }
    return ZC_OK;
}

static zc_status write_pieces(fill *f, const piece *pieces, size_t n, zc_writer *w)
{
    uint64_t end = 0;
    const piece *last = NULL;
    for (size_t i = 0; i < n; i++) {
        const piece *p = &pieces[i];
        f->tensors++;
        if (!p->bytes) continue;
        bool same =
            last && last->offset == p->offset && last->bytes == p->bytes && last->dtype == p->dtype;
        f->shared += same;
        if (same) continue;
        if (p->offset < end)
            return zc_fail(f->diag, ZC_ERR_UNSUPPORTED, p->name,
                           "its bytes in '" ZC_NAME "' overlap those of '" ZC_NAME
                           "' (got offset %llu, need %llu)",
                           p->location, last->name, (unsigned long long)p->offset,
                           (unsigned long long)end);
        ZC_TRY(pad(f, p, end, w));
        ZC_TRY(write_values(f, p, w));
        end = p->offset + p->bytes;
        f->bytes += p->bytes;
        last = p;
    }
    return ZC_OK;
}

static zc_status copy_bytes(fill *f, int fd, uint64_t size, const char *name, zc_writer *w)
{
    for (uint64_t off = 0; off < size;) {
        size_t n = size - off < CHUNK_BYTES ? (size_t)(size - off) : CHUNK_BYTES;
        ZC_TRY(zc_file_pread(fd, f->chunk, n, off, name, f->diag));
        ZC_TRY(zc_writer_write(w, f->chunk, n, f->diag));
        off += n;
    }
    return ZC_OK;
}

/* A file that is there holds all that its tensors need, or it is damaged. */
static zc_status copy_weights(fill *f, const piece *pieces, size_t n, zc_writer *w)
{
    int fd = -1;
    uint64_t size = 0;
    ZC_TRY(zc_file_open_beneath(f->root, pieces->location, &fd, &size, f->diag));
    zc_status status = ZC_OK;
    for (size_t i = 0; i < n && status == ZC_OK; i++)
        if (!zc_range_ok(pieces[i].offset, pieces[i].bytes, size))
            status = zc_fail(
                f->diag, ZC_ERR_MODEL, pieces[i].name,
                "'" ZC_NAME "' is incomplete (got %llu bytes, need %llu): complete it or remove it",
                pieces[i].location, (unsigned long long)size,
                (unsigned long long)(pieces[i].offset + pieces[i].bytes));
    if (status == ZC_OK) status = copy_bytes(f, fd, size, pieces->location, w);
    zc_file_close(fd);
    f->copied++;
    return status;
}

/* Writes or copies one external file. A link that leads nowhere counts as there: it is an error. */
static zc_status write_weights(fill *f, const piece *pieces, size_t n)
{
    struct stat st;
    zc_writer *w = NULL;
    char *source = join(f->root, pieces->location), *target = join(f->output, pieces->location);
    zc_status status = source && target ? zc_writer_open(target, &w, f->diag) : nomem(f);
    if (status == ZC_OK) {
        bool absent = lstat(source, &st) != 0 && errno == ENOENT;
        status = (absent ? write_pieces : copy_weights)(f, pieces, n, w);
    }
    if (status == ZC_OK) status = zc_writer_commit(&w, f->diag);
    zc_writer_abort(&w);
    free(source);
    free(target);
    return status;
}

static zc_status write_files(fill *f)
{
    piece *p = f->pieces.data;
    for (size_t i = 0; i < f->pieces.len; i++) judge(f, &p[i]);
    if (p) qsort(p, f->pieces.len, sizeof *p, by_place);
    for (size_t i = 0, n; i < f->pieces.len; i += n) {
        for (n = 1; i + n < f->pieces.len && strcmp(p[i].location, p[i + n].location) == 0;) n++;
        ZC_TRY(write_weights(f, p + i, n));
    }
    return ZC_OK;
}

static zc_status copy_model(fill *f, int fd, uint64_t size, zc_writer **w)
{
    ZC_TRY(copy_bytes(f, fd, size, f->model, *w));
    ZC_TRY(write_files(f));
    return zc_writer_commit(w, f->diag);
}

/* The model's copy is begun first, so that a directory that cannot be written is found at once, and
 * put in place last. */
static zc_status write_all(fill *f)
{
    int fd = -1;
    uint64_t size = 0;
    zc_writer *w = NULL;
    char reason[128];
    if (mkdir(f->output, 0777) != 0 && errno != EEXIST)
        return zc_fail(f->diag, ZC_ERR_IO, f->output, "cannot make the directory (%s)",
                       strerror_r(errno, reason, sizeof reason));
    char *target = join(f->output, "model.onnx");
    zc_status status = target ? zc_writer_open(target, &w, f->diag) : nomem(f);
    if (status == ZC_OK) status = zc_file_open(f->model, &fd, &size, f->diag);
    if (status == ZC_OK) status = copy_model(f, fd, size, &w);
    zc_writer_abort(&w);
    zc_file_close(fd);
    free(target);
    return status;
}

static zc_status run(fill *f)
{
    Onnx__ModelProto *model = NULL;
    ZC_TRY(zc_onnx_load(f->model, &model, f->diag));
    f->root = directory_of(f->model);
    f->chunk = zc_calloc(1, CHUNK_BYTES);
    zc_status status = f->root && f->chunk ? collect(f, model) : nomem(f);
    if (status == ZC_OK) status = write_all(f);
    ZC_VEC_FINI(&f->scopes);
    ZC_VEC_FINI(&f->uses);
    ZC_VEC_FINI(&f->pieces);
    free(f->chunk);
    free(f->root);
    zc_onnx_free(&model);
    return status;
}

/* ---- the command ---- */

static int parse(int argc, char **argv, fill *f, bool *quiet)
{
    static const struct option longs[] = {
        {"output", required_argument, NULL, 'o'},
        {"seed", required_argument, NULL, 's'},
        {"quiet", no_argument, NULL, 'q'},
        {NULL, 0, NULL, 0},
    };
    int c;
    int64_t seed;
    while ((c = getopt_long(argc, argv, "o:q", longs, NULL)) != -1) {
        switch (c) {
        case 'o':
            f->output = optarg;
            break;
        case 'q':
            *quiet = true;
            break;
        case 's':
            if (!cli_int(optarg, 0, INT64_MAX, &seed))
                return cli_usage("fill", "--seed needs a whole number");
            f->seed = (uint64_t)seed;
            break;
        default:
            return cli_bad_option("fill");
        }
    }
    if (optind + 1 != argc) return cli_usage("fill", "needs one model");
    f->model = argv[optind];
    return f->output && *f->output ? EXIT_OK : cli_usage("fill", "needs --output DIR");
}

int cli_fill(int argc, char **argv)
{
    double start = cli_now();
    fill f = {0};
    bool quiet = false;
    int code = parse(argc, argv, &f, &quiet);
    if (code) return code;
    f.diag = zc_diag_create();
    zc_status status = run(&f);
    if (status != ZC_OK) {
        code = cli_report(f.diag, status);
    } else if (!quiet) {
        cli_put(stdout, f.output);
        printf(": tensors filled: %zu (%.1f MB, %zu share the bytes of others), files copied: %zu, "
               "in %.2f s\n",
               f.tensors, (double)f.bytes / 1e6, f.shared, f.copied, cli_now() - start);
    }
    zc_diag_destroy(&f.diag);
    return code;
}
