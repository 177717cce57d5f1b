#include "kernels/matmul.h"

const char *const zc_config_gemm_simt[] = {"rows", "side", "split", NULL};

/* Bytes of what is multiplied, and of a sum. */
static int number_bytes(zc_dtype dtype)
{
    return zc_dtype_bits(dtype) == 64 ? 8 : 4;
}

static size_t sum_bytes(const zc_matmul_form *form, zc_dtype dtype)
{
    return zc_matmul_scales_ints(form, dtype) ? 8 : (size_t)number_bytes(dtype);
}

/* ---- the specialisation ---- */

/* Bytes of the four tiles in gemm_simt.cu. */
static uint32_t tile_bytes(int lines, int number)
{
    int vector = number == 8 ? 2 : 4, depth = ZC_GEMM_THREADS * vector / lines;
    return (uint32_t)(4 * depth * (lines + 16 / number) * number);
}

static void choose(zc_gen *g, const zc_matmul_form *form, zc_dtype dtype)
{
    size_t sum = sum_bytes(form, dtype);
    int large = sum == 8 ? 64 : 128;
    const zc_matmul_tiling tiling = {.small = large / 2, .large = large, .sum_bytes = sum};
    zc_gen_matmul_tiles(g, form, &tiling);
    if (!g->config[ZC_MM_SIDE]) return;
    g->threads = ZC_GEMM_THREADS;
    g->smem = tile_bytes((int)g->config[ZC_MM_SIDE], number_bytes(dtype));
}

zc_status zc_gen_gemm_simt(zc_gen *g)
{
    zc_matmul_form form;
    ZC_TRY(zc_gen_matmul_form(g, &form));
    if (g->declined[0]) return ZC_OK;
    zc_dtype dtype = zc_gen_in_type(g, form.a);
    if (!zc_kernel_type(dtype)) return zc_gen_decline(g, "element type %s", zc_dtype_name(dtype));
    if (form.activation && !zc_dtype_is_float(dtype))
        return zc_gen_decline(g, "activation of element type %s", zc_dtype_name(dtype));
    choose(g, &form, dtype);
    return zc_gen_matmul_spec(g, &form);
}

/* ---- the launch ---- */

zc_status zc_launch_gemm_simt(zc_launch *l)
{
    zc_matmul_form form;
    zc_dtype dtype = l->in[0].dtype;
    int vector = number_bytes(dtype) == 8 ? 2 : 4;
    ZC_TRY(zc_matmul_form_launch(l, &form));
    return zc_matmul_launch(l, vector * (int)zc_dtype_bits(dtype) / 8, sum_bytes(&form, dtype));
}
