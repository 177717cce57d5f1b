#include "import/tensor_proto.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The fields that may hold a tensor's elements. */
typedef enum data_field {
    FLOAT_DATA,
    INT32_DATA,
    STRING_DATA,
    INT64_DATA,
    RAW_DATA,
    DOUBLE_DATA,
    UINT64_DATA,
    DATA_FIELDS
} data_field;

/* The tensor's name for messages: NULL when it has none. */
static const char *subject_of(const Onnx__TensorProto *p)
{
    return p->name && *p->name ? p->name : NULL;
}

/* What one field holds. */
typedef struct data_view {
    const char *name;
    const void *values;
    size_t count; /* elements; bytes of raw_data */
    size_t width; /* bytes of one */
} data_view;

static void view_fields(const Onnx__TensorProto *p, data_view views[DATA_FIELDS])
{
    views[FLOAT_DATA] = (data_view){"float_data", p->float_data, p->n_float_data, 4};
    views[INT32_DATA] = (data_view){"int32_data", p->int32_data, p->n_int32_data, 4};
    views[STRING_DATA] = (data_view){"string_data", p->string_data, p->n_string_data, 0};
    views[INT64_DATA] = (data_view){"int64_data", p->int64_data, p->n_int64_data, 8};
    views[RAW_DATA] = (data_view){"raw_data", p->raw_data.data, p->raw_data.len, 1};
    views[DOUBLE_DATA] = (data_view){"double_data", p->double_data, p->n_double_data, 8};
    views[UINT64_DATA] = (data_view){"uint64_data", p->uint64_data, p->n_uint64_data, 8};
}

/* Empties a field whose values were moved elsewhere or freed. */
static void detach_field(Onnx__TensorProto *p, data_field field)
{
    switch (field) {
    case FLOAT_DATA:
        p->float_data = NULL;
        p->n_float_data = 0;
        break;
    case INT32_DATA:
        p->int32_data = NULL;
        p->n_int32_data = 0;
        break;
    case INT64_DATA:
        p->int64_data = NULL;
        p->n_int64_data = 0;
        break;
    case RAW_DATA:
        p->raw_data = (ProtobufCBinaryData){0};
        p->has_raw_data = false;
        break;
    case DOUBLE_DATA:
        p->double_data = NULL;
        p->n_double_data = 0;
        break;
    case UINT64_DATA:
        p->uint64_data = NULL;
        p->n_uint64_data = 0;
        break;
    case STRING_DATA:
    case DATA_FIELDS:
        break;
    }
}

/* The typed field for elements of that type. */
static data_field field_of(zc_dtype dtype)
{
    switch (dtype) {
    case ZC_F32:
    case ZC_C64:
        return FLOAT_DATA;
    case ZC_F64:
    case ZC_C128:
        return DOUBLE_DATA;
    case ZC_I64:
        return INT64_DATA;
    case ZC_U32:
    case ZC_U64:
        return UINT64_DATA;
    default:
        return INT32_DATA;
    }
}

/* Bytes of the tensor that one value of the typed field stands for. */
static size_t bytes_per_value(zc_dtype dtype)
{
    const unsigned bits = zc_dtype_bits(dtype);
    if (bits < 8) return 1;
    return zc_dtype_class(dtype) == ZC_CLASS_COMPLEX ? bits / 16 : bits / 8;
}

/* Least and greatest value of int32_data or uint64_data that such an element may have. Packed
 * elements are bytes, which some writers extend with a sign. */
static void value_range(zc_dtype dtype, int64_t *low, int64_t *high)
{
    const unsigned bits = zc_dtype_bits(dtype);
    *low = 0;
    *high = bits < 8 ? 0xFF : (int64_t)((UINT64_C(1) << bits) - 1);
    if (bits < 8) *low = -0x80;
    if (bits >= 8 && zc_dtype_class(dtype) == ZC_CLASS_INT) {
        *low = -((int64_t)1 << (bits - 1));
        *high = -*low - 1;
    }
    if (dtype == ZC_BOOL) {
        *low = INT32_MIN;
        *high = INT32_MAX;
    }
}

static int64_t value_at(const data_view *view, size_t i)
{
    if (view->width == 4) return ((const int32_t *)view->values)[i];
    const uint64_t v = ((const uint64_t *)view->values)[i];
    return v > INT64_MAX ? INT64_MAX : (int64_t)v; /* out of any range asked for here */
}

/* Narrows the field's values to their low `width` bytes. */
static zc_status narrow_values(const data_view *view, zc_dtype dtype, size_t width, uint8_t *out,
                               const char *subject, zc_diag *diag)
{
    int64_t low, high;
    value_range(dtype, &low, &high);
    for (size_t i = 0; i < view->count; i++) {
        const int64_t v = value_at(view, i);
        if (v < low || v > high)
            return zc_fail(diag, ZC_ERR_MODEL, subject,
                           "a value in %s does not fit %s (got %lld at %zu, need %lld to %lld)",
                           view->name, zc_dtype_name(dtype), (long long)v, i, (long long)low,
                           (long long)high);
        const uint64_t u = dtype == ZC_BOOL ? v != 0 : (uint64_t)v;
        memcpy(out + i * width, &u, width);
    }
    return ZC_OK;
}

/* Brings bytes from outside to the form that zc_tensor promises. */
static void normalize(zc_tensor *t, size_t bytes)
{
    uint8_t *data = t->data;
    if (!data || bytes == 0) return;
    if (t->dtype == ZC_BOOL)
        for (size_t i = 0; i < bytes; i++) data[i] = data[i] != 0;
    const unsigned bits = zc_dtype_bits(t->dtype);
    if (bits >= 8) return;
    const unsigned used = (unsigned)(zc_tensor_numel(t) % (8 / bits)) * bits;
    if (used) data[bytes - 1] &= (uint8_t)((1u << used) - 1);
}

static zc_status read_dims(size_t n, const int64_t *dims, const char *subject, zc_tensor *out,
                           zc_diag *diag)
{
    if (n > ZC_MAX_RANK)
        return zc_fail(diag, ZC_ERR_LIMIT, subject,
                       "too many dimensions (got %zu, need at most %d)", n, ZC_MAX_RANK);
    out->rank = (int)n;
    for (size_t i = 0; i < n; i++) {
        if (dims[i] < 0)
            return zc_fail(diag, ZC_ERR_MODEL, subject,
                           "negative dimension (got %lld at %zu, need 0 or more)",
                           (long long)dims[i], i);
        out->dims[i] = dims[i];
    }
    return ZC_OK;
}

/* Reads type and shape and computes the size of the elements. */
static zc_status read_type(const Onnx__TensorProto *p, zc_tensor *out, size_t *bytes, zc_diag *diag)
{
    if (p->segment)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, subject_of(p),
                       "tensors in segments are not supported");
    if (p->has_data_type && p->data_type == ONNX__TENSOR_PROTO__DATA_TYPE__STRING)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, subject_of(p),
                       "tensors of strings are not supported");
    if (!p->has_data_type || !zc_dtype_valid(p->data_type))
        return zc_fail(diag, ZC_ERR_MODEL, subject_of(p),
                       "unknown data type (got %d, need a number of TensorProto.DataType)",
                       p->has_data_type ? p->data_type : 0);
    out->dtype = (zc_dtype)p->data_type;
    ZC_TRY(read_dims(p->n_dims, p->dims, subject_of(p), out, diag));
    if (!zc_tensor_bytes(out, bytes))
        return zc_fail(diag, ZC_ERR_LIMIT, subject_of(p), "its size in bytes does not fit %zu bits",
                       8 * sizeof(size_t));
    return ZC_OK;
}

/* Finds the one field that holds data: the typed field of an empty tensor when none does. */
static zc_status find_field(const Onnx__TensorProto *p, const data_view views[], zc_dtype dtype,
                            data_field *out, zc_diag *diag)
{
    const data_field typed = field_of(dtype);
    *out = DATA_FIELDS;
    for (int i = 0; i < DATA_FIELDS; i++) {
        if (views[i].count == 0) continue;
        if (*out != DATA_FIELDS)
            return zc_fail(diag, ZC_ERR_MODEL, subject_of(p),
                           "data in both %s and %s (need one of them)", views[*out].name,
                           views[i].name);
        *out = (data_field)i;
    }
    if (*out == DATA_FIELDS) *out = p->has_raw_data ? RAW_DATA : typed;
    if (*out == RAW_DATA || *out == typed) return ZC_OK;
    return zc_fail(diag, ZC_ERR_MODEL, subject_of(p), "%s data in %s (need %s or raw_data)",
                   zc_dtype_name(dtype), views[*out].name, views[typed].name);
}

/* Data inside the message. owner: the message again when the bytes may be moved out of it. */
static zc_status read_inline(const Onnx__TensorProto *p, Onnx__TensorProto *owner, zc_tensor *out,
                             size_t bytes, zc_diag *diag)
{
    data_view views[DATA_FIELDS];
    data_field field = RAW_DATA;
    view_fields(p, views);
    ZC_TRY(find_field(p, views, out->dtype, &field, diag));
    const data_view *view = &views[field];
    const size_t per_value = field == RAW_DATA ? 1 : bytes_per_value(out->dtype);
    char type[256];
    if (view->count != bytes / per_value)
        return zc_fail(diag, ZC_ERR_MODEL, subject_of(p),
                       "%s does not fill %s (got %zu %s, need %zu)", view->name,
                       zc_tensor_type_text(out, type, sizeof type), view->count,
                       field == RAW_DATA ? "bytes" : "values", bytes / per_value);
    if (bytes == 0) return ZC_OK;
    if (owner && view->width == per_value) {
        out->data = (void *)view->values;
        detach_field(owner, field);
        return ZC_OK;
    }
    out->data = zc_realloc(NULL, bytes, 1);
    if (!out->data) return zc_fail_nomem(diag, "a tensor", bytes);
    if (view->width == per_value) {
        memcpy(out->data, view->values, bytes);
        return ZC_OK;
    }
    ZC_TRY(narrow_values(view, out->dtype, per_value, out->data, subject_of(p), diag));
    if (owner) {
        free((void *)view->values);
        detach_field(owner, field);
    }
    return ZC_OK;
}

/* A decimal number and nothing else: no sign, space, exponent or base. */
static bool parse_decimal(const char *s, uint64_t *out)
{
    uint64_t v = 0;
    if (!*s) return false;
    for (; *s; s++) {
        if (*s < '0' || *s > '9') return false;
        const unsigned digit = (unsigned)(*s - '0');
        if (v > ((uint64_t)INT64_MAX - digit) / 10) return false;
        v = v * 10 + digit;
    }
    *out = v;
    return true;
}

enum { LOCATION, OFFSET, LENGTH, CHECKSUM, KEYS };
static const char *const KEY_NAMES[KEYS] = {"location", "offset", "length", "checksum"};

/* Collects the known keys; others, which some writers add for themselves, mean nothing here. */
static zc_status read_keys(const Onnx__TensorProto *p, const char *values[KEYS], zc_diag *diag)
{
    for (size_t i = 0; i < p->n_external_data; i++) {
        const Onnx__StringStringEntryProto *entry = p->external_data[i];
        for (int k = 0; k < KEYS; k++) {
            if (!entry->key || strcmp(entry->key, KEY_NAMES[k]) != 0) continue;
            if (values[k])
                return zc_fail(diag, ZC_ERR_MODEL, subject_of(p), "external data has two keys '%s'",
                               KEY_NAMES[k]);
            values[k] = entry->value ? entry->value : "";
        }
    }
    if (values[LOCATION]) return ZC_OK;
    return zc_fail(diag, ZC_ERR_MODEL, subject_of(p), "external data has no key 'location'");
}

static zc_status read_number(const Onnx__TensorProto *p, int key, const char *text, uint64_t *out,
                             zc_diag *diag)
{
    if (!text || parse_decimal(text, out)) return ZC_OK;
    return zc_fail(diag, ZC_ERR_MODEL, subject_of(p),
                   "external data's %s is not a decimal number (got '%.64s')", KEY_NAMES[key],
                   text);
}

/* Data in another file. */
static zc_status read_external(const Onnx__TensorProto *p, zc_external *ext, zc_tensor *out,
                               size_t bytes, zc_diag *diag)
{
    const char *values[KEYS] = {0};
    ZC_TRY(read_keys(p, values, diag));
    zc_external_ref ref = {.tensor = subject_of(p), .location = values[LOCATION], .length = bytes};
    ref.checksum = values[CHECKSUM];
    ZC_TRY(read_number(p, OFFSET, values[OFFSET], &ref.offset, diag));
    ZC_TRY(read_number(p, LENGTH, values[LENGTH], &ref.length, diag));
    char type[256];
    if (ref.length != bytes)
        return zc_fail(diag, ZC_ERR_MODEL, subject_of(p),
                       "external data's length does not fill %s (got %llu bytes, need %zu)",
                       zc_tensor_type_text(out, type, sizeof type), (unsigned long long)ref.length,
                       bytes);
    if (!ext)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, subject_of(p),
                       "external data is not allowed here (got location '" ZC_NAME "')",
                       ref.location);
    return zc_external_read(ext, &ref, &out->data, diag);
}

static bool has_inline_data(const Onnx__TensorProto *p)
{
    data_view views[DATA_FIELDS];
    view_fields(p, views);
    for (int i = 0; i < DATA_FIELDS; i++)
        if (views[i].count) return true;
    return false;
}

static zc_status read_data(const Onnx__TensorProto *p, Onnx__TensorProto *owner, zc_external *ext,
                           zc_tensor *out, size_t bytes, zc_diag *diag)
{
    const int location = p->has_data_location ? (int)p->data_location : 0;
    if (location == ONNX__TENSOR_PROTO__DATA_LOCATION__DEFAULT)
        return read_inline(p, owner, out, bytes, diag);
    if (location != ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL)
        return zc_fail(diag, ZC_ERR_MODEL, subject_of(p),
                       "unknown data location (got %d, need 0 or 1)", location);
    if (has_inline_data(p))
        return zc_fail(diag, ZC_ERR_MODEL, subject_of(p),
                       "data both in the model and in an external file (need one of them)");
    return read_external(p, ext, out, bytes, diag);
}

static zc_status convert(const Onnx__TensorProto *p, Onnx__TensorProto *owner, zc_external *ext,
                         zc_tensor *out, zc_diag *diag)
{
    zc_tensor t = {0};
    size_t bytes = 0;
    ZC_TRY(read_type(p, &t, &bytes, diag));
    const zc_status status = read_data(p, owner, ext, &t, bytes, diag);
    if (status != ZC_OK) {
        free(t.data);
        return status;
    }
    normalize(&t, bytes);
    *out = t;
    return ZC_OK;
}

zc_status zc_tensor_from_proto(const Onnx__TensorProto *proto, zc_external *ext, zc_tensor *out,
                               zc_diag *diag)
{
    return convert(proto, NULL, ext, out, diag);
}

zc_status zc_tensor_take_proto(Onnx__TensorProto *proto, zc_external *ext, zc_tensor *out,
                               zc_diag *diag)
{
    return convert(proto, proto, ext, out, diag);
}

zc_status zc_tensor_to_proto_bytes(const zc_tensor *tensor, const char *name, zc_buf *out,
                                   zc_diag *diag)
{
    size_t bytes = 0;
    if (!zc_tensor_bytes(tensor, &bytes) || bytes > ZC_WIRE_FILE_MAX - ZC_WIRE_NAME_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, name,
                       "the tensor is too large for protobuf (need less than 2 GiB)");
    Onnx__TensorProto p = ONNX__TENSOR_PROTO__INIT;
    p.n_dims = (size_t)tensor->rank;
    p.dims = (int64_t *)tensor->dims;
    p.has_data_type = true;
    p.data_type = (int32_t)tensor->dtype;
    p.name = (char *)name;
    p.has_raw_data = true;
    p.raw_data = (ProtobufCBinaryData){.len = bytes, .data = tensor->data};
    const size_t size = onnx__tensor_proto__get_packed_size(&p);
    const size_t at = zc_buf_grow(out, size);
    if (out->failed) return zc_fail_nomem(diag, "a serialized tensor", size);
    onnx__tensor_proto__pack(&p, (uint8_t *)out->data + at);
    return ZC_OK;
}
