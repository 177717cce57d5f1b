/* Reference kernels of float and integer matrix products, and the geometry they share. */
#include "cpu/matmul.h"

#include <string.h>

#include "op/matrix.h"

/* ---- geometry ---- */

/* Fills shapes and strides; y's batch axes are those before its matrix axes. */
static bool combine(const zc_matrix *a, const zc_matrix *b, const zc_tensor *y, int y_matrix_rank,
                    zc_mm *mm)
{
    *mm = (zc_mm){.m = a->rows,
                  .n = b->cols,
                  .k = a->cols,
                  .a_row = a->row,
                  .a_col = a->col,
                  .b_row = b->row,
                  .b_col = b->col,
                  .batch_rank = y->rank - y_matrix_rank,
                  .batch = 1,
                  .alpha = 1};
    if (mm->batch_rank < 0 || a->cols != b->rows) return false;
    int64_t left = zc_tensor_numel(y); /* 0: nothing to do, and the parts may overflow */
    for (int d = 0; d < mm->batch_rank; d++) {
        mm->batch_dims[d] = y->dims[d];
        mm->batch = left > 0 ? mm->batch * y->dims[d] : 0;
    }
    if (left == 0) mm->batch = 0;
    return zc_matrix_batch(a, mm->batch_rank, mm->batch_dims, mm->a_batch) &&
           zc_matrix_batch(b, mm->batch_rank, mm->batch_dims, mm->b_batch) &&
           left == mm->batch * mm->m * mm->n;
}

/* A rank 2 or smaller addend that broadcasts to the matrix. */
static bool set_addend(zc_mm *mm, const zc_tensor *c, double beta)
{
    zc_tensor y = {.rank = 2, .dims = {mm->m, mm->n}};
    int64_t s[ZC_MAX_RANK];
    if (c->rank > 2) return false;
    for (int d = 0; d < c->rank; d++)
        if (c->dims[d] != 1 && c->dims[d] != y.dims[2 - c->rank + d]) return false;
    zc_broadcast_strides(c, &y, s);
    mm->c = c;
    mm->beta = beta;
    mm->c_row = s[0];
    mm->c_col = s[1];
    return true;
}

/* Input i; NULL: left out. */
static const zc_tensor *given(const zc_kctx *k, int i)
{
    return k->nin > i && zc_present(&k->in[i]) ? &k->in[i] : NULL;
}

static bool gemm_of(const zc_kctx *k, bool trans_a, bool trans_b, double alpha, double beta,
                    zc_mm *mm)
{
    zc_matrix a = zc_matrix_of(&k->in[0], true, trans_a, false);
    zc_matrix b = zc_matrix_of(&k->in[1], false, trans_b, false);
    bool ok = combine(&a, &b, &k->out[0], 2, mm);
    mm->alpha = alpha;
    return ok && (!given(k, 2) || set_addend(mm, given(k, 2), beta));
}

/* x's leading axes are all rows: one matrix. */
static bool linear_of(const zc_kctx *k, bool trans_b, double alpha, const zc_tensor *bias,
                      zc_mm *mm)
{
    const zc_tensor *x = &k->in[0], *y = &k->out[0];
    int64_t width = y->dims[y->rank - 1];
    for (int d = 0; d < x->rank - 1; d++)
        if (x->dims[d] != y->dims[d]) return false;
    zc_matrix a = zc_matrix_flat(x);
    zc_matrix b = zc_matrix_of(&k->in[1], false, trans_b, false);
    zc_tensor flat = {.rank = 2, .dims = {a.rows, width}};
    bool ok = combine(&a, &b, &flat, 2, mm);
    mm->alpha = alpha;
    return ok && (!bias || set_addend(mm, bias, 1.0));
}

static bool scaled_linear_of(const zc_kctx *k, zc_mm *mm)
{
    bool trans_b = ZC_ATTRS(k, ScaledLinear)->transB;
    if (!linear_of(k, trans_b, 1, given(k, ZC_IN_ScaledLinear_bias), mm)) return false;
    mm->scale = &k->in[ZC_IN_ScaledLinear_scale];
    return mm->scale->rank == 1 && mm->scale->dims[0] == mm->n;
}

static bool product_of(const zc_kctx *k, int i, int j, zc_mm *mm)
{
    bool ta = false, tb = false, batch_a = false, batch_b = false;
    double alpha = 1;
    if (k->op == ZC_OP_FusedMatMul) {
        const zc_attrs_FusedMatMul *at = ZC_ATTRS(k, FusedMatMul);
        ta = at->transA;
        tb = at->transB;
        batch_a = at->transBatchA;
        batch_b = at->transBatchB;
        alpha = at->alpha;
    } else if (k->op == ZC_OP_MatMulInteger) {
        tb = ZC_ATTRS(k, MatMulInteger)->transB;
    } else if (k->op == ZC_OP_QLinearMatMul) {
        tb = ZC_ATTRS(k, QLinearMatMul)->transB;
    }
    zc_matrix a = zc_matrix_of(&k->in[i], true, ta, batch_a);
    zc_matrix b = zc_matrix_of(&k->in[j], false, tb, batch_b);
    int matrix_rank = (k->in[i].rank > 1) + (k->in[j].rank > 1);
    bool ok = combine(&a, &b, &k->out[0], matrix_rank, mm);
    mm->alpha = alpha;
    return ok;
}

static bool mm_of(const zc_kctx *k, int i, int j, zc_mm *mm)
{
    if (k->op == ZC_OP_Linear) {
        const zc_attrs_Linear *at = ZC_ATTRS(k, Linear);
        return linear_of(k, at->transB, at->alpha, given(k, ZC_IN_Linear_bias), mm);
    }
    if (k->op == ZC_OP_ScaledLinear) return scaled_linear_of(k, mm);
    if (k->op == ZC_OP_Gemm) {
        const zc_attrs_Gemm *at = ZC_ATTRS(k, Gemm);
        return gemm_of(k, at->transA, at->transB, at->alpha, at->beta, mm);
    }
    return product_of(k, i, j, mm);
}

zc_status zc_mm_of(zc_kctx *k, int i, int j, zc_mm *mm)
{
    char a[128], b[128];
    if (mm_of(k, i, j, mm)) return ZC_OK;
    return zc_kernel_fail(k, "operands do not fit each other (got %s and %s)",
                          zc_tensor_type_text(&k->in[i], a, sizeof a),
                          zc_tensor_type_text(&k->in[j], b, sizeof b));
}

void zc_mm_offsets(const zc_mm *mm, int64_t b, int64_t *a_off, int64_t *b_off)
{
    *a_off = *b_off = 0;
    for (int d = mm->batch_rank - 1; d >= 0; d--) {
        int64_t i = b % mm->batch_dims[d];
        b /= mm->batch_dims[d];
        *a_off += i * mm->a_batch[d];
        *b_off += i * mm->b_batch[d];
    }
}

/* ---- reference ---- */

typedef struct job {
    const zc_mm *mm;
    const zc_tensor *a, *b;
    zc_tensor *y;
} job;

static int64_t dot_int(const job *j, int64_t a, int64_t b)
{
    uint64_t sum = 0; /* wraps as two's complement does */
    for (int64_t p = 0; p < j->mm->k; p++)
        sum += (uint64_t)zc_geti(j->a, a + p * j->mm->a_col) *
               (uint64_t)zc_geti(j->b, b + p * j->mm->b_row);
    return (int64_t)sum;
}

static void put_scaled(const job *j, double dot, int64_t row, int64_t col, int64_t at)
{
    const zc_mm *mm = j->mm;
    double c =
        mm->c && mm->beta != 0 ? mm->beta * zc_get(mm->c, row * mm->c_row + col * mm->c_col) : 0;
    double scale = mm->scale ? zc_get(mm->scale, col) : mm->alpha;
    zc_put(j->y, at, scale * dot + c);
}

static void put_exact(const job *j, int64_t dot, int64_t row, int64_t col, int64_t at)
{
    const zc_mm *mm = j->mm;
    if (mm->alpha != 1 || (mm->c && mm->beta != 1)) {
        put_scaled(j, (double)dot, row, col, at);
        return;
    }
    uint64_t c = mm->c ? (uint64_t)zc_geti(mm->c, row * mm->c_row + col * mm->c_col) : 0;
    zc_puti(j->y, at, (int64_t)((uint64_t)dot + c));
}

/* Part of one batch item's result, with its operands as doubles, some of the summed axis at once.
 */
enum { TILE = 32, TILE_DEPTH = 64 };
typedef struct tile {
    double a[TILE][TILE_DEPTH], b[TILE_DEPTH][TILE], sum[TILE][TILE];
} tile;

/* Each sum goes on in the order of the summed axis. */
static void add_products(const job *j, tile *t, int64_t a, int64_t b, int nr, int nc, int depth)
{
    const zc_mm *mm = j->mm;
    for (int i = 0; i < nr; i++)
        for (int p = 0; p < depth; p++)
            t->a[i][p] = zc_get(j->a, a + i * mm->a_row + p * mm->a_col);
    for (int p = 0; p < depth; p++)
        for (int c = 0; c < nc; c++) t->b[p][c] = zc_get(j->b, b + p * mm->b_row + c * mm->b_col);
    for (int i = 0; i < nr; i++)
        for (int p = 0; p < depth; p++)
            for (int c = 0; c < nc; c++) t->sum[i][c] += t->a[i][p] * t->b[p][c];
}

/* Rows r to r + nr of all batch items together, which are of one. */
static void float_rows(const job *j, int64_t r, int nr)
{
    const zc_mm *mm = j->mm;
    int64_t a, b, row = r % mm->m;
    tile t;
    zc_mm_offsets(mm, r / mm->m, &a, &b);
    a += row * mm->a_row;
    for (int64_t col = 0; col < mm->n; col += TILE) {
        int nc = (int)(mm->n - col < TILE ? mm->n - col : TILE);
        memset(t.sum, 0, sizeof t.sum);
        for (int64_t p = 0; p < mm->k; p += TILE_DEPTH)
            add_products(j, &t, a + p * mm->a_col, b + p * mm->b_row + col * mm->b_col, nr, nc,
                         (int)(mm->k - p < TILE_DEPTH ? mm->k - p : TILE_DEPTH));
        for (int i = 0; i < nr; i++)
            for (int c = 0; c < nc; c++)
                put_scaled(j, t.sum[i][c], row + i, col + c, (r + i) * mm->n + col + c);
    }
}

static void exact_row(const job *j, int64_t r)
{
    const zc_mm *mm = j->mm;
    int64_t a, b, row = r % mm->m;
    zc_mm_offsets(mm, r / mm->m, &a, &b);
    for (int64_t n = 0; n < mm->n; n++)
        put_exact(j, dot_int(j, a + row * mm->a_row, b + n * mm->b_col), row, n, r * mm->n + n);
}

/* Rows [begin, end) of all batch items together. */
static void rows(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    bool exact = !zc_dtype_is_float(j->y->dtype);
    for (int64_t r = begin; r < end;) {
        int64_t n = j->mm->m - r % j->mm->m;
        if (n > end - r) n = end - r;
        if (n > TILE) n = TILE;
        if (exact) {
            exact_row(j, r++);
        } else {
            float_rows(j, r, (int)n);
            r += n;
        }
    }
}

static zc_status reference(zc_kctx *k)
{
    zc_mm mm;
    ZC_TRY(zc_mm_of(k, 0, 1, &mm));
    job j = {.mm = &mm, .a = &k->in[0], .b = &k->in[1], .y = &k->out[0]};
    zc_parallel(k, mm.batch * mm.m, 1, rows, &j);
    return ZC_OK;
}

zc_status zc_k_MatMul(zc_kctx *k)
{
    return reference(k);
}
zc_status zc_k_FusedMatMul(zc_kctx *k)
{
    return reference(k);
}
zc_status zc_k_Gemm(zc_kctx *k)
{
    return reference(k);
}
zc_status zc_k_Linear(zc_kctx *k)
{
    return reference(k);
}
zc_status zc_k_ScaledLinear(zc_kctx *k)
{
    return reference(k);
}
