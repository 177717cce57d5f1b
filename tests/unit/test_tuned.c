/* Files of measurements: what is read, refused, merged and found. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune/builtin.h"
#include "tune/database.h"
#include "tune/problem.h"
#include "tune/same.h"

#define HEADER "# zc tuned 1\n"
#define H200   "sm_90\tNVIDIA H200\t"
#define LINE   H200 "MatMul(f16[8,8])\tgemm\ta=1 b=2\t1.50\t13.0\t2026-11-23\n"

typedef struct fixture {
    zc_tuned tuned;
    zc_diag *diag;
} fixture;

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (!f) return -1;
    zc_tuned_init(&f->tuned);
    f->diag = zc_diag_create();
    *state = f;
    return f->diag ? 0 : -1;
}

static int teardown(void **state)
{
    fixture *f = *state;
    zc_tuned_fini(&f->tuned);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

static zc_status parse(fixture *f, const char *text)
{
    return zc_tuned_parse(&f->tuned, text, strlen(text), "f.tuned", f->diag);
}

static void assert_prints(fixture *f, const char *need)
{
    zc_buf text = {0};
    assert_int_equal(zc_tuned_print(&f->tuned, &text, f->diag), ZC_OK);
    assert_string_equal(text.data, need);
    zc_buf_fini(&text);
}

static void comes_back_as_it_was(void **state)
{
    fixture *f = *state;
    assert_int_equal(parse(f, HEADER LINE), ZC_OK);
    assert_int_equal(f->tuned.entries.len, 1);
    const zc_tuned_entry *e = &f->tuned.entries.data[0];
    assert_int_equal(e->arch, 90);
    assert_string_equal(e->gpu, "NVIDIA H200");
    assert_string_equal(e->problem, "MatMul(f16[8,8])");
    assert_string_equal(e->family, "gemm");
    assert_string_equal(e->config, "a=1 b=2");
    assert_true(e->saved == 1.5);
    assert_string_equal(e->cuda, "13.0");
    assert_string_equal(e->day, "2026-11-23");
    assert_prints(f, HEADER LINE);
}

static void an_empty_configuration_and_a_missing_last_newline_are_taken(void **state)
{
    fixture *f = *state;
    assert_int_equal(parse(f, HEADER H200 "P\tf\t\t-0.10\t13.0\t2026-11-23"), ZC_OK);
    assert_string_equal(f->tuned.entries.data[0].config, "");
    assert_true(f->tuned.entries.data[0].saved == -0.1);
}

static void lines_are_sorted_whatever_their_order(void **state)
{
    fixture *f = *state;
    assert_int_equal(parse(f, HEADER "sm_90\tNVIDIA H200\tB\tf\t\t0.00\t13.0\t2026-11-23\n" HEADER
                                     "sm_80\tX\tC\tf\t\t0.00\t13.0\t2026-11-23\n"
                                     "sm_90\tNVIDIA H100\tB\tf\t\t0.00\t13.0\t2026-11-23\n"
                                     "sm_90\tNVIDIA H200\tA\tf\t\t0.00\t13.0\t2026-11-23\n"),
                     ZC_OK);
    assert_prints(f, HEADER "sm_80\tX\tC\tf\t\t0.00\t13.0\t2026-11-23\n"
                            "sm_90\tNVIDIA H100\tB\tf\t\t0.00\t13.0\t2026-11-23\n"
                            "sm_90\tNVIDIA H200\tA\tf\t\t0.00\t13.0\t2026-11-23\n"
                            "sm_90\tNVIDIA H200\tB\tf\t\t0.00\t13.0\t2026-11-23\n");
}

/* Of one problem: the later day, then what saves more, then the first by its bytes. Every order of
 * three lines gives the same. */
static void merging_does_not_depend_on_the_order(void **state)
{
    static const char *const groups[][3] = {
        {H200 "P\tf\ta=1\t9.00\t13.0\t2026-11-22\n", H200 "P\tf\ta=2\t1.00\t13.0\t2026-11-23\n",
         H200 "P\tf\ta=3\t0.50\t13.0\t2026-11-23\n"},
        {H200 "P\tg\ta=1\t1.00\t13.0\t2026-11-23\n", H200 "P\tf\ta=2\t1.00\t13.0\t2026-11-23\n",
         H200 "P\tf\ta=3\t1.00\t13.0\t2026-11-23\n"}};
    static const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                    {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    (void)state;
    for (size_t g = 0; g < ZC_COUNTOF(groups); g++)
        for (size_t o = 0; o < ZC_COUNTOF(orders); o++) {
            fixture *f;
            char text[512];
            assert_int_equal(setup((void **)&f), 0);
            snprintf(text, sizeof text, HEADER "%s%s%s", groups[g][orders[o][0]],
                     groups[g][orders[o][1]], groups[g][orders[o][2]]);
            assert_int_equal(parse(f, text), ZC_OK);
            assert_int_equal(f->tuned.entries.len, 1);
            assert_string_equal(f->tuned.entries.data[0].config, "a=2");
            teardown((void **)&f);
        }
}

static void a_gpu_finds_its_own_and_none_the_architectures_first(void **state)
{
    fixture *f = *state;
    assert_int_equal(parse(f, HEADER "sm_90\tA\tP\tf\ta=1\t0.00\t13.0\t2026-11-23\n"
                                     "sm_90\tB\tP\tf\ta=2\t0.00\t13.0\t2026-11-23\n"
                                     "sm_90\tB\tQ\tf\ta=3\t0.00\t13.0\t2026-11-23\n"),
                     ZC_OK);
    assert_string_equal(zc_tuned_find(&f->tuned, 90, "B", "P")->config, "a=2");
    assert_string_equal(zc_tuned_find(&f->tuned, 90, NULL, "P")->config, "a=1");
    assert_string_equal(zc_tuned_find(&f->tuned, 90, NULL, "Q")->config, "a=3");
    assert_null(zc_tuned_find(&f->tuned, 90, "A", "Q"));
    assert_null(zc_tuned_find(&f->tuned, 90, "C", "P"));
    assert_null(zc_tuned_find(&f->tuned, 80, NULL, "P"));
}

static void what_is_wrong_is_named_with_its_line(void **state)
{
    static const struct {
        const char *text, *need;
    } cases[] = {
        {"", "holds no measurements"},
        {"# zc tuned 2\n", "holds no measurements"},
        {LINE, "holds no measurements"},
        {HEADER "\n", "line 2: fields with tabs between (got 1, need 8)"},
        {HEADER LINE H200 "P\tf\t\t1\t13.0\t2026-11-23\tmore\n", "line 3: fields with tabs"},
        {HEADER "sm_0\tG\tP\tf\t\t1\t13.0\t2026-11-23\n", "no architecture (got 'sm_0'"},
        {HEADER "sm_90x\tG\tP\tf\t\t1\t13.0\t2026-11-23\n", "no architecture"},
        {HEADER "sm_99999999999999999999\tG\tP\tf\t\t1\t13.0\t2026-11-23\n", "no architecture"},
        {HEADER "sm_90\t\tP\tf\t\t1\t13.0\t2026-11-23\n", "an empty field"},
        {HEADER "sm_90\tG\tP\t\t\t1\t13.0\t2026-11-23\n", "an empty field"},
        {HEADER "sm_90\tG\tP\tf\t\tnan\t13.0\t2026-11-23\n", "no number of microseconds"},
        {HEADER "sm_90\tG\tP\tf\t\t1x\t13.0\t2026-11-23\n", "no number of microseconds"},
        {HEADER "sm_90\tG\tP\tf\t\t\t13.0\t2026-11-23\n", "no number of microseconds"},
        {HEADER "sm_90\tG\tP\tf\t\t1\t13.0\t2026-11-2\n", "no day (got '2026-11-2'"},
        {HEADER "sm_90\tG\tP\tf\t\t1\t13.0\t2026/11/23\n", "no day"},
        {HEADER "sm_90\tG\tP\r\tf\t\t1\t13.0\t2026-11-23\n", "a control character (0x0d)"},
    };
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        fixture *f;
        assert_int_equal(setup((void **)&f), 0);
        assert_int_equal(parse(f, cases[i].text), ZC_ERR_FORMAT);
        assert_non_null(strstr(zc_diag_text(f->diag, 0), "f.tuned"));
        if (!strstr(zc_diag_text(f->diag, 0), cases[i].need))
            fail_msg("got '%s', need '%s'", zc_diag_text(f->diag, 0), cases[i].need);
        teardown((void **)&f);
    }
}

static void long_lines_and_zero_bytes_are_refused(void **state)
{
    fixture *f = *state;
    static const char zero[] = HEADER "sm_90\tG\tP\0\tf\t\t1\t13.0\t2026-11-23\n";
    char text[8192] = HEADER;
    size_t n = strlen(text);
    memset(text + n, 'x', sizeof text - n - 1);
    assert_int_equal(parse(f, text), ZC_ERR_FORMAT);
    assert_non_null(strstr(zc_diag_text(f->diag, 0), "line 2 is too long"));
    zc_diag_clear(f->diag);
    assert_int_equal(zc_tuned_parse(&f->tuned, zero, sizeof zero - 1, "z", f->diag), ZC_ERR_FORMAT);
    assert_non_null(strstr(zc_diag_text(f->diag, 0), "a control character (0x00)"));
}

static void files_are_written_whole_or_not_at_all(void **state)
{
    fixture *f = *state;
    char folder[] = "/tmp/zc_test_tuned_XXXXXX", path[64], none[64];
    zc_tuned other;
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/f.tuned", folder);
    snprintf(none, sizeof none, "%s/no/f.tuned", folder);
    assert_int_equal(parse(f, HEADER LINE), ZC_OK);
    assert_int_equal(zc_tuned_write(&f->tuned, path, f->diag), ZC_OK);
    zc_tuned_init(&other);
    assert_int_equal(zc_tuned_read(&other, path, f->diag), ZC_OK);
    assert_int_equal(other.entries.len, 1);
    assert_int_equal(zc_tuned_add_all(&other, &f->tuned, f->diag), ZC_OK);
    assert_int_equal(other.entries.len, 1);
    assert_int_equal(zc_tuned_write(&f->tuned, none, f->diag), ZC_ERR_IO);
    zc_tuned_fini(&other);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
}

/* What zc brings along is well-formed, sorted, of one line for each problem and GPU, and in normal
 * form. */
static void those_that_zc_brings_along_are_normal(void **state)
{
    fixture *f = *state;
    zc_buf text = {0};
    assert_int_equal(zc_tuned_add_builtin(&f->tuned, f->diag), ZC_OK);
    for (size_t i = 0; i < f->tuned.entries.len; i++) {
        const zc_tuned_entry *e = &f->tuned.entries.data[i];
        zc_buf normal = {0};
        assert_int_equal(e->arch, 90);
        if (!zc_problem_normal(e->problem, &normal)) fail_msg("%s: is no problem", e->problem);
        assert_string_equal(normal.data, e->problem);
        zc_buf_fini(&normal);
    }
    assert_int_equal(zc_tuned_print(&f->tuned, &text, f->diag), ZC_OK);
    assert_string_equal(text.data, zc_tuned_files[0].text);
    assert_null(zc_tuned_files[1].name);
    zc_buf_fini(&text);
}

/* ---- problems ---- */

static void assert_normal(const char *text, const char *need)
{
    zc_buf normal = {0}, again = {0};
    if (!zc_problem_normal(text, &normal)) fail_msg("%s: is no problem", text);
    assert_string_equal(normal.data, need);
    assert_true(zc_problem_normal(normal.data, &again));
    assert_string_equal(again.data, need);
    zc_buf_fini(&normal);
    zc_buf_fini(&again);
}

#define BYTES                                                                                      \
    "u8[1,8,8,64], f32[]=, u8[]=, i8[64,1,1,64]=, f32[64]=, i8[64]=, f32[]=, u8[]=, i32[64]=, "    \
    "u8[1,8,8,64]"
#define MOMENTS "f16[128,768], f16[768,768]=, f16[768]=, _, _, f16[128,768]) -> f16[128,768]"

/* Steps whose kernels do the same work: all texts up to a NULL have the first's normal form. */
static void equal_problems_have_one_text(void **state)
{
    static const char *const groups[][6] = {
        {"Linear(f16[512,768], f16[768,64]=, f16[64]=) -> f16[512,64]",
         "Linear(f16[1,512,768], f16[768,64]=, f16[64]=) -> f16[1,512,64]",
         "Linear(f16[4,128,768], f16[768,64]=, f16[64]=) -> f16[4,128,64] {transB = 0, alpha = 1}",
         "Linear(f16[2,2,128,768], f16[768,64]=, f16[64]=, _) -> f16[2,2,128,64], _"},
        {"Linear(f16[512,768], f16[64,768]=) -> f16[512,64] {transB = 1}",
         "Linear(f16[4,128,768], f16[64,768]=) -> f16[4,128,64] {alpha = 1.0000001, transB = 1}"},
        {"GatedLinear(f16[8,64], f16[24,64]=, f16[24,64]=) -> f16[8,24] {activation = \"Relu\"}",
         "GatedLinear(f16[2,4,64], f16[24,64]=, f16[24,64]=, _, _) -> f16[2,4,24] "
         "{activation = \"Relu\"}"},
        {"LinearMoments(" MOMENTS ", f32[128,12,2]",
         "LinearMoments(f16[1,128,768], f16[768,768]=, f16[768]=, _, _, f16[1,128,768]) -> "
         "f16[1,128,768], f32[1,128,12,2] {skip_epsilon = 9.99999996e-13}",
         "LinearMoments(" MOMENTS ", f32[128,12,2] {epsilon = 0.5}"},
        {"LinearNorm(f16[8,64], f16[64,64]=, _, f16[8,64], f16[64]=) -> f16[8,64] {rms = 1}",
         "LinearNorm(f16[2,4,64], f16[64,64]=, _, f16[2,4,64], f16[64]=) -> f16[2,4,64], _ "
         "{epsilon = 1e-06, rms = 1}"},
        {"Linear(f16[8,64], f16[64,64]=, _, f16[8,64]) -> f16[8,64] {epilogue = \"max(x0 + x1, "
         "0)\"}",
         "Linear(f16[8,64], f16[64,64]=, _, f16[8,64]) -> f16[8,64] "
         "{epilogue = \"t0_t0 = x1 + x0; max(t0_t0, 0)\"}",
         "Linear(f16[2,4,64], f16[64,64]=, _, f16[2,4,64]) -> f16[2,4,64] "
         "{epilogue = \"a = x0; max(0.0, a + x1)\"}"},
        {"Linear(f16[8,64], f16[64,64]=, _, f16[64]) -> f16[8,64] {epilogue = \"x0 * x1\"}",
         "Linear(f16[1,8,64], f16[64,64]=, _, f16[1,1,64]) -> f16[1,8,64] {epilogue = \"x1 * "
         "x0\"}"},
        {"Linear(f16[8,64], f16[64,64]=) -> f16[8,64] "
         "{epilogue = \"(erf(x0 * 0.707107) + 1) * x0 * 0.5\"}",
         "Linear(f16[8,64], f16[64,64]=) -> f16[8,64] "
         "{epilogue = \"0.5 * x0 * (1 + erf(x0 * 0.7071067811865476))\"}",
         "Linear(f16[8,64], f16[64,64]=) -> f16[8,64] "
         "{epilogue = \"h = 0.5 * x0; h * (erf(0.70710678 * x0) + 1)\"}"},
        {"Linear(f16[8,64], f16[64,64]=) -> f32[8,64] {epilogue = \"tanh(x0)\"}",
         "Linear(f16[8,64], f16[64,64]=) -> f32[8,64] {epilogue = \"t0_t0 = tanh(x0); "
         "f32(t0_t0)\"}"},
        {"QLinearConv(" BYTES
         ") -> u8[1,8,8,64] {channels_last = 1, epilogue = \"u8(round((((f32(x0) - "
         "nan) * nan) + ((f32(x1) - nan) * nan)) / nan) + nan)\"}",
         "QLinearConv(" BYTES
         ") -> u8[1,8,8,64] {channels_last = 1, epilogue = \"u8(round((((f32(x0) - "
         "115) * 0.0184433) + ((f32(x1) - 0) * 0.0300109)) / 0.0282618) + 0)\"}",
         "QLinearConv(" BYTES
         ") -> u8[1,8,8,64] {channels_last = 1, epilogue = \"a = (f32(x1) - 136) * "
         "0.04; b = (f32(x0) - 2) * 0.02; u8(round((b + a) / 0.5) + 7)\"}"},
        {"Attention(f16[1,128,2304]) -> f16[1,128,768] {kv_num_heads = 12, q_num_heads = 12}",
         "Attention(f16[1,128,2304]) -> f16[1,128,768] "
         "{kv_num_heads = 12, q_num_heads = 12, scale = 0.124999993}",
         "Attention(f16[1,128,2304]) -> f16[1,128,768] "
         "{is_causal = 0, kv_num_heads = 12, q_num_heads = 12, scale = 0.125}"},
        {"Attention(f16[2,4,8,64], f16[2,4,8,64], f16[2,4,8,64], f16[8]) -> f16[2,4,8,64]",
         "Attention(f16[2,4,8,64], f16[2,4,8,64], f16[2,4,8,64], f16[1,1,1,8]) -> f16[2,4,8,64] "
         "{kv_num_heads = 4, q_num_heads = 4}"},
        {"ConvNhwc(f16[1,8,8,64], f16[64,3,3,64]=) -> f16[1,8,8,64] {pads = [1, 1, 1, 1]}",
         "ConvNhwc(f16[1,8,8,64], f16[64,3,3,64]=, _, _) -> f16[1,8,8,64] {auto_pad = \"NOTSET\", "
         "dilations = [1, 1], group = 1, kernel_shape = [3, 3], pads = [1, 1, 1, 1], strides = [1, "
         "1]}"},
    };
    (void)state;
    for (size_t g = 0; g < ZC_COUNTOF(groups); g++)
        for (size_t i = 0; i < ZC_COUNTOF(groups[g]) && groups[g][i]; i++)
            assert_normal(groups[g][i], groups[g][0]);
}

/* No two of these are one problem. */
static void other_problems_have_other_texts(void **state)
{
    static const char *const texts[] = {
        "Linear(f16[512,64], f16[64,64]=) -> f16[512,64]",
        "Linear(f16[256,64], f16[64,64]=) -> f16[256,64]",
        "Linear(bf16[512,64], f16[64,64]=) -> bf16[512,64]",
        "Linear(f16[512,64], f16[64,64]) -> f16[512,64]",
        "Linear(f16[512,64], f16[64,64]=) -> f16[512,64] tf32",
        "Linear(f16[512,64], f16[64,64]=) -> f16[512,64] {transB = 1}",
        "Linear(f16[512,64], f16[64,64]=) -> f16[512,64] {alpha = 2}",
        "Linear(f16[512,64], f16[64,64]=, f16[64]=) -> f16[512,64]",
        "Linear(f16[512,64], f16[64,64]=) -> f16[512,64] {epilogue = \"max(x0, 0)\"}",
        "Linear(f16[512,64], f16[64,64]=, _, f16[64]) -> f16[512,64] {epilogue = \"x0 - x1\"}",
        "Linear(f16[512,64], f16[64,64]=, _, f16[64]) -> f16[512,64] {epilogue = \"x1 - x0\"}",
        "Linear(f16[512,64], f16[64,64]=, _, f16[512,1]) -> f16[512,64] {epilogue = \"x1 - x0\"}",
        "Linear(f16[512,64], f16[64,64]=, _, f16[512,64]) -> f16[512,64] {epilogue = \"x1 - x0\"}",
        "Attention(f16[1,512,192]) -> f16[1,512,64] {kv_num_heads = 1, q_num_heads = 1}",
        "Attention(f16[4,128,192]) -> f16[4,128,64] {kv_num_heads = 1, q_num_heads = 1}",
        "Attention(f16[1,512,192]) -> f16[1,512,64] {kv_num_heads = 2, q_num_heads = 2}",
        "Attention(f16[1,512,192]) -> f16[1,512,64] {is_causal = 1, kv_num_heads = 1, q_num_heads "
        "= 1}",
        "MatMul(f16[4,128,64], f16[4,64,64]) -> f16[4,128,64]",
        "MatMul(f16[2,2,128,64], f16[2,2,64,64]) -> f16[2,2,128,64]",
        "ConvNhwc(f16[1,8,8,64], f16[64,1,1,64]=) -> f16[1,8,8,64]",
        "ConvNhwc(f16[4,4,4,64], f16[64,1,1,64]=) -> f16[4,4,4,64]",
        "MaxPool(f16[1,64,8,8]) -> f16[1,64,8,8] {kernel_shape = [1, 1]}",
        "MaxPool(f16[1,64,8,8]) -> f16[1,64,8,8] {kernel_shape = [2, 2]}",
    };
    zc_buf normal[ZC_COUNTOF(texts)] = {{0}};
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(texts); i++) {
        if (!zc_problem_normal(texts[i], &normal[i])) fail_msg("%s: is no problem", texts[i]);
        for (size_t k = 0; k < i; k++) assert_string_not_equal(normal[k].data, normal[i].data);
    }
    for (size_t i = 0; i < ZC_COUNTOF(texts); i++) zc_buf_fini(&normal[i]);
}

/* They may be those of another zc: nobody finds them, and nobody changes them. */
static void what_is_no_problem_stays(void **state)
{
    static const char *const texts[] = {
        "",
        "Linear",
        "NoSuchOperation(f16[8]) -> f16[8]",
        "Linear(f16[8,8], f16[8,8]=)",
        "Linear(f16[8,n], f16[n,8]=) -> f16[8,8]",
        "Linear(f16[8,-8], f16[8,8]=) -> f16[8,8]",
        "Linear(f16[8,99999999999999999999], f16[8,8]=) -> f16[8,8]",
        "Linear(f17[8,8], f16[8,8]=) -> f16[8,8]",
        "Linear(f16[8,8], f16[8,8]=) -> _",
        "Linear(f16[8,8], f16[8,8]=) -> f16[8,8] {beta = 1}",
        "Linear(f16[8,8], f16[8,8]=) -> f16[8,8] {transB = 1",
        "Linear(f16[8,8], f16[8,8]=) -> f16[8,8] more",
        "Linear(f16[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1], f16[8,8]=) -> f16[8,8]",
        "Linear(f16[8,9000000000000000000,9000000000000000000], f16[8,8]=) -> "
        "f16[8,9000000000000000000,9000000000000000000,8]",
    };
    fixture *f = *state;
    for (size_t i = 0; i < ZC_COUNTOF(texts); i++) {
        zc_buf normal = {0};
        if (zc_problem_normal(texts[i], &normal)) fail_msg("%s: is a problem", texts[i]);
        zc_buf_fini(&normal);
    }
    assert_int_equal(parse(f, HEADER H200 "Linear(f16[8,n])\tf\t\t0.00\t13.0\t2026-11-23\n"),
                     ZC_OK);
    assert_string_equal(f->tuned.entries.data[0].problem, "Linear(f16[8,n])");
}

/* Lines of an older zc: one problem in two spellings becomes one line. */
static void old_lines_come_to_the_normal_form(void **state)
{
    fixture *f = *state;
    assert_int_equal(parse(f, HEADER H200
                           "Linear(f16[1,8,64], f16[64,64]=) -> f16[1,8,64]\tf\ta=1\t1.00\t13.0"
                           "\t2026-11-23\n" H200
                           "Linear(f16[2,4,64], f16[64,64]=) -> f16[2,4,64], _\tf\ta=2\t2.00\t13.0"
                           "\t2026-11-23\n"),
                     ZC_OK);
    assert_prints(f, HEADER H200 "Linear(f16[8,64], f16[64,64]=) -> f16[8,64]\tf\ta=2\t2.00\t13.0"
                                 "\t2026-11-23\n");
}

/* Rounding is measured at the greatest finite element. */
static void results_differ_by_rounding_alone(void **state)
{
    float a[] = {1, 100, INFINITY, NAN}, b[] = {1, 100, INFINITY, NAN};
    zc_tensor x = {.dtype = ZC_F32, .rank = 1, .dims = {4}, .data = a}, y = x;
    y.data = b;
    (void)state;
    assert_true(zc_same_tensor(&x, &y, ZC_F32, 16, 1));
    a[0] = 1 + 15 * 0x1p-23F * 100;
    assert_true(zc_same_tensor(&x, &y, ZC_F32, 16, 1));
    a[0] = 1 + 17 * 0x1p-23F * 100;
    assert_false(zc_same_tensor(&x, &y, ZC_F32, 16, 1));
    assert_true(zc_same_tensor(&x, &y, ZC_F32, 32, 1));
    assert_true(zc_same_tensor(&x, &y, ZC_F16, 16, 1));
    a[0] = NAN;
    assert_false(zc_same_tensor(&x, &y, ZC_F32, 16, 1));
    a[0] = 1;
    a[2] = -INFINITY;
    assert_false(zc_same_tensor(&x, &y, ZC_F32, 16, 1));
    assert_true(zc_same_tensor(&x, &y, ZC_F32, 16, 3)); /* elements 0 and 3 */
    y.rank = 0;
    assert_false(zc_same_tensor(&x, &y, ZC_F32, 16, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(comes_back_as_it_was, setup, teardown),
        cmocka_unit_test_setup_teardown(an_empty_configuration_and_a_missing_last_newline_are_taken,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(lines_are_sorted_whatever_their_order, setup, teardown),
        cmocka_unit_test(merging_does_not_depend_on_the_order),
        cmocka_unit_test_setup_teardown(a_gpu_finds_its_own_and_none_the_architectures_first, setup,
                                        teardown),
        cmocka_unit_test(what_is_wrong_is_named_with_its_line),
        cmocka_unit_test_setup_teardown(long_lines_and_zero_bytes_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(files_are_written_whole_or_not_at_all, setup, teardown),
        cmocka_unit_test(results_differ_by_rounding_alone),
        cmocka_unit_test_setup_teardown(those_that_zc_brings_along_are_normal, setup, teardown),
        cmocka_unit_test(equal_problems_have_one_text),
        cmocka_unit_test(other_problems_have_other_texts),
        cmocka_unit_test_setup_teardown(what_is_no_problem_stays, setup, teardown),
        cmocka_unit_test_setup_teardown(old_lines_come_to_the_normal_form, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
