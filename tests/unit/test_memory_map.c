/* What runs hold step by step, against sums by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/memory_map.h"
#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

/* a and d are 64 wide, c is 16 wide; a is needed by steps 1 and 3. */
static const char text[] = "opset 17\nin x 1 n,16\nin w 1 16,64\nin v 1 64,16\nout y 1 *\n"
                           "node MatMul x,w a name=first\nnode MatMul a,v c name=second\n"
                           "node MatMul c,w d name=third\nnode Concat a,d y name=join axis:i=1\n";

enum { INPUTS = 3, STEPS = 4, ALIGN = 64 };

typedef struct fixture {
    zc_plan *plan;
    zc_diag *diag;
    zc_io_info inputs[INPUTS];
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    zc_buf model = {0};
    void *bytes;
    size_t len;
    f->diag = zc_diag_create();
    onnx_text(text, &model);
    expect_ok(f->diag, zc_compile_bytes(model.data, model.len, NULL, &bytes, &len, f->diag));
    expect_ok(f->diag, zc_plan_load_bytes(bytes, len, &f->plan, f->diag));
    for (size_t i = 0; i < INPUTS; i++)
        expect_ok(f->diag, zc_plan_input(f->plan, i, &f->inputs[i], f->diag));
    zc_buf_fini(&model);
    zc_free(bytes);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    zc_plan_destroy(&f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static void make(fixture *f, int64_t n, zc_memory_map *map)
{
    f->inputs[0].dims[0] = n;
    expect_ok(f->diag, zc_memory_map_make(f->plan, 0, f->inputs, INPUTS, map, f->diag));
}

static void test_by_hand(void **state)
{
    fixture *f = *state;
    for (int64_t n = 1; n <= 7; n += 2) {
        const uint64_t wide = 256 * (uint64_t)n, narrow = 64 * (uint64_t)n;
        const uint64_t need[STEPS] = {wide, wide + narrow, 2 * wide + narrow, 2 * wide};
        zc_memory_map map;
        zc_memory_info info;
        make(f, n, &map);
        expect_ok(f->diag, zc_plan_memory(f->plan, f->inputs, INPUTS, &info, f->diag));
        assert_int_equal(map.nsteps, STEPS);
        for (size_t i = 0; i < STEPS; i++) assert_int_equal(map.steps[i].live, need[i]);
        assert_int_equal(map.peak, 2);
        assert_int_equal(map.info.live_bytes, need[2]);
        assert_int_equal(info.arena_bytes, map.info.arena_bytes);
        assert_int_equal(info.result_bytes, map.info.result_bytes);
        assert_string_equal(map.steps[3].name, "join");
        assert_string_equal(map.steps[3].op, "Concat");
        zc_memory_map_free(&map);
    }
}

/* Places of values that are needed at once do not meet, and lie within the working memory. */
static void test_places(void **state)
{
    fixture *f = *state;
    zc_memory_map map;
    make(f, 5, &map);
    assert_int_equal(map.nvalues, 3);
    for (size_t i = 0; i < map.nvalues; i++) {
        const zc_memory_value *v = &map.values[i];
        assert_true(v->offset + v->bytes <= map.info.arena_bytes && v->bytes % ALIGN == 0);
        assert_true(v->first <= v->last && v->last < STEPS);
        assert_null(v->type.data);
        for (size_t j = 0; j < i; j++) {
            const zc_memory_value *w = &map.values[j];
            assert_true(w->bytes >= v->bytes);
            bool at_once = v->first <= w->last && w->first <= v->last;
            bool meet = v->offset < w->offset + w->bytes && w->offset < v->offset + v->bytes;
            assert_false(at_once && meet);
        }
    }
    assert_int_equal(map.values[0].type.dims[1], 64);
    assert_int_equal(map.values[0].type.dims[0], 5);
    zc_memory_map_free(&map);
}

static void test_cpu_workspace_is_not_known(void **state)
{
    fixture *f = *state;
    zc_memory_map map;
    make(f, 1, &map);
    assert_int_equal(map.unknown, STEPS);
    assert_int_equal(map.arch, 0);
    assert_int_equal(map.code_bytes, 0);
    for (size_t i = 0; i < STEPS; i++) assert_int_equal(map.steps[i].workspace, -1);
    zc_memory_map_free(&map);
}

static void test_refused(void **state)
{
    fixture *f = *state;
    zc_memory_map map;
    expect_fail(f->diag, zc_memory_map_make(f->plan, 0, f->inputs, INPUTS, &map, f->diag),
                ZC_ERR_INPUT, "x: dimension 0 has no size (got -1)");
    zc_memory_map_free(&map);
    expect_fail(f->diag, zc_memory_map_make(f->plan, 0, f->inputs, 1, &map, f->diag), ZC_ERR_ARG,
                "wrong number of inputs (got 1, need 3)");
    zc_memory_map_free(&map);
    f->inputs[0].dims[0] = INT64_MAX / 4;
    expect_fail(f->diag, zc_memory_map_make(f->plan, 0, f->inputs, INPUTS, &map, f->diag),
                ZC_ERR_INPUT, "too large");
    zc_memory_map_free(&map);
}

#define WITH_FIXTURE(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_FIXTURE(test_by_hand),
        WITH_FIXTURE(test_places),
        WITH_FIXTURE(test_cpu_workspace_is_not_known),
        WITH_FIXTURE(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
