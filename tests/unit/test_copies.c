#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "driver/copies.h"

enum { ROWS = 256, COLUMNS = 200, PADDED = 208 };

static uint16_t rows[ROWS][COLUMNS], turned[COLUMNS][ROWS], padded[ROWS][PADDED],
    other[ROWS][COLUMNS];

enum { BYTE_ROWS = 2 * ROWS };
static int8_t small[BYTE_ROWS][COLUMNS], small_turned[COLUMNS][BYTE_ROWS],
    small_other[BYTE_ROWS][COLUMNS];

static zc_pvalue constant(const char *name, const void *data, size_t bytes)
{
    return (zc_pvalue){
        .kind = ZC_P_CONST, .name = name, .dtype = ZC_F16, .data = data, .bytes = bytes};
}

static void assert_told(zc_pvalue a, zc_pvalue b, const char *want)
{
    zc_pvalue values[] = {{.kind = ZC_P_ABSENT}, a, {.kind = ZC_P_INPUT, .dtype = ZC_F16}, b};
    const zc_program p = {.nvalues = 4, .values = values};
    zc_diag *diag = zc_diag_create();
    assert_int_equal(zc_tell_copies(&p, diag), ZC_OK);
    if (want)
        assert_non_null(strstr(zc_diag_text(diag, 0), want));
    else
        assert_int_equal(zc_diag_count(diag), 0);
    zc_diag_destroy(&diag);
}

static void test_copies(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int r = 0; r < ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            random = random * 1664525u + 1013904223u;
            rows[r][c] = turned[c][r] = padded[r][c] = other[r][c] = (uint16_t)(random >> 16);
        }
    other[7][9] ^= 1;
    const zc_pvalue w = constant("w", rows, sizeof rows);
    assert_told(w, constant("wt", turned, sizeof turned), "elements of w in another order");
    assert_told(w, constant("wp", padded, sizeof padded), "elements of w in another order");
    assert_told(w, constant("o", other, sizeof other), NULL);
    assert_told(w, constant("same", rows, sizeof rows), NULL);
    assert_told(w, constant("small", turned, 4096), NULL);
    zc_pvalue brain = constant("type", turned, sizeof turned);
    brain.dtype = ZC_BF16;
    assert_told(w, brain, NULL);
}

/* As the rules that turn weights of byte products leave one that another step reads, too. */
static void test_copies_of_bytes(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int r = 0; r < BYTE_ROWS; r++)
        for (int c = 0; c < COLUMNS; c++) {
            random = random * 1664525u + 1013904223u;
            small[r][c] = small_turned[c][r] = small_other[r][c] = (int8_t)(random >> 24);
        }
    small_other[7][9] ^= 1;
    zc_pvalue w = constant("w", small, sizeof small);
    zc_pvalue wt = constant("wt", small_turned, sizeof small_turned);
    zc_pvalue o = constant("o", small_other, sizeof small_other);
    w.dtype = wt.dtype = o.dtype = ZC_I8;
    assert_told(w, wt, "elements of w in another order");
    assert_told(w, o, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_copies_of_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
