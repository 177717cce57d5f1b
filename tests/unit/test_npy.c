/* Reading and writing .npy files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "io/npy.h"
#include "support/expect.h"
#include "support/fail_alloc.h"

/* A version 1 file around a header's text. */
static void make_npy(zc_buf *b, const char *header, const void *data, size_t n)
{
    const size_t len = strlen(header);
    zc_buf_append(b, "\x93NUMPY\x01\x00", 8);
    zc_buf_append(b, (uint8_t[]){(uint8_t)(len & 0xFF), (uint8_t)(len >> 8)}, 2);
    zc_buf_puts(b, header);
    zc_buf_append(b, data, n);
}

static zc_status parse(const zc_buf *b, zc_tensor *out, zc_diag *diag)
{
    return zc_npy_parse((const uint8_t *)b->data, b->len, out, diag);
}

#define HEADER(descr, order, shape)                                                                \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

static const struct {
    const char *header;
    const char *data;
    size_t bytes;
    zc_dtype dtype;
    int rank;
    int64_t dims[3];
    const char *want; /* NULL: as data */
} GOOD[] = {
    {HEADER("<f4", "False", "(2,)"), "\0\0\x80\x3F\0\0\0\x40", 8, ZC_F32, 1, {2}, NULL},
    {HEADER(">f4", "False", "(2,)"),
     "\x3F\x80\0\0\x40\0\0\0",
     8,
     ZC_F32,
     1,
     {2},
     "\0\0\x80\x3F\0\0\0\x40"},
    {HEADER("=i2", "False", "(1, 2)"), "\x01\0\x02\0", 4, ZC_I16, 2, {1, 2}, NULL},
    {HEADER("|b1", "False", "(3,)"), "\x00\x01\x02", 3, ZC_BOOL, 1, {3}, "\x00\x01\x01"},
    {HEADER("|i1", "False", "(1,)"), "\x80", 1, ZC_I8, 1, {1}, NULL},
    {HEADER("|u1", "False", "(1,)"), "\x80", 1, ZC_U8, 1, {1}, NULL},
    {HEADER("<i4", "False", "()"), "\x07\0\0\0", 4, ZC_I32, 0, {0}, NULL},
    {HEADER("<u2", "False", "()"), "\x07\0", 2, ZC_U16, 0, {0}, NULL},
    {HEADER("<u4", "False", "()"), "\x07\0\0\0", 4, ZC_U32, 0, {0}, NULL},
    {HEADER("<i8", "False", "(1,)"), "\x07\0\0\0\0\0\0\x80", 8, ZC_I64, 1, {1}, NULL},
    {HEADER("<u8", "False", "(1,)"), "\x07\0\0\0\0\0\0\x80", 8, ZC_U64, 1, {1}, NULL},
    {HEADER("<f2", "False", "(1,)"), "\0\x3C", 2, ZC_F16, 1, {1}, NULL},
    {HEADER("<f8", "False", "(1,)"), "\0\0\0\0\0\0\xF8\x7F", 8, ZC_F64, 1, {1}, NULL},
    {HEADER(">c8", "False", "(1,)"),
     "\x01\x02\x03\x04\x05\x06\x07\x08",
     8,
     ZC_C64,
     1,
     {1},
     "\x04\x03\x02\x01\x08\x07\x06\x05"},
    {HEADER("<c16", "False", "()"), "0123456789abcdef", 16, ZC_C128, 0, {0}, NULL},
    {HEADER("<f4", "False", "(0, 3)"), "", 0, ZC_F32, 2, {0, 3}, NULL},
    {HEADER("<f4", "True", "(2, 0, 9223372036854775807)"),
     "",
     0,
     ZC_F32,
     3,
     {2, 0, INT64_MAX},
     NULL},
    {HEADER("|u1", "True", "(2, 3)"), "abcdef", 6, ZC_U8, 2, {2, 3}, "acebdf"},
    {HEADER("|u1", "True", "(2, 2, 2)"), "abcdefgh", 8, ZC_U8, 3, {2, 2, 2}, "aecgbfdh"},
    {HEADER("<u2", "True", "(1, 2)"), "aabb", 4, ZC_U16, 2, {1, 2}, "aabb"},
    {HEADER("|u1", "True", "(3,)"), "abc", 3, ZC_U8, 1, {3}, NULL},
    {"{\"shape\":(2L,),\"fortran_order\":False,\"descr\":\"<i1\"}\n", "ab", 2, ZC_I8, 1, {2}, NULL},
    {"  { 'descr' :\t'<f4' , 'shape' : ( 1 , 1 , ) , 'fortran_order' : False }     \n",
     "abcd",
     4,
     ZC_F32,
     2,
     {1, 1},
     NULL},
};

static void test_good_files(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(GOOD); i++) {
        zc_buf b = {0};
        zc_tensor t = {0};
        make_npy(&b, GOOD[i].header, GOOD[i].data, GOOD[i].bytes);
        expect_ok(diag, parse(&b, &t, diag));
        assert_int_equal(t.dtype, GOOD[i].dtype);
        assert_int_equal(t.rank, GOOD[i].rank);
        for (int d = 0; d < t.rank; d++) assert_true(t.dims[d] == GOOD[i].dims[d]);
        const char *want = GOOD[i].want ? GOOD[i].want : GOOD[i].data;
        if (GOOD[i].bytes)
            assert_memory_equal(t.data, want, GOOD[i].bytes);
        else
            assert_null(t.data);
        free(t.data);
        zc_buf_fini(&b);
    }
    zc_diag_destroy(&diag);
}

#define F4 "'descr': '<f4', "
#define NO "'fortran_order': False, "

/* Headers of a file with four bytes of data. */
static const struct {
    const char *header;
    zc_status status;
    const char *text;
} BAD_HEADERS[] = {
    {HEADER("<f4", "False", "(2,)"), ZC_ERR_FORMAT,
     "the data does not fill f32[2] (got 4 bytes, "
     "need 8)"},
    {HEADER("|u1", "False", "(3,)"), ZC_ERR_FORMAT, "(got 4 bytes, need 3)"},
    {HEADER("|O", "False", "(1,)"), ZC_ERR_UNSUPPORTED,
     "element type '|O': Python objects cannot be read"},
    {HEADER("<U1", "False", "(1,)"), ZC_ERR_UNSUPPORTED, "'<U1': strings are not supported"},
    {HEADER("|S4", "False", "(1,)"), ZC_ERR_UNSUPPORTED, "strings are not supported"},
    {HEADER("<M8[ns]", "False", "(1,)"), ZC_ERR_UNSUPPORTED, "dates and times"},
    {HEADER("<V2", "False", "(2,)"), ZC_ERR_UNSUPPORTED,
     "element type '<V2': NumPy does not record what these bytes are (bfloat16, 8-bit and 4-bit "
     "types); save the tensor as a .pb file"},
    {HEADER("<f1", "False", "(4,)"), ZC_ERR_UNSUPPORTED, "(bfloat16, 8-bit and 4-bit types)"},
    {HEADER("bfloat16", "False", "(2,)"), ZC_ERR_UNSUPPORTED, "(bfloat16, 8-bit"},
    {HEADER("<f16", "False", "(1,)"), ZC_ERR_UNSUPPORTED, "long double"},
    {HEADER("<ixy", "False", "(1,)"), ZC_ERR_UNSUPPORTED,
     "element type '<ixy': this type is not "
     "known"},
    {HEADER("", "False", "(1,)"), ZC_ERR_UNSUPPORTED, "element type '': this type is not known"},
    {HEADER("<", "False", "(1,)"), ZC_ERR_UNSUPPORTED, "element type '<'"},
    {HEADER("f4", "False", "(1,)"), ZC_ERR_UNSUPPORTED, "element type 'f4'"},
    {HEADER("<f3", "False", "(1,)"), ZC_ERR_UNSUPPORTED, "element type '<f3'"},
    {"{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}\n", ZC_ERR_UNSUPPORTED,
     "arrays of structures are not supported"},
    {HEADER("<f4", "false", "(1,)"), ZC_ERR_FORMAT, "byte 44: fortran_order is neither True"},
    {HEADER("<f4", "0", "(1,)"), ZC_ERR_FORMAT, "neither True nor False"},
    {HEADER("<f4", "False", "(9223372036854775808, 2)"), ZC_ERR_FORMAT,
     "a dimension is too large (need at most 2^63-1)"},
    {HEADER("<f4", "False", "(9223372036854775807, 2)"), ZC_ERR_FORMAT,
     "the shape's size in bytes overflows"},
    {HEADER("<f4", "False", "(-1,)"), ZC_ERR_FORMAT,
     "a dimension is not a number (need 0 or more)"},
    {HEADER("<f4", "False", "(1.5,)"), ZC_ERR_FORMAT, "need ',' or ')' in the shape"},
    {HEADER("<f4", "False", "(np.int64(1),)"), ZC_ERR_FORMAT, "a dimension is not a number"},
    {HEADER("<f4", "False", "(1)"), ZC_ERR_FORMAT, "the shape is not a tuple"},
    {HEADER("<f4", "False", "(,)"), ZC_ERR_FORMAT, "a dimension is not a number"},
    {HEADER("<f4", "False", "(1 2)"), ZC_ERR_FORMAT, "need ',' or ')'"},
    {HEADER("<f4", "False", "[1]"), ZC_ERR_FORMAT, "(need '(')"},
    {HEADER("<f4", "False", "((1,),)"), ZC_ERR_FORMAT, "a dimension is not a number"},
    {HEADER("<f4", "False", "(1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1)"), ZC_ERR_FORMAT,
     "too many dimensions (need at most 16)"},
    {"{" F4 NO "'shape': (1,)", ZC_ERR_FORMAT,
     "byte 64: the header is not a dictionary that NumPy "
     "writes (need ',')"},
    {"{" F4 NO "'shape': (1,)}", ZC_ERR_FORMAT, "the header does not end in a newline"},
    {"{" F4 NO "'shape': (1,)} x\n", ZC_ERR_FORMAT, "text after the header's dictionary"},
    {"{" F4 NO "}\n", ZC_ERR_FORMAT, "the header lacks a key (need descr"},
    {"{" F4 "'shape': (1,)}\n", ZC_ERR_FORMAT, "the header lacks a key"},
    {"{" NO "'shape': (1,)}\n", ZC_ERR_FORMAT, "the header lacks a key"},
    {"{}\n", ZC_ERR_FORMAT, "the header lacks a key"},
    {"\n", ZC_ERR_FORMAT, "(need '{')"},
    {"{" F4 F4 NO "'shape': (1,)}\n", ZC_ERR_FORMAT, "key 'descr' twice in the header"},
    {"{" F4 NO "'shape': (1,), 'extra': 1}\n", ZC_ERR_FORMAT, "unknown key 'extra' in the header"},
    {"{descr: 1}\n", ZC_ERR_FORMAT, "byte 11: need a string in the header"},
    {"{'descr\n", ZC_ERR_FORMAT, "a string in the header has an unusual character"},
    {"{'desc\\x72': 1}\n", ZC_ERR_FORMAT, "unusual character"},
    {"{'dddddddddddddddddddddddddddddddddddddd': 1}\n", ZC_ERR_FORMAT,
     "string in the header is too "
     "long"},
    {"{'descr' '<f4'}\n", ZC_ERR_FORMAT, "(need ':')"},
};

static void test_bad_headers(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(BAD_HEADERS); i++) {
        zc_buf b = {0};
        zc_tensor t = {0};
        make_npy(&b, BAD_HEADERS[i].header, "abcd", 4);
        expect_fail(diag, parse(&b, &t, diag), BAD_HEADERS[i].status, BAD_HEADERS[i].text);
        assert_null(t.data);
        zc_buf_fini(&b);
    }
    zc_diag_destroy(&diag);
}

static const struct {
    const char *bytes;
    size_t len;
    zc_status status;
    const char *text;
} BAD_FILES[] = {
#define BYTES(s) s, sizeof(s) - 1
    {"", 0, ZC_ERR_FORMAT, "the file is empty (need a .npy array)"},
    {BYTES("\x93NUM"), ZC_ERR_FORMAT, "this is not a .npy array"},
    {BYTES("\x93NUMPY\x01\x00"), ZC_ERR_FORMAT, "the .npy file is cut short"},
    {BYTES("\x93NUMPY\x01\x00\xF8\xFF"), ZC_ERR_FORMAT,
     "the .npy file is cut short (got 10 bytes, need 65538 for the header)"},
    {BYTES("\x93NUMPY\x01\x00\x00\x00"), ZC_ERR_FORMAT, "the .npy file is cut short"},
    {BYTES("\x93NUMPY\x02\x00\x10\x00\x00"), ZC_ERR_FORMAT, "the .npy file is cut short"},
    {BYTES("\x93NUMPY\x02\x00\xF0\xFF\xFF\xFF"), ZC_ERR_LIMIT,
     "the header is too long (got 4294967280 bytes, need at most 65536)"},
    {BYTES("\x93NUMPY\x09\x09\x10\x00{}"), ZC_ERR_UNSUPPORTED,
     "unknown .npy version (got 9.9, need 1.0 to 3.0)"},
    {BYTES("\x93NUMPY\x00\x00\x10\x00{}"), ZC_ERR_UNSUPPORTED, "unknown .npy version (got 0.0"},
    {BYTES("\x93NUMPY\x01\x01\x10\x00{}"), ZC_ERR_UNSUPPORTED, "unknown .npy version (got 1.1"},
    {BYTES("PK\x03\x04\x14\0\0\0\0\0\0\0"), ZC_ERR_FORMAT,
     "this is a zip archive, not a .npy array; .pt, .npz and packed models are such archives"},
    {BYTES("\x89PNG\r\n\x1A\n\0\0\0\0"), ZC_ERR_FORMAT, "this is a PNG image, not a .npy array"},
    {BYTES("\x08\x08\x12\x07pytorch"), ZC_ERR_FORMAT, "this is not a .npy array"},
};

static void test_bad_files(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_tensor t = {0};
    for (size_t i = 0; i < ZC_COUNTOF(BAD_FILES); i++) {
        char path[] = "/tmp/zc-test-XXXXXX";
        const int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, BAD_FILES[i].bytes, BAD_FILES[i].len), BAD_FILES[i].len);
        close(fd);
        expect_fail(diag, zc_npy_read(path, &t, diag), BAD_FILES[i].status, BAD_FILES[i].text);
        unlink(path);
        expect_fail(diag,
                    zc_npy_parse((const uint8_t *)BAD_FILES[i].bytes, BAD_FILES[i].len, &t, diag),
                    BAD_FILES[i].status, BAD_FILES[i].text);
    }
    expect_fail(diag, zc_npy_read("/nonexistent/a.npy", &t, diag), ZC_ERR_IO,
                "/nonexistent/a.npy: cannot open");
    assert_null(t.data);
    zc_diag_destroy(&diag);
}

/* Brackets as deep as a header can be long: the reader has no depth. */
static void test_nested_brackets(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf b = {0};
    zc_tensor t = {0};
    const size_t n = 65000;
    zc_buf_append(&b, "\x93NUMPY\x03\x00\xE8\xFD\x00\x00{'shape':", 21);
    const size_t at = zc_buf_grow(&b, n - 9);
    memset(b.data + at, '(', n - 9);
    expect_fail(diag, parse(&b, &t, diag), ZC_ERR_FORMAT, "byte 22: a dimension is not a number");
    zc_buf_fini(&b);
    zc_diag_destroy(&diag);
}

/* Versions 2 and 3 differ in the length of the length. */
static void test_versions(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (uint8_t version = 2; version <= 3; version++) {
        const char header[] = HEADER("<f4", "False", "(1,)");
        zc_buf b = {0};
        zc_tensor t = {0};
        zc_buf_append(&b, "\x93NUMPY", 6);
        zc_buf_append(&b, (uint8_t[]){version, 0, sizeof header - 1, 0, 0, 0}, 6);
        zc_buf_puts(&b, header);
        zc_buf_append(&b, "abcd", 4);
        expect_ok(diag, parse(&b, &t, diag));
        assert_memory_equal(t.data, "abcd", 4);
        free(t.data);
        zc_buf_fini(&b);
    }
    zc_diag_destroy(&diag);
}

static void test_round_trip(void **state)
{
    (void)state;
    static const struct {
        int rank;
        int64_t dims[3];
    } shapes[] = {{0, {0}}, {1, {3}}, {2, {2, 3}}, {3, {1, 2, 3}}, {2, {0, 5}}};
    zc_diag *diag = zc_diag_create();
    char path[] = "/tmp/zc-test-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    uint8_t data[6 * 16];
    for (size_t i = 0; i < sizeof data; i++) data[i] = i % 5 == 0;
    size_t written = 0;
    for (int dtype = 1; dtype < ZC_DTYPE_END; dtype++)
        for (size_t s = 0; s < ZC_COUNTOF(shapes); s++) {
            zc_tensor in = {.dtype = (zc_dtype)dtype, .rank = shapes[s].rank, .data = data};
            zc_tensor out = {0};
            size_t bytes = 0;
            memcpy(in.dims, shapes[s].dims, sizeof shapes[s].dims);
            if (!zc_tensor_bytes(&in, &bytes) || !zc_dtype_valid(dtype)) continue;
            const zc_status status = zc_npy_save(path, &in, diag);
            if (status != ZC_OK) {
                char text[64];
                snprintf(text, sizeof text, "NumPy has no element type %s: write a .pb file",
                         zc_dtype_name((zc_dtype)dtype));
                expect_fail(diag, status, ZC_ERR_UNSUPPORTED, text);
                continue;
            }
            expect_ok(diag, zc_npy_read(path, &out, diag));
            assert_int_equal(out.dtype, dtype);
            assert_int_equal(out.rank, in.rank);
            for (int d = 0; d < in.rank; d++) assert_true(out.dims[d] == in.dims[d]);
            if (bytes) assert_memory_equal(out.data, data, bytes);
            free(out.data);
            written++;
        }
    assert_int_equal(written, 14 * ZC_COUNTOF(shapes));
    unlink(path);
    zc_diag_destroy(&diag);
}

/* The very bytes that NumPy writes. */
static void test_written_bytes(void **state)
{
    (void)state;
    static const char want[] =
        "\x93NUMPY\x01\x00\x76\x00{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"
        "                                                          \n";
    _Static_assert(sizeof want - 1 == 128, "the elements begin at a multiple of 64");
    zc_diag *diag = zc_diag_create();
    char path[] = "/tmp/zc-test-XXXXXX";
    const int fd = mkstemp(path);
    float values[6] = {1, 2, 3, 4, 5, 6};
    const zc_tensor t = {.dtype = ZC_F32, .rank = 2, .dims = {2, 3}, .data = values};
    assert_true(fd >= 0);
    close(fd);
    expect_ok(diag, zc_npy_save(path, &t, diag));
    uint8_t *bytes = NULL;
    size_t len = 0;
    expect_ok(diag, zc_file_read(path, 1 << 20, &bytes, &len, diag));
    assert_int_equal(len, 128 + sizeof values);
    assert_memory_equal(bytes, want, 128);
    assert_memory_equal(bytes + 128, values, sizeof values);
    free(bytes);
    unlink(path);
    expect_fail(diag, zc_npy_save("/nonexistent/x.npy", &t, diag), ZC_ERR_IO, "/nonexistent/x.npy");
    zc_diag_destroy(&diag);
}

static void test_damaged_files(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf b = {0};
    size_t refused = 0;
    make_npy(&b, HEADER(">i2", "True", "(2, 3)"), "abcdefghijkl", 12);
    for (size_t i = 0; i < 9 * b.len; i++) {
        const size_t len = i < 8 * b.len ? b.len : i - 8 * b.len;
        zc_tensor t = {0};
        uint8_t *bytes = malloc(len ? len : 1);
        assert_non_null(bytes);
        memcpy(bytes, b.data, len);
        if (i < 8 * b.len) bytes[i / 8] = (uint8_t)(bytes[i / 8] ^ (1 << i % 8));
        if (zc_npy_parse(bytes, len, &t, diag) != ZC_OK) {
            refused++;
            assert_int_equal(zc_diag_count(diag), 1);
        }
        zc_diag_clear(diag);
        free(t.data);
        free(bytes);
    }
    assert_true(refused > b.len && refused < 9 * b.len);
    zc_buf_fini(&b);
    zc_diag_destroy(&diag);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf b = {0};
    make_npy(&b, HEADER("<i2", "True", "(2, 3)"), "abcdefghijkl", 12);
    int happened = 1;
    long n = 0;
    while (happened) {
        zc_tensor t = {0};
        fail_alloc_at(++n);
        const zc_status status = parse(&b, &t, diag);
        happened = fail_alloc_happened();
        fail_alloc_at(0);
        if (happened)
            expect_fail(diag, status, ZC_ERR_NOMEM, "out of memory");
        else
            expect_ok(diag, status);
        free(t.data);
    }
    assert_int_equal(n, 4); /* the header, the data, its transpose, and then none */
    zc_buf_fini(&b);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_files),
        cmocka_unit_test(test_bad_headers),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_nested_brackets),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_written_bytes),
        cmocka_unit_test(test_damaged_files),
        cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
