#include "abi/pointwise.h"
#include "codegen/gen.h"
#include "cuda/pointwise.h"
#include "op/pointwise.h"

/* Shapes that are certain become constants. */
static bool put_shapes(zc_gen *g)
{
    zc_tensor out;
    if (!zc_gen_all_static(g)) return true;
    zc_gen_tensor(zc_gen_out(g, 0), &out);
    int64_t total = zc_tensor_numel(&out);
    zc_gen_define(g, "TOTAL", "%lldLL", (long long)total);
    zc_gen_define(g, "WIDE", "%d", total > INT32_MAX);
    return zc_gen_broadcast(g, "", zc_gen_out(g, 0), 0, (int)g->step->nin, ZC_POINT_RANK);
}

static void put_operands(zc_gen *g, const zc_dtype *in, const zc_dtype *out)
{
    zc_gen_define(g, "COUNT", "%u", g->step->nin);
    zc_buf_puts(&g->spec, "#define Z_INPUTS(X)");
    for (uint32_t i = 0; i < g->step->nin; i++)
        zc_buf_printf(&g->spec, " X(%u, %s)", i, zc_gen_type_name(in[i]));
    zc_buf_puts(&g->spec, "\n#define Z_ARGS(A)");
    for (uint32_t i = 0; i < g->step->nin; i++)
        zc_buf_printf(&g->spec, "%s A(%u)", i ? "," : "", i);
    zc_buf_puts(&g->spec, "\n#define Z_OUTPUTS(X)");
    for (uint32_t i = 0; i < g->step->nout; i++)
        if (out[i] != ZC_NONE) zc_buf_printf(&g->spec, " X(%u, %s)", i, zc_gen_type_name(out[i]));
    zc_buf_puts(&g->spec, "\n");
}

_Static_assert((int)ZC_POINT_OUTPUTS >= ZC_EXPR_MAX_RESULTS, "room for all results");

zc_status zc_gen_pointwise(zc_gen *g)
{
    zc_dtype in[ZC_POINT_INPUTS], out[ZC_POINT_OUTPUTS];
    if (g->step->nin > ZC_POINT_INPUTS)
        return zc_gen_decline(g, "more than %d inputs", ZC_POINT_INPUTS);
    if (g->step->nout > ZC_POINT_OUTPUTS)
        return zc_gen_decline(g, "more than %d outputs", ZC_POINT_OUTPUTS);
    for (uint32_t i = 0; i < g->step->nout; i++) {
        out[i] = zc_gen_out_type(g, (int)i);
        if (out[i] != ZC_NONE && !zc_gen_plain_type(out[i]))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(out[i]));
    }
    for (uint32_t i = 0; i < g->step->nin; i++) {
        in[i] = zc_gen_in_type(g, (int)i);
        if (!zc_gen_plain_type(in[i]))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(in[i]));
    }
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "expression", sizeof *e);
    ZC_TRY(zc_pointwise_expr(g->info, g->attrs, (int)g->step->nin, in, e, g->step->name, g->diag));
    zc_gen_define(g, "VEC", "%d", zc_pointwise_vec((int)g->step->nout, out, (int)g->step->nin, in));
    put_operands(g, in, out);
    if (!put_shapes(g))
        return zc_gen_decline(g, "broadcast pattern of more than %d axes", ZC_POINT_RANK);
    e->ninputs = (int)g->step->nin;
    return zc_gen_results(g, "zc_point", e, in);
}
