#include "abi/reverse.h"

#include <string.h>

#include "cuda/divisor.h"
#include "cuda/move.h"

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
    int unit = zc_move_unit(3, (uint64_t[]){(uint64_t)(uintptr_t)in->data,
                                            (uint64_t)(uintptr_t)l->out[0].data, (uint64_t)run});
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
    return zc_launch_kernel(l, unit, zc_move_grid(l, p.total), 256, 0, &p, sizeof p);
}
