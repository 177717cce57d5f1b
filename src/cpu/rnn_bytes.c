/* Products of a recurrent layer with weights that are bytes. */
#include <string.h>

#include "cpu/bytes.h"
#include "cpu/integer.h"
#include "cpu/quant.h"
#include "cpu/rnn.h"

/* Elements of a scale or zero point that belong to one direction. */
static int64_t each_of(const zc_tensor *t)
{
    return t->rank == 2 ? t->dims[1] : 1;
}

bool zc_rnn_bytes_fit(const zc_kctx *k, int i, int scale)
{
    const zc_tensor *zeros = zc_input(k, scale + 1);
    if (k->in[i].dims[1] > ZC_BYTE_DEPTH_MAX || k->in[scale].dtype != ZC_F32) return false;
    for (int64_t p = 0; zeros && p < zc_tensor_numel(zeros); p++)
        if (zc_geti(zeros, p) != zc_geti(zeros, p - p % each_of(zeros))) return false;
    return true;
}

static zc_status no_memory(zc_kctx *k, int64_t bytes)
{
    return zc_fail_nomem(k->diag, "weights of bytes", (size_t)bytes);
}

/* What a column's sum is too much by, for each unit of the left operand's zero point. */
static zc_status less_zeros(zc_kctx *k, const zc_rnn_bytes *b, int64_t d, const int32_t **out)
{
    const int32_t *sums = b->packed[d];
    int32_t *to = zc_scratch_get(k->scratch, (size_t)b->columns * sizeof *to);
    if (!to) return no_memory(k, b->columns);
    for (int64_t c = 0; c < b->columns; c++) to[c] = sums[c] - (int32_t)b->depth * b->zero[d];
    *out = to;
    return ZC_OK;
}

static zc_status scales_of(zc_kctx *k, const zc_tensor *t, int64_t columns, int64_t d,
                           const float **out)
{
    const int64_t each = each_of(t);
    const float *from = (const float *)t->data + d * each;
    *out = from;
    if (each == columns) return ZC_OK;
    float *to = zc_scratch_get(k->scratch, (size_t)columns * sizeof *to);
    if (!to) return no_memory(k, columns);
    for (int64_t c = 0; c < columns; c++) to[c] = from[0];
    *out = to;
    return ZC_OK;
}

zc_status zc_rnn_bytes_of(zc_kctx *k, const zc_rnn *n, int i, int scale, zc_rnn_bytes *out)
{
    const zc_tensor *w = &k->in[i], *zeros = zc_input(k, scale + 1);
    const size_t room = (size_t)zc_bytes_room(w->dims[2]) * sizeof(int32_t);
    const zc_byte_matrix m = {.k = w->dims[1],
                              .n = w->dims[2],
                              .inner = w->dims[1],
                              .inner_step = w->dims[2],
                              .column_step = 1,
                              .is_signed = w->dtype == ZC_I8};
    *out = (zc_rnn_bytes){.depth = m.k, .columns = m.n};
    int32_t *none = zc_scratch_get(k->scratch, room);
    if (!none) return no_memory(k, m.n);
    memset(none, 0, room);
    out->none = none;
    for (int64_t d = 0; d < n->r.directions; d++) {
        const int64_t zero = zeros ? zc_geti(zeros, d * each_of(zeros)) : 0;
        out->zero[d] = (int)zero - (m.is_signed ? 0 : 128);
        ZC_TRY(zc_bytes_packed(k, i, d * m.k * m.n, &m, &out->packed[d]));
        ZC_TRY(less_zeros(k, out, d, &out->sums[d]));
        ZC_TRY(scales_of(k, &k->in[scale], m.n, d, &out->scale[d]));
    }
    return ZC_OK;
}

void zc_rnn_bytes_times(const zc_rnn_bytes *b, int64_t d, int64_t m, const float *x,
                        const float *bias, uint8_t *room, float *y)
{
    const int64_t lda = zc_bytes_row(b->depth);
    const zc_byte_product p = {
        .b = b->packed[d], .k = b->depth, .n = b->columns, .b_zero = b->zero[d], .offset = b->none};
    float scale;
    int zero;
    zc_quant_range(x, m * b->depth, &scale, &zero);
    for (int64_t r = 0; r < m; r++) {
        zc_quant_row(x + r * b->depth, b->depth, scale, zero, room + r * lda);
        memset(room + r * lda + b->depth, 0, (size_t)(lda - b->depth));
    }
    zc_bytes_multiply(&p, m, room, lda, 0, b->columns, y, b->columns);
    for (int64_t r = 0; r < m; r++, y += b->columns)
        zc_quant_real((const int32_t *)(const void *)y, b->columns, zero, b->sums[d], scale,
                      b->scale[d], bias, y);
}
