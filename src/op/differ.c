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
static double element(const zc_tensor *t, int64_t i)
{
    zc_dtype half = t->dtype == ZC_C64 ? ZC_F32 : ZC_F64;
    return zc_load_f64(is_complex(t) ? half : t->dtype, t->data, i);
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

zc_difference zc_differ(const zc_tensor *got, const zc_tensor *need, double rtol, double atol)
{
    zc_difference d = {.is_other_type = !same_type(got, need)};
    double worst = -1;
    if (d.is_other_type) return d;
    d.n = zc_tensor_numel(need) * (is_complex(need) ? 2 : 1);
    for (int64_t i = 0; i < d.n; i++) {
        double g = element(got, i), w = element(need, i), off = distance(g, w);
        bool is_wrong = !close_enough(g, w, rtol, atol), is_first = is_wrong && !d.wrong;
        if (isfinite(w)) d.greatest = fmax(d.greatest, fabs(w));
        d.absolute = fmax(d.absolute, off);
        d.wrong += is_wrong;
        if (!is_first && (off <= worst || is_wrong != (d.wrong > 0))) continue;
        worst = off;
        d.at = i;
        d.got = g;
        d.need = w;
    }
    return d;
}

double zc_difference_error(const zc_difference *d, zc_dtype type)
{
    bool is_whole = !zc_dtype_is_float(type) && zc_dtype_class(type) != ZC_CLASS_COMPLEX;
    if (d->is_other_type || (is_whole && d->absolute > 0)) return INFINITY;
    return d->absolute / (d->greatest > 0 ? d->greatest : 1);
}
