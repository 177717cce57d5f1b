#include "cpu/conv_dnnl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/gate.h"
#include "cpu/dnnl.h"

#define V2 (DNNL_VERSION_MAJOR < 3)

#define DNNL_TRY(call)                                                                             \
    do {                                                                                           \
        dnnl_status_t status_ = (call);                                                            \
        if (status_ != dnnl_success) return status_;                                               \
    } while (0)

struct zc_dnnl_conv {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t conv;
    dnnl_memory_t x, w, bias, y, scratch;
    dnnl_exec_arg_t args[5];
    int nargs;
    size_t scratch_bytes;
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

typedef struct layouts {
    md_t x, w_any, w_plain, bias, y;
} layouts;

/* What making a convolution needs for the while. */
typedef struct making {
    const zc_kctx *k;
    const zc_dnnl_shape *shape;
    zc_dnnl_conv *c;
    layouts l;
    dnnl_primitive_attr_t attr;
    zc_status status; /* of what is not the library's */
} making;

/* The weights' axes, with one for the groups where there are several. */
typedef struct weights_dims {
    int n;
    dnnl_dims_t d;
} weights_dims;

static weights_dims dims_of(const zc_dnnl_shape *s)
{
    if (s->groups == 1) return (weights_dims){4, {s->oc, s->ic, s->kernel[0], s->kernel[1]}};
    return (weights_dims){5, {s->groups, s->oc, s->ic, s->kernel[0], s->kernel[1]}};
}

static dnnl_format_tag_t plain_tag(const weights_dims *w)
{
    return w->n == 4 ? dnnl_oihw : dnnl_goihw;
}

static bool describe(const zc_dnnl_shape *s, layouts *l)
{
    const int64_t channels = s->groups * s->oc;
    dnnl_dims_t x = {1, s->groups * s->ic, s->in[0], s->in[1]};
    dnnl_dims_t y = {1, channels, s->out[0], s->out[1]}, b = {channels};
    const weights_dims w = dims_of(s);
    return md_tag(&l->x, 4, x, dnnl_nhwc) && md_tag(&l->y, 4, y, dnnl_nhwc) &&
           md_tag(&l->w_any, w.n, w.d, dnnl_format_tag_any) &&
           md_tag(&l->w_plain, w.n, w.d, plain_tag(&w)) && md_tag(&l->bias, 1, b, dnnl_a);
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
    weights_dims dims;
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
    md_ref from_md, to_md;
    void *from_data, *to_data;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_memory_t from, to;
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t reorder;
} reordering;

static dnnl_status_t run_reordering(void *arg)
{
    reordering *r = arg;
    DNNL_TRY(dnnl_engine_create(&r->engine, dnnl_cpu, 0));
    DNNL_TRY(dnnl_stream_create(&r->stream, r->engine, dnnl_stream_default_flags));
    DNNL_TRY(dnnl_memory_create(&r->from, r->from_md, r->engine, r->from_data));
    DNNL_TRY(dnnl_memory_create(&r->to, r->to_md, r->engine, r->to_data));
    DNNL_TRY(dnnl_reorder_primitive_desc_create(&r->desc, r->from_md, r->engine, r->to_md,
                                                r->engine, NULL));
    DNNL_TRY(dnnl_primitive_create(&r->reorder, r->desc));
    dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, r->from}, {DNNL_ARG_TO, r->to}};
    DNNL_TRY(dnnl_primitive_execute(r->reorder, r->stream, 2, args));
    return dnnl_stream_wait(r->stream);
}

static void free_reordering(reordering *r)
{
    if (zc_gate_enter(ZC_GATE_ONEDNN) != ZC_OK) return; /* the process is exiting */
    if (r->reorder) dnnl_primitive_destroy(r->reorder);
    if (r->desc) dnnl_primitive_desc_destroy(r->desc);
    if (r->from) dnnl_memory_destroy(r->from);
    if (r->to) dnnl_memory_destroy(r->to);
    if (r->stream) dnnl_stream_destroy(r->stream);
    if (r->engine) dnnl_engine_destroy(r->engine);
    zc_gate_leave(ZC_GATE_ONEDNN);
}

static bool reorder(md_ref from_md, const void *from, md_ref to_md, void *to)
{
    reordering r = {
        .from_md = from_md, .to_md = to_md, .from_data = (void *)(uintptr_t)from, .to_data = to};
    zc_status status = zc_dnnl_call(ZC_DNNL_REORDER, run_reordering, &r);
    free_reordering(&r);
    return status == ZC_OK;
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

/* Of the first axis, output channels or groups, what is compared at a time: whole blocks, of 8 to
 * 64 channels, of any layout. */
#define PART ((int64_t)192)

/* Weights behind one index of the first axis. */
static size_t filter_of(const weights_format *f)
{
    size_t n = 1;
    for (int i = 1; i < f->dims.n; i++) n *= (size_t)f->dims.d[i];
    return n;
}

static bool part_equals(const weights_format *f, int64_t first, int64_t n, const void *packed,
                        const float *plain, float *again)
{
    weights_dims part = f->dims;
    const dnnl_dims_t at = {first};
    const size_t filter = filter_of(f);
    md_t from = {0}, to = {0};
    part.d[0] = n;
    bool same =
        md_part(&from, MD(f->packed), part.d, at) &&
        md_tag(&to, part.n, part.d, plain_tag(&part)) && reorder(MD(from), packed, MD(to), again) &&
        memcmp(again, plain + (size_t)first * filter, (size_t)n * filter * sizeof *again) == 0;
    md_free(&from);
    md_free(&to);
    return same;
}

static bool gives_back(const zc_pack_format *base, const void *packed, const void *plain)
{
    const weights_format *f = (const void *)base;
    const int64_t all = f->dims.d[0];
    float *again = zc_calloc((size_t)(all < PART ? all : PART) * filter_of(f), sizeof *again);
    bool same = again != NULL;
    for (int64_t at = 0; same && at < all; at += PART)
        same = part_equals(f, at, all - at < PART ? all - at : PART, packed, plain, again);
    free(again);
    return same;
}

/* The layout that the convolution has chosen; NULL: no memory. */
static weights_format *format_of(const making *m)
{
    weights_format *f = calloc(1, sizeof *f);
    if (!f) return NULL;
    f->base = (zc_pack_format){.same = same_format,
                               .pack = pack,
                               .unpack = unpack,
                               .gives_back = gives_back,
                               .destroy = destroy_format};
    f->dims = dims_of(m->shape);
    if (!md_copy(&f->plain, MD(m->l.w_plain)) ||
        !md_copy(&f->packed, dnnl_primitive_desc_query_md(m->c->desc, dnnl_query_weights_md, 0))) {
        destroy_format(&f->base);
        return NULL;
    }
    f->base.bytes = dnnl_memory_desc_get_size(MD(f->packed));
    return f;
}

static zc_status pack_weights(const making *m, const void **packed)
{
    weights_format *f = format_of(m);
    if (!f) return zc_fail_nomem(m->k->diag, "convolution", sizeof *f);
    return zc_packs_get(m->k->packs, m->k->in[1].data, &f->base, packed, m->k->diag);
}

/* ---- the convolution ---- */

static dnnl_status_t make_primitive(making *m)
{
    zc_dnnl_conv *c = m->c;
    DNNL_TRY(dnnl_engine_create(&c->engine, dnnl_cpu, 0));
    DNNL_TRY(dnnl_stream_create(&c->stream, c->engine, dnnl_stream_default_flags));
    if (!describe(m->shape, &m->l)) return dnnl_invalid_arguments;
    DNNL_TRY(dnnl_primitive_attr_create(&m->attr));
    DNNL_TRY(dnnl_primitive_attr_set_scratchpad_mode(m->attr, dnnl_scratchpad_mode_user));
    DNNL_TRY(make_desc(c, m->shape, &m->l, m->attr));
    return dnnl_primitive_create(&c->conv, c->desc);
}

/* Operands, and the temporary memory that the session lends, get their addresses at every run. */
static dnnl_status_t make_operands(making *m, void *packed)
{
    zc_dnnl_conv *c = m->c;
    md_ref w = dnnl_primitive_desc_query_md(c->desc, dnnl_query_weights_md, 0);
    md_ref scratch = dnnl_primitive_desc_query_md(c->desc, dnnl_query_scratchpad_md, 0);
    if (!w || !scratch) return dnnl_runtime_error;
    c->scratch_bytes = dnnl_memory_desc_get_size(scratch);
    DNNL_TRY(dnnl_memory_create(&c->x, MD(m->l.x), c->engine, DNNL_MEMORY_NONE));
    DNNL_TRY(dnnl_memory_create(&c->y, MD(m->l.y), c->engine, DNNL_MEMORY_NONE));
    DNNL_TRY(dnnl_memory_create(&c->bias, MD(m->l.bias), c->engine, DNNL_MEMORY_NONE));
    DNNL_TRY(dnnl_memory_create(&c->scratch, scratch, c->engine, DNNL_MEMORY_NONE));
    DNNL_TRY(dnnl_memory_create(&c->w, w, c->engine, packed));
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, c->x},
                                    {DNNL_ARG_WEIGHTS, c->w},
                                    {DNNL_ARG_DST, c->y},
                                    {DNNL_ARG_SCRATCHPAD, c->scratch},
                                    {DNNL_ARG_BIAS, c->bias}};
    memcpy(c->args, args, sizeof args);
    c->nargs = m->shape->bias ? 5 : 4;
    return dnnl_success;
}

static dnnl_status_t make(void *arg)
{
    making *m = arg;
    const void *packed = NULL;
    DNNL_TRY(make_primitive(m));
    m->status = pack_weights(m, &packed);
    return m->status == ZC_OK ? make_operands(m, (void *)(uintptr_t)packed) : dnnl_runtime_error;
}

static void free_making(making *m)
{
    md_free(&m->l.x);
    md_free(&m->l.y);
    md_free(&m->l.w_any);
    md_free(&m->l.w_plain);
    md_free(&m->l.bias);
    if (m->attr) dnnl_primitive_attr_destroy(m->attr);
}

zc_status zc_dnnl_conv_create(const zc_kctx *k, const zc_dnnl_shape *shape, zc_dnnl_conv **out)
{
    *out = NULL;
    making m = {.k = k, .shape = shape, .c = calloc(1, sizeof *m.c)};
    if (!m.c) return zc_fail_nomem(k->diag, "convolution", sizeof *m.c);
    zc_status status = zc_dnnl_call(ZC_DNNL_CREATE, make, &m);
    free_making(&m);
    if (status == ZC_OK)
        *out = m.c;
    else
        zc_dnnl_conv_destroy(m.c);
    if (m.status != ZC_OK) return m.status;
    return status == ZC_ERR_UNSUPPORTED ? ZC_OK : zc_dnnl_report(k, status, "convolution");
}

/* Channels of a sample. */
#define SAMPLE 16

static dnnl_status_t make_sample(void *arg)
{
    making *m = arg;
    DNNL_TRY(make_primitive(m));
    float plain[SAMPLE * SAMPLE] = {0};
    md_ref packed = dnnl_primitive_desc_query_md(m->c->desc, dnnl_query_weights_md, 0);
    void *room = aligned_alloc(64, zc_align_up(dnnl_memory_desc_get_size(packed), 64));
    bool ok = room && reorder(MD(m->l.w_plain), plain, packed, room);
    free(room);
    return ok ? dnnl_success : dnnl_out_of_memory;
}

zc_status zc_dnnl_conv_prepare(void)
{
    static atomic_bool done;
    if (atomic_load_explicit(&done, memory_order_acquire)) return ZC_OK;
    const zc_dnnl_shape shape = {.groups = 1,
                                 .ic = SAMPLE,
                                 .oc = SAMPLE,
                                 .in = {2, 2},
                                 .out = {2, 2},
                                 .kernel = {1, 1},
                                 .stride = {1, 1},
                                 .dilation = {1, 1},
                                 .bias = true};
    making m = {.shape = &shape, .c = calloc(1, sizeof *m.c)};
    if (!m.c) return ZC_ERR_NOMEM;
    zc_status status = zc_dnnl_call(ZC_DNNL_CREATE, make_sample, &m);
    free_making(&m);
    zc_dnnl_conv_destroy(m.c);
    if (status == ZC_OK || status == ZC_ERR_UNSUPPORTED)
        atomic_store_explicit(&done, true, memory_order_release);
    return status == ZC_ERR_UNSUPPORTED ? ZC_OK : status;
}

void zc_dnnl_conv_destroy(zc_dnnl_conv *c)
{
    if (!c || zc_gate_enter(ZC_GATE_ONEDNN) != ZC_OK) return; /* the process is exiting */
    if (c->x) dnnl_memory_destroy(c->x);
    if (c->y) dnnl_memory_destroy(c->y);
    if (c->bias) dnnl_memory_destroy(c->bias);
    if (c->w) dnnl_memory_destroy(c->w);
    if (c->scratch) dnnl_memory_destroy(c->scratch);
    if (c->conv) dnnl_primitive_destroy(c->conv);
    if (c->desc) dnnl_primitive_desc_destroy(c->desc);
    if (c->stream) dnnl_stream_destroy(c->stream);
    if (c->engine) dnnl_engine_destroy(c->engine);
    zc_gate_leave(ZC_GATE_ONEDNN);
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

typedef struct run_args {
    zc_dnnl_conv *c;
    void *x, *bias, *y, *scratch;
} run_args;

static dnnl_status_t run(void *arg)
{
    const run_args *r = arg;
    zc_dnnl_conv *c = r->c;
    DNNL_TRY(dnnl_memory_set_data_handle(c->x, r->x));
    DNNL_TRY(dnnl_memory_set_data_handle(c->y, r->y));
    DNNL_TRY(dnnl_memory_set_data_handle(c->bias, r->bias));
    DNNL_TRY(dnnl_memory_set_data_handle(c->scratch, r->scratch));
    DNNL_TRY(dnnl_primitive_execute(c->conv, c->stream, c->nargs, c->args));
    return dnnl_stream_wait(c->stream);
}

zc_status zc_dnnl_conv_run(zc_dnnl_conv *c, const float *x, const float *bias, float *y,
                           void *scratch)
{
    run_args r = {.c = c,
                  .x = (void *)(uintptr_t)x,
                  .bias = (void *)(uintptr_t)bias,
                  .y = y,
                  .scratch = scratch};
    return zc_dnnl_call(ZC_DNNL_RUN, run, &r);
}
