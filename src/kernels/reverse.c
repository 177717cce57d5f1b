#include <stdio.h>
#include <string.h>

#include "abi/reverse.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

const char *const zc_config_reverse[] = {"unit", NULL};

zc_status zc_gen_reverse(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (zc_gen_in_type(g, 1) != ZC_I64)
        return zc_gen_decline(g, "lengths of type %s", zc_dtype_name(zc_gen_in_type(g, 1)));
    if (in->rank < 2) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "reverse");
    zc_gen_unit(g, in->dtype, in->dims + 2, in->rank - 2);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_reverse(zc_launch *l)
{
    const zc_tensor *in = &l->in[0], *lengths = &l->in[1];
    int time = (int)ZC_ATTRS(l, ReverseSequence)->time_axis;
    struct zc_reverse_params p;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_move_check(l, &l->out[0], in->rank, in->dims, "the output"));
    ZC_TRY(zc_move_check_length(l, zc_tensor_numel(lengths), in->dims[1 - time],
                                "number of sequence lengths"));
    if (zc_tensor_numel(in) == 0) return ZC_OK;
    int64_t run = zc_dims_span(in->dims, 2, in->rank) * zc_move_size(in);
    int unit = zc_move_chosen(l);
    p.in = in->data;
    p.out = l->out[0].data;
    p.lengths = lengths->data;
    p.total = in->dims[0] * in->dims[1] * (run >> unit);
    p.second = zc_divisor_of(in->dims[1]);
    p.inner = zc_divisor_of(run >> unit);
    p.times = in->dims[time];
    p.time_stride = time ? run >> unit : in->dims[1] * (run >> unit);
    p.time_axis = time;
    p.step = l->step_id;
    p.fault = l->fault;
    return zc_launch_configured(l, zc_move_grid(l, p.total), &p, sizeof p);
}
