/* Warp matrix products against plain loops, fragments laid out element by element as the PTX ISA
 * writes them; matrix loads, plain and transposed. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

/* Rows and columns of the elements of a lane's fragments (PTX ISA, "Matrix Fragments for mma"):
 * AR, AC, BR, BC, CR, CC of element i; W elements in a register. */
static const char kernel_text[] =
    "#if W == 1\n"
    "#define AR (i == 0 || i == 2 ? g : g + 8)\n"
    "#define AC (i < 2 ? t : t + 4)\n"
    "#define BR (i == 0 ? t : t + 4)\n"
    "#elif W == 2\n"
    "#define AR (i < 2 || (i >= 4 && i < 6) ? g : g + 8)\n"
    "#define AC (t * 2 + (i & 1) + (i < 4 ? 0 : 8))\n"
    "#define BR (t * 2 + (i & 1) + (i < 2 ? 0 : 8))\n"
    "#else\n"
    "#define AR (i < 4 || (i >= 8 && i < 12) ? g : g + 8)\n"
    "#define AC (t * 4 + (i & 3) + (i < 8 ? 0 : 16))\n"
    "#define BR (t * 4 + (i & 3) + (i < 4 ? 0 : 16))\n"
    "#endif\n"
    "extern \"C\" __global__ void product(const E *a, const E *b, D *d)\n"
    "{\n"
    "    const int g = (int)threadIdx.x >> 2, t = (int)threadIdx.x % 4;\n"
    "    union { u32 r[4]; E e[4 * W]; } fa;\n"
    "    union { u32 r[2]; E e[2 * W]; } fb;\n"
    "    D c[4];\n"
    "    for (int i = 0; i < 4 * W; i++) fa.e[i] = a[AR * K + AC];\n"
    "    for (int i = 0; i < 2 * W; i++) fb.e[i] = b[BR * 8 + g];\n"
    "    for (int i = 0; i < 4; i++) c[i] = d[(i < 2 ? g : g + 8) * 8 + t * 2 + (i & 1)];\n"
    "    MMA(c, fa.r, fb.r);\n"
    "    for (int i = 0; i < 4; i++) d[(i < 2 ? g : g + 8) * 8 + t * 2 + (i & 1)] = c[i];\n"
    "}\n";

static hc_function_t product_kernel(const char *element, const char *result, int width, int depth,
                                    const char *mma)
{
    char text[4096];
    snprintf(text, sizeof text,
             "typedef %s E;\ntypedef %s D;\n#define W %d\n#define K %d\n"
             "#define MMA %s\n%s",
             element, result, width, depth, mma, kernel_text);
    return function_of(load_source(text), "product");
}

/* Twice, so that d's old value counts too. */
static void run_product(hc_function_t f, const void *a, size_t na, const void *b, size_t nb,
                        void *d)
{
    hc_ptr da = device_bytes(a, na), db = device_bytes(b, nb), dd = device_bytes(d, 512);
    void *params[] = {&da, &db, &dd};
    assert_ok(launch(f, 1, 32, 0, params));
    assert_ok(launch(f, 1, 32, 0, params));
    assert_ok(cuMemcpyDtoH_v2(d, dd, 512));
}

static uint32_t bits_of(float v)
{
    uint32_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

/* Exact for multiples of 1/8 below 2. */
static uint16_t half_of(float v, bool bf16)
{
    uint32_t b = bits_of(v);
    if (bf16) return (uint16_t)(b >> 16);
    if (v == 0) return 0;
    return (uint16_t)((b >> 16 & 0x8000) | ((b >> 13 & 0x3ffff) - ((127 - 15) << 10)));
}

static void check_floats(float d[16][8], float a[16][16], float b[16][8], float start[16][8],
                         int depth)
{
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float want = start[i][j];
            for (int k = 0; k < depth; k++) want += 2 * a[i][k] * b[k][j];
            assert_true(d[i][j] == want);
        }
}

static void half_product(bool bf16, const char *mma)
{
    float a[16][16], b[16][8], d[16][8], start[16][8];
    uint16_t ha[16][16], hb[16][8];
    for (int i = 0; i < 256; i++) {
        a[i / 16][i % 16] = draw_float();
        ha[i / 16][i % 16] = half_of(a[i / 16][i % 16], bf16);
    }
    for (int i = 0; i < 128; i++) {
        b[i / 8][i % 8] = draw_float();
        hb[i / 8][i % 8] = half_of(b[i / 8][i % 8], bf16);
        d[i / 8][i % 8] = start[i / 8][i % 8] = draw_float();
    }
    run_product(product_kernel("u16", "f32", 2, 16, mma), ha, sizeof ha, hb, sizeof hb, d);
    check_floats(d, a, b, start, 16);
}

static void f16_product(void **state)
{
    (void)state;
    half_product(false, "zc_mma_m16n8k16_f16");
}

static void bf16_product(void **state)
{
    (void)state;
    half_product(true, "zc_mma_m16n8k16_bf16");
}

/* The last 13 bits of an operand are not looked at. */
static void tf32_product(void **state)
{
    (void)state;
    float a[16][16] = {{0}}, b[16][8] = {{0}}, d[16][8], start[16][8];
    uint32_t ta[16][8], tb[8][8];
    for (int i = 0; i < 128; i++) {
        a[i / 8][i % 8] = draw_float();
        ta[i / 8][i % 8] = bits_of(a[i / 8][i % 8]) | (a[i / 8][i % 8] != 0 ? draw() & 0x1fff : 0);
        d[i / 8][i % 8] = start[i / 8][i % 8] = draw_float();
    }
    for (int i = 0; i < 64; i++) {
        b[i / 8][i % 8] = draw_float();
        tb[i / 8][i % 8] = bits_of(b[i / 8][i % 8]);
    }
    run_product(product_kernel("u32", "f32", 1, 8, "zc_mma_m16n8k8_tf32"), ta, sizeof ta, tb,
                sizeof tb, d);
    check_floats(d, a, b, start, 8);
}

/* Fragments of a sparse A of which lane l stores what stands in stored[16][16], of B[32][8], and
 * words of places: see zc_mma_sparse. */
static const char sparse_text[] =
    "extern \"C\" __global__ void product(const u16 *a, const u16 *b, const u32 *places, f32 *d)\n"
    "{\n"
    "    const int g = (int)threadIdx.x >> 2, t = (int)threadIdx.x %% 4;\n"
    "    union { u32 r[4]; u16 e[8]; } fa, fb;\n"
    "    f32 c[4];\n"
    "    for (int i = 0; i < 8; i++) fa.e[i] = a[(i / 2 %% 2 * 8 + g) * 16 + t * 2 + (i & 1) + i / "
    "4 * 8];\n"
    "    for (int i = 0; i < 8; i++) fb.e[i] = b[(t * 2 + (i & 1) + i / 2 * 8) * 8 + g];\n"
    "    for (int i = 0; i < 4; i++) c[i] = d[(i < 2 ? g : g + 8) * 8 + t * 2 + (i & 1)];\n"
    "    zc_mma_sparse_m16n8k32_%s<%d>(c, fa.r, fb.r, places[threadIdx.x]);\n"
    "    for (int i = 0; i < 4; i++) d[(i < 2 ? g : g + 8) * 8 + t * 2 + (i & 1)] = c[i];\n"
    "}\n";

static hc_result run_sparse(const char *type, int second, uint16_t a[16][16], uint16_t b[32][8],
                            const uint32_t places[32], float d[16][8])
{
    char text[2048];
    snprintf(text, sizeof text, sparse_text, type, second);
    hc_function_t f = function_of(load_source(text), "product");
    hc_ptr da = device_bytes(a, 512), db = device_bytes(b, 512), dp = device_bytes(places, 128);
    hc_ptr dd = device_bytes(d, 512);
    void *params[] = {&da, &db, &dp, &dd};
    hc_result result = launch(f, 1, 32, 0, params);
    if (result == HC_CUDA_SUCCESS) assert_ok(cuMemcpyDtoH_v2(d, dd, 512));
    return result;
}

/* Of each four neighbours any two are stored; where the others stand B has NaN in column 7, of
 * which row 3 alone has a sum that is a number. Words of lanes that SECOND does not name are no
 * places, and nobody reads them. */
static void sparse_product(bool bf16, int second)
{
    static const unsigned pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
    const uint16_t nan = bf16 ? 0x7fc0 : 0x7e00;
    float a[16][32] = {{0}}, b[32][8], d[16][8], start[16][8];
    uint16_t stored[16][16], hb[32][8];
    uint32_t places[32] = {0};
    bool has[32] = {false};
    for (int i = 0; i < 16 * 8; i++) {
        const int row = i / 8, four = i % 8;
        const unsigned pair = pairs[draw() % 6];
        places[row % 8 * 4 + second * 2 + four / 4] |= pair << (row / 8 * 16 + four % 4 * 4);
        for (int k = 0; k < 2; k++) {
            const int column = four * 4 + (int)(pair >> 2 * k & 3);
            a[row][column] = draw_float();
            stored[row][four * 2 + k] = half_of(a[row][column], bf16);
            has[column] |= row == 3;
        }
    }
    for (int i = 0; i < 256; i++) {
        b[i / 8][i % 8] = draw_float();
        hb[i / 8][i % 8] = i % 8 == 7 && !has[i / 8] ? nan : half_of(b[i / 8][i % 8], bf16);
    }
    for (int i = 0; i < 128; i++) d[i / 8][i % 8] = start[i / 8][i % 8] = draw_float();
    assert_ok(run_sparse(bf16 ? "bf16" : "f16", second, stored, hb, places, d));
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float want = start[i][j];
            for (int k = 0; k < 32; k++) want += a[i][k] * b[k][j];
            if (j < 7 || i == 3) assert_true(d[i][j] == want);
        }
}

static void sparse_products(void **state)
{
    (void)state;
    for (int second = 0; second < 2; second++) {
        sparse_product(false, second);
        sparse_product(true, second);
    }
}

/* Places that no tensor core takes. */
static void wrong_places(void **state)
{
    (void)state;
    uint16_t a[16][16] = {{0}}, b[32][8] = {{0}};
    uint32_t places[32];
    float d[16][8] = {{0}};
    for (int lane = 0; lane < 32; lane++) places[lane] = 0x11111111;
    assert_int_equal(run_sparse("f16", 0, a, b, places, d), HC_CUDA_ERROR_LAUNCH_FAILED);
}

static int as_int(uint8_t v, bool is_signed)
{
    return is_signed ? (int8_t)v : v;
}

static void byte_product(bool sa, bool sb, const char *mma)
{
    uint8_t a[16][32], b[32][8];
    int d[16][8], start[16][8];
    for (int i = 0; i < 512; i++) a[i / 32][i % 32] = (uint8_t)draw();
    for (int i = 0; i < 256; i++) b[i / 8][i % 8] = (uint8_t)draw();
    for (int i = 0; i < 128; i++) d[i / 8][i % 8] = start[i / 8][i % 8] = (int)(draw() % 1000);
    run_product(product_kernel("u8", "i32", 4, 32, mma), a, sizeof a, b, sizeof b, d);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            int want = start[i][j];
            for (int k = 0; k < 32; k++) want += 2 * as_int(a[i][k], sa) * as_int(b[k][j], sb);
            assert_int_equal(d[i][j], want);
        }
}

static void byte_products(void **state)
{
    (void)state;
    byte_product(true, true, "zc_mma_m16n8k32_s8");
    byte_product(true, false, "zc_mma_m16n8k32_s8u8");
    byte_product(false, true, "zc_mma_m16n8k32_u8s8");
    byte_product(false, false, "zc_mma_m16n8k32_u8u8");
}

/* Register m of lane l: of matrix m the elements (l / 4, 2 * (l % 4)) and its right neighbour, or
 * with trans (2 * (l % 4), l / 4) and its lower neighbour. Rows stand in shared memory backwards.
 */
static void matrix_loads(void **state)
{
    (void)state;
    hc_module_t m = load_source("extern \"C\" __global__ void load(const u16 *x, u32 *out)\n"
                                "{\n"
                                "    __shared__ __align__(16) u16 s[32][8];\n"
                                "    u32 l = threadIdx.x, r[4];\n"
                                "    for (int i = 0; i < 8; i++) s[31 - l][i] = x[l * 8 + i];\n"
                                "    zc_sync_warp();\n"
                                "    zc_ldmatrix_x4(r, s[31 - l]);\n"
                                "    for (int i = 0; i < 4; i++) out[i * 32 + l] = r[i];\n"
                                "    zc_ldmatrix_x4_trans(r, s[31 - l]);\n"
                                "    for (int i = 0; i < 4; i++) out[(4 + i) * 32 + l] = r[i];\n"
                                "    zc_ldmatrix_x2(r, s[31 - l % 16]);\n"
                                "    for (int i = 0; i < 2; i++) out[(8 + i) * 32 + l] = r[i];\n"
                                "    zc_ldmatrix_x2_trans(r, l < 16 ? s[31 - l] : nullptr);\n"
                                "    for (int i = 0; i < 2; i++) out[(10 + i) * 32 + l] = r[i];\n"
                                "}\n");
    uint16_t x[4][8][8];
    uint32_t out[12][32];
    for (int i = 0; i < 256; i++) x[i / 64][i / 8 % 8][i % 8] = (uint16_t)draw();
    hc_ptr dx = device_bytes(x, sizeof x), dout = device_bytes(NULL, sizeof out);
    void *params[] = {&dx, &dout};
    assert_ok(launch(function_of(m, "load"), 1, 32, 0, params));
    assert_ok(cuMemcpyDtoH_v2(out, dout, sizeof out));
    for (int i = 0; i < 12; i++) {
        static const int matrix[12] = {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 0, 1};
        bool trans = (i >= 4 && i < 8) || i >= 10;
        for (int l = 0; l < 32; l++) {
            int g = l / 4, t = l % 4 * 2, k = matrix[i];
            uint32_t low = trans ? x[k][t][g] : x[k][g][t];
            uint32_t high = trans ? x[k][t + 1][g] : x[k][g][t + 1];
            assert_int_equal(out[i][l], low | high << 16);
        }
    }
}

/* A product needs a whole warp. */
static void part_of_a_warp(void **state)
{
    (void)state;
    hc_function_t f = product_kernel("u16", "f32", 2, 16, "zc_mma_m16n8k16_f16");
    hc_ptr a = device_bytes(NULL, 512), b = device_bytes(NULL, 256), d = device_bytes(NULL, 512);
    void *params[] = {&a, &b, &d};
    assert_int_equal(launch(f, 1, 16, 0, params), HC_CUDA_ERROR_LAUNCH_FAILED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(f16_product, device_up, device_down),
        cmocka_unit_test_setup_teardown(bf16_product, device_up, device_down),
        cmocka_unit_test_setup_teardown(tf32_product, device_up, device_down),
        cmocka_unit_test_setup_teardown(byte_products, device_up, device_down),
        cmocka_unit_test_setup_teardown(sparse_products, device_up, device_down),
        cmocka_unit_test_setup_teardown(wrong_places, device_up, device_down),
        cmocka_unit_test_setup_teardown(matrix_loads, device_up, device_down),
        cmocka_unit_test_setup_teardown(part_of_a_warp, device_up, device_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
