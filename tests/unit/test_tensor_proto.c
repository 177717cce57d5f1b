/* TensorProto and SparseTensorProto to zc_tensor, and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "import/tensor_proto.h"
#include "support/expect.h"
#include "support/fail_alloc.h"
#include "support/pb.h"
#include "support/tensor_pb.h"

/* Converts with both functions and compares with the expected bytes. */
static void check_bytes(const zc_buf *fields, const void *want, size_t n)
{
    zc_diag *diag = zc_diag_create();
    zc_tensor copied = {0}, taken = {0};
    size_t bytes = 0;
    Onnx__TensorProto *p = unpack(fields);
    expect_ok(diag, zc_tensor_from_proto(p, NULL, &copied, diag));
    expect_ok(diag, zc_tensor_take_proto(p, NULL, &taken, diag));
    assert_int_equal(p->raw_data.len + p->n_float_data + p->n_int32_data + p->n_int64_data +
                         p->n_double_data + p->n_uint64_data,
                     0);
    free_proto(p);
    assert_true(zc_tensor_bytes(&copied, &bytes));
    assert_int_equal(bytes, n);
    if (n) assert_memory_equal(copied.data, want, n);
    if (n) assert_memory_equal(taken.data, want, n);
    free(copied.data);
    free(taken.data);
    zc_diag_destroy(&diag);
}

/* Integers of int32_data, int64_data or uint64_data and the bytes that they mean. */
static const struct {
    zc_dtype dtype;
    uint32_t field;
    size_t n, nvalues;
    int64_t values[4];
    const char *want;
} INTEGERS[] = {
    {ZC_U8, TENSOR_INT32_DATA, 2, 2, {0, 255}, "\x00\xFF"},
    {ZC_I8, TENSOR_INT32_DATA, 2, 2, {-128, 127}, "\x80\x7F"},
    {ZC_U16, TENSOR_INT32_DATA, 2, 2, {1, 65535}, "\x01\x00\xFF\xFF"},
    {ZC_I16, TENSOR_INT32_DATA, 2, 2, {-32768, 32767}, "\x00\x80\xFF\x7F"},
    {ZC_I32, TENSOR_INT32_DATA, 2, 2, {-2, INT32_MAX}, "\xFE\xFF\xFF\xFF\xFF\xFF\xFF\x7F"},
    {ZC_BOOL, TENSOR_INT32_DATA, 3, 3, {0, 1, -7}, "\x00\x01\x01"},
    {ZC_F16, TENSOR_INT32_DATA, 2, 2, {0x3C00, 0xFC00}, "\x00\x3C\x00\xFC"},
    {ZC_BF16, TENSOR_INT32_DATA, 1, 1, {0x3F80}, "\x80\x3F"},
    {ZC_F8E4M3FN, TENSOR_INT32_DATA, 2, 2, {0x38, 0xFF}, "\x38\xFF"},
    {ZC_F8E5M2, TENSOR_INT32_DATA, 1, 1, {0x3C}, "\x3C"},
    {ZC_F8E8M0, TENSOR_INT32_DATA, 1, 1, {0x7F}, "\x7F"},
    {ZC_U4, TENSOR_INT32_DATA, 3, 2, {0x21, 0xF3}, "\x21\x03"},
    {ZC_I4, TENSOR_INT32_DATA, 4, 2, {0x2F, -128}, "\x2F\x80"},
    {ZC_F4E2M1, TENSOR_INT32_DATA, 2, 1, {0x72}, "\x72"},
    {ZC_U2, TENSOR_INT32_DATA, 5, 2, {0xE4, 0xFE}, "\xE4\x02"},
    {ZC_I2, TENSOR_INT32_DATA, 4, 1, {0xE4}, "\xE4"},
    {ZC_I64, TENSOR_INT64_DATA, 1, 1, {-1}, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"},
    {ZC_U32, TENSOR_UINT64_DATA, 2, 2, {1, UINT32_MAX}, "\x01\x00\x00\x00\xFF\xFF\xFF\xFF"},
    {ZC_U64, TENSOR_UINT64_DATA, 1, 1, {-1}, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"},
};

static void test_integer_fields(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(INTEGERS); i++) {
        zc_buf b = {0};
        size_t bytes = 0;
        put_type(&b, (int)INTEGERS[i].dtype, 1, (int64_t[]){(int64_t)INTEGERS[i].n});
        pb_packed(&b, INTEGERS[i].field, INTEGERS[i].values, INTEGERS[i].nvalues);
        assert_true(zc_dtype_bytes(INTEGERS[i].dtype, (int64_t)INTEGERS[i].n, &bytes));
        check_bytes(&b, INTEGERS[i].want, bytes);
        zc_buf_fini(&b);
    }
}

static void test_float_fields(void **state)
{
    (void)state;
    const float f[4] = {1.5f, -0.0f, 3, 4};
    const double d[4] = {0.1, -2, 3, 4};
    const struct {
        zc_dtype dtype;
        uint32_t field;
        const void *values;
        size_t bytes, numel;
    } cases[] = {
        {ZC_F32, TENSOR_FLOAT_DATA, f, sizeof f, 4},
        {ZC_C64, TENSOR_FLOAT_DATA, f, sizeof f, 2},
        {ZC_F64, TENSOR_DOUBLE_DATA, d, sizeof d, 4},
        {ZC_C128, TENSOR_DOUBLE_DATA, d, sizeof d, 2},
    };
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_buf b = {0};
        put_type(&b, (int)cases[i].dtype, 1, (int64_t[]){(int64_t)cases[i].numel});
        pb_bytes(&b, cases[i].field, cases[i].values, cases[i].bytes);
        check_bytes(&b, cases[i].values, cases[i].bytes);
        zc_buf_fini(&b);
    }
}

/* What is not packed, and dims that are not, mean the same. */
static void test_unpacked_encoding(void **state)
{
    (void)state;
    zc_buf b = {0};
    pb_int(&b, TENSOR_DIMS, 1);
    pb_int(&b, TENSOR_DIMS, 2);
    pb_int(&b, TENSOR_DATA_TYPE, ZC_F32);
    pb_f32(&b, TENSOR_FLOAT_DATA, 1.5f);
    pb_f32(&b, TENSOR_FLOAT_DATA, 2.5f);
    check_bytes(&b, (float[]){1.5f, 2.5f}, 8);
    zc_buf_fini(&b);
}

/* Every type: bytes in raw_data come back, through the writer and the reader too. */
static void test_raw_round_trip(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (int dtype = 1; dtype < ZC_DTYPE_END; dtype++) {
        if (!zc_dtype_valid(dtype)) continue;
        uint8_t data[3 * 16];
        for (size_t i = 0; i < sizeof data; i++) data[i] = (uint8_t)(i % 2);
        zc_tensor in = {.dtype = (zc_dtype)dtype, .rank = 2, .dims = {1, 3}, .data = data}, out;
        size_t bytes = 0;
        char *name = NULL;
        zc_buf b = {0};
        assert_true(zc_tensor_bytes(&in, &bytes));
        zc_buf_puts(&b, "kept");
        expect_ok(diag, zc_tensor_to_proto_bytes(&in, "caf\xC3\xA9", &b, diag));
        assert_memory_equal(b.data, "kept", 4);
        expect_ok(diag, zc_tensor_pb_parse((uint8_t *)b.data + 4, b.len - 4, &out, &name, diag));
        assert_int_equal(out.dtype, dtype);
        assert_int_equal(out.rank, 2);
        assert_int_equal(out.dims[1], 3);
        assert_memory_equal(out.data, data, bytes);
        assert_string_equal(name, "caf\xC3\xA9");
        free(out.data);
        free(name);
        zc_buf_fini(&b);
    }
    zc_diag_destroy(&diag);
}

/* Raw bytes of bool and of sub-byte types are brought to one form. */
static void test_normal_form(void **state)
{
    (void)state;
    const struct {
        zc_dtype dtype;
        int64_t n;
        const char *raw, *want;
        size_t bytes;
    } cases[] = {
        {ZC_BOOL, 3, "\x02\x00\xFF", "\x01\x00\x01", 3},
        {ZC_I4, 3, "\x21\xF3", "\x21\x03", 2},
        {ZC_U4, 4, "\x21\xF3", "\x21\xF3", 2},
        {ZC_I2, 1, "\xFF", "\x03", 1},
        {ZC_U2, 3, "\xFF", "\x3F", 1},
    };
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_buf b = {0};
        put_type(&b, (int)cases[i].dtype, 1, &cases[i].n);
        pb_bytes(&b, TENSOR_RAW_DATA, cases[i].raw, cases[i].bytes);
        check_bytes(&b, cases[i].want, cases[i].bytes);
        zc_buf_fini(&b);
    }
}

static void test_empty_tensors(void **state)
{
    (void)state;
    static const int64_t dims[][3] = {{0, 3, 1}, {2, 0, 0}, {0, INT64_MAX, INT64_MAX}};
    for (size_t i = 0; i < ZC_COUNTOF(dims); i++)
        for (int raw = 0; raw < 2; raw++) {
            zc_buf b = {0};
            put_type(&b, ZC_F32, 3, dims[i]);
            if (raw) pb_bytes(&b, TENSOR_RAW_DATA, "", 0);
            check_bytes(&b, "", 0);
            zc_buf_fini(&b);
        }
}

/* The bytes themselves move, at the width that needs no conversion. */
static void test_take_moves(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf b = {0};
    put_type(&b, ZC_F32, 1, (int64_t[]){2});
    pb_bytes(&b, TENSOR_RAW_DATA, "\0\0\x80\x3F\0\0\0\x40", 8);
    Onnx__TensorProto *p = unpack(&b);
    const void *data = p->raw_data.data;
    zc_tensor t = {0};
    expect_ok(diag, zc_tensor_take_proto(p, NULL, &t, diag));
    assert_ptr_equal(t.data, data);
    assert_null(p->raw_data.data);
    expect_fail(diag, zc_tensor_take_proto(p, NULL, &t, diag), ZC_ERR_MODEL,
                "t: float_data does not fill f32[2] (got 0 values, need 2)");
    free(t.data);
    free_proto(p);
    zc_buf_fini(&b);
    zc_diag_destroy(&diag);
}

#define ZEROS "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"

/* A type, an integer field and a raw field, each of which may be absent. */
static const struct {
    int dtype;
    size_t rank;
    int64_t dims[3];
    uint32_t field; /* with `nvalues` values, 0: none */
    size_t nvalues;
    int64_t values[3];
    int raw; /* bytes of raw_data, -1: none */
    zc_status status;
    const char *text;
} BAD[] = {
    {ZC_F32,
     2,
     {1152, (INT64_C(1) << 42) + 1},
     0,
     0,
     {0},
     16,
     ZC_ERR_MODEL,
     "t: raw_data does not "
     "fill f32[1152,"},
    {ZC_F32,
     3,
     {4194305, 4194305, 211106198978564},
     0,
     0,
     {0},
     4,
     ZC_ERR_LIMIT,
     "t: its size in bytes does not fit"},
    {ZC_F64, 1, {INT64_MAX}, 0, 0, {0}, 8, ZC_ERR_LIMIT, "its size in bytes does not fit"},
    {ZC_F32,
     2,
     {2, -1},
     0,
     0,
     {0},
     8,
     ZC_ERR_MODEL,
     "t: negative dimension (got -1 at 1, need 0 or more)"},
    {ZC_F32, 2, {INT64_MIN, 0}, 0, 0, {0}, 8, ZC_ERR_MODEL, "negative dimension"},
    {ZC_I4,
     1,
     {700000000},
     0,
     0,
     {0},
     1,
     ZC_ERR_MODEL,
     "t: raw_data does not fill i4[700000000] (got 1 bytes, need 350000000)"},
    {ZC_I4,
     1,
     {700000000},
     TENSOR_INT32_DATA,
     1,
     {0},
     -1,
     ZC_ERR_MODEL,
     "int32_data does not fill i4[700000000] (got 1 values, need 350000000)"},
    {ZC_F32, 2, {100000, 100000}, 0, 0, {0}, -1, ZC_ERR_MODEL, "float_data does not fill"},
    {ZC_F32,
     1,
     {2},
     0,
     0,
     {0},
     7,
     ZC_ERR_MODEL,
     "t: raw_data does not fill f32[2] (got 7 bytes, need 8)"},
    {ZC_F32, 1, {2}, 0, 0, {0}, 12, ZC_ERR_MODEL, "(got 12 bytes, need 8)"},
    {ZC_F32, 1, {2}, 0, 0, {0}, 0, ZC_ERR_MODEL, "raw_data does not fill f32[2] (got 0 bytes"},
    {ZC_F32, 1, {0}, 0, 0, {0}, 4, ZC_ERR_MODEL, "raw_data does not fill f32[0] (got 4 bytes"},
    {0, 1, {1}, 0, 0, {0}, 4, ZC_ERR_MODEL, "t: unknown data type (got 0, need"},
    {999, 1, {1}, 0, 0, {0}, 4, ZC_ERR_MODEL, "unknown data type (got 999"},
    {-1, 1, {1}, 0, 0, {0}, 4, ZC_ERR_MODEL, "unknown data type (got -1"},
    {8, 1, {1}, 0, 0, {0}, 4, ZC_ERR_UNSUPPORTED, "t: tensors of strings are not supported"},
    {ZC_I32,
     1,
     {1},
     TENSOR_INT32_DATA,
     1,
     {1},
     4,
     ZC_ERR_MODEL,
     "t: data in both int32_data and raw_data (need one of them)"},
    {ZC_I32, 0, {0}, 0, 0, {0}, -1, ZC_ERR_MODEL, "int32_data does not fill i32[] (got 0 values"},
    {ZC_I32, 1, {2}, TENSOR_INT32_DATA, 3, {1, 2, 3}, -1, ZC_ERR_MODEL, "(got 3 values, need 2)"},
    {ZC_I64,
     1,
     {1},
     TENSOR_INT32_DATA,
     1,
     {1},
     -1,
     ZC_ERR_MODEL,
     "t: i64 data in int32_data (need int64_data or raw_data)"},
    {ZC_F32,
     1,
     {1},
     TENSOR_UINT64_DATA,
     1,
     {1},
     -1,
     ZC_ERR_MODEL,
     "f32 data in uint64_data (need float_data or raw_data)"},
    {ZC_U8,
     1,
     {1},
     TENSOR_INT32_DATA,
     1,
     {256},
     -1,
     ZC_ERR_MODEL,
     "t: a value in int32_data does not fit u8 (got 256 at 0, need 0 to 255)"},
    {ZC_I8,
     1,
     {2},
     TENSOR_INT32_DATA,
     2,
     {0, -129},
     -1,
     ZC_ERR_MODEL,
     "(got -129 at 1, need -128 to 127)"},
    {ZC_F16, 1, {1}, TENSOR_INT32_DATA, 1, {-1}, -1, ZC_ERR_MODEL, "need 0 to 65535"},
    {ZC_U4, 1, {1}, TENSOR_INT32_DATA, 1, {300}, -1, ZC_ERR_MODEL, "need -128 to 255"},
    {ZC_U32,
     1,
     {1},
     TENSOR_UINT64_DATA,
     1,
     {INT64_C(1) << 32},
     -1,
     ZC_ERR_MODEL,
     "need 0 to 4294967295"},
    {ZC_U32, 1, {1}, TENSOR_UINT64_DATA, 1, {-1}, -1, ZC_ERR_MODEL, "does not fit u32"},
};

static void test_bad_tensors(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(BAD); i++) {
        zc_buf b = {0};
        put_type(&b, BAD[i].dtype, BAD[i].rank, BAD[i].dims);
        if (BAD[i].field) pb_packed(&b, BAD[i].field, BAD[i].values, BAD[i].nvalues);
        if (BAD[i].raw >= 0) pb_bytes(&b, TENSOR_RAW_DATA, ZEROS, (size_t)BAD[i].raw);
        expect_bad(&b, NULL, BAD[i].status, BAD[i].text);
        zc_buf_fini(&b);
    }
}

static void test_bad_shapes_of_messages(void **state)
{
    (void)state;
    zc_buf b = {0}, segment = {0};
    for (int i = 0; i < 1000000; i++) pb_int(&b, TENSOR_DIMS, 1);
    put_type(&b, ZC_F32, 0, NULL);
    expect_bad(&b, NULL, ZC_ERR_LIMIT, "t: too many dimensions (got 1000000, need at most 16)");
    zc_buf_fini(&b);
    put_type(&b, ZC_F32, 0, NULL);
    pb_msg(&b, TENSOR_SEGMENT, &segment);
    expect_bad(&b, NULL, ZC_ERR_UNSUPPORTED, "t: tensors in segments are not supported");
    zc_buf_fini(&b);
    put_type(&b, ZC_F32, 0, NULL);
    pb_str(&b, TENSOR_STRING_DATA, "x");
    expect_bad(&b, NULL, ZC_ERR_MODEL, "f32 data in string_data (need float_data or raw_data)");
    zc_buf_fini(&b);
    put_type(&b, ZC_F32, 0, NULL);
    pb_int(&b, TENSOR_DATA_LOCATION, 7);
    expect_bad(&b, NULL, ZC_ERR_MODEL, "unknown data location (got 7, need 0 or 1)");
    zc_buf_fini(&b);
    pb_bytes(&b, TENSOR_RAW_DATA, ZEROS, 4);
    expect_bad(&b, NULL, ZC_ERR_MODEL, "unknown data type (got 0");
    zc_buf_fini(&b);
    pb_str(&b, TENSOR_NAME, "\x1B[2J");
    expect_bad(&b, NULL, ZC_ERR_MODEL, "\\x1B[2J: unknown data type");
    zc_buf_fini(&b);
}

/* A sparse f32 tensor "s" with the given indices. */
static Onnx__SparseTensorProto *sparse(size_t rank, const int64_t *dims, int64_t n,
                                       size_t index_rank, const int64_t *indices, size_t nindices)
{
    zc_buf b = {0}, values = {0}, ix = {0};
    zc_buf floats = {0};
    for (int64_t i = 0; i < n; i++) {
        const float v = (float)(i + 1);
        zc_buf_append(&floats, &v, sizeof v);
    }
    pb_packed(&values, TENSOR_DIMS, &n, 1);
    pb_int(&values, TENSOR_DATA_TYPE, ZC_F32);
    pb_str(&values, TENSOR_NAME, "s");
    pb_msg(&values, TENSOR_FLOAT_DATA, &floats);
    pb_packed(&ix, TENSOR_DIMS, (int64_t[]){n, (int64_t)rank}, index_rank);
    pb_int(&ix, TENSOR_DATA_TYPE, ZC_I64);
    pb_packed(&ix, TENSOR_INT64_DATA, indices, nindices);
    pb_msg(&b, SPARSE_VALUES, &values);
    pb_msg(&b, SPARSE_INDICES, &ix);
    if (rank) pb_packed(&b, SPARSE_DIMS, dims, rank);
    Onnx__SparseTensorProto *p =
        onnx__sparse_tensor_proto__unpack(NULL, b.len, (const uint8_t *)b.data);
    assert_non_null(p);
    zc_buf_fini(&b);
    return p;
}

static void test_sparse(void **state)
{
    (void)state;
    const struct {
        int64_t dims[2], n;
        size_t index_rank;
        int64_t indices[6];
        float want[6]; /* of [2,3] */
        zc_status status;
        const char *text;
    } cases[] = {
        {{2, 3}, 2, 1, {1, 5}, {0, 1, 0, 0, 0, 2}, ZC_OK, NULL},
        {{2, 3}, 3, 2, {0, 0, 0, 2, 1, 1}, {1, 0, 2, 0, 3, 0}, ZC_OK, NULL},
        {{2, 3}, 0, 1, {0}, {0}, ZC_OK, NULL},
        {{2, 3}, 2, 1, {1, 6}, {0}, ZC_ERR_MODEL, "s: sparse index 1 is outside the tensor"},
        {{2, 3}, 1, 1, {-1}, {0}, ZC_ERR_MODEL, "sparse index 0 is outside"},
        {{2, 3}, 1, 1, {INT64_MIN}, {0}, ZC_ERR_MODEL, "sparse index 0 is outside"},
        {{2, 3}, 1, 2, {0, 3}, {0}, ZC_ERR_MODEL, "sparse index 0 is outside"},
        {{2, 3}, 2, 1, {4, 1}, {0}, ZC_ERR_MODEL, "s: sparse index 1 is not in order"},
        {{2, 3}, 2, 1, {4, 4}, {0}, ZC_ERR_MODEL, "sparse index 1 is not in order"},
        {{2, -3}, 1, 1, {0}, {0}, ZC_ERR_MODEL, "s: sparse dimensions are negative or overflow"},
        {{INT64_MAX, 4}, 1, 1, {0}, {0}, ZC_ERR_MODEL, "negative or overflow"},
        {{1 << 20, 1 << 20},
         1,
         1,
         {0},
         {0},
         ZC_ERR_LIMIT,
         "s: the dense form is too large (got "
         "4398046511104 bytes, need at most "
         "1000)"},
        {{0, 3}, 1, 1, {0}, {0}, ZC_ERR_MODEL, "sparse index 0 is outside"},
    };
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        const size_t count = (size_t)cases[i].n * cases[i].index_rank;
        Onnx__SparseTensorProto *p =
            sparse(2, cases[i].dims, cases[i].n, cases[i].index_rank, cases[i].indices, count);
        zc_tensor t = {0};
        const zc_status status = zc_tensor_from_sparse(p, NULL, 1000, &t, diag);
        if (cases[i].text) {
            expect_fail(diag, status, cases[i].status, cases[i].text);
        } else {
            expect_ok(diag, status);
            assert_memory_equal(t.data, cases[i].want, sizeof cases[i].want);
        }
        free(t.data);
        onnx__sparse_tensor_proto__free_unpacked(p, NULL);
    }
    zc_diag_destroy(&diag);
}

static void test_bad_sparse_parts(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_tensor t = {0};
    Onnx__SparseTensorProto *p = sparse(2, (int64_t[]){2, 3}, 1, 1, (int64_t[]){1}, 1);
    p->indices->dims[0] = 2;
    expect_fail(diag, zc_tensor_from_sparse(p, NULL, 1000, &t, diag), ZC_ERR_MODEL,
                "s: int64_data does not fill i64[2] (got 1 values, need 2)");
    p->indices->dims[0] = 1;
    p->indices->n_dims = 0;
    expect_fail(diag, zc_tensor_from_sparse(p, NULL, 1000, &t, diag), ZC_ERR_MODEL,
                "s: sparse indices have the wrong shape (got i64[], need [1] or [1,2])");
    p->indices->n_dims = 1;
    p->values->n_dims = 0;
    expect_fail(diag, zc_tensor_from_sparse(p, NULL, 1000, &t, diag), ZC_ERR_MODEL,
                "s: sparse values have the wrong rank (got 0, need 1)");
    p->values->n_dims = 1;
    Onnx__TensorProto *values = p->values;
    p->values = p->indices;
    p->indices = values;
    expect_fail(diag, zc_tensor_from_sparse(p, NULL, 1000, &t, diag), ZC_ERR_MODEL,
                "sparse indices have the wrong type (got f32, need i64)");
    const size_t rank = p->n_dims;
    p->n_dims = ZC_MAX_RANK + 1; /* refused before the dims are read */
    expect_fail(diag, zc_tensor_from_sparse(p, NULL, 1000, &t, diag), ZC_ERR_LIMIT,
                "too many dimensions (got 17, need at most 16)");
    p->n_dims = rank;
    p->indices = NULL;
    expect_fail(diag, zc_tensor_from_sparse(p, NULL, 1000, &t, diag), ZC_ERR_MODEL,
                "a sparse tensor without indices");
    p->indices = values;
    onnx__sparse_tensor_proto__free_unpacked(p, NULL);
    zc_diag_destroy(&diag);
}

static const struct {
    const char *bytes;
    size_t len;
    zc_status status;
    const char *text;
} BAD_FILES[] = {
#define BYTES(s) s, sizeof(s) - 1
    {"", 0, ZC_ERR_FORMAT, "the file is empty (need an ONNX tensor)"},
    {BYTES("\n\x01y\x10\x01\x1A\x08\x10\x01J\x04\0\0\0\0"), ZC_ERR_UNSUPPORTED,
     "the file holds a sequence or an optional, which is not supported (need a TensorProto)"},
    {BYTES("\n\x03opt\x10\x03*\x0C\x10\x01\x1A\x08\x10\x01J\x04\0\0\0\0"), ZC_ERR_UNSUPPORTED,
     "a sequence or an optional"},
    {BYTES("\n\x05"
           "empty\x10\x01"),
     ZC_ERR_UNSUPPORTED, "a sequence or an optional"},
    {BYTES("\x93NUMPY\x01\x00\x10\x00"), ZC_ERR_FORMAT, "this is a .npy array, not an ONNX tensor"},
    {BYTES("\x08\x08\x12\x03zoo:\x00"), ZC_ERR_FORMAT,
     "field 'data_type' of TensorProto has wire type 2 (need 0)"},
    {BYTES("\x08\x02\x10\x01"), ZC_ERR_MODEL, "float_data does not fill f32[2]"},
};

static void test_tensor_files(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_tensor t = {0};
    char path[64];
    for (size_t i = 0; i < ZC_COUNTOF(BAD_FILES); i++) {
        strcpy(path, "/tmp/zc-test-XXXXXX");
        const int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, BAD_FILES[i].bytes, BAD_FILES[i].len), BAD_FILES[i].len);
        close(fd);
        char *name = NULL;
        expect_fail(diag, zc_tensor_pb_read(path, &t, &name, diag), BAD_FILES[i].status,
                    BAD_FILES[i].text);
        assert_null(name);
        unlink(path);
    }
    expect_fail(diag, zc_tensor_pb_read("/nonexistent/t.pb", &t, NULL, diag), ZC_ERR_IO,
                "/nonexistent/t.pb: cannot open");
    zc_diag_destroy(&diag);
}

/* [1,2] f32 with typed data, to be damaged. */
static void small_tensor(zc_buf *b)
{
    put_type(b, ZC_I16, 2, (int64_t[]){1, 2});
    pb_packed(b, TENSOR_INT32_DATA, (int64_t[]){1000, -3}, 2);
}

static void test_damaged_files(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf b = {0};
    size_t refused = 0;
    small_tensor(&b);
    for (size_t i = 0; i < 9 * b.len; i++) {
        const size_t len = i < 8 * b.len ? b.len : i - 8 * b.len;
        zc_tensor t = {0};
        uint8_t *bytes = malloc(len ? len : 1);
        assert_non_null(bytes);
        memcpy(bytes, b.data, len);
        if (i < 8 * b.len) bytes[i / 8] = (uint8_t)(bytes[i / 8] ^ (1 << i % 8));
        if (zc_tensor_pb_parse(bytes, len, &t, NULL, diag) != ZC_OK) {
            refused++;
            assert_int_equal(zc_diag_count(diag), 1);
        }
        zc_diag_clear(diag);
        free(t.data);
        free(bytes);
    }
    assert_true(refused > b.len); /* all truncations, and more */
    zc_buf_fini(&b);
    zc_diag_destroy(&diag);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf b = {0};
    small_tensor(&b);
    for (int kind = 0; kind < 2; kind++) {
        zc_status status = ZC_ERR_NOMEM;
        int happened = 1;
        for (long n = 1; happened; n++) {
            zc_tensor t = {0};
            char *name = NULL;
            zc_buf out = {0};
            fail_alloc_at(n);
            if (kind == 0) status = zc_tensor_pb_parse((uint8_t *)b.data, b.len, &t, &name, diag);
            if (kind == 1) {
                const zc_tensor in = {
                    .dtype = ZC_F32, .rank = 1, .dims = {4}, .data = (void *)ZEROS};
                status = zc_tensor_to_proto_bytes(&in, "t", &out, diag);
            }
            happened = fail_alloc_happened();
            fail_alloc_at(0);
            if (happened)
                expect_fail(diag, status, ZC_ERR_NOMEM, "out of memory");
            else
                expect_ok(diag, status);
            zc_buf_fini(&out);
            free(t.data);
            free(name);
        }
    }
    zc_buf_fini(&b);
    zc_diag_destroy(&diag);
}

static void test_too_large_to_write(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf out = {0};
    const zc_tensor t = {.dtype = ZC_F32, .rank = 2, .dims = {1 << 20, 1 << 10}};
    expect_fail(diag, zc_tensor_to_proto_bytes(&t, "big", &out, diag), ZC_ERR_LIMIT,
                "big: the tensor is too large for protobuf (need less than 2 GiB)");
    assert_null(out.data);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_integer_fields),
        cmocka_unit_test(test_float_fields),
        cmocka_unit_test(test_unpacked_encoding),
        cmocka_unit_test(test_raw_round_trip),
        cmocka_unit_test(test_normal_form),
        cmocka_unit_test(test_empty_tensors),
        cmocka_unit_test(test_take_moves),
        cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_bad_shapes_of_messages),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_bad_sparse_parts),
        cmocka_unit_test(test_tensor_files),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_too_large_to_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
