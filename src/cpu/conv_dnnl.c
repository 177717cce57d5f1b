#include "cpu/conv_dnnl.h"

#include <dnnl.h>
#include <omp.h>
#include <stdlib.h>

#define V2 (DNNL_VERSION_MAJOR < 3)

struct zc_dnnl_conv {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t conv;
    dnnl_memory_t x, w, bias, y;
    bool owns_w, has_bias;
};

#if V2
typedef dnnl_memory_desc_t md_t;
typedef const dnnl_memory_desc_t *md_ref;
static bool md_tag(md_t *md, int n, const dnnl_dims_t dims, dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(md, n, dims, dnnl_f32, tag) == dnnl_success;
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
static void md_free(md_t *md)
{
    if (*md) dnnl_memory_desc_destroy(*md);
}
#define MD(m) (m)
#endif

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

/* Brings the weights to the layout that the convolution chose. */
static bool pack_weights(zc_dnnl_conv *c, const layouts *l, const float *w)
{
    dnnl_memory_t plain = NULL;
    dnnl_primitive_desc_t desc = NULL;
    dnnl_primitive_t reorder = NULL;
    md_ref packed = dnnl_primitive_desc_query_md(c->desc, dnnl_query_weights_md, 0);
    bool ok = dnnl_memory_create(&plain, MD(l->w_plain), c->engine, (void *)(uintptr_t)w) ==
                  dnnl_success &&
              dnnl_memory_create(&c->w, packed, c->engine, DNNL_MEMORY_ALLOCATE) == dnnl_success &&
              dnnl_reorder_primitive_desc_create(&desc, MD(l->w_plain), c->engine, packed,
                                                 c->engine, NULL) == dnnl_success &&
              dnnl_primitive_create(&reorder, desc) == dnnl_success;
    c->owns_w = c->w != NULL;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, plain}, {DNNL_ARG_TO, c->w}};
    ok = ok && dnnl_primitive_execute(reorder, c->stream, 2, args) == dnnl_success &&
         dnnl_stream_wait(c->stream) == dnnl_success;
    if (reorder) dnnl_primitive_destroy(reorder);
    if (desc) dnnl_primitive_desc_destroy(desc);
    if (plain) dnnl_memory_destroy(plain);
    return ok;
}

static bool take_weights(zc_dnnl_conv *c, const layouts *l, const float *w,
                         const zc_dnnl_conv *like)
{
    if (like && dnnl_memory_desc_equal(
                    dnnl_primitive_desc_query_md(c->desc, dnnl_query_weights_md, 0),
                    dnnl_primitive_desc_query_md(like->desc, dnnl_query_weights_md, 0))) {
        c->w = like->w;
        return true;
    }
    return pack_weights(c, l, w);
}

static bool build(zc_dnnl_conv *c, const zc_dnnl_shape *s, const float *w, const zc_dnnl_conv *like)
{
    layouts l = {0};
    dnnl_primitive_attr_t attr = NULL;
    c->has_bias = s->bias;
    bool ok =
        dnnl_engine_create(&c->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags) == dnnl_success &&
        describe(s, &l) && dnnl_primitive_attr_create(&attr) == dnnl_success &&
        post_ops(s, attr) == dnnl_success && make_desc(c, s, &l, attr) == dnnl_success &&
        dnnl_primitive_create(&c->conv, c->desc) == dnnl_success && take_weights(c, &l, w, like) &&
        dnnl_memory_create(&c->x, MD(l.x), c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
        dnnl_memory_create(&c->y, MD(l.y), c->engine, DNNL_MEMORY_NONE) == dnnl_success &&
        dnnl_memory_create(&c->bias, MD(l.bias), c->engine, DNNL_MEMORY_NONE) == dnnl_success;
    if (attr) dnnl_primitive_attr_destroy(attr);
    md_free(&l.x);
    md_free(&l.y);
    md_free(&l.w_any);
    md_free(&l.w_plain);
    md_free(&l.bias);
    return ok;
}

/* The library computes on the calling thread only: the session's own threads each run a part. */
static int one_thread(void)
{
    int before = omp_get_max_threads();
    if (before != 1) omp_set_num_threads(1);
    return before;
}

zc_dnnl_conv *zc_dnnl_conv_create(const zc_dnnl_shape *shape, const float *w,
                                  const zc_dnnl_conv *like)
{
    zc_dnnl_conv *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    int before = one_thread();
    if (!build(c, shape, w, like)) {
        zc_dnnl_conv_destroy(c);
        c = NULL;
    }
    omp_set_num_threads(before);
    return c;
}

void zc_dnnl_conv_destroy(zc_dnnl_conv *c)
{
    if (!c) return;
    if (c->x) dnnl_memory_destroy(c->x);
    if (c->y) dnnl_memory_destroy(c->y);
    if (c->bias) dnnl_memory_destroy(c->bias);
    if (c->owns_w) dnnl_memory_destroy(c->w);
    if (c->conv) dnnl_primitive_destroy(c->conv);
    if (c->desc) dnnl_primitive_desc_destroy(c->desc);
    if (c->stream) dnnl_stream_destroy(c->stream);
    if (c->engine) dnnl_engine_destroy(c->engine);
    free(c);
}

bool zc_dnnl_conv_run(zc_dnnl_conv *c, const float *x, const float *bias, float *y)
{
    int before = one_thread();
    bool ok = dnnl_memory_set_data_handle(c->x, (void *)(uintptr_t)x) == dnnl_success &&
              dnnl_memory_set_data_handle(c->y, y) == dnnl_success &&
              dnnl_memory_set_data_handle(c->bias, (void *)(uintptr_t)bias) == dnnl_success;
    dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, c->x},
                              {DNNL_ARG_WEIGHTS, c->w},
                              {DNNL_ARG_DST, c->y},
                              {DNNL_ARG_BIAS, c->bias}};
    ok = ok &&
         dnnl_primitive_execute(c->conv, c->stream, c->has_bias ? 4 : 3, args) == dnnl_success &&
         dnnl_stream_wait(c->stream) == dnnl_success;
    omp_set_num_threads(before);
    return ok;
}
