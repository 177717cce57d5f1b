#include "cli/compare.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

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

/* "[1,0,7]" */
static void put_index(const zc_tensor *t, int64_t at, zc_buf *out)
{
    int64_t stride = zc_tensor_numel(t);
    zc_buf_puts(out, "[");
    for (int d = 0; d < t->rank; d++) {
        stride /= t->dims[d];
        zc_buf_printf(out, "%s%lld", d ? "," : "", (long long)(at / stride));
        at %= stride;
    }
    zc_buf_puts(out, "]");
}

static zc_status other_type(const char *name, const zc_tensor *got, const zc_tensor *want,
                            zc_diag *diag)
{
    char a[200], b[200];
    return zc_fail(diag, ZC_ERR_ACCURACY, name, "wrong type (got %s, need %s)",
                   zc_tensor_type_text(got, a, sizeof a), zc_tensor_type_text(want, b, sizeof b));
}

zc_status cli_compare(const char *name, const zc_tensor *got, const zc_tensor *want, double rtol,
                      double atol, zc_diag *diag)
{
    int64_t parts = is_complex(want) ? 2 : 1, n = zc_tensor_numel(want) * parts, wrong = 0, at = 0;
    double worst = -1;
    if (got->dtype != want->dtype || got->rank != want->rank ||
        memcmp(got->dims, want->dims, (size_t)want->rank * sizeof *want->dims) != 0)
        return other_type(name, got, want, diag);
    for (int64_t i = 0; i < n; i++) {
        double g = element(got, i), w = element(want, i);
        if (close_enough(g, w, rtol, atol)) continue;
        double off = isfinite(g) && isfinite(w) ? fabs(g - w) : INFINITY;
        if (off > worst) {
            worst = off;
            at = i;
        }
        wrong++;
    }
    if (!wrong) return ZC_OK;
    zc_buf index = {0};
    put_index(want, at / parts, &index);
    zc_status status =
        zc_fail(diag, ZC_ERR_ACCURACY, name,
                "%lld of %lld elements differ, worst at %s (got %.9g, need %.9g)", (long long)wrong,
                (long long)n, index.data ? index.data : "?", element(got, at), element(want, at));
    zc_buf_fini(&index);
    return status;
}
