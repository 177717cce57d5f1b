#include "op/pointwise.h"

#include "base/diag.h"

int zc_pointwise_consts(const zc_op_info *info, const void *attrs,
                        zc_expr_const out[ZC_POINTWISE_CONSTS], int n)
{
    for (int i = 0; i < info->field_count && n < ZC_POINTWISE_CONSTS; i++) {
        const zc_attr_field *field = &info->fields[i];
        const void *at = (const char *)attrs + field->offset;
        if (field->kind == ZC_ATTR_INT)
            out[n++] = (zc_expr_const){field->name, (double)*(const int64_t *)at, true};
        else if (field->kind == ZC_ATTR_FLOAT)
            out[n++] = (zc_expr_const){field->name, (double)*(const float *)at, false};
    }
    return n;
}

zc_status zc_pointwise_expr(const zc_op_info *info, const void *attrs, int nin, const zc_dtype *in,
                            zc_expr *out, const char *subject, zc_diag *diag)
{
    zc_expr_const consts[ZC_POINTWISE_CONSTS];
    bool own = info == zc_op_get(ZC_OP_Pointwise);
    const char *text = own ? ((const zc_attrs_Pointwise *)attrs)->expr : info->expr;
    int n = zc_pointwise_consts(info, attrs, consts, 0);
    if (!text) return zc_fail(diag, ZC_ERR_MODEL, subject, "has no expression");
    if (nin > ZC_EXPR_MAX_INPUTS)
        return zc_fail(diag, ZC_ERR_MODEL, subject, "too many inputs (got %d, need at most %d)",
                       nin, ZC_EXPR_MAX_INPUTS);
    return own ? zc_expr_parse_results(text, in, nin, consts, n, out, subject, diag)
               : zc_expr_parse(text, in, nin, consts, n, out, subject, diag);
}
