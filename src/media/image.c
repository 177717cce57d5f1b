#include "media/image.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* Rows and columns have the same road: a line of `from` values, `stride` apart, becomes `to` ones.
 */
typedef struct line {
    int from, to;
    double *weights; /* `taps` for each result */
    int *first;      /* the value that its first weight is for */
    int taps;
} line;

static void line_fini(line *l)
{
    free(l->weights);
    free(l->first);
}

/* The weights of result i add up to one, at the edges too. */
static void weigh(line *l, int i, double ratio, double reach)
{
    double middle = (i + 0.5) * ratio, sum = 0;
    double *w = l->weights + (size_t)i * (size_t)l->taps;
    int first = (int)floor(middle - reach);
    l->first[i] = first < 0 ? 0 : first;
    for (int k = 0; k < l->taps && l->first[i] + k < l->from; k++) {
        double far = fabs(l->first[i] + k + 0.5 - middle) / reach;
        w[k] = far < 1 ? 1 - far : 0;
        sum += w[k];
    }
    for (int k = 0; k < l->taps; k++) w[k] /= sum;
}

static bool line_init(line *l, int from, int to)
{
    double ratio = (double)from / to, reach = ratio > 1 ? ratio : 1;
    *l = (line){.from = from, .to = to, .taps = (int)ceil(2 * reach) + 1};
    l->weights = zc_calloc((size_t)to, (size_t)l->taps * sizeof *l->weights);
    l->first = zc_calloc((size_t)to, sizeof *l->first);
    for (int i = 0; i < to && l->weights && l->first; i++) weigh(l, i, ratio, reach);
    return l->weights && l->first;
}

static float tap(const line *l, int i, const float *from, size_t stride)
{
    double sum = 0;
    const double *w = l->weights + (size_t)i * (size_t)l->taps;
    for (int k = 0; k < l->taps && l->first[i] + k < l->from; k++)
        sum += w[k] * (double)from[(size_t)(l->first[i] + k) * stride];
    return (float)sum;
}

/* height x width x c to height x to x c, or down columns with rows and columns exchanged. */
static float *resize(const float *from, size_t lines, size_t c, int n, int to, bool down,
                     zc_diag *diag)
{
    line l;
    float *out = zc_calloc(lines * (size_t)to, c * sizeof *out);
    bool ok = line_init(&l, n, to) && out;
    size_t stride = down ? lines * c : c, next = down ? c : (size_t)n * c,
           next_out = down ? c : (size_t)to * c;
    for (size_t i = 0; ok && i < lines; i++)
        for (int k = 0; k < to; k++)
            for (size_t ch = 0; ch < c; ch++)
                out[i * next_out + (size_t)k * stride + ch] =
                    tap(&l, k, from + i * next + ch, stride);
    line_fini(&l);
    if (ok) return out;
    free(out);
    (void)zc_fail_nomem(diag, "an image", lines * (size_t)to * c);
    return NULL;
}

static float *widen(const zc_image *m, zc_diag *diag)
{
    size_t n = (size_t)m->width * (size_t)m->height * (size_t)m->channels;
    float *out = zc_calloc(n, sizeof *out);
    if (!out) (void)zc_fail_nomem(diag, "an image", n * sizeof *out);
    for (size_t i = 0; out && i < n; i++) out[i] = m->data[i];
    return out;
}

/* Frees what it replaces. */
static float *step(float *from, size_t lines, size_t c, int n, int to, bool down, zc_diag *diag)
{
    if (!from || n == to) return from;
    float *out = resize(from, lines, c, n, to, down, diag);
    free(from);
    return out;
}

static void store(const float *from, const zc_image_form *f, int c, zc_tensor *t)
{
    int64_t plane = (int64_t)f->width * f->height;
    for (int64_t p = 0; p < plane; p++)
        for (int ch = 0; ch < c; ch++) {
            int64_t at = f->is_last ? p * c + ch : ch * plane + p;
            zc_store_f64(t->dtype, t->data, at,
                         ((double)from[p * c + ch] - f->mean[ch]) * f->scale[ch]);
        }
}

zc_status zc_image_tensor(const zc_image *m, const zc_image_form *form, zc_dtype dtype,
                          zc_tensor *out, zc_diag *diag)
{
    zc_image_form f = *form;
    size_t bytes, c = (size_t)m->channels;
    if (!f.width) f.width = m->width;
    if (!f.height) f.height = m->height;
    if (f.width > INT32_MAX / f.height || (uint64_t)f.width * (uint64_t)f.height > ZC_PIXELS_MAX ||
        (uint64_t)f.width * (uint64_t)m->height > ZC_PIXELS_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, NULL, "too large an image (got %d x %d)", f.width,
                       f.height);
    float *pixels = widen(m, diag);
    pixels = step(pixels, (size_t)m->height, c, m->width, f.width, false, diag);
    pixels = step(pixels, (size_t)f.width, c, m->height, f.height, true, diag);
    if (!pixels) return ZC_ERR_NOMEM;
    *out = (zc_tensor){.dtype = dtype, .rank = 4, .dims = {1, m->channels, f.height, f.width}};
    if (f.is_last) {
        out->dims[1] = f.height;
        out->dims[2] = f.width;
        out->dims[3] = m->channels;
    }
    zc_status status = ZC_OK;
    if (!zc_tensor_bytes(out, &bytes) || !(out->data = zc_calloc(bytes, 1)))
        status = zc_fail_nomem(diag, "an image", 0);
    else
        store(pixels, &f, m->channels, out);
    free(pixels);
    return status;
}
