#include <stdio.h>
#include <string.h>

#include "abi/scatter.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

const char *const zc_config_scatter[] = {"unit", NULL};

static int how_of(const char *reduction)
{
    static const char *const names[] = {"none", "add", "mul", "max", "min"};
    for (int i = 1; i < 5; i++)
        if (strcmp(reduction, names[i]) == 0) return i;
    return 0;
}

/* The first axis of a slice: behind those that are certainly indexed. */
static int run_begin(const zc_gen *g, const zc_pvalue *in, const zc_pvalue *at)
{
    if (g->step->op == ZC_OP_ScatterElements || at->rank < 1) return in->rank;
    int64_t n = zc_gen_const_dim(at, at->rank - 1);
    return n > 0 && n <= in->rank ? (int)n : in->rank;
}

zc_status zc_gen_scatter(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0), *at = zc_gen_in(g, 1);
    bool nd = g->step->op == ZC_OP_ScatterND;
    int how =
        how_of(nd ? ZC_ATTRS(g, ScatterND)->reduction : ZC_ATTRS(g, ScatterElements)->reduction);
    if (zc_dtype_bits(in->dtype) < 8 || (how && !zc_kernel_type(in->dtype)))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (!zc_kernel_type(at->dtype) || !zc_dtype_is_int(at->dtype))
        return zc_gen_decline(g, "indices of type %s", zc_dtype_name(at->dtype));
    if (in->rank < 0 || at->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "scatter");
    zc_gen_type(g, "INDEX", at->dtype);
    zc_gen_unit(g, in->dtype, in->dims + run_begin(g, in, at), in->rank - run_begin(g, in, at));
    if (how == 0) return ZC_OK;
    zc_gen_type(g, "IN", in->dtype);
    zc_gen_define(g, "HOW", "%d", how);
    return ZC_OK;
}

/* ---- the launch ---- */

/* With a reduction. */
enum { SORT = 2, MERGE = 3, APPLY = 4 };
/* Without. */
enum { LAST = 2, WRITE = 3 };

static zc_status issue(zc_launch *l, int entry, int64_t n, const struct zc_scatter_params *p)
{
    return zc_launch_kernel(l, entry, zc_move_grid(l, n), 256, 0, p, sizeof *p);
}

static zc_status scratch(zc_launch *l, int64_t n, size_t size, void *out)
{
    size_t bytes;
    void *p = NULL;
    if (n < 0 || !zc_mul_size((size_t)n, size, &bytes))
        return zc_fail_nomem(l->diag, "update order", SIZE_MAX);
    ZC_TRY(zc_launch_scratch(l, bytes, &p));
    memcpy(out, &p, sizeof p);
    return ZC_OK;
}

/* Updates of `slice` elements to their targets, of which there are `targets`. */
static zc_status write_last(zc_launch *l, struct zc_scatter_params *p, int64_t targets,
                            int64_t slice)
{
    int64_t run = slice * zc_move_size(&l->in[0]);
    int unit = zc_move_chosen(l);
    ZC_TRY(scratch(l, targets, sizeof *p->last, &p->last));
    ZC_TRY(zc_launch_fill(l, p->last, 0, (size_t)targets * sizeof *p->last));
    p->slice = zc_divisor_of(run >> unit);
    ZC_TRY(issue(l, LAST, p->n, p));
    return issue(l, WRITE, p->n * (run >> unit), p);
}

static zc_status apply_all(zc_launch *l, struct zc_scatter_params *p, int64_t slice)
{
    ZC_TRY(scratch(l, p->n, sizeof *p->to, &p->to));
    ZC_TRY(scratch(l, p->n, sizeof *p->from, &p->from));
    p->slice = zc_divisor_of(slice);
    zc_dim3 grid = {zc_launch_blocks(p->n, ZC_SCATTER_CHUNK, 0), 1, 1};
    ZC_TRY(zc_launch_kernel(l, SORT, grid, 256, 0, p, sizeof *p));
    for (p->run = ZC_SCATTER_CHUNK; p->run < p->n; p->run *= 2) {
        unsigned int *sorted = p->to;
        p->to = p->from;
        p->from = sorted;
        ZC_TRY(issue(l, MERGE, p->n, p));
    }
    p->from = p->to;
    return issue(l, APPLY, p->n * slice, p);
}

/* The data, then the updates; entry `entry` finds the targets. */
static zc_status scatter(zc_launch *l, int entry, const char *reduction, int64_t slice,
                         struct zc_scatter_params *p)
{
    const zc_tensor *in = &l->in[0];
    size_t bytes = 0;
    ZC_TRY(zc_move_check(l, &l->out[0], in->rank, in->dims, "the output"));
    if (!zc_tensor_bytes(in, &bytes)) return zc_launch_fail(l, "the data is too large");
    if (bytes && l->out[0].data != in->data)
        ZC_TRY(zc_launch_copy(l, l->out[0].data, in->data, bytes));
    if (p->n == 0 || slice == 0) return ZC_OK;
    if (p->n >= UINT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "too many updates for the GPU kernel (got %lld)", p->n);
    p->indices = l->in[1].data;
    p->updates = l->in[2].data;
    p->out = l->out[0].data;
    p->step = l->step_id;
    p->fault = l->fault;
    ZC_TRY(scratch(l, p->n, sizeof *p->targets, &p->targets));
    ZC_TRY(issue(l, entry, p->n, p));
    return strcmp(reduction, "none") == 0 ? write_last(l, p, zc_tensor_numel(in) / slice, slice)
                                          : apply_all(l, p, slice);
}

static zc_status scatter_elements(zc_launch *l)
{
    const zc_attrs_ScatterElements *a = ZC_ATTRS(l, ScatterElements);
    const zc_tensor *in = &l->in[0], *at = &l->in[1];
    int64_t strides[ZC_MAX_RANK], axis = a->axis < 0 ? a->axis + in->rank : a->axis;
    struct zc_scatter_params p;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_move_check_length(l, at->rank, in->rank, "rank of the indices"));
    ZC_TRY(zc_move_check(l, &l->in[2], at->rank, at->dims, "the updates"));
    zc_move_strides(in, strides);
    for (int i = 0; i < in->rank; i++) {
        if (i != axis && at->dims[i] > in->dims[i])
            return zc_launch_fail(
                l, "indices exceed the data along axis %d (got %lld, need at most %lld)", i,
                (long long)at->dims[i], (long long)in->dims[i]);
        p.dims[i] = zc_divisor_of(at->dims[i]);
        p.strides[i] = strides[i];
    }
    p.n = zc_tensor_numel(at);
    p.rank = in->rank;
    p.axis = (int)axis;
    p.limit = in->dims[axis];
    return scatter(l, 0, a->reduction, 1, &p);
}

static zc_status scatter_nd(zc_launch *l)
{
    const zc_tensor *in = &l->in[0], *at = &l->in[1];
    int64_t n = at->dims[at->rank - 1], dims[2 * ZC_MAX_RANK];
    int rank = at->rank - 1;
    struct zc_scatter_params p;
    memset(&p, 0, sizeof p);
    if (n < 1 || n > in->rank)
        return zc_launch_fail(l, "index tuples have a wrong length (got %lld)", (long long)n);
    memcpy(dims, at->dims, sizeof at->dims);
    for (int i = (int)n; i < in->rank; i++) dims[rank++] = in->dims[i];
    if (rank > ZC_MAX_RANK)
        return zc_launch_fail(l, "the updates' rank is too large (got %d)", rank);
    ZC_TRY(zc_move_check(l, &l->in[2], rank, dims, "the updates"));
    p.n = zc_tensor_numel(at) / n;
    p.rank = (int)n;
    p.axis = -1;
    for (int i = 0; i < n; i++) p.dims[i].d = (unsigned long long)in->dims[i];
    return scatter(l, 1, ZC_ATTRS(l, ScatterND)->reduction,
                   zc_dims_span(in->dims, (int)n, in->rank), &p);
}

zc_status zc_launch_scatter(zc_launch *l)
{
    return l->op == ZC_OP_ScatterND ? scatter_nd(l) : scatter_elements(l);
}
