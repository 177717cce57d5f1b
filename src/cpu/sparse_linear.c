/* SparseLinear: of each four neighbours of a row of the matrix the two that are stored, in the
 * order of the summed axis. */
#include "op/sparse.h"

#include "cpu/kernel.h"

enum { ROWS = 32 }; /* at once */

typedef struct job {
    const zc_tensor *x, *stored, *places, *bias; /* bias: NULL without */
    zc_tensor *y;
    zc_sparse w;
    int64_t rows;
} job;

/* Elements of row n of the matrix, stored of the four from k on, and where these stand. */
typedef struct kept {
    double w[ZC_SPARSE_KEPT];
    int64_t k[ZC_SPARSE_KEPT];
} kept;

static kept kept_of(const job *j, int64_t n, int64_t k)
{
    const int64_t at = zc_sparse_at(&j->w, n, k);
    int shift;
    const int64_t word = zc_sparse_word(&j->w, n, k, &shift);
    const uint32_t places = (uint32_t)zc_geti(j->places, word) >> shift;
    kept out;
    for (int i = 0; i < ZC_SPARSE_KEPT; i++) {
        out.w[i] = zc_get(j->stored, at + i);
        out.k[i] = k + (places >> 2 * i & 3);
    }
    return out;
}

static void column(const job *j, int64_t n, int64_t row, int rows)
{
    double sum[ROWS] = {0};
    for (int64_t k = 0; k < j->w.k; k += ZC_SPARSE_OF) {
        const kept of = kept_of(j, n, k);
        for (int r = 0; r < rows; r++)
            for (int i = 0; i < ZC_SPARSE_KEPT; i++)
                sum[r] += zc_get(j->x, (row + r) * j->w.k + of.k[i]) * of.w[i];
    }
    for (int r = 0; r < rows; r++)
        zc_put(j->y, (row + r) * j->w.n + n, sum[r] + (j->bias ? zc_get(j->bias, n) : 0));
}

static void columns(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t n = begin; n < end; n++)
        for (int64_t row = 0; row < j->rows; row += ROWS)
            column(j, n, row, (int)(j->rows - row < ROWS ? j->rows - row : ROWS));
}

zc_status zc_k_SparseLinear(zc_kctx *k)
{
    job j = {.x = &k->in[ZC_IN_SparseLinear_x],
             .stored = &k->in[ZC_IN_SparseLinear_w],
             .places = &k->in[ZC_IN_SparseLinear_places],
             .bias = zc_input(k, ZC_IN_SparseLinear_bias),
             .y = k->out};
    char rows[128], stored[128];
    if (!zc_sparse_of(j.stored, &j.w) || j.x->dims[j.x->rank - 1] != j.w.k)
        return zc_kernel_fail(k, "operands do not fit each other (got %s and %s)",
                              zc_tensor_type_text(j.x, rows, sizeof rows),
                              zc_tensor_type_text(j.stored, stored, sizeof stored));
    j.rows = zc_tensor_numel(j.y) / j.w.n;
    zc_parallel(k, j.w.n, 1, columns, &j);
    return ZC_OK;
}
