#include "import/composite.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/number.h"

const zc_composite *zc_composite_of(const zc_imp *im, zc_vid v)
{
    return &im->composites.data[v & ~ZC_COMPOSITE_BIT];
}

const char *zc_composite_kind(const zc_imp *im, zc_vid v)
{
    if (!zc_is_composite(v)) return NULL;
    return zc_composite_of(im, v)->kind == ZC_SEQUENCE ? "a sequence" : "an optional";
}

/* ---- making ---- */

/* What a small model may make of its sequences is bounded. */
static zc_status charge(zc_imp *im, const char *subject, size_t items)
{
    im->composite_items += items;
    if (im->composite_items <= ZC_SEQUENCE_TOTAL_MAX) return ZC_OK;
    return im->status = zc_fail(im->diag, ZC_ERR_LIMIT, subject,
                                "too many tensors in all sequences (need at most %zu)",
                                ZC_SEQUENCE_TOTAL_MAX);
}

static zc_vid make(zc_imp *im, zc_inode *n, zc_composite c)
{
    if (im->status != ZC_OK || charge(im, n->name, (size_t)c.n + 1) != ZC_OK) return 0;
    c.items = zc_arena_dup(&im->arena, c.items, (size_t)c.n, sizeof *c.items);
    if (!c.items || !ZC_VEC_PUSH(&im->composites, c)) {
        zc_imp_nomem(im, "sequences");
        return 0;
    }
    return (zc_vid)(im->composites.len - 1) | ZC_COMPOSITE_BIT;
}

/* The element type of a sequence's tensors; fails when they differ. */
static zc_dtype common_type(zc_imp *im, zc_inode *n, const zc_vid *items, int64_t count,
                            zc_dtype dtype)
{
    for (int64_t i = 0; i < count && im->status == ZC_OK; i++) {
        zc_dtype own = zc_imp_dtype(im, items[i]);
        if (dtype == ZC_NONE) dtype = own;
        if (own != dtype)
            zc_imp_fail(im, n, ZC_ERR_MODEL, "a sequence has tensors of one type (got %s, need %s)",
                        zc_dtype_name(own), zc_dtype_name(dtype));
    }
    return dtype;
}

zc_vid zc_sequence(zc_imp *im, zc_inode *n, const zc_vid *items, int64_t count, zc_dtype dtype)
{
    if (im->status != ZC_OK) return 0;
    if (count > ZC_SEQUENCE_MAX) {
        zc_imp_fail(im, n, ZC_ERR_LIMIT, "the sequence is too long (got %lld, need at most %lld)",
                    (long long)count, (long long)ZC_SEQUENCE_MAX);
        return 0;
    }
    dtype = common_type(im, n, items, count, dtype);
    return make(
        im, n,
        (zc_composite){.kind = ZC_SEQUENCE, .dtype = dtype, .n = (int)count, .items = items});
}

zc_vid zc_optional(zc_imp *im, zc_inode *n, zc_vid item)
{
    return make(im, n, (zc_composite){.kind = ZC_OPTIONAL, .n = item != 0, .items = &item});
}

/* ---- as lists of tensors: composites are two deep, an optional of a sequence ---- */

zc_status zc_composite_flatten(zc_imp *im, zc_vid v, zc_vids *out)
{
    if (!zc_is_composite(v)) return ZC_VEC_PUSH(out, v) ? ZC_OK : zc_imp_nomem(im, "values");
    const zc_composite c = *zc_composite_of(im, v);
    ZC_TRY(charge(im, NULL, (size_t)c.n));
    for (int i = 0; i < c.n; i++) ZC_TRY(zc_composite_flatten(im, c.items[i], out));
    return ZC_OK;
}

size_t zc_composite_width(const zc_imp *im, zc_vid v)
{
    if (!zc_is_composite(v)) return 1;
    const zc_composite *c = zc_composite_of(im, v);
    if (c->kind == ZC_SEQUENCE) return (size_t)c->n;
    return c->n ? zc_composite_width(im, c->items[0]) : 0;
}

void zc_composite_name(const zc_imp *im, zc_vid v, const char *name, size_t i, zc_buf *out)
{
    while (zc_is_composite(v) && zc_composite_of(im, v)->kind == ZC_OPTIONAL)
        v = zc_composite_of(im, v)->items[0];
    zc_buf_puts(out, name);
    if (zc_is_composite(v)) zc_buf_printf(out, "/%zu", i);
}

bool zc_composite_alike(const zc_imp *im, zc_vid a, zc_vid b)
{
    if (!zc_is_composite(a) || !zc_is_composite(b)) return zc_is_composite(a) == zc_is_composite(b);
    const zc_composite *x = zc_composite_of(im, a), *y = zc_composite_of(im, b);
    if (x->kind != y->kind || x->n != y->n) return false;
    return x->kind == ZC_SEQUENCE || !x->n || zc_composite_alike(im, x->items[0], y->items[0]);
}

zc_vid zc_composite_like(zc_imp *im, zc_inode *n, zc_vid form, const zc_vid **next)
{
    if (!zc_is_composite(form)) return *(*next)++;
    const zc_composite c = *zc_composite_of(im, form);
    if (c.kind == ZC_OPTIONAL)
        return zc_optional(im, n, c.n ? zc_composite_like(im, n, c.items[0], next) : 0);
    const zc_vid *items = *next;
    *next += c.n;
    return zc_sequence(im, n, items, c.n, c.dtype);
}

zc_status zc_need_tensors(zc_imp *im, zc_inode *n, const zc_vid *v, size_t count, const char *what)
{
    for (size_t i = 0; i < count; i++)
        if (zc_is_composite(v[i]))
            return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s: %s %zu is %s (need a tensor)", n->op_type,
                               what, i, zc_composite_kind(im, v[i]));
    return ZC_OK;
}

/* ---- the graph's inputs ---- */

/* What a type is made of. */
typedef struct form {
    bool optional, sequence;
    const Onnx__TypeProto *tensor;
} form;

static form form_of(const Onnx__TypeProto *type)
{
    form f = {.tensor = type};
    if (type->value_case == ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE) {
        f.optional = true;
        type = f.tensor = type->optional_type ? type->optional_type->elem_type : NULL;
    }
    if (type && type->value_case == ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE) {
        f.sequence = true;
        f.tensor = type->sequence_type ? type->sequence_type->elem_type : NULL;
    }
    return f;
}

bool zc_type_is_composite(const Onnx__TypeProto *type)
{
    form f = type ? form_of(type) : (form){0};
    return f.optional || f.sequence;
}

const char *zc_composite_unsupported(const Onnx__TypeProto *type)
{
    form f = form_of(type);
    if (!f.tensor) return NULL;
    if (zc_type_is_composite(f.tensor)) return "sequences of what is no tensor";
    const char *what = zc_type_kind_unsupported(f.tensor);
    return what;
}

static const char *symbol(zc_imp *im, const Onnx__ValueInfoProto *info, const char *what)
{
    zc_buf buf = {0};
    zc_buf_printf(&buf, ZC_NAME "/%s", zc_text(info->name), what);
    const char *name = buf.failed ? NULL : zc_arena_strndup(&im->arena, buf.data, buf.len);
    zc_buf_fini(&buf);
    if (!name) zc_imp_nomem(im, "names");
    return name;
}

static zc_status note(zc_imp *im, const Onnx__ValueInfoProto *info, const char *what)
{
    const char *name = symbol(im, info, what);
    bool added;
    if (name && zc_smap_add(&im->symbols, name, strlen(name), 0, &added)) return ZC_OK;
    return zc_imp_nomem(im, "names");
}

zc_status zc_composite_symbols(zc_imp *im, const Onnx__ValueInfoProto *info)
{
    form f = form_of(info->type);
    if (f.optional) ZC_TRY(note(im, info, "present"));
    return f.sequence ? note(im, info, "length") : ZC_OK;
}

/* The number that --dim gives; -1: none. */
static int64_t fixed(zc_imp *im, const Onnx__ValueInfoProto *info, const char *what)
{
    const char *name = symbol(im, info, what);
    zc_bound_dim *b = name ? zc_imp_bound(im, name) : NULL;
    if (!b) return -1;
    b->used = true;
    return b->value;
}

/* How many tensors; -1: none, as the optional is absent. */
static zc_status count_tensors(zc_imp *im, const Onnx__ValueInfoProto *info, int64_t *out)
{
    const char *name = zc_text(info->name);
    form f = form_of(info->type);
    int64_t present = f.optional ? fixed(im, info, "present") : 1;
    int64_t length = f.sequence ? fixed(im, info, "length") : 1;
    ZC_TRY(im->status);
    if (present > 1)
        return zc_fail(im->diag, ZC_ERR_ARG, name, "'" ZC_NAME "/present' is 0 or 1 (got %lld)",
                       name, (long long)present);
    if (length > ZC_SEQUENCE_MAX)
        return zc_fail(im->diag, ZC_ERR_LIMIT, name,
                       "the sequence is too long (got %lld, need at most %lld)", (long long)length,
                       (long long)ZC_SEQUENCE_MAX);
    *out = present == 0 ? -1 : length;
    if (present == 0 || length >= 0) return ZC_OK;
    return zc_fail(im->diag, ZC_ERR_UNSUPPORTED, name,
                   "a sequence of unknown length (fix its length: --dim " ZC_NAME "/length=N)",
                   name);
}

zc_status zc_composite_count(zc_imp *im, const Onnx__ValueInfoProto *info, size_t *out)
{
    int64_t count = 0;
    ZC_TRY(count_tensors(im, info, &count));
    *out = count < 0 ? 0 : (size_t)count;
    return ZC_OK;
}

zc_status zc_composite_has_item(zc_imp *im, const char *name, bool *out)
{
    const Onnx__GraphProto *graph = im->model->graph;
    *out = false;
    for (size_t i = 0; i < graph->n_input && !*out; i++) {
        const char *own = zc_text(graph->input[i]->name);
        const size_t len = strlen(own);
        int64_t count = 0;
        if (!zc_type_is_composite(graph->input[i]->type) || strncmp(name, own, len) != 0 ||
            name[len] != '/' || !isdigit((unsigned char)name[len + 1]))
            continue;
        ZC_TRY(count_tensors(im, graph->input[i], &count));
        char *end;
        *out = strtoll(name + len + 1, &end, 10) < count && *end == 0;
    }
    return ZC_OK;
}

/* The type of one tensor of a sequence: each has sizes of its own, so that names of dimensions mean
 * nothing. */
static Onnx__TypeProto *item_type(zc_imp *im, const Onnx__TypeProto *type)
{
    typedef Onnx__TensorShapeProto__Dimension dim;
    Onnx__TypeProto *own = zc_arena_dup(&im->arena, type, 1, sizeof *own);
    if (!own || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE || !type->tensor_type ||
        !type->tensor_type->shape)
        return own;
    const Onnx__TensorShapeProto *shape = type->tensor_type->shape;
    Onnx__TypeProto__Tensor *tensor =
        zc_arena_dup(&im->arena, type->tensor_type, 1, sizeof *tensor);
    Onnx__TensorShapeProto *sizes = zc_arena_dup(&im->arena, shape, 1, sizeof *sizes);
    dim **list = zc_arena_alloc(&im->arena, shape->n_dim, sizeof *list);
    dim *unknown = zc_arena_alloc(&im->arena, 1, sizeof *unknown);
    if (!tensor || !sizes || !list || !unknown) return NULL;
    onnx__tensor_shape_proto__dimension__init(unknown);
    for (size_t i = 0; i < shape->n_dim; i++) {
        bool number =
            shape->dim[i]->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE;
        list[i] = number ? shape->dim[i] : unknown;
    }
    sizes->dim = list;
    tensor->shape = sizes;
    own->tensor_type = tensor;
    return own;
}

static zc_status add_items(zc_imp *im, const Onnx__ValueInfoProto *info,
                           const Onnx__TypeProto *tensor, zc_add_input_fn add, int64_t count,
                           zc_vid *items)
{
    char what[24];
    Onnx__ValueInfoProto item = *info;
    item.type = item_type(im, tensor);
    if (!item.type) return zc_imp_nomem(im, "inputs");
    for (int64_t i = 0; i < count; i++) {
        zc_snprintf(what, sizeof what, "%lld", (long long)i);
        item.name = (char *)(uintptr_t)symbol(im, info, what);
        ZC_TRY(im->status);
        ZC_TRY(zc_imp_item_shape(im, &item));
        ZC_TRY(add(im, &item, &items[i]));
    }
    return ZC_OK;
}

zc_status zc_composite_input(zc_imp *im, const Onnx__ValueInfoProto *info, zc_add_input_fn add,
                             zc_vid *out)
{
    zc_inode subject = {.name = zc_text(info->name)};
    int64_t count = 0;
    form f = form_of(info->type);
    ZC_TRY(count_tensors(im, info, &count));
    zc_vid *items = zc_arena_alloc(&im->arena, count < 0 ? 0 : (size_t)count, sizeof *items);
    if (!items) return zc_imp_nomem(im, "inputs");
    if (f.sequence) {
        ZC_TRY(add_items(im, info, f.tensor, add, count, items));
        *out = count < 0 ? 0 : zc_sequence(im, &subject, items, count, ZC_NONE);
    } else if (count > 0) {
        Onnx__ValueInfoProto item = *info;
        item.type = (Onnx__TypeProto *)(uintptr_t)f.tensor;
        ZC_TRY(add(im, &item, out));
    }
    if (f.optional) *out = zc_optional(im, &subject, *out);
    return im->status;
}
