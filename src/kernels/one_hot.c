#include <string.h>

#include "abi/one_hot.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

const char *const zc_config_one_hot[] = {"unit", NULL};

zc_status zc_gen_one_hot(zc_gen *g)
{
    zc_dtype index = zc_gen_in_type(g, 0), value = zc_gen_out_type(g, 0);
    if (!zc_kernel_type(index))
        return zc_gen_decline(g, "indices of type %s", zc_dtype_name(index));
    if (zc_dtype_bits(value) < 8) return zc_gen_decline(g, "element type %s", zc_dtype_name(value));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "INDEX", index);
    zc_gen_unit(g, value, NULL, 0);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_one_hot(zc_launch *l)
{
    const zc_tensor *at = &l->in[0], *out = &l->out[0];
    int64_t axis = ZC_ATTRS(l, OneHot)->axis, dims[ZC_MAX_RANK + 1];
    struct zc_one_hot_params p;
    memset(&p, 0, sizeof p);
    if (axis < 0) axis += at->rank + 1;
    int64_t depth = out->dims[axis];
    ZC_TRY(zc_move_check_length(l, zc_tensor_numel(&l->in[2]), 2, "number of values"));
    ZC_TRY(zc_move_check_length(l, depth, zc_load_i64(l->host[1].dtype, l->host[1].data, 0),
                                "depth of the output"));
    for (int i = 0; i <= at->rank; i++) dims[i] = i == axis ? depth : at->dims[i - (i > axis)];
    ZC_TRY(zc_move_check(l, out, at->rank + 1, dims, "the output"));
    p.indices = at->data;
    p.values = l->in[2].data;
    p.out = out->data;
    p.total = zc_tensor_numel(out);
    if (p.total == 0) return ZC_OK;
    p.depth = zc_divisor_of(depth);
    p.inner = zc_divisor_of(zc_dims_span(at->dims, (int)axis, at->rank));
    return zc_launch_configured(l, zc_move_grid(l, p.total), &p, sizeof p);
}
