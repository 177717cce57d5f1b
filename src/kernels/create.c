#include <stdio.h>
#include <string.h>

#include "abi/create.h"
#include "kernels/divisor.h"
#include "kernels/gen.h"
#include "kernels/move_form.h"

/* ---- the specialisation ---- */

const char *const zc_config_create[] = {"unit", NULL};

zc_status zc_gen_create(zc_gen *g)
{
    zc_dtype out = zc_gen_out_type(g, 0);
    bool complex = zc_dtype_class(out) == ZC_CLASS_COMPLEX;
    if (zc_gen_out(g, 0)->rank < 0) return zc_gen_decline(g, "rank known only when run");
    if (g->step->op != ZC_OP_ConstantOfShape && zc_dtype_bits(out) < 8)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    if (g->step->op == ZC_OP_EyeLike && complex)
        return zc_gen_decline(g, "element type %s", zc_dtype_name(out));
    snprintf(g->label, sizeof g->label, "create");
    const zc_pvalue *y = zc_gen_out(g, 0);
    bool fills = g->step->op == ZC_OP_ConstantOfShape;
    zc_gen_define(g, "HOW", "%s", fills ? "fill" : g->step->op == ZC_OP_Trilu ? "trilu" : "eye");
    zc_gen_unit(g, out, y->dims, fills ? y->rank : 0);
    return ZC_OK;
}

/* ---- the launch ---- */

static zc_status issue(zc_launch *l, const struct zc_create_params *p)
{
    return zc_launch_configured(l, zc_move_grid(l, p->total), p, sizeof *p);
}

/* ---- ConstantOfShape ---- */

/* 16 bytes of elements of that value. */
static void repeat(const zc_tensor *value, unsigned bits, unsigned char pattern[16])
{
    memset(pattern, 0, 16);
    if (!value) return;
    if (bits >= 8) {
        for (unsigned i = 0; i < 16; i += bits / 8) memcpy(pattern + i, value->data, bits / 8);
        return;
    }
    unsigned v = *(const unsigned char *)value->data & ((1u << bits) - 1), byte = 0;
    for (unsigned i = 0; i < 8; i += bits) byte |= v << i;
    memset(pattern, (int)byte, 16);
}

static bool one_byte(const unsigned char pattern[16])
{
    for (int i = 1; i < 16; i++)
        if (pattern[i] != pattern[0]) return false;
    return true;
}

static zc_status constant_of_shape(zc_launch *l)
{
    zc_tensor *out = &l->out[0];
    struct zc_create_params p;
    unsigned char pattern[16];
    size_t bytes = 0;
    unsigned bits = zc_dtype_bits(out->dtype);
    memset(&p, 0, sizeof p);
    if (!zc_tensor_bytes(out, &bytes)) return zc_launch_fail(l, "the output is too large");
    if (bytes == 0) return ZC_OK;
    repeat(ZC_ATTRS(l, ConstantOfShape)->value, bits, pattern);
    if (one_byte(pattern)) {
        ZC_TRY(zc_launch_fill(l, out->data, pattern[0], bytes));
        unsigned used = (unsigned)((uint64_t)zc_tensor_numel(out) * bits % 8);
        if (!used) return ZC_OK;
        return zc_launch_fill(l, (char *)out->data + bytes - 1, pattern[0] & ((1 << used) - 1), 1);
    }
    memcpy(p.value, pattern, 16);
    p.out = out->data;
    p.total = (long long)(bytes >> zc_move_chosen(l));
    return issue(l, &p);
}

/* ---- EyeLike and Trilu ---- */

static zc_status eye_like(zc_launch *l)
{
    zc_tensor *out = &l->out[0];
    struct zc_create_params p;
    memset(&p, 0, sizeof p);
    p.out = out->data;
    p.total = zc_tensor_numel(out);
    p.cols = zc_divisor_of(out->dims[1]);
    p.k = ZC_ATTRS(l, EyeLike)->k;
    zc_store_f64(out->dtype, p.value, 0, 1);
    return issue(l, &p);
}

static zc_status trilu(zc_launch *l)
{
    const zc_tensor *in = &l->in[0];
    struct zc_create_params p;
    int64_t k = 0;
    int n;
    memset(&p, 0, sizeof p);
    ZC_TRY(zc_launch_ints(l, 1, &k, 1, &n));
    if (n >= 0) ZC_TRY(zc_move_check_length(l, n, 1, "number of diagonals"));
    p.in = in->data;
    p.out = l->out[0].data;
    p.total = zc_tensor_numel(in);
    p.rows = zc_divisor_of(in->dims[in->rank - 2]);
    p.cols = zc_divisor_of(in->dims[in->rank - 1]);
    p.k = k;
    p.upper = ZC_ATTRS(l, Trilu)->upper != 0;
    return issue(l, &p);
}

zc_status zc_launch_create(zc_launch *l)
{
    if (l->op == ZC_OP_EyeLike) return eye_like(l);
    return l->op == ZC_OP_Trilu ? trilu(l) : constant_of_shape(l);
}
