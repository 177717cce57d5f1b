/* Plans damaged under right hashes. Each is refused with a message that says where, or runs, or its
 * run is refused with a message: under the sanitizers nothing else may happen. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>

#include <cmocka.h>

#include "support/expect.h"
#include "support/forge.h"
#include "support/wide_model.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#endif

#ifdef UNDER_ASAN
/* A forged shape may ask for more memory than there is: that is an error value, not an abort. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=1024";
}
#endif

typedef struct fixture {
    uint8_t *plan;
    size_t len;
    zc_diag *diag;
    size_t refused, stopped, ran; /* forged plans: at loading, at running, not at all */
} fixture;

/* What the model has no use for: records of zeros. */
static void add_records(fixture *f, int section, size_t bytes)
{
    uint8_t *plan = forge_resized(f->plan, section, bytes, &f->len);
    assert_non_null(plan);
    zc_free(f->plan);
    f->plan = plan;
}

static int setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    void *plan;
    f->diag = zc_diag_create();
    wide_plan(&plan, &f->len, f->diag);
    f->plan = plan;
    add_records(f, ZC_PLAN_KERN, 2 * sizeof(zc_plan_kernel));
    add_records(f, ZC_PLAN_BINS, sizeof(zc_plan_binary));
    add_records(f, ZC_PLAN_SRCS, sizeof(zc_plan_source));
    add_records(f, ZC_PLAN_CHOI, sizeof(zc_plan_choice));
    add_records(f, ZC_PLAN_RANG, sizeof(zc_plan_range));
    add_records(f, ZC_PLAN_CODE, ZC_PLAN_DATA_ALIGN);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture *f = *state;
    zc_free(f->plan);
    zc_diag_destroy(&f->diag);
    free(f);
    return 0;
}

/* ---- a run that ends ---- */

static zc_session *volatile running;

static void on_alarm(int signal)
{
    (void)signal;
    if (running) zc_session_cancel(running);
}

/* A forged trip count can be huge: a timer of processor time cancels. */
static zc_status run_bounded(zc_session *s, zc_diag *diag)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 100000},
                                   .it_interval = {.tv_usec = 100000}};
    running = s;
    setitimer(ITIMER_VIRTUAL, &soon, NULL);
    zc_status status = zc_session_run(s, diag);
    setitimer(ITIMER_VIRTUAL, &(const struct itimerval){0}, NULL);
    running = NULL;
    return status;
}

/* Reads every byte of the outputs, so that a sanitizer sees them. */
static unsigned read_outputs(const zc_plan *plan, zc_session *s)
{
    zc_plan_info info;
    unsigned sum = 0;
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    for (size_t i = 0; i < info.outputs; i++) {
        zc_view v;
        if (zc_session_output(s, i, &v, NULL) != ZC_OK) continue;
        for (size_t b = 0; b < v.bytes; b++) sum += ((const uint8_t *)v.data)[b];
    }
    return sum;
}

static void check_message(fixture *f, const char *what, zc_status status)
{
    if (status == ZC_OK) fail_msg("%s: refused with ok", what);
    if (zc_diag_count(f->diag) != 1 || !*zc_diag_text(f->diag, 0))
        fail_msg("%s: %s without a word", what, zc_status_name(status));
    if (status == ZC_ERR_ARG) fail_msg("%s: called wrongly: %s", what, zc_diag_text(f->diag, 0));
    zc_diag_clear(f->diag);
}

static zc_status run_twice(fixture *f, zc_plan *plan, zc_session *s)
{
    for (unsigned seed = 1; seed <= 2; seed++) {
        ZC_TRY(plan_inputs(plan, s, 2, seed, f->diag));
        ZC_TRY(run_bounded(s, f->diag));
        (void)read_outputs(plan, s);
    }
    return ZC_OK;
}

/* Words that say where in the plan. */
static bool says_where(const char *text)
{
    static const char *const words[] = {
#define X(name, type) #name,
        ZC_PLAN_SECTIONS(X)
#undef X
            "step",
        "plan",
        "value",
        "block",
        "dimension",
        "input",
        "operation",
        "constant"};
    for (size_t i = 0; i < ZC_COUNTOF(words); i++)
        if (strstr(text, words[i])) return true;
    return false;
}

static void try_plan(fixture *f, const uint8_t *data, size_t len, const char *what)
{
    zc_plan *plan = NULL;
    zc_session *s = NULL;
    zc_status status = zc_plan_load_bytes(data, len, &plan, f->diag);
    if (status != ZC_OK) {
        if (!says_where(zc_diag_text(f->diag, 0)))
            fail_msg("%s: does not say where: %s", what, zc_diag_text(f->diag, 0));
        check_message(f, what, status);
        assert_null(plan);
        f->refused++;
        return;
    }
    expect_ok(f->diag, zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, f->diag));
    status = run_twice(f, plan, s);
    if (status != ZC_OK) check_message(f, what, status);
    f->stopped += status != ZC_OK;
    f->ran += status == ZC_OK;
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
}

static void test_the_undamaged_plan_runs(void **state)
{
    fixture *f = *state;
    zc_plan *plan = NULL;
    zc_session *s = NULL;
    expect_ok(f->diag, zc_plan_load_bytes(f->plan, f->len, &plan, f->diag));
    expect_ok(f->diag, zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, f->diag));
    for (unsigned seed = 1; seed <= 2; seed++) {
        expect_ok(f->diag, plan_inputs(plan, s, 2, seed, f->diag));
        expect_ok(f->diag, zc_session_run(s, f->diag));
    }
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
    zc_plan_destroy(&plan);
}

/* ---- every field of every record ---- */

typedef struct field {
    int section;
    size_t record, offset, size;
    const char *name;
    int target; /* the section whose count bounds it; -1: none */
} field;

#define F(sec, type, member, to)                                                                   \
    {                                                                                              \
        ZC_PLAN_##sec, sizeof(type), offsetof(type, member), sizeof(((type *)0)->member),          \
            #sec "." #member, to                                                                   \
    }
#define LIST(sec, type, member, to)                                                                \
    F(sec, type, member.first, ZC_PLAN_##to), F(sec, type, member.count, ZC_PLAN_##to)

static const field fields[] = {
    F(META, zc_plan_meta, model_name, ZC_PLAN_STRS),
    F(META, zc_plan_meta, version, ZC_PLAN_STRS),
    F(META, zc_plan_meta, target, ZC_PLAN_STRS),
    F(META, zc_plan_meta, flags, -1),
    LIST(META, zc_plan_meta, input_names, REFS),
    LIST(META, zc_plan_meta, output_names, REFS),
    F(META, zc_plan_meta, producer, ZC_PLAN_STRS),
    F(META, zc_plan_meta, producer_version, ZC_PLAN_STRS),
    F(META, zc_plan_meta, domain, ZC_PLAN_STRS),
    F(META, zc_plan_meta, doc, ZC_PLAN_STRS),
    F(META, zc_plan_meta, model_version, -1),
    LIST(META, zc_plan_meta, pairs, REFS),
    LIST(META, zc_plan_meta, precision, REFS),
    F(DIMS, zc_plan_dim, kind, -1),
    F(DIMS, zc_plan_dim, is_input, -1),
    F(DIMS, zc_plan_dim, name, ZC_PLAN_STRS),
    F(DIMS, zc_plan_dim, reserved, -1),
    F(DIMS, zc_plan_dim, a.k, -1),
    F(DIMS, zc_plan_dim, a.e, ZC_PLAN_DIMS),
    F(DIMS, zc_plan_dim, a.reserved, -1),
    F(DIMS, zc_plan_dim, b.k, -1),
    F(DIMS, zc_plan_dim, b.e, ZC_PLAN_DIMS),
    F(DIMS, zc_plan_dim, b.reserved, -1),
    F(DREF, zc_plan_dref, k, -1),
    F(DREF, zc_plan_dref, e, ZC_PLAN_DIMS),
    F(DREF, zc_plan_dref, reserved, -1),
    F(VALS, zc_plan_value, kind, -1),
    F(VALS, zc_plan_value, name, ZC_PLAN_STRS),
    F(VALS, zc_plan_value, dtype, -1),
    F(VALS, zc_plan_value, rank, -1),
    F(VALS, zc_plan_value, dims, ZC_PLAN_DREF),
    F(VALS, zc_plan_value, reserved, -1),
    F(VALS, zc_plan_value, offset, ZC_PLAN_DATA),
    F(VALS, zc_plan_value, length, ZC_PLAN_DATA),
    F(STEP, zc_plan_step, op, ZC_PLAN_STRS),
    F(STEP, zc_plan_step, name, ZC_PLAN_STRS),
    LIST(STEP, zc_plan_step, in, REFS),
    LIST(STEP, zc_plan_step, out, REFS),
    LIST(STEP, zc_plan_step, blocks, REFS),
    LIST(STEP, zc_plan_step, prov, REFS),
    LIST(STEP, zc_plan_step, attrs, ATTR),
    LIST(STEP, zc_plan_step, choices, CHOI),
    F(STEP, zc_plan_step, why, ZC_PLAN_STRS),
    F(STEP, zc_plan_step, flags, -1),
    F(KERN, zc_plan_kernel, family, ZC_PLAN_STRS),
    F(KERN, zc_plan_kernel, template_name, ZC_PLAN_STRS),
    F(KERN, zc_plan_kernel, name, ZC_PLAN_STRS),
    F(KERN, zc_plan_kernel, spec, ZC_PLAN_STRS),
    F(KERN, zc_plan_kernel, is_static, -1),
    F(KERN, zc_plan_kernel, threads, -1),
    F(KERN, zc_plan_kernel, smem, -1),
    F(KERN, zc_plan_kernel, cluster, -1),
    LIST(KERN, zc_plan_kernel, config, INTS),
    F(KERN, zc_plan_kernel, abi, -1),
    F(KERN, zc_plan_kernel, products, ZC_PLAN_STRS),
    F(KERN, zc_plan_kernel, pitched, -1),
    F(BINS, zc_plan_binary, kernel, ZC_PLAN_KERN),
    F(BINS, zc_plan_binary, arch, -1),
    F(BINS, zc_plan_binary, offset, ZC_PLAN_CODE),
    F(BINS, zc_plan_binary, length, ZC_PLAN_CODE),
    F(SRCS, zc_plan_source, name, ZC_PLAN_STRS),
    F(SRCS, zc_plan_source, text, ZC_PLAN_STRS),
    F(CHOI, zc_plan_choice, arch, -1),
    F(CHOI, zc_plan_choice, kernel, ZC_PLAN_KERN),
    LIST(CHOI, zc_plan_choice, ranges, RANG),
    LIST(CHOI, zc_plan_choice, literals, FLTS),
    F(CHOI, zc_plan_choice, why, ZC_PLAN_STRS),
    F(CHOI, zc_plan_choice, reserved, -1),
    LIST(RANG, zc_plan_range, factors, DREF),
    F(RANG, zc_plan_range, low, -1),
    F(RANG, zc_plan_range, high, -1),
    LIST(BLKS, zc_plan_block, params, REFS),
    LIST(BLKS, zc_plan_block, steps, REFS),
    LIST(BLKS, zc_plan_block, outs, REFS),
    {ZC_PLAN_REFS, 4, 0, 4, "REFS", ZC_PLAN_VALS},
    F(ATTR, zc_plan_attr, name, ZC_PLAN_STRS),
    F(ATTR, zc_plan_attr, kind, -1),
    LIST(ATTR, zc_plan_attr, list, INTS),
    F(ATTR, zc_plan_attr, i, -1),
    F(ATTR, zc_plan_attr, f, -1),
    F(ATTR, zc_plan_attr, reserved, -1),
    {ZC_PLAN_INTS, 8, 0, 8, "INTS", -1},
    {ZC_PLAN_FLTS, 4, 0, 4, "FLTS", -1},
    {ZC_PLAN_DATA, 8, 0, 8, "DATA", -1},
};

static const size_t record_bytes[] = {
#define X(name, type) sizeof(type),
    ZC_PLAN_SECTIONS(X)
#undef X
};

/* What a field is set to: fixed values, those around its own and around its bound. */
static size_t forged_values(const fixture *f, const field *d, uint64_t old, uint64_t *out)
{
    static const uint64_t fixed[] = {64,         65536,      INT32_MAX, 0x80000000u,
                                     0xFFFFFFFE, 0xFFFFFFFF, INT64_MAX, UINT64_C(1) << 63,
                                     UINT64_MAX};
    const zc_plan_section *t = forge_table(f->plan);
    size_t n = 0;
    for (uint64_t i = 0; i < 28; i++) out[n++] = i; /* all kinds and element types */
    for (size_t i = 0; i < ZC_COUNTOF(fixed); i++) out[n++] = fixed[i];
    out[n++] = old + 1;
    out[n++] = old - 1;
    out[n++] = old * 2;
    if (d->target >= 0) {
        uint64_t count = t[d->target].length / record_bytes[d->target];
        out[n++] = count - 1;
        out[n++] = count;
        out[n++] = count + 1;
        out[n++] = count - old;
    }
    return n;
}

static void forge_field(fixture *f, const field *d, uint32_t record)
{
    uint8_t *at =
        f->plan + forge_table(f->plan)[d->section].offset + record * d->record + d->offset;
    uint64_t old = 0, values[48];
    char what[96];
    memcpy(&old, at, d->size);
    size_t n = forged_values(f, d, old, values);
    for (size_t i = 0; i < n; i++) {
        if (memcmp(at, &values[i], d->size) == 0) continue;
        memcpy(at, &values[i], d->size);
        forge_seal_section(f->plan, d->section);
        snprintf(what, sizeof what, "%s of record %u set to %llu", d->name, record,
                 (unsigned long long)values[i]);
        try_plan(f, f->plan, f->len, what);
        memcpy(at, &old, d->size);
    }
    forge_seal_section(f->plan, d->section);
}

static void test_every_field(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < ZC_COUNTOF(fields); i++) {
        uint64_t n = forge_table(f->plan)[fields[i].section].length / fields[i].record;
        if (n == 0) fail_msg("the plan has no record with %s", fields[i].name);
        for (uint32_t r = 0; r < n; r++) forge_field(f, &fields[i], r);
    }
    print_message("forged fields: %zu refused, %zu stopped, %zu ran\n", f->refused, f->stopped,
                  f->ran);
    assert_true(f->refused > 10000);
    assert_true(f->stopped > 100);
    assert_true(f->ran > 100);
}

/* Some fields at once: what one check misses because another stands before it. */
static void test_random_fields_at_once(void **state)
{
    enum { CASES = 20000, EDITS = 4 };
    fixture *f = *state;
    uint8_t *plan = malloc(f->len);
    uint64_t random = 1;
    char what[48];
    assert_non_null(plan);
    for (int c = 0; c < CASES; c++) {
        memcpy(plan, f->plan, f->len);
        for (int e = 0; e < EDITS; e++) {
            random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            const field *d = &fields[(random >> 33) % ZC_COUNTOF(fields)];
            const zc_plan_section *t = &forge_table(f->plan)[d->section];
            uint64_t at = t->offset + (random >> 20) % (t->length / d->record) * d->record;
            uint64_t values[48], old = 0;
            memcpy(&old, plan + at + d->offset, d->size);
            size_t n = forged_values(f, d, old, values);
            memcpy(plan + at + d->offset, &values[(random >> 40) % n], d->size);
            if (d->section == ZC_PLAN_DATA) break;
        }
        forge_seal(plan, f->len);
        snprintf(what, sizeof what, "random case %d", c);
        try_plan(f, plan, f->len, what);
    }
    print_message("random cases: %zu refused, %zu stopped, %zu ran\n", f->refused, f->stopped,
                  f->ran);
    assert_true(f->refused > CASES / 2);
    free(plan);
}

/* ---- shapes that only the first run would confirm ---- */

static const zc_plan_value *value_named(const uint8_t *plan, const char *name)
{
    const zc_plan_section *t = (const zc_plan_section *)(plan + sizeof(zc_plan_header));
    const zc_plan_value *v = (const zc_plan_value *)(plan + t[ZC_PLAN_VALS].offset);
    const char *strings = (const char *)plan + t[ZC_PLAN_STRS].offset;
    for (uint64_t i = 1; i < t[ZC_PLAN_VALS].length / sizeof *v; i++)
        if (strcmp(strings + v[i].name, name) == 0) return &v[i];
    fail_msg("no value %s", name);
    return NULL;
}

/* Results whose shapes integer inputs decide: x is data, a (and b) are what decides. Of each, the
 * values of a first run and of a second that needs more room or reads elsewhere. */
typedef struct decided {
    const char *model;
    int64_t a1[4], b1[4], a2[4], b2[4];
} decided;

static const decided decided_cases[] = {
    {"in x 1 8\nin a 7 1\nin b 7 1\nout y 1 *\nnode Slice x,a,b y", {0}, {2}, {7}, {9}},
    {"in x 1 8\nin a 7 1\nin b 7 1\nout y 1 *\nnode Slice x,a,b y", {0}, {2}, {0}, {8}},
    {"in x 1 1\nin a 7 2\nout y 1 *\nnode Expand x,a y", {2, 2}, {0}, {64, 64}, {0}},
    {"in x 1 8\nin a 7 1\nout y 1 *\nnode Tile x,a y", {2}, {0}, {99}, {0}},
    {"in x 1 8\nin a 7 2\nout y 1 *\nnode Pad x,a y", {1, 1}, {0}, {50, 50}, {0}},
    {"in x 1 8\nin a 7 2\nout y 1 *\nnode Pad x,a y", {1, 1}, {0}, {-6, 8}, {0}},
    {"in x 1 8\nin a 7 2\nout y 1 *\nnode Pad x,a y mode:s=reflect", {1, 1}, {0}, {7, 7}, {0}},
    {"in x 1 8\nin a 7 2\nout y 1 *\nnode Reshape x,a y0\nnode Sin y0 y", {2, 4}, {0}, {4, 2}, {0}},
    {"in x 1 8\nin a 7 2\nout y 1 *\nnode Reshape x,a y", {2, 4}, {0}, {4, 2}, {0}},
    {"in x 1 8\nin a 7 1\nout y 1 *\nout i 7 *\nnode TopK x,a y,i", {2}, {0}, {8}, {0}},
    {"in x 1 8\nin a 7 1\nout y 1 *\nout i 7 *\nnode TopK x,a y,i", {2}, {0}, {80}, {0}},
    {"in x 1 8\nin a 7 2\nout y 1 *\nout z 1 *\nnode Split x,a y,z", {3, 5}, {0}, {5, 3}, {0}},
    {"in x 1 8\nin a 7 2\nout y 1 *\nout z 1 *\nnode Split x,a y,z", {3, 5}, {0}, {50, -42}, {0}},
    {"in x 1 2,4\nin a 7 1\nout y 1 *\nnode ReduceSum x,a y", {0}, {0}, {1}, {0}},
    {"in x 1 2,4\nin a 7 1\nout y 1 *\nnode ReduceMean x,a y keepdims:i=0", {1}, {0}, {0}, {0}},
    {"in x 1 2,4\nin a 7 1\nout y 1 *\nnode ReduceMax x,a y keepdims:i=0", {1}, {0}, {7}, {0}},
    {"in x 1 2,4\nin a 7 -\nout y 1 *\nnode CumSum x,a y", {0}, {0}, {-9}, {0}},
    {"in x 1 2,1,4\nin a 7 1\nout y 1 *\nnode Squeeze x,a y", {1}, {0}, {0}, {0}},
    {"in x 1 8\nin a 7 1\nout y 1 *\nnode Unsqueeze x,a y", {0}, {0}, {1}, {0}},
    {"in a 7 1\nout y 1 *\nnode ConstantOfShape a y", {3}, {0}, {4096}, {0}},
    {"in a 7 -\nin b 7 -\nout y 7 *\ninit d 7 - 1\nnode Range a,b,d y", {0}, {3}, {0}, {4096}},
    {"in x 7 4\nin a 7 -\nout y 1 *\ninit v 1 2 0,1\nnode OneHot x,a,v y", {3}, {0}, {4096}, {0}},
    {"in x 1 1,1,2,2\nin a 7 4\nout y 1 *\nnode Resize x,_,_,a y",
     {1, 1, 3, 3},
     {0},
     {1, 1, 64, 64},
     {0}},
    {"in x 1 1,8\nin a 7 2\nout y 1 *\nnode CenterCropPad x,a y", {1, 4}, {0}, {9, 99}, {0}},
    {"in a 7 -\nout y 1 *\nnode HannWindow a y", {4}, {0}, {4096}, {0}},
    {"in x 1 1,8,1\nin a 7 -\nout y 1 *\nnode DFT x,a y", {8}, {0}, {64}, {0}},
    {"in x 1 8\nin a 7 4\nout y 1 *\nnode Gather x,a y", {0, 1, 2, 3}, {0}, {8, -9, 99, 0}, {0}},
    {"in x 1 2,4\nin a 7 2,2\nout y 1 *\nnode GatherND x,a y",
     {0, 1, 1, 3},
     {0},
     {2, 0, 0, 9},
     {0}},
    {"in x 1 4\nin a 7 2\nin b 1 2\nout y 1 *\nnode ScatterElements x,a,b y",
     {0, 1},
     {0},
     {4, -5},
     {0}},
    {"in x 1 4\nin a 7 2,1\nin b 1 2\nout y 1 *\nnode ScatterND x,a,b y",
     {0, 1},
     {0},
     {4, -5},
     {0}},
    {"in x 1 4,4\nin a 7 -\nout y 1 *\nnode Trilu x,a y", {0}, {0}, {INT64_MIN}, {0}},
    {"in x 1 2,2\nin a 7 2\nout y 1 *\nnode ReverseSequence x,a y", {1, 2}, {0}, {9, -1}, {0}},
    {"in x 1 1,1,2,2\nin a 7 1,1,2,2\nin b 7 4\nout y 1 *\nnode MaxUnpool x,a,b y "
     "kernel_shape:is=2,2",
     {0, 1, 2, 3},
     {1, 1, 3, 3},
     {99, -1, 2, 3},
     {1, 1, 9, 9}},
    {"in x 1 1,4,4\nin a 7 2\nin b 7 2\nout y 1 *\nnode Col2Im x,a,b y",
     {3, 3},
     {2, 2},
     {30, 30},
     {2, 2}},
};

static void set_by_name(zc_plan *plan, zc_session *s, const int64_t *a, const int64_t *b,
                        zc_diag *diag)
{
    zc_plan_info info;
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    for (size_t i = 0; i < info.inputs; i++) {
        int64_t room[16] = {0};
        zc_io_info io;
        expect_ok(diag, zc_plan_input(plan, i, &io, diag));
        const int64_t *from = io.name[0] == 'a' ? a : b;
        zc_tensor t = {.dtype = (zc_dtype)io.elem, .rank = io.rank};
        zc_view v = {.elem = io.elem, .rank = io.rank, .data = room};
        memcpy(t.dims, io.dims, sizeof t.dims);
        memcpy(v.dims, io.dims, sizeof v.dims);
        assert_true(zc_tensor_bytes(&t, &v.bytes) && v.bytes <= sizeof room);
        for (int64_t j = 0; j < zc_tensor_numel(&t); j++)
            if (io.name[0] == 'x')
                zc_store_i64(t.dtype, room, j, j);
            else
                zc_store_i64(t.dtype, room, j, from[j % 4]);
        expect_ok(diag, zc_session_set_input(s, i, &v, false, diag));
    }
}

/* Writes the shapes that a run found into the plan as if they were certain. */
static void fix_shapes(uint8_t *bytes, zc_plan *plan, const zc_session *s, zc_diag *diag)
{
    zc_plan_info info;
    zc_plan_dref *all = (zc_plan_dref *)(bytes + forge_table(bytes)[ZC_PLAN_DREF].offset);
    assert_int_equal(zc_plan_info_get(plan, &info), ZC_OK);
    for (size_t i = 0; i < info.outputs; i++) {
        zc_io_info io;
        zc_view v;
        expect_ok(diag, zc_plan_output(plan, i, &io, diag));
        expect_ok(diag, zc_session_output(s, i, &v, diag));
        const zc_plan_value *value = value_named(bytes, io.name);
        for (int d = 0; d < value->rank; d++)
            all[value->dims + (uint32_t)d] = (zc_plan_dref){.k = v.dims[d]};
    }
}

static void run_decided(const decided *c, zc_diag *diag)
{
    static const char *const skip[] = {"all"};
    zc_buf model = {0}, text = {0};
    void *bytes;
    size_t len;
    zc_plan *plan = NULL;
    zc_session *s = NULL;
    zc_buf_printf(&text, "opset 20\n%s\n", c->model);
    onnx_text(text.data, &model);
    expect_ok(diag, zc_compile_bytes(model.data, model.len,
                                     ZC_COMPILE_PARAMS(.skip_passes = skip, .skip_pass_count = 1),
                                     &bytes, &len, diag));
    for (int forged = 0; forged < 2; forged++) {
        expect_ok(diag, zc_plan_load_bytes(bytes, len, &plan, diag));
        expect_ok(diag, zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, diag));
        set_by_name(plan, s, c->a1, c->b1, diag);
        expect_ok(diag, zc_session_run(s, diag));
        if (!forged) fix_shapes(bytes, plan, s, diag);
        set_by_name(plan, s, c->a2, c->b2, diag);
        zc_status status = zc_session_run(s, diag);
        if (status != ZC_OK && (zc_diag_count(diag) != 1 || !*zc_diag_text(diag, 0)))
            fail_msg("%s: %s without a word", c->model, zc_status_name(status));
        zc_diag_clear(diag);
        if (status == ZC_OK) (void)read_outputs(plan, s);
        set_by_name(plan, s, c->a1, c->b1, diag);
        expect_ok(diag, zc_session_run(s, diag));
        assert_int_equal(zc_session_destroy(&s), ZC_OK);
        zc_plan_destroy(&plan);
        if (!forged) forge_seal(bytes, len);
    }
    zc_free(bytes);
    zc_buf_fini(&model);
    zc_buf_fini(&text);
}

/* A plan may claim a fixed shape for a result that an input's values decide. The first run agrees
 * with it; the next must not trust it. */
static void test_shapes_that_inputs_decide(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < ZC_COUNTOF(decided_cases); i++) run_decided(&decided_cases[i], f->diag);
}

/* The table above must name every byte of every record. */
static void test_every_byte_is_in_a_field(void **state)
{
    (void)state;
    for (int s = 0; s < ZC_PLAN_SECTION_COUNT; s++) {
        if (record_bytes[s] == 1) continue;
        size_t bytes = 0;
        for (size_t i = 0; i < ZC_COUNTOF(fields); i++)
            if (fields[i].section == s) bytes += fields[i].size;
        if (s == ZC_PLAN_META) bytes += ZC_PLAN_SHA;
        assert_int_equal(bytes, record_bytes[s]);
    }
}

/* ---- strings ---- */

static void test_every_string_byte(void **state)
{
    fixture *f = *state;
    const zc_plan_section *t = &forge_table(f->plan)[ZC_PLAN_STRS];
    char what[48];
    for (uint64_t i = 0; i < t->length; i++) {
        uint8_t *at = f->plan + t->offset + i, old = *at;
        *at = old ? 0 : 'a';
        forge_seal_section(f->plan, ZC_PLAN_STRS);
        snprintf(what, sizeof what, "byte %llu of STRS", (unsigned long long)i);
        try_plan(f, f->plan, f->len, what);
        *at = old;
    }
    forge_seal_section(f->plan, ZC_PLAN_STRS);
    assert_true(f->refused > 0);
}

/* ---- lengths ---- */

static void test_every_section_length(void **state)
{
    fixture *f = *state;
    const zc_plan_section *t = forge_table(f->plan);
    char what[64];
    for (int s = 0; s < ZC_PLAN_SECTION_COUNT; s++) {
        const uint64_t record = record_bytes[s], whole = t[s].length;
        const uint64_t lengths[] = {0,
                                    1,
                                    record,
                                    whole / 2,
                                    whole / 2 / record * record,
                                    whole - record,
                                    whole - 1,
                                    whole + 1,
                                    whole + record,
                                    whole + 100 * record};
        for (size_t i = 0; i < ZC_COUNTOF(lengths); i++) {
            if (lengths[i] == whole || lengths[i] > whole + 100 * record) continue;
            size_t len;
            uint8_t *plan = forge_resized(f->plan, s, lengths[i], &len);
            snprintf(what, sizeof what, "section %d with %llu bytes", s,
                     (unsigned long long)lengths[i]);
            try_plan(f, plan, len, what);
            free(plan);
        }
    }
    assert_true(f->refused > 40);
}

/* ---- the table: one case a row of the catalogue ---- */

typedef struct table_case {
    const char *name;
    int section;
    uint64_t offset, length; /* UINT64_MAX - 1: as it was */
    uint32_t kind, reserved; /* UINT32_MAX - 1: as it was */
    zc_status status;
    const char *says;
} table_case;

#define SAME   (UINT64_MAX - 1)
#define SAME32 (UINT32_MAX - 1)

static const table_case table_cases[] = {
    {"offset wraps 2^64", ZC_PLAN_STRS, UINT64_MAX - 3, 8, SAME32, SAME32, ZC_ERR_FORMAT,
     "section STRS lies outside the file"},
    {"offset wraps 2^32", ZC_PLAN_STRS, 0xFFFFFFFC, 4, SAME32, SAME32, ZC_ERR_FORMAT,
     "section STRS lies outside the file"},
    {"length 2^64 - 1", ZC_PLAN_VALS, SAME, UINT64_MAX, SAME32, SAME32, ZC_ERR_FORMAT,
     "section VALS lies outside the file"},
    {"length 2^63", ZC_PLAN_DATA, SAME, UINT64_C(1) << 63, SAME32, SAME32, ZC_ERR_FORMAT,
     "section DATA lies outside the file"},
    {"overlaps the table", ZC_PLAN_META, 0, SAME, SAME32, SAME32, ZC_ERR_FORMAT,
     "section META is misplaced (got offset 0, need "},
    {"overlaps its neighbour", ZC_PLAN_STRS, 1280, SAME, SAME32, SAME32, ZC_ERR_FORMAT,
     "section STRS is misplaced (got offset 1280, need "},
    {"unaligned", ZC_PLAN_META, 1281, SAME, SAME32, SAME32, ZC_ERR_FORMAT,
     "section META is misplaced (got offset 1281, need "},
    {"another kind", ZC_PLAN_DIMS, SAME, SAME, ZC_PLAN_VALS, SAME32, ZC_ERR_FORMAT, "is not DIMS"},
    {"unknown kind", ZC_PLAN_DATA, SAME, SAME, 99, SAME32, ZC_ERR_FORMAT, "is not DATA"},
    {"reserved bits", ZC_PLAN_STEP, SAME, SAME, SAME32, 1, ZC_ERR_FORMAT, "is not STEP"},
};

static void test_section_table(void **state)
{
    fixture *f = *state;
    for (size_t i = 0; i < ZC_COUNTOF(table_cases); i++) {
        const table_case *c = &table_cases[i];
        uint8_t *plan = malloc(f->len);
        assert_non_null(plan);
        memcpy(plan, f->plan, f->len);
        zc_plan_section *s = &forge_table(plan)[c->section];
        if (c->offset != SAME) s->offset = c->offset;
        if (c->length != SAME) s->length = c->length;
        if (c->kind != SAME32) s->kind = c->kind;
        if (c->reserved != SAME32) s->reserved = c->reserved;
        forge_seal(plan, f->len);
        zc_plan *loaded = NULL;
        expect_fail(f->diag, zc_plan_load_bytes(plan, f->len, &loaded, f->diag), c->status,
                    c->says);
        free(plan);
    }
}

static void test_padding_under_right_hashes(void **state)
{
    fixture *f = *state;
    const zc_plan_section *meta = &forge_table(f->plan)[ZC_PLAN_META];
    zc_plan *loaded = NULL;
    f->plan[meta->offset + meta->length] = 1;
    forge_seal(f->plan, f->len);
    expect_fail(f->diag, zc_plan_load_bytes(f->plan, f->len, &loaded, f->diag), ZC_ERR_FORMAT,
                "is not zero");
}

static void test_section_count(void **state)
{
    fixture *f = *state;
    zc_plan_header *h = (zc_plan_header *)f->plan;
    static const uint32_t counts[] = {0, 1, ZC_PLAN_SECTION_COUNT - 1, ZC_PLAN_SECTION_COUNT + 1,
                                      UINT32_MAX};
    for (size_t i = 0; i < ZC_COUNTOF(counts); i++) {
        zc_plan *loaded = NULL;
        h->section_count = counts[i];
        forge_seal(f->plan, f->len);
        expect_fail(f->diag, zc_plan_load_bytes(f->plan, f->len, &loaded, f->diag), ZC_ERR_FORMAT,
                    "wrong number of sections");
    }
}

/* What is plainly something else is called by its name. */
static void test_other_files(void **state)
{
    static const struct {
        const char *bytes, *says;
    } cases[] = {
        {"GGUF\3 and so on", "this is a GGUF model, not a zc plan"},
        {"\x89PNG\r\n\x1a\n", "this is a PNG image, not a zc plan"},
        {"PK\3\4 and so on", "this is a zip archive, not a zc plan"},
        {"ftrt and so on", "this is a TensorRT engine, not a zc plan"},
        {"\x93NUMPY\1 and so on", "this is a .npy array, not a zc plan"},
        {"just some words", "this looks like text, not a zc plan"},
        {"\x08\x09\x12\x07pytorch", "not a zc plan (it may be an ONNX model: `zc compile`"},
        {"\x89ZCPxxxxxxxx", "not a zc plan"},
        {"\x89ZC", "not a zc plan"},
    };
    fixture *f = *state;
    for (size_t i = 0; i < ZC_COUNTOF(cases); i++) {
        zc_plan *plan = NULL;
        expect_fail(f->diag,
                    zc_plan_load_bytes(cases[i].bytes, strlen(cases[i].bytes), &plan, f->diag),
                    ZC_ERR_FORMAT, cases[i].says);
    }
}

int main(void)
{
#ifndef UNDER_ASAN
    const struct rlimit memory = {UINT64_C(4) << 30, UINT64_C(4) << 30};
    setrlimit(RLIMIT_AS, &memory);
#endif
    signal(SIGVTALRM, on_alarm);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_undamaged_plan_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_byte_is_in_a_field, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_section_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_padding_under_right_hashes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_section_count, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_section_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_string_byte, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shapes_that_inputs_decide, setup, teardown),
        cmocka_unit_test_setup_teardown(test_random_fields_at_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_every_field, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
