/* Loading, checking and applying rules when any one allocation fails: an error, and no leak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "census/census.h"
#include "prover/prover.h"
#include "support/fail_alloc.h"

static const char rules[] =
    "pointwise QuickGelu(x) = x * sigmoid(1.702 * x); // comment\n"
    "rule a priority 2 {\n"
    "  match q = MatMul(x, wq: const); k = MatMul(x, wk: const);\n"
    "  where rank(wq) == 2, same_shape(wq, wk), dtype(x) in {f32, f16};\n"
    "  emit w = Concat(wq, wk) { axis = 1 };\n"
    "       q, k = Split(MatMul(x, w), _) { axis = -1, num_outputs = 2 };\n"
    "}\n"
    "rule b kind activation { match o = Mul(x, Sigmoid(x)); emit o = QuickGelu(x); }\n"
    "pointwise Both(a; k = 0.5) = QuickGelu(a * k) + QuickGelu(a);\n"
    "kernel Twice(x) { file \"t.cu\"; entry \"f\"; result y = like(x); tune N in {32};\n"
    "  grid ceil_div(size(x), N); block N; meaning { y = Add(x, Both(x) { k = 2 }); } }\n"
    "rule d { match o = Exp(x); emit o = Twice(x); }\n"
    "rule e { match o = Neg(Neg(Exp(Add(x, y...)*1..3))); where rank(y) == 3, count(y) > 0;\n"
    "  emit o = Concat(x, y...) { axis = 0 }; }\n"
    "pattern Fold(x, w) { h = Neg(x); o = Sub(h, w); }\n"
    "rule f { match o = Neg(Concat(..., Fold(Abs(y), w...)*1..2, Fold(x..., z)...) { axis = 0 });\n"
    "  emit o = Add(Abs(x...)..., y, w..., z); }\n"
    "rule g { match o = Abs(Add(x, y, z...)); emit o = Abs(Concat(Neg(z...)..., x) { axis = 0 }); "
    "}\n"
    "rule c { match o = ( Neg(Neg(x)) | Abs(Abs(x)) ); emit o = Cast(x) { to = f16 }; }\n";

static const char model[] = "graph \"g\" {\n  input %x: f32[n,2] as \"x\"\n"
                            "  const %a: f32[2,2] = [1, 2, 3, 4]\n"
                            "  const %b: f32[2,2] = [5, 6, 7, 8]\n"
                            "  %q: f32[n,2] = MatMul(%x, %a) @ \"q\" from \"Q\"\n"
                            "  %k: f32[n,2] = MatMul(%x, %b) @ \"k\" from \"K\"\n"
                            "  %s: f32[n,2] = Sigmoid(%k) @ \"s\" from \"S\"\n"
                            "  %m: f32[n,2] = Mul(%k, %s) @ \"m\" from \"M\"\n"
                            "  %o: f32[n,2] = Add(%m, %q) @ \"o\"\n"
                            "  %e: f32[n,2] = Exp(%o) @ \"e\"\n"
                            "  %p: f32[n,2] = Neg(%e) @ \"p\"\n  %r: f32[n,2] = Neg(%p) @ \"r\"\n"
                            "  output %r as \"r\"\n}\n";

static zc_status read_source(void *user, const char *name, uint8_t **data, size_t *len,
                             zc_diag *diag)
{
    static const char source[] = "extern \"C\" __global__ void f() {}";
    (void)user;
    *len = strlen(source);
    *data = (uint8_t *)strdup(source);
    return *data ? ZC_OK : zc_fail_nomem(diag, name, *len);
}

static zc_status apply(const zc_rules *r, zc_graph *g, zc_diag *diag)
{
    zc_rule_stats stats[7] = {{0}};
    zc_census census;
    size_t changes = 0, found;
    zc_census_init(&census);
    zc_rules_report report = {.stats = stats, .census = &census};
    zc_census_take(&census, g, "opt_rules");
    zc_status status = zc_rules_apply(r, g, NULL, &report, &changes, diag);
    if (status == ZC_OK) status = zc_census_finish(&census, g, diag);
    if (status == ZC_OK) {
        assert_int_equal(changes, 3);
        assert_int_equal(zc_census_count(&census, ZC_RULE_activation, &found), 1);
        assert_int_equal(found, 1);
    }
    zc_census_fini(&census);
    return status;
}

static zc_status work(zc_graph *g, zc_diag *diag)
{
    zc_rules *r = NULL;
    zc_rule_check check;
    zc_status status = zc_rules_create(&r, diag);
    if (status == ZC_OK) zc_rules_set_reader(r, read_source, NULL);
    if (status == ZC_OK) status = zc_rules_add_text(r, "t.zcr", rules, strlen(rules), diag);
    if (status == ZC_OK) status = apply(r, g, diag);
    if (status == ZC_OK) status = zc_rules_check_numbers(r, 1, 1, &check, diag);
    zc_rules_destroy(&r);
    return status;
}

/* After so many, the check makes graph after graph in the same way. */
static void test_every_allocation(void **state)
{
    enum { CALLS = 1500 };
    size_t failures = 0;
    for (long n = 1; n <= CALLS; n++) {
        long live = fail_alloc_live();
        zc_diag *diag = zc_diag_create();
        zc_graph *g = NULL;
        assert_int_equal(zc_graph_parse(model, strlen(model), &g, diag), ZC_OK);
        fail_alloc_at(n);
        zc_status status = work(g, diag);
        int happened = fail_alloc_happened();
        fail_alloc_at(0);
        zc_graph_destroy(&g);
        if (status != ZC_OK && status != ZC_ERR_NOMEM)
            fail_msg("allocation %ld: %s, %s", n, zc_status_name(status), zc_diag_text(diag, 0));
        if (status != ZC_OK) assert_true(happened);
        failures += status != ZC_OK;
        zc_diag_destroy(&diag);
        if (fail_alloc_live() != live)
            fail_msg("allocation %ld: %ld left", n, fail_alloc_live() - live);
        if (!happened) break;
    }
    print_message("%zu failures\n", failures);
    assert_true(failures > 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
