/* Reference kernels of signal processing: plain sums in double. */
#include <math.h>
#include <string.h>

#include "cpu/kernel.h"
#include "op/mel.h"

static const double pi = 3.14159265358979323846;

/* ---- Fourier transforms ---- */

/* cos and sin of 2*pi*i/n. */
static double *twiddles(zc_kctx *k, int64_t n)
{
    size_t bytes;
    if (!zc_mul_size((size_t)n, 2 * sizeof(double), &bytes)) return NULL;
    double *t = zc_scratch_get(k->scratch, bytes);
    for (int64_t i = 0; t && i < n; i++) {
        t[2 * i] = cos(2 * pi * (double)i / (double)n);
        t[2 * i + 1] = sin(2 * pi * (double)i / (double)n);
    }
    return t;
}

/* Element `bin` of the transform of the m complex numbers x, taken as n long (cut or padded with
 * zeros); sign -1: forward, 1: inverse without its factor. */
static void transform_bin(const double *x, int64_t m, const double *t, int64_t n, int64_t bin,
                          int sign, double out[2])
{
    out[0] = out[1] = 0;
    int64_t angle = 0;
    for (int64_t i = 0; i < m && i < n; i++) {
        double c = t[2 * angle], s = sign * t[2 * angle + 1];
        out[0] += x[2 * i] * c - x[2 * i + 1] * s;
        out[1] += x[2 * i] * s + x[2 * i + 1] * c;
        angle = (angle + bin) % n;
    }
}

/* Element i of the real inverse of a one-sided spectrum. */
static double real_inverse_at(const double *x, int64_t m, const double *t, int64_t n, int64_t i)
{
    double sum = m > 0 ? x[0] : 0;
    int64_t half = n / 2;
    for (int64_t b = 1; b <= half && b < m; b++) {
        int64_t angle = b * i % n;
        double both = x[2 * b] * t[2 * angle] - x[2 * b + 1] * t[2 * angle + 1];
        sum += (n % 2 == 0 && b == half) ? x[2 * b] * t[2 * angle] : 2 * both;
    }
    return sum / (double)n;
}

typedef struct dft_line {
    const zc_tensor *x;
    zc_tensor *y;
    int64_t in_stride, out_stride; /* between elements of the axis, in (real or complex) elements */
    int64_t in_len, bins;
    int in_parts, out_parts;
} dft_line;

static void load_line(const dft_line *l, int64_t first, double *line)
{
    for (int64_t i = 0; i < l->in_len; i++) {
        int64_t at = (first + i * l->in_stride) * l->in_parts;
        line[2 * i] = zc_get(l->x, at);
        line[2 * i + 1] = l->in_parts == 2 ? zc_get(l->x, at + 1) : 0;
    }
}

static void store_line(const zc_attrs_DFT *a, const dft_line *l, int64_t first, const double *line,
                       const double *t, int64_t n)
{
    for (int64_t b = 0; b < l->bins; b++) {
        int64_t at = (first + b * l->out_stride) * l->out_parts;
        double v[2] = {0};
        if (l->out_parts == 1)
            v[0] = real_inverse_at(line, l->in_len, t, n, b);
        else
            transform_bin(line, l->in_len, t, n, b, a->inverse ? 1 : -1, v);
        double scale = a->inverse && l->out_parts == 2 ? 1.0 / (double)n : 1;
        for (int p = 0; p < l->out_parts; p++) zc_put(l->y, at + p, v[p] * scale);
    }
}

zc_status zc_k_DFT(zc_kctx *k)
{
    const zc_attrs_DFT *a = ZC_ATTRS(k, DFT);
    const zc_tensor *x = &k->in[ZC_IN_DFT_x];
    zc_tensor *y = &k->out[0];
    int64_t given = zc_input(k, ZC_IN_DFT_axis) ? zc_geti(&k->in[ZC_IN_DFT_axis], 0) : -2;
    int axis = zc_axis(given, x->rank);
    int64_t outer = zc_dims_span(x->dims, 0, axis),
            inner = zc_dims_span(x->dims, axis + 1, x->rank - 1);
    dft_line l = {.x = x,
                  .y = y,
                  .in_stride = inner,
                  .out_stride = inner,
                  .in_len = x->dims[axis],
                  .bins = y->dims[axis],
                  .in_parts = (int)x->dims[x->rank - 1],
                  .out_parts = (int)y->dims[y->rank - 1]};
    int64_t n = a->inverse && a->onesided ? l.bins : l.in_len;
    if (zc_input(k, ZC_IN_DFT_length)) n = zc_geti(&k->in[ZC_IN_DFT_length], 0);
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    double *t = twiddles(k, n);
    double *line = zc_scratch_get(k->scratch, (size_t)l.in_len * 2 * sizeof *line);
    if (!t || !line) return zc_fail_nomem(k->diag, "transform", (size_t)n * 2 * sizeof *line);
    for (int64_t o = 0; o < outer; o++) {
        for (int64_t i = 0; i < inner; i++) {
            load_line(&l, o * l.in_len * inner + i, line);
            store_line(a, &l, o * l.bins * inner + i, line, t, n);
        }
    }
    return ZC_OK;
}

zc_status zc_k_STFT(zc_kctx *k)
{
    const zc_tensor *x = &k->in[ZC_IN_STFT_x];
    const zc_tensor *window = zc_input(k, ZC_IN_STFT_window);
    zc_tensor *y = &k->out[0];
    int64_t step = zc_geti(&k->in[ZC_IN_STFT_step], 0),
            length = window ? window->dims[0] : x->dims[1];
    if (zc_input(k, ZC_IN_STFT_length)) length = zc_geti(&k->in[ZC_IN_STFT_length], 0);
    int64_t frames = y->dims[1], bins = y->dims[2];
    int parts = (int)x->dims[2];
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    double *t = twiddles(k, length);
    double *frame = zc_scratch_get(k->scratch, (size_t)length * 2 * sizeof *frame);
    if (!t || !frame)
        return zc_fail_nomem(k->diag, "transform", (size_t)length * 2 * sizeof *frame);
    for (int64_t r = 0; r < x->dims[0] * frames; r++) {
        int64_t first = r / frames * x->dims[1] + r % frames * step;
        for (int64_t i = 0; i < length; i++) {
            double w = window ? zc_get(window, i) : 1;
            frame[2 * i] = w * zc_get(x, (first + i) * parts);
            frame[2 * i + 1] = parts == 2 ? w * zc_get(x, (first + i) * parts + 1) : 0;
        }
        for (int64_t b = 0; b < bins; b++) {
            double v[2];
            transform_bin(frame, length, t, length, b, -1, v);
            zc_put(y, (r * bins + b) * 2, v[0]);
            zc_put(y, (r * bins + b) * 2 + 1, v[1]);
        }
    }
    return ZC_OK;
}

/* ---- windows: a0 - a1 cos(2 pi i/n) + a2 cos(4 pi i/n) ---- */

static zc_status cosine_window(zc_kctx *k, int64_t periodic, const double a[3])
{
    int64_t size = k->out[0].dims[0];
    double n = (double)(periodic ? size : size - 1);
    for (int64_t i = 0; i < size; i++) {
        double angle = 2 * pi * (double)i / n;
        zc_put(&k->out[0], i, a[0] - a[1] * cos(angle) + a[2] * cos(2 * angle));
    }
    return ZC_OK;
}

zc_status zc_k_HannWindow(zc_kctx *k)
{
    return cosine_window(k, ZC_ATTRS(k, HannWindow)->periodic, (double[]){0.5, 0.5, 0});
}

zc_status zc_k_HammingWindow(zc_kctx *k)
{
    return cosine_window(k, ZC_ATTRS(k, HammingWindow)->periodic,
                         (double[]){25.0 / 46, 21.0 / 46, 0});
}

zc_status zc_k_BlackmanWindow(zc_kctx *k)
{
    return cosine_window(k, ZC_ATTRS(k, BlackmanWindow)->periodic, (double[]){0.42, 0.5, 0.08});
}

/* ---- mel filters ---- */

static void put_in_range(zc_tensor *y, int64_t row, int64_t column, double v)
{
    if (row >= 0 && row < y->dims[0]) zc_put(y, row * y->dims[1] + column, v);
}

zc_status zc_k_MelWeightMatrix(zc_kctx *k)
{
    zc_tensor *y = &k->out[0];
    int64_t bins = zc_geti(&k->in[ZC_IN_MelWeightMatrix_bins], 0),
            dft = zc_geti(&k->in[ZC_IN_MelWeightMatrix_length], 0),
            rate = zc_geti(&k->in[ZC_IN_MelWeightMatrix_rate], 0);
    zc_mel scale;
    if (rate <= 0)
        return zc_kernel_fail(k, "sample_rate out of range (got %lld, need > 0)", (long long)rate);
    if (!zc_mel_init(&scale, bins, dft, rate, zc_get(&k->in[ZC_IN_MelWeightMatrix_lower], 0),
                     zc_get(&k->in[ZC_IN_MelWeightMatrix_upper], 0)))
        return zc_kernel_fail(k, "edge frequencies are out of range");
    size_t bytes = 0;
    if (zc_tensor_bytes(y, &bytes) && bytes) memset(y->data, 0, bytes);
    for (int64_t i = 0; i < bins; i++) {
        int64_t at[3];
        for (int j = 0; j < 3; j++)
            if (!zc_mel_edge(&scale, i + j, &at[j]))
                return zc_kernel_fail(k, "edge frequencies are out of range");
        if (at[1] == at[0]) put_in_range(y, at[1], i, 1);
        for (int64_t j = at[0]; at[1] > at[0] && j <= at[1]; j++)
            put_in_range(y, j, i, (double)(j - at[0]) / (double)(at[1] - at[0]));
        for (int64_t j = at[1]; at[2] > at[1] && j < at[2]; j++)
            put_in_range(y, j, i, (double)(at[2] - j) / (double)(at[2] - at[1]));
    }
    return ZC_OK;
}

/* ---- n-gram counts ---- */

static bool gram_matches(const zc_tensor *x, int64_t at, int64_t stride, const int64_t *gram,
                         int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        if (zc_geti(x, at + i * stride) != gram[i]) return false;
    return true;
}

/* Counts the n-grams of one row whose items stand `stride` apart. */
static void count_grams(const zc_attrs_TfIdfVectorizer *a, const zc_tensor *x, int64_t row,
                        int64_t width, int64_t n, int64_t stride, float *counts)
{
    int64_t entry = 0;
    for (int64_t m = 1; m < n; m++) entry += (a->ngram_counts.v[m] - a->ngram_counts.v[m - 1]) / m;
    int64_t begin = a->ngram_counts.v[n - 1];
    int64_t end = n < a->ngram_counts.n ? a->ngram_counts.v[n] : a->pool_int64s.n;
    if (stride > width) return;
    for (int64_t at = 0; at + (n - 1) * stride < width; at++)
        for (int64_t g = begin, e = entry; g < end; g += n, e++)
            if (gram_matches(x, row * width + at, stride, a->pool_int64s.v + g, n))
                counts[a->ngram_indexes.v[e]] += 1;
}

static void weigh(const zc_attrs_TfIdfVectorizer *a, float *counts)
{
    bool term = strcmp(a->mode, "TF") == 0, both = strcmp(a->mode, "TFIDF") == 0;
    for (int e = 0; !term && e < a->ngram_indexes.n; e++) {
        float *c = &counts[a->ngram_indexes.v[e]];
        float weight = a->weights.n ? a->weights.v[e] : 1;
        *c = both ? *c * weight : *c > 0 ? weight : 0;
    }
}

zc_status zc_k_TfIdfVectorizer(zc_kctx *k)
{
    const zc_attrs_TfIdfVectorizer *a = ZC_ATTRS(k, TfIdfVectorizer);
    const zc_tensor *x = &k->in[0];
    zc_tensor *y = &k->out[0];
    int64_t rows = x->rank == 2 ? x->dims[0] : 1, width = x->dims[x->rank - 1],
            out = y->dims[y->rank - 1];
    if (zc_tensor_numel(y)) memset(y->data, 0, (size_t)(rows * out) * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        float *counts = (float *)y->data + r * out;
        for (int64_t n = a->min_gram_length; n <= a->max_gram_length; n++)
            for (int64_t skip = 0;
                 skip <= a->max_skip_count && (n > 1 || skip == 0) && skip < width; skip++)
                count_grams(a, x, r, width, n, skip + 1, counts);
        weigh(a, counts);
    }
    return ZC_OK;
}
