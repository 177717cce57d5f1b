/* Fused attention on f32. */
#include <math.h>
#include <string.h>

#include "cpu/attention_tile.h"
#include "cpu/vmath.h"

#define SIMD_SOURCE "cpu/attention_tmpl.h"
#include "cpu/simd_each.h"

/* With fewer rows a key head, packing the keys costs more than it saves. */
#define PACK_ROWS 8
/* Register tiles of a block of rows. */
#define BLOCK_TILES 4
/* Chunks of work a thread: more even out, each needs scratch memory. */
#define CHUNKS 4

typedef struct job {
    const zc_kctx *k;
    const zc_attn *a;
    zc_simd level;
    int64_t panel, panels;        /* keys a panel, panels a head */
    int64_t block, blocks, tasks; /* rows a block, blocks a head */
    int64_t v_size;
    float *keys, *values; /* packed; NULL: not */
    float *work;
    int64_t work_size; /* floats a chunk */
    int chunks;
} job;

bool zc_attn_fast_fits(const zc_attn *a)
{
    if (a->scores || a->y->dtype != ZC_F32) return false;
    if (a->q.t->dtype != ZC_F32 || a->k.t->dtype != ZC_F32 || a->v.t->dtype != ZC_F32) return false;
    for (int i = 0; i < 2; i++) {
        const zc_attn_bias *b = &a->bias[i];
        bool plain = !b->t || b->t->dtype == ZC_F32 || b->t->dtype == ZC_BOOL;
        if (!plain || (b->t && b->strides[3] != 1 && b->cols > 1)) return false;
    }
    return true;
}

/* ---- packing ---- */

static void pack_keys(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const zc_attn *a = j->a;
    for (int64_t i = begin; i < end; i++) {
        int64_t p = i % j->panels * j->panel, head = i / j->panels;
        int64_t b = head / a->kv_heads, h = head % a->kv_heads;
        int64_t n = a->nk - p < j->panel ? a->nk - p : j->panel;
        const float *from =
            (const float *)a->k.t->data + a->k.at + b * a->k.batch + h * a->k.head + p * a->k.pos;
        float *to = j->keys + i * j->panel * a->d;
        SIMD_PICK(j->level, attn_pack)(from, a->k.pos, n, a->d, to);
    }
}

/* Values whose size is not whole vectors get zeros behind them. */
static void pack_values(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const zc_attn *a = j->a;
    for (int64_t i = begin; i < end; i++) {
        int64_t head = i / a->nk, pos = i % a->nk;
        int64_t b = head / a->kv_heads, h = head % a->kv_heads;
        const float *from =
            (const float *)a->v.t->data + a->v.at + b * a->v.batch + h * a->v.head + pos * a->v.pos;
        float *to = j->values + i * j->v_size;
        memcpy(to, from, (size_t)a->dv * sizeof *to);
        memset(to + a->dv, 0, (size_t)(j->v_size - a->dv) * sizeof *to);
    }
}

/* ---- work ---- */

static void run_task(const job *j, int64_t task, float *work)
{
    const zc_attn *a = j->a;
    int64_t head = task / j->blocks, rows = a->heads / a->kv_heads * a->nq;
    attn_rows t = {.a = a, .b = head / a->kv_heads, .kv = head % a->kv_heads};
    t.first = task % j->blocks * j->block;
    t.count = rows - t.first < j->block ? rows - t.first : j->block;
    if (j->keys) t.keys = j->keys + head * j->panels * j->panel * a->d;
    t.v = (const float *)a->v.t->data + a->v.at + t.b * a->v.batch + t.kv * a->v.head;
    t.v_pos = a->v.pos;
    t.v_size = j->v_size;
    if (j->values) {
        t.v = j->values + head * a->nk * j->v_size;
        t.v_pos = j->v_size;
    }
    t.s = work;
    t.q = t.s + j->block * ATTN_KEYS;
    t.o = t.q + j->block * a->d;
    t.max = t.o + j->block * j->v_size;
    t.sum = t.max + j->block;
    SIMD_PICK(j->level, attn_block)(&t);
}

static void run_chunk(void *arg, int i)
{
    const job *j = arg;
    for (int64_t t = i; t < j->tasks && !zc_stopped(j->k); t += j->chunks)
        run_task(j, t, j->work + i * j->work_size);
}

/* ---- set-up ---- */

/* Product of n sizes times the size of a float, in scratch memory. */
static float *floats(zc_kctx *k, int n, const int64_t *sizes)
{
    size_t bytes;
    if (!zc_dtype_bytes(ZC_F32, zc_numel(n, sizes), &bytes)) return NULL;
    return zc_scratch_get(k->scratch, bytes);
}

static zc_status make_room(zc_kctx *k, job *j, bool pack)
{
    const zc_attn *a = j->a;
    int64_t keys[] = {a->batch, a->kv_heads, j->panels, j->panel, a->d};
    int64_t values[] = {a->batch, a->kv_heads, a->nk, j->v_size};
    int64_t line[] = {ATTN_KEYS + a->d + j->v_size + 2, j->block};
    j->work_size = zc_numel(2, line);
    int64_t work[] = {j->chunks, j->work_size};
    if (pack) j->keys = floats(k, 5, keys);
    if (j->v_size != a->dv) j->values = floats(k, 4, values);
    j->work = floats(k, 2, work);
    if ((pack && !j->keys) || (j->v_size != a->dv && !j->values) || !j->work)
        return zc_fail_nomem(k->diag, "attention", 0);
    return ZC_OK;
}

static job job_of(const zc_kctx *k, const zc_attn *a, zc_simd level)
{
    static const int lanes[] = {4, 8, 16}, tile_rows[] = {4, 6, 8};
    job j = {.k = k, .a = a, .level = level};
    int64_t rows = a->heads / a->kv_heads * a->nq, vl = lanes[j.level];
    j.panel = 2 * vl;
    j.panels = (a->nk + j.panel - 1) / j.panel;
    j.block = (int64_t)BLOCK_TILES * tile_rows[j.level];
    if (j.block > rows) j.block = rows;
    j.blocks = (rows + j.block - 1) / j.block;
    j.tasks = a->batch * a->kv_heads * j.blocks;
    j.v_size = (a->dv + vl - 1) / vl * vl;
    int64_t most = (int64_t)CHUNKS * zc_pool_threads(k->pool);
    if (zc_pool_threads(k->pool) == 1) most = 1;
    j.chunks = (int)(j.tasks < most ? j.tasks : most);
    return j;
}

zc_status zc_attn_fast(zc_kctx *k, const zc_attn *a)
{
    return zc_attn_fast_at(k, a, zc_simd_level());
}

zc_status zc_attn_fast_at(zc_kctx *k, const zc_attn *a, zc_simd level)
{
    job j = job_of(k, a, level);
    bool pack = a->heads / a->kv_heads * a->nq >= PACK_ROWS;
    ZC_TRY(make_room(k, &j, pack));
    int64_t heads = a->batch * a->kv_heads;
    if (j.keys) zc_parallel(k, heads * j.panels, 4, pack_keys, &j);
    if (j.values) zc_parallel(k, heads * a->nk, 64, pack_values, &j);
    zc_parts(k, j.chunks, run_chunk, &j);
    return ZC_OK;
}
