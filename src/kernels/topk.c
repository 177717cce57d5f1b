#include <string.h>

#include "abi/topk.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

zc_status zc_gen_topk(zc_gen *g)
{
    const zc_pvalue *in = zc_gen_in(g, 0);
    if (!zc_kernel_type(in->dtype))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(in->dtype));
    if (in->rank < 0) return zc_gen_decline(g, "rank known only when run");
    zc_gen_type(g, "IN", in->dtype);
    zc_gen_define(g, "LARGEST", "%d", ZC_ATTRS(g, TopK)->largest != 0);
    return ZC_OK;
}

/* ---- the launch ---- */

/* The chunk that a block sorts: a power of two, or the whole line. */
static uint32_t chunk_of(int64_t length)
{
    return length < ZC_TOPK_CHUNK ? (uint32_t)length : ZC_TOPK_CHUNK;
}

static uint32_t block_of(uint32_t chunk)
{
    return chunk <= 64 ? 32 : chunk <= 512 ? 128 : 256;
}

static zc_status sort_chunks(zc_launch *l, const struct zc_topk_params *p)
{
    size_t key = zc_dtype_bits(l->in[0].dtype) == 64 ? 8 : 4;
    zc_dim3 grid = {zc_launch_blocks(p->lines * (int64_t)p->chunks.d, 1, 0), 1, 1};
    uint32_t smem = p->chunk * (uint32_t)(key + 8);
    return zc_launch_kernel(l, 0, grid, block_of(p->chunk), smem, p, sizeof *p);
}

static zc_status sort_lists(zc_launch *l, struct zc_topk_params *p)
{
    int64_t list = (int64_t)p->list.d;
    for (p->run = p->keep; p->run < list; p->run *= 2) {
        unsigned int *sorted = p->to;
        p->to = p->from;
        p->from = sorted;
        ZC_TRY(zc_launch_kernel(l, 1, zc_move_grid(l, p->lines * list), 256, 0, p, sizeof *p));
    }
    p->from = p->to;
    return ZC_OK;
}

static zc_status check_outputs(zc_launch *l, int axis, int64_t k)
{
    const zc_tensor *in = &l->in[0];
    int64_t dims[ZC_MAX_RANK];
    memcpy(dims, in->dims, sizeof dims);
    dims[axis] = k;
    for (int i = 0; i < l->nout; i++)
        if (zc_present(&l->out[i]))
            ZC_TRY(zc_move_check(l, &l->out[i], in->rank, dims, "an output"));
    return ZC_OK;
}

zc_status zc_launch_topk(zc_launch *l)
{
    const zc_tensor *in = &l->in[0];
    int64_t axis = ZC_ATTRS(l, TopK)->axis, k = 0;
    int n;
    size_t items;
    struct zc_topk_params p;
    memset(&p, 0, sizeof p);
    if (axis < 0) axis += in->rank;
    p.length = in->dims[axis];
    ZC_TRY(zc_launch_ints(l, 1, &k, 1, &n));
    ZC_TRY(zc_move_check_length(l, n, 1, "number of values in K"));
    if (k < 0 || k > p.length)
        return zc_launch_fail(l, "K out of range (got %lld, need [0, %lld])", (long long)k,
                              p.length);
    ZC_TRY(check_outputs(l, (int)axis, k));
    if (zc_tensor_numel(in) == 0 || k == 0) return ZC_OK;
    int64_t inner = zc_dims_span(in->dims, (int)axis + 1, in->rank);
    p.in = in->data;
    p.values = zc_launch_out(l, 0);
    p.indices = zc_launch_out(l, 1);
    p.lines = zc_tensor_numel(in) / p.length;
    p.k = k;
    p.inner = zc_divisor_of(inner);
    p.kth = zc_divisor_of(k);
    p.chunk = chunk_of(p.length);
    p.keep = k < p.chunk ? (unsigned int)k : p.chunk;
    int64_t chunks = (p.length - 1) / p.chunk + 1;
    p.chunks = zc_divisor_of(chunks);
    p.list = zc_divisor_of(chunks * p.keep);
    if (p.length >= UINT32_MAX)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "axis is too long (got %lld)", p.length);
    if (!zc_mul_size((size_t)p.lines, (size_t)p.list.d, &items) || !zc_mul_size(items, 4, &items))
        return zc_fail_nomem(l->diag, "candidates", SIZE_MAX);
    ZC_TRY(zc_launch_scratch(l, items, (void **)&p.to));
    ZC_TRY(zc_launch_scratch(l, chunks > 1 ? items : 256, (void **)&p.from));
    ZC_TRY(sort_chunks(l, &p));
    ZC_TRY(sort_lists(l, &p));
    return zc_launch_kernel(l, 2, zc_move_grid(l, p.lines * k), 256, 0, &p, sizeof p);
}
