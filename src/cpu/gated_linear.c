/* GatedLinear: both products by Linear's kernel, then the activation and what it is multiplied by.
 */
#include "cpu/matmul.h"
#include "cpu/pointwise.h"

/* Input w of the node, and the bias at its place, as a product of x. */
static zc_status product(zc_kctx *k, int w, int bias, zc_tensor *y)
{
    const zc_attrs_Linear attrs = {.transB = 1, .alpha = 1};
    const zc_tensor *b = zc_input(k, bias);
    zc_tensor in[3] = {k->in[ZC_IN_GatedLinear_x], k->in[w]};
    if (b) in[2] = *b;
    zc_kctx inner = zc_inner(k, ZC_OP_Linear, &attrs, b ? 3 : 2, in, y);
    return zc_kernel_run(&inner, true);
}

zc_status zc_k_GatedLinear(zc_kctx *k)
{
    const zc_attrs_GatedLinear *a = ZC_ATTRS(k, GatedLinear);
    zc_tensor factors[2] = {k->out[0], k->out[0]};
    size_t bytes;
    if (!zc_tensor_bytes(&k->out[0], &bytes) ||
        !(factors[1].data = zc_scratch_get(k->scratch, bytes)))
        return zc_fail_nomem(k->diag, "gate", bytes);
    ZC_TRY(product(k, ZC_IN_GatedLinear_w, ZC_IN_GatedLinear_bias, &factors[0]));
    ZC_TRY(
        zc_activate(k, a->activation, a->activation_params.v, a->activation_params.n, &factors[0]));
    ZC_TRY(product(k, ZC_IN_GatedLinear_v, ZC_IN_GatedLinear_gate_bias, &factors[1]));
    zc_kctx inner = zc_inner(k, ZC_OP_Mul, NULL, 2, factors, k->out);
    return zc_kernel_run(&inner, true);
}
