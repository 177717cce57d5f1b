/* Rule files that are wrong or hostile, rules that break a graph, and rules that do not end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "prover/prover.h"

/* ---- helpers ---- */

static zc_rules *load_bytes(const char *text, size_t len, zc_status *status)
{
    zc_rules *r = NULL;
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    *status = zc_rules_add_text(r, "t.zcr", text, len, NULL);
    return r;
}

static zc_rules *load(const char *text)
{
    zc_status status;
    zc_rules *r = load_bytes(text, strlen(text), &status);
    if (status != ZC_OK) {
        zc_buf said = {0};
        zc_rules_message_print(r, 0, &said);
        fail_msg("%s", said.data ? said.data : "no message");
    }
    return r;
}

/* The text fails to load, and the first message begins so. */
static void refuse_bytes(const char *text, size_t len, const char *want)
{
    zc_status status;
    zc_buf said = {0};
    zc_rules *r = load_bytes(text, len, &status);
    zc_rules_message_print(r, 0, &said);
    if (status != ZC_ERR_FORMAT || !said.data || strncmp(said.data, want, strlen(want)) != 0)
        fail_msg("got %s: %s; need %s", zc_status_name(status), said.data ? said.data : "", want);
    zc_buf_fini(&said);
    zc_rules_destroy(&r);
}

static void refuse(const char *text, const char *want)
{
    refuse_bytes(text, strlen(text), want);
}

static zc_graph *graph(const char *text)
{
    zc_graph *g = NULL;
    zc_diag *diag = zc_diag_create();
    if (zc_graph_parse(text, strlen(text), &g, diag) != ZC_OK)
        fail_msg("%s", zc_diag_text(diag, 0));
    zc_diag_destroy(&diag);
    return g;
}

/* Applies and validates. */
static zc_status apply(const zc_rules *r, zc_graph *g, zc_rule_stats *stats, size_t *changes,
                       zc_diag *diag)
{
    zc_rules_report report = {.stats = stats};
    zc_status status = zc_rules_apply(r, g, NULL, stats ? &report : NULL, changes, diag);
    zc_graph_compact(g);
    assert_int_equal(zc_graph_validate(g, "the rules", NULL), ZC_OK);
    return status;
}

static char *repeat(const char *head, const char *part, size_t n, const char *tail)
{
    size_t len = strlen(part);
    char *text = malloc(strlen(head) + n * len + strlen(tail) + 1);
    char *at = text + sprintf(text, "%s", head);
    for (size_t i = 0; i < n; i++, at += len) memcpy(at, part, len);
    strcpy(at, tail);
    return text;
}

#define SILU "rule silu { match o = Mul(x, Sigmoid(x)); emit o = Swish(x); }"

/* ---- R1: what is barely a file ---- */

static void test_barely_a_file(void **state)
{
    static const char *const fine[] = {"",          "// nothing",   "/* nothing */\n",
                                       "# nothing", "\xEF\xBB\xBF", "\xEF\xBB\xBF" SILU,
                                       SILU "\r\n"};
    for (size_t i = 0; i < ZC_COUNTOF(fine); i++) {
        zc_rules *r = load(fine[i]);
        assert_int_equal(zc_rules_count(r), strstr(fine[i], "rule") != NULL);
        zc_rules_destroy(&r);
    }
    zc_rules *r =
        load("rule silu {\r\n  match o = Mul(x, Sigmoid(x));\r\n  emit o = Swish(x);\r\n}");
    assert_int_equal(zc_rules_at(r, 0).line, 1);
    zc_rules_destroy(&r);
    refuse("rule a {\r\n  match o = Mull(x, x);\r\n  emit o = x;\r\n}",
           "t.zcr:2:13: error: no such operation 'Mull' (did you mean 'Mul'?)\n"
           "      match o = Mull(x, x);\n"
           "                ^~~~\n");
    refuse_bytes("rule\n a\0 {", 10, "t.zcr:2:3: error: a NUL byte");
    refuse("// fine: \xC3\xA4\n// \xFF\n", "t.zcr:2:4: error: a byte that is not UTF-8 (got 0xff)");
    refuse("// \xED\xA0\x80", "t.zcr:1:4: error: a byte that is not UTF-8");
}

/* ---- R2: words without an end, or too long ---- */

static void test_words(void **state)
{
    refuse("rule a {\n match o = Relu(x) { x = \"abc\n } }",
           "t.zcr:2:26: error: the string does not end");
    refuse("rule a {\n  /* no end", "t.zcr:2:3: error: the comment does not end");
    refuse("rule a priority 99999999999999999999 {", "t.zcr:1:17: error: number out of range");
    refuse("rule a { match o = Add(x, 1e999); emit o = x; }",
           "t.zcr:1:27: error: number out of range");
    refuse("rule a { match o = Add(x, 12ab); emit o = x; }", "t.zcr:1:27: error: not a number");
    char *name = repeat("rule ", "a", (size_t)3 << 20, " {");
    refuse(name, "t.zcr:1:6: error: name too long (got 3145728 characters");
    free(name);
    char *digits = repeat("rule a priority ", "1", (size_t)3 << 20, " {");
    refuse(digits, "t.zcr:1:17: error: number too long (got 3145728 characters");
    free(digits);
    zc_rules *r = NULL;
    zc_diag *diag = zc_diag_create();
    char *text = repeat("//", "x", (size_t)10 << 20, "");
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    assert_int_equal(zc_rules_add_text(r, "big", text, strlen(text), diag), ZC_ERR_LIMIT);
    assert_non_null(strstr(zc_diag_text(diag, 0), "rule file too large"));
    free(text);
    zc_rules_destroy(&r);
    zc_diag_destroy(&diag);
}

/* ---- R3: nesting ---- */

static void test_nesting(void **state)
{
    static const struct {
        const char *head, *part, *tail;
    } deep[] = {
        {"rule a { match o = Relu(x); where ", "(", "true; emit o = x; }"},
        {"rule a { match o = Relu(x); where ", "!", "true; emit o = x; }"},
        {"rule a { match o = Relu(x); where rank(x) == ", "-", "1; emit o = x; }"},
        {"rule a { match o = Relu(x); where rank(x) == 1", "+ 1", "; emit o = x; }"},
        {"rule a { match o = ", "Relu(", "x; emit o = x; }"},
        {"rule a { match o = ", "(", "x; emit o = x; }"},
        {"pointwise a(x) = ", "(", "x;"},
    };
    for (size_t i = 0; i < ZC_COUNTOF(deep); i++) {
        char *text = repeat(deep[i].head, deep[i].part, 100000, deep[i].tail);
        zc_status status;
        zc_buf said = {0};
        zc_rules *r = load_bytes(text, strlen(text), &status);
        assert_int_equal(status, ZC_ERR_FORMAT);
        zc_rules_message_print(r, 0, &said);
        if (!strstr(said.data, "nested too deep")) fail_msg("%zu: %s", i, said.data);
        zc_buf_fini(&said);
        zc_rules_destroy(&r);
        free(text);
    }
}

/* ---- R8: there is no way to read another file ---- */

static void test_no_include(void **state)
{
    refuse("include \"u.zcr\";",
           "t.zcr:1:9: error: u.zcr: rules that are no file have no files beside them");
    refuse("include \"../u.zcr\";",
           "t.zcr:1:9: error: the file must lie in the rule file's folder or below it");
    refuse("#include \"t.zcr\"\nrule", "t.zcr:2:1: error: unexpected the end of the file");
    refuse("kernel K(x) { file \"../k.cu\"; entry \"k\"; result y = like(x); grid 1; block 1;\n"
           "meaning = x; }",
           "t.zcr:1:15: error: the file must lie in the rule file's folder or below it");
}

/* ---- R8, R10: definitions that use definitions ---- */

static void test_definitions(void **state)
{
    char text[4096] = "pointwise P0(x) = x + 1;";
    for (int i = 1; i <= 40; i++)
        sprintf(text + strlen(text), "pointwise P%d(x) = P%d(P%d(x) * 2);", i, i - 1, i - 1);
    refuse(text, "t.zcr:1:");
    refuse("pointwise P(x) = P(x);", "t.zcr:1:18: error: 'P' is used before it is defined");
    refuse("pointwise P(x) = Q(x);\npointwise Q(x) = P(x);",
           "t.zcr:1:18: error: 'Q' is used before it is defined");
    refuse("pointwise P(x) = x;\npointwise Q(x) = P(x, x);",
           "t.zcr:2:18: error: wrong number of operands of 'P'");
    refuse("pointwise P(x) = x;\npointwise Q(x) = P(x;",
           "t.zcr:2:18: error: the operands of 'P' do not end");
    char *deep = repeat("pointwise P(x) = x;\npointwise Q(x) = ", "P(", 100000, "x;");
    refuse(deep, "t.zcr:2:18: error: nested too deep");
    free(deep);
    char *many = repeat("pointwise P(x; a0 = 1", ", b = 1", 100, ") = x;");
    refuse(many, "t.zcr:1:11: error: too many attributes (got 101, need at most 16)");
    free(many);
}

static void test_kernel_limits(void **state)
{
    char *text = repeat("kernel K(x0", ", x", 40, ") { }");
    refuse(text, "t.zcr:1:8: error: too many operands (got 41, need at most 32)");
    free(text);
    text = repeat("kernel K(x) {", "result y = like(x);", 9, "}");
    refuse(text, "t.zcr:1:8: error: kernel 'K' has no file");
    free(text);
    text = repeat("kernel K(x) { tune ", "A in {1}, ", 1,
                  "B in {2}, C in {1}, D in {1}, E in {1}, F in {1}, "
                  "G in {1}, H in {1}, I in {1}; }");
    refuse(text, "t.zcr:1:8: error: kernel 'K' has no result");
    free(text);
    text = repeat("kernel K(x) { grid ", "(", 100000, "1; }");
    refuse(text, "t.zcr:1:");
    free(text);
    text = repeat("kernel K(x) {", "block 1;", 100000, "}");
    refuse(text, "t.zcr:1:8: error: kernel 'K' has no result");
    free(text);
}

/* ---- R5: all errors of a file in one run ---- */

static void test_many_errors(void **state)
{
    char *text = repeat("", "rule a { match o = Nope(x); emit o = y; }\nrule { }\n", 30, "");
    zc_status status;
    zc_rules *r = load_bytes(text, strlen(text), &status);
    assert_int_equal(status, ZC_ERR_FORMAT);
    /* Each pair: no such operation, not bound, no name; from the second on also a second rule. */
    assert_int_equal(zc_rules_message_count(r), 4 * 30 - 1);
    zc_rules_destroy(&r);
    free(text);
}

/* ---- R4: rules without end ---- */

static const char line[] =
    "graph \"g\" {\n  input %x: f32[n] as \"x\"\n"
    "  %e: f32[n] = Exp(%x) @ \"e\"\n  %o: f32[n] = Neg(%e) @ \"o\"\n  output %o as \"o\"\n}\n";

static void test_no_end(void **state)
{
    refuse("rule a { match o = Neg(x); emit o = Neg(x); }",
           "t.zcr:1:6: error: rule 'a' matches what it emits");
    zc_rules *r = load("rule there { match o = Neg(x); emit o = Sub(0.0, x); }\n"
                       "rule back { match o = Sub(0.0, x); emit o = Neg(x); }\n"
                       "rule innocent { match o = Exp(x); emit o = Pow(2.718281828, x); }");
    zc_graph *g = graph(line);
    zc_diag *diag = zc_diag_create();
    assert_int_equal(apply(r, g, NULL, NULL, diag), ZC_ERR_LIMIT);
    const char *said = zc_diag_text(diag, 0);
    assert_non_null(strstr(said, "without end"));
    assert_non_null(strstr(said, "rule there (t.zcr:1)"));
    assert_non_null(strstr(said, "rule back (t.zcr:2)"));
    assert_null(strstr(said, "innocent"));
    zc_diag_destroy(&diag);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
}

/* ---- R6: rewrites that would break the graph ---- */

static void expect_refused(const char *rule, const char *model, const char *why)
{
    zc_rules *r = load(rule);
    zc_graph *g = graph(model);
    zc_buf before = {0}, after = {0};
    zc_rule_stats stats[1] = {{0}};
    size_t changes = 0;
    zc_graph_print(g, true, &before);
    assert_int_equal(apply(r, g, stats, &changes, NULL), ZC_OK);
    zc_graph_print(g, true, &after);
    assert_int_equal(changes, 0);
    assert_int_equal(stats[0].refused, 1);
    if (!strstr(stats[0].why, why)) fail_msg("%s; need %s", stats[0].why, why);
    assert_string_equal(before.data, after.data);
    zc_buf_fini(&before);
    zc_buf_fini(&after);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
}

static void test_refused(void **state)
{
    expect_refused("rule a { match o = Neg(x); emit o = Cast(x) { to = f16 }; }", line,
                   "'o' would have another type (got f16[n], need f32[n])");
    expect_refused("rule a { match o = Neg(x); emit o = Unsqueeze(x, [0]); }", line,
                   "'o' would have another type (got f32[1,n], need f32[n])");
    expect_refused("rule a { match o = Neg(x); emit o = Unsqueeze(x, [7]); }", line,
                   "axis out of range (got 7");
    expect_refused("rule a { match o = Neg(x); emit o = Softmax(x) { axis = dim(x, 0) }; }", line,
                   "attribute 'axis' in line 1 is not known yet");
    expect_refused("rule a { match z = Add(x, b)?; o = Neg(z); emit o = b; }", line,
                   "'o' would be missing");
    /* b reads what a gives through an operation outside of the match: a cycle. */
    expect_refused("rule a { match a = Sin(x); b = Cos(y); c = Add(b, x);\n"
                   "         emit s = Add(x, y); a = Sin(s); c = Cos(s); }",
                   "graph \"g\" {\n  input %x: f32[n] as \"x\"\n"
                   "  %a: f32[n] = Sin(%x) @ \"a\"\n  %y: f32[n] = Neg(%a) @ \"y\"\n"
                   "  %b: f32[n] = Cos(%y) @ \"b\"\n  %c: f32[n] = Add(%b, %x) @ \"c\"\n"
                   "  output %c as \"c\"\n}\n",
                   "used before all operands are there");
}

/* ---- R9: unsound by numbers ---- */

static void test_unsound(void **state)
{
    static const struct {
        const char *rule, *why;
    } wrong[] = {
        {"rule a { match o = Div(x, x); emit o = Pow(x, 0.0); }", "match gives"},
        {"rule a { match o = Exp(Log(x)); emit o = Abs(x); }", "match gives"},
        {"rule a { match o = Gelu(x); emit o = GeluTanh(x); }", "match gives"},
        {"rule a { match o = Max(x, 0.0); emit o = Relu(Abs(x)); }", "match gives"},
        {"rule a { match o = Relu(x); where rank(x) == 99; emit o = Max(x, 0.0); }", "no operands"},
        {"rule a { match e = Exp(x); o = Div(e, ReduceSum(e, c: const)); where size(c) == 1, "
         "rank(x) == 2; "
         "emit o = Softmax(x) { axis = 0 }; }",
         "match gives"},
        {"rule a { match o = Log(Add(Exp(x), 1.0)); emit o = Softplus(Abs(x)); }", "match gives"},
    };
    for (size_t i = 0; i < ZC_COUNTOF(wrong); i++) {
        zc_rules *r = load(wrong[i].rule);
        zc_rule_check check;
        assert_int_equal(zc_rules_check_numbers(r, 0, 1, &check, NULL), ZC_OK);
        assert_true(check.failed);
        if (!strstr(check.why, wrong[i].why)) fail_msg("%zu: %s", i, check.why);
        zc_rules_destroy(&r);
    }
    /* Among them constants whose shape and numbers the conditions decide; and what overflows. */
    static const char *const right[] = {
        "rule a { match o = Max(x, 0.0); emit o = Relu(x); }",
        "rule a { match o = Mul(x, c: const); where rank(x) == 3, rank(c) == 1, dim(c, 0) == "
        "dim(x, 2), "
        "value(c) == 7.25; emit o = Mul(x, 7.25); }",
        "rule a { match o = Mul(InstanceNormalization(x, g: const, h: const), w: const); where "
        "rank(x) == 4, "
        "rank(w) == 3, dim(w, 0) == dim(x, 1), size(w) == dim(x, 1); "
        "emit v = Reshape(w, [-1]); o = InstanceNormalization(x, Mul(g, v), Mul(h, v)); }",
        "rule a { match o = Log(Add(Exp(x), 1.0)); emit o = Softplus(x); }",
    };
    for (size_t i = 0; i < ZC_COUNTOF(right); i++) {
        zc_rules *r = load(right[i]);
        zc_rule_check check;
        assert_int_equal(zc_rules_check_numbers(r, 0, 1, &check, NULL), ZC_OK);
        if (check.failed) fail_msg("%zu: %s for %s", i, check.why, check.input);
        assert_true(check.places >= 12);
        assert_true(check.values > 100);
        zc_rules_destroy(&r);
    }
}

/* Every rule that zc brings along, or every N-th with ZC_BUILTIN_STEP=N, holds with a seed of its
 * own: tests/cli/rules.sh has that of `zc rules test --all`, which is 1. */
static void test_builtin(void **state)
{
    const char *every = getenv("ZC_BUILTIN_STEP");
    const size_t step = every ? strtoul(every, NULL, 10) : 1;
    zc_rules *r = NULL;
    assert_true(step > 0);
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    assert_int_equal(zc_rules_add_builtin(r, NULL), ZC_OK);
    assert_int_equal(zc_rules_message_count(r), 0);
    assert_true(zc_rules_count(r) >= 10);
    for (size_t i = 0; i < zc_rules_count(r); i += step) {
        zc_rule_check check;
        assert_int_equal(zc_rules_check_numbers(r, i, 2, &check, NULL), ZC_OK);
        if (check.failed) fail_msg("%s: %s for %s", zc_rules_at(r, i).name, check.why, check.input);
    }
    zc_rules_destroy(&r);
}

/* ---- R10 and size ---- */

/* n times Mul(v, Sigmoid(v)). */
static zc_graph *long_chain(size_t n)
{
    zc_graph *g = NULL;
    zc_type type = {.dtype = ZC_F32, .rank = 1, .dims = {{.k = 4}}};
    assert_int_equal(zc_graph_create("chain", &g, NULL), ZC_OK);
    zc_vid v = zc_graph_value(g, "x", ZC_VALUE_PARAM, &type);
    assert_true(ZC_VEC_PUSH(&g->top.params, v));
    for (size_t i = 0; i < n; i++) {
        zc_nid s = zc_graph_node(g, &g->top, ZC_OP_Sigmoid, "s", 1, &v, 1);
        zc_vid sv = zc_graph_out(g, s, 0, NULL);
        const zc_vid in[] = {i % 2 ? v : sv, i % 2 ? sv : v};
        zc_nid m = zc_graph_node(g, &g->top, ZC_OP_Mul, "m", 2, in, 1);
        v = zc_graph_out(g, m, 0, NULL);
        assert_true(s && m && sv && v);
    }
    assert_true(ZC_VEC_PUSH(&g->top.outputs, v));
    assert_int_equal(zc_graph_infer_all(g, NULL), ZC_OK);
    return g;
}

static void test_large_graph(void **state)
{
    enum { PAIRS = 50000, STEPS = 4 /* an operation and rule */ };
    zc_rules *r = NULL;
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    assert_int_equal(zc_rules_add_builtin(r, NULL), ZC_OK);
    zc_graph *g = long_chain(PAIRS);
    size_t changes = 0;
    g->output_names = (const char *[]){"o"};
    g->input_names = (const char *[]){"x"};
    zc_rule_stats *stats = calloc(zc_rules_count(r), sizeof *stats);
    assert_non_null(stats);
    assert_int_equal(apply(r, g, stats, &changes, NULL), ZC_OK);
    assert_int_equal(changes, PAIRS);
    assert_int_equal(g->top.nodes.len, PAIRS);
    size_t steps = 0;
    for (size_t i = 0; i < zc_rules_count(r); i++) steps += stats[i].steps;
    print_message("%zu steps for %d operations, %zu rules\n", steps, 2 * PAIRS, zc_rules_count(r));
    assert_true(steps >= PAIRS);
    assert_true(steps <= STEPS * zc_rules_count(r) * 2 * PAIRS);
    free(stats);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
}

/* A rule that matches in 2 to the power of LEVELS ways where every operand of every addition is an
 * addition of both kinds, and a graph of those with `places` for it. */
enum { LEVELS = 20 };

static void put_slow_rule(char *text)
{
    strcat(text, "rule slow { match ");
    for (int i = 0; i < LEVELS; i++)
        sprintf(text + strlen(text), "a%d = Add(%s%d, _y%d); ", i + 1, i ? "a" : "_z", i, i);
    strcat(text, "o = Relu(a20); where false; emit o = Abs(a20); }");
}

static zc_graph *slow_graph(int places)
{
    zc_buf model = {0};
    zc_buf_puts(&model,
                "graph \"g\" {\n  input %a0: f32[n] as \"a\"\n  input %b0: f32[n] as \"b\"\n");
    for (int i = 0; i < LEVELS; i++)
        zc_buf_printf(&model,
                      "  %%a%d: f32[n] = Add(%%a%d, %%b%d) @ \"a\"\n"
                      "  %%b%d: f32[n] = Add(%%b%d, %%a%d) @ \"b\"\n",
                      i + 1, i, i, i + 1, i, i);
    for (int i = 0; i < places; i++)
        zc_buf_printf(&model, "  %%o%d: f32[n] = Relu(%%a20) @ \"o\"\n", i);
    for (int i = 0; i < places; i++) zc_buf_printf(&model, "  output %%o%d as \"o%d\"\n", i, i);
    zc_buf_puts(&model, "}\n");
    zc_graph *g = graph(model.data);
    zc_buf_fini(&model);
    return g;
}

/* At one place matching gives up. */
static void test_exponential(void **state)
{
    char text[2048] = "";
    put_slow_rule(text);
    zc_rules *r = load(text);
    zc_graph *g = slow_graph(1);
    zc_rule_stats stats[1] = {{0}};
    size_t changes = 0;
    assert_int_equal(apply(r, g, stats, &changes, NULL), ZC_OK);
    assert_int_equal(stats[0].gave_up, 1);
    assert_int_equal(changes, 0);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
}

/* One rule's steps over the whole graph: the error names it. */
static void test_step_budget(void **state)
{
    char text[2048] = "rule fine { match o = Neg(Neg(x)); emit o = x; }\n";
    put_slow_rule(text);
    zc_rules *r = load(text);
    zc_graph *g = slow_graph(400);
    zc_diag *diag = zc_diag_create();
    assert_int_equal(apply(r, g, NULL, NULL, diag), ZC_ERR_LIMIT);
    const char *said = zc_diag_text(diag, 0);
    if (!strstr(said, "rule slow (t.zcr:2) takes too many steps to match")) fail_msg("%s", said);
    zc_diag_destroy(&diag);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
}

/* Repetitions walk a tree of operations once: no more steps than it has nodes allow. */
static void test_repetition_is_linear(void **state)
{
    enum { DEPTH = 10, STEPS = 16 };
    zc_rules *r = load("rule a { match o = Add(x, y...)*2..16; where false; emit o = Relu(x); }");
    zc_graph *g = NULL;
    zc_type type = {.dtype = ZC_F32, .rank = 1, .dims = {{.k = 4}}};
    zc_vid row[1 << DEPTH];
    size_t n = 1 << DEPTH, nodes = n - 1;
    assert_int_equal(zc_graph_create("tree", &g, NULL), ZC_OK);
    for (size_t i = 0; i < n; i++) {
        row[i] = zc_graph_value(g, NULL, ZC_VALUE_PARAM, &type);
        assert_true(row[i] && ZC_VEC_PUSH(&g->top.params, row[i]));
    }
    for (; n > 1; n /= 2)
        for (size_t i = 0; i < n / 2; i++) {
            zc_nid a = zc_graph_node(g, &g->top, ZC_OP_Add, "a", 2, &row[2 * i], 1);
            row[i] = zc_graph_out(g, a, 0, NULL);
        }
    assert_true(ZC_VEC_PUSH(&g->top.outputs, row[0]));
    assert_int_equal(zc_graph_infer_all(g, NULL), ZC_OK);
    zc_rule_stats stats[1] = {{0}};
    zc_rules_report report = {.stats = stats};
    size_t changes = 0;
    assert_int_equal(zc_rules_apply(r, g, NULL, &report, &changes, NULL), ZC_OK);
    assert_int_equal(changes, 0);
    assert_int_equal(stats[0].gave_up, 0);
    print_message("%zu steps, tree of %zu\n", stats[0].steps, nodes);
    /* From each node its whole subtree: DEPTH times the tree. */
    assert_true(stats[0].steps <= STEPS * DEPTH * nodes);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
}

/* ---- conditions ---- */

/* Does the rule apply to the model? */
static void expect_applies(const char *condition, bool want)
{
    char text[512];
    snprintf(text, sizeof text,
             "rule a { match y = MatMul(x, w: const); o = Add(y, b: const)?;\n"
             "  where %s; emit o = Linear(x, w, b); }",
             condition);
    zc_rules *r = load(text);
    zc_graph *g = graph("graph \"g\" {\n  input %x: f32[n,m,2] as \"x\"\n"
                        "  const %w: f32[2,3] = [1, 2, 3, 4, 5, 6]\n"
                        "  const %b: f32[3] = [0.5, 0.5, 0.5]\n"
                        "  %y: f32[n,m,3] = MatMul(%x, %w) @ \"y\"\n"
                        "  %o: f32[n,m,3] = Add(%y, %b) @ \"o\"\n  output %o as \"o\"\n}\n");
    size_t changes = 0;
    assert_int_equal(apply(r, g, NULL, &changes, NULL), ZC_OK);
    if ((changes > 0) != want) fail_msg("%s: %zu changes", condition, changes);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
}

/* What is said of the target, where it is a GPU. */
static void test_targets(void **state)
{
    static const struct {
        const char *condition;
        bool cpu, gpu;
    } cases[] = {{"cuda", false, true},      {"cpu", true, false},
                 {"sm >= 90", false, true},  {"sm >= 100", false, false},
                 {"sm < 80", true, false},   {"cuda && sm in {80, 90}", false, true},
                 {"cpu || cuda", true, true}};
    const zc_rule_target gpu = {.cuda = true, .sm = 90};
    for (size_t i = 0; i < 2 * ZC_COUNTOF(cases); i++) {
        char text[256];
        size_t changes = 0;
        snprintf(text, sizeof text, "rule a { match o = Neg(x); where %s; emit o = Abs(x); }",
                 cases[i / 2].condition);
        zc_rules *r = load(text);
        zc_graph *g = graph(line);
        assert_int_equal(zc_rules_apply(r, g, i % 2 ? &gpu : NULL, NULL, &changes, NULL), ZC_OK);
        if ((changes > 0) != (i % 2 ? cases[i / 2].gpu : cases[i / 2].cpu))
            fail_msg("%s: %zu changes, target %zu", cases[i / 2].condition, changes, i % 2);
        zc_graph_destroy(&g);
        zc_rules_destroy(&r);
    }
}

static void test_conditions(void **state)
{
    static const char *const hold[] = {"rank(x) == 3",
                                       "dim(x, -1) == 2",
                                       "dim(x, 0) == dim(y, 0)",
                                       "dim(x, 0) >= 0",
                                       "size(x) == 2 * dim(x, 0) * dim(x, 1)",
                                       "dtype(x) == f32 || rank(x) == 9",
                                       "dtype(w) in {f16, f32}",
                                       "value(b) == 0.5",
                                       "value(b) ~= 0.500001",
                                       "element(w, 5) == 6",
                                       "uses(y) == 1",
                                       "is_const(w) && !is_const(x)",
                                       "present(b)",
                                       "!present(b)",
                                       "fits(b, o)",
                                       "same_shape(y, o)",
                                       "wrap(-1, rank(x)) == 2",
                                       "min(2, 3) < max(2, 3.5)",
                                       "abs(-2) == 2",
                                       "sqrt(4.0) ~= 2",
                                       "cpu",
                                       "!cuda",
                                       "sm < 80",
                                       "(dim(x, 1) * 4) / 4 == dim(x, 1)",
                                       "7 % 4 == 3"};
    static const char *const fail[] = {"rank(x) == 2",
                                       "dim(x, 0) == dim(x, 1)",
                                       "dim(x, 0) != dim(x, 1)",
                                       "dim(x, 0) > 0",
                                       "dim(x, 7) == 1",
                                       "dtype(x) == f16",
                                       "value(w) == 1",
                                       "element(w, 6) == 0",
                                       "uses(x) == 2",
                                       "is_const(x)",
                                       "same_shape(x, o)",
                                       "fits(o, w)",
                                       "cuda",
                                       "sm >= 80",
                                       "!(dim(x, 0) == dim(x, 1))"};
    for (size_t i = 0; i < ZC_COUNTOF(hold); i++) expect_applies(hold[i], true);
    for (size_t i = 0; i < ZC_COUNTOF(fail); i++) expect_applies(fail[i], false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_barely_a_file), cmocka_unit_test(test_words),
        cmocka_unit_test(test_nesting),       cmocka_unit_test(test_definitions),
        cmocka_unit_test(test_kernel_limits), cmocka_unit_test(test_many_errors),
        cmocka_unit_test(test_no_end),        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_unsound),       cmocka_unit_test(test_builtin),
        cmocka_unit_test(test_large_graph),   cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_conditions),    cmocka_unit_test(test_targets),
        cmocka_unit_test(test_step_budget),   cmocka_unit_test(test_repetition_is_linear),
        cmocka_unit_test(test_no_include),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
