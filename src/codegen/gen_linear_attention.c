#include "codegen/gen.h"

enum { IN_Q, IN_K, IN_V, IN_STATE, IN_DECAY, IN_BETA, MOST_ROWS = 512 };

/* The last dimension of input i: 0 when absent, -1 when not certain. */
static int64_t last_dim(const zc_gen *g, int i)
{
    const zc_pvalue *v = zc_gen_in(g, i);
    return v ? zc_gen_const_dim(v, 2) : 0;
}

zc_status zc_gen_linear_attention(zc_gen *g)
{
    const zc_attrs_LinearAttention *a = ZC_ATTRS(g, LinearAttention);
    zc_dtype t = zc_gen_in_type(g, IN_Q), state = zc_gen_in_type(g, IN_STATE);
    for (int i = IN_Q; i <= IN_BETA; i++)
        if (zc_gen_in(g, i) && zc_gen_in(g, i)->rank < 0)
            return zc_gen_decline(g, "rank known only when run");
    if (!zc_gen_plain_type(t) || zc_dtype_bits(t) < 16)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (state && !zc_gen_plain_type(state))
        return zc_gen_decline(g, "states of type %s", zc_dtype_name(state));
    int64_t q = last_dim(g, IN_Q), decay = last_dim(g, IN_DECAY), beta = last_dim(g, IN_BETA);
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
