/* A cuBLASLt for tests: products on the CPU, by its documentation: columns first, D = op(A) B +
 * beta C, a bias for each row, GELU by tanh. Its second offer fails when it is called. With
 * ZC_TEST_WRONG in the environment its results are wrong. */
#include "cublaslt_api.h"

#include <math.h>

#include "memory.h"

#define LT(field, symbol, result, params) EXPORT result symbol params;
#include "cublaslt.def"
#undef LT

enum { BAD_PARAMETER = 7, NOT_SUPPORTED = 15 };

typedef struct layout {
    int type;
    uint64_t rows, columns;
    int64_t ld;
} layout;

typedef struct description {
    bool integers; /* alpha and beta, too */
    int trans, epilogue;
    const void *bias;
} description;

static results made;

static double e4m3_of(uint8_t code)
{
    int exponent = code >> 3 & 15, digits = code & 7;
    double v = exponent ? ldexp(8 + digits, exponent - 10) : ldexp(digits, -9);
    if ((code & 0x7f) == 0x7f) v = NAN;
    return code & 0x80 ? -v : v;
}

static double at(int type, const void *data, int64_t i)
{
    if (type == LT_R_32F) return (double)((const float *)data)[i];
    if (type == LT_R_16BF) return (double)zc_bf16_to_f32(((const uint16_t *)data)[i]);
    if (type == LT_R_8I) return ((const int8_t *)data)[i];
    if (type == LT_R_32I) return ((const int32_t *)data)[i];
    if (type == LT_R_8F_E4M3) return e4m3_of(((const uint8_t *)data)[i]);
    return (double)half_at(data, i);
}

static void put(int type, void *data, int64_t i, double v)
{
    if (type == LT_R_32F)
        ((float *)data)[i] = (float)v;
    else if (type == LT_R_32I)
        ((int32_t *)data)[i] = (int32_t)v;
    else if (type == LT_R_16BF)
        ((uint16_t *)data)[i] = zc_f32_to_bf16((float)v);
    else
        half_put(data, i, v);
}

size_t cublasLtGetVersion(void)
{
    return 130100;
}

const char *cublasLtGetStatusName(int status)
{
    return status == NOT_SUPPORTED ? "CUBLAS_STATUS_NOT_SUPPORTED" : "CUBLAS_STATUS_INVALID_VALUE";
}

int cublasLtCreate(void **handle)
{
    *handle = &made;
    return 0;
}

int cublasLtDestroy(void *handle)
{
    results_free(handle);
    return 0;
}

int cublasLtMatmulDescCreate(void **desc, int compute_type, int scale_type)
{
    description *d = calloc(1, sizeof *d);
    *desc = d;
    if (!d) return BAD_PARAMETER;
    d->integers = compute_type == LT_COMPUTE_32I;
    if (compute_type != LT_COMPUTE_32F && !d->integers) return BAD_PARAMETER;
    return scale_type == (d->integers ? LT_R_32I : LT_R_32F) ? 0 : BAD_PARAMETER;
}

int cublasLtMatmulDescDestroy(void *desc)
{
    free(desc);
    return 0;
}

int cublasLtMatmulDescSetAttribute(void *desc, int attribute, const void *value, size_t bytes)
{
    description *d = desc;
    if (attribute == LT_DESC_BIAS_POINTER && bytes == sizeof d->bias)
        memcpy(&d->bias, value, bytes);
    else if (attribute == LT_DESC_TRANSA && bytes == sizeof d->trans)
        memcpy(&d->trans, value, bytes);
    else if (attribute == LT_DESC_EPILOGUE && bytes == sizeof d->epilogue)
        memcpy(&d->epilogue, value, bytes);
    else if (attribute == LT_DESC_FAST_ACCUM && bytes == sizeof(int8_t))
        return 0; /* its sums are exact all the same */
    else
        return BAD_PARAMETER;
    return 0;
}

int cublasLtMatrixLayoutCreate(void **out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    layout *l = calloc(1, sizeof *l);
    *out = l;
    if (!l || ld < (int64_t)rows) return BAD_PARAMETER;
    *l = (layout){type, rows, columns, ld};
    return 0;
}

int cublasLtMatrixLayoutDestroy(void *l)
{
    free(l);
    return 0;
}

int cublasLtMatmulPreferenceCreate(void **preference)
{
    *preference = calloc(1, 1);
    return 0;
}

int cublasLtMatmulPreferenceDestroy(void *preference)
{
    free(preference);
    return 0;
}

int cublasLtMatmulPreferenceSetAttribute(void *preference, int attribute, const void *value,
                                         size_t bytes)
{
    return attribute == LT_PREFERENCE_WORKSPACE && bytes == 8 ? 0 : BAD_PARAMETER;
}

/* Do the factors and the result fit each other? Of integers A is transposed, as of theirs. */
static bool fits(const description *k, const layout *a, const layout *b, const layout *d)
{
    if (k->integers && (!k->trans || d->type != LT_R_32I)) return false;
    uint64_t out = k->trans ? a->columns : a->rows, in = k->trans ? a->rows : a->columns;
    return in == b->rows && out == d->rows && b->columns == d->columns;
}

int cublasLtMatmulAlgoGetHeuristic(void *handle, void *desc, void *a, void *b, void *c, void *d,
                                   void *preference, int asked, lt_found *found, int *count)
{
    if (!fits(desc, a, b, d) || !fits(desc, a, b, c) || asked < 2) return BAD_PARAMETER;
    for (int i = 0; i < 2; i++)
        found[i] = (lt_found){.algorithm = {{(uint64_t)i}}, .workspace = 1024};
    *count = 2;
    return 0;
}

/* Alpha or beta. */
static double factor_of(const description *k, const void *factor)
{
    return k->integers ? (double)*(const int32_t *)factor : (double)*(const float *)factor;
}

static double epilogue(const description *k, const layout *d, uint64_t row, double v)
{
    if (k->epilogue & LT_EPILOGUE_BIAS) v += at(d->type, k->bias, (int64_t)row);
    if (k->epilogue & LT_EPILOGUE_GELU)
        v *= 0.5 * (1 + tanh(0.7978845608028654 * (v + 0.044715 * v * v * v)));
    return v;
}

int cublasLtMatmul(void *handle, void *desc, const void *alpha, const void *a, void *al,
                   const void *b, void *bl, const void *beta, const void *c, void *cl, void *d,
                   void *dl, const lt_algorithm *algorithm, void *workspace, size_t workspace_bytes,
                   zc_cu_stream stream)
{
    const description *k = desc;
    const layout *la = al, *lb = bl, *lc = cl, *ld = dl;
    size_t size = ld->type == LT_R_32F || ld->type == LT_R_32I ? 4 : 2,
           bytes = (size_t)ld->ld * ld->columns * size;
    if (!fits(k, la, lb, ld) || workspace_bytes < 1024) return BAD_PARAMETER;
    if (algorithm->data[0]) return NOT_SUPPORTED;
    void *out = result_make(&made, bytes);
    if (!out) return BAD_PARAMETER;
    for (uint64_t j = 0; j < ld->columns; j++) {
        for (uint64_t i = 0; i < ld->rows; i++) {
            int64_t to = (int64_t)i + (int64_t)j * ld->ld;
            double sum = 0;
            for (uint64_t n = 0; n < lb->rows; n++)
                sum += at(la->type, a,
                          k->trans ? (int64_t)n + (int64_t)i * la->ld
                                   : (int64_t)i + (int64_t)n * la->ld) *
                       at(lb->type, b, (int64_t)n + (int64_t)j * lb->ld);
            sum *= factor_of(k, alpha);
            if (getenv("ZC_TEST_WRONG")) sum += 1;
            if (factor_of(k, beta) != 0) sum += factor_of(k, beta) * at(lc->type, c, to);
            put(ld->type, out, to, epilogue(k, ld, i, sum));
        }
    }
    return cuMemcpyHtoDAsync_v2((uintptr_t)d, out, bytes, stream) ? BAD_PARAMETER : 0;
}
