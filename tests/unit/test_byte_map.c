/* Functions of bytes as sums and tables, and pointwise steps that are such: the bytes that
 * operation by operation gives, for all operands that there are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/byte_map.h"
#include "cpu/kernel.h"
#include "support/expect.h"

enum { CODES = 256, PAIRS = CODES * CODES };

static const zc_dtype u8u8[] = {ZC_U8, ZC_U8}, i8u8[] = {ZC_I8, ZC_U8}, i8i8[] = {ZC_I8, ZC_I8};

/* All operands: x counts each 256 times where there are two. */
static void list_bytes(int operands, uint8_t *x, uint8_t *y)
{
    for (int i = 0; i < PAIRS; i++) {
        y[i] = (uint8_t)i;
        x[i] = (uint8_t)(operands == 2 ? i / CODES : i);
    }
}

/* ---- maps ---- */

/* In f32, from the least byte on. */
static float residual(float x, float y)
{
    return rintf(((x - 115) * 0.018949f + (y - 3) * 0.030312f) / 0.028423f);
}

static float difference(float x, float y)
{
    return rintf(((y + 7) * 0.11f - (x - 20) * 0.07f) / 0.13f) + -9 + 128;
}

static float product(float x, float y)
{
    return rintf(x * y / 200);
}

static float steeper(float x, float y)
{
    (void)y;
    return rintf((x - 3) * 0.26f / 0.131f) + 4 + 128;
}

typedef struct map_case {
    const char *text;
    const zc_dtype *in;
    int operands;
    bool is_sum;
    float (*is)(float x, float y);
} map_case;

static float real_of(zc_dtype dtype, uint8_t byte)
{
    return dtype == ZC_I8 ? (float)(int8_t)byte : (float)byte;
}

static void run_case(void *arg, const uint8_t *x, const uint8_t *y, int64_t n, uint8_t *to)
{
    const map_case *c = arg;
    const int flip = c->text[0] == 'i' ? 0x80 : 0;
    for (int64_t i = 0; i < n; i++) {
        const float v = c->is(real_of(c->in[0], x[i]), real_of(c->in[1], y[i]));
        to[i] = (uint8_t)((v < 0 ? 0 : v > 255 ? 255 : (int)v) ^ flip);
    }
}

static zc_byte_map *map_of(map_case *c)
{
    zc_expr *e = malloc(sizeof *e);
    zc_affine_line line;
    assert_non_null(e);
    assert_int_equal(zc_expr_parse(c->text, c->in, c->operands, NULL, 0, e, "node", NULL), ZC_OK);
    const bool is_line = zc_affine_line_of(e, e->result[0], &line);
    free(e);
    zc_byte_map *m =
        zc_byte_map_new(c->operands, run_case, c, is_line ? &line : NULL, c->text[0] == 'i');
    assert_non_null(m);
    return m;
}

static void test_maps(void **state)
{
    (void)state;
    static map_case cases[] = {
        {"u8(round(((f32(x0) - 115) * 0.018949 + (f32(x1) - 3) * 0.030312) / 0.028423))", u8u8, 2,
         true, residual},
        {"i8(round(((f32(x1) + 7) * 0.11 - (f32(x0) - 20) * 0.07) / 0.13) + -9)", i8u8, 2, true,
         difference},
        {"i8(round((f32(x0) - 3) * 0.26 / 0.131) + 4)", i8i8, 1, true, steeper},
        {"u8(round(f32(x0) * f32(x1) / 200))", i8i8, 2, false, product},
    };
    static uint8_t x[PAIRS], y[PAIRS], is[PAIRS], made[PAIRS];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        map_case *c = &cases[i];
        zc_byte_map *m = map_of(c);
        assert_int_equal(zc_byte_map_bytes(m) < CODES, c->is_sum);
        list_bytes(c->operands, x, y);
        run_case(c, x, y, PAIRS, is);
        zc_byte_map_run(m, x, y, PAIRS, made);
        assert_memory_equal(made, is, PAIRS);
        /* Parts of vectors, in place of an operand; what is behind them stays. */
        for (int64_t n = 0; n < 70; n++) {
            memcpy(made, x, PAIRS);
            zc_byte_map_run(m, made + 1000 + n, y + 1000 + n, n, made + 1000 + n);
            assert_memory_equal(made + 1000 + n, is + 1000 + n, (size_t)n);
            memcpy(made + 1000 + n, x + 1000 + n, (size_t)n);
            assert_memory_equal(made, x, PAIRS);
        }
        free(m);
    }
}

/* ---- steps ---- */

/* With a state a step may be a map; without one it is blocks. */
static void run_step(const char *text, const zc_dtype *in, int operands, uint8_t *x, uint8_t *y,
                     zc_dtype to, zc_kstate *kept, uint8_t *made)
{
    const zc_attrs_Pointwise attrs = {.expr = text, .set = 1};
    const zc_tensor t[] = {{.dtype = in[0], .rank = 2, .dims = {CODES, CODES}, .data = x},
                           {.dtype = in[1], .rank = 2, .dims = {CODES, CODES}, .data = y}};
    zc_tensor out = {.dtype = to, .rank = 2, .dims = {CODES, CODES}, .data = made};
    zc_scratch scratch = {0};
    zc_diag *diag = zc_diag_create();
    zc_kctx k = {.op = ZC_OP_Pointwise,
                 .info = zc_op_get(ZC_OP_Pointwise),
                 .attrs = &attrs,
                 .nin = operands,
                 .in = t,
                 .nout = 1,
                 .out = &out,
                 .scratch = &scratch,
                 .state = kept,
                 .subject = "node",
                 .diag = diag};
    expect_ok(diag, zc_kernel_run(&k, false));
    zc_scratch_fini(&scratch);
    zc_diag_destroy(&diag);
}

static void compare(const char *text, const zc_dtype *in, int operands)
{
    static uint8_t x[PAIRS], y[PAIRS], is[PAIRS], made[PAIRS];
    const zc_dtype to = text[0] == 'i' ? ZC_I8 : ZC_U8;
    zc_kstate kept = {0};
    list_bytes(operands, x, y);
    run_step(text, in, operands, x, y, to, NULL, is);
    for (int run = 0; run < 2; run++) {
        memset(made, 0, sizeof made);
        run_step(text, in, operands, x, y, to, &kept, made);
        assert_non_null(kept.p);
        if (memcmp(made, is, PAIRS) != 0) fail_msg("%s: run %d differs", text, run);
    }
    kept.destroy(kept.p);
}

static void test_steps(void **state)
{
    (void)state;
    static const char *const forms[] = {
        "u8(round(((f32(x0) - %d) * %.9g + (f32(x1) - %d) * %.9g) / %.9g) + 0)",
        "i8(round(((f32(x0) - %d) * %.9g - (f32(x1) - %d) * %.9g) / %.9g) + -3)",
        "u8(round(max((f32(x0) - %d) * %.9g + (f32(x1) - %d) * %.9g, 0) / %.9g))",
        "u8(round((f32(x0) - %d) * %.9g * sigmoid((f32(x1) - %d) * %.9g) / %.9g) + 7)",
    };
    static const zc_dtype *const types[] = {u8u8, i8u8, i8i8};
    static const double scales[][3] = {{0.0548991747, 0.0293597542, 0.026768988},
                                       {0.026768988, 0.0209666416, 0.0293067731},
                                       {0.0184, 0.0301, 0.0282}, /* hundreds of ties: no sum */
                                       {0.5, 0.25, 1},           /* half of all */
                                       {1e-3, 7.3, 0.9},
                                       {3.1e-5, 2.9e-5, 1.7e-7}};
    char text[256];
    for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
        for (size_t f = 0; f < sizeof forms / sizeof *forms; f++)
            for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
                const int zero = types[t][0] == ZC_I8 ? -5 : 135;
                snprintf(text, sizeof text, forms[f], zero, scales[s][0], 131, scales[s][1],
                         scales[s][2]);
                compare(text, types[t], 2);
            }
    compare("u8(round(f32(x0) * sigmoid(f32(x0) * 0.02) / 0.9))", u8u8, 1);
    compare("u8(round((f32(x0) - 12) * 0.26 / 0.131) + 4)", i8i8, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
