/* Capture, replay and update of graphs, and what capture forbids. */
#include "fixture.h"

#include <string.h>

static const char source[] = "extern \"C\" __global__ void scale(f32 *x, f32 by, u32 n)\n"
                             "{\n"
                             "    u32 i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                             "    if (i < n) x[i] *= by;\n"
                             "}\n";

enum { N = 64 };

typedef struct captured {
    hc_stream_t stream;
    hc_function_t f;
    hc_ptr x, y;
    float host[N];
} captured;

static void begin(captured *c)
{
    for (int i = 0; i < N; i++) c->host[i] = (float)i;
    c->f = function_of(load_source(source), "scale");
    c->x = device_bytes(NULL, sizeof c->host);
    c->y = device_bytes(NULL, sizeof c->host);
    assert_ok(cuStreamCreate(&c->stream, HC_CU_STREAM_NON_BLOCKING));
    assert_ok(cuStreamBeginCapture_v2(c->stream, HC_CU_STREAM_CAPTURE_MODE_GLOBAL));
}

static hc_result scale(captured *c, float by)
{
    unsigned n = N;
    void *params[] = {&c->x, &by, &n};
    hc_launch_attribute attribute = {.id =
                                         HC_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmatic = 1;
    hc_launch_config config = {2, 1, 1, 32, 1, 1, 0, c->stream, &attribute, 1};
    return cuLaunchKernelEx(&config, c->f, params, NULL);
}

/* y = host * by, x = host * by, then zeros over the first half of x */
static hc_graph_t record(captured *c, float by)
{
    hc_graph_t graph;
    assert_ok(cuMemcpyHtoDAsync_v2(c->x, c->host, sizeof c->host, c->stream));
    assert_ok(scale(c, by));
    assert_ok(cuMemcpyDtoDAsync_v2(c->y, c->x, sizeof c->host, c->stream));
    assert_ok(cuMemsetD32Async(c->x, 0, N / 2, c->stream));
    assert_ok(cuStreamEndCapture(c->stream, &graph));
    return graph;
}

static void check_result(captured *c, float by)
{
    float x[N], y[N];
    assert_ok(cuMemcpyDtoH_v2(x, c->x, sizeof x));
    assert_ok(cuMemcpyDtoH_v2(y, c->y, sizeof y));
    for (int i = 0; i < N; i++) {
        assert_true(y[i] == c->host[i] * by);
        assert_true(x[i] == (i < N / 2 ? 0 : c->host[i] * by));
    }
}

static void replay(void **state)
{
    (void)state;
    captured c;
    unsigned status, poison;
    begin(&c);
    assert_ok(cuStreamIsCapturing(c.stream, &status));
    assert_int_equal(status, HC_CU_STREAM_CAPTURE_STATUS_ACTIVE);
    hc_graph_t graph = record(&c, 3);
    assert_ok(cuMemcpyDtoH_v2(&poison, c.y, 4));
    assert_int_equal(poison, 0xffffffffu); /* recorded, not run */
    hc_exec_t exec;
    assert_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_ok(cuGraphDestroy(graph));
    assert_ok(cuGraphUpload(exec, c.stream));
    assert_ok(cuGraphLaunch(exec, c.stream));
    check_result(&c, 3);
    c.host[5] = 100; /* copies read the host's memory when replayed */
    assert_ok(cuGraphLaunch(exec, c.stream));
    check_result(&c, 3);
    assert_ok(cuGraphExecDestroy(exec));
    assert_int_equal(cuGraphLaunch(exec, c.stream), HC_CUDA_ERROR_INVALID_HANDLE);
}

static void nodes_and_parameters(void **state)
{
    (void)state;
    captured c;
    begin(&c);
    hc_graph_t graph = record(&c, 3);
    hc_exec_t exec;
    assert_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    hc_node_t nodes[8];
    size_t count = 0;
    unsigned type;
    assert_ok(cuGraphGetNodes(graph, NULL, &count));
    assert_int_equal(count, 4);
    count = 8;
    assert_ok(cuGraphGetNodes(graph, nodes, &count));
    assert_int_equal(count, 4);
    static const unsigned types[] = {HC_CU_GRAPH_NODE_TYPE_MEMCPY, HC_CU_GRAPH_NODE_TYPE_KERNEL,
                                     HC_CU_GRAPH_NODE_TYPE_MEMCPY, HC_CU_GRAPH_NODE_TYPE_MEMSET};
    for (int i = 0; i < 4; i++) {
        assert_ok(cuGraphNodeGetType(nodes[i], &type));
        assert_int_equal(type, types[i]);
    }
    hc_kernel_params p;
    assert_int_equal(cuGraphKernelNodeGetParams_v2(nodes[0], &p), HC_CUDA_ERROR_INVALID_HANDLE);
    assert_ok(cuGraphKernelNodeGetParams_v2(nodes[1], &p));
    assert_ptr_equal(p.func, c.f);
    assert_int_equal(p.grid_x, 2);
    assert_int_equal(p.block_x, 32);
    assert_true(*(float *)p.params[1] == 3);
    float by = 7;
    void *params[] = {p.params[0], &by, p.params[2]};
    p.params = params;
    assert_ok(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &p));
    by = 0; /* copied */
    assert_ok(cuGraphLaunch(exec, NULL));
    check_result(&c, 7);
    p.grid_x = 0;
    assert_int_equal(cuGraphExecKernelNodeSetParams_v2(exec, nodes[1], &p),
                     HC_CUDA_ERROR_INVALID_VALUE);
}

static void update(void **state)
{
    (void)state;
    captured c;
    hc_update_info info;
    begin(&c);
    hc_graph_t graph = record(&c, 3), other;
    hc_exec_t exec;
    assert_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_ok(cuStreamBeginCapture_v2(c.stream, HC_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    other = record(&c, 5);
    assert_ok(cuGraphExecUpdate_v2(exec, other, &info));
    assert_int_equal(info.result, HC_CU_GRAPH_EXEC_UPDATE_SUCCESS);
    assert_ok(cuGraphLaunch(exec, c.stream));
    check_result(&c, 5);
    assert_ok(cuStreamBeginCapture_v2(c.stream, HC_CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
    assert_ok(scale(&c, 2));
    assert_ok(cuStreamEndCapture(c.stream, &other));
    assert_int_equal(cuGraphExecUpdate_v2(exec, other, &info),
                     HC_CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE);
    assert_int_equal(info.result, HC_CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);
}

/* A forbidden call fails with its code, and the capture it happened in is lost. */
static void forbidden(void **state)
{
    (void)state;
    hc_ptr p;
    hc_graph_t graph;
    captured c;
    begin(&c);
    hc_stream_t s = c.stream;
    assert_int_equal(cuMemAlloc_v2(&p, 4), HC_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(scale(&c, 2), HC_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(cuStreamEndCapture(s, &graph), HC_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_null(graph);
    assert_ok(cuStreamBeginCapture_v2(s, HC_CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_ok(cuMemAlloc_v2(&p, 4));
    assert_int_equal(cuStreamSynchronize(s), HC_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    assert_int_equal(cuStreamEndCapture(s, &graph), HC_CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    assert_int_equal(cuStreamBeginCapture_v2(NULL, HC_CU_STREAM_CAPTURE_MODE_RELAXED),
                     HC_CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    hc_stream_t blocking;
    assert_ok(cuStreamCreate(&blocking, 0));
    assert_ok(cuStreamBeginCapture_v2(blocking, HC_CU_STREAM_CAPTURE_MODE_RELAXED));
    assert_int_equal(cuMemcpyHtoD_v2(c.x, c.host, 4), HC_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
}

/* A second stream joins by waiting for an event, and must be waited for. */
static void fork_and_join(void **state)
{
    (void)state;
    captured c;
    hc_graph_t graph;
    hc_event_t fork, join;
    hc_stream_t other;
    hc_exec_t exec;
    unsigned status;
    begin(&c);
    assert_ok(cuStreamCreate(&other, HC_CU_STREAM_NON_BLOCKING));
    assert_ok(cuEventCreate(&fork, HC_CU_EVENT_DISABLE_TIMING));
    assert_ok(cuEventCreate(&join, HC_CU_EVENT_DISABLE_TIMING));
    for (int joined = 0; joined < 2; joined++) {
        assert_ok(cuEventRecord(fork, c.stream));
        assert_ok(cuStreamWaitEvent(other, fork, 0));
        assert_ok(cuStreamIsCapturing(other, &status));
        assert_int_equal(status, HC_CU_STREAM_CAPTURE_STATUS_ACTIVE);
        assert_ok(cuMemsetD8Async(c.x, 0x11, 4, other));
        if (joined) {
            assert_ok(cuEventRecord(join, other));
            assert_ok(cuStreamWaitEvent(c.stream, join, 0));
            break;
        }
        assert_int_equal(cuStreamEndCapture(c.stream, &graph),
                         HC_CUDA_ERROR_STREAM_CAPTURE_UNJOINED);
        assert_ok(cuStreamBeginCapture_v2(c.stream, HC_CU_STREAM_CAPTURE_MODE_GLOBAL));
    }
    assert_ok(cuStreamEndCapture(c.stream, &graph));
    assert_ok(cuGraphInstantiateWithFlags(&exec, graph, 0));
    assert_ok(cuGraphLaunch(exec, c.stream));
    unsigned value;
    assert_ok(cuMemcpyDtoH_v2(&value, c.x, 4));
    assert_int_equal(value, 0x11111111);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(replay, device_up, device_down),
        cmocka_unit_test_setup_teardown(nodes_and_parameters, device_up, device_down),
        cmocka_unit_test_setup_teardown(update, device_up, device_down),
        cmocka_unit_test_setup_teardown(forbidden, device_up, device_down),
        cmocka_unit_test_setup_teardown(fork_and_join, device_up, device_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
