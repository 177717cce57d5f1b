#include "cli/samples.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static zc_status add(const zc_plan *plan, const cli_inputs *in, cli_samples *out, zc_diag *diag)
{
    cli_values run;
    if (out->runs.len == CLI_SAMPLES_MAX)
        return zc_fail(diag, ZC_ERR_LIMIT, in->dir, "too many runs (need at most %d)",
                       CLI_SAMPLES_MAX);
    zc_status status = cli_read_inputs(plan, in, &run, diag);
    if (status == ZC_OK && !ZC_VEC_PUSH(&out->runs, run))
        status = zc_fail_nomem(diag, "inputs", sizeof run);
    if (status != ZC_OK) cli_free_values(&run);
    for (size_t i = 0; i < run.n && status == ZC_OK; i++) {
        zc_view view = cli_view(&run.v[i]);
        if (!ZC_VEC_PUSH(&out->views, view)) status = zc_fail_nomem(diag, "inputs", sizeof view);
    }
    return status;
}

static bool is_dir(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool holds_inputs(const char *dir)
{
    char path[4096];
    return cli_tensor_file(dir, "input", 0, path, sizeof path);
}

/* A folder of folders: those that hold inputs. */
static zc_status add_all(const zc_plan *plan, const char *dir, cli_samples *out, zc_diag *diag)
{
    struct dirent **entries;
    char path[4096];
    zc_status status = ZC_OK;
    size_t before = out->runs.len;
    int n = scandir(dir, &entries, NULL, alphasort);
    if (n < 0) return zc_fail(diag, ZC_ERR_IO, dir, "cannot be read");
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
        if (status == ZC_OK && entries[i]->d_name[0] != '.' && is_dir(path) && holds_inputs(path))
            status = add(plan, &(cli_inputs){.dir = path, .seed = -1}, out, diag);
        free(entries[i]);
    }
    free(entries);
    if (status != ZC_OK || out->runs.len > before) return status;
    return zc_fail(diag, ZC_ERR_IO, dir,
                   "holds no inputs (need input_0.npy or input_0.pb, or folders that hold some)");
}

zc_status cli_read_samples(const zc_plan *plan, const cli_list *from, int64_t random,
                           cli_samples *out, zc_diag *diag)
{
    *out = (cli_samples){.runs = {.len = 0}};
    for (size_t i = 0; i < from->n; i++) {
        const char *dir = from->v[i];
        const cli_inputs in = {.dir = dir, .seed = -1};
        ZC_TRY(is_dir(dir) && !holds_inputs(dir) ? add_all(plan, dir, out, diag)
                                                 : add(plan, &in, out, diag));
    }
    for (int64_t i = 0; i < random && !from->n; i++) {
        const cli_inputs in = {.random = true, .seed = i + 1, .quiet = i > 0};
        ZC_TRY(add(plan, &in, out, diag));
    }
    return ZC_OK;
}

void cli_free_samples(cli_samples *s)
{
    for (size_t i = 0; i < s->runs.len; i++) cli_free_values(&s->runs.data[i]);
    ZC_VEC_FINI(&s->runs);
    ZC_VEC_FINI(&s->views);
}

zc_status cli_load_model(const zc_model_source *model, const zc_compile_params *like, zc_plan **out,
                         zc_diag *diag)
{
    void *bytes = NULL;
    size_t len = 0;
    const zc_compile_params p = {.size = sizeof p,
                                 .data_root = like->data_root,
                                 .dims = like->dims,
                                 .dim_count = like->dim_count,
                                 .shapes = like->shapes,
                                 .shape_count = like->shape_count};
    zc_diag *own = zc_diag_create();
    zc_status status = zc_compile_model(model, &p, &bytes, &len, NULL, own);
    if (status == ZC_OK) status = zc_plan_load_bytes(bytes, len, out, own);
    zc_free(bytes);
    return zc_diag_end_again(diag, &own, status);
}
