#include "passes/codes.h"

#include <math.h>
#include <stdlib.h>

#include "op/half.h"
#include "op/packed.h"
#include "passes/quantised.h"
#include "passes/query.h"

#define F16_MIN 6.103515625e-5f /* of those with all digits */
/* Added and subtracted, it rounds what is below 2^22 to a whole number. */
#define ROUNDS 12582912.0f

enum {
    SCALE_BITS = 16,
    ZERO_BITS = 8,
    JUDGED = 64, /* columns */
    CLIPS = 10,  /* ranges that are tried, each 5% less of the whole one */
    LANES = 8
};
static const int64_t groups[] = {128, 64, 32};

/* ---- which ---- */

static bool is_in_range(const zc_tensor *w)
{
    const float *x = w->data;
    const int64_t n = zc_tensor_numel(w);
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(x[i]) <= (float)ZC_F16_MAX)) return false;
    return n > 0;
}

bool zc_codable_of(const zc_graph *g, const zc_node *n, zc_scalable *out)
{
    const bool conv = zc_whole_convolution_of(g, n, out);
    if (!conv && (!zc_product_of(g, n, out) || out->alpha != 1)) return false;
    const zc_tensor *w = zc_known(g, out->w);
    return w && w->dtype == ZC_F32 && (conv || w->rank == 2) && is_in_range(w) &&
           zc_val(g, out->x)->type.dtype == ZC_F32;
}

bool zc_codable_packs(const zc_graph *g, const zc_scalable *s)
{
    const zc_weights w = zc_weights_of(g, s);
    return zc_known(g, s->w)->rank == 2 && zc_packed_fits(ZC_I4, w.columns, w.depth) &&
           zc_certain_rows(&zc_val(g, s->x)->type) <= ZC_PACKED_ROWS;
}

/* ---- one group ---- */

typedef struct unit {
    float scale;
    int zero;
} unit;

static int most_of(const zc_code_form *f)
{
    return (1 << (f->has_zeros ? f->bits : f->bits - 1)) - 1;
}

static int least_of(const zc_code_form *f)
{
    return f->has_zeros ? 0 : -most_of(f) - 1;
}

/* Of the range [low, high] that is cut to so much of it; scales are f16. */
static unit unit_of(float low, float high, float clip, const zc_code_form *f)
{
    const float most = (float)most_of(f);
    const float range = f->has_zeros ? high - low : fmaxf(high, -low);
    unit u = {.scale = zc_f16_to_f32(zc_f32_to_f16(range * clip / most))};
    if (u.scale < F16_MIN) u.scale = F16_MIN;
    if (f->has_zeros) u.zero = (int)fminf(nearbyintf(-low * clip / u.scale), most);
    return u;
}

/* x in units, within [low, high]. */
static float units(float x, float inverse, float low, float high)
{
    float q = x * inverse;
    q = q < low ? low : q;
    q = q > high ? high : q;
    return q + ROUNDS - ROUNDS;
}

static double square_error(const float *x, int64_t n, const unit *u, const zc_code_form *f)
{
    const float low = (float)(least_of(f) - u->zero), high = (float)(most_of(f) - u->zero);
    const float inverse = 1 / u->scale, scale = u->scale;
    float sums[LANES] = {0};
    double all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const float off = x[i + j] - units(x[i + j], inverse, low, high) * scale;
            sums[j] += off * off;
        }
    for (; i < n; i++) {
        const float off = x[i] - units(x[i], inverse, low, high) * scale;
        sums[0] += off * off;
    }
    for (int j = 0; j < LANES; j++) all += (double)sums[j];
    return all;
}

/* ---- one group of e2m1 ---- */

#define E2M1_MOST 6.0f

/* The number of e2m1 that is next to x. */
static float nearest(float x)
{
    const float most = fabsf(x) < E2M1_MOST ? fabsf(x) : E2M1_MOST;
    const float step = most < 2 ? 0.5f : most < 4 ? 1.0f : 2.0f;
    const float steps = most < 2 ? 2.0f : most < 4 ? 1.0f : 0.5f; /* of 1 */
    return copysignf((most * steps + ROUNDS - ROUNDS) * step, x);
}

static double float_error(const float *x, int64_t n, float scale)
{
    const float inverse = 1 / scale;
    float sums[LANES] = {0};
    double all = 0;
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const float off = x[i + j] - nearest(x[i + j] * inverse) * scale;
            sums[j] += off * off;
        }
    for (; i < n; i++) {
        const float off = x[i] - nearest(x[i] * inverse) * scale;
        sums[0] += off * off;
    }
    for (int j = 0; j < LANES; j++) all += (double)sums[j];
    return all;
}

/* By the least power of two that brings the largest number into range, and the two below. */
static unit best_power(const float *x, int64_t n, double *error)
{
    enum { POWERS = 3 };
    unit best = {.scale = 1};
    float most = 0;
    int top;
    *error = INFINITY;
    for (int64_t i = 0; i < n; i++) most = fabsf(x[i]) > most ? fabsf(x[i]) : most;
    if (frexpf(most / E2M1_MOST, &top) == 0.5f) top--;
    for (int i = 0; i < POWERS; i++) {
        const float power = ldexpf(1, top - i), scale = power < F16_MIN ? F16_MIN : power;
        const double off = float_error(x, n, scale);
        if (off >= *error) continue;
        best.scale = scale;
        *error = off;
    }
    return best;
}

static unit best_unit(const float *x, int64_t n, const zc_code_form *f, double *error)
{
    if (f->is_float) return best_power(x, n, error);
    float low = 0, high = 0;
    unit best = {.scale = 1};
    *error = INFINITY;
    for (int64_t i = 0; i < n; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    for (int i = 0; i < CLIPS; i++) {
        const unit u = unit_of(low, high, 1 - 0.05f * (float)i, f);
        const double off = square_error(x, n, &u, f);
        if (off >= *error) continue;
        best = u;
        *error = off;
    }
    return best;
}

/* ---- the form ---- */

/* Column c's weights from k on. */
static void take_group(const zc_weights *w, int64_t c, int64_t k, int64_t n, float *out)
{
    for (int64_t i = 0; i < n; i++) out[i] = w->x[zc_weight_at(w, c, k + i)];
}

/* The squared error of up to JUDGED columns. */
static double error_of(const zc_weights *w, const zc_code_form *f, float *group)
{
    const int64_t n = w->columns < JUDGED ? w->columns : JUDGED;
    double all = 0, error;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < w->depth; k += f->group) {
            take_group(w, i * w->columns / n, k, f->group, group);
            (void)best_unit(group, f->group, f, &error);
            all += error;
        }
    return all;
}

static double bits_of(const zc_code_form *f)
{
    return f->bits + (double)(SCALE_BITS + (f->has_zeros ? ZERO_BITS : 0)) / (double)f->group;
}

/* Takes the form with and without zero points where it is better. */
static void judge(const zc_weights *w, zc_code_form f, float *group, zc_code_form *best,
                  double *least)
{
    for (int zeros = 0; zeros < 2; zeros++) {
        f.has_zeros = zeros;
        const double cost = error_of(w, &f, group) * exp2(2 * bits_of(&f));
        if (cost >= *least) continue;
        *least = cost;
        *best = f;
    }
}

bool zc_code_form_of(const zc_graph *g, const zc_scalable *s, int bits, int64_t group,
                     zc_code_form *out)
{
    const zc_weights w = zc_weights_of(g, s);
    double least = INFINITY;
    float *room = zc_calloc((size_t)w.depth, sizeof *room);
    if (!room) return false;
    *out = (zc_code_form){.bits = bits, .group = w.depth};
    for (size_t i = 0; i < ZC_COUNTOF(groups); i++)
        if (w.depth % groups[i] == 0 && (!group || group == groups[i]))
            judge(&w, (zc_code_form){.bits = bits, .group = groups[i]}, room, out, &least);
    if (least == INFINITY) judge(&w, *out, room, out, &least);
    free(room);
    return true;
}

zc_code_form zc_code_form_of_floats(const zc_graph *g, const zc_scalable *s)
{
    enum { GROUP = 32 };
    const int64_t depth = zc_weights_of(g, s).depth;
    return (zc_code_form){.bits = 4, .group = depth % GROUP ? depth : GROUP, .is_float = true};
}

/* ---- the constants ---- */

/* Tensors whose memory becomes the graph's. */
typedef struct coding {
    zc_weights w;
    const zc_code_form *form;
    zc_tensor floats, codes, scales, zeros;
} coding;

static bool make_room(zc_tensor *t)
{
    size_t bytes;
    t->data = zc_tensor_bytes(t, &bytes) ? zc_calloc(bytes, 1) : NULL;
    return t->data != NULL;
}

/* Codes lie as the weights do, with scales and zero points as their groups. */
static zc_tensor laid(const zc_weights *w, zc_dtype dtype, int64_t along)
{
    return (zc_tensor){.dtype = dtype,
                       .rank = 2,
                       .dims = {w->along_k ? w->columns : along, w->along_k ? along : w->columns}};
}

static bool begin(coding *e, const zc_tensor *floats)
{
    static const zc_dtype types[2][2] = {{ZC_I4, ZC_U4}, {ZC_I8, ZC_U8}};
    const bool is_float = e->form->is_float;
    const zc_dtype dtype = is_float ? ZC_F4E2M1 : types[e->form->bits == 8][e->form->has_zeros];
    const int64_t blocks = e->w.depth / e->form->group;
    e->floats = (zc_tensor){.dtype = ZC_F32, .rank = floats->rank};
    for (int d = 0; d < floats->rank; d++) e->floats.dims[d] = floats->dims[d];
    e->codes = laid(&e->w, dtype, e->w.depth);
    e->scales = laid(&e->w, is_float ? ZC_F8E8M0 : ZC_F16, blocks);
    e->zeros = laid(&e->w, dtype, blocks);
    return make_room(&e->floats) && make_room(&e->codes) && make_room(&e->scales) &&
           (!e->form->has_zeros || make_room(&e->zeros));
}

static void code_group(const coding *e, int64_t c, int64_t block, float *group)
{
    const zc_code_form *f = e->form;
    const zc_weights blocks = {
        .columns = e->w.columns, .depth = e->w.depth / f->group, .along_k = e->w.along_k};
    const int64_t at = zc_weight_at(&blocks, c, block);
    double error;
    take_group(&e->w, c, block * f->group, f->group, group);
    const unit u = best_unit(group, f->group, f, &error);
    zc_store_f64(e->scales.dtype, e->scales.data, at, (double)u.scale);
    if (f->has_zeros) zc_store_i64(e->zeros.dtype, e->zeros.data, at, u.zero);
    for (int64_t i = 0; i < f->group; i++) {
        const float q = f->is_float ? nearest(group[i] / u.scale)
                                    : units(group[i], 1 / u.scale, (float)(least_of(f) - u.zero),
                                            (float)(most_of(f) - u.zero));
        const int64_t to = zc_weight_at(&e->w, c, block * f->group + i);
        ((float *)e->floats.data)[to] = q * u.scale;
        zc_store_f64(e->codes.dtype, e->codes.data, to, (double)q + u.zero);
    }
}

/* The graph's own; 0: no memory. */
static zc_vid take(zc_graph *g, const char *name, zc_tensor *t)
{
    const zc_vid v = zc_graph_const(g, name, t, true);
    t->data = NULL;
    return v;
}

static bool take_all(coding *e, zc_graph *g, const char *name, zc_coded *out)
{
    *out = (zc_coded){.floats = take(g, name, &e->floats)};
    if (e->floats.rank != 2) return out->floats;
    out->codes = take(g, name, &e->codes);
    out->scales = take(g, NULL, &e->scales);
    if (e->form->has_zeros) out->zeros = take(g, NULL, &e->zeros);
    return out->floats && out->codes && out->scales && (out->zeros || !e->form->has_zeros);
}

static bool code_all(coding *e, const zc_tensor *floats)
{
    const int64_t n = e->form->group;
    float *group = zc_calloc((size_t)n, sizeof *group);
    const bool ok = group && begin(e, floats);
    for (int64_t block = 0; ok && block < e->w.depth / n; block++)
        for (int64_t c = 0; c < e->w.columns; c++) code_group(e, c, block, group);
    free(group);
    return ok;
}

static void drop_coding(coding *e)
{
    free(e->floats.data);
    free(e->codes.data);
    free(e->scales.data);
    free(e->zeros.data);
}

bool zc_code_weights(zc_graph *g, const zc_scalable *s, const zc_code_form *form, zc_coded *out)
{
    coding e = {.w = zc_weights_of(g, s), .form = form};
    const bool ok = code_all(&e, zc_known(g, s->w)) && take_all(&e, g, zc_val(g, s->w)->name, out);
    drop_coding(&e);
    return ok;
}

bool zc_code_floats(const zc_graph *g, const zc_scalable *s, const zc_code_form *form,
                    zc_tensor *out)
{
    coding e = {.w = zc_weights_of(g, s), .form = form};
    const bool ok = code_all(&e, zc_known(g, s->w));
    if (ok) {
        *out = e.floats;
        e.floats.data = NULL;
    }
    drop_coding(&e);
    return ok;
}

zc_nid zc_dequantised_codes(zc_graph *g, const zc_scalable *s, const zc_code_form *form,
                            const zc_coded *c)
{
    const zc_vid in[] = {c->codes, c->scales, c->zeros};
    zc_nid n = zc_graph_node(g, NULL, ZC_OP_DequantizeLinear, "codes", c->zeros ? 3 : 2, in, 1);
    zc_vid y = n ? zc_graph_out(g, n, 0, zc_val(g, s->w)->name) : 0;
    if (!y) return 0;
    ZC_NODE_SET(g, DequantizeLinear, n, axis, s->along_k ? 1 : 0);
    ZC_NODE_SET(g, DequantizeLinear, n, block_size, form->group);
    if (form->is_float) ZC_NODE_SET(g, DequantizeLinear, n, output_dtype, ZC_F16);
    zc_val(g, y)->type = zc_val(g, s->w)->type;
    zc_val(g, y)->type.dtype = ZC_F16;
    return n;
}
