#include "cli/read.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "cli/inputs.h"
#include "cli/stream.h"
#include "import/tensor_proto.h"
#include "io/npy.h"
#include "media/image.h"
#include "media/npz.h"
#include "media/wav.h"

/* Bytes that tell what a file is. */
#define HEAD_MAX 16

static bool is_npy(const uint8_t *data, size_t len)
{
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    return len >= sizeof magic && memcmp(data, magic, sizeof magic) == 0;
}

/* ---- tensors ---- */

static zc_status parse_tensor(const uint8_t *data, size_t len, zc_tensor *out, zc_diag *diag)
{
    return is_npy(data, len) ? zc_npy_parse(data, len, out, diag)
                             : zc_tensor_pb_parse(data, len, out, NULL, diag);
}

/* The bytes of a file or stream; messages name it from now on. */
static zc_status load(const char *path, uint8_t **data, size_t *len, zc_diag *diag)
{
    zc_diag_set_file(diag, NULL);
    ZC_TRY(zc_file_is_stream(path) ? zc_file_read_stream(path, CLI_STREAM_MAX, data, len, diag)
                                   : zc_file_read(path, CLI_STREAM_MAX, data, len, diag));
    zc_diag_set_file(diag, cli_stream_name(path));
    return ZC_OK;
}

static zc_status read_head(const char *path, uint8_t *head, size_t *len, zc_diag *diag)
{
    int fd;
    uint64_t size;
    ZC_TRY(zc_file_open(path, &fd, &size, diag));
    *len = size < HEAD_MAX ? (size_t)size : HEAD_MAX;
    zc_status status = zc_file_pread(fd, head, *len, 0, path, diag);
    zc_file_close(fd);
    return status;
}

/* The content tells what a file is, not its name. */
zc_status cli_read_tensor(const char *path, zc_tensor *out, zc_diag *diag)
{
    uint8_t head[HEAD_MAX] = {0}, *data;
    size_t len;
    if (zc_file_is_stream(path)) {
        ZC_TRY(load(path, &data, &len, diag));
        zc_status status = parse_tensor(data, len, out, diag);
        zc_diag_set_file(diag, NULL);
        free(data);
        return status;
    }
    ZC_TRY(read_head(path, head, &len, diag));
    return is_npy(head, len) ? zc_npy_read(path, out, diag)
                             : zc_tensor_pb_read(path, out, NULL, diag);
}

/* A .npz file, not a folder. */
static bool is_archive(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

zc_status cli_read_expected(const char *path, const char *name, size_t i, zc_tensor *out,
                            zc_diag *diag)
{
    char file[4096];
    if (is_archive(path)) return cli_read_array(path, name, out, diag);
    (void)cli_tensor_file(path, "output", i, file, sizeof file);
    return cli_read_tensor(file, out, diag);
}

/* ---- bare elements ---- */

const char *cli_raw_of(const cli_files *files, const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < files->raws.n; i++)
        if (strncmp(files->raws.v[i], name, n) == 0 && files->raws.v[i][n] == '=' &&
            !strchr(files->raws.v[i] + n + 1, '='))
            return files->raws.v[i] + n + 1;
    return NULL;
}

zc_status cli_check_raws(const cli_files *files, const zc_io_info *inputs, size_t n, zc_diag *diag)
{
    for (size_t i = 0; i < files->raws.n; i++) {
        bool known = false;
        for (size_t k = 0; k < n; k++) {
            const char *raw = cli_raw_of(files, inputs[k].name);
            known |= raw && raw >= files->raws.v[i] &&
                     raw <= files->raws.v[i] + strlen(files->raws.v[i]);
        }
        if (!known)
            return zc_fail(
                diag, ZC_ERR_ARG, "--raw",
                "the plan has no input of this name, or it is given twice (got '%.200s')",
                files->raws.v[i]);
    }
    return ZC_OK;
}

/* "f32:1x3x8"; a scalar is "f32:" */
static zc_status parse_raw_type(const char *text, zc_tensor *t, zc_diag *diag)
{
    char name[16];
    zc_fixed_shape shape;
    size_t n = strcspn(text, ":");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), text);
    zc_elem elem = zc_elem_parse(name);
    if (!elem || text[n] != ':' || !cli_parse_shape(text + n + 1, &shape))
        return zc_fail(diag, ZC_ERR_ARG, "--raw", "got '%.100s', need TYPE:SHAPE, as f32:1x3x8",
                       text);
    *t = (zc_tensor){.dtype = (zc_dtype)elem, .rank = shape.rank};
    memcpy(t->dims, shape.dims, sizeof shape.dims);
    return ZC_OK;
}

/* out has the type and shape. */
static zc_status read_elements(const char *path, zc_tensor *out, zc_diag *diag)
{
    uint8_t *data;
    size_t len, bytes;
    zc_tensor t = *out;
    char text[256];
    ZC_TRY(load(path, &data, &len, diag));
    if (!zc_tensor_bytes(&t, &bytes) || bytes != len) {
        free(data);
        return zc_fail(diag, ZC_ERR_INPUT, NULL, "wrong size for %s (got %zu bytes, need %zu)",
                       zc_tensor_type_text(&t, text, sizeof text), len,
                       zc_tensor_bytes(&t, &bytes) ? bytes : 0);
    }
    if (t.dtype == ZC_BOOL)
        for (size_t i = 0; i < len; i++) data[i] = data[i] != 0;
    t.data = data;
    *out = t;
    return ZC_OK;
}

static zc_status read_raw(const char *path, const char *type, zc_tensor *out, zc_diag *diag)
{
    ZC_TRY(parse_raw_type(type, out, diag));
    return read_elements(path, out, diag);
}

/* Of the plan's type and shape. */
static zc_status read_bare(const char *path, const cli_wanted *w, zc_tensor *out, zc_diag *diag)
{
    *out = (zc_tensor){.dtype = (zc_dtype)w->io->elem, .rank = w->io->rank};
    for (int d = 0; d < w->io->rank; d++) {
        out->dims[d] = w->dims[d];
        if (w->dims[d] < 0)
            return zc_fail(diag, ZC_ERR_ARG, w->io->name,
                           "--loadInputs: the size of dimension %d is not known (need --shapes or "
                           "--dim)",
                           d);
    }
    return read_elements(path, out, diag);
}

/* ---- archives, images, sound ---- */

static zc_status parse_npz(const uint8_t *data, size_t len, const char *name, zc_tensor *out,
                           zc_diag *diag)
{
    zc_zip zip;
    zc_status status = zc_zip_open(data, len, &zip, diag);
    size_t n = zip.entries.len, i = n == 1 ? 0 : zc_npz_find(&zip, name);
    if (status == ZC_OK)
        status = i < n ? zc_npz_read(&zip, i, out, diag)
                       : zc_fail(diag, ZC_ERR_INPUT, NULL,
                                 "the archive has no array of this name (got %zu others, need "
                                 "'" ZC_NAME "')",
                                 n, name);
    zc_zip_close(&zip);
    return status;
}

zc_status cli_read_array(const char *path, const char *name, zc_tensor *out, zc_diag *diag)
{
    uint8_t *data;
    size_t len;
    ZC_TRY(load(path, &data, &len, diag));
    zc_status status =
        zc_zip_is(data, len)
            ? parse_npz(data, len, name, out, diag)
            : zc_fail(diag, ZC_ERR_FORMAT, NULL, "this is no .npz file (need one, or a folder)");
    zc_diag_set_file(diag, NULL);
    free(data);
    return status;
}

static bool is_colour(int64_t channels)
{
    return channels == 1 || channels == 3;
}

/* Where channels stand: as told, else where the plan has one or three, else first. */
static bool is_nhwc(const cli_wanted *w)
{
    if (w->files->layout) return strcmp(w->files->layout, "nhwc") == 0;
    return w->io->rank == 4 && !is_colour(w->dims[1]) && is_colour(w->dims[3]);
}

static double channel(const cli_channels *c, int i, double otherwise)
{
    return c->n == 0 ? otherwise : c->v[c->n == 1 ? 0 : i];
}

static zc_status image_form(const cli_wanted *w, zc_image_form *f, int *channels, zc_diag *diag)
{
    *f = (zc_image_form){.is_last = is_nhwc(w)};
    int at = f->is_last ? 3 : 1, rows = f->is_last ? 1 : 2;
    if (w->io->rank != 4)
        return zc_fail(diag, ZC_ERR_INPUT, w->io->name,
                       "an image needs an input of 4 dimensions (got %d)", w->io->rank);
    *channels = w->dims[at] == 1 ? 1 : 3;
    if (w->dims[at] >= 0 && !is_colour(w->dims[at]))
        return zc_fail(
            diag, ZC_ERR_INPUT, w->io->name,
            "an image has 1 or 3 channels (the plan takes %lld as dimension %d; --layout "
            "says where they stand)",
            (long long)w->dims[at], at);
    for (int i = 0; i < 2; i++) {
        int64_t size = w->dims[rows + i];
        if (size == 0 || size > 65536)
            return zc_fail(diag, ZC_ERR_INPUT, w->io->name,
                           "an image has 1 to 65536 rows and columns (the plan takes %lld)",
                           (long long)size);
        *(i ? &f->width : &f->height) = size < 0 ? 0 : (int)size;
    }
    for (int c = 0; c < 3; c++) {
        f->mean[c] = channel(&w->files->mean, c, 0);
        f->scale[c] = channel(&w->files->scale, c, 1);
    }
    return ZC_OK;
}

static zc_status parse_image(const uint8_t *data, size_t len, const cli_wanted *w, zc_tensor *out,
                             zc_diag *diag)
{
    zc_image image;
    zc_image_form form;
    int channels;
    *w->saw_image = true;
    ZC_TRY(image_form(w, &form, &channels, diag));
    ZC_TRY(zc_png_is(data, len) ? zc_png_read(data, len, channels, &image, diag)
                                : zc_jpeg_read(data, len, channels, &image, diag));
    zc_status status = zc_image_tensor(&image, &form, (zc_dtype)w->io->elem, out, diag);
    free(image.data);
    return status;
}

/* Time is the last dimension, the others are 1. Models of i16 get whole samples. */
static zc_status parse_wav(const uint8_t *data, size_t len, const cli_wanted *w, zc_tensor *out,
                           zc_diag *diag)
{
    zc_sound about;
    zc_dtype to = (zc_dtype)w->io->elem;
    int rank = w->io->rank;
    if (rank < 1 || (to != ZC_I16 && !zc_dtype_is_float(to)))
        return zc_fail(diag, ZC_ERR_INPUT, w->io->name,
                       "sound needs an input of floats or i16 with a dimension (got %s, rank %d)",
                       zc_dtype_name(to), rank);
    ZC_TRY(zc_wav_read(data, len, out, &about, diag));
    fprintf(stderr, "zc: note: sound of %lld samples, %u Hz, %d channel%s\n",
            (long long)about.frames, about.rate, about.channels, about.channels > 1 ? "s" : "");
    for (int d = 0; d < rank; d++) out->dims[d] = d + 1 < rank ? 1 : about.frames;
    out->rank = rank;
    float *samples = out->data;
    for (int64_t i = 0; to == ZC_I16 && i < about.frames; i++) samples[i] *= 32768;
    zc_tensor made;
    bool ok = cli_cast(out, to, &made);
    free(out->data);
    *out = made;
    return ok ? ZC_OK : zc_fail_nomem(diag, w->io->name, 0);
}

/* ---- inputs ---- */

static zc_status parse(const uint8_t *data, size_t len, const cli_wanted *w, zc_tensor *out,
                       zc_diag *diag)
{
    if (zc_zip_is(data, len)) return parse_npz(data, len, w->io->name, out, diag);
    if (zc_png_is(data, len) || zc_jpeg_is(data, len)) return parse_image(data, len, w, out, diag);
    if (zc_wav_is(data, len)) return parse_wav(data, len, w, out, diag);
    return parse_tensor(data, len, out, diag);
}

static bool is_media(const uint8_t *head, size_t len)
{
    return zc_zip_is(head, len) || zc_png_is(head, len) || zc_jpeg_is(head, len) ||
           zc_wav_is(head, len);
}

static zc_status read_any(const char *path, const cli_wanted *w, zc_tensor *out, zc_diag *diag)
{
    uint8_t head[HEAD_MAX] = {0}, *data;
    size_t len;
    const char *raw = cli_raw_of(w->files, w->io->name);
    if (raw) return read_raw(path, raw, out, diag);
    if (!zc_file_is_stream(path)) {
        ZC_TRY(read_head(path, head, &len, diag));
        if (!is_media(head, len) && w->is_bare && !is_npy(head, len))
            return read_bare(path, w, out, diag);
        if (!is_media(head, len)) return cli_read_tensor(path, out, diag);
    }
    ZC_TRY(load(path, &data, &len, diag));
    zc_status status = parse(data, len, w, out, diag);
    free(data);
    return status;
}

zc_status cli_cast_input(const cli_wanted *w, zc_tensor *t, zc_diag *diag)
{
    zc_tensor made;
    if (!w->files->cast || t->dtype == (zc_dtype)w->io->elem) return ZC_OK;
    bool ok = cli_cast(t, (zc_dtype)w->io->elem, &made);
    free(t->data);
    *t = (zc_tensor){.data = NULL};
    if (!ok) return zc_fail_nomem(diag, w->io->name, 0);
    *t = made;
    return ZC_OK;
}

zc_status cli_read_input(const char *path, const cli_wanted *w, zc_tensor *out, zc_diag *diag)
{
    zc_status status = read_any(path, w, out, diag);
    zc_diag_set_file(diag, NULL);
    return status == ZC_OK ? cli_cast_input(w, out, diag) : status;
}

/* ---- options ---- */

int cli_set_channels(const cli_call *call, void *at, char *value)
{
    cli_channels *c = at;
    char *rest = value, *word, whole[200];
    snprintf(whole, sizeof whole, "%s", value);
    for (c->n = 0; (word = strsep(&rest, ","));) {
        if (c->n == 3 || !cli_real(word, &c->v[c->n]))
            return cli_bad_value(call, whole, "one number, or three with commas");
        c->n++;
    }
    return c->n == 2 ? cli_bad_value(call, whole, "one number, or three with commas") : EXIT_OK;
}
