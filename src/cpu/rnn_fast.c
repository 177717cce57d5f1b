/* RNN, GRU and LSTM of f32: all inputs are projected by one matrix product, and the recurrence uses
 * vector code. */
#include "cpu/fast.h"
#include "cpu/rnn.h"
#include "cpu/rows.h"

typedef struct products {
    const zc_rows *rows;
    zc_tensor out[2]; /* a direction each: [length * batch][gates * hidden] */
} products;

static void project(const zc_rnn *n, int64_t d, int64_t t, int64_t b, double *out)
{
    const products *p = n->user;
    int64_t rows = n->r.gates * n->hidden;
    int64_t step = n->input ? zc_rnn_x_at(n, t, b) / n->input : 0;
    const float *from = (const float *)p->out[d].data + step * rows;
    for (int64_t i = 0; i < rows; i++) out[i] = (double)from[i];
}

static void recur(const zc_rnn *n, int64_t d, int64_t first, int64_t count, const double *v,
                  float *tmp, double *out)
{
    const products *p = n->user;
    const float *m = n->rec->data;
    for (int64_t i = 0; i < n->hidden; i++) tmp[i] = (float)v[i];
    int64_t row = d * n->r.gates * n->hidden + first;
    p->rows->products(m + row * n->hidden, tmp, count, n->hidden, out);
}

/* out = x W^T of direction d, through the Gemm kernels. */
static zc_status multiply(zc_kctx *k, const zc_rnn *n, int64_t d, zc_tensor *out)
{
    zc_attrs_Gemm attrs;
    size_t bytes;
    int64_t rows = n->r.gates * n->hidden;
    zc_attrs_default(zc_op_get(ZC_OP_Gemm), &attrs);
    attrs.transB = 1;
    *out = (zc_tensor){ZC_F32, 2, {n->length * n->batch, rows}, NULL};
    if (zc_tensor_bytes(out, &bytes)) out->data = zc_scratch_get(k->scratch, bytes);
    if (!out->data) return zc_fail_nomem(k->diag, "projected inputs", 0);
    float *w = (float *)n->w->data + d * rows * n->input;
    zc_tensor in[] = {{ZC_F32, 2, {n->length * n->batch, n->input}, n->x->data},
                      {ZC_F32, 2, {rows, n->input}, w}};
    zc_kctx inner = zc_inner(k, ZC_OP_Gemm, &attrs, 2, in, out);
    return zc_kernel_run(&inner, false);
}

bool zc_fits_recurrent(const zc_kctx *k)
{
    return k->in[0].dtype == ZC_F32 && zc_tensor_numel(&k->in[0]) > 0;
}

zc_status zc_fast_recurrent(zc_kctx *k)
{
    products p = {.rows = zc_rows_get()};
    zc_rnn n = {.project = project, .recur = recur, .user = &p};
    ZC_TRY(zc_rnn_of(k, &n));
    for (int64_t d = 0; d < n.r.directions; d++) ZC_TRY(multiply(k, &n, d, &p.out[d]));
    return zc_rnn_run(k, &n);
}
