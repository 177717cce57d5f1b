#include <stdio.h>
#include <string.h>

#include "abi/select.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

const char *const zc_config_select[] = {"unit", NULL};

zc_status zc_gen_select(zc_gen *g)
{
    bool compress = g->step->op == ZC_OP_Compress;
    zc_dtype data = zc_gen_in_type(g, 0), flags = compress ? zc_gen_in_type(g, 1) : data;
    if (!zc_kernel_type(flags) || zc_dtype_bits(data) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(data));
    if (zc_gen_in(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "select");
    zc_gen_type(g, "IN", flags);
    const zc_pvalue *in = zc_gen_in(g, 0);
    int inner = in->rank;
    if (compress && ZC_ATTR_GIVEN(Compress, ZC_ATTRS(g, Compress), axis)) {
        int64_t axis = ZC_ATTRS(g, Compress)->axis;
        inner = (int)(axis < 0 ? axis + in->rank : axis) + 1;
    }
    zc_gen_unit(g, data, in->dims + inner, in->rank - inner);
    return ZC_OK;
}

/* ---- the launch ---- */

enum { COUNT, SCAN, COORDINATES, POSITIONS, ROWS };

static zc_status issue_tiles(zc_launch *l, int entry, const struct zc_select_params *p)
{
    zc_dim3 grid = {entry == SCAN ? 1 : p->tiles, 1, 1};
    return zc_launch_kernel(l, entry, grid, 256, 0, p, sizeof *p);
}

/* How many of the n elements are set; counts holds the sums before each tile. */
static zc_status count(zc_launch *l, const zc_tensor *flags, int64_t n, struct zc_select_params *p)
{
    if (n / ZC_SELECT_TILE >= INT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "too many elements for the GPU kernel (got %lld)", (long long)n);
    p->flags = flags->data;
    p->n = n;
    p->tiles = (unsigned int)((n + ZC_SELECT_TILE - 1) / ZC_SELECT_TILE);
    p->step = l->step_id;
    p->fault = l->fault;
    ZC_TRY(zc_launch_scratch(l, ((size_t)p->tiles + 1) * sizeof *p->counts, (void **)&p->counts));
    ZC_TRY(issue_tiles(l, COUNT, p));
    ZC_TRY(issue_tiles(l, SCAN, p));
    return ZC_OK;
}

static zc_status fetch_found(zc_launch *l, struct zc_select_params *p)
{
    p->found = 0;
    return p->n ? zc_launch_fetch(l, &p->found, p->counts + p->tiles, sizeof p->found) : ZC_OK;
}

static zc_status nonzero(zc_launch *l)
{
    const zc_tensor *in = &l->in[0];
    struct zc_select_params p;
    memset(&p, 0, sizeof p);
    p.limit = zc_tensor_numel(in);
    ZC_TRY(count(l, in, p.limit, &p));
    ZC_TRY(fetch_found(l, &p));
    ZC_TRY(zc_launch_resize(l, 0, 2, (int64_t[]){in->rank, p.found}));
    if (p.found == 0 || in->rank == 0) return ZC_OK;
    p.out = l->out[0].data;
    p.rank = in->rank;
    for (int i = 0; i < in->rank; i++) p.dims[i] = zc_divisor_of(in->dims[i]);
    return issue_tiles(l, COORDINATES, &p);
}

static zc_status compress(zc_launch *l)
{
    const zc_attrs_Compress *a = ZC_ATTRS(l, Compress);
    const zc_tensor *in = &l->in[0], *condition = &l->in[1];
    bool along = ZC_ATTR_GIVEN(Compress, a, axis);
    int axis = !along ? 0 : (int)(a->axis < 0 ? a->axis + in->rank : a->axis);
    int64_t n = condition->dims[0], dims[ZC_MAX_RANK] = {0}, outer = 1, inner = 1;
    struct zc_select_params p;
    memset(&p, 0, sizeof p);
    p.limit = zc_tensor_numel(in);
    if (along) {
        memcpy(dims, in->dims, sizeof dims);
        p.limit = in->dims[axis];
        outer = zc_dims_span(in->dims, 0, axis);
        inner = zc_dims_span(in->dims, axis + 1, in->rank);
    }
    ZC_TRY(zc_launch_scratch(l, (size_t)(n + 1) * sizeof *p.map, (void **)&p.map));
    ZC_TRY(count(l, condition, n, &p));
    ZC_TRY(fetch_found(l, &p));
    dims[axis] = p.found;
    ZC_TRY(zc_launch_resize(l, 0, along ? in->rank : 1, dims));
    if (zc_tensor_numel(&l->out[0]) <= 0) return ZC_OK;
    ZC_TRY(issue_tiles(l, POSITIONS, &p));
    int64_t run = inner * zc_move_size(in);
    int unit = zc_move_chosen(l);
    p.data = in->data;
    p.rows = l->out[0].data;
    p.run = zc_divisor_of(run >> unit);
    p.picked = zc_divisor_of(p.found);
    p.total = outer * p.found * (run >> unit);
    return zc_launch_kernel(l, ROWS, zc_move_grid(l, p.total), 256, 0, &p, sizeof p);
}

zc_status zc_launch_select(zc_launch *l)
{
    return l->op == ZC_OP_Compress ? compress(l) : nonzero(l);
}
