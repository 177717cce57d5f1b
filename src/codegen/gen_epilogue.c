#include "abi/epilogue.h"

#include <stdio.h>

#include "codegen/gen.h"

/* Pointwise work within a kernel, on x0 and inputs [first, first + n) that broadcast to it. */
typedef struct fused_work {
    const char *text;
    const char *prefix, *function; /* of what the template needs of it */
    const zc_pvalue *x0;
    int first, n;
} fused_work;

/* Shapes that are certain become constants. */
static bool put_shapes(zc_gen *g, const fused_work *w)
{
    char prefix[32];
    bool all = zc_gen_static(w->x0);
    for (int i = 0; i < w->n; i++) all = all && zc_gen_static(zc_gen_in(g, w->first + i));
    snprintf(prefix, sizeof prefix, "%s_", w->prefix);
    return !all || !w->n || zc_gen_broadcast(g, prefix, w->x0, w->first, w->n, ZC_FUSED_RANK);
}

static void put_inputs(zc_gen *g, const fused_work *w, const zc_dtype *in)
{
    zc_buf *b = &g->spec;
    zc_buf_printf(b, "#define Z_%s 1\n#define Z_%s_COUNT %d\n", w->prefix, w->prefix, w->n);
    zc_buf_printf(b, "#define Z_%s_INPUTS(X)", w->prefix);
    for (int i = 0; i < w->n; i++) zc_buf_printf(b, " X(%d, %s)", i, zc_gen_type_name(in[i]));
    zc_buf_printf(b, "\n#define Z_%s_ARGS(A)", w->prefix);
    for (int i = 0; i < w->n; i++) zc_buf_printf(b, ", A(%d)", i);
    zc_buf_puts(b, "\n");
}

static zc_status put_work(zc_gen *g, fused_work *w)
{
    zc_dtype types[1 + ZC_FUSED_INPUTS];
    if (w->n < 0) w->n = 0;
    types[0] = w->x0->dtype;
    for (int i = 0; i < w->n; i++) {
        types[1 + i] = zc_gen_in_type(g, w->first + i);
        if (!zc_gen_plain_type(types[1 + i]))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(types[1 + i]));
    }
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "fused work", sizeof *e);
    ZC_TRY(zc_expr_parse(w->text, types, 1 + w->n, NULL, 0, e, g->step->name, g->diag));
    put_inputs(g, w, types + 1);
    if (!put_shapes(g, w))
        return zc_gen_decline(g, "broadcast pattern of more than %d axes", ZC_FUSED_RANK);
    e->ninputs = 1 + w->n;
    return zc_gen_expr(g, w->function, e, types);
}

zc_status zc_gen_epilogue(zc_gen *g)
{
    int first = zc_op_epilogue_first(g->info, g->attrs);
    fused_work w = {.text = zc_op_epilogue(g->info, g->attrs),
                    .prefix = "FUSED",
                    .function = "zc_fused_point",
                    .x0 = zc_gen_out(g, 0),
                    .first = first,
                    .n = (int)g->step->nin - first};
    g->takes_epilogue = true;
    return w.text ? put_work(g, &w) : ZC_OK;
}

zc_status zc_gen_prologue(zc_gen *g)
{
    fused_work w = {.prefix = "PRE",
                    .function = "zc_pre_point",
                    .x0 = zc_gen_in(g, 0),
                    .first = g->info->max_in};
    w.text = zc_op_prologue(g->info, g->attrs, &w.n);
    g->takes_prologue = true;
    if (w.text && !zc_dtype_is_float(w.x0->dtype))
        return zc_gen_decline(g, "prologue of element type %s", zc_dtype_name(w.x0->dtype));
    return w.text ? put_work(g, &w) : ZC_OK;
}
