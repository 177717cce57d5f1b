/* PackedLinear of many rows on Hopper (packed_dense_sm90.cu): its codes become floats in memory of
 * the step alone, which are multiplied as those of Linear and GatedLinear are, by gemm_sm90.c. */
#include <stdlib.h>
#include <string.h>

#include "abi/packed_dense_sm90.h"
#include "kernels/packed_linear.h"
#include "kernels/sm90.h"
#include "op/half.h"

const char *const zc_config_packed_dense_sm90[] = {ZC_SM90_CONFIG};

enum { UNPACKS = 2, NORMALISES = 3 /* entries */, OPERANDS = 6 + ZC_EPILOGUE_INPUTS };

/* From here on it is faster than codes that are read again for each 16 rows: two products of 4096 x
 * 4096 by 4 bits, rows not certain, ms on an H100: 65 rows 0.43 and 0.21, 128 0.36 and 0.32, 512
 * 0.55 and 1.12. */
enum { MANY_ROWS = 257 };

/* ---- the specialisation ---- */

/* The program with one value more, a matrix of floats. The caller frees its values. */
static zc_status with_matrix(zc_gen *g, const zc_dim *dims, zc_program *out)
{
    const zc_program *p = g->program;
    zc_pvalue *values = zc_calloc(p->nvalues + 1, sizeof *values);
    if (!values) return zc_fail_nomem(g->diag, "values", p->nvalues);
    memcpy(values, p->values, p->nvalues * sizeof *values);
    values[p->nvalues] = (zc_pvalue){.kind = ZC_P_STEP,
                                     .name = "codes",
                                     .dtype = zc_gen_in_type(g, ZC_IN_PackedLinear_x),
                                     .rank = 2,
                                     .dims = dims};
    *out = *p;
    out->values = values;
    out->nvalues++;
    return ZC_OK;
}

/* As if the matrix, the program's last value, were there: see zc_matmul_form_of. */
static zc_status gen_with(zc_gen *g, const zc_program *program, bool gated)
{
    zc_pstep step = *g->step;
    zc_gen inner = *g;
    uint32_t in[OPERANDS];
    for (uint32_t i = 0; i < step.nin && i < OPERANDS; i++) in[i] = step.in[i];
    in[ZC_IN_PackedLinear_w] = program->nvalues - 1;
    if (gated) in[ZC_IN_PackedLinear_scale] = program->nvalues - 1;
    step.in = in;
    inner.program = program;
    inner.step = &step;
    const zc_status status = zc_gen_gemm_sm90(&inner);
    inner.program = g->program;
    inner.step = g->step;
    inner.pitched = inner.mapped = 0; /* rows are read by another kernel first */
    *g = inner;
    return status;
}

static zc_status gen_product(zc_gen *g, const zc_packed_sizes *s)
{
    const zc_dim dims[] = {zc_dim_const(s->gated ? s->w.n / 2 : s->w.n), zc_dim_const(s->w.k)};
    zc_program program;
    ZC_TRY(with_matrix(g, dims, &program));
    const zc_status status = gen_with(g, &program, s->gated);
    free((void *)(uintptr_t)program.values);
    return status;
}

zc_status zc_gen_packed_dense_sm90(zc_gen *g)
{
    zc_packed_sizes s;
    ZC_TRY(zc_gen_packed_sizes(g, &s));
    if (g->declined[0]) return ZC_OK;
    const bool measures = g->candidate || g->regardless;
    if (s.m_low < (measures ? ZC_SM90_ROWS : MANY_ROWS)) return zc_gen_decline(g, "few rows");
    ZC_TRY(gen_product(g, &s));
    if (!g->declined[0]) zc_gen_packed_codes(g, &s);
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status take_scratch(zc_launch *l, int64_t lines, int64_t k, void **out)
{
    int64_t count;
    size_t bytes;
    if (!zc_mul_i64(lines, k, &count) || !zc_dtype_bytes(l->in[0].dtype, count, &bytes))
        return zc_fail(l->diag, ZC_ERR_LIMIT, l->subject, "product too large (got %lld x %lld)",
                       (long long)lines, (long long)k);
    return zc_launch_scratch(l, bytes, out);
}

/* Of n matrix columns of k, all or two halves in turn. */
static zc_status unpack(zc_launch *l, const struct zc_packed_linear_params *of, zc_tensor w[2])
{
    enum { THREADS = 256, BLOCKS = 8 /* of a multiprocessor */ };
    const zc_tensor *codes = &l->in[ZC_IN_PackedLinear_w];
    const bool gated = *ZC_ATTRS(l, PackedLinear)->activation != 0;
    struct zc_packed_unpack_params p = {.w = of->w, .scale = of->scale, .zero = of->zero};
    zc_packed form;
    if (!zc_packed_of(codes, &form)) return ZC_OK; /* zc_launch_packed has looked */
    p.pieces = form.n * form.pieces;
    p.alpha = of->alpha;
    p.most = (float)zc_half_max(l->in[0].dtype);
    for (int i = 0; i < 1 + gated; i++) {
        w[i] = (zc_tensor){
            .dtype = l->in[0].dtype, .rank = 2, .dims = {gated ? form.n / 2 : form.n, form.k}};
        ZC_TRY(take_scratch(l, w[i].dims[0], form.k, &w[i].data));
    }
    p.first = w[0].data;
    p.second = gated ? w[1].data : NULL;
    zc_dim3 grid = {zc_launch_blocks(p.pieces, THREADS, BLOCKS * l->sm_count), 1, 1};
    return zc_launch_kernel(l, UNPACKS, grid, THREADS, 0, &p, sizeof p);
}

static zc_status normalise(zc_launch *l, const struct zc_packed_linear_params *of, zc_tensor *x)
{
    enum { WARPS = 8 };
    const int64_t k = x->dims[x->rank - 1];
    struct zc_packed_rows_params p = {
        .x = of->x, .gain = of->gain, .m = of->m, .epsilon = of->epsilon};
    if (!of->gain) return ZC_OK;
    ZC_TRY(take_scratch(l, of->m, k, &p.to));
    x->data = p.to;
    zc_dim3 grid = {zc_launch_blocks(of->m, WARPS, 0), 1, 1};
    return zc_launch_kernel(l, NORMALISES, grid, WARPS * 32, 0, &p, sizeof p);
}

zc_status zc_launch_packed_dense_sm90(zc_launch *l)
{
    struct zc_packed_linear_params p;
    zc_tensor in[OPERANDS], w[2] = {{.dtype = ZC_NONE}};
    zc_launch inner = *l;
    ZC_TRY(zc_launch_packed(l, &p));
    if (p.m == 0) return ZC_OK;
    ZC_TRY(unpack(l, &p, w));
    for (int i = 0; i < l->nin && i < OPERANDS; i++) in[i] = l->in[i];
    in[ZC_IN_PackedLinear_w] = w[0];
    if (w[1].data) in[ZC_IN_PackedLinear_scale] = w[1];
    ZC_TRY(normalise(l, &p, &in[ZC_IN_PackedLinear_x]));
    inner.in = in;
    inner.in_pitch = inner.out_pitch = NULL;
    return zc_launch_gemm_sm90(&inner);
}
