/* Sizes of launches and shapes: expressions as the words of op/sizes.h. */
#include "op/sizes.h"

#include "rules/binding/parts.h"

static void put_args(zc_rl_reader *d, zc_buf *out, const zc_rl_expr *e)
{
    for (int i = 0; i < e->args.n; i++) zc_rl_put_size(d, out, zc_rl_expr_at(&e->args, i));
}

static void put_call(zc_rl_reader *d, zc_buf *out, const zc_rl_expr *e)
{
    static const struct {
        zc_rl_function f;
        const char *word;
    } words[] = {{ZC_RF_dim, "dim "}, {ZC_RF_rank, "rank "}, {ZC_RF_size, "size "},
                 {ZC_RF_min, "min "}, {ZC_RF_max, "max "},   {ZC_RF_ceil_div, "cdiv "}};
    for (size_t i = 0; i < ZC_COUNTOF(words); i++) {
        if (e->index != (int)words[i].f) continue;
        put_args(d, out, e);
        zc_buf_puts(out, words[i].word);
        return;
    }
    zc_rl_fault(&d->c, e->loc, "a size is made of dim, rank, size, min, max and ceil_div (got %s)",
                e->text);
}

void zc_rl_put_size(zc_rl_reader *d, zc_buf *out, const zc_rl_expr *e)
{
    int np = d->k->params.n + d->k->nresults;
    switch (e->kind) {
    case ZC_RE_INT:
        zc_buf_printf(out, "%lld ", (long long)e->i);
        return;
    case ZC_RE_NAME:
        if (e->word != ZC_RW_VAR) break;
        if (d->in_result && e->index >= d->k->params.n && e->index < np)
            zc_rl_fault(&d->c, e->loc, "a result's shape comes from operands");
        zc_buf_printf(out, e->index < np ? "%d " : "%d tune ",
                      e->index < np ? e->index : e->index - np);
        return;
    case ZC_RE_CALL:
        put_call(d, out, e);
        return;
    case ZC_RE_NEG:
        zc_buf_puts(out, "0 ");
        put_args(d, out, e);
        zc_buf_puts(out, "- ");
        return;
    case ZC_RE_ADD:
    case ZC_RE_SUB:
    case ZC_RE_MUL:
    case ZC_RE_DIV:
    case ZC_RE_MOD:
        put_args(d, out, e);
        zc_buf_printf(out, "%c ", "+-*/%"[e->kind - ZC_RE_ADD]);
        return;
    default:
        break;
    }
    zc_rl_fault(&d->c, e->loc, "a size is made of whole numbers");
}

static void put_range_fault(zc_rl_reader *d, const zc_rl_clause *c, zc_rl_loc loc, int64_t got,
                            zc_ints tuned, zc_rl_range of)
{
    zc_buf text = {0};
    zc_buf_printf(&text, "%s is %lld%s", c->word, (long long)got, tuned.n ? " with " : "");
    zc_tuning_print(d->k->attrs.tuning, tuned, &text);
    zc_buf_printf(&text, of.most == INT64_MAX ? " (need at least %lld)" : " (need %lld to %lld)",
                  (long long)of.least, (long long)of.most);
    zc_rl_fault(&d->c, loc, "%s", text.data ? text.data : "");
    zc_buf_fini(&text);
}

/* A size that no shape decides is known now, for every combination of tuning parameters. */
static void check_size(zc_rl_reader *d, const zc_rl_clause *c, zc_rl_loc loc, const char *size,
                       zc_rl_range of)
{
    enum { COMBINATIONS_MAX = 4096 };
    const char *tuning = d->k->attrs.tuning;
    for (size_t t = 0; size && tuning && t < zc_tuning_count(tuning) && t < COMBINATIONS_MAX; t++) {
        int64_t values[ZC_RL_TUNED_MAX];
        zc_ints tuned = {d->k->ntuned, values};
        zc_sizes_env env = {.tuned = tuned};
        zc_dim v;
        int n = 0;
        bool is_known = zc_tuning_values(tuning, t, values, ZC_RL_TUNED_MAX) &&
                        zc_sizes_eval(size, &env, 1, &v, &n) && n == 1;
        if (!is_known) return;
        if (v.k >= of.least && v.k <= of.most) continue;
        put_range_fault(d, c, loc, v.k, tuned, of);
        return;
    }
}

const char *zc_rl_sizes(zc_rl_reader *d, const zc_rl_clause *c, int most, const char *end,
                        zc_rl_range of)
{
    zc_buf out = {0};
    if (c->values.n > most)
        zc_rl_fault(&d->c, c->loc, "too many values of %s (got %d, need at most %d)", c->word,
                    c->values.n, most);
    for (int i = 0; i < c->values.n; i++) {
        zc_rl_expr *e = zc_rl_expr_at(&c->values, i);
        size_t at = out.len, errors = d->c.r->errors;
        if (zc_rl_is_a(d, e, ZC_RT_INT)) zc_rl_put_size(d, &out, e);
        if (d->c.r->errors == errors && !out.failed) check_size(d, c, e->loc, out.data + at, of);
        zc_buf_puts(&out, end);
    }
    return zc_rl_keep(d, &out);
}
