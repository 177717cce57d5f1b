#include <stdio.h>
#include <string.h>

#include "abi/epilogue.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- the specialisation ---- */

/* Pointwise work within a kernel, on x0 and inputs [first, first + n) that broadcast to it. */
typedef struct fused_work {
    const char *text;
    const char *prefix, *function; /* of what the template needs of it */
    const zc_pvalue *x0;
    zc_dtype type; /* of x0 */
    int first, n;
    bool at_end; /* what it makes is stored */
} fused_work;

/* What is certain becomes constants. */
static bool put_shapes(zc_gen *g, const fused_work *w)
{
    char prefix[32];
    zc_shape to = zc_gen_shape(w->x0), in[ZC_FUSED_INPUTS];
    if (!w->n) return true;
    snprintf(prefix, sizeof prefix, "%s_", w->prefix);
    zc_gen_shapes(g, w->first, w->n, in);
    if (!zc_gen_broadcast_certain(to, w->n, in)) {
        g->divides = true;
        zc_buf_printf(&g->spec, "#define Z_%sDIVIDES 1\n", prefix);
        return true;
    }
    return zc_gen_broadcast(g, prefix, to, w->n, in, ZC_FUSED_RANK);
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

/* Numbers that a run gives, from the first on, stand behind the operands. */
static void put_literals(zc_gen *g, const fused_work *w, int first)
{
    zc_buf_printf(&g->spec, "#define Z_%s_LITERALS(p)", w->prefix);
    for (int i = first; i < g->nliterals; i++) zc_buf_printf(&g->spec, ", p.literals[%d]", i);
    zc_buf_puts(&g->spec, "\n");
}

/* A sum of bytes, whose three numbers a run gives. */
static zc_status put_sum(zc_gen *g, const fused_work *w, zc_dtype to, const zc_dtype *types,
                         const zc_affine *sum)
{
    const int first = g->nliterals;
    zc_buf *b = &g->spec;
    for (int i = 0; i < 2; i++) g->literals[g->nliterals++] = sum->factor[i];
    g->literals[g->nliterals++] = sum->addend;
    put_literals(g, w, first);
    zc_buf_printf(b, "ZC_DEV %s %s(", zc_gen_compute_type(to), w->function);
    for (int i = 0; i <= w->n; i++) zc_buf_printf(b, "%s x%d, ", zc_gen_compute_type(types[i]), i);
    zc_buf_printf(b, "f32 a, f32 b, f32 c)\n{\n    return zx_affine<%s>(x%d, x%d, a, b, c);\n}\n",
                  zc_gen_type_name(to), sum->x[0], sum->x[1]);
    if (w->at_end && sum->x[0] == 0 && sum->x[1] == 1)
        zc_buf_printf(b,
                      "#define Z_FUSED_SUM(p) {p.literals[%d], p.literals[%d], p.literals[%d]}\n",
                      first, first + 1, first + 2);
    if (sum->whole) zc_buf_puts(b, "#define Z_FUSED_WHOLE\n");
    return b->failed ? zc_fail_nomem(g->diag, "kernel source", b->len) : ZC_OK;
}

static zc_status put_work(zc_gen *g, fused_work *w)
{
    zc_dtype types[1 + ZC_FUSED_INPUTS + ZC_LITERALS];
    if (w->n < 0) w->n = 0;
    types[0] = w->type;
    for (int i = 0; i < w->n; i++) types[1 + i] = zc_gen_in_type(g, w->first + i);
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "fused work", sizeof *e);
    ZC_TRY(zc_expr_parse(w->text, types, 1 + w->n, NULL, 0, e, g->step->name, g->diag));
    put_inputs(g, w, types + 1);
    if (!put_shapes(g, w))
        return zc_gen_decline(g, "broadcast pattern of more than %d axes", ZC_FUSED_RANK);
    e->ninputs = 1 + w->n;
    const int first = g->nliterals;
    zc_affine sum;
    if (first + 3 <= ZC_LITERALS && zc_gen_is_sum(e, &sum))
        return put_sum(g, w, zc_expr_dtype(e, 0), types, &sum);
    zc_gen_literals(g, e, types);
    put_literals(g, w, first);
    if (w->at_end) zc_gen_pair(g, w->prefix, e);
    return zc_gen_expr(g, w->function, e, types, w->at_end);
}

zc_status zc_gen_sum_of_bytes(zc_gen *g, const char *text, int x0, int x1)
{
    const zc_dtype types[] = {zc_gen_in_type(g, x0), zc_gen_in_type(g, x1)};
    const fused_work w = {.prefix = "FUSED", .function = "zc_fused_point", .n = 1, .at_end = true};
    zc_affine sum;
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "sum of bytes", sizeof *e);
    ZC_TRY(zc_expr_parse(text, types, 2, NULL, 0, e, g->step->name, g->diag));
    if (!zc_gen_is_sum(e, &sum) || sum.x[0] != 0 || sum.x[1] != 1)
        return zc_gen_decline(g, "what is made of both results is no sum of bytes");
    put_inputs(g, &w, types + 1);
    return put_sum(g, &w, zc_expr_dtype(e, 0), types, &sum);
}

zc_status zc_gen_epilogue(zc_gen *g)
{
    int first = zc_op_epilogue_first(g->info, g->attrs);
    fused_work w = {.text = zc_op_epilogue(g->info, g->attrs),
                    .prefix = "FUSED",
                    .function = "zc_fused_point",
                    .x0 = zc_gen_out(g, 0),
                    .type = zc_dtype_bits(zc_gen_out_type(g, 0)) == 8 ? zc_gen_plain_result(g)
                                                                      : zc_gen_out_type(g, 0),
                    .first = first,
                    .n = (int)g->step->nin - first,
                    .at_end = true};
    return w.text ? put_work(g, &w) : ZC_OK;
}

/* How input i lies to the result. */
static unsigned lies(const zc_gen *g, int i)
{
    zc_shape operand = zc_gen_shape(zc_gen_in(g, i));
    return zc_lies(zc_gen_shape(zc_gen_out(g, 0)), 1, &operand);
}

void zc_gen_epilogue_pitches(zc_gen *g)
{
    int first = zc_op_epilogue_first(g->info, g->attrs);
    if (!zc_op_epilogue(g->info, g->attrs)) return;
    for (int i = first; i < (int)g->step->nin && i < ZC_PITCHED_INPUTS; i++)
        if (lies(g, i) == ZC_LIES_TILE) g->pitched |= ZC_PITCHED_INPUT << i;
}

void zc_gen_epilogue_cells(zc_gen *g)
{
    int first = zc_op_epilogue_first(g->info, g->attrs);
    if (!zc_op_epilogue(g->info, g->attrs)) return;
    for (int i = first; i < (int)g->step->nin; i++)
        if (lies(g, i) == ZC_LIES_OTHER) return;
    if (first < (int)g->step->nin) zc_gen_define(g, "FUSED_FIRST", "%d", first);
    zc_buf_puts(&g->spec, "#define Z_FUSED_CELLS(X)");
    for (int i = first; i < (int)g->step->nin; i++) {
        unsigned way = lies(g, i);
        zc_buf_printf(&g->spec, " X(%d, %s, %d, %d)", i - first,
                      zc_gen_type_name(zc_gen_in_type(g, i)),
                      (way & (ZC_LIES_COLUMN | ZC_LIES_TILE)) != 0,
                      (way & (ZC_LIES_ROW | ZC_LIES_TILE)) != 0);
    }
    zc_buf_puts(&g->spec, "\n");
}

int zc_gen_epilogue_tile(const zc_gen *g, unsigned bits)
{
    int first = zc_op_epilogue_first(g->info, g->attrs);
    if (!zc_op_epilogue(g->info, g->attrs)) return -1;
    for (int i = first; i < (int)g->step->nin; i++) {
        zc_dtype dtype = zc_gen_in_type(g, i);
        bool fits = bits == 8 ? zc_dtype_bits(dtype) == 8 : dtype == ZC_F16 || dtype == ZC_BF16;
        if (fits && lies(g, i) == ZC_LIES_TILE) return i - first;
    }
    return -1;
}

zc_status zc_gen_prologue(zc_gen *g)
{
    fused_work w = {.prefix = "PRE",
                    .function = "zc_pre_point",
                    .x0 = zc_gen_in(g, 0),
                    .type = zc_gen_in_type(g, 0),
                    .first = g->info->max_in};
    w.text = zc_op_prologue(g->info, g->attrs, &w.n);
    return w.text ? put_work(g, &w) : ZC_OK;
}

/* Declines the work on a value unless the family takes its operands, inputs [first, first + n). */
static zc_status check_work(zc_gen *g, zc_takes takes, bool at_end, const zc_pvalue *x0, int first,
                            int n)
{
    zc_shape in[ZC_FUSED_INPUTS];
    zc_dtype types[ZC_FUSED_INPUTS];
    if (n > ZC_FUSED_INPUTS) return zc_gen_decline(g, "pointwise work on %d operands", n);
    for (int i = 0; i < n; i++) types[i] = zc_gen_in_type(g, first + i);
    if (n > 0) zc_gen_shapes(g, first, n, in);
    const zc_work work = {.at_end = at_end,
                          .bytes = g->info->flags & (at_end ? ZC_OPF_BYTES : ZC_OPF_DEQUANTISES),
                          .dtype = at_end ? zc_gen_plain_result(g) : x0->dtype,
                          .to = zc_gen_shape(x0),
                          .n = n,
                          .in = in,
                          .types = types};
    const char *why = zc_takes_not(takes, &work);
    return why ? zc_gen_decline(g, "%s", why) : ZC_OK;
}

zc_status zc_gen_takes(zc_gen *g, zc_takes takes)
{
    int extras, first = zc_op_epilogue_first(g->info, g->attrs);
    if (zc_op_prologue(g->info, g->attrs, &extras))
        ZC_TRY(check_work(g, takes, false, zc_gen_in(g, 0), g->info->max_in, extras));
    if (!g->declined[0] && zc_op_epilogue(g->info, g->attrs))
        return check_work(g, takes, true, zc_gen_out(g, 0), first, (int)g->step->nin - first);
    return ZC_OK;
}

/* ---- the launch ---- */

zc_status zc_launch_broadcast(const zc_launch *l, const zc_tensor *to, int n,
                              const zc_tensor *operands, const int64_t *pitches, int most,
                              zc_collapsed *out)
{
    zc_collapse_broadcast(to, n, operands, pitches, out);
    if (out->rank <= most) return ZC_OK;
    return zc_fail(
        l->diag, ZC_ERR_LIMIT, l->subject,
        "broadcast pattern too irregular for the GPU kernel (got %d axes, need at most %d)",
        out->rank, most);
}

_Static_assert((int)ZC_FUSED_LITERALS == (int)ZC_LITERALS, "room for a choice's numbers");
_Static_assert((int)ZC_FUSED_INPUTS >= (int)ZC_PROLOGUE_INPUTS &&
                   (int)ZC_FUSED_INPUTS >= (int)ZC_EPILOGUE_INPUTS,
               "room for all operands of fused work");

/* Inputs [first, end) that broadcast to a tensor. */
static zc_status set_operands(const zc_launch *l, const zc_tensor *to, int first, int end,
                              struct zc_fused_params *p)
{
    zc_collapsed c;
    int n = end - first;
    memset(p, 0, sizeof *p);
    for (uint32_t i = 0; i < l->nliterals; i++) p->literals[i] = l->literals[i];
    if (n <= 0) return ZC_OK;
    ZC_TRY(zc_launch_broadcast(l, to, n, l->in + first, NULL, ZC_FUSED_RANK, &c));
    p->rank = c.rank;
    for (int d = 0; d < c.rank; d++) p->dims[d] = c.dims[d];
    for (int i = 0; i < n; i++) {
        p->in[i] = l->in[first + i].data;
        if (l->in[first + i].rank) p->pitch[i] = zc_launch_in_pitch(l, first + i);
        for (int d = 0; d < c.rank; d++) p->strides[i][d] = c.strides[i][d];
    }
    return ZC_OK;
}

zc_status zc_launch_prologue(const zc_launch *l, struct zc_fused_params *p)
{
    int extras;
    zc_op_prologue(l->info, l->attrs, &extras);
    if (extras > l->nin - l->info->max_in) extras = l->nin - l->info->max_in;
    return set_operands(l, &l->in[0], l->info->max_in, l->info->max_in + extras, p);
}

zc_status zc_launch_epilogue(const zc_launch *l, struct zc_fused_params *p)
{
    return set_operands(l, &l->out[0], zc_op_epilogue_first(l->info, l->attrs), l->nin, p);
}
