/* Which tensors lie within others on a GPU, and for how long their memory is held. Plans are made
 * without machine code, as nothing runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/graph.h"
#include "kernels/choose.h"
#include "program/build.h"
#include "runtime/memory_map.h"
#include "support/expect.h"
#include "zc/version.h"
#include "zc/zc.h"

enum { ARCH = 90 };

typedef struct fixture {
    zc_diag *diag;
    zc_arena arena;
    zc_graph *graph;
    zc_program program;
    zc_plan *plan;
    zc_memory_map map;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    f->diag = zc_diag_create();
    zc_arena_init(&f->arena, 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    zc_memory_map_free(&f->map);
    zc_plan_destroy(&f->plan);
    zc_graph_destroy(&f->graph);
    zc_arena_fini(&f->arena);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

/* The lines of a graph that begin so; nodes have no names. */
static void put_lines(const char *lines, const char *begin, zc_buf *out)
{
    for (size_t len; *lines; lines += len + 1) {
        len = strcspn(lines, "\n");
        if (strncmp(lines, begin, strlen(begin)) == 0)
            zc_buf_printf(out, "%.*s%s\n", (int)len, lines, *begin == '%' ? " @ \"\"" : "");
    }
}

/* The program of a graph with these inputs, constants, nodes and outputs, and its kernels. */
static void lower(fixture *f, const char *lines)
{
    static const int archs[] = {ARCH};
    const zc_choose_params choose = {.archs = archs, .narchs = 1};
    zc_buf text = {0};
    zc_buf_puts(&text, "graph \"parts\" {\n");
    put_lines(lines, "input", &text);
    put_lines(lines, "const", &text);
    put_lines(lines, "%", &text);
    put_lines(lines, "output", &text);
    zc_buf_puts(&text, "}\n");
    expect_ok(f->diag, zc_graph_parse(text.data, text.len, &f->graph, f->diag));
    expect_ok(f->diag, zc_program_build(f->graph, &f->arena, &f->program, f->diag));
    f->program.version = ZC_VERSION;
    expect_ok(f->diag, zc_choose(&f->program, &choose, &f->arena, f->diag));
    zc_buf_fini(&text);
}

/* What a run holds for these graphs, whose symbol n is 3. */
static void map_program(fixture *f)
{
    zc_buf bytes = {0};
    const zc_sink sink = zc_sink_to_buffer(&bytes);
    zc_io_info inputs[4];
    expect_ok(f->diag, zc_program_write(&f->program, &sink, f->diag));
    expect_ok(f->diag, zc_plan_load_bytes(bytes.data, bytes.len, &f->plan, f->diag));
    zc_buf_fini(&bytes);
    const uint32_t n = f->program.blocks[0].nparams;
    assert_true(n <= sizeof inputs / sizeof *inputs);
    for (uint32_t i = 0; i < n; i++) {
        expect_ok(f->diag, zc_plan_input(f->plan, i, &inputs[i], f->diag));
        for (int d = 0; d < inputs[i].rank; d++)
            if (inputs[i].dims[d] < 0) inputs[i].dims[d] = 3;
    }
    expect_ok(f->diag, zc_memory_map_make(f->plan, ARCH, inputs, n, &f->map, f->diag));
}

static void map(fixture *f, const char *lines)
{
    lower(f, lines);
    map_program(f);
}

static const zc_memory_value *value(const fixture *f, const char *name)
{
    for (size_t i = 0; i < f->map.nvalues; i++)
        if (strcmp(f->map.values[i].name, name) == 0) return &f->map.values[i];
    return NULL;
}

static const zc_memory_subview *subview(const fixture *f, const char *name)
{
    for (size_t i = 0; i < f->map.nsubviews; i++)
        if (strcmp(f->map.subviews[i].name, name) == 0) return &f->map.subviews[i];
    return NULL;
}

static void lies_within(const fixture *f, const char *name, const char *root, uint64_t offset,
                        int64_t pitch)
{
    const zc_memory_subview *v = subview(f, name);
    if (!v) fail_msg("%s lies by itself", name);
    assert_string_equal(v->root, root);
    assert_int_equal(v->offset, offset);
    assert_int_equal(v->pitch, pitch);
}

static void lies_alone(const fixture *f, const char *name)
{
    if (subview(f, name)) fail_msg("%s lies within %s", name, subview(f, name)->root);
}

static void lives(const fixture *f, const char *name, size_t first, size_t last)
{
    assert_non_null(value(f, name));
    assert_int_equal(value(f, name)->first, first);
    assert_int_equal(value(f, name)->last, last);
}

/* Whatever the plan says: lines of parts lie within those of their roots, and what is held at once
 * does not meet. */
static void is_sound(const fixture *f)
{
    for (size_t i = 0; i < f->map.nsubviews; i++) {
        const zc_memory_subview *v = &f->map.subviews[i];
        const int64_t bytes = (int64_t)zc_dtype_bits(v->type.dtype) / 8;
        const int64_t line = v->type.dims[v->type.rank - 1] * bytes;
        const zc_memory_value *root = value(f, v->root);
        assert_true((int64_t)v->offset + line <= v->pitch * bytes);
        assert_true(v->offset % 16 == 0 && v->pitch * bytes % 16 == 0);
        const int64_t lines = zc_tensor_numel(&v->type) * bytes / line;
        if (root) assert_true((uint64_t)(v->pitch * bytes * lines) <= root->bytes);
    }
    for (size_t i = 0; i < f->map.nvalues; i++)
        for (size_t j = 0; j < i; j++) {
            const zc_memory_value *a = &f->map.values[i], *b = &f->map.values[j];
            const bool at_once = a->first <= b->last && b->first <= a->last;
            assert_false(at_once && a->offset < b->offset + b->bytes &&
                         b->offset < a->offset + a->bytes);
        }
}

#define POOL "{kernel_shape = [3,3], pads = [1,1,1,1]}"
#define X16  "input %x: f16[n,6,6,16] as \"x\"\n"

/* Two parts, one of which is also read before. */
static void test_concatenation(void **state)
{
    fixture *f = *state;
    map(f, X16 "%a: f32[*] = MaxPoolNhwc(%x) " POOL "\n"
               "%t: f32[*] = MaxPoolNhwc(%a) " POOL "\n"
               "%b: f32[*] = AveragePoolNhwc(%t) " POOL "\n"
               "%c: f32[*] = Concat(%a, %b) {axis = -1}\n"
               "%y: f32[*] = Transpose(%c) {perm = [3,2,1,0]}\noutput %y as \"y\"\n");
    lies_within(f, "a", "c", 0, 32);
    lies_within(f, "b", "c", 32, 32);
    lies_alone(f, "t");
    assert_int_equal(f->map.nsubviews, 2);
    lives(f, "c", 0, 4); /* from the first part's step to its last reader */
    lives(f, "t", 1, 2);
    assert_true(f->map.steps[3].in_place);
    is_sound(f);
}

/* Each list of parts begins the next one, as in DenseNet; what reads them takes a pitch. */
static void test_growing(void **state)
{
    fixture *f = *state;
    map(f, X16 "input %s: f16[32] as \"s\"\ninput %u: f16[48] as \"u\"\n"
               "%a: f32[*] = MaxPoolNhwc(%x) " POOL "\n"
               "%b: f32[*] = MaxPoolNhwc(%a) " POOL "\n"
               "%p: f32[*] = Concat(%a, %b) {axis = 3}\n"
               "%q: f32[*] = Mul(%p, %s)\n"
               "%r: f32[*] = Slice(%q, %i0, %i16, %last)\n"
               "%c: f32[*] = MaxPoolNhwc(%r) " POOL "\n"
               "%w: f32[*] = Concat(%a, %b, %c) {axis = 3}\n"
               "%z: f32[*] = Mul(%w, %u)\n"
               "%y: f32[*] = Transpose(%z) {perm = [3,2,1,0]}\noutput %y as \"y\"\n"
               "const %i0: i64[1] = [0]\nconst %i16: i64[1] = [16]\n"
               "const %last: i64[1] = [-1]\n");
    lies_within(f, "a", "w", 0, 48);
    lies_within(f, "b", "w", 32, 48);
    lies_within(f, "p", "w", 0, 48);
    lies_within(f, "c", "w", 64, 48);
    lies_within(f, "r", "q", 0, 32);
    for (size_t i = 0; i < f->map.nsteps; i++) {
        const char *op = f->map.steps[i].op;
        assert_int_equal(f->map.steps[i].in_place,
                         strcmp(op, "Concat") == 0 || strcmp(op, "Slice") == 0);
    }
    lives(f, "w", 0, 8); /* the product takes its memory over */
    is_sound(f);
}

/* The parts of a tensor go on into another one: it lies there as a whole. */
static void test_apart_and_joined(void **state)
{
    fixture *f = *state;
    map(f, "input %x: f16[n,6,6,48] as \"x\"\n"
           "%a: f32[*] = MaxPoolNhwc(%x) " POOL "\n"
           "%b: f32[*], %c: f32[*] = Split(%a, %lengths) {axis = 3}\n"
           "%d: f32[*] = MaxPoolNhwc(%c) " POOL "\n"
           "%w: f32[*] = Concat(%d, %b, %c) {axis = 3}\n"
           "%y: f32[*] = Transpose(%w) {perm = [3,2,1,0]}\noutput %y as \"y\"\n"
           "const %lengths: i64[2] = [16, 32]\n");
    lies_within(f, "a", "w", 64, 80);
    lies_within(f, "b", "w", 64, 80);
    lies_within(f, "c", "w", 96, 80);
    lies_within(f, "d", "w", 0, 80);
    assert_true(f->map.steps[1].in_place && f->map.steps[3].in_place);
    lives(f, "w", 0, 4);
    is_sound(f);
}

/* The same by slices, whatever their order; one more reads a part that lies across. */
static void test_sliced(void **state)
{
    fixture *f = *state;
    map(f, "input %x: f16[n,6,6,48] as \"x\"\n"
           "%a: f32[*] = MaxPoolNhwc(%x) " POOL "\n"
           "%c: f32[*] = Slice(%a, %i16, %i48, %last)\n"
           "%m: f32[*] = Slice(%a, %i8, %i24, %last)\n"
           "%b: f32[*] = Slice(%a, %i0, %i16, %last)\n"
           "%d: f32[*] = MaxPoolNhwc(%c) " POOL "\n"
           "%e: f32[*] = MaxPoolNhwc(%m) " POOL "\n"
           "%w: f32[*] = Concat(%b, %c, %d) {axis = 3}\n"
           "%y: f32[*] = Transpose(%w) {perm = [3,2,1,0]}\n"
           "output %y as \"y\"\noutput %e as \"e\"\n"
           "const %i0: i64[1] = [0]\nconst %i8: i64[1] = [8]\nconst %i16: i64[1] = [16]\n"
           "const %i24: i64[1] = [24]\nconst %i48: i64[1] = [48]\nconst %last: i64[1] = [-1]\n");
    lies_within(f, "a", "w", 0, 80);
    lies_within(f, "b", "w", 0, 80);
    lies_within(f, "c", "w", 32, 80);
    lies_within(f, "m", "w", 16, 80);
    for (size_t i = 1; i < 4; i++) assert_true(f->map.steps[i].in_place);
    assert_true(f->map.steps[6].in_place);
    is_sound(f);
}

/* The whole is a result: its memory is the output's. */
static void test_result(void **state)
{
    fixture *f = *state;
    map(f, X16 "%a: f32[*] = MaxPoolNhwc(%x) " POOL "\n"
               "%b: f32[*] = MaxPoolNhwc(%a) " POOL "\n"
               "%y: f32[*] = Concat(%a, %b) {axis = 3}\noutput %y as \"y\"\n");
    lies_within(f, "a", "y", 0, 32);
    lies_within(f, "b", "y", 32, 32);
    assert_int_equal(f->map.nvalues, 0);
    is_sound(f);
}

/* Another axis, lines that are no multiples of 16 bytes, kernels that take no pitch, results, model
 * inputs, and one value twice. */
static void test_what_stays(void **state)
{
    fixture *f = *state;
    map(f, X16 "%a: f32[*] = MaxPoolNhwc(%x) " POOL "\n"
               "%b: f32[*] = MaxPoolNhwc(%a) " POOL "\n"
               "%c: f32[*] = Softmax(%b)\n"
               "%d: f32[*] = MaxPoolNhwc(%b) " POOL "\n"
               "%e: f32[*] = Transpose(%b) {perm = [3,2,1,0]}\n"
               "%w: f32[*] = Concat(%b, %c, %d, %d, %x, %a) {axis = 3}\n"
               "%v: f32[*] = Concat(%w, %w) {axis = 0}\n"
               "%y: f32[*] = Softmax(%v)\n"
               "output %y as \"y\"\noutput %a as \"a\"\noutput %e as \"e\"\n");
    lies_within(f, "d", "w", 64, 96);
    assert_int_equal(f->map.nsubviews, 1);
    for (size_t i = 0; i < f->map.nsteps; i++) assert_false(f->map.steps[i].in_place);
    is_sound(f);
}

static void test_odd_lines(void **state)
{
    fixture *f = *state;
    map(f, "input %x: f16[n,6,6,24] as \"x\"\n"
           "%a: f32[*] = MaxPoolNhwc(%x) " POOL "\n"
           "%l: f32[*], %r: f32[*] = Split(%a, %lengths) {axis = 3}\n"
           "%b: f32[*] = MaxPoolNhwc(%r) " POOL "\n"
           "%c: f32[*] = MaxPoolNhwc(%l) " POOL "\n"
           "%w: f32[*] = Concat(%b, %c) {axis = 3}\n"
           "%y: f32[*] = Softmax(%w)\noutput %y as \"y\"\n"
           "const %lengths: i64[2] = [12, 12]\n");
    lies_within(f, "l", "a", 0, 24); /* the first of both begins with its whole */
    lies_within(f, "b", "w", 0, 24);
    assert_int_equal(f->map.nsubviews, 2);
    is_sound(f);
}

/* Steps of other orders and lengths than their shapes say. */
static void test_slices(void **state)
{
    fixture *f = *state;
    map(f, "input %x: f16[n,6,6,48] as \"x\"\n"
           "%a: f32[*] = MaxPoolNhwc(%x) " POOL "\n"
           "%b: f32[*] = Slice(%a, %from, %to, %axes, %steps)\n"
           "%c: f32[*] = Slice(%a, %i16, %far, %last)\n"
           "%d: f32[*] = MaxPoolNhwc(%b) " POOL "\n"
           "%e: f32[*] = MaxPoolNhwc(%c) " POOL "\n"
           "output %d as \"d\"\noutput %e as \"e\"\n"
           "const %from: i64[2] = [-1, -16]\nconst %to: i64[2] = [-9999, 48]\n"
           "const %axes: i64[2] = [1, 3]\nconst %steps: i64[2] = [-1, 1]\n"
           "const %i16: i64[1] = [16]\nconst %far: i64[1] = [9223372036854775807]\n"
           "const %last: i64[1] = [3]\n");
    lies_alone(f, "b"); /* lines in reverse order */
    lies_within(f, "c", "a", 32, 48);
    lives(f, "a", 0, 4);
    is_sound(f);
}

/* The convolutions of a graph. */
static void are_one_kernel(fixture *f, const char *lines, const char *family)
{
    uint32_t kernel = 0, convolutions = 0;
    lower(f, lines);
    for (uint32_t i = 0; i < f->program.nsteps; i++) {
        const zc_pstep *s = &f->program.steps[i];
        if (s->op != ZC_OP_ConvNhwc) continue;
        assert_int_equal(s->nchoices, 1);
        if (convolutions++ == 0) kernel = s->choices[0].kernel;
        assert_int_equal(s->choices[0].kernel, kernel);
    }
    assert_int_equal(convolutions, 3);
    assert_string_equal(f->program.kernels[kernel].family, family);
}

/* Convolutions whose pitches and patches only tensor maps know are one kernel: with a pitch, with
 * other channels, and with neither. */
static void test_one_kernel(void **state)
{
    are_one_kernel(*state,
                   "input %x: f16[1,128,128,64] as \"x\"\ninput %v: f16[64,5,5,64] as \"v\"\n"
                   "input %w: f16[64,5,5,128] as \"w\"\n"
                   "%a: f16[*] = ConvNhwc(%x, %v) {taps_first = 1, pads = [2,2,2,2]}\n"
                   "%c: f16[*] = Concat(%x, %a) {axis = 3}\n"
                   "%d: f16[*] = ConvNhwc(%c, %w) {taps_first = 1, pads = [2,2,2,2]}\n"
                   "%y: f16[*] = ConvNhwc(%d, %v) {taps_first = 1, pads = [2,2,2,2]}\n"
                   "output %y as \"y\"\n",
                   "conv_sm90");
}

/* The same of pixels that come once, with a rim. */
static void test_one_kernel_of_boxes(void **state)
{
    are_one_kernel(*state,
                   "input %x: f16[1,128,128,128] as \"x\"\ninput %v: f16[128,3,3,128] as \"v\"\n"
                   "input %w: f16[128,3,3,256] as \"w\"\n"
                   "%a: f16[*] = ConvNhwc(%x, %v) {taps_first = 1, pads = [1,1,1,1]}\n"
                   "%c: f16[*] = Concat(%x, %a) {axis = 3}\n"
                   "%d: f16[*] = ConvNhwc(%c, %w) {taps_first = 1, pads = [1,1,1,1]}\n"
                   "%y: f16[*] = ConvNhwc(%d, %v) {taps_first = 1, pads = [1,1,1,1]}\n"
                   "output %y as \"y\"\n",
                   "conv_rim_sm90");
}

/* Who writes a plan decides what its kernels compute, but not where tensors lie. */
static void test_forged(void **state)
{
    fixture *f = *state;
    lower(f, X16 "%a: f32[*] = Softmax(%x)\n%b: f32[*] = LogSoftmax(%a)\n"
                 "%c: f32[*] = Concat(%a, %b) {axis = 3}\n"
                 "%y: f32[*] = Softmax(%c)\noutput %y as \"y\"\n");
    zc_pkernel *kernels = zc_arena_dup(&f->arena, f->program.kernels, f->program.nkernels,
                                       sizeof *f->program.kernels);
    f->program.kernels = kernels;
    for (uint32_t i = 0; i < f->program.nkernels; i++)
        if (kernels[i].pitched != ZC_PITCHED_ALL)
            kernels[i].pitched = ZC_PITCHED_RESULTS | ZC_PITCHED_INPUT;
    map_program(f);
    lies_within(f, "a", "c", 0, 32);
    is_sound(f);
    zc_plan_destroy(&f->plan);
    zc_memory_map_free(&f->map);
    zc_buf bytes = {0};
    const zc_sink sink = zc_sink_to_buffer(&bytes);
    kernels[0].pitched = ZC_PITCHED_ALL + 1;
    expect_ok(f->diag, zc_program_write(&f->program, &sink, f->diag));
    zc_status status = zc_plan_load_bytes(bytes.data, bytes.len, &f->plan, f->diag);
    expect_fail(f->diag, status, ZC_ERR_FORMAT, "a kernel's flags are unknown");
    zc_buf_fini(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_concatenation, setup, teardown),
        cmocka_unit_test_setup_teardown(test_growing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_apart_and_joined, setup, teardown),
        cmocka_unit_test_setup_teardown(test_sliced, setup, teardown),
        cmocka_unit_test_setup_teardown(test_result, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(test_odd_lines, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slices, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_kernel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_one_kernel_of_boxes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_forged, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
