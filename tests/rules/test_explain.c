/* What --explain counts: candidates by their shape alone, what becomes of them, and why not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "census/census.h"
#include "passes/passes.h"

static zc_graph *graph(const char *text)
{
    zc_graph *g = NULL;
    zc_diag *diag = zc_diag_create();
    if (zc_graph_parse(text, strlen(text), &g, diag) != ZC_OK)
        fail_msg("%s\nin %s", zc_diag_text(diag, 0), text);
    zc_diag_destroy(&diag);
    return g;
}

static zc_rules *load(const char *text)
{
    zc_rules *r = NULL;
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    assert_int_equal(zc_rules_add_text(r, "t.zcr", text, strlen(text), NULL), ZC_OK);
    return r;
}

/* ---- counting ---- */

typedef struct shape {
    zc_rule_kind kind;
    size_t count;
    const char *body;
} shape;

#define HEAD                                                                                       \
    "graph \"g\" { input %x: f32[2,4] as \"x\" input %z: f32[2,4] as \"z\" "                       \
    "input %p: f32[1,4,2,2] as \"p\" input %ids: i64[2] as \"ids\" "                               \
    "const %w: f32[4,4] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] "                 \
    "const %u: f32[4,4] = [1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] "                 \
    "const %v: f32[4,4] = [2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] "                 \
    "const %k: f32[4,4,1,1] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15] "             \
    "const %s: f32[4] = [1, 1, 1, 1] const %pair: f32[2] = [1, 1] const %one: f32[] = [1] const "  \
    "%two: f32[] = [2] "                                                                           \
    "const %last: i64[1] = [-1] const %cut: i64[2] = [2, 2] const %plane: i64[2] = [2, 3] "        \
    "const %parts: i64[3] = [1, 2, -1] const %whole: i64[4] = [1, 4, 2, 2] "
#define TAIL " output %o as \"o\" }"

#define QKV                                                                                        \
    "%q: f32[2,4] = MatMul(%x, %w) @ \"n\" %a: f32[2,4] = MatMul(%x, %u) @ \"n\" %b: f32[2,4] = "  \
    "MatMul(%x, %v) @ \"n\" "                                                                      \
    "%t: f32[4,2] = Transpose(%a) {perm = [1, 0]} @ \"n\" %m: f32[2,2] = MatMul(%q, %t) @ \"n\" "  \
    "%c: f32[2,2] = Mul(%m, %two) @ \"n\" %d: f32[2,2] = Softmax(%c) @ \"n\" %o: f32[2,4] = "      \
    "MatMul(%d, %b) @ \"n\""
#define CENTRED                                                                                    \
    "%m: f32[2,1] = ReduceMean(%x, %last) @ \"n\" %d: f32[2,4] = Sub(%x, %m) @ \"n\" %q: "         \
    "f32[2,4] = Mul(%d, %d) @ \"n\" "                                                              \
    "%n: f32[2,1] = ReduceMean(%q, %last) @ \"n\" %e: f32[2,1] = Sqrt(%n) @ \"n\" %o: f32[2,4] = " \
    "Div(%d, %e) @ \"n\""

static const shape shapes[] = {
    {ZC_RULE_attention, 1, QKV},
    {ZC_RULE_attention, 0, "%o: f32[2,4] = Softmax(%x) @ \"n\""},
    {ZC_RULE_qkv, 1, QKV},
    {ZC_RULE_qkv, 0,
     "%q: f32[2,4] = MatMul(%x, %w) @ \"n\" %a: f32[2,4] = MatMul(%x, %u) @ \"n\" %o: f32[2,4] = "
     "Add(%q, %a) @ \"n\""},
    {ZC_RULE_activation, 1, "%a: f32[2,4] = Erf(%x) @ \"n\" %o: f32[2,4] = Mul(%a, %x) @ \"n\""},
    {ZC_RULE_activation, 1,
     "%a: f32[2,4] = Sigmoid(%x) @ \"n\" %o: f32[2,4] = Mul(%a, %x) @ \"n\""},
    {ZC_RULE_activation, 1,
     "%b: f32[2,4] = Mul(%x, %two) @ \"n\" %a: f32[2,4] = Sigmoid(%b) @ \"n\" %o: f32[2,4] = "
     "Mul(%a, %x) @ \"n\""},
    {ZC_RULE_activation, 0,
     "%a: f32[2,4] = Sigmoid(%x) @ \"n\" %o: f32[2,4] = Mul(%a, %z) @ \"n\""},
    {ZC_RULE_layer_norm, 1, CENTRED},
    {ZC_RULE_rms_norm, 0, CENTRED},
    {ZC_RULE_rms_norm, 1,
     "%q: f32[2,4] = Mul(%x, %x) @ \"n\" %n: f32[2,1] = ReduceMean(%q, %last) @ \"n\" %e: f32[2,1] "
     "= Sqrt(%n) @ \"n\" "
     "%o: f32[2,4] = Div(%x, %e) @ \"n\""},
    {ZC_RULE_group_norm, 1,
     "%a: f32[1,2,8] = Reshape(%p, %parts) @ \"n\" "
     "%b: f32[1,2,8] = InstanceNormalization(%a, %pair, %pair) @ \"n\" %o: f32[1,4,2,2] = "
     "Reshape(%b, "
     "%whole) @ \"n\""},
    {ZC_RULE_skip_norm, 1,
     "%a: f32[2,4] = Add(%x, %z) @ \"n\" %o: f32[2,4] = LayerNormalization(%a, %s) @ \"n\""},
    {ZC_RULE_skip_norm, 0,
     "%a: f32[2,4] = Add(%x, %s) @ \"n\" %o: f32[2,4] = LayerNormalization(%a, %s) @ \"n\""},
    {ZC_RULE_rope, 1,
     "%a: f32[2,2], %b: f32[2,2] = Split(%x, %cut) {axis = -1} @ \"n\" %n: f32[2,2] = Neg(%b) @ "
     "\"n\" "
     "%o: f32[2,4] = Concat(%n, %a) {axis = -1} @ \"n\""},
    {ZC_RULE_rope, 0,
     "%n: f32[2,4] = Neg(%x) @ \"n\" %o: f32[2,8] = Concat(%n, %z) {axis = -1} @ \"n\""},
    {ZC_RULE_gated_mlp, 1,
     "%a: f32[2,4] = MatMul(%x, %w) @ \"n\" %g: f32[2,4] = Sigmoid(%a) @ \"n\" %h: f32[2,4] = "
     "Mul(%a, %g) @ \"n\" "
     "%b: f32[2,4] = MatMul(%x, %u) @ \"n\" %o: f32[2,4] = Mul(%h, %b) @ \"n\""},
    {ZC_RULE_gated_mlp, 0,
     "%a: f32[2,4] = MatMul(%x, %w) @ \"n\" %g: f32[2,4] = Sigmoid(%a) @ \"n\" %o: f32[2,4] = "
     "Mul(%a, %g) @ \"n\""},
    {ZC_RULE_squeeze_excite, 1,
     "%m: f32[1,4,1,1] = ReduceMean(%p, %plane) @ \"n\" %c: f32[1,4,1,1] = Conv(%m, %k) @ \"n\" "
     "%e: f32[1,4,1,1] = Sigmoid(%c) @ \"n\" %o: f32[1,4,2,2] = Mul(%p, %e) @ \"n\""},
    {ZC_RULE_embedding, 1,
     "%a: f32[2,4] = Gather(%w, %ids) @ \"n\" %b: f32[2,4] = Gather(%u, %ids) @ \"n\" %o: f32[2,4] "
     "= Add(%a, %b) @ \"n\""},
    {ZC_RULE_embedding, 0,
     "%a: f32[2,4] = Gather(%w, %ids) @ \"n\" %o: f32[2,4] = Add(%a, %x) @ \"n\""},
    {ZC_RULE_softmax, 1,
     "%e: f32[2,4] = Exp(%x) @ \"n\" %a: f32[2,1] = ReduceSum(%e, %last) @ \"n\" %o: f32[2,4] = "
     "Div(%e, %a) @ \"n\""},
    {ZC_RULE_layout, 1,
     "%a: f32[4,2] = Transpose(%x) {perm = [1, 0]} @ \"n\" %o: f32[2,4] = Transpose(%a) {perm = "
     "[1, 0]} @ \"n\""},
    {ZC_RULE_linear, 1, "%o: f32[2,4] = MatMul(%x, %w) @ \"n\""},
    {ZC_RULE_batch_norm, 1,
     "%c: f32[1,4,2,2] = Conv(%p, %k) @ \"n\" "
     "%o: f32[1,4,2,2] = BatchNormalization(%c, %s, %s, %s, %s) @ \"n\""},
};

static void test_counts(void **state)
{
    for (size_t i = 0; i < ZC_COUNTOF(shapes); i++) {
        char text[4096];
        zc_census c;
        size_t found;
        snprintf(text, sizeof text, "%s%s%s", HEAD, shapes[i].body, TAIL);
        zc_graph *g = graph(text);
        zc_census_init(&c);
        zc_census_take(&c, g, "opt_rules");
        size_t n = zc_census_count(&c, shapes[i].kind, &found);
        if (n != shapes[i].count)
            fail_msg("%s: got %zu, need %zu in %s", zc_rule_kind_name(shapes[i].kind), n,
                     shapes[i].count, shapes[i].body);
        zc_census_fini(&c);
        zc_graph_destroy(&g);
    }
}

static void test_every_kind_is_counted(void **state)
{
    for (int k = 1; k < ZC_RULE_KIND_COUNT; k++) {
        bool is_there = k == ZC_RULE_epilogue || k == ZC_RULE_pointwise;
        for (size_t i = 0; i < ZC_COUNTOF(shapes); i++)
            is_there |= (int)shapes[i].kind == k && shapes[i].count > 0;
        if (!is_there) fail_msg("no shape of kind %s", zc_rule_kind_name((zc_rule_kind)k));
    }
}

/* ---- through rewrites ---- */

typedef struct outcome {
    zc_rule_stats stats[8];
    zc_census census;
    zc_rules_report report;
    zc_rules *rules;
    zc_graph *g;
} outcome;

static void compile(outcome *o, const char *rules, const char *body)
{
    char text[4096];
    snprintf(text, sizeof text, "%s%s%s", HEAD, body, TAIL);
    memset(o->stats, 0, sizeof o->stats);
    zc_census_init(&o->census);
    o->report.stats = o->stats;
    o->report.census = &o->census;
    o->rules = load(rules);
    o->g = graph(text);
    zc_pass_options options = {.rules = o->rules, .rules_report = &o->report};
    assert_int_equal(zc_run_passes(o->g, &options, NULL), ZC_OK);
}

static void end(outcome *o)
{
    zc_census_fini(&o->census);
    zc_rules_destroy(&o->rules);
    zc_graph_destroy(&o->g);
}

#define SILU "%a: f32[2,4] = Sigmoid(%x) @ \"gate\" %o: f32[2,4] = Mul(%a, %x) @ \"product\""

static void test_found_by_its_kind(void **state)
{
    outcome o = {.report = {.limit = 0}};
    size_t found;
    compile(&o, "rule r kind activation { match o = Mul(x, Sigmoid(x)); emit o = Swish(x); }",
            SILU);
    assert_int_equal(zc_census_count(&o.census, ZC_RULE_activation, &found), 1);
    assert_int_equal(found, 1);
    assert_int_equal(o.census.candidates.data[0].rule, 0);
    end(&o);
    /* A rule of another kind, or of none, does not find it. */
    compile(&o, "rule r kind softmax { match o = Mul(x, Sigmoid(x)); emit o = Swish(x); }", SILU);
    assert_int_equal(zc_census_count(&o.census, ZC_RULE_activation, &found), 1);
    assert_int_equal(found, 0);
    end(&o);
}

static void test_carried_by_rewrites(void **state)
{
    outcome o = {.report = {.limit = 0}};
    size_t found;
    compile(&o,
            "rule first priority 1 { match o = Mul(x, Sigmoid(x)); emit o = Swish(x); }"
            "rule second kind activation { match o = Swish(x); emit o = HardSwish(x); }",
            SILU);
    assert_int_equal(o.stats[0].applied, 1);
    assert_int_equal(o.stats[1].applied, 1);
    assert_int_equal(zc_census_count(&o.census, ZC_RULE_activation, &found), 1);
    assert_int_equal(found, 1);
    assert_int_equal(o.census.candidates.data[0].rule, 1);
    end(&o);
}

static void test_miss_says_why(void **state)
{
    outcome o = {.report = {.limit = 0}};
    compile(&o,
            "rule r kind activation {\n match o = Mul(x, Sigmoid(x));\n where rank(x) == 3;\n"
            " emit o = Swish(x); }",
            SILU);
    const zc_candidate *c = &o.census.candidates.data[0];
    assert_false(c->found);
    assert_string_equal(c->node, "gate");
    assert_int_not_equal(c->miss, ZC_CENSUS_NONE);
    const zc_rule_miss *m = &o.census.misses.data[c->miss];
    assert_int_equal(m->matched, 2);
    assert_int_equal(m->nnodes, 2);
    assert_string_equal(m->root_name, "product");
    assert_string_equal(m->why,
                        "the condition in line 3, column 8 does not hold (got 2, need == 3)");
    assert_false(m->is_over);
    end(&o);
}

/* A place that was rewritten after all is none where a rule failed. */
static void test_miss_is_over(void **state)
{
    outcome o = {.report = {.limit = 0}};
    compile(&o,
            "rule r priority 1 { match o = Mul(x, Sigmoid(x)); where rank(x) == 3;"
            " emit o = Swish(x); }"
            "rule s { match o = Mul(x, Sigmoid(x)); emit o = Swish(x); }",
            SILU);
    assert_int_equal(o.stats[1].applied, 1);
    assert_int_equal(o.census.misses.len, 1);
    assert_true(o.census.misses.data[0].is_over);
    end(&o);
}

/* ---- the limit ---- */

static void test_limit(void **state)
{
    static const char body[] = "%a: f32[2,4] = Relu(%x) @ \"a\" %b: f32[2,4] = Neg(%a) @ \"b\" "
                               "%c: f32[2,4] = Relu(%b) @ \"c\" %o: f32[2,4] = Neg(%c) @ \"d\"";
    static const char rules[] = "rule r { match o = Relu(x); emit o = LeakyRelu(x); }";
    for (size_t limit = 0; limit <= 3; limit++) {
        outcome o = {.report = {.limit = limit}};
        size_t want = limit == 0 || limit > 2 ? 2 : limit;
        compile(&o, rules, body);
        assert_int_equal(o.report.rewrites, want);
        assert_int_equal(o.stats[0].applied, want);
        if (limit == 1) assert_string_equal(o.report.last_nodes, "c");
        if (limit == 2) assert_string_equal(o.report.last_nodes, "a");
        end(&o);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_every_kind_is_counted),
        cmocka_unit_test(test_found_by_its_kind),
        cmocka_unit_test(test_carried_by_rewrites),
        cmocka_unit_test(test_miss_says_why),
        cmocka_unit_test(test_miss_is_over),
        cmocka_unit_test(test_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
