#include <math.h>

#include "abi/linear_attention.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

#define IN(input) ZC_IN_LinearAttention_##input
enum { MOST_ROWS = 512, BLOCK = 128 };

/* The last dimension of input i: 0 when absent, -1 when not certain. */
static int64_t last_dim(const zc_gen *g, int i)
{
    const zc_pvalue *v = zc_gen_in(g, i);
    return v ? zc_gen_const_dim(v, 2) : 0;
}

zc_status zc_gen_linear_attention(zc_gen *g)
{
    const zc_attrs_LinearAttention *a = ZC_ATTRS(g, LinearAttention);
    zc_dtype t = zc_gen_in_type(g, IN(q)), state = zc_gen_in_type(g, IN(state));
    for (int i = IN(q); i <= IN(beta); i++)
        if (zc_gen_in(g, i) && zc_gen_in(g, i)->rank < 0)
            return zc_gen_decline(g, "rank known only when run");
    if (!zc_kernel_type(t) || zc_dtype_bits(t) < 16)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (state && !zc_kernel_type(state))
        return zc_gen_decline(g, "states of type %s", zc_dtype_name(state));
    int64_t q = last_dim(g, IN(q)), decay = last_dim(g, IN(decay)), beta = last_dim(g, IN(beta));
    if (q < 0 || decay < 0 || beta < 0) return zc_gen_decline(g, "head size known only when run");
    int64_t dk = q / a->q_num_heads;
    if (dk < 1 || dk > MOST_ROWS)
        return zc_gen_decline(g, "head size %lld is not in [1, %d]", (long long)dk, MOST_ROWS);
    zc_gen_type(g, "T", t);
    zc_gen_type(g, "STATE", state ? state : t);
    zc_gen_define(g, "DK", "%lld", (long long)dk);
    zc_gen_define(g, "HEADS", "%lld", (long long)a->q_num_heads);
    zc_gen_define(g, "KV_HEADS", "%lld", (long long)a->kv_num_heads);
    zc_gen_define(g, "DECAY", "%lld",
                  (long long)(decay == a->kv_num_heads * dk ? dk
                              : decay                       ? 1
                                                            : 0));
    zc_gen_define(g, "BETA", "%lld", (long long)(beta == 1 ? 1 : beta ? a->kv_num_heads : 0));
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_linear_attention(zc_launch *l)
{
    const zc_attrs_LinearAttention *a = ZC_ATTRS(l, LinearAttention);
    const zc_tensor *q = &l->in[IN(q)];
    int64_t batch = q->dims[0], length = q->dims[1], steps = batch * length, kv = a->kv_num_heads;
    int64_t dk = q->dims[2] / a->q_num_heads, dv = l->in[IN(v)].dims[2] / kv;
    struct zc_linear_attention_params p = {.q = q->data,
                                           .k = l->in[IN(k)].data,
                                           .v = l->in[IN(v)].data,
                                           .past = zc_launch_in(l, IN(state)),
                                           .decay = zc_launch_in(l, IN(decay)),
                                           .beta = zc_launch_in(l, IN(beta)),
                                           .length = length,
                                           .columns = batch * kv * dv,
                                           .dv = dv,
                                           .scale =
                                               a->scale != 0 ? a->scale : 1 / sqrt((double)dk)};
    ZC_TRY(zc_launch_check_size(l, IN(k), steps * kv * dk, "key"));
    ZC_TRY(zc_launch_check_size(l, IN(v), steps * kv * dv, "value"));
    ZC_TRY(zc_launch_check_size(l, IN(state), batch * kv * dk * dv, "past_state"));
    if (zc_launch_has(l, IN(decay)))
        ZC_TRY(zc_launch_check_size(
            l, IN(decay), steps * kv * (l->in[IN(decay)].dims[2] == kv * dk ? dk : 1), "decay"));
    if (zc_launch_has(l, IN(beta)))
        ZC_TRY(zc_launch_check_size(l, IN(beta), steps * (l->in[IN(beta)].dims[2] == 1 ? 1 : kv),
                                    "beta"));
    if (l->nout > 0 && zc_present(&l->out[0])) p.y = l->out[0].data;
    if (l->nout > 1 && zc_present(&l->out[1])) p.state = l->out[1].data;
    zc_dim3 grid = {zc_launch_blocks(p.columns, BLOCK / 32, 0), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
