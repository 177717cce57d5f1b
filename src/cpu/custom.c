/* The caller's own operators. */
#include "op/custom.h"

#include <string.h>

#include "cpu/kernel.h"

static void describe(const zc_tensor *t, zc_custom_value *v)
{
    *v = (zc_custom_value){.elem = (zc_elem)t->dtype};
    if (t->dtype == ZC_NONE) return;
    v->rank = t->rank;
    memcpy(v->dims, t->dims, sizeof v->dims);
    (void)zc_tensor_bytes(t, &v->bytes);
}

zc_status zc_k_Custom(zc_kctx *k)
{
    const zc_custom_op *op;
    ZC_TRY(zc_custom_need(k->custom, ZC_ATTRS(k, Custom), k->subject, &op, k->diag));
    zc_custom_value *in = zc_scratch_get(k->scratch, (size_t)(k->nin + k->nout) * sizeof *in);
    if (!in) return zc_fail_nomem(k->diag, "operands", 0);
    zc_custom_value *out = in + k->nin;
    for (int i = 0; i < k->nin; i++) {
        describe(&k->in[i], &in[i]);
        in[i].data = k->in[i].data;
    }
    for (int i = 0; i < k->nout; i++) {
        describe(&k->out[i], &out[i]);
        out[i].result = k->out[i].data;
    }
    zc_custom_node node = {.attrs = k->attrs, .subject = k->subject, .diag = k->diag, .k = k};
    return zc_custom_call(op, &node, in, (size_t)k->nin, out, (size_t)k->nout);
}

bool zc_custom_stopped(const zc_custom_node *node)
{
    return node->k && zc_stopped(node->k);
}

void zc_custom_parallel(zc_custom_node *node, int64_t n, int64_t grain,
                        void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    if (!node->k) return;
    zc_kctx k = *node->k;
    zc_parallel(&k, n, grain, fn, arg);
}
