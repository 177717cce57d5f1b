#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "op/half.h"
#include "op/tensor.h"

static void test_table(void **state)
{
    (void)state;
    int valid = 0;
    for (int i = -5; i < 300; i++) {
        if (!zc_dtype_valid(i)) continue;
        const zc_dtype d = (zc_dtype)i;
        valid++;
        assert_int_equal(zc_dtype_parse(zc_dtype_name(d)), d);
        assert_int_not_equal(zc_dtype_bits(d), 0);
        assert_int_not_equal(zc_dtype_class(d), ZC_CLASS_NONE);
    }
    assert_int_equal(valid, 25);
    assert_false(zc_dtype_valid(8)); /* strings are no tensor elements here */
    assert_int_equal(zc_dtype_parse("f33"), ZC_NONE);
    assert_int_equal(zc_dtype_parse("none"), ZC_NONE);
    assert_int_equal(zc_dtype_bits((zc_dtype)1000), 0);
    assert_string_equal(zc_dtype_name(ZC_NONE), "none");
    assert_true(zc_dtype_is_float(ZC_F8E8M0));
    assert_true(zc_dtype_is_int(ZC_U4));
    assert_false(zc_dtype_is_int(ZC_BOOL));
}

static void test_bytes(void **state)
{
    (void)state;
    size_t n = 99;
    assert_true(zc_dtype_bytes(ZC_F32, 3, &n) && n == 12);
    assert_true(zc_dtype_bytes(ZC_C128, 2, &n) && n == 32);
    assert_true(zc_dtype_bytes(ZC_I4, 5, &n) && n == 3);
    assert_true(zc_dtype_bytes(ZC_U2, 5, &n) && n == 2);
    assert_true(zc_dtype_bytes(ZC_U2, 0, &n) && n == 0);
    assert_true(zc_dtype_bytes(ZC_I2, INT64_MAX, &n) && n == (size_t)1 << 61);
    assert_false(zc_dtype_bytes(ZC_F64, INT64_MAX, &n));
    assert_false(zc_dtype_bytes(ZC_U8, -1, &n));
    assert_false(zc_dtype_bytes(ZC_NONE, 1, &n));
}

/* A narrow float type, described anew. */
typedef struct format {
    zc_dtype dtype;
    int exp_bits, man_bits, bias;
    int has_inf, nan_is_negative_zero, no_nan;
} format;

static const format formats[] = {
    {ZC_F16, 5, 10, 15, 1, 0, 0},      {ZC_BF16, 8, 7, 127, 1, 0, 0},
    {ZC_F8E4M3FN, 4, 3, 7, 0, 0, 0},   {ZC_F8E5M2, 5, 2, 15, 1, 0, 0},
    {ZC_F8E4M3FNUZ, 4, 3, 8, 0, 1, 0}, {ZC_F8E5M2FNUZ, 5, 2, 16, 0, 1, 0},
    {ZC_F4E2M1, 2, 1, 1, 0, 0, 1},
};

static double expected_value(const format *f, unsigned code)
{
    const int width = f->exp_bits + f->man_bits;
    const double sign = code >> width ? -1 : 1;
    const int e = (int)(code >> f->man_bits) & ((1 << f->exp_bits) - 1);
    const int m = (int)code & ((1 << f->man_bits) - 1);
    const int top = (1 << f->exp_bits) - 1;
    if (f->nan_is_negative_zero && code == 1u << width) return NAN;
    if (f->has_inf && e == top) return m ? NAN : sign * INFINITY;
    if (!f->has_inf && !f->nan_is_negative_zero && !f->no_nan && e == top &&
        m == (1 << f->man_bits) - 1)
        return NAN;
    if (e == 0) return sign * ldexp(m, 1 - f->bias - f->man_bits);
    return sign * ldexp(m + (1 << f->man_bits), e - f->bias - f->man_bits);
}

static void assert_same_number(double a, double b)
{
    if (isnan(a) && isnan(b)) return;
    assert_true(a == b && signbit(a) == signbit(b));
}

static void test_decode_every_code(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(formats); i++) {
        const format *f = &formats[i];
        for (unsigned code = 0; code < 2u << (f->exp_bits + f->man_bits); code++) {
            uint64_t bits = code; /* of the widest type */
            const double want = expected_value(f, code), got = zc_load_f64(f->dtype, &bits, 0);
            assert_same_number(got, want);
            bits = 0;
            zc_store_f64(f->dtype, &bits, 0, got);
            if (isnan(want))
                assert_true(isnan(zc_load_f64(f->dtype, &bits, 0)));
            else
                assert_int_equal(bits, code);
        }
    }
    for (unsigned code = 0; code < 256; code++) {
        const float got = zc_f8_to_f32(ZC_F8E8M0, (uint8_t)code);
        assert_same_number(got, code == 255 ? NAN : ldexp(1, (int)code - 127));
    }
}

/* Every midpoint of neighbours goes to the even code, and every number beside it to the nearer. */
static void test_round_to_even(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(formats); i++) {
        const format *f = &formats[i];
        for (unsigned code = 0; code + 1 < 1u << (f->exp_bits + f->man_bits); code++) {
            const double lo = expected_value(f, code), hi = expected_value(f, code + 1);
            if (!isfinite(lo) || !isfinite(hi)) continue;
            const double mid = (lo + hi) / 2;
            const double in[] = {mid, nextafter(mid, 0), nextafter(mid, INFINITY)};
            const double want[] = {code & 1 ? hi : lo, lo, hi};
            for (int j = 0; j < 3; j++) {
                uint64_t bits = 0;
                zc_store_f64(f->dtype, &bits, 0, in[j]);
                assert_same_number(zc_load_f64(f->dtype, &bits, 0), want[j]);
                zc_store_f64(f->dtype, &bits, 0, -in[j]);
                const bool no_sign = f->nan_is_negative_zero && want[j] == 0;
                assert_same_number(zc_load_f64(f->dtype, &bits, 0), no_sign ? 0 : -want[j]);
            }
        }
    }
}

static void assert_f8(zc_dtype dtype, float in, bool saturate, double want)
{
    assert_same_number(zc_f8_to_f32(dtype, zc_f32_to_f8(dtype, in, saturate)), want);
}

static void test_overflow(void **state)
{
    (void)state;
    static const struct {
        zc_dtype dtype;
        float max, below_tie, above_tie;
        double beyond; /* without saturation */
    } rows[] = {
        {ZC_F8E4M3FN, 448, 464, 465, NAN},
        {ZC_F8E4M3FNUZ, 240, 247.9f, 248, NAN},
        {ZC_F8E5M2, 57344, 61439, 61440, INFINITY},
        {ZC_F8E5M2FNUZ, 57344, 61439, 61440, NAN},
        {ZC_F4E2M1, 6, 6.9f, 7, 6},
    };
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        const zc_dtype d = rows[i].dtype;
        for (int s = 0; s < 2; s++) assert_f8(d, rows[i].below_tie, s, rows[i].max);
        assert_f8(d, rows[i].above_tie, true, rows[i].max);
        assert_f8(d, -rows[i].above_tie, true, -rows[i].max);
        assert_f8(d, INFINITY, true, rows[i].max);
        assert_f8(d, -INFINITY, true, -rows[i].max);
        assert_f8(d, rows[i].above_tie, false, rows[i].beyond);
        assert_f8(d, INFINITY, false, rows[i].beyond);
        assert_f8(d, NAN, true, d == ZC_F4E2M1 ? 6 : NAN);
    }
    assert_true(isinf(zc_f16_to_f32(zc_f32_to_f16(65520))));
    assert_same_number(zc_f16_to_f32(zc_f32_to_f16(65519.996f)), 65504);
    assert_int_equal(zc_f32_to_f16(-INFINITY), 0xFC00);
    assert_int_equal(zc_f32_to_f16(0x1p-25f), 0);
    assert_int_equal(zc_f32_to_f16(0x1.8p-25f), 1);
    assert_true(isinf(zc_bf16_to_f32(zc_f32_to_bf16(3.4e38f))));
    assert_int_equal(zc_f32_to_bf16(1.0f), 0x3F80);
    assert_int_equal(zc_f32_to_bf16(-0.0f), 0x8000);
    assert_int_equal(zc_f32_to_bf16(0x1p-133f), 1);
    assert_true(isnan(zc_bf16_to_f32(zc_f32_to_bf16(NAN))));
}

/* The conversions without branches, as those of doubles. */
static void test_short_floats(void **state)
{
    (void)state;
    for (uint64_t bits = 0; bits >> 32 == 0; bits += 509) {
        const float f = zc_f32_of_bits((uint32_t)bits);
        uint16_t half, brain;
        zc_store_f64(ZC_F16, &half, 0, (double)f);
        zc_store_f64(ZC_BF16, &brain, 0, (double)f);
        if (zc_f32_to_f16(f) != half || zc_f32_to_bf16(f) != brain)
            fail_msg("0x%08x: f16 0x%04x, need 0x%04x; bf16 0x%04x, need 0x%04x", (unsigned)bits,
                     zc_f32_to_f16(f), half, zc_f32_to_bf16(f), brain);
    }
}

static void test_rows_of_floats(zc_dtype t, const float *x, int64_t n)
{
    enum { MOST = 64 };
    uint16_t y[MOST];
    zc_halves_of_floats(t, x, y, n);
    for (int64_t i = 0; i < n; i++) {
        const uint16_t need = t == ZC_F16 ? zc_f32_to_f16(x[i]) : zc_f32_to_bf16(x[i]);
        if (y[i] != need)
            fail_msg("%s of 0x%08x: got 0x%04x, need 0x%04x", zc_dtype_name(t),
                     (unsigned)zc_f32_bits(x[i]), y[i], need);
    }
}

/* Rows as their elements, whatever the machine does at once: numbers alone, and with NaN. */
static void test_rows(void **state)
{
    enum { ROW = 29, HALVES = 1 << 16 };
    static uint16_t halves[HALVES];
    static float floats[HALVES];
    static const zc_dtype types[] = {ZC_F16, ZC_BF16};
    (void)state;
    for (size_t t = 0; t < ZC_COUNTOF(types); t++) {
        float row[ROW];
        uint64_t bits = 0;
        while (bits >> 32 == 0) {
            for (int i = 0; i < ROW; i++, bits += 1021) row[i] = zc_f32_of_bits((uint32_t)bits);
            test_rows_of_floats(types[t], row, ROW);
        }
        for (uint32_t i = 0; i < HALVES; i++) halves[i] = (uint16_t)(i * 40503);
        zc_floats_of_halves(types[t], halves, floats, HALVES - 3);
        for (uint32_t i = 0; i < HALVES - 3; i++) {
            const float need =
                types[t] == ZC_F16 ? zc_f16_to_f32(halves[i]) : zc_bf16_to_f32(halves[i]);
            assert_int_equal(zc_f32_bits(floats[i]), zc_f32_bits(need));
        }
    }
}

static void test_e8m0(void **state)
{
    (void)state;
    static const struct {
        float in;
        unsigned up, down, nearest;
    } rows[] = {{1, 127, 127, 127},        {1.1f, 128, 127, 127},     {1.5f, 128, 127, 128},
                {1.49f, 128, 127, 127},    {-3, 129, 128, 129},       {0x1p-127f, 0, 0, 0},
                {0x1p127f, 254, 254, 254}, {3.4e38f, 254, 254, 254},  {0, 0, 0, 0},
                {1e-45f, 0, 0, 0},         {INFINITY, 254, 254, 254}, {NAN, 255, 255, 255}};
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        assert_int_equal(zc_f32_to_f8e8m0(rows[i].in, ZC_ROUND_UP, true), rows[i].up);
        assert_int_equal(zc_f32_to_f8(ZC_F8E8M0, rows[i].in, true), rows[i].up);
        assert_int_equal(zc_f32_to_f8e8m0(rows[i].in, ZC_ROUND_DOWN, true), rows[i].down);
        assert_int_equal(zc_f32_to_f8e8m0(rows[i].in, ZC_ROUND_NEAREST, true), rows[i].nearest);
    }
    const float beyond[] = {0, 1e-45f, INFINITY, 3.4e38f};
    for (size_t i = 0; i < ZC_COUNTOF(beyond); i++)
        assert_int_equal(zc_f32_to_f8e8m0(beyond[i], ZC_ROUND_NEAREST, false), 255);
}

static void test_packing(void **state)
{
    (void)state;
    uint8_t p[4] = {0, 0, 0, 0};
    for (int i = 0; i < 5; i++) zc_store_i64(ZC_U4, p, i, i + 1);
    assert_memory_equal(p, "\x21\x43\x05\x00", 4);
    zc_store_i64(ZC_U4, p, 1, 0x1F); /* wraps, and keeps its neighbours */
    assert_memory_equal(p, "\xF1\x43\x05\x00", 4);
    assert_int_equal(zc_load_i64(ZC_U4, p, 1), 15);
    assert_int_equal(zc_load_i64(ZC_I4, p, 1), -1);
    memset(p, 0, sizeof p);
    for (int i = 0; i < 6; i++) zc_store_i64(ZC_I2, p, i, i - 2);
    assert_memory_equal(p, "\x4E\x0E\x00\x00", 4);
    for (int i = 0; i < 6; i++) assert_int_equal(zc_load_i64(ZC_I2, p, i), i < 4 ? i - 2 : i - 6);
    assert_int_equal(zc_load_i64(ZC_U2, p, 0), 2);
    memset(p, 0, sizeof p);
    zc_store_f64(ZC_F4E2M1, p, 0, 1.5);
    zc_store_f64(ZC_F4E2M1, p, 1, -6);
    assert_int_equal(p[0], 0xF3);
}

static void test_integers(void **state)
{
    (void)state;
    static const struct {
        zc_dtype dtype;
        int64_t min, max;
    } rows[] = {{ZC_I2, -2, 1},
                {ZC_U2, 0, 3},
                {ZC_I4, -8, 7},
                {ZC_U4, 0, 15},
                {ZC_I8, -128, 127},
                {ZC_U8, 0, 255},
                {ZC_I16, -32768, 32767},
                {ZC_U16, 0, 65535},
                {ZC_I32, INT32_MIN, INT32_MAX},
                {ZC_U32, 0, UINT32_MAX},
                {ZC_I64, INT64_MIN, INT64_MAX}};
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        const zc_dtype d = rows[i].dtype;
        const int64_t min = rows[i].min, max = rows[i].max;
        uint64_t cell = 0;
        zc_store_i64(d, &cell, 0, min);
        assert_int_equal(zc_load_i64(d, &cell, 0), min);
        zc_store_i64(d, &cell, 0, max);
        assert_int_equal(zc_load_i64(d, &cell, 0), max);
        zc_store_f64(d, &cell, 0, 1e30);
        assert_int_equal(zc_load_i64(d, &cell, 0), max);
        zc_store_f64(d, &cell, 0, -INFINITY);
        assert_int_equal(zc_load_i64(d, &cell, 0), min);
        zc_store_f64(d, &cell, 0, 1.99);
        assert_int_equal(zc_load_i64(d, &cell, 0), 1);
        zc_store_f64(d, &cell, 0, -1.99);
        assert_int_equal(zc_load_i64(d, &cell, 0), min < 0 ? -1 : 0);
        zc_store_f64(d, &cell, 0, NAN);
        assert_int_equal(zc_load_i64(d, &cell, 0), 0);
        if (d == ZC_I64) continue;
        zc_store_i64(d, &cell, 0, max + 1); /* wraps */
        assert_int_equal(zc_load_i64(d, &cell, 0), min);
    }
}

static void test_mixed(void **state)
{
    (void)state;
    uint64_t u = UINT64_MAX;
    assert_true(zc_load_f64(ZC_U64, &u, 0) == 0x1p64);
    assert_int_equal(zc_load_i64(ZC_U64, &u, 0), -1);
    zc_store_f64(ZC_U64, &u, 0, 0x1p63);
    assert_true(u == 1ull << 63);
    zc_store_f64(ZC_U64, &u, 0, 0x1p64);
    assert_true(u == UINT64_MAX);
    uint8_t b = 0;
    zc_store_f64(ZC_BOOL, &b, 0, 0.25);
    assert_int_equal(b, 1);
    zc_store_f64(ZC_BOOL, &b, 0, -0.0);
    assert_int_equal(b, 0);
    zc_store_i64(ZC_BOOL, &b, 0, 256);
    assert_int_equal(b, 1);
    b = 7; /* a bool from outside counts as true */
    assert_int_equal(zc_load_i64(ZC_BOOL, &b, 0), 1);
    assert_true(zc_load_f64(ZC_BOOL, &b, 0) == 1);
    const float f[2] = {-3e20f, NAN};
    assert_int_equal(zc_load_i64(ZC_F32, f, 0), INT64_MIN);
    assert_int_equal(zc_load_i64(ZC_F32, f, 1), 0);
    /* one rounding only, straight from the integer */
    float g;
    zc_store_i64(ZC_F32, &g, 0, (1ll << 60) + (1ll << 36) + 1);
    assert_true(g == 0x1.000002p60f);
    zc_store_i64(ZC_F32, &g, 0, -((1ll << 60) + (1ll << 36)));
    assert_true(g == -0x1p60f);
    zc_store_i64(ZC_F32, &g, 0, INT64_MIN);
    assert_true(g == -0x1p63f);
    zc_store_f64(ZC_F32, &g, 0, 1e300);
    assert_true(isinf(g));
    double c[2] = {1, 2}; /* complex elements are left alone */
    zc_store_f64(ZC_C128, c, 0, 5);
    assert_true(c[0] == 1 && zc_load_f64(ZC_C128, c, 0) == 0);
    char odd[9] = {0}; /* no alignment is needed */
    zc_store_f64(ZC_F64, odd + 1, 0, 2.5);
    assert_true(zc_load_f64(ZC_F64, odd + 1, 0) == 2.5);
}

static void test_tensor(void **state)
{
    (void)state;
    zc_tensor t = {.dtype = ZC_F32, .rank = 2, .dims = {2, 3}};
    char text[64];
    size_t n;
    assert_string_equal(zc_tensor_type_text(&t, text, sizeof text), "f32[2,3]");
    assert_string_equal(zc_tensor_type_text(&t, text, 6), "f32[2");
    assert_int_equal(zc_tensor_numel(&t), 6);
    assert_true(zc_tensor_bytes(&t, &n) && n == 24);
    assert_true(zc_present(&t));
    t.dims[1] = -1;
    assert_int_equal(zc_tensor_numel(&t), -1);
    assert_false(zc_tensor_bytes(&t, &n));
    t.rank = 0;
    t.dtype = ZC_NONE;
    assert_int_equal(zc_tensor_numel(&t), 1);
    assert_false(zc_present(&t) || zc_present(NULL));
    assert_string_equal(zc_tensor_type_text(&t, text, sizeof text), "none[]");
    const int64_t big = 1ll << 40, dims[] = {big, big, 0, 3};
    assert_int_equal(zc_numel(4, dims), 0);
    assert_int_equal(zc_dims_span(dims, 0, 2), -1);
    assert_int_equal(zc_dims_span(dims, 3, 4), 3);
    assert_int_equal(zc_dims_span(dims, 2, 2), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_decode_every_code),
        cmocka_unit_test(test_round_to_even),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_short_floats),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_e8m0),
        cmocka_unit_test(test_packing),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_tensor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
