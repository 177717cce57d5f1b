/* Kernels of the operations that make a tensor from a shape, a range or a pattern. */
#include <string.h>

#include "cpu/copy.h"

zc_status zc_k_Shape(zc_kctx *k)
{
    const zc_attrs_Shape *a = ZC_ATTRS(k, Shape);
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    int64_t start = a->start + (a->start < 0 ? in->rank : 0);
    if (start < 0) start = 0;
    for (int64_t i = 0; i < out->dims[0]; i++) {
        if (start + i >= in->rank) return zc_kernel_fail(k, "wrong length of the output");
        zc_puti(out, i, in->dims[start + i]);
    }
    return ZC_OK;
}

zc_status zc_k_Size(zc_kctx *k)
{
    zc_puti(&k->out[0], 0, zc_tensor_numel(&k->in[0]));
    return ZC_OK;
}

/* The value's bits repeated to whole bytes. */
static void packed_pattern(const zc_tensor *value, unsigned char *pattern)
{
    unsigned bits = zc_dtype_bits(value->dtype);
    unsigned v = *(const unsigned char *)value->data & ((1u << bits) - 1);
    unsigned byte = 0;
    for (unsigned i = 0; i < 8; i += bits) byte |= v << i;
    *pattern = (unsigned char)byte;
}

zc_status zc_k_ConstantOfShape(zc_kctx *k)
{
    static const unsigned char zero[16];
    const zc_tensor *value = ZC_ATTRS(k, ConstantOfShape)->value;
    zc_tensor *out = &k->out[0];
    int64_t n = zc_tensor_numel(out);
    unsigned bits = zc_dtype_bits(out->dtype);
    if (n == 0) return ZC_OK;
    if (bits >= 8) {
        zc_copy_fill(k, n, bits / 8, out->data, value ? value->data : zero);
        return ZC_OK;
    }
    size_t bytes = 0;
    unsigned char pattern;
    packed_pattern(value, &pattern);
    if (!zc_tensor_bytes(out, &bytes)) return zc_kernel_fail(k, "the output is too large");
    zc_copy_fill(k, (int64_t)bytes, 1, out->data, &pattern);
    unsigned used = (unsigned)((uint64_t)n * bits % 8);
    if (used) ((unsigned char *)out->data)[bytes - 1] &= (unsigned char)((1u << used) - 1);
    return ZC_OK;
}

/* ---- Range ---- */

static void range_floats(zc_kctx *k, int64_t n)
{
    zc_tensor *out = &k->out[0];
    double start = zc_get(&k->in[0], 0), delta = zc_get(&k->in[2], 0);
    bool narrow = out->dtype == ZC_F16 || out->dtype == ZC_BF16;
    if (narrow && ZC_ATTRS(k, Range)->stash_type == ZC_F32) {
        float s = (float)start, d = (float)delta;
        for (int64_t i = 0; i < n; i++) zc_put(out, i, s + (float)i * d);
        return;
    }
    for (int64_t i = 0; i < n; i++) zc_put(out, i, start + (double)i * delta);
}

zc_status zc_k_Range(zc_kctx *k)
{
    zc_tensor *out = &k->out[0];
    int64_t n = out->dims[0];
    if (zc_dtype_is_float(out->dtype)) {
        range_floats(k, n);
        return ZC_OK;
    }
    uint64_t v = (uint64_t)zc_geti(&k->in[0], 0), delta = (uint64_t)zc_geti(&k->in[2], 0);
    for (int64_t i = 0; i < n; i++, v += delta) zc_puti(out, i, (int64_t)v);
    return ZC_OK;
}

/* ---- patterns ---- */

zc_status zc_k_EyeLike(zc_kctx *k)
{
    zc_tensor *out = &k->out[0];
    int64_t shift = ZC_ATTRS(k, EyeLike)->k, rows = out->dims[0], cols = out->dims[1];
    size_t bytes = 0;
    if (!zc_tensor_bytes(out, &bytes)) return zc_kernel_fail(k, "the output is too large");
    if (bytes) memset(out->data, 0, bytes);
    if (shift <= -rows || shift >= cols) return ZC_OK;
    for (int64_t r = shift < 0 ? -shift : 0; r < rows && r + shift < cols; r++)
        zc_put(out, r * cols + r + shift, 1);
    return ZC_OK;
}

typedef struct trilu {
    zc_tensor *out;
    const zc_tensor *in;
    int64_t k;
    bool upper;
} trilu;

/* Rows [begin, end) of all matrices: part of each is kept, the rest is zero. */
static void trilu_rows(void *arg, int64_t begin, int64_t end)
{
    const trilu *t = arg;
    int64_t rows = t->in->dims[t->in->rank - 2], cols = t->in->dims[t->in->rank - 1];
    size_t size = zc_elem_size(t->in);
    for (int64_t row = begin; row < end; row++) {
        int64_t at = row % rows + t->k + (t->upper ? 0 : 1); /* the first kept or dropped column */
        at = at < 0 ? 0 : at > cols ? cols : at;
        char *to = zc_elem_at(t->out, row * cols);
        const char *from = zc_elem_at(t->in, row * cols);
        size_t head = (size_t)at * size, tail = (size_t)(cols - at) * size;
        if (t->upper) {
            memset(to, 0, head);
            memcpy(to + head, from + head, tail);
        } else {
            memcpy(to, from, head);
            memset(to + head, 0, tail);
        }
    }
}

zc_status zc_k_Trilu(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0];
    trilu t = {.out = &k->out[0], .in = in, .upper = ZC_ATTRS(k, Trilu)->upper != 0};
    int64_t rows = in->dims[in->rank - 2], cols = in->dims[in->rank - 1];
    if (k->nin > 1 && zc_present(&k->in[1])) {
        ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[1]), 1, "number of diagonals"));
        t.k = zc_geti(&k->in[1], 0);
    }
    /* diagonals outside the matrix are all alike */
    t.k = t.k < -rows ? -rows : t.k > cols ? cols : t.k;
    if (zc_tensor_numel(in))
        zc_parallel(k, zc_tensor_numel(in) / cols, 16384 / cols + 1, trilu_rows, &t);
    return ZC_OK;
}
