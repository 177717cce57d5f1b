#include <stdio.h>
#include <string.h>

#include "abi/pad.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

const char *const zc_config_pad[] = {"unit", NULL};

zc_status zc_gen_pad(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (in->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "pad");
    zc_gen_unit(g, in->dtype, NULL, 0);
    return ZC_OK;
}

/* ---- the launch ---- */

/* Elements that each axis gains at either end; negative ones crop. */
typedef struct border {
    int64_t begin[ZC_MAX_RANK], end[ZC_MAX_RANK];
} border;

static zc_status read_pads(zc_launch *l, border *b)
{
    const zc_tensor *in = &l->in[0];
    int64_t pads[2 * ZC_MAX_RANK], axes[ZC_MAX_RANK], dims[ZC_MAX_RANK];
    int npads, naxes;
    memset(b, 0, sizeof *b);
    ZC_TRY(zc_launch_ints(l, 1, pads, 2 * ZC_MAX_RANK, &npads));
    ZC_TRY(zc_launch_ints(l, 3, axes, ZC_MAX_RANK, &naxes));
    int n = naxes >= 0 ? naxes : in->rank;
    ZC_TRY(zc_move_check_length(l, npads, 2 * n, "number of pads"));
    for (int i = 0; i < n; i++) {
        int64_t axis = naxes >= 0 ? axes[i] : i;
        if (axis < -in->rank || axis >= in->rank)
            return zc_launch_fail(l, "axis out of range (got %lld, need [%d, %d])", (long long)axis,
                                  -in->rank, in->rank - 1);
        if (axis < 0) axis += in->rank;
        b->begin[axis] = pads[i];
        b->end[axis] = pads[n + i];
    }
    for (int i = 0; i < in->rank; i++)
        if (!zc_add_i64(in->dims[i], b->begin[i], &dims[i]) ||
            !zc_add_i64(dims[i], b->end[i], &dims[i]))
            return zc_launch_fail(l, "pads of axis %d are too large", i);
    return zc_move_check(l, &l->out[0], in->rank, dims, "the output");
}

/* Halves of an odd difference are rounded down, for the crop as for the pad. */
static zc_status read_center(zc_launch *l, border *b)
{
    const zc_tensor *in = &l->in[0];
    const zc_attrs_CenterCropPad *a = ZC_ATTRS(l, CenterCropPad);
    int64_t lengths[ZC_MAX_RANK], dims[ZC_MAX_RANK];
    int n;
    bool given = ZC_ATTR_GIVEN(CenterCropPad, a, axes) || a->axes.n;
    ZC_TRY(zc_launch_ints(l, 1, lengths, ZC_MAX_RANK, &n));
    ZC_TRY(zc_move_check_length(l, n, given ? a->axes.n : in->rank, "number of lengths"));
    memcpy(dims, in->dims, sizeof dims);
    for (int i = 0; i < n; i++) {
        int64_t axis = given ? a->axes.v[i] : i;
        dims[axis < 0 ? axis + in->rank : axis] = lengths[i];
    }
    ZC_TRY(zc_move_check(l, &l->out[0], in->rank, dims, "the output"));
    for (int i = 0; i < in->rank; i++) {
        b->begin[i] = (dims[i] - in->dims[i]) / 2;
        b->end[i] = dims[i] - in->dims[i] - b->begin[i];
    }
    return ZC_OK;
}

/* A border of the same element all around: inner axes without border join the axis outside them. */
static void put_constant(zc_launch *l, const border *b, struct zc_pad_params *p)
{
    const zc_tensor *in = &l->in[0], *out = &l->out[0];
    int64_t strides[ZC_MAX_RANK], inner = 1, dims[ZC_MAX_RANK];
    zc_move_strides(in, strides);
    int last = in->rank;
    while (last > 1 && b->begin[last - 1] == 0 && b->end[last - 1] == 0) inner *= in->dims[--last];
    p->rank = last;
    for (int d = 0; d < last; d++) {
        int64_t times = d == last - 1 ? inner : 1;
        dims[d] = out->dims[d] * times;
        p->axes[d].dim = zc_divisor_of(dims[d]);
        p->axes[d].lead = b->begin[d] * times;
        p->axes[d].n = in->dims[d] * times;
        p->axes[d].stride = d == last - 1 ? 1 : strides[d];
    }
    p->in = in->data;
    p->value = l->op == ZC_OP_Pad ? zc_launch_in(l, 2) : NULL;
}

/* Negative pads crop, then the rest is extended. */
static zc_status put_extended(zc_launch *l, const border *b, struct zc_pad_params *p)
{
    const zc_tensor *in = &l->in[0], *out = &l->out[0];
    int64_t strides[ZC_MAX_RANK], at = 0;
    zc_move_strides(in, strides);
    p->rank = in->rank;
    for (int d = 0; d < in->rank; d++) {
        int64_t crop = b->begin[d] < 0 ? -b->begin[d] : 0;
        p->axes[d].dim = zc_divisor_of(out->dims[d]);
        p->axes[d].lead = b->begin[d] > 0 ? b->begin[d] : 0;
        p->axes[d].n = in->dims[d] - crop + (b->end[d] < 0 ? b->end[d] : 0);
        p->axes[d].stride = strides[d];
        at += crop * strides[d];
        if (p->axes[d].n <= 0) return zc_launch_fail(l, "axis %d has no elements to extend", d);
    }
    p->in = (const char *)in->data + at * zc_move_size(in);
    return ZC_OK;
}

static int mode_of(const zc_launch *l)
{
    if (l->op != ZC_OP_Pad) return ZC_PAD_CONSTANT;
    switch (ZC_ATTRS(l, Pad)->mode[0]) {
    case 'e':
        return ZC_PAD_EDGE;
    case 'w':
        return ZC_PAD_WRAP;
    case 'r':
        return ZC_PAD_REFLECT;
    default:
        return ZC_PAD_CONSTANT;
    }
}

zc_status zc_launch_pad(zc_launch *l)
{
    struct zc_pad_params p;
    border b;
    memset(&p, 0, sizeof p);
    ZC_TRY(l->op == ZC_OP_Pad ? read_pads(l, &b) : read_center(l, &b));
    p.out = l->out[0].data;
    p.total = zc_tensor_numel(&l->out[0]);
    p.mode = mode_of(l);
    if (p.total == 0) return ZC_OK;
    if (p.mode == ZC_PAD_CONSTANT) {
        if (l->op == ZC_OP_Pad && zc_launch_has(l, 2))
            ZC_TRY(zc_move_check_length(l, zc_tensor_numel(&l->in[2]), 1,
                                        "number of constant values"));
        put_constant(l, &b, &p);
    } else {
        ZC_TRY(put_extended(l, &b, &p));
    }
    return zc_launch_configured(l, zc_move_grid(l, p.total), &p, sizeof p);
}
