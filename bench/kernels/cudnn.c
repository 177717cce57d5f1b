/* Convolutions by cuDNN: channels last, f16 with sums of f32, bias, residual and ReLU in its call,
 * the fastest of its algorithms. An image comes as f16, channels last, where zc reads f32. */
#include "cudnn_api.h"

#include <stdlib.h>

#include "base/number.h"

enum { ALGORITHMS = 8 };

static const kb_symbol symbols[] = {
#define DNN(field, symbol, result, params) {#symbol, offsetof(struct kb_cudnn, field)},
#include "cudnn.def"
#undef DNN
};

zc_status kb_cudnn_check(const struct kb_cudnn *dnn, int code, const char *what, zc_diag *diag)
{
    char more[400] = "";
    if (!code) return ZC_OK;
    dnn->last_error(more, sizeof more);
    return zc_fail(diag, ZC_ERR_DEVICE, "cudnn", "%s: %s (%d) %.400s", what,
                   dnn->error_string(code), code, more);
}

struct kb_cudnn *kb_cudnn_open(const char *folders, zc_cu_stream stream, char *why, size_t n)
{
    static const char *const names[] = {"libcudnn.so.9", NULL};
    struct kb_cudnn *dnn = zc_calloc(1, sizeof *dnn);
    int code = 0;
    if (!dnn) {
        zc_snprintf(why, n, "no memory");
        return NULL;
    }
    dnn->library = kb_library(names, folders, why, n);
    bool ok = dnn->library && kb_bind(dnn->library, symbols, ZC_COUNTOF(symbols), dnn, why, n);
    if (ok && ((code = dnn->create(&dnn->handle)) != 0 ||
               (code = dnn->set_stream(dnn->handle, stream)) != 0)) {
        zc_snprintf(why, n, "cudnnCreate: %s", dnn->error_string(code));
        ok = false;
    }
    if (!ok) kb_cudnn_close(&dnn);
    return dnn;
}

void kb_cudnn_close(struct kb_cudnn **dnn)
{
    if (!*dnn) return;
    if ((*dnn)->handle) (void)(*dnn)->destroy((*dnn)->handle);
    free(*dnn);
    *dnn = NULL;
}

size_t kb_cudnn_version(const struct kb_cudnn *dnn)
{
    return dnn->version();
}

typedef struct call {
    kb_run *r;
    struct kb_cudnn *dnn;
    void *x, *w, *bias, *y, *conv, *act;
    size_t image_stride;
    int algorithm;
    size_t workspace;
} call;

static zc_status check(const call *k, int code, const char *what, zc_diag *diag)
{
    return kb_cudnn_check(k->dnn, code, what, diag);
}

static void *pointer(zc_cu_ptr at)
{
    return (void *)(uintptr_t)at;
}

static zc_status issue(void *user, int copy, zc_diag *diag)
{
    const call *k = user;
    const kb_run *r = k->r;
    const float one = 1, zero = 0;
    void *y = pointer(kb_out_at(r, &r->yardstick, copy));
    void *x =
        pointer(r->image ? r->image + (zc_cu_ptr)copy * k->image_stride : kb_at(r, KB_X, copy));
    return check(k,
                 k->dnn->conv_forward(k->dnn->handle, &one, k->x, x, k->w,
                                      pointer(kb_at(r, KB_W, copy)), k->conv, k->algorithm,
                                      pointer(r->rig->workspace), k->workspace,
                                      r->c->residual ? &one : &zero, k->y,
                                      r->c->residual ? pointer(kb_at(r, KB_RESIDUAL, copy)) : y,
                                      k->bias, pointer(kb_at(r, KB_BIAS, copy)), k->act, k->y, y),
                 "cudnnConvolutionBiasActivationForward", diag);
}

static zc_status describe(call *k, zc_diag *diag)
{
    struct kb_cudnn *dnn = k->dnn;
    const kb_case *c = k->r->c;
    int out = (int)k->r->p->t[KB_OUT].dims[1], pad = (int)c->kernel / 2, size = (int)c->size,
        stride = (int)c->stride, kernel = (int)c->kernel, batch = (int)c->batch;
    ZC_TRY(check(k, dnn->tensor_create(&k->x), "x", diag));
    ZC_TRY(check(k, dnn->filter_create(&k->w), "w", diag));
    ZC_TRY(check(k, dnn->tensor_create(&k->bias), "bias", diag));
    ZC_TRY(check(k, dnn->tensor_create(&k->y), "y", diag));
    ZC_TRY(check(k, dnn->conv_create(&k->conv), "convolution", diag));
    ZC_TRY(check(k, dnn->act_create(&k->act), "activation", diag));
    ZC_TRY(check(k, dnn->tensor_set(k->x, DNN_NHWC, DNN_HALF, batch, (int)c->k, size, size), "x",
                 diag));
    ZC_TRY(check(k, dnn->filter_set(k->w, DNN_HALF, DNN_NHWC, (int)c->n, (int)c->k, kernel, kernel),
                 "w", diag));
    ZC_TRY(
        check(k, dnn->tensor_set(k->bias, DNN_NHWC, DNN_HALF, 1, (int)c->n, 1, 1), "bias", diag));
    ZC_TRY(
        check(k, dnn->tensor_set(k->y, DNN_NHWC, DNN_HALF, batch, (int)c->n, out, out), "y", diag));
    ZC_TRY(check(
        k, dnn->conv_set(k->conv, pad, pad, stride, stride, 1, 1, DNN_CROSS_CORRELATION, DNN_FLOAT),
        "convolution", diag));
    return check(k, dnn->act_set(k->act, DNN_RELU, DNN_NOT_PROPAGATE_NAN, 0), "activation", diag);
}

/* The image's values as f16. */
static zc_status make_image(call *k, zc_diag *diag)
{
    kb_run *r = k->r;
    kb_tensor t = r->p->t[KB_X];
    if (!r->c->image) return ZC_OK;
    t.dtype = r->c->type;
    t.bytes = (size_t)t.count * 2;
    k->image_stride = kb_stride(&t);
    ZC_TRY(zc_device_alloc(&r->rig->device, k->image_stride * (size_t)r->copies, "image", &r->image,
                           diag));
    for (int c = 0; c < r->copies; c++)
        ZC_TRY(kb_fill(r->rig, r->image + (zc_cu_ptr)c * k->image_stride, &t, KB_X, c, diag));
    return ZC_OK;
}

static zc_status try_algorithms(call *k, zc_diag *diag)
{
    dnn_algorithm found[ALGORITHMS] = {{.algorithm = 0}};
    int count = 0;
    double best_us = 0;
    ZC_TRY(check(k,
                 k->dnn->conv_algorithms(k->dnn->handle, k->x, k->w, k->conv, k->y, ALGORITHMS,
                                         &count, found),
                 "cudnnGetConvolutionForwardAlgorithm_v7", diag));
    zc_status status = ZC_OK;
    for (int i = 0; i < count && i < ALGORITHMS && !k->r->rig->device.lost; i++) {
        bool better = false;
        k->algorithm = found[i].algorithm;
        if (found[i].status || k->dnn->conv_math(k->conv, found[i].math) ||
            k->dnn->conv_workspace(k->dnn->handle, k->x, k->w, k->conv, k->y, k->algorithm,
                                   &k->workspace) ||
            k->workspace > KB_WORKSPACE)
            continue;
        status = kb_try(k->r, issue, k, &best_us, &better, diag);
        if (better)
            zc_snprintf(k->r->yardstick.how, sizeof k->r->yardstick.how,
                        "algorithm %d, math %d%s%s", k->algorithm, found[i].math,
                        k->r->c->residual ? ", residual" : "",
                        k->r->c->image ? ", of an image in f16, channels last" : "");
    }
    if (best_us > 0) return ZC_OK;
    return status == ZC_OK ? zc_fail(diag, ZC_ERR_UNSUPPORTED, "cudnn", "it offers nothing")
                           : status;
}

static zc_status conv(call *k, zc_diag *diag)
{
    ZC_TRY(describe(k, diag));
    ZC_TRY(check(k, k->dnn->conv_math(k->conv, DNN_TENSOR_OP_MATH), "convolution", diag));
    ZC_TRY(make_image(k, diag));
    return try_algorithms(k, diag);
}

zc_status kb_cudnn_conv(kb_run *r, zc_diag *diag)
{
    struct kb_cudnn *dnn = r->rig->cudnn;
    call k = {.r = r, .dnn = dnn};
    if (!dnn) return zc_fail(diag, ZC_ERR_UNSUPPORTED, "cudnn", "%s", r->rig->no_cudnn);
    r->yardstick.form = (kb_form){.channels_last = true, .act = r->c->act};
    zc_status status = conv(&k, diag);
    if (k.x) (void)dnn->tensor_destroy(k.x);
    if (k.w) (void)dnn->filter_destroy(k.w);
    if (k.bias) (void)dnn->tensor_destroy(k.bias);
    if (k.y) (void)dnn->tensor_destroy(k.y);
    if (k.conv) (void)dnn->conv_destroy(k.conv);
    if (k.act) (void)dnn->act_destroy(k.act);
    return status;
}
