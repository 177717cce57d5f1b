#include "op/differ.h"

#include <math.h>
#include <string.h>

static bool close_enough(double got, double want, double rtol, double atol)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
    if (got == want) return true;
    return isfinite(got) && isfinite(want) && fabs(got - want) <= atol + rtol * fabs(want);
}

static bool is_complex(const zc_tensor *t)
{
    return zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX;
}

/* Of complex tensors the parts count one by one. */
static void elements(const zc_tensor *t, int64_t first, int64_t n, double *out)
{
    const zc_dtype half = t->dtype == ZC_C64 ? ZC_F32 : ZC_F64;
    const zc_dtype dtype = is_complex(t) ? half : t->dtype;
    const float *x = t->data;
    if (dtype == ZC_F32) /* most are */
        for (int64_t i = 0; i < n; i++) out[i] = (double)x[first + i];
    else
        for (int64_t i = 0; i < n; i++) out[i] = zc_load_f64(dtype, t->data, first + i);
}

static bool same_type(const zc_tensor *a, const zc_tensor *b)
{
    return a->dtype == b->dtype && a->rank == b->rank &&
           memcmp(a->dims, b->dims, (size_t)a->rank * sizeof *a->dims) == 0;
}

static double distance(double got, double need)
{
    if (got == need || (isnan(got) && isnan(need))) return 0;
    return isfinite(got) && isfinite(need) ? fabs(got - need) : INFINITY;
}

/* Adds element i. */
static void add(zc_difference *d, int64_t i, double g, double w, bool is_wrong, double *worst)
{
    const double off = distance(g, w), size = fabs(w);
    const bool is_first = is_wrong && !d->wrong;
    if (isfinite(w) && size > d->greatest) d->greatest = size;
    if (off > d->absolute) d->absolute = off;
    d->wrong += is_wrong;
    if (!is_first && (off <= *worst || is_wrong != (d->wrong > 0))) return;
    *worst = off;
    d->at = i;
    d->got = g;
    d->need = w;
}

zc_difference zc_differ(const zc_tensor *got, const zc_tensor *need, double rtol, double atol)
{
    enum { PIECE = 512 }; /* elements that stay in the cache */
    zc_difference d = {.is_other_type = !same_type(got, need)};
    double worst = -1, g[PIECE], w[PIECE];
    if (d.is_other_type) return d;
    d.n = zc_tensor_numel(need) * (is_complex(need) ? 2 : 1);
    for (int64_t first = 0; first < d.n; first += PIECE) {
        const int64_t n = d.n - first < PIECE ? d.n - first : PIECE;
        elements(got, first, n, g);
        elements(need, first, n, w);
        for (int64_t i = 0; i < n; i++)
            add(&d, first + i, g[i], w[i], !close_enough(g[i], w[i], rtol, atol), &worst);
    }
    return d;
}

double zc_difference_error(const zc_difference *d, zc_dtype type)
{
    bool is_whole = !zc_dtype_is_float(type) && zc_dtype_class(type) != ZC_CLASS_COMPLEX;
    if (d->is_other_type || (is_whole && d->absolute > 0)) return INFINITY;
    return d->absolute / (d->greatest > 0 ? d->greatest : 1);
}
