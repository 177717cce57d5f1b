#include <string.h>

#include "abi/nms.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

zc_status zc_gen_nms(zc_gen *g)
{
    zc_dtype boxes = zc_gen_in_type(g, 0), scores = zc_gen_in_type(g, 1);
    if (!zc_kernel_type(boxes)) return zc_gen_decline(g, "boxes of type %s", zc_dtype_name(boxes));
    if (!zc_kernel_type(scores))
        return zc_gen_decline(g, "scores of type %s", zc_dtype_name(scores));
    zc_gen_type(g, "BOX", boxes);
    zc_gen_type(g, "SCORE", scores);
    zc_gen_define(g, "CENTRED", "%d", ZC_ATTRS(g, NonMaxSuppression)->center_point_box != 0);
    return ZC_OK;
}

/* ---- the launch ---- */

enum { SORT, MERGE, SUPPRESS, SCAN, WRITE };

static bool scalar(const zc_launch *l, int i, double *out)
{
    bool has = zc_launch_has(l, i) && l->host[i].data && zc_tensor_numel(&l->host[i]) > 0;
    *out = has ? zc_load_f64(l->host[i].dtype, l->host[i].data, 0) : 0;
    return has;
}

static zc_status read_inputs(zc_launch *l, struct zc_nms_params *p)
{
    const zc_tensor *boxes = &l->in[0], *scores = &l->in[1];
    double most, iou, least;
    memset(p, 0, sizeof *p);
    ZC_TRY(
        zc_move_check(l, boxes, 3, (int64_t[]){scores->dims[0], scores->dims[2], 4}, "the boxes"));
    (void)scalar(l, 2, &most);
    (void)scalar(l, 3, &iou);
    p->by_score = scalar(l, 4, &least);
    p->boxes = boxes->data;
    p->scores = scores->data;
    p->classes = scores->dims[1];
    p->segments = scores->dims[0] * p->classes;
    p->n = scores->dims[2];
    p->most = !(most > 0) ? 0 : most < (double)p->n ? (int64_t)most : p->n;
    p->iou = (float)iou;
    p->least = (float)least;
    p->chunks = (p->n + ZC_NMS_CHUNK - 1) / ZC_NMS_CHUNK;
    p->list = p->chunks * ZC_NMS_CHUNK;
    return ZC_OK;
}

static zc_status room(zc_launch *l, struct zc_nms_params *p)
{
    size_t places = 0, kept = 0;
    bool fits = p->n < UINT32_MAX && zc_mul_size((size_t)p->segments, (size_t)p->list, &places) &&
                zc_mul_size((size_t)p->segments, (size_t)p->most, &kept) && places < SIZE_MAX / 8 &&
                kept < SIZE_MAX / 8;
    if (!fits) return zc_launch_fail(l, "too many boxes");
    ZC_TRY(zc_launch_scratch(l, places * sizeof *p->to, (void **)&p->to));
    ZC_TRY(zc_launch_scratch(l, places * sizeof *p->from, (void **)&p->from));
    ZC_TRY(zc_launch_scratch(l, places, (void **)&p->gone));
    ZC_TRY(zc_launch_scratch(l, kept * sizeof *p->kept, (void **)&p->kept));
    ZC_TRY(
        zc_launch_scratch(l, ((size_t)p->segments + 1) * sizeof *p->counts, (void **)&p->counts));
    return zc_launch_fill(l, p->gone, 0, places);
}

static zc_status select_boxes(zc_launch *l, struct zc_nms_params *p)
{
    zc_dim3 chunks = {zc_launch_blocks(p->segments * p->chunks, 1, 0), 1, 1};
    zc_dim3 segments = {zc_launch_blocks(p->segments, 1, 0), 1, 1};
    ZC_TRY(room(l, p));
    ZC_TRY(zc_launch_kernel(l, SORT, chunks, 256, 0, p, sizeof *p));
    for (p->run = ZC_NMS_CHUNK; p->run < p->list; p->run *= 2) {
        unsigned int *sorted = p->to;
        p->to = p->from;
        p->from = sorted;
        ZC_TRY(zc_launch_kernel(l, MERGE, zc_move_grid(l, p->segments * p->list), 256, 0, p,
                                sizeof *p));
    }
    p->from = p->to;
    ZC_TRY(zc_launch_kernel(l, SUPPRESS, segments, 256, 0, p, sizeof *p));
    return zc_launch_kernel(l, SCAN, (zc_dim3){1, 1, 1}, 256, 0, p, sizeof *p);
}

zc_status zc_launch_nms(zc_launch *l)
{
    struct zc_nms_params p;
    long long found = 0;
    ZC_TRY(read_inputs(l, &p));
    bool any = p.segments > 0 && p.n > 0 && p.most > 0;
    if (any) {
        ZC_TRY(select_boxes(l, &p));
        ZC_TRY(zc_launch_fetch(l, &found, p.counts + p.segments, sizeof found));
    }
    ZC_TRY(zc_launch_resize(l, 0, 2, (int64_t[]){found, 3}));
    if (found == 0) return ZC_OK;
    p.out = l->out[0].data;
    return zc_launch_kernel(l, WRITE, zc_move_grid(l, p.segments * p.most), 256, 0, &p, sizeof p);
}
