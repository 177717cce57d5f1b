#include "tune/same.h"

#include <math.h>
#include <string.h>

static double step_of(zc_dtype d)
{
    return d == ZC_F64 ? 0x1p-52 : d == ZC_F16 ? 0x1p-10 : d == ZC_BF16 ? 0x1p-7 : 0x1p-23;
}

bool zc_same_tensor(const zc_tensor *got, const zc_tensor *need, zc_dtype as, int rounding,
                    int64_t stride)
{
    if (got->dtype != need->dtype || got->rank != need->rank ||
        memcmp(got->dims, need->dims, (size_t)got->rank * sizeof *got->dims) != 0)
        return false;
    double most = 0;
    int64_t n = zc_tensor_numel(got);
    for (int64_t i = 0; i < n; i += stride) {
        double v = fabs(zc_load_f64(need->dtype, need->data, i));
        if (isfinite(v) && v > most) most = v;
    }
    double bound = zc_dtype_is_float(got->dtype) ? rounding * step_of(as) * most : 0;
    for (int64_t i = 0; i < n; i += stride) {
        double x = zc_load_f64(got->dtype, got->data, i),
               y = zc_load_f64(need->dtype, need->data, i);
        if (x != y && !(isnan(x) && isnan(y)) && !(fabs(x - y) <= bound)) return false;
    }
    return true;
}
