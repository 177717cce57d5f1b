/* A node's attributes: form, references to a function's attributes, copying into attribute structs.
 */
#include <inttypes.h>

#include "import/importer.h"

#define ATTRS_MAX 1024

static const char *type_name(int type)
{
    const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(
        &onnx__attribute_proto__attribute_type__descriptor, type);
    return v ? v->name : "unknown";
}

/* ---- form ---- */

/* Which of the value fields are in use, as bits by attribute type. */
static unsigned fields_in_use(const Onnx__AttributeProto *a)
{
#define BIT(cond, NAME) ((cond) ? 1u << ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##NAME : 0u)
    return BIT(a->has_f, FLOAT) | BIT(a->has_i, INT) | BIT(a->has_s, STRING) | BIT(a->t, TENSOR) |
           BIT(a->g, GRAPH) | BIT(a->sparse_tensor, SPARSE_TENSOR) | BIT(a->tp, TYPE_PROTO) |
           BIT(a->n_floats, FLOATS) | BIT(a->n_ints, INTS) | BIT(a->n_strings, STRINGS) |
           BIT(a->n_tensors, TENSORS) | BIT(a->n_graphs, GRAPHS) |
           BIT(a->n_sparse_tensors, SPARSE_TENSORS) | BIT(a->n_type_protos, TYPE_PROTOS);
#undef BIT
}

static int lowest_bit(unsigned bits)
{
    int i = 0;
    while (bits && !(bits & 1)) {
        bits >>= 1;
        i++;
    }
    return i;
}

/* Which type the attribute has: its type field, or before IR version 2 the field in use. */
static zc_status type_of(zc_imp *im, const zc_inode *n, const Onnx__AttributeProto *a, int *out)
{
    const unsigned used = fields_in_use(a);
    int type = a->has_type ? (int)a->type : 0;
    if (type == 0 && im->model->ir_version < 2 && used && !(used & (used - 1)))
        type = lowest_bit(used);
    const char *name = zc_text(a->name);
    if (type <= 0 || type > ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TYPE_PROTOS)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "attribute '" ZC_NAME "' has no known type (got %d)", name, type);
    /* Writers with proto3's rules leave a zero or an empty list out. */
    if (used & ~(1u << type))
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "attribute '" ZC_NAME "' has type %s and a value of type %s", name,
                           type_name(type), type_name(lowest_bit(used & ~(1u << type))));
    bool missing =
        (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR && !a->t) ||
        (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH && !a->g) ||
        (type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR && !a->sparse_tensor);
    if (missing)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "attribute '" ZC_NAME "' has type %s and no value",
                           name, type_name(type));
    *out = type;
    return ZC_OK;
}

/* ---- references ---- */

static const Onnx__AttributeProto *default_of(const Onnx__FunctionProto *f, const char *name)
{
    for (size_t i = 0; i < f->n_attribute_proto; i++)
        if (strcmp(zc_text(f->attribute_proto[i]->name), name) == 0) return f->attribute_proto[i];
    return NULL;
}

/* What a reference to an attribute of the function stands for; NULL: the call does not give it. */
static zc_status resolve(zc_imp *im, const zc_inode *n, const Onnx__AttributeProto *ref,
                         const Onnx__AttributeProto **out)
{
    const char *name = zc_text(ref->ref_attr_name);
    *out = NULL;
    if (!im->frame)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "attribute '" ZC_NAME "' refers to '" ZC_NAME "' outside of a function",
                           zc_text(ref->name), name);
    const zc_inode *call = im->frame->call;
    for (int i = 0; i < call->nattrs; i++)
        if (strcmp(call->attr_names[i], name) == 0) *out = call->attrs[i];
    if (!*out) *out = default_of(im->frame->function, name);
    if (!*out) return ZC_OK;
    int want = ref->has_type ? (int)ref->type : 0, got = (*out)->has_type ? (int)(*out)->type : 0;
    if (want && got != want)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "attribute '" ZC_NAME "' refers to '" ZC_NAME "' (got type %s, need %s)",
                           zc_text(ref->name), name, type_name(got), type_name(want));
    if ((*out)->g || (*out)->n_graphs)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "attribute '" ZC_NAME "': graphs given to functions are not supported",
                           zc_text(ref->name));
    return ZC_OK;
}

static int find(const zc_inode *n, const char *name)
{
    for (int i = 0; i < n->nattrs; i++)
        if (strcmp(n->attr_names[i], name) == 0) return i;
    return -1;
}

static zc_status add(zc_imp *im, zc_inode *n, const Onnx__AttributeProto *a)
{
    const char *name = zc_text(a->name);
    if (!*name) return zc_imp_fail(im, n, ZC_ERR_MODEL, "an attribute has no name");
    if (find(n, name) >= 0)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "attribute '" ZC_NAME "' is given twice", name);
    int type;
    if (*zc_text(a->ref_attr_name)) {
        ZC_TRY(resolve(im, n, a, &a));
        if (!a) return ZC_OK;
    }
    ZC_TRY(type_of(im, n, a, &type));
    n->attrs[n->nattrs] = a;
    n->attr_names[n->nattrs++] = name;
    return ZC_OK;
}

zc_status zc_imp_attrs(zc_imp *im, zc_inode *n)
{
    const size_t count = n->proto->n_attribute;
    if (count > ATTRS_MAX)
        return zc_imp_fail(im, n, ZC_ERR_LIMIT, "too many attributes (got %zu, need at most %d)",
                           count, ATTRS_MAX);
    n->cap_attrs = (int)count + ZC_INODE_SPARE;
    n->attrs = zc_arena_alloc(n->arena, (size_t)n->cap_attrs, sizeof *n->attrs);
    n->attr_names = zc_arena_alloc(n->arena, (size_t)n->cap_attrs, sizeof *n->attr_names);
    if (!n->attrs || !n->attr_names) return zc_imp_nomem(im, "attributes");
    for (size_t i = 0; i < count; i++) ZC_TRY(add(im, n, n->proto->attribute[i]));
    return ZC_OK;
}

/* ---- for steps ---- */

static void drop(zc_inode *n, int i)
{
    n->nattrs--;
    for (; i < n->nattrs; i++) {
        n->attrs[i] = n->attrs[i + 1];
        n->attr_names[i] = n->attr_names[i + 1];
    }
}

static int effective_type(const Onnx__AttributeProto *a)
{
    return a->has_type && a->type ? (int)a->type : lowest_bit(fields_in_use(a));
}

bool zc_imp_has_attr(const zc_inode *n, const char *name)
{
    return find(n, name) >= 0;
}

const Onnx__AttributeProto *zc_imp_take(zc_imp *im, zc_inode *n, const char *name,
                                        Onnx__AttributeProto__AttributeType type)
{
    int i = find(n, name);
    if (i < 0 || im->status != ZC_OK) return NULL;
    const Onnx__AttributeProto *a = n->attrs[i];
    if (effective_type(a) != (int)type) {
        zc_imp_fail(im, n, ZC_ERR_MODEL,
                    "attribute '" ZC_NAME "' has the wrong type (got %s, need %s)", name,
                    type_name(effective_type(a)), type_name(type));
        return NULL;
    }
    drop(n, i);
    return a;
}

#define TAKE(NAME) zc_imp_take(im, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__##NAME)

int64_t zc_imp_take_int(zc_imp *im, zc_inode *n, const char *name, int64_t def)
{
    const Onnx__AttributeProto *a = TAKE(INT);
    return a ? a->i : def;
}

double zc_imp_take_float(zc_imp *im, zc_inode *n, const char *name, double def)
{
    const Onnx__AttributeProto *a = TAKE(FLOAT);
    return a ? (double)a->f : def;
}

/* The attribute's bytes as a string without NUL in arena; NULL on failure. */
static const char *string_of(zc_imp *im, const zc_inode *n, const char *name,
                             const ProtobufCBinaryData *s, zc_arena *arena)
{
    if (s->len && memchr(s->data, 0, s->len)) {
        zc_imp_fail(im, n, ZC_ERR_MODEL, "attribute '" ZC_NAME "' contains a NUL byte", name);
        return NULL;
    }
    const char *text = zc_arena_strndup(arena, s->len ? (const char *)s->data : "", s->len);
    if (!text) zc_imp_nomem(im, "an attribute");
    return text;
}

const char *zc_imp_take_str(zc_imp *im, zc_inode *n, const char *name, const char *def)
{
    const Onnx__AttributeProto *a = TAKE(STRING);
    const char *text = a ? string_of(im, n, name, &a->s, n->arena) : NULL;
    return text ? text : def;
}

bool zc_imp_take_ints(zc_imp *im, zc_inode *n, const char *name, zc_ints *out)
{
    const Onnx__AttributeProto *a = TAKE(INTS);
    *out = (zc_ints){0};
    if (!a || a->n_ints > INT32_MAX) return false;
    *out = (zc_ints){.n = (int)a->n_ints, .v = a->ints};
    return true;
}

bool zc_imp_take_floats(zc_imp *im, zc_inode *n, const char *name, zc_floats *out)
{
    const Onnx__AttributeProto *a = TAKE(FLOATS);
    *out = (zc_floats){0};
    if (!a || a->n_floats > INT32_MAX) return false;
    *out = (zc_floats){.n = (int)a->n_floats, .v = a->floats};
    return true;
}

#undef TAKE

static Onnx__AttributeProto *set(zc_imp *im, zc_inode *n, const char *name,
                                 Onnx__AttributeProto__AttributeType type)
{
    Onnx__AttributeProto *a = zc_arena_alloc(n->arena, 1, sizeof *a);
    int i = find(n, name);
    if (!a || (i < 0 && n->nattrs == n->cap_attrs)) {
        zc_imp_nomem(im, "attributes");
        return NULL;
    }
    onnx__attribute_proto__init(a);
    a->has_type = true;
    a->type = type;
    if (i < 0) i = n->nattrs++;
    n->attrs[i] = a;
    n->attr_names[i] = name;
    return a;
}

void zc_imp_set_int(zc_imp *im, zc_inode *n, const char *name, int64_t value)
{
    Onnx__AttributeProto *a = set(im, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT);
    if (!a) return;
    a->has_i = true;
    a->i = value;
}

void zc_imp_set_float(zc_imp *im, zc_inode *n, const char *name, float value)
{
    Onnx__AttributeProto *a = set(im, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT);
    if (!a) return;
    a->has_f = true;
    a->f = value;
}

void zc_imp_set_str(zc_imp *im, zc_inode *n, const char *name, const char *value)
{
    Onnx__AttributeProto *a = set(im, n, name, ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING);
    if (!a) return;
    a->has_s = true;
    a->s = (ProtobufCBinaryData){.len = strlen(value), .data = (uint8_t *)(uintptr_t)value};
}

zc_status zc_imp_no_more_attrs(zc_imp *im, const zc_inode *n)
{
    if (im->status != ZC_OK || !n->nattrs) return im->status;
    return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s has no attribute '" ZC_NAME "' at opset %lld",
                       n->op_type, n->attr_names[n->nattrs - 1], (long long)n->version);
}

/* ---- into an attribute struct ---- */

static zc_status copy_dtype(zc_imp *im, const zc_inode *n, const char *name, int64_t value,
                            void *at)
{
    if (value == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "attribute '%s': strings are not supported",
                           name);
    if (value != ZC_NONE && (value < 0 || value > INT32_MAX || !zc_dtype_valid((int)value)))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "attribute '%s' is no known data type (got %lld)",
                           name, (long long)value);
    *(zc_dtype *)at = (zc_dtype)value;
    return ZC_OK;
}

static zc_status copy_tensor(zc_imp *im, const zc_inode *n, Onnx__TensorProto *proto, void *at)
{
    zc_vid v = 0;
    /* As a constant, so that the graph owns the bytes. */
    ZC_TRY(im->status = zc_imp_tensor(im, proto, NULL, n->name, &v));
    *(const zc_tensor **)at = zc_val(im->g, v)->data;
    return ZC_OK;
}

/* The one list of strings, the activations of recurrent layers, is joined by commas. */
static zc_status copy_strings(zc_imp *im, const zc_inode *n, const char *name,
                              const Onnx__AttributeProto *a, void *at)
{
    zc_buf text = {0};
    zc_buf_puts(&text, "");
    zc_status status = ZC_OK;
    for (size_t i = 0; i < a->n_strings && status == ZC_OK; i++) {
        const char *s = string_of(im, n, name, &a->strings[i], n->arena);
        status = im->status;
        if (status == ZC_OK && strchr(s, ','))
            status = zc_imp_fail(im, n, ZC_ERR_MODEL, "attribute '%s': a comma in '" ZC_NAME "'",
                                 name, s);
        if (status == ZC_OK) zc_buf_printf(&text, "%s%s", i ? "," : "", s);
    }
    const char *own = text.failed ? NULL : zc_arena_strdup(&im->g->arena, text.data);
    zc_buf_fini(&text);
    if (status != ZC_OK) return status;
    if (!own) return zc_imp_nomem(im, "an attribute");
    *(const char **)at = own;
    return ZC_OK;
}

/* The attribute type that a field takes. */
static int type_for(const zc_attr_field *f)
{
    switch (f->kind) {
    case ZC_ATTR_INT:
    case ZC_ATTR_DTYPE:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INT;
    case ZC_ATTR_FLOAT:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOAT;
    case ZC_ATTR_INTS:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__INTS;
    case ZC_ATTR_FLOATS:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS;
    case ZC_ATTR_TENSOR:
        return ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__TENSOR;
    case ZC_ATTR_STR:
        break;
    }
    return strcmp(f->name, "activations") == 0 ? ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS
                                               : ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRING;
}

static zc_status copy(zc_imp *im, const zc_inode *n, const Onnx__AttributeProto *a,
                      const zc_attr_field *f, void *at)
{
    if (effective_type(a) != type_for(f))
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "attribute '%s' of %s has the wrong type (got %s, need %s)", f->name,
                           n->op_type, type_name(effective_type(a)), type_name(type_for(f)));
    switch (f->kind) {
    case ZC_ATTR_INT:
        *(int64_t *)at = a->i;
        return ZC_OK;
    case ZC_ATTR_FLOAT:
        *(float *)at = a->f;
        return ZC_OK;
    case ZC_ATTR_DTYPE:
        return copy_dtype(im, n, f->name, a->i, at);
    case ZC_ATTR_TENSOR:
        return copy_tensor(im, n, a->t, at);
    case ZC_ATTR_INTS: {
        const int64_t *v = zc_arena_dup(&im->g->arena, a->ints, a->n_ints, sizeof *v);
        if (!v || a->n_ints > INT32_MAX) return zc_imp_nomem(im, "an attribute");
        *(zc_ints *)at = (zc_ints){.n = (int)a->n_ints, .v = v};
        return ZC_OK;
    }
    case ZC_ATTR_FLOATS: {
        const float *v = zc_arena_dup(&im->g->arena, a->floats, a->n_floats, sizeof *v);
        if (!v || a->n_floats > INT32_MAX) return zc_imp_nomem(im, "an attribute");
        *(zc_floats *)at = (zc_floats){.n = (int)a->n_floats, .v = v};
        return ZC_OK;
    }
    case ZC_ATTR_STR:
        break;
    }
    if (type_for(f) == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS)
        return copy_strings(im, n, f->name, a, at);
    const char *s = string_of(im, n, f->name, &a->s, &im->g->arena);
    if (s) *(const char **)at = s;
    return im->status;
}

/* Attributes that operators do not have. */
static bool is_ours(zc_op op, int field)
{
    static const struct {
        zc_op op;
        int field;
    } ours[] = {
#define OURS(op, field) {ZC_OP_##op, ZC_AT_##op##_##field},
#include "import/onnx_ops.def"
    };
    for (size_t i = 0; i < ZC_COUNTOF(ours); i++)
        if (ours[i].op == op && ours[i].field == field) return true;
    return false;
}

zc_status zc_imp_attrs_copy(zc_imp *im, zc_inode *n, zc_nid id)
{
    const zc_op_info *info = zc_op_get(n->op);
    while (n->nattrs) {
        const char *name = n->attr_names[n->nattrs - 1];
        int i = zc_attr_find(info, name, strlen(name));
        if (i < 0 || is_ours(n->op, i) || i >= zc_op_own_fields(info))
            return zc_imp_no_more_attrs(im, n);
        /* Making a constant may move the nodes but not their attributes. */
        void *attrs = zc_node_at(im->g, id)->attrs;
        ZC_TRY(copy(im, n, n->attrs[n->nattrs - 1], &info->fields[i], zc_attr_at(info, attrs, i)));
        *(uint64_t *)attrs |= (uint64_t)1 << i;
        n->nattrs--;
    }
    return ZC_OK;
}
