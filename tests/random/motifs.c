/* What graphs are grown from: motifs of exporters, and near misses of them. */
#include <math.h>

#include "random/graph.h"

/* Pointwise operations that are smooth enough, and defined everywhere. */
static const zc_op smooth[] = {ZC_OP_Relu, ZC_OP_Tanh,     ZC_OP_Sigmoid,   ZC_OP_Erf,
                               ZC_OP_Abs,  ZC_OP_Neg,      ZC_OP_Softplus,  ZC_OP_HardSigmoid,
                               ZC_OP_Sin,  ZC_OP_Softsign, ZC_OP_LeakyRelu, ZC_OP_Elu,
                               ZC_OP_Selu, ZC_OP_Gelu,     ZC_OP_HardSwish, ZC_OP_Mish,
                               ZC_OP_Cos,  ZC_OP_Celu,     ZC_OP_Swish};

static zc_vid one(growing *m, zc_op op, zc_vid v)
{
    return make(m, op, "", 1, &v, 1);
}

static zc_vid smoothed(growing *m, zc_vid v)
{
    return one(m, smooth[below(m, ZC_COUNTOF(smooth))], v);
}

/* x > 0 of the same shape. */
static zc_vid positive(growing *m, zc_vid v)
{
    return MAKE(m, Add, "", one(m, ZC_OP_Abs, v), real(m, 0.5));
}

/* A constant that broadcasts to v: of one number, or along some axes. */
static zc_vid beside(growing *m, zc_vid v, double lo, double hi)
{
    int64_t dims[ZC_MAX_RANK];
    int rank = rank_of(m, v), first = rank > 0 ? (int)below(m, (uint64_t)rank + 1) : 0;
    if (one_in(m, 3)) return real(m, lo + (double)below(m, 64) * (hi - lo) / 64);
    for (int d = first; d < rank; d++)
        dims[d - first] = one_in(m, 3) || dim_of(m, v, d) < 0 ? 1 : dim_of(m, v, d);
    return reals(m, rank - first, dims, lo, hi);
}

static zc_vid last_wide(growing *m, zc_vid v, int64_t extra)
{
    int64_t n = dim_of(m, v, -1);
    return n < 1 ? 0 : reals(m, 1, &n, extra ? 0.5 : -1, 1.5);
}

/* ---- pointwise ---- */

static void unary(growing *m)
{
    keep(m, smoothed(m, pick(m, 0)));
}

static void careful(growing *m)
{
    zc_vid x = pick(m, 0);
    switch (below(m, 5)) {
    case 0:
        keep(m, one(m, ZC_OP_Sqrt, positive(m, x)));
        break;
    case 1:
        keep(m, one(m, ZC_OP_Log, positive(m, x)));
        break;
    case 2:
        keep(m, one(m, ZC_OP_Exp, one(m, ZC_OP_Tanh, x)));
        break;
    case 3:
        keep(m, one(m, ZC_OP_Reciprocal, positive(m, x)));
        break;
    default:
        keep(m, MAKE(m, Pow, "", positive(m, x),
                     real(m, one_in(m, 2)   ? 2
                             : one_in(m, 2) ? 0.5
                                            : -0.5)));
    }
}

static void binary(growing *m)
{
    static const zc_op ops[] = {ZC_OP_Add, ZC_OP_Sub, ZC_OP_Mul, ZC_OP_Div, ZC_OP_Max, ZC_OP_Min};
    zc_op op = ops[below(m, ZC_COUNTOF(ops))];
    zc_vid x = pick(m, 0), y = one_in(m, 2) ? pick(m, 0) : x ? beside(m, x, 0.5, 2) : 0;
    if (!x || !y) return;
    if (op == ZC_OP_Div && zc_val(m->g, y)->kind == ZC_VALUE_NODE) y = positive(m, y);
    if (op != ZC_OP_Div && one_in(m, 3)) keep(m, make(m, op, "", 2, (zc_vid[]){y, x}, 1));
    keep(m, make(m, op, "", 2, (zc_vid[]){x, y}, 1));
}

/* Comparisons are of what no rounding has touched. */
static void choice(growing *m)
{
    zc_vid x = pick(m, 0), y = pick(m, rank_of(m, x));
    if (!x || !y || !is_exact(m, x)) return;
    double between = 64.5 / 256; /* two numbers that inputs may be */
    zc_vid c = one_in(m, 2) ? MAKE(m, Greater, "", x, real(m, between))
                            : MAKE(m, LessOrEqual, "", real(m, between), x);
    if (one_in(m, 3)) c = MAKE(m, Not, "", c);
    keep(m, MAKE(m, Where, "", c, y, one_in(m, 2) ? real(m, 0.125) : x));
}

static zc_vid gelu(growing *m, zc_vid x)
{
    double half = one_in(m, 8) ? 0.25 : 0.5;
    if (one_in(m, 3)) {
        zc_vid cube = one_in(m, 2) ? MAKE(m, Pow, "", x, real(m, 3))
                                   : MAKE(m, Mul, "", x, MAKE(m, Mul, "", x, x));
        zc_vid in = MAKE(m, Add, "", x, MAKE(m, Mul, "", cube, real(m, 0.044715)));
        zc_vid t = MAKE(m, Tanh, "", MAKE(m, Mul, "", in, real(m, sqrt(2 / acos(-1)))));
        return MAKE(m, Mul, "", MAKE(m, Mul, "", x, real(m, half)),
                    MAKE(m, Add, "", t, real(m, 1)));
    }
    zc_vid e = one_in(m, 2) ? MAKE(m, Div, "", x, real(m, sqrt(2)))
                            : MAKE(m, Mul, "", x, real(m, sqrt(0.5)));
    zc_vid p = MAKE(m, Add, "", MAKE(m, Erf, "", e), real(m, 1));
    if (one_in(m, 2)) return MAKE(m, Mul, "", MAKE(m, Mul, "", x, p), real(m, half));
    return MAKE(m, Mul, "", x, MAKE(m, Mul, "", real(m, half), p));
}

static zc_vid gated(growing *m, zc_vid x)
{
    zc_vid g = one_in(m, 2) ? MAKE(m, Sigmoid, "", x) : MAKE(m, HardSigmoid, "", x);
    return one_in(m, 2) ? MAKE(m, Mul, "", x, g) : MAKE(m, Mul, "", g, x);
}

static void activation(growing *m)
{
    zc_vid x = pick(m, 0);
    keep(m, one_in(m, 2) ? gelu(m, x) : gated(m, x));
}

/* ---- products ---- */

static zc_vid linear(growing *m, zc_vid x, int64_t out)
{
    int64_t in = dim_of(m, x, -1);
    if (in < 1 || in > 32 || rank_of(m, x) < 2) return 0;
    zc_vid w = reals(m, 2, (int64_t[]){in, out}, -0.5, 0.5);
    zc_vid b = reals(m, 1, &out, -1, 1), y;
    if (rank_of(m, x) == 2 && one_in(m, 2)) {
        zc_vid t = reals(m, 2, (int64_t[]){out, in}, -0.5, 0.5);
        return MAKE(m, Gemm, "transB=1", x, t, b);
    }
    y = MAKE(m, MatMul, "", x, w);
    if (one_in(m, 4)) return y;
    return one_in(m, 2) ? MAKE(m, Add, "", y, b) : MAKE(m, Add, "", b, y);
}

static void product(growing *m)
{
    zc_vid x = pick(m, 0);
    static const int64_t widths[] = {1, 3, 4, 8};
    zc_vid y = linear(m, x, widths[below(m, ZC_COUNTOF(widths))]);
    keep(m, y);
    if (one_in(m, 2)) keep(m, smoothed(m, y));
    if (one_in(m, 4)) keep(m, linear(m, x, 4));
}

static void product_of_two(growing *m)
{
    zc_vid x = pick(m, 0), y = pick(m, rank_of(m, x));
    int rank = rank_of(m, x);
    if (!x || !y || rank < 2 || rank > 4) return;
    const char *turn = rank == 2 ? "perm=1,0" : rank == 3 ? "perm=0,2,1" : "perm=0,1,3,2";
    zc_vid p = MAKE(m, MatMul, "", x, MAKE(m, Transpose, turn, y));
    keep(m, one_in(m, 2) ? MAKE(m, Mul, "", p, real(m, 0.25)) : p);
}

/* ---- normalisations ---- */

/* One that counts from the end, and one that does not, now and then. */
static zc_vid mean(growing *m, zc_vid x, int axis)
{
    int64_t a = either_way(m, axis, rank_of(m, x));
    return MAKE(m, ReduceMean, one_in(m, 10) ? "keepdims=0" : "keepdims=1", x, ints(m, 1, &a));
}

static zc_vid square(growing *m, zc_vid d)
{
    return one_in(m, 2) ? MAKE(m, Mul, "", d, d) : MAKE(m, Pow, "", d, real(m, 2));
}

/* d / sqrt(v + epsilon), in one of the ways it is written. */
static zc_vid over_root(growing *m, zc_vid d, zc_vid v)
{
    zc_vid z = MAKE(m, Add, "", v, real(m, one_in(m, 2) ? 0.0009765625 : 0.03125));
    zc_vid s = one_in(m, 2) ? MAKE(m, Sqrt, "", z) : MAKE(m, Pow, "", z, real(m, 0.5));
    if (one_in(m, 2)) return MAKE(m, Div, "", d, s);
    return MAKE(m, Mul, "", d, MAKE(m, Reciprocal, "", s));
}

static zc_vid norm_written(growing *m, zc_vid x)
{
    int rank = rank_of(m, x);
    if (rank < 1) return 0;
    int axis = one_in(m, 6) ? (int)below(m, (uint64_t)rank) : rank - 1;
    zc_vid d = one_in(m, 4) ? x : MAKE(m, Sub, "", x, mean(m, x, axis)), e = d;
    if (one_in(m, 3)) e = MAKE(m, Sub, "", x, mean(m, x, axis));
    zc_vid y = over_root(m, d, mean(m, square(m, e), axis));
    if (one_in(m, 4)) return y;
    y = MAKE(m, Mul, "", y, one_in(m, 5) ? beside(m, x, 0.5, 1.5) : last_wide(m, x, 1));
    return one_in(m, 3) ? y : MAKE(m, Add, "", y, last_wide(m, x, 0));
}

/* A scale that is as long as a row, or one number for all of it. */
static zc_vid norm_scale(growing *m, zc_vid x)
{
    static const int64_t single = 1;
    return dim_of(m, x, -1) < 1 || one_in(m, 5) ? reals(m, 1, &single, 0.5, 1.5)
                                                : last_wide(m, x, 1);
}

static zc_vid norm(growing *m, zc_vid x)
{
    if (rank_of(m, x) < 1) return 0;
    int axis = either_way(m, rank_of(m, x) - 1, rank_of(m, x));
    /* A type that is said becomes f64 in the truth. */
    const char *stash = m->real == ZC_F32 ? " stash_type=f32" : "";
    const char *attrs = text_of(m, "axis=%d epsilon=0.001%s", axis, stash);
    zc_vid in[] = {x, norm_scale(m, x), norm_scale(m, x)};
    if (one_in(m, 2)) return make(m, ZC_OP_RMSNormalization, attrs, 2, in, 1 + one_in(m, 3));
    return make(m, ZC_OP_LayerNormalization, attrs, 2 + one_in(m, 2), in, 1 + (int)below(m, 3));
}

/* Results that are declared: some are used, others dropped. */
static void settle_results(growing *m, zc_vid y)
{
    if (!y) return;
    zc_node *n = zc_node_at(m->g, zc_val(m->g, y)->producer);
    for (int i = 1; i < n->nout; i++) {
        if (one_in(m, 4) && type_of(m, n->out[i])->dtype == m->real)
            keep(m, n->out[i]);
        else
            n->out[i] = 0;
    }
}

static void normalisation(growing *m)
{
    zc_vid x = pick(m, 0), y;
    if (one_in(m, 2)) {
        keep(m, norm_written(m, x));
        return;
    }
    if (one_in(m, 2)) {
        zc_vid z = pick(m, rank_of(m, x));
        x = MAKE(m, Add, "", x, z);
        if (one_in(m, 2)) keep(m, x);
    }
    y = norm(m, x);
    settle_results(m, y);
    keep(m, y);
}

static void softmax(growing *m)
{
    zc_vid x = pick(m, 0);
    int rank = rank_of(m, x);
    if (rank < 1) return;
    int axis = one_in(m, 3) ? (int)below(m, (uint64_t)rank) : rank - 1;
    int64_t a = either_way(m, axis, rank);
    if (one_in(m, 3)) {
        zc_vid most = MAKE(m, ReduceMax, "keepdims=1", x, ints(m, 1, &a));
        zc_vid e = MAKE(m, Exp, "", MAKE(m, Sub, "", x, most));
        keep(m, MAKE(m, Div, "", e, MAKE(m, ReduceSum, "keepdims=1", e, ints(m, 1, &a))));
        return;
    }
    const char *attrs = text_of(m, "axis=%d", (int)a);
    keep(m, make(m, one_in(m, 3) ? ZC_OP_LogSoftmax : ZC_OP_Softmax, attrs, 1, &x, 1));
}

static void reduction(growing *m)
{
    static const zc_op ops[] = {ZC_OP_ReduceSum,       ZC_OP_ReduceMean,     ZC_OP_ReduceMax,
                                ZC_OP_ReduceMin,       ZC_OP_ReduceL1,       ZC_OP_ReduceL2,
                                ZC_OP_ReduceSumSquare, ZC_OP_ReduceLogSumExp};
    zc_vid x = pick(m, 0);
    int rank = rank_of(m, x);
    if (rank < 1) return;
    int first = (int)below(m, (uint64_t)rank), second = (int)below(m, (uint64_t)rank);
    int64_t axes[] = {either_way(m, first, rank), either_way(m, second, rank)};
    const char *attrs = one_in(m, 2) ? "keepdims=1" : "keepdims=0";
    zc_vid in[] = {x, ints(m, first == second ? 1 : 2, axes)};
    keep(m, make(m, ops[below(m, ZC_COUNTOF(ops))], attrs, 2, in, 1));
}

/* ---- attention ---- */

static zc_vid heads_of(growing *m, zc_vid x, int64_t width)
{
    zc_vid y = linear(m, x, width);
    y = MAKE(m, Reshape, "", y, INTS(m, 0, 0, 2, width / 2));
    return MAKE(m, Transpose, "perm=0,2,1,3", y);
}

static double hiding(growing *m)
{
    static const double fills[] = {-1e4, -1e9, -1e18, -INFINITY}; /* squares are finite */
    if (m->real == ZC_F16) return one_in(m, 2) ? -1e4 : -65504;
    return fills[below(m, ZC_COUNTOF(fills))];
}

/* Which keys a query sees, by their places: as many as there are of both. */
static zc_vid triangle(growing *m, zc_vid x)
{
    zc_vid n = MAKE(m, Squeeze, "", MAKE(m, Shape, "start=1 end=2", x));
    zc_vid j = MAKE(m, Range, "", number(m, 0), n, number(m, 1));
    zc_vid i = MAKE(m, Unsqueeze, "", j, INTS(m, one_in(m, 2) ? 1 : -1));
    return one_in(m, 6) ? MAKE(m, GreaterOrEqual, "", j, i) : MAKE(m, LessOrEqual, "", j, i);
}

static zc_vid masked(growing *m, zc_vid scores, zc_vid x)
{
    zc_vid fill = real(m, hiding(m)), seen = triangle(m, x);
    switch (below(m, 4)) {
    case 0:
        return scores;
    case 1:
        return MAKE(m, Where, "", seen, scores, fill);
    case 2:
        return MAKE(m, Add, "", scores, MAKE(m, Where, "", seen, real(m, 0), fill));
    default:
        return MAKE(m, Add, "", scores, beside(m, scores, -2, 2));
    }
}

/* Now and then so much that a number which hides a key is no longer low. */
static zc_vid scaled(growing *m, zc_vid v)
{
    if (m->real != ZC_F16 && one_in(m, 12)) return MAKE(m, Mul, "", v, real(m, 4096));
    if (one_in(m, 3)) return v;
    return one_in(m, 2) ? MAKE(m, Mul, "", v, real(m, 0.5)) : MAKE(m, Div, "", v, real(m, 2));
}

static void attention(growing *m)
{
    zc_vid x = pick(m, 3);
    int64_t width = one_in(m, 2) ? 8 : 4;
    zc_vid q = heads_of(m, x, width), v = heads_of(m, x, width);
    zc_vid k = MAKE(m, Transpose, "perm=0,1,3,2", heads_of(m, x, width));
    if (one_in(m, 3)) {
        q = scaled(m, q);
        k = scaled(m, k);
    }
    zc_vid s = masked(m, scaled(m, MAKE(m, MatMul, "", q, k)), x);
    zc_vid p = MAKE(m, Softmax, one_in(m, 8) ? "axis=2" : one_in(m, 2) ? "axis=3" : "axis=-1", s);
    zc_vid y = MAKE(m, Transpose, "perm=0,2,1,3", MAKE(m, MatMul, "", p, v));
    y = MAKE(m, Reshape, "", y, INTS(m, 0, 0, width));
    keep(m, y);
    if (one_in(m, 2)) keep(m, linear(m, y, width));
    if (one_in(m, 10)) keep(m, p);
}

/* Half of the row turned against the other, as rotary embeddings do it. */
static void rotation(growing *m)
{
    zc_vid x = pick(m, 0);
    int64_t n = dim_of(m, x, -1);
    if (n < 2 || n % 2) return;
    int last = rank_of(m, x) - 1;
    zc_vid axis = INTS(m, either_way(m, last, last + 1));
    zc_vid lo = MAKE(m, Slice, "", x, INTS(m, 0), INTS(m, n / 2), axis);
    zc_vid hi = MAKE(m, Slice, "", x, INTS(m, n / 2), INTS(m, INT64_MAX), axis);
    const char *attrs = text_of(m, "axis=%d", either_way(m, last, last + 1));
    zc_vid turned = one_in(m, 6) ? MAKE(m, Concat, attrs, hi, lo)
                                 : MAKE(m, Concat, attrs, MAKE(m, Neg, "", hi), lo);
    zc_vid c = beside(m, x, -1, 1), s = beside(m, x, -1, 1);
    keep(m, MAKE(m, Add, "", MAKE(m, Mul, "", x, c), MAKE(m, Mul, "", turned, s)));
}

/* ---- convolutions ---- */

static zc_vid batch_norm(growing *m, zc_vid x)
{
    int64_t n = dim_of(m, x, 1);
    if (n < 1) return 0;
    return MAKE(m, BatchNormalization, "epsilon=0.001", x, reals(m, 1, &n, 0.5, 1.5),
                reals(m, 1, &n, -1, 1), reals(m, 1, &n, -1, 1), reals(m, 1, &n, 0.5, 2));
}

static void convolution(growing *m)
{
    zc_vid x = pick(m, 4);
    int64_t c = dim_of(m, x, 1), size = one_in(m, 2) ? 1 : 3;
    if (c < 1 || c > 16) return;
    int64_t group = one_in(m, 4) ? c : c % 2 == 0 && one_in(m, 4) ? 2 : 1;
    int64_t out = group == c || one_in(m, 2) ? c : 4;
    if (out % group) return;
    int pad = (int)below(m, 2), stride = one_in(m, 4) ? 2 : 1;
    const char *attrs = text_of(m, "group=%d pads=%d,%d,%d,%d strides=%d,%d", (int)group, pad, pad,
                                pad, pad, stride, stride);
    zc_vid w = reals(m, 4, (int64_t[]){out, c / group, size, size}, -0.5, 0.5);
    zc_vid y = one_in(m, 2) ? MAKE(m, Conv, attrs, x, w)
                            : MAKE(m, Conv, attrs, x, w, reals(m, 1, &out, -1, 1));
    if (one_in(m, 5)) keep(m, y);
    if (one_in(m, 2)) y = batch_norm(m, y);
    if (one_in(m, 3)) y = MAKE(m, Add, "", y, pick(m, 4));
    if (one_in(m, 2)) y = smoothed(m, y);
    keep(m, y);
}

static void picture(growing *m)
{
    static const float twice[] = {1, 1, 2, 2};
    const zc_tensor scales = {
        .dtype = ZC_F32, .rank = 1, .dims = {4}, .data = (void *)(uintptr_t)twice};
    zc_vid x = pick(m, 4);
    int64_t c = dim_of(m, x, 1);
    switch (below(m, 7)) {
    case 0:
        keep(m, MAKE(m, MaxPool, "kernel_shape=2,2 strides=2,2", x));
        break;
    case 1:
        keep(m, MAKE(m, AveragePool, "kernel_shape=3,3 pads=1,1,1,1", x));
        break;
    case 2:
        keep(m, MAKE(m, GlobalAveragePool, "", x));
        break;
    case 3:
        keep(m, MAKE(m, Resize, "mode=nearest", x, LEFT_OUT,
                     zc_graph_const(m->g, NULL, &scales, false)));
        break;
    case 4:
        keep(m, batch_norm(m, x));
        break;
    case 5:
        if (c > 0)
            keep(m, MAKE(m, InstanceNormalization, "epsilon=0.001", x, reals(m, 1, &c, 0.5, 1.5),
                         reals(m, 1, &c, -1, 1)));
        break;
    default: /* squeeze and excite */
        keep(m, MAKE(m, Mul, "", x, MAKE(m, Sigmoid, "", MAKE(m, GlobalAveragePool, "", x))));
    }
}

/* ---- moving ---- */

static zc_vid transposed(growing *m, zc_vid x)
{
    int perm[ZC_MAX_RANK], rank = rank_of(m, x);
    if (rank < 2 || rank > 5) return 0;
    for (int i = 0; i < rank; i++) perm[i] = i;
    for (int i = rank - 1; i > 0; i--) {
        int j = (int)below(m, (uint64_t)i + 1), t = perm[i];
        perm[i] = perm[j];
        perm[j] = t;
    }
    const char *attrs = text_of(m, "perm=%d", perm[0]);
    for (int i = 1; i < rank; i++) attrs = text_of(m, "%s,%d", attrs, perm[i]);
    return MAKE(m, Transpose, attrs, x);
}

static zc_vid reshaped(growing *m, zc_vid x)
{
    int64_t last = dim_of(m, x, -1);
    if (rank_of(m, x) == 3 && one_in(m, 3)) return MAKE(m, Reshape, "", x, INTS(m, 0, -1));
    if (rank_of(m, x) == 4 && one_in(m, 3)) return MAKE(m, Reshape, "", x, INTS(m, 0, 0, -1));
    if (rank_of(m, x) == 3 && last > 0 && last % 2 == 0)
        return MAKE(m, Reshape, "", x, INTS(m, 0, 0, 2, last / 2));
    if (last < 1) return 0;
    return MAKE(m, Reshape, "", x, INTS(m, -1, last));
}

static zc_vid sliced(growing *m, zc_vid x, int axis)
{
    int rank = rank_of(m, x);
    zc_vid at = INTS(m, either_way(m, axis, rank));
    if (one_in(m, 4))
        return MAKE(m, Slice, "", x, INTS(m, -1), INTS(m, INT64_MIN), at, INTS(m, -1));
    return MAKE(m, Slice, "", x, INTS(m, (int64_t)below(m, 2)), INTS(m, INT64_MAX), at,
                INTS(m, 1 + (int64_t)below(m, 2)));
}

static zc_vid halved(growing *m, zc_vid x, int axis)
{
    int64_t n = dim_of(m, x, axis);
    if (n < 2 || n % 2) return 0;
    const char *attrs = text_of(m, "axis=%d", either_way(m, axis, rank_of(m, x)));
    zc_vid a = make(m, ZC_OP_Split, attrs, 2, (zc_vid[]){x, INTS(m, n / 2, n / 2)}, 2);
    if (!a) return 0;
    return one_in(m, 2) ? MAKE(m, Mul, "", a, MAKE(m, Sigmoid, "", result(m, a, 1)))
                        : MAKE(m, Concat, attrs, result(m, a, 1), a);
}

static void movement(growing *m)
{
    zc_vid x = pick(m, 0);
    int rank = rank_of(m, x), axis = rank > 0 ? (int)below(m, (uint64_t)rank) : 0;
    if (rank < 1) return;
    const char *at = text_of(m, "axis=%d", either_way(m, axis, rank));
    switch (below(m, 9)) {
    case 0:
    case 1:
        keep(m, transposed(m, x));
        break;
    case 2:
    case 3:
        keep(m, reshaped(m, x));
        break;
    case 4:
        keep(m, sliced(m, x, axis));
        break;
    case 5:
        keep(m, halved(m, x, axis));
        break;
    case 6:
        keep(m, MAKE(m, Concat, at, x, pick(m, rank)));
        break;
    case 7:
        keep(m, MAKE(m, Gather, at, x, INTS(m, 0, -1, 0)));
        break;
    default:
        keep(m, one_in(m, 2) ? MAKE(m, Unsqueeze, "", x, INTS(m, either_way(m, axis, rank + 1)))
                             : MAKE(m, Squeeze, "", x, INTS(m, either_way(m, axis, rank))));
    }
}

/* ---- the same once more ---- */

/* A node's twin, which need not stand beside it. */
static void again(growing *m)
{
    const zc_block *b = &m->g->top;
    if (!b->nodes.len) return;
    zc_nid id = b->nodes.data[below(m, b->nodes.len)];
    const zc_node *n = zc_node_at(m->g, id);
    zc_op op = n->op;
    zc_vid in[16];
    int nin = n->nin;
    if (nin > 8 || n->nout > 1 || type_of(m, n->out[0])->dtype != m->real) return;
    for (int i = 0; i < nin; i++) in[i] = n->in[i] ? n->in[i] : LEFT_OUT;
    const zc_op_info *info = zc_op_get(op);
    int field = zc_attr_find(info, "axis", 4), rank = rank_of(m, in[0]);
    if (field < 0 && info->field_count) return;
    int64_t axis = field < 0 ? 0 : *(const int64_t *)zc_attr_at(info, n->attrs, field);
    if (field >= 0 && one_in(m, 2)) axis = axis < 0 ? axis + rank : axis - rank;
    if ((info->flags & ZC_OPF_COMMUTATIVE) && one_in(m, 2)) {
        zc_vid first = in[0];
        in[0] = in[1];
        in[1] = first;
    }
    keep(m, make(m, op, field < 0 ? "" : text_of(m, "axis=%d", (int)axis), nin, in, 1));
}

void add_motif(growing *m)
{
    static void (*const motifs[])(growing *) = {
        unary,         unary,      careful,   binary,    binary,         binary,
        choice,        activation, product,   product,   product_of_two, normalisation,
        normalisation, softmax,    reduction, attention, rotation,       convolution,
        picture,       movement,   movement,  again};
    motifs[below(m, ZC_COUNTOF(motifs))](m);
}
