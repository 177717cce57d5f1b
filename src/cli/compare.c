#include "cli/compare.h"

void cli_put_index(const zc_tensor *t, int64_t element, zc_buf *out)
{
    bool is_complex = zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX;
    int64_t at = element / (is_complex ? 2 : 1), stride = zc_tensor_numel(t);
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
    zc_difference d = zc_differ(got, want, rtol, atol);
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
