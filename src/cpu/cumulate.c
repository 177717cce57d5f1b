/* Running sums and products along an axis. */
#include "cpu/index.h"

/* Positions across the axis that are run together, so that memory is read in order. */
#define BLOCK 64

typedef struct cumulate {
    const zc_tensor *in;
    zc_tensor *out;
    zc_axis_view view;
    int64_t blocks; /* of BLOCK positions within view.inner */
    bool product, exclusive, reverse;
} cumulate;

static double join_f(const cumulate *c, double a, double b)
{
    return c->product ? a * b : a + b;
}

/* Wraps to the element type when it is stored. */
static uint64_t join_i(const cumulate *c, uint64_t a, uint64_t b)
{
    return c->product ? a * b : a + b;
}

/* One element of each of n lines; the input may be the output. */
static void step_floats(const cumulate *c, int64_t at, int64_t n, double *sum)
{
    for (int64_t j = 0; j < n; j++) {
        double next = join_f(c, sum[j], zc_get(c->in, at + j));
        zc_put(c->out, at + j, c->exclusive ? sum[j] : next);
        sum[j] = next;
    }
}

static void step_ints(const cumulate *c, int64_t at, int64_t n, uint64_t *sum)
{
    for (int64_t j = 0; j < n; j++) {
        uint64_t next = join_i(c, sum[j], (uint64_t)zc_geti(c->in, at + j));
        zc_puti(c->out, at + j, (int64_t)(c->exclusive ? sum[j] : next));
        sum[j] = next;
    }
}

static void cumulate_blocks(void *arg, int64_t begin, int64_t end)
{
    const cumulate *c = arg;
    bool floats = zc_dtype_is_float(c->in->dtype);
    for (int64_t unit = begin; unit < end; unit++) {
        int64_t o = unit / c->blocks, j = unit % c->blocks * BLOCK;
        int64_t n = c->view.inner - j < BLOCK ? c->view.inner - j : BLOCK;
        double f[BLOCK];
        uint64_t u[BLOCK];
        for (int64_t i = 0; i < BLOCK; i++) {
            f[i] = c->product;
            u[i] = c->product;
        }
        for (int64_t step = 0; step < c->view.length; step++) {
            int64_t i = c->reverse ? c->view.length - 1 - step : step;
            int64_t at = (o * c->view.length + i) * c->view.inner + j;
            if (floats)
                step_floats(c, at, n, f);
            else
                step_ints(c, at, n, u);
        }
    }
}

static zc_status run(zc_kctx *k, cumulate *c)
{
    int64_t axis;
    c->in = &k->in[0];
    c->out = &k->out[0];
    ZC_TRY(zc_check_length(k, zc_tensor_numel(&k->in[1]), 1, "number of axes"));
    ZC_TRY(zc_index_read(k, &k->in[1], 0, c->in->rank, &axis));
    ZC_TRY(zc_check_shape(k, c->out, c->in->rank, c->in->dims, "the output"));
    if (zc_tensor_numel(c->in) == 0) return ZC_OK;
    c->view = zc_axis_view_of(c->in, (int)axis);
    c->blocks = (c->view.inner - 1) / BLOCK + 1;
    zc_parallel(k, c->view.outer * c->blocks, 4096 / c->view.length + 1, cumulate_blocks, c);
    return ZC_OK;
}

zc_status zc_k_CumSum(zc_kctx *k)
{
    const zc_attrs_CumSum *a = ZC_ATTRS(k, CumSum);
    cumulate c = {.exclusive = a->exclusive != 0, .reverse = a->reverse != 0};
    return run(k, &c);
}

zc_status zc_k_CumProd(zc_kctx *k)
{
    const zc_attrs_CumProd *a = ZC_ATTRS(k, CumProd);
    cumulate c = {.product = true, .exclusive = a->exclusive != 0, .reverse = a->reverse != 0};
    return run(k, &c);
}
