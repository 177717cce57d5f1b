/* Attention by cuDNN: the graph of operations that its engines for attention recognise, which is
 * the one that cudnn-frontend (CompositeSDPANode) makes of scaled_dot_product_attention
 * without training's statistics as a result, and the fastest engine that the heuristics offer. It
 * reads queries, keys and values where zc does. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "cudnn_api.h"

enum {
    OFFERS = 8,
    TIMED = 2, /* of them: each is compiled, which takes seconds */
    DESCRIPTORS = 128,
    OPERATIONS = 16
};

/* Tensors that an execution is given. */
typedef enum given { GIVEN_Q, GIVEN_K, GIVEN_V, GIVEN_Y, GIVEN_SCALE, GIVEN_HIDDEN, GIVENS } given;

/* After a failed call nothing more is done; `status` tells. */
typedef struct graph {
    kb_run *r;
    struct kb_cudnn *dnn;
    zc_diag *diag;
    zc_status status;
    void *all[DESCRIPTORS]; /* descriptors, to be destroyed */
    int count;
    void *operations[OPERATIONS];
    int noperations;
    int64_t ids; /* given so far */
    float values[GIVENS];
    void *plan;
} graph;

static void check(graph *g, int code, const char *what)
{
    if (g->status == ZC_OK) g->status = kb_cudnn_check(g->dnn, code, what, g->diag);
}

static void *make(graph *g, int type)
{
    void *d = NULL;
    if (g->status != ZC_OK) return NULL;
    if (g->count == DESCRIPTORS) {
        g->status = zc_fail(g->diag, ZC_ERR_LIMIT, "cudnn", "too many descriptors");
        return NULL;
    }
    check(g, g->dnn->backend_create(type, &d), "cudnnBackendCreateDescriptor");
    if (d) g->all[g->count++] = d;
    return d;
}

static void set(graph *g, void *d, int attribute, int type, int64_t n, const void *values)
{
    char what[64];
    if (g->status != ZC_OK) return;
    zc_snprintf(what, sizeof what, "cudnnBackendSetAttribute %d", attribute);
    check(g, g->dnn->backend_set(d, attribute, type, n, values), what);
}

static void set_int(graph *g, void *d, int attribute, int type, int value)
{
    set(g, d, attribute, type, 1, &value);
}

static void set_bool(graph *g, void *d, int attribute, bool value)
{
    set(g, d, attribute, DNN_TYPE_BOOLEAN, 1, &value);
}

static void set_one(graph *g, void *d, int attribute, void *descriptor)
{
    if (descriptor) set(g, d, attribute, DNN_TYPE_DESCRIPTOR, 1, &descriptor);
}

static void finalize(graph *g, void *d, const char *what)
{
    if (g->status == ZC_OK) check(g, g->dnn->backend_finalize(d), what);
}

/* ---- tensors ---- */

typedef enum place { GIVEN, VIRTUAL, BY_VALUE } place;

static void *tensor(graph *g, int type, place where, const int64_t dims[4],
                    const int64_t strides[4])
{
    void *t = make(g, DNN_TENSOR);
    int64_t alignment = 16, id = ++g->ids;
    set_int(g, t, DNN_AT_TENSOR_TYPE, DNN_TYPE_DATA_TYPE, type);
    set(g, t, DNN_AT_TENSOR_DIMS, DNN_TYPE_INT64, 4, dims);
    set(g, t, DNN_AT_TENSOR_STRIDES, DNN_TYPE_INT64, 4, strides);
    set(g, t, DNN_AT_TENSOR_ID, DNN_TYPE_INT64, 1, &id);
    set(g, t, DNN_AT_TENSOR_ALIGNMENT, DNN_TYPE_INT64, 1, &alignment);
    if (where == VIRTUAL) set_bool(g, t, DNN_AT_TENSOR_VIRTUAL, true);
    if (where == BY_VALUE) set_bool(g, t, DNN_AT_TENSOR_BY_VALUE, true);
    finalize(g, t, "tensor");
    return t;
}

/* A result on the way, [batch, heads, rows, columns] without gaps. */
static void *between(graph *g, int type, int64_t columns)
{
    const kb_case *c = g->r->c;
    const int64_t dims[] = {c->batch, c->heads, c->rows, columns},
                  strides[] = {c->heads * c->rows * columns, c->rows * columns, columns, 1};
    return tensor(g, type, VIRTUAL, dims, strides);
}

static void *value(graph *g)
{
    static const int64_t ones[] = {1, 1, 1, 1};
    return tensor(g, DNN_FLOAT, BY_VALUE, ones, ones);
}

/* ---- operations ---- */

static void add(graph *g, void *operation, const char *what)
{
    finalize(g, operation, what);
    if (g->status == ZC_OK) g->operations[g->noperations++] = operation;
}

static void product(graph *g, void *a, void *b, void *c)
{
    void *how = make(g, DNN_MATMUL);
    set_int(g, how, DNN_AT_MATMUL_COMPUTE, DNN_TYPE_DATA_TYPE, DNN_FLOAT);
    finalize(g, how, "product");
    void *o = make(g, DNN_OPERATION_MATMUL);
    set_one(g, o, DNN_AT_OPERATION_MATMUL_A, a);
    set_one(g, o, DNN_AT_OPERATION_MATMUL_B, b);
    set_one(g, o, DNN_AT_OPERATION_MATMUL_C, c);
    set_one(g, o, DNN_AT_OPERATION_MATMUL, how);
    add(g, o, "product");
}

/* y = mode(x, b), or t ? x : b. axis: of indices; else 0. */
typedef struct pointwise_call {
    int mode, compute;
    int64_t axis;
    void *x, *b, *t, *y;
} pointwise_call;

static void pointwise(graph *g, const pointwise_call *p)
{
    const float one = 1;
    void *how = make(g, DNN_POINTWISE);
    set_int(g, how, DNN_AT_POINTWISE_MODE, DNN_TYPE_POINTWISE_MODE, p->mode);
    set_int(g, how, DNN_AT_POINTWISE_COMPUTE, DNN_TYPE_DATA_TYPE, p->compute);
    if (p->axis) set(g, how, DNN_AT_POINTWISE_AXIS, DNN_TYPE_INT64, 1, &p->axis);
    finalize(g, how, "pointwise");
    void *o = make(g, DNN_OPERATION_POINTWISE);
    set_one(g, o, DNN_AT_OPERATION_POINTWISE, how);
    set_one(g, o, DNN_AT_OPERATION_POINTWISE_X, p->x);
    set_one(g, o, DNN_AT_OPERATION_POINTWISE_Y, p->y);
    set_one(g, o, DNN_AT_OPERATION_POINTWISE_B, p->b);
    set_one(g, o, DNN_AT_OPERATION_POINTWISE_T, p->t);
    set(g, o, DNN_AT_OPERATION_POINTWISE_ALPHA1, DNN_TYPE_FLOAT, 1, &one);
    set(g, o, DNN_AT_OPERATION_POINTWISE_ALPHA2, DNN_TYPE_FLOAT, 1, &one);
    add(g, o, "pointwise");
}
#define POINTWISE(g, ...) pointwise(g, &(const pointwise_call){__VA_ARGS__})

static void reduce(graph *g, int operator, void * x, void *y)
{
    void *how = make(g, DNN_REDUCTION);
    set_int(g, how, DNN_AT_REDUCTION_COMPUTE, DNN_TYPE_DATA_TYPE, DNN_FLOAT);
    set_int(g, how, DNN_AT_REDUCTION_OPERATOR, DNN_TYPE_REDUCTION, operator);
    set_bool(g, how, DNN_AT_REDUCTION_DETERMINISTIC, false);
    finalize(g, how, "reduction");
    void *o = make(g, DNN_OPERATION_REDUCTION);
    set_one(g, o, DNN_AT_OPERATION_REDUCTION, how);
    set_one(g, o, DNN_AT_OPERATION_REDUCTION_X, x);
    set_one(g, o, DNN_AT_OPERATION_REDUCTION_Y, y);
    add(g, o, "reduction");
}

/* Keys behind the query's own are hidden. */
static void *causal(graph *g, void *scores, void *hidden)
{
    int64_t n = g->r->c->rows;
    void *masked = between(g, DNN_FLOAT, n), *row = between(g, DNN_INT32, n),
         *column = between(g, DNN_INT32, n), *seen = between(g, DNN_BOOLEAN, n);
    POINTWISE(g, .mode = DNN_INDEX, .axis = 2, .x = scores, .y = row);
    POINTWISE(g, .mode = DNN_INDEX, .axis = 3, .x = scores, .y = column);
    POINTWISE(g, .mode = DNN_GREATER_EQUAL, .compute = DNN_BOOLEAN, .x = row, .b = column,
              .y = seen);
    POINTWISE(g, .mode = DNN_SELECT, .x = scores, .b = hidden, .t = seen, .y = masked);
    return masked;
}

static void *softmax(graph *g, int type, void *scores)
{
    int64_t n = g->r->c->rows;
    void *statistics = between(g, DNN_FLOAT, 1), *shares = between(g, type, n),
         *most = between(g, DNN_FLOAT, 1), *less = between(g, DNN_FLOAT, n),
         *powers = between(g, DNN_FLOAT, n), *sum = between(g, DNN_FLOAT, 1),
         *log_sum = between(g, DNN_FLOAT, 1);
    reduce(g, DNN_REDUCE_MAX, scores, most);
    POINTWISE(g, .mode = DNN_SUB, .x = scores, .b = most, .y = less);
    POINTWISE(g, .mode = DNN_EXP, .x = less, .y = powers);
    reduce(g, DNN_REDUCE_ADD, powers, sum);
    POINTWISE(g, .mode = DNN_LOG, .x = sum, .y = log_sum);
    POINTWISE(g, .mode = DNN_ADD, .x = most, .b = log_sum, .y = statistics);
    POINTWISE(g, .mode = DNN_DIV, .x = powers, .b = sum, .y = shares);
    return shares;
}

/* ---- the graph, and its plan ---- */

/* The identifiers of what is given are given + 1. */
static void *attention(graph *g)
{
    const kb_case *c = g->r->c;
    int type = c->type == ZC_BF16 ? DNN_BFLOAT16 : DNN_HALF;
    int64_t width = c->heads * c->k, row = 3 * width;
    const int64_t dims[] = {c->batch, c->heads, c->rows, c->k},
                  turned[] = {c->batch, c->heads, c->k, c->rows},
                  strides[] = {c->rows * row, c->k, row, 1},
                  turned_strides[] = {c->rows * row, c->k, 1, row},
                  out_strides[] = {c->rows * width, c->k, width, 1};
    void *q = tensor(g, type, GIVEN, dims, strides),
         *k = tensor(g, type, GIVEN, turned, turned_strides),
         *v = tensor(g, type, GIVEN, dims, strides), *y = tensor(g, type, GIVEN, dims, out_strides),
         *scale = value(g), *hidden = value(g), *products = between(g, DNN_FLOAT, c->rows),
         *scores = between(g, DNN_FLOAT, c->rows);
    product(g, q, k, products);
    POINTWISE(g, .mode = DNN_MUL, .x = products, .b = scale, .y = scores);
    if (c->causal) scores = causal(g, scores, hidden);
    product(g, softmax(g, type, scores), v, y);
    void *all = make(g, DNN_GRAPH);
    set(g, all, DNN_AT_GRAPH_OPERATIONS, DNN_TYPE_DESCRIPTOR, g->noperations, g->operations);
    set(g, all, DNN_AT_GRAPH_HANDLE, DNN_TYPE_HANDLE, 1, &g->dnn->handle);
    finalize(g, all, "operation graph");
    return all;
}

/* Returns how many engine configurations the heuristics offer. */
static int offers(graph *g, void *operations, void *configs[OFFERS])
{
    int64_t found = 0;
    void *heuristics = make(g, DNN_HEURISTICS);
    set_one(g, heuristics, DNN_AT_HEURISTICS_GRAPH, operations);
    set_int(g, heuristics, DNN_AT_HEURISTICS_MODE, DNN_TYPE_HEURISTICS_MODE, DNN_HEURISTICS_A);
    finalize(g, heuristics, "heuristics");
    for (int i = 0; i < OFFERS; i++) configs[i] = make(g, DNN_ENGINE_CONFIG);
    if (g->status == ZC_OK)
        check(g,
              g->dnn->backend_get(heuristics, DNN_AT_HEURISTICS_RESULTS, DNN_TYPE_DESCRIPTOR,
                                  OFFERS, &found, configs),
              "offers");
    return g->status != ZC_OK ? 0 : found > OFFERS ? OFFERS : (int)found;
}

static void make_plan(graph *g, void *config)
{
    int64_t workspace = 0, n = 0;
    g->plan = make(g, DNN_PLAN);
    set(g, g->plan, DNN_AT_PLAN_HANDLE, DNN_TYPE_HANDLE, 1, &g->dnn->handle);
    set_one(g, g->plan, DNN_AT_PLAN_CONFIG, config);
    finalize(g, g->plan, "plan");
    if (g->status != ZC_OK) return;
    check(g, g->dnn->backend_get(g->plan, DNN_AT_PLAN_WORKSPACE, DNN_TYPE_INT64, 1, &n, &workspace),
          "workspace");
    if (g->status == ZC_OK && workspace > (int64_t)KB_WORKSPACE)
        g->status = zc_fail(g->diag, ZC_ERR_LIMIT, "cudnn", "a workspace of %lld bytes",
                            (long long)workspace);
}

static zc_status issue(void *user, int copy, zc_diag *diag)
{
    graph *g = user;
    kb_run *r = g->r;
    size_t part = (size_t)(r->c->heads * r->c->k) * 2;
    zc_cu_ptr x = kb_at(r, KB_X, copy);
    void *pack = NULL, *workspace = (void *)(uintptr_t)r->rig->workspace,
         *pointers[GIVENS] = {(void *)(uintptr_t)x,
                              (void *)(uintptr_t)(x + part),
                              (void *)(uintptr_t)(x + 2 * part),
                              (void *)(uintptr_t)kb_out_at(r, &r->yardstick, copy),
                              &g->values[GIVEN_SCALE],
                              &g->values[GIVEN_HIDDEN]};
    static const int64_t ids[GIVENS] = {1, 2, 3, 4, 5, 6};
    int64_t n = r->c->causal ? GIVENS : GIVENS - 1;
    int code = g->dnn->backend_create(DNN_VARIANT_PACK, &pack);
    if (!code) code = g->dnn->backend_set(pack, DNN_AT_PACK_IDS, DNN_TYPE_INT64, n, ids);
    if (!code)
        code = g->dnn->backend_set(pack, DNN_AT_PACK_POINTERS, DNN_TYPE_POINTER, n, pointers);
    if (!code)
        code = g->dnn->backend_set(pack, DNN_AT_PACK_WORKSPACE, DNN_TYPE_POINTER, 1, &workspace);
    if (!code) code = g->dnn->backend_finalize(pack);
    if (!code) code = g->dnn->backend_execute(g->dnn->handle, g->plan, pack);
    zc_status status = kb_cudnn_check(g->dnn, code, "cudnnBackendExecute", diag);
    if (pack) (void)g->dnn->backend_destroy(pack);
    return status;
}

static void release(void *user)
{
    graph *g = user;
    while (g->count) (void)g->dnn->backend_destroy(g->all[--g->count]);
    free(g);
}

static zc_status try_offers(graph *g)
{
    void *configs[OFFERS];
    double best_us = 0;
    int timed = 0;
    int n = offers(g, attention(g), configs);
    zc_status status = g->status;
    for (int i = 0; i < n && timed < TIMED && !g->r->rig->device.lost; i++) {
        bool better = false;
        g->status = ZC_OK;
        make_plan(g, configs[i]);
        status = g->status;
        if (status == ZC_OK) status = kb_try(g->r, issue, g, &best_us, &better, g->diag);
        timed += status == ZC_OK;
        if (better)
            zc_snprintf(g->r->yardstick.how, sizeof g->r->yardstick.how, "offer %d of %d", i + 1,
                        n);
    }
    if (best_us > 0) return ZC_OK;
    return status == ZC_OK ? zc_fail(g->diag, ZC_ERR_UNSUPPORTED, "cudnn", "it offers nothing")
                           : status;
}

zc_status kb_cudnn_attention(kb_run *r, zc_diag *diag)
{
    if (!r->rig->cudnn) return zc_fail(diag, ZC_ERR_UNSUPPORTED, "cudnn", "%s", r->rig->no_cudnn);
    graph *g = zc_calloc(1, sizeof *g);
    if (!g) return zc_fail_nomem(diag, "graph", sizeof *g);
    *g = (graph){.r = r, .dnn = r->rig->cudnn, .diag = diag};
    g->values[GIVEN_SCALE] =
        (float)(r->c->scale ? zc_strtod(r->c->scale, NULL) : 1 / sqrt((double)r->c->k));
    g->values[GIVEN_HIDDEN] = -INFINITY;
    /* Plans keep the kernels that the captured graph launches. */
    r->yardstick.release = release;
    r->yardstick.held = g;
    zc_status status = try_offers(g);
    g->diag = NULL;
    return status;
}
