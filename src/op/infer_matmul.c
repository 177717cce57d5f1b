/* Types and shapes of matrix products. */
#include "op/activation.h"
#include "op/einsum.h"
#include "op/infer_common.h"
#include "op/packed.h"
#include "op/scaled.h"
#include "op/sparse.h"

/* ---- element types ---- */

static bool is_number(zc_dtype t)
{
    return zc_dtype_is_float(t) || zc_dtype_is_int(t);
}

static zc_status need_number(zc_infer *f, int i)
{
    zc_dtype t = f->in[i].type.dtype;
    if (is_number(t)) return ZC_OK;
    return zc_infer_fail(f, "input %d must be numeric (got %s)", i, zc_dtype_name(t));
}

/* All inputs alike. */
zc_status zc_dt_matmul(zc_infer *f)
{
    zc_dtype t = f->in[0].type.dtype;
    ZC_TRY(need_number(f, 0));
    for (int i = 1; i < f->nin; i++) {
        if (zc_in_present(f, i) && f->in[i].type.dtype != t) {
            return zc_infer_fail(f, "inputs differ in element type (got %s and %s)",
                                 zc_dtype_name(t), zc_dtype_name(f->in[i].type.dtype));
        }
    }
    return zc_infer_set_dtype(f, t);
}

/* Input i, where it is there, of this type. */
static zc_status need_type(zc_infer *f, int i, zc_dtype need)
{
    if (!zc_in_present(f, i) || f->in[i].type.dtype == need) return ZC_OK;
    return zc_infer_fail(f, "element type of input %d (got %s, need %s)", i,
                         zc_dtype_name(f->in[i].type.dtype), zc_dtype_name(need));
}

/* ScaledConv's operands have the same places. */
zc_status zc_dt_scaled(zc_infer *f)
{
    const zc_dtype x = f->in[ZC_IN_ScaledLinear_x].type.dtype;
    const bool bytes = x == ZC_I8 || x == ZC_U8;
    const zc_dtype to = zc_scaled_to(f->op, f->attrs);
    if (to != ZC_F32 && to != ZC_F16 && to != ZC_BF16)
        return zc_infer_fail(f, "attribute 'to' (got %s, need f32, f16 or bf16)",
                             zc_dtype_name(to));
    if (!bytes) ZC_TRY(need_type(f, ZC_IN_ScaledLinear_x, ZC_F8E4M3FN));
    ZC_TRY(need_type(f, ZC_IN_ScaledLinear_w, bytes ? ZC_I8 : ZC_F8E4M3FN));
    for (int i = ZC_IN_ScaledLinear_scale; i < f->nin; i++) ZC_TRY(need_type(f, i, ZC_F32));
    return zc_infer_set_dtype(f, to);
}

zc_status zc_dt_packed_linear(zc_infer *f)
{
    const zc_dtype x = f->in[0].type.dtype, w = f->in[ZC_IN_PackedLinear_w].type.dtype;
    const zc_dtype scale = f->in[ZC_IN_PackedLinear_scale].type.dtype;
    ZC_TRY(zc_infer_need_float(f, 0));
    if (!zc_packed_piece(w))
        return zc_infer_fail(f, "element type of the codes (got %s, need i4, u4, i8, u8 or f4e2m1)",
                             zc_dtype_name(w));
    if (scale != ZC_F32 && scale != ZC_F8E8M0 && scale != ZC_F8E4M3FN && scale != x)
        return zc_infer_fail(
            f, "element type of the scales (got %s, need f32, f8e8m0, f8e4m3fn or %s)",
            zc_dtype_name(scale), zc_dtype_name(x));
    if (!zc_packed_zero(w) && zc_in_present(f, ZC_IN_PackedLinear_zero))
        return zc_infer_fail(f, "zero points of codes that have none (%s)", zc_dtype_name(w));
    ZC_TRY(need_type(f, ZC_IN_PackedLinear_zero, zc_packed_zero(w)));
    ZC_TRY(need_type(f, ZC_IN_PackedLinear_bias, x));
    ZC_TRY(need_type(f, ZC_IN_PackedLinear_gain, x));
    return zc_infer_set_dtype(f, x);
}

zc_status zc_dt_sparse_linear(zc_infer *f)
{
    const zc_dtype x = f->in[0].type.dtype;
    ZC_TRY(zc_infer_need_float(f, 0));
    ZC_TRY(need_type(f, ZC_IN_SparseLinear_w, x));
    ZC_TRY(need_type(f, ZC_IN_SparseLinear_places, ZC_U32));
    ZC_TRY(need_type(f, ZC_IN_SparseLinear_bias, x));
    return zc_infer_set_dtype(f, x);
}

zc_status zc_dt_linear_moments(zc_infer *f)
{
    for (int i = 0; i < f->nin; i++) {
        bool is_f32 = i == ZC_IN_LinearMoments_moments || i == ZC_IN_LinearMoments_sums ||
                      i == ZC_IN_LinearMoments_skip_moments;
        ZC_TRY(need_type(f, i, is_f32 ? ZC_F32 : f->in[0].type.dtype));
    }
    zc_infer_out_dtype(f, 0, f->in[0].type.dtype);
    zc_infer_out_dtype(f, 1, ZC_F32);
    return ZC_OK;
}

zc_status zc_dt_det(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    return zc_infer_set_dtype(f, f->in[0].type.dtype);
}

/* 8-bit integers or floats. */
static zc_status need_8bit_any(zc_infer *f, int i)
{
    zc_dtype t = f->in[i].type.dtype;
    if (zc_dtype_is_float(t) && zc_dtype_bits(t) == 8) return ZC_OK;
    return zc_infer_need_8bit(f, i);
}

zc_status zc_dt_matmul_integer(zc_infer *f)
{
    ZC_TRY(zc_infer_need_8bit(f, 0));
    ZC_TRY(zc_infer_need_8bit(f, 1));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    ZC_TRY(zc_infer_need_alike(f, 1, 3));
    return zc_infer_set_dtype(f, ZC_I32);
}

zc_status zc_dt_qlinear_matmul(zc_infer *f)
{
    ZC_TRY(need_8bit_any(f, 0));
    ZC_TRY(need_8bit_any(f, 3));
    ZC_TRY(need_8bit_any(f, 7));
    ZC_TRY(zc_infer_need_alike(f, 0, 2));
    ZC_TRY(zc_infer_need_alike(f, 3, 5));
    ZC_TRY(zc_infer_need_float(f, 1));
    ZC_TRY(zc_infer_need_float(f, 4));
    ZC_TRY(zc_infer_need_float(f, 6));
    return zc_infer_set_dtype(f, f->in[7].type.dtype);
}

/* ---- products ---- */

/* An operand as batch axes and a matrix. */
typedef struct matrix {
    zc_type batch; /* its dims only */
    zc_dim rows, cols;
} matrix;

static zc_status matrix_of(zc_infer *f, int i, bool left, bool trans, bool trans_batch, matrix *m)
{
    const zc_type *t = zc_in(f, i);
    m->batch.rank = 0;
    if (t->rank == 0) return zc_infer_fail(f, "input %d must not be a scalar", i);
    if (t->rank == 1) {
        m->rows = left ? zc_dim_const(1) : t->dims[0];
        m->cols = left ? t->dims[0] : zc_dim_const(1);
        return ZC_OK;
    }
    int row = trans_batch ? 0 : t->rank - 2;
    for (int d = 0; d < t->rank - 1; d++)
        if (d != row) m->batch.dims[m->batch.rank++] = t->dims[d];
    m->rows = t->dims[trans ? t->rank - 1 : row];
    m->cols = t->dims[trans ? row : t->rank - 1];
    return ZC_OK;
}

/* Output 0 of the product a b of inputs i and j, as numpy.matmul has it. */
static zc_status product(zc_infer *f, int i, int j, const matrix *a, const matrix *b)
{
    zc_type out = {.rank = 0};
    ZC_TRY(zc_infer_same(f, a->cols, b->rows, "inner dimensions of the product"));
    ZC_TRY(zc_infer_broadcast(f, &a->batch, &b->batch, &out));
    if (zc_in(f, i)->rank > 1) out.dims[out.rank++] = a->rows;
    if (zc_in(f, j)->rank > 1) out.dims[out.rank++] = b->cols;
    return zc_infer_set(f, 0, out.rank, out.dims);
}

static zc_status plain_product(zc_infer *f, int i, int j, bool trans_b)
{
    matrix a, b;
    ZC_TRY(matrix_of(f, i, true, false, false, &a));
    ZC_TRY(matrix_of(f, j, false, trans_b, false, &b));
    return product(f, i, j, &a, &b);
}

zc_status zc_infer_matmul(zc_infer *f)
{
    return plain_product(f, 0, 1, false);
}

zc_status zc_infer_fused_matmul(zc_infer *f)
{
    const zc_attrs_FusedMatMul *at = ZC_ATTRS(f, FusedMatMul);
    matrix a, b;
    ZC_TRY(matrix_of(f, 0, true, at->transA, at->transBatchA, &a));
    ZC_TRY(matrix_of(f, 1, false, at->transB, at->transBatchB, &b));
    return product(f, 0, 1, &a, &b);
}

/* c must broadcast to out without widening it. */
static zc_status need_broadcast(zc_infer *f, int i, int rank, const zc_dim *out)
{
    const zc_type *c = zc_in(f, i);
    if (c->rank > rank) {
        return zc_infer_fail(f, "input %d has too many axes (got %d, need at most %d)", i, c->rank,
                             rank);
    }
    for (int d = 0; d < c->rank; d++) {
        zc_dim have = c->dims[d];
        if (!zc_dim_is(have, 1))
            ZC_TRY(zc_infer_same(f, have, out[rank - c->rank + d], "bias and output dimensions"));
    }
    return ZC_OK;
}

static zc_status gemm(zc_infer *f, int64_t trans_a, int64_t trans_b)
{
    if ((trans_a | trans_b) & ~INT64_C(1)) {
        return zc_infer_fail(f, "transA and transB must be 0 or 1 (got %lld and %lld)",
                             (long long)trans_a, (long long)trans_b);
    }
    ZC_TRY(zc_infer_need_rank(f, 0, 2, 2));
    ZC_TRY(zc_infer_need_rank(f, 1, 2, 2));
    const zc_dim *a = zc_in(f, 0)->dims, *b = zc_in(f, 1)->dims;
    ZC_TRY(zc_infer_same(f, a[trans_a ? 0 : 1], b[trans_b ? 1 : 0],
                         "inner dimensions of the product"));
    zc_dim out[2] = {a[trans_a ? 1 : 0], b[trans_b ? 0 : 1]};
    if (zc_in_present(f, 2)) ZC_TRY(need_broadcast(f, 2, 2, out));
    return zc_infer_set(f, 0, 2, out);
}

zc_status zc_infer_gemm(zc_infer *f)
{
    const zc_attrs_Gemm *a = ZC_ATTRS(f, Gemm);
    return gemm(f, a->transA, a->transB);
}

/* Input i, where it is there, has a number for each of n columns. */
static zc_status check_columns(zc_infer *f, int i, zc_dim n)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    ZC_TRY(zc_infer_need_rank(f, i, 1, 1));
    return zc_infer_same(f, zc_in(f, i)->dims[0], n, "length of scale or bias and output width");
}

static zc_status infer_linear(zc_infer *f, bool trans_b)
{
    const zc_type *x = zc_in(f, 0), *w = zc_in(f, 1);
    if (x->rank < 1) return zc_infer_fail(f, "input 0 must not be a scalar");
    ZC_TRY(zc_infer_need_rank(f, 1, 2, 2));
    ZC_TRY(zc_infer_same(f, x->dims[x->rank - 1], w->dims[trans_b ? 1 : 0],
                         "inner dimensions of the product"));
    zc_dim out[ZC_MAX_RANK], n = w->dims[trans_b ? 0 : 1];
    for (int d = 0; d < x->rank - 1; d++) out[d] = x->dims[d];
    out[x->rank - 1] = n;
    ZC_TRY(check_columns(f, 2, n));
    return zc_infer_set(f, 0, x->rank, out);
}

zc_status zc_infer_linear(zc_infer *f)
{
    return infer_linear(f, ZC_ATTRS(f, Linear)->transB != 0);
}

zc_status zc_infer_scaled_linear(zc_infer *f)
{
    ZC_TRY(infer_linear(f, ZC_ATTRS(f, ScaledLinear)->transB != 0));
    const zc_type *y = &f->out[0].type;
    return check_columns(f, ZC_IN_ScaledLinear_bias, y->dims[y->rank - 1]);
}

/* Scales and zero points: [N/16, blocks, 16]. */
static zc_status check_blocks(zc_infer *f, int i, const zc_packed *w)
{
    if (!zc_in_present(f, i)) return ZC_OK;
    const zc_type *t = zc_in(f, i);
    ZC_TRY(zc_infer_need_rank(f, i, 3, 3));
    for (int d = 0; d < 3; d++)
        if (!zc_dim_is_const(t->dims[d]))
            return zc_infer_fail(f, "sizes of input %d are not certain", i);
    const int64_t blocks = t->dims[1].k, most = w->k / ZC_PACKED_LEAST;
    if (t->dims[0].k == w->groups && t->dims[2].k == ZC_PACKED_COLUMNS && blocks > 0 &&
        most % blocks == 0)
        return ZC_OK;
    return zc_infer_fail(f,
                         "input %d does not fit the codes (got [%lld, %lld, %lld], need [%lld, "
                         "blocks, %d] with blocks that divide %lld)",
                         i, (long long)t->dims[0].k, (long long)blocks, (long long)t->dims[2].k,
                         (long long)w->groups, ZC_PACKED_COLUMNS, (long long)most);
}

/* A constant shape; -1 where a size is not certain. */
static zc_tensor certain(const zc_type *t)
{
    zc_tensor out = {.dtype = t->dtype, .rank = t->rank};
    for (int d = 0; d < t->rank; d++) out.dims[d] = zc_dim_is_const(t->dims[d]) ? t->dims[d].k : -1;
    return out;
}

zc_status zc_infer_packed_linear(zc_infer *f)
{
    const zc_type *x = zc_in(f, 0), *t = zc_in(f, ZC_IN_PackedLinear_w);
    const zc_tensor codes = certain(t);
    zc_packed w;
    if (x->rank < 1) return zc_infer_fail(f, "input 0 must not be a scalar");
    if (!zc_packed_of(&codes, &w))
        return zc_infer_fail(f, "codes are not in pieces (need certain sizes [N/16, K/%d, %d, %d])",
                             zc_packed_piece(t->dtype), ZC_PACKED_COLUMNS,
                             zc_packed_piece(t->dtype));
    ZC_TRY(zc_infer_same(f, x->dims[x->rank - 1], zc_dim_const(w.k),
                         "inner dimensions of the product"));
    ZC_TRY(check_blocks(f, ZC_IN_PackedLinear_scale, &w));
    ZC_TRY(check_blocks(f, ZC_IN_PackedLinear_zero, &w));
    if (zc_in_present(f, ZC_IN_PackedLinear_zero))
        ZC_TRY(zc_infer_same(f, zc_in(f, ZC_IN_PackedLinear_zero)->dims[1],
                             zc_in(f, ZC_IN_PackedLinear_scale)->dims[1],
                             "blocks of scale and zero point"));
    const char *activation = ZC_ATTRS(f, PackedLinear)->activation;
    const bool gated = *activation != 0;
    ZC_TRY(zc_infer_activation(f, activation));
    if (gated && zc_in_present(f, ZC_IN_PackedLinear_bias))
        return zc_infer_fail(f, "a bias beside an activation");
    zc_dim out[ZC_MAX_RANK];
    for (int d = 0; d < x->rank; d++) out[d] = x->dims[d];
    out[x->rank - 1] = zc_dim_const(gated ? w.n / 2 : w.n);
    ZC_TRY(check_columns(f, ZC_IN_PackedLinear_bias, out[x->rank - 1]));
    ZC_TRY(check_columns(f, ZC_IN_PackedLinear_gain, x->dims[x->rank - 1]));
    return zc_infer_set(f, 0, x->rank, out);
}

zc_status zc_infer_sparse_linear(zc_infer *f)
{
    const zc_type *x = zc_in(f, 0), *places = zc_in(f, ZC_IN_SparseLinear_places);
    const zc_tensor stored = certain(zc_in(f, ZC_IN_SparseLinear_w));
    zc_sparse w;
    if (x->rank < 1) return zc_infer_fail(f, "input 0 must not be a scalar");
    if (!zc_sparse_of(&stored, &w))
        return zc_infer_fail(f,
                             "stored elements are not in tiles (need certain sizes [N/%d, K/%d, "
                             "%d, %d, %d])",
                             ZC_SPARSE_SIDE, ZC_SPARSE_SIDE, ZC_SPARSE_PIECES, ZC_SPARSE_SIDE,
                             ZC_SPARSE_PIECE);
    ZC_TRY(zc_infer_same(f, x->dims[x->rank - 1], zc_dim_const(w.k),
                         "inner dimensions of the product"));
    ZC_TRY(zc_infer_need_rank(f, ZC_IN_SparseLinear_places, 3, 3));
    const int64_t need[] = {w.groups, w.steps, ZC_SPARSE_WORDS};
    for (int d = 0; d < 3; d++)
        ZC_TRY(zc_infer_same(f, places->dims[d], zc_dim_const(need[d]),
                             "tiles of stored elements and of places"));
    zc_dim out[ZC_MAX_RANK];
    for (int d = 0; d < x->rank; d++) out[d] = x->dims[d];
    out[x->rank - 1] = zc_dim_const(w.n);
    ZC_TRY(check_columns(f, ZC_IN_SparseLinear_bias, out[x->rank - 1]));
    return zc_infer_set(f, 0, x->rank, out);
}

zc_status zc_infer_gated_linear(zc_infer *f)
{
    const zc_type *x = zc_in(f, 0), *w = zc_in(f, 1), *v = zc_in(f, ZC_IN_GatedLinear_v);
    ZC_TRY(zc_infer_activation(f, ZC_ATTRS(f, GatedLinear)->activation));
    ZC_TRY(zc_infer_need_float(f, 0));
    if (x->rank < 1) return zc_infer_fail(f, "input 0 must not be a scalar");
    ZC_TRY(zc_infer_need_rank(f, ZC_IN_GatedLinear_w, 2, 2));
    ZC_TRY(zc_infer_need_rank(f, ZC_IN_GatedLinear_v, 2, 2));
    ZC_TRY(zc_infer_same(f, x->dims[x->rank - 1], w->dims[1], "inner dimensions of the product"));
    for (int d = 0; d < 2; d++)
        ZC_TRY(zc_infer_same(f, v->dims[d], w->dims[d], "dimensions of the two matrices"));
    if (zc_in_present(f, ZC_IN_GatedLinear_bias) != zc_in_present(f, ZC_IN_GatedLinear_gate_bias))
        return zc_infer_fail(f, "bias and gate_bias belong together");
    ZC_TRY(check_columns(f, ZC_IN_GatedLinear_bias, w->dims[0]));
    ZC_TRY(check_columns(f, ZC_IN_GatedLinear_gate_bias, w->dims[0]));
    zc_dim out[ZC_MAX_RANK];
    for (int d = 0; d < x->rank; d++) out[d] = x->dims[d];
    out[x->rank - 1] = w->dims[0];
    return zc_infer_set(f, 0, x->rank, out);
}

zc_status zc_infer_linear_norm(zc_infer *f)
{
    ZC_TRY(zc_infer_need_float(f, 0));
    ZC_TRY(infer_linear(f, ZC_ATTRS(f, LinearNorm)->transB != 0));
    const zc_type *y = &f->out[0].type;
    if (!zc_in_present(f, 4)) return zc_infer_fail(f, "input 4, the scale, is left out");
    for (int i = 4; i < 6; i++) {
        if (!zc_in_present(f, i)) continue;
        ZC_TRY(zc_infer_need_rank(f, i, 1, 1));
        ZC_TRY(zc_infer_same(f, zc_in(f, i)->dims[0], y->dims[y->rank - 1],
                             "lengths of scale or bias and of a row"));
    }
    if (zc_in_present(f, 3)) {
        ZC_TRY(zc_infer_need_rank(f, 3, y->rank, y->rank));
        for (int d = 0; d < y->rank; d++)
            ZC_TRY(zc_infer_same(f, zc_in(f, 3)->dims[d], y->dims[d], "dimensions of the sum"));
    }
    return f->nout > 1 ? zc_infer_set(f, 1, y->rank, y->dims) : ZC_OK;
}

/* [..., ceil(columns / 64), 2] for rows of this many. */
static int moments_of(const zc_type *rows, zc_dim columns, zc_dim *out)
{
    for (int d = 0; d < rows->rank - 1; d++) out[d] = rows->dims[d];
    out[rows->rank - 1] = zc_dim_const((columns.k + ZC_MOMENTS_COLUMNS - 1) / ZC_MOMENTS_COLUMNS);
    out[rows->rank] = zc_dim_const(2);
    return rows->rank + 1;
}

static zc_status need_moments(zc_infer *f, int i, const zc_type *rows, zc_dim columns)
{
    zc_dim need[ZC_MAX_RANK];
    if (!zc_in_present(f, i)) return ZC_OK;
    int rank = moments_of(rows, columns, need);
    ZC_TRY(zc_infer_need_rank(f, i, rank, rank));
    for (int d = 0; d < rank; d++)
        ZC_TRY(zc_infer_same(f, zc_in(f, i)->dims[d], need[d], "dimensions of moments"));
    return ZC_OK;
}

zc_status zc_infer_linear_moments(zc_infer *f)
{
    const zc_attrs_LinearMoments *a = ZC_ATTRS(f, LinearMoments);
    ZC_TRY(zc_infer_need_float(f, 0));
    ZC_TRY(infer_linear(f, a->transB != 0));
    const zc_type *x = zc_in(f, 0), *y = &f->out[0].type;
    zc_dim k = x->dims[x->rank - 1], n = y->dims[y->rank - 1], out[ZC_MAX_RANK];
    if (!zc_dim_is_const(k) || !zc_dim_is_const(n) || x->rank == ZC_MAX_RANK)
        return zc_infer_fail(f, "rows must have a certain length");
    static const int rows[] = {ZC_IN_LinearMoments_bias, ZC_IN_LinearMoments_sums,
                               ZC_IN_LinearMoments_gamma, ZC_IN_LinearMoments_beta};
    for (size_t i = 0; i < ZC_COUNTOF(rows); i++) {
        if (!zc_in_present(f, rows[i])) continue;
        ZC_TRY(zc_infer_need_rank(f, rows[i], 1, 1));
        ZC_TRY(zc_infer_same(f, zc_in(f, rows[i])->dims[0], n, "lengths of an operand and a row"));
    }
    ZC_TRY(need_moments(f, ZC_IN_LinearMoments_moments, x, k));
    ZC_TRY(need_moments(f, ZC_IN_LinearMoments_skip_moments, y, n));
    if (zc_in_present(f, ZC_IN_LinearMoments_moments) !=
            zc_in_present(f, ZC_IN_LinearMoments_sums) &&
        !(a->rms && zc_in_present(f, ZC_IN_LinearMoments_moments)))
        return zc_infer_fail(f, "moments and sums belong together");
    if (zc_in_present(f, ZC_IN_LinearMoments_skip_moments) &&
        !(zc_in_present(f, ZC_IN_LinearMoments_skip) &&
          zc_in_present(f, ZC_IN_LinearMoments_gamma)))
        return zc_infer_fail(f, "moments of a sum that is not there, or without a scale");
    for (int d = 0; zc_in_present(f, ZC_IN_LinearMoments_skip) && d < y->rank; d++) {
        ZC_TRY(zc_infer_need_rank(f, ZC_IN_LinearMoments_skip, y->rank, y->rank));
        ZC_TRY(zc_infer_same(f, zc_in(f, ZC_IN_LinearMoments_skip)->dims[d], y->dims[d],
                             "dimensions of the sum"));
    }
    if (f->nout < 2) return ZC_OK;
    int rank = moments_of(y, n, out);
    return zc_infer_set(f, 1, rank, out);
}

/* ---- quantised products ---- */

/* A scale or zero point of input i: one element, one a row (left) or column, or of input i's rank
 * and broadcast to it with 1 along the axis that is summed. trans: the last two axes are exchanged.
 */
static zc_status check_quant(zc_infer *f, int param, int i, bool left, bool trans)
{
    if (!zc_in_present(f, param)) return ZC_OK;
    const zc_type *p = zc_in(f, param), *t = zc_in(f, i);
    if (zc_infer_vector_len(f, param) == 1) return ZC_OK;
    int summed = t->rank - (left || trans ? 1 : 2);
    zc_dim lines = t->rank < 2 ? zc_dim_const(1) : t->dims[2 * t->rank - 3 - summed];
    if (p->rank <= 1) {
        zc_dim have = p->rank ? p->dims[0] : zc_dim_const(1);
        return zc_infer_same(f, have, lines,
                             left ? "scale or zero point length and rows"
                                  : "scale or zero point length and columns");
    }
    if (p->rank != t->rank) {
        return zc_infer_fail(f, "input %d has a wrong rank (got %d, need 0, 1 or %d)", param,
                             p->rank, t->rank);
    }
    for (int d = 0; d < p->rank; d++) {
        if (zc_dim_is(p->dims[d], 1)) continue;
        ZC_TRY(zc_infer_same(f, p->dims[d], d == summed ? zc_dim_const(1) : t->dims[d],
                             "scale or zero point and operand dimensions"));
    }
    return ZC_OK;
}

static zc_status need_one(zc_infer *f, int i)
{
    const zc_type *t = zc_in(f, i);
    for (int d = 0; d < t->rank; d++)
        ZC_TRY(
            zc_infer_same(f, t->dims[d], zc_dim_const(1), "size of a per-tensor parameter and 1"));
    return ZC_OK;
}

zc_status zc_infer_matmul_integer(zc_infer *f)
{
    bool trans_b = ZC_ATTRS(f, MatMulInteger)->transB;
    ZC_TRY(plain_product(f, 0, 1, trans_b));
    ZC_TRY(check_quant(f, 2, 0, true, false));
    return check_quant(f, 3, 1, false, trans_b);
}

zc_status zc_infer_qlinear_matmul(zc_infer *f)
{
    bool trans_b = ZC_ATTRS(f, QLinearMatMul)->transB;
    ZC_TRY(plain_product(f, 0, 3, trans_b));
    ZC_TRY(check_quant(f, 1, 0, true, false));
    ZC_TRY(check_quant(f, 2, 0, true, false));
    ZC_TRY(check_quant(f, 4, 3, false, trans_b));
    ZC_TRY(check_quant(f, 5, 3, false, trans_b));
    ZC_TRY(need_one(f, 6));
    return need_one(f, 7);
}

/* ---- the rest ---- */

/* The size of each label; a repeated label within one operand is a diagonal and must not broadcast.
 */
static zc_status label_dims(zc_infer *f, const zc_einsum *e, zc_dim *size, bool *known)
{
    for (int i = 0; i < e->nin; i++) {
        bool mine[ZC_EINSUM_LABELS] = {false};
        zc_dim own[ZC_EINSUM_LABELS];
        for (int d = 0; d < e->in[i].n; d++) {
            int l = e->in[i].label[d];
            zc_dim dim = zc_in(f, i)->dims[d];
            if (mine[l]) ZC_TRY(zc_infer_same(f, own[l], dim, "axes of a repeated label"));
            mine[l] = true;
            own[l] = dim;
            if (!known[l] || zc_dim_is(size[l], 1)) {
                size[l] = dim;
            } else if (!zc_dim_is(dim, 1)) {
                ZC_TRY(zc_infer_same(f, size[l], dim, "axes of one label"));
                if (zc_dim_is_const(dim)) size[l] = dim;
            }
            known[l] = true;
        }
    }
    return ZC_OK;
}

zc_status zc_infer_einsum(zc_infer *f)
{
    const zc_attrs_Einsum *a = ZC_ATTRS(f, Einsum);
    int ranks[ZC_EINSUM_OPERANDS];
    for (int i = 0; i < f->nin && i < ZC_EINSUM_OPERANDS; i++) {
        if (!zc_in_present(f, i)) return zc_infer_fail(f, "Einsum needs input %d", i);
        ranks[i] = zc_in(f, i)->rank;
    }
    zc_einsum e;
    ZC_TRY(zc_einsum_parse(a->equation, f->nin, ranks, &e, f->subject, f->diag));
    zc_dim size[ZC_EINSUM_LABELS], out[ZC_MAX_RANK];
    bool known[ZC_EINSUM_LABELS] = {false};
    ZC_TRY(label_dims(f, &e, size, known));
    for (int d = 0; d < e.out.n; d++) out[d] = size[e.out.label[d]];
    return zc_infer_set(f, 0, e.out.n, out);
}

static zc_status need_square(zc_infer *f, const char *op)
{
    const zc_type *x = zc_in(f, 0);
    if (x->rank < 2) return zc_infer_fail(f, "%s needs a matrix (got rank %d)", op, x->rank);
    return zc_infer_same(f, x->dims[x->rank - 1], x->dims[x->rank - 2],
                         "rows and columns of a square matrix");
}

zc_status zc_infer_det(zc_infer *f)
{
    ZC_TRY(need_square(f, "Det"));
    return zc_infer_set(f, 0, zc_in(f, 0)->rank - 2, zc_in(f, 0)->dims);
}

zc_status zc_infer_inverse(zc_infer *f)
{
    ZC_TRY(need_square(f, "Inverse"));
    zc_infer_copy(f, 0, 0);
    return ZC_OK;
}
