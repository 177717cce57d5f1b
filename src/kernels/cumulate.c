#include <string.h>

#include "abi/cumulate.h"
#include "kernels/gen.h"
#include "kernels/groups.h"

/* ---- the specialisation ---- */

static void put_flag(zc_gen *g, const char *name, bool value)
{
    zc_gen_define(g, name, "%s", value ? "true" : "false");
}

zc_status zc_gen_cumulate(zc_gen *g)
{
    zc_dtype t = zc_gen_in_type(g, 0);
    zc_dclass c = zc_dtype_class(t);
    bool product = g->step->op == ZC_OP_CumProd;
    if (!zc_kernel_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "T", t);
    zc_gen_define(g, "ACC", "%s",
                  c == ZC_CLASS_FLOAT ? (t == ZC_F64 ? "f64" : "f32")
                  : c == ZC_CLASS_INT ? "i64"
                                      : "u64");
    put_flag(g, "PRODUCT", product);
    put_flag(g, "EXCLUSIVE",
             product ? ZC_ATTRS(g, CumProd)->exclusive != 0 : ZC_ATTRS(g, CumSum)->exclusive != 0);
    put_flag(g, "REVERSE",
             product ? ZC_ATTRS(g, CumProd)->reverse != 0 : ZC_ATTRS(g, CumSum)->reverse != 0);
    return ZC_OK;
}

/* ---- the launch ---- */

enum { BLOCK = 256, TILE = 1024, SMEM = BLOCK / 32 * 8, MOST_CHUNKS = 256 };

/* Cuts lines into chunks of at least `least` while there are fewer than `wanted` units of work. */
static void cut(struct zc_cumulate_params *p, int64_t least, int64_t wanted)
{
    int64_t n = wanted / p->lines, most = p->length / least;
    if (n > most) n = most;
    if (n > MOST_CHUNKS) n = MOST_CHUNKS;
    if (n < 1) n = 1;
    p->chunk = (p->length + n - 1) / n;
    p->chunks = (p->length + p->chunk - 1) / p->chunk;
}

zc_status zc_launch_cumulate(zc_launch *l)
{
    struct zc_cumulate_params p;
    const zc_tensor *x = &l->in[0];
    int64_t axis;
    int n;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_launch_ints(l, 1, &axis, 1, &n));
    if (n != 1 || axis < -x->rank || axis >= x->rank)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "axis out of range (got %lld, need [%d, %d])", n == 1 ? (long long)axis : 0,
                       -x->rank, x->rank - 1);
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    int at = zc_launch_axis(axis, x->rank);
    p.in = x->data;
    p.out = l->out[0].data;
    p.length = x->dims[at];
    p.inner = zc_dims_span(x->dims, at + 1, x->rank);
    p.lines = zc_tensor_numel(x) / p.length;
    bool block = p.inner < 32 && p.length >= 128;
    if (block)
        cut(&p, 8 * TILE, 2 * (int64_t)l->sm_count);
    else
        cut(&p, 64, 512 * (int64_t)l->sm_count);
    zc_dim3 grid = {zc_launch_blocks(p.lines * p.chunks, block ? 1 : BLOCK, 0), 1, 1};
    if (p.chunks > 1) {
        ZC_TRY(zc_launch_scratch(l, (size_t)(p.lines * p.chunks) * sizeof(double), &p.totals));
        ZC_TRY(zc_launch_kernel(l, block ? 0 : 2, grid, BLOCK, SMEM, &p, sizeof p));
    }
    return zc_launch_kernel(l, block ? 1 : 3, grid, BLOCK, SMEM, &p, sizeof p);
}
