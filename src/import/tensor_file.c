/* Files that hold one TensorProto. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

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
