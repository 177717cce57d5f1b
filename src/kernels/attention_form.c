/* What all attention operations share: views, moved rows, biases, and the computation. */
#include "kernels/attention_form.h"

#include <math.h>

enum { ENTRY_ROW, ENTRY_MERGE, ENTRY_KEYS, ENTRY_VALUES, ENTRY_MASK, ENTRY_PROJECT, ENTRY_TILE };
/* A block has ROW_WARPS * 32 threads for a query; with fewer than ENOUGH_BLOCKS queries the keys
 * are split. */
enum { ROW_WARPS = 4, ENOUGH_BLOCKS = 256, SPLIT_KEYS = 256, SPLITS_MAX = 64, TILE_ROWS = 16 };

int zc_attention_tile(zc_dtype type, zc_dtype v_type, int64_t d, int64_t dv, bool scores)
{
    if (scores || type == ZC_F64 || v_type == ZC_F64) return ZC_ATTENTION_NO_TILE;
    if (d > ZC_ATTENTION_TILE_SIZE_MAX || dv > ZC_ATTENTION_TILE_SIZE_MAX)
        return ZC_ATTENTION_NO_TILE;
    bool half = type == ZC_F16 || type == ZC_BF16;
    return half && type == v_type ? ZC_ATTENTION_TILE_MMA : ZC_ATTENTION_TILE_SIMT;
}

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

static zc_status too_large(zc_attention *a)
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
    if (!zc_dtype_bytes(type, zc_numel(4, dims), &bytes)) return too_large(a);
    return zc_launch_scratch(a->l, bytes, out);
}

zc_status zc_attention_rows(zc_attention *a, bool values, struct zc_attention_rows_params *r)
{
    enum { WARPS = 8 };
    const int64_t dims[] = {a->p.batch, r->heads, r->room};
    int64_t rows = zc_numel(3, dims);
    if (rows < 0 || rows / WARPS >= INT32_MAX) return too_large(a);
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

/* ---- the computation ---- */

/* May rows of `size` elements be read in the pieces that the template chooses? */
static bool in_pieces(const struct zc_attention_view *v, zc_dtype type, int64_t size)
{
    int64_t bytes = zc_dtype_bits(type) / 8, piece = 16 / bytes;
    while (piece > 1 && size % piece) piece /= 2;
    return (uintptr_t)v->data % (uintptr_t)(piece * bytes) == 0 && v->batch % piece == 0 &&
           v->head % piece == 0 && v->pos % piece == 0;
}

static zc_status run_tiles(zc_attention *a, int64_t rows, int kind)
{
    int64_t blocks = (rows + 63) / 64 * a->p.batch * a->p.kv_heads;
    uint32_t simt = (uint32_t)(((a->d + 31) / 32 * 32 + 96) * 68 * 4);
    uint32_t d = (uint32_t)(a->d + 15) / 16 * 16 + 8, dv = (uint32_t)(a->dv + 15) / 16 * 16 + 8;
    bool mma = kind == ZC_ATTENTION_TILE_MMA;
    zc_dim3 grid = {zc_launch_blocks(blocks, 1, 0), 1, 1};
    return zc_launch_kernel(a->l, ENTRY_TILE, grid, mma ? 128 : 256,
                            mma ? 64 * (2 * d + dv) * 2 : simt, &a->p, sizeof a->p);
}

/* Blocks that share a query's keys. */
static int splits_of(const zc_attention *a, int64_t queries)
{
    int64_t n = (ENOUGH_BLOCKS + queries - 1) / queries, most = a->p.len.nk / SPLIT_KEYS;
    if (a->p.scores || !a->p.y.data) return 1;
    n = n < most ? n : most;
    return (int)(n < 1 ? 1 : n > SPLITS_MAX ? SPLITS_MAX : n);
}

static zc_status run_rows(zc_attention *a, int64_t queries)
{
    a->p.splits = splits_of(a, queries);
    zc_dim3 grid = {zc_launch_blocks(queries * a->p.splits, 1, 0), 1, 1};
    zc_dim3 merges = {zc_launch_blocks(queries, 1, 0), 1, 1};
    if (a->p.splits == 1)
        return zc_launch_kernel(a->l, ENTRY_ROW, grid, ROW_WARPS * 32, 0, &a->p, sizeof a->p);
    size_t real = a->type == ZC_F64 || a->v_type == ZC_F64 ? 8 : 4, bytes;
    if (!zc_mul_size((size_t)queries * (size_t)a->p.splits, (size_t)(a->dv + 2) * real, &bytes))
        return too_large(a);
    ZC_TRY(zc_launch_scratch(a->l, bytes, &a->p.parts));
    ZC_TRY(zc_launch_kernel(a->l, ENTRY_ROW, grid, ROW_WARPS * 32, 0, &a->p, sizeof a->p));
    return zc_launch_kernel(a->l, ENTRY_MERGE, merges, ROW_WARPS * 32, 0, &a->p, sizeof a->p);
}

zc_status zc_attention_run(zc_attention *a)
{
    const int64_t all[] = {a->p.batch, a->p.heads, a->p.len.nq};
    int64_t queries = zc_numel(3, all), rows = a->p.heads / a->p.kv_heads * a->p.len.nq;
    int kind = zc_attention_tile(a->type, a->v_type, a->d, a->dv, a->p.scores != NULL);
    if (queries == 0 || (!a->p.y.data && !a->p.scores)) return ZC_OK;
    if (queries < 0 || queries > INT32_MAX / SPLITS_MAX) return too_large(a);
    ZC_TRY(zc_launch_epilogue(a->l, &a->p.fused));
    if (a->p.mask_value == 0) a->p.mask_value = -(double)INFINITY;
    a->p.aligned_k = in_pieces(&a->p.q, a->type, a->d) && in_pieces(&a->p.k, a->type, a->d);
    a->p.aligned_v = in_pieces(&a->p.v, a->v_type, a->dv);
    if (kind && rows >= TILE_ROWS && a->p.y.data) return run_tiles(a, rows, kind);
    return run_rows(a, queries);
}
