/* Which tensors of a model lie in external files, and what uses them. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/fill.h"

zc_status cli_fill_nomem(fill *f)
{
    return zc_fail_nomem(f->diag, "the model's tensors", 0);
}

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
    return ZC_VEC_PUSH(&f->pieces, p) ? ZC_OK : cli_fill_nomem(f);
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
    return ZC_VEC_PUSH(&f->scopes, s) ? ZC_OK : cli_fill_nomem(f);
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
        if (*u.name && !ZC_VEC_PUSH(&f->uses, u)) return cli_fill_nomem(f);
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
zc_status cli_fill_collect(fill *f, const Onnx__ModelProto *model)
{
    if (model->graph) ZC_TRY(add_graph(f, model->graph));
    for (size_t i = 0; i < model->n_functions; i++) {
        scope s = {model->functions[i]->node, model->functions[i]->n_node, NULL};
        if (!ZC_VEC_PUSH(&f->scopes, s)) return cli_fill_nomem(f);
    }
    for (size_t i = 0; i < f->scopes.len; i++) ZC_TRY(add_scope(f, f->scopes.data[i]));
    if (f->uses.len) qsort(f->uses.data, f->uses.len, sizeof *f->uses.data, by_name);
    return ZC_OK;
}

size_t cli_fill_first_use(const fill *f, const char *name)
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
