#include "abi/epilogue.h"
#include "codegen/gen.h"

/* Shapes that are certain become constants. */
static bool put_shapes(zc_gen *g, int first, int n)
{
    bool all = zc_gen_static(zc_gen_out(g, 0));
    for (int i = 0; i < n; i++) all = all && zc_gen_static(zc_gen_in(g, first + i));
    return !all || !n || zc_gen_broadcast(g, "FUSED_", first, n, ZC_FUSED_RANK);
}

static void put_inputs(zc_gen *g, const zc_dtype *in, int n)
{
    zc_gen_define(g, "FUSED", "1");
    zc_buf_puts(&g->spec, "#define Z_FUSED_INPUTS(X)");
    for (int i = 0; i < n; i++) zc_buf_printf(&g->spec, " X(%d, %s)", i, zc_gen_type_name(in[i]));
    zc_buf_puts(&g->spec, "\n#define Z_FUSED_ARGS(A)");
    for (int i = 0; i < n; i++) zc_buf_printf(&g->spec, ", A(%d)", i);
    zc_buf_puts(&g->spec, "\n");
}

zc_status zc_gen_epilogue(zc_gen *g)
{
    const char *text = zc_op_epilogue(g->info, g->attrs);
    zc_dtype types[1 + ZC_FUSED_INPUTS];
    int first = g->info->max_in, n = (int)g->step->nin - first;
    g->takes_epilogue = true;
    if (!text) return ZC_OK;
    if (n < 0) n = 0;
    types[0] = zc_gen_out_type(g, 0);
    for (int i = 0; i < n; i++) {
        types[1 + i] = zc_gen_in_type(g, first + i);
        if (!zc_gen_plain_type(types[1 + i]))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(types[1 + i]));
    }
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "epilogue", sizeof *e);
    ZC_TRY(zc_expr_parse(text, types, 1 + n, NULL, 0, e, g->step->name, g->diag));
    put_inputs(g, types + 1, n);
    if (!put_shapes(g, first, n))
        return zc_gen_decline(g, "broadcast pattern of more than %d axes", ZC_FUSED_RANK);
    e->ninputs = 1 + n;
    return zc_gen_expr(g, "zc_fused_point", e, types);
}
