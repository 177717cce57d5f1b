#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "op/dim.h"

#define K(x)              zc_dim_const(x)
#define assert_same(a, b) assert_true(zc_dim_eq((a), (b)))

static int setup(void **state)
{
    zc_dims *t = malloc(sizeof *t);
    if (!t) return -1;
    zc_dims_init(t);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    zc_dims *t = *state;
    const bool failed = t->failed;
    zc_dims_fini(t);
    free(t);
    return failed;
}

static void assert_text(const zc_dims *t, zc_dim d, const char *text)
{
    zc_buf buf = {0};
    zc_dim_print(t, d, &buf);
    assert_false(buf.failed);
    assert_string_equal(buf.data, text);
    zc_buf_fini(&buf);
}

static zc_dim parse(zc_dims *t, const char *text)
{
    zc_dim d = K(INT64_MIN);
    assert_int_equal(zc_dim_parse(t, text, strlen(text), &d), strlen(text));
    return d;
}

static void assert_round_trip(zc_dims *t, zc_dim d)
{
    zc_buf buf = {0};
    zc_dim_print(t, d, &buf);
    if (!strstr(buf.data, "...")) {
        zc_dim again = K(INT64_MIN);
        assert_int_equal(zc_dim_parse(t, buf.data, buf.len, &again), buf.len);
        if (!zc_dim_eq(again, d)) print_message("not read back: %s\n", buf.data);
        assert_same(again, d);
    }
    zc_buf_fini(&buf);
}

static void test_constants(void **state)
{
    zc_dims *t = *state;
    assert_true(zc_dim_is(zc_dim_add(NULL, K(3), K(4)), 7));
    assert_true(zc_dim_is(zc_dim_sub(NULL, K(3), K(4)), -1));
    assert_true(zc_dim_is(zc_dim_mul(NULL, K(-3), K(4)), -12));
    assert_true(zc_dim_is(zc_dim_div(NULL, K(-7), K(2)), -4));
    assert_true(zc_dim_is(zc_dim_div(NULL, K(7), K(-2)), -4));
    assert_true(zc_dim_is(zc_dim_cdiv(NULL, K(7), K(2)), 4));
    assert_true(zc_dim_is(zc_dim_cdiv(NULL, K(-7), K(2)), -3));
    assert_true(zc_dim_is(zc_dim_mod(NULL, K(-7), K(4)), 1));
    assert_true(zc_dim_is(zc_dim_mod(NULL, K(7), K(-4)), -1));
    assert_true(zc_dim_is(zc_dim_mod(NULL, K(INT64_MIN), K(-1)), 0));
    assert_true(zc_dim_is(zc_dim_max(NULL, K(2), K(9)), 9));
    assert_true(zc_dim_is(zc_dim_min(NULL, K(2), K(9)), 2));
    assert_true(zc_dim_is(zc_dim_sub(NULL, K(-1), K(INT64_MIN)), INT64_MAX));
    /* what has no value */
    assert_true(zc_dim_is(zc_dim_sub(NULL, K(0), K(INT64_MIN)), INT64_MIN));
    assert_true(zc_dim_is(zc_dim_div(NULL, K(1), K(0)), INT64_MIN));
    assert_true(zc_dim_is(zc_dim_mod(NULL, K(1), K(0)), INT64_MIN));
    assert_true(zc_dim_is(zc_dim_div(NULL, K(INT64_MIN), K(-1)), INT64_MIN));
    assert_true(zc_dim_is(zc_dim_add(NULL, K(INT64_MAX), K(1)), INT64_MIN));
    const zc_dim fresh = zc_dim_mul(t, K(INT64_MAX), K(2));
    assert_false(zc_dim_is_const(fresh));
    assert_true(zc_dim_dynamic(t, fresh));
}

static void test_identities(void **state)
{
    zc_dims *t = *state;
    const zc_dim n = zc_dim_input(t, "n"), m = zc_dim_input(t, "m"), s = zc_dim_input(t, "s");
    assert_same(zc_dim_input(t, "n"), n);
    assert_same(zc_dim_div(t, zc_dim_mul(t, n, K(12)), K(12)), n);
    assert_same(zc_dim_sub(t, zc_dim_add(t, s, K(1)), K(1)), s);
    assert_same(zc_dim_mul(t, n, m), zc_dim_mul(t, m, n));
    assert_same(zc_dim_add(t, n, m), zc_dim_add(t, m, n));
    assert_same(zc_dim_div(t, zc_dim_mul(t, n, m), m), n);
    assert_same(parse(t, "(2*n+4)/2"), parse(t, "n+2"));
    assert_same(parse(t, "n*(m+s)"), parse(t, "s*n+m*n"));
    assert_same(parse(t, "(n+m)*(n-m)"), parse(t, "n*n-m*m"));
    assert_same(parse(t, "n-n"), K(0));
    assert_same(parse(t, "0*n"), K(0));
    assert_same(parse(t, "(6*n*m*s)/(2*m)"), parse(t, "3*n*s"));
    assert_same(parse(t, "(n*s+n)*64/(s+1)"), parse(t, "64*n"));
    assert_same(parse(t, "(n*m+n)/(n*s)"), parse(t, "(m+1)/s"));
    assert_same(parse(t, "n/n"), K(1));
    assert_same(parse(t, "(n*m+m+1)/m"), parse(t, "n+1+1/m"));
    assert_same(parse(t, "cdiv(n*m,n)"), m);
    assert_same(parse(t, "cdiv(n,4)"), parse(t, "(n+3)/4"));
    assert_same(parse(t, "n/-4"), parse(t, "-n/4"));
    assert_same(parse(t, "(n+9)/4"), parse(t, "2+(n+1)/4"));
    assert_same(parse(t, "(n-1)/2+1"), parse(t, "(n+1)/2"));
    assert_same(parse(t, "(2*n+3)/4"), parse(t, "(n+1)/2"));
    assert_same(parse(t, "((n+1)/2+1)/2"), parse(t, "(n+3)/4"));
    assert_same(parse(t, "(n%4)/4"), K(0));
}

static void test_mod(void **state)
{
    zc_dims *t = *state;
    assert_same(parse(t, "(8*n)%4"), K(0));
    assert_same(parse(t, "(8*n+5)%4"), K(1));
    assert_same(parse(t, "(n+4)%4"), parse(t, "n%4"));
    assert_same(parse(t, "(n*m)%m"), K(0));
    assert_same(parse(t, "(n*m+s)%m"), parse(t, "s%m"));
    assert_same(parse(t, "(n%12+1)%4"), parse(t, "(n+1)%4"));
    assert_same(parse(t, "(2*n+1)%4"), parse(t, "2*(n%2)+1"));
    assert_same(parse(t, "(n%4)%8"), parse(t, "n%4"));
    assert_same(parse(t, "(2*(n%14))%14"), parse(t, "2*(n%7)"));
    assert_same(parse(t, "n%1"), K(0));
    assert_same(parse(t, "n%-3"), parse(t, "-(-n%3)"));
}

static void test_max_min(void **state)
{
    zc_dims *t = *state;
    const zc_dim n = zc_dim_input(t, "n"), m = zc_dim_input(t, "m");
    assert_same(zc_dim_max(t, n, K(0)), n);
    assert_same(zc_dim_min(t, n, K(0)), K(0));
    assert_same(zc_dim_max(t, n, zc_dim_add(t, n, m)), zc_dim_add(t, n, m));
    assert_same(zc_dim_min(t, n, zc_dim_add(t, n, K(1))), n);
    assert_same(zc_dim_max(t, n, m), zc_dim_max(t, m, n));
    assert_same(zc_dim_max(t, zc_dim_max(t, n, m), m), zc_dim_max(t, n, m));
    assert_same(parse(t, "max(max(n,3),5)"), parse(t, "max(n,5)"));
    assert_same(parse(t, "min(n%4,3)"), parse(t, "n%4"));
    assert_same(parse(t, "min(n,9223372036854775807)"), n);
    /* nothing is certain of a symbol that a step binds */
    const zc_dim f = zc_dim_fresh(t);
    assert_false(zc_dim_eq(zc_dim_max(t, f, K(0)), f));
    assert_same(zc_dim_max(t, f, zc_dim_add(t, f, K(2))), zc_dim_add(t, f, K(2)));
}

static void test_known_ge(void **state)
{
    zc_dims *t = *state;
    const zc_dim n = zc_dim_input(t, "n");
    assert_true(zc_dim_known_ge(t, K(5), 5));
    assert_false(zc_dim_known_ge(t, K(5), 6));
    assert_true(zc_dim_known_ge(t, n, 0));
    assert_false(zc_dim_known_ge(t, n, 1));
    assert_true(zc_dim_known_ge(t, zc_dim_add(t, n, K(1)), 1));
    assert_true(zc_dim_known_ge(t, parse(t, "n*n+3"), 3));
    assert_true(zc_dim_known_ge(t, parse(t, "(n+1)/2"), 0));
    assert_true(zc_dim_known_ge(t, parse(t, "max(m-n,1)"), 1));
    assert_true(zc_dim_known_ge(t, parse(t, "3-n%4"), 0));
    assert_true(zc_dim_known_ge(t, parse(t, "n/m"), 0));
    assert_false(zc_dim_known_ge(t, parse(t, "n-m"), 0));
    assert_false(zc_dim_known_ge(t, parse(t, "n-9223372036854775807"), INT64_MIN + 2));
    assert_false(zc_dim_known_ge(t, parse(t, "-n"), INT64_MIN + 1));
}

static void test_dynamic(void **state)
{
    zc_dims *t = *state;
    const zc_dim n = zc_dim_input(t, "n"), f = zc_dim_fresh(t), g = zc_dim_fresh(t);
    assert_false(zc_dim_eq(f, g));
    assert_false(zc_dim_dynamic(t, K(4)));
    assert_false(zc_dim_dynamic(t, zc_dim_mul(t, n, K(3))));
    assert_true(zc_dim_dynamic(t, zc_dim_add(t, n, f)));
    assert_false(zc_dim_dynamic(t, zc_dim_sub(t, zc_dim_add(t, n, f), f)));
    /* an input of that name is another symbol, and a parsed "?7" is not handed out again */
    assert_false(zc_dim_eq(zc_dim_input(t, "?0"), f));
    assert_false(zc_dim_dynamic(t, zc_dim_input(t, "?0")));
    const zc_dim two = parse(t, "?2");
    assert_true(zc_dim_dynamic(t, two));
    assert_false(zc_dim_eq(zc_dim_fresh(t), two));
}

static void test_text(void **state)
{
    zc_dims *t = *state;
    assert_text(t, K(-3), "-3");
    assert_text(t, parse(t, " batch * ( seq + 1 ) "), "batch*seq+batch");
    assert_text(t, parse(t, "(seq-2*batch+1)/3"), "(-2*batch+seq+1)/3");
    assert_text(t, parse(t, "batch-seq-7"), "batch-seq-7");
    assert_text(t, parse(t, "-batch"), "-batch");
    assert_text(t, parse(t, "2*(seq%4)*batch"), "2*batch*(seq%4)");
    assert_text(t, parse(t, "cdiv(seq,batch)+max(seq,8)"), "cdiv(seq,batch)+max(seq,8)");
    assert_text(t, parse(t, "max+1"), "max+1");
    assert_text(t, zc_dim_input(t, "a b\"\\\n"), "\"a b\\x22\\x5C\\x0A\"");
    assert_text(t, zc_dim_input(t, ""), "\"\"");
    assert_text(t, zc_dim_input(t, "?0"), "\"?0\"");
    assert_text(t, zc_dim_input(t, "3"), "\"3\"");
    assert_text(t, zc_dim_add(t, zc_dim_input(t, "z"), K(INT64_MIN)), "z+-9223372036854775808");
    const char *names[] = {"a b\"\\\n", "", "?0", "?", "3", "max", "cdiv(", "\xC3\xA9", "x.y"};
    for (size_t i = 0; i < ZC_COUNTOF(names); i++) {
        const zc_dim d = zc_dim_input(t, names[i]);
        assert_round_trip(t, d);
        assert_round_trip(t, zc_dim_sub(t, K(INT64_MIN), zc_dim_mul(t, d, d)));
        assert_round_trip(t, zc_dim_mul(t, d, K(INT64_MIN)));
    }
    assert_round_trip(t, zc_dim_fresh(t));
}

static void test_syntax_errors(void **state)
{
    zc_dims *t = *state;
    const char *bad[] = {"",
                         "+",
                         "(",
                         "(1",
                         "max(1)",
                         "max(1,2",
                         "1+",
                         "*2",
                         "\"a",
                         "\"\\x0",
                         "\"\\x00\"",
                         "\"\\y41\"",
                         "...",
                         "-",
                         "2*-",
                         "max(,1)",
                         "99999999999999999999",
                         "9223372036854775808"};
    for (size_t i = 0; i < ZC_COUNTOF(bad); i++) {
        zc_dim d;
        assert_int_equal(zc_dim_parse(t, bad[i], strlen(bad[i]), &d), 0);
    }
    zc_dim d;
    assert_int_equal(zc_dim_parse(t, "12]", 3, &d), 2); /* the rest is the caller's */
    assert_true(zc_dim_is(d, 12));
    const size_t deep = 100000;
    char *text = malloc(deep);
    assert_non_null(text);
    memset(text, '(', deep);
    assert_int_equal(zc_dim_parse(t, text, deep, &d), 0);
    free(text);
}

/* Text, time and stack stay bounded on expressions that a hostile model may build. */
static void test_bounds(void **state)
{
    zc_dims *t = *state;
    zc_dim d = zc_dim_input(t, "n"), sum = K(0);
    for (int i = 0; i < 2000; i++) {
        zc_buf name = {0};
        zc_buf_printf(&name, "s%d", i);
        const zc_dim s = zc_dim_input(t, name.data);
        zc_buf_fini(&name);
        d = zc_dim_max(t, zc_dim_div(t, d, zc_dim_add(t, s, K(1))), zc_dim_mod(t, d, s));
        sum = zc_dim_add(t, sum, zc_dim_mul(t, s, K(i + 1)));
    }
    zc_buf buf = {0};
    zc_dim_print(t, d, &buf);
    assert_non_null(strstr(buf.data, "..."));
    assert_true(buf.len < 64 * 1024);
    zc_buf_fini(&buf);
    int64_t *values = calloc(t->count, sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < t->count; i++) values[i] = 1;
    size_t bad;
    assert_true(zc_dims_eval(t->nodes, t->count, values, &bad));
    assert_int_equal(zc_dim_value(sum, values), 2000 * 2001 / 2);
    free(values);
}

static void test_eval_errors(void **state)
{
    zc_dims *t = *state;
    const zc_dim n = zc_dim_input(t, "n");
    const zc_dim q = zc_dim_div(t, K(7), n), big = zc_dim_mul(t, n, K(INT64_MAX));
    int64_t values[8] = {0};
    size_t bad = 99;
    assert_true(t->count <= ZC_COUNTOF(values));
    values[n.e - 1] = 0;
    assert_false(zc_dims_eval(t->nodes, t->count, values, &bad));
    assert_int_equal(bad, q.e - 1);
    values[n.e - 1] = 2;
    assert_false(zc_dims_eval(t->nodes, t->count, values, &bad));
    assert_int_equal(bad, big.e - 1);
    values[n.e - 1] = 1;
    assert_true(zc_dims_eval(t->nodes, t->count, values, &bad));
    assert_int_equal(zc_dim_value(q, values), 7);
    /* a node that refers to a later one is refused */
    const zc_dim_node forward[] = {{.kind = ZC_DIM_ADD, .a = {.e = 2}, .b = {.k = 1}},
                                   {.kind = ZC_DIM_SYM}};
    assert_false(zc_dims_eval(forward, 2, values, &bad));
    assert_int_equal(bad, 0);
}

/* Random expressions against the same operations on plain integers. */
enum { SAMPLES = 6, POOL = 24 };

typedef struct sample {
    zc_dim d;
    int64_t v[SAMPLES];
} sample;

static uint32_t rng_state;

static uint32_t rng(uint32_t n)
{
    rng_state = rng_state * 1664525u + 1013904223u;
    return (uint32_t)(((uint64_t)(rng_state >> 8) * n) >> 24);
}

static int64_t floor_div(int64_t x, int64_t y)
{
    return (x - ((x % y) + y) % y) / y;
}

/* False where the operation has no value or the numbers grow large. */
static bool reference(zc_dim_kind kind, int64_t x, int64_t y, int64_t *out)
{
    if ((kind == ZC_DIM_DIV || kind == ZC_DIM_CDIV || kind == ZC_DIM_MOD) && y == 0) return false;
    switch (kind) {
    case ZC_DIM_SYM:
        *out = x - y;
        break; /* stands for subtraction here */
    case ZC_DIM_ADD:
        *out = x + y;
        break;
    case ZC_DIM_MUL:
        *out = x * y;
        break;
    case ZC_DIM_DIV:
        *out = floor_div(x, y);
        break;
    case ZC_DIM_CDIV:
        *out = -floor_div(-x, y);
        break;
    case ZC_DIM_MOD:
        *out = x - y * floor_div(x, y);
        break;
    case ZC_DIM_MAX:
        *out = x > y ? x : y;
        break;
    case ZC_DIM_MIN:
        *out = x < y ? x : y;
        break;
    }
    return *out > -100000 && *out < 100000;
}

static zc_dim build(zc_dims *t, zc_dim_kind kind, zc_dim a, zc_dim b)
{
    switch (kind) {
    case ZC_DIM_SYM:
        return zc_dim_sub(t, a, b);
    case ZC_DIM_ADD:
        return zc_dim_add(t, a, b);
    case ZC_DIM_MUL:
        return zc_dim_mul(t, a, b);
    case ZC_DIM_DIV:
        return zc_dim_div(t, a, b);
    case ZC_DIM_CDIV:
        return zc_dim_cdiv(t, a, b);
    case ZC_DIM_MOD:
        return zc_dim_mod(t, a, b);
    case ZC_DIM_MAX:
        return zc_dim_max(t, a, b);
    case ZC_DIM_MIN:
        return zc_dim_min(t, a, b);
    }
    return K(INT64_MIN);
}

static void fill_pool(zc_dims *t, sample *pool)
{
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < POOL; i++) {
        sample *s = &pool[i];
        const int64_t k = (int64_t)rng(25) - 8;
        s->d = i < 3 ? zc_dim_input(t, names[i]) : i < 5 ? zc_dim_fresh(t) : K(k);
        for (int j = 0; j < SAMPLES; j++)
            s->v[j] = i < 3 ? 1 + rng(9) : i < 5 ? (int64_t)rng(11) - 5 : k;
    }
}

static void evaluate(zc_dims *t, const sample *symbols, int j, int64_t *values)
{
    size_t bad = 0;
    for (int i = 0; i < 5; i++) values[symbols[i].d.e - 1] = symbols[i].v[j];
    assert_true(zc_dims_eval(t->nodes, t->count, values, &bad));
}

/* Grows the pool by one random operation; false when the operation does not apply. */
static bool grow(zc_dims *t, sample *pool)
{
    const zc_dim_kind kind = (zc_dim_kind)rng(8);
    const sample *a = &pool[rng(POOL)], *b = &pool[rng(POOL)];
    sample r;
    for (int j = 0; j < SAMPLES; j++)
        if (!reference(kind, a->v[j], b->v[j], &r.v[j])) return false;
    r.d = build(t, kind, a->d, b->d);
    pool[5 + rng(POOL - 5)] = r;
    return true;
}

static void test_random(void **state)
{
    (void)state;
    size_t checked = 0;
    for (uint32_t round = 0; round < 400; round++) {
        zc_dims t;
        sample pool[POOL], symbols[5];
        rng_state = round * 7919 + 1;
        zc_dims_init(&t);
        fill_pool(&t, pool);
        memcpy(symbols, pool, sizeof symbols);
        for (int step = 0; step < 60; step++) checked += grow(&t, pool);
        for (int i = 0; i < POOL; i++) assert_round_trip(&t, pool[i].d);
        int64_t *values = calloc(t.count, sizeof *values);
        assert_non_null(values);
        for (int j = 0; j < SAMPLES; j++) {
            evaluate(&t, symbols, j, values);
            for (int i = 0; i < POOL; i++)
                assert_int_equal(zc_dim_value(pool[i].d, values), pool[i].v[j]);
        }
        free(values);
        assert_false(t.failed);
        zc_dims_fini(&t);
    }
    assert_true(checked > 8000);
}

static void test_fork(void **state)
{
    zc_dims *t = *state, own;
    const zc_dim n = zc_dim_input(t, "n"), more = zc_dim_add(t, n, zc_dim_const(1));
    const size_t count = t->count;
    assert_true(zc_dims_fork(&own, t));
    assert_true(zc_dim_eq(zc_dim_add(&own, zc_dim_input(&own, "n"), zc_dim_const(1)), more));
    assert_int_equal(own.count, count);
    for (int i = 0; i < 100; i++) zc_dim_fresh(&own);
    assert_true(zc_dim_eq(zc_dim_mul(&own, n, n), zc_dim_mul(&own, n, n)));
    assert_false(own.failed);
    assert_int_equal(t->count, count);
    zc_dims_fini(&own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_constants, setup, teardown),
        cmocka_unit_test_setup_teardown(test_identities, setup, teardown),
        cmocka_unit_test_setup_teardown(test_mod, setup, teardown),
        cmocka_unit_test_setup_teardown(test_max_min, setup, teardown),
        cmocka_unit_test_setup_teardown(test_known_ge, setup, teardown),
        cmocka_unit_test_setup_teardown(test_dynamic, setup, teardown),
        cmocka_unit_test_setup_teardown(test_text, setup, teardown),
        cmocka_unit_test_setup_teardown(test_syntax_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
        cmocka_unit_test_setup_teardown(test_eval_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_fork, setup, teardown),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
