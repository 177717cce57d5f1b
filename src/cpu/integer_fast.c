/* Exact products of 8-bit integers: MatMulInteger, QLinearMatMul, and ConvInteger and QLinearConv
 * as products of gathered windows. The left operand is taken as unsigned bytes and the right one as
 * signed ones; what is the other kind is shifted by 128, and so is its zero point. Sums are
 * integers, so how the work is divided changes no bit. */
#include <stdatomic.h>
#include <string.h>

#include "cpu/conv.h"
#include "cpu/dnnl.h"
#include "cpu/fast.h"
#include "cpu/gemm.h"
#include "cpu/matmul.h"
#include "cpu/quant_out.h"

static bool is_byte(const zc_tensor *t)
{
    return t->dtype == ZC_U8 || t->dtype == ZC_I8;
}

static int zero_of(const zc_kctx *k, int i)
{
    return zc_input(k, i) ? (int)zc_geti(&k->in[i], 0) : 0;
}

/* One zero point for all: the library knows no other. */
static bool is_single(const zc_kctx *k, int i)
{
    if (!zc_input(k, i)) return true;
    int64_t n = zc_tensor_numel(&k->in[i]);
    for (int64_t p = 1; p < n; p++)
        if (zc_geti(&k->in[i], p) != zc_geti(&k->in[i], 0)) return false;
    return n > 0;
}

/* n bytes, shifted by 128 when the type is not the one that is needed. */
static const void *shifted(zc_kctx *k, const zc_tensor *t, zc_dtype need, int *zero)
{
    size_t n = (size_t)zc_tensor_numel(t);
    if (t->dtype == need) return t->data;
    uint8_t *to = zc_scratch_get(k->scratch, n);
    const uint8_t *from = t->data;
    for (size_t i = 0; to && i < n; i++) to[i] = from[i] ^ 0x80;
    *zero += need == ZC_U8 ? 128 : -128;
    return to;
}

/* How sums become results: y = saturate(round(sum * scale) + zero), or sums as they are. */
typedef struct scaling {
    const double *scale; /* NULL: sums as they are */
    bool each;           /* a scale a column, else one */
    double y_zero;
} scaling;

/* scale[i] = t[i] * by / over, of one number or one a column. */
static zc_status scaling_of(zc_kctx *k, const zc_tensor *t, double by, double over, int y_zero,
                            scaling *s)
{
    int64_t n = zc_tensor_numel(t);
    double *scale = zc_scratch_get(k->scratch, (size_t)n * sizeof *scale);
    if (!scale) return zc_fail_nomem(k->diag, "scales", (size_t)n * sizeof *scale);
    for (int64_t i = 0; i < n; i++) scale[i] = zc_get(t, i) * by / over;
    *s = (scaling){.scale = scale, .each = n > 1, .y_zero = zero_of(k, y_zero)};
    return ZC_OK;
}

/* count sums, `step` apart, of one column. */
static void put_column(zc_tensor *y, int64_t at, const int32_t *sums, int64_t count, int64_t step,
                       const scaling *s, int64_t column, int32_t bias)
{
    if (!s->scale) {
        int32_t *to = (int32_t *)y->data + at;
        for (int64_t i = 0; i < count; i++) to[i] = sums[i * step] + bias;
        return;
    }
    const bool is_signed = y->dtype == ZC_I8;
    const double scale = s->scale[s->each ? column : 0];
    const double low = (is_signed ? -128 : 0) - s->y_zero, high = low + 255;
    uint8_t *to = (uint8_t *)y->data + at;
    for (int64_t i = 0; i < count; i++) {
        double q = (double)((int64_t)sums[i * step] + bias) * scale;
        q = q < low ? low : q > high ? high : q == q ? q : -s->y_zero;
        const double magic = 6755399441055744.0; /* 1.5 * 2^52: adding it rounds to an integer */
        to[i] = (uint8_t)(int)((q + magic) - magic + s->y_zero);
    }
}

/* ---- matrix products ---- */

enum { PARTS = 8, LEAST_ROWS = 16 };

typedef struct product_job {
    const zc_mm *mm;
    const uint8_t *a;
    const int8_t *b;
    int a_zero, b_zero;
    int32_t *sums;
    zc_tensor *y;
    const scaling *s;
    int64_t parts; /* of the rows, or of the columns */
    bool by_rows;
    atomic_int status;
} product_job;

static void product_part(void *arg, int i)
{
    product_job *j = arg;
    const zc_mm *mm = j->mm;
    int64_t item = i / j->parts, p = i % j->parts, all = j->by_rows ? mm->m : mm->n, a, b;
    int64_t from = all * p / j->parts, count = all * (p + 1) / j->parts - from;
    int64_t row = j->by_rows ? from : 0, col = j->by_rows ? 0 : from;
    int64_t m = j->by_rows ? count : mm->m, n = j->by_rows ? mm->n : count;
    if (m == 0 || n == 0) return;
    zc_mm_offsets(mm, item, &a, &b);
    int32_t *sums = j->sums + (item * mm->m + row) * mm->n + col;
    zc_status status = zc_igemm(false, m, n, mm->k, j->a + a + row * mm->a_row,
                                mm->a_row < mm->k ? mm->k : mm->a_row, j->a_zero, j->b + b + col,
                                mm->b_row, j->b_zero, sums, mm->n);
    if (status != ZC_OK) atomic_store(&j->status, (int)status);
    for (int64_t r = 0; j->s->scale && r < m; r++)
        for (int64_t c = 0; c < n; c += j->s->each ? 1 : n)
            put_column(j->y, (item * mm->m + row + r) * mm->n + col + c, sums + r * mm->n + c,
                       j->s->each ? 1 : n, 1, j->s, col + c, 0);
}

static zc_status multiply(zc_kctx *k, const zc_mm *mm, int ai, int bi, int a_zero, int b_zero,
                          const scaling *s)
{
    int64_t n = zc_tensor_numel(&k->out[0]);
    product_job j = {.mm = mm,
                     .a_zero = zero_of(k, a_zero),
                     .b_zero = zero_of(k, b_zero),
                     .y = &k->out[0],
                     .s = s};
    if (n == 0) return ZC_OK;
    j.a = shifted(k, &k->in[ai], ZC_U8, &j.a_zero);
    j.b = shifted(k, &k->in[bi], ZC_I8, &j.b_zero);
    j.sums = s->scale ? zc_scratch_get(k->scratch, (size_t)n * sizeof *j.sums) : k->out[0].data;
    if (!j.a || !j.b || !j.sums) return zc_fail_nomem(k->diag, "integer product", (size_t)n);
    j.by_rows = mm->m >= PARTS * LEAST_ROWS;
    j.parts = mm->batch < PARTS && (double)mm->m * (double)mm->n * (double)mm->k > 1e6 ? PARTS : 1;
    zc_parts(k, (int)(mm->batch * j.parts), product_part, &j);
    return zc_dnnl_report(k, (zc_status)atomic_load(&j.status), "matrix product");
}

static bool fits_product(const zc_kctx *k, int ai, int bi, int a_zero, int b_zero)
{
    const zc_tensor *a = &k->in[ai], *b = &k->in[bi];
    bool sizes = a->rank >= 1 && b->rank >= 2 && zc_tensor_numel(a) > 0 && zc_tensor_numel(b) > 0 &&
                 zc_tensor_numel(&k->out[0]) < INT32_MAX / PARTS;
    return sizes && is_byte(a) && is_byte(b) && is_single(k, a_zero) && is_single(k, b_zero);
}

bool zc_fits_matmul_integer(const zc_kctx *k)
{
    return fits_product(k, ZC_IN_MatMulInteger_a, ZC_IN_MatMulInteger_b, ZC_IN_MatMulInteger_a_zero,
                        ZC_IN_MatMulInteger_b_zero);
}

zc_status zc_fast_matmul_integer(zc_kctx *k)
{
    zc_mm mm;
    const scaling s = {.scale = NULL};
    ZC_TRY(zc_mm_of(k, ZC_IN_MatMulInteger_a, ZC_IN_MatMulInteger_b, &mm));
    return multiply(k, &mm, ZC_IN_MatMulInteger_a, ZC_IN_MatMulInteger_b,
                    ZC_IN_MatMulInteger_a_zero, ZC_IN_MatMulInteger_b_zero, &s);
}

/* One scale, or one a column of the right operand. */
bool zc_fits_qlinear_matmul(const zc_kctx *k)
{
    const zc_tensor *b = &k->in[ZC_IN_QLinearMatMul_b],
                    *scale = &k->in[ZC_IN_QLinearMatMul_b_scale];
    int64_t n = zc_tensor_numel(scale);
    bool columns = scale->rank == 1 && b->rank >= 2 && n == b->dims[b->rank - 1];
    return is_byte(&k->out[0]) && zc_tensor_numel(&k->in[ZC_IN_QLinearMatMul_a_scale]) == 1 &&
           (n == 1 || columns) &&
           fits_product(k, ZC_IN_QLinearMatMul_a, ZC_IN_QLinearMatMul_b, ZC_IN_QLinearMatMul_a_zero,
                        ZC_IN_QLinearMatMul_b_zero);
}

zc_status zc_fast_qlinear_matmul(zc_kctx *k)
{
    zc_mm mm;
    scaling s;
    ZC_TRY(zc_mm_of(k, ZC_IN_QLinearMatMul_a, ZC_IN_QLinearMatMul_b, &mm));
    ZC_TRY(scaling_of(
        k, &k->in[ZC_IN_QLinearMatMul_b_scale], zc_get(&k->in[ZC_IN_QLinearMatMul_a_scale], 0),
        zc_get(&k->in[ZC_IN_QLinearMatMul_y_scale], 0), ZC_IN_QLinearMatMul_y_zero, &s));
    return multiply(k, &mm, ZC_IN_QLinearMatMul_a, ZC_IN_QLinearMatMul_b,
                    ZC_IN_QLinearMatMul_a_zero, ZC_IN_QLinearMatMul_b_zero, &s);
}

/* ---- convolutions ---- */

/* Bytes of windows at once, but those of one image at least. */
#define WINDOWS_MOST ((int64_t)32 << 20)

typedef struct conv_job {
    const zc_conv *c;
    const uint8_t *x;
    const int8_t *w; /* [groups][ic * taps][oc] */
    const int32_t *bias;
    uint8_t *windows; /* a task: [ic * taps][pixels] */
    int32_t *sums;    /* a task: [pixels][oc] */
    zc_tensor *y;
    const scaling *s;
    int x_zero, w_zero;
    int64_t rows, bands, width; /* output rows a band */
    int64_t first;              /* of the images' groups that are at work */
    atomic_int status;
} conv_job;

/* One tap of one channel for output rows [row, row + rows); padding is the zero point. */
static void gather(const conv_job *j, const uint8_t *x, int64_t th, int64_t tw, int64_t row,
                   int64_t rows, uint8_t *to)
{
    const zc_window *w = &j->c->w;
    const int h = w->axes - 2, v = w->axes - 1;
    for (int64_t r = 0; r < rows; r++, to += j->width) {
        int64_t ih = h < 0 ? 0 : (row + r) * w->stride[h] - w->begin[h] + th * w->dilation[h];
        int64_t iw = tw * w->dilation[v] - w->begin[v];
        memset(to, j->x_zero, (size_t)j->width);
        if (h >= 0 && (ih < 0 || ih >= w->in[h])) continue;
        const uint8_t *from = x + ih * w->in[v];
        for (int64_t o = 0; o < j->width; o++, iw += w->stride[v])
            if (iw >= 0 && iw < w->in[v]) to[o] = from[iw];
    }
}

static void conv_band(void *arg, int i)
{
    conv_job *j = arg;
    const zc_conv *c = j->c;
    int64_t item = j->first + i / j->bands, row = i % j->bands * j->rows, g = item % c->groups;
    int64_t height = c->w.axes == 2 ? c->w.out[0] : 1, depth = c->ic * c->taps;
    int64_t rows = height - row < j->rows ? height - row : j->rows, n = rows * j->width;
    int64_t kw = c->w.kernel[c->w.axes - 1];
    uint8_t *windows = j->windows + i * depth * j->rows * j->width;
    int32_t *sums = j->sums + i * c->oc * j->rows * j->width;
    for (int64_t d = 0; d < depth; d++)
        gather(j, j->x + (item * c->ic + d / c->taps) * c->in_plane, d % c->taps / kw,
               d % c->taps % kw, row, rows, windows + d * n);
    zc_status status = zc_igemm(true, n, c->oc, depth, windows, n, j->x_zero,
                                j->w + g * depth * c->oc, c->oc, j->w_zero, sums, c->oc);
    if (status != ZC_OK) atomic_store(&j->status, (int)status);
    for (int64_t m = 0; m < c->oc; m++)
        put_column(j->y, (item * c->oc + m) * c->out_plane + row * j->width, sums + m, n, c->oc,
                   j->s, g * c->oc + m, j->bias ? j->bias[g * c->oc + m] : 0);
}

/* w[groups * oc][depth] as [groups][depth][oc] of signed bytes. */
static const int8_t *turned(zc_kctx *k, const zc_tensor *w, const zc_conv *c, int *zero)
{
    int64_t depth = c->ic * c->taps;
    uint8_t *to = zc_scratch_get(k->scratch, (size_t)zc_tensor_numel(w));
    const uint8_t *from = w->data, flip = w->dtype == ZC_I8 ? 0 : 0x80;
    for (int64_t g = 0; to && g < c->groups; g++)
        for (int64_t m = 0; m < c->oc; m++)
            for (int64_t d = 0; d < depth; d++)
                to[(g * depth + d) * c->oc + m] = from[(g * c->oc + m) * depth + d] ^ flip;
    *zero -= flip;
    return (int8_t *)to;
}

static zc_status convolve(zc_kctx *k, int xi, int wi, int x_zero, int w_zero, int bias,
                          const scaling *s)
{
    zc_conv c;
    ZC_TRY(zc_conv_of(k, xi, wi, &c));
    if (zc_tensor_numel(&k->out[0]) == 0) return ZC_OK;
    conv_job j = {.c = &c,
                  .y = &k->out[0],
                  .s = s,
                  .x_zero = zero_of(k, x_zero),
                  .w_zero = zero_of(k, w_zero),
                  .bias = bias && zc_input(k, bias) ? k->in[bias].data : NULL,
                  .width = c.w.out[c.w.axes - 1]};
    int64_t height = c.w.axes == 2 ? c.w.out[0] : 1, items = c.batch * c.groups;
    int64_t depth = c.ic * c.taps;
    j.rows = (height * items + PARTS - 1) / PARTS;
    if (j.rows > height) j.rows = height;
    j.bands = (height + j.rows - 1) / j.rows;
    int64_t pixels = j.bands * j.rows * j.width, bytes, at_once, sums;
    if (!zc_mul_i64(pixels, depth, &bytes)) return zc_fail_nomem(k->diag, "integer windows", 0);
    at_once = bytes < WINDOWS_MOST ? WINDOWS_MOST / bytes : 1;
    if (at_once > items) at_once = items;
    if (!zc_mul_i64(bytes, at_once, &bytes) || !zc_mul_i64(pixels * at_once, c.oc * 4, &sums))
        return zc_fail_nomem(k->diag, "integer windows", 0);
    j.x = shifted(k, &k->in[xi], ZC_U8, &j.x_zero);
    j.w = turned(k, &k->in[wi], &c, &j.w_zero);
    j.windows = zc_scratch_get(k->scratch, (size_t)bytes);
    j.sums = zc_scratch_get(k->scratch, (size_t)sums);
    if (!j.x || !j.w || !j.windows || !j.sums) return zc_fail_nomem(k->diag, "integer windows", 0);
    for (; j.first < items; j.first += at_once) {
        int64_t left = items - j.first;
        zc_parts(k, (int)((left < at_once ? left : at_once) * j.bands), conv_band, &j);
    }
    return zc_dnnl_report(k, (zc_status)atomic_load(&j.status), "convolution");
}

static bool fits_conv(const zc_kctx *k, int xi, int wi, int x_zero, int w_zero)
{
    const zc_tensor *x = &k->in[xi], *w = &k->in[wi];
    return is_byte(x) && is_byte(w) && (x->rank == 3 || x->rank == 4) && zc_tensor_numel(x) > 0 &&
           zc_tensor_numel(w) > 0 && zc_tensor_numel(&k->out[0]) < INT32_MAX / PARTS &&
           is_single(k, x_zero) && is_single(k, w_zero);
}

bool zc_fits_conv_integer(const zc_kctx *k)
{
    return fits_conv(k, ZC_IN_ConvInteger_x, ZC_IN_ConvInteger_w, ZC_IN_ConvInteger_x_zero,
                     ZC_IN_ConvInteger_w_zero);
}

zc_status zc_fast_conv_integer(zc_kctx *k)
{
    const scaling s = {.scale = NULL};
    return convolve(k, ZC_IN_ConvInteger_x, ZC_IN_ConvInteger_w, ZC_IN_ConvInteger_x_zero,
                    ZC_IN_ConvInteger_w_zero, 0, &s);
}

bool zc_fits_qlinear_conv(const zc_kctx *k)
{
    const zc_tensor *scale = &k->in[ZC_IN_QLinearConv_w_scale];
    int64_t n = zc_tensor_numel(scale);
    return is_byte(&k->out[0]) && (n == 1 || n == k->in[ZC_IN_QLinearConv_w].dims[0]) &&
           fits_conv(k, ZC_IN_QLinearConv_x, ZC_IN_QLinearConv_w, ZC_IN_QLinearConv_x_zero,
                     ZC_IN_QLinearConv_w_zero);
}

zc_status zc_fast_qlinear_conv(zc_kctx *k)
{
    scaling s;
    ZC_TRY(scaling_of(k, &k->in[ZC_IN_QLinearConv_w_scale],
                      zc_get(&k->in[ZC_IN_QLinearConv_x_scale], 0) /
                          zc_get(&k->in[ZC_IN_QLinearConv_y_scale], 0),
                      1, ZC_IN_QLinearConv_y_zero, &s));
    return convolve(k, ZC_IN_QLinearConv_x, ZC_IN_QLinearConv_w, ZC_IN_QLinearConv_x_zero,
                    ZC_IN_QLinearConv_w_zero, ZC_IN_QLinearConv_bias, &s);
}
