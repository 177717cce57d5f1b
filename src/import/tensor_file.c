/* Files that hold one TensorProto, a sequence of them or an optional. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "import/onnx-data.pb-c.h"
#include "import/tensor_proto.h"

/* SequenceProto and OptionalProto share their beginning: a name, then a small number that says what
 * the elements are, then messages in fields 3 to 7 or nothing. A tensor's name comes later. */
static bool looks_like_sequence(const uint8_t *data, size_t len)
{
    if (len < 2 || data[0] != 0x0A || data[1] >= 0x80) return false;
    size_t at = 2 + (size_t)data[1];
    if (at + 2 > len || data[at] != 0x10 || data[at + 1] > 5) return false;
    at += 2;
    return at == len || ((data[at] & 7) == 2 && data[at] >= 0x1A && data[at] <= 0x3A);
}

static zc_status parse_tensor(const uint8_t *data, size_t len, zc_tensor *out, char **out_name,
                              zc_diag *diag)
{
    ProtobufCMessage *message = NULL;
    ZC_TRY(zc_proto_unpack(data, len, ZC_WIRE_TENSOR, &message, diag));
    Onnx__TensorProto *proto = (Onnx__TensorProto *)message;
    zc_tensor t = {0};
    zc_status status = zc_tensor_take_proto(proto, NULL, &t, diag);
    char *name = NULL;
    if (status == ZC_OK && out_name) {
        name = proto->name ? strdup(proto->name) : zc_calloc(1, 1);
        if (!name) status = zc_fail_nomem(diag, "a tensor's name", 1);
    }
    protobuf_c_message_free_unpacked(message, NULL);
    if (status != ZC_OK) {
        free(t.data);
        return status;
    }
    *out = t;
    if (out_name) *out_name = name;
    return ZC_OK;
}

zc_status zc_tensor_pb_parse(const uint8_t *data, size_t len, zc_tensor *out, char **out_name,
                             zc_diag *diag)
{
    const bool sequence = looks_like_sequence(data, len);
    const zc_status status = parse_tensor(data, len, out, out_name, sequence ? NULL : diag);
    if (status == ZC_OK || !sequence) return status;
    return zc_fail(diag, ZC_ERR_UNSUPPORTED, NULL,
                   "the file holds a sequence or an optional, which is not supported (need a "
                   "TensorProto)");
}

zc_status zc_tensor_pb_read(const char *path, zc_tensor *out, char **out_name, zc_diag *diag)
{
    uint8_t *data = NULL;
    size_t len = 0;
    zc_diag_set_file(diag, NULL);
    zc_status status = zc_proto_read(path, ZC_WIRE_ROOTS[ZC_WIRE_TENSOR].wanted, &data, &len, diag);
    if (status == ZC_OK) status = zc_tensor_pb_parse(data, len, out, out_name, diag);
    free(data);
    zc_diag_set_file(diag, NULL);
    return status;
}

/* ---- sequences and optionals ---- */

void zc_tensor_list_free(zc_tensor_list *list)
{
    for (size_t i = 0; i < list->n; i++) free(list->v[i].data);
    free(list->v);
    *list = (zc_tensor_list){0};
}

static zc_status take_tensors(Onnx__TensorProto **protos, size_t n, zc_tensor_list *out,
                              zc_diag *diag)
{
    out->v = zc_calloc(n, sizeof *out->v);
    if (!out->v) return zc_fail_nomem(diag, "tensors", n);
    for (; out->n < n; out->n++)
        ZC_TRY(zc_tensor_take_proto(protos[out->n], NULL, &out->v[out->n], diag));
    return ZC_OK;
}

static zc_status need_tensors(int32_t elem_type, const char *what, zc_diag *diag)
{
    if (elem_type == ONNX__SEQUENCE_PROTO__DATA_TYPE__TENSOR) return ZC_OK;
    return zc_fail(diag, ZC_ERR_UNSUPPORTED, NULL, "%s of what is no tensor (got kind %d)", what,
                   (int)elem_type);
}

static zc_status take_sequence(const Onnx__SequenceProto *s, zc_tensor_list *out, zc_diag *diag)
{
    if (s->n_tensor_values) ZC_TRY(need_tensors(s->elem_type, "a sequence", diag));
    return take_tensors(s->tensor_values, s->n_tensor_values, out, diag);
}

static zc_status take_optional(Onnx__OptionalProto *o, zc_tensor_list *out, zc_diag *diag)
{
    if (o->sequence_value) return take_sequence(o->sequence_value, out, diag);
    out->absent = o->elem_type == ONNX__SEQUENCE_PROTO__DATA_TYPE__UNDEFINED;
    if (out->absent) return ZC_OK;
    ZC_TRY(need_tensors(o->elem_type, "an optional", diag));
    out->absent = !o->tensor_value;
    return take_tensors(&o->tensor_value, !out->absent, out, diag);
}

static zc_status take_message(ProtobufCMessage *message, zc_wire_message kind, zc_tensor_list *out,
                              zc_diag *diag)
{
    if (kind == ZC_WIRE_SEQUENCE) return take_sequence((Onnx__SequenceProto *)message, out, diag);
    if (kind == ZC_WIRE_OPTIONAL) return take_optional((Onnx__OptionalProto *)message, out, diag);
    Onnx__TensorProto *tensor = (Onnx__TensorProto *)message;
    return take_tensors(&tensor, 1, out, diag);
}

zc_status zc_tensor_list_read(const char *path, zc_wire_message kind, zc_tensor_list *out,
                              zc_diag *diag)
{
    uint8_t *data = NULL;
    size_t len = 0;
    ProtobufCMessage *message = NULL;
    *out = (zc_tensor_list){0};
    zc_status status = zc_proto_read(path, ZC_WIRE_ROOTS[kind].wanted, &data, &len, diag);
    if (status == ZC_OK) status = zc_proto_unpack(data, len, kind, &message, diag);
    free(data);
    if (status == ZC_OK) status = take_message(message, kind, out, diag);
    if (message) protobuf_c_message_free_unpacked(message, NULL);
    zc_diag_set_file(diag, NULL);
    return status;
}
