/* On Hopper, products of few rows, or of any number of rows, by a constant matrix that is
 * dequantised from 4 or 8 bits keep its codes: reading the matrix is all their work. Codes, scales
 * and zero points are laid as PackedLinear has them.
 *
 * Before constants are folded: the matrix would become floats. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "op/packed.h"
#include "passes/passes.h"
#include "passes/quantised.h"
#include "passes/scaled.h"

#define SCALE_MOST 0x1p96
#define ALPHA_MOST 0x1p80f

enum { MATRIX_AXES = 2 };

typedef struct packing {
    const zc_pass *pass;
    zc_use_counts uses;
    size_t *changes;
} packing;

/* A product by a dequantised matrix. */
typedef struct product {
    zc_vid x, bias; /* bias 0: none */
    zc_nid turns;   /* a Transpose behind the dequantisation; 0: none */
    zc_nid by;      /* the dequantisation */
    const zc_tensor *codes, *scale, *zero;
    int64_t n, k, blocks;
    float alpha;   /* what all scales count */
    int along;     /* the codes' axis that is summed */
    bool by_block; /* scales lie as codes do; else one a column, or one */
} product;

/* ---- scales that are computed ---- */

static bool makes_scales(zc_op op)
{
    return op == ZC_OP_Reshape || op == ZC_OP_Cast || op == ZC_OP_Mul ||
           op == ZC_OP_DequantizeLinear;
}

/* Is v made of constants of e4m3 by one number for all, as scales of NVFP4 are? */
static bool are_codes(const zc_graph *g, zc_vid v, const zc_tensor **codes, float *all)
{
    const zc_nid n = zc_producer(g, v);
    const zc_node *by = n ? zc_node_at(g, n) : NULL;
    if (!by || by->op != ZC_OP_DequantizeLinear || zc_node_in(by, ZC_IN_DequantizeLinear_zero))
        return false;
    const zc_tensor *scale = zc_known(g, by->in[ZC_IN_DequantizeLinear_scale]);
    *codes = zc_known(g, by->in[ZC_IN_DequantizeLinear_x]);
    if (!*codes || (*codes)->dtype != ZC_F8E4M3FN || zc_val(g, v)->type.dtype != ZC_F32 || !scale ||
        scale->dtype != ZC_F32 || zc_tensor_numel(scale) != 1)
        return false;
    *all = *(const float *)scale->data;
    return true;
}

/* The constant that v is, if it is made of constants in the ways in which scales are; else v. 0: no
 * memory. */
static zc_vid computed(zc_graph *g, zc_vid v)
{
    const zc_nid n = zc_producer(g, v);
    zc_node *node = n ? zc_node_at(g, n) : NULL;
    zc_tensor out = {0};
    if (!node || !makes_scales(node->op)) return v;
    for (int i = 0; i < node->nin; i++) {
        if (!node->in[i]) continue;
        node->in[i] = computed(g, node->in[i]);
        if (!node->in[i]) return 0;
        if (!zc_known(g, node->in[i])) return v;
    }
    const zc_status status = zc_evaluate(g, node, &out, NULL);
    if (status == ZC_OK) return zc_graph_const(g, zc_val(g, v)->name, &out, true);
    free(out.data);
    return status == ZC_ERR_NOMEM ? 0 : v;
}

static bool compute_scales(zc_graph *g, zc_nid n, void *user)
{
    zc_node *node = zc_node_at(g, n);
    (void)user;
    if (node->op != ZC_OP_DequantizeLinear) return true;
    const zc_tensor *codes = zc_known(g, node->in[ZC_IN_DequantizeLinear_x]);
    if (!codes || codes->rank != MATRIX_AXES || !zc_packed_piece(codes->dtype)) return true;
    for (int i = ZC_IN_DequantizeLinear_scale; i < node->nin; i++) {
        const zc_tensor *scales;
        float all;
        if (!node->in[i] || are_codes(g, node->in[i], &scales, &all)) continue;
        node->in[i] = computed(g, node->in[i]);
        if (!node->in[i]) return false;
    }
    return true;
}

/* ---- what may be packed ---- */

static bool turns_matrix(const zc_node *n)
{
    const zc_attrs_Transpose *a = n->attrs;
    return n->op == ZC_OP_Transpose &&
           (!a->perm.n || (a->perm.n == MATRIX_AXES && a->perm.v[0] == 1));
}

/* Codes of k and n, of which each block along k has a scale. */
static bool read_blocks(const zc_node *by, product *p)
{
    const zc_attrs_DequantizeLinear *a = by->attrs;
    const int axis = (int)(a->axis < 0 ? a->axis + MATRIX_AXES : a->axis);
    const int64_t count = zc_tensor_numel(p->scale);
    p->n = p->codes->dims[1 - p->along];
    p->k = p->codes->dims[p->along];
    if (!zc_packed_fits(p->codes->dtype, p->n, p->k)) return false;
    p->by_block = a->block_size > 0;
    p->blocks = p->by_block ? p->k / a->block_size : 1;
    if (!p->by_block) return count == 1 || (count == p->n && axis != p->along);
    return axis == p->along && a->block_size % ZC_PACKED_LEAST == 0 && p->k % a->block_size == 0 &&
           count / p->blocks == p->n && count % p->blocks == 0;
}

/* Neither NaN nor so large that sums of codes times a scale leave f32's range. */
static bool are_usable(const zc_tensor *scales)
{
    const int64_t n = zc_tensor_numel(scales);
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(zc_load_f64(scales->dtype, scales->data, i)) <= SCALE_MOST)) return false;
    return n > 0;
}

static bool are_zero(const zc_tensor *t)
{
    const int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; i < n; i++)
        if (zc_load_f64(t->dtype, t->data, i) != 0) return false;
    return true;
}

/* Codes without zero points may have them where they are 0. */
static bool read_zeros(const zc_graph *g, zc_vid zero, product *p)
{
    if (!zero) return true;
    p->zero = zc_known(g, zero);
    if (!p->zero || zc_tensor_numel(p->zero) != zc_tensor_numel(p->scale)) return false;
    if (zc_packed_zero(p->codes->dtype)) return true;
    const bool none = are_zero(p->zero);
    p->zero = NULL;
    return none;
}

static bool read_matrix(const zc_graph *g, zc_vid v, bool turned, product *p)
{
    zc_nid n = zc_producer(g, v);
    if (n && turns_matrix(zc_node_at(g, n))) {
        p->turns = n;
        turned = !turned;
        n = zc_producer(g, zc_node_at(g, n)->in[0]);
    }
    const zc_node *by = n ? zc_node_at(g, n) : NULL;
    if (!by || by->op != ZC_OP_DequantizeLinear) return false;
    p->by = n;
    p->along = turned ? 1 : 0;
    p->codes = zc_known(g, by->in[ZC_IN_DequantizeLinear_x]);
    const zc_vid scale = by->in[ZC_IN_DequantizeLinear_scale];
    if (!are_codes(g, scale, &p->scale, &p->alpha)) {
        p->scale = zc_known(g, scale);
        p->alpha = 1;
    }
    return p->codes && p->codes->rank == MATRIX_AXES && p->scale && read_blocks(by, p) &&
           are_usable(p->scale) && fabsf(p->alpha) <= ALPHA_MOST &&
           read_zeros(g, zc_node_in(by, ZC_IN_DequantizeLinear_zero), p);
}

/* Will the product be of 16 bits, as its kernels are? */
static bool is_half(const packing *of, zc_dtype dtype)
{
    const zc_pass_options *o = of->pass->options;
    if (dtype == ZC_F16 || dtype == ZC_BF16) return true;
    return dtype == ZC_F32 && !o->mixed && (o->precision == ZC_F16 || o->precision == ZC_BF16);
}

static bool read_product(const packing *of, const zc_node *n, product *p)
{
    const zc_graph *g = of->pass->g;
    zc_scalable s;
    if (!zc_product_of(g, n, &s) || s.alpha != 1 || zc_op_epilogue(zc_op_get(n->op), n->attrs))
        return false;
    *p = (product){.x = s.x, .bias = s.bias};
    if (!read_matrix(g, s.w, s.along_k, p)) return false;
    const zc_type *x = &zc_val(g, p->x)->type;
    return x->rank > 0 && is_half(of, x->dtype) && zc_certain_rows(x) <= ZC_PACKED_ROWS &&
           (p->scale->dtype == ZC_F32 || p->scale->dtype == ZC_F8E8M0 ||
            p->scale->dtype == ZC_F8E4M3FN || p->scale->dtype == x->dtype);
}

/* ---- the constants ---- */

/* Room for the constant's elements, all 0. */
static bool make_room(zc_tensor *t)
{
    size_t bytes;
    t->data = zc_tensor_bytes(t, &bytes) ? zc_calloc(bytes, 1) : NULL;
    return t->data != NULL;
}

static void put_piece(const product *p, const zc_packed *form, int64_t n, int64_t k, void *to)
{
    const zc_dtype bits = zc_dtype_bits(p->codes->dtype) == 4 ? ZC_U4 : ZC_U8;
    const int64_t at = zc_packed_at(form, n, k);
    if (p->along) {
        const int64_t from = (n * p->k + k) / form->piece;
        memcpy((uint8_t *)to + at / form->piece * ZC_PACKED_BYTES,
               (const uint8_t *)p->codes->data + from * ZC_PACKED_BYTES, ZC_PACKED_BYTES);
        return;
    }
    for (int i = 0; i < form->piece; i++)
        zc_store_i64(bits, to, at + i, zc_load_i64(bits, p->codes->data, (k + i) * p->n + n));
}

static zc_vid pack_codes(zc_graph *g, const product *p, const char *name)
{
    const int piece = zc_packed_piece(p->codes->dtype);
    zc_tensor t = {.dtype = p->codes->dtype,
                   .rank = 4,
                   .dims = {p->n / ZC_PACKED_COLUMNS, p->k / piece, ZC_PACKED_COLUMNS, piece}};
    zc_packed form;
    if (!zc_packed_of(&t, &form) || !make_room(&t)) return 0;
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t k = 0; k < p->k; k += piece) put_piece(p, &form, n, k, t.data);
    return zc_graph_const(g, name, &t, true);
}

/* Where the scale, or zero point, of a block of a column stands in the model. */
static int64_t place_of(const product *p, int64_t n, int64_t block)
{
    if (p->by_block) return p->along ? n * p->blocks + block : block * p->n + n;
    return zc_tensor_numel(p->scale) == 1 ? 0 : n;
}

static zc_vid pack_blocks(zc_graph *g, const product *p, const zc_tensor *from, zc_dtype dtype)
{
    zc_tensor t = {.dtype = dtype,
                   .rank = 3,
                   .dims = {p->n / ZC_PACKED_COLUMNS, p->blocks, ZC_PACKED_COLUMNS}};
    if (!make_room(&t)) return 0;
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t b = 0; b < p->blocks; b++)
            zc_store_f64(dtype, t.data, zc_packed_scale_at(p->blocks, n, b),
                         zc_load_f64(from->dtype, from->data, place_of(p, n, b)));
    return zc_graph_const(g, NULL, &t, true);
}

/* ---- the node ---- */

static bool pack(packing *of, zc_nid n, const product *p)
{
    zc_graph *g = of->pass->g;
    const zc_vid codes = zc_node_at(g, p->by)->in[ZC_IN_DequantizeLinear_x];
    const zc_vid in[] = {[ZC_IN_PackedLinear_x] = p->x,
                         [ZC_IN_PackedLinear_w] = pack_codes(g, p, zc_val(g, codes)->name),
                         [ZC_IN_PackedLinear_scale] = pack_blocks(g, p, p->scale, p->scale->dtype),
                         [ZC_IN_PackedLinear_zero] =
                             p->zero ? pack_blocks(g, p, p->zero, zc_packed_zero(p->codes->dtype))
                                     : 0,
                         [ZC_IN_PackedLinear_bias] = p->bias};
    if (!in[ZC_IN_PackedLinear_w] || !in[ZC_IN_PackedLinear_scale] ||
        (p->zero && !in[ZC_IN_PackedLinear_zero]))
        return false;
    if (!p->turns || zc_used_once(&of->uses, zc_node_at(g, p->turns)->out[0]))
        zc_drop(g, &of->uses, p->by);
    zc_drop(g, &of->uses, p->turns);
    ++*of->changes;
    if (!zc_graph_become(g, n, ZC_OP_PackedLinear, p->bias ? 5 : p->zero ? 4 : 3, in)) return false;
    zc_set_packed_alpha(g, n, p->alpha);
    return true;
}

static bool visit(zc_graph *g, zc_nid n, void *user)
{
    packing *of = user;
    product p;
    return !read_product(of, zc_node_at(g, n), &p) || pack(of, n, &p);
}

zc_status zc_pass_opt_packed(zc_pass *p)
{
    packing of = {.pass = p, .changes = &p->changes};
    if (!zc_pass_has(p, ZC_FAMILY_gemv_packed_sm90)) return ZC_OK;
    ZC_TRY(zc_each_node(p->g, &p->g->top, compute_scales, NULL, p->diag));
    if (!zc_count_uses(p->g, &of.uses)) return zc_fail_nomem(p->diag, "uses", 0);
    zc_status status = zc_each_node(p->g, &p->g->top, visit, &of, p->diag);
    free(of.uses.of);
    return status;
}
