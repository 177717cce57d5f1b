/* Reductions of every element type: floats in double, integers exactly (wrapping). */
#include "cpu/reduce.h"

#include <math.h>
#include <string.h>

/* ---- geometry ---- */

/* Which axes are reduced. */
static zc_status reduced_axes(zc_kctx *k, bool mask[ZC_MAX_RANK])
{
    const zc_tensor *in = &k->in[0], *axes = k->nin > 1 && zc_present(&k->in[1]) ? &k->in[1] : NULL;
    int64_t n = axes ? zc_tensor_numel(axes) : 0;
    bool all = n == 0 && !zc_reduce_attrs_of(k->op, k->attrs).noop_with_empty_axes;
    for (int i = 0; i < ZC_MAX_RANK; i++) mask[i] = all;
    for (int64_t i = 0; i < n; i++) {
        int64_t axis = zc_geti(axes, i);
        if (axis < -in->rank || axis >= in->rank) {
            return zc_kernel_fail(k, "axis out of range (got %lld, need [%d, %d])", (long long)axis,
                                  -in->rank, in->rank - 1);
        }
        mask[zc_axis(axis, in->rank)] = true;
    }
    return ZC_OK;
}

/* Adds an axis outside the groups there are, to the outermost one when `join`. */
static void add_group(int *n, int64_t *dims, int64_t *strides, bool join, int64_t dim,
                      int64_t stride)
{
    if (join) {
        dims[*n - 1] *= dim;
        return;
    }
    dims[*n] = dim;
    strides[*n] = stride;
    (*n)++;
}

static void reverse(int n, int64_t *v)
{
    for (int i = 0; i < n / 2; i++) {
        int64_t swap = v[i];
        v[i] = v[n - 1 - i];
        v[n - 1 - i] = swap;
    }
}

zc_status zc_reduce_shape_of(zc_kctx *k, zc_reduce_shape *s)
{
    const zc_tensor *in = &k->in[0];
    bool mask[ZC_MAX_RANK], first = true, before = false;
    int64_t stride = 1;
    ZC_TRY(reduced_axes(k, mask));
    *s = (zc_reduce_shape){.outputs = zc_tensor_numel(&k->out[0])};
    if (zc_tensor_numel(in) == 0) return ZC_OK; /* each output, if any, is made of nothing */
    s->outputs = s->count = 1;
    for (int i = in->rank - 1; i >= 0; i--) {
        int64_t dim = in->dims[i];
        *(mask[i] ? &s->count : &s->outputs) *= dim;
        if (dim == 1) continue;
        bool join = !first && before == mask[i];
        if (first) s->inner_reduced = mask[i];
        if (mask[i])
            add_group(&s->reduced, s->reduced_dims, s->reduced_strides, join, dim, stride);
        else
            add_group(&s->kept, s->kept_dims, s->kept_strides, join, dim, stride);
        first = false;
        before = mask[i];
        stride *= dim;
    }
    reverse(s->kept, s->kept_dims);
    reverse(s->kept, s->kept_strides);
    reverse(s->reduced, s->reduced_dims);
    reverse(s->reduced, s->reduced_strides);
    if (zc_tensor_numel(&k->out[0]) == s->outputs) return ZC_OK;
    return zc_kernel_fail(k, "wrong number of results (got room for %lld, need %lld)",
                          (long long)zc_tensor_numel(&k->out[0]), (long long)s->outputs);
}

/* ---- floats ---- */

double zc_reduce_finish(zc_op op, double r, double shift, int64_t count)
{
    switch (op) {
    case ZC_OP_ReduceMean:
        return r / (double)count;
    case ZC_OP_ReduceL2:
        return sqrt(r);
    case ZC_OP_ReduceLogSum:
        return log(r);
    case ZC_OP_ReduceLogSumExp:
        return isfinite(shift) ? shift + log(r) : shift;
    default:
        return r;
    }
}

static double first_float(zc_op op)
{
    switch (op) {
    case ZC_OP_ReduceMax:
        return -INFINITY;
    case ZC_OP_ReduceMin:
        return INFINITY;
    case ZC_OP_ReduceProd:
        return 1;
    default:
        return 0;
    }
}

static double step_float(zc_op op, double r, double x, double shift)
{
    switch (op) {
    case ZC_OP_ReduceMax:
        return r >= x || isnan(r) ? r : x;
    case ZC_OP_ReduceMin:
        return r <= x || isnan(r) ? r : x;
    case ZC_OP_ReduceProd:
        return r * x;
    case ZC_OP_ReduceL1:
        return r + fabs(x);
    case ZC_OP_ReduceL2:
    case ZC_OP_ReduceSumSquare:
        return r + x * x;
    case ZC_OP_ReduceLogSumExp:
        return r + exp(x - shift);
    default:
        return r + x;
    }
}

typedef struct reduce {
    zc_op op;
    zc_reduce_shape shape;
    const zc_tensor *in;
    zc_tensor *out;
} reduce;

/* All elements of the output whose first element is at `base`. */
static double walk_floats(const reduce *r, zc_op op, int64_t base, double shift)
{
    const zc_reduce_shape *s = &r->shape;
    int64_t idx[ZC_MAX_RANK] = {0}, at = base;
    double acc = first_float(op);
    if (s->count == 0) return acc;
    do {
        acc = step_float(op, acc, zc_get(r->in, at), shift);
    } while (zc_index_next(s->reduced, s->reduced_dims, idx, 1, &s->reduced_strides, &at));
    return acc;
}

static void reduce_floats(const reduce *r, int64_t o, int64_t base)
{
    double shift = 0;
    if (r->op == ZC_OP_ReduceLogSumExp) shift = walk_floats(r, ZC_OP_ReduceMax, base, 0);
    double acc = isfinite(shift) ? walk_floats(r, r->op, base, shift) : 0;
    zc_put(r->out, o, zc_reduce_finish(r->op, acc, shift, r->shape.count));
}

/* ---- integers ---- */

/* The least or the greatest value of the type. */
static int64_t extreme(zc_dtype dtype, bool least)
{
    unsigned bits = dtype == ZC_BOOL ? 1 : zc_dtype_bits(dtype);
    if (zc_dtype_class(dtype) != ZC_CLASS_INT)
        return least ? 0 : (int64_t)(bits == 64 ? UINT64_MAX : ((uint64_t)1 << bits) - 1);
    int64_t top = (int64_t)(((uint64_t)1 << (bits - 1)) - 1);
    return least ? -top - 1 : top;
}

static int64_t first_int(zc_op op, zc_dtype dtype)
{
    switch (op) {
    case ZC_OP_ReduceMax:
        return extreme(dtype, true);
    case ZC_OP_ReduceMin:
        return extreme(dtype, false);
    case ZC_OP_ReduceProd:
        return 1;
    default:
        return 0;
    }
}

static int64_t step_int(zc_op op, bool is_signed, int64_t r, int64_t x)
{
    uint64_t flip = is_signed ? (uint64_t)1 << 63 : 0, a = (uint64_t)r, b = (uint64_t)x;
    bool less = (a ^ flip) < (b ^ flip);
    switch (op) {
    case ZC_OP_ReduceMax:
        return less ? x : r;
    case ZC_OP_ReduceMin:
        return less ? r : x;
    case ZC_OP_ReduceProd:
        return (int64_t)(a * b);
    case ZC_OP_ReduceL1:
        return (int64_t)(is_signed && x < 0 ? a - b : a + b);
    case ZC_OP_ReduceSumSquare:
        return (int64_t)(a + b * b);
    default:
        return (int64_t)(a + b);
    }
}

static void reduce_ints(const reduce *r, int64_t o, int64_t base)
{
    const zc_reduce_shape *s = &r->shape;
    zc_dtype dtype = r->in->dtype;
    bool is_signed = zc_dtype_class(dtype) == ZC_CLASS_INT;
    int64_t idx[ZC_MAX_RANK] = {0}, at = base, acc = first_int(r->op, dtype);
    bool more = s->count > 0;
    while (more) {
        acc = step_int(r->op, is_signed, acc, zc_geti(r->in, at));
        more = zc_index_next(s->reduced, s->reduced_dims, idx, 1, &s->reduced_strides, &at);
    }
    if (r->op == ZC_OP_ReduceMean) {
        if (s->count == 0)
            acc = 0;
        else
            acc = is_signed ? acc / s->count : (int64_t)((uint64_t)acc / (uint64_t)s->count);
    }
    zc_puti(r->out, o, acc);
}

/* ---- entry ---- */

static void reduce_outputs(void *arg, int64_t begin, int64_t end)
{
    const reduce *r = arg;
    const zc_reduce_shape *s = &r->shape;
    bool roots =
        r->op == ZC_OP_ReduceL2 || r->op == ZC_OP_ReduceLogSum || r->op == ZC_OP_ReduceLogSumExp;
    for (int64_t o = begin; o < end; o++) {
        int64_t base = 0, rest = o;
        for (int d = s->kept - 1; d >= 0; d--) {
            base += rest % s->kept_dims[d] * s->kept_strides[d];
            rest /= s->kept_dims[d];
        }
        if (roots || zc_dtype_is_float(r->in->dtype))
            reduce_floats(r, o, base);
        else
            reduce_ints(r, o, base);
    }
}

static zc_status run(zc_kctx *k)
{
    reduce r = {.op = k->op, .in = &k->in[0], .out = &k->out[0]};
    ZC_TRY(zc_reduce_shape_of(k, &r.shape));
    zc_parallel(k, r.shape.outputs, 4096 / (r.shape.count + 1) + 1, reduce_outputs, &r);
    return ZC_OK;
}

#define X(name)                                                                                    \
    zc_status zc_k_##name(zc_kctx *k)                                                              \
    {                                                                                              \
        return run(k);                                                                             \
    }
ZC_REDUCTIONS(X)
#undef X
