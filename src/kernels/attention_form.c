/* What all attention operations share: views, moved rows, biases, and their one description. */
#include "kernels/attention_form.h"

#include <math.h>

enum { ENTRY_KEYS = 2, ENTRY_VALUES };

/* ---- views ---- */

struct zc_attention_view zc_attention_4d(const void *data, int64_t heads, int64_t length,
                                         int64_t size)
{
    return (struct zc_attention_view){data, heads * length * size, length * size, size};
}

struct zc_attention_view zc_attention_3d(const void *data, int64_t heads, int64_t length,
                                         int64_t size)
{
    return (struct zc_attention_view){data, heads * length * size, size, heads * size};
}

void *zc_attention_at(const void *data, zc_dtype type, int64_t n)
{
    return data ? (void *)((uintptr_t)data + (uintptr_t)n * (zc_dtype_bits(type) / 8)) : NULL;
}

void *zc_attention_wanted(const zc_launch *l, int i)
{
    return i < l->nout && zc_present(&l->out[i]) ? l->out[i].data : NULL;
}

zc_status zc_attention_same(zc_attention *a, int64_t got, int64_t need, const char *what)
{
    if (got == need) return ZC_OK;
    return zc_fail(a->l->diag, ZC_ERR_INPUT, a->l->subject, "%s is wrong (got %lld, need %lld)",
                   what, (long long)got, (long long)need);
}

zc_status zc_attention_too_large(const zc_attention *a)
{
    return zc_fail(a->l->diag, ZC_ERR_LIMIT, a->l->subject,
                   "more rows than the GPU kernel can count");
}

/* ---- moved rows ---- */

zc_status zc_attention_room(zc_attention *a, zc_dtype type, int64_t heads, int64_t length,
                            int64_t size, void **out)
{
    const int64_t dims[] = {a->p.batch, heads, length, size};
    size_t bytes;
    if (!zc_dtype_bytes(type, zc_numel(4, dims), &bytes)) return zc_attention_too_large(a);
    return zc_launch_scratch(a->l, bytes, out);
}

zc_status zc_attention_rows(zc_attention *a, bool values, struct zc_attention_rows_params *r)
{
    enum { WARPS = 8 };
    const int64_t dims[] = {a->p.batch, r->heads, r->room};
    int64_t rows = zc_numel(3, dims);
    if (rows < 0 || rows / WARPS >= INT32_MAX) return zc_attention_too_large(a);
    r->len = a->p.len;
    r->batch = a->p.batch;
    zc_dim3 grid = {zc_launch_blocks(rows, WARPS, 0), 1, 1};
    return zc_launch_kernel(a->l, values ? ENTRY_VALUES : ENTRY_KEYS, grid, WARPS * 32, 0, r,
                            sizeof *r);
}

zc_status zc_attention_append(zc_attention *a, bool values, const void *past, int64_t old,
                              void *wanted, int64_t fresh, struct zc_attention_view *view)
{
    int64_t size = values ? a->dv : a->d, heads = a->p.kv_heads, total = old + fresh;
    struct zc_attention_rows_params r = {.x = *view, .heads = heads, .fresh = fresh, .room = total};
    if (!wanted && old == 0) return ZC_OK;
    r.to = wanted;
    if (!wanted)
        ZC_TRY(zc_attention_room(a, values ? a->v_type : a->type, heads, total, size, &r.to));
    r.past = zc_attention_4d(past, heads, old, size);
    r.behind = old > 0;
    ZC_TRY(zc_attention_rows(a, values, &r));
    *view = zc_attention_4d(r.to, heads, total, size);
    return ZC_OK;
}

/* ---- biases ---- */

zc_status zc_attention_bias(zc_attention *a, int x, const zc_tensor *t)
{
    const int64_t need[] = {a->p.batch, a->p.heads, a->p.len.nq, a->p.len.nk};
    int64_t step = 1;
    bool fits = t->rank >= 1 && t->rank <= 4;
    for (int d = 1; fits && d <= t->rank; d++) {
        int64_t have = t->dims[t->rank - d];
        fits = d == 1 ? have <= need[3] : have == 1 || have == need[4 - d];
        a->p.bias_steps[x][4 - d] = d == 1 ? 1 : have == 1 ? 0 : step;
        step *= have;
    }
    if (!fits) {
        char text[128];
        return zc_fail(a->l->diag, ZC_ERR_INPUT, a->l->subject,
                       "the mask or bias does not broadcast to the scores (got %s)",
                       zc_tensor_type_text(t, text, sizeof text));
    }
    a->p.bias[x] = t->data;
    a->p.bias_cols[x] = t->dims[t->rank - 1];
    return ZC_OK;
}

/* ---- the description ---- */

static zc_status describe(zc_attention *a)
{
    switch ((int)a->l->op) {
    case ZC_OP_MsAttention:
        return zc_attention_ms(a);
    case ZC_OP_MsMultiHeadAttention:
        return zc_attention_mha(a);
    case ZC_OP_MsGroupQueryAttention:
        return zc_attention_gqa(a);
    case ZC_OP_PackedAttention:
        return zc_attention_packed(a);
    default:
        return zc_attention_onnx(a);
    }
}

zc_status zc_attention_describe(zc_launch *l, zc_attention *a, bool *some)
{
    *a = (zc_attention){.l = l, .type = l->in[0].dtype, .v_type = l->in[0].dtype};
    a->p.len.fault = l->fault;
    a->p.len.step = l->step_id;
    ZC_TRY(describe(a));
    if (a->p.mask_value == 0) a->p.mask_value = -(double)INFINITY;
    *some = a->p.batch && a->p.heads && a->p.len.nq && (a->p.y.data || a->p.scores);
    return *some ? zc_launch_epilogue(l, &a->p.fused) : ZC_OK;
}
