#include "op/resize.h"

#include <string.h>

#include "codegen/gen.h"

/* Bits, since infinities and NaN have no literal. */
static void put_float(zc_gen *g, const char *name, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    zc_gen_define(g, name, "zc_float(0x%08xu)", (unsigned)bits);
}

zc_status zc_gen_interpolate(zc_gen *g)
{
    const zc_attrs_Resize *a = ZC_ATTRS(g, Resize);
    zc_dtype t = zc_gen_in_type(g, 0);
    zc_resize_words words;
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_gen_plain_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (zc_op_epilogue(g->info, a) && !zc_dtype_is_float(t))
        return zc_gen_decline(g, "epilogue of element type %s", zc_dtype_name(t));
    ZC_TRY(zc_resize_read_words(a, &words, g->step->name, g->diag));
    zc_gen_type(g, "X", t);
    zc_gen_define(g, "ACC", "%s", zc_dtype_is_float(t) ? zc_gen_compute_type(t) : "f64");
    zc_gen_define(g, "MODE", "%d", (int)words.mode);
    zc_gen_define(g, "COORDS", "%d", (int)words.coords);
    zc_gen_define(g, "ROUND", "%d", (int)words.round);
    zc_gen_define(g, "ANTIALIAS", "%d", a->antialias != 0);
    put_float(g, "CUBIC", a->cubic_coeff_a);
    zc_gen_define(g, "EXCLUDE", "%d", a->exclude_outside != 0);
    put_float(g, "EXTRAPOLATED", a->extrapolation_value);
    return zc_gen_epilogue(g);
}
