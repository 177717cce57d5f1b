/* Which code may start before the kernel in front of it has ended. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "cuda/ptx_check.h"

#define WAIT "\tgriddepcontrol.wait;\n"
#define LOAD "\tld.global.f32 %f1, [%rd1];\n"

static const struct {
    const char *what, *body;
    bool waits;
} bodies[] = {
    {"memory behind the wait", "\tld.param.u64 %rd1, [p];\n" WAIT LOAD, true},
    {"a load in front of it", LOAD WAIT, false},
    {"a store in front of it", "\tst.global.f32 [%rd1], %f1;\n" WAIT, false},
    {"an atomic in front of it", "\tatom.global.add.u32 %r1, [%rd1], 1;\n" WAIT, false},
    {"a call, which may do anything", "\tcall.uni f, (%r1);\n" WAIT, false},
    {"a load by a predicate", "\t@%p1 ld.global.f32 %f1, [%rd1];\n" WAIT, false},
    {"a copy in front of it",
     "\tcp.async.bulk.shared::cluster.global [%r1], [%rd1], 16, [%r2];\n" WAIT, false},
    {"memory of its own",
     "\tld.shared.f32 %f1, [%r1];\n\tst.local.u32 [%r1], %r2;\n\tprefetch.tensormap [%rd1];\n" WAIT,
     true},
    {"a constant of the plan", "\t// zc: constant\n" LOAD WAIT, true},
    {"a mark is for one access", "\t// zc: constant\n" LOAD LOAD WAIT, false},
    {"times that no kernel reads", "\t// zc: stamp\n\tred.global.min.u64 [%rd1], %rd2;\n" WAIT,
     true},
    {"no memory, and no wait either", "\tmov.u32 %r1, 1;\n", false},
};

static void test_bodies(void **state)
{
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(bodies); i++) {
        char ptx[1024], entry[64] = "";
        snprintf(ptx, sizeof ptx,
                 ".visible .entry first_0(\n\t.param .u64 p\n)\n{\n" WAIT "\tret;\n}\n"
                 ".visible .entry second_0(\n\t.param .u64 p\n)\n{\n%s\tret;\n}\n",
                 bodies[i].body);
        if (zc_ptx_waits(ptx, entry, sizeof entry) != bodies[i].waits)
            fail_msg("%s: need %s", bodies[i].what, bodies[i].waits ? "taken" : "refused");
        assert_string_equal(entry, bodies[i].waits ? "" : "second_0");
    }
}

static void test_text_without_an_end(void **state)
{
    char entry[8];
    (void)state;
    assert_true(zc_ptx_waits(".version 8.0\n", entry, sizeof entry));
    assert_false(zc_ptx_waits(".entry a_long_name(\n)\n{\n" WAIT, entry, sizeof entry));
    assert_string_equal(entry, "a_long_");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bodies),
                                       cmocka_unit_test(test_text_without_an_end)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
