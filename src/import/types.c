/* Types that the model declares: of inputs, outputs and values between. */
#include <ctype.h>
#include <stdio.h>

#include "base/number.h"
#include "import/composite.h"

/* Names that a message lists. */
#define NAMES_SHOWN 16

typedef Onnx__TensorShapeProto__Dimension proto_dim;

/* ---- what a type is ---- */

const char *zc_type_kind_unsupported(const Onnx__TypeProto *type)
{
    switch ((int)type->value_case) {
    case ONNX__TYPE_PROTO__VALUE_SEQUENCE_TYPE:
    case ONNX__TYPE_PROTO__VALUE_OPTIONAL_TYPE:
        return zc_composite_unsupported(type);
    case ONNX__TYPE_PROTO__VALUE_MAP_TYPE:
        return "maps";
    case ONNX__TYPE_PROTO__VALUE_SPARSE_TENSOR_TYPE:
        return "sparse tensors";
    case ONNX__TYPE_PROTO__VALUE_OPAQUE_TYPE:
        return "opaque values";
    default:
        break;
    }
    if (type->value_case == ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE && type->tensor_type &&
        type->tensor_type->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
        return "tensors of strings";
    return NULL;
}

static const Onnx__TypeProto__Tensor *tensor_type(const Onnx__ValueInfoProto *info)
{
    const Onnx__TypeProto *type = info ? info->type : NULL;
    if (!type || type->value_case != ONNX__TYPE_PROTO__VALUE_TENSOR_TYPE) return NULL;
    return type->tensor_type;
}

zc_status zc_imp_elem_type(zc_imp *im, const Onnx__ValueInfoProto *info, zc_dtype *out)
{
    const Onnx__TypeProto__Tensor *t = tensor_type(info);
    *out = ZC_NONE;
    if (!t || !t->has_elem_type || t->elem_type == 0) return ZC_OK;
    if (t->elem_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING) return ZC_OK; /* the survey's */
    if (!zc_dtype_valid(t->elem_type))
        return zc_fail(im->diag, ZC_ERR_MODEL, zc_text(info->name),
                       "unknown data type (got %d, need a number of TensorProto.DataType)",
                       t->elem_type);
    *out = (zc_dtype)t->elem_type;
    return ZC_OK;
}

static zc_status shape_of(zc_imp *im, const Onnx__ValueInfoProto *info, int *rank,
                          proto_dim ***dims)
{
    const Onnx__TypeProto__Tensor *t = tensor_type(info);
    *rank = -1;
    if (!t || !t->shape) return ZC_OK;
    if (t->shape->n_dim > ZC_MAX_RANK)
        return zc_fail(im->diag, ZC_ERR_LIMIT, zc_text(info->name),
                       "too many dimensions (got %zu, need at most %d)", t->shape->n_dim,
                       ZC_MAX_RANK);
    *rank = (int)t->shape->n_dim;
    *dims = t->shape->dim;
    return ZC_OK;
}

/* ---- one dimension ---- */

typedef enum dim_form { DIM_NUMBER, DIM_SYMBOL, DIM_UNNAMED } dim_form;

/* Names that exporters write for "unknown", whatever else has the same name. */
static bool means_unknown(const char *s)
{
    return !*s || *s == '?' || strcmp(s, "None") == 0 || strcmp(s, "-1") == 0;
}

static dim_form form_of(const proto_dim *d)
{
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_VALUE)
        return d->dim_value == -1 ? DIM_UNNAMED : DIM_NUMBER;
    if (d->value_case == ONNX__TENSOR_SHAPE_PROTO__DIMENSION__VALUE_DIM_PARAM &&
        !means_unknown(zc_text(d->dim_param)))
        return DIM_SYMBOL;
    return DIM_UNNAMED;
}

static zc_status check_number(zc_imp *im, const proto_dim *d, const char *subject, int i)
{
    if (form_of(d) != DIM_NUMBER || d->dim_value >= 0) return ZC_OK;
    return zc_fail(im->diag, ZC_ERR_MODEL, subject, "dimension %d is negative (got %lld)", i,
                   (long long)d->dim_value);
}

/* The symbol of an input's dimension: the model's name, or "<input>_dim<i>". In im->arena; NULL: no
 * memory. */
static const char *symbol_name(zc_imp *im, const proto_dim *d, const char *input, int i)
{
    if (form_of(d) == DIM_SYMBOL) return d->dim_param;
    zc_buf buf = {0};
    zc_buf_printf(&buf, "%s_dim%d", input, i);
    const char *name = buf.failed ? NULL : zc_arena_strndup(&im->arena, buf.data, buf.len);
    zc_buf_fini(&buf);
    return name;
}

/* ---- expressions as names ---- */

/* Where the next identifier of s begins, its length in *len; NULL at the end. */
static const char *next_name(const char *s, size_t *len)
{
    while (*s && !zc_is_name_start(*s)) {
        /* A number takes its letters along: 2x names nothing. */
        if (isdigit((unsigned char)*s))
            while (zc_is_name_char(*s)) s++;
        else
            s++;
    }
    if (!*s) return NULL;
    *len = 0;
    while (zc_is_name_char(s[*len])) (*len)++;
    return s;
}

zc_bound_dim *zc_imp_bound(zc_imp *im, const char *name)
{
    const zc_smap_slot *s = zc_smap_find(&im->bound, name, strlen(name));
    return s ? &im->bound_rows.data[s->value] : NULL;
}

/* The text with numbers in place of the symbols that have them. */
static void substitute(const zc_imp *im, const char *text, zc_buf *out)
{
    size_t len;
    for (const char *s = next_name(text, &len); s; s = next_name(text, &len)) {
        const zc_smap_slot *slot = zc_smap_find(&im->bound, s, len);
        zc_buf_append(out, text, (size_t)(s - text));
        if (slot)
            zc_buf_printf(out, "%lld", (long long)im->bound_rows.data[slot->value].value);
        else
            zc_buf_append(out, s, len);
        text = s + len;
    }
    zc_buf_puts(out, text);
}

/* A name such as "past + seq" is an expression when all its parts are symbols of inputs. */
static bool parse_expression(zc_imp *im, const char *text, zc_dim *out)
{
    size_t len, names = 0;
    if (strchr(text, '"') || strchr(text, '?')) return false;
    for (const char *s = next_name(text, &len); s; s = next_name(s + len, &len), names++)
        if (!zc_smap_find(&im->symbols, s, len)) return false;
    zc_buf known = {0};
    substitute(im, text, &known);
    bool ok = names && !known.failed &&
              zc_dim_parse(&im->g->dims, known.data, known.len, out) == known.len;
    zc_buf_fini(&known);
    return ok;
}

static bool is_identifier(const char *s)
{
    size_t len;
    return next_name(s, &len) == s && s[len] == '\0';
}

/* A dimension of an input by its symbol. */
static zc_status input_dim(zc_imp *im, const proto_dim *d, const char *input, int i, zc_dim *out)
{
    ZC_TRY(check_number(im, d, input, i));
    if (form_of(d) == DIM_NUMBER) {
        *out = zc_dim_const(d->dim_value);
        return ZC_OK;
    }
    const char *name = symbol_name(im, d, input, i);
    if (!name) return zc_imp_nomem(im, "names");
    zc_bound_dim *b = zc_imp_bound(im, name);
    if (b) {
        b->used = true;
        *out = zc_dim_const(b->value);
    } else if (is_identifier(name) || !parse_expression(im, name, out)) {
        *out = zc_dim_input(&im->g->dims, name);
    }
    if (!zc_dim_is_const(*out) || out->k >= 0 || im->g->dims.failed) return ZC_OK;
    return zc_fail(im->diag, ZC_ERR_ARG, input,
                   "dimension %d (" ZC_NAME ") cannot be negative (got %lld)", i, name,
                   (long long)out->k);
}

/* ---- overrides ---- */

static zc_status bind(zc_imp *im, const char *name, int64_t value, const char *by)
{
    if (value < 0)
        return zc_fail(im->diag, ZC_ERR_ARG, name, "a dimension cannot be negative (got %lld)",
                       (long long)value);
    bool added;
    zc_smap_slot *s = zc_smap_add(&im->bound, name, strlen(name), im->bound_rows.len, &added);
    if (!s) return zc_imp_nomem(im, "names");
    if (added) {
        zc_bound_dim row = {.value = value, .by = by};
        im->overridden = true;
        return ZC_VEC_PUSH(&im->bound_rows, row) ? ZC_OK : zc_imp_nomem(im, "names");
    }
    zc_bound_dim *row = &im->bound_rows.data[s->value];
    if (row->value == value) return ZC_OK;
    return zc_fail(im->diag, ZC_ERR_ARG, name,
                   "one dimension with two values (got %lld by %s and %lld by %s)",
                   (long long)row->value, row->by, (long long)value, by);
}

static const zc_shape_override *shape_override(const zc_imp *im, const char *input)
{
    for (int i = 0; i < im->params->nshapes; i++)
        if (strcmp(im->params->shapes[i].input, input) == 0) return &im->params->shapes[i];
    return NULL;
}

/* Binds the input's symbols to the numbers of its --shape. */
static zc_status bind_shape(zc_imp *im, const Onnx__ValueInfoProto *info,
                            const zc_shape_override *o)
{
    int rank;
    proto_dim **dims;
    ZC_TRY(shape_of(im, info, &rank, &dims));
    im->overridden = true;
    if (rank < 0) return ZC_OK;
    if (o->rank != rank)
        return zc_fail(im->diag, ZC_ERR_ARG, o->input,
                       "wrong rank in the shape given (got %d, need %d)", o->rank, rank);
    for (int i = 0; i < rank; i++) {
        if (o->dims[i] == -1) continue;
        if (form_of(dims[i]) == DIM_NUMBER) {
            if (dims[i]->dim_value == o->dims[i]) continue;
            return zc_fail(im->diag, ZC_ERR_ARG, o->input,
                           "dimension %d is fixed by the model (got %lld, need %lld)", i,
                           (long long)o->dims[i], (long long)dims[i]->dim_value);
        }
        const char *name = symbol_name(im, dims[i], o->input, i);
        if (!name) return zc_imp_nomem(im, "names");
        ZC_TRY(bind(im, name, o->dims[i], "--shape"));
        zc_imp_bound(im, name)->used = true;
    }
    return ZC_OK;
}

/* Notes the input's plain symbols: expressions in other dimensions may use them. */
static zc_status note_symbols(zc_imp *im, const Onnx__ValueInfoProto *info)
{
    int rank;
    proto_dim **dims;
    if (zc_type_is_composite(info->type)) return zc_composite_symbols(im, info);
    ZC_TRY(shape_of(im, info, &rank, &dims));
    for (int i = 0; i < rank; i++) {
        bool added;
        if (form_of(dims[i]) == DIM_NUMBER) continue;
        const char *name = symbol_name(im, dims[i], zc_text(info->name), i);
        if (!name || !zc_smap_add(&im->symbols, name, strlen(name), 0, &added))
            return zc_imp_nomem(im, "names");
    }
    return ZC_OK;
}

zc_status zc_imp_item_shape(zc_imp *im, const Onnx__ValueInfoProto *item)
{
    const zc_shape_override *o = shape_override(im, item->name);
    return o ? bind_shape(im, item, o) : ZC_OK;
}

static const Onnx__ValueInfoProto *find_input(const zc_imp *im, const char *name)
{
    const Onnx__GraphProto *g = im->model->graph;
    for (size_t i = 0; i < g->n_input; i++)
        if (strcmp(zc_text(g->input[i]->name), name) == 0) return g->input[i];
    return NULL;
}

zc_status zc_imp_overrides(zc_imp *im)
{
    const Onnx__GraphProto *g = im->model->graph;
    for (int i = 0; i < im->params->ndims; i++)
        ZC_TRY(bind(im, im->params->dims[i].name, im->params->dims[i].value, "--dim"));
    for (int i = 0; i < im->params->nshapes; i++) {
        const zc_shape_override *o = &im->params->shapes[i];
        const Onnx__ValueInfoProto *info = find_input(im, o->input);
        bool item = false;
        if (!info) ZC_TRY(zc_composite_has_item(im, o->input, &item));
        if (item) continue;
        if (!info || zc_scope_own(im->scope, o->input))
            return zc_fail(im->diag, ZC_ERR_ARG, o->input, "the model has no such input");
        ZC_TRY(bind_shape(im, info, o));
    }
    for (size_t i = 0; i < g->n_input; i++) ZC_TRY(note_symbols(im, g->input[i]));
    return ZC_OK;
}

/* "batch, seq" */
static void list_symbols(const zc_imp *im, zc_buf *out)
{
    size_t shown = 0;
    zc_buf_puts(out, im->symbols.count ? "" : "none");
    for (size_t i = 0; i < im->symbols.cap; i++) {
        const zc_smap_slot *s = &im->symbols.slots[i];
        if (!s->key) continue;
        zc_buf_printf(out, "%s%.64s", shown ? ", " : "", s->key);
        if (++shown < NAMES_SHOWN) continue;
        zc_buf_puts(out, ", ...");
        return;
    }
}

zc_status zc_imp_overrides_used(zc_imp *im)
{
    for (int i = 0; i < im->params->ndims; i++) {
        const char *name = im->params->dims[i].name;
        if (zc_imp_bound(im, name)->used) continue;
        zc_buf names = {0};
        list_symbols(im, &names);
        zc_status status = zc_fail(im->diag, ZC_ERR_ARG, name,
                                   "no dimension of an input has this name (the model has: %s)",
                                   zc_text(names.data));
        zc_buf_fini(&names);
        return status;
    }
    return ZC_OK;
}

/* ---- types ---- */

static zc_status input_shape(zc_imp *im, const Onnx__ValueInfoProto *info, zc_type *out)
{
    proto_dim **dims;
    const char *name = zc_text(info->name);
    const zc_shape_override *o = shape_override(im, name);
    ZC_TRY(shape_of(im, info, &out->rank, &dims));
    for (int i = 0; i < out->rank; i++) ZC_TRY(input_dim(im, dims[i], name, i, &out->dims[i]));
    if (out->rank >= 0 || !o) return ZC_OK;
    out->rank = o->rank;
    for (int i = 0; i < o->rank; i++) {
        if (o->dims[i] < 0)
            return zc_fail(im->diag, ZC_ERR_ARG, name, "dimension %d cannot be negative (got %lld)",
                           i, (long long)o->dims[i]);
        out->dims[i] = zc_dim_const(o->dims[i]);
    }
    return ZC_OK;
}

zc_status zc_imp_input_type(zc_imp *im, const Onnx__ValueInfoProto *info, zc_type *out)
{
    *out = (zc_type){.rank = -1};
    ZC_TRY(zc_imp_elem_type(im, info, &out->dtype));
    if (out->dtype == ZC_NONE)
        return zc_fail(im->diag, ZC_ERR_MODEL, zc_text(info->name),
                       "the input has no element type");
    return input_shape(im, info, out);
}

/* ---- what the model declares against what inference found ---- */

/* What the model says of a dimension that inference found to be `known`, so far as it is to be held
 * against that. A number is no news where the dimension follows the inputs or the data: models are
 * given other inputs later, and the numbers of the first ones stay in them. */
static zc_status declared_dim(zc_imp *im, const proto_dim *d, const char *subject, int i,
                              zc_dim known, zc_dim *out)
{
    ZC_TRY(check_number(im, d, subject, i));
    bool number = form_of(d) == DIM_NUMBER && zc_dim_is_const(known) && !im->overridden;
    *out = number ? zc_dim_const(d->dim_value) : known;
    return ZC_OK;
}

/* The type in the model's own words. */
static void print_declared(zc_dtype dtype, int rank, proto_dim *const *dims, zc_buf *out)
{
    zc_buf_puts(out, dtype == ZC_NONE ? "" : zc_dtype_name(dtype));
    if (rank < 0) return;
    zc_buf_puts(out, "[");
    for (int i = 0; i < rank; i++) {
        zc_buf_puts(out, i ? "," : "");
        if (form_of(dims[i]) == DIM_NUMBER)
            zc_buf_printf(out, "%lld", (long long)dims[i]->dim_value);
        else if (form_of(dims[i]) == DIM_SYMBOL)
            zc_buf_printf(out, ZC_NAME, dims[i]->dim_param);
        else
            zc_buf_puts(out, "?");
    }
    zc_buf_puts(out, "]");
}

/* Inference is believed; one warning is enough for a model, as one wrong declaration brings others
 * about. */
static zc_status contradiction(zc_imp *im, const zc_type *known, const char *name,
                               const zc_buf *declared)
{
    bool strict = im->params->strict;
    if (im->contradictions++ && !strict) return ZC_OK;
    zc_buf inferred = {0};
    zc_type_print(&im->g->dims, known, &inferred);
    zc_status status = zc_fail(im->diag, strict ? ZC_ERR_MODEL : ZC_OK, name,
                               "type contradicts the model's (got %s, the model says %s)",
                               zc_text(inferred.data), zc_text(declared->data));
    zc_buf_fini(&inferred);
    return status;
}

zc_status zc_imp_check_type(zc_imp *im, zc_vid v, const Onnx__ValueInfoProto *info)
{
    if (zc_is_composite(v)) return ZC_OK;
    const zc_type *known = &zc_val(im->g, v)->type;
    zc_type t = {.rank = -1};
    proto_dim **dims;
    ZC_TRY(zc_imp_elem_type(im, info, &t.dtype));
    ZC_TRY(shape_of(im, info, &t.rank, &dims));
    for (int i = 0; i < t.rank; i++) {
        zc_dim d = i < known->rank ? known->dims[i] : zc_dim_const(1);
        ZC_TRY(declared_dim(im, dims[i], zc_text(info->name), i, d, &t.dims[i]));
    }
    int rank = t.rank;
    /* Inside of bodies, shapes are those of one iteration. */
    if (im->depth) t.rank = -1;
    if (!zc_type_contradicts(known, &t)) return ZC_OK;
    zc_buf words = {0};
    print_declared(t.dtype, rank, dims, &words);
    zc_status status = contradiction(im, known, zc_text(info->name), &words);
    zc_buf_fini(&words);
    return status;
}

zc_status zc_imp_infos(zc_imp *im, zc_scope *scope)
{
    const Onnx__GraphProto *g = scope->graph;
    for (size_t i = 0; g && i < g->n_value_info; i++) {
        const char *name = zc_text(g->value_info[i]->name);
        bool added;
        if (!zc_smap_add(&scope->infos, name, strlen(name), i, &added))
            return zc_imp_nomem(im, "names");
    }
    return ZC_OK;
}
