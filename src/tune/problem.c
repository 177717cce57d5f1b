#include "tune/problem.h"

#include <inttypes.h>

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

bool zc_problem_text(const zc_program *p, const zc_pstep *step, zc_buf *out)
{
    if (step->op == ZC_OP_UserKernel) return false;
    zc_buf_printf(out, "%s(", zc_op_get(step->op)->name);
    if (!put_values(p, step->in, step->nin, out)) return false;
    zc_buf_puts(out, ") -> ");
    if (!put_values(p, step->out, step->nout, out)) return false;
    zc_attrs_print(step->op, step->attrs, out);
    if (p->tf32) zc_buf_puts(out, " tf32");
    return !out->failed && out->len <= TEXT_MOST;
}
