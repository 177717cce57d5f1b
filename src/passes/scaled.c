#include "passes/scaled.h"

#include <math.h>
#include <stdlib.h>

#include "base/number.h"
#include "op/kernels.h"
#include "op/nhwc.h"
#include "passes/quantised.h"
#include "passes/query.h"

/* e4m3's largest number. */
#define E4M3_MAX 448.0

/* Rows of 16 bytes, as the copy engine reads them, and enough of them for its tiles. */
enum { DEPTH = 16, ROWS = 65 };

/* ---- which ---- */

bool zc_product_of(const zc_graph *g, const zc_node *n, zc_scalable *s)
{
    if (n->nin < 2) return false;
    *s = (zc_scalable){.x = n->in[0], .w = n->in[1], .alpha = 1};
    if (n->op == ZC_OP_Linear) {
        const zc_attrs_Linear *a = n->attrs;
        s->bias = zc_node_in(n, ZC_IN_Linear_bias);
        s->along_k = a->transB;
        s->alpha = a->alpha;
    } else if (n->op == ZC_OP_Gemm) {
        const zc_attrs_Gemm *a = n->attrs;
        s->bias = zc_node_in(n, ZC_IN_Gemm_c);
        s->along_k = a->transB;
        s->alpha = a->alpha;
        if (a->transA || (s->bias && a->beta != 1)) return false;
    } else if (n->op != ZC_OP_MatMul) {
        return false;
    }
    const zc_type *bias = s->bias ? &zc_val(g, s->bias)->type : NULL;
    const zc_type *y = &zc_val(g, n->out[0])->type;
    return !bias ||
           (bias->rank == 1 && y->rank > 0 && zc_dim_eq(bias->dims[0], y->dims[y->rank - 1]));
}

zc_weights zc_weights_of(const zc_graph *g, const zc_scalable *s)
{
    const zc_tensor *t = zc_known(g, s->w);
    zc_weights w = {.x = t->data, .along_k = s->along_k};
    w.columns = t->dims[s->along_k ? 0 : t->rank - 1];
    w.depth = zc_tensor_numel(t) / w.columns;
    return w;
}

bool zc_convolution_of(const zc_graph *g, const zc_node *n, zc_scalable *s)
{
    if (n->op != ZC_OP_Conv) return false;
    *s = (zc_scalable){.x = n->in[ZC_IN_Conv_x],
                       .w = n->in[ZC_IN_Conv_w],
                       .bias = zc_node_in(n, ZC_IN_Conv_bias),
                       .along_k = true,
                       .alpha = 1};
    return zc_known(g, s->w) && zc_known(g, s->w)->rank >= 3;
}

bool zc_whole_convolution_of(const zc_graph *g, const zc_node *n, zc_scalable *s)
{
    return zc_convolution_of(g, n, s) && zc_conv_groups(n->op, n->attrs) == 1;
}

bool zc_scaled_conv_fits(const zc_tensor *w)
{
    return w->rank >= 3 && w->rank <= 5 && w->dims[1] % DEPTH == 0 && w->dims[0] % 2 == 0;
}

static bool fits_product(const zc_graph *g, const zc_scalable *s, const zc_tensor *w)
{
    return w->rank == 2 && zc_certain_rows(&zc_val(g, s->x)->type) >= ROWS &&
           w->dims[s->along_k ? 1 : 0] % DEPTH == 0;
}

bool zc_scalable_of(const zc_graph *g, const zc_node *n, zc_scalable *out)
{
    const bool conv = zc_whole_convolution_of(g, n, out);
    if (!conv && !zc_product_of(g, n, out)) return false;
    const zc_tensor *w = zc_known(g, out->w);
    return zc_val(g, out->x)->type.dtype == ZC_F32 && w && w->dtype == ZC_F32 &&
           (!out->bias || zc_val(g, out->bias)->type.dtype == ZC_F32) &&
           (conv ? zc_scaled_conv_fits(w) : fits_product(g, out, w)) && zc_tensor_numel(w) > 0 &&
           zc_is_finite(w);
}

/* ---- scales ---- */

double zc_scale_for(double magnitude)
{
    int exponent;
    double rest = frexp(magnitude / E4M3_MAX, &exponent);
    if (!(magnitude > 0) || !isfinite(magnitude)) return 1;
    return ldexp(1, rest == 0.5 ? exponent - 1 : exponent);
}

double zc_column_limit(const zc_scalable *s, const zc_weights *w, int64_t c)
{
    double most = 0;
    if (s->limits) return (double)s->limits[c];
    for (int64_t k = 0; k < w->depth; k++)
        most = fmax(most, fabs((double)w->x[zc_weight_at(w, c, k)]));
    return most;
}

/* ---- the product ---- */

bool zc_scaled_linear(zc_graph *g, zc_nid n, zc_vid x, zc_vid w, zc_vid scale, zc_vid bias)
{
    const zc_vid in[] = {x, w, scale, bias};
    const zc_dtype to = zc_val(g, zc_node_at(g, n)->out[0])->type.dtype;
    if (!zc_graph_become(g, n, ZC_OP_ScaledLinear, bias ? 4 : 3, in)) return false;
    ZC_NODE_SET(g, ScaledLinear, n, transB, 1);
    if (to != ZC_F32) ZC_NODE_SET(g, ScaledLinear, n, to, to);
    return true;
}

bool zc_scaled_conv(zc_graph *g, zc_nid n, zc_vid x, zc_vid w, zc_vid scale, zc_vid bias)
{
    const void *attrs = zc_node_at(g, n)->attrs;
    const zc_dtype to = zc_val(g, zc_node_at(g, n)->out[0])->type.dtype;
    const zc_vid in[] = {x, w, scale, bias};
    if (!zc_graph_become(g, n, ZC_OP_ScaledConv, bias ? 4 : 3, in)) return false;
    zc_attrs_take(zc_op_get(ZC_OP_ScaledConv), zc_node_at(g, n)->attrs, zc_op_get(ZC_OP_Conv),
                  attrs);
    if (to != ZC_F32) ZC_NODE_SET(g, ScaledConv, n, to, to);
    return true;
}

/* Weights as rows of codes, and their scales. */
typedef struct encoded {
    zc_weights of;
    uint8_t *codes;
    float *scales;
} encoded;

static void drop_encoded(encoded *e)
{
    free(e->codes);
    free(e->scales);
}

/* false: no memory. */
static bool encode(const zc_graph *g, const zc_scalable *s, encoded *e)
{
    const zc_weights w = zc_weights_of(g, s);
    *e = (encoded){.of = w};
    e->codes = zc_calloc((size_t)(w.columns * w.depth), 1);
    e->scales = zc_calloc((size_t)w.columns, sizeof *e->scales);
    if (!e->codes || !e->scales) {
        drop_encoded(e);
        return false;
    }
    for (int64_t c = 0; c < w.columns; c++) {
        double scale = zc_scale_for(zc_column_limit(s, &w, c));
        e->scales[c] = (float)scale;
        for (int64_t k = 0; k < w.depth; k++)
            e->codes[c * w.depth + k] = zc_f32_to_f8(
                ZC_F8E4M3FN, (float)((double)w.x[zc_weight_at(&w, c, k)] / scale), true);
    }
    return true;
}

bool zc_scaled_become(zc_graph *g, zc_nid n, const zc_scalable *s, zc_vid x, double scale)
{
    encoded e;
    if (!encode(g, s, &e)) return false;
    for (int64_t c = 0; c < e.of.columns; c++)
        e.scales[c] = (float)(s->alpha * scale * (double)e.scales[c]);
    const bool conv = zc_node_at(g, n)->op == ZC_OP_Conv;
    zc_tensor codes = {.rank = 2, .dims = {e.of.columns, e.of.depth}};
    if (conv) codes = *zc_known(g, s->w);
    codes.dtype = ZC_F8E4M3FN;
    codes.data = e.codes;
    const zc_tensor scales = {.dtype = ZC_F32, .rank = 1, .dims = {e.of.columns}, .data = e.scales};
    zc_vid w = zc_graph_const(g, zc_val(g, s->w)->name, &codes, true);
    zc_vid by = zc_graph_const(g, NULL, &scales, true);
    return w && by && (conv ? zc_scaled_conv : zc_scaled_linear)(g, n, x, w, by, s->bias);
}

static zc_nid pointwise(zc_graph *g, zc_vid x, const char *text)
{
    zc_nid n = zc_graph_node(g, NULL, ZC_OP_Pointwise, "e4m3", 1, &x, 1);
    zc_vid y = n ? zc_graph_out(g, n, 0, zc_val(g, x)->name) : 0;
    const char *own = zc_arena_strdup(&g->arena, text);
    if (!y || !own) return 0;
    ZC_NODE_SET(g, Pointwise, n, expr, own);
    zc_val(g, y)->type = zc_val(g, x)->type;
    return n;
}

zc_nid zc_scaled_factor(zc_graph *g, zc_vid x, double scale)
{
    char text[64];
    zc_snprintf(text, sizeof text, "f8e4m3fn(x0 * %.17g)", 1 / scale);
    zc_nid n = pointwise(g, x, text);
    if (n) zc_val(g, zc_node_at(g, n)->out[0])->type.dtype = ZC_F8E4M3FN;
    return n;
}

/* ---- the same in f32 ---- */

/* Multiples of 2^-9 below e4m3's least normal number, and from there on four digits: what is cut
 * off of t * (2^20 + 1) are the low 20 of 24. */
#define ROUND_E4M3                                                                                 \
    "t = min(max(x0 * %.17g, -448.0), 448.0); select(abs(t) < 0.015625, (t + 24576.0) - 24576.0, " \
    "t * 1048577.0 - (t * 1048577.0 - t)) * %.17g"

zc_nid zc_scaled_rounding(zc_graph *g, zc_vid x, double scale)
{
    char text[256];
    zc_snprintf(text, sizeof text, ROUND_E4M3, 1 / scale, scale);
    return pointwise(g, x, text);
}

bool zc_scaled_weights(const zc_graph *g, const zc_scalable *s, zc_tensor *out)
{
    encoded e;
    if (!encode(g, s, &e)) return false;
    const int64_t depth = e.of.depth, n = e.of.columns * depth;
    float *y = zc_calloc((size_t)n, sizeof *y);
    for (int64_t i = 0; y && i < n; i++)
        y[zc_weight_at(&e.of, i / depth, i % depth)] =
            e.scales[i / depth] * zc_f8_to_f32(ZC_F8E4M3FN, e.codes[i]);
    drop_encoded(&e);
    *out = *zc_known(g, s->w);
    out->data = y;
    return y;
}
