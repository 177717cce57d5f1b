/* The reference kernel of DynamicQuantizeLSTM: exact sums, one element at a time. */
#include "cpu/quant.h"
#include "cpu/rnn.h"

/* x, quantised. */
typedef struct operand {
    const zc_kctx *k;
    const uint8_t *x;
    float scale;
    int zero;
} operand;

/* Element `row` of direction d of a scale or zero point. */
static int64_t place_of(const zc_rnn *n, const zc_tensor *t, int64_t d, int64_t row)
{
    return t->rank == 2 ? d * n->r.gates * n->hidden + row : d;
}

/* Column `row` of input i's direction d times `depth` bytes v, of this scale and zero point. */
static double column(const zc_rnn *n, int i, int64_t d, int64_t row, int64_t depth,
                     const uint8_t *v, float by, int v_zero)
{
    const zc_kctx *k = ((const operand *)n->user)->k;
    const int at = i == ZC_IN_DynamicQuantizeLSTM_w ? ZC_IN_DynamicQuantizeLSTM_w_scale
                                                    : ZC_IN_DynamicQuantizeLSTM_r_scale;
    const zc_tensor *scale = &k->in[at], *zeros = zc_input(k, at + 1), *w = &k->in[i];
    const int64_t zero = zeros ? zc_geti(zeros, place_of(n, zeros, d, row)) : 0;
    const int64_t rows = n->r.gates * n->hidden;
    int64_t sum = 0;
    for (int64_t p = 0; p < depth; p++)
        sum += (v[p] - v_zero) * (zc_geti(w, (d * depth + p) * rows + row) - zero);
    const float real = by * (float)zc_get(scale, place_of(n, scale, d, row));
    return (double)((float)sum * real);
}

static void project(const zc_rnn *n, int64_t d, int64_t t, int64_t b, double *out)
{
    const operand *o = n->user;
    const uint8_t *x = o->x + zc_rnn_x_at(n, t, b);
    for (int64_t g = 0; g < n->r.gates * n->hidden; g++)
        out[g] = column(n, ZC_IN_DynamicQuantizeLSTM_w, d, g, n->input, x, o->scale, o->zero);
}

/* tmp has room for floats, and then for the bytes: they are made where the floats were. */
static void recur(const zc_rnn *n, int64_t d, int64_t first, int64_t count, const double *v,
                  float *tmp, double *out)
{
    float scale;
    int zero;
    for (int64_t i = 0; i < n->hidden; i++) tmp[i] = (float)v[i];
    zc_quant_range(tmp, n->hidden, &scale, &zero);
    uint8_t *bytes = (uint8_t *)tmp;
    for (int64_t i = 0; i < n->hidden; i++) zc_quant_row(&tmp[i], 1, scale, zero, &bytes[i]);
    for (int64_t g = 0; g < count; g++)
        out[g] =
            column(n, ZC_IN_DynamicQuantizeLSTM_r, d, first + g, n->hidden, bytes, scale, zero);
}

zc_status zc_k_DynamicQuantizeLSTM(zc_kctx *k)
{
    operand o = {.k = k};
    zc_rnn n = {.project = project, .recur = recur, .user = &o};
    if (k->in[0].dtype != ZC_F32)
        return zc_kernel_unsupported(k, "DynamicQuantizeLSTM of %s (need f32)",
                                     zc_dtype_name(k->in[0].dtype));
    ZC_TRY(zc_rnn_of(k, &n));
    const int64_t count = zc_tensor_numel(n.x);
    uint8_t *x = zc_scratch_get(k->scratch, (size_t)count);
    if (!x) return zc_fail_nomem(k->diag, "quantised inputs", (size_t)count);
    zc_quant_range(n.x->data, count, &o.scale, &o.zero);
    zc_quant_row(n.x->data, count, o.scale, o.zero, x);
    o.x = x;
    return zc_rnn_run(k, &n);
}
