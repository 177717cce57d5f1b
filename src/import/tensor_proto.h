/* TensorProto to zc_tensor and back. */
#ifndef ZC_IMPORT_TENSOR_PROTO_H
#define ZC_IMPORT_TENSOR_PROTO_H

#include "base/mem.h"
#include "import/external.h"
#include "import/load.h"
#include "op/tensor.h"

/* Makes a tensor of what the message holds, in whatever field or file, after checking that dims,
 * data type and data agree. out->data is from malloc, the caller's, and NULL for a tensor without
 * elements. bool elements become 0 or 1 and padding bits of sub-byte types 0. ext may be NULL: then
 * external data is refused. The message's name is the subject of what is found wrong. */
zc_status zc_tensor_from_proto(const Onnx__TensorProto *proto, zc_external *ext, zc_tensor *out,
                               zc_diag *diag);

/* The same, but the bytes are moved out of the message where their form allows it (raw_data; values
 * of the type's own width), so that there is never a second copy of the weights. After success
 * the message holds no data any more; it can be freed in any case. */
zc_status zc_tensor_take_proto(Onnx__TensorProto *proto, zc_external *ext, zc_tensor *out,
                               zc_diag *diag);

/* The dense form of a sparse tensor: values at indices, zeros elsewhere. It may be much larger than
 * what it is made from: max_bytes bounds it. */
zc_status zc_tensor_from_sparse(const Onnx__SparseTensorProto *sparse, zc_external *ext,
                                size_t max_bytes, zc_tensor *out, zc_diag *diag);

/* Reads a file that holds one TensorProto. *out_name, which may be NULL, gets the tensor's name in
 * new memory, "" when it has none. The caller frees out->data and *out_name. */
zc_status zc_tensor_pb_read(const char *path, zc_tensor *out, char **out_name, zc_diag *diag);
zc_status zc_tensor_pb_parse(const uint8_t *data, size_t len, zc_tensor *out, char **out_name,
                             zc_diag *diag);

/* What a file of test data holds: one tensor, a sequence of them, or an optional of either. */
typedef struct zc_tensor_list {
    bool absent; /* an optional without an element */
    size_t n;
    zc_tensor *v;
} zc_tensor_list;

/* Reads a file that holds a message of that kind, ZC_WIRE_TENSOR, _SEQUENCE or _OPTIONAL. The
 * caller frees *out, also after a failure. */
zc_status zc_tensor_list_read(const char *path, zc_wire_message kind, zc_tensor_list *out,
                              zc_diag *diag);
void zc_tensor_list_free(zc_tensor_list *list);

/* Appends the tensor as a serialized TensorProto with raw_data. name, UTF-8, may be NULL. */
zc_status zc_tensor_to_proto_bytes(const zc_tensor *tensor, const char *name, zc_buf *out,
                                   zc_diag *diag);

#endif
