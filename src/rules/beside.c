/* Files that a rule file brings along: in its folder or below it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "rules/ast.h"
#include "rules/builtin.h"

/* Relative, and not upwards: a rule file brings its kernels along. */
bool zc_rl_is_below(const char *path)
{
    if (strpbrk(path, "\"\\\n")) return false;
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncmp(at, "..", 2) == 0 && (at[2] == '/' || !at[2])) return false;
    }
    return *path && *path != '/';
}

/* Does the file lie below the folder, links followed? What cannot be resolved is for opening to
 * report. */
static bool is_inside(const char *folder, const char *path)
{
    char *at = realpath(path, NULL), *in = realpath(*folder ? folder : ".", NULL);
    size_t n = in ? strlen(in) : 0;
    bool is_root = n == 1;
    bool ok = !at || !in || is_root || (strncmp(at, in, n) == 0 && at[n] == '/');
    free(at);
    free(in);
    return ok;
}

char *zc_rl_path_beside(const zc_rules *r, int file, const char *name)
{
    const char *of = r->files.data[file].name, *slash = strrchr(of, '/');
    size_t folder = slash ? (size_t)(slash - of) + 1 : 0, size = folder + strlen(name) + 1;
    char *path = zc_calloc(size, 1);
    if (path) snprintf(path, size, "%.*s%s", (int)folder, of, name);
    return path;
}

static zc_status read_builtin(const char *name, uint8_t **data, size_t *len, zc_diag *diag)
{
    const zc_builtin_file *f = zc_builtin_rules;
    while (f->name && strcmp(f->name, name) != 0) f++;
    if (!f->name) return zc_fail(diag, ZC_ERR_IO, name, "is no built-in file");
    *len = strlen(f->text);
    *data = zc_calloc(*len + 1, 1);
    if (!*data) return zc_fail_nomem(diag, name, *len);
    memcpy(*data, f->text, *len);
    return ZC_OK;
}

zc_status zc_rl_read_beside(const zc_rules *r, int file, const char *name, size_t most,
                            uint8_t **data, size_t *len, zc_diag *diag)
{
    const zc_rl_file *f = &r->files.data[file];
    if (f->is_builtin) return read_builtin(name, data, len, diag);
    if (!f->is_on_disk && r->read) return r->read(r->read_user, name, data, len, diag);
    if (!f->is_on_disk)
        return zc_fail(diag, ZC_ERR_ARG, name, "rules that are no file have no files beside them");
    char *path = zc_rl_path_beside(r, file, name), *folder = zc_rl_path_beside(r, file, "");
    zc_status status;
    if (!path || !folder)
        status = zc_fail_nomem(diag, name, 0);
    else if (!is_inside(folder, path))
        status = zc_fail(diag, ZC_ERR_FORMAT, name,
                         "is a link that leads out of the rule file's folder");
    else
        status = zc_file_read(path, most, data, len, diag);
    free(path);
    free(folder);
    return status;
}
