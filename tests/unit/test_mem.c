#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void test_checked(void **state)
{
    (void)state;
    size_t n = 7;
    assert_false(zc_mul_size(SIZE_MAX / 2, 3, &n));
    assert_false(zc_add_size(SIZE_MAX, 1, &n));
    assert_int_equal(n, 7);
    assert_true(zc_mul_size(6, 7, &n) && n == 42);
    assert_true(zc_add_size(SIZE_MAX - 1, 1, &n) && n == SIZE_MAX);
    int64_t k = 7;
    assert_false(zc_mul_i64(INT64_MIN, -1, &k));
    assert_false(zc_add_i64(INT64_MAX, 1, &k));
    assert_int_equal(k, 7);
    assert_true(zc_mul_i64(-6, 7, &k) && k == -42);
    assert_true(zc_add_i64(INT64_MIN, INT64_MAX, &k) && k == -1);
}

static void test_range(void **state)
{
    (void)state;
    assert_true(zc_range_ok(0, 0, 0));
    assert_true(zc_range_ok(3, 2, 5));
    assert_true(zc_range_ok(5, 0, 5));
    assert_false(zc_range_ok(6, 0, 5));
    assert_false(zc_range_ok(4, 2, 5));
    assert_false(zc_range_ok(UINT64_MAX, 2, 5));
    assert_false(zc_range_ok(2, UINT64_MAX, 5));
    assert_int_equal(zc_align_up(0, 16), 0);
    assert_int_equal(zc_align_up(17, 16), 32);
}

static void test_alloc(void **state)
{
    (void)state;
    assert_null(zc_calloc(SIZE_MAX, 2));
    assert_null(zc_calloc((size_t)PTRDIFF_MAX + 1, 1));
    assert_null(zc_realloc(NULL, SIZE_MAX / 2, 4));
    void *p = zc_calloc(0, 8);
    assert_non_null(p);
    p = zc_realloc(p, 0, 8);
    assert_non_null(p);
    free(p);
}

static void test_arena(void **state)
{
    (void)state;
    zc_arena a;
    zc_arena_init(&a, 0);
    unsigned char *all[200];
    for (size_t i = 0; i < ZC_COUNTOF(all); i++) {
        const size_t n = i % 10 == 9 ? 9000 : i;
        all[i] = zc_arena_alloc(&a, n, 1);
        assert_non_null(all[i]);
        assert_int_equal((uintptr_t)all[i] % _Alignof(max_align_t), 0);
        for (size_t j = 0; j < n; j++) assert_int_equal(all[i][j], 0);
        memset(all[i], (int)(i & 0xFF), n);
    }
    for (size_t i = 0; i < ZC_COUNTOF(all); i++) { /* none overlaps another */
        const size_t n = i % 10 == 9 ? 9000 : i;
        for (size_t j = 0; j < n; j++) assert_int_equal(all[i][j], i & 0xFF);
    }
    assert_null(zc_arena_alloc(&a, SIZE_MAX, 2));
    assert_string_equal(zc_arena_strdup(&a, "name"), "name");
    assert_string_equal(zc_arena_strndup(&a, "name", 2), "na");
    const int numbers[] = {4, 5, 6};
    const int *copy = zc_arena_dup(&a, numbers, 3, sizeof numbers[0]);
    assert_memory_equal(copy, numbers, sizeof numbers);
    zc_arena_fini(&a);
    assert_null(a.blocks);
}

/* Small and large requests; every byte is zero on arrival and written on departure. */
static void fill_arena(zc_arena *arena)
{
    static const size_t sizes[] = {40, 5000, 9000, 100, 16000, 16384, 7, 40000, 4000, 4000, 16384};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < ZC_COUNTOF(sizes); i++) {
            unsigned char *p = zc_arena_alloc(arena, sizes[i], 1);
            assert_non_null(p);
            for (size_t b = 0; b < sizes[i]; b++) assert_int_equal(p[b], 0);
            memset(p, 0xA5, sizes[i]);
        }
    }
}

static void test_arena_reset(void **state)
{
    (void)state;
    zc_arena arena;
    zc_arena_init(&arena, 0);
    zc_arena_reset(&arena);
    fill_arena(&arena);
    const size_t held = arena.held, used = arena.used;
    assert_true(held > used);
    for (int i = 0; i < 10; i++) {
        zc_arena_reset(&arena);
        assert_int_equal(arena.used, 0);
        fill_arena(&arena);
        assert_int_equal(arena.used, used);
        assert_int_equal(arena.held, held);
    }
    zc_arena_fini(&arena);
    assert_int_equal(arena.held, 0);
}

static void test_arena_budget(void **state)
{
    (void)state;
    zc_arena a;
    zc_arena_init(&a, 1000);
    assert_non_null(zc_arena_alloc(&a, 900, 1));
    assert_null(zc_arena_alloc(&a, 200, 1));
    assert_non_null(zc_arena_alloc(&a, 16, 1));
    assert_true(a.used <= 1000);
    zc_arena_fini(&a);
}

static void test_buf(void **state)
{
    (void)state;
    zc_buf b = {0};
    zc_buf_puts(&b, "a");
    zc_buf_printf(&b, "%d-%s", 42, "x");
    zc_buf_append(&b, "\0z", 2);
    assert_int_equal(b.len, 7);
    assert_memory_equal(b.data, "a42-x\0z", 8);
    assert_int_equal(zc_buf_grow(&b, 1000), 7);
    assert_int_equal(b.len, 1007);
    for (size_t i = 7; i <= 1007; i++) assert_int_equal(b.data[i], 0);
    assert_false(b.failed);
    zc_buf_grow(&b, SIZE_MAX - 500);
    assert_true(b.failed);
    zc_buf_puts(&b, "ignored");
    assert_int_equal(b.len, 1007);
    zc_buf_fini(&b);
    assert_null(b.data);
}

static void assert_escaped(const char *bytes, size_t n, const char *text)
{
    zc_buf b = {0};
    zc_buf_puts(&b, "");
    zc_buf_escape(&b, bytes, n);
    assert_string_equal(b.data, text);
    zc_buf_fini(&b);
}

#define ESCAPED(bytes, text) assert_escaped(bytes, sizeof(bytes) - 1, text)

static void test_escape(void **state)
{
    (void)state;
    ESCAPED("", "");
    ESCAPED("plain \\ \"", "plain \\ \"");
    ESCAPED("a\n\x1B[31m\0\x7F", "a\\x0A\\x1B[31m\\x00\\x7F");
    ESCAPED("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80", "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
    ESCAPED("\xC0\x80", "\\xC0\\x80");                   /* overlong NUL */
    ESCAPED("\xE0\x80\xAF", "\\xE0\\x80\\xAF");          /* overlong '/' */
    ESCAPED("\xED\xA0\x80", "\\xED\\xA0\\x80");          /* surrogate */
    ESCAPED("\xF4\x90\x80\x80", "\\xF4\\x90\\x80\\x80"); /* beyond U+10FFFF */
    ESCAPED("\xC2\x9B", "\\xC2\\x9B");                   /* C1 control */
    ESCAPED("\xE2\x82", "\\xE2\\x82");                   /* cut off */
    ESCAPED("\x80z\xFF", "\\x80z\\xFF");
}

static void test_vec(void **state)
{
    (void)state;
    ZC_VEC(uint64_t) v = {0};
    for (uint64_t i = 0; i < 1000; i++) assert_true(ZC_VEC_PUSH(&v, i * i));
    assert_int_equal(v.len, 1000);
    for (uint64_t i = 0; i < 1000; i++) assert_int_equal(v.data[i], i * i);
    const size_t cap = v.cap;
    assert_false(zc_vec_reserve((void **)&v.data, &v.cap, SIZE_MAX / 4, sizeof *v.data));
    assert_int_equal(v.cap, cap);
    assert_int_equal(v.data[999], 999 * 999);
    ZC_VEC_FINI(&v);
    assert_null(v.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checked),     cmocka_unit_test(test_range),
        cmocka_unit_test(test_alloc),       cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_reset), cmocka_unit_test(test_arena_budget),
        cmocka_unit_test(test_buf),         cmocka_unit_test(test_escape),
        cmocka_unit_test(test_vec),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
