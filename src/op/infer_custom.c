/* Types and shapes of the caller's own operators: what their function `infer` says. */
#include <string.h>

#include "op/custom.h"
#include "op/infer_common.h"

enum { MOST_VALUES = 64 }; /* as in the op table: inputs; outputs are fewer */

zc_status zc_dt_custom(zc_infer *f)
{
    return ZC_OK; /* `infer` gives types and shapes at once */
}

/* Unknown sizes of the inputs, by the number that stands for them: -1 for the first. */
typedef struct unknowns {
    zc_dim dims[MOST_VALUES * ZC_MAX_RANK];
    int n;
} unknowns;

static int64_t number_of(unknowns *u, zc_dim d)
{
    if (zc_dim_is_const(d)) return d.k;
    for (int i = 0; i < u->n; i++)
        if (zc_dim_eq(u->dims[i], d)) return -1 - i;
    u->dims[u->n++] = d;
    return -u->n;
}

/* Are all its sizes and elements known? */
static bool take_input(unknowns *u, const zc_operand *o, zc_custom_value *in)
{
    in->elem = (zc_elem)o->type.dtype;
    in->rank = o->type.rank;
    if (!in->elem) return true;
    for (int d = 0; d < in->rank; d++) in->dims[d] = number_of(u, o->type.dims[d]);
    if (!o->data || !o->data->data) return false;
    in->data = o->data->data;
    return zc_tensor_bytes(o->data, &in->bytes);
}

static zc_status size_of(zc_infer *f, const unknowns *u, bool known, int i, int64_t got,
                         zc_dim *out)
{
    const char *name = ZC_ATTRS(f, Custom)->name;
    if (got >= 0) {
        *out = zc_dim_const(got);
    } else if (got == ZC_CUSTOM_DIM_NEW && !known) {
        *out = zc_dim_fresh(f->dims);
    } else if (got != ZC_CUSTOM_DIM_NEW && -1 - got < u->n) {
        *out = u->dims[-1 - got];
    } else {
        return zc_infer_fail(f, "operator " ZC_NAME " gives output %d a size that is none (%s)",
                             name, i,
                             got == ZC_CUSTOM_DIM_NEW ? "all inputs are known" : "no input has it");
    }
    return ZC_OK;
}

static zc_status give_output(zc_infer *f, const unknowns *u, bool known, int i,
                             const zc_custom_value *out)
{
    zc_dim dims[ZC_MAX_RANK];
    const char *name = ZC_ATTRS(f, Custom)->name;
    if (!zc_dtype_valid(out->elem))
        return zc_infer_fail(f, "operator " ZC_NAME " gives output %d no element type (got %d)",
                             name, i, out->elem);
    zc_infer_out_dtype(f, i, (zc_dtype)out->elem);
    if (out->rank < (known ? 0 : -1) || out->rank > ZC_MAX_RANK)
        return zc_infer_fail(f, "operator " ZC_NAME " gives output %d no rank (got %d)", name, i,
                             out->rank);
    if (out->rank < 0) return ZC_OK;
    for (int d = 0; d < out->rank; d++) ZC_TRY(size_of(f, u, known, i, out->dims[d], &dims[d]));
    return zc_infer_set(f, i, out->rank, dims);
}

static zc_status infer(zc_infer *f, const zc_custom_op *op, unknowns *u, zc_custom_value *in,
                       zc_custom_value *out)
{
    bool known = true;
    zc_custom_node node = {.attrs = f->attrs, .subject = f->subject, .diag = f->diag};
    for (int i = 0; i < f->nin; i++) known &= take_input(u, &f->in[i], &in[i]);
    ZC_TRY(zc_custom_call(op, &node, in, (size_t)f->nin, out, (size_t)f->nout));
    for (int i = 0; i < f->nout; i++) ZC_TRY(give_output(f, u, known, i, &out[i]));
    return ZC_OK;
}

zc_status zc_infer_custom(zc_infer *f)
{
    const zc_custom_op *op;
    ZC_TRY(zc_custom_need(f->custom, ZC_ATTRS(f, Custom), f->subject, &op, f->diag));
    zc_custom_value *values = zc_arena_alloc(f->arena, (size_t)(f->nin + f->nout), sizeof *values);
    unknowns *u = zc_arena_alloc(f->arena, 1, sizeof *u);
    if (!values || !u) return zc_fail_nomem(f->diag, "operands", 0);
    return infer(f, op, u, values, values + f->nin);
}
