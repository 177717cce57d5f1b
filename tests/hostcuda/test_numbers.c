/* Conversions, bit functions and byte products of ptx.cuh on the host. */
#include "fixture.h"

#include <math.h>
#include <string.h>

/* v rounded to nearest even with `bits` of significand, exponents from `low` on; above max: inf. */
static double rounded(double v, int bits, int low, double max)
{
    int e;
    if (v == 0 || isnan(v) || isinf(v)) return v;
    frexp(v, &e);
    int unit = (e - 1 > low ? e - 1 : low) - (bits - 1);
    double r = ldexp(nearbyint(ldexp(v, -unit)), unit);
    return fabs(r) > max ? copysign(INFINITY, v) : r;
}

static double half_value(unsigned h, int exponent_bits)
{
    int fraction_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
    int e = (int)(h >> fraction_bits) & ((1 << exponent_bits) - 1);
    int f = (int)h & ((1 << fraction_bits) - 1);
    double v = e == (1 << exponent_bits) - 1 ? (f ? NAN : INFINITY)
               : e ? ldexp((1 << fraction_bits) + f, e - bias - fraction_bits)
                   : ldexp(f, 1 - bias - fraction_bits);
    return h & 0x8000 ? -v : v;
}

static bool same(double a, double b)
{
    return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b));
}

static const char to_float[] = "extern \"C\" __global__ void convert(f32 *a, f32 *b)\n"
                               "{\n"
                               "    u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                               "    a[i] = zc_f16_to_f32((u16)i);\n"
                               "    b[i] = zc_bf16_to_f32((u16)i);\n"
                               "}\n";

static void all_halves(void **state)
{
    (void)state;
    static float a[65536], b[65536];
    hc_ptr da = device_bytes(NULL, sizeof a), db = device_bytes(NULL, sizeof b);
    void *params[] = {&da, &db};
    assert_ok(launch(function_of(load_source(to_float), "convert"), 256, 256, 0, params));
    assert_ok(cuMemcpyDtoH_v2(a, da, sizeof a));
    assert_ok(cuMemcpyDtoH_v2(b, db, sizeof b));
    for (unsigned i = 0; i < 65536; i++) {
        assert_true(same(a[i], half_value(i, 5)));
        assert_true(same(b[i], half_value(i, 8)));
    }
}

static const char from_float[] =
    "extern \"C\" __global__ void convert(const f64 *x, u16 *a, u16 *b, u16 *c, u16 *d)\n"
    "{\n"
    "    u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    a[i] = zc_f64_to_f16(x[i]);\n"
    "    b[i] = zc_f64_to_bf16(x[i]);\n"
    "    c[i] = zc_f32_to_f16((f32)x[i]);\n"
    "    d[i] = zc_f32_to_bf16((f32)x[i]);\n"
    "}\n";

enum { NUMBERS = 4 * 65536 };

/* Every half, the middle to the next one, just above it, and numbers of random bits. */
static void fill_numbers(double *x)
{
    for (unsigned i = 0; i < 65536; i++) {
        int exponent_bits = i % 2 ? 5 : 8;
        double v = half_value(i, exponent_bits), next = half_value((i + 1) & 0xffff, exponent_bits);
        uint64_t bits = (uint64_t)draw() << 32 | draw();
        x[4 * i] = v;
        x[4 * i + 1] = (v + next) / 2;
        x[4 * i + 2] = (v + next) / 2 * (1 + 0x1p-50);
        memcpy(&x[4 * i + 3], &bits, sizeof bits);
        if (i % 4) x[4 * i + 3] = ldexp((double)(bits >> 11), (int)(bits % 64) - 90);
    }
}

static void check_rounding(const double *x, const uint16_t *h, int exponent_bits, bool through_f32)
{
    int bits = 16 - exponent_bits, low = exponent_bits == 5 ? -14 : -126;
    double max = exponent_bits == 5 ? 65504 : ldexp(2 - 0x1p-7, 127);
    for (unsigned i = 0; i < NUMBERS; i++) {
        double v = through_f32 ? (double)(float)x[i] : x[i];
        assert_true(same(half_value(h[i], exponent_bits), rounded(v, bits, low, max)));
        if (isnan(v)) assert_int_equal(h[i], 0x7fff);
    }
}

static void to_halves(void **state)
{
    (void)state;
    double *x = malloc(NUMBERS * sizeof *x);
    uint16_t *h = malloc(NUMBERS * sizeof *h);
    fill_numbers(x);
    hc_ptr in = device_bytes(x, NUMBERS * sizeof *x), out[4];
    for (int i = 0; i < 4; i++) out[i] = device_bytes(NULL, NUMBERS * sizeof *h);
    void *params[] = {&in, &out[0], &out[1], &out[2], &out[3]};
    assert_ok(
        launch(function_of(load_source(from_float), "convert"), NUMBERS / 256, 256, 0, params));
    for (int i = 0; i < 4; i++) {
        assert_ok(cuMemcpyDtoH_v2(h, out[i], NUMBERS * sizeof *h));
        check_rounding(x, h, i % 2 ? 8 : 5, i >= 2);
    }
    free(x);
    free(h);
}

static const char larger_text[] =
    "extern \"C\" __global__ void larger(u32 *a, u32 *b)\n"
    "{\n"
    "    u32 i = blockIdx.x * blockDim.x + threadIdx.x, x = i | i << 16, y = i * 40503u % 65536u;\n"
    "    a[i] = zc_larger_f16x2(x, y | (i ^ 0x8000u) << 16);\n"
    "    b[i] = zc_larger_bf16x2(x, y | (i ^ 0x8000u) << 16);\n"
    "}\n";

static double larger_of(double a, double b)
{
    return isnan(a) || isnan(b) ? NAN : a > b || (a == b && !signbit(a)) ? a : b;
}

/* Each with some other, and with itself of the other sign. */
static void larger_halves(void **state)
{
    (void)state;
    static uint32_t got[2][65536];
    hc_ptr da = device_bytes(NULL, sizeof got[0]), db = device_bytes(NULL, sizeof got[1]);
    void *params[] = {&da, &db};
    assert_ok(launch(function_of(load_source(larger_text), "larger"), 256, 256, 0, params));
    assert_ok(cuMemcpyDtoH_v2(got[0], da, sizeof got[0]));
    assert_ok(cuMemcpyDtoH_v2(got[1], db, sizeof got[1]));
    for (unsigned i = 0; i < 65536; i++)
        for (int k = 0; k < 2; k++) {
            int exponent = k ? 8 : 5;
            double x = half_value(i, exponent), y = half_value(i * 40503u % 65536u, exponent);
            double other = half_value(i ^ 0x8000u, exponent);
            assert_true(same(half_value(got[k][i] & 65535, exponent), larger_of(x, y)));
            assert_true(same(half_value(got[k][i] >> 16, exponent), larger_of(x, other)));
        }
}

static const char bit_text[] =
    "extern \"C\" __global__ void bits(const u64 *x, u64 *out)\n"
    "{\n"
    "    u32 i = threadIdx.x, a = (u32)x[i], b = (u32)(x[i] >> 32), c = (u32)x[63 - i];\n"
    "    u64 *o = out + 12 * i;\n"
    "    o[0] = (u64)zc_popc(a);\n"
    "    o[1] = (u64)zc_popc64(x[i]);\n"
    "    o[2] = (u64)zc_clz(a >> i % 33 % 32);\n"
    "    o[3] = (u64)zc_clz64(x[i] >> i);\n"
    "    o[4] = zc_mulhi64(x[i], x[63 - i]);\n"
    "    o[5] = (u32)zc_dp4a((i32)a, (i32)b, (i32)c);\n"
    "    o[6] = (u32)zc_dp4a_us(a, (i32)b, (i32)c);\n"
    "    o[7] = (u32)zc_dp4a_su((i32)a, b, (i32)c);\n"
    "    o[8] = zc_dp4a_uu(a, b, c);\n"
    "    o[9] = zc_bits(zc_float(a & 0x7f7fffffu));\n"
    "    o[10] = zc_bits64(zc_double(x[i] & ~(1ull << 52)));\n"
    "    o[11] = (u64)zc_clz(0u) * 100 + (u64)zc_clz64(0);\n"
    "}\n";

static uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, bool sa, bool sb)
{
    for (int i = 0; i < 4; i++) {
        int va = (int)(a >> 8 * i & 255), vb = (int)(b >> 8 * i & 255);
        if (sa && va > 127) va -= 256;
        if (sb && vb > 127) vb -= 256;
        c += (uint32_t)(va * vb);
    }
    return c;
}

static int leading(uint64_t v, int width)
{
    int n = 0;
    while (n < width && !(v >> (width - 1 - n) & 1)) n++;
    return n;
}

static int ones(uint64_t v)
{
    int n = 0;
    for (int i = 0; i < 64; i++) n += (int)(v >> i & 1);
    return n;
}

/* By halves of 32 bits. */
static uint64_t high_product(uint64_t a, uint64_t b)
{
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t middle = ah * bl + (al * bl >> 32), other = al * bh + (uint32_t)middle;
    return ah * bh + (middle >> 32) + (other >> 32);
}

static void bit_functions(void **state)
{
    (void)state;
    uint64_t x[64], o[64][12];
    for (int i = 0; i < 64; i++) x[i] = (uint64_t)draw() << 32 | draw();
    hc_ptr dx = device_bytes(x, sizeof x), dout = device_bytes(NULL, sizeof o);
    void *params[] = {&dx, &dout};
    assert_ok(launch(function_of(load_source(bit_text), "bits"), 1, 64, 0, params));
    assert_ok(cuMemcpyDtoH_v2(o, dout, sizeof o));
    for (int i = 0; i < 64; i++) {
        uint32_t a = (uint32_t)x[i], b = (uint32_t)(x[i] >> 32), c = (uint32_t)x[63 - i];
        assert_int_equal(o[i][0], ones(a));
        assert_int_equal(o[i][1], ones(x[i]));
        assert_int_equal(o[i][2], leading(a >> i % 33 % 32, 32));
        assert_int_equal(o[i][3], leading(x[i] >> i, 64));
        assert_true(o[i][4] == high_product(x[i], x[63 - i]));
        assert_int_equal(o[i][5], dp4a(a, b, c, true, true));
        assert_int_equal(o[i][6], dp4a(a, b, c, false, true));
        assert_int_equal(o[i][7], dp4a(a, b, c, true, false));
        assert_int_equal(o[i][8], dp4a(a, b, c, false, false));
        assert_int_equal(o[i][9], a & 0x7f7fffffu);
        assert_true(o[i][10] == (x[i] & ~(1ull << 52)));
        assert_int_equal(o[i][11], 3264);
    }
}

static const char quantise_text[] =
    "#include \"zc/device.cuh\"\n"
    "extern \"C\" __global__ void quantise(const f32 *x, i32 *o, f32 scale, f32 high, f32 low, i32 "
    "zero)\n"
    "{\n"
    "    const u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    o[i * 2] = (i32)zx_quantised<u8, false>(x[i], scale, high, low, zero);\n"
    "    o[i * 2 + 1] = zx_quantised<i8, false>(x[i], scale, high, low, zero);\n"
    "}\n";

enum { QUANTISED = 4096 };

/* On ties, a few floats beside them, multiples of half a quantum, and anything. */
static void fill_quantised(float scale, float *x)
{
    for (int i = 0; i < QUANTISED; i++) {
        const int at = (int)(draw() % 700) - 350;
        uint32_t bits = draw();
        x[i] = (float)((at + 0.5) * (double)scale);
        if (i % 4 == 1) x[i] = (float)at * 0.5f * scale;
        if (i % 4 == 2) memcpy(&x[i], &bits, sizeof bits);
        if (isnan(x[i])) x[i] = NAN; /* a quiet one */
        if (i % 4 != 0 || isinf(x[i])) continue;
        memcpy(&bits, &x[i], sizeof bits);
        bits += draw() % 5 - 2;
        memcpy(&x[i], &bits, sizeof bits);
    }
    x[2] = NAN, x[6] = INFINITY, x[10] = -INFINITY;
}

static int quantised(float x, float scale, int zero, int least)
{
    volatile float quotient = x / scale;
    const float n = rintf(quotient) + (float)zero;
    return isnan(n)                   ? 0
           : n < (float)least         ? least
           : n > (float)(least + 255) ? least + 255
                                      : (int)n;
}

static void quantisations(void **state)
{
    (void)state;
    static float x[QUANTISED];
    static int32_t o[QUANTISED][2];
    hc_ptr dx = device_bytes(NULL, sizeof x), dout = device_bytes(NULL, sizeof o);
    hc_function_t f = function_of(load_source(quantise_text), "quantise");
    for (int i = 0; i < 40; i++) {
        float scale = ldexpf(1 + (float)(draw() % 0x800000) * 0x1p-23f, (int)(draw() % 200) - 100);
        if (i % 4 == 0) scale = ldexpf(2 - 0x1p-23f, i - 20); /* all digits 1 */
        if (i % 4 == 1) scale = 0.001f * (float)i;
        const double reciprocal = 1 / (double)scale;
        float high = (float)reciprocal, low = (float)(reciprocal - (double)high);
        int zero = (int)(draw() % 384) - 128;
        void *params[] = {&dx, &dout, &scale, &high, &low, &zero};
        fill_quantised(scale, x);
        assert_ok(cuMemcpyHtoD_v2(dx, x, sizeof x));
        assert_ok(launch(f, QUANTISED / 256, 256, 0, params));
        assert_ok(cuMemcpyDtoH_v2(o, dout, sizeof o));
        for (int e = 0; e < QUANTISED; e++) {
            assert_int_equal(o[e][0], quantised(x[e], scale, zero, 0));
            assert_int_equal(o[e][1], quantised(x[e], scale, zero, -128));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(all_halves, device_up, device_down),
        cmocka_unit_test_setup_teardown(to_halves, device_up, device_down),
        cmocka_unit_test_setup_teardown(larger_halves, device_up, device_down),
        cmocka_unit_test_setup_teardown(bit_functions, device_up, device_down),
        cmocka_unit_test_setup_teardown(quantisations, device_up, device_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
