/* What came out, printed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "cli/run.h"

static void print_element(const zc_tensor *t, int64_t i)
{
    if (zc_dtype_is_float(t->dtype))
        printf("%.6g", zc_load_f64(t->dtype, t->data, i));
    else
        printf("%lld", (long long)zc_load_i64(t->dtype, t->data, i));
}

static void print_summary(const char *name, const zc_tensor *t)
{
    char type[256];
    int64_t n = zc_tensor_numel(t), nans = 0;
    double low = INFINITY, high = -INFINITY, sum = 0;
    cli_put(stdout, name);
    printf(": %s", zc_tensor_type_text(t, type, sizeof type));
    if (n == 0 || zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX) {
        puts("");
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        double v = zc_load_f64(t->dtype, t->data, i);
        nans += isnan(v) != 0;
        if (isnan(v)) continue;
        low = v < low ? v : low;
        high = v > high ? v : high;
        sum += v;
    }
    if (nans < n) printf("  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)(n - nans));
    if (nans) printf("  NaN %lld of %lld", (long long)nans, (long long)n);
    printf("\n  [");
    for (int64_t i = 0; i < n && i < 8; i++) {
        if (i) printf(", ");
        print_element(t, i);
    }
    puts(n > 8 ? ", ...]" : "]");
}

/* One row of floats over at least two classes. */
static bool looks_like_scores(const zc_tensor *t)
{
    if (!zc_dtype_is_float(t->dtype) || t->rank < 1 || t->rank > 2) return false;
    int64_t classes = t->dims[t->rank - 1];
    return classes >= 2 && classes <= 100000 &&
           (t->rank == 1 || (t->dims[0] >= 1 && t->dims[0] <= 16));
}

zc_status cli_run_labels(const char *path, run_labels *out, zc_diag *diag)
{
    size_t len;
    zc_status status = zc_file_read(path, 1 << 24, &out->text, &len, diag);
    char *rest = (char *)out->text;
    for (char *line; status == ZC_OK && (line = strsep(&rest, "\n"));) {
        size_t n = strlen(line);
        if (n && line[n - 1] == '\r') line[n - 1] = 0;
        bool is_end = !n && !rest; /* after the last line's newline */
        if (!is_end && !ZC_VEC_PUSH(&out->lines, line)) status = zc_fail_nomem(diag, "labels", len);
    }
    return status;
}

static void check_labels(const zc_tensor *t, const run_labels *labels)
{
    long long classes = (long long)t->dims[t->rank - 1];
    if (labels->lines.len == (size_t)classes) return;
    fprintf(stderr, "zc: note: there are %zu labels for %lld classes\n", labels->lines.len,
            classes);
}

static void print_top(const zc_tensor *t, int64_t row, int64_t k, const run_labels *labels)
{
    int64_t n = t->dims[t->rank - 1], first = row * n;
    double sum = 0, high = -INFINITY, norm = 0;
    bool probabilities = true;
    for (int64_t i = 0; i < n; i++) {
        double v = zc_load_f64(t->dtype, t->data, first + i);
        sum += v;
        high = v > high ? v : high;
        probabilities &= v >= 0 && v <= 1;
    }
    probabilities &= fabs(sum - 1) < 1e-2;
    for (int64_t i = 0; i < n; i++) norm += exp(zc_load_f64(t->dtype, t->data, first + i) - high);
    printf("  top %lld%s%s\n", (long long)(k < n ? k : n),
           t->dims[0] > 1 && t->rank == 2 ? " of row" : "",
           probabilities ? " (probabilities):" : " (softmax of the scores):");
    double limit = INFINITY;
    int64_t limit_at = -1;
    for (int64_t r = 0; r < k && r < n; r++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++) {
            double v = zc_load_f64(t->dtype, t->data, first + i);
            bool later = v < limit || (v == limit && i > limit_at);
            if (later && (best < 0 || v > zc_load_f64(t->dtype, t->data, first + best))) best = i;
        }
        if (best < 0) break;
        limit = zc_load_f64(t->dtype, t->data, first + best);
        limit_at = best;
        printf("  %6.2f %%  ", 100 * (probabilities ? limit : exp(limit - high) / norm));
        if ((size_t)best < labels->lines.len)
            cli_put(stdout, labels->lines.data[best]);
        else
            printf("class %lld", (long long)best);
        puts("");
    }
}

void cli_run_print(const run_result *r, const run_options *o, const run_labels *labels)
{
    const zc_tensor *t = &r->t;
    if (r->step >= 0) printf("step %lld: ", (long long)r->step);
    print_summary(r->name, t);
    if (!o->top || !looks_like_scores(t)) return;
    if (labels->lines.len) check_labels(t, labels);
    for (int64_t row = 0; row < (t->rank == 2 ? t->dims[0] : 1); row++)
        print_top(t, row, o->top, labels);
}

/* ---- JSON ---- */

/* JSON has no NaN and no infinity: null. Numbers read back to the same bits. */
static void put_number(const zc_tensor *t, int64_t i)
{
    bool is_complex = zc_dtype_class(t->dtype) == ZC_CLASS_COMPLEX;
    double v = is_complex ? 0 : zc_load_f64(t->dtype, t->data, i);
    if (t->dtype == ZC_BOOL)
        fputs(v != 0 ? "true" : "false", stdout);
    else if (t->dtype == ZC_U64)
        printf("%llu", (unsigned long long)zc_load_i64(t->dtype, t->data, i));
    else if (!zc_dtype_is_float(t->dtype) && !is_complex)
        printf("%lld", (long long)zc_load_i64(t->dtype, t->data, i));
    else if (is_complex || !isfinite(v))
        fputs("null", stdout);
    else
        printf(t->dtype == ZC_F64 ? "%.17g" : "%.9g", v);
}

static void put_result(const run_result *r)
{
    int64_t n = zc_tensor_numel(&r->t);
    fputs("{\"name\": ", stdout);
    cli_json(stdout, r->name);
    if (r->step >= 0) printf(", \"step\": %lld", (long long)r->step);
    printf(", \"type\": \"%s\", \"shape\": [", zc_dtype_name(r->t.dtype));
    for (int d = 0; d < r->t.rank; d++) printf("%s%lld", d ? ", " : "", (long long)r->t.dims[d]);
    fputs("], \"data\": [", stdout);
    for (int64_t i = 0; i < n; i++) {
        if (i) fputs(", ", stdout);
        put_number(&r->t, i);
    }
    fputs("]}", stdout);
}

void cli_run_json(const run_results *r)
{
    fputs("{\"outputs\": [", stdout);
    for (size_t i = 0; i < r->list.len; i++) {
        fputs(i ? ",\n  " : "\n  ", stdout);
        put_result(&r->list.data[i]);
    }
    printf("],\n \"runs\": %lld, \"ms\": %.6f}\n", (long long)r->steps, r->seconds * 1e3);
}
