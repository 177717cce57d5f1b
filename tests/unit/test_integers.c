/* Fast products and convolutions of bytes: the reference kernels' bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/pool.h"
#include "cpu/bytes_avx2.h"
#include "cpu/bytes_finish.h"
#include "cpu/bytes_winograd.h"
#include "cpu/kernel.h"
#include "cpu/simd.h"
#include "support/expect.h"

static unsigned seed = 11;

static unsigned next(void)
{
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

static zc_tensor bytes(zc_dtype dtype, int rank, const int64_t *dims)
{
    zc_tensor t = {.dtype = dtype, .rank = rank};
    if (rank) memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    const int64_t n = zc_tensor_numel(&t);
    uint8_t *v = t.data = malloc((size_t)n + 1);
    for (int64_t i = 0; i < n; i++) v[i] = (uint8_t)next();
    if (n > 1) v[0] = v[1] = dtype == ZC_U8 ? 255 : 0x80; /* the greatest products */
    return t;
}

static zc_tensor floats(int64_t n, float least)
{
    zc_tensor t = {.dtype = ZC_F32, .rank = n > 1, .dims = {n}};
    float *v = t.data = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = least * (1 + (float)(next() % 1000) / 500);
    return t;
}

static zc_tensor biases(int64_t n)
{
    zc_tensor t = {.dtype = ZC_I32, .rank = 1, .dims = {n}};
    int32_t *v = t.data = malloc((size_t)n * sizeof *v);
    for (int64_t i = 0; i < n; i++) v[i] = (int32_t)(next() % 20001) - 10000;
    return t;
}

/* As a session runs a step whose operands but the first are constants, on three threads: bytes of
 * packed constants. */
static uint64_t run_packed(zc_op op, const void *attrs, int n, const zc_tensor *in, zc_tensor *out,
                           zc_diag *diag)
{
    zc_scratch scratch = {0};
    zc_kstate epilogue = {0};
    zc_packs packs;
    zc_pool *pool;
    uint64_t packed, released;
    zc_packs_init(&packs);
    expect_ok(diag, zc_pool_create(3, &pool, diag));
    zc_kctx k = {.op = op,
                 .info = zc_op_get(op),
                 .attrs = attrs,
                 .nin = n,
                 .nout = 1,
                 .in = in,
                 .const_in = ~UINT64_C(1),
                 .out = out,
                 .scratch = &scratch,
                 .pool = pool,
                 .epilogue_state = &epilogue,
                 .packs = &packs,
                 .subject = "packed",
                 .diag = diag};
    expect_ok(diag, zc_kernel_run(&k, false));
    zc_packs_count(&packs, &packed, &released);
    if (epilogue.destroy) epilogue.destroy(epilogue.p);
    zc_pool_destroy(&pool);
    zc_packs_fini(&packs);
    zc_scratch_fini(&scratch);
    return packed;
}

static uint64_t compare(zc_op op, const void *attrs, int n, zc_tensor *in, zc_dtype type)
{
    zc_tensor fast = {.dtype = type}, plain = {.dtype = type};
    zc_diag *diag = zc_diag_create();
    size_t size = 0;
    expect_ok(diag, zc_cpu_eval(op, attrs, n, in, 1, &fast, false, "fast", diag));
    expect_ok(diag, zc_cpu_eval(op, attrs, n, in, 1, &plain, true, "plain", diag));
    assert_true(zc_tensor_bytes(&plain, &size));
    assert_int_equal(fast.dtype, type);
    assert_int_equal(zc_tensor_numel(&fast), zc_tensor_numel(&plain));
    if (size) assert_memory_equal(fast.data, plain.data, size);
    if (size) memset(fast.data, 0, size);
    const uint64_t packed = run_packed(op, attrs, n, in, &fast, diag);
    if (size) assert_memory_equal(fast.data, plain.data, size);
    free(fast.data);
    free(plain.data);
    for (int i = 0; i < n; i++) free(in[i].data);
    zc_diag_destroy(&diag);
    return packed;
}

static const zc_dtype kinds[][2] = {{ZC_U8, ZC_I8}, {ZC_U8, ZC_U8}, {ZC_I8, ZC_I8}, {ZC_I8, ZC_U8}};

static const struct {
    int ranks[2];
    int64_t dims[2][4];
} products[] = {
    {{2, 2}, {{1, 1}, {1, 1}}},          {{2, 2}, {{33, 65}, {65, 17}}},
    {{2, 2}, {{1, 300}, {300, 130}}},    {{3, 2}, {{37, 1, 64}, {64, 96}}},
    {{3, 2}, {{4, 13, 31}, {31, 48}}},   {{3, 3}, {{3, 7, 20}, {3, 20, 33}}},
    {{3, 3}, {{1, 7, 21}, {3, 21, 33}}}, {{2, 2}, {{200, 24}, {24, 20}}},
    {{2, 2}, {{12, 96}, {96, 640}}},     {{1, 2}, {{36}, {36, 19}}},
};

static void test_matmul_integer(void **state)
{
    (void)state;
    for (size_t k = 0; k < ZC_COUNTOF(kinds); k++)
        for (size_t i = 0; i < ZC_COUNTOF(products); i++) {
            const zc_attrs_MatMulInteger a = {0};
            zc_tensor in[4] = {bytes(kinds[k][0], products[i].ranks[0], products[i].dims[0]),
                               bytes(kinds[k][1], products[i].ranks[1], products[i].dims[1]),
                               bytes(kinds[k][0], 0, NULL), bytes(kinds[k][1], 0, NULL)};
            compare(ZC_OP_MatMulInteger, &a, 4, in, ZC_I32);
        }
}

static void test_qlinear_matmul(void **state)
{
    (void)state;
    for (size_t k = 0; k < ZC_COUNTOF(kinds); k++)
        for (size_t i = 0; i < ZC_COUNTOF(products); i++) {
            const zc_attrs_QLinearMatMul a = {0};
            const int64_t n = products[i].dims[1][products[i].ranks[1] - 1];
            zc_tensor in[8] = {bytes(kinds[k][0], products[i].ranks[0], products[i].dims[0]),
                               floats(1, 0.01f),
                               bytes(kinds[k][0], 0, NULL),
                               bytes(kinds[k][1], products[i].ranks[1], products[i].dims[1]),
                               floats(k % 2 && products[i].ranks[1] == 2 ? n : 1, 0.02f),
                               bytes(kinds[k][1], 0, NULL),
                               floats(1, 0.1f),
                               bytes(kinds[k][0], 0, NULL)};
            compare(ZC_OP_QLinearMatMul, &a, 8, in, kinds[k][0]);
        }
}

/* Sums that the product's own step makes floats of: one rounding. */
static void test_floats_of_sums(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(products); i++) {
        const zc_attrs_MatMulInteger a = {.epilogue = "f32(x0) * x1", .set = ~UINT64_C(0)};
        const int64_t n = products[i].dims[1][products[i].ranks[1] - 1];
        zc_tensor in[5] = {bytes(ZC_U8, products[i].ranks[0], products[i].dims[0]),
                           bytes(ZC_I8, products[i].ranks[1], products[i].dims[1]),
                           bytes(ZC_U8, 0, NULL), bytes(ZC_I8, 0, NULL), floats(n, 0.01f)};
        compare(ZC_OP_MatMulInteger, &a, 5, in, ZC_F32);
    }
}

static uint8_t *random_bytes(size_t n)
{
    uint8_t *v = malloc(n);
    for (size_t i = 0; i < n; i++)
        v[i] = next() % 8 ? (uint8_t)next() : (uint8_t)(next() % 2 * 255);
    return v;
}

/* Rows whose bytes have a limit for each four, which the first row's all reach. */
static uint8_t *limited_bytes(int64_t m, int64_t lda)
{
    static const uint8_t limits[] = {255, 254, 127, 128, 63, 64, 20, 0};
    uint8_t *v = random_bytes((size_t)(m * lda));
    for (int64_t i = 0, limit = 0; i < lda; i++) {
        if (i % 4 == 0) limit = limits[next() % sizeof limits];
        for (int64_t r = 0; r < m; r++) {
            uint8_t *at = &v[r * lda + i];
            if (!r || *at > limit) *at = (uint8_t)limit;
        }
    }
    return v;
}

/* Weights whose sums by twos lie at and beyond what 16 bits hold, small ones, and any. */
static int8_t weight_of(int kind)
{
    static const int8_t edges[] = {64, 64, 65, 127, 1, 2, -128, -127, -1, -64, -65, 0};
    if (kind == 0) return edges[next() % sizeof edges];
    return (int8_t)(kind == 1 ? (int)(next() % 129) - 64 : (int)(next() % 256) - 128);
}

/* Four rows of 16 columns at a time, each of its own kind. */
static int8_t *random_panels(int64_t k, int64_t n)
{
    const int64_t bytes = zc_bytes_room(n) * zc_bytes_row(k);
    int8_t *b = malloc((size_t)bytes);
    for (int64_t i = 0, kind = 0; i < bytes; i++) {
        if (i % (4 * ZC_BYTE_COLUMNS) == 0) kind = next() % 3;
        const int64_t row = i / (4 * ZC_BYTE_COLUMNS) * 4 % zc_bytes_row(k) + i % 4;
        b[i] = row < k ? weight_of((int)kind) : 0;
    }
    return b;
}

/* Also where the processor has what is taken before it: m rows, k deep, and n columns. */
static void avx2_product(int64_t m, int64_t k, int64_t n, int b_zero)
{
    enum { LANES = ZC_BYTE_COLUMNS };
    const int64_t lda = zc_bytes_row(k), room = zc_bytes_room(n), panel = LANES * lda;
    uint8_t *a = limited_bytes(m, lda);
    int8_t *b = random_panels(k, n);
    zc_avx2_stretch *known =
        malloc((size_t)(room / LANES * zc_avx2_stretches(lda)) * sizeof *known);
    int32_t *offset = malloc((size_t)room * sizeof *offset);
    int32_t *y = malloc((size_t)(m * n) * sizeof *y);
    for (int64_t i = 0; i < room / LANES; i++)
        zc_avx2_weigh(b + i * panel, lda, known + i * zc_avx2_stretches(lda));
    for (int64_t c = 0; c < room; c++) offset[c] = (int32_t)next() - 1000;
    const zc_byte_product p = {.k = k, .n = n, .b_zero = b_zero, .offset = offset};
    zc_avx2_multiply(&(zc_avx2_panels){b, known}, &p, m, a, lda, 0, n, y, n);
    for (int64_t r = 0; r < m; r++)
        for (int64_t c = 0; c < n; c++) {
            int64_t sum = offset[c];
            const int8_t *column = b + c / LANES * panel + c % LANES * 4;
            for (int64_t d = 0; d < k; d++)
                sum += a[r * lda + d] * (column[d / 4 * 4 * LANES + d % 4] - b_zero);
            assert_int_equal(y[r * n + c], sum);
        }
    free(a);
    free(b);
    free(known);
    free(offset);
    free(y);
}

/* How a group of such weights is multiplied, none of which is above `reach` together, where other
 * groups are fours. */
static void expect_order(uint16_t reach, uint8_t greatest, int group, uint64_t fours,
                         uint64_t pairs, uint64_t singles)
{
    uint16_t all[ZC_AVX2_STRETCH] = {0};
    uint8_t bytes_of[ZC_AVX2_STRETCH];
    memset(bytes_of, greatest, sizeof bytes_of);
    all[group] = reach;
    const zc_avx2_order order = zc_avx2_order_of(all, bytes_of, group + 1);
    assert_int_equal(order.fours, fours);
    assert_int_equal(order.pairs, pairs);
    assert_int_equal(order.singles, singles);
}

static void test_avx2_orders(void **state)
{
    const uint64_t last = UINT64_C(1) << 63;
    (void)state;
    if (zc_simd_level() < ZC_SIMD_AVX2) skip(); /* the processor has no AVX2 */
    expect_order(64, 255, 63, ~UINT64_C(0), 0, 0);
    expect_order(256, 63, 63, ~UINT64_C(0), 0, 0);
    expect_order(65, 255, 63, ~last - 1, last | 1, 0); /* an odd number of others */
    expect_order(128, 255, 63, ~last - 1, last | 1, 0);
    expect_order(256, 127, 63, ~last - 1, last | 1, 0);
    expect_order(129, 255, 63, ~last - 1, 1, last);
    expect_order(256, 128, 63, ~last - 1, 1, last);
    expect_order(256, 255, 0, 0, 0, 1);
    expect_order(0, 255, 0, 0, 1, 0);
    expect_order(200, 100, 8, 0xff, 0x100, 0);
}

static void test_avx2_products(void **state)
{
    (void)state;
    if (zc_simd_level() < ZC_SIMD_AVX2) skip(); /* the processor has no AVX2 */
    avx2_product(1, 1, 1, 0);
    avx2_product(7, 65, 33, 0);
    avx2_product(70, 64, 16, -128);
    avx2_product(4, 516, 32, 0); /* few rows whose bytes are looked at */
    avx2_product(3, 1030, 50, 5);
    avx2_product(75, 2500, 17, 0);         /* some rows at a time */
    avx2_product(2, ZC_AVX2_DEPTH, 16, 0); /* one */
}

typedef struct conv_case {
    int64_t n, c, h, w, oc, group, k, stride, dilation, pads[4];
} conv_case;

static const conv_case convs[] = {
    {1, 3, 17, 19, 8, 1, 3, 1, 1, {1, 1, 1, 1}},
    {2, 4, 9, 9, 6, 2, 3, 2, 1, {0, 1, 2, 0}},
    {1, 16, 14, 14, 33, 1, 1, 1, 1, {0, 0, 0, 0}},
    {1, 16, 14, 14, 32, 1, 1, 2, 1, {0, 0, 0, 0}},
    {1, 6, 20, 11, 6, 6, 3, 1, 1, {1, 1, 1, 1}},
    {2, 70, 9, 8, 70, 70, 3, 2, 1, {1, 0, 1, 2}},
    {1, 6, 20, 11, 12, 6, 5, 2, 1, {2, 2, 2, 2}},
    {1, 2, 15, 15, 3, 1, 3, 1, 3, {3, 3, 3, 3}},
    {1, 130, 7, 7, 130, 130, 5, 1, 2, {4, 4, 4, 4}},
    {1, 1, 5, 5, 1, 1, 5, 1, 1, {4, 4, 4, 4}},
    {3, 3, 7, 1, 4, 1, 1, 3, 1, {0, 0, 0, 0}},
    {0, 3, 7, 7, 4, 1, 3, 1, 1, {1, 1, 1, 1}},
    /* few pixels: parts of the results' channels, across groups, and of pixels as they stand */
    {1, 64, 5, 5, 170, 1, 3, 1, 1, {1, 1, 1, 1}},
    {1, 96, 6, 6, 210, 3, 3, 1, 1, {1, 1, 1, 1}},
    {1, 256, 7, 7, 600, 1, 1, 1, 1, {0, 0, 0, 0}},
};

enum { FIRST, LAST, TAPS_FIRST /* and channels last */, LAYOUTS };

static zc_tensor planes(const conv_case *c, zc_dtype dtype, int layout)
{
    if (layout != FIRST) return bytes(dtype, 4, (int64_t[]){c->n, c->h, c->w, c->c});
    return bytes(dtype, 4, (int64_t[]){c->n, c->c, c->h, c->w});
}

static zc_tensor weights(const conv_case *c, zc_dtype dtype, int layout)
{
    if (layout == TAPS_FIRST)
        return bytes(dtype, 4, (int64_t[]){c->oc, c->k, c->k, c->c / c->group});
    return bytes(dtype, 4, (int64_t[]){c->oc, c->c / c->group, c->k, c->k});
}

#define SET_CONV(a, c, steps, gaps, kernel, layout)                                                \
    do {                                                                                           \
        (a)->auto_pad = "NOTSET";                                                                  \
        (a)->group = (c)->group;                                                                   \
        (a)->strides = (zc_ints){2, steps};                                                        \
        (a)->dilations = (zc_ints){2, gaps};                                                       \
        (a)->pads = (zc_ints){4, (c)->pads};                                                       \
        (a)->kernel_shape = (zc_ints){2, kernel};                                                  \
        (a)->channels_last = (layout) != FIRST;                                                    \
        (a)->taps_first = (layout) == TAPS_FIRST;                                                  \
        (a)->set = ~UINT64_C(0);                                                                   \
    } while (0)

static void convolve(const conv_case *c, const zc_dtype *kind, int layout)
{
    zc_attrs_ConvInteger a = {0};
    zc_attrs_QLinearConv q = {0};
    int64_t steps[] = {c->stride, c->stride}, gaps[] = {c->dilation, c->dilation};
    int64_t kernel[] = {c->k, c->k};
    SET_CONV(&a, c, steps, gaps, kernel, layout);
    SET_CONV(&q, c, steps, gaps, kernel, layout);
    zc_tensor in[4] = {planes(c, kind[0], layout), weights(c, kind[1], layout),
                       bytes(kind[0], 0, NULL), bytes(kind[1], 0, NULL)};
    compare(ZC_OP_ConvInteger, &a, 4, in, ZC_I32);
    a.epilogue = "f32(x0) * x1";
    zc_tensor floating[5] = {planes(c, kind[0], layout), weights(c, kind[1], layout),
                             bytes(kind[0], 0, NULL), bytes(kind[1], 0, NULL),
                             floats(layout == LAST ? c->oc : 1, 0.01f)};
    compare(ZC_OP_ConvInteger, &a, 5, floating, ZC_F32);
    zc_tensor more[9] = {planes(c, kind[0], layout),
                         floats(1, 0.01f),
                         bytes(kind[0], 0, NULL),
                         weights(c, kind[1], layout),
                         floats(layout == LAST ? c->oc : 1, 0.02f),
                         bytes(kind[1], 0, NULL),
                         floats(1, 0.3f),
                         bytes(kind[0], 0, NULL),
                         biases(c->oc)};
    if (kind[1] == ZC_I8) *(int8_t *)more[5].data = 0; /* as quantisers write it */
    if (c->oc > 1 && layout == LAST) ((float *)more[4].data)[c->oc - 1] = NAN;
    if (c->oc > 2 && layout == LAST) ((float *)more[4].data)[0] = INFINITY;
    compare(ZC_OP_QLinearConv, &q, 9, more, kind[0]);
}

static void test_convolutions(void **state)
{
    (void)state;
    for (size_t k = 0; k < ZC_COUNTOF(kinds); k++)
        for (size_t i = 0; i < ZC_COUNTOF(convs); i++)
            for (int layout = 0; layout < LAYOUTS; layout++) convolve(&convs[i], kinds[k], layout);
}

/* ---- Winograd's way ---- */

/* Bytes that a kind has: any, one of the extremes each, and all the same extreme. */
enum { ANY, EXTREMES, GREATEST, LEAST, KINDS };

static void fill_bytes(uint8_t *to, int64_t n, int kind, uint8_t least, uint8_t greatest)
{
    for (int64_t i = 0; i < n; i++) {
        const bool low = kind == LEAST || (kind != GREATEST && next() % 2);
        to[i] = kind == ANY ? (uint8_t)next() : low ? least : greatest;
    }
}

typedef struct winograd_case {
    int64_t n, h, w, ic, oc, pads[4]; /* pads: top, left, bottom, right */
    int step;                         /* that is held to be fastest */
} winograd_case;

static const winograd_case winograds[] = {
    {1, 5, 8, 16, 5, {1, 1, 1, 1}, 2},    {3, 7, 7, 48, 40, {1, 1, 1, 1}, 4},
    {3, 6, 9, 32, 17, {0, 2, 1, 0}, 2},   {1, 4, 2, 16, 1, {2, 2, 2, 2}, 2},
    {1, 20, 21, 16, 33, {1, 1, 1, 1}, 4}, /* two blocks */
    {1, 45, 43, 16, 3, {1, 1, 1, 1}, 4},  /* many */
    {1, 3, 3, 64, 16, {0, 0, 0, 0}, 0},   /* one result a channel */
    {1, 3, 5, 112, 2, {1, 1, 1, 1}, 2},   /* the deepest for 4 x 4 results, whatever the weights */
    {1, 3, 4, 1824, 2, {1, 1, 1, 1}, 2},  /* the deepest */
};
enum { SMALL = 6 };

static zc_conv conv_of(const winograd_case *c)
{
    const int64_t h = c->h + c->pads[0] + c->pads[2] - 2, w = c->w + c->pads[1] + c->pads[3] - 2;
    return (zc_conv){.w = {.axes = 2,
                           .in = {c->h, c->w},
                           .out = {h, w},
                           .kernel = {3, 3},
                           .stride = {1, 1},
                           .dilation = {1, 1},
                           .begin = {c->pads[0], c->pads[1]}},
                     .batch = c->n,
                     .groups = 1,
                     .ic = c->ic,
                     .oc = c->oc,
                     .in_plane = c->h * c->w,
                     .out_plane = h * w,
                     .taps = 9};
}

/* Of the window of a pixel of the result. */
static int64_t plain_sum(const zc_conv *c, const uint8_t *x, int zero, const int8_t *w,
                         int64_t pixel)
{
    const int64_t n = pixel / c->out_plane, at = pixel % c->out_plane;
    int64_t sum = 0;
    for (int64_t t = 0; t < c->taps; t++, w += c->ic) {
        const int64_t h = at / c->w.out[1] - c->w.begin[0] + t / 3;
        const int64_t v = at % c->w.out[1] - c->w.begin[1] + t % 3;
        const bool inside = h >= 0 && h < c->w.in[0] && v >= 0 && v < c->w.in[1];
        const uint8_t *from = x + (n * c->in_plane + h * c->w.in[1] + v) * c->ic;
        for (int64_t i = 0; i < c->ic; i++) sum += (inside ? from[i] : zero) * w[i];
    }
    return sum;
}

/* Also where the processor has what is taken before it. */
static void winograd_sums(const winograd_case *of, int step, int x_kind, int w_kind, int zero)
{
    const zc_conv c = conv_of(of);
    const int64_t inputs = c.batch * c.in_plane * c.ic, weights = c.oc * c.taps * c.ic;
    const int64_t results = c.batch * c.out_plane * c.oc;
    uint8_t *x = malloc((size_t)inputs), *padding = malloc((size_t)c.ic);
    int8_t *w = malloc((size_t)weights);
    int32_t *y = malloc((size_t)results * sizeof *y);
    int32_t *offset = calloc((size_t)zc_bytes_room(c.oc), sizeof *offset);
    fill_bytes(x, inputs, x_kind, 0, 255);
    fill_bytes((uint8_t *)w, weights, w_kind, 0x80, 127);
    memset(padding, zero, (size_t)c.ic);
    for (int64_t i = 0; i < c.oc; i++) offset[i] = (int32_t)(next() % 2001) - 1000;
    zc_packs packs;
    zc_scratch scratch = {0};
    zc_diag *diag = zc_diag_create();
    zc_packs_init(&packs);
    zc_kctx k = {.in = &(zc_tensor){.data = w}, .packs = &packs, .scratch = &scratch, .diag = diag};
    const zc_byte_matrix m = {c.taps * c.ic, c.oc, c.ic, c.ic, 1, c.taps * c.ic, true};
    zc_winograd job = {.c = &c, .x = x, .padding = padding, .offset = offset, .y = (uint8_t *)y};
    assert_true(zc_winograd_fits(&c));
    expect_ok(diag, zc_winograd_packed(&k, 0, &m, step, &job.w));
    if (c.ic <= 112 || w_kind == GREATEST)
        assert_int_equal(zc_winograd_step_of(job.w, c.oc), c.ic <= 112 ? step : 2);
    expect_ok(diag, zc_winograd_run(&k, &job));
    for (int64_t i = 0; i < results; i++)
        assert_int_equal(y[i], offset[i % c.oc] +
                                   plain_sum(&c, x, zero, w + i % c.oc * c.taps * c.ic, i / c.oc));
    zc_packs_fini(&packs);
    zc_scratch_fini(&scratch);
    zc_diag_destroy(&diag);
    free(x);
    free(padding);
    free(w);
    free(y);
    free(offset);
}

static void test_winograd_sums(void **state)
{
    (void)state;
    if (zc_simd_level() < ZC_SIMD_AVX2) skip(); /* the processor has no AVX2 */
    for (size_t i = 0; i < ZC_COUNTOF(winograds); i++)
        for (int kind = 0; kind < KINDS * KINDS; kind++)
            for (int step = 2; step <= 4; step += 2)
                winograd_sums(&winograds[i], step, kind / KINDS, kind % KINDS,
                              kind == 1 ? 255 : (int)next() % 256);
}

static void test_winograd_fits(void **state)
{
    (void)state;
    const winograd_case deeper = {.n = 1, .h = 4, .w = 4, .ic = 1840, .oc = 2};
    const winograd_case odd = {.n = 1, .h = 4, .w = 4, .ic = 24, .oc = 2};
    zc_conv c = conv_of(&deeper), uneven = conv_of(&odd), strided = conv_of(&winograds[0]);
    strided.w.stride[1] = 2;
    assert_false(zc_winograd_fits(&c));
    assert_false(zc_winograd_fits(&uneven));
    assert_false(zc_winograd_fits(&strided));
}

/* The bytes of packed weights tell which way was taken: 16 or 36 of 16 bits for nine. */
static void winograd_step(const winograd_case *of, const zc_dtype *kind, int layout, int zero)
{
    const conv_case c = {
        of->n, of->ic, of->h, of->w, of->oc,
        1,     3,      1,     1,     {of->pads[0], of->pads[1], of->pads[2], of->pads[3]}};
    int64_t ones[] = {1, 1}, kernel[] = {3, 3};
    zc_attrs_QLinearConv q = {0};
    SET_CONV(&q, &c, ones, ones, kernel, layout);
    zc_tensor in[9] = {planes(&c, kind[0], layout),
                       floats(1, 0.01f),
                       bytes(kind[0], 0, NULL),
                       weights(&c, kind[1], layout),
                       floats(c.oc, 0.02f),
                       bytes(kind[1], 0, NULL),
                       floats(1, 3.0f),
                       bytes(kind[0], 0, NULL),
                       biases(c.oc)};
    *(uint8_t *)in[5].data = (uint8_t)zero;
    const bool no_zero = zero == (kind[1] == ZC_U8 ? 128 : 0);
    const uint64_t columns =
        (uint64_t)(c.oc + ZC_BYTE_COLUMNS - 1) / ZC_BYTE_COLUMNS * ZC_BYTE_COLUMNS;
    const uint64_t points = (uint64_t)(of->step + 2) * (uint64_t)(of->step + 2), header = 64;
    const uint64_t size =
        header + columns * ((uint64_t)c.c * points * sizeof(int16_t) + sizeof(int32_t));
    const uint64_t packed = compare(ZC_OP_QLinearConv, &q, 9, in, kind[0]);
    if (no_zero && zc_bytes_by_avx2())
        assert_int_equal(packed, size);
    else
        assert_int_not_equal(packed, size);
}

static void test_winograd_steps(void **state)
{
    (void)state;
    for (size_t k = 0; k < ZC_COUNTOF(kinds); k++) {
        winograd_step(&winograds[0], kinds[k], LAST, 3);
        for (size_t i = 0; i < SMALL; i++)
            winograd_step(&winograds[i], kinds[k], (int)(i + k) % LAYOUTS,
                          kinds[k][1] == ZC_U8 ? 128 : 0);
    }
}

/* Sums that 32 bits do not hold take the reference kernel. */
static void test_large_bias(void **state)
{
    (void)state;
    const conv_case c = {1, 8, 5, 5, 4, 1, 3, 1, 1, {1, 1, 1, 1}};
    zc_attrs_QLinearConv q = {0};
    int64_t ones[] = {1, 1}, kernel[] = {3, 3};
    SET_CONV(&q, &c, ones, ones, kernel, FIRST);
    zc_tensor in[9] = {planes(&c, ZC_U8, FIRST),  floats(1, 1e-4f),      bytes(ZC_U8, 0, NULL),
                       weights(&c, ZC_I8, FIRST), floats(1, 1e-4f),      bytes(ZC_I8, 0, NULL),
                       floats(1, 1.0f),           bytes(ZC_U8, 0, NULL), biases(4)};
    ((int32_t *)in[8].data)[0] = INT32_MAX;
    ((int32_t *)in[8].data)[1] = INT32_MIN;
    compare(ZC_OP_QLinearConv, &q, 9, in, ZC_U8);
}

/* One tensor against both kernels: floats with halves between quanta, NaN and infinities. */
static void test_quantisation(void **state)
{
    (void)state;
    static const int64_t sizes[] = {1, 7, 16, 37, 1000, 20001};
    for (size_t i = 0; i < ZC_COUNTOF(sizes); i++)
        for (int odd = 0; odd < 2; odd++)
            for (int kind = 0; kind < 2; kind++) {
                const zc_dtype type = kind ? ZC_I8 : ZC_U8;
                const zc_attrs_QuantizeLinear q = {.axis = 1, .saturate = 1};
                const zc_attrs_DequantizeLinear d = {.axis = 1};
                zc_tensor x[3] = {floats(sizes[i], 0.125f), floats(1, 0.25f), bytes(type, 0, NULL)};
                float *v = x[0].data;
                for (int64_t p = 0; p < sizes[i]; p++)
                    v[p] = (float)((int)(next() % 600) - 300) * 0.125f;
                if (odd) v[sizes[i] / 2] = NAN;
                if (odd) v[sizes[i] - 1] = INFINITY;
                x[0].rank = 1;
                *(float *)x[1].data = 0.25f;
                compare(ZC_OP_QuantizeLinear, &q, 3, x, type);
                zc_tensor y[3] = {bytes(type, 1, &sizes[i]), floats(1, 0.3f), bytes(type, 0, NULL)};
                compare(ZC_OP_DequantizeLinear, &d, 3, y, ZC_F32);
            }
}

static void test_max_pool(void **state)
{
    (void)state;
    int64_t kernel[] = {3, 2}, strides[] = {2, 1}, pads[] = {1, 0, 1, 1};
    const zc_attrs_MaxPoolNhwc a = {.auto_pad = "NOTSET",
                                    .kernel_shape = {2, kernel},
                                    .strides = {2, strides},
                                    .pads = {4, pads},
                                    .set = ~UINT64_C(0)};
    for (int i = 0; i < 2; i++) {
        zc_tensor in = bytes(i ? ZC_I8 : ZC_U8, 4, (int64_t[]){2, 9, 8, 19});
        compare(ZC_OP_MaxPoolNhwc, &a, 1, &in, in.dtype);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matmul_integer), cmocka_unit_test(test_qlinear_matmul),
        cmocka_unit_test(test_convolutions),   cmocka_unit_test(test_large_bias),
        cmocka_unit_test(test_floats_of_sums), cmocka_unit_test(test_quantisation),
        cmocka_unit_test(test_max_pool),       cmocka_unit_test(test_avx2_orders),
        cmocka_unit_test(test_avx2_products),  cmocka_unit_test(test_winograd_sums),
        cmocka_unit_test(test_winograd_fits),  cmocka_unit_test(test_winograd_steps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
