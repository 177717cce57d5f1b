/* Types and shapes of user kernels: what their rule file says of them. */
#include "op/infer_common.h"
#include "op/sizes.h"

#define MOST_INPUTS 32

zc_status zc_dt_user(zc_infer *f)
{
    const zc_attrs_UserKernel *a = ZC_ATTRS(f, UserKernel);
    if (a->types.n != f->nout)
        return zc_infer_fail(f, "wrong number of results (got %d, need %d)", f->nout, a->types.n);
    for (int i = 0; i < f->nout; i++) {
        int64_t t = a->types.v[i];
        if (t < 0 && -1 - t < f->nin)
            zc_infer_out_dtype(f, i, f->in[-1 - t].type.dtype);
        else if (t > 0 && t < ZC_DTYPE_END && zc_dtype_valid((int)t))
            zc_infer_out_dtype(f, i, (zc_dtype)t);
        else
            return zc_infer_fail(f, "result %d has no element type (got %lld)", i, (long long)t);
    }
    return ZC_OK;
}

zc_status zc_infer_user(zc_infer *f)
{
    const zc_attrs_UserKernel *a = ZC_ATTRS(f, UserKernel);
    zc_type types[MOST_INPUTS];
    zc_sizes_env env = {.dims = f->dims, .types = types, .ntypes = f->nin, .tuned = a->tuned};
    const char *text = a->shapes;
    for (int i = 0; i < f->nin; i++) types[i] = f->in[i].type;
    for (int i = 0; i < f->nout; i++) {
        zc_dim dims[ZC_MAX_RANK];
        int rank;
        text = zc_sizes_eval(text, &env, ZC_MAX_RANK, dims, &rank);
        if (!text)
            return zc_infer_fail(f, "kernel %s (%s): result %d has no shape for these operands",
                                 a->name ? a->name : "", a->origin ? a->origin : "", i);
        ZC_TRY(zc_infer_set(f, i, rank, dims));
    }
    return ZC_OK;
}
