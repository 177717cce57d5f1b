/* PackedLinear: codes become numbers piece by piece, sums go on in the order of the summed axis. */
#include <string.h>

#include "op/packed.h"

#include "cpu/kernel.h"
#include "cpu/pointwise.h"

enum { ROWS = 32 }; /* at once */

typedef struct job {
    const zc_tensor *x, *codes, *scale, *zero, *bias; /* zero and bias: NULL without */
    zc_tensor *y;
    zc_packed w;
    int64_t rows, blocks;
    double alpha;
} job;

/* The matrix's elements of column n, one piece from place k on. */
static void decode(const job *j, int64_t n, int64_t k, double *out)
{
    const int64_t block = j->w.k / j->blocks, at = zc_packed_at(&j->w, n, k);
    double scale = 0, zero = 0;
    for (int i = 0; i < j->w.piece; i++) {
        const int64_t by = zc_packed_scale_at(j->blocks, n, (k + i) / block);
        if (i % ZC_PACKED_LEAST == 0) {
            scale = zc_get(j->scale, by);
            zero = j->zero ? zc_get(j->zero, by) : 0;
        }
        out[i] = (zc_get(j->codes, at + i) - zero) * scale;
    }
}

static void column(const job *j, int64_t n, int64_t row, int rows)
{
    double sum[ROWS] = {0}, w[2 * ZC_PACKED_BYTES];
    for (int64_t k = 0; k < j->w.k; k += j->w.piece) {
        decode(j, n, k, w);
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < j->w.piece; i++)
                sum[r] += zc_get(j->x, (row + r) * j->w.k + k + i) * w[i];
    }
    for (int r = 0; r < rows; r++)
        zc_put(j->y, (row + r) * j->w.n + n,
               sum[r] * j->alpha + (j->bias ? zc_get(j->bias, n) : 0));
}

static void columns(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t n = begin; n < end; n++)
        for (int64_t row = 0; row < j->rows; row += ROWS)
            column(j, n, row, (int)(j->rows - row < ROWS ? j->rows - row : ROWS));
}

/* Room of the run's for t. */
static zc_status make_room(zc_kctx *k, const char *what, zc_tensor *t)
{
    size_t bytes = 0;
    t->data = zc_tensor_bytes(t, &bytes) ? zc_scratch_get(k->scratch, bytes) : NULL;
    return t->data ? ZC_OK : zc_fail_nomem(k->diag, what, bytes);
}

/* The rows by RMSNormalization. */
static zc_status normalise(zc_kctx *k, zc_tensor *rows)
{
    const zc_attrs_RMSNormalization attrs = {
        .axis = -1, .epsilon = ZC_ATTRS(k, PackedLinear)->epsilon, .stash_type = ZC_F32};
    const zc_tensor in[] = {*rows, k->in[ZC_IN_PackedLinear_gain]};
    ZC_TRY(make_room(k, "normalised rows", rows));
    zc_kctx inner = zc_inner(k, ZC_OP_RMSNormalization, &attrs, 2, in, rows);
    return zc_kernel_run(&inner, true);
}

/* Every second run of columns, from `first` on, of rows that have twice as many. */
static zc_status take(zc_kctx *k, const zc_tensor *all, int first, zc_tensor *out)
{
    const size_t run = ZC_PACKED_GATED * zc_dtype_bits(all->dtype) / 8;
    const size_t runs = (size_t)(zc_tensor_numel(&k->out[0]) / ZC_PACKED_GATED);
    *out = k->out[0];
    ZC_TRY(make_room(k, "one of two products", out));
    for (size_t i = 0; i < runs; i++)
        memcpy((char *)out->data + i * run, (const char *)all->data + (2 * i + (size_t)first) * run,
               run);
    return ZC_OK;
}

/* activation(first) * second of both products, which stand by turns. */
static zc_status gate(zc_kctx *k, const zc_tensor *all)
{
    const zc_attrs_PackedLinear *a = ZC_ATTRS(k, PackedLinear);
    zc_tensor factors[2];
    for (int i = 0; i < 2; i++) ZC_TRY(take(k, all, i, &factors[i]));
    ZC_TRY(
        zc_activate(k, a->activation, a->activation_params.v, a->activation_params.n, &factors[0]));
    zc_kctx inner = zc_inner(k, ZC_OP_Mul, NULL, 2, factors, k->out);
    return zc_kernel_run(&inner, true);
}

zc_status zc_k_PackedLinear(zc_kctx *k)
{
    zc_tensor x = k->in[ZC_IN_PackedLinear_x];
    zc_tensor all = k->out[0];
    const bool gated = *ZC_ATTRS(k, PackedLinear)->activation != 0;
    if (zc_input(k, ZC_IN_PackedLinear_gain)) ZC_TRY(normalise(k, &x));
    if (gated) {
        all.dims[all.rank - 1] *= 2;
        ZC_TRY(make_room(k, "two products", &all));
    }
    job j = {.x = &x,
             .codes = &k->in[ZC_IN_PackedLinear_w],
             .scale = &k->in[ZC_IN_PackedLinear_scale],
             .zero = zc_input(k, ZC_IN_PackedLinear_zero),
             .bias = zc_input(k, ZC_IN_PackedLinear_bias),
             .y = &all,
             .alpha = (double)ZC_ATTRS(k, PackedLinear)->alpha};
    char rows[128], codes[128];
    if (!zc_packed_of(j.codes, &j.w) || j.x->dims[j.x->rank - 1] != j.w.k)
        return zc_kernel_fail(k, "operands do not fit each other (got %s and %s)",
                              zc_tensor_type_text(j.x, rows, sizeof rows),
                              zc_tensor_type_text(j.codes, codes, sizeof codes));
    j.rows = zc_tensor_numel(j.y) / j.w.n;
    j.blocks = j.scale->dims[1];
    zc_parallel(k, j.w.n, 1, columns, &j);
    return gated ? gate(k, &all) : ZC_OK;
}
