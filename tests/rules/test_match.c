/* The matcher against a plain one, on random graphs and random rules. The plain one tries every
 * assignment of the graph's nodes to the pattern's operations, and looks at the whole at the end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rules/check.h"
#include "rules/match.h"

#define ROUNDS  4000
#define NODES   9
#define OPS_MAX 4

static uint64_t seed;
static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static const char *const unary[] = {"Neg", "Abs"}, *const binary[] = {"Add", "Sub"};

/* ---- random text ---- */

static void make_graph(zc_buf *out)
{
    zc_buf_puts(out, "graph \"g\" {\n  input %v0: f32[4] as \"a\"\n  input %v1: f32[4] as \"b\"\n");
    for (int i = 2; i < NODES + 2; i++) {
        if (below(2))
            zc_buf_printf(out, "  %%v%d: f32[4] = %s(%%v%d) @ \"n\"\n", i, unary[below(2)],
                          below(i));
        else
            zc_buf_printf(out, "  %%v%d: f32[4] = %s(%%v%d, %%v%d) @ \"n\"\n", i, binary[below(2)],
                          below(i), below(i));
    }
    for (int i = NODES - 1; i < NODES + 2; i++)
        zc_buf_printf(out, "  output %%v%d as \"o%d\"\n", i, i);
    zc_buf_puts(out, "}\n");
}

/* An operand: an earlier statement's result, or a leaf of three. */
static void put_operand(zc_buf *out, int stmts)
{
    if (stmts && below(3))
        zc_buf_printf(out, "s%d", below(stmts));
    else
        zc_buf_printf(out, "_x%d", below(3));
}

/* "s0 = ...; s1 = ...;" of plain operations; the last one is the root and the only result. */
static int make_rule(zc_buf *out)
{
    int n = 1 + below(OPS_MAX);
    zc_buf_puts(out, "rule r { match ");
    for (int i = 0; i < n; i++) {
        bool shared = i < n - 1 && below(4) == 0, is_unary = below(2);
        zc_buf_printf(out, "s%d%s = %s(", i, shared ? ": shared" : "",
                      (is_unary ? unary : binary)[below(2)]);
        put_operand(out, i);
        if (!is_unary) zc_buf_puts(out, ", ");
        if (!is_unary) put_operand(out, i);
        zc_buf_puts(out, "); ");
    }
    zc_buf_printf(out, "emit s%d = Exp(1.0); }", n - 1);
    return n;
}

/* ---- the plain matcher ---- */

typedef struct plain {
    const zc_rl_rule *rule;
    const zc_graph *g;
    const uint32_t *uses;
    zc_nid node[ZC_RL_STMTS_MAX]; /* by statement */
    bool swapped[ZC_RL_STMTS_MAX];
} plain;

static const zc_rl_pat *pattern(const plain *p, int stmt)
{
    return zc_rl_stmt_at(&p->rule->match, stmt)->pat;
}

/* Are the names consistent under the assignment? */
static bool consistent(const plain *p)
{
    zc_vid value[ZC_RL_VARS_MAX] = {0};
    for (int i = 0; i < p->rule->match.n; i++)
        value[pattern(p, i)->outs[0]] = zc_node_at(p->g, p->node[i])->out[0];
    for (int i = 0; i < p->rule->match.n; i++) {
        const zc_rl_pat *pat = pattern(p, i);
        const zc_node *n = zc_node_at(p->g, p->node[i]);
        if (n->op != pat->op || n->nin != pat->args.n) return false;
        for (int k = 0; k < pat->args.n; k++) {
            int var = zc_rl_pat_at(&pat->args, k)->var;
            zc_vid v = n->in[p->swapped[i] ? 1 - k : k];
            if (value[var] && value[var] != v) return false;
            value[var] = v;
        }
    }
    return true;
}

static bool closed(const plain *p)
{
    for (int i = 0; i < p->rule->match.n - 1; i++) {
        zc_vid v = zc_node_at(p->g, p->node[i])->out[0];
        uint32_t inner = 0;
        if (p->rule->vars[pattern(p, i)->outs[0]].flags & ZC_RC_SHARED) continue;
        for (int k = 0; k < p->rule->match.n; k++) {
            const zc_node *n = zc_node_at(p->g, p->node[k]);
            for (int j = 0; j < n->nin; j++) inner += n->in[j] == v;
        }
        if (inner != p->uses[v]) return false;
    }
    return true;
}

static bool is_used_before(const plain *p, int stmt, zc_nid n)
{
    for (int i = 0; i < stmt; i++)
        if (p->node[i] == n) return true;
    return false;
}

/* Assigns statements from `stmt` on; the last one is given. */
static bool assign(plain *p, int stmt)
{
    int last = p->rule->match.n - 1;
    if (stmt > last) return consistent(p) && closed(p);
    for (zc_nid n = 1; n < p->g->nodes.len; n++) {
        if (stmt == last && n != p->node[last]) continue;
        if (is_used_before(p, stmt, n) || (stmt < last && n == p->node[last])) continue;
        p->node[stmt] = n;
        for (int s = 0; s <= (zc_node_at(p->g, n)->op == ZC_OP_Add); s++) {
            p->swapped[stmt] = s;
            if (assign(p, stmt + 1)) return true;
        }
    }
    return false;
}

/* ---- both ---- */

static void compare(const zc_rules *r, zc_graph *g, const char *rule, const char *model,
                    size_t *matches)
{
    zc_rl_index x;
    zc_rl_matcher *m = calloc(1, sizeof *m);
    static const zc_rule_target cpu = {.cuda = false};
    uint32_t *uses = zc_graph_uses(g);
    assert_non_null(m);
    assert_true(uses && zc_rl_index_init(&x, g));
    zc_arena_init(&m->scratch, 0);
    m->x = &x;
    m->target = &cpu;
    for (zc_nid n = 1; n < g->nodes.len; n++) {
        plain p = {.rule = r->rules.data[0], .g = g, .uses = uses};
        p.node[p.rule->match.n - 1] = n;
        bool got = zc_rl_match_at(m, r->rules.data[0], n), want = assign(&p, 0);
        if (got != want) fail_msg("node %u: got %d, need %d\n%s\n%s", n, got, want, rule, model);
        *matches += got;
    }
    zc_arena_fini(&m->scratch);
    zc_rl_index_fini(&x);
    free(uses);
    free(m);
}

static bool one_round(size_t *matches)
{
    zc_buf rule = {0}, model = {0};
    zc_rules *r = NULL;
    zc_graph *g = NULL;
    zc_diag *diag = zc_diag_create();
    make_rule(&rule);
    make_graph(&model);
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    /* A statement may share nothing with the others: such rules are refused. */
    bool ok = zc_rules_add_text(r, "r", rule.data, rule.len, NULL) == ZC_OK;
    if (zc_graph_parse(model.data, model.len, &g, diag) != ZC_OK)
        fail_msg("%s", zc_diag_text(diag, 0));
    if (ok) compare(r, g, rule.data, model.data, matches);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
    zc_diag_destroy(&diag);
    zc_buf_fini(&rule);
    zc_buf_fini(&model);
    return ok;
}

static void test_against_plain(void **state)
{
    size_t rounds = 0, matches = 0;
    for (seed = 1; rounds < ROUNDS;) rounds += one_round(&matches);
    print_message("%zu rules and graphs, %zu matches\n", rounds, matches);
    assert_true(matches > ROUNDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
