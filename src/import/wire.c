#include "import/wire.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"
#include "import/onnx-data.pb-c.h"

/* Bytes that malloc adds to an object, about. */
#define ALLOC_OVERHEAD 16
/* protobuf-c notes each field of a message in 32 bytes: 16 on the stack, further ones in slabs that
 * double. */
#define NOTE_BYTES       32
#define NOTES_ON_STACK   16
#define VARINT_MAX       10
#define SHORT_VARINT     5
#define FIELD_NUMBER_MAX ((1u << 29) - 1)

typedef const ProtobufCMessageDescriptor *message_type;
typedef const ProtobufCFieldDescriptor *field_type;

/* Counted messages and how many of them all of a file may hold. */
static const struct {
    message_type type;
    uint64_t max;
    const char *what;
} CAPS[] = {
    {&onnx__node_proto__descriptor, 4u << 20, "nodes"},
    {&onnx__tensor_proto__descriptor, 4u << 20, "tensors"},
    {&onnx__attribute_proto__descriptor, 16u << 20, "attributes"},
    {&onnx__value_info_proto__descriptor, 8u << 20, "value descriptions"},
};
#define UNKNOWN_MAX (64u << 10)

const zc_wire_root ZC_WIRE_ROOTS[] = {
    [ZC_WIRE_MODEL] = {&onnx__model_proto__descriptor, "an ONNX model", {1, 7, 8}},
    [ZC_WIRE_TENSOR] = {&onnx__tensor_proto__descriptor, "an ONNX tensor", {2}},
    [ZC_WIRE_SEQUENCE] = {&onnx__sequence_proto__descriptor, "an ONNX sequence", {2}},
    [ZC_WIRE_OPTIONAL] = {&onnx__optional_proto__descriptor, "an ONNX optional", {2}},
};

/* A message whose fields are being read. */
typedef struct frame {
    message_type type;
    size_t end;        /* offset just past it */
    uint64_t seen;     /* fields met, by their index in type->fields; a oneof's members together */
    uint64_t fields;   /* number of fields so far, unknown and repeated ones included */
    int graphs, types; /* how many of its ancestors and itself are graphs, types */
} frame;

typedef struct scan {
    const uint8_t *data;
    size_t at; /* offset of the next byte */
    frame stack[ZC_WIRE_DEPTH_MAX];
    int depth;
    uint64_t counts[ZC_COUNTOF(CAPS)];
    uint64_t unknown;
    uint64_t raw;    /* bytes of raw_data so far */
    uint64_t memory; /* estimate for what was read so far, raw included */
    zc_diag *diag;
} scan;

__attribute__((format(printf, 4, 5))) static zc_status
fail_at(const scan *s, size_t at, zc_status status, const char *fmt, ...)
{
    char subject[32], reason[512];
    snprintf(subject, sizeof subject, "byte %zu", at);
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(reason, sizeof reason, fmt, args);
    va_end(args);
    return zc_fail(s->diag, status, subject, "%s", reason);
}

static frame *top(scan *s)
{
    return &s->stack[s->depth - 1];
}

/* Reads a varint of at most max_bytes that ends before `end`. */
static zc_status read_varint(scan *s, size_t end, int max_bytes, uint64_t *out)
{
    const size_t start = s->at;
    uint64_t v = 0;
    for (int i = 0; i < max_bytes; i++) {
        if (s->at >= end) return fail_at(s, start, ZC_ERR_FORMAT, "a varint runs past the end");
        const uint8_t byte = s->data[s->at++];
        if (i == VARINT_MAX - 1 && byte > 1) break;
        v |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte < 0x80) {
            *out = v;
            return ZC_OK;
        }
    }
    return fail_at(s, start, ZC_ERR_FORMAT, "over-long varint (need at most %d bytes)", max_bytes);
}

/* Adds an allocation of that many bytes to the estimate. */
static void charge(scan *s, uint64_t bytes)
{
    s->memory += bytes + ALLOC_OVERHEAD;
}

/* The limit grows with what was read, so that a bad file is refused where it becomes bad. */
static zc_status check_memory(const scan *s)
{
    const uint64_t need = s->memory - s->raw;
    const uint64_t limit = ZC_WIRE_MEMORY_BASE + ZC_WIRE_MEMORY_SCALE * (s->at - s->raw);
    const uint64_t max = limit < ZC_WIRE_MEMORY_MAX ? limit : ZC_WIRE_MEMORY_MAX;
    if (need <= max) return ZC_OK;
    return fail_at(s, s->at, ZC_ERR_LIMIT,
                   "too many small parts: unpacking would exceed its memory limit (got %llu bytes "
                   "so far, need at most %llu)",
                   (unsigned long long)need, (unsigned long long)max);
}

/* Bytes of the UTF-8 character at s other than NUL, or 0 when it is not one. */
static size_t utf8_length(const uint8_t *s, size_t n)
{
    if (s[0] < 0x80) return s[0] != 0;
    const size_t len = s[0] >= 0xF0 ? 4 : s[0] >= 0xE0 ? 3 : 2;
    if (s[0] < 0xC2 || s[0] > 0xF4 || n < len) return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xC0) != 0x80) return 0;
    const uint8_t low = s[0] == 0xE0 ? 0xA0 : s[0] == 0xF0 ? 0x90 : 0x80;
    const uint8_t high = s[0] == 0xED ? 0x9F : s[0] == 0xF4 ? 0x8F : 0xBF;
    return s[1] >= low && s[1] <= high ? len : 0;
}

static bool may_be_long(message_type type, field_type field)
{
    return strcmp(field->name, "doc_string") == 0 ||
           (type == &onnx__string_string_entry_proto__descriptor && field->id == 2);
}

static zc_status check_string(scan *s, field_type field, size_t len)
{
    message_type type = top(s)->type;
    if (len > ZC_WIRE_NAME_MAX && !may_be_long(type, field))
        return fail_at(s, s->at, ZC_ERR_LIMIT,
                       "field '%s' of %s is too long (got %zu bytes, need at most %zu)",
                       field->name, type->short_name, len, ZC_WIRE_NAME_MAX);
    const uint8_t *text = s->data + s->at;
    for (size_t i = 0, n; i < len; i += n) {
        n = utf8_length(text + i, len - i);
        if (!n)
            return fail_at(s, s->at + i, ZC_ERR_FORMAT, "field '%s' of %s %s", field->name,
                           type->short_name, text[i] ? "is not UTF-8" : "contains a NUL byte");
    }
    charge(s, len + 1);
    return ZC_OK;
}

static unsigned wire_type(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE:
        return PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    case PROTOBUF_C_TYPE_FLOAT:
    case PROTOBUF_C_TYPE_FIXED32:
    case PROTOBUF_C_TYPE_SFIXED32:
        return PROTOBUF_C_WIRE_TYPE_32BIT;
    case PROTOBUF_C_TYPE_DOUBLE:
    case PROTOBUF_C_TYPE_FIXED64:
    case PROTOBUF_C_TYPE_SFIXED64:
        return PROTOBUF_C_WIRE_TYPE_64BIT;
    default:
        return PROTOBUF_C_WIRE_TYPE_VARINT;
    }
}

/* Bytes of one element of a repeated field's array. */
static uint64_t element_size(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_BYTES:
        return sizeof(ProtobufCBinaryData);
    case PROTOBUF_C_TYPE_INT32:
    case PROTOBUF_C_TYPE_ENUM:
    case PROTOBUF_C_TYPE_FLOAT:
        return 4;
    default:
        return 8;
    }
}

/* Goes over the elements of a packed field that ends at `end`. */
static zc_status scan_packed(scan *s, field_type field, size_t end)
{
    const unsigned wire = wire_type(field->type);
    uint64_t count = 0;
    if (wire == PROTOBUF_C_WIRE_TYPE_VARINT) {
        for (uint64_t v; s->at < end; count++) ZC_TRY(read_varint(s, end, VARINT_MAX, &v));
    } else {
        const size_t size = wire == PROTOBUF_C_WIRE_TYPE_32BIT ? 4 : 8;
        if ((end - s->at) % size)
            return fail_at(s, s->at, ZC_ERR_FORMAT,
                           "packed field '%s' of %s has a broken last element (got %zu bytes, need "
                           "a multiple of %zu)",
                           field->name, top(s)->type->short_name, end - s->at, size);
        count = (end - s->at) / size;
        s->at = end;
    }
    s->memory += count * element_size(field->type);
    return ZC_OK;
}

static zc_status count_message(scan *s, message_type type, size_t at)
{
    for (size_t i = 0; i < ZC_COUNTOF(CAPS); i++)
        if (CAPS[i].type == type && ++s->counts[i] > CAPS[i].max)
            return fail_at(s, at, ZC_ERR_LIMIT, "too many %s (need at most %llu)", CAPS[i].what,
                           (unsigned long long)CAPS[i].max);
    return ZC_OK;
}

static zc_status push_message(scan *s, message_type type, size_t end)
{
    frame f = {.type = type, .end = end};
    if (s->depth) {
        f.graphs = top(s)->graphs;
        f.types = top(s)->types;
    }
    f.graphs += type == &onnx__graph_proto__descriptor;
    f.types += type == &onnx__type_proto__descriptor;
    if (f.graphs > ZC_WIRE_GRAPH_DEPTH_MAX)
        return fail_at(s, s->at, ZC_ERR_LIMIT, "graphs are nested too deeply (need at most %d)",
                       ZC_WIRE_GRAPH_DEPTH_MAX);
    if (f.types > ZC_WIRE_TYPE_DEPTH_MAX)
        return fail_at(s, s->at, ZC_ERR_LIMIT, "types are nested too deeply (need at most %d)",
                       ZC_WIRE_TYPE_DEPTH_MAX);
    if (s->depth == ZC_WIRE_DEPTH_MAX)
        return fail_at(s, s->at, ZC_ERR_LIMIT, "messages are nested too deeply (need at most %d)",
                       ZC_WIRE_DEPTH_MAX);
    ZC_TRY(count_message(s, type, s->at));
    charge(s, type->sizeof_message);
    s->stack[s->depth++] = f;
    return ZC_OK;
}

static uint64_t field_bit(message_type type, field_type field)
{
    return (uint64_t)1 << (field - type->fields);
}

static bool same_oneof(field_type a, field_type b)
{
    return (a->flags & b->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) &&
           a->quantifier_offset == b->quantifier_offset;
}

/* Marks the field as met; a singular one, or another member of its oneof, must not have been. */
static zc_status mark_field(scan *s, field_type field, size_t at)
{
    frame *f = top(s);
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        if (!(f->seen & field_bit(f->type, field))) charge(s, 0);
        f->seen |= field_bit(f->type, field);
        return ZC_OK;
    }
    for (unsigned i = 0; i < f->type->n_fields; i++) {
        field_type other = &f->type->fields[i];
        if (!(f->seen & field_bit(f->type, other))) continue;
        if (other == field)
            return fail_at(s, at, ZC_ERR_FORMAT, "duplicate field '%s' of %s", field->name,
                           f->type->short_name);
        if (same_oneof(other, field))
            return fail_at(s, at, ZC_ERR_FORMAT,
                           "field '%s' of %s after its alternative '%s' (need one of them)",
                           field->name, f->type->short_name, other->name);
    }
    f->seen |= field_bit(f->type, field);
    return ZC_OK;
}

/* Counts a field of the current message in what protobuf-c notes while it reads one. */
static void note_field(scan *s)
{
    frame *f = top(s);
    const uint64_t n = f->fields++;
    /* 16, 48, 112, ... notes so far mean that a slab of 32, 64, ... is taken now. */
    if (n >= NOTES_ON_STACK && ((n + NOTES_ON_STACK) & (n + NOTES_ON_STACK - 1)) == 0)
        charge(s, NOTE_BYTES * (n + NOTES_ON_STACK));
}

/* Reads a field's tag. */
static zc_status read_tag(scan *s, uint32_t *out_number, unsigned *out_wire)
{
    const size_t start = s->at;
    uint64_t tag = 0;
    ZC_TRY(read_varint(s, top(s)->end, SHORT_VARINT, &tag));
    *out_wire = tag & 7;
    const uint64_t number = tag >> 3;
    if (number == 0 || number > FIELD_NUMBER_MAX)
        return fail_at(s, start, ZC_ERR_FORMAT, "field number %llu (need 1 to %u)",
                       (unsigned long long)number, FIELD_NUMBER_MAX);
    if (*out_wire > PROTOBUF_C_WIRE_TYPE_32BIT || *out_wire == 3 || *out_wire == 4)
        return fail_at(s, start, ZC_ERR_FORMAT, "field %llu has wire type %u, which is %s",
                       (unsigned long long)number, *out_wire,
                       *out_wire < 5 ? "a group (not used by ONNX)" : "not defined");
    *out_number = (uint32_t)number;
    return ZC_OK;
}

/* Finds where the field's value ends, going past the length before it. */
static zc_status read_extent(scan *s, unsigned wire, size_t *out_end)
{
    const size_t end = top(s)->end, start = s->at;
    uint64_t len = 0;
    if (wire == PROTOBUF_C_WIRE_TYPE_VARINT) {
        uint64_t v;
        ZC_TRY(read_varint(s, end, VARINT_MAX, &v));
        *out_end = s->at;
        s->at = start;
        return ZC_OK;
    }
    if (wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED)
        ZC_TRY(read_varint(s, end, SHORT_VARINT, &len));
    else
        len = wire == PROTOBUF_C_WIRE_TYPE_32BIT ? 4 : 8;
    if (!zc_range_ok(s->at, len, end))
        return fail_at(s, start, ZC_ERR_FORMAT,
                       "a value runs past the end of %s (got %llu bytes, %zu are left)",
                       top(s)->type->short_name, (unsigned long long)len, end - s->at);
    *out_end = s->at + (size_t)len;
    return ZC_OK;
}

static zc_status skip_unknown(scan *s, size_t at, size_t end)
{
    if (++s->unknown > UNKNOWN_MAX)
        return fail_at(s, at, ZC_ERR_LIMIT, "too many unknown fields (need at most %u)",
                       UNKNOWN_MAX);
    /* Its length prefix, at most 5 bytes, is kept too. */
    charge(s, sizeof(ProtobufCMessageUnknownField) + (end - s->at) + SHORT_VARINT + ALLOC_OVERHEAD);
    s->at = end;
    return ZC_OK;
}

/* Checks the value at s->at of a known field of matching wire type and goes past it, or into it
 * when it is a message. */
static zc_status scan_value(scan *s, field_type field, size_t end)
{
    const bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;
    if (repeated) s->memory += element_size(field->type);
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) return push_message(s, field->descriptor, end);
    if (field->type == PROTOBUF_C_TYPE_STRING) ZC_TRY(check_string(s, field, end - s->at));
    if (field->type == PROTOBUF_C_TYPE_BYTES) {
        const bool raw = top(s)->type == &onnx__tensor_proto__descriptor && !repeated;
        charge(s, end - s->at);
        if (raw) s->raw += end - s->at;
    }
    s->at = end;
    return ZC_OK;
}

static zc_status scan_field(scan *s)
{
    const size_t start = s->at;
    uint32_t number = 0;
    unsigned wire = 0;
    size_t end = 0;
    ZC_TRY(read_tag(s, &number, &wire));
    ZC_TRY(read_extent(s, wire, &end));
    note_field(s);
    message_type type = top(s)->type;
    field_type field = protobuf_c_message_descriptor_get_field(type, number);
    if (!field) return skip_unknown(s, start, end);
    const unsigned need = wire_type(field->type);
    const bool packed = field->label == PROTOBUF_C_LABEL_REPEATED && need != wire &&
                        wire == PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED;
    if (need != wire && !packed)
        return fail_at(s, start, ZC_ERR_FORMAT, "field '%s' of %s has wire type %u (need %u)",
                       field->name, type->short_name, wire, need);
    ZC_TRY(mark_field(s, field, start));
    return packed ? scan_packed(s, field, end) : scan_value(s, field, end);
}

static zc_status check_required(scan *s, zc_wire_message root)
{
    const frame *f = &s->stack[0];
    for (const unsigned *number = ZC_WIRE_ROOTS[root].required; *number; number++) {
        field_type field = protobuf_c_message_descriptor_get_field(f->type, *number);
        if (!(f->seen & field_bit(f->type, field)))
            return fail_at(s, s->at, ZC_ERR_FORMAT,
                           "field '%s' of %s is missing: the file is cut short or not %s",
                           field->name, f->type->short_name, ZC_WIRE_ROOTS[root].wanted);
    }
    return ZC_OK;
}

zc_status zc_wire_check(const uint8_t *data, size_t len, zc_wire_message root, uint64_t *out_memory,
                        zc_diag *diag)
{
    if (len == 0)
        return zc_fail(diag, ZC_ERR_FORMAT, NULL, "the file is empty (need %s)",
                       ZC_WIRE_ROOTS[root].wanted);
    if (len > ZC_WIRE_FILE_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, NULL,
                       "too large for protobuf (got %zu bytes, need "
                       "at most %llu)",
                       len, (unsigned long long)ZC_WIRE_FILE_MAX);
    scan s = {.data = data, .diag = diag};
    ZC_TRY(push_message(&s, ZC_WIRE_ROOTS[root].type, len));
    while (s.depth) {
        if (s.at == top(&s)->end) {
            s.depth--;
            continue;
        }
        ZC_TRY(scan_field(&s));
        ZC_TRY(check_memory(&s));
    }
    ZC_TRY(check_required(&s, root));
    if (out_memory) *out_memory = s.memory;
    return ZC_OK;
}
