/* PackedLinear on any architecture (packed_linear.cu); few rows on Hopper are
 * gemv_packed_sm90.c's. */
#include "kernels/packed_linear.h"

#include <string.h>

/* ---- the specialisation ---- */

zc_status zc_gen_packed_sizes(zc_gen *g, zc_packed_sizes *s)
{
    const zc_pvalue *x = zc_gen_in(g, ZC_IN_PackedLinear_x);
    zc_tensor codes, scale;
    *s = (zc_packed_sizes){.m_high = INT64_MAX};
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_tensor(zc_gen_in(g, ZC_IN_PackedLinear_w), &codes);
    zc_gen_tensor(zc_gen_in(g, ZC_IN_PackedLinear_scale), &scale);
    if (!zc_packed_of(&codes, &s->w)) return zc_gen_decline(g, "codes that are not in pieces");
    zc_gen_matmul_rows(g, x->dims, x->rank - 1, &s->m_low, &s->m_high);
    s->codes = codes.dtype;
    s->blocks = scale.dims[1];
    s->scale_bytes = (int)zc_dtype_bits(scale.dtype) / 8;
    s->zero_bytes = zc_gen_in(g, ZC_IN_PackedLinear_zero) ? 1 : 0;
    s->norm = zc_gen_in(g, ZC_IN_PackedLinear_gain) != NULL;
    s->gated = *ZC_ATTRS(g, PackedLinear)->activation != 0;
    return ZC_OK;
}

void zc_gen_packed_codes(zc_gen *g, const zc_packed_sizes *s)
{
    zc_gen_type(g, "S", zc_gen_in_type(g, ZC_IN_PackedLinear_scale));
    zc_gen_define(g, "BITS", "%u", zc_dtype_bits(s->codes));
    zc_gen_define(g, "SIGNED", "%d", s->codes != ZC_U4 && s->codes != ZC_U8);
    zc_gen_define(g, "E2M1", "%d", s->codes == ZC_F4E2M1);
    zc_gen_define(g, "ZERO", "%d", s->zero_bytes);
    zc_gen_define(g, "SUMMED", "%lld", (long long)s->w.k);
    zc_gen_define(g, "BLOCK", "%lld", (long long)(s->w.k / s->blocks));
}

zc_status zc_gen_packed(zc_gen *g, zc_packed_sizes *s)
{
    const zc_attrs_PackedLinear *at = ZC_ATTRS(g, PackedLinear);
    ZC_TRY(zc_gen_packed_sizes(g, s));
    if (g->declined[0]) return ZC_OK;
    const zc_dtype x = zc_gen_in_type(g, ZC_IN_PackedLinear_x);
    zc_gen_define(g, "GATED", "%d", s->gated);
    if (s->gated)
        ZC_TRY(zc_gen_activation(g, "zc_act", at->activation, (int)at->activation_params.n,
                                 at->activation_params.v, x));
    zc_gen_type(g, "T", x);
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    zc_gen_define(g, "ACC", "%s", x == ZC_F64 ? "f64" : "f32");
    zc_gen_define(g, "BIAS", "%d", zc_gen_in(g, ZC_IN_PackedLinear_bias) != NULL);
    zc_gen_define(g, "NORM", "%d", s->norm);
    zc_gen_define(g, "ALPHA", "%d", at->alpha != 1);
    zc_gen_packed_codes(g, s);
    return zc_gen_epilogue(g);
}

zc_status zc_gen_packed_linear(zc_gen *g)
{
    zc_packed_sizes s;
    return zc_gen_packed(g, &s);
}

/* ---- the launch ---- */

zc_status zc_launch_packed(zc_launch *l, struct zc_packed_linear_params *p)
{
    zc_packed w;
    const zc_tensor *x = &l->in[ZC_IN_PackedLinear_x];
    memset(p, 0, sizeof *p);
    if (!zc_packed_of(&l->in[ZC_IN_PackedLinear_w], &w) || x->dims[x->rank - 1] != w.k)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "rows do not fit the codes (got %lld elements, need %lld)",
                       (long long)x->dims[x->rank - 1], (long long)w.k);
    p->x = x->data;
    p->w = l->in[ZC_IN_PackedLinear_w].data;
    p->scale = l->in[ZC_IN_PackedLinear_scale].data;
    p->zero = zc_launch_in(l, ZC_IN_PackedLinear_zero);
    p->bias = zc_launch_in(l, ZC_IN_PackedLinear_bias);
    p->gain = zc_launch_in(l, ZC_IN_PackedLinear_gain);
    p->epsilon = ZC_ATTRS(l, PackedLinear)->epsilon;
    p->alpha = ZC_ATTRS(l, PackedLinear)->alpha;
    p->y = l->out[0].data;
    p->m = zc_tensor_numel(&l->out[0]) / l->out[0].dims[l->out[0].rank - 1];
    p->n = w.n;
    return zc_launch_epilogue(l, &p->fused);
}

zc_status zc_launch_packed_linear(zc_launch *l)
{
    enum { WARPS = 8, ROWS = 4 }; /* of a block, of a warp: as packed_linear.cu has them */
    struct zc_packed_linear_params p;
    ZC_TRY(zc_launch_packed(l, &p));
    zc_dim3 grid = {zc_launch_blocks(l->out[0].dims[l->out[0].rank - 1], WARPS, 0),
                    zc_launch_blocks(p.m, ROWS, 65535), 1};
    return zc_launch_kernel(l, 0, grid, WARPS * 32, 0, &p, sizeof p);
}
