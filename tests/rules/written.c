/* For written.sh. usage: written FILE DIR: writes DIR/NAME.onnx for every form of the file, and
 * DIR/NAME.want with what is expected of it.
 *
 *   form NAME
 *   want WORDS                 a line of NAME.want
 *   weights NAME DIMENSIONS    f32 numbers, between 0.25 and 1.25
 *   ...                        as in support/onnx_text.h
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "support/onnx_text.h"

typedef struct form {
    char name[100];
    zc_buf model, want; /* as text */
} form;

static bool write_file(const char *dir, const char *name, const char *ending, const zc_buf *data)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", dir, name, ending);
    FILE *f = fopen(path, "wb");
    bool ok = f && fwrite(data->data, 1, data->len, f) == data->len;
    return f && fclose(f) == 0 && ok;
}

/* Writes a form that is complete, and forgets it. */
static bool finish(form *f, const char *dir)
{
    zc_buf bytes = {0};
    bool ok = true;
    if (f->name[0]) {
        zc_buf_puts(&f->want, "");
        onnx_text(f->model.data, &bytes);
        ok = write_file(dir, f->name, "onnx", &bytes) && write_file(dir, f->name, "want", &f->want);
    }
    zc_buf_fini(&bytes);
    zc_buf_fini(&f->model);
    zc_buf_fini(&f->want);
    *f = (form){.name = ""};
    return ok;
}

static void put_weights(form *f, const char *name, const char *dims)
{
    long n = 1;
    unsigned state = 1;
    for (const char *s = dims; s; s = strchr(s, ',') ? strchr(s, ',') + 1 : NULL) n *= atol(s);
    for (const char *s = name; *s; s++) state = state * 31 + (unsigned char)*s;
    zc_buf_printf(&f->model, "init %s 1 %s ", name, dims);
    for (long i = 0; i < n; i++) {
        state = state * 1103515245u + 12345u;
        zc_buf_printf(&f->model, "%s%.3f", i ? "," : "", 0.25 + (state >> 16) % 1000 / 1000.0);
    }
    zc_buf_puts(&f->model, "\n");
}

static bool add_line(form *f, const char *line, const char *dir)
{
    char name[100], dims[100];
    if (line[0] == '#' || line[0] == 0) return true;
    if (sscanf(line, "form %99s", name) == 1) {
        bool ok = finish(f, dir);
        memcpy(f->name, name, sizeof name);
        return ok;
    }
    if (strncmp(line, "want ", 5) == 0)
        zc_buf_printf(&f->want, "%s\n", line + 5);
    else if (sscanf(line, "weights %99s %99s", name, dims) == 2)
        put_weights(f, name, dims);
    else
        zc_buf_printf(&f->model, "%s\n", line);
    return true;
}

int main(int argc, char **argv)
{
    uint8_t *text;
    size_t len;
    form f = {.name = ""};
    bool ok = argc == 3 && zc_file_read(argv[1], 1 << 24, &text, &len, NULL) == ZC_OK;
    if (!ok) return 2;
    for (char *line = (char *)text, *next; ok && *line; line = next) {
        next = line + strcspn(line, "\n");
        if (*next) *next++ = 0;
        ok = add_line(&f, line, argv[2]);
    }
    ok = finish(&f, argv[2]) && ok;
    free(text);
    return ok ? 0 : 1;
}
