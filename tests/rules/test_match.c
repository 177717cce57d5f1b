/* The matcher against a plain one, on random graphs and random rules. The plain one tries every
 * assignment of the graph's nodes to the pattern's operations, optional ones also absent, and looks
 * at the whole at the end; a repetition is as many rules as it has numbers. ZC_MATCH_ROUNDS and
 * ZC_MATCH_SEED in the environment give longer and other searches. */
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

#define ROUNDS  20000
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

typedef struct text_stmt {
    const char *op;
    char operand[2][16]; /* the second one empty: there is none */
    bool is_shared, is_optional;
    int least, most; /* repetitions */
    bool is_listed;  /* the operand beside the one that goes on is collected */
    int goes_on;     /* the operand that does */
} text_stmt;

typedef struct text_rule {
    text_stmt s[OPS_MAX];
    int n, repeated; /* statement, or -1 */
} text_rule;

static void pick_operand(char *to, int stmts)
{
    zc_buf text = {0};
    put_operand(&text, stmts);
    snprintf(to, 16, "%s", text.data);
    zc_buf_fini(&text);
}

/* The last statement is the root and the only result. */
static text_rule make_rule(void)
{
    text_rule r = {.n = 1 + below(OPS_MAX), .repeated = -1};
    if (below(2)) {
        if (r.n == OPS_MAX) r.n--;
        r.repeated = below(r.n);
    }
    for (int i = 0; i < r.n; i++) {
        text_stmt *s = &r.s[i];
        bool is_unary = below(2), is_last = i == r.n - 1;
        s->op = (is_unary ? unary : binary)[below(2)];
        s->is_shared = !is_last && below(4) == 0;
        pick_operand(s->operand[0], i);
        if (!is_unary) pick_operand(s->operand[1], i);
        s->least = s->most = 1;
        if (i != r.repeated) {
            s->is_optional = !is_last && below(5) == 0;
            continue;
        }
        s->least = 1 + below(2);
        s->most = 2 + below(2);
        s->is_listed = !is_unary && below(4);
        s->goes_on = s->is_listed && below(2);
    }
    return r;
}

/* Statement i as it is written, or (times > 0) as so many without repetition. */
static void put_stmt(zc_buf *out, const text_rule *r, int i, int times)
{
    const text_stmt *s = &r->s[i];
    for (int k = times ? times - 1 : 0; k >= 0; k--) {
        if (k)
            zc_buf_printf(out, "r%d = %s(", k, s->op);
        else
            zc_buf_printf(out, "s%d%s = %s(", i, s->is_shared ? ": shared" : "", s->op);
        for (int a = 0; a < 2 && *s->operand[a]; a++) {
            if (a) zc_buf_puts(out, ", ");
            if (a == s->goes_on && k + 1 < times)
                zc_buf_printf(out, "r%d", k + 1);
            else if (a != s->goes_on && s->is_listed)
                zc_buf_printf(out, times ? "_y%d" : "_y...", k);
            else
                zc_buf_puts(out, s->operand[a]);
        }
        zc_buf_puts(out, ")");
        if (!times && s->most > 1) zc_buf_printf(out, "*%d..%d", s->least, s->most);
        zc_buf_puts(out, s->is_optional ? "?; " : "; ");
    }
}

/* The rule with the repetition (times 0), or with that number of operations in its place. */
static void put_rule(zc_buf *out, const text_rule *r, int times)
{
    zc_buf_puts(out, "rule r { match ");
    for (int i = 0; i < r->n; i++) put_stmt(out, r, i, i == r->repeated ? times : 0);
    zc_buf_printf(out, "emit s%d = Exp(1.0); }", r->n - 1);
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

/* What stands between repetitions is used by one operation alone. */
static bool has_one_user(const plain *p, int stmt, zc_vid v)
{
    if (*zc_rl_pat_at(&zc_rl_stmt_at(&p->rule->match, stmt)->outs, 0)->text != 'r') return true;
    for (zc_nid n = 1; n < p->g->nodes.len; n++) {
        const zc_node *node = zc_node_at(p->g, n);
        uint32_t uses = 0;
        for (int i = 0; i < node->nin; i++) uses += node->in[i] == v;
        if (uses == p->uses[v]) return true;
    }
    return false;
}

static bool closed(const plain *p)
{
    for (int i = 0; i < p->rule->match.n - 1; i++) {
        zc_vid v = p->node[i] ? zc_node_at(p->g, p->node[i])->out[0] : 0;
        if (v && !has_one_user(p, i, v)) return false;
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
        if (zc_node_at(p->g, n)->op != pattern(p, stmt)->op) continue;
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

/* The same rule with each number of repetitions, without repetition. */
typedef struct variants {
    zc_rules *r[4];
    int n;
} variants;

/* By the plain matcher: does any variant match at node n? */
static bool any_matches(const variants *v, const zc_graph *g, const uint32_t *uses, zc_nid n)
{
    for (int i = 0; i < v->n; i++) {
        plain p = {.rule = v->r[i]->rules.data[0], .g = g, .uses = uses};
        p.node[p.rule->match.n - 1] = n;
        if (assign(&p, 0)) return true;
    }
    return false;
}

static void compare(const zc_rules *r, const variants *plainly, zc_graph *g, const char *rule,
                    const char *model, size_t *matches)
{
    zc_index x;
    zc_rl_matcher *m = calloc(1, sizeof *m);
    static const zc_rule_target cpu = {.cuda = false};
    uint32_t *uses = zc_graph_uses(g);
    zc_buf before = {0}, after = {0};
    assert_non_null(m);
    zc_graph_print(g, true, &before);
    assert_true(uses && zc_index_init(&x, g));
    zc_arena_init(&m->scratch, 0);
    m->x = &x;
    m->target = &cpu;
    for (zc_nid n = 1; n < g->nodes.len; n++) {
        bool got = zc_rl_match_at(m, r->rules.data[0], n);
        bool want = any_matches(plainly, g, uses, n);
        if (got != want) fail_msg("node %u: got %d, need %d\n%s\n%s", n, got, want, rule, model);
        *matches += got;
    }
    /* Matching changed nothing. */
    zc_graph_print(g, true, &after);
    assert_string_equal(before.data, after.data);
    zc_buf_fini(&before);
    zc_buf_fini(&after);
    zc_arena_fini(&m->scratch);
    zc_index_fini(&x);
    free(uses);
    free(m);
}

/* A statement that is found among users has a fixed operand to begin with; whether it may be absent
 * then depends on the order of search, which the plain matcher has none of. */
static bool decided(const zc_rl_rule *rule)
{
    bool optional = false;
    for (int i = 0; i < rule->nnodes; i++)
        optional |= rule->nodes[i]->optional && !rule->nodes[i]->is_inner;
    return !optional || !rule->nextra;
}

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* NULL: such rules are refused, as when a statement shares nothing with the others. */
static zc_rules *load(const text_rule *rule, int times, zc_buf *text)
{
    zc_rules *r = NULL;
    put_rule(text, rule, times);
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    if (zc_rules_add_text(r, "r", text->data, text->len, NULL) != ZC_OK) zc_rules_destroy(&r);
    return r;
}

static void load_variants(const text_rule *rule, variants *out)
{
    int least = 0, most = 0;
    if (rule->repeated >= 0) least = rule->s[rule->repeated].least;
    if (rule->repeated >= 0) most = rule->s[rule->repeated].most;
    for (int times = least; times <= most; times++) {
        zc_buf text = {0};
        zc_rules *r = load(rule, times, &text);
        if (r) out->r[out->n++] = r;
        zc_buf_fini(&text);
    }
}

static bool one_round(size_t *matches, size_t *repeated)
{
    zc_buf text = {0}, model = {0};
    zc_graph *g = NULL;
    zc_diag *diag = zc_diag_create();
    variants plainly = {.n = 0};
    text_rule rule = make_rule();
    make_graph(&model);
    zc_rules *r = load(&rule, 0, &text);
    if (zc_graph_parse(model.data, model.len, &g, diag) != ZC_OK)
        fail_msg("%s", zc_diag_text(diag, 0));
    bool ok = r != NULL;
    if (ok) load_variants(&rule, &plainly);
    size_t before = *matches;
    if (ok && decided(r->rules.data[0])) compare(r, &plainly, g, text.data, model.data, matches);
    if (rule.repeated >= 0) *repeated += *matches - before;
    for (int i = 0; i < plainly.n; i++) zc_rules_destroy(&plainly.r[i]);
    zc_graph_destroy(&g);
    zc_rules_destroy(&r);
    zc_diag_destroy(&diag);
    zc_buf_fini(&text);
    zc_buf_fini(&model);
    return ok;
}

static void test_against_plain(void **state)
{
    size_t rounds = 0, matches = 0, repeated = 0, most = setting("ZC_MATCH_ROUNDS", ROUNDS);
    for (seed = setting("ZC_MATCH_SEED", 1); rounds < most;)
        rounds += one_round(&matches, &repeated);
    print_message("%zu rules and graphs, %zu matches, %zu of them of repetitions\n", rounds,
                  matches, repeated);
    assert_true(matches > most / 2);
    assert_true(repeated > most / 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
