#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/copy.h"

/* Copies element by element, by the definition. */
static void plain_copy(const zc_copy *c, size_t size, char *to, const char *from)
{
    int64_t n = 1;
    for (int i = 0; i < c->rank; i++) n *= c->dims[i];
    for (int64_t e = 0; e < n; e++) {
        int64_t rest = e, t = 0, f = 0;
        for (int i = c->rank - 1; i >= 0; i--) {
            t += rest % c->dims[i] * c->to[i];
            f += rest % c->dims[i] * c->from[i];
            rest /= c->dims[i];
        }
        memcpy(to + t * (int64_t)size, from + f * (int64_t)size, size);
    }
}

/* Runs the copy between two buffers of n elements; what lies outside must stay as it is. The
 * source's first element is `base`. */
static void check(const zc_copy *c, size_t size, int64_t n, int64_t base)
{
    size_t bytes = (size_t)n * size;
    char *from = malloc(bytes), *to = malloc(bytes), *want = malloc(bytes);
    zc_kctx k = {0};
    assert_true(from && to && want);
    for (size_t i = 0; i < bytes; i++) from[i] = (char)(i * 7 + i / 251);
    memset(to, 0x5a, bytes);
    memset(want, 0x5a, bytes);
    zc_copy_run(&k, c, size, to, from + base * (int64_t)size);
    plain_copy(c, size, want, from + base * (int64_t)size);
    assert_memory_equal(to, want, bytes);
    free(from);
    free(to);
    free(want);
}

static const size_t sizes[] = {1, 2, 4, 8, 16, 12};

static void transposes(void **state)
{
    (void)state;
    static const int64_t shapes[][3] = {{1, 64, 64},  {2, 16, 16},  {3, 17, 33}, {1, 130, 3},
                                        {1, 3, 300},  {2, 129, 66}, {1, 1, 9},   {5, 4, 4},
                                        {1, 512, 31}, {1, 15, 520}, {7, 2, 58}};
    for (size_t i = 0; i < ZC_COUNTOF(shapes); i++) {
        for (size_t s = 0; s < ZC_COUNTOF(sizes); s++) {
            const int64_t *d = shapes[i];
            zc_copy c = {0};
            zc_copy_axis(&c, d[0], d[1] * d[2], d[1] * d[2]);
            zc_copy_axis(&c, d[2], d[1], 1);
            zc_copy_axis(&c, d[1], 1, d[2]);
            check(&c, sizes[s], d[0] * d[1] * d[2], 0);
        }
    }
}

static void runs(void **state)
{
    (void)state;
    static const int64_t inner[] = {1, 3, 64, 5000};
    for (size_t i = 0; i < ZC_COUNTOF(inner); i++) {
        for (size_t s = 0; s < ZC_COUNTOF(sizes); s++) {
            int64_t n = inner[i];
            zc_copy swap = {0}, part = {0};
            zc_copy_axis(&swap, 3, 2 * n, n);
            zc_copy_axis(&swap, 2, n, 3 * n);
            zc_copy_axis(&swap, n, 1, 1);
            check(&swap, sizes[s], 6 * n, 0);
            zc_copy_axis(&part, 3, 2 * n, 2 * n); /* every other run */
            zc_copy_axis(&part, n, 1, 1);
            check(&part, sizes[s], 6 * n, n);
        }
    }
}

static void repeats_and_reversals(void **state)
{
    (void)state;
    for (size_t s = 0; s < ZC_COUNTOF(sizes); s++) {
        zc_copy fill = {0}, row = {0}, back = {0}, step = {0};
        zc_copy_axis(&fill, 10007, 1, 0);
        check(&fill, sizes[s], 10007, 3);
        zc_copy_axis(&row, 7, 5, 0);
        zc_copy_axis(&row, 5, 1, 1);
        check(&row, sizes[s], 35, 0);
        zc_copy_axis(&back, 4, 9, 9);
        zc_copy_axis(&back, 9, 1, -1);
        check(&back, sizes[s], 36, 8);
        zc_copy_axis(&step, 4, 5, 9);
        zc_copy_axis(&step, 5, 1, 2);
        check(&step, sizes[s], 36, 0);
    }
}

static void empty_and_scalar(void **state)
{
    (void)state;
    zc_copy none = {0}, scalar = {0};
    zc_kctx k = {0};
    zc_copy_axis(&none, 3, 0, 0);
    zc_copy_axis(&none, 0, 1, 1);
    zc_copy_run(&k, &none, 4, NULL, NULL);
    check(&scalar, 4, 1, 0);
}

static void gather(void **state)
{
    (void)state;
    static const int64_t map[] = {2, 0, 2, 1};
    for (size_t s = 0; s < ZC_COUNTOF(sizes); s++) {
        char from[3 * 16], to[4 * 16];
        for (size_t i = 0; i < sizeof from; i++) from[i] = (char)i;
        zc_copy_gather(sizes[s], 4, to, from, map);
        for (size_t i = 0; i < 4; i++)
            assert_memory_equal(to + i * sizes[s], from + (size_t)map[i] * sizes[s], sizes[s]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transposes),
        cmocka_unit_test(runs),
        cmocka_unit_test(repeats_and_reversals),
        cmocka_unit_test(empty_and_scalar),
        cmocka_unit_test(gather),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
