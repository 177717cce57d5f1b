/* Values and conditions at a match, in words. */
#include "rules/words.h"

#include "base/number.h"

static void put_ints(zc_buf *out, const zc_ints *list)
{
    for (int i = 0; i < list->n; i++)
        zc_buf_printf(out, "%s%lld", i ? ", " : "[", (long long)list->v[i]);
    zc_buf_puts(out, list->n ? "]" : "[]");
}

static void put_floats(zc_buf *out, const zc_floats *list)
{
    for (int i = 0; i < list->n; i++)
        zc_buf_printf(out, "%s%g", i ? ", " : "[", (double)list->v[i]);
    zc_buf_puts(out, list->n ? "]" : "[]");
}

void zc_rl_put_value(zc_buf *out, const zc_dims *dims, const zc_rl_val *v)
{
    switch (v->type) {
    case ZC_RT_INT:
        zc_dim_print(dims, v->dim, out);
        break;
    case ZC_RT_REAL:
        zc_buf_printf(out, "%g", v->real);
        break;
    case ZC_RT_BOOL:
        zc_buf_puts(out, v->b ? "true" : "false");
        break;
    case ZC_RT_DTYPE:
        zc_buf_puts(out, zc_dtype_name(v->dtype));
        break;
    case ZC_RT_STR:
        zc_buf_printf(out, "\"%s\"", v->str ? v->str : "");
        break;
    case ZC_RT_INTS:
        put_ints(out, &v->ints);
        break;
    case ZC_RT_FLOATS:
        put_floats(out, &v->floats);
        break;
    default:
        zc_buf_puts(out, "nothing known");
        break;
    }
}

/* The part of a conjunction that fails. */
static const zc_rl_expr *failing(const zc_rl_env *env, const zc_rl_expr *e)
{
    while (e->kind == ZC_RE_AND)
        e = zc_rl_expr_at(&e->args, zc_rl_holds(env, zc_rl_expr_at(&e->args, 0)) ? 1 : 0);
    return e;
}

static const char *sign_of(zc_rl_expr_kind kind)
{
    static const char *const signs[] = {
        [ZC_RE_EQ] = "==", [ZC_RE_NE] = "!=", [ZC_RE_LT] = "<",    [ZC_RE_LE] = "<=",
        [ZC_RE_GT] = ">",  [ZC_RE_GE] = ">=", [ZC_RE_NEAR] = "~=",
    };
    return kind >= ZC_RE_EQ && kind <= ZC_RE_NEAR ? signs[kind] : NULL;
}

void zc_rl_put_failed(zc_buf *out, const zc_rl_env *env, const zc_rl_expr *e)
{
    const zc_rl_expr *part = failing(env, e);
    zc_rl_val all = zc_rl_eval(env, part);
    const char *sign = sign_of(part->kind);
    zc_buf_printf(out, "the condition in line %d, column %d %s", e->loc.line, e->loc.col,
                  all.type == ZC_RT_BOOL ? "does not hold" : "is not certain");
    if (!sign && part->kind != ZC_RE_IN) return;
    zc_rl_val left = zc_rl_eval(env, zc_rl_expr_at(&part->args, 0));
    zc_buf_puts(out, " (got ");
    zc_rl_put_value(out, &env->g->dims, &left);
    if (sign) {
        zc_rl_val right = zc_rl_eval(env, zc_rl_expr_at(&part->args, 1));
        zc_buf_printf(out, ", need %s ", sign);
        zc_rl_put_value(out, &env->g->dims, &right);
    }
    zc_buf_puts(out, ")");
}
