/* The matcher against a plain one, on random graphs and random rules. The plain one tries every
 * assignment of the graph's nodes to the pattern's operations, optional ones also absent, and looks
 * at the whole at the end. For it, what is repeated, has any number of operands or is a chain is
 * written out: a rule for each number and each shape. ZC_MATCH_ROUNDS and ZC_MATCH_SEED in the
 * environment give longer and other searches. */
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

#define ROUNDS       20000
#define NODES        9
#define OPS_MAX      4
#define MEMBERS_MAX  4 /* operands of one operation or chain */
#define VARIANTS_MAX 256

static uint64_t seed;
static int below(int n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int)((seed >> 33) % (uint64_t)n);
}

static const char *const unary[] = {"Neg", "Abs"}, *const binary[] = {"Add", "Sub"};

/* ---- random text ---- */

/* Any value before node i, or one of the newest. */
static int before(int i)
{
    return below(2) ? below(i) : i - 1 - below(2);
}

/* What is empty stays of one shape when it is joined. */
static void put_node(zc_buf *out, int i)
{
    int kind = below(6);
    zc_buf_printf(out, "  %%v%d: f32[0] = ", i);
    if (kind < 2)
        zc_buf_printf(out, "%s(%%v%d)", unary[below(2)], before(i));
    else if (kind < 5)
        zc_buf_printf(out, "%s(%%v%d, %%v%d)", binary[below(2)], before(i), before(i));
    else {
        zc_buf_printf(out, "Concat(%%v%d", before(i));
        for (int k = below(MEMBERS_MAX); k > 0; k--) zc_buf_printf(out, ", %%v%d", before(i));
        zc_buf_puts(out, ") {axis = 0}");
    }
    zc_buf_puts(out, " @ \"n\"\n");
}

/* An operand: an earlier statement's result, or a leaf of three. */
static void put_operand(zc_buf *out, int stmts)
{
    if (stmts && below(3))
        zc_buf_printf(out, "s%d", below(stmts));
    else
        zc_buf_printf(out, "_x%d", below(3));
}

/* What the plain matcher has no form for. */
typedef enum text_form {
    SINGLE,
    REPEATED, /* an operation: Add(x, _y...)*1..3 */
    GROUP,    /* a named pattern: G(x, _y...)*1..3 */
    JOINED,   /* Concat of operands of which runs are any number */
    CHAIN,    /* of additions, of three operands or with runs */
    LACKING,  /* Concat of operands that may be left out */
    FORMS
} text_form;

/* Operands of the last three: a name, _y..., Neg(_y...)... or _y? */
typedef enum text_item { ONE, RUN, RUN_OF_NEG, MAYBE } text_item;

typedef struct text_stmt {
    const char *op, *inner; /* inner: in the body of GROUP */
    char operand[3][16];    /* empty: there is none */
    bool is_shared, is_optional;
    int least, most;  /* repetitions */
    bool is_listed;   /* the operand beside the one that goes on is collected */
    int goes_on;      /* the operand that does */
    bool is_residual; /* GROUP: the operand stands in its body twice */
    text_item item[3];
    int items;
} text_stmt;

typedef struct text_rule {
    text_stmt s[OPS_MAX];
    int n, special; /* statement of that form, or -1 */
    text_form form;
} text_rule;

static void pick_operand(char *to, int stmts)
{
    zc_buf text = {0};
    put_operand(&text, stmts);
    snprintf(to, 16, "%s", text.data);
    zc_buf_fini(&text);
}

static void make_special(text_stmt *s, text_form form, int i)
{
    bool is_unary = !*s->operand[1], any = false;
    s->least = 1 + below(2);
    s->most = 2 + below(2);
    s->inner = unary[below(2)];
    s->is_residual = below(2);
    s->is_listed = form == REPEATED ? !is_unary && below(4) : !is_unary && !s->is_residual;
    s->goes_on = form == REPEATED && s->is_listed && below(2);
    if (form == GROUP && s->is_residual) s->op = binary[below(2)];
    if (form < JOINED) return;
    s->op = form == CHAIN ? "Add" : "Concat";
    s->items = form == CHAIN ? 2 + below(2) : 1 + below(3);
    for (int k = 0; k < s->items; k++) {
        s->item[k] = below(2) ? ONE : below(3) ? RUN : RUN_OF_NEG;
        any |= s->item[k] != ONE;
        pick_operand(s->operand[k], i);
    }
    for (int k = 0; form == LACKING && k < s->items; k++) s->item[k] = k ? MAYBE : ONE;
    /* Chains have as many shapes as the plain matcher may have rules for. */
    for (int k = 1; form == CHAIN && k < s->items; k++)
        if (s->item[0] != ONE) s->item[k] = ONE;
    if (form == CHAIN && !any) s->items = 3;
    if (form == CHAIN && s->items == 3 && s->item[1] != ONE) s->item[2] = ONE;
    if (form == CHAIN && s->items == 3 && !*s->operand[2]) pick_operand(s->operand[2], i);
}

/* The last statement is the root and the only result. */
static text_rule make_rule(void)
{
    text_rule r = {.n = 1 + below(OPS_MAX), .special = -1};
    if (below(4)) {
        if (r.n == OPS_MAX) r.n--;
        r.form = (text_form)(REPEATED + below(FORMS - 1));
        if (r.form == GROUP) r.n = 1 + below(2);
        r.special = below(r.n);
    }
    for (int i = 0; i < r.n; i++) {
        text_stmt *s = &r.s[i];
        bool is_unary = below(2), is_last = i == r.n - 1;
        s->op = (is_unary ? unary : binary)[below(2)];
        s->is_shared = !is_last && below(4) == 0;
        pick_operand(s->operand[0], i);
        if (!is_unary) pick_operand(s->operand[1], i);
        s->least = s->most = 1;
        if (i == r.special)
            make_special(s, r.form, i);
        else
            s->is_optional = !is_last && below(5) == 0;
    }
    return r;
}

/* ---- special statements as they are written ---- */

static void put_repeated(zc_buf *out, const text_stmt *s)
{
    zc_buf_printf(out, "%s(", s->op);
    for (int a = 0; a < 2 && *s->operand[a]; a++)
        zc_buf_printf(out, "%s%s", a ? ", " : "",
                      a != s->goes_on && s->is_listed ? "_y..." : s->operand[a]);
    zc_buf_printf(out, ")*%d..%d", s->least, s->most);
}

/* The body of the named pattern; x, y and the results are what the caller calls them. */
static void put_body(zc_buf *out, const text_stmt *s, const char *x, const char *y, const char *h,
                     const char *z)
{
    bool has_two = *s->operand[1] || s->is_residual;
    zc_buf_printf(out, "%s = %s(%s); %s = %s(%s", h, s->inner, x, z, s->op, s->is_residual ? x : h);
    if (has_two) zc_buf_printf(out, ", %s", s->is_residual ? h : y);
    zc_buf_puts(out, "); ");
}

static void put_items(zc_buf *out, const text_stmt *s)
{
    static const char names[] = "yzw";
    zc_buf_printf(out, "%s(", s->op);
    for (int k = 0; k < s->items; k++) {
        if (k) zc_buf_puts(out, ", ");
        if (s->item[k] == ONE)
            zc_buf_puts(out, s->operand[k]);
        else
            zc_buf_printf(out,
                          s->item[k] == RUN     ? "_%c..."
                          : s->item[k] == MAYBE ? "_%c?"
                                                : "Neg(_%c...)...",
                          names[k]);
    }
    zc_buf_puts(out, strcmp(s->op, "Concat") == 0 ? ") { axis = 0 }" : ")");
}

static void put_special(zc_buf *out, const text_rule *r, const text_stmt *s)
{
    if (r->form == REPEATED)
        put_repeated(out, s);
    else if (r->form == GROUP)
        zc_buf_printf(out, "G(%s, %s)*%d..%d", s->operand[0],
                      s->is_listed     ? "_y..."
                      : *s->operand[1] ? s->operand[1]
                                       : "_y",
                      s->least, s->most);
    else
        put_items(out, s);
}

/* ---- and written out ---- */

typedef struct texts {
    zc_buf v[VARIANTS_MAX];
    int n;
} texts;

static zc_buf *next_text(texts *t)
{
    assert_true(t->n < VARIANTS_MAX);
    return &t->v[t->n++];
}

/* Names for what a written-out statement computes: the last one is the statement's. */
static void name_of(char *to, const char *letter, int k, int stmt, bool is_shared)
{
    if (k)
        snprintf(to, 24, "%s%d", letter, k);
    else
        snprintf(to, 24, "s%d%s", stmt, is_shared ? ": shared" : "");
}

static void write_repeated(zc_buf *out, const text_stmt *s, int stmt, int times)
{
    for (int k = times - 1; k >= 0; k--) {
        char name[24];
        name_of(name, "r", k, stmt, s->is_shared);
        zc_buf_printf(out, "%s = %s(", name, s->op);
        for (int a = 0; a < 2 && *s->operand[a]; a++) {
            if (a) zc_buf_puts(out, ", ");
            if (a == s->goes_on && k + 1 < times)
                zc_buf_printf(out, "r%d", k + 1);
            else if (a != s->goes_on && s->is_listed)
                zc_buf_printf(out, "_y%d", k);
            else
                zc_buf_puts(out, s->operand[a]);
        }
        zc_buf_puts(out, "); ");
    }
}

static void write_group(zc_buf *out, const text_stmt *s, int stmt, int times)
{
    for (int k = times - 1; k >= 0; k--) {
        char x[24], y[24], h[24], z[24];
        name_of(z, "g", k, stmt, s->is_shared);
        snprintf(h, sizeof h, "h%d", k);
        snprintf(x, sizeof x, "g%d", k + 1);
        snprintf(y, sizeof y, "_y%d", k);
        if (!s->is_listed) snprintf(y, sizeof y, "%s", s->operand[1]);
        put_body(out, s, k + 1 < times ? x : s->operand[0], y, h, z);
    }
}

/* Leaves of the last three forms by name, with count[k] of a run. Operations of a run are e1, ...
 */
static int write_leaves(zc_buf *out, const text_stmt *s, const int *count, char (*leaf)[24])
{
    int n = 0;
    for (int k = 0; k < s->items; k++)
        for (int i = 0; i < (s->item[k] == ONE ? 1 : count[k]); i++, n++) {
            if (s->item[k] == RUN || s->item[k] == MAYBE) snprintf(leaf[n], 24, "_l%d%d", k, i);
            if (s->item[k] == ONE) snprintf(leaf[n], 24, "%s", s->operand[k]);
            if (s->item[k] != RUN_OF_NEG) continue;
            snprintf(leaf[n], 24, "e%d%d", k, i);
            zc_buf_printf(out, "%s = Neg(_l%d%d); ", leaf[n], k, i);
        }
    return n;
}

static void write_joined(zc_buf *out, const text_stmt *s, int stmt, int n, char (*leaf)[24])
{
    zc_buf_printf(out, "s%d%s = Concat(", stmt, s->is_shared ? ": shared" : "");
    for (int i = 0; i < n; i++) zc_buf_printf(out, "%s%s", i ? ", " : "", leaf[i]);
    zc_buf_puts(out, ") { axis = 0 }; ");
}

/* Every tree of additions over the leaves: each pair is joined first, and then the rest. */
static void write_chains(texts *t, const zc_buf *so_far, const text_stmt *s, int stmt, int n,
                         char (*leaf)[24])
{
    for (int i = 0; i < n; i++)
        for (int k = i + 1; k < n; k++) {
            char other[MEMBERS_MAX + 1][24], name[24];
            zc_buf text = {0};
            int left = 0;
            name_of(name, "c", n - 2, stmt, s->is_shared);
            zc_buf_printf(&text, "%s%s = Add(%s, %s); ", so_far->data ? so_far->data : "", name,
                          leaf[i], leaf[k]);
            for (int l = 0; l < n; l++)
                if (l != i && l != k) memcpy(other[left++], leaf[l], sizeof *other);
            memcpy(other[left++], name, sizeof *other);
            if (n > 2)
                write_chains(t, &text, s, stmt, left, other);
            else
                zc_buf_puts(next_text(t), text.data);
            zc_buf_fini(&text);
        }
}

static int sum_of(const text_stmt *s, const int *count)
{
    int n = 0;
    for (int k = 0; k < s->items; k++) n += s->item[k] == ONE ? 1 : count[k];
    return n;
}

/* What is left out is so at the end. */
static bool has_gap(const text_stmt *s, const int *count)
{
    for (int k = 2; k < s->items; k++)
        if (s->item[k] == MAYBE && count[k] > count[k - 1]) return true;
    return false;
}

static void write_items(texts *t, const text_rule *r, int stmt)
{
    const text_stmt *s = &r->s[stmt];
    int count[3] = {0}, k = 0, most = r->form == LACKING ? 1 : MEMBERS_MAX;
    while (k < s->items) {
        char leaf[3 * MEMBERS_MAX][24];
        int n = sum_of(s, count);
        zc_buf text = {0};
        if (n <= MEMBERS_MAX && n > (r->form == CHAIN) && !has_gap(s, count)) {
            write_leaves(&text, s, count, leaf);
            if (r->form != CHAIN) write_joined(&text, s, stmt, n, leaf);
            if (r->form != CHAIN) zc_buf_puts(next_text(t), text.data);
            if (r->form == CHAIN) write_chains(t, &text, s, stmt, n, leaf);
        }
        zc_buf_fini(&text);
        for (k = 0; k < s->items && (s->item[k] == ONE || ++count[k] > most); k++) count[k] = 0;
    }
}

static void write_out(texts *t, const text_rule *r)
{
    const text_stmt *s = r->special < 0 ? NULL : &r->s[r->special];
    t->n = 0;
    for (int times = s ? s->least : 0; s && r->form < JOINED && times <= s->most; times++) {
        if (r->form == REPEATED) write_repeated(next_text(t), s, r->special, times);
        if (r->form == GROUP) write_group(next_text(t), s, r->special, times);
    }
    if (s && r->form >= JOINED) write_items(t, r, r->special);
    if (!s) next_text(t);
}

/* ---- rules ---- */

static void put_stmt(zc_buf *out, const text_rule *r, int i)
{
    const text_stmt *s = &r->s[i];
    zc_buf_printf(out, "s%d%s = ", i, s->is_shared ? ": shared" : "");
    if (i == r->special)
        put_special(out, r, s);
    else if (*s->operand[1])
        zc_buf_printf(out, "%s(%s, %s)", s->op, s->operand[0], s->operand[1]);
    else
        zc_buf_printf(out, "%s(%s)", s->op, s->operand[0]);
    zc_buf_puts(out, s->is_optional ? "?; " : "; ");
}

/* The rule, with the special statement as it is (NULL) or as that text. */
static void put_rule(zc_buf *out, const text_rule *r, const zc_buf *special)
{
    if (r->special >= 0 && r->form == GROUP) {
        zc_buf_puts(out, "pattern G(x, y) { ");
        put_body(out, &r->s[r->special], "x", "y", "h", "z");
        zc_buf_puts(out, "} ");
    }
    zc_buf_puts(out, "rule r { match ");
    for (int i = 0; i < r->n; i++) {
        if (i == r->special && special)
            zc_buf_puts(out, special->data);
        else
            put_stmt(out, r, i);
    }
    zc_buf_printf(out, "emit s%d = Exp(1.0); }", r->n - 1);
}

/* The two operations that a group has, on the newest value: by chance alone there are few. */
static void put_group(zc_buf *out, const text_stmt *s, int i)
{
    bool has_two = *s->operand[1] || s->is_residual;
    zc_buf_printf(out, "  %%v%d: f32[0] = %s(%%v%d) @ \"n\"\n", i, s->inner, i - 1);
    zc_buf_printf(out, "  %%v%d: f32[0] = %s(%%v%d", i + 1, s->op, i - s->is_residual);
    if (has_two) zc_buf_printf(out, ", %%v%d", s->is_residual ? i : below(i));
    zc_buf_puts(out, ") @ \"n\"\n");
}

static void make_graph(const text_rule *r, zc_buf *out)
{
    bool has_groups = r->special >= 0 && r->form == GROUP;
    zc_buf_puts(out, "graph \"g\" {\n  input %v0: f32[0] as \"a\"\n  input %v1: f32[0] as \"b\"\n");
    for (int i = 2; i < NODES + 2; i++) {
        if (has_groups && i < NODES + 1 && below(2))
            put_group(out, &r->s[r->special], i++);
        else
            put_node(out, i);
    }
    for (int i = NODES - 1; i < NODES + 2; i++)
        zc_buf_printf(out, "  output %%v%d as \"o%d\"\n", i, i);
    zc_buf_puts(out, "}\n");
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
    int whole; /* the statement that ends a chain of any number of operands, or -1 */
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

static char letter_of(const plain *p, int stmt)
{
    return *zc_rl_pat_at(&zc_rl_stmt_at(&p->rule->match, stmt)->outs, 0)->text;
}

/* What stands between repetitions is used by one operation alone, and what a chain joins once. */
static bool has_one_user(const plain *p, int stmt, zc_vid v)
{
    if (letter_of(p, stmt) == 'c') return p->uses[v] == 1;
    if (letter_of(p, stmt) != 'r') return true;
    for (zc_nid n = 1; n < p->g->nodes.len; n++) {
        const zc_node *node = zc_node_at(p->g, n);
        uint32_t uses = 0;
        for (int i = 0; i < node->nin; i++) uses += node->in[i] == v;
        if (uses == p->uses[v]) return true;
    }
    return false;
}

/* Of a chain of any number of operands, does what statement i adds belong to it as far as it can?
 */
static bool is_whole(const plain *p, int i)
{
    const zc_rl_pat *pat = pattern(p, i);
    for (int k = 0; k < pat->args.n; k++) {
        const zc_rl_pat *a = zc_rl_pat_at(&pat->args, k);
        zc_vid v = p->value[a->var];
        const zc_value *value = zc_val(p->g, v);
        bool is_sum = value->kind == ZC_VALUE_NODE && p->uses[v] == 1 &&
                      zc_node_at(p->g, value->producer)->op == ZC_OP_Add;
        if (*a->text != 'c' && is_sum) return false;
    }
    return true;
}

static bool is_used_before(const plain *p, int stmt, zc_nid n)
{
    for (int i = 0; i < stmt; i++)
        if (p->node[i] == n) return true;
    return false;
}

static uint32_t inner_uses(const plain *p, zc_vid v)
{
    uint32_t n = 0;
    for (int i = 0; i < p->rule->match.n; i++) {
        const zc_node *node = zc_node_at(p->g, p->node[i]);
        bool counts = p->node[i] && !is_used_before(p, i, p->node[i]);
        for (int k = 0; counts && k < node->nin; k++) n += node->in[k] == v;
    }
    return n;
}

static bool closed(const plain *p)
{
    for (int i = 0; i < p->rule->match.n; i++) {
        zc_vid v = p->node[i] ? zc_node_at(p->g, p->node[i])->out[0] : 0;
        if (v && p->whole >= 0 && (i == p->whole || letter_of(p, i) == 'c') && !is_whole(p, i))
            return false;
        if (i == p->rule->match.n - 1) break;
        if (v && !has_one_user(p, i, v)) return false;
        if (v && !is_shared(p, v) && inner_uses(p, v) != p->uses[v]) return false;
    }
    return true;
}

/* Operations of one run may be one. */
static bool may_be_one(const plain *p, int a, int b)
{
    const char *x = zc_rl_pat_at(&zc_rl_stmt_at(&p->rule->match, a)->outs, 0)->text;
    const char *y = zc_rl_pat_at(&zc_rl_stmt_at(&p->rule->match, b)->outs, 0)->text;
    return *x == 'e' && *y == 'e' && x[1] == y[1];
}

static bool is_taken(const plain *p, int stmt, zc_nid n)
{
    for (int i = 0; i < stmt; i++)
        if (p->node[i] == n && !may_be_one(p, i, stmt)) return true;
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
        if (is_taken(p, stmt, n) || (stmt < last && n == p->node[last])) continue;
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

/* The same rule, written out. */
typedef struct variants {
    zc_rules *r[VARIANTS_MAX];
    int n;
    bool is_whole; /* a chain of any number of operands */
    char name[8];  /* of the special statement */
} variants;

/* By the plain matcher: does any variant match at node n? */
static bool any_matches(const variants *v, const zc_graph *g, const uint32_t *uses, zc_nid n)
{
    for (int i = 0; i < v->n; i++) {
        plain p = {.rule = v->r[i]->rules.data[0], .g = g, .uses = uses, .whole = -1};
        const int last = p.rule->match.n - 1;
        p.node[last] = n;
        if (zc_node_at(g, n)->op != pattern(&p, last)->op) continue; /* before all of the others */
        for (int k = 0; v->is_whole && k < p.rule->match.n; k++)
            if (strcmp(zc_rl_pat_at(&zc_rl_stmt_at(&p.rule->match, k)->outs, 0)->text, v->name) ==
                0)
                p.whole = k;
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

/* A statement that is found among users has a fixed operand to begin with; whether it may be
 * absent, or where a chain ends, then depends on the order of search, which the plain matcher has
 * none of. */
static bool decided(const zc_rl_rule *rule)
{
    bool depends = false;
    for (int i = 0; i < rule->nnodes; i++) {
        const zc_rl_pat *p = rule->nodes[i];
        depends |= (p->optional && !p->base) || (p->is_chain && zc_rl_has_runs(p));
    }
    return !depends || !rule->nextra;
}

/* How many operands the longest chain of additions has. */
static int longest_chain(const zc_graph *g)
{
    int most = 0, of[NODES + 2] = {0};
    for (zc_nid n = 1; n < g->nodes.len; n++) {
        const zc_node *node = zc_node_at(g, n);
        for (int i = 0; i < 2 && node->op == ZC_OP_Add; i++) {
            const zc_value *v = zc_val(g, node->in[i]);
            bool is_sum = v->kind == ZC_VALUE_NODE && of[v->producer];
            of[n] += is_sum ? of[v->producer] : 1;
        }
        if (of[n] > most) most = of[n];
    }
    return most;
}

static size_t setting(const char *name, size_t otherwise)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 10) : otherwise;
}

/* NULL: such rules are refused, as when a statement shares nothing with the others. */
static zc_rules *load(const text_rule *rule, const zc_buf *special, zc_buf *text)
{
    zc_rules *r = NULL;
    put_rule(text, rule, special);
    assert_int_equal(zc_rules_create(&r, NULL), ZC_OK);
    if (zc_rules_add_text(r, "r", text->data, text->len, NULL) != ZC_OK) zc_rules_destroy(&r);
    return r;
}

static void load_variants(const text_rule *rule, variants *out)
{
    static texts t;
    write_out(&t, rule);
    for (int i = 0; i < t.n; i++) {
        zc_buf text = {0};
        zc_rules *r = load(rule, rule->special < 0 ? NULL : &t.v[i], &text);
        if (r) out->r[out->n++] = r;
        zc_buf_fini(&text);
        zc_buf_fini(&t.v[i]);
    }
    const text_stmt *s = &rule->s[rule->special < 0 ? 0 : rule->special];
    for (int k = 0; rule->special >= 0 && rule->form == CHAIN && k < s->items; k++)
        out->is_whole |= s->item[k] != ONE;
    snprintf(out->name, sizeof out->name, "s%d", rule->special);
}

static bool one_round(size_t *matches)
{
    static variants plainly;
    zc_buf text = {0}, model = {0};
    zc_graph *g = NULL;
    zc_diag *diag = zc_diag_create();
    text_rule rule = make_rule();
    make_graph(&rule, &model);
    zc_rules *r = load(&rule, NULL, &text);
    if (zc_graph_parse(model.data, model.len, &g, diag) != ZC_OK)
        fail_msg("%s", zc_diag_text(diag, 0));
    bool ok = r != NULL && decided(r->rules.data[0]);
    ok = ok && (rule.form != CHAIN || longest_chain(g) <= MEMBERS_MAX);
    plainly = (variants){.n = 0};
    if (ok) load_variants(&rule, &plainly);
    if (ok) compare(r, &plainly, g, text.data, model.data, &matches[rule.form]);
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
    static const char *const names[] = {"plain",  "repeated", "groups",
                                        "joined", "chains",   "lacking"};
    size_t rounds = 0, matches[FORMS] = {0}, most = setting("ZC_MATCH_ROUNDS", ROUNDS);
    for (seed = setting("ZC_MATCH_SEED", 1); rounds < most;) rounds += one_round(matches);
    print_message("%zu rules and graphs; matches:", rounds);
    for (int i = 0; i < FORMS; i++) print_message(" %s %zu", names[i], matches[i]);
    print_message("\n");
    for (int i = 0; i < FORMS; i++) assert_true(matches[i] > most / 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_plain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
