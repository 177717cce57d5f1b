#include "tune/problem.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ir/graph.h"

enum { TEXT_MOST = 1024 };

/* false: a size is not certain. */
static bool put_value(const zc_program *p, uint32_t v, zc_buf *out)
{
    const zc_pvalue *value = &p->values[v];
    if (!v) {
        zc_buf_puts(out, "_");
        return true;
    }
    if (value->rank < 0) return false;
    zc_buf_printf(out, "%s[", zc_dtype_name(value->dtype));
    for (int d = 0; d < value->rank; d++) {
        if (!zc_dim_is_const(value->dims[d])) return false;
        zc_buf_printf(out, "%s%" PRId64, d ? "," : "", value->dims[d].k);
    }
    zc_buf_puts(out, value->kind == ZC_P_CONST ? "]=" : "]");
    return true;
}

static bool put_values(const zc_program *p, const uint32_t *values, uint32_t n, zc_buf *out)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i) zc_buf_puts(out, ", ");
        if (!put_value(p, values[i], out)) return false;
    }
    return true;
}

static bool is_default(const zc_attr_field *f, const void *value, const void *usual)
{
    if (f->kind == ZC_ATTR_INT) return *(const int64_t *)value == *(const int64_t *)usual;
    if (f->kind == ZC_ATTR_FLOAT) return *(const float *)value == *(const float *)usual;
    if (f->kind == ZC_ATTR_DTYPE) return *(const zc_dtype *)value == *(const zc_dtype *)usual;
    if (f->kind != ZC_ATTR_STR) return false;
    const char *a = *(const char *const *)value, *b = *(const char *const *)usual;
    return strcmp(a ? a : "", b ? b : "") == 0;
}

/* Those that differ from their operation's defaults: exporters write down what they like. false: no
 * memory. */
static bool put_attrs(const zc_pstep *step, zc_buf *out)
{
    const zc_op_info *info = zc_op_get(step->op);
    void *usual = zc_calloc(1, info->attrs_size), *own = zc_calloc(1, info->attrs_size);
    bool ok = usual && own;
    if (ok) {
        zc_attrs_default(info, usual);
        memcpy(own, step->attrs, info->attrs_size);
        for (int i = 0; i < info->field_count; i++)
            if (is_default(&info->fields[i], zc_attr_at(info, own, i), zc_attr_at(info, usual, i)))
                *(uint64_t *)own &= ~(1ull << i);
        zc_attrs_print(step->op, own, out);
    }
    out->failed |= !ok;
    free(usual);
    free(own);
    return ok;
}

bool zc_problem_text(const zc_program *p, const zc_pstep *step, zc_buf *out)
{
    if (step->op == ZC_OP_UserKernel) return false;
    zc_buf_printf(out, "%s(", zc_op_get(step->op)->name);
    if (!put_values(p, step->in, step->nin, out)) return false;
    zc_buf_puts(out, ") -> ");
    if (!put_values(p, step->out, step->nout, out)) return false;
    if (!put_attrs(step, out)) return false;
    if (p->tf32 || step->tf32) zc_buf_puts(out, " tf32");
    return !out->failed && out->len <= TEXT_MOST;
}
