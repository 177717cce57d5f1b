#include "abi/fourier.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

zc_status zc_gen_fourier(zc_gen *g)
{
    zc_dtype type = zc_gen_in_type(g, 0);
    zc_dtype window = g->step->op == ZC_OP_STFT ? zc_gen_in_type(g, 2) : ZC_NONE;
    if (!zc_dtype_is_float(type) || !zc_kernel_type(type) || zc_gen_out_type(g, 0) != type)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(type));
    if (window != ZC_NONE && !zc_kernel_type(window))
        return zc_gen_decline(g, "element type %s of the window", zc_dtype_name(window));
    zc_gen_type(g, "TYPE", type);
    zc_gen_type(g, "WINDOW", window == ZC_NONE ? type : window);
    zc_gen_define(g, "C", "%s", type == ZC_F64 ? "f64" : "f32");
    return ZC_OK;
}

/* ---- the launch ---- */

enum { BLOCK = 256, SMEM_MOST = 96 * 1024, LENGTH_MOST = 1 << 30, BLOCK_WORK = 1024 };
#define WORK_MOST ((int64_t)1 << 28) /* bytes of each buffer of long lines */

/* ---- the plan ---- */

static void add_stage(struct zc_fourier_params *p, int radix)
{
    p->radix[p->stages++] = radix;
}

/* Fours first, then primes; at most 30 factors. */
static void factor(struct zc_fourier_params *p)
{
    int rest = p->n;
    for (; rest % 4 == 0; rest /= 4) add_stage(p, 4);
    for (int f = 2; f <= rest / f; f++)
        for (; rest % f == 0; rest /= f) add_stage(p, f);
    if (rest > 1) add_stage(p, rest);
}

static int64_t pair_bytes(const zc_launch *l)
{
    return l->in[0].dtype == ZC_F64 ? 2 * sizeof(double) : 2 * sizeof(float);
}

/* ---- lines that fit in shared memory ---- */

static zc_status run_short(zc_launch *l, struct zc_fourier_params *p)
{
    int64_t line = 2 * pair_bytes(l) * p->n, each = (p->lines + l->sm_count - 1) / l->sm_count;
    int64_t lines = BLOCK_WORK / p->n;
    if (lines > each) lines = each;
    p->per_block = (int)(lines > 0 ? lines : 1);
    zc_dim3 grid = {zc_launch_blocks(p->lines, p->per_block, 0), 1, 1};
    return zc_launch_kernel(l, 1, grid, BLOCK, (uint32_t)(line * p->per_block), p, sizeof *p);
}

/* ---- lines that do not ---- */

static zc_status run_chunk(zc_launch *l, struct zc_fourier_params p)
{
    zc_dim3 grid = zc_move_grid(l, p.lines * p.n);
    ZC_TRY(zc_launch_kernel(l, 2, grid, BLOCK, 0, &p, sizeof p));
    p.span_before = 1;
    for (int s = 0; s < p.stages; s++) {
        p.radix_now = p.radix[s];
        ZC_TRY(zc_launch_kernel(l, 3, grid, BLOCK, 0, &p, sizeof p));
        p.span_before *= p.radix_now;
        void *swap = p.work[0];
        p.work[0] = p.work[1];
        p.work[1] = swap;
    }
    return zc_launch_kernel(l, 4, zc_move_grid(l, p.lines * p.to.count), BLOCK, 0, &p, sizeof p);
}

static zc_status run_long(zc_launch *l, struct zc_fourier_params *p)
{
    int64_t lines = p->lines, line = pair_bytes(l) * p->n, chunk = WORK_MOST / line;
    if (chunk > lines) chunk = lines;
    if (chunk < 1) chunk = 1;
    for (int i = 0; i < 2; i++) ZC_TRY(zc_launch_scratch(l, (size_t)(chunk * line), &p->work[i]));
    for (; p->first < lines; p->first += p->lines) {
        p->lines = lines - p->first < chunk ? lines - p->first : chunk;
        ZC_TRY(run_chunk(l, *p));
    }
    return ZC_OK;
}

static zc_status run(zc_launch *l, struct zc_fourier_params *p, int64_t n, int64_t lines)
{
    if (n > LENGTH_MOST)
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject,
                       "transform is too long for the GPU (got %lld, need at most %d)",
                       (long long)n, LENGTH_MOST);
    p->n = (int)n;
    p->lines = lines;
    factor(p);
    ZC_TRY(zc_launch_scratch(l, (size_t)(n * pair_bytes(l)), &p->roots));
    ZC_TRY(zc_launch_kernel(l, 0, zc_move_grid(l, n), BLOCK, 0, p, sizeof *p));
    return 2 * n * pair_bytes(l) <= SMEM_MOST ? run_short(l, p) : run_long(l, p);
}

/* ---- the operations ---- */

static zc_status read_scalar(zc_launch *l, int i, int64_t *v)
{
    int n;
    ZC_TRY(zc_launch_ints(l, i, v, 1, &n));
    return n == 0 ? zc_launch_fail(l, "input %d is empty", i) : ZC_OK;
}

static zc_status check(zc_launch *l, int64_t got, int64_t low, int64_t high, const char *what)
{
    if (got >= low && got <= high) return ZC_OK;
    return zc_launch_fail(l, "%s out of range (got %lld, need [%lld, %lld])", what, (long long)got,
                          (long long)low, (long long)high);
}

static int clamp(int64_t v)
{
    return (int)(v < LENGTH_MOST ? v : LENGTH_MOST);
}

static zc_status dft(zc_launch *l)
{
    const zc_attrs_DFT *a = ZC_ATTRS(l, DFT);
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    bool mirror = a->inverse && a->onesided, half = a->onesided && !a->inverse;
    int64_t axis = -2, last = x->rank - 1;
    ZC_TRY(read_scalar(l, 2, &axis));
    if (axis < 0) axis += x->rank;
    ZC_TRY(check(l, axis, 0, last - 1, "axis"));
    int64_t n = mirror ? y->dims[axis] : x->dims[axis];
    int64_t outer = zc_dims_span(x->dims, 0, (int)axis);
    int64_t inner = zc_dims_span(x->dims, (int)axis + 1, (int)last);
    ZC_TRY(read_scalar(l, 1, &n));
    ZC_TRY(check(l, x->dims[last], 1, 2, "the last dimension"));
    ZC_TRY(check(l, y->dims[last], mirror ? 1 : 2, mirror ? 1 : 2, "the result's last dimension"));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    ZC_TRY(check(l, n, 1, INT64_MAX / 64, "dft_length"));
    ZC_TRY(zc_move_check_length(l, y->dims[axis], half ? n / 2 + 1 : n, "the result's axis"));
    struct zc_fourier_params p = {.in = x->data,
                                  .out = y->data,
                                  .mirror = mirror,
                                  .inverse = a->inverse != 0,
                                  .scale = a->inverse ? 1.0 / (double)n : 1};
    p.from = (struct zc_fourier_side){.group = inner,
                                      .outer = x->dims[axis] * inner,
                                      .line = 1,
                                      .step = inner,
                                      .parts = (int)x->dims[last],
                                      .count = clamp(x->dims[axis])};
    p.to = (struct zc_fourier_side){.group = inner,
                                    .outer = y->dims[axis] * inner,
                                    .line = 1,
                                    .step = inner,
                                    .parts = (int)y->dims[last],
                                    .count = clamp(y->dims[axis])};
    return run(l, &p, n, outer * inner);
}

static zc_status stft(zc_launch *l)
{
    const zc_tensor *x = &l->in[0], *y = &l->out[0];
    bool window = zc_launch_has(l, 2);
    int64_t step = 0, n = window ? l->in[2].dims[0] : x->dims[1], frames = y->dims[1], reach;
    ZC_TRY(read_scalar(l, 1, &step));
    ZC_TRY(read_scalar(l, 3, &n));
    ZC_TRY(check(l, x->dims[2], 1, 2, "the last dimension"));
    if (zc_tensor_numel(y) == 0) return ZC_OK;
    ZC_TRY(check(l, step, 1, INT64_MAX, "frame_step"));
    ZC_TRY(check(l, n, 1, x->dims[1], "frame_length"));
    if (window) ZC_TRY(zc_move_check_length(l, l->in[2].dims[0], n, "the window"));
    if (!zc_mul_i64(frames - 1, step, &reach) || reach > x->dims[1] - n)
        return zc_launch_fail(l, "frames reach beyond the signal (got %lld frames)",
                              (long long)frames);
    bool half = ZC_ATTRS(l, STFT)->onesided != 0;
    ZC_TRY(zc_move_check_length(l, y->dims[2], half ? n / 2 + 1 : n, "the result's axis"));
    struct zc_fourier_params p = {
        .in = x->data, .window = window ? l->in[2].data : NULL, .out = y->data, .scale = 1};
    p.from = (struct zc_fourier_side){.group = frames,
                                      .outer = x->dims[1],
                                      .line = step,
                                      .step = 1,
                                      .parts = (int)x->dims[2],
                                      .count = clamp(n)};
    p.to = (struct zc_fourier_side){.group = frames,
                                    .outer = frames * y->dims[2],
                                    .line = y->dims[2],
                                    .step = 1,
                                    .parts = 2,
                                    .count = clamp(y->dims[2])};
    return run(l, &p, n, x->dims[0] * frames);
}

zc_status zc_launch_fourier(zc_launch *l)
{
    return l->op == ZC_OP_DFT ? dft(l) : stft(l);
}
