#include "abi/random.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"
#include "kernels/random.h"

/* ---- the specialisation ---- */

/* Z_KIND of random.cu */
static int kind_of(zc_op op)
{
    if (op == ZC_OP_RandomNormal || op == ZC_OP_RandomNormalLike) return 1;
    return op == ZC_OP_Bernoulli ? 2 : op == ZC_OP_Dropout ? 3 : 0;
}

zc_status zc_gen_random(zc_gen *g)
{
    int kind = kind_of(g->step->op);
    zc_dtype in = kind >= 2 ? zc_gen_in_type(g, 0) : ZC_F32;
    zc_dtype out = kind == 3 ? in : zc_gen_out_type(g, 0);
    if (!zc_kernel_type(in) || !zc_kernel_type(out))
        return zc_gen_decline(g, "element type %s", zc_dtype_name(zc_kernel_type(in) ? out : in));
    zc_gen_define(g, "KIND", "%d", kind);
    if (kind >= 2) zc_gen_type(g, "IN", in);
    zc_gen_type(g, "OUT", out);
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status issue(zc_launch *l, struct zc_random_params *p)
{
    int64_t pairs = p->total / 2 + p->total % 2;
    return zc_launch_kernel(l, 0, zc_move_grid(l, pairs), 256, 0, p, sizeof *p);
}

static zc_status fill(zc_launch *l, uint64_t key, double offset, double scale)
{
    struct zc_random_params p = {.out = l->out[0].data,
                                 .total = zc_tensor_numel(&l->out[0]),
                                 .key = key,
                                 .offset = offset,
                                 .scale = scale};
    return issue(l, &p);
}

static zc_status bernoulli(zc_launch *l)
{
    const zc_attrs_Bernoulli *a = ZC_ATTRS(l, Bernoulli);
    struct zc_random_params p = {.in = l->in[0].data,
                                 .out = l->out[0].data,
                                 .total = zc_tensor_numel(&l->in[0]),
                                 .key = ZC_LAUNCH_RANDOM_KEY(l, Bernoulli, a)};
    return issue(l, &p);
}

/* ---- dropout ---- */

/* Everything is kept. */
static zc_status keep_all(zc_launch *l, const struct zc_random_params *p)
{
    size_t bytes = 0;
    if (p->mask) ZC_TRY(zc_launch_fill(l, p->mask, 1, (size_t)p->total));
    if (!p->out) return ZC_OK;
    if (!zc_tensor_bytes(&l->in[0], &bytes)) return zc_launch_fail(l, "the input is too large");
    return zc_launch_copy(l, p->out, p->in, bytes);
}

static const zc_tensor *scalar(const zc_launch *l, int i)
{
    bool given = zc_launch_has(l, i) && zc_tensor_numel(&l->host[i]) == 1 && l->host[i].data;
    return given ? &l->host[i] : NULL;
}

static zc_status dropout(zc_launch *l)
{
    const zc_attrs_Dropout *a = ZC_ATTRS(l, Dropout);
    const zc_tensor *ratio = scalar(l, 1), *training = scalar(l, 2);
    struct zc_random_params p = {
        .in = l->in[0].data,
        .out = zc_launch_out(l, 0),
        .mask = zc_launch_out(l, 1),
        .total = zc_tensor_numel(&l->in[0]),
        .key = zc_launch_random_key(l, ZC_ATTR_GIVEN(Dropout, a, seed), (uint64_t)a->seed)};
    p.offset = ratio ? zc_load_f64(ratio->dtype, ratio->data, 0) : 0.5;
    if (!training || !zc_load_i64(training->dtype, training->data, 0)) p.offset = 0;
    if (!(p.offset >= 0 && p.offset < 1))
        return zc_launch_fail(l, "ratio out of range (got %g, need [0, 1))", p.offset);
    p.scale = 1 - p.offset;
    return p.offset == 0 ? keep_all(l, &p) : issue(l, &p);
}

zc_status zc_launch_random(zc_launch *l)
{
    if (l->op == ZC_OP_Bernoulli) return bernoulli(l);
    if (l->op == ZC_OP_Dropout) return dropout(l);
    if (l->op == ZC_OP_RandomNormal) {
        const zc_attrs_RandomNormal *a = ZC_ATTRS(l, RandomNormal);
        return fill(l, ZC_LAUNCH_RANDOM_KEY(l, RandomNormal, a), a->mean, a->scale);
    }
    if (l->op == ZC_OP_RandomNormalLike) {
        const zc_attrs_RandomNormalLike *a = ZC_ATTRS(l, RandomNormalLike);
        return fill(l, ZC_LAUNCH_RANDOM_KEY(l, RandomNormalLike, a), a->mean, a->scale);
    }
    if (l->op == ZC_OP_RandomUniform) {
        const zc_attrs_RandomUniform *a = ZC_ATTRS(l, RandomUniform);
        return fill(l, ZC_LAUNCH_RANDOM_KEY(l, RandomUniform, a), a->low,
                    (double)a->high - (double)a->low);
    }
    const zc_attrs_RandomUniformLike *a = ZC_ATTRS(l, RandomUniformLike);
    return fill(l, ZC_LAUNCH_RANDOM_KEY(l, RandomUniformLike, a), a->low,
                (double)a->high - (double)a->low);
}
