#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/verify.h"

#define ROW "%-12s %-32s"

void cli_verify_header(void)
{
    printf(ROW " %11s  %11s  %s\n", "run", "tensor", "worst error", "relative", "verdict");
}

void cli_verify_absent(const char *runner, const char *why)
{
    printf("%-12s not run: ", runner);
    cli_put(stdout, why);
    puts("");
}

static void print_name(const char *runner, const char *name)
{
    zc_buf text = {0};
    zc_buf_escape(&text, name, strlen(name));
    printf(ROW, runner, text.data ? text.data : "");
    zc_buf_fini(&text);
}

static void print_wrong(const zc_difference *d, const zc_tensor *need)
{
    zc_buf at = {0};
    cli_put_index(need, d->at, &at);
    printf("%lld of %lld elements differ, worst at %s (got %.9g, need %.9g)\n", (long long)d->wrong,
           (long long)d->n, at.data ? at.data : "?", d->got, d->need);
    zc_buf_fini(&at);
}

static bool print_row(const verify *v, const char *runner, const char *name, const zc_tensor *got,
                      const zc_tensor *need)
{
    zc_difference d = zc_differ(got, need, v->rtol, v->atol);
    char a[200], b[200];
    print_name(runner, name);
    if (d.is_other_type) {
        printf(" %11s  %11s  wrong type (got %s, need %s)\n", "-", "-",
               zc_tensor_type_text(got, a, sizeof a), zc_tensor_type_text(need, b, sizeof b));
        return false;
    }
    printf(" %11.3g  %11.3g  ", d.absolute, d.greatest > 0 ? d.absolute / d.greatest : d.absolute);
    if (d.wrong)
        print_wrong(&d, need);
    else
        puts("ok");
    return !d.wrong;
}

/* The reference has all tensors of the model, another run those that its passes left, perhaps in
 * another precision. */
static bool print_layer(const verify *v, const char *runner, const debug_results *got, size_t i)
{
    const debug_results *need = &v->d.reference;
    const char *name = got->names.data[i];
    size_t k = v->models_outputs;
    while (k < need->outputs.len && strcmp(need->names.data[k], name) != 0) k++;
    if (k == need->outputs.len) return true;
    zc_tensor same;
    if (!cli_cast(&got->outputs.data[i], need->outputs.data[k].dtype, &same)) return false;
    bool is_right = print_row(v, runner, name, &same, &need->outputs.data[k]);
    free(same.data);
    return is_right;
}

bool cli_verify_rows(const verify *v, const char *runner, const debug_results *got)
{
    bool same = true;
    for (size_t i = v->models_outputs; i < got->outputs.len; i++)
        same &= print_layer(v, runner, got, i);
    for (size_t i = 0; i < v->models_outputs && i < got->outputs.len; i++)
        same &= print_row(v, runner, v->d.reference.names.data[i], &got->outputs.data[i],
                          &v->d.reference.outputs.data[i]);
    return same;
}

/* ---- NaN and infinity ---- */

static int64_t count_like(const zc_tensor *t, bool nan)
{
    int64_t n = zc_dtype_is_float(t->dtype) ? zc_tensor_numel(t) : 0, count = 0;
    for (int64_t i = 0; i < n; i++) {
        double x = zc_load_f64(t->dtype, t->data, i);
        count += nan ? isnan(x) != 0 : isinf(x) != 0;
    }
    return count;
}

/* Tensors in the order in which they are computed: the model's outputs, which stand first, come
 * last. */
static const char *first_like(const debug_results *r, bool nan, int64_t *count, size_t outputs)
{
    for (size_t i = 0; i < r->outputs.len; i++) {
        size_t at = (i + outputs) % r->outputs.len;
        *count = count_like(&r->outputs.data[at], nan);
        if (*count) return r->names.data[at];
    }
    return NULL;
}

const char *cli_verify_not_finite(const debug_results *r, const char **kind, int64_t *count,
                                  size_t models_outputs)
{
    const char *name = first_like(r, true, count, models_outputs);
    *kind = name ? "NaN" : "infinity";
    return name ? name : first_like(r, false, count, models_outputs);
}
