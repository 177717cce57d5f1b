#include <string.h>

#include "abi/pool.h"
#include "kernels/gen.h"
#include "kernels/window.h"

/* ---- the specialisation ---- */

/* Threads that share a plane whose pooling is global (0: a window is one thread's), and the
 * neighbouring channels that a thread has. */
enum { TEAM, EACH };
const char *const zc_config_pool[] = {"team", "each", NULL};
enum { BLOCK = 256, WARP = 32, WARP_PLANE = 2048 /* elements of a plane that a warp takes */ };

static void choose_team(zc_gen *g, const zc_pvalue *x)
{
    static const int64_t bound = WARP_PLANE;
    int64_t low, high;
    zc_gen_size(g, x->dims + 2, x->rank - 2, &bound, 1, &low, &high);
    g->config[TEAM] = high <= WARP_PLANE ? WARP : BLOCK;
}

static bool is_max(zc_op op)
{
    return op == ZC_OP_MaxPool || op == ZC_OP_MaxPoolNhwc || op == ZC_OP_GlobalMaxPool;
}

/* Are channels last? */
static bool is_last(zc_op op)
{
    return op == ZC_OP_MaxPoolNhwc || op == ZC_OP_AveragePoolNhwc;
}

static bool counts_pad(const zc_gen *g)
{
    const zc_op op = g->step->op;
    return op == ZC_OP_AveragePool       ? ZC_ATTRS(g, AveragePool)->count_include_pad != 0
           : op == ZC_OP_AveragePoolNhwc ? ZC_ATTRS(g, AveragePoolNhwc)->count_include_pad != 0
                                         : false;
}

static void put_kind(zc_gen *g)
{
    zc_op op = g->step->op;
    zc_dtype t = zc_gen_in_type(g, 0);
    int64_t p = op == ZC_OP_LpPool         ? ZC_ATTRS(g, LpPool)->p
                : op == ZC_OP_GlobalLpPool ? ZC_ATTRS(g, GlobalLpPool)->p
                                           : 0;
    zc_gen_type(g, "X", t);
    zc_gen_define(g, "POOL", "%d", is_max(op) ? 0 : p ? 2 : 1);
    zc_gen_define(g, "P", "%lld", (long long)p);
    zc_gen_define(g, "LEAST", "%s",
                  t == ZC_F64  ? "-zc_inf64()"
                  : t == ZC_I8 ? "-128"
                  : t == ZC_U8 ? "0"
                               : "-zc_inf32()");
    bool index = op == ZC_OP_MaxPool && zc_gen_out(g, 1);
    zc_gen_define(g, "INDEX", "%d", index);
    zc_gen_define(g, "COLUMN_MAJOR", "%d", index && ZC_ATTRS(g, MaxPool)->storage_order == 1);
    zc_gen_define(g, "COUNT_PAD", "%d", counts_pad(g));
}

/* Need positions 64 bits? Of the result's and the input's elements, those in planes. */
static bool wide(const zc_gen *g)
{
    zc_tensor t;
    const zc_pvalue *y = zc_gen_out(g, 0);
    if (!zc_gen_static(y)) return true;
    zc_gen_tensor(y, &t);
    return zc_tensor_numel(&t) > INT32_MAX;
}

/* Channels that a thread reads at once, 16 bytes at most. */
static int each_of(zc_dtype dtype, zc_dim channels)
{
    int most = 128 / (int)zc_dtype_bits(dtype), n = 1;
    while (zc_dim_is_const(channels) && n < most && channels.k % (2 * n) == 0) n *= 2;
    return n;
}

zc_status zc_gen_pool(zc_gen *g)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *y = zc_gen_out(g, 0);
    zc_window_attrs a;
    int64_t group;
    bool windows = zc_window_attrs_of(g->step->op, g->attrs, &a, &group);
    if (x->rank < 0) return zc_gen_decline(g, "rank known only when run");
    bool eight = is_max(g->step->op) && (x->dtype == ZC_I8 || x->dtype == ZC_U8);
    if (!zc_gen_sums_type(x->dtype) && !eight)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x->dtype));
    if (windows && !zc_gen_window_fits(g, &a, x->rank - 2)) return ZC_OK;
    put_kind(g);
    g->config[EACH] = 1;
    g->threads = BLOCK;
    if (!windows) {
        choose_team(g, x);
        return zc_gen_epilogue(g);
    }
    bool last = is_last(g->step->op);
    int first = last ? 1 : 2;
    zc_gen_window_dims d = {.axes = x->rank - 2};
    for (int i = 0; i < d.axes; i++) {
        d.in[i] = x->dims[first + i];
        d.out[i] = y->dims[first + i];
        d.kernel[i] = zc_dim_const(a.kernel.v[i]);
    }
    zc_gen_window(g, &a, &d);
    zc_gen_dim(g, "inner", last ? x->dims[x->rank - 1] : zc_dim_const(1));
    zc_gen_define(g, "WIDE", "%d", wide(g));
    if (last) {
        g->config[EACH] = each_of(x->dtype, x->dims[x->rank - 1]);
        g->pitched = ZC_PITCHED_INPUT << 0 | ZC_PITCHED_RESULTS;
    }
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

static zc_status launch_global(zc_launch *l, struct zc_pool_params *p)
{
    const zc_tensor *x = &l->in[0];
    p->plane = zc_dims_span(x->dims, 2, x->rank);
    zc_dim3 grid = {zc_launch_blocks(p->total, BLOCK / l->kernel->config[TEAM], 0), 1, 1};
    return zc_launch_configured(l, grid, p, sizeof *p);
}

zc_status zc_launch_pool(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    struct zc_pool_params p;
    zc_window_attrs a;
    zc_window w;
    int64_t group;
    memset(&p, 0, sizeof p);
    p.in = x->data;
    p.out = y->data;
    p.total = zc_tensor_numel(y);
    p.inner = p.in_pitch = p.out_pitch = 1;
    if (p.total == 0) return ZC_OK;
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    if (!zc_window_attrs_of(l->op, l->attrs, &a, &group)) return launch_global(l, &p);
    int first = 2;
    if (is_last(l->op)) {
        p.inner = x->dims[x->rank - 1];
        p.in_pitch = zc_launch_in_pitch(l, 0);
        p.out_pitch = zc_launch_out_pitch(l, 0);
        first = 1;
    }
    if (l->nout > 1 && zc_present(&l->out[1])) p.index = l->out[1].data;
    zc_window_resolve(&a, x->rank - 2, x->dims + first, y->dims + first, a.kernel.v, &w);
    ZC_TRY(zc_launch_window(l, &w, &p.window));
    zc_dim3 grid = {zc_launch_blocks(p.total / l->kernel->config[EACH], BLOCK, 0), 1, 1};
    return zc_launch_configured(l, grid, &p, sizeof p);
}
