/* Random graphs: with all passes and the built-in rules against the reference kernels without.
 *
 * usage: random FIRST COUNT     graphs of these seeds
 *        random --print SEED    what is compared of that seed */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "random/graph.h"
#include "support/on_off.h"

/* ---- growing ---- */

static void add_input(growing *m, zc_dtype dtype, int rank, const zc_dim *dims)
{
    zc_type t = {.dtype = dtype, .rank = rank};
    memcpy(t.dims, dims, (size_t)rank * sizeof *dims);
    zc_vid v = zc_graph_value(m->g, NULL, ZC_VALUE_PARAM, &t);
    m->failed |= !v || !ZC_VEC_PUSH(&m->g->top.params, v);
    keep(m, v);
}

static zc_dim size_of(growing *m, const char *symbol, int64_t fixed)
{
    return m->is_symbolic ? zc_dim_input(&m->g->dims, symbol) : zc_dim_const(fixed);
}

/* Rows of sequences, some more of their shape, sometimes one alone and pictures. */
static void add_inputs(growing *m)
{
    zc_dim n = size_of(m, "n", 2), s = size_of(m, "s", 1 + (int64_t)below(m, 5));
    zc_dim width = one_in(m, 6) ? size_of(m, "w", 6) : zc_dim_const(one_in(m, 2) ? 8 : 4);
    zc_dim rows[] = {n, s, width};
    add_input(m, m->real, 3, rows);
    if (one_in(m, 2)) add_input(m, m->real, 3, rows);
    if (one_in(m, 3)) add_input(m, m->real, 2, rows + 1);
    zc_dim picture[] = {n, zc_dim_const(one_in(m, 2) ? 4 : 3), zc_dim_const(6), zc_dim_const(6)};
    if (one_in(m, 2)) add_input(m, m->real, 4, picture);
}

static bool is_output(const zc_graph *g, zc_vid v)
{
    for (size_t i = 0; i < g->top.outputs.len; i++)
        if (g->top.outputs.data[i] == v) return true;
    return false;
}

/* What nobody reads, and now and then what somebody does. */
static void add_outputs(growing *m)
{
    uint32_t *uses = zc_graph_uses(m->g);
    m->failed |= !uses;
    for (size_t i = m->npool; uses && i-- > m->g->top.params.len;) {
        zc_vid v = m->pool[i];
        if ((uses[v] && !one_in(m, 6)) || is_output(m->g, v)) continue;
        if (m->g->top.outputs.len == ON_OFF_IO_MAX) break;
        m->failed |= !ZC_VEC_PUSH(&m->g->top.outputs, v);
    }
    free(uses);
}

static bool name_all(zc_graph *g)
{
    const char ***lists[] = {&g->input_names, &g->output_names};
    size_t counts[] = {g->top.params.len, g->top.outputs.len};
    for (size_t k = 0; k < 2; k++) {
        *lists[k] = zc_arena_alloc(&g->arena, counts[k], sizeof **lists[k]);
        for (size_t i = 0; *lists[k] && i < counts[k]; i++) {
            char name[32];
            snprintf(name, sizeof name, "%c%zu", k ? 'y' : 'x', i);
            (*lists[k])[i] = zc_arena_strdup(&g->arena, name);
        }
        if (!*lists[k]) return false;
    }
    return true;
}

/* The graph of a seed as text, and its real type. false: no memory. */
static bool grow(uint64_t seed, zc_buf *text, zc_dtype *real)
{
    growing m = {.state = seed * 0x9E3779B97F4A7C15u + 1};
    if (zc_graph_create("random", &m.g, NULL) != ZC_OK) return false;
    for (int i = 0; i < 8; i++) below(&m, 2);
    m.real = *real = one_in(&m, 5) ? ZC_F16 : one_in(&m, 6) ? ZC_F64 : ZC_F32;
    m.is_symbolic = one_in(&m, 2);
    add_inputs(&m);
    for (uint64_t n = 6 + below(&m, 30); n > 0; n--) add_motif(&m);
    add_outputs(&m);
    bool ok = !m.failed && name_all(m.g);
    if (ok && m.g->top.outputs.len) zc_graph_print(m.g, true, text);
    zc_graph_destroy(&m.g);
    return ok && !text->failed;
}

/* ---- comparing ---- */

typedef struct tally {
    size_t graphs, runs, outputs, failed;
    double worst;
} tally;

static bool check(uint64_t seed, const zc_rules *rules, tally *t)
{
    static const int64_t sizes[] = {3, 1, 6};
    zc_buf text = {0};
    char name[64];
    on_off s = {.name = name, .rules = rules};
    snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
    bool ok = grow(seed, &text, &s.real), any = false;
    s.text = text.data;
    t->graphs += ok && text.len;
    on_off_run run = {.sized = true};
    for (size_t i = 0; ok && text.len && i < ZC_COUNTOF(sizes) && run.sized; i++) {
        ok = on_off_check(&s, sizes[i], &run, &t->outputs, &t->worst);
        any |= run.ran;
    }
    t->runs += any;
    t->failed += !ok;
    zc_buf_fini(&text);
    return ok;
}

static int print(uint64_t seed)
{
    zc_buf text = {0};
    zc_dtype real;
    bool ok = grow(seed, &text, &real);
    if (ok && text.len) fputs(text.data, stdout);
    zc_buf_fini(&text);
    return !ok;
}

int main(int argc, char **argv)
{
    tally t = {0};
    zc_rules *rules = NULL;
    if (argc == 3 && strcmp(argv[1], "--print") == 0) return print(strtoull(argv[2], NULL, 10));
    if (argc != 3 || zc_rules_create(&rules, NULL) != ZC_OK ||
        zc_rules_add_builtin(rules, NULL) != ZC_OK) {
        fprintf(stderr, "usage: random FIRST COUNT, or random --print SEED\n");
        zc_rules_destroy(&rules);
        return 2;
    }
    uint64_t first = strtoull(argv[1], NULL, 10), count = strtoull(argv[2], NULL, 10);
    for (uint64_t i = 0; i < count; i++) {
        check(first + i, rules, &t);
        fflush(stdout);
    }
    printf(
        "%zu graphs, %zu ran, %zu outputs, worst error %.3g of the greatest element, %zu failed\n",
        t.graphs, t.runs, t.outputs, t.worst, t.failed);
    zc_rules_destroy(&rules);
    return t.failed || t.runs < t.graphs / 10 * 9 || t.graphs < count / 10 * 9;
}
