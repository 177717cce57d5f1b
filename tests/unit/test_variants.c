/* What variants of one model share: copies of a graph, constants that are kept from one to the
 * next, packed ones that outlive a plan. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cpu/packs.h"
#include "ir/graph.h"
#include "passes/kept.h"
#include "passes/passes.h"
#include "support/expect.h"
#include "support/fail_alloc.h"

enum { FORM = 1, OTHER = 2 };

/* A weight that is used, one that is not, a symbol, and a branch with nodes of its own. */
static const char model[] = "graph \"g\" {\n"
                            "input %x: f32[n,2] as \"x\"\n"
                            "input %c: bool[] as \"c\"\n"
                            "const %w: f32[2,2] = [1.0, 2.0, 3.0, 4.0]\n"
                            "const %unused: f32[3] = [5.0, 6.0, 7.0]\n"
                            "%y: f32[n,2] = MatMul(%x, %w) @ \"product\"\n"
                            "%z: f32[n,2] = If(%c) @ \"if\" () {\n"
                            "%a: f32[n,2] = Softmax(%y) {axis = 1} @ \"a\"\n"
                            "yield %a\n"
                            "} () {\n"
                            "%b: f32[n,2] = Relu(%y) @ \"b\"\n"
                            "yield %b\n"
                            "}\n"
                            "output %z as \"z\"\n"
                            "}\n";

static zc_graph *parsed(zc_diag *diag)
{
    zc_graph *g = NULL;
    expect_ok(diag, zc_graph_parse(model, sizeof model - 1, &g, diag));
    return g;
}

static zc_buf printed(const zc_graph *g)
{
    zc_buf b = {0};
    zc_graph_print(g, true, &b);
    assert_false(b.failed);
    return b;
}

static void expect_printed(const zc_graph *g, const zc_buf *as)
{
    zc_buf b = printed(g);
    assert_string_equal(b.data, as->data);
    zc_buf_fini(&b);
}

static const void *bytes_of(const zc_graph *g, const char *name)
{
    return zc_val(g, zc_graph_find(g, name))->data->data;
}

static void test_copies(void **state)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = parsed(diag), *copy = NULL;
    zc_buf before = printed(g);
    const zc_nid product = g->top.nodes.data[0];
    const zc_nid softmax = zc_node_at(g, g->top.nodes.data[1])->regions[0]->nodes.data[0];
    (void)state;
    expect_ok(diag, zc_graph_copy(g, &copy, diag));
    expect_printed(copy, &before);
    assert_ptr_equal(bytes_of(copy, "w"), bytes_of(g, "w"));
    assert_true(zc_graph_owns(g, bytes_of(g, "w")) && !zc_graph_owns(copy, bytes_of(g, "w")));
    /* Names are the copy's own, and so is all that passes change in place. */
    assert_int_equal(zc_graph_value(copy, "w", ZC_VALUE_NODE, NULL), g->values.len);
    ZC_NODE_SET(copy, Softmax, softmax, axis, 0);
    zc_node_at(copy, product)->in[0] = zc_node_at(copy, product)->in[1];
    zc_dim_input(&copy->dims, "new");
    zc_graph_remove(copy, copy->top.nodes.data[1]);
    expect_printed(g, &before);
    zc_graph_destroy(&copy);
    expect_printed(g, &before);
    zc_graph_destroy(&g);
    zc_buf_fini(&before);
    zc_diag_destroy(&diag);
}

static void test_changes_stay_in_copies(void **state)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = parsed(diag);
    zc_buf before = printed(g);
    (void)state;
    for (int i = 0; i < 2; i++) {
        zc_graph *copy = NULL;
        expect_ok(diag, zc_graph_copy(g, &copy, diag));
        expect_ok(diag, zc_run_passes(copy, NULL, diag));
        zc_graph_destroy(&copy);
        expect_printed(g, &before);
    }
    zc_graph_destroy(&g);
    zc_buf_fini(&before);
    zc_diag_destroy(&diag);
}

/* Passes in two parts are the passes. */
static void test_passes_in_parts(void **state)
{
    static const zc_pass_options options = {.precision = ZC_F16};
    zc_diag *diag = zc_diag_create();
    zc_graph *whole = parsed(diag), *parts = parsed(diag);
    (void)state;
    expect_ok(diag, zc_run_passes(whole, &options, diag));
    expect_ok(diag, zc_run_passes_before(parts, "lower_precision", &options, diag));
    zc_buf as = printed(whole), between = printed(parts);
    assert_null(strstr(between.data, "f16"));
    assert_non_null(strstr(as.data, "f16"));
    expect_ok(diag, zc_run_passes_from(parts, "lower_precision", &options, diag));
    expect_printed(parts, &as);
    zc_buf_fini(&as);
    zc_buf_fini(&between);
    zc_graph_destroy(&whole);
    zc_graph_destroy(&parts);
    zc_diag_destroy(&diag);
}

static void test_sheds(void **state)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = parsed(diag);
    const size_t before = g->buffers.len;
    (void)state;
    assert_true(zc_graph_shed(g));
    assert_int_equal(g->buffers.len, before - 1);
    assert_true(zc_graph_is_hollow(g, zc_graph_find(g, "unused")));
    assert_int_equal(((const float *)bytes_of(g, "w"))[3], 4);
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

/* A constant of g that is made of the one named so. */
static zc_vid make(zc_kept *k, zc_graph *g, const char *name, int form)
{
    zc_tensor t = {.dtype = ZC_F32, .rank = 1, .dims = {2}, .data = zc_calloc(2, sizeof(float))};
    assert_non_null(t.data);
    return zc_kept_take(k, g, zc_graph_find(g, name), form, &t);
}

static void test_keeps(void **state)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *base = parsed(diag), *one = NULL, *two = NULL;
    zc_kept k = {.most = 8};
    (void)state;
    expect_ok(diag, zc_graph_copy(base, &one, diag));
    expect_ok(diag, zc_graph_copy(base, &two, diag));
    const zc_vid w = zc_graph_find(base, "w");
    assert_int_equal(zc_kept_use(&k, one, w, FORM), 0);
    const zc_vid made = make(&k, one, "w", FORM);
    const void *bytes = zc_val(one, made)->data->data;
    zc_graph_destroy(&one);
    const zc_vid again = zc_kept_use(&k, two, w, FORM);
    assert_ptr_equal(zc_val(two, again)->data->data, bytes);
    assert_false(zc_graph_owns(two, bytes));
    /* In another form it is another, which there is no room for. */
    assert_int_equal(zc_kept_use(&k, two, w, OTHER), 0);
    assert_true(zc_graph_owns(two, zc_val(two, make(&k, two, "w", OTHER))->data->data));
    assert_false(zc_kept_has(&k, two, w, OTHER));
    /* What ends with the graph is not kept. */
    k.most = 1000;
    assert_int_not_equal(make(&k, base, "w", OTHER), 0);
    assert_int_equal(k.list.len, 1);
    zc_graph_destroy(&two);
    zc_graph_destroy(&base);
    zc_kept_fini(&k);
    zc_diag_destroy(&diag);
}

static bool same(const zc_pack_format *a, const zc_pack_format *b)
{
    return a->bytes == b->bytes;
}

static bool copy_one(const zc_pack_format *f, const void *from, void *to)
{
    memcpy(to, from, f->bytes);
    return true;
}

static void test_packs_forget(void **state)
{
    static const zc_pack_format format = {.bytes = 4, .same = same, .pack = copy_one};
    zc_diag *diag = zc_diag_create();
    zc_packs p;
    float x = 1, y = 2;
    const void *of_x, *of_y, *again;
    (void)state;
    zc_packs_init(&p);
    expect_ok(diag, zc_packs_get_plain(&p, &x, &format, sizeof format, &of_x, diag));
    expect_ok(diag, zc_packs_get_plain(&p, &y, &format, sizeof format, &of_y, diag));
    x = 3; /* other bytes at the address of some that ended */
    zc_packs_forget(&p, &x);
    assert_int_equal(p.packed_bytes, 4);
    expect_ok(diag, zc_packs_get_plain(&p, &x, &format, sizeof format, &of_x, diag));
    expect_ok(diag, zc_packs_get_plain(&p, &y, &format, sizeof format, &again, diag));
    assert_int_equal(*(const float *)of_x, 3);
    assert_ptr_equal(again, of_y);
    zc_packs_fini(&p);
    zc_diag_destroy(&diag);
}

/* Wherever memory ends, it is said, and all is given back. */
static void test_copies_without_memory(void **state)
{
    zc_diag *diag = zc_diag_create();
    zc_graph *g = parsed(diag);
    (void)state;
    zc_status status = ZC_ERR_NOMEM;
    const long live = fail_alloc_live();
    for (long n = 1; status != ZC_OK; n++) {
        zc_graph *copy = NULL;
        assert_true(n < 1000);
        fail_alloc_at(n);
        status = zc_graph_copy(g, &copy, diag);
        fail_alloc_at(0);
        assert_true(status == ZC_OK || status == ZC_ERR_NOMEM);
        assert_true((copy != NULL) == (status == ZC_OK));
        zc_graph_destroy(&copy);
        zc_diag_clear(diag);
        assert_int_equal(fail_alloc_live(), live);
    }
    zc_graph_destroy(&g);
    zc_diag_destroy(&diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_changes_stay_in_copies),
                                       cmocka_unit_test(test_passes_in_parts),
                                       cmocka_unit_test(test_sheds),
                                       cmocka_unit_test(test_keeps),
                                       cmocka_unit_test(test_packs_forget),
                                       cmocka_unit_test(test_copies_without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
