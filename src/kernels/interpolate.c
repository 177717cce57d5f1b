#include <math.h>
#include <string.h>

#include "abi/interpolate.h"
#include "kernels/gen.h"
#include "kernels/launch.h"
#include "op/resize.h"

/* ---- the specialisation ---- */

/* Bits, since infinities and NaN have no literal. */
static void put_float(zc_gen *g, const char *name, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    zc_gen_define(g, name, "zc_float(0x%08xu)", (unsigned)bits);
}

/* Is it sure to be one pass over two axes, whose lines of channels stay as they are? */
static bool keeps_lines(const zc_gen *g, const zc_resize_words *words)
{
    const zc_pvalue *x = zc_gen_in(g, 0), *y = zc_gen_out(g, 0);
    if (x->rank != 4) return false;
    const int64_t from = zc_gen_const_dim(x, 2), to = zc_gen_const_dim(y, 2);
    return zc_dim_eq(x->dims[0], y->dims[0]) && zc_dim_eq(x->dims[3], y->dims[3]) && from >= 0 &&
           to >= 0 && from != to && !ZC_ATTRS(g, Resize)->antialias &&
           words->coords != ZC_COORD_TF_CROP_AND_RESIZE;
}

zc_status zc_gen_interpolate(zc_gen *g)
{
    const zc_attrs_Resize *a = ZC_ATTRS(g, Resize);
    zc_dtype t = zc_gen_in_type(g, 0);
    zc_resize_words words;
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (!zc_kernel_type(t)) return zc_gen_decline(g, "element type %s", zc_dtype_name(t));
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
    if (keeps_lines(g, &words)) g->pitched = ZC_PITCHED_INPUT << 0 | ZC_PITCHED_RESULTS;
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

enum { BLOCK = 256, MOST_TAPS = 64 /* of one pass */, MOST_AXIS_TAPS = 1 << 24 };

typedef struct job {
    zc_launch *l;
    zc_resize_words words;
    zc_resize_axis axes[ZC_MAX_RANK];
    int64_t dims[ZC_MAX_RANK]; /* as resized so far */
    int rank;
    size_t sum_bytes; /* of an element of the type of sums */
} job;

static const zc_tensor *given(const zc_launch *l, int i)
{
    return l->nin > i && zc_present(&l->in[i]) && zc_tensor_numel(&l->host[i]) > 0 ? &l->host[i]
                                                                                   : NULL;
}

static int64_t tap_count(const job *j, double scale)
{
    double s = ZC_ATTRS(j->l, Resize)->antialias && scale < 1 ? scale : 1, reach;
    if (j->words.mode == ZC_RESIZE_NEAREST) return 1;
    reach = floor((j->words.mode == ZC_RESIZE_LINEAR ? -1 : -2) / s) + 1;
    return reach < -MOST_AXIS_TAPS ? MOST_AXIS_TAPS * 2 : 2 - 2 * (int64_t)reach;
}

static bool changes(const job *j, int d)
{
    const zc_resize_axis *ax = &j->axes[d];
    bool crop = j->words.coords == ZC_COORD_TF_CROP_AND_RESIZE;
    return ax->resized && !(ax->out == j->dims[d] && ax->scale == 1 && !crop);
}

/* Are all input coordinates of the axis? */
static bool in_range(const zc_resize_axis *ax, int64_t in)
{
    double reach = fabs(ax->roi[0]) + fabs(ax->roi[1]) + 2;
    return ((double)ax->out + 1) / ax->scale + ((double)in + 1) * reach < 9e15;
}

/* Computes the table of axis d, and puts it into slot s of a pass. */
static zc_status put_axis(job *j, int d, struct zc_resize_pass *p, int s)
{
    zc_launch *l = j->l;
    const zc_resize_axis *ax = &j->axes[d];
    int64_t taps = tap_count(j, ax->scale);
    struct zc_resize_table t;
    size_t cells;
    void *first, *weights = NULL;
    memset(&t, 0, sizeof t);
    if (!in_range(ax, j->dims[d]) || taps > MOST_AXIS_TAPS)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "scale out of range of the GPU kernel (got %g)", ax->scale);
    if (!zc_mul_size((size_t)ax->out, (size_t)taps, &cells) || cells > SIZE_MAX / 16)
        return zc_fail_nomem(l->diag, "resize", cells);
    ZC_TRY(zc_launch_scratch(l, (size_t)ax->out * sizeof(int64_t), &first));
    if (j->words.mode != ZC_RESIZE_NEAREST)
        ZC_TRY(zc_launch_scratch(l, cells * j->sum_bytes, &weights));
    t.first = first;
    t.weights = weights;
    t.in = j->dims[d];
    t.out = ax->out;
    t.taps = (int)taps;
    t.scale = ax->scale;
    for (int e = 0; e < 2; e++) t.roi[e] = ax->roi[e];
    p->in[s] = t.in;
    p->out[s] = t.out;
    p->first[s] = first;
    p->weights[s] = weights;
    p->taps[s] = t.taps;
    j->dims[d] = ax->out;
    zc_dim3 grid = {zc_launch_blocks(ax->out, BLOCK, 0), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &t, sizeof t);
}

/* Takes axes from *next downwards into one pass, innermost last: as many as fit. */
static zc_status fill_pass(job *j, int *next, struct zc_resize_pass *p)
{
    int64_t taps = 1, kept = zc_dims_span(j->dims, *next + 1, j->rank);
    int s = ZC_RESIZE_AXES - 1;
    memset(p, 0, sizeof *p);
    for (int i = 0; i < ZC_RESIZE_AXES; i++) {
        p->in[i] = p->out[i] = p->keep[i] = 1;
        p->taps[i] = 1;
    }
    for (; *next >= 0 && s >= 0; --*next) {
        if (!changes(j, *next)) {
            kept *= j->dims[*next];
            continue;
        }
        int64_t more = tap_count(j, j->axes[*next].scale);
        if (taps > 1 && taps * more > MOST_TAPS) break;
        taps *= more > MOST_AXIS_TAPS ? MOST_AXIS_TAPS : more;
        p->keep[s] = kept;
        kept = 1;
        ZC_TRY(put_axis(j, *next, p, s--));
    }
    p->from_pitch = p->to_pitch = p->keep[ZC_RESIZE_AXES - 1];
    p->total = zc_numel(j->rank, j->dims);
    return ZC_OK;
}

static bool any_left(const job *j, int next)
{
    for (; next >= 0; next--)
        if (changes(j, next)) return true;
    return false;
}

/* The only pass of nearest neighbours moves units of 16 bytes, where what is kept has such. */
static bool in_units(const job *j, struct zc_resize_pass *p)
{
    enum { UNIT = 16, INNER = ZC_RESIZE_AXES - 1 };
    const zc_launch *l = j->l;
    int64_t each = UNIT / (zc_dtype_bits(l->in[0].dtype) / 8);
    if (j->words.mode != ZC_RESIZE_NEAREST || j->words.coords == ZC_COORD_TF_CROP_AND_RESIZE ||
        zc_op_epilogue(l->info, l->attrs) || p->keep[INNER] % each)
        return false;
    p->keep[INNER] /= each;
    p->from_pitch /= each;
    p->to_pitch /= each;
    p->total /= each;
    return true;
}

/* Operands with a pitch: of the only pass (keeps_lines). */
static void put_pitches(const job *j, struct zc_resize_pass *p)
{
    const zc_launch *l = j->l;
    if (l->in_pitch && l->in_pitch[0]) p->from_pitch = l->in_pitch[0];
    if (l->out_pitch && l->out_pitch[0]) p->to_pitch = l->out_pitch[0];
}

static zc_status run(job *j, const void *from)
{
    zc_launch *l = j->l;
    bool moves = j->words.mode == ZC_RESIZE_NEAREST;
    bool from_sums = false, last = false;
    for (int next = j->rank - 1; !last;) {
        struct zc_resize_pass p;
        ZC_TRY(fill_pass(j, &next, &p));
        last = !any_left(j, next);
        put_pitches(j, &p);
        ZC_TRY(zc_launch_epilogue(l, &p.fused));
        p.from = from;
        p.to = l->out[0].data;
        size_t each = moves ? zc_dtype_bits(l->in[0].dtype) / 8 : j->sum_bytes;
        if (p.total > 0 && (size_t)p.total > SIZE_MAX / each)
            return zc_fail_nomem(l->diag, "resize", 0);
        if (!last) ZC_TRY(zc_launch_scratch(l, (size_t)p.total * each, &p.to));
        int entry = from_sums ? (last ? 4 : 3) : (last ? 1 : 2);
        if (last && from == l->in[0].data && in_units(j, &p)) entry = 5;
        zc_dim3 grid = {zc_launch_blocks(p.total, BLOCK, 0), 1, 1};
        ZC_TRY(zc_launch_kernel(l, entry, grid, BLOCK, 0, &p, sizeof p));
        from = p.to;
        from_sums = !moves;
    }
    return ZC_OK;
}

zc_status zc_launch_interpolate(zc_launch *l)
{
    const zc_attrs_Resize *a = ZC_ATTRS(l, Resize);
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    job j = {.l = l, .rank = x->rank};
    size_t bytes;
    ZC_TRY(zc_resize_read_words(a, &j.words, l->subject, l->diag));
    ZC_TRY(zc_resize_axes(a, x->rank, x->dims, given(l, 1), given(l, 2), given(l, 3), j.axes,
                          l->subject, l->diag));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    if (zc_tensor_numel(x) == 0)
        return zc_fail(l->diag, ZC_ERR_MODEL, l->subject,
                       "cannot resize an empty input to a non-empty output");
    bool half = zc_dtype_is_float(x->dtype) && x->dtype != ZC_F64;
    j.sum_bytes = half ? sizeof(float) : sizeof(double);
    memcpy(j.dims, x->dims, sizeof j.dims);
    if (any_left(&j, j.rank - 1) || zc_op_epilogue(l->info, a)) return run(&j, x->data);
    return zc_tensor_bytes(y, &bytes) ? zc_launch_copy(l, y->data, x->data, bytes) : ZC_OK;
}
