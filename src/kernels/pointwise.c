#include <string.h>

#include "abi/pointwise.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/pointwise.h"

/* ---- what both halves need ---- */

enum { BLOCK = 256, ONE = 1, ONE_WIDE = 2 }; /* the entries of symbolic shapes */

static unsigned widest(int n, const zc_dtype *types)
{
    unsigned bits = 0;
    for (int i = 0; i < n; i++)
        if (types[i] != ZC_NONE && zc_dtype_bits(types[i]) > bits) bits = zc_dtype_bits(types[i]);
    return bits;
}

static int vector_of(int nout, const zc_dtype *out, int nin, const zc_dtype *in)
{
    unsigned a = widest(nout, out), b = widest(nin, in), bits = a > b ? a : b;
    return bits <= 16 ? 8 : bits == 32 ? 4 : 2;
}

/* Elements that a thread takes at once; 0: as the shapes of a run allow. */
const char *const zc_config_pointwise[] = {"vector", NULL};

/* May a thread take `vec` neighbours at once? Each run of them must lie in one row. (Tensors begin
 * at multiples of 16 bytes.) */
static bool can_vectorise(const zc_collapsed *c, int nin, int vec)
{
    int last = c->rank - 1;
    if (c->rank == 0 || c->dims[last] % vec) return false;
    for (int i = 0; i < nin; i++) {
        if (c->strides[i][last] == 0) continue;
        if (c->strides[i][last] != 1) return false;
        for (int d = 0; d < last; d++)
            if (c->strides[i][d] % vec) return false;
    }
    return true;
}

/* ---- the specialisation ---- */

/* false: only a run knows the shapes. */
static bool collapse_certain(zc_gen *g, zc_collapsed *c)
{
    zc_tensor out, in[ZC_POINT_INPUTS];
    if (!zc_gen_all_static(g)) return false;
    zc_gen_tensor(zc_gen_out(g, 0), &out);
    for (uint32_t i = 0; i < g->step->nin; i++) zc_gen_tensor(zc_gen_in(g, (int)i), &in[i]);
    zc_collapse_broadcast(&out, (int)g->step->nin, in, NULL, c);
    return true;
}

static int choose_vector(zc_gen *g, int vec)
{
    zc_collapsed c;
    if (!collapse_certain(g, &c)) return 0;
    return can_vectorise(&c, (int)g->step->nin, vec) ? vec : 1;
}

/* Is this operand one line for each of the result's? */
static bool has_all_lines(const zc_pvalue *x, const zc_pvalue *y)
{
    bool same = x->rank == y->rank && x->rank > 0;
    for (int d = 0; same && d < x->rank; d++) same = zc_dim_eq(x->dims[d], y->dims[d]);
    return same;
}

/* Operands may have a pitch where axes are collapsed when run, or where lines of the last axis keep
 * an axis of their own. */
static void take_pitches(zc_gen *g)
{
    const zc_pvalue *y = zc_gen_out(g, 0);
    zc_collapsed c;
    if (collapse_certain(g, &c) &&
        (c.rank < 2 || c.dims[c.rank - 1] != zc_gen_const_dim(y, y->rank - 1)))
        return;
    for (uint32_t i = 0; i < g->step->nin && i < ZC_PITCHED_INPUTS; i++)
        if (has_all_lines(zc_gen_in(g, (int)i), y)) g->pitched |= ZC_PITCHED_INPUT << i;
}

/* Shapes that are certain become constants. */
static bool put_shapes(zc_gen *g)
{
    zc_tensor out;
    zc_shape in[ZC_POINT_INPUTS];
    if (!zc_gen_all_static(g)) return true;
    zc_gen_tensor(zc_gen_out(g, 0), &out);
    zc_gen_shapes(g, 0, (int)g->step->nin, in);
    int64_t total = zc_tensor_numel(&out);
    zc_gen_define(g, "TOTAL", "%lldLL", (long long)total);
    zc_gen_define(g, "WIDE", "%d", total > INT32_MAX);
    return zc_gen_broadcast(g, "", zc_gen_shape(zc_gen_out(g, 0)), (int)g->step->nin, in,
                            ZC_POINT_RANK);
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
        if (out[i] != ZC_NONE && !zc_kernel_type(out[i]))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(out[i]));
    }
    for (uint32_t i = 0; i < g->step->nin; i++) {
        in[i] = zc_gen_in_type(g, (int)i);
        if (!zc_kernel_type(in[i]))
            return zc_gen_decline(g, "element type %s", zc_dtype_name(in[i]));
    }
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    if (!e) return zc_fail_nomem(g->diag, "expression", sizeof *e);
    ZC_TRY(zc_pointwise_expr(g->info, g->attrs, (int)g->step->nin, in, e, g->step->name, g->diag));
    int vec = vector_of((int)g->step->nout, out, (int)g->step->nin, in),
        chosen = choose_vector(g, vec);
    zc_gen_define(g, "VEC", "%d", chosen ? chosen : vec);
    g->config[0] = chosen;
    g->threads = BLOCK;
    put_operands(g, in, out);
    if (!put_shapes(g))
        return zc_gen_decline(g, "broadcast pattern of more than %d axes", ZC_POINT_RANK);
    take_pitches(g);
    e->ninputs = (int)g->step->nin;
    return zc_gen_results(g, "zc_point", e, in);
}

/* ---- the launch ---- */

zc_status zc_launch_pointwise(zc_launch *l)
{
    struct zc_pointwise_params p;
    zc_collapsed c;
    zc_dtype in[ZC_POINT_INPUTS], out[ZC_POINT_OUTPUTS];
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_launch_broadcast(l, &l->out[0], l->nin, l->in, l->in_pitch, ZC_POINT_RANK, &c));
    for (int i = 0; i < l->nout; i++) {
        out[i] = l->out[i].dtype;
        p.out[i] = l->out[i].data;
    }
    p.total = zc_tensor_numel(&l->out[0]);
    p.rank = c.rank;
    for (int d = 0; d < c.rank; d++) p.dims[d] = c.dims[d];
    for (int i = 0; i < l->nin; i++) {
        p.in[i] = l->in[i].data;
        in[i] = l->in[i].dtype;
        for (int d = 0; d < c.rank; d++) p.strides[i][d] = c.strides[i][d];
    }
    int vec = (int)l->kernel->config[0], entry = 0;
    if (!vec) {
        vec = vector_of(l->nout, out, l->nin, in);
        if (p.total > INT32_MAX)
            entry = ONE_WIDE;
        else if (!can_vectorise(&c, l->nin, vec))
            entry = ONE;
        if (entry) vec = 1;
    }
    zc_dim3 grid = {zc_launch_blocks(p.total / vec, BLOCK, 0), 1, 1};
    return zc_launch_kernel(l, entry, grid, BLOCK, 0, &p, sizeof p);
}
