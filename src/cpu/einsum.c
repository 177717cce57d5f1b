/* Reference kernels of Einsum, Det and Inverse. */
#include "op/einsum.h"

#include <math.h>
#include <string.h>

#include "cpu/kernel.h"

/* ---- Einsum ---- */

/* The loops of an equation: output labels first, then the summed ones. */
typedef struct loops {
    int n, outer; /* labels; those of the output */
    int64_t size[ZC_EINSUM_LABELS];
    int nin;
    int64_t (*stride)[ZC_EINSUM_LABELS]; /* of each operand along each loop */
} loops;

typedef struct job {
    const zc_tensor *in;
    zc_tensor *out;
    const loops *l;
} job;

/* Adds an operand's axis to its stride along a loop; a repeated label sums strides: a diagonal. */
static zc_status add_axis(zc_kctx *k, loops *l, int i, int loop, int64_t dim, int64_t stride)
{
    if (dim == 1 && l->size[loop] != 1) return ZC_OK; /* broadcast */
    if (dim != l->size[loop]) {
        return zc_kernel_fail(k, "axes of one label differ (got %lld and %lld)", (long long)dim,
                              (long long)l->size[loop]);
    }
    l->stride[i][loop] += stride;
    return ZC_OK;
}

static void order_labels(const zc_einsum *e, int loop_of[ZC_EINSUM_LABELS], loops *l)
{
    for (int i = 0; i < ZC_EINSUM_LABELS; i++) loop_of[i] = -1;
    for (int d = 0; d < e->out.n; d++) loop_of[e->out.label[d]] = l->n++;
    l->outer = l->n;
    for (int i = 0; i < e->nin; i++)
        for (int d = 0; d < e->in[i].n; d++)
            if (loop_of[e->in[i].label[d]] < 0) loop_of[e->in[i].label[d]] = l->n++;
}

/* Largest size of each label over the operands; a 1 broadcasts. */
static void size_labels(const zc_kctx *k, const zc_einsum *e, const int *loop_of, loops *l)
{
    for (int i = 0; i < l->n; i++) l->size[i] = 1;
    for (int i = 0; i < e->nin; i++) {
        for (int d = 0; d < e->in[i].n; d++) {
            int64_t *size = &l->size[loop_of[e->in[i].label[d]]];
            if (*size == 1) *size = k->in[i].dims[d];
        }
    }
}

static zc_status plan_loops(zc_kctx *k, const zc_einsum *e, loops *l)
{
    int loop_of[ZC_EINSUM_LABELS];
    order_labels(e, loop_of, l);
    size_labels(k, e, loop_of, l);
    for (int d = 0; d < e->out.n; d++) {
        if (l->size[d] != k->out[0].dims[d])
            return zc_kernel_fail(k, "output axis %d has a wrong size (got %lld, need %lld)", d,
                                  (long long)k->out[0].dims[d], (long long)l->size[d]);
    }
    for (int i = 0; i < e->nin; i++) {
        int64_t s[ZC_MAX_RANK];
        zc_strides(&k->in[i], s);
        for (int d = 0; d < e->in[i].n; d++)
            ZC_TRY(add_axis(k, l, i, loop_of[e->in[i].label[d]], k->in[i].dims[d], s[d]));
    }
    return ZC_OK;
}

/* Steps the loops [from, to); false after the last combination. */
static bool advance(const loops *l, int from, int to, int64_t *idx, int64_t *off)
{
    for (int d = to - 1; d >= from; d--) {
        bool carry = ++idx[d] == l->size[d];
        for (int i = 0; i < l->nin; i++)
            off[i] += carry ? (1 - l->size[d]) * l->stride[i][d] : l->stride[i][d];
        if (!carry) return true;
        idx[d] = 0;
    }
    return false;
}

static double product_float(const job *j, const int64_t *off)
{
    double p = 1;
    for (int i = 0; i < j->l->nin; i++) p *= zc_get(&j->in[i], off[i]);
    return p;
}

static uint64_t product_int(const job *j, const int64_t *off)
{
    uint64_t p = 1;
    for (int i = 0; i < j->l->nin; i++) p *= (uint64_t)zc_geti(&j->in[i], off[i]);
    return p;
}

static void element(const job *j, int64_t at, int64_t *idx, int64_t *off)
{
    const loops *l = j->l;
    bool empty = false, is_float = zc_dtype_is_float(j->out->dtype);
    double sum = 0;
    uint64_t isum = 0;
    for (int d = l->outer; d < l->n; d++) empty |= l->size[d] == 0;
    for (bool more = !empty; more; more = advance(l, l->outer, l->n, idx, off)) {
        if (is_float)
            sum += product_float(j, off);
        else
            isum += product_int(j, off);
    }
    if (is_float)
        zc_put(j->out, at, sum);
    else
        zc_puti(j->out, at, (int64_t)isum);
}

static void elements(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    const loops *l = j->l;
    int64_t idx[ZC_EINSUM_LABELS] = {0}, off[ZC_EINSUM_OPERANDS] = {0}, rest = begin;
    for (int d = l->outer - 1; d >= 0; d--) {
        idx[d] = rest % l->size[d];
        rest /= l->size[d];
        for (int i = 0; i < l->nin; i++) off[i] += idx[d] * l->stride[i][d];
    }
    for (int64_t at = begin; at < end; at++) {
        element(j, at, idx, off);
        advance(l, 0, l->outer, idx, off);
    }
}

zc_status zc_k_Einsum(zc_kctx *k)
{
    zc_einsum e;
    int ranks[ZC_EINSUM_OPERANDS] = {0};
    for (int i = 0; i < k->nin && i < ZC_EINSUM_OPERANDS; i++) ranks[i] = k->in[i].rank;
    ZC_TRY(zc_einsum_parse(ZC_ATTRS(k, Einsum)->equation, k->nin, ranks, &e, k->subject, k->diag));
    loops l = {.nin = k->nin};
    size_t bytes = (size_t)k->nin * sizeof *l.stride;
    l.stride = zc_scratch_get(k->scratch, bytes);
    if (!l.stride) return zc_fail_nomem(k->diag, "Einsum strides", bytes);
    memset(l.stride, 0, bytes);
    ZC_TRY(plan_loops(k, &e, &l));
    job j = {.in = k->in, .out = &k->out[0], .l = &l};
    zc_parallel(k, zc_tensor_numel(&k->out[0]), 16, elements, &j);
    return ZC_OK;
}

/* ---- Det and Inverse: elimination with partial pivoting ---- */

static void swap_rows(double *a, int64_t n, int64_t r, int64_t s)
{
    for (int64_t i = 0; r != s && i < n; i++) {
        double t = a[r * n + i];
        a[r * n + i] = a[s * n + i];
        a[s * n + i] = t;
    }
}

static void subtract_row(double *a, int64_t n, int64_t from, int64_t row, double factor)
{
    for (int64_t i = 0; i < n; i++) a[from * n + i] -= factor * a[row * n + i];
}

/* Brings the row with the largest element of column c, from row c on, up to row c of a[n, n]; the
 * row it was. */
static int64_t take_pivot(double *a, int64_t n, int64_t c)
{
    int64_t best = c;
    for (int64_t r = c + 1; r < n; r++)
        if (fabs(a[r * n + c]) > fabs(a[best * n + c])) best = r;
    swap_rows(a, n, c, best);
    return best;
}

/* a is lost. */
static double determinant(double *a, int64_t n)
{
    double det = 1;
    for (int64_t c = 0; c < n; c++) {
        if (take_pivot(a, n, c) != c) det = -det;
        double pivot = a[c * n + c];
        det *= pivot;
        if (pivot == 0) return 0;
        for (int64_t r = c + 1; r < n; r++) subtract_row(a, n, r, c, a[r * n + c] / pivot);
    }
    return det;
}

/* The scratch memory for `matrices` of the size of input 0's, whose elements are *each. */
static zc_status square_scratch(zc_kctx *k, const char *op, int64_t matrices, int64_t *each,
                                double **out)
{
    const zc_tensor *x = &k->in[0];
    const int64_t n = x->dims[x->rank - 1];
    size_t bytes = 0;
    if (n != x->dims[x->rank - 2])
        return zc_kernel_fail(k, "%s needs square matrices (got %lld x %lld)", op,
                              (long long)x->dims[x->rank - 2], (long long)n);
    *each = 0;
    *out = NULL;
    if (n > 0 && zc_tensor_numel(x) == 0) return ZC_OK;
    if (!zc_mul_i64(n, n, each) || *each > INT64_MAX / matrices ||
        !zc_dtype_bytes(ZC_F64, matrices * *each, &bytes))
        return zc_kernel_fail(k, "matrix too large (got %lld rows)", (long long)n);
    *out = zc_scratch_get(k->scratch, bytes);
    return *out || bytes == 0 ? ZC_OK : zc_fail_nomem(k->diag, op, bytes);
}

zc_status zc_k_Det(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    int64_t n = x->dims[x->rank - 1], count = zc_tensor_numel(&k->out[0]), each;
    double *a;
    ZC_TRY(square_scratch(k, "Det", 1, &each, &a));
    for (int64_t i = 0; i < count; i++) {
        for (int64_t e = 0; e < each; e++) a[e] = zc_get(x, i * each + e);
        zc_put(&k->out[0], i, determinant(a, n));
    }
    return ZC_OK;
}

/* b becomes the inverse of a, which is lost. */
static void invert(double *a, double *b, int64_t n)
{
    for (int64_t i = 0; i < n * n; i++) b[i] = i / n == i % n;
    for (int64_t c = 0; c < n; c++) {
        swap_rows(b, n, c, take_pivot(a, n, c));
        const double pivot = a[c * n + c];
        for (int64_t i = 0; i < n; i++) {
            a[c * n + i] /= pivot;
            b[c * n + i] /= pivot;
        }
        for (int64_t r = 0; r < n; r++) {
            if (r == c) continue;
            const double factor = a[r * n + c];
            subtract_row(a, n, r, c, factor);
            subtract_row(b, n, r, c, factor);
        }
    }
}

zc_status zc_k_Inverse(zc_kctx *k)
{
    const zc_tensor *x = &k->in[0];
    const int64_t total = zc_tensor_numel(x);
    int64_t each;
    double *a;
    ZC_TRY(square_scratch(k, "Inverse", 2, &each, &a));
    for (int64_t at = 0; at < total; at += each) {
        for (int64_t e = 0; e < each; e++) a[e] = zc_get(x, at + e);
        invert(a, a + each, x->dims[x->rank - 1]);
        for (int64_t e = 0; e < each; e++) zc_put(&k->out[0], at + e, a[each + e]);
    }
    return ZC_OK;
}
