/* Kernels of the operations that cut and extend: Pad, CenterCropPad, and ReverseSequence. */
#include <string.h>

#include "cpu/copy.h"

/* ---- a window of the input inside the output ---- */

/* Along each axis, `count` elements from index `from` of the input lie at index `to` of the output.
 */
typedef struct window {
    int64_t from[ZC_MAX_RANK], to[ZC_MAX_RANK], count[ZC_MAX_RANK];
} window;

/* The output's element i is the input's i - begin where there is one. */
static void window_axis(window *w, int axis, int64_t in, int64_t out, int64_t begin)
{
    int64_t lo = begin > 0 ? begin : 0, hi = in + begin < out ? in + begin : out;
    w->to[axis] = lo;
    w->from[axis] = lo - begin;
    w->count[axis] = hi > lo ? hi - lo : 0;
}

/* Everything outside the window gets the value. */
static void fill_around(zc_kctx *k, const window *w, const void *value)
{
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    int64_t from[ZC_MAX_RANK], to[ZC_MAX_RANK], src = 0, dst = 0;
    bool covered = true, empty = false;
    zc_copy c = {0};
    zc_strides(in, from);
    zc_strides(out, to);
    for (int i = 0; i < in->rank; i++) {
        covered &= w->count[i] == out->dims[i];
        empty |= w->count[i] == 0;
        src += w->from[i] * from[i];
        dst += w->to[i] * to[i];
        zc_copy_axis(&c, w->count[i], to[i], from[i]);
    }
    if (!covered) zc_copy_fill(k, zc_tensor_numel(out), zc_elem_size(out), out->data, value);
    if (!empty) zc_copy_run(k, &c, zc_elem_size(in), zc_elem_at(out, dst), zc_elem_at(in, src));
}

/* ---- Pad ---- */

typedef struct pads {
    int64_t begin[ZC_MAX_RANK], end[ZC_MAX_RANK];
} pads;

static zc_status read_pads(zc_kctx *k, pads *p)
{
    const zc_tensor *in = &k->in[0], *axes = k->nin > 3 && zc_present(&k->in[3]) ? &k->in[3] : NULL;
    int64_t n = axes ? zc_tensor_numel(axes) : in->rank, dims[ZC_MAX_RANK];
    *p = (pads){0};
    if (n > in->rank)
        return zc_kernel_fail(k, "more axes than dimensions (got %lld)", (long long)n);
    ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[1]), 2 * n, "number of pads"));
    for (int i = 0; i < n; i++) {
        int64_t axis = axes ? zc_geti(axes, i) : i;
        if (axis < -in->rank || axis >= in->rank) {
            return zc_kernel_fail(k, "axis out of range (got %lld, need [%d, %d])", (long long)axis,
                                  -in->rank, in->rank - 1);
        }
        p->begin[zc_axis(axis, in->rank)] = zc_geti(&k->in[1], i);
        p->end[zc_axis(axis, in->rank)] = zc_geti(&k->in[1], n + i);
    }
    for (int i = 0; i < in->rank; i++) {
        if (!zc_add_i64(in->dims[i], p->begin[i], &dims[i]) ||
            !zc_add_i64(dims[i], p->end[i], &dims[i]))
            return zc_kernel_fail(k, "pads of axis %d are too large", i);
    }
    return zc_check_shape(k, &k->out[0], in->rank, dims, "the output");
}

static zc_status pad_constant(zc_kctx *k, const pads *p)
{
    static const unsigned char zero[16];
    const zc_tensor *value = k->nin > 2 && zc_present(&k->in[2]) ? &k->in[2] : NULL;
    window w;
    if (value) ZC_TRY(zc_check_length(k, zc_tensor_numel(value), 1, "number of constant values"));
    for (int i = 0; i < k->in[0].rank; i++)
        window_axis(&w, i, k->in[0].dims[i], k->out[0].dims[i], p->begin[i]);
    fill_around(k, &w, value ? value->data : zero);
    return ZC_OK;
}

static int64_t modulo(int64_t a, int64_t n)
{
    return a % n < 0 ? a % n + n : a % n;
}

/* The element of [0, n) that extends to position `at`. */
static int64_t extend(char mode, int64_t at, int64_t n)
{
    if (mode == 'e') return at < 0 ? 0 : at >= n ? n - 1 : at;
    if (mode == 'w' || n == 1) return modulo(at, n);
    int64_t m = modulo(at, 2 * (n - 1));
    return m < n ? m : 2 * (n - 1) - m;
}

typedef struct extension {
    zc_tensor *out;
    const zc_tensor *in;
    const int64_t
        *map[ZC_MAX_RANK]; /* offset of the input's element for each index of the output */
} extension;

/* Rows [begin, end) of the output. */
static void extend_rows(void *arg, int64_t begin, int64_t end)
{
    const extension *e = arg;
    int last = e->out->rank - 1;
    int64_t len = e->out->dims[last];
    for (int64_t row = begin; row < end; row++) {
        int64_t from = 0, rest = row;
        for (int d = last - 1; d >= 0; d--) {
            from += e->map[d][rest % e->out->dims[d]];
            rest /= e->out->dims[d];
        }
        zc_copy_gather(zc_elem_size(e->out), len, zc_elem_at(e->out, row * len),
                       zc_elem_at(e->in, from), e->map[last]);
    }
}

/* The map of one axis: negative pads crop, then the rest is extended. */
static zc_status map_axis(zc_kctx *k, const pads *p, int axis, char mode, int64_t stride,
                          const int64_t **out)
{
    int64_t crop = p->begin[axis] < 0 ? -p->begin[axis] : 0;
    int64_t lead = p->begin[axis] > 0 ? p->begin[axis] : 0;
    int64_t n = k->in[0].dims[axis] - crop + (p->end[axis] < 0 ? p->end[axis] : 0);
    int64_t len = k->out[0].dims[axis];
    if (n <= 0) return zc_kernel_fail(k, "axis %d has no elements to extend", axis);
    int64_t *map = zc_scratch_get(k->scratch, (size_t)len * sizeof *map);
    if (!map) return zc_fail_nomem(k->diag, "pad index", (size_t)len * sizeof *map);
    for (int64_t i = 0; i < len; i++) map[i] = (crop + extend(mode, i - lead, n)) * stride;
    *out = map;
    return ZC_OK;
}

zc_status zc_k_Pad(zc_kctx *k)
{
    char mode = ZC_ATTRS(k, Pad)->mode[0];
    zc_tensor *out = &k->out[0];
    pads p;
    ZC_TRY(read_pads(k, &p));
    int64_t n = zc_tensor_numel(out), strides[ZC_MAX_RANK];
    if (n == 0) return ZC_OK;
    if (mode == 'c' || out->rank == 0) return pad_constant(k, &p);
    extension e = {.out = out, .in = &k->in[ZC_IN_Pad_x]};
    zc_strides(&k->in[ZC_IN_Pad_x], strides);
    for (int i = 0; i < out->rank; i++) ZC_TRY(map_axis(k, &p, i, mode, strides[i], &e.map[i]));
    int64_t len = out->dims[out->rank - 1];
    zc_parallel(k, n / len, 16384 / len + 1, extend_rows, &e);
    return ZC_OK;
}

/* ---- CenterCropPad ---- */

/* Halves of an odd difference are rounded down, for the crop as for the pad. */
zc_status zc_k_CenterCropPad(zc_kctx *k)
{
    static const unsigned char zero[16];
    const zc_tensor *in = &k->in[0];
    zc_tensor *out = &k->out[0];
    const zc_ints *axes = &ZC_ATTRS(k, CenterCropPad)->axes;
    int64_t dims[ZC_MAX_RANK];
    window w;
    memcpy(dims, in->dims, sizeof dims);
    bool given = ZC_ATTR_GIVEN(CenterCropPad, ZC_ATTRS(k, CenterCropPad), axes) || axes->n;
    ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[1]), given ? axes->n : in->rank,
                           "number of lengths"));
    for (int i = 0; i < (given ? axes->n : in->rank); i++)
        dims[given ? zc_axis(axes->v[i], in->rank) : i] = zc_geti(&k->in[1], i);
    ZC_TRY(zc_check_shape(k, out, in->rank, dims, "the output"));
    for (int i = 0; i < in->rank; i++) {
        int64_t more = out->dims[i] - in->dims[i];
        window_axis(&w, i, in->dims[i], out->dims[i], more >= 0 ? more / 2 : -(-more / 2));
    }
    if (zc_tensor_numel(out)) fill_around(k, &w, zero);
    return ZC_OK;
}

/* ---- ReverseSequence ---- */

/* Elements [first, first+n) of the time axis for one batch entry, in reverse order when asked. */
static void copy_times(zc_kctx *k, int64_t entry, int64_t first, int64_t n, bool reverse)
{
    const zc_tensor *in = &k->in[0];
    int time = (int)ZC_ATTRS(k, ReverseSequence)->time_axis;
    int64_t s[ZC_MAX_RANK];
    zc_copy c = {0};
    zc_strides(in, s);
    int64_t to = entry * s[1 - time] + first * s[time];
    int64_t from = to + (reverse ? (n - 1) * s[time] : 0);
    zc_copy_axis(&c, n, s[time], reverse ? -s[time] : s[time]);
    for (int i = 2; i < in->rank; i++) zc_copy_axis(&c, in->dims[i], s[i], s[i]);
    if (n) zc_copy_run(k, &c, zc_elem_size(in), zc_elem_at(&k->out[0], to), zc_elem_at(in, from));
}

zc_status zc_k_ReverseSequence(zc_kctx *k)
{
    const zc_tensor *in = &k->in[0], *lens = &k->in[1];
    int time = (int)ZC_ATTRS(k, ReverseSequence)->time_axis;
    int64_t batch = in->dims[1 - time], times = in->dims[time];
    ZC_TRY(zc_check_length(k, zc_tensor_numel(lens), batch, "number of sequence lengths"));
    for (int64_t i = 0; i < batch; i++) {
        int64_t n = zc_geti(lens, i);
        if (n < 0 || n > times) {
            return zc_kernel_fail(k, "sequence length %lld out of range (got %lld, need [0, %lld])",
                                  (long long)i, (long long)n, (long long)times);
        }
        if (zc_tensor_numel(in) == 0) continue;
        copy_times(k, i, 0, n, true);
        copy_times(k, i, n, times - n, false);
    }
    return ZC_OK;
}
