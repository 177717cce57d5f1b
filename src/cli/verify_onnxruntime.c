/* onnxruntime's answer, from python3 in a process of its own. The two share files that are in
 * memory alone: they are gone when both processes are, however these end. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/verify.h"
#include "io/npy.h"
#include "media/npz.h"

extern char **environ;

/* Absent modules end the script with this code; the text says which. */
#define ABSENT 77
/* Of what the script prints, so much of the end is looked at. */
#define LOG_MAX 4096

/* arguments: model, inputs' arrays one after the other, an archive for the outputs' arrays, number
 * of inputs, their names, the outputs' names */
static const char script[] =
    "import sys\n"
    "try:\n"
    "    import numpy, onnxruntime\n"
    "except ImportError as e:\n"
    "    print('python3 has no module ' + str(e.name))\n"
    "    sys.exit(77)\n"
    "model, inputs, outputs, n = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])\n"
    "names, wanted = sys.argv[5:5 + n], sys.argv[5 + n:]\n"
    "s = onnxruntime.InferenceSession(model, providers=['CPUExecutionProvider'])\n"
    "with open(inputs, 'rb') as f: feeds = {x: numpy.load(f) for x in names}\n"
    "with open(outputs, 'wb') as f: numpy.savez(f, *s.run(wanted, feeds))\n";

/* ---- files in memory ---- */

enum { MODEL, INPUTS, OUTPUTS, LOG, FILES };

typedef struct call {
    const verify *v;
    FILE *files[FILES];
    char paths[FILES][32]; /* the same here and in python3, which inherits them */
    zc_diag *diag;
} call;

static bool open_files(call *c)
{
    for (int i = 0; i < FILES; i++) {
        const int fd = memfd_create("zc", 0);
        if (fd < 0) return false;
        c->files[i] = fdopen(fd, "w+b");
        if (!c->files[i]) {
            close(fd);
            return false;
        }
        snprintf(c->paths[i], sizeof c->paths[i], "/proc/self/fd/%d", fd);
    }
    return true;
}

static void close_files(call *c)
{
    for (int i = 0; i < FILES; i++)
        if (c->files[i]) fclose(c->files[i]);
}

static bool put(FILE *f, const void *data, size_t len)
{
    return len == 0 || fwrite(data, 1, len, f) == len;
}

static zc_status put_input(const call *c, const zc_tensor *t)
{
    zc_buf head = {0};
    size_t bytes = 0;
    zc_status status = zc_npy_header(t, &head, c->diag);
    if (status == ZC_OK &&
        (!zc_tensor_bytes(t, &bytes) || !put(c->files[INPUTS], head.data, head.len) ||
         !put(c->files[INPUTS], t->data, bytes)))
        status = zc_fail_nomem(c->diag, "onnxruntime's inputs", bytes);
    zc_buf_fini(&head);
    return status;
}

static zc_status write_files(call *c)
{
    const debug_results *r = &c->v->d.reference;
    const zc_model_source *m = &c->v->d.model;
    for (size_t i = 0; i < r->inputs.n; i++) ZC_TRY(put_input(c, &r->inputs.v[i]));
    if ((!m->path && !put(c->files[MODEL], m->bytes, m->len)) || fflush(c->files[MODEL]) != 0 ||
        fflush(c->files[INPUTS]) != 0)
        return zc_fail_nomem(c->diag, "onnxruntime's files", m->len);
    return ZC_OK;
}

/* ---- python3 ---- */

/* The last line that the script printed. */
static void read_reason(const call *c, char *out, size_t n)
{
    char text[LOG_MAX + 1];
    FILE *f = c->files[LOG];
    if (fseek(f, -LOG_MAX, SEEK_END) != 0) rewind(f);
    size_t len = fread(text, 1, LOG_MAX, f);
    while (len && text[len - 1] == '\n') len--;
    text[len] = 0;
    const char *line = strrchr(text, '\n');
    snprintf(out, n, "%s", line ? line + 1 : text);
}

/* The exit code; -1 with errno when there is no python3. */
static int run_script(const call *c, const char **argv)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, fileno(c->files[LOG]), 1);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    errno = posix_spawnp(&child, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

static zc_status ask(const call *c, char *why, size_t why_len)
{
    const debug_results *r = &c->v->d.reference;
    const char *path = c->v->d.model.path;
    size_t n = r->inputs.n, outputs = c->v->models_outputs, k = 0;
    char count[24];
    const char **argv = zc_calloc(n + outputs + 8, sizeof *argv);
    if (!argv) return zc_fail_nomem(c->diag, "arguments", n + outputs);
    snprintf(count, sizeof count, "%zu", n);
    argv[k++] = "python3";
    argv[k++] = "-c";
    argv[k++] = script;
    argv[k++] = path ? path : c->paths[MODEL];
    argv[k++] = c->paths[INPUTS];
    argv[k++] = c->paths[OUTPUTS];
    argv[k++] = count;
    for (size_t i = 0; i < n; i++) argv[k++] = r->input_names.data[i];
    for (size_t i = 0; i < outputs; i++) argv[k++] = r->names.data[i];
    int code = run_script(c, argv);
    free(argv);
    if (code < 0)
        snprintf(why, why_len, "python3: %s", strerror(errno));
    else if (code)
        read_reason(c, why, why_len);
    if (code <= 0 || code == ABSENT) return ZC_OK;
    return zc_fail(c->diag, ZC_ERR_INPUT, "onnxruntime", "failed: %s", why);
}

static zc_status read_outputs(const call *c, debug_results *out)
{
    uint8_t *data;
    size_t len;
    zc_zip zip;
    ZC_TRY(zc_file_map(c->paths[OUTPUTS], &data, &len, c->diag));
    zc_status status = zc_zip_open(data, len, &zip, c->diag);
    for (size_t i = 0; status == ZC_OK && i < c->v->models_outputs; i++) {
        char array[32];
        zc_tensor t;
        snprintf(array, sizeof array, "arr_%zu", i);
        const size_t entry = zc_npz_find(&zip, array);
        status = entry < zip.entries.len
                     ? zc_npz_read(&zip, entry, &t, c->diag)
                     : zc_fail(c->diag, ZC_ERR_INPUT, "onnxruntime", "gave no output %zu", i);
        if (status == ZC_OK)
            status = cli_debug_keep(out, c->v->d.reference.names.data[i], &t, c->diag);
    }
    zc_zip_close(&zip);
    zc_file_unmap(data, len);
    return status;
}

/* Types that .npy lacks cannot be handed over. */
static bool is_possible(const verify *v, char *why, size_t n)
{
    const debug_results *r = &v->d.reference;
    for (size_t i = 0; i < r->inputs.n; i++)
        if (!zc_npy_has(r->inputs.v[i].dtype)) {
            snprintf(why, n, "input '%.100s' is %s, which .npy lacks", r->input_names.data[i],
                     zc_dtype_name(r->inputs.v[i].dtype));
            return false;
        }
    for (size_t i = 0; i < v->models_outputs; i++)
        if (!zc_npy_has(r->outputs.data[i].dtype)) {
            snprintf(why, n, "output '%.100s' is %s, which .npy lacks", r->names.data[i],
                     zc_dtype_name(r->outputs.data[i].dtype));
            return false;
        }
    return true;
}

zc_status cli_verify_onnxruntime(const verify *v, debug_results *out, char *why, size_t n,
                                 zc_diag *diag)
{
    call c = {.v = v, .diag = diag};
    zc_status status = ZC_OK;
    *why = 0;
    if (!is_possible(v, why, n)) return ZC_OK;
    if (open_files(&c)) {
        status = write_files(&c);
        if (status == ZC_OK) status = ask(&c, why, n);
        if (status == ZC_OK && !*why) status = read_outputs(&c, out);
    } else {
        snprintf(why, n, "a file in memory: %s", strerror(errno));
    }
    close_files(&c);
    return status;
}
