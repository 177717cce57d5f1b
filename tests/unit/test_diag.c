#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/diag.h"
#include "base/mem.h"

static void test_null(void **state)
{
    (void)state;
    zc_diag *none = NULL;
    assert_int_equal(zc_fail(NULL, ZC_ERR_MODEL, "n", "bad %d", 1), ZC_ERR_MODEL);
    assert_int_equal(zc_fail_nomem(NULL, "it", 4), ZC_ERR_NOMEM);
    zc_diag_set_file(NULL, "f");
    assert_null(zc_diag_lend_subject(NULL, "s"));
    zc_diag_move(NULL, NULL);
    zc_diag_log(NULL, NULL, NULL);
    zc_diag_clear(NULL);
    zc_diag_destroy(NULL);
    zc_diag_destroy(&none);
    assert_int_equal(zc_diag_count(NULL), 0);
    assert_int_equal(zc_diag_dropped(NULL), 0);
    assert_int_equal(zc_diag_status(NULL, 0), ZC_OK);
    assert_string_equal(zc_diag_text(NULL, 0), "");
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(zc_status_name(ZC_OK), "ok");
    assert_string_equal(zc_status_name(ZC_ERR_MODEL), "model");
    assert_string_equal(zc_status_name(ZC_ERR_DEVICE_LOST), "device_lost");
    assert_string_equal(zc_status_name((zc_status)999), "unknown");
    for (int i = 0; i <= ZC_ERR_INTERNAL; i++) {
        assert_string_not_equal(zc_status_name((zc_status)i), "unknown");
        for (int j = 0; j < i; j++)
            assert_string_not_equal(zc_status_name((zc_status)i), zc_status_name((zc_status)j));
    }
}

static void test_texts(void **state)
{
    (void)state;
    zc_diag *d = zc_diag_create();
    assert_non_null(d);
    zc_fail(d, ZC_ERR_ARG, NULL, "reason %d", 1);
    zc_fail(d, ZC_ERR_MODEL, "node", "reason");
    zc_diag_set_file(d, "m.onnx");
    zc_fail(d, ZC_ERR_MODEL, "node", "reason");
    assert_null(zc_diag_lend_subject(d, "outer"));
    assert_string_equal(zc_diag_lend_subject(d, "inner"), "outer");
    zc_fail(d, ZC_ERR_NOMEM, NULL, "reason");
    assert_string_equal(zc_diag_lend_subject(d, NULL), "inner");
    zc_diag_set_file(d, NULL);
    zc_fail_nomem(d, "weights", 12);
    zc_fail(d, ZC_ERR_IO, NULL, "%s", "");
    assert_int_equal(zc_diag_count(d), 6);
    assert_string_equal(zc_diag_text(d, 0), "reason 1");
    assert_string_equal(zc_diag_text(d, 1), "node: reason");
    assert_string_equal(zc_diag_text(d, 2), "m.onnx: node: reason");
    assert_string_equal(zc_diag_text(d, 3), "m.onnx: inner: reason");
    assert_string_equal(zc_diag_text(d, 4), "out of memory for weights (12 bytes)");
    assert_string_equal(zc_diag_text(d, 5), "");
    assert_string_equal(zc_diag_text(d, 6), "");
    assert_int_equal(zc_diag_status(d, 2), ZC_ERR_MODEL);
    assert_int_equal(zc_diag_status(d, 4), ZC_ERR_NOMEM);
    assert_int_equal(zc_diag_status(d, 6), ZC_OK);
    zc_diag_clear(d);
    assert_int_equal(zc_diag_count(d), 0);
    zc_diag_destroy(&d);
    assert_null(d);
}

static void test_files(void **state)
{
    (void)state;
    zc_diag *d = zc_diag_create();
    zc_diag_lend_file(NULL, "f");
    zc_diag_set_file(d, "set");
    zc_diag_lend_file(d, "lent");
    zc_fail(d, ZC_ERR_IO, "node", "reason");
    zc_diag_lend_file(d, NULL);
    zc_fail(d, ZC_ERR_IO, "node", "reason");
    zc_diag_lend_subject(d, "lent");
    zc_fail(d, ZC_ERR_IO, "set", "cannot open");
    zc_diag_set_file(d, NULL);
    zc_fail(d, ZC_ERR_IO, "set", "cannot open");
    assert_string_equal(zc_diag_text(d, 0), "lent: node: reason");
    assert_string_equal(zc_diag_text(d, 1), "set: node: reason");
    assert_string_equal(zc_diag_text(d, 2), "set: cannot open");
    assert_string_equal(zc_diag_text(d, 3), "set: cannot open");
    zc_diag_destroy(&d);
}

static void test_hostile_text(void **state)
{
    (void)state;
    zc_diag *d = zc_diag_create();
    char *big = malloc(100001);
    assert_non_null(big);
    memset(big, 'x', 100000);
    big[100000] = '\0';
    zc_diag_set_file(d, big);
    zc_fail(d, ZC_ERR_FORMAT, big, "%s", big);
    assert_true(strlen(zc_diag_text(d, 0)) <= ZC_DIAG_TEXT_MAX);
    assert_non_null(strstr(zc_diag_text(d, 0), "..."));
    zc_diag_set_file(d, "a\nb");
    zc_fail(d, ZC_ERR_FORMAT, "n\x1B[2J", "\xFF: %s", "%n");
    assert_string_equal(zc_diag_text(d, 1), "a\\x0Ab: n\\x1B[2J: \\xFF: %n");
    /* a cut does not split a character */
    for (size_t i = 0; i + 1 < 3000; i += 2) memcpy(big + i, "\xC3\xA9", 2);
    big[3000] = '\0';
    zc_diag_set_file(d, "z");
    zc_fail(d, ZC_ERR_FORMAT, NULL, "%.1900s", big);
    assert_null(strstr(zc_diag_text(d, 2), "\\x"));
    free(big);
    zc_diag_destroy(&d);
}

static void test_cap(void **state)
{
    (void)state;
    zc_diag *d = zc_diag_create();
    for (int i = 0; i < ZC_DIAG_ENTRIES_MAX + 5; i++) zc_fail(d, ZC_ERR_ARG, NULL, "%d", i);
    assert_int_equal(zc_diag_count(d), ZC_DIAG_ENTRIES_MAX);
    assert_int_equal(zc_diag_dropped(d), 5);
    assert_string_equal(zc_diag_text(d, ZC_DIAG_ENTRIES_MAX - 1), "4095");
    zc_diag_clear(d);
    assert_int_equal(zc_diag_dropped(d), 0);
    zc_diag_destroy(&d);
}

static void hear(void *user, zc_status status, const char *text)
{
    zc_buf_printf(user, "%s|%s\n", zc_status_name(status), text);
}

static void test_log(void **state)
{
    (void)state;
    zc_buf heard = {0};
    zc_diag *d = zc_diag_create(), *other = zc_diag_create();
    zc_diag_log(d, hear, &heard);
    zc_fail(d, ZC_ERR_MODEL, "node", "reason\n");
    zc_warn(d, NULL, "warning");
    zc_fail(other, ZC_ERR_IO, "elsewhere", "reason");
    zc_diag_move(d, other);
    zc_diag_clear(d);
    assert_int_equal(zc_diag_count(other), 0);
    zc_diag_log(d, NULL, NULL);
    zc_fail(d, ZC_ERR_MODEL, "node", "not heard");
    assert_string_equal(heard.data, "model|node: reason\\x0A\nok|warning\nio|elsewhere: reason\n");
    for (int i = 0; i <= ZC_DIAG_ENTRIES_MAX; i++) zc_fail(d, ZC_ERR_ARG, NULL, "%d", i);
    heard.len = 0;
    zc_diag_log(d, hear, &heard);
    zc_fail(d, ZC_ERR_ARG, NULL, "not kept");
    assert_string_equal(heard.data, "arg|not kept\n");
    zc_buf_fini(&heard);
    zc_diag_destroy(&d);
    zc_diag_destroy(&other);
}

static int calls;

static zc_status count_and_fail(zc_status status)
{
    calls++;
    return status;
}

static zc_status tries(zc_status status)
{
    ZC_TRY(count_and_fail(status));
    return ZC_ERR_ARG;
}

static void test_try(void **state)
{
    (void)state;
    calls = 0;
    assert_int_equal(tries(ZC_ERR_IO), ZC_ERR_IO);
    assert_int_equal(tries(ZC_OK), ZC_ERR_ARG);
    assert_int_equal(calls, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_null),         cmocka_unit_test(test_names),
        cmocka_unit_test(test_texts),        cmocka_unit_test(test_files),
        cmocka_unit_test(test_hostile_text), cmocka_unit_test(test_cap),
        cmocka_unit_test(test_log),          cmocka_unit_test(test_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
