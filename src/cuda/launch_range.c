#include "abi/range.h"

#include "cuda/move.h"

zc_status zc_launch_range(zc_launch *l)
{
    const zc_tensor *start = &l->host[0], *delta = &l->host[2];
    struct zc_range_params p = {.out = l->out[0].data, .total = zc_tensor_numel(&l->out[0])};
    if (zc_dtype_is_float(l->out[0].dtype)) {
        p.start = zc_load_f64(start->dtype, start->data, 0);
        p.delta = zc_load_f64(delta->dtype, delta->data, 0);
    } else {
        p.whole_start = zc_load_i64(start->dtype, start->data, 0);
        p.whole_delta = zc_load_i64(delta->dtype, delta->data, 0);
    }
    return zc_launch_kernel(l, 0, zc_move_grid(l, p.total), 256, 0, &p, sizeof p);
}
