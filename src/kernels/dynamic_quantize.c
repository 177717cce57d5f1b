#include "abi/dynamic_quantize.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

zc_status zc_gen_dynamic_quantize(zc_gen *g)
{
    zc_dtype x = zc_gen_in_type(g, 0);
    for (int i = 0; i < 3; i++)
        if (!zc_gen_out(g, i)) return zc_gen_decline(g, "an output is not wanted");
    if (!zc_kernel_type(x)) return zc_gen_decline(g, "element type %s", zc_dtype_name(x));
    zc_gen_type(g, "X", x);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_dynamic_quantize(zc_launch *l)
{
    enum { BLOCK = 256 };
    const zc_tensor *x = &l->in[0];
    struct zc_dynamic_quantize_params p = {.x = x->data,
                                           .y = l->out[0].data,
                                           .scale = l->out[1].data,
                                           .zero = l->out[2].data,
                                           .total = zc_tensor_numel(x)};
    void *parts;
    int64_t most =
        4 * (int64_t)l->sm_count < ZC_DYNQUANT_PARTS ? 4 * (int64_t)l->sm_count : ZC_DYNQUANT_PARTS;
    zc_dim3 parts_of = {zc_launch_blocks((p.total + 3) / 4, BLOCK, most), 1, 1};
    zc_dim3 grid = {parts_of.x ? parts_of.x : 1, 1, 1};
    ZC_TRY(zc_launch_scratch(l, ZC_DYNQUANT_PARTS * 2 * sizeof(float), &parts));
    p.parts = parts;
    p.part_count = (int)parts_of.x;
    p.aligned = (uintptr_t)p.x % (zc_dtype_bits(x->dtype) / 2) == 0 && (uintptr_t)p.y % 4 == 0;
    ZC_TRY(zc_launch_kernel(l, 0, parts_of, BLOCK, 0, &p, sizeof p));
    return zc_launch_kernel(l, 1, grid, BLOCK, 0, &p, sizeof p);
}
