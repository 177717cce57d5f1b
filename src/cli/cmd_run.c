#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/compare.h"
#include "cli/device.h"
#include "cli/inputs.h"
#include "cli/progress.h"
#include "import/tensor_proto.h"
#include "io/npy.h"

typedef struct options {
    cli_inputs in;
    const char *output_dir, *format, *labels, *expect;
    double rtol, atol; /* below 0: not given */
    cli_device device;
    bool reference;
    int64_t threads, top;
} options;

static const cli_option table[] = {
    CLI_INPUT_OPTIONS(options, in),
    {.name = "output-dir",
     .arg = "DIR",
     .help = "save results as output_0.npy and so on",
     .words = CLI_WORDS_DIR,
     .set = cli_set_text,
     .at = offsetof(options, output_dir)},
    {.name = "format",
     .arg = "FORMAT",
     .choices = "npy pb",
     .help = "of saved results: npy (default) or pb; pb for types that .npy lacks",
     .set = cli_set_text,
     .at = offsetof(options, format)},
    CLI_DEVICE_OPTION(options, device),
    CLI_THREADS_OPTION(options, threads, "threads to use (default: one a CPU)"),
    {.name = "top",
     .arg = "K",
     .help = "print the K best of results that look like scores (default 5)",
     .most = 1000,
     .set = cli_set_int,
     .at = offsetof(options, top)},
    {.name = "labels",
     .arg = "FILE",
     .help = "names of classes, one a line",
     .words = CLI_WORDS_FILE,
     .set = cli_set_text,
     .at = offsetof(options, labels)},
    {.name = "expect",
     .arg = "DIR",
     .help = "compare results with output_0.npy or .pb and so on; exit code 3 when they differ",
     .words = CLI_WORDS_DIR,
     .set = cli_set_text,
     .at = offsetof(options, expect)},
    {.name = "rtol",
     .arg = "R",
     .help = "relative tolerance of --expect (default 1e-3)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(options, rtol)},
    {.name = "atol",
     .arg = "A",
     .help = "absolute tolerance of --expect (default 1e-7)",
     .most = 1000000,
     .set = cli_set_real,
     .at = offsetof(options, atol)},
    {.name = "reference",
     .help = "use the plain reference kernels",
     .set = cli_set_flag,
     .at = offsetof(options, reference)},
};

/* ---- printing ---- */

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

typedef struct label_list {
    ZC_VEC(char *) lines;
    uint8_t *text;
} label_list;

static zc_status read_labels(const char *path, label_list *out, zc_diag *diag)
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

static void check_labels(const zc_tensor *t, const label_list *labels)
{
    long long classes = (long long)t->dims[t->rank - 1];
    if (labels->lines.len == (size_t)classes) return;
    fprintf(stderr, "zc: note: there are %zu labels for %lld classes\n", labels->lines.len,
            classes);
}

static void print_top(const zc_tensor *t, int64_t row, int64_t k, const label_list *labels)
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

/* ---- saving ---- */

static zc_status save_pb(const char *path, const char *name, const zc_tensor *t, zc_diag *diag)
{
    zc_buf bytes = {0};
    zc_writer *writer = NULL;
    zc_status status = zc_tensor_to_proto_bytes(t, name, &bytes, diag);
    if (status == ZC_OK) status = zc_writer_open(path, &writer, diag);
    if (status == ZC_OK) status = zc_writer_write(writer, bytes.data, bytes.len, diag);
    if (status == ZC_OK) status = zc_writer_commit(&writer, diag);
    zc_writer_abort(&writer);
    zc_buf_fini(&bytes);
    return status;
}

static zc_status save(const options *o, size_t i, const char *name, const zc_tensor *t,
                      zc_diag *diag)
{
    char path[4096];
    bool pb = (o->format && strcmp(o->format, "pb") == 0) || !zc_npy_has(t->dtype);
    snprintf(path, sizeof path, "%s/output_%zu.%s", o->output_dir, i, pb ? "pb" : "npy");
    return pb ? save_pb(path, name, t, diag) : zc_npy_save(path, t, diag);
}

/* ---- the command ---- */

/* Before the run: what cannot be saved need not be computed. */
static zc_status make_output_dir(const char *dir, zc_diag *diag)
{
    struct stat st;
    bool made = mkdir(dir, 0777) == 0 || errno == EEXIST;
    if (made && stat(dir, &st) == 0 && !S_ISDIR(st.st_mode)) errno = ENOTDIR, made = false;
    if (made && access(dir, W_OK | X_OK) == 0) return ZC_OK;
    return zc_fail(diag, ZC_ERR_IO, dir, "cannot be written to (%s)", strerror(errno));
}

static zc_status compare(const options *o, size_t i, const char *name, const zc_tensor *t,
                         zc_diag *diag)
{
    char path[4096];
    zc_tensor want;
    (void)cli_tensor_file(o->expect, "output", i, path, sizeof path);
    ZC_TRY(cli_read_tensor(path, &want, diag));
    zc_status status = cli_compare(name, t, &want, o->rtol < 0 ? CLI_RTOL : o->rtol,
                                   o->atol < 0 ? CLI_ATOL : o->atol, diag);
    free(want.data);
    return status;
}

/* Every result is shown, also after one that differs. */
static zc_status show_results(const zc_plan *plan, const zc_session *session, const options *o,
                              const label_list *labels, zc_diag *diag)
{
    zc_plan_info info;
    bool differs = false;
    zc_status status = zc_plan_info_get(plan, &info);
    for (size_t i = 0; status == ZC_OK && i < info.outputs; i++) {
        zc_io_info io;
        zc_view view;
        status = zc_plan_output(plan, i, &io, diag);
        if (status == ZC_OK) status = zc_session_output(session, i, &view, diag);
        if (status != ZC_OK) break;
        zc_tensor t = cli_tensor(&view);
        print_summary(io.name, &t);
        if (o->top && labels->lines.len && looks_like_scores(&t)) check_labels(&t, labels);
        for (int64_t r = 0; o->top && looks_like_scores(&t) && r < (t.rank == 2 ? t.dims[0] : 1);
             r++)
            print_top(&t, r, o->top, labels);
        if (o->output_dir) status = save(o, i, io.name, &t, diag);
        if (status == ZC_OK && o->expect) status = compare(o, i, io.name, &t, diag);
        differs |= status == ZC_ERR_ACCURACY;
        if (status == ZC_ERR_ACCURACY) status = ZC_OK;
    }
    return status == ZC_OK && differs ? ZC_ERR_ACCURACY : status;
}

static zc_status run_plan(const char *path, const options *o, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    label_list labels = {.text = NULL};
    zc_status status = o->labels ? read_labels(o->labels, &labels, diag) : ZC_OK;
    if (status == ZC_OK) status = cli_load_plan(path, &plan, diag);
    if (status == ZC_OK && o->output_dir) status = make_output_dir(o->output_dir, diag);
    if (status == ZC_OK)
        status = zc_session_create(
            plan,
            ZC_SESSION_PARAMS(.threads = (int)o->threads, .reference = o->reference,
                              .device = o->device.kind, .ordinal = o->device.ordinal),
            &session, diag);
    if (status == ZC_OK) status = cli_set_inputs(plan, session, &o->in, diag);
    cli_progress progress;
    cli_progress_begin(&progress);
    cli_progress_set(&progress, "running");
    double start = cli_now();
    if (status == ZC_OK) status = zc_session_run(session, diag);
    double seconds = cli_now() - start;
    cli_progress_end(&progress);
    if (status == ZC_OK) status = show_results(plan, session, o, &labels, diag);
    if (status == ZC_OK) {
        printf("ran in %.2f ms ", seconds * 1e3);
        cli_print_device(session);
        puts("");
    }
    (void)zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    ZC_VEC_FINI(&labels.lines);
    free(labels.text);
    return status;
}

static int check(const options *o)
{
    const cli_need needs[] = {
        {o->format, "--format", o->output_dir, "--output-dir DIR"},
        {o->labels, "--labels", o->top > 0, "--top K"},
        {o->rtol >= 0, "--rtol", o->expect, "--expect DIR"},
        {o->atol >= 0, "--atol", o->expect, "--expect DIR"},
        {o->in.seed >= 0, "--seed", o->in.random, "--random"},
    };
    if (o->reference && o->device.kind == ZC_DEVICE_CUDA)
        return cli_usage("run", "--reference is of the CPU (got --device cuda)");
    return cli_check_needs("run", needs, ZC_COUNTOF(needs));
}

static int run(int argc, char **argv)
{
    options o = {
        .in = {.seed = -1}, .top = 5, .rtol = -1, .atol = -1, .device = {.kind = ZC_DEVICE_AUTO}};
    const char *plan;
    int code = cli_parse_one(&cli_run_command, argc, argv, &o, "one plan", &plan);
    if (code != CLI_GO) return code;
    code = check(&o);
    if (code) return code;
    zc_diag *diag = zc_diag_create();
    zc_status status = run_plan(plan, &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}

const cli_command cli_run_command = {
    .name = "run",
    .summary = "run a plan on inputs and print or save the results",
    .operands = "PLAN [OPTIONS]",
    .about = "Runs a plan once and prints its results.",
    .examples = "zc run digits.plan --input image=seven.npy --top 3 --labels labels.txt\n"
                "zc run bert.plan --random --dim batch=2 --dim sequence=128\n"
                "zc run net.plan --inputs test_data_set_0 --output-dir results\n"
                "zc run net.plan --inputs test_data_set_0 --expect test_data_set_0 --rtol 1e-2\n",
    .options = table,
    .option_count = ZC_COUNTOF(table),
    .words = CLI_WORDS_FILE,
    .run = run,
};
