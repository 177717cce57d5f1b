/* Types chosen by part: the search on errors that are made up, and whole models whose plans run on
 * other inputs than those that were measured. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "passes/quantise.h"
#include "precision/search.h"
#include "runtime/alternatives.h"
#include "support/expect.h"
#include "support/onnx_text.h"
#include "zc/zc.h"

/* ---- the search ---- */

enum { PARTS = 1000, BAD = 617, BIASED = 3 };

/* Independent errors add up by their squares; part BAD's is a hundred times the others'. */
typedef struct world {
    double each;
    size_t measured;
    bool overflows; /* part BAD has no finite value in f16 */
    bool is_lazy;   /* beyond what is enough, says no more than that it is beyond */
} world;

static double error_in(const world *w, size_t part, zc_precision_type type)
{
    static const double digits[ZC_PRECISION_COUNT] = {
        [ZC_PRECISION_int4] = 256, [ZC_PRECISION_w8] = 16,     [ZC_PRECISION_int8] = 8,
        [ZC_PRECISION_fp8] = 16,   [ZC_PRECISION_sparse] = 32, [ZC_PRECISION_f16] = 1,
        [ZC_PRECISION_bf16] = 8,   [ZC_PRECISION_tf32] = 1};
    if (w->overflows && part == BAD && type == ZC_PRECISION_f16) return INFINITY;
    return w->each * digits[type] * (part == BAD && !w->overflows ? 100 : 1);
}

static zc_status measure(void *user, const zc_precision_type *types, double enough,
                         zc_precision_error *out, zc_diag *diag)
{
    world *w = user;
    double sum = 0;
    (void)diag;
    w->measured++;
    for (size_t i = 0; i < PARTS; i++) sum += pow(error_in(w, i, types[i]), 2);
    *out = (zc_precision_error){.error = sqrt(sum)};
    if (w->is_lazy && out->error > enough) out->error = nextafter(enough, INFINITY);
    return ZC_OK;
}

static void make_parts(zc_mixed *m)
{
    *m = (zc_mixed){.types = NULL};
    for (size_t i = 0; i < PARTS; i++) {
        zc_precision_part part = {.names = "Linear 'part'",
                                  .is_product = true,
                                  .scales = true,
                                  .operations = 1e9,
                                  .bytes = 1e6,
                                  .weights = 1e5};
        if (i == BIASED) part.keeps = "softmax";
        assert_true(ZC_VEC_PUSH(&m->parts, part));
    }
}

static const int hopper = 90;
static const char *const output = "y";

static zc_precision_params params_of(world *w, double max_error)
{
    return (zc_precision_params){.max_error = max_error,
                                 .allowed = {[ZC_PRECISION_f16] = true, [ZC_PRECISION_f32] = true},
                                 .chips = {&hopper, 1},
                                 .outputs = &output,
                                 .measure = measure,
                                 .user = w};
}

static size_t count_of(const zc_precision_found *f, zc_precision_type type)
{
    size_t n = 0;
    for (size_t i = 0; i < f->parts.len; i++) n += f->parts.data[i].type == type;
    return n;
}

static void test_one_bad_part(void **state)
{
    world w = {.each = 1e-6};
    zc_mixed m;
    zc_precision_found f;
    (void)state;
    make_parts(&m);
    const zc_precision_params p = params_of(&w, 1.6e-4); /* all but BAD: 3.2e-5; BAD: 1e-4 */
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_true(f.error.error <= p.max_error / ZC_PRECISION_MARGIN);
    assert_int_equal(f.parts.data[BAD].type, ZC_PRECISION_f32);
    assert_int_equal(f.parts.data[BIASED].type, ZC_PRECISION_f32);
    assert_int_equal(count_of(&f, ZC_PRECISION_f32), 2);
    assert_true(f.measures == w.measured && f.measures <= ZC_PRECISION_MEASURES_MAX);
    zc_precision_found_fini(&f);
    ZC_VEC_FINI(&m.parts);
}

/* Whatever the bound, it is kept, within the limit of measurements, and by the same types again,
 * also where measuring ends once an error is beyond the bound. */
static void test_bounds_are_kept(void **state)
{
    (void)state;
    for (double bound = 1e-3; bound > 1e-8; bound /= 3) {
        world w = {.each = 1e-6};
        zc_mixed m;
        zc_precision_found f, again;
        make_parts(&m);
        zc_precision_params p = params_of(&w, bound);
        p.wants_front = true;
        p.allowed[ZC_PRECISION_tf32] = p.allowed[ZC_PRECISION_fp8] = true;
        assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
        p.wants_front = false;
        w.is_lazy = true;
        assert_int_equal(zc_precision_search(&p, &m, &again, NULL), ZC_OK);
        assert_true(f.error.error <= bound / ZC_PRECISION_MARGIN);
        assert_true(f.error.error == again.error.error);
        assert_true(f.measures <= ZC_PRECISION_MEASURES_MAX);
        assert_int_equal(f.parts.len, again.parts.len);
        for (size_t i = 0; i < PARTS; i++)
            assert_int_equal(f.parts.data[i].type, again.parts.data[i].type);
        zc_precision_found_fini(&f);
        zc_precision_found_fini(&again);
        ZC_VEC_FINI(&m.parts);
    }
}

/* What cannot be fp8 goes no further up than it has to. */
static void test_fp8_becomes_f16(void **state)
{
    world w = {.each = 1e-6};
    zc_mixed m;
    zc_precision_found f;
    (void)state;
    make_parts(&m);
    m.parts.data[BAD - 1].scales = false;
    m.parts.data[BAD + 1].conversion = 1e9; /* takes longer than f16 */
    zc_precision_params p =
        params_of(&w, 1.2e-3); /* all but BAD: 5.1e-4; BAD: 1.6e-3, in f16 1e-4 */
    p.allowed[ZC_PRECISION_fp8] = true;
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_true(f.error.error <= p.max_error / ZC_PRECISION_MARGIN);
    assert_int_equal(f.parts.data[BAD].type, ZC_PRECISION_f16);
    assert_int_equal(f.parts.data[BAD - 1].type, ZC_PRECISION_f16);
    assert_int_equal(f.parts.data[BAD + 1].type, ZC_PRECISION_f16);
    assert_int_equal(f.parts.data[BIASED].type, ZC_PRECISION_f32);
    assert_int_equal(count_of(&f, ZC_PRECISION_fp8), PARTS - 4);
    zc_precision_found_fini(&f);
    ZC_VEC_FINI(&m.parts);
}

/* Few rows: the time is that of reading the weights. What cannot be int4 is w8, and what cannot be
 * that either f16, of which are also those without codes. */
static void make_coded(zc_mixed *m)
{
    make_parts(m);
    for (size_t i = 0; i < PARTS; i++) {
        zc_precision_part *part = &m->parts.data[i];
        part->codes = i == BAD - 1 ? NULL : "w";
        part->code_bytes = part->weights = 9e5;
        part->packs = true;
        part->operations = 1e6;
    }
}

static void test_int4_becomes_w8(void **state)
{
    world w = {.each = 1e-6};
    zc_mixed m;
    zc_precision_found f;
    (void)state;
    make_coded(&m);
    /* all: 8e-3 and BAD 2.6e-2, in w8 1.6e-3, in f16 1e-4 */
    zc_precision_params p = params_of(&w, 1.7e-2);
    p.allowed[ZC_PRECISION_int4] = p.allowed[ZC_PRECISION_w8] = true;
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_true(f.error.error <= p.max_error / ZC_PRECISION_MARGIN);
    assert_int_equal(f.parts.data[BAD].type, ZC_PRECISION_w8);
    assert_int_equal(f.parts.data[BAD - 1].type, ZC_PRECISION_f16);
    assert_int_equal(f.parts.data[BIASED].type, ZC_PRECISION_f32);
    assert_true(count_of(&f, ZC_PRECISION_int4) >= PARTS - 100);
    zc_precision_found_fini(&f);
    p.max_error = 3e-3; /* all in w8: 5e-4 and BAD 1.6e-3 */
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_true(f.error.error <= p.max_error / ZC_PRECISION_MARGIN);
    assert_int_equal(f.parts.data[BAD].type, ZC_PRECISION_f16);
    assert_true(count_of(&f, ZC_PRECISION_w8) >= PARTS / 2);
    assert_true(f.measures <= ZC_PRECISION_MEASURES_MAX);
    zc_precision_found_fini(&f);
    ZC_VEC_FINI(&m.parts);
}

/* What cannot be pruned goes no further up than f16. */
static void test_sparse_becomes_f16(void **state)
{
    world w = {.each = 1e-6};
    zc_mixed m;
    zc_precision_found f;
    (void)state;
    make_parts(&m);
    for (size_t i = 0; i < PARTS; i++)
        m.parts.data[i].prunes = i == BAD - 1 ? NULL : "w"; /* all: 1e-3 and BAD 3.2e-3 */
    zc_precision_params p = params_of(&w, 3e-3);
    p.allowed[ZC_PRECISION_sparse] = true;
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_true(f.error.error <= p.max_error / ZC_PRECISION_MARGIN);
    assert_int_equal(f.parts.data[BAD].type, ZC_PRECISION_f16);
    assert_int_equal(f.parts.data[BAD - 1].type, ZC_PRECISION_f16);
    assert_int_equal(f.parts.data[BIASED].type, ZC_PRECISION_f32);
    assert_true(count_of(&f, ZC_PRECISION_sparse) >= PARTS - 100);
    zc_precision_found_fini(&f);
    p.allowed[ZC_PRECISION_sparse] = false;
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_int_equal(count_of(&f, ZC_PRECISION_sparse), 0);
    zc_precision_found_fini(&f);
    ZC_VEC_FINI(&m.parts);
}

/* What makes an output may have weights of codes, but is nothing between these and f32. */
static void test_outputs_have_codes(void **state)
{
    static const struct {
        double bound;
        zc_precision_type type;
    } kept[] = {{1, ZC_PRECISION_int4}, {1.7e-2, ZC_PRECISION_w8}, {3e-3, ZC_PRECISION_f32}};
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(kept); i++) {
        world w = {.each = 1e-6};
        zc_mixed m;
        zc_precision_found f;
        make_coded(&m);
        m.parts.data[BAD].keeps = "makes an output";
        m.parts.data[BAD].keeps_result = true;
        zc_precision_params p = params_of(&w, kept[i].bound);
        p.allowed[ZC_PRECISION_int4] = p.allowed[ZC_PRECISION_w8] = true;
        assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
        assert_true(f.error.error <= p.max_error / ZC_PRECISION_MARGIN);
        assert_int_equal(f.parts.data[BAD].type, kept[i].type);
        assert_int_equal(f.parts.data[BIASED].type, ZC_PRECISION_f32);
        zc_precision_found_fini(&f);
        p.allowed[ZC_PRECISION_int4] = p.allowed[ZC_PRECISION_w8] = false;
        assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
        assert_int_equal(f.parts.data[BAD].from, ZC_PRECISION_f32);
        zc_precision_found_fini(&f);
        ZC_VEC_FINI(&m.parts);
    }
}

static void test_groups_have_to_divide(void **state)
{
    world w = {.each = 1e-6};
    zc_mixed m;
    zc_precision_found f;
    zc_diag *diag = zc_diag_create();
    (void)state;
    make_coded(&m);
    m.group = 64;
    for (size_t i = 0; i < PARTS; i++) m.parts.data[i].forms[ZC_PRECISION_int4].group = 64;
    m.parts.data[BAD].forms[ZC_PRECISION_int4].group = 96;
    zc_precision_params p = params_of(&w, 1e-1);
    p.allowed[ZC_PRECISION_int4] = true;
    assert_int_equal(zc_precision_search(&p, &m, &f, diag), ZC_ERR_ARG);
    assert_non_null(strstr(zc_diag_text(diag, 0),
                           "Linear 'part': weights 'w' are not in groups of 64 (got sums of 96)"));
    zc_precision_found_fini(&f);
    ZC_VEC_FINI(&m.parts);
    zc_diag_destroy(&diag);
}

static void test_overflow_becomes_bf16(void **state)
{
    world w = {.each = 1e-6, .overflows = true};
    zc_mixed m;
    zc_precision_found f;
    (void)state;
    make_parts(&m);
    zc_precision_params p = params_of(&w, 1e-3);
    p.allowed[ZC_PRECISION_bf16] = true;
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_int_equal(f.parts.data[BAD].type, ZC_PRECISION_bf16);
    assert_int_equal(count_of(&f, ZC_PRECISION_f16), PARTS - 2);
    zc_precision_found_fini(&f);
    ZC_VEC_FINI(&m.parts);
}

static void test_front(void **state)
{
    world w = {.each = 1e-6};
    zc_mixed m;
    zc_precision_found f;
    zc_buf text = {0};
    (void)state;
    make_parts(&m);
    zc_precision_params p = params_of(&w, 2e-5);
    p.wants_front = true;
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_true(zc_precision_front(&f, &text));
    zc_buf_append(&text, "", 1);
    double us = -1, error = INFINITY;
    size_t lines = 0;
    for (const char *line = strchr(text.data, '\n') + 1; *line; line = strchr(line, '\n') + 1) {
        double t, bytes, e;
        assert_int_equal(sscanf(line, "%lf %lf %lf", &t, &bytes, &e), 3);
        assert_true(t > us && e < error);
        us = t;
        error = e;
        lines++;
    }
    assert_true(lines >= 3 && error == 0);
    zc_buf_fini(&text);
    zc_precision_found_fini(&f);
    ZC_VEC_FINI(&m.parts);
}

/* Where f16 may be chosen, too. */
static bool is_int8_faster(const int *archs, int narchs, bool product, int64_t depth)
{
    const zc_precision_chips chips = {archs, narchs};
    const zc_precision_part part = {.is_product = product,
                                    .quantises = true,
                                    .scales = product,
                                    .depth = depth,
                                    .taps = 1,
                                    .operations = 1e9,
                                    .bytes = 1e6};
    return zc_precision_faster(&chips, &part, ZC_PRECISION_int8, true);
}

/* Of a matrix of 4096 x 4096 and so many rows. */
static bool is_int4_faster(const int *archs, int narchs, double rows, bool packs)
{
    const zc_precision_chips chips = {archs, narchs};
    const double matrix = 4096.0 * 4096;
    const zc_precision_part part = {.is_product = true,
                                    .codes = "w",
                                    .packs = packs,
                                    .operations = 2 * rows * matrix,
                                    .bytes = 4 * (matrix + 2 * 4096 * rows),
                                    .weights = 4 * matrix,
                                    .code_bytes = 4 * matrix};
    return zc_precision_faster(&chips, &part, ZC_PRECISION_int4, true);
}

static void test_where_int4_is_faster(void **state)
{
    static const int sm_80 = 80, both[] = {90, 80};
    (void)state;
    assert_true(is_int4_faster(&hopper, 1, 1, true));
    assert_true(is_int4_faster(&hopper, 1, 64, true));
    assert_false(is_int4_faster(&hopper, 1, 512, true)); /* sums take longer than reading */
    assert_false(is_int4_faster(&hopper, 1, 1, false));
    assert_false(is_int4_faster(&sm_80, 1, 1, true));
    assert_false(is_int4_faster(both, 2, 1, true));
    assert_false(is_int4_faster(NULL, 0, 1, true));
}

static bool is_sparse_faster(const int *archs, int narchs, const char *prunes)
{
    const zc_precision_chips chips = {archs, narchs};
    const double matrix = 4096.0 * 4096, rows = 4096;
    const zc_precision_part part = {.is_product = true,
                                    .prunes = prunes,
                                    .operations = 2 * rows * matrix,
                                    .bytes = 4 * (matrix + 2 * 4096 * rows),
                                    .weights = 4 * matrix,
                                    .code_bytes = 4 * matrix};
    return zc_precision_faster(&chips, &part, ZC_PRECISION_sparse, true);
}

static void test_where_sparse_is_faster(void **state)
{
    static const int sm_100 = 100, both[] = {90, 80};
    (void)state;
    assert_true(is_sparse_faster(&hopper, 1, "w"));
    assert_false(is_sparse_faster(&hopper, 1, NULL));
    assert_true(is_sparse_faster(both, 2, "w"));
    assert_false(is_sparse_faster(&sm_100, 1, "w"));
    assert_false(is_sparse_faster(NULL, 0, "w"));
}

static void test_where_int8_is_faster(void **state)
{
    static const int sm_80 = 80, both[] = {90, 80};
    (void)state;
    assert_true(is_int8_faster(NULL, 0, false, 64));
    assert_false(is_int8_faster(NULL, 0, false, 63));
    assert_true(is_int8_faster(NULL, 0, true, 256));
    assert_false(is_int8_faster(NULL, 0, true, 255));
    assert_true(is_int8_faster(&hopper, 1, true, 64));
    assert_false(is_int8_faster(&sm_80, 1, true, 4096));
    assert_false(is_int8_faster(both, 2, true, 4096));
    assert_false(is_int8_faster(&sm_80, 1, false, 64));
    assert_false(is_int8_faster(both, 2, false, 64));
    const zc_precision_chips cpu = {NULL, 0};
    const zc_precision_part each = {
        .quantises = true, .each = true, .depth = 81, .taps = 81, .operations = 1e9, .bytes = 1e6};
    assert_false(zc_precision_faster(&cpu, &each, ZC_PRECISION_int8, true));
}

/* On Hopper a convolution of bytes is faster than one of f16 whatever takes its time, but for
 * windows of few channels, which are faster than those of f32. */
static void test_where_int8_convolutions_are_faster(void **state)
{
    static const struct {
        int64_t channels, taps;
        bool faster;
    } all[] = {{256, 9, true}, {64, 9, true}, {63, 9, false}, {5, 9, false}, {4, 49, true},
               {1, 9, true},   {16, 1, true}, {512, 1, true}, {16, 2, false}};
    const zc_precision_chips chips = {&hopper, 1};
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(all); i++)
        for (double operations = 1e6; operations < 1e13; operations *= 10) {
            const zc_precision_part part = {.quantises = true,
                                            .depth = all[i].channels * all[i].taps,
                                            .taps = all[i].taps,
                                            .operations = operations,
                                            .bytes = 1e6};
            assert_int_equal(zc_precision_faster(&chips, &part, ZC_PRECISION_int8, true),
                             all[i].faster);
            assert_true(zc_precision_faster(&chips, &part, ZC_PRECISION_int8, false));
            assert_true(zc_precision_faster(&chips, &part, ZC_PRECISION_f16, true));
        }
}

/* A chain of convolutions, of wide windows but for `narrow`, of which each reads `between` bytes of
 * the one before. */
static void make_chain(zc_mixed *m, size_t count, size_t narrow, double wide, double narrow_bytes,
                       double between)
{
    *m = (zc_mixed){0};
    for (size_t i = 0; i < count; i++) {
        const double bytes = i == narrow ? narrow_bytes : wide;
        const zc_precision_part part = {.names = "Conv",
                                        .quantises = true,
                                        .depth = i == narrow ? 9 * 16 : 9 * 256,
                                        .taps = 9,
                                        .operations = 60 * bytes,
                                        .bytes = bytes};
        const zc_precision_edge edge = {
            .from = i - 1, .to = i, .value = (zc_vid)(i + 1), .bytes = between};
        assert_true(ZC_VEC_PUSH(&m->parts, part));
        if (i) assert_true(ZC_VEC_PUSH(&m->edges, edge));
    }
}

/* The number of int8 among the chain's parts. */
static size_t chosen_int8(size_t count, size_t narrow, double bytes, double narrow_bytes,
                          bool *narrow_too)
{
    zc_precision_type *types = zc_calloc(count + 1, sizeof *types); /* a norm among them */
    const zc_precision_params p = {
        .allowed =
            {[ZC_PRECISION_int8] = true, [ZC_PRECISION_f16] = true, [ZC_PRECISION_f32] = true},
        .chips = {&hopper, 1}};
    zc_mixed m;
    size_t n = 0;
    assert_non_null(types);
    make_chain(&m, count, narrow, bytes, narrow_bytes, bytes / 8);
    const zc_precision_part norm = {.names = "LayerNormalization", .bytes = bytes}; /* never int8 */
    assert_true(ZC_VEC_PUSH(&m.parts, norm));
    types[count] = ZC_PRECISION_f16;
    for (size_t i = 0; i < count; i++) types[i] = ZC_PRECISION_f16;
    assert_true(zc_precision_regions(&p, &m, ZC_PRECISION_f16, types));
    for (size_t i = 0; i < count; i++) n += types[i] == ZC_PRECISION_int8;
    *narrow_too = narrow < count && types[narrow] == ZC_PRECISION_int8;
    free(types);
    ZC_VEC_FINI(&m.parts);
    ZC_VEC_FINI(&m.edges);
    return n;
}

/* Wide ones are int8 where they take long, and none where all are short; a narrow one between them
 * is f16 if that gains more than two steps take, and int8 as its neighbours if it is short. */
static void test_convolutions_of_bytes_by_regions(void **state)
{
    enum { NONE = 9999, MANY = 5000 };
    bool narrow;
    (void)state;
    assert_int_equal(chosen_int8(6, NONE, 1e8, 0, &narrow), 6);
    assert_int_equal(chosen_int8(6, NONE, 1e5, 0, &narrow), 0);
    assert_int_equal(chosen_int8(7, 3, 1e8, 3e8, &narrow), 6);
    assert_false(narrow);
    assert_int_equal(chosen_int8(7, 3, 1e8, 1e7, &narrow), 7);
    assert_true(narrow);
    assert_int_equal(chosen_int8(1, 0, 0, 1e9, &narrow), 0);
    assert_int_equal(chosen_int8(0, NONE, 0, 0, &narrow), 0);
    assert_int_equal(chosen_int8(MANY, NONE, 1e8, 0, &narrow), MANY); /* one region */
    assert_int_equal(chosen_int8(MANY, NONE, 1e5, 0, &narrow), 0);
}

/* Of a chain of convolutions of which the first `count` are still int8, how many remain so. */
static size_t remaining_int8(size_t count, double bytes)
{
    enum { ALL = 8 };
    zc_precision_type types[ALL];
    const zc_precision_params p = {
        .allowed =
            {[ZC_PRECISION_int8] = true, [ZC_PRECISION_f16] = true, [ZC_PRECISION_f32] = true},
        .chips = {&hopper, 1}};
    zc_mixed m;
    size_t n = 0;
    make_chain(&m, ALL, ALL, bytes, 0, bytes / 8);
    for (size_t i = 0; i < ALL; i++) types[i] = i < count ? ZC_PRECISION_int8 : ZC_PRECISION_f16;
    assert_true(zc_precision_remains(&p, &m, ZC_PRECISION_f16, types));
    for (size_t i = 0; i < ALL; i++) n += types[i] == ZC_PRECISION_int8;
    ZC_VEC_FINI(&m.parts);
    ZC_VEC_FINI(&m.edges);
    return n;
}

/* One gains less than the step behind it takes; none of 16 bits becomes int8 again. */
static void test_remaining_convolutions_of_bytes(void **state)
{
    (void)state;
    assert_int_equal(remaining_int8(1, 5e7), 0);
    assert_int_equal(remaining_int8(4, 5e7), 4);
    assert_int_equal(remaining_int8(8, 5e7), 8);
    assert_int_equal(remaining_int8(8, 1e5), 0);
    assert_int_equal(remaining_int8(0, 5e7), 0);
}

/* Of a long chain of convolutions, by a search: how many stay int8, and how many more would have.
 */
static size_t left_int8(double max_error, double between, size_t *remained)
{
    world w = {.each = 1e-6};
    zc_mixed m;
    zc_precision_found f;
    make_chain(&m, PARTS, PARTS, 1e8, 0, between);
    zc_precision_params p = params_of(&w, max_error);
    p.allowed[ZC_PRECISION_int8] = true;
    assert_int_equal(zc_precision_search(&p, &m, &f, NULL), ZC_OK);
    assert_true(f.error.error <= max_error / ZC_PRECISION_MARGIN);
    assert_true(f.measures == w.measured && f.measures <= ZC_PRECISION_MEASURES_MAX);
    const size_t n = count_of(&f, ZC_PRECISION_int8);
    *remained = 0;
    for (size_t i = 0; i < PARTS; i++) *remained += f.parts.data[i].remained;
    zc_precision_found_fini(&f);
    ZC_VEC_FINI(&m.parts);
    ZC_VEC_FINI(&m.edges);
    return n;
}

static void test_search_of_convolutions_of_bytes(void **state)
{
    size_t remained;
    (void)state;
    assert_int_equal(left_int8(2e-3, 1e7, &remained), PARTS);
    assert_int_equal(remained, 0);
    const size_t some = left_int8(4e-4, 1e7, &remained);
    assert_true(some > PARTS / 4 && some < PARTS && remained == 0);
    const size_t few = left_int8(1.4e-4, 1e7, &remained);
    assert_true(few > 0 && few < PARTS / 10 && remained == 0);
    assert_int_equal(left_int8(1.4e-4, 1e10, &remained), 0);
    assert_int_equal(remained, few);
}

/* ---- models ---- */

enum { ROWS = 80, SIDE = 16, SAMPLES = 3 };

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static float normal_like(uint64_t *state)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) sum += (double)next(state) / (double)(UINT64_C(1) << 31);
    return (float)(sum - 6);
}

/* A matrix of random numbers, scaled, and added to what the seed `base` gives (0: nothing). */
static void put_matrix(zc_buf *text, const char *name, uint64_t seed, double scale, uint64_t base)
{
    uint64_t own = seed, other = base;
    zc_buf_printf(text, "init %s 1 %d,%d ", name, SIDE, SIDE);
    for (int i = 0; i < SIDE * SIDE; i++) {
        double v = scale * normal_like(&own) + (base ? normal_like(&other) : 0);
        zc_buf_printf(text, "%s%.9g", i ? "," : "", v);
    }
    zc_buf_puts(text, "\n");
}

static void put_head(zc_buf *text)
{
    zc_buf_printf(text, "opset 17\nin x 1 %d,%d\nout y 1 *\n", ROWS, SIDE);
    put_matrix(text, "last", 5, 0.25, 0);
}

/* y = ((x a - x b) * 2000) last, where a and b are nearly the same. */
static void near_values(zc_buf *text)
{
    put_head(text);
    put_matrix(text, "a", 1, 0, 7);
    put_matrix(text, "b", 2, 1e-3, 7);
    put_matrix(text, "c", 3, 0.25, 0);
    zc_buf_puts(text, "init k 1 - 2000\n"
                      "node MatMul x,c h name=harmless\n"
                      "node Tanh h t\n"
                      "node MatMul t,a p name=near_a\n"
                      "node MatMul t,b q name=near_b\n"
                      "node Sub p,q d\n"
                      "node Mul d,k e\n"
                      "node Tanh e f\n"
                      "node MatMul f,last y name=last\n");
}

/* exp of large values. */
static void large_exp(zc_buf *text)
{
    put_head(text);
    put_matrix(text, "a", 1, 1.5, 0);
    put_matrix(text, "c", 3, 0.25, 0);
    zc_buf_puts(text, "node MatMul x,c h name=harmless\n"
                      "node Tanh h t\n"
                      "node MatMul t,a p name=exponents\n"
                      "node Exp p e\n"
                      "node MatMul e,last y name=last\n");
}

/* Products beyond 65504. */
static void large_values(zc_buf *text)
{
    put_head(text);
    put_matrix(text, "a", 1, 12000, 0);
    put_matrix(text, "c", 3, 0.25, 0);
    zc_buf_puts(text, "init k 1 - 0.00001\n"
                      "node MatMul x,c h name=harmless\n"
                      "node Tanh h t\n"
                      "node MatMul t,a p name=overflows\n"
                      "node Mul p,k e\n"
                      "node MatMul e,last y name=last\n");
}

/* Random numbers of these dimensions. */
static void put_weights(zc_buf *text, const char *name, const char *dims, int n, uint64_t seed,
                        double scale)
{
    zc_buf_printf(text, "init %s 1 %s ", name, dims);
    for (int i = 0; i < n; i++)
        zc_buf_printf(text, "%s%.9g", i ? "," : "", scale * normal_like(&seed));
    zc_buf_puts(text, "\n");
}

/* Three convolutions of planes of 16 channels, over the second of which there is a shortcut, and
 * one that makes the output. */
static void convolutions(zc_buf *text)
{
    static const char *const weights[] = {"w0", "w1", "w2", "w3"};
    put_head(text);
    zc_buf_puts(text, "init planes 7 4 1,16,10,8\ninit rows 7 2 80,16\n");
    for (int i = 0; i < 4; i++)
        put_weights(text, weights[i], "16,16,3,3", 16 * 16 * 9, (uint64_t)i + 1, 0.08);
    put_weights(text, "b0", "16", 16, 8, 0.3);
    put_weights(text, "b1", "16", 16, 9, 0.3);
    zc_buf_puts(text, "node Reshape x,planes p\n"
                      "node Conv p,w0,b0 h0 name=first pads:is=1,1,1,1\n"
                      "node Relu h0 r0\n"
                      "node Conv r0,w1,b1 h1 name=second pads:is=1,1,1,1\n"
                      "node Add h1,r0 s\n"
                      "node Relu s r1\n"
                      "node Conv r1,w2 h2 name=third pads:is=1,1,1,1\n"
                      "node Relu h2 r2\n"
                      "node Conv r2,w3 h3 name=last pads:is=1,1,1,1\n"
                      "node Reshape h3,rows y\n");
}

/* The second of the convolutions gives negative numbers alone, of which a Relu makes zeros. */
static void dead_convolution(zc_buf *text)
{
    put_head(text);
    zc_buf_puts(text, "init planes 7 4 1,16,10,8\ninit rows 7 2 80,16\ninit low 1 16 ");
    for (int i = 0; i < 16; i++) zc_buf_puts(text, i ? ",-1000" : "-1000");
    zc_buf_puts(text, "\n");
    for (int i = 0; i < 3; i++) {
        const char name[] = {'w', (char)('0' + i), 0};
        put_weights(text, name, "16,16,3,3", 16 * 16 * 9, (uint64_t)i + 1, 0.08);
    }
    zc_buf_puts(text, "node Reshape x,planes p\n"
                      "node Conv p,w0 h0 name=first pads:is=1,1,1,1\n"
                      "node Relu h0 r0\n"
                      "node Conv r0,w1,low h1 name=dead pads:is=1,1,1,1\n"
                      "node Relu h1 r1\n"
                      "node Conv r1,w2 h2 name=behind pads:is=1,1,1,1\n"
                      "node Add h2,r0 s\n"
                      "node Sigmoid s t\n"
                      "node Conv t,w2 h3 name=last pads:is=1,1,1,1\n"
                      "node Reshape h3,rows y\n");
}

/* A perceptron of two layers with 256 inputs each, behind one with 16. */
static void perceptron(zc_buf *text)
{
    put_head(text);
    put_weights(text, "w0", "16,256", 16 * 256, 1, 0.25);
    put_weights(text, "w1", "256,256", 256 * 256, 2, 0.0625);
    put_weights(text, "w2", "256,256", 256 * 256, 3, 0.0625);
    put_weights(text, "w3", "256,16", 256 * 16, 4, 0.0625);
    put_weights(text, "b1", "256", 256, 5, 0.2);
    zc_buf_puts(text, "node MatMul x,w0 h0 name=narrow\n"
                      "node Tanh h0 t0\n"
                      "node Gemm t0,w1,b1 h1 name=biased\n"
                      "node Relu h1 t1\n"
                      "node Gemm t1,w2 h2 name=turned transB:i=1\n"
                      "node Tanh h2 t2\n"
                      "node MatMul t2,w3 y name=last\n");
}

typedef struct values {
    float v[SAMPLES][ROWS * SIDE];
    zc_view views[SAMPLES];
} values;

static void fill(values *out, uint64_t seed)
{
    for (int s = 0; s < SAMPLES; s++) {
        for (int i = 0; i < ROWS * SIDE; i++) out->v[s][i] = normal_like(&seed);
        out->views[s] = (zc_view){.elem = ZC_ELEM_F32,
                                  .rank = 2,
                                  .dims = {ROWS, SIDE},
                                  .data = out->v[s],
                                  .bytes = sizeof out->v[s]};
    }
}

static zc_status compile(const char *text, const zc_compile_params *params, zc_plan **out,
                         zc_diag *diag)
{
    zc_buf model = {0};
    void *bytes = NULL;
    size_t len;
    onnx_text(text, &model);
    zc_status status = zc_compile_bytes(model.data, model.len, params, &bytes, &len, diag);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, out, diag);
    zc_buf_fini(&model);
    zc_free(bytes);
    return status;
}

static void run(zc_plan *plan, const zc_view *x, float y[ROWS * SIDE], zc_diag *diag)
{
    zc_session *s;
    zc_view v;
    expect_ok(diag, zc_session_create(plan, NULL, &s, diag));
    expect_ok(diag, zc_session_set_input(s, 0, x, false, diag));
    expect_ok(diag, zc_session_run(s, diag));
    expect_ok(diag, zc_session_output(s, 0, &v, diag));
    assert_int_equal(v.bytes, ROWS * SIDE * sizeof *y);
    memcpy(y, v.data, v.bytes);
    assert_int_equal(zc_session_destroy(&s), ZC_OK);
}

static double error_of(zc_plan *plan, zc_plan *exact, const zc_view *x, zc_diag *diag)
{
    float y[ROWS * SIDE], need[ROWS * SIDE];
    double most = 0, worst = 0;
    run(plan, x, y, diag);
    run(exact, x, need, diag);
    for (int i = 0; i < ROWS * SIDE; i++) {
        most = fmax(most, fabs(need[i]));
        worst = fmax(worst, fabs(y[i] - need[i]));
    }
    return worst / most;
}

/* The report's line of the part that begins so. */
static const char *line_of(const zc_plan *plan, const char *name)
{
    const zc_program *p = zc_plan_program(plan);
    char quoted[64];
    snprintf(quoted, sizeof quoted, "'%s'", name);
    for (uint32_t i = 0; i < p->nprecision; i++)
        if (strstr(p->precision[i], quoted)) return p->precision[i];
    fail_msg("no line tells of %s", name);
    return "";
}

static void expect_line(const zc_plan *plan, const char *name, const char *type, const char *why)
{
    const char *line = line_of(plan, name);
    if (strncmp(line, type, strlen(type)) != 0 || !strstr(line, why))
        fail_msg("%s: got \"%s\", need %s and \"%s\"", name, line, type, why);
}

typedef struct compiled {
    zc_plan *plan, *exact;
    zc_diag *diag;
} compiled;

/* The bound holds on inputs that were not measured. */
static compiled compile_both(void (*model)(zc_buf *), const char *const *allow, size_t allow_count,
                             double max_error)
{
    compiled c = {.diag = zc_diag_create()};
    static values chosen_by, others;
    zc_buf text = {0};
    model(&text);
    fill(&chosen_by, 11);
    fill(&others, 99);
    expect_ok(c.diag,
              compile(text.data,
                      ZC_COMPILE_PARAMS(.precision = "auto", .max_error = max_error, .allow = allow,
                                        .allow_count = allow_count, .samples = chosen_by.views,
                                        .sample_count = SAMPLES),
                      &c.plan, c.diag));
    expect_ok(c.diag, compile(text.data, NULL, &c.exact, c.diag));
    for (int s = 0; s < SAMPLES; s++)
        assert_true(error_of(c.plan, c.exact, &others.views[s], c.diag) <= max_error);
    zc_buf_fini(&text);
    return c;
}

static void end(compiled *c)
{
    zc_plan_destroy(&c->plan);
    zc_plan_destroy(&c->exact);
    zc_diag_destroy(&c->diag);
}

static const char *const f16[] = {"f16"}, *const halves[] = {"f16", "bf16"},
                         *const tf32[] = {"tf32"}, *const fp8[] = {"fp8", "f16"},
                         *const int8[] = {"int8", "f16"}, *const codes[] = {"int4", "w8"},
                         *const fp4[] = {"fp4", "w8"};

static void test_near_values(void **state)
{
    compiled c = compile_both(near_values, f16, 1, 1e-2);
    (void)state;
    expect_line(c.plan, "near_a", "f32", "raised from f16");
    expect_line(c.plan, "near_b", "f32", "raised from f16");
    expect_line(c.plan, "last", "f32", "makes an output");
    end(&c);
}

static void test_large_exp(void **state)
{
    compiled c = compile_both(large_exp, f16, 1, 5e-3);
    (void)state;
    expect_line(c.plan, "exponents", "f32", "raised from f16");
    end(&c);
}

static void test_large_values(void **state)
{
    compiled c = compile_both(large_values, halves, 2, 3e-2);
    (void)state;
    expect_line(c.plan, "overflows", "bf16", "% of the error");
    expect_line(c.plan, "harmless", "f16", "% of the error");
    end(&c);
    c = compile_both(large_values, f16, 1, 3e-2);
    expect_line(c.plan, "overflows", "f32", "raised from f16");
    end(&c);
}

/* On the CPU tf32 computes in f32: what is measured is what a GPU would round. */
static void test_tf32(void **state)
{
    compiled c = compile_both(near_values, tf32, 1, 1e-2);
    const zc_program *p = zc_plan_program(c.plan);
    size_t rounding = 0;
    (void)state;
    expect_line(c.plan, "near_a", "f32", "raised from tf32");
    expect_line(c.plan, "harmless", "tf32", "% of the error");
    for (uint32_t i = 0; i < p->nsteps; i++) rounding += p->steps[i].tf32;
    assert_int_equal(rounding, 1);
    end(&c);
}

static size_t steps_of(const zc_plan *plan, zc_op op)
{
    const zc_program *p = zc_plan_program(plan);
    size_t n = 0;
    for (uint32_t i = 0; i < p->nsteps; i++) n += p->steps[i].op == op;
    return n;
}

static void test_fp8(void **state)
{
    compiled c = compile_both(near_values, fp8, 2, 0.5);
    (void)state;
    expect_line(c.plan, "harmless", "fp8", "% of the error");
    expect_line(c.plan, "near_a", "f32", "raised from fp8");
    assert_int_equal(steps_of(c.plan, ZC_OP_ScaledLinear), 1);
    end(&c);
    c = compile_both(near_values, fp8, 2, 1e-2);
    expect_line(c.plan, "harmless", "f16", "raised from fp8");
    assert_int_equal(steps_of(c.plan, ZC_OP_ScaledLinear), 0);
    end(&c);
}

static void test_fp8_convolutions(void **state)
{
    compiled c = compile_both(convolutions, fp8, 1, 0.5);
    (void)state;
    expect_line(c.plan, "first", "fp8", "% of the error");
    expect_line(c.plan, "second", "fp8", "% of the error");
    expect_line(c.plan, "last", "f32", "makes an output");
    assert_int_equal(steps_of(c.plan, ZC_OP_ScaledConv), 3);
    const zc_program *p = zc_plan_program(c.plan);
    for (uint32_t i = 0; i < p->nsteps; i++)
        if (p->steps[i].op == ZC_OP_ScaledConv)
            assert_int_equal(((const zc_attrs_ScaledConv *)p->steps[i].attrs)->to, ZC_F16);
    end(&c);
    c = compile_both(convolutions, fp8, 2, 1e-2);
    expect_line(c.plan, "first", "f16", "raised from fp8");
    assert_int_equal(steps_of(c.plan, ZC_OP_ScaledConv), 0);
    end(&c);
}

static void test_int8_convolutions(void **state)
{
    compiled c = compile_both(convolutions, int8, 1, 0.1);
    (void)state;
    expect_line(c.plan, "first", "int8", "% of the error");
    expect_line(c.plan, "second", "int8", "% of the error");
    expect_line(c.plan, "third", "int8", "% of the error");
    expect_line(c.plan, "last", "f32", "makes an output");
    assert_int_equal(steps_of(c.plan, ZC_OP_QLinearConv), 3);
    assert_int_equal(steps_of(c.plan, ZC_OP_QuantizeLinear), 1); /* of the input */
    assert_int_equal(steps_of(c.plan, ZC_OP_Pointwise), 0);      /* the shortcut is the third's */
    assert_int_equal(steps_of(c.plan, ZC_OP_DequantizeLinear), 1);
    end(&c);
    c = compile_both(convolutions, int8, 1, 1e-4);
    expect_line(c.plan, "first", "f32", "raised from int8");
    assert_int_equal(steps_of(c.plan, ZC_OP_QLinearConv), 0);
    end(&c);
    c = compile_both(convolutions, int8, 2, 5e-3);
    expect_line(c.plan, "first", "f16", "raised from int8");
    end(&c);
}

static void test_int8_products(void **state)
{
    compiled c = compile_both(perceptron, int8, 1, 0.1);
    (void)state;
    expect_line(c.plan, "narrow", "f32", "no allowed type is faster here");
    expect_line(c.plan, "biased", "int8", "% of the error");
    expect_line(c.plan, "turned", "int8", "% of the error");
    assert_int_equal(steps_of(c.plan, ZC_OP_MatMulInteger), 2);
    end(&c);
    c = compile_both(perceptron, int8, 1, 1e-4);
    expect_line(c.plan, "biased", "f32", "raised from int8");
    assert_int_equal(steps_of(c.plan, ZC_OP_MatMulInteger), 0);
    end(&c);
}

/* On the CPU, where they are no faster, to see what they do: the numbers of the codes. */
static void test_codes(void **state)
{
    compiled c = compile_both(perceptron, codes, 1, 0.3);
    (void)state;
    expect_line(c.plan, "narrow", "int4", "weights in groups of 16, ");
    expect_line(c.plan, "biased", "int4", "% of the error");
    expect_line(c.plan, "last", "f32", "raised from int4");
    assert_int_equal(steps_of(c.plan, ZC_OP_DequantizeLinear), 0);
    end(&c);
    c = compile_both(perceptron, codes, 1, 0.6);
    expect_line(c.plan, "last", "int4", "% of the error");
    end(&c);
    c = compile_both(perceptron, codes, 2, 0.05);
    expect_line(c.plan, "biased", "w8", "raised from int4");
    expect_line(c.plan, "last", "w8", "raised from int4");
    end(&c);
    c = compile_both(perceptron, fp4, 1, 0.6);
    expect_line(c.plan, "biased", "fp4", "weights in groups of 32, e2m1 by powers of two, ");
    end(&c);
    c = compile_both(perceptron, fp4, 2, 0.05);
    expect_line(c.plan, "biased", "w8", "raised from fp4");
    end(&c);
    c = compile_both(perceptron, codes, 2, 1e-3);
    expect_line(c.plan, "biased", "f32", "raised from int4");
    end(&c);
}

static void test_int8_needs_a_span(void **state)
{
    compiled c = compile_both(dead_convolution, int8, 1, 0.1);
    (void)state;
    expect_line(c.plan, "first", "int8", "% of the error");
    expect_line(c.plan, "dead", "f32", "its result is 0 throughout");
    expect_line(c.plan, "behind", "f32", "its operand is 0 throughout");
    assert_int_equal(steps_of(c.plan, ZC_OP_QLinearConv), 1);
    end(&c);
}

static void test_spans(void **state)
{
    static const zc_span never[] = {{0, 0},
                                    {NAN, NAN},
                                    {-INFINITY, 1},
                                    {0, INFINITY},
                                    {INFINITY, -INFINITY} /* no sample */,
                                    {0, 1e-40},
                                    {-3e38, 3e38}};
    (void)state;
    for (size_t i = 0; i < ZC_COUNTOF(never); i++) assert_non_null(zc_span_fault(&never[i]));
    const zc_span positive = {2, 5.1}, both = {-1, 1.55}, negative = {-2, -1};
    assert_null(zc_span_fault(&positive));
    assert_int_equal(zc_quanta_of(&positive).zero, 0);
    assert_int_equal(zc_quanta_of(&both).zero, 100);
    assert_int_equal(zc_quanta_of(&negative).zero, 255);
    assert_float_equal(zc_quanta_of(&positive).scale, 0.02, 1e-7);
}

static void test_nothing_is_faster_on_the_cpu(void **state)
{
    compiled c = compile_both(large_exp, NULL, 0, 1e-3);
    (void)state;
    expect_line(c.plan, "harmless", "f32", "no type is known to be faster on the CPU");
    end(&c);
}

/* Each trial imports the model again. */
static void test_warnings_are_told_once(void **state)
{
    static values x;
    zc_buf text = {0};
    zc_plan *plan = NULL;
    zc_diag *diag = zc_diag_create();
    (void)state;
    near_values(&text);
    zc_buf_puts(&text, "info p 1 3,3\n");
    fill(&x, 1);
    assert_int_equal(compile(text.data, NULL, &plan, diag), ZC_OK);
    size_t plain = zc_diag_count(diag);
    assert_true(plain > 0);
    zc_plan_destroy(&plan);
    zc_diag_clear(diag);
    assert_int_equal(
        compile(text.data,
                ZC_COMPILE_PARAMS(.precision = "auto", .max_error = 1e-2, .allow = f16,
                                  .allow_count = 1, .samples = x.views, .sample_count = 1),
                &plan, diag),
        ZC_OK);
    assert_int_equal(zc_diag_count(diag), plain);
    zc_plan_destroy(&plan);
    zc_diag_destroy(&diag);
    zc_buf_fini(&text);
}

static void test_refusals(void **state)
{
    static values x;
    zc_buf text = {0};
    zc_plan *plan = NULL;
    const char *const unknown[] = {"f9"};
    (void)state;
    large_exp(&text);
    fill(&x, 1);
    zc_compile_params p = {
        .size = sizeof p, .precision = "auto", .samples = x.views, .sample_count = 1};
    const double wrong[] = {0, -1, NAN, INFINITY};
    for (size_t i = 0; i < ZC_COUNTOF(wrong); i++) {
        p.max_error = wrong[i];
        assert_int_equal(compile(text.data, &p, &plan, NULL), ZC_ERR_ARG);
    }
    p.max_error = 1e-2;
    p.allow = unknown;
    p.allow_count = 1;
    assert_int_equal(compile(text.data, &p, &plan, NULL), ZC_ERR_ARG);
    p.allow_count = 0;
    p.sparsify = "3:4";
    assert_int_equal(compile(text.data, &p, &plan, NULL), ZC_ERR_ARG);
    p.sparsify = "2:4";
    p.precision = "f16"; /* no bound */
    assert_int_equal(compile(text.data, &p, &plan, NULL), ZC_ERR_ARG);
    p.sparsify = NULL;
    p.precision = "auto";
    p.sample_count = 0;
    assert_int_equal(compile(text.data, &p, &plan, NULL), ZC_ERR_ARG);
    zc_buf_fini(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_bad_part),
        cmocka_unit_test(test_bounds_are_kept),
        cmocka_unit_test(test_fp8_becomes_f16),
        cmocka_unit_test(test_int4_becomes_w8),
        cmocka_unit_test(test_sparse_becomes_f16),
        cmocka_unit_test(test_outputs_have_codes),
        cmocka_unit_test(test_groups_have_to_divide),
        cmocka_unit_test(test_overflow_becomes_bf16),
        cmocka_unit_test(test_front),
        cmocka_unit_test(test_where_int4_is_faster),
        cmocka_unit_test(test_where_sparse_is_faster),
        cmocka_unit_test(test_where_int8_is_faster),
        cmocka_unit_test(test_where_int8_convolutions_are_faster),
        cmocka_unit_test(test_convolutions_of_bytes_by_regions),
        cmocka_unit_test(test_remaining_convolutions_of_bytes),
        cmocka_unit_test(test_search_of_convolutions_of_bytes),
        cmocka_unit_test(test_near_values),
        cmocka_unit_test(test_large_exp),
        cmocka_unit_test(test_large_values),
        cmocka_unit_test(test_tf32),
        cmocka_unit_test(test_fp8),
        cmocka_unit_test(test_fp8_convolutions),
        cmocka_unit_test(test_int8_convolutions),
        cmocka_unit_test(test_int8_products),
        cmocka_unit_test(test_codes),
        cmocka_unit_test(test_int8_needs_a_span),
        cmocka_unit_test(test_spans),
        cmocka_unit_test(test_nothing_is_faster_on_the_cpu),
        cmocka_unit_test(test_warnings_are_told_once),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
