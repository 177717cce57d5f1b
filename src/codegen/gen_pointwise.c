#include "abi/pointwise.h"
#include "codegen/gen.h"
#include "cuda/pointwise.h"

static zc_status parse(zc_gen *g, const zc_dtype *in, zc_expr *e)
{
    zc_expr_const consts[8];
    int n = 0;
    for (int i = 0; i < g->info->field_count && i < (int)ZC_COUNTOF(consts); i++) {
        const zc_attr_field *field = &g->info->fields[i];
        const void *at = (const char *)g->attrs + field->offset;
        if (field->kind == ZC_ATTR_INT)
            consts[n++] = (zc_expr_const){field->name, (double)*(const int64_t *)at, true};
        else if (field->kind == ZC_ATTR_FLOAT)
            consts[n++] = (zc_expr_const){field->name, (double)*(const float *)at, false};
    }
    const char *text =
        g->step->op == ZC_OP_Pointwise ? ZC_ATTRS(g, Pointwise)->expr : g->info->expr;
    return zc_expr_parse(text, in, (int)g->step->nin, consts, n, e, g->step->name, g->diag);
}

/* Shapes that are certain become constants. */
static bool put_shapes(zc_gen *g)
{
    zc_tensor out;
    if (!zc_gen_all_static(g)) return true;
    zc_gen_tensor(zc_gen_out(g, 0), &out);
    int64_t total = zc_tensor_numel(&out);
    zc_gen_define(g, "TOTAL", "%lldLL", (long long)total);
    zc_gen_define(g, "WIDE", "%d", total > INT32_MAX);
    return zc_gen_broadcast(g, "", 0, (int)g->step->nin, ZC_POINT_RANK);
}

static void put_inputs(zc_gen *g, const zc_dtype *in)
{
    zc_buf_puts(&g->spec, "#define Z_INPUTS(X)");
    for (uint32_t i = 0; i < g->step->nin; i++)
        zc_buf_printf(&g->spec, " X(%u, %s)", i, zc_gen_type_name(in[i]));
    zc_buf_puts(&g->spec, "\n#define Z_ARGS(A)");
    for (uint32_t i = 0; i < g->step->nin; i++)
        zc_buf_printf(&g->spec, "%s A(%u)", i ? "," : "", i);
    zc_buf_puts(&g->spec, "\n");
}

zc_status zc_gen_pointwise(zc_gen *g)
{
    zc_dtype in[ZC_POINT_INPUTS], out = zc_gen_out_type(g, 0);
    if (g->step->nin > ZC_POINT_INPUTS)
        return zc_gen_decline(g, "more than %d inputs", ZC_POINT_INPUTS);
    if (!zc_gen_plain_type(out)) return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    for (uint32_t i = 0; i < g->step->nin; i++) {
        in[i] = zc_gen_in_type(g, (int)i);
        if (!zc_gen_plain_type(in[i]))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(in[i]));
    }
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "expression", sizeof *e);
    ZC_TRY(parse(g, in, e));
    zc_gen_type(g, "OUT", out);
    zc_gen_define(g, "VEC", "%d", zc_pointwise_vec(out, (int)g->step->nin, in));
    put_inputs(g, in);
    if (!put_shapes(g))
        return zc_gen_decline(g, "broadcast pattern of more than %d axes", ZC_POINT_RANK);
    e->ninputs = (int)g->step->nin;
    return zc_gen_expr(g, "zc_point", e, in);
}
