#include "codegen/gen.h"
#include "cuda/quant.h"

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
    zc_quant_map(&tx, &ts, axis, block, &p);
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
    if (!zc_gen_plain_type(scale) || zc_dtype_class(scale) == ZC_CLASS_BOOL)
        return zc_gen_decline(g, "scales of type %s", zc_dtype_name(scale));
    if (down ? zc_dtype_bits(x) < 8 : !zc_gen_plain_type(y))
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
    if (!zc_gen_plain_type(precision))
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
