#include "op/sizes.h"

#include <stdlib.h>
#include <string.h>

typedef struct machine {
    const zc_sizes_env *env;
    zc_dim stack[ZC_SIZES_MAX];
    int n;
    bool ok;
} machine;

/* A fold without a table that overflows gives INT64_MIN. */
static void push(machine *m, zc_dim d)
{
    m->ok = m->ok && m->n < ZC_SIZES_MAX && !zc_dim_is(d, INT64_MIN);
    if (m->ok) m->stack[m->n++] = d;
}

static zc_dim pop(machine *m)
{
    m->ok = m->ok && m->n > 0;
    return m->ok ? m->stack[--m->n] : zc_dim_const(0);
}

/* An integer in [0, most). */
static int pop_index(machine *m, int most)
{
    zc_dim d = pop(m);
    m->ok = m->ok && zc_dim_is_const(d) && d.k >= 0 && d.k < most;
    return m->ok ? (int)d.k : -1;
}

/* ---- words ---- */

static const zc_type *operand(machine *m)
{
    int i = pop_index(m, m->env->ntypes);
    const zc_type *t = i < 0 ? NULL : &m->env->types[i];
    m->ok = m->ok && t->rank >= 0;
    return m->ok ? t : NULL;
}

static void word_dim(machine *m)
{
    zc_dim d = pop(m);
    const zc_type *t = operand(m);
    if (!t) return;
    int64_t at = d.k < 0 ? d.k + t->rank : d.k;
    m->ok = zc_dim_is_const(d) && at >= 0 && at < t->rank;
    if (m->ok) push(m, t->dims[at]);
}

static void word_rank(machine *m)
{
    const zc_type *t = operand(m);
    if (t) push(m, zc_dim_const(t->rank));
}

static void word_size(machine *m)
{
    const zc_type *t = operand(m);
    zc_dim n = zc_dim_const(1);
    for (int i = 0; t && i < t->rank; i++) n = zc_dim_mul(m->env->dims, n, t->dims[i]);
    if (t) push(m, n);
}

static void word_shape(machine *m)
{
    const zc_type *t = operand(m);
    for (int i = 0; t && i < t->rank; i++) push(m, t->dims[i]);
}

static void word_tune(machine *m)
{
    int i = pop_index(m, m->env->tuned.n);
    if (i >= 0) push(m, zc_dim_const(m->env->tuned.v[i]));
}

static const struct {
    const char *word;
    void (*run)(machine *m);
} words[] = {{"dim", word_dim},
             {"rank", word_rank},
             {"size", word_size},
             {"shape", word_shape},
             {"tune", word_tune}};

static bool is_word(const char *text, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(text, word, n) == 0;
}

static bool integer(const char *text, size_t n, int64_t *out)
{
    bool is_negative = *text == '-';
    *out = 0;
    if (n == (size_t)is_negative) return false;
    for (size_t i = is_negative; i < n; i++)
        if (text[i] < '0' || text[i] > '9' || !zc_mul_i64(*out, 10, out) ||
            !zc_add_i64(*out, text[i] - '0', out))
            return false;
    if (is_negative) *out = -*out;
    return true;
}

static void run_word(machine *m, const char *text, size_t n)
{
    int64_t k;
    for (size_t i = 0; i < ZC_COUNTOF(words); i++)
        if (is_word(text, n, words[i].word)) {
            words[i].run(m);
            return;
        }
    zc_dim_fn *fn = zc_dim_fn_of(text, n);
    if (fn) {
        zc_dim b = pop(m), a = pop(m);
        if (m->ok) push(m, fn(m->env->dims, a, b));
        return;
    }
    m->ok = m->ok && integer(text, n, &k);
    if (m->ok) push(m, zc_dim_const(k));
}

const char *zc_sizes_eval(const char *text, const zc_sizes_env *env, int most, zc_dim *out, int *n)
{
    machine m = {.env = env, .ok = text != NULL};
    *n = 0;
    while (m.ok && *text) {
        text += strspn(text, " ");
        size_t len = strcspn(text, " ");
        const char *word = text;
        text += len;
        if (is_word(word, len, ";")) break;
        if (len) run_word(&m, word, len);
    }
    if (!m.ok || m.n > most) return NULL;
    memcpy(out, m.stack, (size_t)m.n * sizeof *out);
    *n = m.n;
    return text + strspn(text, " ");
}

/* ---- tuning parameters ---- */

/* Values of the parameter at s, which ends with a space or the text. */
static size_t count_values(const char *s)
{
    size_t n = 1;
    for (; *s && *s != ' '; s++) n += *s == ',';
    return n;
}

static const char *next_parameter(const char *s)
{
    s += strcspn(s, " ");
    return s + (*s == ' ');
}

size_t zc_tuning_count(const char *text)
{
    size_t n = 1;
    for (const char *s = text; *s; s = next_parameter(s))
        if (!zc_mul_size(n, count_values(s), &n)) return 0;
    return n;
}

/* Value i of the parameter at s. */
static int64_t value_at(const char *s, size_t i)
{
    s += strcspn(s, "=");
    for (s += *s == '='; i > 0 && *s; i--) {
        s += strcspn(s, ",");
        s += *s == ',';
    }
    return strtoll(s, NULL, 10);
}

bool zc_tuning_values(const char *text, size_t combination, int64_t *out, int most)
{
    size_t rest = zc_tuning_count(text);
    if (combination >= rest) return false;
    for (const char *s = text; *s; s = next_parameter(s)) {
        if (most-- <= 0) return false;
        rest /= count_values(s);
        *out++ = value_at(s, combination / rest);
        combination %= rest;
    }
    return true;
}

void zc_tuning_print(const char *text, zc_ints tuned, zc_buf *out)
{
    const char *s = text ? text : "";
    for (int i = 0; i < tuned.n && *s; i++, s = next_parameter(s)) {
        if (i) zc_buf_puts(out, " ");
        zc_buf_append(out, s, strcspn(s, "="));
        zc_buf_printf(out, "=%lld", (long long)tuned.v[i]);
    }
}
