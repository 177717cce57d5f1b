#include "codegen/gen.h"
#include "op/recurrent.h"

/* #define Z_<name> {...}: alpha (which 1) or beta (2) of each activation, or its kind (0). */
static void put_list(zc_gen *g, const char *name, const zc_recurrent *r, int which)
{
    zc_buf_printf(&g->spec, "#define Z_%s {", name);
    for (int i = 0; i < r->functions * r->directions; i++) {
        const zc_rnn_act *act = &r->act[i];
        if (which == 0)
            zc_buf_printf(&g->spec, "%s%d", i ? ", " : "", act->kind);
        else
            zc_buf_printf(&g->spec, "%s%.17g", i ? ", " : "", which == 1 ? act->alpha : act->beta);
    }
    zc_buf_puts(&g->spec, "}\n");
}

static bool is_finite(double v)
{
    return v - v == 0;
}

zc_status zc_gen_recurrent(zc_gen *g)
{
    const zc_pvalue *lengths = zc_gen_in(g, 4);
    zc_dtype t = zc_gen_in_type(g, 0);
    zc_recurrent r;
    ZC_TRY(zc_recurrent_of(g->step->op, g->attrs, g->step->name, g->diag, &r));
    for (int i = 0; i < 3; i++)
        if (zc_gen_in(g, i)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_gen_plain_type(t) || zc_dtype_bits(t) < 16)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
    if (lengths && !zc_gen_plain_type(lengths->dtype))
        return zc_gen_decline(g, "lengths of type %s", zc_dtype_name(lengths->dtype));
    for (int i = 0; i < r.functions * r.directions; i++)
        if (!is_finite(r.act[i].alpha) || !is_finite(r.act[i].beta))
            return zc_gen_decline(g, "an activation's parameter is not finite");
    if (r.clips && !(is_finite(r.clip) && r.clip >= 0))
        return zc_gen_decline(g, "clip is negative or not finite");
    zc_gen_type(g, "T", t);
    zc_gen_type(g, "LENGTH_TYPE", lengths ? lengths->dtype : ZC_I32);
    zc_gen_define(g, "GATES", "%d", r.gates);
    zc_gen_define(g, "DIRECTIONS", "%d", r.directions);
    zc_gen_define(g, "REVERSE", "%d", r.reverse);
    zc_gen_define(g, "BATCH_FIRST", "%d", r.batch_first);
    zc_gen_define(g, "LINEAR_FIRST", "%d", r.linear_first);
    zc_gen_define(g, "INPUT_FORGET", "%d", r.input_forget);
    zc_gen_define(g, "CLIPS", "%d", r.clips);
    zc_gen_define(g, "CLIP", "%.17g", r.clips ? r.clip : 0);
    zc_gen_define(g, "FUNCTIONS", "%d", r.functions);
    put_list(g, "ACTS", &r, 0);
    put_list(g, "ALPHAS", &r, 1);
    put_list(g, "BETAS", &r, 2);
    return ZC_OK;
}
