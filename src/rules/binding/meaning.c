/* Emitting a user's kernel: its definition as attributes of a node, its meaning as the text that
 * the CPU evaluates (cpu/user.c). */
#include <string.h>

#include "op/sizes.h"
#include "rules/binding/binding.h"
#include "rules/check.h"

typedef struct writer {
    const zc_rl_kernel *k;
    const zc_rl_env *env; /* of the kernel's body */
    zc_buf out;
    int temp[ZC_RL_VARS_MAX]; /* by variable: the result that it is, or -1 */
    int ntemps;
    bool ok; /* every attribute and list is known */
} writer;

static void put_real(zc_buf *out, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    zc_buf_printf(out, "#%016llx ", (unsigned long long)bits);
}

static void put_string(zc_buf *out, const char *s)
{
    zc_buf_puts(out, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') zc_buf_puts(out, "\\");
        zc_buf_append(out, s, 1);
    }
    zc_buf_puts(out, "\" ");
}

static void put_ints(zc_buf *out, zc_ints v)
{
    zc_buf_puts(out, "[ ");
    for (int i = 0; i < v.n; i++) zc_buf_printf(out, "%lld ", (long long)v.v[i]);
    zc_buf_puts(out, "] ");
}

/* ---- attributes ---- */

static void put_floats(zc_buf *out, zc_floats v)
{
    zc_buf_puts(out, "[ ");
    for (int i = 0; i < v.n; i++) put_real(out, (double)v.v[i]);
    zc_buf_puts(out, "] ");
}

static void put_field(writer *w, const zc_attr_field *field, const void *at)
{
    switch (field->kind) {
    case ZC_ATTR_INT:
        zc_buf_printf(&w->out, "%lld ", (long long)*(const int64_t *)at);
        break;
    case ZC_ATTR_FLOAT:
        put_real(&w->out, (double)*(const float *)at);
        break;
    case ZC_ATTR_STR:
        put_string(&w->out, *(const char *const *)at);
        break;
    case ZC_ATTR_INTS:
        put_ints(&w->out, *(const zc_ints *)at);
        break;
    case ZC_ATTR_FLOATS:
        put_floats(&w->out, *(const zc_floats *)at);
        break;
    case ZC_ATTR_DTYPE:
        zc_buf_printf(&w->out, "%s ", zc_dtype_name(*(const zc_dtype *)at));
        break;
    case ZC_ATTR_TENSOR:
        break;
    }
}

static void put_attr(writer *w, const zc_op_info *info, const zc_rl_attr *a)
{
    union {
        int64_t i;
        float f;
        const char *s;
        zc_ints ints;
        zc_floats floats;
        zc_dtype dtype;
    } slot = {.i = 0};
    zc_rl_val v = zc_rl_eval(w->env, a->value);
    w->ok &= zc_rl_attr_set(w->env->arena, &info->fields[a->field], &v, &slot);
    if (!w->ok) return;
    zc_buf_printf(&w->out, "%s ", a->name.text);
    put_field(w, &info->fields[a->field], &slot);
}

static void put_attrs(writer *w, const zc_rl_pat *p)
{
    zc_buf_puts(&w->out, "{ ");
    if (p->pointwise) {
        const char *expr = zc_rl_pointwise_expr(w->env, p);
        w->ok &= expr != NULL;
        zc_buf_puts(&w->out, "expr ");
        put_string(&w->out, expr ? expr : "");
    }
    for (int i = 0; !p->pointwise && i < p->attrs.n; i++)
        put_attr(w, zc_op_get(p->op), zc_rl_attr_at(&p->attrs, i));
    zc_buf_puts(&w->out, "} ; ");
}

/* ---- operands and operations ---- */

static void put_name(writer *w, int var)
{
    if (w->temp[var] >= 0)
        zc_buf_printf(&w->out, "t%d ", w->temp[var]);
    else
        zc_buf_printf(&w->out, "x%d ", var);
}

static void put_list(writer *w, const zc_rl_pat *p)
{
    int64_t v[ZC_RL_LIST_MAX];
    for (int i = 0; i < p->args.n; i++) {
        zc_rl_val e = zc_rl_eval(w->env, zc_rl_expr_at(&p->args, i));
        w->ok &= e.type == ZC_RT_INT && zc_dim_is_const(e.dim);
        v[i] = e.dim.k;
    }
    put_ints(&w->out, (zc_ints){p->args.n, v});
}

static int put_node(writer *w, const zc_rl_pat *p);

/* `nested`: the result that an operation among the operands is. */
static void put_operand(writer *w, const zc_rl_pat *a, int nested)
{
    switch (a->kind) {
    case ZC_RP_NAME:
        put_name(w, a->var);
        break;
    case ZC_RP_NUM:
        put_real(&w->out, a->num);
        break;
    case ZC_RP_LIST:
        put_list(w, a);
        break;
    case ZC_RP_NODE:
        zc_buf_printf(&w->out, "t%d ", nested);
        break;
    case ZC_RP_ABSENT:
    case ZC_RP_ALT:
    case ZC_RP_REST:
        zc_buf_puts(&w->out, "_ ");
        break;
    }
}

/* Operations among the operands come first. Returns the first result's number. */
static int put_node(writer *w, const zc_rl_pat *p)
{
    int nested[ZC_RL_LIST_MAX] = {0}, nout = p->nouts ? p->nouts : 1, first;
    for (int i = 0; i < p->args.n; i++) {
        const zc_rl_pat *a = zc_rl_pat_at(&p->args, i);
        if (a->kind == ZC_RP_NODE) nested[i] = put_node(w, a);
    }
    zc_buf_printf(&w->out, "%s %d ", zc_op_get(p->op)->name, nout);
    for (int i = 0; i < p->args.n; i++) put_operand(w, zc_rl_pat_at(&p->args, i), nested[i]);
    put_attrs(w, p);
    first = w->ntemps;
    w->ntemps += nout;
    return first;
}

static void put_statement(writer *w, const zc_rl_stmt *st)
{
    const zc_rl_pat *p = st->pat;
    if (p->kind == ZC_RP_NODE) {
        int first = put_node(w, p);
        for (int i = 0; i < p->nouts; i++)
            if (p->outs[i] >= 0) w->temp[p->outs[i]] = first + i;
        return;
    }
    /* y = x; is the value itself. */
    w->ok &= p->kind == ZC_RP_NAME;
    zc_buf_puts(&w->out, "Identity 1 ");
    put_operand(w, p, 0);
    zc_buf_puts(&w->out, "{ } ; ");
    if (p->outs[0] >= 0) w->temp[p->outs[0]] = w->ntemps;
    w->ntemps++;
}

static void put_scalar(writer *w)
{
    zc_buf_puts(&w->out, "Pointwise 1 ");
    for (int i = 0; i < w->k->params.n; i++) zc_buf_printf(&w->out, "x%d ", i);
    zc_buf_puts(&w->out, "{ expr ");
    put_string(&w->out, w->k->scalar->expr);
    zc_buf_puts(&w->out, "} ; ");
    w->temp[w->k->params.n] = 0;
}

/* ---- the node ---- */

static zc_rl_env body_env(const zc_rl_env *env, const zc_rl_kernel *k, const zc_vid *in,
                          zc_vid *value, zc_rl_val *attr)
{
    int np = k->params.n + k->nresults;
    zc_rl_env body = *env;
    memset(value, 0, ZC_RL_VARS_MAX * sizeof *value);
    memset(attr, 0, ZC_RL_VARS_MAX * sizeof *attr);
    for (int i = 0; i < k->params.n; i++) value[i] = in[i];
    for (int i = 0; i < k->ntuned; i++)
        attr[np + i] = (zc_rl_val){.type = ZC_RT_INT, .dim = zc_dim_const(k->tuned[i])};
    body.rule = &k->body;
    body.value = value;
    body.attr = attr;
    return body;
}

zc_rl_set zc_rl_set_kernel(const zc_rl_env *env, const zc_rl_kernel *k, const zc_vid *in,
                           zc_attrs_UserKernel *out)
{
    zc_vid value[ZC_RL_VARS_MAX];
    zc_rl_val attr[ZC_RL_VARS_MAX];
    zc_rl_env body = body_env(env, k, in, value, attr);
    writer w = {.k = k, .env = &body, .ok = true};
    for (int i = 0; i < ZC_RL_VARS_MAX; i++) w.temp[i] = -1;
    for (int i = 0; i < k->body.emit.n; i++) put_statement(&w, zc_rl_stmt_at(&k->body.emit, i));
    if (k->scalar) put_scalar(&w);
    zc_buf_puts(&w.out, "= ");
    for (int i = 0; i < k->nresults; i++) put_name(&w, k->params.n + i);
    *out = k->attrs;
    out->meaning = w.out.failed ? NULL : zc_arena_strdup(env->arena, w.out.data);
    out->set = (UINT64_C(1) << ZC_AT_UserKernel_COUNT) - 1;
    zc_buf_fini(&w.out);
    return !out->meaning ? ZC_RL_SET_NOMEM : w.ok ? ZC_RL_SET_OK : ZC_RL_SET_UNKNOWN;
}
