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

void cli_put_index(const zc_tensor *t, int64_t element, zc_buf *out)
{
    int64_t at = element / (is_complex(t) ? 2 : 1), stride = zc_tensor_numel(t);
    zc_buf_puts(out, "[");
    for (int d = 0; d < t->rank; d++) {
        stride /= t->dims[d];
        zc_buf_printf(out, "%s%lld", d ? "," : "", (long long)(at / stride));
        at %= stride;
    }
    zc_buf_puts(out, "]");
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

cli_difference cli_differ(const zc_tensor *got, const zc_tensor *need, double rtol, double atol)
{
    cli_difference d = {.is_other_type = !same_type(got, need)};
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
    cli_difference d = cli_differ(got, want, rtol, atol);
    if (d.is_other_type) return other_type(name, got, want, diag);
    if (!d.wrong) return ZC_OK;
    zc_buf index = {0};
    cli_put_index(want, d.at, &index);
    zc_status status =
        zc_fail(diag, ZC_ERR_ACCURACY, name,
                "%lld of %lld elements differ, worst at %s (got %.9g, need %.9g)",
                (long long)d.wrong, (long long)d.n, index.data ? index.data : "?", d.got, d.need);
    zc_buf_fini(&index);
    return status;
}
