/* Kernels that search and order: TopK, ArgMax, ArgMin, Hardmax, NonZero, Unique. */
#include <math.h>
#include <string.h>

#include "cpu/index.h"

/* Positions across an axis that are scanned together, so that memory is read in order. */
#define BLOCK 64

/* ---- TopK ---- */

typedef struct ranked {
    uint64_t key;
    int64_t index;
} ranked;

typedef struct topk {
    const zc_tensor *in;
    zc_tensor *values, *indices; /* either may be absent */
    zc_axis_view view;
    int64_t k;
    uint64_t flip; /* makes the smallest keys the largest */
    ranked *heaps; /* k for each line */
} topk;

/* Does a come later in the result than b? */
static bool worse(ranked a, ranked b)
{
    return a.key != b.key ? a.key < b.key : a.index > b.index;
}

/* Restores the heap of n whose top is the worst, after its element i changed. */
static void sink(ranked *heap, int64_t n, int64_t i)
{
    ranked moved = heap[i];
    for (;;) {
        int64_t child = 2 * i + 1;
        if (child >= n) break;
        if (child + 1 < n && worse(heap[child + 1], heap[child])) child++;
        if (!worse(heap[child], moved)) break;
        heap[i] = heap[child];
        i = child;
    }
    heap[i] = moved;
}

/* The best k of one line into heap[], in order. */
static void topk_line(const topk *t, int64_t first, ranked *heap)
{
    for (int64_t i = 0; i < t->view.length; i++) {
        ranked r = {zc_order_key(t->in, first + i * t->view.inner) ^ t->flip, i};
        if (i < t->k) {
            heap[i] = r;
            if (i == t->k - 1)
                for (int64_t j = t->k / 2; j-- > 0;) sink(heap, t->k, j);
        } else if (worse(heap[0], r)) {
            heap[0] = r;
            sink(heap, t->k, 0);
        }
    }
    for (int64_t n = t->k - 1; n > 0; n--) {
        ranked worst = heap[0];
        heap[0] = heap[n];
        heap[n] = worst;
        sink(heap, n, 0);
    }
}

static void topk_lines(void *arg, int64_t begin, int64_t end)
{
    const topk *t = arg;
    size_t size = zc_elem_size(t->in);
    for (int64_t line = begin; line < end; line++) {
        int64_t o = line / t->view.inner, j = line % t->view.inner;
        int64_t from = o * t->view.length * t->view.inner + j;
        int64_t to = o * t->k * t->view.inner + j;
        ranked *heap = t->heaps + line * t->k;
        topk_line(t, from, heap);
        for (int64_t i = 0; i < t->k; i++, to += t->view.inner) {
            if (zc_present(t->values))
                memcpy(zc_elem_at(t->values, to),
                       zc_elem_at(t->in, from + heap[i].index * t->view.inner), size);
            if (zc_present(t->indices)) zc_puti(t->indices, to, heap[i].index);
        }
    }
}

zc_status zc_k_TopK(zc_kctx *k)
{
    const zc_attrs_TopK *a = ZC_ATTRS(k, TopK);
    const zc_tensor *in = &k->in[0];
    int axis = zc_axis(a->axis, in->rank);
    topk t = {.in = in,
              .view = zc_axis_view_of(in, axis),
              .flip = a->largest ? 0 : UINT64_MAX,
              .values = &k->out[0],
              .indices = k->nout > 1 ? &k->out[1] : NULL};
    int64_t dims[ZC_MAX_RANK], lines = t.view.outer * t.view.inner;
    size_t heaps;
    ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[1]), 1, "number of values in K"));
    t.k = zc_geti(&k->in[1], 0);
    if (t.k < 0 || t.k > in->dims[axis]) {
        return zc_kernel_fail(k, "K out of range (got %lld, need [0, %lld])", (long long)t.k,
                              (long long)in->dims[axis]);
    }
    memcpy(dims, in->dims, sizeof dims);
    dims[axis] = t.k;
    for (int i = 0; i < k->nout; i++)
        if (zc_present(&k->out[i]))
            ZC_TRY(zc_check_shape(k, &k->out[i], in->rank, dims, "an output"));
    if (lines == 0 || t.k == 0) return ZC_OK;
    if (!zc_mul_size((size_t)lines, (size_t)t.k, &heaps) ||
        !zc_mul_size(heaps, sizeof(ranked), &heaps))
        return zc_fail_nomem(k->diag, "candidates", SIZE_MAX);
    t.heaps = zc_scratch_get(k->scratch, heaps);
    if (!t.heaps) return zc_fail_nomem(k->diag, "candidates", heaps);
    zc_parallel(k, lines, 4096 / t.view.length + 1, topk_lines, &t);
    return ZC_OK;
}

/* ---- ArgMax, ArgMin, Hardmax ---- */

typedef struct argreduce {
    const zc_tensor *in;
    zc_tensor *out;
    zc_axis_view view;
    int64_t blocks; /* of BLOCK positions within view.inner */
    bool min, last;
    void (*store)(const struct argreduce *a, int64_t o, int64_t j, int64_t index);
} argreduce;

/* The key that wins is the largest; a NaN always is. */
static uint64_t rank_key(const argreduce *a, int64_t i)
{
    uint64_t key = zc_order_key(a->in, i);
    return a->min && !(key == ZC_ORDER_NAN && zc_dtype_is_float(a->in->dtype)) ? ~key : key;
}

/* The winning index of n neighbouring lines, the first of which starts at element `from`. */
static void scan_keys(const argreduce *a, int64_t from, int64_t n, int64_t *index)
{
    uint64_t best[BLOCK];
    for (int64_t i = 0; i < a->view.length; i++, from += a->view.inner) {
        for (int64_t j = 0; j < n; j++) {
            uint64_t key = rank_key(a, from + j);
            bool wins = i == 0 || key > best[j] || (a->last && key == best[j]);
            if (!wins) continue;
            best[j] = key;
            index[j] = i;
        }
    }
}

/* The same for f32 without keys. */
static void scan_f32(const argreduce *a, int64_t from, int64_t n, int64_t *index)
{
    const float *x = (const float *)a->in->data + from;
    float best[BLOCK], sign = a->min ? -1.0f : 1.0f;
    for (int64_t j = 0; j < n; j++) {
        best[j] = sign * x[j];
        index[j] = 0;
    }
    for (int64_t i = 1; i < a->view.length; i++) {
        x += a->view.inner;
        for (int64_t j = 0; j < n; j++) {
            float v = sign * x[j];
            bool nan = isnan(v);
            bool wins = a->last ? v >= best[j] || nan : v > best[j] || (nan && !isnan(best[j]));
            best[j] = wins ? v : best[j];
            index[j] = wins ? i : index[j];
        }
    }
}

static void argreduce_blocks(void *arg, int64_t begin, int64_t end)
{
    const argreduce *a = arg;
    int64_t index[BLOCK], inner = a->view.inner;
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t o = unit / a->blocks, j0 = unit % a->blocks * BLOCK;
        int64_t n = inner - j0 < BLOCK ? inner - j0 : BLOCK;
        int64_t from = o * a->view.length * inner + j0;
        if (a->in->dtype == ZC_F32)
            scan_f32(a, from, n, index);
        else
            scan_keys(a, from, n, index);
        for (int64_t j = 0; j < n; j++) a->store(a, o, j0 + j, index[j]);
    }
}

static zc_status run_argreduce(zc_kctx *k, argreduce *a)
{
    if (a->view.outer == 0 || a->view.inner == 0) return ZC_OK;
    if (a->view.length == 0) return zc_kernel_fail(k, "an axis of length 0 has no extreme");
    a->blocks = (a->view.inner - 1) / BLOCK + 1;
    zc_parallel(k, a->view.outer * a->blocks, 4096 / a->view.length + 1, argreduce_blocks, a);
    return ZC_OK;
}

static void store_index(const argreduce *a, int64_t o, int64_t j, int64_t index)
{
    zc_puti(a->out, o * a->view.inner + j, index);
}

static zc_status find_extreme(zc_kctx *k, int64_t axis, bool min, bool last)
{
    argreduce a = {
        .in = &k->in[0], .out = &k->out[0], .min = min, .last = last, .store = store_index};
    a.view = zc_axis_view_of(a.in, zc_axis(axis, a.in->rank));
    ZC_TRY(zc_check_length(k, zc_tensor_numel(a.out), a.view.outer * a.view.inner,
                           "number of results"));
    return run_argreduce(k, &a);
}

zc_status zc_k_ArgMax(zc_kctx *k)
{
    const zc_attrs_ArgMax *a = ZC_ATTRS(k, ArgMax);
    return find_extreme(k, a->axis, false, a->select_last_index != 0);
}

zc_status zc_k_ArgMin(zc_kctx *k)
{
    const zc_attrs_ArgMin *a = ZC_ATTRS(k, ArgMin);
    return find_extreme(k, a->axis, true, a->select_last_index != 0);
}

static void store_one(const argreduce *a, int64_t o, int64_t j, int64_t index)
{
    for (int64_t i = 0; i < a->view.length; i++)
        zc_put(a->out, (o * a->view.length + i) * a->view.inner + j, i == index);
}

zc_status zc_k_Hardmax(zc_kctx *k)
{
    argreduce a = {.in = &k->in[0], .out = &k->out[0], .store = store_one};
    a.view = zc_axis_view_of(a.in, zc_axis(ZC_ATTRS(k, Hardmax)->axis, a.in->rank));
    ZC_TRY(zc_check_shape(k, a.out, a.in->rank, a.in->dims, "the output"));
    return a.view.length ? run_argreduce(k, &a) : ZC_OK;
}

/* ---- NonZero ---- */

/* A complex tensor as twice as many real numbers; others as they are. */
static zc_tensor real_parts(const zc_tensor *t, int *parts)
{
    zc_tensor r = *t;
    *parts = zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX ? 2 : 1;
    if (*parts == 2) r.dtype = t->dtype == ZC_C64 ? ZC_F32 : ZC_F64;
    return r;
}

static bool is_nonzero(const zc_tensor *t, int64_t i)
{
    return zc_dtype_is_float(t->dtype) ? zc_get(t, i) != 0 : zc_geti(t, i) != 0;
}

zc_status zc_k_NonZero(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0];
    int parts;
    const zc_tensor real = real_parts(in, &parts);
    int64_t n = zc_tensor_numel(in), found = 0, at = 0;
    for (int64_t i = 0; i < n; i++)
        found += is_nonzero(&real, i * parts) || (parts == 2 && is_nonzero(&real, i * parts + 1));
    const int64_t dims[2] = {in->rank, found};
    ZC_TRY(k->resize(k, 0, 2, dims));
    for (int64_t i = 0; i < n; i++) {
        if (!is_nonzero(&real, i * parts) && !(parts == 2 && is_nonzero(&real, i * parts + 1)))
            continue;
        int64_t rest = i;
        for (int d = in->rank - 1; d >= 0; d--) {
            zc_puti(&k->out[0], d * found + at, rest % in->dims[d]);
            rest /= in->dims[d];
        }
        at++;
    }
    return ZC_OK;
}

/* ---- Unique ---- */

typedef struct unique {
    zc_axis_view view;
    int64_t rows, width; /* what is compared: rows of `width` keys */
    uint64_t *keys;
    int64_t *order, *spare; /* row numbers; `spare` is the sort's other half */
    int64_t *group;         /* of each row */
    int64_t *first, *count; /* of each group */
    int64_t groups;
} unique;

static int compare_rows(const unique *u, int64_t a, int64_t b)
{
    for (int64_t i = 0; i < u->width; i++) {
        uint64_t x = u->keys[a * u->width + i], y = u->keys[b * u->width + i];
        if (x != y) return x < y ? -1 : 1;
    }
    return 0;
}

/* Merges [lo, mid) and [mid, hi) of `order` into `spare`; equal rows keep their order. */
static void merge(unique *u, int64_t lo, int64_t mid, int64_t hi)
{
    int64_t a = lo, b = mid;
    for (int64_t i = lo; i < hi; i++) {
        bool left = a < mid && (b == hi || compare_rows(u, u->order[a], u->order[b]) <= 0);
        u->spare[i] = u->order[left ? a++ : b++];
    }
}

static void sort_rows(unique *u)
{
    for (int64_t i = 0; i < u->rows; i++) u->order[i] = i;
    for (int64_t run = 1; run < u->rows; run *= 2) {
        for (int64_t lo = 0; lo < u->rows; lo += 2 * run) {
            int64_t mid = lo + run < u->rows ? lo + run : u->rows;
            int64_t hi = lo + 2 * run < u->rows ? lo + 2 * run : u->rows;
            merge(u, lo, mid, hi);
        }
        int64_t *swap = u->order;
        u->order = u->spare;
        u->spare = swap;
    }
}

static void group_rows(unique *u)
{
    for (int64_t i = 0; i < u->rows; i++) {
        int64_t row = u->order[i];
        if (i == 0 || compare_rows(u, u->order[i - 1], row) != 0) {
            u->first[u->groups] = row;
            u->count[u->groups++] = 0;
        }
        u->group[row] = u->groups - 1;
        u->count[u->groups - 1]++;
    }
}

/* Numbers the groups by first occurrence. Uses order and spare, which are done with. */
static void order_by_occurrence(unique *u)
{
    int64_t *first = u->order, *count = u->spare, next = 0;
    for (int64_t row = 0; row < u->rows; row++) {
        int64_t g = u->group[row];
        if (u->first[g] != row) continue;
        first[next] = row;
        count[next] = u->count[g];
        u->count[g] = next++; /* from here on the group's new number */
    }
    for (int64_t row = 0; row < u->rows; row++) u->group[row] = u->count[u->group[row]];
    u->first = first;
    u->count = count;
}

static zc_status unique_room(zc_kctx *k, unique *u)
{
    size_t keys, bytes = (size_t)u->rows * sizeof(int64_t);
    if (!zc_mul_size((size_t)u->rows, (size_t)u->width, &keys) ||
        !zc_mul_size(keys, sizeof *u->keys, &keys))
        return zc_fail_nomem(k->diag, "sort keys", SIZE_MAX);
    u->keys = zc_scratch_get(k->scratch, keys);
    int64_t **arrays[] = {&u->order, &u->spare, &u->group, &u->first, &u->count};
    bool ok = u->keys != NULL;
    for (size_t i = 0; i < ZC_COUNTOF(arrays); i++) {
        *arrays[i] = zc_scratch_get(k->scratch, bytes);
        ok = ok && *arrays[i];
    }
    return ok ? ZC_OK : zc_fail_nomem(k->diag, "sort keys", keys);
}

static void read_keys(const zc_tensor *in, unique *u)
{
    int parts;
    const zc_tensor real = real_parts(in, &parts);
    const zc_axis_view *v = &u->view;
    for (int64_t o = 0; o < v->outer; o++) {
        for (int64_t i = 0; i < v->length; i++) {
            int64_t from = (o * v->length + i) * v->inner * parts;
            uint64_t *to = u->keys + i * u->width + o * v->inner * parts;
            for (int64_t j = 0; j < v->inner * parts; j++) to[j] = zc_order_key(&real, from + j);
        }
    }
}

static zc_status unique_lists(zc_kctx *k, const unique *u)
{
    const int64_t *lists[] = {NULL, u->first, u->group, u->count};
    for (int i = 1; i < k->nout; i++) {
        int64_t n = i == 2 ? u->rows : u->groups;
        if (!zc_present(&k->out[i])) continue;
        ZC_TRY(k->resize(k, i, 1, &n));
        for (int64_t j = 0; j < n; j++) zc_puti(&k->out[i], j, lists[i][j]);
    }
    return ZC_OK;
}

zc_status zc_k_Unique(zc_kctx *k)
{
    const zc_attrs_Unique *a = ZC_ATTRS(k, Unique);
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    bool along = ZC_ATTR_GIVEN(Unique, a, axis);
    int axis = along ? zc_axis(a->axis, in->rank) : 0;
    int64_t dims[ZC_MAX_RANK] = {0};
    unique u = {.view = {.outer = 1, .length = zc_tensor_numel(in), .inner = 1}};
    if (along) u.view = zc_axis_view_of(in, axis);
    u.rows = u.view.length;
    u.width = u.view.outer * u.view.inner * (zc_dtype_class(in->dtype) == ZC_CLASS_COMPLEX ? 2 : 1);
    ZC_TRY(unique_room(k, &u));
    read_keys(in, &u);
    sort_rows(&u);
    group_rows(&u);
    if (!a->sorted) order_by_occurrence(&u);
    ZC_TRY(unique_lists(k, &u));
    if (!zc_present(out)) return ZC_OK;
    if (along) memcpy(dims, in->dims, sizeof dims);
    dims[axis] = u.groups;
    ZC_TRY(k->resize(k, 0, along ? in->rank : 1, dims));
    size_t run = zc_elem_size(in) * (size_t)u.view.inner;
    for (int64_t o = 0; run && o < u.view.outer; o++) {
        zc_copy_gather(run, u.groups, (char *)out->data + o * u.groups * (int64_t)run,
                       (const char *)in->data + o * u.view.length * (int64_t)run, u.first);
    }
    return ZC_OK;
}
