#include "abi/einsum.h"
#include "codegen/gen.h"
#include "op/einsum.h"

/* Labels that are summed. */
static int count_inner(const zc_einsum *e)
{
    bool seen[ZC_EINSUM_LABELS] = {false};
    int n = 0;
    for (int d = 0; d < e->out.n; d++) seen[e->out.label[d]] = true;
    for (int i = 0; i < e->nin; i++) {
        for (int d = 0; d < e->in[i].n; d++) {
            bool *s = &seen[e->in[i].label[d]];
            n += !*s;
            *s = true;
        }
    }
    return n;
}

zc_status zc_gen_einsum(zc_gen *g)
{
    int ranks[ZC_EINSUM_INPUTS], nin = (int)g->step->nin;
    zc_dtype dtype = zc_gen_out_type(g, 0);
    zc_einsum e;
    if (nin > ZC_EINSUM_INPUTS) return zc_gen_decline(g, "more than %d operands", ZC_EINSUM_INPUTS);
    if (!zc_gen_plain_type(dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    for (int i = 0; i < nin; i++) {
        const zc_pvalue *v = zc_gen_in(g, i);
        if (!v || v->rank < 0) return zc_gen_decline(g, "rank known only when run");
        ranks[i] = v->rank;
    }
    ZC_TRY(zc_einsum_parse(ZC_ATTRS(g, Einsum)->equation, nin, ranks, &e, g->step->name, g->diag));
    if (count_inner(&e) > ZC_EINSUM_LOOPS)
        return zc_gen_decline(g, "sum over more than %d labels", ZC_EINSUM_LOOPS);
    bool is_float = zc_dtype_is_float(dtype), wide = zc_dtype_bits(dtype) == 64;
    zc_gen_type(g, "T", dtype);
    zc_gen_define(g, "ACC", "%s%d", is_float ? "f" : "u", wide ? 64 : 32);
    zc_gen_define(g, "NIN", "%d", nin);
    return ZC_OK;
}
