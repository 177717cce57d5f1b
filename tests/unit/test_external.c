/* Tensors whose bytes are in other files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/fail_alloc.h"
#include "support/tensor_pb.h"

/* A directory with the file "w.bin" of 64 bytes, each its own offset. */
typedef struct data_dir {
    char path[64];
} data_dir;

static void in_dir(const data_dir *dir, const char *name, char out[128])
{
    snprintf(out, 128, "%s/%s", dir->path, name);
}

static void put_file(const data_dir *dir, const char *name, size_t n)
{
    char path[128];
    in_dir(dir, name, path);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    for (size_t i = 0; i < n; i++) fputc((int)(i & 0xFF), f);
    assert_int_equal(fclose(f), 0);
}

static void make_dir(data_dir *dir)
{
    strcpy(dir->path, "/tmp/zc-test-XXXXXX");
    assert_non_null(mkdtemp(dir->path));
    put_file(dir, "w.bin", 64);
}

static void remove_dir(const data_dir *dir)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r '%s'", dir->path);
    assert_int_equal(system(command), 0);
}

/* An f32[n] tensor whose bytes are elsewhere. Keys that are NULL are left out. */
static void put_external(zc_buf *b, int64_t n, const char *location, const char *offset,
                         const char *length, const char *checksum)
{
    const char *const keys[] = {"location", "offset", "length", "checksum"};
    const char *const values[] = {location, offset, length, checksum};
    put_type(b, ZC_F32, 1, &n);
    pb_int(b, TENSOR_DATA_LOCATION, 1);
    for (size_t i = 0; i < ZC_COUNTOF(keys); i++) {
        zc_buf entry = {0};
        if (!values[i]) continue;
        pb_str(&entry, ENTRY_KEY, keys[i]);
        pb_str(&entry, ENTRY_VALUE, values[i]);
        pb_msg(b, TENSOR_EXTERNAL_DATA, &entry);
    }
}

static zc_external *open_external(const data_dir *dir, uint64_t budget)
{
    zc_external *ext = NULL;
    char model[128];
    in_dir(dir, "model.onnx", model);
    assert_int_equal(zc_external_create(model, NULL, budget, &ext, NULL), ZC_OK);
    return ext;
}

/* SHA-1 of the bytes 0 to 63. */
#define SHA1_OF_W "c6138d514ffa2135bfce0ed0b8fac65669917ec7"

static void test_external_data(void **state)
{
    (void)state;
    const struct {
        int64_t n;
        const char *location, *offset, *length, *checksum;
        int first; /* byte expected at the beginning */
    } cases[] = {
        {4, "w.bin", "0", "16", NULL, 0},
        {16, "w.bin", NULL, NULL, NULL, 0},
        {1, "w.bin", "60", "4", NULL, 60},
        {1, "w.bin", "3", NULL, NULL, 3},
        {1, "./w.bin", "0007", "4", SHA1_OF_W, 7},
        {1, "w.bin", "8", "4", "C6138D514FFA2135BFCE0ED0B8FAC65669917EC7", 8},
        {0, "w.bin", "64", "0", NULL, -1},
    };
    data_dir dir;
    make_dir(&dir);
    zc_diag *diag = zc_diag_create();
    zc_external *ext = open_external(&dir, 0);
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_buf b = {0};
        zc_tensor t = {0};
        put_external(&b, cases[i].n, cases[i].location, cases[i].offset, cases[i].length,
                     cases[i].checksum);
        Onnx__TensorProto *p = unpack(&b);
        expect_ok(diag, zc_tensor_from_proto(p, ext, &t, diag));
        for (int64_t k = 0; k < 4 * cases[i].n; k++)
            assert_int_equal(((uint8_t *)t.data)[k], cases[i].first + k);
        if (cases[i].first < 0) assert_null(t.data);
        free(t.data);
        free_proto(p);
        zc_buf_fini(&b);
    }
    zc_external_destroy(&ext);
    assert_null(ext);
    zc_diag_destroy(&diag);
    remove_dir(&dir);
}

/* What is wrong with the description, or with where it leads. */
static const struct {
    const char *location, *offset, *length, *checksum;
    zc_status status;
    const char *text;
} BAD_EXTERNAL[] = {
    {"../../../etc/passwd", "0", "4", NULL, ZC_ERR_MODEL, "the file location contains '..'"},
    {"sub/../../w.bin", "0", "4", NULL, ZC_ERR_MODEL, "contains '..'"},
    {"/etc/passwd", "0", "4", NULL, ZC_ERR_MODEL, "is absolute"},
    {"C:\\w.bin", "0", "4", NULL, ZC_ERR_MODEL, "backslash"},
    {"file://w.bin", "0", "4", NULL, ZC_ERR_MODEL, "URL"},
    {"", "0", "4", NULL, ZC_ERR_MODEL, "is empty"},
    {".", "0", "4", NULL, ZC_ERR_MODEL, "names no file"},
    {"absent.bin", "0", "4", NULL, ZC_ERR_IO, "absent.bin: cannot open (No such file"},
    {"sub", "0", "4", NULL, ZC_ERR_IO, "a directory"},
    {"fifo", "0", "4", NULL, ZC_ERR_IO, "a FIFO"},
    {"link", "0", "4", NULL, ZC_ERR_MODEL, "leads out of the model's directory"},
    {NULL, "0", "4", NULL, ZC_ERR_MODEL, "t: external data has no key 'location'"},
    {"w.bin", "-4", "4", NULL, ZC_ERR_MODEL,
     "t: external data's offset is not a decimal number (got '-4')"},
    {"w.bin", "1e1", "4", NULL, ZC_ERR_MODEL, "offset is not a decimal number (got '1e1')"},
    {"w.bin", "0x10", "4", NULL, ZC_ERR_MODEL, "not a decimal number"},
    {"w.bin", "+4", "4", NULL, ZC_ERR_MODEL, "not a decimal number"},
    {"w.bin", " 4", "4", NULL, ZC_ERR_MODEL, "not a decimal number"},
    {"w.bin", "", "4", NULL, ZC_ERR_MODEL, "offset is not a decimal number (got '')"},
    {"w.bin", "0", "4\n", NULL, ZC_ERR_MODEL, "length is not a decimal number (got '4\\x0A')"},
    {"w.bin", "1111111111222222222233333333334444444444", "4", NULL, ZC_ERR_MODEL,
     "not a decimal number"},
    {"w.bin", "9223372036854775808", "4", NULL, ZC_ERR_MODEL, "not a decimal number"},
    {"w.bin", "9223372036854775807", "4", NULL, ZC_ERR_MODEL,
     "t: external data lies outside 'w.bin' (got offset 9223372036854775807 and length 4, the "
     "file has 64 bytes)"},
    {"w.bin", "61", "4", NULL, ZC_ERR_MODEL, "lies outside 'w.bin' (got offset 61"},
    {"w.bin", "0", "8", NULL, ZC_ERR_MODEL,
     "t: external data's length does not fill f32[1] (got 8 bytes, need 4)"},
    {"w.bin", "0", "9000000000000000000", NULL, ZC_ERR_MODEL, "does not fill f32[1]"},
    {"w.bin", "0", "4", "0000000000000000000000000000000000000000", ZC_ERR_FORMAT,
     "t: the SHA-1 of 'w.bin' is not the model's checksum (got " SHA1_OF_W ", need 0000"},
    {"w.bin", "0", "4", "", ZC_ERR_FORMAT, "is not the model's checksum"},
};

static void test_bad_external_data(void **state)
{
    (void)state;
    data_dir dir;
    char path[128];
    make_dir(&dir);
    in_dir(&dir, "sub", path);
    assert_int_equal(mkdir(path, 0700), 0);
    in_dir(&dir, "fifo", path);
    assert_int_equal(mkfifo(path, 0600), 0);
    in_dir(&dir, "link", path);
    assert_int_equal(symlink("/etc/passwd", path), 0);
    zc_external *ext = open_external(&dir, 0);
    for (size_t i = 0; i < ZC_COUNTOF(BAD_EXTERNAL); i++) {
        zc_buf b = {0};
        put_external(&b, 1, BAD_EXTERNAL[i].location, BAD_EXTERNAL[i].offset,
                     BAD_EXTERNAL[i].length, BAD_EXTERNAL[i].checksum);
        expect_bad(&b, ext, BAD_EXTERNAL[i].status, BAD_EXTERNAL[i].text);
        zc_buf_fini(&b);
    }
    zc_external_destroy(&ext);
    remove_dir(&dir);
}

static void put_key(zc_buf *b, const char *key, const char *value)
{
    zc_buf entry = {0};
    if (key) pb_str(&entry, ENTRY_KEY, key);
    if (value) pb_str(&entry, ENTRY_VALUE, value);
    pb_msg(b, TENSOR_EXTERNAL_DATA, &entry);
}

static void test_external_keys(void **state)
{
    (void)state;
    data_dir dir;
    make_dir(&dir);
    zc_diag *diag = zc_diag_create();
    zc_external *ext = open_external(&dir, 0);
    zc_tensor t = {0};
    zc_buf b = {0};
    put_external(&b, 1, "w.bin", "0", "4", NULL);
    expect_bad(&b, NULL, ZC_ERR_UNSUPPORTED,
               "t: external data is not allowed here (got location 'w.bin')");
    put_key(&b, "__class__", "x"); /* unknown keys, and entries without a key, mean nothing */
    put_key(&b, NULL, "x");
    Onnx__TensorProto *p = unpack(&b);
    expect_ok(diag, zc_tensor_from_proto(p, ext, &t, diag));
    free(t.data);
    free_proto(p);
    put_key(&b, "location", "w.bin");
    expect_bad(&b, ext, ZC_ERR_MODEL, "t: external data has two keys 'location'");
    zc_buf_fini(&b);
    put_external(&b, 1, NULL, NULL, NULL, NULL);
    put_key(&b, "location", NULL);
    expect_bad(&b, ext, ZC_ERR_MODEL, "the file location is empty");
    zc_buf_fini(&b);
    put_external(&b, 1, "w.bin", "0", "4", NULL);
    pb_bytes(&b, TENSOR_RAW_DATA, "\0\0\0", 4);
    expect_bad(&b, ext, ZC_ERR_MODEL, "t: data both in the model and in an external file");
    zc_buf_fini(&b);
    zc_external_destroy(&ext);
    zc_diag_destroy(&diag);
    remove_dir(&dir);
}

/* Reads the f32[n] at the beginning of a file. */
static zc_status read_external(zc_external *ext, const char *location, int64_t n, zc_diag *diag)
{
    zc_buf b = {0};
    zc_tensor t = {0};
    put_external(&b, n, location, NULL, NULL, NULL);
    Onnx__TensorProto *p = unpack(&b);
    const zc_status status = zc_tensor_take_proto(p, ext, &t, diag);
    free(t.data);
    free_proto(p);
    zc_buf_fini(&b);
    return status;
}

static void test_external_limits(void **state)
{
    (void)state;
    data_dir dir;
    make_dir(&dir);
    zc_diag *diag = zc_diag_create();
    zc_external *ext = open_external(&dir, 100);
    expect_ok(diag, read_external(ext, "w.bin", 16, diag));
    expect_fail(diag, read_external(ext, "w.bin", 10, diag), ZC_ERR_LIMIT,
                "t: external data exceeds the memory budget (need at most 100 bytes)");
    expect_ok(diag, read_external(ext, "w.bin", 9, diag));
    zc_external_destroy(&ext);

    /* One megabyte under many tensors and two names: 4 + 16 of them, and no more. */
    put_file(&dir, "m.bin", 1 << 20);
    ext = open_external(&dir, 0);
    for (int i = 0; i < 20; i++)
        expect_ok(diag, read_external(ext, i % 2 ? "m.bin" : "./m.bin", 1 << 18, diag));
    expect_fail(diag, read_external(ext, "m.bin", 1 << 18, diag), ZC_ERR_LIMIT,
                "t: tensors share the same external data too often (need at most 20971520 bytes in "
                "all)");
    zc_external_destroy(&ext);
    zc_diag_destroy(&diag);
    remove_dir(&dir);
}

/* More files than stay open at a time. */
static void test_many_files(void **state)
{
    (void)state;
    data_dir dir;
    make_dir(&dir);
    zc_diag *diag = zc_diag_create();
    zc_external *ext = open_external(&dir, 0);
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < 40; i++) {
            char name[16];
            snprintf(name, sizeof name, "f%d", i);
            if (round == 0) put_file(&dir, name, 8);
            expect_ok(diag, read_external(ext, name, 2, diag));
        }
    zc_external_destroy(&ext);
    zc_diag_destroy(&diag);
    remove_dir(&dir);
}

static void test_file_changes(void **state)
{
    (void)state;
    data_dir dir;
    char path[128];
    make_dir(&dir);
    in_dir(&dir, "w.bin", path);
    zc_diag *diag = zc_diag_create();
    zc_external *ext = open_external(&dir, 0);
    expect_ok(diag, read_external(ext, "w.bin", 16, diag));
    assert_int_equal(truncate(path, 60), 0);
    expect_fail(diag, read_external(ext, "w.bin", 16, diag), ZC_ERR_IO, "the file is too short");
    expect_fail(diag, read_external(ext, "w.bin", 15, diag), ZC_ERR_IO,
                "t: external data file 'w.bin' changed while it was read");
    zc_external_destroy(&ext);
    zc_diag_destroy(&diag);
    remove_dir(&dir);
}

/* --data-root: another directory than the model's. */
static void test_data_root(void **state)
{
    (void)state;
    data_dir dir;
    make_dir(&dir);
    zc_diag *diag = zc_diag_create();
    zc_external *ext = NULL;
    assert_int_equal(zc_external_create("/nonexistent/m.onnx", dir.path, 0, &ext, diag), ZC_OK);
    expect_ok(diag, read_external(ext, "w.bin", 16, diag));
    zc_external_destroy(&ext);
    assert_int_equal(zc_external_create("/nonexistent/m.onnx", NULL, 0, &ext, diag), ZC_OK);
    expect_fail(diag, read_external(ext, "w.bin", 16, diag), ZC_ERR_IO, "/nonexistent");
    zc_external_destroy(&ext);
    assert_int_equal(zc_external_create("m.onnx", NULL, 0, &ext, diag), ZC_OK);
    expect_fail(diag, read_external(ext, "zc-absent.bin", 16, diag), ZC_ERR_IO, "zc-absent.bin");
    zc_external_destroy(&ext);
    zc_diag_destroy(&diag);
    remove_dir(&dir);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    data_dir dir;
    make_dir(&dir);
    int happened = 1;
    long n = 0;
    while (happened) {
        zc_external *ext = NULL;
        void *data = NULL;
        const zc_external_ref ref = {"t", "w.bin", 0, 4, SHA1_OF_W};
        fail_alloc_at(++n);
        zc_status status = zc_external_create("m.onnx", dir.path, 0, &ext, diag);
        if (status == ZC_OK) status = zc_external_read(ext, &ref, &data, diag);
        happened = fail_alloc_happened();
        fail_alloc_at(0);
        if (happened)
            expect_fail(diag, status, ZC_ERR_NOMEM, "out of memory");
        else
            expect_ok(diag, status);
        zc_external_destroy(&ext);
        free(data);
    }
    assert_true(n > 5);
    zc_diag_destroy(&diag);
    remove_dir(&dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_external_data), cmocka_unit_test(test_bad_external_data),
        cmocka_unit_test(test_external_keys), cmocka_unit_test(test_external_limits),
        cmocka_unit_test(test_many_files),    cmocka_unit_test(test_file_changes),
        cmocka_unit_test(test_data_root),     cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
