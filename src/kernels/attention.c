/* Attention by blocks of a query, or by tiles of queries on the ordinary cores or the tensor
 * cores. */
#include "kernels/attention_form.h"

/* Entries 2 and 3 prepare operands. */
enum { ENTRY_ROW, ENTRY_TILE };
enum { NO_TILE, TILE_SIMT, TILE_MMA };
/* A block has ROW_WARPS * 32 threads for a query; with fewer than ENOUGH_BLOCKS queries the keys
 * are split. */
enum {
    ROW_WARPS = 4,
    ENOUGH_BLOCKS = 256,
    SPLIT_KEYS = 256,
    SPLITS_MAX = 64,
    TILE_ROWS = 16,
    TILE_SIZE_MAX = 256
};

/* Which tile kernel the template has for these element types and head sizes. */
static int tile_of(zc_dtype type, zc_dtype v_type, int64_t d, int64_t dv, bool scores)
{
    if (scores || type == ZC_F64 || v_type == ZC_F64) return NO_TILE;
    if (d > TILE_SIZE_MAX || dv > TILE_SIZE_MAX) return NO_TILE;
    bool half = type == ZC_F16 || type == ZC_BF16;
    return half && type == v_type ? TILE_MMA : TILE_SIMT;
}

zc_status zc_gen_attention(zc_gen *g)
{
    zc_attention_shape s;
    ZC_TRY(zc_gen_attention_spec(g, &s));
    if (g->declined[0]) return ZC_OK;
    int tile = tile_of(s.type, s.v_type, s.d, s.dv, s.scores >= 0);
    zc_gen_define(g, "TILE", "%d", tile);
    if (tile == TILE_MMA) zc_gen_tensor_cores(g, "mma", s.type);
    return zc_gen_epilogue(g);
}

/* ---- the launch ---- */

static zc_status run_tiles(zc_attention *a, int64_t rows, int kind)
{
    int64_t blocks = (rows + 63) / 64 * a->p.batch * a->p.kv_heads;
    uint32_t simt = (uint32_t)(((a->d + 31) / 32 * 32 + 96) * 68 * 4);
    uint32_t d = (uint32_t)(a->d + 15) / 16 * 16 + 8, dv = (uint32_t)(a->dv + 15) / 16 * 16 + 8;
    bool mma = kind == TILE_MMA;
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

/* What blocks that share a query's keys leave for the last of them. */
static zc_status share_keys(zc_attention *a, int64_t queries)
{
    size_t real = a->type == ZC_F64 || a->v_type == ZC_F64 ? 8 : 4, bytes;
    if (!zc_mul_size((size_t)queries * (size_t)a->p.splits, (size_t)(a->dv + 2) * real, &bytes))
        return zc_attention_too_large(a);
    ZC_TRY(zc_launch_scratch(a->l, bytes, &a->p.parts));
    return zc_launch_counters(a->l, queries, &a->p.counters);
}

static zc_status run_rows(zc_attention *a, int64_t queries)
{
    a->p.splits = splits_of(a, queries);
    zc_dim3 grid = {zc_launch_blocks(queries * a->p.splits, 1, 0), 1, 1};
    if (a->p.splits > 1) ZC_TRY(share_keys(a, queries));
    return zc_launch_kernel(a->l, ENTRY_ROW, grid, ROW_WARPS * 32, 0, &a->p, sizeof a->p);
}

zc_status zc_launch_attention(zc_launch *l)
{
    zc_attention a;
    bool some;
    ZC_TRY(zc_attention_describe(l, &a, &some));
    if (!some) return ZC_OK;
    const int64_t all[] = {a.p.batch, a.p.heads, a.p.len.nq};
    int64_t queries = zc_numel(3, all), rows = a.p.heads / a.p.kv_heads * a.p.len.nq;
    int kind = tile_of(a.type, a.v_type, a.d, a.dv, a.p.scores != NULL);
    if (queries < 0 || queries > INT32_MAX / SPLITS_MAX) return zc_attention_too_large(&a);
    a.p.aligned_k =
        zc_attention_in_pieces(&a.p.q, a.type, a.d) && zc_attention_in_pieces(&a.p.k, a.type, a.d);
    a.p.aligned_v = zc_attention_in_pieces(&a.p.v, a.v_type, a.dv);
    if (kind && rows >= TILE_ROWS && a.p.y.data) return run_tiles(&a, rows, kind);
    return run_rows(&a, queries);
}
