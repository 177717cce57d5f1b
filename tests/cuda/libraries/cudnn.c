/* A cuDNN for tests: convolutions of f16, channels last, and attention, on the CPU. Attention's
 * operands are found by their identifiers and strides; the operations between are not looked at. */
#include "cudnn_api.h"

#include <math.h>

#include "memory.h"

#define DNN(field, symbol, result, params) EXPORT result symbol params;
#include "cudnn.def"
#undef DNN

enum { BAD_PARAMETER = 2000, NOT_SUPPORTED = 3000, ATTRIBUTES = 16, GIVENS = 6 };

static results made;
static void *stream_of;

size_t cudnnGetVersion(void)
{
    return 91900;
}

const char *cudnnGetErrorString(int status)
{
    return status == NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_BAD_PARAM";
}

void cudnnGetLastErrorString(char *text, size_t n)
{
    if (n) *text = 0;
}

int cudnnCreate(void **handle)
{
    *handle = &made;
    return 0;
}

int cudnnDestroy(void *handle)
{
    results_free(handle);
    return 0;
}

int cudnnSetStream(void *handle, zc_cu_stream stream)
{
    stream_of = stream;
    return 0;
}

static int send(void *to, const void *from, size_t bytes)
{
    return cuMemcpyHtoDAsync_v2((uintptr_t)to, from, bytes, stream_of) ? BAD_PARAMETER : 0;
}

/* ---- convolutions ---- */

typedef struct shape { /* of all kinds of descriptors; a filter has its results' channels in n */
    int n, c, h, w, pad, stride, mode;
} shape;

static int make(void **out)
{
    *out = calloc(1, sizeof(shape));
    return *out ? 0 : BAD_PARAMETER;
}

static int destroy(void *d)
{
    free(d);
    return 0;
}

static int set(void *d, int format, int type, int n, int c, int h, int w)
{
    *(shape *)d = (shape){.n = n, .c = c, .h = h, .w = w};
    return format == DNN_NHWC && type == DNN_HALF ? 0 : NOT_SUPPORTED;
}

int cudnnCreateTensorDescriptor(void **d)
{
    return make(d);
}
int cudnnDestroyTensorDescriptor(void *d)
{
    return destroy(d);
}
int cudnnSetTensor4dDescriptor(void *d, int format, int type, int n, int c, int h, int w)
{
    return set(d, format, type, n, c, h, w);
}
int cudnnCreateFilterDescriptor(void **d)
{
    return make(d);
}
int cudnnDestroyFilterDescriptor(void *d)
{
    return destroy(d);
}
int cudnnSetFilter4dDescriptor(void *d, int type, int format, int k, int c, int h, int w)
{
    return set(d, format, type, k, c, h, w);
}
int cudnnCreateActivationDescriptor(void **d)
{
    return make(d);
}
int cudnnDestroyActivationDescriptor(void *d)
{
    return destroy(d);
}
int cudnnSetActivationDescriptor(void *d, int mode, int nan, double coefficient)
{
    return mode == DNN_RELU ? 0 : NOT_SUPPORTED;
}
int cudnnCreateConvolutionDescriptor(void **d)
{
    return make(d);
}
int cudnnDestroyConvolutionDescriptor(void *d)
{
    return destroy(d);
}

int cudnnSetConvolution2dDescriptor(void *d, int pad_h, int pad_w, int stride_h, int stride_w,
                                    int dilation_h, int dilation_w, int mode, int compute_type)
{
    *(shape *)d = (shape){.pad = pad_h, .stride = stride_h, .mode = mode};
    return mode == DNN_CROSS_CORRELATION && compute_type == DNN_FLOAT && dilation_h == 1
               ? 0
               : NOT_SUPPORTED;
}

int cudnnSetConvolutionMathType(void *d, int math)
{
    return math == DNN_TENSOR_OP_MATH ? 0 : NOT_SUPPORTED;
}

static bool fits(const shape *x, const shape *w, const shape *conv, const shape *y)
{
    return x->c == w->c && y->c == w->n && x->n == y->n &&
           y->h == (x->h + 2 * conv->pad - w->h) / conv->stride + 1;
}

int cudnnGetConvolutionForwardAlgorithm_v7(void *handle, void *x, void *w, void *conv, void *y,
                                           int asked, int *count, dnn_algorithm *found)
{
    if (!fits(x, w, conv, y) || asked < 3) return BAD_PARAMETER;
    for (int i = 0; i < 3; i++)
        found[i] = (dnn_algorithm){
            .algorithm = i, .status = i == 2 ? NOT_SUPPORTED : 0, .math = DNN_TENSOR_OP_MATH};
    *count = 3;
    return 0;
}

int cudnnGetConvolutionForwardWorkspaceSize(void *handle, void *x, void *w, void *conv, void *y,
                                            int algorithm, size_t *bytes)
{
    *bytes = 512;
    return 0;
}

static double patch(const shape *x, const void *from, const shape *w, const void *weights,
                    const shape *conv, int n, int m, int row, int column)
{
    double sum = 0;
    for (int tap = 0; tap < w->h * w->w; tap++) {
        int h = row * conv->stride - conv->pad + tap / w->w,
            v = column * conv->stride - conv->pad + tap % w->w;
        if (h < 0 || h >= x->h || v < 0 || v >= x->w) continue;
        for (int c = 0; c < x->c; c++)
            sum += (double)half_at(from, (((int64_t)n * x->h + h) * x->w + v) * x->c + c) *
                   (double)half_at(weights, ((int64_t)m * w->h * w->w + tap) * x->c + c);
    }
    return sum;
}

/* Algorithm 0 fails. */
int cudnnConvolutionBiasActivationForward(void *handle, const void *alpha, void *x_desc,
                                          const void *x, void *w_desc, const void *w, void *conv,
                                          int algorithm, void *workspace, size_t workspace_bytes,
                                          const void *alpha2, void *z_desc, const void *z,
                                          void *bias_desc, const void *bias, void *act,
                                          void *y_desc, void *y)
{
    const shape *sy = y_desc;
    int64_t i = 0, count = (int64_t)sy->n * sy->h * sy->w * sy->c;
    if (!fits(x_desc, w_desc, conv, sy) || workspace_bytes != 512) return BAD_PARAMETER;
    if (!algorithm) return NOT_SUPPORTED;
    void *out = result_make(&made, (size_t)count * 2);
    if (!out) return BAD_PARAMETER;
    for (; i < count; i++) {
        int m = (int)(i % sy->c), column = (int)(i / sy->c % sy->w),
            row = (int)(i / sy->c / sy->w % sy->h), n = (int)(i / sy->c / sy->w / sy->h);
        double v = patch(x_desc, x, w_desc, w, conv, n, m, row, column) + (double)half_at(bias, m);
        if (*(const float *)alpha2 != 0) v += (double)half_at(z, i);
        half_put(out, i, v > 0 ? v : 0);
    }
    return send(y, out, (size_t)count * 2);
}

/* ---- attention ---- */

typedef struct descriptor {
    int type, n;
    struct {
        int attribute;
        int64_t count;
        char data[128];
    } a[ATTRIBUTES];
} descriptor;

static struct {
    int64_t dims[4], strides[4];
} given[GIVENS + 1]; /* by identifier, of the graph that was made last */

int cudnnBackendCreateDescriptor(int type, void **out)
{
    descriptor *d = calloc(1, sizeof *d);
    *out = d;
    if (!d) return BAD_PARAMETER;
    d->type = type;
    return 0;
}

int cudnnBackendDestroyDescriptor(void *d)
{
    return destroy(d);
}

static size_t size_of(int type)
{
    if (type == DNN_TYPE_BOOLEAN) return 1;
    return type == DNN_TYPE_INT64 || type == DNN_TYPE_POINTER || type == DNN_TYPE_DESCRIPTOR ||
                   type == DNN_TYPE_HANDLE
               ? 8
               : 4;
}

int cudnnBackendSetAttribute(void *descriptor_, int attribute, int type, int64_t n,
                             const void *values)
{
    descriptor *d = descriptor_;
    size_t bytes = size_of(type) * (size_t)n;
    if (!d || d->n == ATTRIBUTES || bytes > sizeof d->a[0].data) return BAD_PARAMETER;
    d->a[d->n].attribute = attribute;
    d->a[d->n].count = n;
    memcpy(d->a[d->n++].data, values, bytes);
    return 0;
}

static const void *find(const descriptor *d, int attribute, int64_t *count)
{
    for (int i = 0; i < d->n; i++)
        if (d->a[i].attribute == attribute) {
            if (count) *count = d->a[i].count;
            return d->a[i].data;
        }
    return NULL;
}

int cudnnBackendFinalize(void *descriptor_)
{
    const descriptor *d = descriptor_;
    if (d->type != DNN_TENSOR) return 0;
    const int64_t *id = find(d, DNN_AT_TENSOR_ID, NULL);
    const void *dims = find(d, DNN_AT_TENSOR_DIMS, NULL),
               *strides = find(d, DNN_AT_TENSOR_STRIDES, NULL);
    if (!id || !dims || !strides) return BAD_PARAMETER;
    if (*id > GIVENS) return 0;
    memcpy(given[*id].dims, dims, sizeof given[0].dims);
    memcpy(given[*id].strides, strides, sizeof given[0].strides);
    return 0;
}

int cudnnBackendGetAttribute(const void *descriptor_, int attribute, int type, int64_t asked,
                             int64_t *n, void *values)
{
    const descriptor *d = descriptor_;
    *n = 1;
    if (d->type == DNN_PLAN) *(int64_t *)values = 512;
    return 0;
}

static int64_t place(int id, int64_t b, int64_t h, int64_t row, int64_t column)
{
    const int64_t *s = given[id].strides;
    return b * s[0] + h * s[1] + row * s[2] + column * s[3];
}

static double element(void *const *data, int64_t b, int64_t h, int64_t row, int64_t column,
                      bool causal)
{
    double sum = 0, all = 0, scale = (double)*(const float *)data[4];
    for (int64_t key = 0; key < (causal ? row + 1 : given[3].dims[2]); key++) {
        double score = 0;
        for (int64_t i = 0; i < given[1].dims[3]; i++)
            score += (double)half_at(data[0], place(1, b, h, row, i)) *
                     (double)half_at(data[1], place(2, b, h, i, key));
        double share = exp(score * scale);
        all += share;
        sum += share * (double)half_at(data[2], place(3, b, h, key, column));
    }
    return sum / all;
}

int cudnnBackendExecute(void *handle, void *plan, void *pack)
{
    int64_t n = 0;
    const int64_t *d = given[4].dims, count = d[0] * d[1] * d[2] * d[3];
    void *data[GIVENS], *out = result_make(&made, (size_t)count * 2);
    const void *pointers = find(pack, DNN_AT_PACK_POINTERS, &n);
    const int64_t *ids = find(pack, DNN_AT_PACK_IDS, NULL);
    if (!out || !pointers || !ids || n < 5 || n > GIVENS || ids[n - 1] != n) return BAD_PARAMETER;
    memcpy(data, pointers, (size_t)n * sizeof *data);
    for (int64_t i = 0; i < count; i++) {
        int64_t column = i % d[3], row = i / d[3] % d[2], h = i / d[3] / d[2] % d[1],
                b = i / d[3] / d[2] / d[1];
        half_put(out, place(4, b, h, row, column), element(data, b, h, row, column, n == GIVENS));
    }
    return send(data[3], out, (size_t)count * 2);
}
