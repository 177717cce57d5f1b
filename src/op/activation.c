#include "op/activation.h"

#include <string.h>

zc_op zc_activation_find(const char *name)
{
    if (!name || !name[0]) return ZC_OP_NONE;
    zc_op op = zc_op_find(name, strlen(name));
    const zc_op_info *info = zc_op_get(op);
    bool fits = (info->flags & ZC_OPF_POINTWISE) && info->expr && info->max_in == 1;
    return fits || op == ZC_OP_Clip ? op : ZC_OP_NONE;
}

zc_status zc_infer_activation(zc_infer *f, const char *name)
{
    if (!name || !name[0] || zc_activation_find(name) != ZC_OP_NONE) return ZC_OK;
    return zc_infer_fail(f, "unknown activation (got \"" ZC_NAME "\")", name);
}

void zc_activation_attrs(zc_op op, const float *params, int n, void *attrs)
{
    const zc_op_info *info = zc_op_get(op);
    zc_attrs_default(info, attrs);
    for (int i = 0, used = 0; i < info->field_count && used < n; i++) {
        if (info->fields[i].kind != ZC_ATTR_FLOAT) continue;
        *(float *)zc_attr_at(info, attrs, i) = params[used++];
        zc_attr_mark(attrs, i);
    }
}

int zc_activation_params(zc_op op, const void *attrs, float out[ZC_ACTIVATION_PARAMS])
{
    const zc_op_info *info = zc_op_get(op);
    int n = 0;
    for (int i = 0; i < info->field_count && n < ZC_ACTIVATION_PARAMS; i++)
        if (info->fields[i].kind == ZC_ATTR_FLOAT)
            out[n++] = *(const float *)((const char *)attrs + info->fields[i].offset);
    return n;
}
