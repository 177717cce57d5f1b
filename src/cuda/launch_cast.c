#include "abi/cast.h"
#include "cuda/launch.h"

zc_status zc_launch_cast(zc_launch *l)
{
    struct zc_cast_params p = {
        .in = l->in[0].data, .out = l->out[0].data, .total = zc_tensor_numel(&l->in[0])};
    unsigned bits = zc_dtype_bits(l->out[0].dtype);
    int64_t per_thread = bits < 8 ? 8 / bits : 1;
    zc_dim3 grid = {
        zc_launch_blocks((p.total + per_thread - 1) / per_thread, 256, 16 * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, 256, 0, &p, sizeof p);
}
