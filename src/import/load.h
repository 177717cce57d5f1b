/* From a file or bytes to an unpacked ONNX message.
 *
 * Unpacked messages live in memory from malloc: what is detached from one (a pointer copied out and
 * set to NULL in the message) is freed with free(). */
#ifndef ZC_IMPORT_LOAD_H
#define ZC_IMPORT_LOAD_H

#include "base/diag.h"
#include "import/onnx.pb-c.h"
#include "import/wire.h"

/* Reads a model file and unpacks it; the file's bytes are freed before this returns. Needs 128 KiB
 * of stack for the deepest model that it accepts. The model is well-formed protobuf with the fields
 * that every model must have, and no more is known of it: names may be absent, numbers out of
 * range. The path becomes the diag's file and stays it, for what the caller finds wrong with the
 * model. */
zc_status zc_onnx_load(const char *path, Onnx__ModelProto **out, zc_diag *diag);
/* The same from bytes, which may be freed afterwards. */
zc_status zc_onnx_load_bytes(const uint8_t *data, size_t len, Onnx__ModelProto **out,
                             zc_diag *diag);
/* Frees *model and sets it to NULL. */
void zc_onnx_free(Onnx__ModelProto **model);

/* What the two above are made of, for other top-level messages. wanted as in "an ONNX model".
 * zc_proto_read refuses, before reading the whole, a file that is empty, too large or plainly of
 * another kind; the caller frees *out. */
zc_status zc_proto_read(const char *path, const char *wanted, uint8_t **out, size_t *out_len,
                        zc_diag *diag);
/* Checks and unpacks; *out is freed with protobuf_c_message_free_unpacked(*out, NULL). */
zc_status zc_proto_unpack(const uint8_t *data, size_t len, zc_wire_message root,
                          ProtobufCMessage **out, zc_diag *diag);

#endif
