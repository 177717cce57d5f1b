#include "abi/mel_weights.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"
#include "op/mel.h"

/* ---- the specialisation ---- */

zc_status zc_gen_mel_weights(zc_gen *g)
{
    zc_dtype out = zc_gen_out_type(g, 0);
    if (!zc_kernel_type(out)) return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    zc_gen_type(g, "OUT", out);
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status read_scale(zc_launch *l, zc_mel *m)
{
    const zc_tensor *in = l->host;
    int64_t v[3];
    for (int i = 0; i < 5; i++) {
        if (!in[i].data || zc_tensor_numel(&in[i]) != 1)
            return zc_launch_fail(l, "input %d has a wrong size (got %lld elements, need 1)", i,
                                  (long long)zc_tensor_numel(&in[i]));
        if (i < 3) v[i] = zc_load_i64(in[i].dtype, in[i].data, 0);
    }
    if (v[2] <= 0)
        return zc_launch_fail(l, "sample_rate out of range (got %lld, need > 0)", (long long)v[2]);
    if (!zc_mel_init(m, l->out[0].dims[1], v[1], v[2], zc_load_f64(in[3].dtype, in[3].data, 0),
                     zc_load_f64(in[4].dtype, in[4].data, 0)))
        return zc_launch_fail(l, "edge frequencies are out of range");
    return ZC_OK;
}

zc_status zc_launch_mel_weights(zc_launch *l)
{
    const zc_tensor *out = &l->out[0];
    struct zc_mel_weights_params p = {
        .out = out->data, .rows = out->dims[0], .bands = out->dims[1]};
    zc_mel m;
    ZC_TRY(read_scale(l, &m));
    for (; p.first < p.bands; p.first += p.count) {
        p.count = p.bands - p.first < ZC_MEL_BANDS ? p.bands - p.first : ZC_MEL_BANDS;
        for (int64_t e = 0; e < p.count + 2; e++) {
            int64_t bin;
            if (!zc_mel_edge(&m, p.first + e, &bin))
                return zc_launch_fail(l, "edge frequencies are out of range");
            p.edges[e] = (int)bin;
        }
        ZC_TRY(zc_launch_kernel(l, 0, zc_move_grid(l, p.rows * p.count), 256, 0, &p, sizeof p));
    }
    return ZC_OK;
}
