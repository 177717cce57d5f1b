/* Working memory: no two values that live at once overlap, and the arena is at most 1.1 times what
 * one step needs, which no arena can be below. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/place.h"
#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

/* ---- placing alone ---- */

static uint64_t next_random(uint64_t *s)
{
    *s = *s * 6364136223846793005u + 1442695040888963407u;
    return *s >> 33;
}

static size_t live_at(const zc_placement *items, size_t n, int32_t step)
{
    size_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (items[i].first <= step && step <= items[i].last)
            sum += (items[i].bytes + ZC_TENSOR_ALIGN - 1) / ZC_TENSOR_ALIGN * ZC_TENSOR_ALIGN;
    return sum;
}

static void check_placed(const zc_placement *items, size_t n, size_t arena)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(items[i].offset % ZC_TENSOR_ALIGN, 0);
        assert_true(items[i].offset + items[i].bytes <= arena);
        for (size_t j = 0; j < i; j++) {
            const zc_placement *a = &items[i], *b = &items[j];
            bool together = a->first <= b->last && b->first <= a->last;
            bool apart = a->offset + a->bytes <= b->offset || b->offset + b->bytes <= a->offset;
            assert_true(!together || apart);
        }
    }
}

static void test_random_lifetimes(void **state)
{
    enum { ITEMS = 60, STEPS = 40 };
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        zc_placement items[ITEMS];
        uint64_t r = seed;
        size_t n = next_random(&r) % ITEMS, arena, least = 0;
        for (size_t i = 0; i < n; i++) {
            int32_t first = (int32_t)(next_random(&r) % STEPS);
            items[i] = (zc_placement){.bytes = next_random(&r) % 5 ? next_random(&r) % 5000 : 0,
                                      .first = first,
                                      .last = first + (int32_t)(next_random(&r) % 12),
                                      .id = (uint32_t)i};
        }
        assert_true(zc_place(items, n, &arena));
        check_placed(items, n, arena);
        for (int32_t s = 0; s < 2 * STEPS; s++)
            if (live_at(items, n, s) > least) least = live_at(items, n, s);
        assert_int_equal(zc_place_least(items, n), least);
        assert_true(arena >= least);
    }
}

static void test_overflow(void **state)
{
    zc_placement items[] = {
        {.bytes = SIZE_MAX / 2 - 1}, {.bytes = SIZE_MAX / 2 - 1}, {.bytes = 64}};
    size_t arena;
    (void)state;
    assert_false(zc_place(items, 3, &arena));
}

/* ---- graphs ---- */

typedef void (*write_fn)(zc_buf *text);

/* Convolution of 3 x 3 and Relu; the weights are inputs, which are not in the arena. */
static void conv(zc_buf *t, const char *x, const char *y, int in, int out)
{
    zc_buf_printf(t, "in w_%s 1 %d,%d,3,3\n", y, out, in);
    zc_buf_printf(t, "node Conv %s,w_%s c_%s pads:is=1,1,1,1\nnode Relu c_%s %s\n", x, y, y, y, y);
}

/* Each level halves the image and doubles the channels, and its result waits for the way up. */
static void unet(zc_buf *t)
{
    enum { LEVELS = 4 };
    char x[32] = "x", y[32];
    int channels = 3;
    zc_buf_puts(t, "opset 17\nin x 1 N,3,H,W\nout y 1 *\n");
    for (int l = 0; l < LEVELS; l++, channels = 16 << (l - 1)) {
        snprintf(y, sizeof y, "a%d", l);
        conv(t, x, y, channels, 16 << l);
        snprintf(x, sizeof x, "s%d", l);
        conv(t, y, x, 16 << l, 16 << l);
        if (l == LEVELS - 1) break;
        zc_buf_printf(t, "node MaxPool s%d p%d kernel_shape:is=2,2 strides:is=2,2\n", l, l);
        snprintf(x, sizeof x, "p%d", l);
    }
    for (int l = LEVELS - 2; l >= 0; l--) {
        zc_buf_printf(t, "in t%d 1 %d,%d,2,2\nnode ConvTranspose %s,t%d u%d strides:is=2,2\n", l,
                      32 << l, 16 << l, x, l, l);
        zc_buf_printf(t, "node Concat u%d,s%d j%d axis:i=1\n", l, l, l);
        snprintf(y, sizeof y, "j%d", l);
        snprintf(x, sizeof x, "r%d", l);
        conv(t, y, x, 32 << l, 16 << l);
    }
    zc_buf_printf(t, "in last 1 2,16,1,1\nnode Conv %s,last y\n", x);
}

/* Every layer reads all earlier ones. */
static void densenet(zc_buf *t)
{
    char list[512] = "x";
    zc_buf_puts(t, "opset 17\nin x 1 N,16,H,W\nout y 1 *\n");
    for (int l = 0, at = 1; l < 10; l++) {
        char join[16], y[16];
        snprintf(join, sizeof join, "j%d", l);
        snprintf(y, sizeof y, "d%d", l);
        zc_buf_printf(t, "node Concat %s %s axis:i=1\n", list, join);
        conv(t, join, y, 16 + 12 * l, 12);
        at += snprintf(list + at, sizeof list - (size_t)at, ",d%d", l);
    }
    zc_buf_printf(t, "node Concat %s all axis:i=1\nnode GlobalAveragePool all y\n", list);
}

/* Four ways from one value, of different widths, joined. */
static void inception(zc_buf *t)
{
    zc_buf_puts(t, "opset 17\nin x 1 N,32,H,W\nout y 1 *\n");
    char x[16] = "x";
    for (int b = 0, in = 32; b < 4; b++, in = 48) {
        char mid[16], ways[4][16];
        for (int w = 0; w < 4; w++) {
            snprintf(mid, sizeof mid, "m%d%d", b, w);
            snprintf(ways[w], sizeof ways[w], "b%d%d", b, w);
            conv(t, x, w ? mid : ways[w], in, w ? 24 * w : 12);
            if (w) conv(t, mid, ways[w], 24 * w, 12);
        }
        zc_buf_printf(t, "node Concat %s,%s,%s,%s x%d axis:i=1\n", ways[0], ways[1], ways[2],
                      ways[3], b);
        snprintf(x, sizeof x, "x%d", b);
    }
    zc_buf_printf(t, "node GlobalMaxPool %s y\n", x);
}

static void dense(zc_buf *t, const char *x, const char *y, int in, int out)
{
    zc_buf_printf(t, "in w_%s 1 %d,%d\nin b_%s 1 %d\n", y, in, out, y, out);
    zc_buf_printf(t, "node MatMul %s,w_%s m_%s\nnode Add m_%s,b_%s %s\n", x, y, y, y, y, y);
}

static void norm(zc_buf *t, const char *x, const char *y)
{
    zc_buf_printf(t, "in g_%s 1 64\nin h_%s 1 64\nnode LayerNormalization %s,g_%s,h_%s %s\n", y, y,
                  x, y, y, y);
}

/* Encoder blocks, attention spelled out. */
static void transformer(zc_buf *t)
{
    char x[16] = "x";
    zc_buf_puts(t, "opset 17\nin x 1 N,S,64\nin mask 1 N,1,1,S\nout y 1 *\n"
                   "init heads 7 4 0,0,4,16\ninit flat 7 3 0,0,64\ninit scale 1 - 0.25\n");
    for (int l = 0; l < 4; l++) {
        static const char *const parts = "qkv";
        for (const char *p = parts; *p; p++) {
            char name[16];
            snprintf(name, sizeof name, "%c%d", *p, l);
            dense(t, x, name, 64, 64);
            zc_buf_printf(t, "node Reshape %s,heads r_%s\n", name, name);
            zc_buf_printf(t, "node Transpose r_%s t_%s perm:is=0,2,%s\n", name, name,
                          *p == 'k' ? "3,1" : "1,3");
        }
        zc_buf_printf(t,
                      "node MatMul t_q%d,t_k%d s%d\nnode Mul s%d,scale e%d\nnode Add e%d,mask f%d\n"
                      "node Softmax f%d p%d axis:i=3\nnode MatMul p%d,t_v%d o%d\n"
                      "node Transpose o%d u%d perm:is=0,2,1,3\nnode Reshape u%d,flat c%d\n",
                      l, l, l, l, l, l, l, l, l, l, l, l, l, l, l, l);
        char name[16], next[16];
        snprintf(name, sizeof name, "c%d", l);
        snprintf(next, sizeof next, "d%d", l);
        dense(t, name, next, 64, 64);
        zc_buf_printf(t, "node Add d%d,%s i%d\n", l, x, l);
        snprintf(name, sizeof name, "i%d", l);
        snprintf(x, sizeof x, "n%d", l);
        norm(t, name, x);
        snprintf(next, sizeof next, "up%d", l);
        dense(t, x, next, 64, 256);
        zc_buf_printf(t, "node Gelu up%d act%d domain=com.microsoft\n", l, l);
        snprintf(name, sizeof name, "act%d", l);
        snprintf(next, sizeof next, "down%d", l);
        dense(t, name, next, 256, 64);
        zc_buf_printf(t, "node Add down%d,%s res%d\n", l, x, l);
        snprintf(name, sizeof name, "res%d", l);
        snprintf(x, sizeof x, "z%d", l);
        norm(t, name, x);
    }
    zc_buf_printf(t, "node ReduceMean %s y axes:is=1\n", x);
}

/* A pyramid: results of every scale, kept for the end, with sums from the small to the large. */
static void pyramid(zc_buf *t)
{
    zc_buf_puts(t, "opset 17\nin x 1 N,8,H,W\n");
    for (int l = 0; l < 4; l++) zc_buf_printf(t, "out y%d 1 *\n", l);
    char x[16] = "x", y[16];
    for (int l = 0; l < 4; l++) {
        snprintf(y, sizeof y, "c%d", l);
        conv(t, x, y, l ? 32 : 8, 32);
        zc_buf_printf(t, "node AveragePool c%d p%d kernel_shape:is=2,2 strides:is=2,2\n", l, l);
        snprintf(x, sizeof x, "p%d", l);
    }
    for (int l = 3; l >= 0; l--) {
        zc_buf_printf(t, "in t%d 1 32,32,2,2\nnode ConvTranspose %s,t%d u%d strides:is=2,2\n", l, x,
                      l, l);
        zc_buf_printf(t, "node Add u%d,c%d a%d\n", l, l, l);
        snprintf(x, sizeof x, "a%d", l);
        snprintf(y, sizeof y, "y%d", l);
        conv(t, x, y, 32, 16);
    }
}

static int64_t size_of(const char *symbol, int variant)
{
    static const int64_t images[] = {16, 32, 64, 96}, batches[] = {1, 2, 7, 16};
    return *symbol == 'N' ? batches[variant] : images[(variant + (*symbol == 'W')) % 4];
}

static void check_plan(zc_plan *plan, const char *name, int variant, zc_diag *diag)
{
    enum { INPUTS = 128 };
    zc_plan_info info;
    zc_io_info inputs[INPUTS];
    zc_memory_info m;
    expect_ok(diag, zc_plan_info_get(plan, &info));
    assert_true(info.inputs <= INPUTS);
    for (size_t i = 0; i < info.inputs; i++) {
        expect_ok(diag, zc_plan_input(plan, i, &inputs[i], diag));
        for (int d = 0; d < inputs[i].rank; d++)
            if (inputs[i].dims[d] < 0) inputs[i].dims[d] = size_of(inputs[i].dim_texts[d], variant);
    }
    expect_ok(diag, zc_plan_memory(plan, inputs, info.inputs, &m, diag));
    print_message("%s %d: %llu bytes, %llu at once: %.3f\n", name, variant,
                  (unsigned long long)m.arena_bytes, (unsigned long long)m.live_bytes,
                  m.live_bytes ? (double)m.arena_bytes / (double)m.live_bytes : 1.0);
    assert_true(m.live_bytes > 0);
    assert_true(m.arena_bytes >= m.live_bytes);
    assert_true(m.arena_bytes * 10 <= m.live_bytes * 11);
}

static void test_graphs(void **state)
{
    static const struct {
        const char *name;
        write_fn write;
    } graphs[] = {{"unet", unet},
                  {"densenet", densenet},
                  {"inception", inception},
                  {"transformer", transformer},
                  {"pyramid", pyramid}};
    static const char *const none[] = {"all"};
    (void)state;
    for (size_t i = 0; i < 2 * sizeof graphs / sizeof *graphs; i++) {
        zc_buf text = {0}, model = {0};
        zc_plan *plan = NULL;
        void *bytes = NULL;
        size_t len = 0;
        zc_diag *diag = zc_diag_create();
        graphs[i / 2].write(&text);
        onnx_text(text.data, &model);
        /* Optimised, and every node by itself. */
        expect_ok(diag,
                  zc_compile_bytes(model.data, model.len,
                                   ZC_COMPILE_PARAMS(.skip_passes = none, .skip_pass_count = i % 2),
                                   &bytes, &len, diag));
        expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
        for (int variant = 0; variant < 4; variant++)
            check_plan(plan, graphs[i / 2].name, variant, diag);
        zc_plan_destroy(&plan);
        zc_free(bytes);
        zc_buf_fini(&text);
        zc_buf_fini(&model);
        zc_diag_destroy(&diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_lifetimes),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
