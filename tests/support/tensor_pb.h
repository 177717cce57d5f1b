/* Builds TensorProto messages and expects their failures. Include cmocka.h and what it needs
 * before. */
#ifndef ZC_TESTS_TENSOR_PB_H
#define ZC_TESTS_TENSOR_PB_H

#include "import/tensor_proto.h"
#include "support/expect.h"
#include "support/pb.h"

/* Unpacks a TensorProto from fields built with pb.h. */
static inline Onnx__TensorProto *unpack(const zc_buf *b)
{
    Onnx__TensorProto *p =
        onnx__tensor_proto__unpack(NULL, b->len, (const uint8_t *)(b->data ? b->data : ""));
    assert_non_null(p);
    return p;
}

static inline void free_proto(Onnx__TensorProto *p)
{
    onnx__tensor_proto__free_unpacked(p, NULL);
}

/* A tensor named "t" with packed dims. */
static inline void put_type(zc_buf *b, int dtype, size_t rank, const int64_t *dims)
{
    if (rank) pb_packed(b, TENSOR_DIMS, dims, rank);
    pb_int(b, TENSOR_DATA_TYPE, dtype);
    pb_str(b, TENSOR_NAME, "t");
}

/* Both conversions must fail so. */
static inline void expect_bad(const zc_buf *fields, zc_external *ext, zc_status status,
                              const char *text)
{
    zc_diag *diag = zc_diag_create();
    zc_tensor t = {0};
    Onnx__TensorProto *p = unpack(fields);
    expect_fail(diag, zc_tensor_from_proto(p, ext, &t, diag), status, text);
    expect_fail(diag, zc_tensor_take_proto(p, ext, &t, diag), status, text);
    assert_null(t.data);
    free_proto(p);
    zc_diag_destroy(&diag);
}

#endif
