/* Operators of com.microsoft whose weights have few bits and a scale for each block of them. */
#include <stdlib.h>

#include "import/steps.h"

/* Input i's elements, which must be a constant of that many; *out is NULL in a model without
 * weights. */
static zc_status constant_of(zc_imp *im, zc_inode *n, int i, zc_dtype dtype, int64_t count,
                             const void **out)
{
    const zc_value *v = zc_val(im->g, n->in[i]);
    if (v->kind != ZC_VALUE_CONST)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "input %d must be a constant", i);
    if (v->data->dtype != dtype || zc_tensor_numel(v->data) != count)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "input %d has a wrong type or size (got %s and %lld, need %s and %lld)",
                           i, zc_dtype_name(v->data->dtype), (long long)zc_tensor_numel(v->data),
                           zc_dtype_name(dtype), (long long)count);
    *out = v->data->data;
    return ZC_OK;
}

/* A power of two from 16. */
static zc_status take_block(zc_imp *im, zc_inode *n, int64_t def, int64_t *out)
{
    *out = zc_imp_take_int(im, n, "block_size", def);
    if (im->status != ZC_OK || (*out >= 16 && *out <= INT32_MAX && (*out & (*out - 1)) == 0))
        return im->status;
    return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                       "block_size is not supported (got %lld, need a power of two from 16)",
                       (long long)*out);
}

/* ---- MatMulNBits: weights of 2, 4 or 8 bits ---- */

typedef struct nbits {
    int64_t k, n, bits, block, blocks;
    int64_t bytes; /* of the weights */
    zc_dtype type; /* of the weights: unsigned with zero points, else signed */
} nbits;

static zc_status read_nbits(zc_imp *im, zc_inode *n, nbits *out)
{
    out->k = zc_imp_take_int(im, n, "K", 0);
    out->n = zc_imp_take_int(im, n, "N", 0);
    out->bits = zc_imp_take_int(im, n, "bits", 4);
    out->block = zc_imp_take_int(im, n, "block_size", 0);
    zc_imp_take_int(im, n, "accuracy_level", 0);
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    bool fits = out->k > 0 && out->n > 0 && out->block >= 8 && out->block % 8 == 0 &&
                out->k <= INT32_MAX && out->n <= INT32_MAX && out->block <= INT32_MAX;
    if (!fits)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "K, N or block_size out of range (got %lld, %lld, %lld)",
                           (long long)out->k, (long long)out->n, (long long)out->block);
    if (out->bits != 2 && out->bits != 4 && out->bits != 8)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "weights of %lld bits are not supported (need 2, 4 or 8)",
                           (long long)out->bits);
    out->blocks = (out->k + out->block - 1) / out->block;
    if (!zc_mul_i64(out->n, out->blocks * out->block, &out->bytes))
        return zc_imp_fail(im, n, ZC_ERR_LIMIT, "the weights' size overflows");
    out->bytes = out->bytes / 8 * out->bits;
    bool zeros = zc_imp_in(n, 3) != 0;
    if (out->bits == 2)
        out->type = zeros ? ZC_U2 : ZC_I2;
    else if (out->bits == 4)
        out->type = zeros ? ZC_U4 : ZC_I4;
    else
        out->type = zeros ? ZC_U8 : ZC_I8;
    return ZC_OK;
}

static zc_status constant_bytes(zc_imp *im, zc_inode *n, int i, int64_t count, const uint8_t **out)
{
    const void *data = NULL;
    ZC_TRY(constant_of(im, n, i, ZC_U8, count, &data));
    *out = data;
    return ZC_OK;
}

/* The weights as [N, blocks * block]. Without zero points half of the range is taken off, which is
 * to flip each element's highest bit. */
static zc_vid weights(zc_imp *im, zc_inode *n, const nbits *q)
{
    const uint8_t *bytes = NULL;
    const int64_t count = q->bytes;
    if (constant_bytes(im, n, 1, count, &bytes) != ZC_OK) return 0;
    zc_tensor t = {.dtype = q->type, .rank = 2, .dims = {q->n, q->blocks * q->block}};
    if (!bytes) return zc_imp_const(im, NULL, &t);
    uint8_t *copy = zc_calloc((size_t)count, 1);
    if (!copy) return zc_imp_nomem(im, "weights"), 0;
    const uint8_t flip = zc_imp_in(n, 3) ? 0 : q->bits == 2 ? 0xAA : q->bits == 4 ? 0x88 : 0x80;
    for (int64_t i = 0; i < count; i++) copy[i] = bytes[i] ^ flip;
    t.data = copy;
    zc_vid v = zc_imp_const(im, NULL, &t);
    free(copy);
    return v;
}

/* The zero points as [N, blocks]; each row of theirs is filled up to whole bytes. */
static zc_vid zero_points(zc_imp *im, zc_inode *n, const nbits *q)
{
    const uint8_t *bytes = NULL;
    const int64_t row = (q->blocks * q->bits + 7) / 8;
    if (constant_bytes(im, n, 3, q->n * row, &bytes) != ZC_OK) return 0;
    zc_tensor t = {.dtype = q->type, .rank = 2, .dims = {q->n, q->blocks}};
    size_t size;
    if (!bytes) return zc_imp_const(im, NULL, &t);
    void *copy = zc_tensor_bytes(&t, &size) ? zc_calloc(size, 1) : NULL;
    if (!copy) return zc_imp_nomem(im, "zero points"), 0;
    for (int64_t r = 0; r < q->n; r++)
        for (int64_t b = 0; b < q->blocks; b++)
            zc_store_i64(q->type, copy, r * q->blocks + b,
                         zc_load_i64(q->type, bytes + r * row, b));
    t.data = copy;
    zc_vid v = zc_imp_const(im, NULL, &t);
    free(copy);
    return v;
}

/* The real weights [N, K]. */
static zc_vid real_weights(zc_imp *im, zc_inode *n, const nbits *q)
{
    const int64_t shape[] = {q->n, q->blocks}, zero = 0;
    zc_vid w = weights(im, n, q);
    zc_vid zeros = zc_imp_in(n, 3) && im->status == ZC_OK ? zero_points(im, n, q) : 0;
    zc_vid scales = zc_imp_reshape(im, n, n->in[2], shape, 2);
    zc_nid id =
        zc_imp_node(im, n, ZC_OP_DequantizeLinear, zeros ? 3 : 2, (zc_vid[]){w, scales, zeros}, 1);
    ZC_IMP_SET(im, DequantizeLinear, id, axis, 1);
    ZC_IMP_SET(im, DequantizeLinear, id, block_size, q->block);
    zc_vid real = zc_imp_done(im, n, id);
    if (q->blocks * q->block == q->k) return real;
    return zc_imp_slice(im, n, real, zc_imp_ints(im, &zero, 1, 1), zc_imp_ints(im, &q->k, 1, 1), 1);
}

/* A x B^T for B of few bits in blocks along K with a scale each. */
zc_status zc_step_ms_matmul_nbits(zc_imp *im, zc_inode *n)
{
    nbits q = {0};
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 6));
    ZC_TRY(read_nbits(im, n, &q));
    if (zc_imp_in(n, 4))
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED, "reordered groups (g_idx) are not supported");
    zc_vid bias = zc_imp_in(n, 5);
    const zc_vid in[] = {n->in[0], real_weights(im, n, &q), bias};
    zc_nid id = zc_imp_node(im, n, ZC_OP_Linear, bias ? 3 : 2, in, 1);
    ZC_IMP_SET(im, Linear, id, transB, 1);
    return zc_imp_finish(im, n, id);
}

/* ---- MatMulBnb4: the types of 4 bits of bitsandbytes ---- */

/* What the codes stand for; each block has a factor. */
static const float four_bits[2][16] = {
    {0.0f, 5.208333333e-03f, 0.66666667f, 1.0f, 0.33333333f, 0.5f, 0.16666667f, 0.25f, -0.0f,
     -5.208333333e-03f, -0.66666667f, -1.0f, -0.33333333f, -0.5f, -0.16666667f, -0.25f},
    {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f,
     -0.28444138169288635f, -0.18477343022823334f, -0.09105003625154495f, 0.0f,
     0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f,
     0.44070982933044434f, 0.5626170039176941f, 0.7229568362236023f, 1.0f},
};

typedef struct bnb4 {
    int64_t k, n, block, type;
} bnb4;

static zc_status read_bnb4(zc_imp *im, zc_inode *n, bnb4 *out)
{
    out->k = zc_imp_take_int(im, n, "K", 0);
    out->n = zc_imp_take_int(im, n, "N", 0);
    out->type = zc_imp_take_int(im, n, "quant_type", -1);
    zc_imp_take_int(im, n, "training_mode", 0); /* says what the weights are kept for */
    ZC_TRY(take_block(im, n, 0, &out->block));
    if (out->k < 1 || out->n < 1 || out->k > INT32_MAX || out->n > INT32_MAX)
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "K or N out of range (got %lld, %lld)",
                           (long long)out->k, (long long)out->n);
    if (out->type != 0 && out->type != 1)
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "quant_type is unknown (got %lld, need 0 (FP4) or 1 (NF4))",
                           (long long)out->type);
    return ZC_OK;
}

/* The real weights [N, K]; of two codes in a byte the higher is the first. */
static zc_vid real_bnb4(zc_imp *im, zc_inode *n, const bnb4 *q)
{
    const int64_t count = q->n * q->k;
    const zc_dtype dtype = zc_imp_dtype(im, n->in[0]);
    const void *codes = NULL, *factors = NULL;
    zc_tensor t = {.dtype = dtype, .rank = 2, .dims = {q->n, q->k}};
    size_t size;
    if (constant_of(im, n, 1, ZC_U8, (count + 1) / 2, &codes) != ZC_OK ||
        constant_of(im, n, 2, dtype, (count + q->block - 1) / q->block, &factors) != ZC_OK)
        return 0;
    if (!codes || !factors) return zc_imp_const(im, NULL, &t);
    t.data = zc_tensor_bytes(&t, &size) ? zc_calloc(size, 1) : NULL;
    if (!t.data) return zc_imp_nomem(im, "weights"), 0;
    for (int64_t i = 0; i < count; i++) {
        const uint8_t pair = ((const uint8_t *)codes)[i / 2];
        const float code = four_bits[q->type][i % 2 ? pair & 15 : pair >> 4];
        zc_store_f64(dtype, t.data, i, (double)code * zc_load_f64(dtype, factors, i / q->block));
    }
    zc_vid v = zc_imp_const(im, NULL, &t);
    free(t.data);
    return v;
}

zc_status zc_step_ms_matmul_bnb4(zc_imp *im, zc_inode *n)
{
    bnb4 q = {0};
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 3));
    ZC_TRY(read_bnb4(im, n, &q));
    if (!zc_imp_take_int(im, n, "transB", 1) && im->status == ZC_OK)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "transB = 0, a product of training, is not supported");
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    zc_nid id = zc_imp_node(im, n, ZC_OP_Linear, 2, (zc_vid[]){n->in[0], real_bnb4(im, n, &q)}, 1);
    ZC_IMP_SET(im, Linear, id, transB, 1);
    return zc_imp_finish(im, n, id);
}

/* ---- GatherBlockQuantized ---- */

typedef struct table {
    zc_vid values, scales, zeros; /* zeros: 0 where there are none */
    int64_t bits, block;
    int rank, axis, along; /* gathered on `axis`, quantised in blocks along `along` */
} table;

static zc_status take_axis(zc_imp *im, zc_inode *n, const char *name, int64_t def, int rank,
                           int *out)
{
    const int64_t axis = zc_imp_take_int(im, n, name, def);
    if (im->status == ZC_OK && (axis < -rank || axis >= rank))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "%s out of range (got %lld, need [%d, %d])", name,
                           (long long)axis, -rank, rank - 1);
    *out = (int)(axis < 0 ? axis + rank : axis);
    return im->status;
}

static zc_status read_table(zc_imp *im, zc_inode *n, table *t)
{
    const zc_dtype dtype = zc_imp_dtype(im, n->in[0]);
    *t = (table){.values = n->in[0], .scales = n->in[2], .zeros = zc_imp_in(n, 3)};
    t->rank = zc_imp_need_rank(im, n, t->values, "its data");
    t->bits = zc_imp_take_int(im, n, "bits", 4);
    ZC_TRY(take_block(im, n, 128, &t->block));
    ZC_TRY(take_axis(im, n, "gather_axis", 0, t->rank, &t->axis));
    ZC_TRY(take_axis(im, n, "quantize_axis", 1, t->rank, &t->along));
    ZC_TRY(zc_imp_no_more_attrs(im, n));
    if (dtype != ZC_U8 && dtype != ZC_U4 && dtype != ZC_I4)
        return zc_imp_fail(im, n, ZC_ERR_UNSUPPORTED,
                           "data of %s are not supported (need u8, u4 or i4)",
                           zc_dtype_name(dtype));
    if (t->bits != 4 && (dtype != ZC_U8 || (t->bits != 2 && t->bits != 8)))
        return zc_imp_fail(im, n, ZC_ERR_MODEL, "%lld bits in data of %s", (long long)t->bits,
                           zc_dtype_name(dtype));
    if (dtype == ZC_U8 && (t->axis != 0 || t->along != t->rank - 1 || t->rank < 2))
        return zc_imp_fail(im, n, ZC_ERR_MODEL,
                           "data of u8 are gathered on the first axis and quantised along the last "
                           "(got %d and %d of %d)",
                           t->axis, t->along, t->rank);
    return ZC_OK;
}

static zc_vid gather(zc_imp *im, zc_inode *n, zc_vid v, int axis)
{
    if (!v) return 0;
    zc_nid id = zc_imp_node(im, n, ZC_OP_Gather, 2, (zc_vid[]){v, n->in[1]}, 1);
    ZC_IMP_SET(im, Gather, id, axis, axis);
    return zc_imp_done(im, n, id);
}

/* Elements of few bits in bytes, the lowest first, as bytes: the last axis is 8 / bits times as
 * long. */
static zc_vid unpack(zc_imp *im, zc_inode *n, zc_vid v, int64_t bits)
{
    const int64_t last = -1;
    int64_t shape[ZC_MAX_RANK] = {0}; /* 0: as it is */
    uint8_t shifts[8];
    const int rank = zc_imp_rank(im, v), count = (int)(8 / bits);
    if (!v || count == 1 || im->status != ZC_OK) return v;
    for (int i = 0; i < count; i++) shifts[i] = (uint8_t)(i * bits);
    shape[rank - 1] = -1;
    zc_tensor t = {.dtype = ZC_U8, .rank = 1, .dims = {count}, .data = shifts};
    v = zc_imp_op2(im, n, ZC_OP_Unsqueeze, v, zc_imp_ints(im, &last, 1, 1));
    v = zc_imp_op2(im, n, ZC_OP_ShiftRight, v, zc_imp_const(im, NULL, &t));
    v = zc_imp_op2(im, n, ZC_OP_BitwiseAnd, v, zc_imp_scalar(im, ZC_U8, (1 << bits) - 1));
    return zc_imp_reshape(im, n, v, shape, rank);
}

/* Zero points that fill up their last byte, as many as there are scales. */
static zc_vid as_many(zc_imp *im, zc_inode *n, zc_vid zeros, zc_vid scales)
{
    const int64_t from = 0;
    if (!zeros || im->status != ZC_OK) return zeros;
    return zc_imp_slice(im, n, zeros, zc_imp_ints(im, &from, 1, 1),
                        zc_imp_sizes(im, n, scales, -1, INT64_MAX), -1);
}

/* Elements of `bits` bits less half of their range. */
static zc_vid centred(zc_imp *im, zc_inode *n, zc_vid v, int64_t bits)
{
    v = zc_imp_cast(im, n, v, ZC_I8);
    return zc_imp_op2(im, n, bits == 8 ? ZC_OP_BitwiseXor : ZC_OP_Sub, v,
                      zc_imp_scalar(im, ZC_I8, bits == 8 ? -128 : 1 << (bits - 1)));
}

/* Rows of bytes, of which each may hold several elements. */
static void gather_bytes(zc_imp *im, zc_inode *n, table *t)
{
    t->values = unpack(im, n, gather(im, n, t->values, 0), t->bits);
    t->scales = gather(im, n, t->scales, 0);
    t->zeros = as_many(im, n, unpack(im, n, gather(im, n, t->zeros, 0), t->bits), t->scales);
    if (!t->zeros) t->values = centred(im, n, t->values, t->bits);
    t->along += zc_imp_rank(im, n->in[1]) - 1;
}

/* Gathering takes whole bytes. */
static void widen(zc_imp *im, zc_inode *n, table *t)
{
    const zc_dtype to = zc_imp_dtype(im, t->values) == ZC_I4 ? ZC_I8 : ZC_U8;
    t->values = zc_imp_cast(im, n, t->values, to);
    if (t->zeros) t->zeros = zc_imp_cast(im, n, t->zeros, to);
}

static void gather_table(zc_imp *im, zc_inode *n, table *t)
{
    t->values = gather(im, n, t->values, t->axis);
    t->scales = gather(im, n, t->scales, t->axis);
    t->zeros = gather(im, n, t->zeros, t->axis);
    if (t->along > t->axis) t->along += zc_imp_rank(im, n->in[1]) - 1;
}

static zc_nid real_table(zc_imp *im, zc_inode *n, const table *t)
{
    zc_nid id = zc_imp_node(im, n, ZC_OP_DequantizeLinear, t->zeros ? 3 : 2,
                            (zc_vid[]){t->values, t->scales, t->zeros}, 1);
    ZC_IMP_SET(im, DequantizeLinear, id, axis, t->along);
    ZC_IMP_SET(im, DequantizeLinear, id, block_size, t->block);
    return id;
}

/* What is gathered becomes real, unless blocks are gathered from within. */
zc_status zc_step_ms_gather_block_quantized(zc_imp *im, zc_inode *n)
{
    table t;
    ZC_TRY(zc_imp_need_inputs(im, n, 3, 4));
    ZC_TRY(read_table(im, n, &t));
    zc_imp_need_rank(im, n, n->in[1], "its indices");
    ZC_TRY(im->status);
    if (zc_imp_dtype(im, t.values) == ZC_U8) {
        gather_bytes(im, n, &t);
        return zc_imp_finish(im, n, real_table(im, n, &t));
    }
    widen(im, n, &t);
    if (t.axis != t.along) {
        gather_table(im, n, &t);
        return zc_imp_finish(im, n, real_table(im, n, &t));
    }
    zc_vid real = zc_imp_done(im, n, real_table(im, n, &t));
    zc_nid id = zc_imp_node(im, n, ZC_OP_Gather, 2, (zc_vid[]){real, n->in[1]}, 1);
    ZC_IMP_SET(im, Gather, id, axis, t.axis);
    return zc_imp_finish(im, n, id);
}
