/* Types and shapes of recurrent layers. */
#include "op/infer_common.h"
#include "op/recurrent.h"

/* Inputs, in ONNX's order; only LSTM has the last two. */
#define IN(input) ZC_IN_LSTM_##input

zc_status zc_dt_recurrent(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, IN(x)));
    for (int i = IN(w); i < f->nin; i++)
        if (i != IN(lengths)) ZC_TRY(zc_infer_need_alike(f, IN(x), i));
    ZC_TRY(zc_infer_need_int(f, IN(lengths), "sequence_lens"));
    return zc_infer_set_dtype(f, f->in[IN(x)].type.dtype);
}

zc_status zc_dt_quantised_recurrent(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, IN(x)));
    ZC_TRY(zc_infer_need_8bit(f, IN(w)));
    ZC_TRY(zc_infer_need_8bit(f, IN(r)));
    for (int i = IN(bias); i < f->nin; i++) {
        const bool zero =
            i == ZC_IN_DynamicQuantizeLSTM_w_zero || i == ZC_IN_DynamicQuantizeLSTM_r_zero;
        if (i != IN(lengths) && !zero) ZC_TRY(zc_infer_need_alike(f, IN(x), i));
    }
    ZC_TRY(zc_infer_need_alike(f, IN(w), ZC_IN_DynamicQuantizeLSTM_w_zero));
    ZC_TRY(zc_infer_need_alike(f, IN(r), ZC_IN_DynamicQuantizeLSTM_r_zero));
    ZC_TRY(zc_infer_need_int(f, IN(lengths), "sequence_lens"));
    return zc_infer_set_dtype(f, f->in[IN(x)].type.dtype);
}

/* A scale or zero point of weights: one a direction, or one a row. */
static zc_status check_scale(zc_infer *f, int i, zc_dim directions, zc_dim rows, const char *what)
{
    const zc_dim all[] = {directions, rows};
    const bool each = zc_in_present(f, i) && zc_in(f, i)->rank == 2;
    return zc_infer_need_shape(f, i, each ? 2 : 1, all, what);
}

static zc_status check_scales(zc_infer *f, zc_dim directions, zc_dim rows)
{
    for (int i = ZC_IN_DynamicQuantizeLSTM_w_scale; i < ZC_IN_DynamicQuantizeLSTM_r_zero; i += 2) {
        if (!zc_in_present(f, i)) return zc_infer_fail(f, "input %d is left out", i);
        ZC_TRY(check_scale(f, i, directions, rows, "a scale"));
        ZC_TRY(check_scale(f, i + 1, directions, rows, "a zero point"));
    }
    return ZC_OK;
}

static zc_status check_inputs(zc_infer *f, const zc_recurrent *r, zc_dim batch, zc_dim input,
                              zc_dim hidden, const zc_dim *state)
{
    const bool bytes = f->op == ZC_OP_DynamicQuantizeLSTM; /* whose weights are turned */
    zc_dim directions = zc_dim_const(r->directions);
    zc_dim rows = zc_dim_mul(f->dims, hidden, zc_dim_const(r->gates));
    const zc_dim w[] = {directions, bytes ? input : rows, bytes ? rows : input};
    const zc_dim rec[] = {directions, bytes ? hidden : rows, bytes ? rows : hidden};
    if (bytes) ZC_TRY(check_scales(f, directions, rows));
    const zc_dim bias[] = {directions, zc_dim_mul(f->dims, rows, zc_dim_const(2))};
    const zc_dim peepholes[] = {directions, zc_dim_mul(f->dims, hidden, zc_dim_const(3))};
    ZC_TRY(zc_infer_need_shape(f, IN(w), 3, w, "W"));
    ZC_TRY(zc_infer_need_shape(f, IN(r), 3, rec, "R"));
    ZC_TRY(zc_infer_need_shape(f, IN(bias), 2, bias, "B"));
    ZC_TRY(zc_infer_need_shape(f, IN(lengths), 1, &batch, "sequence_lens"));
    ZC_TRY(zc_infer_need_shape(f, IN(h), 3, state, "initial_h"));
    ZC_TRY(zc_infer_need_shape(f, IN(c), 3, state, "initial_c"));
    return zc_infer_need_shape(f, IN(peepholes), 2, peepholes, "P");
}

zc_status zc_infer_recurrent(zc_infer *f)
{
    zc_recurrent r;
    ZC_TRY(zc_recurrent_of(f->op, f->attrs, f->subject, f->diag, &r));
    ZC_TRY(zc_infer_need_rank(f, IN(x), 3, 3));
    ZC_TRY(zc_infer_need_rank(f, IN(w), 3, 3));
    ZC_TRY(zc_infer_need_rank(f, IN(r), 3, 3));
    const zc_type *x = zc_in(f, IN(x));
    zc_dim length = x->dims[r.batch_first ? 1 : 0], batch = x->dims[r.batch_first ? 0 : 1];
    const int at = f->op == ZC_OP_DynamicQuantizeLSTM ? 1 : 2; /* of R's dimensions */
    zc_dim hidden = zc_in(f, IN(r))->dims[at], directions = zc_dim_const(r.directions);
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
