#include "abi/tfidf.h"

#include "cuda/move.h"

enum { BLOCK = 128, BLOCKS_PER_SM = 64 };

zc_status zc_launch_tfidf(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    struct zc_tfidf_params p = {.in = x->data,
                                .out = y->data,
                                .rows = x->rank == 2 ? x->dims[0] : 1,
                                .width = x->dims[x->rank - 1],
                                .columns = y->dims[y->rank - 1]};
    size_t bytes = 0;
    if (!zc_tensor_bytes(y, &bytes)) return zc_launch_fail(l, "the output is too large");
    if (bytes == 0) return ZC_OK;
    ZC_TRY(zc_launch_fill(l, p.out, 0, bytes));
    int64_t warps = zc_tensor_numel(y); /* at least the elements that n-grams have */
    zc_dim3 grid = {zc_launch_blocks(warps, BLOCK / 32, BLOCKS_PER_SM * l->sm_count), 1, 1};
    return zc_launch_kernel(l, 0, grid, BLOCK, 0, &p, sizeof p);
}
