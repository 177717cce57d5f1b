#include "passes/quantise.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "cpu/integer.h"
#include "op/nhwc.h"
#include "passes/quantised.h"

/* Weights are within [-127, 127]; a bias that is larger than so many sums' units has larger ones.
 */
enum { U8_MAX = 255, I8_MAX = 127, BIAS_MAX = 1 << 28 };

/* ---- which ---- */

/* Of one group, or of each channel by itself. */
static bool is_convolution(const zc_graph *g, const zc_node *n, zc_scalable *s)
{
    if (!zc_convolution_of(g, n, s)) return false;
    const int64_t groups = zc_conv_groups(n->op, n->attrs);
    const zc_tensor *bias = zc_known(g, s->bias), *w = zc_known(g, s->w);
    return (groups == 1 || (groups == w->dims[0] && w->dims[1] == 1)) &&
           (!s->bias || (bias && bias->dtype == ZC_F32 && zc_is_finite(bias)));
}

bool zc_quantisable_of(const zc_graph *g, const zc_node *n, zc_scalable *out)
{
    const bool conv = n->op == ZC_OP_Conv;
    if (conv ? !is_convolution(g, n, out) : !zc_product_of(g, n, out)) return false;
    const zc_tensor *w = zc_known(g, out->w);
    if (!w || w->dtype != ZC_F32 || zc_tensor_numel(w) == 0 || !zc_is_finite(w)) return false;
    const bool has_kernels = conv ? w->rank == 3 || w->rank == 4 : w->rank == 2;
    return has_kernels && zc_val(g, out->x)->type.dtype == ZC_F32 && out->alpha == 1 &&
           (!out->bias || zc_val(g, out->bias)->type.dtype == ZC_F32) &&
           zc_weights_of(g, out).depth <= ZC_BYTE_DEPTH_MAX;
}

/* ---- activations ---- */

const char *zc_span_fault(const zc_span *s)
{
    if (!isfinite(s->low) || !isfinite(s->high)) return "has NaN or infinity";
    if (s->low == 0 && s->high == 0) return "is 0 throughout";
    const float scale = zc_quanta_of(s).scale;
    return scale >= FLT_MIN && isfinite(scale * U8_MAX) ? NULL : "is beyond what scales can say";
}

zc_quanta zc_quanta_of(const zc_span *s)
{
    const double low = fmin(s->low, 0), high = fmax(s->high, 0), scale = (high - low) / U8_MAX;
    return (zc_quanta){.scale = (float)scale, .zero = (uint8_t)nearbyint(-low / scale)};
}

/* ---- nodes ---- */

/* Makes elements of that type of v's. 0: no memory, as are operands of 0 but `zero`. */
static zc_nid node(zc_graph *g, zc_op op, const char *name, zc_vid v, zc_vid scale, zc_vid zero,
                   zc_dtype dtype)
{
    const zc_vid in[] = {v, scale, zero};
    zc_nid n = v && scale ? zc_graph_node(g, NULL, op, name, zero ? 3 : 2, in, 1) : 0;
    zc_vid y = n ? zc_graph_out(g, n, 0, zc_val(g, v)->name) : 0;
    if (!y) return 0;
    zc_val(g, y)->type = zc_val(g, v)->type;
    zc_val(g, y)->type.dtype = dtype;
    return n;
}

static zc_vid scalar(zc_graph *g, zc_dtype dtype, const void *data)
{
    const zc_tensor t = {.dtype = dtype, .rank = 0, .data = (void *)(uintptr_t)data};
    return zc_graph_const(g, NULL, &t, false);
}

zc_quantised_pair zc_quantise(zc_graph *g, zc_vid v, const zc_quanta *q, const char *name)
{
    const zc_quantised_pair none = {0};
    const zc_vid scale = scalar(g, ZC_F32, &q->scale), zero = scalar(g, ZC_U8, &q->zero);
    if (!scale || !zero) return none;
    const zc_nid to = node(g, ZC_OP_QuantizeLinear, name, v, scale, zero, ZC_U8);
    if (!to) return none;
    const zc_nid from =
        node(g, ZC_OP_DequantizeLinear, name, zc_node_at(g, to)->out[0], scale, zero, ZC_F32);
    return from ? (zc_quantised_pair){to, from} : none;
}

/* ---- weights ---- */

/* Weights and a bias, and what their integers will count. */
typedef struct coding {
    zc_graph *g;
    const zc_scalable *s;
    const zc_tensor *t, *bias; /* of a convolution; NULL: none */
    zc_weights w;
    double x_scale;
    float *scales; /* of the weights, by channel */
} coding;

/* The bias counts units of both scales: they have to be large enough for it. Where there is nothing
 * but zeros any will do. */
static float channel_scale(const coding *e, int64_t c)
{
    const float *bias = e->bias ? e->bias->data : NULL;
    const double most = zc_column_limit(e->s, &e->w, c);
    const double least = bias ? fabs((double)bias[c]) / BIAS_MAX / e->x_scale : 0;
    const double unit = fmax(most / I8_MAX, least);
    return unit * e->x_scale >= FLT_MIN ? (float)unit : 1;
}

static int64_t code(double x, double scale, int64_t most)
{
    const double r = nearbyint(x / scale);
    return (int64_t)fmin(fmax(r, (double)-most), (double)most);
}

/* Floats of the codes, whose memory becomes the graph's, as t has its shape. 0: no memory. */
static zc_nid dequantised(const coding *e, zc_tensor t, zc_dtype dtype, void *codes,
                          const float *scales, int axis)
{
    const zc_tensor by = {
        .dtype = ZC_F32, .rank = 1, .dims = {e->w.columns}, .data = (void *)(uintptr_t)scales};
    t.dtype = dtype;
    t.data = codes;
    const zc_vid v = zc_graph_const(e->g, NULL, &t, true);
    const zc_vid scale = zc_graph_const(e->g, NULL, &by, false);
    const zc_nid n = node(e->g, ZC_OP_DequantizeLinear, "int8", v, scale, 0, ZC_F32);
    if (n) ZC_NODE_SET(e->g, DequantizeLinear, n, axis, axis);
    return n;
}

static zc_nid weights(const coding *e)
{
    const zc_weights *w = &e->w;
    int8_t *codes = zc_calloc((size_t)(w->columns * w->depth), 1);
    if (!codes) return 0;
    for (int64_t c = 0; c < w->columns; c++)
        for (int64_t k = 0; k < w->depth; k++) {
            const int64_t at = zc_weight_at(w, c, k);
            codes[at] = (int8_t)code((double)w->x[at], (double)e->scales[c], I8_MAX);
        }
    return dequantised(e, *e->t, ZC_I8, codes, e->scales, w->along_k ? 0 : 1);
}

static zc_nid bias(const coding *e)
{
    const float *b = e->bias->data;
    int32_t *codes = zc_calloc((size_t)e->w.columns, sizeof *codes);
    float *scales = zc_arena_alloc(&e->g->arena, (size_t)e->w.columns, sizeof *scales);
    for (int64_t c = 0; codes && scales && c < e->w.columns; c++) {
        const double scale = e->x_scale * (double)e->scales[c];
        scales[c] = (float)scale;
        codes[c] = (int32_t)code((double)b[c], scale, INT32_MAX);
    }
    if (codes && scales) return dequantised(e, *e->bias, ZC_I32, codes, scales, 0);
    free(codes);
    return 0;
}

zc_quantised_pair zc_quantise_weights(zc_graph *g, zc_nid n, const zc_scalable *s,
                                      const zc_quanta *x)
{
    zc_quantised_pair made = {0}, none = {0};
    const bool conv = zc_node_at(g, n)->op == ZC_OP_Conv;
    coding e = {.g = g,
                .s = s,
                .t = zc_known(g, s->w),
                .bias = conv ? zc_known(g, s->bias) : NULL,
                .w = zc_weights_of(g, s),
                .x_scale = (double)x->scale};
    e.scales = zc_arena_alloc(&g->arena, (size_t)e.w.columns, sizeof *e.scales);
    if (!e.scales) return none;
    for (int64_t c = 0; c < e.w.columns; c++) e.scales[c] = channel_scale(&e, c);
    made.first = weights(&e);
    if (!made.first) return none;
    zc_node_at(g, n)->in[1] = zc_node_at(g, made.first)->out[0];
    if (!e.bias) return made;
    made.second = bias(&e);
    if (!made.second) return none;
    zc_node_at(g, n)->in[ZC_IN_Conv_bias] = zc_node_at(g, made.second)->out[0];
    return made;
}
