#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/inputs.h"
#include "import/tensor_proto.h"
#include "io/npy.h"

const char cli_run_help[] =
    "usage: zc run PLAN [OPTIONS]\n"
    "\n"
    "Runs a plan once and prints its results.\n"
    "\n" CLI_INPUT_HELP "      --output-dir DIR     save results as output_0.npy and so on\n"
    "      --format npy|pb      of saved results (default npy; pb for types that .npy lacks)\n"
    "      --device cpu         where to run: cpu, or cuda[:N] in builds that have it\n"
    "      --threads N          threads to use (default: one a CPU)\n"
    "      --top K              print the K best of results that look like scores (default 5)\n"
    "      --labels FILE        names of classes, one a line\n"
    "      --reference          use the plain reference kernels\n"
    "\n"
    "examples:\n"
    "  zc run digits.plan --input image=seven.npy --top 3 --labels labels.txt\n"
    "  zc run bert.plan --random --dim batch=2 --dim sequence=128\n"
    "  zc run net.plan --inputs test_data_set_0 --output-dir results\n";

typedef struct options {
    cli_inputs in;
    const char *output_dir, *labels;
    bool pb, reference;
    int64_t threads, top;
} options;

/* ---- options ---- */

static int check_device(const char *name)
{
    if (strcmp(name, "cpu") == 0) return EXIT_OK;
    if (strncmp(name, "cuda", 4) == 0 && (name[4] == 0 || name[4] == ':')) {
        fputs("zc: error: --device: this zc has no CUDA back end (need cpu)\n", stderr);
        return EXIT_DEVICE;
    }
    return cli_usage("run", "no device '%s' (need cpu or cuda[:N])", name);
}

static int parse(int argc, char **argv, options *o)
{
    static const struct option longs[] = {
        CLI_INPUT_OPTIONS,
        {"output-dir", required_argument, NULL, 'o'},
        {"format", required_argument, NULL, 'f'},
        {"device", required_argument, NULL, 'd'},
        {"threads", required_argument, NULL, 't'},
        {"top", required_argument, NULL, 'k'},
        {"labels", required_argument, NULL, 'l'},
        {"reference", no_argument, NULL, 'r'},
        {NULL, 0, NULL, 0},
    };
    int c, code;
    while ((c = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        code = EXIT_OK;
        if (cli_input_option("run", c, optarg, &o->in, &code)) {
            if (code) return code;
            continue;
        }
        switch (c) {
        case 'o':
            o->output_dir = optarg;
            break;
        case 'l':
            o->labels = optarg;
            break;
        case 'r':
            o->reference = true;
            break;
        case 'd':
            code = check_device(optarg);
            break;
        case 'f':
            o->pb = strcmp(optarg, "pb") == 0;
            if (!o->pb && strcmp(optarg, "npy") != 0)
                return cli_usage("run", "--format is npy or pb");
            break;
        case 't':
            if (!cli_int(optarg, 1, 1024, &o->threads))
                return cli_usage("run", "--threads is 1 to 1024");
            break;
        case 'k':
            if (!cli_int(optarg, 0, 1000, &o->top)) return cli_usage("run", "--top is 0 to 1000");
            break;
        default:
            return cli_bad_option("run");
        }
        if (code) return code;
    }
    return optind + 1 == argc ? EXIT_OK : cli_usage("run", "needs one plan");
}

/* ---- printing ---- */

static zc_tensor tensor_of(const zc_view *v)
{
    zc_tensor t = {.dtype = (zc_dtype)v->elem, .rank = v->rank, .data = v->data};
    memcpy(t.dims, v->dims, sizeof t.dims);
    return t;
}

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
        low = v < low ? v : low;
        high = v > high ? v : high;
        sum += v;
    }
    printf("  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)n);
    if (nans) printf("  NaN %lld", (long long)nans);
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
    for (char *line; status == ZC_OK && (line = strsep(&rest, "\n"));)
        if (*line && !ZC_VEC_PUSH(&out->lines, line)) status = zc_fail_nomem(diag, "labels", len);
    return status;
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

static bool npy_has(zc_dtype d)
{
    return zc_dtype_bits(d) >= 8 && d != ZC_BF16 && (d < ZC_F8E4M3FN);
}

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
    bool pb = o->pb || !npy_has(t->dtype);
    snprintf(path, sizeof path, "%s/output_%zu.%s", o->output_dir, i, pb ? "pb" : "npy");
    return pb ? save_pb(path, name, t, diag) : zc_npy_save(path, t, diag);
}

/* ---- the command ---- */

static zc_status show_results(const zc_plan *plan, const zc_session *session, const options *o,
                              const label_list *labels, zc_diag *diag)
{
    zc_plan_info info;
    zc_status status = zc_plan_info_get(plan, &info);
    for (size_t i = 0; status == ZC_OK && i < info.outputs; i++) {
        zc_io_info io;
        zc_view view;
        status = zc_plan_output(plan, i, &io, diag);
        if (status == ZC_OK) status = zc_session_output(session, i, &view, diag);
        if (status != ZC_OK) break;
        zc_tensor t = tensor_of(&view);
        print_summary(io.name, &t);
        for (int64_t r = 0; o->top && looks_like_scores(&t) && r < (t.rank == 2 ? t.dims[0] : 1);
             r++)
            print_top(&t, r, o->top, labels);
        if (o->output_dir) status = save(o, i, io.name, &t, diag);
    }
    return status;
}

static zc_status run(const char *path, const options *o, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *session = NULL;
    label_list labels = {.text = NULL};
    zc_status status = o->labels ? read_labels(o->labels, &labels, diag) : ZC_OK;
    if (status == ZC_OK) status = zc_plan_load_file(path, &plan, diag);
    if (status == ZC_OK)
        status = zc_session_create(
            plan, ZC_SESSION_PARAMS(.threads = (int)o->threads, .reference = o->reference),
            &session, diag);
    if (status == ZC_OK) status = cli_set_inputs(plan, session, &o->in, diag);
    double start = cli_now();
    if (status == ZC_OK) status = zc_session_run(session, diag);
    double seconds = cli_now() - start;
    if (status == ZC_OK && o->output_dir) (void)mkdir(o->output_dir, 0777);
    if (status == ZC_OK) status = show_results(plan, session, o, &labels, diag);
    if (status == ZC_OK) printf("ran in %.2f ms on cpu\n", seconds * 1e3);
    (void)zc_session_destroy(&session);
    zc_plan_destroy(&plan);
    ZC_VEC_FINI(&labels.lines);
    free(labels.text);
    return status;
}

int cli_run(int argc, char **argv)
{
    options o = {.in = {.seed = 1}, .top = 5};
    int code = parse(argc, argv, &o);
    if (code) return code;
    zc_diag *diag = zc_diag_create();
    zc_status status = run(argv[optind], &o, diag);
    if (status != ZC_OK) code = cli_report(diag, status);
    zc_diag_destroy(&diag);
    return code;
}
