/* Constants: initialisers, tensors in attributes, numbers that steps make. */
#include <stdlib.h>

#include "import/importer.h"

/* Counts a constant's bytes against the budget. */
static zc_status charge(zc_imp *im, const zc_tensor *t, const char *subject)
{
    size_t bytes = 0;
    if (!zc_tensor_bytes(t, &bytes) || bytes > im->budget - im->bytes)
        return im->status = zc_fail(im->diag, ZC_ERR_LIMIT, subject,
                                    "constants exceed the memory budget (need at most %llu bytes)",
                                    (unsigned long long)im->budget);
    im->bytes += bytes;
    return ZC_OK;
}

/* Makes t, whose bytes are from malloc and taken in any case, a constant. */
static zc_status own(zc_imp *im, zc_tensor *t, const char *name, const char *subject, zc_vid *out)
{
    zc_status status = charge(im, t, subject);
    if (status != ZC_OK) {
        free(t->data);
        return status;
    }
    *out = zc_graph_const(im->g, name, t, true);
    return *out ? ZC_OK : zc_imp_nomem(im, "constants");
}

/* ---- without bytes ---- */

static bool is_external(const Onnx__TensorProto *p)
{
    return p->has_data_location && p->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

/* The tensor's type alone; false when even that is wrong. */
static bool type_only(const Onnx__TensorProto *p, zc_tensor *out)
{
    *out = (zc_tensor){.rank = (int)p->n_dims};
    if (p->n_dims > ZC_MAX_RANK || !p->has_data_type || !zc_dtype_valid(p->data_type)) return false;
    out->dtype = (zc_dtype)p->data_type;
    for (size_t i = 0; i < p->n_dims; i++) out->dims[i] = p->dims[i];
    size_t bytes;
    return zc_tensor_bytes(out, &bytes);
}

/* A constant without bytes when the tensor's file is not there and that is allowed; *out is 0 when
 * the ordinary road is to be taken. */
static zc_status try_weightless(zc_imp *im, const Onnx__TensorProto *proto, const char *name,
                                zc_vid *out)
{
    zc_tensor t;
    *out = 0;
    if (!im->params->weightless || !is_external(proto)) return ZC_OK;
    zc_status status = zc_tensor_from_proto(proto, im->ext, &t, NULL);
    if (status == ZC_OK) return own(im, &t, name, name, out);
    if (im->ext && status != ZC_ERR_IO) return ZC_OK;
    if (!type_only(proto, &t)) return ZC_OK;
    *out = zc_graph_const(im->g, name, &t, false);
    return *out ? ZC_OK : zc_imp_nomem(im, "constants");
}

/* ---- tensors of the model ---- */

/* The slot where a tensor that may be imported again has its constant: a function's, for each call,
 * or a body's. */
static zc_vid *shared_slot(zc_imp *im, const Onnx__TensorProto *proto)
{
    const void **key = zc_arena_alloc(&im->arena, 1, sizeof *key);
    if (!key) return NULL;
    *key = proto;
    bool added;
    zc_smap_slot *s =
        zc_smap_add(&im->shared, (const char *)key, sizeof *key, im->shared_rows.len, &added);
    if (!s || (added && !ZC_VEC_PUSH(&im->shared_rows, 0))) return NULL;
    return &im->shared_rows.data[s->value];
}

static zc_status make(zc_imp *im, Onnx__TensorProto *proto, const char *name, const char *subject,
                      zc_vid *out)
{
    ZC_TRY(try_weightless(im, proto, name, out));
    if (*out) return ZC_OK;
    zc_tensor t;
    const char *before = zc_diag_lend_subject(im->diag, subject);
    zc_status status = zc_tensor_take_proto(proto, im->ext, &t, im->diag);
    zc_diag_lend_subject(im->diag, before);
    if (status != ZC_OK) return im->status = status;
    return own(im, &t, name, subject, out);
}

zc_status zc_imp_tensor(zc_imp *im, Onnx__TensorProto *proto, const char *name, const char *subject,
                        zc_vid *out)
{
    /* The bytes are moved out of the message at first use. */
    bool is_shared = im->frame || im->depth;
    zc_vid *slot = is_shared ? shared_slot(im, proto) : NULL;
    if (is_shared && !slot) return zc_imp_nomem(im, "constants");
    if (slot && *slot) {
        *out = *slot;
        return ZC_OK;
    }
    ZC_TRY(make(im, proto, name, subject, out));
    if (slot) *slot = *out;
    return ZC_OK;
}

zc_status zc_imp_sparse(zc_imp *im, const Onnx__SparseTensorProto *proto, const char *name,
                        const char *subject, zc_vid *out)
{
    zc_tensor t;
    const char *before = zc_diag_lend_subject(im->diag, subject);
    zc_status status = zc_tensor_from_sparse(proto, im->ext, im->budget - im->bytes, &t, im->diag);
    zc_diag_lend_subject(im->diag, before);
    if (status != ZC_OK) return im->status = status;
    return own(im, &t, name, subject, out);
}

/* ---- initialisers ---- */

/* What comes of a constant that could or could not be made. */
static zc_status settle(zc_imp *im, zc_name *name, zc_status status, zc_vid v)
{
    if (status == ZC_ERR_UNSUPPORTED) {
        im->unsupported++;
        im->status = ZC_OK;
        name->state = ZC_NAME_POISONED;
        return ZC_OK;
    }
    name->state = ZC_NAME_READY;
    name->vid = v;
    return status;
}

static zc_status define(zc_imp *im, zc_scope *scope, const char *text, zc_name **out)
{
    if (!*text) return zc_fail(im->diag, ZC_ERR_MODEL, NULL, "an initialiser has no name");
    return zc_scope_define(scope, text, "initialiser", ZC_NO_NODE, out, im->diag);
}

zc_status zc_imp_initialisers(zc_imp *im, zc_scope *scope, const Onnx__GraphProto *graph)
{
    zc_name *name;
    zc_vid v = 0;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        Onnx__TensorProto *t = graph->initializer[i];
        ZC_TRY(define(im, scope, zc_text(t->name), &name));
        zc_status status = zc_imp_tensor(im, t, t->name, t->name, &v);
        ZC_TRY(settle(im, name, status, v));
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        const Onnx__SparseTensorProto *t = graph->sparse_initializer[i];
        const char *text = t->values ? zc_text(t->values->name) : "";
        ZC_TRY(define(im, scope, text, &name));
        zc_status status = zc_imp_sparse(im, t, text, text, &v);
        ZC_TRY(settle(im, name, status, v));
    }
    return ZC_OK;
}

/* ---- made by steps ---- */

zc_vid zc_imp_const(zc_imp *im, const char *name, const zc_tensor *t)
{
    if (im->status != ZC_OK || charge(im, t, name) != ZC_OK) return 0;
    zc_vid v = zc_graph_const(im->g, name, t, false);
    if (!v) zc_imp_nomem(im, "constants");
    return v;
}

zc_vid zc_imp_ints(zc_imp *im, const int64_t *v, int n, int rank)
{
    static const int64_t none = 0;
    zc_tensor t = {.dtype = ZC_I64, .rank = rank, .dims = {n}};
    t.data = (void *)(uintptr_t)(n ? v : &none);
    return zc_imp_const(im, NULL, &t);
}

zc_vid zc_imp_scalar(zc_imp *im, zc_dtype dtype, double value)
{
    uint64_t bytes[2] = {0};
    zc_tensor t = {.dtype = dtype, .rank = 0, .data = bytes};
    if (im->status != ZC_OK) return 0;
    zc_store_f64(dtype, bytes, 0, value);
    return zc_imp_const(im, NULL, &t);
}

bool zc_imp_known_ints(zc_imp *im, zc_inode *n, zc_vid v, zc_ints *out)
{
    if (!v) return false;
    const zc_vals *vals = &zc_val(im->g, v)->vals;
    if (vals->n < 0) return false;
    int64_t *list = zc_arena_alloc(n->arena, (size_t)vals->n, sizeof *list);
    for (int i = 0; list && i < vals->n; i++) {
        if (!zc_dim_is_const(vals->v[i])) return false;
        list[i] = vals->v[i].k;
    }
    *out = (zc_ints){.n = vals->n, .v = list};
    return list != NULL;
}
