/* Kernels through the fake compiler and driver: threads, shared memory, barriers, shuffles,
 * atomics, background copies, and the errors that a kernel can make. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void vector_add(void **state)
{
    (void)state;
    hc_module_t m = load_source("extern \"C\" __global__ void __launch_bounds__(128) add(const f32 "
                                "*a, const f32 *b, f32 *c,\n"
                                "                                                   i64 n)\n"
                                "{\n"
                                "    i64 i = (i64)blockIdx.x * blockDim.x + threadIdx.x;\n"
                                "    if (i < n) c[i] = a[i] + b[i];\n"
                                "}\n");
    enum { N = 1000 };
    float a[N], b[N], c[N];
    for (int i = 0; i < N; i++) a[i] = draw_float(), b[i] = draw_float();
    hc_ptr da = device_bytes(a, sizeof a), db = device_bytes(b, sizeof b);
    hc_ptr dc = device_bytes(NULL, sizeof c);
    long long n = N;
    void *params[] = {&da, &db, &dc, &n};
    hc_function_t f = function_of(m, "add");
    assert_ok(launch(f, 8, 128, 0, params));
    assert_ok(cuMemcpyDtoH_v2(c, dc, sizeof c));
    for (int i = 0; i < N; i++) assert_true(c[i] == a[i] + b[i]);
    assert_int_equal(launch(f, 8, 256, 0, params), HC_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
}

static const char reduction[] =
    "extern \"C\" __global__ void sum(const f32 *x, f32 *out)\n"
    "{\n"
    "    __shared__ f32 part[32];\n"
    "    f32 v = x[blockIdx.x * blockDim.x + threadIdx.x];\n"
    "    for (int d = 16; d; d >>= 1) v += zc_shfl_xor(v, d);\n"
    "    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = v;\n"
    "    zc_sync();\n"
    "    if (threadIdx.x >= 32) return;\n"
    "    v = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;\n"
    "    for (u32 d = 16; d; d >>= 1) v += zc_shfl_down(v, d);\n"
    "    if (threadIdx.x == 0) out[blockIdx.x] = v;\n"
    "}\n";

static void check_reduction(void)
{
    enum { BLOCKS = 5, THREADS = 256 };
    float x[BLOCKS * THREADS], out[BLOCKS];
    for (int i = 0; i < BLOCKS * THREADS; i++) x[i] = draw_float();
    hc_function_t f = function_of(load_source(reduction), "sum");
    hc_ptr dx = device_bytes(x, sizeof x), dout = device_bytes(NULL, sizeof out);
    void *params[] = {&dx, &dout};
    assert_ok(launch(f, BLOCKS, THREADS, 0, params));
    assert_ok(cuMemcpyDtoH_v2(out, dout, sizeof out));
    for (int b = 0; b < BLOCKS; b++) {
        float sum = 0; /* exact in any order */
        for (int i = 0; i < THREADS; i++) sum += x[b * THREADS + i];
        assert_true(out[b] == sum);
    }
}

static void block_reduction(void **state)
{
    (void)state;
    check_reduction();
}

static void any_order_gives_the_same(void **state)
{
    (void)state;
    for (int s = 1; s < 5; s++) {
        char text[16];
        snprintf(text, sizeof text, "%d", s);
        setenv("ZC_HOSTCUDA_SHUFFLE", text, 1);
        device_again();
        check_reduction();
    }
}

/* A kernel whose result depends on the order: the shuffle must show it. */
static void shuffle_changes_the_order(void **state)
{
    (void)state;
    static const char source[] = "extern \"C\" __global__ void ticket(u32 *counter, u32 *out)\n"
                                 "{\n"
                                 "    out[blockIdx.x * blockDim.x + threadIdx.x] =\n"
                                 "        zc_atomic_add(counter, 1u);\n"
                                 "}\n";
    unsigned results[2][64], zero = 0;
    for (int pass = 0; pass < 2; pass++) {
        if (pass) setenv("ZC_HOSTCUDA_SHUFFLE", "7", 1);
        device_again();
        hc_function_t f = function_of(load_source(source), "ticket");
        hc_ptr counter = device_bytes(&zero, sizeof zero), out = device_bytes(NULL, 256);
        void *params[] = {&counter, &out};
        assert_ok(launch(f, 4, 16, 0, params));
        assert_ok(cuMemcpyDtoH_v2(results[pass], out, 256));
    }
    unsigned long long seen = 0;
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(results[0][i], i);
        seen |= 1ull << results[1][i];
    }
    assert_true(seen == ~0ull);
    assert_memory_not_equal(results[0], results[1], sizeof results[0]);
}

/* New in each block: 0xFF bytes. */
static void shared_memory_is_poisoned(void **state)
{
    (void)state;
    hc_module_t m = load_source("extern \"C\" __global__ void peek(u32 *out)\n"
                                "{\n"
                                "    ZC_DYNAMIC_SMEM(raw);\n"
                                "    __shared__ u32 fixed[16];\n"
                                "    u32 *moving = (u32 *)raw;\n"
                                "    u32 i = threadIdx.x, at = (blockIdx.x * 16 + i) * 2;\n"
                                "    out[at] = fixed[i];\n"
                                "    out[at + 1] = moving[i];\n"
                                "    zc_sync();\n"
                                "    fixed[i] = moving[i] = 5;\n"
                                "}\n");
    unsigned out[64];
    hc_ptr d = device_bytes(NULL, sizeof out);
    void *params[] = {&d};
    assert_ok(launch(function_of(m, "peek"), 2, 16, 64, params));
    assert_ok(cuMemcpyDtoH_v2(out, d, sizeof out));
    for (int i = 0; i < 64; i++) assert_int_equal(out[i], 0xffffffffu);
}

static void dynamic_shared_memory(void **state)
{
    (void)state;
    hc_module_t m =
        load_source("extern \"C\" __global__ void reverse(u32 *x, u32 n)\n"
                    "{\n"
                    "    ZC_DYNAMIC_SMEM(raw);\n"
                    "    u32 *s = (u32 *)raw;\n"
                    "    for (u32 i = threadIdx.x; i < n; i += blockDim.x) s[i] = x[i];\n"
                    "    zc_sync();\n"
                    "    for (u32 i = threadIdx.x; i < n; i += blockDim.x) x[i] = s[n - 1 - i];\n"
                    "}\n");
    enum { N = 15000 };
    static unsigned x[N], y[N];
    for (unsigned i = 0; i < N; i++) x[i] = draw();
    hc_function_t f = function_of(m, "reverse");
    hc_ptr d = device_bytes(x, sizeof x);
    unsigned n = N;
    void *params[] = {&d, &n};
    assert_int_equal(launch(f, 1, 64, sizeof x, params), HC_CUDA_ERROR_INVALID_VALUE);
    unsigned attribute = HC_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    assert_int_equal(cuFuncSetAttribute(f, attribute, 232449), HC_CUDA_ERROR_INVALID_VALUE);
    assert_ok(cuFuncSetAttribute(f, attribute, sizeof x));
    assert_ok(launch(f, 1, 64, sizeof x, params));
    assert_ok(cuMemcpyDtoH_v2(y, d, sizeof y));
    for (unsigned i = 0; i < N; i++) assert_int_equal(y[i], x[N - 1 - i]);
}

static void atomics(void **state)
{
    (void)state;
    hc_module_t m =
        load_source("extern \"C\" __global__ void all(i32 *i, u32 *u, i64 *l, u64 *ul, f32 *f, f64 "
                    "*d, u16 *h)\n"
                    "{\n"
                    "    i32 t = (i32)threadIdx.x - 50;\n"
                    "    zc_atomic_add(&i[0], t);\n"
                    "    zc_atomic_max(&i[1], t);\n"
                    "    zc_atomic_min(&i[2], t);\n"
                    "    zc_atomic_add(&u[0], 3u);\n"
                    "    zc_atomic_max(&u[1], (u32)t);\n"
                    "    zc_atomic_min(&u[2], (u32)t);\n"
                    "    zc_atomic_add(&l[0], (i64)t * 10000000000ll);\n"
                    "    zc_atomic_max(&l[1], (i64)t);\n"
                    "    zc_atomic_min(&l[2], (i64)t);\n"
                    "    zc_atomic_add(&ul[0], 1ull << 40);\n"
                    "    zc_atomic_max(&ul[1], (u64)(i64)t);\n"
                    "    zc_atomic_min(&ul[2], (u64)(i64)t);\n"
                    "    zc_atomic_add(f, 0.5f);\n"
                    "    zc_atomic_add(d, 0.25);\n"
                    "    if (zc_atomic_cas(&u[3], 0u, 7u) == 0u) zc_atomic_add(&u[4], 1u);\n"
                    "    if (zc_atomic_cas(&ul[3], 0ull, 8ull) == 0ull) zc_atomic_add(&u[4], 1u);\n"
                    "    if (zc_atomic_cas(h, (u16)0, (u16)9) == 0) zc_atomic_add(&u[4], 1u);\n"
                    "}\n");
    int i[3] = {0};
    unsigned u[5] = {0, 0, 0xffffffffu, 0, 0};
    long long l[3] = {0};
    unsigned long long ul[4] = {0, 0, ~0ull, 0};
    float f = 0;
    double d = 0;
    unsigned short h = 0;
    hc_ptr di = device_bytes(i, sizeof i), du = device_bytes(u, sizeof u);
    hc_ptr dl = device_bytes(l, sizeof l), dul = device_bytes(ul, sizeof ul);
    hc_ptr df = device_bytes(&f, 4), dd = device_bytes(&d, 8), dh = device_bytes(&h, 2);
    void *params[] = {&di, &du, &dl, &dul, &df, &dd, &dh};
    assert_ok(launch(function_of(m, "all"), 1, 100, 0, params));
    assert_ok(cuMemcpyDtoH_v2(i, di, sizeof i));
    assert_ok(cuMemcpyDtoH_v2(u, du, sizeof u));
    assert_ok(cuMemcpyDtoH_v2(l, dl, sizeof l));
    assert_ok(cuMemcpyDtoH_v2(ul, dul, sizeof ul));
    assert_ok(cuMemcpyDtoH_v2(&f, df, 4));
    assert_ok(cuMemcpyDtoH_v2(&d, dd, 8));
    assert_ok(cuMemcpyDtoH_v2(&h, dh, 2));
    assert_int_equal(i[0], -50);
    assert_int_equal(i[1], 49);
    assert_int_equal(i[2], -50);
    assert_int_equal(u[0], 300);
    assert_int_equal(u[1], 0xffffffffu);
    assert_int_equal(u[2], 0);
    assert_int_equal(u[3], 7);
    assert_int_equal(u[4], 3);
    assert_true(l[0] == -500000000000ll && l[1] == 49 && l[2] == -50);
    assert_true(ul[0] == 100ull << 40 && ul[1] == ~0ull && ul[2] == 0 && ul[3] == 8);
    assert_true(f == 50.0f && d == 25.0 && h == 9);
}

static void warp_votes_and_wide_shuffles(void **state)
{
    (void)state;
    hc_module_t m = load_source("extern \"C\" __global__ void vote(u32 *u, f64 *d, i64 *l)\n"
                                "{\n"
                                "    u32 t = threadIdx.x;\n"
                                "    u32 odd = zc_ballot(t & 1u);\n"
                                "    bool some = zc_any(t == 17u), none = zc_any(t == 99u);\n"
                                "    if (t == 0) u[0] = odd, u[1] = some, u[2] = none;\n"
                                "    d[t] = zc_shfl((f64)t + 0.5, 31 - (int)t);\n"
                                "    l[t] = zc_shfl_xor((i64)t << 40, 5);\n"
                                "}\n");
    unsigned u[3];
    double d[32];
    long long l[32];
    hc_ptr du = device_bytes(NULL, sizeof u), dd = device_bytes(NULL, sizeof d);
    hc_ptr dl = device_bytes(NULL, sizeof l);
    void *params[] = {&du, &dd, &dl};
    assert_ok(launch(function_of(m, "vote"), 1, 32, 0, params));
    assert_ok(cuMemcpyDtoH_v2(u, du, sizeof u));
    assert_ok(cuMemcpyDtoH_v2(d, dd, sizeof d));
    assert_ok(cuMemcpyDtoH_v2(l, dl, sizeof l));
    assert_int_equal(u[0], 0xaaaaaaaau);
    assert_int_equal(u[1], 1);
    assert_int_equal(u[2], 0);
    for (int t = 0; t < 32; t++) {
        assert_true(d[t] == 31 - t + 0.5);
        assert_true(l[t] == (long long)(t ^ 5) << 40);
    }
}

/* Copies of bytes and of zeros; without the wait the poison is still there. */
static void background_copies(void **state)
{
    (void)state;
    hc_module_t m =
        load_source("extern \"C\" __global__ void copy(const u8 *x, u8 *early, u8 *late)\n"
                    "{\n"
                    "    __shared__ __align__(16) u8 s[64];\n"
                    "    zc_cp_async16(s, x, true);\n"
                    "    zc_cp_async16(s + 16, x + 16, true);\n"
                    "    zc_cp_async_commit();\n"
                    "    zc_cp_async16(s + 32, x, false);\n"
                    "    zc_cp_async_commit();\n"
                    "    ZC_CP_ASYNC_WAIT(1);\n"
                    "    for (int i = 0; i < 48; i++) early[i] = s[i];\n"
                    "    zc_cp_async_wait(0);\n"
                    "    for (int i = 0; i < 48; i++) late[i] = s[i];\n"
                    "}\n");
    unsigned char x[32], early[48], late[48];
    for (int i = 0; i < 32; i++) x[i] = (unsigned char)(i + 1);
    hc_ptr dx = device_bytes(x, sizeof x), d1 = device_bytes(NULL, 48);
    hc_ptr d2 = device_bytes(NULL, 48);
    void *params[] = {&dx, &d1, &d2};
    assert_ok(launch(function_of(m, "copy"), 1, 1, 0, params));
    assert_ok(cuMemcpyDtoH_v2(early, d1, 48));
    assert_ok(cuMemcpyDtoH_v2(late, d2, 48));
    unsigned char want[48] = {0};
    memcpy(want, x, 32);
    assert_memory_equal(late, want, 48);
    assert_memory_equal(early, want, 32);
    for (int i = 32; i < 48; i++) assert_int_equal(early[i], 0xFF);
}

/* ---- Kernels that are wrong: the launch fails, the context is broken ---- */

static void fails_with(const char *source, unsigned threads, hc_result code)
{
    hc_function_t f = function_of(load_source(source), "wrong");
    hc_ptr out = device_bytes(NULL, 4096);
    void *params[] = {&out};
    assert_int_equal(launch(f, 1, threads, 0, params), code);
    assert_int_equal(cuCtxSynchronize(), code);
    assert_int_equal(cuMemcpyHtoD_v2(out, &code, 4), code);
    device_again();
    check_reduction(); /* the next launch finds everything in order */
}

static void divergent_barriers(void **state)
{
    (void)state;
    fails_with("extern \"C\" __global__ void wrong(u32 *out)\n"
               "{\n    if (threadIdx.x < 40) zc_sync();\n    out[threadIdx.x] = 1;\n}\n",
               64, HC_CUDA_ERROR_LAUNCH_FAILED);
    fails_with(
        "extern \"C\" __global__ void wrong(u32 *out)\n"
        "{\n    if (threadIdx.x < 40)\n        zc_sync();\n    else\n        zc_sync();\n}\n",
        64, HC_CUDA_ERROR_LAUNCH_FAILED);
}

static void divergent_warps(void **state)
{
    (void)state;
    fails_with("extern \"C\" __global__ void wrong(u32 *out)\n"
               "{\n    if (threadIdx.x < 20) out[threadIdx.x] = zc_shfl_xor(threadIdx.x, 1);\n}\n",
               32, HC_CUDA_ERROR_LAUNCH_FAILED);
    fails_with("extern \"C\" __global__ void wrong(u32 *out)\n"
               "{\n    u32 v = threadIdx.x;\n"
               "    if (v < 20)\n        v = zc_shfl_xor(v, 1);\n    else\n"
               "        v = zc_ballot(true);\n    out[threadIdx.x] = v;\n}\n",
               32, HC_CUDA_ERROR_LAUNCH_FAILED);
}

static void wrong_shared_addresses(void **state)
{
    (void)state;
    fails_with(
        "extern \"C\" __global__ void wrong(u32 *out) { zc_cp_async16(out, out + 4, true); }\n", 1,
        HC_CUDA_ERROR_INVALID_ADDRESS_SPACE);
    fails_with("extern \"C\" __global__ void wrong(u32 *out)\n{\n"
               "    __shared__ __align__(16) u32 s[8];\n    zc_cp_async16(s + 1, out, true);\n}\n",
               1, HC_CUDA_ERROR_MISALIGNED_ADDRESS);
}

#ifdef HC_SANITIZED
/* An index past the end ends a sanitized process: looked at from outside. */
static void out_of_bounds_index(void **state)
{
    (void)state;
    hc_function_t f = function_of(
        load_source("extern \"C\" __global__ void over(u32 *x, u32 n) { x[n] = 1; }\n"), "over");
    for (unsigned n = 3; n < 5; n++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            hc_ptr x = device_bytes(NULL, 16);
            void *params[] = {&x, &n};
            _exit(launch(f, 1, 1, 0, params) == HC_CUDA_SUCCESS ? 0 : 3);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(WIFEXITED(status) && WEXITSTATUS(status) == 0, n == 3);
    }
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(vector_add, device_up, device_down),
        cmocka_unit_test_setup_teardown(block_reduction, device_up, device_down),
        cmocka_unit_test_setup_teardown(any_order_gives_the_same, device_up, device_down),
        cmocka_unit_test_setup_teardown(shuffle_changes_the_order, device_up, device_down),
        cmocka_unit_test_setup_teardown(shared_memory_is_poisoned, device_up, device_down),
        cmocka_unit_test_setup_teardown(dynamic_shared_memory, device_up, device_down),
        cmocka_unit_test_setup_teardown(atomics, device_up, device_down),
        cmocka_unit_test_setup_teardown(warp_votes_and_wide_shuffles, device_up, device_down),
        cmocka_unit_test_setup_teardown(background_copies, device_up, device_down),
        cmocka_unit_test_setup_teardown(divergent_barriers, device_up, device_down),
        cmocka_unit_test_setup_teardown(divergent_warps, device_up, device_down),
        cmocka_unit_test_setup_teardown(wrong_shared_addresses, device_up, device_down),
#ifdef HC_SANITIZED
        cmocka_unit_test_setup_teardown(out_of_bounds_index, device_up, device_down),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
