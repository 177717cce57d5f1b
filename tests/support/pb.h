/* Builds protobuf bytes field by field, well-formed or not. */
#ifndef ZC_TESTS_PB_H
#define ZC_TESTS_PB_H

#include <stdint.h>
#include <string.h>

#include "base/mem.h"

/* Wire types. */
enum { PB_VARINT = 0, PB_64BIT = 1, PB_BYTES = 2, PB_32BIT = 5 };

static inline void pb_varint(zc_buf *b, uint64_t v)
{
    do {
        const uint8_t byte = (uint8_t)((v & 0x7F) | (v > 0x7F ? 0x80 : 0));
        zc_buf_append(b, &byte, 1);
        v >>= 7;
    } while (v);
}

static inline void pb_tag(zc_buf *b, uint32_t field, unsigned wire)
{
    pb_varint(b, (uint64_t)field << 3 | wire);
}

static inline void pb_int(zc_buf *b, uint32_t field, int64_t v)
{
    pb_tag(b, field, PB_VARINT);
    pb_varint(b, (uint64_t)v);
}

static inline void pb_f32(zc_buf *b, uint32_t field, float v)
{
    pb_tag(b, field, PB_32BIT);
    zc_buf_append(b, &v, sizeof v);
}

static inline void pb_f64(zc_buf *b, uint32_t field, double v)
{
    pb_tag(b, field, PB_64BIT);
    zc_buf_append(b, &v, sizeof v);
}

static inline void pb_bytes(zc_buf *b, uint32_t field, const void *p, size_t n)
{
    pb_tag(b, field, PB_BYTES);
    pb_varint(b, n);
    zc_buf_append(b, p, n);
}

static inline void pb_str(zc_buf *b, uint32_t field, const char *s)
{
    pb_bytes(b, field, s, strlen(s));
}

/* Appends a sub-message and frees its buffer. */
static inline void pb_msg(zc_buf *b, uint32_t field, zc_buf *sub)
{
    pb_bytes(b, field, sub->data, sub->len);
    zc_buf_fini(sub);
}

/* A packed field of n signed integers. */
static inline void pb_packed(zc_buf *b, uint32_t field, const int64_t *v, size_t n)
{
    zc_buf values = {0};
    for (size_t i = 0; i < n; i++) pb_varint(&values, (uint64_t)v[i]);
    pb_msg(b, field, &values);
}

/* Field numbers of onnx.proto, MESSAGE_FIELD. */
enum {
    MODEL_IR_VERSION = 1,
    MODEL_PRODUCER_NAME = 2,
    MODEL_DOC_STRING = 6,
    MODEL_GRAPH = 7,
    MODEL_OPSET_IMPORT = 8,
    MODEL_METADATA_PROPS = 14,
    MODEL_FUNCTIONS = 25,
    OPSET_DOMAIN = 1,
    OPSET_VERSION = 2,
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    GRAPH_SPARSE_INITIALIZER = 15,
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOC_STRING = 6,
    NODE_DOMAIN = 7,
    ATTR_NAME = 1,
    ATTR_F = 2,
    ATTR_I = 3,
    ATTR_S = 4,
    ATTR_T = 5,
    ATTR_G = 6,
    ATTR_FLOATS = 7,
    ATTR_INTS = 8,
    ATTR_STRINGS = 9,
    ATTR_TP = 14,
    ATTR_TYPE = 20,
    VALUE_NAME = 1,
    VALUE_TYPE = 2,
    TYPE_TENSOR = 1,
    TYPE_SEQUENCE = 4,
    TYPE_OPTIONAL = 9,
    TYPE_TENSOR_ELEM = 1,
    TYPE_TENSOR_SHAPE = 2,
    SHAPE_DIM = 1,
    DIM_VALUE = 1,
    DIM_PARAM = 2,
    ENTRY_KEY = 1,
    ENTRY_VALUE = 2,
    TENSOR_DIMS = 1,
    TENSOR_DATA_TYPE = 2,
    TENSOR_SEGMENT = 3,
    TENSOR_FLOAT_DATA = 4,
    TENSOR_INT32_DATA = 5,
    TENSOR_STRING_DATA = 6,
    TENSOR_INT64_DATA = 7,
    TENSOR_NAME = 8,
    TENSOR_RAW_DATA = 9,
    TENSOR_DOUBLE_DATA = 10,
    TENSOR_UINT64_DATA = 11,
    TENSOR_EXTERNAL_DATA = 13,
    TENSOR_DATA_LOCATION = 14,
    SPARSE_VALUES = 1,
    SPARSE_INDICES = 2,
    SPARSE_DIMS = 3
};

/* A ValueInfoProto of a tensor type with constant dims. */
static inline void pb_value(zc_buf *b, uint32_t field, const char *name, int elem, int rank,
                            const int64_t *dims)
{
    zc_buf shape = {0}, tensor = {0}, type = {0}, value = {0};
    for (int i = 0; i < rank; i++) {
        zc_buf dim = {0};
        pb_int(&dim, DIM_VALUE, dims[i]);
        pb_msg(&shape, SHAPE_DIM, &dim);
    }
    pb_int(&tensor, TYPE_TENSOR_ELEM, elem);
    pb_msg(&tensor, TYPE_TENSOR_SHAPE, &shape);
    pb_msg(&type, TYPE_TENSOR, &tensor);
    pb_str(&value, VALUE_NAME, name);
    pb_msg(&value, VALUE_TYPE, &type);
    pb_msg(b, field, &value);
}

/* A NodeProto with up to two inputs (NULL: none) and one output, without attributes. */
static inline void pb_node(zc_buf *graph, const char *op, const char *a, const char *b,
                           const char *out)
{
    zc_buf node = {0};
    if (a) pb_str(&node, NODE_INPUT, a);
    if (b) pb_str(&node, NODE_INPUT, b);
    pb_str(&node, NODE_OUTPUT, out);
    pb_str(&node, NODE_OP_TYPE, op);
    pb_msg(graph, GRAPH_NODE, &node);
}

/* A ModelProto around a graph, whose buffer is freed. */
static inline void pb_model(zc_buf *model, int64_t ir, int64_t opset, zc_buf *graph)
{
    zc_buf import = {0};
    pb_int(&import, OPSET_VERSION, opset);
    pb_int(model, MODEL_IR_VERSION, ir);
    pb_msg(model, MODEL_GRAPH, graph);
    pb_msg(model, MODEL_OPSET_IMPORT, &import);
}

#endif
