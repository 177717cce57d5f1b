/* What came out, saved. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/run.h"
#include "import/tensor_proto.h"
#include "io/npy.h"
#include "media/npz.h"

/* Before the run: what cannot be saved need not be computed. */
zc_status cli_run_make_dir(const char *dir, zc_diag *diag)
{
    struct stat st;
    bool made = mkdir(dir, 0777) == 0 || errno == EEXIST;
    if (made && stat(dir, &st) == 0 && !S_ISDIR(st.st_mode)) errno = ENOTDIR, made = false;
    if (made && access(dir, W_OK | X_OK) == 0) return ZC_OK;
    return zc_fail(diag, ZC_ERR_IO, dir, "cannot be written to (%s)", strerror(errno));
}

static zc_status save_pb(const char *path, const char *name, const zc_tensor *t, zc_diag *diag)
{
    zc_buf bytes = {0};
    zc_status status = zc_tensor_to_proto_bytes(t, name, &bytes, diag);
    if (status == ZC_OK) status = zc_file_write(path, bytes.data, bytes.len, diag);
    zc_buf_fini(&bytes);
    return status;
}

static zc_status save_raw(const char *path, const zc_tensor *t, zc_diag *diag)
{
    size_t bytes = 0;
    (void)zc_tensor_bytes(t, &bytes);
    return zc_file_write(path, t->data, bytes, diag);
}

/* All results in one archive, by name. */
static zc_status save_npz(const run_results *r, const run_options *o, zc_diag *diag)
{
    char path[4096];
    zc_zip_writer w = {.at = 0};
    snprintf(path, sizeof path, "%s/" RUN_ARCHIVE, o->output_dir);
    ZC_TRY(zc_writer_open(path, &w.file, diag));
    zc_status status = ZC_OK;
    for (size_t i = 0; status == ZC_OK && i < r->list.len; i++) {
        const run_result *one = &r->list.data[i];
        zc_buf name = {0};
        zc_buf_puts(&name, one->name);
        if (one->step >= 0) zc_buf_printf(&name, "_step_%lld", (long long)one->step);
        status = name.failed ? zc_fail_nomem(diag, one->name, name.len)
                             : zc_npz_add(&w, name.data, &one->t, diag);
        zc_buf_fini(&name);
    }
    if (status == ZC_OK) status = zc_zip_end(&w, diag);
    zc_buf_fini(&w.directory);
    if (status == ZC_OK) status = zc_writer_commit(&w.file, diag);
    zc_writer_abort(&w.file);
    return status;
}

static bool has_format(const run_options *o, const char *format)
{
    return o->format && strcmp(o->format, format) == 0;
}

/* "DIR/output_0.npy", of a step "DIR/output_0_step_3.npy". */
static zc_status save(const run_result *r, const run_options *o, zc_diag *diag)
{
    char path[4096], step[32] = "";
    bool raw = has_format(o, "raw"), pb = has_format(o, "pb") || !zc_npy_has(r->t.dtype);
    if (r->step >= 0) snprintf(step, sizeof step, "_step_%lld", (long long)r->step);
    snprintf(path, sizeof path, "%s/output_%zu%s.%s", o->output_dir, r->number, step,
             raw  ? "bin"
             : pb ? "pb"
                  : "npy");
    if (raw) return save_raw(path, &r->t, diag);
    return pb ? save_pb(path, r->name, &r->t, diag) : zc_npy_save(path, &r->t, diag);
}

zc_status cli_run_save(const run_results *r, const run_options *o, zc_diag *diag)
{
    if (has_format(o, "npz")) return save_npz(r, o, diag);
    for (size_t i = 0; i < r->list.len; i++) ZC_TRY(save(&r->list.data[i], o, diag));
    return ZC_OK;
}
