#include "cpu/conv_dnnl.h"

#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/gemm.h"

#define V2 (DNNL_VERSION_MAJOR < 3)

struct zc_dnnl_conv {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t conv;
    dnnl_memory_t x, w, bias, y, scratch;
    size_t scratch_bytes;
    bool has_bias;
};

#if V2
typedef dnnl_memory_desc_t md_t;
typedef const dnnl_memory_desc_t *md_ref;
static bool md_tag(md_t *md, int n, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(md, n, dims, dnnl_f32, tag) == dnnl_success;
}
static bool md_copy(md_t *md, md_ref from)
{
    if (from) *md = *from;
    return from != NULL;
}
static bool md_part(md_t *md, md_ref of, const dnnl_dims_t dims, const dnnl_dims_t at)
{
    return dnnl_memory_desc_init_submemory(md, of, dims, at) == dnnl_success;
}
static void md_free(md_t *md)
{
    (void)md;
}
#define MD(m) (&(m))
#else
typedef dnnl_memory_desc_t md_t;
typedef const_dnnl_memory_desc_t md_ref;
static bool md_tag(md_t *md, int n, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(md, n, dims, dnnl_f32, tag) == dnnl_success;
}
static bool md_copy(md_t *md, md_ref from)
{
    return from && dnnl_memory_desc_clone(md, from) == dnnl_success;
}
static bool md_part(md_t *md, md_ref of, const dnnl_dims_t dims, const dnnl_dims_t at)
{
    return dnnl_memory_desc_create_submemory(md, of, dims, at) == dnnl_success;
}
static void md_free(md_t *md)
{
    if (*md) dnnl_memory_desc_destroy(*md);
}
#define MD(m) (m)
#endif

/* The library computes on the calling thread only: the session's own threads each run a part. */
static int one_thread(void)
{
    int before = omp_get_max_threads();
    if (before != 1) omp_set_num_threads(1);
    return before;
}

typedef struct layouts {
    md_t x, w_any, w_plain, bias, y;
} layouts;

static bool describe(const zc_dnnl_shape *s, layouts *l)
{
    dnnl_dims_t x = {1, s->ic, s->in[0], s->in[1]}, y = {1, s->oc, s->out[0], s->out[1]};
    dnnl_dims_t w = {s->oc, s->ic, s->kernel[0], s->kernel[1]}, b = {s->oc};
    return md_tag(&l->x, 4, x, dnnl_nhwc) && md_tag(&l->y, 4, y, dnnl_nhwc) &&
           md_tag(&l->w_any, 4, w, dnnl_format_tag_any) && md_tag(&l->w_plain, 4, w, dnnl_oihw) &&
           md_tag(&l->bias, 1, b, dnnl_a);
}

static dnnl_status_t post_ops(const zc_dnnl_shape *s, dnnl_primitive_attr_t attr)
{
    dnnl_post_ops_t ops = NULL;
    dnnl_status_t status = dnnl_post_ops_create(&ops);
#if V2
    if (status == dnnl_success && s->residual) status = dnnl_post_ops_append_sum(ops, 1);
    if (status == dnnl_success && s->relu)
        status = dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0);
#else
    if (status == dnnl_success && s->residual)
        status = dnnl_post_ops_append_sum(ops, 1, 0, dnnl_f32);
    if (status == dnnl_success && s->relu)
        status = dnnl_post_ops_append_eltwise(ops, dnnl_eltwise_relu, 0, 0);
#endif
    if (status == dnnl_success) status = dnnl_primitive_attr_set_post_ops(attr, ops);
    if (ops) dnnl_post_ops_destroy(ops);
    return status;
}

/* Padding after the last element, as the sizes need it (may be negative: unused input). */
static int64_t pad_after(const zc_dnnl_shape *s, int i)
{
    int64_t reach = (s->out[i] - 1) * s->stride[i] + (s->kernel[i] - 1) * s->dilation[i] + 1;
    return reach - s->in[i] - s->pad[i][0];
}

static dnnl_status_t make_desc(zc_dnnl_conv *c, const zc_dnnl_shape *s, const layouts *l,
                               const_dnnl_primitive_attr_t attr)
{
    dnnl_dims_t strides = {s->stride[0], s->stride[1]};
    dnnl_dims_t dilates = {s->dilation[0] - 1, s->dilation[1] - 1};
    dnnl_dims_t before = {s->pad[0][0], s->pad[1][0]}, after = {pad_after(s, 0), pad_after(s, 1)};
#if V2
    dnnl_convolution_desc_t d;
    dnnl_status_t status = dnnl_dilated_convolution_forward_desc_init(
        &d, dnnl_forward_inference, dnnl_convolution_direct, &l->x, &l->w_any,
        s->bias ? &l->bias : NULL, &l->y, strides, dilates, before, after);
    if (status != dnnl_success) return status;
    return dnnl_primitive_desc_create(&c->desc, &d, attr, c->engine, NULL);
#else
    return dnnl_convolution_forward_primitive_desc_create(
        &c->desc, c->engine, dnnl_forward_inference, dnnl_convolution_direct, l->x, l->w_any,
        s->bias ? l->bias : NULL, l->y, strides, dilates, before, after, attr);
#endif
}

/* ---- weights ---- */

typedef struct weights_format {
    zc_pack_format base;
    md_t plain, packed;
    int64_t oc, ic, kernel[2];
} weights_format;

static bool same_format(const zc_pack_format *fa, const zc_pack_format *fb)
{
    const weights_format *a = (const void *)fa, *b = (const void *)fb;
    return dnnl_memory_desc_equal(MD(a->plain), MD(b->plain)) &&
           dnnl_memory_desc_equal(MD(a->packed), MD(b->packed));
}

static void destroy_format(zc_pack_format *base)
{
    weights_format *f = (void *)base;
    md_free(&f->plain);
    md_free(&f->packed);
    free(f);
}

typedef struct reordering {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_t from, to;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
} reordering;

static bool reorder_with(reordering *r, md_ref from_md, void *from, md_ref to_md, void *to)
{
    if (dnnl_engine_create(&r->engine, dnnl_cpu, 0) != dnnl_success ||
        dnnl_stream_create(&r->stream, r->engine, dnnl_stream_default_flags) != dnnl_success ||
        dnnl_memory_create(&r->from, from_md, r->engine, from) != dnnl_success ||
        dnnl_memory_create(&r->to, to_md, r->engine, to) != dnnl_success ||
        dnnl_reorder_primitive_desc_create(&r->desc, from_md, r->engine, to_md, r->engine, NULL) !=
            dnnl_success ||
        dnnl_primitive_create(&r->reorder, r->desc) != dnnl_success)
        return false;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, r->from}, {DNNL_ARG_TO, r->to}};
    return dnnl_primitive_execute(r->reorder, r->stream, 2, args) == dnnl_success &&
           dnnl_stream_wait(r->stream) == dnnl_success;
}

static bool reorder(md_ref from_md, const void *from, md_ref to_md, void *to)
{
    reordering r = {0};
    int before = one_thread();
    bool ok = zc_check_code_room(NULL) == ZC_OK &&
              reorder_with(&r, from_md, (void *)(uintptr_t)from, to_md, to);
    omp_set_num_threads(before);
    if (r.reorder) dnnl_primitive_destroy(r.reorder);
    if (r.desc) dnnl_primitive_desc_destroy(r.desc);
    if (r.from) dnnl_memory_destroy(r.from);
    if (r.to) dnnl_memory_destroy(r.to);
    if (r.stream) dnnl_stream_destroy(r.stream);
    if (r.engine) dnnl_engine_destroy(r.engine);
    return ok;
}

static bool pack(const zc_pack_format *base, const void *from, void *to)
{
    const weights_format *f = (const void *)base;
    return reorder(MD(f->plain), from, MD(f->packed), to);
}

static bool unpack(const zc_pack_format *base, const void *from, void *to)
{
    const weights_format *f = (const void *)base;
    return reorder(MD(f->packed), from, MD(f->plain), to);
}

/* Output channels that are compared at a time: whole blocks, of 8 to 64 channels, of any layout. */
#define PART ((int64_t)192)

static bool part_equals(const weights_format *f, int64_t first, int64_t n, const void *packed,
                        const float *plain, float *again)
{
    const dnnl_dims_t dims = {n, f->ic, f->kernel[0], f->kernel[1]}, at = {first, 0, 0, 0};
    const size_t filter = (size_t)(f->ic * f->kernel[0] * f->kernel[1]);
    md_t from = {0}, to = {0};
    bool same =
        md_part(&from, MD(f->packed), dims, at) && md_tag(&to, 4, dims, dnnl_oihw) &&
        reorder(MD(from), packed, MD(to), again) &&
        memcmp(again, plain + (size_t)first * filter, (size_t)n * filter * sizeof *again) == 0;
    md_free(&from);
    md_free(&to);
    return same;
}

static bool gives_back(const zc_pack_format *base, const void *packed, const void *plain)
{
    const weights_format *f = (const void *)base;
    float *again = zc_calloc((size_t)(PART * f->ic * f->kernel[0] * f->kernel[1]), sizeof *again);
    bool same = again != NULL;
    for (int64_t at = 0; same && at < f->oc; at += PART)
        same = part_equals(f, at, f->oc - at < PART ? f->oc - at : PART, packed, plain, again);
    free(again);
    return same;
}

/* The layout that the convolution has chosen; NULL: no memory. */
static weights_format *format_of(const zc_dnnl_conv *c, const zc_dnnl_shape *s, const layouts *l)
{
    weights_format *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->base = (zc_pack_format){.same = same_format,
                               .pack = pack,
                               .unpack = unpack,
                               .gives_back = gives_back,
                               .destroy = destroy_format};
    f->oc = s->oc;
    f->ic = s->ic;
    memcpy(f->kernel, s->kernel, sizeof f->kernel);
    if (!md_copy(&f->plain, MD(l->w_plain)) ||
        !md_copy(&f->packed, dnnl_primitive_desc_query_md(c->desc, dnnl_query_weights_md, 0))) {
        destroy_format(&f->base);
        return NULL;
    }
    f->base.bytes = dnnl_memory_desc_get_size(MD(f->packed));
    return f;
}

static zc_status take_weights(zc_dnnl_conv *c, const zc_dnnl_shape *s, const layouts *l,
                              zc_packs *packs, const float *w, zc_diag *diag)
{
    const void *packed = NULL;
    weights_format *f = format_of(c, s, l);
    if (!f) return zc_fail_nomem(diag, "convolution", sizeof *f);
    ZC_TRY(zc_packs_get(packs, w, &f->base, &packed, diag));
    md_ref md = dnnl_primitive_desc_query_md(c->desc, dnnl_query_weights_md, 0);
    if (dnnl_memory_create(&c->w, md, c->engine, (void *)(uintptr_t)packed) == dnnl_success)
        return ZC_OK;
    return zc_fail_nomem(diag, "convolution", 0);
}

/* ---- the convolution ---- */

/* Temporary memory comes from the session at every run. */
static dnnl_status_t lend_scratch(zc_dnnl_conv *c)
{
    md_ref md = dnnl_primitive_desc_query_md(c->desc, dnnl_query_scratchpad_md, 0);
    if (!md) return dnnl_runtime_error;
    c->scratch_bytes = dnnl_memory_desc_get_size(md);
    return dnnl_memory_create(&c->scratch, md, c->engine, DNNL_MEMORY_NONE);
}

static dnnl_status_t build(zc_dnnl_conv *c, const zc_dnnl_shape *s, layouts *l)
{
    dnnl_primitive_attr_t attr = NULL;
    c->has_bias = s->bias;
    dnnl_status_t status = dnnl_engine_create(&c->engine, dnnl_cpu, 0);
    if (status == dnnl_success)
        status = dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags);
    if (status == dnnl_success && !describe(s, l)) status = dnnl_invalid_arguments;
    if (status == dnnl_success) status = dnnl_primitive_attr_create(&attr);
    if (status == dnnl_success)
        status = dnnl_primitive_attr_set_scratchpad_mode(attr, dnnl_scratchpad_mode_user);
    if (status == dnnl_success) status = post_ops(s, attr);
    if (status == dnnl_success) status = make_desc(c, s, l, attr);
    if (status == dnnl_success) status = dnnl_primitive_create(&c->conv, c->desc);
    if (status == dnnl_success) status = lend_scratch(c);
    if (attr) dnnl_primitive_attr_destroy(attr);
    return status;
}

static dnnl_status_t make_operands(zc_dnnl_conv *c, const layouts *l)
{
    dnnl_status_t status = dnnl_memory_create(&c->x, MD(l->x), c->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&c->y, MD(l->y), c->engine, DNNL_MEMORY_NONE);
    if (status == dnnl_success)
        status = dnnl_memory_create(&c->bias, MD(l->bias), c->engine, DNNL_MEMORY_NONE);
    return status;
}

static zc_status create(zc_dnnl_conv *c, const zc_dnnl_shape *shape, layouts *l, zc_packs *packs,
                        const float *w, bool *refused, zc_diag *diag)
{
    ZC_TRY(zc_check_code_room(diag));
    dnnl_status_t status = build(c, shape, l);
    if (status == dnnl_success) status = make_operands(c, l);
    if (status == dnnl_out_of_memory) return zc_fail_nomem(diag, "convolution", 0);
    *refused = status != dnnl_success;
    return *refused ? ZC_OK : take_weights(c, shape, l, packs, w, diag);
}

zc_status zc_dnnl_conv_create(const zc_dnnl_shape *shape, zc_packs *packs, const float *w,
                              zc_dnnl_conv **out, zc_diag *diag)
{
    layouts l = {0};
    bool refused = false;
    *out = NULL;
    zc_dnnl_conv *c = calloc(1, sizeof *c);
    if (!c) return zc_fail_nomem(diag, "convolution", sizeof *c);
    int before = one_thread();
    zc_status status = create(c, shape, &l, packs, w, &refused, diag);
    omp_set_num_threads(before);
    md_free(&l.x);
    md_free(&l.y);
    md_free(&l.w_any);
    md_free(&l.w_plain);
    md_free(&l.bias);
    if (status != ZC_OK || refused)
        zc_dnnl_conv_destroy(c);
    else
        *out = c;
    return status;
}

void zc_dnnl_conv_destroy(zc_dnnl_conv *c)
{
    if (!c) return;
    if (c->x) dnnl_memory_destroy(c->x);
    if (c->y) dnnl_memory_destroy(c->y);
    if (c->bias) dnnl_memory_destroy(c->bias);
    if (c->w) dnnl_memory_destroy(c->w);
    if (c->scratch) dnnl_memory_destroy(c->scratch);
    if (c->conv) dnnl_primitive_destroy(c->conv);
    if (c->desc) dnnl_primitive_desc_destroy(c->desc);
    if (c->stream) dnnl_stream_destroy(c->stream);
    if (c->engine) dnnl_engine_destroy(c->engine);
    free(c);
}

size_t zc_dnnl_conv_scratch(const zc_dnnl_conv *c)
{
    return c->scratch_bytes;
}

size_t zc_dnnl_conv_bytes(const zc_dnnl_conv *c)
{
    return sizeof *c;
}

bool zc_dnnl_conv_run(zc_dnnl_conv *c, const float *x, const float *bias, float *y, void *scratch)
{
    int before = one_thread();
    bool ok = dnnl_memory_set_data_handle(c->x, (void *)(uintptr_t)x) == dnnl_success &&
              dnnl_memory_set_data_handle(c->y, y) == dnnl_success &&
              dnnl_memory_set_data_handle(c->bias, (void *)(uintptr_t)bias) == dnnl_success &&
              dnnl_memory_set_data_handle(c->scratch, scratch) == dnnl_success;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, c->x},
                              {DNNL_ARG_WEIGHTS, c->w},
                              {DNNL_ARG_DST, c->y},
                              {DNNL_ARG_SCRATCHPAD, c->scratch},
                              {DNNL_ARG_BIAS, c->bias}};
    ok = ok &&
         dnnl_primitive_execute(c->conv, c->stream, c->has_bias ? 5 : 4, args) == dnnl_success &&
         dnnl_stream_wait(c->stream) == dnnl_success;
    omp_set_num_threads(before);
    return ok;
}
