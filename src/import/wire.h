/* Checks protobuf bytes before protobuf-c sees them.
 *
 * protobuf-c recurses without a bound, allocates up to ninety times what it reads, merges repeated
 * singular fields and takes any bytes for a string. This scan goes over the bytes once, without
 * recursion, along the message descriptors generated from onnx.proto, and lets through only what
 * unpacks within known depth and memory. */
#ifndef ZC_IMPORT_WIRE_H
#define ZC_IMPORT_WIRE_H

#include "base/diag.h"
#include "import/onnx.pb-c.h"

/* Messages inside each other, the outermost counted: 100 levels of protobuf-c's unpacking and
 * freeing need less than 112 KiB of stack. */
#define ZC_WIRE_DEPTH_MAX 100
/* Graphs inside graphs (bodies of If, Loop, Scan), and types inside types. */
#define ZC_WIRE_GRAPH_DEPTH_MAX 32
#define ZC_WIRE_TYPE_DEPTH_MAX  32
/* Bytes in a string field, but for documentation and the values of metadata. */
#define ZC_WIRE_NAME_MAX ((size_t)64 * 1024)
/* Bytes in a file: protobuf's own limit. */
#define ZC_WIRE_FILE_MAX ((uint64_t)INT32_MAX)

/* Memory that unpacking may take besides raw tensor bytes: a base, so many bytes for each byte that
 * is not raw tensor data, and an end to it. Exported models need 4 to 15 bytes a byte, models of
 * one node up to 20, a million empty nodes 93. */
#define ZC_WIRE_MEMORY_BASE  ((uint64_t)16 << 20)
#define ZC_WIRE_MEMORY_SCALE 32
#define ZC_WIRE_MEMORY_MAX   ((uint64_t)4 << 30)

/* What may stand at the top of a file. */
typedef enum zc_wire_message {
    ZC_WIRE_MODEL,
    ZC_WIRE_TENSOR,
    ZC_WIRE_SEQUENCE,
    ZC_WIRE_OPTIONAL
} zc_wire_message;

typedef struct zc_wire_root {
    const ProtobufCMessageDescriptor *type;
    const char *wanted;   /* for messages, with its article */
    unsigned required[4]; /* numbers of the fields that it must have; 0 ends */
} zc_wire_root;

extern const zc_wire_root ZC_WIRE_ROOTS[];

/* Checks that data holds one message of that kind. A failure names the offset of the offending byte
 * as its subject ("byte 17"). *out_memory, which may be NULL, gets an upper estimate of the bytes
 * that unpacking will allocate. */
zc_status zc_wire_check(const uint8_t *data, size_t len, zc_wire_message root, uint64_t *out_memory,
                        zc_diag *diag);

#endif
