#include "cpu/rotary.h"

#include "cpu/attention.h"
#include "cpu/copy.h"

static bool all_f32(const zc_rotary *r, const zc_tensor *x, const zc_tensor *y)
{
    return x->dtype == ZC_F32 && y->dtype == ZC_F32 && r->cos->dtype == ZC_F32 &&
           r->sin->dtype == ZC_F32;
}

static void rotate_f32(const zc_rotary *r, int64_t row, const float *x, float *y, int64_t size)
{
    const float *cos = (const float *)r->cos->data + row * r->half;
    const float *sin = (const float *)r->sin->data + row * r->half;
    int64_t step = r->interleaved ? 2 : 1, apart = r->interleaved ? 1 : r->half;
    for (int64_t i = 0; i < r->half; i++) {
        float a = x[i * step], b = x[i * step + apart];
        y[i * step] = a * cos[i] - b * sin[i];
        y[i * step + apart] = a * sin[i] + b * cos[i];
    }
    for (int64_t i = 2 * r->half; i < size; i++) y[i] = x[i];
}

void zc_rotate(const zc_rotary *r, int64_t row, const zc_tensor *x, int64_t x_at, zc_tensor *y,
               int64_t y_at, int64_t size)
{
    if (all_f32(r, x, y)) {
        rotate_f32(r, row, (const float *)x->data + x_at, (float *)y->data + y_at, size);
        return;
    }
    for (int64_t i = 0; i < r->half; i++) {
        int64_t re = r->interleaved ? 2 * i : i, im = r->interleaved ? 2 * i + 1 : i + r->half;
        double c = zc_get(r->cos, row * r->half + i), s = zc_get(r->sin, row * r->half + i);
        double a = zc_get(x, x_at + re), b = zc_get(x, x_at + im);
        zc_put(y, y_at + re, a * c - b * s);
        zc_put(y, y_at + im, a * s + b * c);
    }
    for (int64_t i = 2 * r->half; i < size; i++) zc_put(y, y_at + i, zc_get(x, x_at + i));
}

/* One operation: which row of the tables each position uses. */
typedef struct job {
    zc_rotary r;
    zc_heads x;
    zc_tensor *y;
    int64_t batch, heads, length, size;
    const zc_tensor *ids; /* of [batch, length], or one: the first position; NULL: in order */
    bool ids_first;
    bool ids_each; /* without ids: the tables have a row for every position of every sequence */
} job;

static int64_t row_of(const job *j, int64_t b, int64_t s)
{
    if (!j->ids) return j->ids_each ? b * j->length + s : s;
    if (!j->ids_first) return zc_geti(j->ids, b * j->length + s);
    int64_t first = zc_geti(j->ids, 0);
    return first > INT64_MAX - s ? -1 : first + s;
}

static void positions(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    for (int64_t p = begin; p < end; p++) {
        int64_t b = p / j->length, s = p % j->length, row = row_of(j, b, s);
        for (int64_t h = 0; h < j->heads; h++) {
            int64_t at = b * j->x.batch + h * j->x.head + s * j->x.pos;
            zc_rotate(&j->r, row, j->x.t, at, j->y, at, j->size);
        }
    }
}

static zc_status check_rows(zc_kctx *k, const job *j)
{
    int64_t rows = j->r.half ? zc_tensor_numel(j->r.cos) / j->r.half : INT64_MAX;
    for (int64_t p = 0; p < j->batch * j->length; p++) {
        int64_t row = row_of(j, p / j->length, p % j->length);
        if (row < 0 || row >= rows)
            return zc_kernel_fail(k, "position out of range (got %lld, need [0, %lld])",
                                  (long long)row, (long long)rows - 1);
    }
    return ZC_OK;
}

/* heads counts for a 3-D input; 0: as many as the tables make of it. */
static zc_status rotary(zc_kctx *k, job *j, int64_t heads, int64_t dim)
{
    const zc_tensor *x = &k->in[0];
    int64_t cols = j->r.cos->dims[j->r.cos->rank - 1];
    j->y = &k->out[0];
    j->batch = x->dims[0];
    if (x->rank == 4) {
        j->heads = x->dims[1];
        j->length = x->dims[2];
        j->size = x->dims[3];
        j->x = zc_heads_4d(x, j->heads, j->length, j->size);
    } else {
        j->length = x->dims[1];
        j->size = heads ? x->dims[2] / heads : 2 * cols;
        j->heads = j->size ? x->dims[2] / j->size : 0;
        j->x = zc_heads_3d(x, j->heads, j->length, j->size);
    }
    j->r.half = dim ? dim / 2 : j->size / 2;
    if (zc_tensor_numel(x) == 0) return ZC_OK;
    ZC_TRY(zc_check_length(k, cols, j->r.half, "size of the rows of cos_cache"));
    ZC_TRY(zc_check_shape(k, j->r.sin, j->r.cos->rank, j->r.cos->dims, "sin_cache"));
    ZC_TRY(zc_check_length(k, j->batch * j->heads * j->length * j->size, zc_tensor_numel(x),
                           "size of the heads"));
    if (2 * j->r.half > j->size)
        return zc_kernel_fail(k, "more elements to rotate than a head has (got %lld and %lld)",
                              (long long)j->r.half * 2, (long long)j->size);
    if (j->ids && !j->ids_first)
        ZC_TRY(zc_check_length(k, zc_tensor_numel(j->ids), j->batch * j->length,
                               "number of position ids"));
    ZC_TRY(check_rows(k, j));
    zc_parallel(k, j->batch * j->length, 16, positions, j);
    return ZC_OK;
}

zc_status zc_k_RotaryEmbedding(zc_kctx *k)
{
    const zc_attrs_RotaryEmbedding *a = ZC_ATTRS(k, RotaryEmbedding);
    job j = {.r = {&k->in[ZC_IN_RotaryEmbedding_cos], &k->in[ZC_IN_RotaryEmbedding_sin], 0,
                   a->interleaved != 0}};
    j.ids = zc_input(k, ZC_IN_RotaryEmbedding_positions);
    j.ids_each = !j.ids && k->in[ZC_IN_RotaryEmbedding_cos].dims[0] != 1;
    return rotary(k, &j, a->num_heads, a->rotary_embedding_dim);
}

zc_status zc_k_MsRotaryEmbedding(zc_kctx *k)
{
    const zc_attrs_MsRotaryEmbedding *a = ZC_ATTRS(k, MsRotaryEmbedding);
    job j = {.r = {&k->in[ZC_IN_MsRotaryEmbedding_cos], &k->in[ZC_IN_MsRotaryEmbedding_sin], 0,
                   a->interleaved != 0},
             .ids = &k->in[ZC_IN_MsRotaryEmbedding_positions]};
    j.ids_first = zc_tensor_numel(j.ids) == 1;
    return rotary(k, &j, a->num_heads, a->rotary_embedding_dim);
}
