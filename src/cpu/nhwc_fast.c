/* Channels-last convolutions of f32: bands of output rows, one a thread. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/conv.h"
#include "cpu/conv_dnnl.h"
#include "cpu/dnnl.h"
#include "cpu/fast.h"
#include "cpu/nhwc.h"
#include "cpu/nhwc_panels.h"
#include "op/nhwc.h"

/* ---- convolution ---- */

/* Bands of one image, and the output pixels that they have at least: each reads all weights. More
 * bands where one would keep those who cancel a run waiting. */
#define BANDS        8
#define BANDS_MAX    64
#define LEAST_PIXELS 96
#define LONG_FLOPS   2e8
#define SHAPES_MAX   8

/* The library's convolutions for one input shape, one for each band of output rows. */
typedef struct conv_shape {
    int64_t dims[4];
    uint64_t used; /* when; 0: never made */
    int bands;
    zc_dnnl_conv *convs[BANDS_MAX];
    int64_t in_row[BANDS_MAX], out_row[BANDS_MAX + 1]; /* first rows */
    int64_t in_width, out_width;                       /* floats a row */
    size_t scratch;                                    /* bytes of temporary memory a band */
    size_t bytes;                                      /* that the convolutions take */
} conv_shape;

/* What a step keeps: its latest input shapes. */
typedef struct conv_state {
    conv_shape *shapes[SHAPES_MAX];
    uint64_t clock;
} conv_state;

typedef struct conv_job {
    const zc_kctx *k;
    const conv_shape *s;
    const zc_finish *epilogue;
    const float *x, *bias, *residual;
    float *y;
    unsigned char *scratch;
    int64_t images, in_plane, out_plane;
    bool relu;
    float *sums; /* before the residual is added; y, unless that is the residual */
    atomic_int status;
} conv_job;

static void shape_free(conv_shape *s)
{
    for (int i = 0; s && i < s->bands; i++) zc_dnnl_conv_destroy(s->convs[i]);
    free(s);
}

static void state_free(void *p)
{
    conv_state *s = p;
    for (int i = 0; i < SHAPES_MAX; i++) shape_free(s->shapes[i]);
    free(s);
}

bool zc_conv_nhwc_packs(const zc_attrs_ConvNhwc *a, zc_dtype x, zc_dtype w, int rank)
{
    bool plain = *a->activation == 0 || strcmp(a->activation, "Relu") == 0;
    return plain && !a->taps_first && x == ZC_F32 && w == ZC_F32 && rank == 4;
}

bool zc_fits_conv_nhwc_f32(const zc_kctx *k)
{
    bool constant = (k->const_in & 2) != 0;
    return k->state && k->packs && constant &&
           zc_conv_nhwc_packs(ZC_ATTRS(k, ConvNhwc), k->in[0].dtype, k->in[1].dtype,
                              k->in[0].rank) &&
           zc_tensor_numel(&k->in[0]) > 0 && zc_tensor_numel(&k->out[0]) > 0;
}

static bool present(const zc_kctx *k, int i)
{
    return k->nin > i && zc_present(&k->in[i]);
}

/* The geometry in channels-first terms. */
static zc_status geometry(zc_kctx *k, zc_conv *c)
{
    zc_attrs_Conv attrs = zc_nchw_conv(ZC_ATTRS(k, ConvNhwc));
    zc_tensor in[2] = {zc_nchw_shape(&k->in[0]), k->in[1]}, out = zc_nchw_shape(&k->out[0]);
    zc_kctx inner = *k;
    inner.op = ZC_OP_Conv;
    inner.info = zc_op_get(ZC_OP_Conv);
    inner.attrs = &attrs;
    inner.nin = 2;
    inner.in = in;
    inner.out = &out;
    return zc_conv_of(&inner, 0, 1, c);
}

/* A plane one pixel wide as a row, along which the library's kernels have their vectors. */
static zc_dnnl_shape laid_down(const zc_dnnl_shape *s)
{
    zc_dnnl_shape r = *s;
    for (int i = 0; i < 2; i++) {
        r.in[i] = s->in[1 - i];
        r.out[i] = s->out[1 - i];
        r.kernel[i] = s->kernel[1 - i];
        r.stride[i] = s->stride[1 - i];
        r.dilation[i] = s->dilation[1 - i];
        r.pad[i][0] = s->pad[1 - i][0];
    }
    return r;
}

/* Output rows [from, to) as a convolution of the input rows they need. */
static zc_dnnl_shape band_shape(const zc_kctx *k, const zc_conv *c, int64_t from, int64_t to,
                                int64_t *in_from)
{
    const zc_window *w = &c->w;
    zc_dnnl_shape s = {.groups = c->groups, .ic = c->ic, .oc = c->oc, .bias = present(k, 2)};
    for (int i = 0; i < 2; i++) {
        s.in[i] = w->in[i];
        s.out[i] = w->out[i];
        s.kernel[i] = w->kernel[i];
        s.stride[i] = w->stride[i];
        s.dilation[i] = w->dilation[i];
        s.pad[i][0] = w->begin[i];
    }
    int64_t first = from * w->stride[0] - w->begin[0];
    int64_t last = (to - 1) * w->stride[0] - w->begin[0] + (w->kernel[0] - 1) * w->dilation[0];
    *in_from = first > 0 ? first : 0;
    if (*in_from > w->in[0] - 1) *in_from = w->in[0] - 1;
    int64_t in_to = last + 1 < w->in[0] ? last + 1 : w->in[0];
    if (in_to <= *in_from) in_to = *in_from + 1;
    s.in[0] = in_to - *in_from;
    s.out[0] = to - from;
    s.pad[0][0] = *in_from - first;
    bool column = s.in[1] == 1 && s.out[1] == 1 && s.kernel[1] == 1 && s.pad[1][0] == 0;
    return column ? laid_down(&s) : s;
}

/* 1x1 windows without padding see a plane as one long row of pixels, which divides evenly. */
static void flatten(zc_conv *c)
{
    zc_window *w = &c->w;
    bool pixels = c->taps == 1 && w->stride[0] == 1 && w->stride[1] == 1 && !w->begin[0] &&
                  !w->begin[1] && w->out[0] == w->in[0] && w->out[1] == w->in[1];
    if (!pixels) return;
    w->in[0] = w->out[0] = c->in_plane;
    w->in[1] = w->out[1] = 1;
}

/* By the shape alone, never by the number of threads: how the library sums depends on the sizes
 * that it is given, and results must not depend on threads. */
static int64_t bands_of(const zc_conv *c)
{
    const double flops =
        2.0 * (double)(c->out_plane * c->taps) * (double)(c->groups * c->ic * c->oc);
    int64_t bands = c->out_plane / LEAST_PIXELS;
    if (bands < 2) bands = 2;
    if (bands > BANDS) bands = BANDS;
    if (flops > LONG_FLOPS * BANDS)
        bands = flops < LONG_FLOPS * BANDS_MAX ? (int64_t)(flops / LONG_FLOPS) : BANDS_MAX;
    return bands < c->w.out[0] ? bands : c->w.out[0];
}

/* Convolutions for bands of output rows; *refused: the library has none. */
static zc_status make_bands(zc_kctx *k, const zc_conv *c, conv_shape *s, bool *refused)
{
    int64_t rows = c->w.out[0], bands = bands_of(c);
    s->in_width = c->w.in[1] * c->groups * c->ic;
    s->out_width = c->w.out[1] * c->groups * c->oc;
    for (int i = 0; i < bands; i++) {
        s->out_row[i] = rows * i / bands;
        s->out_row[i + 1] = rows * (i + 1) / bands;
        zc_dnnl_shape shape = band_shape(k, c, s->out_row[i], s->out_row[i + 1], &s->in_row[i]);
        ZC_TRY(zc_dnnl_conv_create(k, &shape, &s->convs[i]));
        if (!s->convs[i]) {
            *refused = true;
            return ZC_OK;
        }
        s->bands = i + 1;
        s->bytes += zc_dnnl_conv_bytes(s->convs[i]);
        size_t scratch = zc_align_up(zc_dnnl_conv_scratch(s->convs[i]), 64);
        if (scratch > s->scratch) s->scratch = scratch;
    }
    return ZC_OK;
}

static conv_shape **oldest(conv_state *s)
{
    conv_shape **at = &s->shapes[0];
    for (int i = 0; i < SHAPES_MAX; i++) {
        if (!s->shapes[i]) return &s->shapes[i];
        if (s->shapes[i]->used < (*at)->used) at = &s->shapes[i];
    }
    return at;
}

static zc_status make_shape(zc_kctx *k, const zc_conv *c, conv_shape **out)
{
    bool refused = false;
    *out = NULL;
    conv_shape *s = zc_calloc(1, sizeof *s);
    if (!s) return zc_fail_nomem(k->diag, "convolution", sizeof *s);
    memcpy(s->dims, k->in[0].dims, sizeof s->dims);
    s->bytes = sizeof *s;
    zc_status status = make_bands(k, c, s, &refused);
    if (status != ZC_OK || refused)
        shape_free(s);
    else
        *out = s;
    return status;
}

/* The convolutions for the input's shape; *out is NULL when the library refuses. */
static zc_status find_shape(zc_kctx *k, const zc_conv *c, conv_shape **out)
{
    conv_state *s = k->state->p;
    if (!s && !(s = zc_calloc(1, sizeof *s)))
        return zc_fail_nomem(k->diag, "convolution", sizeof *s);
    if (!k->state->p) *k->state = (zc_kstate){.p = s, .destroy = state_free, .bytes = sizeof *s};
    *out = NULL;
    for (int i = 0; i < SHAPES_MAX; i++)
        if (s->shapes[i] && memcmp(s->shapes[i]->dims, k->in[0].dims, sizeof(*out)->dims) == 0)
            *out = s->shapes[i];
    if (!*out) {
        conv_shape **at = oldest(s);
        ZC_TRY(make_shape(k, c, out));
        if (!*out) return ZC_OK;
        k->state->bytes += (*out)->bytes - (*at ? (*at)->bytes : 0);
        shape_free(*at);
        *at = *out;
    }
    (*out)->used = ++s->clock;
    return ZC_OK;
}

/* y = act(sums + residual). The library's own forms are not used: its Relu turns NaN into 0, and
 * with a residual it forgets the bias where a window lies in the padding. */
static void finish(const conv_job *j, int64_t at, int64_t n)
{
    const float *sums = j->sums + at;
    float *y = j->y + at;
    for (int64_t i = 0; j->residual && i < n; i++) y[i] = sums[i] + j->residual[at + i];
    for (int64_t i = 0; j->relu && i < n; i++) y[i] = y[i] < 0 ? 0 : y[i];
}

static void conv_band(void *arg, int i)
{
    conv_job *j = arg;
    const conv_shape *s = j->s;
    int64_t floats = (s->out_row[i + 1] - s->out_row[i]) * s->out_width;
    for (int64_t n = 0; n < j->images && !zc_stopped(j->k);
         n++) { /* a band's convolution serves one thread at a time */
        int64_t at = n * j->out_plane + s->out_row[i] * s->out_width;
        const float *x = j->x + n * j->in_plane + s->in_row[i] * s->in_width;
        zc_status status = zc_dnnl_conv_run(s->convs[i], x, j->bias, j->sums + at,
                                            j->scratch + (size_t)i * s->scratch);
        if (status != ZC_OK) atomic_store(&j->status, (int)status);
        finish(j, at, floats);
        zc_finish_run(j->epilogue, at, 1, floats, 0);
    }
}

/* ---- channels that several filters have for themselves ---- */

typedef struct repeat_job {
    const float *from;
    float *to;
    int64_t times;
} repeat_job;

static void repeat(void *arg, int64_t begin, int64_t end)
{
    const repeat_job *j = arg;
    float *to = j->to + begin * j->times;
    for (int64_t i = begin; i < end; i++)
        for (int64_t t = 0; t < j->times; t++) *to++ = j->from[i];
}

/* Each as often as there are filters, so that all of those have a group: the library's kernels for
 * groups of one channel know only these. */
static zc_status repeat_channels(zc_kctx *k, zc_conv *c, const float **x)
{
    const int64_t n = zc_tensor_numel(&k->in[0]);
    repeat_job j = {.from = *x, .times = c->oc};
    size_t bytes;
    if (c->groups == 1 || c->ic > 1 || c->oc == 1) return ZC_OK;
    if (!zc_mul_size((size_t)(n * c->oc), sizeof *j.to, &bytes) ||
        !(j.to = zc_scratch_get(k->scratch, bytes)))
        return zc_fail_nomem(k->diag, "repeated channels", 0);
    zc_parallel(k, n, 4096, repeat, &j);
    *x = j.to;
    c->groups *= c->oc;
    c->oc = 1;
    return ZC_OK;
}

/* ---- the kernel ---- */

zc_status zc_fast_conv_nhwc_f32(zc_kctx *k)
{
    const float *x = k->in[0].data;
    zc_conv c;
    conv_shape *s;
    bool done;
    ZC_TRY(geometry(k, &c));
    ZC_TRY(zc_conv_panels(k, &c, &done));
    if (done) return ZC_OK;
    ZC_TRY(repeat_channels(k, &c, &x));
    flatten(&c);
    ZC_TRY(find_shape(k, &c, &s));
    if (!s) { /* the reference kernel reads the original */
        ZC_TRY(zc_packs_keep(k->packs, k->diag));
        return zc_k_ConvNhwc(k);
    }
    conv_job j = {.k = k,
                  .s = s,
                  .x = x,
                  .y = k->out[0].data,
                  .images = k->in[0].dims[0],
                  .bias = present(k, 2) ? k->in[2].data : NULL,
                  .residual = present(k, 3) ? k->in[3].data : NULL,
                  .in_plane = c.in_plane * c.groups * c.ic,
                  .out_plane = c.out_plane * c.groups * c.oc,
                  .relu = *ZC_ATTRS(k, ConvNhwc)->activation != 0};
    size_t bytes = (size_t)(j.images * j.out_plane) * sizeof *j.y;
    j.sums = j.residual == j.y ? zc_scratch_get(k->scratch, bytes) : j.y;
    if (!j.sums) return zc_fail_nomem(k->diag, "convolution", bytes);
    j.scratch = zc_scratch_get(k->scratch, s->scratch * (size_t)s->bands);
    if (!j.scratch) return zc_fail_nomem(k->diag, "convolution", s->scratch * (size_t)s->bands);
    ZC_TRY(zc_finish_begin(k, &j.epilogue));
    zc_parts(k, s->bands, conv_band, &j);
    return zc_dnnl_report(k, (zc_status)atomic_load(&j.status), "convolution");
}
