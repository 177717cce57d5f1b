/* A warp-specialised product of Hopper (product.cu): all sizes, types, layouts, clusters and orders
 * give the sums that plain loops give. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

typedef struct tensor_map {
    _Alignas(64) unsigned char bytes[128];
} tensor_map;

typedef struct arguments {
    tensor_map a, b, c;
    int m, n, k;
} arguments;

typedef struct shape {
    int m, n, k;
} shape;

/* A mistake in the kernel: `by` in the place of `text`. */
typedef struct mistake {
    const char *text, *by;
    int cluster;
} mistake;

static void make_mistake(char *text, size_t size, const mistake *m)
{
    char *at = strstr(text, m->text);
    if (!at) fail_msg("product.cu has no %s", m->text);
    size_t rest = strlen(at + strlen(m->text)) + 1, n = strlen(m->by);
    assert_true((size_t)(at - text) + n + rest <= size);
    memmove(at + n, at + strlen(m->text), rest);
    memcpy(at, m->by, n);
}

static hc_function_t product_kernel(bool bf16, bool across, int cluster, const mistake *m)
{
    static char text[16384];
    int n =
        snprintf(text, sizeof text,
                 "#define TYPE %s\n#define PACK %s\n#define ACROSS %d\n#define CLUSTER %d\n",
                 bf16 ? "BF16" : "F16", bf16 ? "zc_f32_to_bf16" : "zc_f32_to_f16", across, cluster);
    FILE *f = fopen(HC_TEST_DIR "/product.cu", "rb");
    assert_non_null(f);
    size_t more = fread(text + n, 1, sizeof text - (size_t)n - 1, f);
    fclose(f);
    assert_true(more > 0 && more < sizeof text - (size_t)n - 1);
    text[(size_t)n + more] = '\0';
    if (m) make_mistake(text, sizeof text, m);
    return function_of(load_source(text), "product");
}

/* Of -1, 0 and 1, so that sums of 256 are exact in bf16 too. */
static uint16_t small(float v, bool bf16)
{
    if (v == 0) return 0;
    return (uint16_t)((bf16 ? 0x3f80 : 0x3c00) | (v < 0 ? 0x8000 : 0));
}

static float value(uint16_t v, bool bf16)
{
    uint32_t bits = (uint32_t)v << 16;
    float f;
    if (!bf16)
        bits = v & 0x7fff ? (uint32_t)(v & 0x8000) << 16 | ((v & 0x7fffu) + 0x1c000u) << 13 : 0;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static int padded(int n)
{
    return (n + 7) / 8 * 8;
}

static tensor_map map_of(hc_ptr p, bool bf16, int columns, int rows, int box_rows)
{
    tensor_map m;
    uint64_t dims[] = {(uint64_t)columns, (uint64_t)rows},
             pitch[] = {(uint64_t)padded(columns) * 2};
    uint32_t box[] = {64, (uint32_t)box_rows}, steps[] = {1, 1};
    assert_ok(cuTensorMapEncodeTiled(
        (hc_tensor_map_t *)&m,
        bf16 ? HC_CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : HC_CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2,
        (void *)(uintptr_t)p, dims, pitch, box, steps, HC_CU_TENSOR_MAP_INTERLEAVE_NONE,
        HC_CU_TENSOR_MAP_SWIZZLE_128B, HC_CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
        HC_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return m;
}

static hc_ptr draw_matrix(float *to, bool bf16, int rows, int columns)
{
    int pitch = padded(columns);
    uint16_t *bits = calloc((size_t)rows * (size_t)pitch, 2);
    for (int i = 0; i < rows * columns; i++) {
        to[i] = (float)(draw() % 3) - 1;
        bits[i / columns * pitch + i % columns] = small(to[i], bf16);
    }
    hc_ptr p = device_bytes(bits, (size_t)rows * (size_t)pitch * 2);
    free(bits);
    return p;
}

static hc_result launch_product(hc_function_t f, unsigned blocks, int cluster, const arguments *a)
{
    enum { MEMORY = 4 * 32768 + 1024 };
    hc_launch_attribute attribute = {.id = HC_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.cluster.x = (unsigned)cluster;
    attribute.value.cluster.y = attribute.value.cluster.z = 1;
    hc_launch_config config = {.grid_x = blocks,
                               .grid_y = 1,
                               .grid_z = 1,
                               .block_x = 384,
                               .block_y = 1,
                               .block_z = 1,
                               .smem = MEMORY,
                               .attrs = &attribute,
                               .attr_count = cluster > 1};
    void *params[] = {(void *)(uintptr_t)a};
    assert_ok(cuFuncSetAttribute(f, HC_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, MEMORY));
    return cuLaunchKernelEx(&config, f, params, NULL);
}

/* The first sum that is not what plain loops give; -1: none. */
static int first_wrong(const uint16_t *c, const float *a, const float *b, bool bf16, bool across,
                       shape s)
{
    for (int i = 0; i < s.m * s.n; i++) {
        int row = i / s.n, column = i % s.n;
        float want = 0;
        for (int k = 0; k < s.k; k++)
            want += a[row * s.k + k] * (across ? b[k * s.n + column] : b[column * s.k + k]);
        if (value(c[row * padded(s.n) + column], bf16) != want) return i;
    }
    return -1;
}

/* Whether the product is right. */
static bool is_right(hc_function_t f, bool bf16, bool across, int cluster, shape s)
{
    float *a = calloc((size_t)(s.m * s.k), sizeof *a), *b = calloc((size_t)(s.n * s.k), sizeof *b);
    size_t bytes = (size_t)s.m * (size_t)padded(s.n) * 2;
    uint16_t *c = malloc(bytes);
    hc_ptr da = draw_matrix(a, bf16, s.m, s.k);
    hc_ptr db = across ? draw_matrix(b, bf16, s.k, s.n) : draw_matrix(b, bf16, s.n, s.k);
    hc_ptr dc = device_bytes(NULL, bytes);
    arguments p = {map_of(da, bf16, s.k, s.m, 128),
                   across ? map_of(db, bf16, s.n, s.k, 64)
                          : map_of(db, bf16, s.k, s.n, 128 / cluster),
                   map_of(dc, bf16, s.n, s.m, 64),
                   s.m,
                   s.n,
                   s.k};
    bool ok = launch_product(f, 4, cluster, &p) == HC_CUDA_SUCCESS;
    if (ok) {
        assert_ok(cuMemcpyDtoH_v2(c, dc, bytes));
        ok = first_wrong(c, a, b, bf16, across, s) < 0;
        assert_ok(cuMemFree_v2(da));
        assert_ok(cuMemFree_v2(db));
        assert_ok(cuMemFree_v2(dc));
    }
    free(a), free(b), free(c);
    return ok;
}

static void check_product(hc_function_t f, bool bf16, bool across, int cluster, shape s)
{
    if (!is_right(f, bf16, across, cluster, s)) fail_msg("%d x %d x %d", s.m, s.n, s.k);
}

static void check_shapes(bool bf16, bool across, int cluster)
{
    static const shape shapes[] = {{256, 256, 256}, {200, 136, 72}, {1, 8, 8}, {513, 40, 200}};
    hc_function_t f = product_kernel(bf16, across, cluster, NULL);
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_product(f, bf16, across, cluster, shapes[i]);
}

static void products(void **state)
{
    (void)state;
    check_shapes(false, false, 1);
    check_shapes(true, true, 1);
}

static void products_of_clusters(void **state)
{
    (void)state;
    check_shapes(true, false, 2);
    check_shapes(false, true, 2);
}

static void set_seed(int seed)
{
    char text[16];
    snprintf(text, sizeof text, "%d", seed);
    setenv("ZC_HOSTCUDA_SHUFFLE", text, 1);
    device_again();
}

static void any_order_gives_the_same(void **state)
{
    (void)state;
    for (int seed = 1; seed < 6; seed++) {
        int cluster = 1 + seed / 2 % 2;
        bool across = seed % 2;
        set_seed(seed);
        check_product(product_kernel(false, across, cluster, NULL), false, across, cluster,
                      (shape){300, 200, 256});
    }
}

/* Each mistake is seen, with one of a few seeds at the latest: the launch fails, or sums are wrong.
 */
static void mistakes_are_seen(void **state)
{
    (void)state;
    static const mistake mistakes[] = {
        {"zc_barrier_wait(full + 8 * at.stage, at.parity);", "", 1},
        {"zc_barrier_wait_cluster(empty + 8 * at.stage, at.parity);", "", 1},
        {"place at = {0, 1};", "place at = {0, 0};", 1},
        {"zc_barrier_expect(ready, BYTES);", "zc_barrier_expect(ready, TILE);", 1},
        {"zc_wgmma_fence();", "", 1},
        {"zc_wgmma_wait<1>();", "", 1},
        {"zc_wgmma_wait<0>();\n        release", "release", 1},
        {"zc_bulk_wait_read<0>();", ";", 1},
        {"zc_async_fence();\n        zc_named_sync(1 + group, 128);", "zc_async_fence();", 1},
        {"zc_async_fence();", "", 1},
        {"zc_bulk_wait<0>();", ";", 1},
        {"(chunk ^ (line >> 7 & 7))", "chunk", 1},
        {"zc_barrier_fence();", "", 1},
        {"zc_registers_drop<40>();", "", 1},
        {"(1 << CLUSTER) - 1, k,", "1, k,", 2},
        {"8 * CLUSTER", "8", 2},
        {"zc_cluster_arrive_relaxed();\n    zc_cluster_wait();\n    if", "zc_sync();\n    if", 2},
        {"zc_cluster_arrive_relaxed();\n    zc_cluster_wait();\n}", "}", 2},
    };
    for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
        bool seen = false;
        for (int seed = 0; !seen && seed < 8; seed++) {
            set_seed(seed);
            hc_function_t f = product_kernel(false, false, mistakes[i].cluster, &mistakes[i]);
            seen = !is_right(f, false, false, mistakes[i].cluster, (shape){600, 300, 256});
        }
        if (!seen) fail_msg("nobody misses %s", mistakes[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(products, device_up, device_down),
        cmocka_unit_test_setup_teardown(products_of_clusters, device_up, device_down),
        cmocka_unit_test_setup_teardown(any_order_gives_the_same, device_up, device_down),
        cmocka_unit_test_setup_teardown(mistakes_are_seen, device_up, device_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
