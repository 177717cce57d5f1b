#include "kernels/gen.h"
#include "base/number.h"
#include "kernels/collapse.h"
#include "op/nhwc.h"
#include "op/scaled.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const zc_pvalue *zc_gen_in(const zc_gen *g, int i)
{
    if (i >= (int)g->step->nin || g->step->in[i] == 0) return NULL;
    return &g->program->values[g->step->in[i]];
}

const zc_pvalue *zc_gen_out(const zc_gen *g, int i)
{
    if (i >= (int)g->step->nout || g->step->out[i] == 0) return NULL;
    return &g->program->values[g->step->out[i]];
}

zc_dtype zc_gen_in_type(const zc_gen *g, int i)
{
    const zc_pvalue *v = zc_gen_in(g, i);
    return v ? v->dtype : ZC_NONE;
}

zc_dtype zc_gen_out_type(const zc_gen *g, int i)
{
    const zc_pvalue *v = zc_gen_out(g, i);
    return v ? v->dtype : ZC_NONE;
}

zc_dtype zc_gen_read_type(const zc_gen *g)
{
    int n;
    const zc_dtype stored = zc_gen_in_type(g, 0);
    const char *text = zc_op_prologue(g->info, g->attrs, &n);
    zc_dtype types[1 + ZC_PROLOGUE_INPUTS] = {stored};
    if (!text || (stored != ZC_U8 && stored != ZC_I8)) return stored;
    for (int i = 0; i < n; i++) types[1 + i] = zc_gen_in_type(g, g->info->max_in + i);
    zc_expr *e = zc_arena_alloc(g->arena, 1, sizeof *e);
    const bool is =
        e && zc_expr_parse(text, types, 1 + n, NULL, 0, e, g->step->name, NULL) == ZC_OK;
    return is ? zc_expr_dtype(e, 0) : stored;
}

zc_dtype zc_gen_plain_result(const zc_gen *g)
{
    const zc_dtype to = zc_scaled_to(g->step->op, g->attrs);
    if (to != ZC_NONE) return to;
    if (zc_conv_plain_like(g->step->op) >= 0)
        return zc_gen_in_type(g, zc_conv_plain_like(g->step->op));
    const unsigned others = ZC_OPF_WIDENS | ZC_OPF_QUANTISES;
    return g->info->flags & others ? zc_gen_read_type(g) : zc_gen_out_type(g, 0);
}

int64_t zc_gen_const_dim(const zc_pvalue *v, int d)
{
    return zc_dim_is_const(v->dims[d]) ? v->dims[d].k : -1;
}

zc_shape zc_gen_shape(const zc_pvalue *v)
{
    return (zc_shape){.rank = v->rank, .dims = v->dims};
}

void zc_gen_shapes(const zc_gen *g, int first, int n, zc_shape *out)
{
    for (int i = 0; i < n; i++) out[i] = zc_gen_shape(zc_gen_in(g, first + i));
}

static bool is_static(zc_shape s)
{
    for (int d = 0; d < s.rank; d++)
        if (!zc_dim_is_const(s.dims[d])) return false;
    return s.rank >= 0;
}

bool zc_gen_static(const zc_pvalue *v)
{
    return is_static(zc_gen_shape(v));
}

bool zc_gen_all_static(const zc_gen *g)
{
    for (uint32_t i = 0; i < g->step->nin; i++) {
        const zc_pvalue *v = zc_gen_in(g, (int)i);
        if (v && !zc_gen_static(v)) return false;
    }
    for (uint32_t i = 0; i < g->step->nout; i++) {
        const zc_pvalue *v = zc_gen_out(g, (int)i);
        if (v && !zc_gen_static(v)) return false;
    }
    return true;
}

void zc_gen_tensor(const zc_pvalue *v, zc_tensor *out)
{
    *out = (zc_tensor){.dtype = v->dtype, .rank = v->rank};
    for (int d = 0; d < v->rank; d++) out->dims[d] = v->dims[d].k;
}

bool zc_gen_constant(const zc_gen *g, int i, zc_tensor *out)
{
    const zc_pvalue *v = i < 0 ? NULL : zc_gen_in(g, i);
    if (!v || v->kind != ZC_P_CONST || !v->data || !zc_gen_static(v)) return false;
    zc_gen_tensor(v, out);
    out->data = (void *)(uintptr_t)v->data;
    return true;
}

/* Constants multiplied, the other factors as they are; false: what is known only when run, or too
 * many factors. */
static bool split_product(const zc_gen *g, const zc_dim *factors, int n, int64_t *known,
                          zc_gen_sizes *out)
{
    *known = 1;
    out->nfactors = 0;
    for (int i = 0; i < n; i++) {
        zc_dim f = factors[i];
        if (zc_dim_is_const(f)) {
            if (!zc_mul_i64(*known, f.k, known)) *known = INT64_MAX;
            continue;
        }
        if (g->program->dim_nodes[f.e - 1].dynamic || out->nfactors + 1 == ZC_RANGE_FACTORS)
            return false;
        out->factors[out->nfactors++] = f;
    }
    if (out->nfactors && *known != 1) out->factors[out->nfactors++] = zc_dim_const(*known);
    return true;
}

void zc_gen_size(zc_gen *g, const zc_dim *factors, int nfactors, const int64_t *bounds, int nbounds,
                 int64_t *low, int64_t *high)
{
    zc_gen_sizes *s = &g->sizes;
    int64_t known;
    *low = 0;
    *high = INT64_MAX;
    if (!split_product(g, factors, nfactors, &known, s)) {
        s->nfactors = 0;
        return;
    }
    if (!s->nfactors) {
        *low = *high = known;
        return;
    }
    s->nbounds = nbounds < ZC_GEN_BOUNDS ? nbounds : ZC_GEN_BOUNDS;
    memcpy(s->bounds, bounds, (size_t)s->nbounds * sizeof *bounds);
    if (s->now) *low = bounds[s->now - 1] + 1;
    if (s->now < s->nbounds) *high = bounds[s->now];
}

void zc_gen_unit(zc_gen *g, zc_dtype dtype, const zc_dim *run, int n)
{
    uint64_t bytes = zc_dtype_bits(dtype) / 8, unit = 1;
    for (int d = 0; d < n; d++)
        if (zc_dim_is_const(run[d])) bytes *= (uint64_t)run[d].k; /* wraps: powers of 2 stay */
    while (unit < 16 && bytes % (2 * unit) == 0) unit *= 2;
    g->config[0] = (int64_t)unit;
    g->threads = 256;
}

void zc_gen_tensor_cores(zc_gen *g, const char *instruction, zc_dtype factors)
{
    const char *type = factors == ZC_F32          ? "tf32"
                       : factors == ZC_F8E4M3FN   ? "e4m3"
                       : zc_dtype_is_int(factors) ? "s8"
                                                  : zc_dtype_name(factors);
    zc_snprintf(g->products, sizeof g->products, "%s.%s", instruction, type);
}

void zc_gen_define(zc_gen *g, const char *name, const char *fmt, ...)
{
    char text[256];
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    zc_buf_printf(&g->spec, "#define Z_%s %s\n", name, text);
}

const char *zc_gen_type_name(zc_dtype dtype)
{
    return dtype == ZC_BOOL ? "b8" : zc_dtype_name(dtype);
}

void zc_gen_type(zc_gen *g, const char *name, zc_dtype dtype)
{
    zc_gen_define(g, name, "%s", zc_gen_type_name(dtype));
}

void zc_gen_dim(zc_gen *g, const char *name, zc_dim d)
{
    if (zc_dim_is_const(d))
        zc_gen_define(g, name, "%lldLL", (long long)d.k);
    else
        zc_gen_define(g, name, "(p.%s)", name);
}

static void put_table(zc_gen *g, const int64_t *v, int n)
{
    zc_buf_puts(&g->spec, "{");
    for (int d = 0; d < n; d++) zc_buf_printf(&g->spec, "%s%lld", d ? ", " : "", (long long)v[d]);
    zc_buf_puts(&g->spec, "}");
}

/* With `open` for each dimension that is not certain; false: an operand has one that is not the
 * result's. */
static bool tensor_with(zc_shape v, zc_shape to, int64_t open, zc_tensor *out)
{
    *out = (zc_tensor){.rank = v.rank};
    for (int d = 0; d < v.rank; d++) {
        int own = to.rank - v.rank + d;
        bool is_const = zc_dim_is_const(v.dims[d]);
        if (!is_const && (own < 0 || !zc_dim_eq(v.dims[d], to.dims[own]))) return false;
        out->dims[d] = is_const ? v.dims[d].k : open;
    }
    return true;
}

static bool collapse_with(zc_shape to, int n, const zc_shape *operands, int64_t open,
                          zc_collapsed *c)
{
    zc_tensor out, in[ZC_COLLAPSE_OPERANDS];
    (void)tensor_with(to, to, open, &out);
    for (int i = 0; i < n; i++)
        if (!tensor_with(operands[i], to, open, &in[i])) return false;
    zc_collapse_broadcast(&out, n, in, NULL, c);
    return true;
}

bool zc_gen_broadcast_certain(zc_shape to, int n, const zc_shape *operands)
{
    zc_collapsed a, b;
    if (!collapse_with(to, n, operands, 7, &a) || !collapse_with(to, n, operands, 11, &b) ||
        a.rank != b.rank)
        return false;
    for (int d = 0; d < a.rank; d++) {
        if (d && a.dims[d] != b.dims[d]) return false;
        for (int i = 0; i < n; i++)
            if (a.strides[i][d] != b.strides[i][d]) return false;
    }
    return true;
}

bool zc_gen_broadcast(zc_gen *g, const char *prefix, zc_shape to, int n, const zc_shape *operands,
                      int most)
{
    zc_collapsed c;
    if (!collapse_with(to, n, operands, 7, &c) || c.rank > most) return false;
    if (c.rank && !is_static(to)) c.dims[0] = 0;
    if (c.rank == 0) { /* one element, or none */
        c.rank = 1;
        c.dims[0] = 1;
        for (int i = 0; i < n; i++) c.strides[i][0] = 0;
    }
    zc_buf_printf(&g->spec, "#define Z_%sRANK %d\n#define Z_%sDIMS ", prefix, c.rank, prefix);
    put_table(g, c.dims, c.rank);
    zc_buf_printf(&g->spec, "\n#define Z_%sSTRIDES {", prefix);
    for (int i = 0; i < n; i++) {
        if (i) zc_buf_puts(&g->spec, ", ");
        put_table(g, c.strides[i], c.rank);
    }
    zc_buf_puts(&g->spec, "}\n");
    return true;
}

zc_status zc_gen_decline(zc_gen *g, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    zc_vsnprintf(g->declined, sizeof g->declined, fmt, args);
    va_end(args);
    return ZC_OK;
}
