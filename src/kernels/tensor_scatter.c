#include <stdio.h>
#include <string.h>

#include "abi/tensor_scatter.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

const char *const zc_config_tensor_scatter[] = {"unit", NULL};

zc_status zc_gen_tensor_scatter(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    zc_dtype at = zc_gen_in_type(g, 2);
    if (zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (at != ZC_NONE && at != ZC_I64)
        return zc_gen_decline(g, "write indices of type %s", zc_dtype_name(at));
    if (in->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "tensor_scatter");
    int64_t axis = ZC_ATTRS(g, TensorScatter)->axis;
    int inner = (int)(axis < 0 ? axis + in->rank : axis) + 1;
    zc_gen_unit(g, in->dtype, in->dims + inner, in->rank - inner);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_tensor_scatter(zc_launch *l)
{
    const zc_attrs_TensorScatter *a = ZC_ATTRS(l, TensorScatter);
    const zc_tensor *in = &l->in[0], *update = &l->in[1];
    int axis = (int)(a->axis < 0 ? a->axis + in->rank : a->axis);
    int64_t dims[ZC_MAX_RANK], n = update->dims[axis];
    struct zc_tensor_scatter_params p;
    size_t bytes = 0;
    memset(&p, 0, sizeof p);
    memcpy(dims, in->dims, sizeof dims);
    dims[axis] = n;
    ZC_TRY(zc_move_check(l, &l->out[0], in->rank, in->dims, "the output"));
    ZC_TRY(zc_move_check(l, update, in->rank, dims, "the update"));
    if (n > in->dims[axis])
        return zc_launch_fail(l, "update is longer than the cache (got %lld, need at most %lld)",
                              (long long)n, (long long)in->dims[axis]);
    if (zc_launch_has(l, 2))
        ZC_TRY(zc_move_check_length(l, zc_tensor_numel(&l->in[2]), in->dims[0],
                                    "number of write indices"));
    if (!zc_tensor_bytes(in, &bytes)) return zc_launch_fail(l, "the cache is too large");
    if (bytes && l->out[0].data != in->data)
        ZC_TRY(zc_launch_copy(l, l->out[0].data, in->data, bytes));
    if (zc_tensor_numel(update) == 0) return ZC_OK;
    int64_t run = zc_dims_span(in->dims, axis + 1, in->rank) * zc_move_size(in);
    int unit = zc_move_chosen(l);
    p.update = update->data;
    p.out = l->out[0].data;
    p.at = zc_launch_in(l, 2);
    p.total = zc_tensor_numel(update) * zc_move_size(in) >> unit;
    p.inner = zc_divisor_of(run >> unit);
    p.n = zc_divisor_of(n);
    p.middle = zc_divisor_of(zc_dims_span(in->dims, 1, axis));
    p.room = in->dims[axis];
    p.circular = a->mode[0] == 'c';
    p.step = l->step_id;
    p.fault = l->fault;
    return zc_launch_configured(l, zc_move_grid(l, p.total), &p, sizeof p);
}
