/* Normalisation of groups of channels over a plane, channels last. */
#include <string.h>

#include "abi/plane_norm.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/launch.h"

enum { BLOCK = 512, EACH = 8, STATE = 8, GROUPS = 512 };

/* ---- the specialisation ---- */

static const char *not_these(const zc_gen *g, const zc_attrs_MsGroupNorm *a)
{
    const zc_pvalue *x = zc_gen_in(g, 0);
    zc_dtype s = zc_gen_in_type(g, 1);
    int64_t channels = x->rank > 2 ? zc_gen_const_dim(x, x->rank - 1) : -1;
    if (s != zc_gen_in_type(g, 2) || !zc_kernel_type(s) || !zc_dtype_is_float(s) || s == ZC_F64)
        return "types of scale and bias";
    if (!a->channels_last) return "channels first";
    if (channels <= 0 || channels % EACH || channels > BLOCK * EACH)
        return "channels that are no multiple of 8, or too many";
    if (a->groups <= 0 || channels % a->groups || a->groups > GROUPS)
        return "groups that do not divide them, or too many";
    return NULL;
}

/* Neighbouring channels of a group that a thread sums up as one. With many groups no more than two:
 * sums are few enough to be joined, and groups of two, four and eight channels have one kernel. */
static int run_of(int64_t width, int64_t groups)
{
    int run = groups < 16 ? EACH : 2;
    while (width % run) run /= 2;
    return run;
}

zc_status zc_gen_plane_norm(zc_gen *g)
{
    const zc_attrs_MsGroupNorm *a = ZC_ATTRS(g, MsGroupNorm);
    const zc_pvalue *x = zc_gen_in(g, 0);
    const char *why = not_these(g, a);
    if (why) return zc_gen_decline(g, "%s", why);
    zc_gen_type(g, "X", x->dtype);
    zc_gen_type(g, "S", zc_gen_in_type(g, 1));
    zc_gen_define(g, "GROUPS", "%d", (int)a->groups);
    zc_gen_define(g, "RUN", "%d", run_of(x->dims[x->rank - 1].k / a->groups, a->groups));
    if (a->activation) zc_gen_define(g, "SILU", "1");
    ZC_TRY(zc_gen_epilogue(g));
    zc_gen_epilogue_cells(g);
    return ZC_OK;
}

/* ---- the launch ---- */

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Parts of an image, for a block on each multiprocessor: at most `most`, each thread with so many
 * pixels or more. Sets a part's pixels. */
static int64_t parts_of(const zc_launch *l, int64_t pixels, int64_t each, int64_t most,
                        long long *chunk)
{
    const zc_tensor *x = &l->in[0];
    int64_t lines = BLOCK / (x->dims[x->rank - 1] / EACH);
    int64_t parts = least(zc_ceil_div(pixels, lines * each), zc_ceil_div(l->sm_count, x->dims[0]));
    *chunk = zc_ceil_div(pixels, least(parts, most));
    return zc_ceil_div(pixels, *chunk);
}

static zc_status check(zc_launch *l, int64_t channels, int64_t pixels)
{
    for (int i = 1; i < 3; i++) ZC_TRY(zc_launch_check_size(l, i, channels, "scale or bias"));
    if (pixels > UINT32_MAX - BLOCK)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "too many pixels for the kernel");
    if (l->in[0].dims[0] > UINT16_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "too many images for the kernel");
    return ZC_OK;
}

zc_status zc_launch_plane_norm(zc_launch *l)
{
    const zc_attrs_MsGroupNorm *a = ZC_ATTRS(l, MsGroupNorm);
    const zc_tensor *x = &l->in[0];
    int64_t images = x->dims[0], channels = x->dims[x->rank - 1];
    struct zc_plane_norm_params p = {.x = x->data,
                                     .y = l->out[0].data,
                                     .scale = l->in[1].data,
                                     .bias = l->in[2].data,
                                     .pixels = zc_dims_span(x->dims, 1, x->rank - 1),
                                     .by_channels = zc_divisor_of(channels),
                                     .by_width = zc_divisor_of(channels / a->groups),
                                     .by_lines = zc_divisor_of(BLOCK / (channels / EACH)),
                                     .eps = a->epsilon};
    size_t bytes;
    ZC_TRY(check(l, channels, p.pixels));
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    ZC_TRY(zc_launch_epilogue(l, &p.fused));
    const int64_t most = ZC_PLANE_NORM_TEAM(a->groups) * ZC_PLANE_NORM_EACH;
    p.parts = parts_of(l, p.pixels, 4, most, &p.chunk);
    int64_t blocks = parts_of(l, p.pixels, 2, INT32_MAX, &p.chunk_of_result);
    if (!zc_mul_size((size_t)(images * p.parts), (size_t)a->groups * STATE, &bytes))
        return zc_fail_nomem(l->diag, "statistics", 0);
    ZC_TRY(zc_launch_scratch(l, bytes, &p.states));
    zc_dim3 parts = {(uint32_t)p.parts, (uint32_t)images, 1},
            grid = {(uint32_t)blocks, (uint32_t)images, 1};
    ZC_TRY(zc_launch_kernel(l, 0, parts, BLOCK, 0, &p, sizeof p));
    return zc_launch_kernel(l, 1, grid, BLOCK, 0, &p, sizeof p);
}
