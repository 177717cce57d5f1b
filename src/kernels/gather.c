#include <stdio.h>
#include <string.h>

#include "abi/gather.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

const char *const zc_config_gather[] = {"unit", NULL};

/* The first axis of a run: behind those that are certainly indexed. */
static int run_begin(const zc_gen *g, const zc_pvalue *in, const zc_pvalue *at)
{
    if (g->step->op == ZC_OP_GatherElements) return in->rank;
    if (g->step->op == ZC_OP_Gather) {
        int64_t axis = ZC_ATTRS(g, Gather)->axis;
        return (int)(axis < 0 ? axis + in->rank : axis) + 1;
    }
    int64_t n = zc_gen_const_dim(at, at->rank - 1);
    int64_t begin = ZC_ATTRS(g, GatherND)->batch_dims + n;
    return n > 0 && begin <= in->rank ? (int)begin : in->rank;
}

zc_status zc_gen_gather(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0), *at = zc_gen_in(g, 1);
    if (zc_dtype_bits(in->dtype) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (!zc_kernel_type(at->dtype) || !zc_dtype_is_int(at->dtype))
        return zc_gen_decline(g, "indices of type %s", zc_dtype_name(at->dtype));
    if (in->rank < 0 || at->rank < 0) return zc_gen_decline(g, "rank known only when run");
    snprintf(g->label, sizeof g->label, "gather");
    zc_gen_type(g, "INDEX", at->dtype);
    zc_gen_define(g, "HOW", "%s",
                  g->step->op == ZC_OP_Gather     ? "gather"
                  : g->step->op == ZC_OP_GatherND ? "gather_nd"
                                                  : "gather_elements");
    int begin = run_begin(g, in, at);
    zc_gen_unit(g, in->dtype, in->dims + begin, in->rank - begin);
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status issue(zc_launch *l, struct zc_gather_params *p)
{
    p->in = l->in[0].data;
    p->indices = l->in[1].data;
    p->out = l->out[0].data;
    p->step = l->step_id;
    p->fault = l->fault;
    return zc_launch_configured(l, zc_move_grid(l, p->total), p, sizeof *p);
}

/* Runs of `run` bytes. */
static zc_status issue_runs(zc_launch *l, int64_t run, struct zc_gather_params *p)
{
    int64_t n = zc_tensor_numel(&l->out[0]);
    if (n == 0) return ZC_OK;
    int unit = zc_move_chosen(l);
    p->run = zc_divisor_of(run >> unit);
    p->total = n * zc_move_size(&l->out[0]) >> unit;
    return issue(l, p);
}

static zc_status gather(zc_launch *l)
{
    const zc_tensor *in = &l->in[0], *at = &l->in[1];
    int64_t axis = ZC_ATTRS(l, Gather)->axis, dims[2 * ZC_MAX_RANK];
    int rank = 0;
    struct zc_gather_params p;
    memset(&p, 0, sizeof p);
    if (axis < 0) axis += in->rank;
    for (int i = 0; i < axis; i++) dims[rank++] = in->dims[i];
    for (int i = 0; i < at->rank; i++) dims[rank++] = at->dims[i];
    for (int i = (int)axis + 1; i < in->rank; i++) dims[rank++] = in->dims[i];
    ZC_TRY(zc_move_check(l, &l->out[0], rank, dims, "the output"));
    p.n = zc_divisor_of(zc_tensor_numel(at));
    p.limit = in->dims[axis];
    return issue_runs(l, zc_dims_span(in->dims, (int)axis + 1, in->rank) * zc_move_size(in), &p);
}

static zc_status gather_nd(zc_launch *l)
{
    const zc_tensor *in = &l->in[0], *at = &l->in[1];
    int batch = (int)ZC_ATTRS(l, GatherND)->batch_dims, rank = at->rank - 1;
    int64_t n = at->dims[at->rank - 1], dims[2 * ZC_MAX_RANK];
    struct zc_gather_params p;
    memset(&p, 0, sizeof p);
    if (n < 1 || n > in->rank - batch)
        return zc_launch_fail(l, "index tuples have a wrong length (got %lld)", (long long)n);
    for (int i = 0; i < batch; i++)
        ZC_TRY(zc_move_check_length(l, at->dims[i], in->dims[i], "batch dimension of the indices"));
    memcpy(dims, at->dims, sizeof at->dims);
    for (int i = batch + (int)n; i < in->rank; i++) dims[rank++] = in->dims[i];
    ZC_TRY(zc_move_check(l, &l->out[0], rank, dims, "the output"));
    p.rank = (int)n;
    for (int i = 0; i < n; i++) p.dims[i].d = (unsigned long long)in->dims[batch + i];
    p.n = zc_divisor_of(zc_dims_span(at->dims, batch, at->rank - 1));
    return issue_runs(l, zc_dims_span(in->dims, batch + (int)n, in->rank) * zc_move_size(in), &p);
}

static zc_status gather_elements(zc_launch *l)
{
    const zc_tensor *in = &l->in[0], *at = &l->in[1];
    int64_t axis = ZC_ATTRS(l, GatherElements)->axis, strides[ZC_MAX_RANK];
    struct zc_gather_params p;
    memset(&p, 0, sizeof p);
    if (axis < 0) axis += in->rank;
    ZC_TRY(zc_move_check(l, &l->out[0], at->rank, at->dims, "the output"));
    ZC_TRY(zc_move_check_length(l, at->rank, in->rank, "rank of the indices"));
    for (int i = 0; i < in->rank; i++)
        if (i != axis && at->dims[i] > in->dims[i])
            return zc_launch_fail(
                l, "indices exceed the data along axis %d (got %lld, need at most %lld)", i,
                (long long)at->dims[i], (long long)in->dims[i]);
    zc_move_strides(in, strides);
    p.total = zc_tensor_numel(at);
    p.limit = in->dims[axis];
    p.rank = in->rank;
    p.axis = (int)axis;
    for (int i = 0; i < in->rank; i++) {
        p.dims[i] = zc_divisor_of(at->dims[i]);
        p.strides[i] = strides[i];
    }
    return issue(l, &p);
}

zc_status zc_launch_gather(zc_launch *l)
{
    if (l->op == ZC_OP_GatherND) return gather_nd(l);
    return l->op == ZC_OP_GatherElements ? gather_elements(l) : gather(l);
}
