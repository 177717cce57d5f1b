/* Types and shapes of recurrent layers. */
#include "op/infer_common.h"
#include "op/recurrent.h"

/* Inputs, in ONNX's order; only LSTM has the last two. */
enum { IN_X, IN_W, IN_R, IN_BIAS, IN_LENGTHS, IN_H, IN_C, IN_PEEPHOLES };

zc_status zc_dt_recurrent(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, IN_X));
    for (int i = IN_W; i < f->nin; i++)
        if (i != IN_LENGTHS) ZC_TRY(zc_infer_need_alike(f, IN_X, i));
    ZC_TRY(zc_infer_need_int(f, IN_LENGTHS, "sequence_lens"));
    return zc_infer_set_dtype(f, f->in[IN_X].type.dtype);
}

static zc_status check_inputs(zc_infer *f, const zc_recurrent *r, zc_dim batch, zc_dim input,
                              zc_dim hidden, const zc_dim *state)
{
    zc_dim directions = zc_dim_const(r->directions);
    zc_dim rows = zc_dim_mul(f->dims, hidden, zc_dim_const(r->gates));
    const zc_dim w[] = {directions, rows, input}, rec[] = {directions, rows, hidden};
    const zc_dim bias[] = {directions, zc_dim_mul(f->dims, rows, zc_dim_const(2))};
    const zc_dim peepholes[] = {directions, zc_dim_mul(f->dims, hidden, zc_dim_const(3))};
    ZC_TRY(zc_infer_need_shape(f, IN_W, 3, w, "W"));
    ZC_TRY(zc_infer_need_shape(f, IN_R, 3, rec, "R"));
    ZC_TRY(zc_infer_need_shape(f, IN_BIAS, 2, bias, "B"));
    ZC_TRY(zc_infer_need_shape(f, IN_LENGTHS, 1, &batch, "sequence_lens"));
    ZC_TRY(zc_infer_need_shape(f, IN_H, 3, state, "initial_h"));
    ZC_TRY(zc_infer_need_shape(f, IN_C, 3, state, "initial_c"));
    return zc_infer_need_shape(f, IN_PEEPHOLES, 2, peepholes, "P");
}

zc_status zc_infer_recurrent(zc_infer *f)
{
    zc_recurrent r;
    ZC_TRY(zc_recurrent_of(f->op, f->attrs, f->subject, f->diag, &r));
    ZC_TRY(zc_infer_need_rank(f, IN_X, 3, 3));
    ZC_TRY(zc_infer_need_rank(f, IN_W, 3, 3));
    ZC_TRY(zc_infer_need_rank(f, IN_R, 3, 3));
    const zc_type *x = zc_in(f, IN_X);
    zc_dim length = x->dims[r.batch_first ? 1 : 0], batch = x->dims[r.batch_first ? 0 : 1];
    zc_dim hidden = zc_in(f, IN_R)->dims[2], directions = zc_dim_const(r.directions);
    if (r.hidden >= 0)
        ZC_TRY(zc_infer_same(f, zc_dim_const(r.hidden), hidden,
                             "hidden_size and the last dimension of R"));
    const zc_dim seq_first[] = {length, directions, batch, hidden};
    const zc_dim batch_first[] = {batch, length, directions, hidden};
    const zc_dim state[] = {r.batch_first ? batch : directions, r.batch_first ? directions : batch,
                            hidden};
    ZC_TRY(check_inputs(f, &r, batch, x->dims[2], hidden, state));
    ZC_TRY(zc_infer_set(f, 0, 4, r.batch_first ? batch_first : seq_first));
    ZC_TRY(zc_infer_set(f, 1, 3, state));
    return zc_infer_set(f, 2, 3, state);
}
