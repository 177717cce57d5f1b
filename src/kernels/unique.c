#include <string.h>

#include "abi/unique.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

zc_status zc_gen_unique(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (!zc_kernel_type(in->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (in->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "IN", in->dtype);
    return ZC_OK;
}

/* ---- the launch ---- */

enum { SORT, MERGE, COUNT_GROUPS, SCAN, GROUP, COUNT_FIRST, NUMBER, PER_GROUP, PER_ROW, VALUES };

static zc_status issue(zc_launch *l, int entry, uint32_t blocks, const struct zc_unique_params *p)
{
    return zc_launch_kernel(l, entry, (zc_dim3){blocks, 1, 1}, 256, 0, p, sizeof *p);
}

static zc_status room(zc_launch *l, bool sorted, struct zc_unique_params *p)
{
    unsigned int **arrays[] = {&p->from,  &p->to,     &p->group, &p->first,
                               &p->start, &p->picked, &p->number};
    size_t bytes = ((size_t)p->rows + 1) * sizeof(unsigned int);
    for (size_t i = 0; i < ZC_COUNTOF(arrays) - sorted; i++)
        ZC_TRY(zc_launch_scratch(l, bytes, (void **)arrays[i]));
    return zc_launch_scratch(l, ((size_t)p->ntiles + 1) * sizeof *p->tiles, (void **)&p->tiles);
}

static zc_status sort_rows(zc_launch *l, struct zc_unique_params *p)
{
    ZC_TRY(issue(l, SORT, zc_launch_blocks(p->rows, ZC_UNIQUE_CHUNK, 0), p));
    for (p->run = ZC_UNIQUE_CHUNK; p->run < p->rows; p->run *= 2) {
        unsigned int *sorted = p->to;
        p->to = p->from;
        p->from = sorted;
        ZC_TRY(issue(l, MERGE, zc_launch_blocks(p->rows, 256, 0), p));
    }
    p->from = p->to;
    return ZC_OK;
}

static zc_status group_rows(zc_launch *l, bool sorted, struct zc_unique_params *p)
{
    uint32_t tiles = (uint32_t)p->ntiles;
    ZC_TRY(issue(l, COUNT_GROUPS, tiles, p));
    ZC_TRY(issue(l, SCAN, 1, p));
    ZC_TRY(issue(l, GROUP, tiles, p));
    ZC_TRY(zc_launch_fetch(l, &p->groups, p->tiles + tiles, sizeof p->groups));
    if (sorted) return ZC_OK;
    ZC_TRY(issue(l, COUNT_FIRST, tiles, p));
    ZC_TRY(issue(l, SCAN, 1, p));
    return issue(l, NUMBER, tiles, p);
}

static zc_status resize_lists(zc_launch *l, struct zc_unique_params *p)
{
    long long **lists[] = {NULL, &p->firsts, &p->inverse, &p->counts};
    for (int i = 1; i < l->nout && i < 4; i++) {
        int64_t n = i == 2 ? p->rows : p->groups;
        if (!zc_present(&l->out[i])) continue;
        ZC_TRY(zc_launch_resize(l, i, 1, &n));
        *lists[i] = l->out[i].data;
    }
    return ZC_OK;
}

zc_status zc_launch_unique(zc_launch *l)
{
    const zc_attrs_Unique *a = ZC_ATTRS(l, Unique);
    const zc_tensor *in = &l->in[0];
    bool along = ZC_ATTR_GIVEN(Unique, a, axis), sorted = a->sorted != 0;
    int axis = !along ? 0 : (int)(a->axis < 0 ? a->axis + in->rank : a->axis);
    int64_t dims[ZC_MAX_RANK] = {0};
    struct zc_unique_params p;
    memset(&p, 0, sizeof p);
    p.outer = along ? zc_dims_span(in->dims, 0, axis) : 1;
    p.rows = along ? in->dims[axis] : zc_tensor_numel(in);
    p.inner = along ? zc_dims_span(in->dims, axis + 1, in->rank) : 1;
    p.in = in->data;
    if (p.rows >= UINT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "too many rows for the GPU kernel (got %lld)", p.rows);
    p.ntiles = (p.rows + ZC_UNIQUE_TILE - 1) / ZC_UNIQUE_TILE;
    ZC_TRY(room(l, sorted, &p));
    if (p.rows) {
        ZC_TRY(sort_rows(l, &p));
        ZC_TRY(group_rows(l, sorted, &p));
    }
    ZC_TRY(resize_lists(l, &p));
    if (along) memcpy(dims, in->dims, sizeof dims);
    dims[axis] = p.groups;
    if (zc_present(&l->out[0])) ZC_TRY(zc_launch_resize(l, 0, along ? in->rank : 1, dims));
    ZC_TRY(issue(l, PER_GROUP, zc_launch_blocks(p.groups, 256, 0), &p));
    if (p.inverse) ZC_TRY(issue(l, PER_ROW, zc_launch_blocks(p.rows, 256, 0), &p));
    if (!zc_present(&l->out[0])) return ZC_OK;
    p.values = l->out[0].data;
    p.by_inner = zc_divisor_of(p.inner);
    p.by_groups = zc_divisor_of(p.groups);
    return issue(l, VALUES, zc_launch_blocks(zc_tensor_numel(&l->out[0]), 256, 0), &p);
}
