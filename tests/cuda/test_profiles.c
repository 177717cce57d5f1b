/* Kernels of their own for the sizes that profiles name. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "cuda/gpu.h"
#include "support/onnx_text.h"

static zc_status compile(const zc_profile *profiles, size_t n, const char *target, void **bytes,
                         size_t *len, zc_diag *diag)
{
    zc_buf model = {0};
    onnx_text(gpu_rows_text, &model);
    zc_status status =
        zc_compile_bytes(model.data, model.len,
                         ZC_COMPILE_PARAMS(.targets = &target, .target_count = 1, .threads = 2,
                                           .profiles = profiles, .profile_count = n),
                         bytes, len, diag);
    zc_buf_fini(&model);
    return status;
}

static zc_plan *plan_for(const zc_profile *profiles, size_t n)
{
    void *bytes;
    size_t len;
    zc_diag *diag = zc_diag_create();
    expect_ok(diag, compile(profiles, n, "sm_90", &bytes, &len, diag));
    zc_plan *plan = gpu_load(bytes, len);
    zc_free(bytes);
    zc_diag_destroy(&diag);
    return plan;
}

/* The result for n rows and m indices, which must be right; *names are the kernels that gave it. */
static void run(zc_session *s, int64_t n, int64_t m, float *y, char *names, size_t size)
{
    gpu_rows in;
    zc_view out;
    zc_step_info step;
    gpu_rows_make(&in, n, m, 3);
    gpu_rows_run(s, &in);
    assert_int_equal(zc_session_output(s, 0, &out, NULL), ZC_OK);
    if (out.bytes) memcpy(y, out.data, out.bytes);
    names[0] = '\0';
    for (size_t i = 0, at = 0; zc_session_step(s, i, &step, NULL) == ZC_OK; i++)
        at += (size_t)snprintf(names + at, size - at, "%s ", step.kernel ? step.kernel : "-");
}

/* Sessions over a plan with profiles and one without must agree to the bit. */
typedef struct pair {
    zc_plan *plan, *plain;
    zc_session *with, *without;
    char general[512]; /* the kernels of the plan without profiles */
} pair;

static void open_pair(pair *p, const zc_profile *profiles, size_t n)
{
    float y[GPU_ROWS_MAX * GPU_COLUMNS];
    gpu_fake(NULL, NULL);
    p->plan = plan_for(profiles, n);
    p->plain = plan_for(NULL, 0);
    p->with = gpu_session(p->plan);
    p->without = gpu_session(p->plain);
    run(p->without, 3, 3, y, p->general, sizeof p->general);
}

static void close_pair(pair *p)
{
    assert_int_equal(zc_session_destroy(&p->with), ZC_OK);
    assert_int_equal(zc_session_destroy(&p->without), ZC_OK);
    zc_plan_destroy(&p->plan);
    zc_plan_destroy(&p->plain);
}

/* Writes the kernels that ran to `names`, and says whether they are the general ones. */
static bool is_general(pair *p, int64_t n, int64_t m, char names[512])
{
    float a[GPU_ROWS_MAX * GPU_COLUMNS] = {0}, b[GPU_ROWS_MAX * GPU_COLUMNS] = {0};
    char general[512];
    run(p->with, n, m, a, names, 512);
    run(p->without, n, m, b, general, sizeof general);
    assert_string_equal(general, p->general);
    assert_memory_equal(a, b, sizeof a);
    return strcmp(names, general) == 0;
}

static void test_each_size_has_its_kernels(void **state)
{
    const int64_t sizes[] = {1, 8, 32};
    const zc_profile profile = {"M", sizes, 3};
    char names[3][512], again[512], other[512];
    pair p;
    (void)state;
    open_pair(&p, &profile, 1);
    for (int i = 0; i < 3; i++) assert_false(is_general(&p, 5, sizes[i], names[i]));
    assert_string_not_equal(names[0], names[1]);
    assert_string_not_equal(names[1], names[2]);
    for (int64_t m = 0; m < 40; m += 3) assert_true(is_general(&p, 5, m, other));
    /* The choice follows the shapes back and forth, and the other input's do not matter. */
    assert_false(is_general(&p, 9, 8, again));
    assert_string_equal(again, names[1]);
    assert_true(is_general(&p, 9, 7, other));
    assert_false(is_general(&p, 1, 1, again));
    assert_string_equal(again, names[0]);
    close_pair(&p);
}

/* Two profiles: every pair of sizes, and no half of one. */
static void test_combinations(void **state)
{
    const int64_t n[] = {4, 6}, m[] = {2};
    const zc_profile profiles[] = {{"N", n, 2}, {"M", m, 1}};
    char one[512], two[512], other[512];
    pair p;
    (void)state;
    open_pair(&p, profiles, 2);
    assert_false(is_general(&p, 4, 2, one));
    assert_false(is_general(&p, 6, 2, two));
    assert_true(is_general(&p, 5, 2, other));
    assert_true(is_general(&p, 4, 3, other));
    close_pair(&p);
}

/* Graphs are kept by shape: a profile's size and others alternate without capturing anew. */
static void test_replays(void **state)
{
    const int64_t sizes[] = {8};
    const zc_profile profile = {"M", sizes, 1};
    char names[512];
    zc_device_info info;
    pair p;
    (void)state;
    open_pair(&p, &profile, 1);
    for (int i = 0; i < 4; i++) {
        assert_false(is_general(&p, 5, 8, names));
        assert_true(is_general(&p, 5, 9, names));
    }
    assert_int_equal(zc_session_device(p.with, &info), ZC_OK);
    assert_int_equal(info.graphs, 1);
    assert_int_equal(info.cpu_steps, 0);
    close_pair(&p);
}

static void test_refused(void **state)
{
    enum { MANY = 65 };
    static int64_t many[MANY];
    const int64_t one[] = {1}, negative[] = {8, -1};
    const struct {
        zc_profile profiles[2];
        size_t n;
        const char *target, *says;
    } cases[] = {
        {{{"Q", one, 1}}, 1, "sm_90", "Q: no input has a dimension of this name"},
        {{{"M", negative, 2}}, 1, "sm_90", "M: a profile's size cannot be negative (got -1)"},
        {{{"M", one, 0}}, 1, "sm_90", "M: profiles need 1 to 64 combinations of sizes"},
        {{{"M", many, MANY}}, 1, "sm_90", "M: profiles need 1 to 64 combinations of sizes"},
        {{{"N", many, 9}, {"M", many, 9}}, 2, "sm_90", "M: profiles need 1 to 64 combinations"},
        {{{"M", one, 1}, {"M", one, 1}}, 2, "sm_90", "M: has two profiles"},
        {{{"M", one, 1}}, 1, "cpu", "M: a profile needs a GPU among the targets"},
        {{{NULL, one, 1}}, 1, "sm_90", "profiles: a name is NULL"},
        {{{"M", NULL, 1}}, 1, "sm_90", "profiles"},
    };
    (void)state;
    zc_diag *diag = zc_diag_create();
    gpu_fake(NULL, NULL);
    for (int i = 0; i < MANY; i++) many[i] = i;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        void *bytes = NULL;
        size_t len = 0;
        expect_fail(diag,
                    compile(cases[i].profiles, cases[i].n, cases[i].target, &bytes, &len, diag),
                    ZC_ERR_ARG, cases[i].says);
        assert_null(bytes);
    }
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_size_has_its_kernels),
        cmocka_unit_test(test_combinations),
        cmocka_unit_test(test_replays),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, gpu_group_setup, gpu_group_teardown);
}
