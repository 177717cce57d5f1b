#include "codegen/gen_matmul.h"

#include <math.h>

#include "op/activation.h"

/* Summed axes of an Einsum must be alike in both operands: 1 would broadcast. */
static bool depths_agree(const zc_matmul_form *form, const zc_pvalue *a, const zc_pvalue *b)
{
    for (int d = 0; d < form->side_a.depth_count; d++)
        if (!zc_dim_eq(a->dims[form->side_a.depth_first + d],
                       b->dims[form->side_b.depth_first + d]))
            return false;
    return true;
}

zc_status zc_gen_matmul_form(zc_gen *g, zc_matmul_form *form)
{
    int ranks[8], nin = (int)g->step->nin < (int)ZC_COUNTOF(ranks) ? (int)g->step->nin
                                                                   : (int)ZC_COUNTOF(ranks);
    for (int i = 0; i < nin; i++) {
        const zc_pvalue *v = zc_gen_in(g, i);
        ranks[i] = v ? v->rank : -1;
        if (v && v->rank < 0) return zc_gen_decline(g, "rank known only when run");
    }
    if (!zc_matmul_form_of(g->info, g->attrs, nin, ranks, form) ||
        (form->by_axes && !depths_agree(form, zc_gen_in(g, form->a), zc_gen_in(g, form->b))))
        return zc_gen_decline(g, "not one matrix product");
    return ZC_OK;
}

static void put_norm(zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    int64_t n = zc_gen_const_dim(y, y->rank - 1);
    zc_gen_define(g, "NORM", "1");
    if (n > 0) zc_gen_define(g, "N", "%lldLL", (long long)n);
    if (ZC_ATTRS(g, LinearNorm)->rms) zc_gen_define(g, "RMS", "1");
}

zc_status zc_gen_matmul_spec(zc_gen *g, const zc_matmul_form *form)
{
    zc_dtype dtype = zc_gen_out_type(g, 0);
    bool is_float = zc_dtype_is_float(dtype), wide = zc_dtype_bits(dtype) == 64;
    bool scaled = zc_matmul_scales_ints(form, dtype);
    zc_gen_type(g, "T", dtype);
    zc_gen_define(g, "TA", "%d", !form->a_along_k);
    zc_gen_define(g, "TB", "%d", form->b_along_k);
    zc_gen_define(g, "ADDEND", "%d", form->c >= 0);
    zc_gen_define(g, "ACC", "%s%d", is_float ? "f" : "u", wide || scaled ? 64 : 32);
    if (is_float) zc_gen_define(g, "SCALE", "f%d", wide ? 64 : 32);
    if (scaled) {
        zc_gen_define(g, "SCALE", "f64");
        zc_gen_define(g, "SIGNED_SUM", "1");
    }
    if (form->norm) put_norm(g);
    if (form->activation) {
        zc_gen_define(g, "EPILOGUE", "1");
        ZC_TRY(zc_gen_activation(g, "zc_epilogue", form->activation, form->activation_count,
                                 form->activation_params, dtype));
    }
    return zc_gen_epilogue(g);
}
