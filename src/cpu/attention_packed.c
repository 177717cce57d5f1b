/* Attention of a projection that holds queries, keys and values side by side. */
#include <math.h>

#include "cpu/attention.h"
#include "cpu/copy.h"
#include "cpu/fast.h"
#include "cpu/rotary.h"

#define IN(input) ZC_IN_PackedAttention_##input

typedef struct turn_job {
    const zc_tensor *x;
    zc_tensor to; /* [batch, length, heads, size] */
    zc_rotary r;
    int64_t length, heads, size, row; /* row: elements of x a position */
    bool each;                        /* the tables have rows for every batch item */
} turn_job;

static void turn_rows(void *arg, int64_t begin, int64_t end)
{
    turn_job *j = arg;
    for (int64_t p = begin; p < end; p++) {
        int64_t row = j->each ? p : p % j->length;
        for (int64_t h = 0; h < j->heads; h++)
            zc_rotate(&j->r, row, j->x, p * j->row + h * j->size, &j->to,
                      (p * j->heads + h) * j->size, j->size);
    }
}

/* Queries and keys turned, in scratch memory: they stand next to each other. */
static zc_status turn(zc_kctx *k, zc_attn *a, bool interleaved, zc_dtype work, turn_job *j)
{
    const zc_tensor *cos = zc_input(k, IN(cos)), *sin = zc_input(k, IN(sin));
    if (!cos) return ZC_OK;
    int64_t heads = a->heads + a->kv_heads, n = a->nq;
    const int64_t need[] = {cos->dims[0] == 1 ? 1 : a->batch, n, cos->dims[2]};
    const int64_t dims[] = {a->batch, n, heads, a->d};
    ZC_TRY(zc_check_shape(k, cos, 3, need, "cosines"));
    ZC_TRY(zc_check_shape(k, sin, 3, need, "sines"));
    if (2 * need[2] > a->d)
        return zc_kernel_fail(k, "cosines have too many columns (got %lld, need at most %lld)",
                              (long long)need[2], (long long)a->d / 2);
    *j = (turn_job){.x = &k->in[IN(x)],
                    .r = {cos, sin, need[2], interleaved},
                    .length = n,
                    .heads = heads,
                    .size = a->d,
                    .row = a->q.pos,
                    .each = need[0] != 1};
    ZC_TRY(zc_scratch_tensor(k, work, 4, dims, &j->to));
    zc_parallel(k, a->batch * n, 4, turn_rows, j);
    a->q = zc_heads_3d(&j->to, heads, n, a->d);
    a->k = a->q;
    a->k.at = a->heads * a->d;
    return ZC_OK;
}

static zc_status run(zc_kctx *k, bool fast)
{
    const zc_attrs_PackedAttention *at = ZC_ATTRS(k, PackedAttention);
    const zc_tensor *x = &k->in[IN(x)];
    int64_t heads = at->num_heads, kv = at->kv_num_heads, cols = x->dims[2], n = x->dims[1];
    int64_t size = cols / (heads + 2 * kv);
    turn_job j;
    zc_attn a = {.batch = x->dims[0],
                 .heads = heads,
                 .kv_heads = kv,
                 .nq = n,
                 .nk = n,
                 .d = size,
                 .dv = size,
                 .q = {x, 0, n * cols, size, cols},
                 .k = {x, heads * size, n * cols, size, cols},
                 .v = {x, (heads + kv) * size, n * cols, size, cols},
                 .y = &k->out[0],
                 .scale = at->scale != 0 ? at->scale : 1 / sqrt((double)size),
                 .softcap = at->softcap,
                 .mask_value = at->mask_value,
                 .causal = at->is_causal != 0};
    ZC_TRY(zc_check_length(k, cols, size * (heads + 2 * kv), "packed size"));
    a.y_at = zc_heads_3d(a.y, heads, n, size);
    ZC_TRY(turn(k, &a, at->interleaved != 0, fast ? ZC_F32 : ZC_F64, &j));
    ZC_TRY(zc_attn_use_mask(k, &a, zc_input(k, IN(mask))));
    ZC_TRY(zc_attn_use_lengths(k, &a, zc_input(k, IN(lengths)), "lengths"));
    return zc_attn_run(k, &a, fast);
}

zc_status zc_k_PackedAttention(zc_kctx *k)
{
    return run(k, false);
}

bool zc_fits_packed_attention(const zc_kctx *k)
{
    return k->in[IN(x)].dtype == ZC_F32;
}

zc_status zc_fast_packed_attention(zc_kctx *k)
{
    return run(k, true);
}
