#include "codegen/gen_matmul.h"

zc_status zc_gen_gemm_simt(zc_gen *g)
{
    zc_matmul_form form;
    zc_dtype dtype = zc_gen_out_type(g, 0);
    ZC_TRY(zc_gen_matmul_form(g, &form));
    if (g->declined[0]) return ZC_OK;
    if (!zc_gen_plain_type(dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    if (form.activation && !zc_dtype_is_float(dtype))
        return zc_gen_decline(g, "activation of element type %s", zc_dtype_name(dtype));
    return zc_gen_matmul_spec(g, &form);
}
