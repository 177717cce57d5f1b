/* Cases as text. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

bool kc_each(const char *list, char by, bool (*fn)(void *arg, const char *item), void *arg)
{
    char item[512];
    for (const char *p = list; *p;) {
        while (*p == ' ') p++;
        const char *end = p;
        int depth = 0;
        for (; *end && (depth || *end != by); end++)
            depth += (*end == '(' || *end == '[') - (*end == ')' || *end == ']');
        size_t n = (size_t)(end - p);
        while (n && p[n - 1] == ' ') n--;
        if (n >= sizeof item) return false;
        memcpy(item, p, n);
        item[n] = '\0';
        if (n && !fn(arg, item)) return false;
        p = *end ? end + 1 : end;
    }
    return true;
}

static bool one_size(void *arg, const char *item)
{
    kc_sizes *s = arg;
    if (item[0] < 'a' || item[0] > 'z' || item[1] != '=') return false;
    char *end;
    s->v[item[0] - 'a'] = strtoll(item + 2, &end, 10);
    return *end == '\0';
}

bool kc_sizes_parse(const char *text, kc_sizes *out)
{
    for (int i = 0; i < KC_SYMBOLS; i++) out->v[i] = -1;
    return !text || kc_each(text, ',', one_size, out);
}

static bool is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '.';
}

void kc_substitute(const char *text, const kc_sizes *sizes, zc_buf *out)
{
    int depth = 0;
    for (const char *p = text; *p; p++) {
        depth += (*p == '[' || *p == '(') - (*p == ']' || *p == ')');
        bool alone =
            depth && *p >= 'a' && *p <= 'z' && !(p > text && is_word(p[-1])) && !is_word(p[1]);
        if (alone && sizes && sizes->v[*p - 'a'] >= 0)
            zc_buf_printf(out, "%lld", (long long)sizes->v[*p - 'a']);
        else
            zc_buf_append(out, p, 1);
    }
}

double kc_evaluate(const char *expression, const kc_sizes *sizes)
{
    zc_buf text = {0}, whole = {0};
    zc_dims dims;
    zc_dim d = {0};
    zc_dims_init(&dims);
    zc_buf_printf(&whole, "(%s)", expression);
    kc_substitute(whole.data, sizes, &text);
    size_t n = zc_dim_parse(&dims, text.data, text.len, &d);
    zc_buf_fini(&text);
    zc_buf_fini(&whole);
    double v = n && zc_dim_is_const(d) ? (double)d.k : -1;
    zc_dims_fini(&dims);
    return v;
}

bool kc_variant_of(const kc_case *c, const char *pair, kc_variant *out)
{
    const char *colon = strchr(pair, ':');
    size_t n = colon ? (size_t)(colon - pair) : strlen(pair);
    *out = (kc_variant){.c = c};
    snprintf(out->t, sizeof out->t, "%.*s", (int)n, pair);
    snprintf(out->u, sizeof out->u, "%s", colon ? colon + 1 : pair);
    return zc_dtype_parse(out->t) != ZC_NONE && zc_dtype_parse(out->u) != ZC_NONE;
}

/* ---- operands ---- */

typedef struct reading {
    const kc_variant *v;
    kc_operand *out;
    int n, inputs;
    bool ok;
} reading;

static bool read_dims(const char **p, zc_tensor *t)
{
    zc_dims dims;
    bool ok = **p == '[';
    zc_dims_init(&dims);
    if (ok) ++*p;
    while (ok && **p != ']') {
        zc_dim d;
        if (**p == ',') ++*p;
        size_t n = zc_dim_parse(&dims, *p, strlen(*p), &d);
        ok = n && zc_dim_is_const(d) && t->rank < ZC_MAX_RANK;
        if (ok) t->dims[t->rank++] = d.k;
        *p += n;
    }
    if (ok) ++*p;
    zc_dims_fini(&dims);
    return ok;
}

static bool read_elements(const char *p, zc_tensor *t)
{
    size_t bytes;
    if (!zc_tensor_bytes(t, &bytes) || !(t->data = zc_calloc(bytes + 64, 1))) return false;
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; i < n; i++) {
        char *end;
        if (zc_dtype_is_float(t->dtype))
            zc_store_f64(t->dtype, t->data, i, strtod(p, &end));
        else
            zc_store_i64(t->dtype, t->data, i, strtoll(p, &end, 10));
        if (end == p) return false;
        p = end + strspn(end, ", ");
    }
    return true;
}

static bool one_operand(void *arg, const char *item)
{
    reading *r = arg;
    if (r->n == KC_OPERANDS) return false;
    kc_operand *o = &r->out[r->n++];
    *o = (kc_operand){.input = -1, .absent = strcmp(item, "_") == 0};
    if (o->absent) return true;
    char name[16] = {0};
    size_t n = strcspn(item, "[");
    if (n >= sizeof name) return false;
    memcpy(name, item, n);
    o->of_t = strcmp(name, "T") == 0;
    o->t.dtype = zc_dtype_parse(o->of_t ? r->v->t : strcmp(name, "U") == 0 ? r->v->u : name);
    const char *p = item + n;
    if (o->t.dtype == ZC_NONE || !read_dims(&p, &o->t)) return false;
    if (*p == '=') {
        o->constant = true;
        return read_elements(p + 2, &o->t);
    }
    o->input = r->inputs++;
    if (strncmp(p, "~val(", 5) == 0) {
        o->listed = true;
        return read_elements(p + 5, &o->t);
    }
    snprintf(o->kind, sizeof o->kind, "%s", *p == '~' ? p + 1 : "");
    return *p == '\0' || *p == '~';
}

bool kc_operands(const kc_variant *v, const kc_sizes *sizes, kc_operand *out, int *n)
{
    zc_buf text = {0};
    reading r = {.v = v, .out = out};
    kc_substitute(v->c->in, sizes, &text);
    bool ok = !text.data || kc_each(text.data, ';', one_operand, &r);
    zc_buf_fini(&text);
    *n = r.n;
    return ok;
}
