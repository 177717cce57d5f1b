#include "kernels/groups.h"

#include <string.h>

/* A group outside those there are: added to the outermost when `join`. Innermost first. */
static void add_axis(int *n, long long *dims, long long *strides, bool join, int64_t dim,
                     int64_t stride)
{
    if (join) {
        dims[*n - 1] *= dim;
        return;
    }
    dims[*n] = dim;
    strides[*n] = stride;
    (*n)++;
}

static void reverse(int n, long long *v)
{
    for (int a = 0, b = n - 1; a < b; a++, b--) {
        long long t = v[a];
        v[a] = v[b];
        v[b] = t;
    }
}

static void clear(struct zc_groups *g)
{
    memset(g, 0, sizeof *g);
    for (int i = 0; i < ZC_GROUPS; i++) g->kept_dims[i] = g->reduced_dims[i] = 1;
}

void zc_groups_of(const zc_tensor *x, const bool mask[ZC_MAX_RANK], struct zc_groups *g)
{
    bool first = true, before = false;
    int64_t stride = 1;
    clear(g);
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
    reverse(g->kept, g->kept_dims);
    reverse(g->kept, g->kept_strides);
    reverse(g->reduced, g->reduced_dims);
    reverse(g->reduced, g->reduced_strides);
}

void zc_groups_rows(int64_t outputs, int64_t count, struct zc_groups *g)
{
    clear(g);
    g->outputs = outputs;
    g->count = count;
    g->kept = g->reduced = g->along = 1;
    g->kept_dims[0] = outputs;
    g->kept_strides[0] = count;
    g->reduced_dims[0] = count;
    g->reduced_strides[0] = 1;
}

static bool can_vectorise(const struct zc_groups *g, const void *data, int vec)
{
    if (g->reduced != 1 || g->reduced_strides[0] != 1 || g->count % vec) return false;
    for (int d = 0; d < g->kept; d++)
        if (g->kept_strides[d] % vec) return false;
    return (uintptr_t)data % 16 == 0;
}

/* The least power of two from n on, at most `most`, itself a power of two. */
static int power_of_two(int64_t n, int most)
{
    int r = 1;
    while (r < n && r < most) r *= 2;
    return r;
}

zc_dim3 zc_groups_plan(const zc_launch *l, struct zc_groups *g, const void *data, unsigned bytes,
                       bool may_split)
{
    int vec = bytes <= 16 ? (int)(16 / bytes) : 1;
    g->vec = vec > 1 && g->along && can_vectorise(g, data, vec);
    if (!g->vec) vec = 1;
    int64_t items = g->count / vec, wanted = 4 * (int64_t)l->sm_count;
    if (g->along)
        g->lanes = items > 256 ? ZC_GROUP_BLOCK : power_of_two(items, 32);
    else if (g->outputs >= wanted * ZC_GROUP_BLOCK || items <= 4)
        g->lanes = 1;
    else
        g->lanes = ZC_GROUP_BLOCK / power_of_two(g->outputs, 32);
    uint32_t blocks = zc_launch_blocks(g->outputs, ZC_GROUP_BLOCK / g->lanes, 0);
    int64_t splits = 1;
    if (may_split && blocks && blocks < wanted / 2) {
        int64_t most = items / (8 * (int64_t)g->lanes);
        splits = wanted / blocks;
        if (splits > most) splits = most;
        if (splits > 1024) splits = 1024;
        if (splits < 1) splits = 1;
    }
    g->chunk = ((items + splits - 1) / splits) * vec;
    if (g->chunk) splits = (g->count + g->chunk - 1) / g->chunk;
    return (zc_dim3){blocks, (uint32_t)splits, 1};
}
