#include "codegen/emit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"

enum { PATH = 4096 };

static zc_status make_folder(const char *path, zc_diag *diag)
{
    if (mkdir(path, 0777) == 0 || errno == EEXIST) return ZC_OK;
    return zc_fail(diag, ZC_ERR_IO, path, "cannot be created: %s", strerror(errno));
}

static zc_status join(char out[PATH], const char *a, const char *b, zc_diag *diag)
{
    int n = snprintf(out, PATH, "%s/%s", a, b);
    if (n > 0 && n < PATH) return ZC_OK;
    return zc_fail(diag, ZC_ERR_IO, a, "path too long");
}

static zc_status emit_sources(const zc_program *p, const char *dir, zc_diag *diag)
{
    char root[PATH], path[PATH];
    ZC_TRY(join(root, dir, "templates", diag));
    ZC_TRY(make_folder(root, diag));
    for (uint32_t i = 0; i < p->nsources; i++) {
        const char *slash = strrchr(p->sources[i].name, '/');
        ZC_TRY(join(path, root, p->sources[i].name, diag));
        if (slash) {
            path[strlen(root) + 1 + (size_t)(slash - p->sources[i].name)] = '\0';
            ZC_TRY(make_folder(path, diag));
            ZC_TRY(join(path, root, p->sources[i].name, diag));
        }
        ZC_TRY(zc_file_write(path, p->sources[i].text, strlen(p->sources[i].text), diag));
    }
    return ZC_OK;
}

static bool chooses(const zc_pstep *s, uint32_t kernel)
{
    for (uint32_t i = 0; i < s->nchoices; i++)
        if (s->choices[i].kernel == kernel) return true;
    return false;
}

/* Names from the model go into line comments only, escaped: none can end the comment. */
static void put_provenance(zc_buf *b, const zc_program *p, uint32_t kernel)
{
    for (uint32_t i = 0; i < p->nsteps; i++) {
        const zc_pstep *s = &p->steps[i];
        if (!chooses(s, kernel)) continue;
        zc_buf_printf(b, "// step %u (%s):", i, zc_op_get(s->op)->name);
        for (uint32_t n = 0; n < s->nprov; n++) {
            zc_buf_puts(b, " ");
            zc_buf_escape(b, s->prov[n], strlen(s->prov[n]));
            zc_buf_puts(b, n + 1 < s->nprov ? "," : "");
        }
        zc_buf_puts(b, " .\n"); /* a name that ends in a backslash must not join the next line */
    }
}

static zc_status emit_kernel(const zc_program *p, uint32_t k, const char *dir, zc_diag *diag)
{
    char folder[PATH], path[PATH];
    zc_buf text = {0};
    ZC_TRY(join(folder, dir, p->kernels[k].name, diag));
    ZC_TRY(make_folder(folder, diag));
    ZC_TRY(join(path, folder, "spec.h", diag));
    zc_buf_printf(&text, "// %s, compiled with templates/%s for:\n", p->kernels[k].name,
                  p->kernels[k].template_name);
    put_provenance(&text, p, k);
    zc_buf_puts(&text, p->kernels[k].spec);
    zc_status status = text.failed ? zc_fail_nomem(diag, "kernel source", text.len)
                                   : zc_file_write(path, text.data, text.len, diag);
    zc_buf_fini(&text);
    return status;
}

zc_status zc_codegen_emit(const zc_program *p, const char *dir, zc_diag *diag)
{
    ZC_TRY(make_folder(dir, diag));
    ZC_TRY(emit_sources(p, dir, diag));
    for (uint32_t k = 0; k < p->nkernels; k++) ZC_TRY(emit_kernel(p, k, dir, diag));
    return ZC_OK;
}
