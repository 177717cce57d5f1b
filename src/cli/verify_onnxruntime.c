/* onnxruntime's answer, from python3 in a process of its own; files in a temporary folder. */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/signals.h"
#include "cli/verify.h"
#include "io/npy.h"

extern char **environ;

/* Absent modules end the script with this code; the text says which. */
#define ABSENT 77
/* Of what the script prints, this much is looked at. */
#define LOG_MAX (1u << 16)

/* arguments: model, folder, number of inputs, their names, the outputs' names */
static const char script[] =
    "import sys\n"
    "try:\n"
    "    import numpy, onnxruntime\n"
    "except ImportError as e:\n"
    "    print('python3 has no module ' + str(e.name))\n"
    "    sys.exit(77)\n"
    "model, folder, n = sys.argv[1], sys.argv[2], int(sys.argv[3])\n"
    "names, wanted = sys.argv[4:4 + n], sys.argv[4 + n:]\n"
    "s = onnxruntime.InferenceSession(model, providers=['CPUExecutionProvider'])\n"
    "feeds = {x: numpy.load(f'{folder}/input_{i}.npy') for i, x in enumerate(names)}\n"
    "for i, y in enumerate(s.run(wanted, feeds)):\n"
    "    numpy.save(f'{folder}/output_{i}.npy', y)\n";

/* The last line that the script printed. */
static void read_reason(const char *path, char *out, size_t n)
{
    uint8_t *text;
    size_t len;
    *out = 0;
    if (zc_file_read(path, LOG_MAX, &text, &len, NULL) != ZC_OK) return;
    while (len && text[len - 1] == '\n') text[--len] = 0;
    const char *line = strrchr((char *)text, '\n');
    snprintf(out, n, "%s", line ? line + 1 : (char *)text);
    free(text);
}

/* The exit code; -1 with errno when there is no python3. */
static int run_script(const char **argv, const char *log)
{
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    posix_spawn_file_actions_adddup2(&actions, 1, 2);
    errno = posix_spawnp(&child, argv[0], &actions, NULL, (char **)(uintptr_t)argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (errno) return -1;
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

typedef struct call {
    const verify *v;
    const char *dir;
    char model[4096], log[4096], count[24];
    char *why;
    size_t why_len;
    zc_diag *diag;
} call;

static zc_status write_inputs(call *c)
{
    const debug_results *r = &c->v->d.reference;
    for (size_t i = 0; i < r->inputs.n; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/input_%zu.npy", c->dir, i);
        zc_status status = zc_npy_save(path, &r->inputs.v[i], c->diag);
        if (status != ZC_OK) return status;
    }
    const zc_model_source *m = &c->v->d.model;
    snprintf(c->model, sizeof c->model, "%s", m->path ? m->path : "");
    if (m->path) return ZC_OK;
    snprintf(c->model, sizeof c->model, "%s/model.onnx", c->dir);
    return zc_file_write(c->model, m->bytes, m->len, c->diag);
}

static zc_status ask(call *c)
{
    const debug_results *r = &c->v->d.reference;
    size_t n = r->inputs.n, outputs = c->v->models_outputs, k = 0;
    const char **argv = zc_calloc(n + outputs + 7, sizeof *argv);
    if (!argv) return zc_fail_nomem(c->diag, "arguments", n + outputs);
    snprintf(c->count, sizeof c->count, "%zu", n);
    argv[k++] = "python3";
    argv[k++] = "-c";
    argv[k++] = script;
    argv[k++] = c->model;
    argv[k++] = c->dir;
    argv[k++] = c->count;
    for (size_t i = 0; i < n; i++) argv[k++] = r->input_names.data[i];
    for (size_t i = 0; i < outputs; i++) argv[k++] = r->names.data[i];
    int code = run_script(argv, c->log);
    free(argv);
    if (code < 0)
        snprintf(c->why, c->why_len, "python3: %s", strerror(errno));
    else if (code)
        read_reason(c->log, c->why, c->why_len);
    if (code <= 0 || code == ABSENT) return ZC_OK;
    return zc_fail(c->diag, ZC_ERR_INPUT, "onnxruntime", "failed: %s", c->why);
}

static zc_status read_outputs(const call *c, debug_results *out)
{
    for (size_t i = 0; i < c->v->models_outputs; i++) {
        char path[4096];
        zc_tensor t;
        snprintf(path, sizeof path, "%s/output_%zu.npy", c->dir, i);
        ZC_TRY(cli_read_tensor(path, &t, c->diag));
        ZC_TRY(cli_debug_keep(out, c->v->d.reference.names.data[i], &t, c->diag));
    }
    return ZC_OK;
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
    char dir[4096];
    const char *temp = getenv("TMPDIR");
    *why = 0;
    if (!is_possible(v, why, n)) return ZC_OK;
    snprintf(dir, sizeof dir, "%s/" CLI_TEMP_FOLDER "XXXXXX", temp && *temp ? temp : "/tmp");
    int folder = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (folder < 0) {
        snprintf(why, n, "%.200s: %s", dir, strerror(errno));
        return ZC_OK;
    }
    call c = {.v = v, .dir = dir, .why = why, .why_len = n, .diag = diag};
    snprintf(c.log, sizeof c.log, "%.4000s/log", dir);
    zc_status status = write_inputs(&c);
    if (status == ZC_OK) status = ask(&c);
    if (status == ZC_OK && !*why) status = read_outputs(&c, out);
    cli_remove_folder(dir);
    close(folder);
    return status;
}
