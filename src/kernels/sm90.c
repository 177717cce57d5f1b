/* What the families of products on Hopper share: which steps they serve, and their operands as the
 * copy engine sees them. */
#include "kernels/sm90.h"

/* ---- the specialisation ---- */

bool zc_sm90_in_pieces(int64_t n)
{
    return n > 0 && n % 8 == 0;
}

int zc_sm90_piece(int64_t n, zc_dtype dtype)
{
    int bytes = (int)zc_dtype_bits(dtype) / 8, piece = bytes;
    while (piece < 16 && n * bytes % (2 * piece) == 0) piece *= 2;
    return bytes == 2 && piece == 16 ? 0 : piece;
}

bool zc_sm90_sends(int64_t n, zc_dtype dtype, const int64_t *config)
{
    if (zc_dtype_bits(dtype) != 8) return !zc_sm90_piece(n, dtype);
    return !zc_sm90_byte_piece(n, dtype) && config[ZC_SM90_TILE_N] % ZC_SM90_LINE == 0 &&
           config[ZC_SM90_FUSED_TILE] < 0;
}

int zc_sm90_byte_piece(int64_t n, zc_dtype dtype)
{
    int piece = zc_sm90_piece(n, dtype);
    return zc_dtype_bits(dtype) == 8 && piece == 16 ? 0 : piece;
}

/* A thread's piece of 16 bytes is of 64 columns; by 128 its two are side by side, and a warp's
 * pieces of 8 lines lie in as many banks. */
int zc_sm90_dealt(int64_t n, zc_dtype y, const int64_t *config)
{
    enum { LEAST = 64, HAND = 32 };
    const int64_t lines = config[ZC_SM90_TILE_N] / config[ZC_SM90_CLUSTER];
    if (zc_dtype_bits(y) != 8 || zc_sm90_byte_piece(n, y)) return 0;
    return lines % ZC_SM90_LINE == 0 && n % HAND == 0 ? ZC_SM90_LINE : LEAST;
}

void zc_gen_dealt(zc_gen *g, const zc_sm90_problem *p)
{
    const int dealt = zc_sm90_dealt(p->n, zc_gen_out_type(g, 0), g->config);
    const bool crossed = p->crossed && g->config[ZC_SM90_CROSSED];
    if (dealt && !crossed) zc_gen_define(g, "DEALT", "%d", dealt);
}

int zc_sm90_bytes_dealt(int64_t n, zc_dtype y, const int64_t *config)
{
    return config[ZC_SM90_CROSSED] ? ZC_SM90_CROSSED_BY : zc_sm90_dealt(n, y, config);
}

typedef struct axis {
    int64_t size, stride; /* of lines */
    uint32_t box;
} axis;

/* Three axes of lines in place of one. */
static void split_lines(zc_tensor_box *b, const axis *axes)
{
    const int64_t line = b->strides[1];
    b->rank = 5;
    b->dims[4] = b->dims[2];
    b->strides[4] = b->strides[2];
    b->box[4] = b->box[2];
    for (int i = 0; i < 3; i++) {
        b->dims[1 + i] = axes[i].size;
        b->strides[1 + i] = axes[i].stride * line;
        b->box[1 + i] = axes[i].box;
    }
}

void zc_sm90_deal(zc_tensor_box *b, int lines, int dealt)
{
    b->box[1] = (uint32_t)lines;
    if (!dealt) return;
    const int64_t n = b->dims[1], hand = dealt / 4, half = dealt / 2;
    const axis hands[] = {{2, 1, 2}, {n / hand, hand, 4}, {hand / 2, 2, (uint32_t)hand / 2}};
    const axis halves[] = {{half, 2, (uint32_t)half},
                           {2, 1, 2},
                           {n / ZC_SM90_CROSSED_BY, dealt, (uint32_t)lines / ZC_SM90_CROSSED_BY}};
    split_lines(b, dealt == ZC_SM90_CROSSED_BY ? halves : hands);
}

int64_t zc_sm90_gemv_blocks(int64_t n, int cols, int parts, int64_t places)
{
    int64_t tiles = zc_ceil_div(n, cols);
    return parts == 1 && tiles > places ? places : tiles * parts;
}

/* The batch is one axis, which both operands have, or none. */
static bool same_batch(const zc_pvalue *a, const zc_pvalue *b)
{
    if (a->rank != b->rank) return false;
    for (int d = 0; d + 2 < a->rank; d++)
        if (!zc_dim_eq(a->dims[d], b->dims[d])) return false;
    return true;
}

static bool plain_form(zc_gen *g, const zc_matmul_form *f)
{
    const zc_pvalue *a = zc_gen_in(g, f->a), *b = zc_gen_in(g, f->b);
    if (f->by_axes || f->trans_a || f->trans_batch_a || f->trans_batch_b) return false;
    if (a->rank < 2 || b->rank < 2) return false;
    return f->flat || b->rank == 2 || (f->c < 0 && same_batch(a, b));
}

int64_t zc_gen_sm90_items(zc_gen *g, const zc_matmul_form *f)
{
    const zc_pvalue *a = zc_gen_in(g, f->a), *b = zc_gen_in(g, f->b);
    int64_t n = 1;
    for (int d = 0; !f->flat && b->rank > 2 && d + 2 < a->rank; d++)
        if (zc_dim_is_const(a->dims[d])) n *= a->dims[d].k;
    return n;
}

/* What the instruction calls the types of A and B. */
static const char *factors_of(zc_dtype a, zc_dtype b)
{
    if (a == ZC_F8E4M3FN) return "E4M3";
    if (a == ZC_I8) return b == ZC_I8 ? "S8" : "S8U8";
    if (a == ZC_U8) return b == ZC_I8 ? "U8S8" : "U8";
    if (a == ZC_F32) return "TF32";
    return a == ZC_F16 ? "F16" : "BF16";
}

void zc_gen_sm90_factors(zc_gen *g, zc_dtype a, zc_dtype b)
{
    zc_gen_define(g, "WGMMA", "%s", factors_of(a, b));
    if (zc_dtype_bits(a) != 16) zc_gen_define(g, "ALONG", "1");
}

zc_status zc_gen_sm90_form(zc_gen *g, zc_matmul_form *form, zc_matmul_sizes *s)
{
    ZC_TRY(zc_gen_matmul_form(g, form));
    if (g->declined[0]) return ZC_OK;
    if (!plain_form(g, form)) return zc_gen_decline(g, "batches or transposed rows");
    *s = zc_gen_matmul_sizes(g, form);
    zc_dtype a = zc_gen_in_type(g, form->a), b = zc_gen_in_type(g, form->b);
    int64_t piece = 128 / (int64_t)zc_dtype_bits(a);
    if (piece != 8 && !form->b_along_k) return zc_gen_decline(g, "B is not stored N x K");
    if (s->k <= 0 || s->k % piece || s->n <= 0 || (!form->b_along_k && s->n % piece))
        return zc_gen_decline(g, "rows that are not certain to be multiples of 16 bytes");
    zc_gen_sm90_factors(g, a, b);
    bool constant = zc_gen_in(g, form->b)->kind == ZC_P_CONST &&
                    (!form->gate || zc_gen_in(g, form->gate)->kind == ZC_P_CONST);
    if (constant) zc_gen_define(g, "B_CONSTANT", "1");
    return ZC_OK;
}

zc_status zc_gen_sm90_whole_rows(zc_gen *g, const zc_matmul_sizes *s)
{
    if (zc_sm90_in_pieces(s->n)) return ZC_OK;
    return zc_gen_decline(g, "rows of the result that are no multiples of 16 bytes");
}

zc_status zc_gen_sm90_few(zc_gen *g, int family, zc_matmul_form *form, zc_matmul_sizes *s)
{
    const zc_rows rows = zc_family_rows(family);
    ZC_TRY(zc_gen_sm90_form(g, form, s));
    if (!g->declined[0]) ZC_TRY(zc_gen_sm90_whole_rows(g, s));
    if (g->declined[0] || (s->m_high <= rows.high && s->m_low >= rows.low)) return ZC_OK;
    return zc_gen_decline(g, "rows that are not certain to be %d to %d", rows.low, rows.high);
}

zc_status zc_gen_sm90_tall(zc_gen *g, const zc_matmul_sizes *s)
{
    int least = zc_sm90_in_pieces(s->n) ? ZC_SM90_ROWS : ZC_SM90_ROWS_ALONE;
    if (s->m_low >= least) return ZC_OK;
    return zc_gen_decline(g, "too few rows for tiles of Hopper's warpgroup products");
}

int zc_sm90_smem(int shares)
{
    return (ZC_SM90_SMEM + ZC_SM90_RESERVED) / shares - ZC_SM90_RESERVED;
}

int zc_sm90_stages(int tile_m, int b_lines, uint32_t other)
{
    int stage = (tile_m + b_lines) * ZC_SM90_LINE + 16, fit = (int)(ZC_SM90_SMEM - other) / stage;
    return fit < ZC_SM90_STAGES ? fit : ZC_SM90_STAGES;
}

/* ---- the launch ---- */

zc_status zc_sm90_operands(zc_launch *l, zc_matmul_form *form, zc_matmul *mm,
                           struct zc_gemm_params *p)
{
    ZC_TRY(zc_matmul_form_launch(l, form));
    ZC_TRY(zc_matmul_of(l, form, mm));
    zc_matmul_simplify(form, mm);
    return mm->batch ? zc_matmul_params(l, form, mm, 16, p) : ZC_OK;
}

zc_tensor_box zc_sm90_box(const void *data, zc_dtype dtype, int64_t n, int64_t lines, int64_t items,
                          int64_t pitch, int64_t item)
{
    int64_t bytes = (int64_t)zc_dtype_bits(dtype) / 8;
    return (zc_tensor_box){
        .data = data,
        .dtype = dtype,
        .tf32 = dtype == ZC_F32,
        .rank = 3,
        .dims = {n, lines, items},
        .strides = {0, pitch * bytes, (items > 1 ? item : lines * pitch) * bytes},
        .box = {(uint32_t)(ZC_SM90_LINE / bytes), ZC_SM90_DEPTH, 1},
        .swizzled = true};
}

zc_status zc_sm90_b_map(zc_launch *l, const zc_matmul_form *f, int input, int lines, int dealt,
                        const struct zc_gemm_sm90_params *p, zc_tensor_map *out)
{
    const struct zc_gemm_params *g = &p->g;
    const void *data = l->in[input].data;
    zc_dtype dtype = l->in[f->a].dtype; /* or another of as many bits */
    int64_t n = f->b_along_k ? g->k : g->n, count = f->b_along_k ? g->n : g->k;
    zc_tensor_box b = zc_sm90_box(data, dtype, n, count, p->b_items, g->b_ld, g->b_batch[0]);
    zc_sm90_deal(&b, lines, dealt);
    return zc_launch_tensor_map(l, &b, out);
}

zc_status zc_sm90_maps(zc_launch *l, const zc_matmul_form *f, const zc_matmul *mm, int rows,
                       int b_rows, int dealt, struct zc_gemm_sm90_params *p)
{
    const struct zc_gemm_params *g = &p->g;
    zc_dtype dtype = l->in[f->a].dtype;
    p->items = (int)mm->batch;
    p->b_items = mm->batch > 1 && g->b_batch[0] ? p->items : 1;
    zc_tensor_box a = zc_sm90_box(g->a, dtype, g->k, g->m, p->items, g->a_ld, g->a_batch[0]);
    a.box[1] = (uint32_t)rows;
    ZC_TRY(zc_launch_tensor_map(l, &a, &p->a));
    return zc_sm90_b_map(l, f, f->b, b_rows, dealt, p, &p->b);
}

zc_status zc_sm90_like_y(zc_launch *l, const struct zc_gemm_sm90_params *p, const void *data,
                         zc_dtype dtype, int64_t pitch, int rows, zc_tensor_map *out)
{
    int64_t m = p->g.m, n = p->g.n;
    zc_tensor_box box = zc_sm90_box(data, dtype, n, m, p->items, pitch, m * pitch);
    box.box[1] = (uint32_t)rows;
    return zc_launch_tensor_map(l, &box, out);
}

zc_status zc_sm90_y_map(zc_launch *l, struct zc_gemm_sm90_params *p)
{
    const zc_dtype y = l->out[0].dtype;
    if (!zc_sm90_sends(p->g.n, y, l->kernel->config)) return ZC_OK;
    return zc_sm90_like_y(l, p, p->g.y, zc_dtype_bits(y) == 8 ? ZC_U8 : ZC_U16, p->g.y_ld, 64,
                          &p->y);
}
