/* Clusters, barriers, the copy engine and products of a warpgroup, one by one, and what a kernel
 * can do wrong with each. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What the kernels here share: a tile for the copy engine, two barriers, operands of a product. */
static const char head[] =
    "#include \"zc/hopper.cuh\"\n"
    "ZC_WGMMA(multiply, 8, F16, 0)\n"
    "ZC_WGMMA(multiply_across, 64, F16, 1)\n"
    "ZC_WGMMA_ACROSS(multiply_both, 8, F16, 1, 0)\n"
    "ZC_WGMMA_HELD(multiply_held, 64, F16, 1)\n"
    "ZC_WGMMA_HELD(multiply_windows, 64, F16, 0)\n"
    "ZC_WGMMA_SPARSE(multiply_sparse, 8, F16, 0)\n"
    "ZC_WGMMA_SPARSE(multiply_sparse_second, 8, F16, 1)\n"
    "#define ALONG(name, TYPE) ZC_WGMMA_ALONG(multiply_##name, 8, TYPE) "
    "ZC_WGMMA_HELD_ALONG(held_##name, 8, TYPE)\n"
    "ALONG(tf32, TF32)\n"
    "ALONG(e4m3, E4M3)\n"
    "ALONG(s8, S8)\n"
    "ALONG(s8u8, S8U8)\n"
    "ALONG(u8s8, U8S8)\n"
    "ALONG(u8, U8)\n"
    "__shared__ __align__(1024) u16 tile[16][64], a[64 * 64], bb[64 * 64];\n"
    "__shared__ __align__(8) u64 barriers[2];\n"
    "#define KERNEL(name) extern \"C\" __global__ void __launch_bounds__(256) \\\n"
    "    name(u32 *out, const u16 *data, const __grid_constant__ zc_tensor_map map)\n";

/* What each begins with. */
static const char begin[] =
    "{\n"
    "    const u32 t = threadIdx.x, to = zc_smem_address(tile), b = zc_smem_address(barriers);\n"
    "    const u32 rank = zc_cluster_rank(), sa = zc_smem_address(a), sb = zc_smem_address(bb);\n"
    "    const u64 da = zc_wgmma_along(sa), db = zc_wgmma_along(sb);\n"
    "    f32 d[4];\n"
    "    (void)t, (void)to, (void)b, (void)rank, (void)da, (void)db, (void)d;\n";

enum { COLUMNS = 64, ROWS = 32, PLANES = 3, OUT = 1024 };

/* Device memory of a kernel: data[i] is i. */
typedef struct memory {
    hc_ptr out, data;
    uint32_t result[OUT];
} memory;

typedef struct tensor_map {
    _Alignas(64) unsigned char bytes[128];
} tensor_map;

static hc_function_t kernel_of(const char *body)
{
    static char text[8192];
    int n = snprintf(text, sizeof text, "%sKERNEL(kernel)\n%s%s}\n", head, begin, body);
    assert_true(n > 0 && (size_t)n < sizeof text);
    return function_of(load_source(text), "kernel");
}

static void prepare(memory *m)
{
    uint16_t data[PLANES * ROWS * COLUMNS];
    memset(m->result, 0, sizeof m->result);
    for (int i = 0; i < PLANES * ROWS * COLUMNS; i++) data[i] = (uint16_t)i;
    m->data = device_bytes(data, sizeof data);
    m->out = device_bytes(m->result, sizeof m->result);
}

/* Of the data: a plane or all planes, boxes of 8 rows. */
static tensor_map map_of(const memory *m, unsigned rank, unsigned swizzle)
{
    static const uint32_t widths[] = {64, 16, 32, 64};
    tensor_map map;
    uint64_t dims[] = {COLUMNS, ROWS, PLANES}, pitch[] = {COLUMNS * 2, ROWS * COLUMNS * 2};
    uint32_t box[] = {widths[swizzle], 8, 1}, steps[] = {1, 1, 1};
    assert_ok(cuTensorMapEncodeTiled(
        (hc_tensor_map_t *)&map, HC_CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank,
        (void *)(uintptr_t)m->data, dims, pitch, box, steps, HC_CU_TENSOR_MAP_INTERLEAVE_NONE,
        swizzle, HC_CU_TENSOR_MAP_L2_PROMOTION_L2_256B, HC_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

static hc_result launch_cluster(hc_function_t f, unsigned grid, unsigned cluster, unsigned threads,
                                void **params)
{
    hc_launch_attribute attribute = {.id = HC_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.cluster.x = cluster;
    attribute.value.cluster.y = attribute.value.cluster.z = 1;
    hc_launch_config config = {.grid_x = grid,
                               .grid_y = 1,
                               .grid_z = 1,
                               .block_x = threads,
                               .block_y = 1,
                               .block_z = 1,
                               .attrs = &attribute,
                               .attr_count = 1};
    return cuLaunchKernelEx(&config, f, params, NULL);
}

static hc_result run_map(memory *m, const char *body, unsigned grid, unsigned cluster,
                         unsigned threads, tensor_map map)
{
    void *params[] = {&m->out, &m->data, &map};
    hc_result r = launch_cluster(kernel_of(body), grid, cluster, threads, params);
    if (r == HC_CUDA_SUCCESS) assert_ok(cuMemcpyDtoH_v2(m->result, m->out, sizeof m->result));
    return r;
}

static hc_result run(memory *m, const char *body, unsigned grid, unsigned cluster, unsigned threads)
{
    prepare(m);
    return run_map(m, body, grid, cluster, threads, map_of(m, 2, HC_CU_TENSOR_MAP_SWIZZLE_128B));
}

/* With any seed, too. */
static void run_in_any_order(memory *m, const char *body, unsigned grid, unsigned cluster,
                             unsigned threads, void (*check)(const memory *m))
{
    for (int seed = 0; seed < 4; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        setenv("ZC_HOSTCUDA_SHUFFLE", text, 1);
        device_again();
        assert_ok(run(m, body, grid, cluster, threads));
        check(m);
    }
}

/* ---- Barriers ---- */

static void check_ring(const memory *m)
{
    for (unsigned i = 0; i < 10; i++) assert_int_equal(m->result[i], 5 * 32 * (i + 1));
}

/* One warp fills a place ten times, another empties it; parities change. */
static void phases(void **state)
{
    (void)state;
    memory m;
    run_in_any_order(&m,
                     "    __shared__ u32 sum;\n"
                     "    if (t == 0) {\n"
                     "        zc_barrier_init(b, 32);\n"
                     "        zc_barrier_init(b + 8, 32);\n"
                     "        sum = 0;\n"
                     "    }\n"
                     "    zc_sync();\n"
                     "    for (u32 i = 0; i < 10; i++) {\n"
                     "        if (t < 32) {\n"
                     "            zc_barrier_wait(b + 8, i % 2 ^ 1);\n"
                     "            zc_atomic_add(&sum, 5u);\n"
                     "            zc_barrier_arrive(b);\n"
                     "        } else {\n"
                     "            zc_barrier_wait(b, i % 2);\n"
                     "            if (t == 32) out[i] = sum;\n"
                     "            zc_barrier_arrive(b + 8);\n"
                     "        }\n"
                     "    }\n",
                     1, 1, 64, check_ring);
}

/* A wait knows no more than the parity: what ended two phases ago does not count. */
static void a_parity_is_not_a_phase(void **state)
{
    (void)state;
    memory m;
    assert_ok(run(&m,
                  "    zc_barrier_init(b, 1);\n"
                  "    zc_barrier_wait(b, 1);\n" /* as if the phase before the first had ended */
                  "    zc_barrier_arrive(b);\n"
                  "    zc_barrier_wait(b, 0);\n"
                  "    zc_barrier_arrive(b);\n"
                  "    zc_barrier_wait(b, 1);\n" /* the second phase has ended */
                  "    out[0] = 7;\n",
                  1, 1, 1));
    assert_int_equal(m.result[0], 7);
    assert_int_equal(run(&m,
                         "    zc_barrier_init(b, 1);\n"
                         "    zc_barrier_arrive(b);\n"
                         "    zc_barrier_arrive(b);\n"
                         "    zc_barrier_wait(b, 0);\n", /* has ended, but so has the next */
                         1, 1, 1),
                     HC_CUDA_ERROR_LAUNCH_FAILED);
}

static void check_named(const memory *m)
{
    for (unsigned i = 0; i < 32; i++) assert_int_equal(m->result[i], 10 * i);
}

/* Warps 0 and 1 hand over to warps 2 and 3 and go on. */
static void named_barriers(void **state)
{
    (void)state;
    memory m;
    run_in_any_order(&m,
                     "    __shared__ u32 values[32];\n"
                     "    if (t < 64) {\n"
                     "        if (t < 32) values[t] = 10 * t;\n"
                     "        zc_named_arrive(3, 128);\n"
                     "    } else {\n"
                     "        zc_named_sync(3, 128);\n"
                     "        if (t < 96) out[t - 64] = values[t - 64];\n"
                     "        zc_named_sync(15, 64);\n"
                     "    }\n",
                     1, 1, 128, check_named);
}

/* ---- Clusters ---- */

static void check_neighbours(const memory *m)
{
    for (unsigned block = 0; block < 8; block++)
        for (unsigned i = 0; i < 8; i++) {
            uint32_t low = block / 4 * 4 + (block + 3) % 4;
            assert_int_equal(m->result[block * 8 + i], low * 1000 + i);
        }
}

/* Each block sends its row to the next of its cluster; static shared memory is each block's own. */
static void blocks_of_a_cluster(void **state)
{
    (void)state;
    memory m;
    run_in_any_order(
        &m,
        "    __shared__ __align__(16) u32 mine[8], theirs[8];\n"
        "    if (t == 0) {\n"
        "        zc_barrier_init(b, 1);\n"
        "        zc_barrier_fence();\n"
        "        zc_barrier_expect(b, 32);\n"
        "    }\n"
        "    if (t < 8) mine[t] = blockIdx.x * 1000 + t;\n"
        "    zc_async_fence();\n"
        "    zc_cluster_arrive();\n"
        "    zc_cluster_wait();\n"
        "    const u32 next = (rank + 1) % 4;\n"
        "    if (t == 0)\n"
        "        zc_bulk_send(zc_cluster_address(zc_smem_address(theirs), next),\n"
        "                     zc_smem_address(mine), 32, zc_cluster_address(b, next));\n"
        "    zc_barrier_wait_cluster(b, 0);\n"
        "    if (t < 8) out[blockIdx.x * 8 + t] = theirs[t];\n"
        "    zc_cluster_arrive_relaxed();\n"
        "    zc_cluster_wait();\n",
        8, 4, 32, check_neighbours);
}

static void check_arrivals(const memory *m)
{
    assert_int_equal(m->result[0], 1);
    assert_int_equal(m->result[1], 1);
}

/* The last place of a barrier is filled from the other block. */
static void remote_arrivals(void **state)
{
    (void)state;
    memory m;
    run_in_any_order(&m,
                     "    if (t == 0) {\n"
                     "        zc_barrier_init(b, 2);\n"
                     "        zc_barrier_fence();\n"
                     "    }\n"
                     "    zc_cluster_arrive_relaxed();\n"
                     "    zc_cluster_wait();\n"
                     "    if (t < 2) zc_barrier_arrive_remote(zc_cluster_address(b, t));\n"
                     "    zc_barrier_wait_cluster(b, 0);\n"
                     "    if (t == 0) out[rank] = 1;\n"
                     "    zc_cluster_arrive_relaxed();\n"
                     "    zc_cluster_wait();\n",
                     2, 2, 32, check_arrivals);
}

static void cluster_sizes(void **state)
{
    (void)state;
    memory m;
    prepare(&m);
    tensor_map map = map_of(&m, 2, HC_CU_TENSOR_MAP_SWIZZLE_128B);
    void *params[] = {&m.out, &m.data, &map};
    hc_function_t f = kernel_of("    if (t == 0) out[blockIdx.x] = rank + 1;\n");
    assert_int_equal(launch_cluster(f, 9, 2, 32, params), HC_CUDA_ERROR_INVALID_CLUSTER_SIZE);
    assert_int_equal(launch_cluster(f, 16, 16, 32, params), HC_CUDA_ERROR_INVALID_CLUSTER_SIZE);
    assert_int_equal(launch_cluster(f, 16, 0, 32, params), HC_CUDA_ERROR_INVALID_VALUE);
    assert_ok(launch_cluster(f, 16, 8, 32, params));
    assert_ok(cuMemcpyDtoH_v2(m.result, m.out, sizeof m.result));
    for (unsigned i = 0; i < 16; i++) assert_int_equal(m.result[i], i % 8 + 1);
}

/* A recorded launch keeps its cluster; an update takes the other graph's. */
static void clusters_in_graphs(void **state)
{
    (void)state;
    memory m;
    prepare(&m);
    tensor_map map = map_of(&m, 2, HC_CU_TENSOR_MAP_SWIZZLE_128B);
    void *params[] = {&m.out, &m.data, &map};
    hc_function_t f = kernel_of("    if (t == 0) out[blockIdx.x] = rank + 1;\n");
    hc_stream_t stream;
    hc_exec_t exec;
    hc_update_info info;
    assert_ok(cuStreamCreate(&stream, HC_CU_STREAM_NON_BLOCKING));
    for (unsigned size = 2; size <= 4; size += 2) {
        hc_graph_t graph;
        hc_launch_attribute a = {.id = HC_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
        a.value.cluster.x = size, a.value.cluster.y = a.value.cluster.z = 1;
        hc_launch_config config = {.grid_x = 8,
                                   .grid_y = 1,
                                   .grid_z = 1,
                                   .block_x = 32,
                                   .block_y = 1,
                                   .block_z = 1,
                                   .stream = stream,
                                   .attrs = &a,
                                   .attr_count = 1};
        assert_ok(cuStreamBeginCapture_v2(stream, HC_CU_STREAM_CAPTURE_MODE_RELAXED));
        assert_ok(cuLaunchKernelEx(&config, f, params, NULL));
        assert_ok(cuStreamEndCapture(stream, &graph));
        if (size == 2)
            assert_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
        else
            assert_ok(cuGraphExecUpdate_v2(exec, graph, &info));
        assert_ok(cuGraphLaunch(exec, stream));
        assert_ok(cuMemcpyDtoH_v2(m.result, m.out, sizeof m.result));
        for (unsigned i = 0; i < 8; i++) assert_int_equal(m.result[i], i % size + 1);
        assert_ok(cuGraphDestroy(graph));
    }
    assert_ok(cuGraphExecDestroy(exec));
    assert_ok(cuStreamDestroy_v2(stream));
}

/* ---- Blocks side by side ---- */

static void check_rounds(const memory *m)
{
    for (unsigned i = 0; i < 4; i++) assert_int_equal(m->result[2 + i], 4 * 32 * 3);
}

/* All blocks wait for all others, three times, by a counter in device memory. */
static void blocks_wait_for_each_other(void **state)
{
    (void)state;
    memory m;
    run_in_any_order(&m,
                     "    __shared__ u32 mine;\n"
                     "    if (t == 0) mine = blockIdx.x;\n"
                     "    for (u32 round = 1; round <= 3; round++) {\n"
                     "        zc_atomic_add(out + 1, 1u);\n"
                     "        zc_sync();\n"
                     "        if (t == 0) {\n"
                     "            zc_atomic_add(out, 1u);\n"
                     "            while (zc_atomic_add(out, 0u) < 4 * round) {\n            }\n"
                     "        }\n"
                     "        zc_sync();\n"
                     "    }\n"
                     "    if (t == 0) out[2 + mine] = out[1];\n",
                     4, 1, 32, check_rounds);
}

/* The device holds no more than its multiprocessors do: with one more, all wait for ever. */
static void blocks_that_have_no_room(void **state)
{
    (void)state;
    memory m;
    static const char wait[] = "    if (t) return;\n    zc_atomic_add(out, 1u);\n"
                               "    while (zc_atomic_add(out, 0u) < gridDim.x) {\n    }\n";
    assert_ok(run(&m, wait, 4 * 8, 1, 256));
    assert_int_equal(run(&m, wait, 4 * 8 + 1, 1, 256), HC_CUDA_ERROR_LAUNCH_FAILED);
}

static void check_last(const memory *m)
{
    assert_int_equal(m->result[1], 100 * 99 / 2);
}

static void the_last_block_sums(void **state)
{
    (void)state;
    memory m;
    run_in_any_order(&m,
                     "    if (t) return;\n"
                     "    out[10 + blockIdx.x] = blockIdx.x;\n"
                     "    zc_fence();\n"
                     "    if (zc_atomic_add(out, 1u) + 1 < gridDim.x) return;\n"
                     "    for (u32 i = 0; i < gridDim.x; i++) out[1] += out[10 + i];\n",
                     100, 1, 32, check_last);
}

/* ---- The copy engine ---- */

/* As the tile lies in shared memory, 16 bytes at a time. */
static const char load_tile[] =
    "    if (t == 0) {\n"
    "        zc_barrier_init(b, 1);\n"
    "        zc_barrier_fence();\n"
    "        zc_barrier_expect(b, BYTES);\n"
    "        LOAD;\n"
    "    }\n"
    "    zc_sync();\n"
    "    zc_barrier_wait(b, 0);\n"
    "    for (u32 i = t; i < BYTES / 4; i += 32) out[i] = ((u32 *)tile)[i];\n";

static void load_tile_of(memory *m, tensor_map map, unsigned bytes, const char *load)
{
    char body[1024];
    snprintf(body, sizeof body, "\n#define BYTES %u\n#define LOAD %s\n%s", bytes, load, load_tile);
    assert_ok(run_map(m, body, 1, 1, 32, map));
}

static void load_by(memory *m, unsigned rank, unsigned swizzle, unsigned bytes, const char *load)
{
    prepare(m);
    load_tile_of(m, map_of(m, rank, swizzle), bytes, load);
}

static uint16_t half_at(const memory *m, unsigned byte)
{
    return (uint16_t)(m->result[byte / 4] >> byte % 4 * 8);
}

/* Bits 4 to 6 (or fewer) of an address are exchanged by bits 7 to 9; the tile is aligned to 1024.
 */
static void swizzles(void **state)
{
    (void)state;
    static const struct {
        unsigned swizzle, width, bits;
    } cases[] = {{HC_CU_TENSOR_MAP_SWIZZLE_NONE, 128, 0},
                 {HC_CU_TENSOR_MAP_SWIZZLE_32B, 32, 1},
                 {HC_CU_TENSOR_MAP_SWIZZLE_64B, 64, 3},
                 {HC_CU_TENSOR_MAP_SWIZZLE_128B, 128, 7}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memory m;
        unsigned width = cases[i].width;
        load_by(&m, 2, cases[i].swizzle, 8 * width, "zc_tensor_load(to, &map, b, 0, 3)");
        for (unsigned byte = 0; byte < 8 * width; byte += 2) {
            unsigned at = byte ^ (byte / 128 & cases[i].bits) * 16;
            assert_int_equal(half_at(&m, at), (3 + byte / width) * COLUMNS + byte % width / 2);
        }
    }
}

/* Zero where there is no tensor: before and behind it, along each dimension. */
static void boxes_at_the_border(void **state)
{
    (void)state;
    static const struct {
        int c[3];
        const char *load;
    } cases[] = {{{-3, 0, 1}, "zc_tensor_load(to, &map, b, -3, 0, 1)"},
                 {{8, 28, 2}, "zc_tensor_load(to, &map, b, 8, 28, 2)"},
                 {{0, -5, 0}, "zc_tensor_load(to, &map, b, 0, -5, 0)"},
                 {{0, 0, 3}, "zc_tensor_load(to, &map, b, 0, 0, 3)"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        memory m;
        load_by(&m, 3, HC_CU_TENSOR_MAP_SWIZZLE_NONE, 1024, cases[i].load);
        for (int at = 0; at < 512; at++) {
            int x = cases[i].c[0] + at % 64, y = cases[i].c[1] + at / 64, z = cases[i].c[2];
            bool inside = x >= 0 && x < COLUMNS && y >= 0 && y < ROWS && z < PLANES;
            assert_int_equal(half_at(&m, (unsigned)at * 2),
                             inside ? (z * ROWS + y) * COLUMNS + x : 0);
        }
    }
}

/* To ten binary digits behind the point, ties to even, also where that carries into the exponent;
 * NaN and infinity as they are. */
static void loads_round_to_tf32(void **state)
{
    (void)state;
    static const uint32_t from[] = {0x3f801000, 0x3f803000, 0x3f801001, 0x3fffffff,
                                    0xbf800fff, 0x7fc00001, 0xff800000, 0x00001001};
    static const uint32_t to[] = {0x3f800000, 0x3f804000, 0x3f802000, 0x40000000,
                                  0xbf800000, 0x7fc00001, 0xff800000, 0x00002000};
    const uint64_t dims[] = {8, 1}, pitch[] = {32};
    const uint32_t box[] = {8, 1}, steps[] = {1, 1};
    for (int rounds = 0; rounds < 2; rounds++) {
        memory m;
        tensor_map map;
        const unsigned type =
            rounds ? HC_CU_TENSOR_MAP_DATA_TYPE_TFLOAT32 : HC_CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
        prepare(&m);
        assert_ok(cuMemcpyHtoD_v2(m.data, from, sizeof from));
        assert_ok(cuTensorMapEncodeTiled(
            (hc_tensor_map_t *)&map, type, 2, (void *)(uintptr_t)m.data, dims, pitch, box, steps,
            HC_CU_TENSOR_MAP_INTERLEAVE_NONE, HC_CU_TENSOR_MAP_SWIZZLE_NONE,
            HC_CU_TENSOR_MAP_L2_PROMOTION_L2_256B, HC_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
        load_tile_of(&m, map, sizeof from, "zc_tensor_load(to, &map, b, 0, 0)");
        for (size_t i = 0; i < 8; i++) assert_int_equal(m.result[i], (rounds ? to : from)[i]);
    }
}

static void bulk_loads(void **state)
{
    (void)state;
    memory m;
    load_by(&m, 2, HC_CU_TENSOR_MAP_SWIZZLE_NONE, 48, "zc_bulk_load(to, data + 8, 48, b)");
    for (unsigned i = 0; i < 24; i++) assert_int_equal(half_at(&m, i * 2), 8 + i);
}

static void check_multicast(const memory *m)
{
    for (unsigned block = 0; block < 2; block++)
        for (unsigned half = 0; half < 2; half++)
            assert_int_equal(m->result[block * 2 + half], half ? 9 * COLUMNS + 1 : 1 * COLUMNS + 1);
}

/* Each block loads half of the tile, for both. */
static void multicast(void **state)
{
    (void)state;
    memory m;
    run_in_any_order(
        &m,
        "    if (t == 0) {\n"
        "        zc_barrier_init(b, 1);\n"
        "        zc_barrier_fence();\n"
        "        zc_barrier_expect(b, 2048);\n"
        "    }\n"
        "    zc_cluster_arrive_relaxed();\n"
        "    zc_cluster_wait();\n"
        "    if (t == 0)\n"
        "        zc_tensor_multicast(to + 1024 * rank, &map, b, 3, 0, 8 * (int)rank);\n"
        "    zc_barrier_wait_cluster(b, 0);\n"
        "    if (t < 2) out[rank * 2 + t] = tile[t * 8 + 1][8 + 1];\n" /* row 1: chunk 0 */
        "    zc_cluster_arrive_relaxed();\n"
        "    zc_cluster_wait();\n",
        2, 2, 32, check_multicast);
}

/* What lies outside the tensor is not written: the box ends four rows behind the last. */
static void stores(void **state)
{
    (void)state;
    memory m;
    prepare(&m);
    uint16_t data[PLANES * ROWS * COLUMNS];
    assert_ok(run_map(&m,
                      "    for (u32 i = t; i < 8 * 64; i += 32) tile[i / 64][i % 64] = 50000 + i;\n"
                      "    zc_async_fence();\n"
                      "    zc_sync();\n"
                      "    if (t == 0) {\n"
                      "        zc_tensor_store(&map, to, 8, 28);\n"
                      "        zc_bulk_commit();\n"
                      "        zc_bulk_wait<0>();\n"
                      "    }\n",
                      1, 1, 32, map_of(&m, 2, HC_CU_TENSOR_MAP_SWIZZLE_NONE)));
    assert_ok(cuMemcpyDtoH_v2(data, m.data, sizeof data));
    for (int i = 0; i < PLANES * ROWS * COLUMNS; i++) {
        int x = i % COLUMNS - 8, y = i / COLUMNS - 28;
        assert_int_equal(data[i], x >= 0 && y >= 0 && y < 4 ? 50000 + y * 64 + x : i);
    }
}

/* Without a wait nothing has come. */
static void copies_come_late(void **state)
{
    (void)state;
    memory m;
    static const char load[] = "    zc_barrier_init(b, 1);\n"
                               "    zc_barrier_fence();\n"
                               "    zc_barrier_expect(b, 1024);\n"
                               "    zc_tensor_load(to, &map, b, 1, 0);\n"
                               "    out[0] = tile[0][0];\n"
                               "    zc_barrier_wait(b, 0);\n"
                               "    out[1] = tile[0][0];\n"
                               "    zc_barrier_expect(b, 1024);\n"
                               "    zc_tensor_load(to, &map, b, 2, 0);\n"
                               "    out[2] = tile[0][0];\n" /* no more what it was */
                               "    zc_barrier_wait(b, 1);\n"
                               "    out[3] = tile[0][0];\n";
    assert_ok(run(&m, load, 1, 1, 1));
    assert_int_equal(m.result[0], 0xFFFF);
    assert_int_equal(m.result[1], 1);
    assert_int_equal(m.result[2], 0xFFFF);
    assert_int_equal(m.result[3], 2);
    static const char store[] = "    tile[0][0] = 7;\n"
                                "    zc_async_fence();\n"
                                "    zc_tensor_store(&map, to, 0, 0);\n"
                                "    zc_bulk_commit();\n"
                                "    zc_bulk_wait_read<0>();\n"
                                "    tile[0][0] = 8;\n"
                                "    out[0] = *data;\n"
                                "    zc_bulk_wait<0>();\n"
                                "    out[1] = *data;\n";
    assert_ok(run(&m, store, 1, 1, 1));
    assert_int_equal(m.result[0], 0);
    assert_int_equal(m.result[1], 7);
}

/* Of two images with these sides and 8 channels, 8 windows at once. */
static tensor_map windows_map(const memory *m, unsigned sides, const uint64_t *side,
                              const int *lower, const int *upper, const uint32_t *step)
{
    tensor_map map;
    uint64_t dims[5] = {8}, pitch[4] = {16};
    uint32_t steps[5] = {1, 1, 1, 1, 1};
    for (unsigned i = 0; i < sides; i++) {
        dims[1 + i] = side[i];
        pitch[1 + i] = pitch[i] * side[i];
        steps[1 + i] = step[i];
    }
    dims[1 + sides] = 2;
    assert_ok(cuTensorMapEncodeIm2col(
        (hc_tensor_map_t *)&map, HC_CU_TENSOR_MAP_DATA_TYPE_FLOAT16, sides + 2,
        (void *)(uintptr_t)m->data, dims, pitch, lower, upper, 8, 8, steps,
        HC_CU_TENSOR_MAP_INTERLEAVE_NONE, HC_CU_TENSOR_MAP_SWIZZLE_NONE,
        HC_CU_TENSOR_MAP_L2_PROMOTION_L2_256B, HC_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

/* Images of 5 x 4 pixels, and windows of 3 x 2 with steps of 2 and 1, padding of 1 around: 3
 * windows a line, 5 lines an image. */
static tensor_map patches_map(const memory *m)
{
    return windows_map(m, 2, (const uint64_t[]){5, 4}, (const int[]){-1, -1}, (const int[]){-1, 0},
                       (const uint32_t[]){2, 1});
}

/* 8 windows from one on, at one tap: numbers of window, of tap in a block's number. */
static const char copy_patches[] =
    "    const int start = blockIdx.x / 6, right = blockIdx.x % 3, down = blockIdx.x / 3 % 2;\n"
    "    zc_barrier_init(b, 1);\n"
    "    zc_barrier_fence();\n"
    "    zc_barrier_expect(b, 8 * 16);\n"
    "    const int first[] = {start % 3 * 2 - 1, start / 3 % 5 - 1};\n"
    "    const u16 tap[] = {(u16)right, (u16)down};\n"
    "    zc_patches_load(to, &map, b, 0, first, start / 15, tap);\n"
    "    zc_barrier_wait(b, 0);\n"
    "    u32 wrong = 0;\n"
    "    for (int i = 0; i < 64; i++) {\n"
    "        const int n = start + i / 8, x = n % 3 * 2 - 1 + right, y = n / 3 % 5 - 1 + down;\n"
    "        const bool inside = x >= 0 && x < 5 && y >= 0 && y < 4 && n < 30;\n"
    "        const int at = inside ? ((n / 15 * 4 + y) * 5 + x) * 8 + i % 8 : -1;\n"
    "        wrong += tile[0][i] != (at < 0 ? 0 : data[at]);\n"
    "    }\n"
    "    out[blockIdx.x] = 1 + wrong;\n";

/* Windows go on over lines and images; what lies on padding or beyond the last image is zero. */
static void patches(void **state)
{
    (void)state;
    memory m;
    prepare(&m);
    assert_ok(run_map(&m, copy_patches, 30 * 6, 1, 1, patches_map(&m)));
    for (int i = 0; i < 30 * 6; i++) assert_int_equal(m.result[i], 1);
    static const char *const wrong[] = {
        "load(0, -1, 0)",                             /* between two windows */
        "load(-1, 4, 0)",                             /* below the last */
        "load(-1, -1, 256)",                          /* a tap of 9 bits */
        "zc_tensor_load(to, &map, b, 0, -1, -1, 0)"}; /* not a box */
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        char body[512];
        snprintf(body, sizeof body,
                 "    const auto load = [&](int x, int y, u16 right) {\n"
                 "        const int first[] = {x, y};\n"
                 "        const u16 tap[] = {right, 0};\n"
                 "        zc_patches_load(to, &map, b, 0, first, 0, tap);\n"
                 "    };\n"
                 "    zc_barrier_init(b, 1);\n    %s;\n",
                 wrong[i]);
        device_again();
        prepare(&m);
        assert_int_equal(run_map(&m, body, 1, 1, 1, patches_map(&m)), HC_CUDA_ERROR_LAUNCH_FAILED);
    }
}

/* One side: windows of 12 taps, 60 elements apart, around 40 elements, every fourth. */
static const char copy_along[] =
    "    const int start = blockIdx.x / 12, away = blockIdx.x % 12 * 60;\n"
    "    zc_barrier_init(b, 1);\n"
    "    zc_barrier_fence();\n"
    "    zc_barrier_expect(b, 8 * 16);\n"
    "    const int first[] = {start % 10 * 4 - 300};\n"
    "    const u16 tap[] = {(u16)away};\n"
    "    zc_patches_load(to, &map, b, 0, first, start / 10, tap);\n"
    "    zc_barrier_wait(b, 0);\n"
    "    u32 wrong = 0;\n"
    "    for (int i = 0; i < 64; i++) {\n"
    "        const int n = start + i / 8, x = n % 10 * 4 - 300 + away;\n"
    "        const bool inside = x >= 0 && x < 40 && n < 20;\n"
    "        wrong += tile[0][i] != (inside ? data[(n / 10 * 40 + x) * 8 + i % 8] : 0);\n"
    "    }\n"
    "    out[blockIdx.x] = 1 + wrong;\n";

/* Three sides: windows of 3 x 2 x 2 over 5 x 4 x 3 elements, every second of a line: 3 x 5 x 3. */
static const char copy_within[] =
    "    const int start = blockIdx.x / 3 * 4, turn = blockIdx.x % 3;\n"
    "    const u16 tap[] = {(u16)turn, (u16)(turn != 1), (u16)(turn != 0)};\n"
    "    zc_barrier_init(b, 1);\n"
    "    zc_barrier_fence();\n"
    "    zc_barrier_expect(b, 8 * 16);\n"
    "    const int first[] = {start % 3 * 2 - 1, start / 3 % 5 - 1, start / 15 % 3 - 1};\n"
    "    zc_patches_load(to, &map, b, 0, first, start / 45, tap);\n"
    "    zc_barrier_wait(b, 0);\n"
    "    u32 wrong = 0;\n"
    "    for (int i = 0; i < 64; i++) {\n"
    "        const int n = start + i / 8, x = n % 3 * 2 - 1 + tap[0], y = n / 3 % 5 - 1 + tap[1];\n"
    "        const int z = n / 15 % 3 - 1 + tap[2];\n"
    "        const bool inside = x >= 0 && x < 5 && y >= 0 && y < 4 && z >= 0 && z < 3 && n < 90;\n"
    "        const int at = (((n / 45 * 3 + z) * 4 + y) * 5 + x) * 8 + i % 8;\n"
    "        wrong += tile[0][i] != (inside ? data[at] : 0);\n"
    "    }\n"
    "    out[blockIdx.x] = 1 + wrong;\n";

static void patches_of_other_sides(void **state)
{
    (void)state;
    static const char away[] = "    const int first[] = {-1, -1, -1};\n"
                               "    const u16 tap[] = {32, 0, 0};\n" /* of 6 bits */
                               "    zc_barrier_init(b, 1);\n"
                               "    zc_patches_load(to, &map, b, 0, first, 0, tap);\n";
    memory m;
    prepare(&m);
    assert_ok(run_map(&m, copy_along, 20 * 12, 1, 1,
                      windows_map(&m, 1, (const uint64_t[]){40}, (const int[]){-300},
                                  (const int[]){-301}, (const uint32_t[]){4})));
    for (int i = 0; i < 20 * 12; i++) assert_int_equal(m.result[i], 1);
    const tensor_map map =
        windows_map(&m, 3, (const uint64_t[]){5, 4, 3}, (const int[]){-1, -1, -1},
                    (const int[]){-1, 0, -1}, (const uint32_t[]){2, 1, 1});
    assert_ok(run_map(&m, copy_within, 23 * 3, 1, 1, map));
    for (int i = 0; i < 23 * 3; i++) assert_int_equal(m.result[i], 1);
    assert_int_equal(run_map(&m, away, 1, 1, 1, map), HC_CUDA_ERROR_LAUNCH_FAILED);
}

static hc_result encode(unsigned type, unsigned rank, uintptr_t address, const uint64_t *dims,
                        const uint64_t *pitch, const uint32_t *box, const uint32_t *steps,
                        unsigned swizzle)
{
    tensor_map map;
    return cuTensorMapEncodeTiled((hc_tensor_map_t *)&map, type, rank, (void *)address, dims, pitch,
                                  box, steps, HC_CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
                                  HC_CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                                  HC_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void what_a_tensor_map_needs(void **state)
{
    (void)state;
    enum { F16 = HC_CU_TENSOR_MAP_DATA_TYPE_FLOAT16, S128 = HC_CU_TENSOR_MAP_SWIZZLE_128B };
    const uint64_t dims[] = {100, 100, 1, 1, 1, 1}, none[] = {0, 100}, wide[] = {5ull << 32, 100};
    const uint64_t pitch[] = {208, 20800, 20800, 20800, 20800}, odd[] = {200},
                   far[] = {(uint64_t)1 << 40};
    const uint32_t box[] = {64, 64, 1, 1, 1, 1}, long_box[] = {128, 64}, high[] = {64, 257},
                   thin[] = {4, 8}, one[] = {1, 1, 1, 1, 1, 1}, nine[] = {1, 9};
    assert_ok(encode(F16, 2, 0x1000, dims, pitch, box, one, S128));
    assert_ok(encode(F16, 5, 0x1000, dims, pitch, box, one, S128));
    assert_ok(encode(F16, 2, 0x1000, dims, pitch, long_box, one, HC_CU_TENSOR_MAP_SWIZZLE_NONE));
    const hc_result bad = HC_CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(encode(F16, 0, 0x1000, dims, pitch, box, one, S128), bad);
    assert_int_equal(encode(F16, 6, 0x1000, dims, pitch, box, one, S128), bad);
    assert_int_equal(encode(99, 2, 0x1000, dims, pitch, box, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1008, dims, pitch, box, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, none, pitch, box, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, wide, pitch, box, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, dims, odd, box, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, dims, far, box, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, dims, pitch, long_box, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, dims, pitch, high, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, dims, pitch, thin, one, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, dims, pitch, box, nine, S128), bad);
    assert_int_equal(encode(F16, 2, 0x1000, dims, pitch, NULL, one, S128), bad);
    setenv("ZC_HOSTCUDA_CC", "86", 1);
    device_again();
    assert_int_equal(encode(F16, 2, 0x1000, dims, pitch, box, one, S128),
                     HC_CUDA_ERROR_NOT_SUPPORTED);
}

static hc_result encode_im2col(unsigned rank, const int *lower, const int *upper, unsigned channels,
                               unsigned pixels)
{
    tensor_map map;
    const uint64_t dims[] = {64, 20, 20, 2}, pitch[] = {128, 2560, 51200};
    const uint32_t one[] = {1, 1, 1, 1};
    return cuTensorMapEncodeIm2col(
        (hc_tensor_map_t *)&map, HC_CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank,
        (void *)(uintptr_t)0x1000, dims, pitch, lower, upper, channels, pixels, one,
        HC_CU_TENSOR_MAP_INTERLEAVE_NONE, HC_CU_TENSOR_MAP_SWIZZLE_128B,
        HC_CU_TENSOR_MAP_L2_PROMOTION_L2_256B, HC_CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

static void what_an_im2col_map_needs(void **state)
{
    (void)state;
    const int lower[] = {-1, -1}, upper[] = {-1, -1}, far[] = {-129, 0}, low[] = {-100, 0};
    assert_ok(encode_im2col(4, lower, upper, 64, 128));
    const hc_result bad = HC_CUDA_ERROR_INVALID_VALUE;
    assert_int_equal(encode_im2col(2, lower, upper, 64, 128), bad);
    assert_int_equal(encode_im2col(4, far, upper, 64, 128), bad);
    assert_int_equal(encode_im2col(4, lower, low, 64, 128), bad);
    assert_int_equal(encode_im2col(4, lower, upper, 128, 128), bad);
    assert_int_equal(encode_im2col(4, lower, upper, 64, 1025), bad);
    assert_int_equal(encode_im2col(4, lower, upper, 64, 0), bad);
}

/* ---- Products ---- */

/* The sums are there after the wait, not before; a product adds to the one before it. A is 64 x 16
 * in lines of 128 bytes, B 64 columns by 16: element (i, k) of A is i, of B 2 in column 5, so that
 * d(i, 5) = 32 i. */
static void products_come_late(void **state)
{
    (void)state;
    memory m;
    assert_ok(
        run(&m,
            "    for (u32 i = t; i < 64 * 64; i += 128) a[i] = zc_f32_to_f16((f32)(i / 64));\n"
            "    for (u32 i = t; i < 16 * 64; i += 128)\n"
            "        bb[i / 64 * 64 + ((i % 64 / 8) ^ (i / 64 % 8)) * 8 + i % 8] =\n"
            "            i % 64 == 5 ? 0x4000 : 0;\n"
            "    zc_async_fence();\n"
            "    zc_sync();\n"
            "    f32 e[32], f[32];\n"
            "    for (int i = 0; i < 32; i++) e[i] = f[i] = -1;\n"
            "    const u64 dc = zc_wgmma_across(sb, 0, 1024);\n"
            "    zc_wgmma_fence();\n"
            "    multiply_across(e, da, dc, false);\n"
            "    multiply_across(f, da, dc, true);\n"
            "    zc_wgmma_commit();\n"
            "    multiply_across(e, da, dc, true);\n"
            "    zc_wgmma_commit();\n"
            "    f32 early = f[1];\n"
            "    zc_wgmma_wait<1>();\n"
            "    f32 one = f[1], late = e[1];\n"
            "    zc_wgmma_wait<0>();\n"
            "    if (t % 4 == 2) {\n" /* columns 4 and 5 */
            "        const u32 row = t / 32 * 16 + t % 32 / 4;\n"
            "        out[row] = early != early && one == 32 * (f32)row - 1 && late != late &&\n"
            "                   e[1] == 64 * row && e[0] == 0;\n"
            "        out[row + 8] = e[3] == 64 * (row + 8) && e[2] == 0;\n"
            "    }\n",
            1, 1, 128));
    for (int i = 0; i < 64; i++) assert_int_equal(m.result[i], 1);
}

static void check_reuse(const memory *m)
{
    assert_int_equal(m->result[0], 1);
}

/* Operands may be written when all warps have waited, and when a warp that has says so. */
static void operands_are_left(void **state)
{
    (void)state;
    memory m;
    static const char *const meets[] = {
        "    zc_named_sync(1, 128);\n",
        "    if (t == 0) zc_barrier_arrive(b);\n    zc_barrier_wait(b, 0);\n"};
    for (int i = 0; i < 2; i++) {
        char body[1024];
        snprintf(body, sizeof body,
                 "    if (t == 0) zc_barrier_init(b, 1);\n"
                 "    zc_sync();\n"
                 "    zc_wgmma_fence();\n"
                 "    multiply(d, da, db, false);\n"
                 "    zc_wgmma_commit();\n"
                 "    zc_wgmma_wait<0>();\n"
                 "%s"
                 "    a[t] = 1;\n"
                 "    zc_sync();\n"
                 "    if (t == 0) out[0] = a[127];\n",
                 meets[i]);
        run_in_any_order(&m, body, 1, 1, 128, check_reuse);
    }
}

/* Of other types: elements 3 and the last of the summed axis are not 0, and the product is added to
 * itself, then with A in registers. tf32 has bits behind its last, which do not count. */
static void products_of_other_types(void **state)
{
    static const struct {
        const char *name, *element, *sum;
        int count;
        uint32_t one, two, minus; /* -1.5, of integers -3 */
        const char *odd, *even;   /* rows of column 5 */
    } types[] = {{"tf32", "u32", "f32", 8, 0x3f800fff, 0x40000001, 0xbfc00000, "8", "-2"},
                 {"e4m3", "u8", "f32", 32, 0x38, 0x40, 0xbc, "8", "-2"},
                 {"s8", "u8", "i32", 32, 1, 2, 0xfd, "8", "-8"},
                 {"s8u8", "u8", "i32", 32, 1, 0xfe, 0xfd, "504", "-1528"},
                 {"u8s8", "u8", "i32", 32, 1, 0xfe, 0xfd, "504", "-504"},
                 {"u8", "u8", "i32", 32, 1, 0xfe, 0xfd, "1016", "129032"}};
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char body[3072];
        memory m;
        snprintf(body, sizeof body,
                 "    typedef %s E;\n"
                 "    %s e[4] = {};\n"
                 "    for (u32 i = t; i < 64 * 64; i += 128) a[i] = bb[i] = 0;\n"
                 "    zc_sync();\n"
                 "    auto put = [](u16 *tile, u32 row, u32 k, u32 v) {\n"
                 "        const u32 at = k * (u32)sizeof(E) ^ row %% 8 << 4;\n"
                 "        *(E *)((u8 *)tile + row * 128 + at) = (E)v;\n"
                 "    };\n"
                 "    if (t < 64) put(a, t, 3, t %% 2 ? %uu : %uu), put(a, t, %d, %uu);\n"
                 "    if (t == 5) put(bb, t, 3, %uu), put(bb, t, %d, %uu);\n"
                 "    zc_async_fence();\n"
                 "    zc_sync();\n"
                 "    u32 rows[4];\n"
                 "    const u32 line = t / 32 * 16 + t %% 16, piece = t %% 32 / 16 ^ line %% 8;\n"
                 "    zc_ldmatrix_x4(rows, (const u8 *)a + line * 128 + piece * 16);\n"
                 "    zc_wgmma_fence();\n"
                 "    multiply_%s(e, da, db, false);\n"
                 "    held_%s(e, rows, db, true);\n"
                 "    zc_wgmma_commit();\n"
                 "    zc_wgmma_wait<0>();\n"
                 "    if (t %% 4 == 2) {\n" /* columns 4 and 5 */
                 "        const u32 row = t / 32 * 16 + t %% 32 / 4;\n"
                 "        const bool odd = row %% 2;\n"
                 "        out[row] = e[1] == (odd ? %s : %s) && e[0] == 0;\n"
                 "        out[row + 8] = e[3] == (odd ? %s : %s) && e[2] == 0;\n"
                 "    }\n",
                 types[i].element, types[i].sum, types[i].one, types[i].minus, types[i].count - 1,
                 types[i].two, types[i].two, types[i].count - 1, types[i].one, types[i].name,
                 types[i].name, types[i].odd, types[i].even, types[i].odd, types[i].even);
        assert_ok(run(&m, body, 1, 1, 128));
        for (int r = 0; r < 64; r++) assert_int_equal(m.result[r], 1);
    }
}

/* A across the summed axis, 64 rows a line: element (i, 3) is i, B has 2 in column 5 of this row.
 */
static void products_of_rows_across(void **state)
{
    (void)state;
    memory m;
    assert_ok(run(&m,
                  "    for (u32 i = t; i < 16 * 64; i += 128)\n"
                  "        a[i / 64 * 64 + ((i % 64 / 8) ^ (i / 64 % 8)) * 8 + i % 8] =\n"
                  "            i / 64 == 3 ? zc_f32_to_f16((f32)(i % 64)) : 0;\n"
                  "    for (u32 i = t; i < 8 * 64; i += 128)\n"
                  "        bb[i] = i == 5 * 64 + ((0 ^ 5) * 8 + 3) ? 0x4000 : 0;\n"
                  "    zc_async_fence();\n"
                  "    zc_sync();\n"
                  "    zc_wgmma_fence();\n"
                  "    multiply_both(d, zc_wgmma_across(sa, 0, 1024), db, false);\n"
                  "    zc_wgmma_commit();\n"
                  "    zc_wgmma_wait<0>();\n"
                  "    if (t % 4 == 2) {\n" /* columns 4 and 5 */
                  "        const u32 row = t / 32 * 16 + t % 32 / 4;\n"
                  "        out[row] = d[1] == 2 * row && d[0] == 0;\n"
                  "        out[row + 8] = d[3] == 2 * (row + 8) && d[2] == 0;\n"
                  "    }\n",
                  1, 1, 128));
    for (int i = 0; i < 64; i++) assert_int_equal(m.result[i], 1);
}

/* A in registers: element (i, 3) is i, (i, 11) is 1; B has 2 and 4 in column 5 of these rows, so
 * that d(i, 5) = 2 i + 4. */
static void products_of_registers(void **state)
{
    (void)state;
    memory m;
    assert_ok(run(&m,
                  "    for (u32 i = t; i < 16 * 64; i += 128)\n"
                  "        bb[i / 64 * 64 + ((i % 64 / 8) ^ (i / 64 % 8)) * 8 + i % 8] =\n"
                  "            i == 3 * 64 + 5 ? 0x4000 : i == 11 * 64 + 5 ? 0x4400 : 0;\n"
                  "    zc_async_fence();\n"
                  "    zc_sync();\n"
                  "    const u32 row = t / 32 * 16 + t % 32 / 4;\n"
                  "    const bool third = t % 4 == 1;\n" /* columns 2, 3 and 10, 11 */
                  "    const u32 h[4] = {third ? zc_f32x2_to_f16x2(0, row) : 0,\n"
                  "                      third ? zc_f32x2_to_f16x2(0, row + 8) : 0,\n"
                  "                      third ? zc_f32x2_to_f16x2(0, 1) : 0,\n"
                  "                      third ? zc_f32x2_to_f16x2(0, 1) : 0};\n"
                  "    f32 e[32];\n"
                  "    zc_wgmma_fence();\n"
                  "    multiply_held(e, h, zc_wgmma_across(sb, 0, 1024), false);\n"
                  "    zc_wgmma_commit();\n"
                  "    zc_wgmma_wait<0>();\n"
                  "    if (t % 4 == 2) {\n" /* columns 4 and 5 */
                  "        out[row] = e[1] == 2 * row + 4 && e[0] == 0;\n"
                  "        out[row + 8] = e[3] == 2 * (row + 8) + 4 && e[2] == 0;\n"
                  "    }\n",
                  1, 1, 128));
    for (int i = 0; i < 64; i++) assert_int_equal(m.result[i], 1);
}

/* The same A, by windows of which each begins eight elements behind the one before: element 3 of
 * window j is 8 j + 3, element 11 lies 32 bytes behind that, not 16. */
static void products_of_windows(void **state)
{
    (void)state;
    memory m;
    assert_ok(
        run(&m,
            "    for (u32 i = t; i < 64 * 64; i += 128) bb[i] = zc_f32_to_f16((f32)(i % 1024));\n"
            "    zc_async_fence();\n"
            "    zc_sync();\n"
            "    const u32 row = t / 32 * 16 + t % 32 / 4;\n"
            "    const bool third = t % 4 == 1;\n"
            "    const u32 h[4] = {third ? zc_f32x2_to_f16x2(0, row) : 0,\n"
            "                      third ? zc_f32x2_to_f16x2(0, row + 8) : 0,\n"
            "                      third ? zc_f32x2_to_f16x2(0, 1) : 0,\n"
            "                      third ? zc_f32x2_to_f16x2(0, 1) : 0};\n"
            "    f32 e[32];\n"
            "    zc_wgmma_fence();\n"
            "    multiply_windows(e, h, zc_wgmma_windows(sb, 48, 32), false);\n"
            "    zc_wgmma_commit();\n"
            "    zc_wgmma_wait<0>();\n"
            "    u32 right = 0;\n"
            "    for (u32 i = 0; i < 32; i++) {\n"
            "        const u32 r = row + i / 2 % 2 * 8, j = i / 4 * 8 + t % 4 * 2 + i % 2;\n"
            "        right += e[i] == r * (24 + 8 * j + 3) + 24 + 8 * j + 3 + 16;\n"
            "    }\n"
            "    out[t] = right;\n",
            1, 1, 128));
    for (int i = 0; i < 128; i++) assert_int_equal(m.result[i], 32);
}

/* The same A, by eights of lines that begin at line 5 and 7 lines apart, so that they share lines:
 * element 19 of a line is its number, the others are 0. */
static void products_of_spaced_lines(void **state)
{
    (void)state;
    memory m;
    assert_ok(run(&m,
                  "    for (u32 i = t; i < 64 * 64; i += 128)\n"
                  "        bb[i / 64 * 64 + ((i % 64 / 8) ^ (i / 64 % 8)) * 8 + i % 8] =\n"
                  "            i % 64 == 19 ? zc_f32_to_f16((f32)(i / 64)) : 0;\n"
                  "    zc_async_fence();\n"
                  "    zc_sync();\n"
                  "    const u32 row = t / 32 * 16 + t % 32 / 4;\n"
                  "    const bool third = t % 4 == 1;\n"
                  "    const u32 h[4] = {third ? zc_f32x2_to_f16x2(0, row) : 0,\n"
                  "                      third ? zc_f32x2_to_f16x2(0, row + 8) : 0, 0, 0};\n"
                  "    f32 e[32];\n"
                  "    zc_wgmma_fence();\n"
                  "    multiply_windows(e, h, zc_wgmma_spaced(sb + 5 * 128, 32, 7 * 128), false);\n"
                  "    zc_wgmma_commit();\n"
                  "    zc_wgmma_wait<0>();\n"
                  "    u32 right = 0;\n"
                  "    for (u32 i = 0; i < 32; i++) {\n"
                  "        const u32 r = row + i / 2 % 2 * 8, j = i / 4 * 8 + t % 4 * 2 + i % 2;\n"
                  "        right += e[i] == r * (5 + j / 8 * 7 + j % 8);\n"
                  "    }\n"
                  "    out[t] = right;\n",
                  1, 1, 128));
    for (int i = 0; i < 128; i++) assert_int_equal(m.result[i], 32);
}

/* Of each four neighbours of A two are stored, 16 of a row in two chunks as windows have them. Row
 * i has i + 1 at place 8 + i % 4 of the summed axis; B has k + 1 in column 5 of row k. What is not
 * stored counts nothing: column 4 has NaN at places 9 and 10, of which rows 0, 4 ... store none.
 * The words of the threads that the selector does not name are no places, and nobody reads them. */
static void sparse_products(void **state)
{
    static const char *const names[] = {"multiply_sparse", "multiply_sparse_second"};
    (void)state;
    for (int selector = 0; selector < 2; selector++) {
        char body[4096];
        memory m;
        snprintf(
            body, sizeof body,
            "    for (u32 i = t; i < 64 * 64; i += 128) a[i] = bb[i] = 0;\n"
            "    zc_sync();\n"
            "    const u32 row = t / 32 * 16 + t %% 32 / 4;\n"
            "    if (t < 64) a[t * 8 + (t %% 4 ? 5 : 4)] = zc_f32_to_f16((f32)(t + 1));\n"
            "    if (t < 32) {\n"
            "        bb[5 * 64 + ((t / 8) ^ 5) * 8 + t %% 8] = zc_f32_to_f16((f32)(t + 1));\n"
            "        bb[4 * 64 + ((t / 8) ^ 4) * 8 + t %% 8] = t == 8 ? 0x3c00 : t == 11 ? 0 : "
            "t / 4 == 2 ? 0x7e00 : 0;\n"
            "    }\n"
            "    zc_async_fence();\n"
            "    zc_sync();\n"
            /* Of the third four, by rows: 0 and 3, 0 and 1, 0 and 2, 0 and 3. */
            "    const u32 pair = row %% 4 == 1 ? 0x4 : row %% 4 == 2 ? 0x8 : 0xc;\n"
            "    const u32 half = 0x4044 | pair << 8;\n"
            "    const u32 places = t %% 4 / 2 != %d ? 0 : t %% 2 ? 0x44444444 : half | half << "
            "16;\n"
            "    zc_wgmma_fence();\n"
            "    %s(d, zc_wgmma_windows(sa, 0, 1024), db, places, false);\n"
            "    zc_wgmma_commit();\n"
            "    zc_wgmma_wait<0>();\n"
            "    if (t %% 4 == 2) {\n" /* columns 4 and 5 */
            "        const u32 at = row %% 4;\n"
            "        for (u32 r = 0; r < 2; r++)\n"
            "            out[row + 8 * r] = d[1 + 2 * r] == (row + 8 * r + 1) * (8 + at + 1);\n"
            "        out[64 + row] = at != 0 || d[0] == row + 1;\n"
            "    }\n",
            selector, names[selector]);
        assert_ok(run(&m, body, 1, 1, 128));
        for (int i = 0; i < 64; i++) assert_int_equal(m.result[i], 1);
        for (int i = 0; i < 64; i++)
            if (i % 16 < 8) assert_int_equal(m.result[64 + i], 1);
    }
}

/* The matrices of zc_stmatrix_x4 are what zc_ldmatrix_x4 reads, those with _trans too. */
static void matrix_stores(void **state)
{
    (void)state;
    memory m;
    assert_ok(run(&m,
                  "    __shared__ __align__(16) u16 s[32][8];\n"
                  "    u32 r[4], back[4];\n"
                  "    for (u32 i = 0; i < 4; i++) r[i] = 100 * t + i;\n"
                  "    zc_stmatrix_x4(zc_smem_address(s[31 - t]), r);\n"
                  "    zc_ldmatrix_x4(back, s[31 - t]);\n"
                  "    out[t] = s[31 - 9][4] == 601;\n"
                  "    for (u32 i = 0; i < 4; i++) out[32 + 4 * t + i] = back[i];\n"
                  "    zc_sync_warp();\n"
                  "    zc_stmatrix_x4_trans(zc_smem_address(s[31 - t]), r);\n"
                  "    zc_ldmatrix_x4_trans(back, s[31 - t]);\n"
                  "    out[t] += 2 * (s[31 - 10][4] == 1701);\n"
                  "    for (u32 i = 0; i < 4; i++) out[160 + 4 * t + i] = back[i];\n",
                  1, 1, 32));
    for (unsigned t = 0; t < 32; t++)
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(m.result[32 + 4 * t + i], 100 * t + i);
            assert_int_equal(m.result[160 + 4 * t + i], 100 * t + i);
        }
    /* Row 1 of matrix 1: elements 4, 5 are those of lane 1 * 4 + 2; row 2 of columns: element 4 is
     * that of lane 4 * 4 + 1. */
    assert_int_equal(m.result[0], 3);
}

/* A take waits until others have dropped. */
static void registers_move(void **state)
{
    (void)state;
    memory m;
    assert_ok(run(&m,
                  "    if (t >= 128) zc_registers_take<256>();\n"
                  "    else zc_registers_drop<240>();\n"
                  "    out[t / 128] = 1;\n",
                  1, 1, 256));
    assert_int_equal(m.result[0] + m.result[1], 2);
}

/* With programmatic dependent launch, what comes before may still be running. */
static void copies_wait_for_the_grid_before(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        "    zc_cp_async16(tile, data, true);\n    zc_grid_wait();\n",
        "    zc_barrier_init(b, 1);\n    zc_barrier_fence();\n    zc_barrier_expect(b, 16);\n"
        "    zc_bulk_load(to, data, 16, b);\n    zc_barrier_wait(b, 0);\n    zc_grid_wait();\n",
        "    zc_grid_wait();\n    zc_cp_async16(tile, data, true);\n",
        "    zc_constant_load();\n    zc_cp_async16(tile, data, true);\n    zc_grid_wait();\n"};
    for (int i = 0; i < 4; i++)
        for (int overlaps = 0; overlaps < 2; overlaps++) {
            memory m;
            device_again();
            prepare(&m);
            tensor_map map = map_of(&m, 2, HC_CU_TENSOR_MAP_SWIZZLE_128B);
            void *params[] = {&m.out, &m.data, &map};
            hc_launch_attribute a = {.id = HC_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                     .value.programmatic = overlaps};
            hc_launch_config config = {.grid_x = 1,
                                       .grid_y = 1,
                                       .grid_z = 1,
                                       .block_x = 1,
                                       .block_y = 1,
                                       .block_z = 1,
                                       .attrs = &a,
                                       .attr_count = 1};
            assert_int_equal(cuLaunchKernelEx(&config, kernel_of(bodies[i]), params, NULL),
                             overlaps && i < 2 ? HC_CUDA_ERROR_LAUNCH_FAILED : HC_CUDA_SUCCESS);
        }
}

/* ---- Rings ---- */

/* One warp fills stages, GROUPS others take every GROUPS-th step each, and leave a stage when they
 * have the one of LATE steps later. */
#define RING(stages, groups, late)                                                                 \
    "\n#undef STAGES\n#undef GROUPS\n#undef LATE\n"                                                \
    "#define STAGES " #stages "\n#define GROUPS " #groups "\n#define LATE " #late "\n"             \
    "    __shared__ __align__(16) u32 stage[STAGES][4];\n"                                         \
    "    __shared__ __align__(8) u64 full[STAGES], empty[STAGES];\n"                               \
    "    const u32 warp = t / 32, f = zc_smem_address(full), e = zc_smem_address(empty);\n"        \
    "    for (u32 i = 0; t == 0 && i < STAGES; i++) {\n"                                           \
    "        zc_barrier_init(f + 8 * i, 1);\n"                                                     \
    "        zc_barrier_init(e + 8 * i, 1);\n"                                                     \
    "    }\n"                                                                                      \
    "    if (t == 0) zc_barrier_fence();\n"                                                        \
    "    zc_sync();\n"                                                                             \
    "    u32 sum = 0;\n"                                                                           \
    "    for (u32 i = 0; t == GROUPS * 32 && i < 24; i++) {\n"                                     \
    "        const u32 s = i % STAGES;\n"                                                          \
    "        if (i >= STAGES) zc_barrier_wait(e + 8 * s, i / STAGES - 1 & 1);\n"                   \
    "        zc_barrier_expect(f + 8 * s, 16);\n"                                                  \
    "        zc_bulk_load(zc_smem_address(stage[s]), data + 8 * i, 16, f + 8 * s);\n"              \
    "    }\n"                                                                                      \
    "    for (u32 i = warp; warp < GROUPS && i < 24; i += GROUPS) {\n"                             \
    "        zc_barrier_wait(f + 8 * (i % STAGES), i / STAGES & 1);\n"                             \
    "        sum += stage[i % STAGES][0] & 0xffff;\n"                                              \
    "        zc_sync_warp();\n"                                                                    \
    "        if (i < LATE * GROUPS || t % 32) continue;\n"                                         \
    "        zc_barrier_arrive(e + 8 * ((i - LATE * GROUPS) % STAGES));\n"                         \
    "    }\n"                                                                                      \
    "    if (t % 32 == 0) out[warp] = sum;\n"

static void check_two_groups(const memory *m)
{
    assert_int_equal(m->result[0], 12 * 11 * 8);
    assert_int_equal(m->result[1], 12 * 11 * 8 + 12 * 8);
}

static void rings(void **state)
{
    (void)state;
    memory m;
    run_in_any_order(&m, RING(4, 2, 1), 1, 1, 96, check_two_groups);
    run_in_any_order(&m, RING(2, 2, 0), 1, 1, 96, check_two_groups);
}

/* What a ring does wrong is seen in whatever order things happen. */
static void wrong_rings(void **state)
{
    (void)state;
    static const char *const bodies[] = {
        RING(2, 2, 1), /* waits for a stage before it leaves its only one */
        RING(3, 2, 0), /* stages are the one's and the other's in turn */
        RING(3, 2, 1)};
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        for (int seed = 0; seed < 8; seed++) {
            memory m;
            char text[16];
            snprintf(text, sizeof text, "%d", seed);
            setenv("ZC_HOSTCUDA_SHUFFLE", text, 1);
            device_again();
            assert_int_equal(run(&m, bodies[i], 1, 1, 96), HC_CUDA_ERROR_LAUNCH_FAILED);
        }
}

/* ---- What is wrong: the launch fails, and the message says why ---- */

typedef struct wrong {
    const char *body, *words;
    unsigned threads, cluster;
    hc_result code;
} wrong;

/* All in one module, and one kernel that is right. */
static char *image_of(const wrong *cases, size_t count)
{
    char *text, *log, *image;
    size_t size;
    FILE *f = open_memstream(&text, &size);
    assert_non_null(f);
    fprintf(f, "%sKERNEL(right)\n%s    out[t] = 1;\n}\n", head, begin);
    for (size_t i = 0; i < count; i++)
        fprintf(f, "KERNEL(wrong_%zu)\n%s%s}\n", i, begin, cases[i].body);
    fclose(f);
    hc_result r = compile_source(text, "-arch=sm_90", &image, &log);
    if (r != 0) print_error("%s\n", log);
    assert_int_equal(r, 0);
    free(text), free(log);
    return image;
}

/* What the driver says on stderr during the launch. */
static hc_result launch_and_listen(hc_function_t f, const wrong *w, void **params, char said[4096])
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO);
    assert_true(file && before >= 0 && dup2(fileno(file), STDERR_FILENO) >= 0);
    hc_result r = launch_cluster(f, 2, w->cluster, w->threads, params);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    said[fread(said, 1, 4095, file)] = '\0';
    fclose(file);
    return r;
}

static void fail_all(const wrong *cases, size_t count)
{
    char *image = image_of(cases, count);
    for (size_t i = 0; i < count; i++) {
        const wrong *w = &cases[i];
        char said[4096], name[32];
        memory m;
        hc_module_t module;
        device_again();
        prepare(&m);
        tensor_map map = map_of(&m, 2, HC_CU_TENSOR_MAP_SWIZZLE_128B);
        void *params[] = {&m.out, &m.data, &map};
        assert_ok(cuModuleLoadData(&module, image));
        snprintf(name, sizeof name, "wrong_%zu", i);
        hc_result r = launch_and_listen(function_of(module, name), w, params, said);
        if (r != w->code || !strstr(said, w->words) || !strstr(said, name))
            fail_msg("%s: %u, need %u and \"%s\": %s", w->body, r, w->code, w->words, said);
        /* The next launch finds everything in order. */
        device_again();
        prepare(&m);
        assert_ok(cuModuleLoadData(&module, image));
        assert_ok(launch_cluster(function_of(module, "right"), 2, 1, 32, params));
    }
    free(image);
}

#define READY                                                                                      \
    "    if (t == 0) {\n        zc_barrier_init(b, 1);\n        zc_barrier_fence();\n    }\n"      \
    "    zc_cluster_arrive();\n    zc_cluster_wait();\n"

static void wrong_barriers(void **state)
{
    (void)state;
    static const wrong cases[] = {
        {"    zc_barrier_arrive(b);\n", "has not been initialised", 32, 1, 719},
        {"    zc_barrier_wait(b, 0);\n", "has not been initialised", 32, 1, 719},
        {"    zc_barrier_init(b, 0);\n", "a barrier for 0 arrivals", 1, 1, 719},
        {"    zc_barrier_init(b + 4, 1);\n", "is not 8-byte aligned", 1, 1, 716},
        {"    zc_barrier_init(zc_smem_address(out), 1);\n", "is not shared memory", 1, 1, 717},
        {READY "    zc_barrier_expect(b, 16);\n    zc_barrier_arrive(b);\n",
         "more arrivals than the 1", 1, 1, 719},
        {READY "    zc_barrier_wait(b, 2);\n", "parity 2", 1, 1, 719},
        {READY "    barriers[0] = 5;\n    zc_barrier_arrive(b);\n", "has been overwritten", 1, 1,
         719},
        {"    zc_barrier_init(b, 2);\n    zc_barrier_arrive(b);\n    zc_barrier_arrive(b);\n",
         "arrives twice in phase 0", 1, 1, 719},
        {"    zc_barrier_init(b, 1);\n    zc_barrier_arrive(b);\n    zc_barrier_arrive(b);\n",
         "phase 1 of the barrier at 0x", 1, 1, 719},
        {READY "    zc_barrier_wait(b, 1);\n    zc_barrier_expect(b, 16);\n",
         "which counts bytes, returned before any phase", 1, 1, 719},
        {READY
         "    zc_barrier_arrive(b);\n    zc_barrier_wait(b, 0);\n    zc_barrier_wait(b, 0);\n",
         "waits again for what it has waited for: phase 1", 1, 1, 719},
        {READY
         "    if (t == 0) {\n        zc_barrier_arrive(b);\n        zc_barrier_wait(b, 0);\n"
         "        zc_barrier_arrive(b);\n    } else {\n        zc_barrier_wait(b, 1);\n    }\n",
         "cannot know that the phase before has ended", 33, 1, 719},
        {READY "    if (t == 0) {\n        zc_barrier_arrive(b);\n        zc_barrier_wait(b, 0);\n"
               "        zc_barrier_arrive(b);\n    } else if (t == 32) {\n"
               "        zc_barrier_wait(b, 0);\n    }\n",
         "and the next, ended before a thread saw it", 33, 1, 719},
        {RING(2, 2, 1), "for a barrier in shared memory in line", 96, 1, 719},
        {RING(3, 2, 0), "cannot know that the phase before has ended", 96, 1, 719},
        {"    if (t < 32) zc_named_arrive(1, 64);\n    if (t < 32) zc_named_arrive(1, 64);\n",
         "comes twice to named barrier 1", 64, 1, 719},
        {READY "    zc_barrier_wait(b, 0);\n",
         "block (0, 0, 0), thread (0, 0, 0) and 31 more wait for a barrier in shared memory in "
         "line",
         32, 1, 719},
        {"    zc_barrier_init(b, 1);\n    zc_bulk_load(to, data, 16, b);\n",
         "without a zc_barrier_fence", 1, 1, 719},
        {READY "    zc_barrier_arrive(zc_cluster_address(b, 1 - rank));\n",
         "is a barrier of another block", 1, 2, 717},
        {READY "    zc_barrier_arrive_remote(zc_cluster_address(b, 2));\n", "of a cluster of 2", 1,
         2, 700},
        {READY "    if (rank == 0) {\n        zc_atomic_add(out, 1u);\n        return;\n    }\n"
               "    while (zc_atomic_add(out, 0u) == 0) {\n    }\n"
               "    zc_barrier_arrive_remote(zc_cluster_address(b, 0));\n",
         "which has ended", 1, 2, 700},
        {"    zc_named_sync(16, 32);\n", "named barrier 16", 32, 1, 719},
        {"    zc_named_sync(1, 40);\n", "need whole warps", 64, 1, 719},
        {"    zc_named_sync(1, t < 32 ? 64 : 96);\n", "for 96 threads", 96, 1, 719},
        {"    if (t < 32) zc_named_sync(1, 64);\n", "for a named barrier in line", 64, 2, 719},
        {"    if (t < 32) zc_named_sync(1, 64);\n    else zc_sync();\n", "32 more wait for", 65, 1,
         719},
        {"    zc_cluster_wait();\n", "without zc_cluster_arrive", 1, 2, 719},
        {"    zc_cluster_arrive();\n    zc_cluster_arrive();\n", "zc_cluster_arrive twice", 1, 2,
         719},
        {READY "    if (rank == 0) {\n        zc_cluster_arrive();\n        zc_cluster_wait();\n"
               "    } else {\n        zc_barrier_wait(b, 0);\n    }\n",
         "for the cluster's barrier in line", 32, 2, 719},
    };
    fail_all(cases, sizeof cases / sizeof *cases);
}

#define LOAD                                                                                       \
    READY "    if (t == 0) zc_barrier_expect(b, 16);\n"                                            \
          "    if (t == 0) zc_bulk_load(to, data, 16, b);\n"

static void wrong_copies(void **state)
{
    (void)state;
    static const wrong cases[] = {
        {READY "    zc_bulk_load(to, data, 24, b);\n", "a copy of 24 bytes", 1, 1, 719},
        {READY "    zc_bulk_load(to + 8, data, 16, b);\n", "is not 16-byte aligned", 1, 1, 716},
        {READY "    zc_bulk_load(to, data + 4, 16, b);\n", "is not 16-byte aligned", 1, 1, 716},
        {READY "    zc_bulk_load(to, data + 32 * 64 * 3, 16, b);\n", "is not device memory", 1, 1,
         700},
        {READY "    zc_bulk_load(to + (1 << 20), data, 16, b);\n", "are not shared memory", 1, 1,
         700},
        {"    *zc_aligned<u64>(out + 1) = 1;\n", "is not 8-byte aligned", 1, 1, 716},
        {READY "    zc_tensor_load(to + 64, &map, b, 0, 0);\n", "is not 128-byte aligned", 1, 1,
         716},
        {READY "    zc_tensor_load(to, &map, b, 0, 0, 0);\n",
         "3 coordinates for a tensor map of rank 2", 1, 1, 719},
        {READY "    zc_tensor_load(to, (const zc_tensor_map *)data, b, 0, 0);\n",
         "is no tensor map", 1, 1, 719},
        {READY "    zc_tensor_multicast(to, &map, b, 6, 0, 0);\n", "a copy to blocks 0x6", 1, 2,
         700},
        {READY "    zc_bulk_load(zc_cluster_address(to, 1 - rank), data, 16, b);\n",
         "with a barrier of another block", 1, 2, 719},
        {READY "    zc_barrier_expect(b, 1024);\n    zc_tensor_load(to, &map, b, 0, 0);\n",
         "is under way when that ends", 1, 1, 719},
        {READY "    zc_bulk_load(to, data, 16, b);\n    zc_barrier_arrive(b);\n"
               "    zc_barrier_wait(b, 0);\n    zc_barrier_wait(b, 1);\n",
         "has ended without the copy", 1, 1, 719},
        {LOAD "    tile[0][7] = 1;\n    zc_barrier_wait(b, 0);\n",
         "was written while a copy to it was under way", 1, 1, 719},
        {LOAD "    zc_bulk_load(to, data, 16, b);\n", "is still under way", 1, 1, 719},
        {LOAD "    zc_tensor_store(&map, to, 0, 0);\n", "is still under way", 1, 1, 719},
        {LOAD "    u32 r[4];\n    zc_ldmatrix_x4(r, tile[0]);\n", "is still under way", 32, 1, 719},
        {READY "    tile[0][0] = 1;\n    zc_bulk_load(to, data, 16, b);\n",
         "without a zc_async_fence", 1, 1, 719},
        {READY "    if (rank == 0) {\n        zc_bulk_send(zc_cluster_address(to, 1), to + 16, 16,"
               " zc_cluster_address(b, 1));\n        tile[0][8] = 1;\n    }\n"
               "    zc_barrier_wait(b, 0);\n",
         "has changed since it was sent", 1, 2, 719},
        {"    zc_cp_async16(tile, data, true);\n    tile[0][0] = 1;\n    zc_cp_async_commit();\n"
         "    ZC_CP_ASYNC_WAIT(0);\n",
         "was written while a copy to it was under way", 1, 1, 719},
        {"    tile[2][0] = 1;\n    zc_tensor_store(&map, to, 0, 0);\n", "without a zc_async_fence",
         1, 1, 719},
        {"    zc_async_fence();\n    tile[2][0] = 1;\n    zc_tensor_store(&map, to, 0, 0);\n",
         "without a zc_async_fence", 1, 1, 719},
        {READY "    tile[0][0] = 1;\n    zc_bulk_send(zc_cluster_address(to, 1), to, 16,"
               " zc_cluster_address(b, 1));\n",
         "without a zc_async_fence", 1, 2, 719},
        {"    zc_async_fence();\n    zc_tensor_store(&map, to, 0, 0);\n    zc_bulk_commit();\n"
         "    tile[3][0] = 1;\n    zc_bulk_wait<0>();\n",
         "has changed since the store was asked for", 1, 1, 719},
        {"    zc_tensor_store(&map, to, 0, 0);\n    zc_bulk_commit();\n", "before a store has read",
         1, 1, 719},
    };
    fail_all(cases, sizeof cases / sizeof *cases);
}

#define FENCE  "    zc_wgmma_fence();\n"
#define FINISH "    zc_wgmma_commit();\n    zc_wgmma_wait<0>();\n    out[t] = (u32)d[0];\n"

#define SPARSE(word, b)                                                                            \
    "    u32 places = " word ";\n"                                                                 \
    "    multiply_sparse(d, zc_wgmma_windows(sa, 0, 1024), " b ", places, false);\n"

static void wrong_products(void **state)
{
    (void)state;
    static const wrong cases[] = {
        {"    multiply(d, da, db, false);\n" FINISH, "without a zc_wgmma_fence", 128, 1, 719},
        {FENCE "    multiply(d, da, db, false);\n" FINISH "    multiply(d, da, db, false);\n",
         "since the last zc_wgmma_wait", 128, 1, 719},
        {FENCE "    multiply(d, da, db, false);\n" FINISH, "a warpgroup of fewer than 128", 96, 1,
         719},
        {FENCE "    if (t < 64) {\n    multiply(d, da, db, false);\n" FINISH
               "    } else {\n        zc_named_sync(1, 128);\n    }\n",
         "63 more wait for the warpgroup's products", 128, 1, 719},
        {FENCE "    if (t < 64) multiply(d, da, db, false);\n" FINISH, "64 of 128 threads asked",
         128, 1, 719},
        {FENCE "    multiply(d, da, t < 32 ? da : db, false);\n" FINISH,
         "ask for different products", 128, 1, 719},
        {FENCE "    multiply(d, zc_wgmma_along(sa + 128), db, false);\n" FINISH,
         "whose first line is not 1024-byte aligned", 128, 1, 716},
        {FENCE "    multiply(d, zc_wgmma_along(sa + 16), db, false);\n" FINISH,
         "whose first line is not 1024-byte aligned", 128, 1, 716},
        {FENCE "    multiply(d, da & ~(3ull << 62), db, false);\n" FINISH, "a descriptor", 128, 1,
         719},
        {FENCE SPARSE("0x55555555", "db") FINISH, "stores elements 1 and 1 of four neighbours", 128,
         1, 719},
        {FENCE SPARSE("0x11111111", "db") FINISH, "stores elements 1 and 0 of four neighbours", 128,
         1, 719},
        {FENCE SPARSE("0x44444444", "zc_wgmma_along(sb, 32)") FINISH,
         "whose first line is not 1024-byte aligned", 128, 1, 716},
        {FENCE SPARSE("0x44444444", "db") "    places = 0xeeeeeeee;\n" FINISH,
         "registers of thread 0 have changed", 128, 1, 719},
        {FENCE "    multiply(d, da, db ^ 3ull << 62, false);\n" FINISH, "a descriptor", 128, 1,
         719},
        {FENCE "    multiply(d, zc_wgmma_along(0), db, false);\n" FINISH, "are not shared memory",
         128, 1, 700},
        {FENCE "    a[t] = 1;\n    multiply(d, da, db, false);\n" FINISH,
         "without a zc_async_fence", 128, 1, 719},
        {FENCE "    multiply(d, da, db, false);\n    a[t] = 1;\n" FINISH,
         "has changed since the product was asked for", 128, 1, 719},
        /* A warp knows of its own products alone; the others may still read. */
        {FENCE "    multiply(d, da, db, false);\n" FINISH
               "    a[t] = 1;\n    zc_named_sync(1, 128);\n",
         "has changed since the product was asked for", 128, 1, 719},
        {FENCE "    multiply(d, da, db, false);\n    d[3] = 1;\n" FINISH,
         "registers of thread 0 have changed", 128, 1, 719},
        {READY "    if (t == 0) zc_barrier_expect(b, 16);\n"
               "    if (t == 0) zc_bulk_load(sb, data, 16, b);\n    zc_sync();\n" FENCE
               "    multiply(d, da, db, false);\n" FINISH,
         "is still under way", 128, 1, 719},
        {FENCE
         "    u32 h[4] = {0};\n    f32 e[32];\n"
         "    multiply_held(e, h, zc_wgmma_across(sb, 0, 1024), false);\n    h[2] = 1;\n" FINISH,
         "registers of thread 0 have changed", 128, 1, 719},
        {FENCE "    multiply(d, da, db, false);\n    zc_wgmma_commit();\n"
               "    out[t] = (u32)d[0];\n",
         "ends before the product is waited for", 128, 1, 719},
        {"    zc_registers_take<250>();\n", "250 registers", 128, 1, 719},
        {"    zc_registers_drop<16>();\n", "16 registers", 128, 1, 719},
        {"    zc_registers_drop<32>();\n    zc_registers_drop<40>();\n",
         "down to 40 registers of 32", 128, 1, 719},
        {"    if (t < 32) zc_registers_drop<32>();\n", "for the warpgroup's collective in line",
         128, 1, 719},
        {"    zc_registers_take<256>();\n", "wait for registers in line", 256, 1, 719},
        {"    u32 r[4];\n    zc_stmatrix_x4(to + 4 * t, r);\n", "is not 16-byte aligned", 32, 1,
         716},
        {"    u32 r[4];\n    zc_stmatrix_x4(to, r);\n", "in a warp of fewer than 32", 16, 1, 719},
    };
    fail_all(cases, sizeof cases / sizeof *cases);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, device_up, device_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(phases),
        TEST(a_parity_is_not_a_phase),
        TEST(named_barriers),
        TEST(blocks_of_a_cluster),
        TEST(remote_arrivals),
        TEST(cluster_sizes),
        TEST(clusters_in_graphs),
        TEST(blocks_wait_for_each_other),
        TEST(blocks_that_have_no_room),
        TEST(the_last_block_sums),
        TEST(swizzles),
        TEST(boxes_at_the_border),
        TEST(loads_round_to_tf32),
        TEST(bulk_loads),
        TEST(multicast),
        TEST(stores),
        TEST(copies_come_late),
        TEST(what_a_tensor_map_needs),
        TEST(what_an_im2col_map_needs),
        TEST(patches),
        TEST(patches_of_other_sides),
        TEST(products_come_late),
        TEST(operands_are_left),
        TEST(products_of_other_types),
        TEST(products_of_rows_across),
        TEST(products_of_registers),
        TEST(products_of_windows),
        TEST(products_of_spaced_lines),
        TEST(sparse_products),
        TEST(matrix_stores),
        TEST(registers_move),
        TEST(copies_wait_for_the_grid_before),
        TEST(rings),
        TEST(wrong_rings),
        TEST(wrong_barriers),
        TEST(wrong_copies),
        TEST(wrong_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
