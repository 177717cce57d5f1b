/* Models that are well-formed and mean nothing, too much, or something at the edge: what compiling
 * or running them says. Rows S10 to S33, E6, E7 and P14 of docs/reliability.md. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "import/external.h"
#include "support/expect.h"
#include "support/onnx_text.h"
#include "support/pb.h"
#include "support/plan_inputs.h"
#include "zc/zc.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#endif

#ifdef UNDER_ASAN
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
#endif

typedef struct loaded {
    zc_plan *plan;
    zc_session *session;
} loaded;

static zc_status compile(const char *text, const zc_compile_params *params, void **plan,
                         size_t *len, zc_diag *diag)
{
    zc_buf model = {0};
    onnx_text(text, &model);
    zc_status status = zc_compile_bytes(model.data, model.len, params, plan, len, diag);
    zc_buf_fini(&model);
    return status;
}

static zc_status load(const char *text, const zc_compile_params *params, loaded *out, zc_diag *diag)
{
    void *bytes;
    size_t len;
    *out = (loaded){0};
    ZC_TRY(compile(text, params, &bytes, &len, diag));
    expect_ok(diag, zc_plan_load_bytes(bytes, len, &out->plan, diag));
    expect_ok(diag,
              zc_session_create(out->plan, ZC_SESSION_PARAMS(.threads = 1), &out->session, diag));
    zc_free(bytes);
    return ZC_OK;
}

static void unload(loaded *l)
{
    assert_int_equal(zc_session_destroy(&l->session), ZC_OK);
    zc_plan_destroy(&l->plan);
}

/* ---- models by text ---- */

enum stage { COMPILES, RUNS };

typedef struct meaning {
    const char *name, *text;
    enum stage fails_in;
    zc_status status; /* ZC_OK: runs */
    const char *says;
} meaning;

/* Unknown sizes are 2, integer inputs 2, 4, 2, 4... x / 0 is 0 and a dimension 0 of Reshape
 * keeps the input's, which is defined if not wise. */
static const meaning meanings[] = {
    {"S10 size 0", "in x 1 0,3\nout y 1 *\nnode Relu x y", RUNS, ZC_OK, ""},
    {"S10 size 0 in a product", "in x 1 0,3\nin w 1 3,2\nout y 1 *\nnode MatMul x,w y", RUNS, ZC_OK,
     ""},
    {"S10 nothing to sum", "in x 1 2,0\nout y 1 *\ninit a 7 1 1\nnode ReduceSum x,a y", RUNS, ZC_OK,
     ""},
    {"S10 convolution of nothing", "in x 1 0,1,4,4\nin w 1 1,1,3,3\nout y 1 *\nnode Conv x,w y",
     RUNS, ZC_OK, ""},
    {"S20 slice of nothing", "in x 1 0\nout y 1 *\ninit a 7 1 0\ninit b 7 1 5\nnode Slice x,a,b y",
     RUNS, ZC_OK, ""},
    {"S20 step INT64_MIN",
     "in x 1 4\nout y 1 *\ninit a 7 1 3\ninit b 7 1 -9\ninit z 7 1 0\ninit s 7 1 "
     "-9223372036854775808\nnode Slice x,a,b,z,s y",
     RUNS, ZC_OK, ""},
    {"S20 step 0", "in x 1 4\nout y 1 *\ninit a 7 1 0\nnode Slice x,a,a,a,a y", COMPILES,
     ZC_ERR_MODEL, "Slice_0: "},
    {"S23 constant index too large", "in x 1 4\nout y 1 *\ninit i 7 1 9\nnode Gather x,i y",
     COMPILES, ZC_ERR_MODEL, "Gather_0: index out of range (got 9, need [-4, 3])"},
    {"S23 constant index too small", "in x 1 4\nout y 1 *\ninit i 7 1 -5\nnode Gather x,i y",
     COMPILES, ZC_ERR_MODEL, "Gather_0: index out of range (got -5, need [-4, 3])"},
    {"S23 index at run time", "in x 1 2\nin i 7 2\nout y 1 *\nnode Gather x,i y", RUNS,
     ZC_ERR_INPUT, "Gather_0: index out of range (got 2, need [-2, 1])"},
    {"S23 index of elements", "in x 1 2\nin i 7 2\nout y 1 *\nnode GatherElements x,i y", RUNS,
     ZC_ERR_INPUT, "GatherElements_0: "},
    {"S23 index tuples", "in x 1 2,2\nin i 7 1,2\nout y 1 *\nnode GatherND x,i y", RUNS,
     ZC_ERR_INPUT, "GatherND_0: "},
    {"S23 scattered elements",
     "in x 1 2\nin i 7 2\nin u 1 2\nout y 1 *\nnode ScatterElements x,i,u y", RUNS, ZC_ERR_INPUT,
     "ScatterElements_0: "},
    {"S23 scattered slices",
     "in x 1 2,2\nin i 7 1,1\nin u 1 1,2\nout y 1 *\nnode ScatterND x,i,u y", RUNS, ZC_ERR_INPUT,
     "ScatterND_0: "},
    {"S24 scales for more than there is",
     "in x 3 2,2\nout y 1 *\ninit s 1 4 1,1,1,1\nnode DequantizeLinear x,s y axis:i=1", COMPILES,
     ZC_ERR_MODEL, "DequantizeLinear_0: "},
    {"S24 zero point of another shape",
     "in x 1 2,2\nout y 3 *\ninit s 1 2 1,1\ninit z 3 3 0,0,0\nnode QuantizeLinear x,s,z y "
     "axis:i=1",
     COMPILES, ZC_ERR_MODEL, "QuantizeLinear_0: "},
    {"S24 blocks that overstate the matrix",
     "opset com.microsoft 1\nin x 1 1,32\nout y 1 *\ninit b 2 1,1,16 "
     "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16\ninit s 1 1 1\nnode MatMulNBits "
     "x,b,s y domain=com.microsoft K:i=32 N:i=64 bits:i=4 block_size:i=32",
     COMPILES, ZC_ERR_MODEL, "MatMulNBits_0: "},
    {"S25 INT64_MIN / -1 as a shape",
     "in x 1 4\nout y 1 *\ninit a 7 1 -9223372036854775808\ninit b 7 1 -1\nnode Div a,b s\nnode "
     "Reshape x,s y",
     COMPILES, ZC_ERR_MODEL, "Reshape_1: "},
    {"S25 division by zero as a shape",
     "in x 1 4\nout y 1 *\ninit a 7 1 4\ninit b 7 1 0\nnode Div a,b s\nnode Reshape x,s y", RUNS,
     ZC_OK, ""},
    {"S25 sum that overflows as a shape",
     "in x 1 4\nout y 1 *\ninit a 7 1 9223372036854775807\nnode Add a,a s\nnode Reshape x,s y",
     COMPILES, ZC_ERR_MODEL, "Reshape_1: "},
    {"S27 2^40 zeros", "out y 1 *\ninit s 7 1 1099511627776\nnode ConstantOfShape s y", RUNS,
     ZC_ERR_NOMEM, "memory"},
    {"S27 expanded to 2^41", "in x 1 1\nout y 1 *\ninit s 7 2 1048576,2097152\nnode Expand x,s y",
     RUNS, ZC_ERR_NOMEM, "memory"},
    {"S27 tiled to 2^41", "in x 1 2\nout y 1 *\ninit s 7 1 1099511627776\nnode Tile x,s y", RUNS,
     ZC_ERR_NOMEM, "memory"},
    {"S27 a range of 2^40",
     "out y 7 *\ninit a 7 - 0\ninit b 7 - 1099511627776\ninit c 7 - 1\nnode Range a,b,c y", RUNS,
     ZC_ERR_NOMEM, "memory"},
    {"S27 dims that overflow",
     "in x 1 1\nout y 1 *\ninit s 7 2 4611686018427387904,4\nnode Expand x,s y", RUNS, ZC_ERR_INPUT,
     "y: these input shapes make a tensor negative or too large"},
};

static int run_meaning(const meaning *m, zc_diag *diag)
{
    zc_buf text = {0};
    loaded l;
    zc_buf_printf(&text, "opset 21\n%s\n", m->text);
    zc_status status = load(text.data, NULL, &l, diag);
    enum stage stage = COMPILES;
    if (status == ZC_OK) {
        stage = RUNS;
        status = plan_inputs(l.plan, l.session, 2, 1, diag);
        if (status == ZC_OK) status = zc_session_run(l.session, diag);
        unload(&l);
    }
    const char *said = zc_diag_text(diag, 0);
    int wrong = status != m->status || stage != m->fails_in || !strstr(said, m->says) ||
                zc_diag_count(diag) != (status != ZC_OK);
    if (wrong)
        print_error("%s: in %s: %s, %s\n", m->name, stage == RUNS ? "running" : "compiling",
                    zc_status_name(status), said);
    zc_diag_clear(diag);
    zc_buf_fini(&text);
    return wrong;
}

static void test_meanings(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    int wrong = 0;
    for (size_t i = 0; i < ZC_COUNTOF(meanings); i++) wrong += run_meaning(&meanings[i], diag);
    assert_int_equal(wrong, 0);
    zc_diag_destroy(&diag);
}

/* ---- S26: one symbol, two values ---- */

static void test_symbol_with_two_values(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    loaded l;
    float x[3] = {0};
    expect_ok(diag,
              load("opset 21\nin a 1 N\nin b 1 N\nout y 1 N\nnode Add a,b y\n", NULL, &l, diag));
    zc_view v = {.elem = 1, .rank = 1, .dims = {3}, .data = x, .bytes = 12};
    expect_ok(diag, zc_session_set_input(l.session, 0, &v, false, diag));
    v.dims[0] = 2;
    v.bytes = 8;
    expect_ok(diag, zc_session_set_input(l.session, 1, &v, false, diag));
    expect_fail(diag, zc_session_run(l.session, diag), ZC_ERR_INPUT,
                "b: dimension 0 (N) differs from another input's (got 2, need 3)");
    unload(&l);
    zc_diag_destroy(&diag);
}

/* ---- S28, S29: models that grow ---- */

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Sixty doublings of a constant: folding stops in time, and a run asks for too much. */
static void test_folding_bomb(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    loaded l;
    const double start = seconds();
    zc_buf_puts(&text, "opset 21\nout v40 1 *\ninit v0 1 2 1,2\n");
    for (int i = 0; i < 40; i++)
        zc_buf_printf(&text, "node Concat v%d,v%d v%d axis:i=0\n", i, i, i + 1);
    expect_ok(diag, load(text.data, NULL, &l, diag));
    expect_fail(diag, zc_session_run(l.session, diag), ZC_ERR_NOMEM, "memory");
    unload(&l);
    zc_buf_fini(&text);
    assert_true(seconds() - start < 20);
    zc_diag_destroy(&diag);
}

static void test_overflowing_doublings(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    void *plan;
    size_t len;
    zc_buf_puts(&text, "opset 21\nout v64 1 *\ninit v0 1 2 1,2\n");
    for (int i = 0; i < 64; i++)
        zc_buf_printf(&text, "node Concat v%d,v%d v%d axis:i=0\n", i, i, i + 1);
    expect_fail(diag, compile(text.data, NULL, &plan, &len, diag), ZC_ERR_MODEL, "Concat_");
    zc_buf_fini(&text);
    zc_diag_destroy(&diag);
}

/* A node with very many inputs, and one with very many outputs. */
static void test_wide_nodes(void **state)
{
    (void)state;
    enum { MANY = 20000 };
    zc_diag *diag = zc_diag_create();
    zc_buf text = {0};
    void *plan;
    size_t len;
    const double start = seconds();
    zc_buf_puts(&text, "opset 13\nin x 1 2\nout y 1 *\nnode Concat x");
    for (int i = 1; i < MANY; i++) zc_buf_puts(&text, ",x");
    zc_buf_puts(&text, " y axis:i=0\n");
    expect_ok(diag, compile(text.data, NULL, &plan, &len, diag));
    zc_free(plan);
    zc_buf_fini(&text);
    zc_buf_printf(&text, "opset 13\nin x 1 %d\nout y%d 1 *\nnode Split x y0", MANY, MANY - 1);
    for (int i = 1; i < MANY; i++) zc_buf_printf(&text, ",y%d", i);
    zc_buf_puts(&text, "\n");
    expect_ok(diag, compile(text.data, NULL, &plan, &len, diag));
    zc_free(plan);
    zc_buf_fini(&text);
    assert_true(seconds() - start < 30);
    zc_diag_destroy(&diag);
}

/* ---- S31: numbers beyond the type ---- */

static void test_beyond_f16(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    loaded l;
    zc_view y;
    expect_ok(diag, load("opset 21\nout y 10 *\ninit b 1 4 -999999995904,65504,65519,inf\n"
                         "node Cast b y to:i=10\n",
                         NULL, &l, diag));
    expect_ok(diag, zc_session_run(l.session, diag));
    expect_ok(diag, zc_session_output(l.session, 0, &y, diag));
    assert_true(zc_load_f64(ZC_F16, y.data, 0) == -INFINITY);
    assert_true(zc_load_f64(ZC_F16, y.data, 1) == 65504);
    assert_true(zc_load_f64(ZC_F16, y.data, 2) == 65504);
    assert_true(zc_load_f64(ZC_F16, y.data, 3) == INFINITY);
    unload(&l);
    zc_diag_destroy(&diag);
}

/* ---- a loop's values of any rank ---- */

/* Steps inside the body rely on its values' ranks: where a rank changes, the body is imported once
 * more without it, its constants too. */
static void test_carried_ranks(void **state)
{
    static const char text[] =
        "opset 13\nin x 1 2,3\nout y 1 *\nout z 1 *\ninit n 7 1 3\ngraph B\nin i 7 -\nin k 9 -\n"
        "in v 1 *\nout k 9 -\nout t 1 *\ninit ax 7 1 0\ninit two 1 1 2\nnode Unsqueeze v,ax u\n"
        "node Mul u,two t\nend\nnode Loop n,_,x y body:g=B\nnode Neg y z\n";
    (void)state;
    zc_diag *diag = zc_diag_create();
    loaded l;
    zc_view y;
    float x[6] = {1, 2, 3, 4, 5, 6};
    zc_view v = {.elem = 1, .rank = 2, .dims = {2, 3}, .data = x, .bytes = sizeof x};
    expect_ok(diag, load(text, NULL, &l, diag));
    expect_ok(diag, zc_session_set_input(l.session, 0, &v, false, diag));
    expect_ok(diag, zc_session_run(l.session, diag));
    expect_ok(diag, zc_session_output(l.session, 1, &y, diag));
    static const int64_t dims[] = {1, 1, 1, 2, 3};
    assert_int_equal(y.rank, 5);
    assert_memory_equal(y.dims, dims, sizeof dims);
    for (int i = 0; i < 6; i++) assert_true(((const float *)y.data)[i] == -8 * x[i]);
    unload(&l);
    zc_diag_destroy(&diag);
}

/* ---- S33: patterns that passes may not take for another ---- */

static const char *const patterns[] = {
    "in x 1 2,4\nout y 1 *\ninit w 1 4,3 1,2,3,4,5,6,7,8,9,1,2,3\ninit b 1 1,1,3 1,2,3\n"
    "node MatMul x,w p\nnode Add p,b y",
    "in x 1 2,4\nout y 1 *\ninit w 1 4,3 1,2,3,4,5,6,7,8,9,1,2,3\ninit b 1 2,1 1,2\n"
    "node MatMul x,w p\nnode Add b,p y",
    "in x 1 2,2,8\nout y 1 *\ninit g 1 1,1,8 1,2,3,4,5,6,7,8\nnode LayerNormalization x,s n\n"
    "init s 1 8 1,1,1,1,1,1,1,1\nnode Mul n,g y",
    "in x 1 1,2,2,2\nout y 1 *\ninit w 1 2,2,1,1 1,2,3,4\ninit s 1 2 1,2\ninit v 1 2 0,1\n"
    "node Conv x,w c\nnode BatchNormalization c,s,s,s,v y",
    "in x 1 1,2,2,2\nout y 1 *\nout c 1 *\ninit w 1 2,2,1,1 1,2,3,4\ninit r 1 2,1,1,1,1 1,2\n"
    "node Conv x,w c\nnode Add c,r d\nnode Relu d y",
};

static void outputs_of(const char *text, const zc_compile_params *params, float *out, size_t n,
                       zc_diag *diag)
{
    loaded l;
    zc_view y;
    expect_ok(diag, load(text, params, &l, diag));
    expect_ok(diag, plan_inputs(l.plan, l.session, 2, 1, diag));
    expect_ok(diag, zc_session_run(l.session, diag));
    expect_ok(diag, zc_session_output(l.session, 0, &y, diag));
    memset(out, 0, n * sizeof *out);
    assert_true(y.bytes > 0 && y.bytes <= n * sizeof *out);
    memcpy(out, y.data, y.bytes);
    unload(&l);
}

static void test_fusion_keeps_results(void **state)
{
    (void)state;
    static const char *const all[] = {"all"};
    zc_diag *diag = zc_diag_create();
    for (size_t i = 0; i < ZC_COUNTOF(patterns); i++) {
        zc_buf text = {0};
        float fused[64], plain[64];
        zc_buf_printf(&text, "opset 17\n%s\n", patterns[i]);
        outputs_of(text.data, NULL, fused, 64, diag);
        outputs_of(text.data, ZC_COMPILE_PARAMS(.skip_passes = all, .skip_pass_count = 1), plain,
                   64, diag);
        for (int j = 0; j < 64; j++)
            assert_float_equal(fused[j], plain[j], 1e-5f + 1e-5f * fabsf(plain[j]));
        zc_buf_fini(&text);
    }
    zc_diag_destroy(&diag);
}

/* ---- E7: escapes by every place that holds a tensor ---- */

static void put_escape(zc_buf *b, uint32_t field, const char *name)
{
    zc_buf t = {0}, entry = {0};
    const int64_t n = 1;
    pb_packed(&t, TENSOR_DIMS, &n, 1);
    pb_int(&t, TENSOR_DATA_TYPE, 1);
    if (name) pb_str(&t, TENSOR_NAME, name);
    pb_int(&t, TENSOR_DATA_LOCATION, 1);
    pb_str(&entry, ENTRY_KEY, "location");
    pb_str(&entry, ENTRY_VALUE, "../secret");
    pb_msg(&t, TENSOR_EXTERNAL_DATA, &entry);
    pb_msg(b, field, &t);
}

static void put_constant(zc_buf *nodes, uint32_t field, const char *out)
{
    zc_buf node = {0}, attr = {0};
    pb_str(&node, NODE_OUTPUT, out);
    pb_str(&node, NODE_OP_TYPE, "Constant");
    pb_str(&attr, ATTR_NAME, "value");
    pb_int(&attr, ATTR_TYPE, 4);
    put_escape(&attr, ATTR_T, NULL);
    pb_msg(&node, NODE_ATTRIBUTE, &attr);
    pb_msg(nodes, field, &node);
}

static void put_if(zc_buf *graph)
{
    zc_buf node = {0};
    pb_str(&node, NODE_INPUT, "c");
    pb_str(&node, NODE_OUTPUT, "y");
    pb_str(&node, NODE_OP_TYPE, "If");
    for (int i = 0; i < 2; i++) {
        zc_buf attr = {0}, branch = {0};
        pb_str(&branch, GRAPH_NAME, "branch");
        put_escape(&branch, GRAPH_INITIALIZER, "t");
        pb_node(&branch, "Relu", "t", NULL, "u");
        pb_value(&branch, GRAPH_OUTPUT, "u", 1, 1, (int64_t[]){1});
        pb_str(&attr, ATTR_NAME, i ? "else_branch" : "then_branch");
        pb_int(&attr, ATTR_TYPE, 5);
        pb_msg(&attr, ATTR_G, &branch);
        pb_msg(&node, NODE_ATTRIBUTE, &attr);
    }
    pb_value(graph, GRAPH_INPUT, "c", 9, 0, NULL);
    pb_msg(graph, GRAPH_NODE, &node);
}

static void put_function(zc_buf *model)
{
    zc_buf f = {0}, import = {0};
    pb_str(&f, 1, "F");
    pb_str(&f, 5, "o");
    put_constant(&f, 7, "o");
    pb_int(&import, OPSET_VERSION, 13);
    pb_msg(&f, 9, &import);
    pb_str(&f, 10, "d");
    pb_msg(model, MODEL_FUNCTIONS, &f);
    pb_str(&import, OPSET_DOMAIN, "d");
    pb_int(&import, OPSET_VERSION, 1);
    pb_msg(model, MODEL_OPSET_IMPORT, &import);
}

static void put_call(zc_buf *graph)
{
    zc_buf node = {0};
    pb_str(&node, NODE_OUTPUT, "y");
    pb_str(&node, NODE_OP_TYPE, "F");
    pb_str(&node, NODE_DOMAIN, "d");
    pb_msg(graph, GRAPH_NODE, &node);
}

static void put_sparse(zc_buf *graph, bool in_values)
{
    zc_buf sparse = {0}, t = {0};
    const int64_t one = 1;
    pb_packed(&t, TENSOR_DIMS, &one, 1);
    pb_int(&t, TENSOR_DATA_TYPE, in_values ? 7 : 1);
    if (in_values)
        pb_int(&t, TENSOR_INT64_DATA, 0);
    else
        pb_f32(&t, TENSOR_FLOAT_DATA, 1);
    if (!in_values) pb_str(&t, TENSOR_NAME, "w");
    if (in_values) {
        put_escape(&sparse, SPARSE_VALUES, "w");
        pb_msg(&sparse, SPARSE_INDICES, &t);
    } else {
        zc_buf indices = {0}, entry = {0};
        pb_msg(&sparse, SPARSE_VALUES, &t);
        pb_packed(&indices, TENSOR_DIMS, &one, 1);
        pb_int(&indices, TENSOR_DATA_TYPE, 7);
        pb_int(&indices, TENSOR_DATA_LOCATION, 1);
        pb_str(&entry, ENTRY_KEY, "location");
        pb_str(&entry, ENTRY_VALUE, "../secret");
        pb_msg(&indices, TENSOR_EXTERNAL_DATA, &entry);
        pb_msg(&sparse, SPARSE_INDICES, &indices);
    }
    pb_int(&sparse, SPARSE_DIMS, 4);
    pb_msg(graph, GRAPH_SPARSE_INITIALIZER, &sparse);
    pb_node(graph, "Relu", "w", NULL, "y");
}

static void test_escapes_everywhere(void **state)
{
    (void)state;
    zc_diag *diag = zc_diag_create();
    for (int way = 0; way < 6; way++) {
        zc_buf graph = {0}, model = {0};
        void *plan = NULL;
        size_t len;
        pb_str(&graph, GRAPH_NAME, "g");
        if (way == 0) {
            put_escape(&graph, GRAPH_INITIALIZER, "w");
            pb_node(&graph, "Relu", "w", NULL, "y");
        } else if (way == 1) {
            put_constant(&graph, GRAPH_NODE, "y");
        } else if (way == 2) {
            put_if(&graph);
        } else if (way == 3) {
            put_function(&model);
            put_call(&graph);
        } else {
            put_sparse(&graph, way == 4);
        }
        pb_value(&graph, GRAPH_OUTPUT, "y", 1, 1, (int64_t[]){way < 4 ? 1 : 4});
        pb_model(&model, 10, 13, &graph);
        expect_fail(diag,
                    zc_compile_bytes(model.data, model.len, ZC_COMPILE_PARAMS(.data_root = "."),
                                     &plan, &len, diag),
                    ZC_ERR_MODEL, "contains '..'");
        zc_buf_fini(&model);
    }
    zc_diag_destroy(&diag);
}

/* ---- E6: hard links are files ---- */

static void test_hard_link(void **state)
{
    (void)state;
    char dir[] = "/tmp/zc-test-XXXXXX", from[64], to[64];
    zc_diag *diag = zc_diag_create();
    zc_external *ext = NULL;
    void *bytes = NULL;
    assert_non_null(mkdtemp(dir));
    snprintf(from, sizeof from, "%s/a", dir);
    snprintf(to, sizeof to, "%s/b", dir);
    FILE *f = fopen(from, "wb");
    assert_non_null(f);
    fputs("linked", f);
    fclose(f);
    assert_int_equal(link(from, to), 0);
    expect_ok(diag, zc_external_create(NULL, dir, 0, &ext, diag));
    const zc_external_ref ref = {.tensor = "w", .location = "b", .length = 6};
    expect_ok(diag, zc_external_read(ext, &ref, &bytes, diag));
    assert_memory_equal(bytes, "linked", 6);
    free(bytes);
    zc_external_destroy(&ext);
    unlink(from);
    unlink(to);
    rmdir(dir);
    zc_diag_destroy(&diag);
}

/* ---- P14: the plan's file changes while the plan is in use ---- */

static void test_plan_file_changes(void **state)
{
    (void)state;
    char path[] = "/tmp/zc-test-XXXXXX";
    zc_diag *diag = zc_diag_create();
    void *bytes;
    size_t len;
    zc_plan *plan;
    zc_session *s;
    zc_view y;
    expect_ok(diag, compile("opset 21\nin x 1 2\nout y 1 *\ninit w 1 2 5,7\nnode Add x,w y\n", NULL,
                            &bytes, &len, diag));
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, len), (ssize_t)len);
    expect_ok(diag, zc_plan_load_file(path, &plan, diag));
    assert_int_equal(ftruncate(fd, 0), 0);
    expect_ok(diag, zc_session_create(plan, NULL, &s, diag));
    float x[2] = {1, 2};
    zc_view v = {.elem = 1, .rank = 1, .dims = {2}, .data = x, .bytes = sizeof x};
    expect_ok(diag, zc_session_set_input(s, 0, &v, false, diag));
    expect_ok(diag, zc_session_run(s, diag));
    expect_ok(diag, zc_session_output(s, 0, &y, diag));
    assert_float_equal(((float *)y.data)[0], 6, 0);
    assert_float_equal(((float *)y.data)[1], 9, 0);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
    expect_fail(diag, zc_plan_load_file(path, &plan, diag), ZC_ERR_FORMAT, "the file is empty");
    close(fd);
    unlink(path);
    zc_free(bytes);
    zc_diag_destroy(&diag);
}

int main(void)
{
#ifndef UNDER_ASAN
    const struct rlimit memory = {UINT64_C(4) << 30, UINT64_C(4) << 30};
    setrlimit(RLIMIT_AS, &memory);
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meanings),           cmocka_unit_test(test_symbol_with_two_values),
        cmocka_unit_test(test_folding_bomb),       cmocka_unit_test(test_overflowing_doublings),
        cmocka_unit_test(test_wide_nodes),         cmocka_unit_test(test_beyond_f16),
        cmocka_unit_test(test_carried_ranks),      cmocka_unit_test(test_fusion_keeps_results),
        cmocka_unit_test(test_escapes_everywhere), cmocka_unit_test(test_hard_link),
        cmocka_unit_test(test_plan_file_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
