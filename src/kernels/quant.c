#include "abi/quant.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

/* ---- what both halves need ---- */

static int64_t at_least_1(int64_t n)
{
    return n < 1 ? 1 : n;
}

/* Where elements find their scales: fills axis, inner, block, blocks and by_inner; none is a
 * divisor of 0. */
static void map_scales(const zc_tensor *x, const zc_tensor *scale, int64_t axis, int64_t block,
                       struct zc_quant_params *p)
{
    p->axis = p->inner = p->blocks = 1;
    p->block = 0;
    p->by_inner = 0;
    if (block == 0 && zc_tensor_numel(scale) == 1) return;
    int at = (int)(axis < 0 ? axis + x->rank : axis);
    p->axis = at_least_1(x->dims[at]);
    p->inner = at_least_1(zc_dims_span(x->dims, at + 1, x->rank));
    p->block = block ? block : 1;
    p->blocks = at_least_1(block ? scale->dims[at] : x->dims[at]);
    p->by_inner = block != 0;
}

/* ---- the specialisation ---- */

/* The map from elements to scales: constants where the shapes are certain. */
static void put_map(zc_gen *g, int64_t axis, int64_t block)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *scale = zc_gen_in(g, 1);
    struct zc_quant_params p;
    zc_tensor tx, ts;
    if (!zc_gen_static(x) || !zc_gen_static(scale)) {
        zc_buf_puts(&g->spec,
                    "#define Z_AXIS p.axis\n#define Z_INNER p.inner\n#define Z_BLOCK p.block\n"
                    "#define Z_BLOCKS p.blocks\n#define Z_BY_INNER p.by_inner\n");
        return;
    }
    zc_gen_tensor(x, &tx);
    zc_gen_tensor(scale, &ts);
    map_scales(&tx, &ts, axis, block, &p);
    zc_gen_define(g, "AXIS", "%lldLL", p.axis);
    zc_gen_define(g, "INNER", "%lldLL", p.inner);
    zc_gen_define(g, "BLOCK", "%lldLL", p.block);
    zc_gen_define(g, "BLOCKS", "%lldLL", p.blocks);
    zc_gen_define(g, "BY_INNER", "%d", p.by_inner);
}

static bool small_float(zc_dtype t)
{
    return zc_dtype_is_float(t) && zc_dtype_bits(t) <= 16;
}

/* Is a quotient or product in f32, rounded again to the result, as good as in f64? */
static bool single_is_enough(bool down, zc_dtype x, zc_dtype scale, zc_dtype to)
{
    if (down) {
        if (!zc_dtype_is_float(x) || x == ZC_F64 || scale == ZC_F64 || !zc_dtype_is_float(scale))
            return false;
        return to == ZC_F32 || (small_float(x) && small_float(scale) && zc_dtype_bits(to) == 16);
    }
    if (zc_dtype_bits(x) > 8 || scale == ZC_F64 || to == ZC_F64 || !zc_dtype_is_float(scale))
        return false;
    return to == ZC_F32 || small_float(scale);
}

static zc_status check_types(zc_gen *g, bool down)
{
    zc_dtype x = zc_gen_in_type(g, 0), scale = zc_gen_in_type(g, 1), y = zc_gen_out_type(g, 0);
    if (zc_dtype_class(x) == ZC_CLASS_COMPLEX || zc_dtype_class(x) == ZC_CLASS_BOOL)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(x));
    if (!zc_kernel_type(scale) || zc_dtype_class(scale) == ZC_CLASS_BOOL)
        return zc_gen_decline(g, "scales of type %s", zc_dtype_name(scale));
    if (down ? zc_dtype_bits(x) < 8 : !zc_kernel_type(y))
        return zc_gen_decline(g, "element type %s to %s", zc_dtype_name(x), zc_dtype_name(y));
    if (zc_gen_in(g, 2) && zc_dtype_class(zc_gen_in_type(g, 2)) == ZC_CLASS_COMPLEX)
        return zc_gen_decline(g, "zero points of type %s", zc_dtype_name(zc_gen_in_type(g, 2)));
    if (zc_gen_in(g, 0)->rank < 0 || zc_gen_in(g, 1)->rank < 0)
        return zc_gen_decline(g, "rank known only when run");
    return ZC_OK;
}

/* The type whose rounding the quotient has. */
static zc_dtype precision_of(const zc_gen *g, bool down)
{
    zc_dtype x = zc_gen_in_type(g, 0), scale = zc_gen_in_type(g, 1);
    if (!down) return zc_gen_out_type(g, 0);
    int64_t asked = ZC_ATTRS(g, QuantizeLinear)->precision;
    zc_dtype precision = asked ? (zc_dtype)asked : x == ZC_F64 ? ZC_F64 : scale;
    return zc_dtype_is_float(precision) ? precision : ZC_F32;
}

zc_status zc_gen_quant(zc_gen *g)
{
    bool down = g->step->op == ZC_OP_QuantizeLinear;
    zc_dtype x = zc_gen_in_type(g, 0), scale = zc_gen_in_type(g, 1),
             precision = precision_of(g, down);
    ZC_TRY(check_types(g, down));
    if (g->declined[0]) return ZC_OK;
    if (!zc_kernel_type(precision))
        return zc_gen_decline(g, "precision %s", zc_dtype_name(precision));
    zc_gen_define(g, "QUANTIZE", "%d", down);
    zc_gen_type(g, "X", x);
    zc_gen_type(g, "SCALE", scale);
    zc_gen_type(g, "Y", zc_gen_out_type(g, 0));
    zc_gen_type(g, "WORK", single_is_enough(down, x, scale, precision) ? ZC_F32 : ZC_F64);
    zc_gen_define(g, "HAS_ZERO", "%d", zc_gen_in(g, 2) != NULL);
    if (zc_gen_in(g, 2)) zc_gen_type(g, "ZERO", zc_gen_in_type(g, 2));
    if (down) {
        zc_gen_type(g, "PRECISION", precision);
        zc_gen_define(g, "SATURATE", "%s",
                      ZC_ATTRS(g, QuantizeLinear)->saturate ? "true" : "false");
        put_map(g, ZC_ATTRS(g, QuantizeLinear)->axis, ZC_ATTRS(g, QuantizeLinear)->block_size);
    } else {
        put_map(g, ZC_ATTRS(g, DequantizeLinear)->axis, ZC_ATTRS(g, DequantizeLinear)->block_size);
    }
    return ZC_OK;
}

/* ---- the launch ---- */

/* Scales and zero points that shape inference has left open must be as many as the elements look
 * for. */
static zc_status check_scales(zc_launch *l, const struct zc_quant_params *p)
{
    const zc_tensor *x = &l->in[0];
    int64_t inner = p->by_inner ? p->inner : 1;
    int64_t outer = p->by_inner && p->block ? p->total / p->axis / p->inner : 1;
    int64_t need[] = {outer, p->block ? p->blocks : 1, inner}, needed = zc_numel(3, need);
    for (int i = 1; i <= 2 && p->total; i++) {
        if (!zc_launch_has(l, i) || zc_tensor_numel(&l->in[i]) >= needed) continue;
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "too few %s for %lld elements (got %lld, need %lld)",
                       i == 1 ? "scales" : "zero points", (long long)zc_tensor_numel(x),
                       (long long)zc_tensor_numel(&l->in[i]), (long long)needed);
    }
    if (p->by_inner && (p->blocks - 1) * p->block >= p->axis && p->total)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "more blocks than the axis has (got %lld of %lld)", (long long)p->blocks,
                       (long long)p->block);
    if (p->by_inner && p->total && p->blocks < (p->axis + p->block - 1) / p->block)
        return zc_fail(l->diag, ZC_ERR_INPUT, l->subject,
                       "too few blocks along the axis (got %lld of %lld)", (long long)p->blocks,
                       (long long)p->block);
    return ZC_OK;
}

static bool aligned(const zc_tensor *t)
{
    return (uintptr_t)t->data % (zc_dtype_bits(t->dtype) / 2) == 0;
}

zc_status zc_launch_quant(zc_launch *l)
{
    bool down = l->info == zc_op_get(ZC_OP_QuantizeLinear);
    int64_t axis = down ? ZC_ATTRS(l, QuantizeLinear)->axis : ZC_ATTRS(l, DequantizeLinear)->axis;
    int64_t block =
        down ? ZC_ATTRS(l, QuantizeLinear)->block_size : ZC_ATTRS(l, DequantizeLinear)->block_size;
    struct zc_quant_params p = {.x = l->in[0].data,
                                .scale = l->in[1].data,
                                .zero = zc_launch_in(l, 2),
                                .y = l->out[0].data,
                                .total = zc_tensor_numel(&l->in[0])};
    map_scales(&l->in[0], &l->in[1], axis, block, &p);
    ZC_TRY(check_scales(l, &p));
    p.aligned = aligned(&l->in[0]) && aligned(&l->out[0]);
    zc_dim3 grid = {zc_launch_blocks((p.total + 3) / 4, 256, 32 * (int64_t)l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, 256, 0, &p, sizeof p);
}
