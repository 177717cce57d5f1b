#include "codegen/gen.h"

zc_status zc_gen_nms(zc_gen *g)
{
    zc_dtype boxes = zc_gen_in_type(g, 0), scores = zc_gen_in_type(g, 1);
    if (!zc_gen_plain_type(boxes))
        return zc_gen_decline(g, "boxes of type %s", zc_dtype_name(boxes));
    if (!zc_gen_plain_type(scores))
        return zc_gen_decline(g, "scores of type %s", zc_dtype_name(scores));
    zc_gen_type(g, "BOX", boxes);
    zc_gen_type(g, "SCORE", scores);
    zc_gen_define(g, "CENTRED", "%d", ZC_ATTRS(g, NonMaxSuppression)->center_point_box != 0);
    return ZC_OK;
}
