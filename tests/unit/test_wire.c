/* The pre-scan of protobuf bytes, and loading through it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sniff.h"
#include "import/load.h"
#include "import/tensor_proto.h"
#include "support/expect.h"
#include "support/fail_alloc.h"
#include "support/pb.h"

#define F32 1

/* A model with each kind of field: y = Add(Relu(x), w) with attributes, weights and metadata. */
static void small_model(zc_buf *out)
{
    zc_buf graph = {0}, weight = {0}, node = {0}, attr = {0}, entry = {0};
    const float values[4] = {1, 2, 3, 4};
    pb_node(&graph, "Relu", "x", NULL, "r");
    pb_str(&attr, ATTR_NAME, "alpha");
    pb_f32(&attr, ATTR_F, 0.5f);
    pb_int(&attr, ATTR_TYPE, 1);
    pb_str(&node, NODE_INPUT, "r");
    pb_str(&node, NODE_INPUT, "w");
    pb_str(&node, NODE_OUTPUT, "y");
    pb_str(&node, NODE_OP_TYPE, "Add");
    pb_msg(&node, NODE_ATTRIBUTE, &attr);
    pb_msg(&graph, GRAPH_NODE, &node);
    pb_str(&graph, GRAPH_NAME, "g");
    pb_packed(&weight, TENSOR_DIMS, (int64_t[]){4}, 1);
    pb_int(&weight, TENSOR_DATA_TYPE, F32);
    pb_str(&weight, TENSOR_NAME, "w");
    pb_bytes(&weight, TENSOR_RAW_DATA, values, sizeof values);
    pb_msg(&graph, GRAPH_INITIALIZER, &weight);
    pb_value(&graph, GRAPH_INPUT, "x", F32, 2, (int64_t[]){3, 4});
    pb_value(&graph, GRAPH_OUTPUT, "y", F32, 2, (int64_t[]){3, 4});
    pb_model(out, 8, 17, &graph);
    pb_str(&entry, ENTRY_KEY, "k");
    pb_str(&entry, ENTRY_VALUE, "v");
    pb_msg(out, MODEL_METADATA_PROPS, &entry);
}

/* Loads and frees. */
static zc_status load(const zc_buf *bytes, zc_diag *diag)
{
    Onnx__ModelProto *model = NULL;
    const zc_status status =
        zc_onnx_load_bytes((const uint8_t *)bytes->data, bytes->len, &model, diag);
    zc_onnx_free(&model);
    return status;
}

static void test_loads_a_model(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0};
    Onnx__ModelProto *m = NULL;
    small_model(&bytes);
    expect_ok(diag, zc_onnx_load_bytes((uint8_t *)bytes.data, bytes.len, &m, diag));
    assert_int_equal(m->ir_version, 8);
    assert_int_equal(m->graph->n_node, 2);
    assert_string_equal(m->graph->node[1]->op_type, "Add");
    assert_int_equal(m->graph->initializer[0]->raw_data.len, 16);
    zc_onnx_free(&m);
    assert_null(m);
    zc_onnx_free(&m);
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

/* Bytes that are wrong by themselves, whatever comes around them. */
static const struct {
    const char *bytes;
    size_t len;
    const char *text;
} BAD_BYTES[] = {
#define BYTES(s) s, sizeof(s) - 1
    {"", 0, "the file is empty (need an ONNX model)"},
    {BYTES("\x08"), "byte 1: a varint runs past the end"},
    {BYTES("\x88"), "byte 0: a varint runs past the end"},
    {BYTES("\x08\xFF\xFF"), "byte 1: a varint runs past the end"},
    {BYTES("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"),
     "byte 1: over-long varint (need at most 10 bytes)"},
    {BYTES("\x08\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x02"), "byte 1: over-long varint"},
    {BYTES("\x88\x80\x80\x80\x80\x00\x01"), "byte 0: over-long varint (need at most 5 bytes)"},
    {BYTES("\x3A\x81\x80\x80\x80\x80\x00"), "byte 1: over-long varint (need at most 5 bytes)"},
    {BYTES("\x00\x01"), "byte 0: field number 0 (need 1 to 536870911)"},
    {BYTES("\x08\x08\x05\x01"), "byte 2: field number 0"},
    {BYTES("\xF8\xFF\xFF\xFF\x1F\x01"), "byte 0: field number 1073741823 (need"},
    {BYTES("\x0B\x08\x01\x0C"), "byte 0: field 1 has wire type 3, which is a group"},
    {BYTES("\x0C"), "byte 0: field 1 has wire type 4, which is a group"},
    {BYTES("\x0E"), "byte 0: field 1 has wire type 6, which is not defined"},
    {BYTES("\x0F"), "byte 0: field 1 has wire type 7, which is not defined"},
    {BYTES("\xA5\x06\x00\x00\x00"), "byte 2: a value runs past the end of ModelProto (got 4 "
                                    "bytes, 3 are left)"},
    {BYTES("\xA1\x06\x00\x00\x00\x00\x00\x00\x00"), "byte 2: a value runs past the end"},
    {BYTES("\x3A\x7F\x00"), "byte 1: a value runs past the end of ModelProto (got 127 bytes, 1 "
                            "are left)"},
    {BYTES("\x3A\xFF\xFF\xFF\xFF\x7F\x00"), "a value runs past the end of ModelProto"},
    {BYTES("\x3A\x02\x12\x05_long"), "byte 3: a value runs past the end of GraphProto"},
    {BYTES("\x38\x01"), "byte 0: field 'graph' of ModelProto has wire type 0 (need 2)"},
    {BYTES("\x0A\x01\x01"), "byte 0: field 'ir_version' of ModelProto has wire type 2 (need 0)"},
    {BYTES("\x3A\x02\x60\x01"), "field 'output' of GraphProto has wire type 0"},
    {BYTES("\x3A\x07\x2A\x05\x22\x03\x00\x00\x00"),
     "packed field 'float_data' of TensorProto has a broken last element (got 3 bytes, need a "
     "multiple of 4)"},
    {BYTES("\x3A\x07\x2A\x05\x52\x03\x00\x00\x00"), "packed field 'double_data' of TensorProto"},
    {BYTES("\x3A\x06\x2A\x04\x3A\x02\x01\x80"), "byte 7: a varint runs past the end"},
    {BYTES("\x08\x07\x08\x08"), "byte 2: duplicate field 'ir_version' of ModelProto"},
    {BYTES("\x3A\x00\x3A\x00"), "byte 2: duplicate field 'graph' of ModelProto"},
    {BYTES("\x3A\x06\x12\x01g\x12\x01h"), "byte 5: duplicate field 'name' of GraphProto"},
    {BYTES("\x3A\x08\x0A\x06\x2A\x04\x22\x00\x22\x00"), "duplicate field 's' of AttributeProto"},
    {BYTES("\x3A\x08\x5A\x06\x12\x04\x0A\x00\x22\x00"),
     "byte 8: field 'sequence_type' of TypeProto after its alternative 'tensor_type'"},
    {BYTES("\x3A\x0F\x5A\x0D\x12\x0B\x0A\x09\x12\x07\x0A\x05\x08\x01\x12\x01N"),
     "field 'dim_param' of Dimension after its alternative 'dim_value'"},
    {BYTES("\x3A\x06\x12\x04w\0ev"), "byte 5: field 'name' of GraphProto contains a NUL byte"},
    {BYTES("\x3A\x06\x0A\x04\x22\x02\xFF\xFE"),
     "byte 6: field 'op_type' of NodeProto is not UTF-8"},
    {BYTES("\x3A\x04\x12\x02\xC0\x80"), "is not UTF-8"},
    {BYTES("\x3A\x04\x12\x02\xC1\xBF"), "is not UTF-8"},
    {BYTES("\x3A\x04\x12\x02\xE2\x82"), "is not UTF-8"},
    {BYTES("\x3A\x05\x12\x03\xE0\x9F\xBF"), "is not UTF-8"},
    {BYTES("\x3A\x05\x12\x03\xED\xA0\x80"), "is not UTF-8"},
    {BYTES("\x3A\x06\x12\x04\xF0\x8F\xBF\xBF"), "is not UTF-8"},
    {BYTES("\x3A\x06\x12\x04\xF4\x90\x80\x80"), "is not UTF-8"},
    {BYTES("\x3A\x03\x12\x01\x80"), "is not UTF-8"},
    {BYTES("\x3A\x00\x42\x00"), "byte 4: field 'ir_version' of ModelProto is missing: the file is "
                                "cut short or not an ONNX model"},
    {BYTES("\x08\x08\x42\x00"), "field 'graph' of ModelProto is missing"},
    {BYTES("\x08\x08\x3A\x00"), "field 'opset_import' of ModelProto is missing"},
};

static void test_bad_bytes(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(BAD_BYTES); i++) {
        zc_buf bytes = {0};
        zc_buf_append(&bytes, BAD_BYTES[i].bytes, BAD_BYTES[i].len);
        expect_fail(diag, load(&bytes, diag), ZC_ERR_FORMAT, BAD_BYTES[i].text);
        zc_buf_fini(&bytes);
    }
    zc_diag_destroy(&diag);
}

/* The same checks with another message at the top. */
static void test_tensor_root(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    uint64_t memory = 0;
    const uint8_t good[] = {0x08, 0x00, 0x10, 0x01};
    expect_ok(diag, zc_wire_check(good, sizeof good, ZC_WIRE_TENSOR, &memory, diag));
    assert_true(memory > sizeof(Onnx__TensorProto));
    expect_fail(diag, zc_wire_check(good, 2, ZC_WIRE_TENSOR, NULL, diag), ZC_ERR_FORMAT,
                "byte 2: field 'data_type' of TensorProto is missing: the file is cut short or not "
                "an ONNX tensor");
    expect_fail(diag, zc_wire_check(good, 0, ZC_WIRE_TENSOR, NULL, diag), ZC_ERR_FORMAT,
                "the file is empty (need an ONNX tensor)");
    zc_diag_destroy(&diag);
}

static void test_accepts_utf8(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "caf\xC3\xA9",
                                        "\xE6\xBC\xA2",
                                        "\xED\x9F\xBF",
                                        "\xEE\x80\x80",
                                        "\xF0\x90\x80\x80",
                                        "\xF4\x8F\xBF\xBF",
                                        "\x1B[2J"};
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(names); i++) {
        zc_buf bytes = {0}, graph = {0};
        pb_str(&graph, GRAPH_NAME, names[i]);
        pb_model(&bytes, 8, 17, &graph);
        expect_ok(diag, load(&bytes, diag));
        zc_buf_fini(&bytes);
    }
    zc_diag_destroy(&diag);
}

/* A model whose field of that name, in the model itself or in its one metadata entry, has n bytes.
 */
static void long_string(zc_buf *out, uint32_t field, bool in_entry, size_t n)
{
    zc_buf graph = {0}, text = {0}, entry = {0};
    const size_t at = zc_buf_grow(&text, n);
    memset(text.data + at, 'a', n);
    pb_model(out, 8, 17, &graph);
    pb_msg(in_entry ? &entry : out, field, &text);
    if (in_entry) pb_msg(out, MODEL_METADATA_PROPS, &entry);
}

static void test_string_lengths(void **state)
{
    (void)state;
    const size_t max = ZC_WIRE_NAME_MAX;
    const struct {
        uint32_t field;
        bool in_entry;
        size_t n;
        const char *text; /* NULL: accepted */
    } cases[] = {
        {MODEL_PRODUCER_NAME, false, max, NULL},
        {MODEL_PRODUCER_NAME, false, max + 1,
         "field 'producer_name' of ModelProto is too long (got 65537 bytes, need at most 65536)"},
        {MODEL_DOC_STRING, false, 4 * max, NULL},
        {ENTRY_VALUE, true, 4 * max, NULL},
        {ENTRY_KEY, true, max + 1, "field 'key' of StringStringEntryProto is too long"},
    };
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_buf bytes = {0};
        long_string(&bytes, cases[i].field, cases[i].in_entry, cases[i].n);
        if (cases[i].text)
            expect_fail(diag, load(&bytes, diag), ZC_ERR_LIMIT, cases[i].text);
        else
            expect_ok(diag, load(&bytes, diag));
        zc_buf_fini(&bytes);
    }
    zc_diag_destroy(&diag);
}

/* Wraps what is in b as the only field of a new message. */
static void wrap(zc_buf *b, uint32_t field)
{
    zc_buf outer = {0};
    pb_msg(&outer, field, b);
    *b = outer;
}

/* A model of `graphs` graphs inside each other, the innermost holding an attribute with `types`
 * types inside each other. */
static void nested_model(zc_buf *out, int graphs, int types)
{
    zc_buf b = {0};
    if (types) {
        for (int i = 1; i < types; i++) {
            wrap(&b, 1); /* Sequence.elem_type */
            wrap(&b, TYPE_SEQUENCE);
        }
        wrap(&b, ATTR_TP);
        wrap(&b, NODE_ATTRIBUTE);
        wrap(&b, GRAPH_NODE);
    }
    for (int i = 1; i < graphs; i++) {
        wrap(&b, ATTR_G);
        wrap(&b, NODE_ATTRIBUTE);
        wrap(&b, GRAPH_NODE);
    }
    pb_model(out, 8, 17, &b);
}

static void test_nesting(void **state)
{
    (void)state;
    const struct {
        int graphs, types;
        const char *text; /* NULL: accepted */
    } cases[] = {
        {ZC_WIRE_GRAPH_DEPTH_MAX, 0, NULL},
        {ZC_WIRE_GRAPH_DEPTH_MAX + 1, 0, "graphs are nested too deeply (need at most 32)"},
        {3000, 0, "graphs are nested too deeply"},
        {1, ZC_WIRE_TYPE_DEPTH_MAX, NULL},
        {1, ZC_WIRE_TYPE_DEPTH_MAX + 1, "types are nested too deeply (need at most 32)"},
        {1, 5000, "types are nested too deeply"},
        {ZC_WIRE_GRAPH_DEPTH_MAX, 2, NULL},
        {ZC_WIRE_GRAPH_DEPTH_MAX, 3, "messages are nested too deeply (need at most 100)"},
    };
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_buf bytes = {0};
        nested_model(&bytes, cases[i].graphs, cases[i].types);
        if (cases[i].text)
            expect_fail(diag, load(&bytes, diag), ZC_ERR_LIMIT, cases[i].text);
        else
            expect_ok(diag, load(&bytes, diag));
        zc_buf_fini(&bytes);
    }
    zc_diag_destroy(&diag);
}

/* The offset is the one of the message that is too deep, not of the file's end. */
static void test_nesting_offset(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0};
    nested_model(&bytes, 3000, 0);
    assert_true(bytes.len > 30000);
    const zc_status status = load(&bytes, diag);
    unsigned long long at = 0;
    assert_int_equal(sscanf(zc_diag_text(diag, 0), "byte %llu:", &at), 1);
    assert_true(at > 300 && at < 500);
    expect_fail(diag, status, ZC_ERR_LIMIT, "graphs are nested too deeply");
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

static void *load_thread(void *arg)
{
    static zc_status status;
    status = load(arg, NULL);
    return &status;
}

/* What load.h promises of the stack. */
static void test_small_stack(void **state)
{
    (void)state;
    zc_buf bytes = {0};
    nested_model(&bytes, ZC_WIRE_GRAPH_DEPTH_MAX, 2);
    pthread_attr_t attr;
    pthread_t thread;
    void *result = NULL;
    assert_int_equal(pthread_attr_init(&attr), 0);
    assert_int_equal(pthread_attr_setstacksize(&attr, 128 * 1024), 0);
    assert_int_equal(pthread_create(&thread, &attr, load_thread, &bytes), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_int_equal(*(zc_status *)result, ZC_OK);
    pthread_attr_destroy(&attr);
    zc_buf_fini(&bytes);
}

/* n times the same field, of no content, in the graph or the model. */
static void many_fields(zc_buf *out, uint32_t field, bool in_graph, size_t n)
{
    zc_buf graph = {0}, model = {0};
    for (size_t i = 0; i < n; i++) pb_bytes(in_graph ? &graph : &model, field, "", 0);
    pb_model(&model, 8, 17, &graph);
    *out = model;
}

static void test_amplification(void **state)
{
    (void)state;
    const struct {
        uint32_t field;
        bool in_graph;
        size_t n;
        const char *text; /* NULL: accepted */
    } cases[] = {
        {GRAPH_NODE, true, 1000000,
         "too many small parts: unpacking would exceed its memory limit"},
        {GRAPH_INITIALIZER, true, 1000000, "too many small parts"},
        {MODEL_FUNCTIONS, false, 1000000, "too many small parts"},
        {99, false, 1000000, "too many unknown fields (need at most 65536)"},
        {GRAPH_NODE, true, 50000, NULL},
        {99, false, 65536, NULL},
    };
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_buf bytes = {0};
        many_fields(&bytes, cases[i].field, cases[i].in_graph, cases[i].n);
        if (cases[i].text)
            expect_fail(diag, load(&bytes, diag), ZC_ERR_LIMIT, cases[i].text);
        else
            expect_ok(diag, load(&bytes, diag));
        zc_buf_fini(&bytes);
    }
    zc_diag_destroy(&diag);
}

/* Weights do not pay for small parts. */
static void test_weights_do_not_count(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0}, graph = {0}, weight = {0}, raw = {0};
    zc_buf_grow(&raw, 4 << 20);
    pb_msg(&weight, TENSOR_RAW_DATA, &raw);
    pb_msg(&graph, GRAPH_INITIALIZER, &weight);
    for (int i = 0; i < 300000; i++) pb_bytes(&graph, GRAPH_NODE, "", 0);
    pb_model(&bytes, 8, 17, &graph);
    expect_fail(diag, load(&bytes, diag), ZC_ERR_LIMIT, "too many small parts");
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

/* More nodes than any model has, each large enough not to count as a small part. */
static void test_too_many_nodes(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0}, graph = {0}, node = {0};
    pb_node(&node, "LongOpType", NULL, NULL, "result");
    for (size_t i = 0; i < (4 << 20) + 1; i++) zc_buf_append(&graph, node.data, node.len);
    pb_model(&bytes, 8, 17, &graph);
    expect_fail(diag, load(&bytes, diag), ZC_ERR_LIMIT, "too many nodes (need at most 4194304)");
    zc_buf_fini(&node);
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

/* A chain of n nodes with ordinary names is not small parts. */
static void test_long_chain(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0}, graph = {0};
    for (int i = 0; i < 200000; i++) {
        char in[16], out[16];
        snprintf(in, sizeof in, "t%d", i);
        snprintf(out, sizeof out, "t%d", i + 1);
        pb_node(&graph, "Relu", in, NULL, out);
    }
    pb_model(&bytes, 8, 17, &graph);
    expect_ok(diag, zc_wire_check((uint8_t *)bytes.data, bytes.len, ZC_WIRE_MODEL, NULL, diag));
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

static void test_too_large(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    const uint8_t byte = 8;
    expect_fail(diag, zc_wire_check(&byte, (size_t)1 << 31, ZC_WIRE_MODEL, NULL, diag),
                ZC_ERR_LIMIT,
                "too large for protobuf (got 2147483648 bytes, need at most "
                "2147483647)");
    zc_diag_destroy(&diag);
}

static const struct {
    const char *bytes;
    size_t len;
    const char *text;
} OTHER_FILES[] = {
    {BYTES("\x89ZCP\r\n\x1A\n"), "this is a zc plan, not an ONNX model; give it to `zc run`"},
    {BYTES("\x93NUMPY\x01\x00"), "this is a .npy array, not an ONNX model; give it to `zc run`"},
    {BYTES("\x89PNG\r\n\x1A\n"), "this is a PNG image, not an ONNX model"},
    {BYTES("PK\x03\x04\x14"), "this is a zip archive"},
    {BYTES("GGUF\x03\0\0\0"), "this is a GGUF model"},
    {BYTES("ftrt\0\0\0\0"), "this is a TensorRT engine"},
    {BYTES("\x1C\0\0\0TFL3"), "this looks like a TensorFlow Lite model"},
    {BYTES("\x1C\0\0\0ORTM"), "this looks like an ONNX Runtime .ort model"},
    {BYTES("\x40\0\0\0\0\0\0\0{\"a\":1}"), "this looks like a safetensors file"},
    {BYTES("version https://git-lfs.github.com/spec/v1\n"), "this is a Git LFS pointer"},
    {BYTES("\x1F\x8B\x08\0"), "this is a gzip file"},
    {BYTES("\x80\x02}q\x00"), "this is a Python pickle"},
    {BYTES("\n {\"graph\": 1}"), "this looks like JSON text"},
    {BYTES("<!DOCTYPE html>"), "this looks like an HTML or XML page"},
    {BYTES("ir_version: 8\n"), "this looks like text, not an ONNX model"},
};

/* The path of a fresh file with these bytes; the caller unlinks it. */
static void make_file(char path[64], const void *bytes, size_t len)
{
    strcpy(path, "/tmp/zc-test-XXXXXX");
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), len);
    close(fd);
}

static void test_other_files(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(OTHER_FILES); i++) {
        char path[64];
        Onnx__ModelProto *model = NULL;
        make_file(path, OTHER_FILES[i].bytes, OTHER_FILES[i].len);
        expect_fail(diag, zc_onnx_load(path, &model, diag), ZC_ERR_FORMAT, OTHER_FILES[i].text);
        unlink(path);
        zc_buf bytes = {0};
        zc_buf_append(&bytes, OTHER_FILES[i].bytes, OTHER_FILES[i].len);
        zc_diag_set_file(diag, NULL);
        expect_fail(diag, load(&bytes, diag), ZC_ERR_FORMAT, OTHER_FILES[i].text);
        zc_buf_fini(&bytes);
    }
    zc_diag_destroy(&diag);
}

/* What looks like text and is a model nevertheless is a model: its first 612 bytes are printable.
 */
static void test_text_like_model(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0}, graph = {0};
    char spaces[101] = {0};
    memset(spaces, ' ', 100);
    pb_str(&bytes, MODEL_DOC_STRING, spaces);
    for (int i = 0; i < 5; i++) pb_str(&bytes, 15, spaces); /* unknown; its tag is 'z' */
    assert_memory_equal(bytes.data, "2d ", 3);
    assert_non_null(zc_sniff((uint8_t *)bytes.data, bytes.len));
    pb_model(&bytes, 8, 17, &graph);
    assert_non_null(zc_sniff((uint8_t *)bytes.data, bytes.len));
    expect_ok(diag, load(&bytes, diag));
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

static void test_files(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    Onnx__ModelProto *model = NULL;
    zc_buf bytes = {0};
    char path[64];
    expect_fail(diag, zc_onnx_load("/nonexistent/m.onnx", &model, diag), ZC_ERR_IO,
                "/nonexistent/m.onnx: cannot open (No such file or directory)");
    expect_fail(diag, zc_onnx_load("/", &model, diag), ZC_ERR_IO, "regular file");
    make_file(path, "", 0);
    expect_fail(diag, zc_onnx_load(path, &model, diag), ZC_ERR_FORMAT,
                ": the file is empty (need an ONNX model)");
    assert_int_equal(truncate(path, (off_t)3 << 30), 0);
    expect_fail(
        diag, zc_onnx_load(path, &model, diag), ZC_ERR_LIMIT,
        "too large for protobuf (got 3221225472 bytes, need at most 2147483647): keep large "
        "tensors in external data files");
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_fail(diag, zc_onnx_load(path, &model, diag), ZC_ERR_IO, "FIFO");
    unlink(path);
    small_model(&bytes);
    make_file(path, bytes.data, bytes.len);
    expect_ok(diag, zc_onnx_load(path, &model, diag));
    unlink(path);
    zc_onnx_free(&model);
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

/* Loads damaged bytes: whatever comes of it, a failure has a reason. */
static bool survives(const uint8_t *data, size_t len, zc_diag *diag)
{
    Onnx__ModelProto *model = NULL;
    const zc_status status = zc_onnx_load_bytes(data, len, &model, diag);
    if (status == ZC_OK) {
        zc_tensor t = {0};
        for (size_t i = 0; i < model->graph->n_initializer; i++)
            if (zc_tensor_take_proto(model->graph->initializer[i], NULL, &t, NULL) == ZC_OK)
                free(t.data);
    } else {
        assert_int_equal(zc_diag_count(diag), 1);
        assert_true(zc_diag_text(diag, 0)[0] != '\0');
    }
    zc_diag_clear(diag);
    zc_onnx_free(&model);
    return status == ZC_OK;
}

static void test_truncations(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0};
    small_model(&bytes);
    size_t ok = 0;
    for (size_t n = 0; n < bytes.len; n++) {
        uint8_t *part = malloc(n ? n : 1); /* its own object, so that a read past it is seen */
        assert_non_null(part);
        memcpy(part, bytes.data, n);
        ok += survives(part, n, diag);
        free(part);
    }
    assert_int_equal(ok, 1); /* without the metadata at the end it is a model still */
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

static void test_bit_flips(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0};
    small_model(&bytes);
    size_t refused = 0;
    for (size_t i = 0; i < 8 * bytes.len; i++) {
        bytes.data[i / 8] = (char)(bytes.data[i / 8] ^ (1 << i % 8));
        refused += !survives((const uint8_t *)bytes.data, bytes.len, diag);
        bytes.data[i / 8] = (char)(bytes.data[i / 8] ^ (1 << i % 8));
    }
    assert_true(refused > 0 && refused < 8 * bytes.len);
    assert_true(survives((const uint8_t *)bytes.data, bytes.len, diag));
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

static void test_allocation_failures(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf bytes = {0};
    small_model(&bytes);
    zc_status status = ZC_ERR_NOMEM;
    long n = 0;
    while (status != ZC_OK) {
        fail_alloc_at(++n);
        status = load(&bytes, diag);
        const int happened = fail_alloc_happened();
        fail_alloc_at(0);
        if (happened)
            expect_fail(diag, status, ZC_ERR_NOMEM, "out of memory for an ONNX model");
        else
            expect_ok(diag, status);
    }
    assert_true(n > 40);
    zc_buf_fini(&bytes);
    zc_diag_destroy(&diag);
}

static void *count_alloc(void *arg, size_t size)
{
    *(uint64_t *)arg += size;
    return malloc(size);
}

static void count_free(void *arg, void *p)
{
    (void)arg;
    free(p);
}

/* The estimate is an upper bound of what protobuf-c takes, and not far above it. */
static void test_estimate(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (int kind = 0; kind < 4; kind++) {
        zc_buf bytes = {0};
        if (kind == 0) small_model(&bytes);
        if (kind == 1) nested_model(&bytes, 20, 20);
        if (kind == 2) many_fields(&bytes, GRAPH_NODE, true, 10000);
        if (kind == 3) many_fields(&bytes, 99, false, 10000);
        uint64_t estimate = 0, taken = 0;
        expect_ok(diag,
                  zc_wire_check((uint8_t *)bytes.data, bytes.len, ZC_WIRE_MODEL, &estimate, diag));
        ProtobufCAllocator allocator = {count_alloc, count_free, &taken};
        Onnx__ModelProto *model =
            onnx__model_proto__unpack(&allocator, bytes.len, (uint8_t *)bytes.data);
        assert_non_null(model);
        zc_onnx_free(&model);
        assert_in_range(estimate, taken, 2 * taken);
        zc_buf_fini(&bytes);
    }
    zc_diag_destroy(&diag);
}

/* Visits a message type and those in its fields, each once. */
static void visit(const ProtobufCMessageDescriptor *type,
                  const ProtobufCMessageDescriptor *seen[64], size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (seen[i] == type) return;
    assert_true(*n < 64);
    seen[(*n)++] = type;
    assert_in_range(type->n_fields, 1, 64); /* the scan keeps a bit for each */
    for (unsigned i = 0; i < type->n_fields; i++)
        if (type->fields[i].type == PROTOBUF_C_TYPE_MESSAGE)
            visit(type->fields[i].descriptor, seen, n);
}

static void test_message_types(void **state)
{
    (void)state;
    const ProtobufCMessageDescriptor *seen[64];
    size_t n = 0;
    visit(&onnx__model_proto__descriptor, seen, &n);
    assert_true(n >= 25);
    for (size_t r = ZC_WIRE_MODEL; r <= ZC_WIRE_TENSOR; r++)
        for (const unsigned *f = ZC_WIRE_ROOTS[r].required; *f; f++)
            assert_non_null(protobuf_c_message_descriptor_get_field(ZC_WIRE_ROOTS[r].type, *f));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loads_a_model),
        cmocka_unit_test(test_bad_bytes),
        cmocka_unit_test(test_tensor_root),
        cmocka_unit_test(test_accepts_utf8),
        cmocka_unit_test(test_string_lengths),
        cmocka_unit_test(test_nesting),
        cmocka_unit_test(test_nesting_offset),
        cmocka_unit_test(test_small_stack),
        cmocka_unit_test(test_amplification),
        cmocka_unit_test(test_too_many_nodes),
        cmocka_unit_test(test_weights_do_not_count),
        cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_other_files),
        cmocka_unit_test(test_text_like_model),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_bit_flips),
        cmocka_unit_test(test_allocation_failures),
        cmocka_unit_test(test_estimate),
        cmocka_unit_test(test_message_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
