#include "kernels/groups.h"

#include <string.h>

#include "kernels/divisor.h"

/* A group outside those there are: added to the outermost when `join`. Innermost first. */
static void add_axis(int *n, struct zc_divisor *dims, long long *strides, bool join, int64_t dim,
                     int64_t stride)
{
    if (join) {
        dims[*n - 1] = zc_divisor_of((int64_t)dims[*n - 1].d * dim);
        return;
    }
    dims[*n] = zc_divisor_of(dim);
    strides[*n] = stride;
    (*n)++;
}

static void reverse(int n, struct zc_divisor *dims, long long *strides)
{
    for (int a = 0, b = n - 1; a < b; a++, b--) {
        struct zc_divisor dim = dims[a];
        long long stride = strides[a];
        dims[a] = dims[b];
        dims[b] = dim;
        strides[a] = strides[b];
        strides[b] = stride;
    }
}

void zc_groups_of(const zc_tensor *x, const bool mask[ZC_MAX_RANK], struct zc_groups *g)
{
    bool first = true, before = false;
    int64_t stride = 1;
    memset(g, 0, sizeof *g);
    for (int i = 0; i < ZC_GROUPS; i++) g->kept_dims[i] = g->reduced_dims[i] = zc_divisor_of(1);
    g->outputs = g->count = 1;
    for (int d = x->rank - 1; d >= 0; d--) {
        int64_t dim = x->dims[d];
        *(mask[d] ? &g->count : &g->outputs) *= dim;
        if (dim == 1) continue;
        bool join = !first && before == mask[d];
        if (mask[d])
            add_axis(&g->reduced, g->reduced_dims, g->reduced_strides, join, dim, stride);
        else
            add_axis(&g->kept, g->kept_dims, g->kept_strides, join, dim, stride);
        if (first) g->along = mask[d];
        first = false;
        before = mask[d];
        stride *= dim;
    }
    reverse(g->kept, g->kept_dims, g->kept_strides);
    reverse(g->reduced, g->reduced_dims, g->reduced_strides);
}

/* ---- how threads share them ---- */

/* Elements of `bytes` that a thread takes at once. (Tensors begin at multiples of 16 bytes; further
 * out all strides are multiples of the innermost length.) */
static int vector_of(const struct zc_groups *g, unsigned bytes)
{
    int vec = (int)(16 / bytes);
    return g->along && g->reduced_dims[g->reduced - 1].d % (unsigned)vec == 0 ? vec : 1;
}

/* The least power of two from n on, at most `most`, itself a power of two. */
static int power_of_two(int64_t n, int most)
{
    int r = 1;
    while (r < n && r < most) r *= 2;
    return r;
}

/* Blocks that keep a device busy. */
static int64_t wanted_blocks(int sm_count)
{
    return 4 * (int64_t)sm_count;
}

/* Threads that share an output of so many items; no more blocks than are on a device at once. */
static int lanes_of(const struct zc_groups *g, int64_t items, int64_t wanted)
{
    if (g->along) return items > 256 ? ZC_GROUP_BLOCK : power_of_two(items, 32);
    if (g->outputs >= wanted * ZC_GROUP_BLOCK || items <= 4) return 1;
    int lanes = ZC_GROUP_BLOCK / power_of_two(g->outputs, 32);
    while (lanes > 1 && g->outputs > 2 * wanted * (ZC_GROUP_BLOCK / lanes)) lanes /= 2;
    return lanes;
}

/* Splits of an output that still have work for their threads. */
static int64_t most_splits(int64_t items, int lanes)
{
    int64_t most = items / (8 * (int64_t)lanes);
    return most > 1024 ? 1024 : most;
}

static int64_t splits_of(int64_t items, int lanes, int64_t blocks, int64_t wanted)
{
    int64_t most = most_splits(items, lanes), splits = blocks ? wanted / blocks : 1;
    if (blocks >= wanted / 2 || most < 1) return 1;
    return splits > most ? most : splits;
}

zc_dim3 zc_groups_plan(const zc_launch *l, struct zc_groups *g, unsigned bytes)
{
    const int64_t *chosen = l->kernel->config;
    int64_t wanted = wanted_blocks(l->sm_count), splits = 1;
    int vec = chosen[ZC_GROUPS_VECTOR] ? (int)chosen[ZC_GROUPS_VECTOR] : vector_of(g, bytes);
    int64_t items = g->count / vec;
    g->vec = vec > 1;
    g->lanes = chosen[ZC_GROUPS_LANES] ? (int)chosen[ZC_GROUPS_LANES] : lanes_of(g, items, wanted);
    uint32_t blocks = zc_launch_blocks(g->outputs, ZC_GROUP_BLOCK / g->lanes, 0);
    if (chosen[ZC_GROUPS_SPLIT] != 1) splits = splits_of(items, g->lanes, blocks, wanted);
    g->chunk = zc_ceil_div(items, splits) * vec;
    if (g->chunk) splits = zc_ceil_div(g->count, g->chunk);
    return (zc_dim3){blocks, (uint32_t)splits, 1};
}

/* ---- the choice ---- */

/* What is certain: all but axes in front of the first that is reduced, which may have any length.
 * Their number is in *open. */
static bool certain_groups(int rank, const zc_dim *dims, const bool *mask, int *open,
                           struct zc_groups *out)
{
    enum { ANY = 7 };
    zc_tensor x = {.rank = rank};
    int outer = 0;
    while (outer < rank && !mask[outer]) outer++;
    *open = 0;
    for (int d = 0; d < rank; d++) {
        bool is_const = zc_dim_is_const(dims[d]);
        if (!is_const && d >= outer) return false;
        *open += !is_const;
        x.dims[d] = is_const ? dims[d].k : ANY;
    }
    zc_groups_of(&x, mask, out);
    return out->count > 0;
}

/* Is an output split among blocks? 0: as a run's sizes say. */
static int split_of(zc_gen *g, int rank, const zc_dim *dims, const bool *mask, int64_t items)
{
    zc_dim kept[ZC_MAX_RANK];
    int64_t low, high, lanes = g->config[ZC_GROUPS_LANES];
    int n = 0;
    if (most_splits(items, lanes ? (int)lanes : 1) < 2) return 1;
    if (!lanes) return 0;
    for (int d = 0; d < rank; d++)
        if (!mask[d]) kept[n++] = dims[d];
    int64_t bound = (wanted_blocks(g->sm_count) / 2 - 1) * (ZC_GROUP_BLOCK / lanes);
    zc_gen_size(g, kept, n, &bound, 1, &low, &high);
    return high <= bound ? 2 : low > bound ? 1 : 0;
}

void zc_gen_groups(zc_gen *g, int rank, const zc_dim *dims, const bool *mask, unsigned bytes,
                   bool may_split)
{
    struct zc_groups at;
    int open;
    g->threads = ZC_GROUP_BLOCK;
    if (!may_split) g->config[ZC_GROUPS_SPLIT] = 1;
    if (!certain_groups(rank, dims, mask, &open, &at)) return;
    int vec = vector_of(&at, bytes);
    int64_t items = at.count / vec;
    g->config[ZC_GROUPS_VECTOR] = vec;
    g->config[ZC_GROUPS_AXES] = at.reduced > 1 ? at.reduced : 1;
    if (at.along || !open)
        g->config[ZC_GROUPS_LANES] = lanes_of(&at, items, wanted_blocks(g->sm_count));
    if (may_split) g->config[ZC_GROUPS_SPLIT] = split_of(g, rank, dims, mask, items);
}
