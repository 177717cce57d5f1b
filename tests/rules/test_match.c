/* The matcher against a plain one, on random graphs and random rules. The plain one tries every
 * assignment of the graph's nodes to the pattern's operations, optional ones also absent, and looks
 * at the whole at the end. ZC_MATCH_ROUNDS and ZC_MATCH_SEED in the environment give longer and
 * other searches. */
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
        zc_buf_puts(out, i < n - 1 && below(5) == 0 ? ")?; " : "); ");
    }
    zc_buf_printf(out, "emit s%d = Exp(1.0); }", n - 1);
    return n;
}

/* ---- the plain matcher ---- */

typedef struct plain {
    const zc_rl_rule *rule;
    const zc_graph *g;
    const uint32_t *uses;
    zc_nid node[ZC_RL_STMTS_MAX]; /* by statement; 0: absent */
    bool needed[ZC_RL_STMTS_MAX];
    zc_vid value[ZC_RL_VARS_MAX];
    bool swapped[ZC_RL_STMTS_MAX];
} plain;

static const zc_rl_pat *pattern(const plain *p, int stmt)
{
    return zc_rl_stmt_at(&p->rule->match, stmt)->pat;
}

/* What is there needs its operands, an absent optional operation the one it passes on. */
static bool need(plain *p, int i)
{
    const zc_rl_pat *pat = pattern(p, i);
    p->needed[i] = true;
    if (!p->node[i] && !pat->optional) return false;
    for (int k = 0; k < pat->args.n; k++) {
        int stmt = p->rule->vars[zc_rl_pat_at(&pat->args, k)->var].stmt;
        if (stmt >= 0 && (p->node[i] || k == pat->through) && !need(p, stmt)) return false;
    }
    return true;
}

/* Is what is needed there, and nothing else? */
static bool complete(plain *p)
{
    memset(p->needed, 0, sizeof p->needed);
    if (!need(p, p->rule->match.n - 1)) return false;
    for (int i = 0; i < p->rule->nextra; i++)
        if (!need(p, p->rule->extra[i].stmt)) return false;
    for (int i = 0; i < p->rule->match.n; i++)
        if (p->node[i] && !p->needed[i]) return false;
    return true;
}

/* Gives variable a value; false: it has another. */
static bool set(zc_vid *value, int var, zc_vid v, bool *changed)
{
    if (value[var]) return !v || value[var] == v;
    value[var] = v;
    *changed |= v != 0;
    return true;
}

/* What one statement says of the values. */
static bool fits(const plain *p, int i, zc_vid *value, bool *changed)
{
    const zc_rl_pat *pat = pattern(p, i);
    if (!p->node[i]) {
        int through = zc_rl_pat_at(&pat->args, pat->through)->var, out = pat->outs[0];
        return set(value, out, value[through], changed) && set(value, through, value[out], changed);
    }
    const zc_node *n = zc_node_at(p->g, p->node[i]);
    if (n->op != pat->op || n->nin != pat->args.n) return false;
    for (int k = 0; k < pat->args.n; k++)
        if (!set(value, zc_rl_pat_at(&pat->args, k)->var, n->in[p->swapped[i] ? 1 - k : k],
                 changed))
            return false;
    return set(value, pat->outs[0], n->out[0], changed);
}

/* Are the names consistent under the assignment? */
static bool consistent(plain *p)
{
    memset(p->value, 0, sizeof p->value);
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < p->rule->match.n; i++)
            if (p->needed[i] && !fits(p, i, p->value, &changed)) return false;
    }
    return true;
}

/* An absent operation's name stands for what it passes on, which then is shared too. */
static bool is_shared(const plain *p, zc_vid v)
{
    for (int i = 0; i < p->rule->nvars; i++)
        if ((p->rule->vars[i].flags & ZC_RC_SHARED) && p->value[i] == v) return true;
    return false;
}

static bool closed(const plain *p)
{
    for (int i = 0; i < p->rule->match.n - 1; i++) {
        zc_vid v = p->node[i] ? zc_node_at(p->g, p->node[i])->out[0] : 0;
        uint32_t inner = 0;
        if (!v || is_shared(p, v)) continue;
        for (int k = 0; k < p->rule->match.n; k++) {
            const zc_node *n = zc_node_at(p->g, p->node[k]);
            for (int j = 0; p->node[k] && j < n->nin; j++) inner += n->in[j] == v;
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
    if (stmt > last) return complete(p) && consistent(p) && closed(p);
    for (zc_nid n = 1; n < p->g->nodes.len; n++) {
        if (stmt == last && n != p->node[last]) continue;
        if (is_used_before(p, stmt, n) || (stmt < last && n == p->node[last])) continue;
        p->node[stmt] = n;
        for (int s = 0; s <= (zc_node_at(p->g, n)->op == ZC_OP_Add); s++) {
            p->swapped[stmt] = s;
            if (assign(p, stmt + 1)) return true;
        }
    }
    if (stmt == last) return false;
    p->node[stmt] = 0;
    return assign(p, stmt + 1);
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

/* A statement that is found among users has a fixed operand to begin with; whether it may be absent
 * then depends on the order of search, which the plain matcher has none of. */
static bool decided(const zc_rl_rule *rule)
{
    bool optional = false;
    for (int i = 0; i < rule->nnodes; i++) optional |= rule->nodes[i]->optional;
    return !optional || !rule->nextra;
}

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
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
    if (ok && decided(r->rules.data[0])) compare(r, g, rule.data, model.data, matches);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
    zc_diag_destroy(&diag);
    zc_buf_fini(&rule);
    zc_buf_fini(&model);
    return ok;
}

static void test_against_plain(void **state)
{
    size_t rounds = 0, matches = 0, most = setting("ZC_MATCH_ROUNDS", ROUNDS);
    for (seed = setting("ZC_MATCH_SEED", 1); rounds < most;) rounds += one_round(&matches);
    print_message("%zu rules and graphs, %zu matches\n", rounds, matches);
    assert_true(matches > most / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
