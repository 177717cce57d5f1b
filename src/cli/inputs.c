#include "cli/inputs.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/sizes.h"
#include "cli/stream.h"
#include "media/npz.h"

/* ---- plans ---- */

zc_status cli_load_plan(const char *path, zc_plan **out, zc_diag *diag)
{
    uint8_t *data;
    size_t len;
    if (!zc_file_is_stream(path)) return zc_plan_load_file(path, out, diag);
    ZC_TRY(zc_file_read_stream(path, CLI_STREAM_MAX, &data, &len, diag));
    zc_diag_set_file(diag, cli_stream_name(path));
    zc_status status = zc_plan_load_bytes(data, len, out, diag);
    zc_diag_set_file(diag, NULL);
    free(data);
    return status;
}

zc_view cli_view(const zc_tensor *t)
{
    zc_view v = {.elem = (zc_elem)t->dtype, .rank = t->rank, .data = t->data};
    memcpy(v.dims, t->dims, sizeof t->dims);
    if (!zc_tensor_bytes(t, &v.bytes)) v.bytes = 0;
    return v;
}

zc_tensor cli_tensor(const zc_view *v)
{
    zc_tensor t = {.dtype = (zc_dtype)v->elem, .rank = v->rank, .data = (void *)(uintptr_t)v->data};
    memcpy(t.dims, v->dims, sizeof t.dims);
    return t;
}

static void cast_element(const zc_tensor *from, zc_tensor *to, int64_t i)
{
    if (zc_dtype_is_float(from->dtype) || zc_dtype_is_float(to->dtype))
        zc_store_f64(to->dtype, to->data, i, zc_load_f64(from->dtype, from->data, i));
    else
        zc_store_i64(to->dtype, to->data, i, zc_load_i64(from->dtype, from->data, i));
}

bool cli_cast(const zc_tensor *t, zc_dtype to, zc_tensor *out)
{
    size_t bytes;
    *out = *t;
    out->dtype = to;
    if (!zc_tensor_bytes(out, &bytes) || !(out->data = zc_calloc(bytes, 1))) return false;
    if (to == t->dtype && bytes) memcpy(out->data, t->data, bytes);
    for (int64_t i = 0, n = to == t->dtype ? 0 : zc_tensor_numel(t); i < n; i++)
        cast_element(t, out, i);
    return true;
}

/* ---- random values ---- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static double uniform(uint64_t *state)
{
    return (double)(next(state) >> 11) * 0x1p-53;
}

static double normal(uint64_t *state)
{
    double u = 1 - uniform(state), v = uniform(state);
    return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

/* Floats are normal; integers small and not negative, so that they serve as token ids and indices;
 * bools mostly true, so that masks leave something. */
static void randomize(zc_tensor *t, uint64_t *state)
{
    int64_t n = zc_tensor_numel(t);
    for (int64_t i = 0; i < n; i++) {
        if (zc_dtype_is_float(t->dtype))
            zc_store_f64(t->dtype, t->data, i, normal(state));
        else if (t->dtype == ZC_BOOL)
            zc_store_i64(t->dtype, t->data, i, uniform(state) < 0.9);
        else
            zc_store_i64(t->dtype, t->data, i, (int64_t)(next(state) & 1));
    }
}

/* ---- all inputs ---- */

typedef struct setting {
    const cli_inputs *in;
    zc_tensor *values;
    cli_sizes sizes;
    const char **files; /* by input: the value of its --input, or NULL */
    bool *bare;         /* by input: as --loadInputs has it */
    bool saw_image;
    zc_zip archive; /* of --inputs; without data: it is a folder */
    uint64_t random;
    zc_diag *diag;
} setting;

static bool is_sliced(const setting *s, size_t i)
{
    return s->in->slices && s->in->slices[i].axis >= 0;
}

/* The shape of one part. */
static zc_status cut(const setting *s, size_t i, zc_tensor *t)
{
    const zc_io_info *io = &s->sizes.inputs[i];
    cli_slice *slice = &s->in->slices[i];
    if (slice->axis >= t->rank)
        return zc_fail(s->diag, ZC_ERR_ARG, io->name,
                       "--slice: the file has no such axis (got %d, it has %d)", slice->axis,
                       t->rank);
    if (zc_dtype_bits(t->dtype) < 8)
        return zc_fail(s->diag, ZC_ERR_UNSUPPORTED, io->name,
                       "--slice: elements of less than a byte cannot be sliced (got %s)",
                       zc_dtype_name(t->dtype));
    bool is_fixed = slice->axis < io->rank && io->dims[slice->axis] > 0;
    if (!slice->size && is_fixed) slice->size = io->dims[slice->axis];
    if (!slice->size)
        return zc_fail(s->diag, ZC_ERR_ARG, io->name,
                       "--slice: the plan takes any size along axis %d (need %s=%d:SIZE)",
                       slice->axis, io->name, slice->axis);
    t->dims[slice->axis] = slice->size;
    return ZC_OK;
}

/* From the archive that --inputs names. */
static zc_status read_entry(const setting *s, const cli_wanted *w, zc_tensor *out)
{
    zc_diag_set_file(s->diag, s->in->dir);
    zc_status status =
        zc_npz_read(&s->archive, zc_npz_find(&s->archive, w->io->name), out, s->diag);
    zc_diag_set_file(s->diag, NULL);
    return status == ZC_OK ? cli_cast_input(w, out, s->diag) : status;
}

static zc_status set_from_file(setting *s, size_t i, const char *path)
{
    zc_tensor t;
    cli_wanted w = {.io = &s->sizes.inputs[i],
                    .files = &s->in->how,
                    .is_bare = s->bare[i],
                    .saw_image = &s->saw_image};
    cli_sizes_shape(&s->sizes, i, w.dims);
    ZC_TRY(path == s->in->dir ? read_entry(s, &w, &t) : cli_read_input(path, &w, &t, s->diag));
    s->values[i] = t;
    if (is_sliced(s, i)) ZC_TRY(cut(s, i, &t));
    return cli_sizes_learn(&s->sizes, i, &t, s->diag);
}

static bool is_zero(const setting *s, size_t i)
{
    return s->in->zeros && s->in->zeros[i];
}

/* Random values, or the zeros that a state begins with. */
static zc_status make(setting *s, size_t i)
{
    const zc_io_info *io = &s->sizes.inputs[i];
    zc_tensor t = {.dtype = (zc_dtype)io->elem, .rank = io->rank};
    size_t bytes;
    if (t.rank < 0)
        return zc_fail(s->diag, ZC_ERR_ARG, io->name, "has no rank before it is run: give a file");
    cli_sizes_shape(&s->sizes, i, t.dims);
    for (int d = 0; d < t.rank; d++)
        if (t.dims[d] < 0)
            return zc_fail(s->diag, ZC_ERR_ARG, io->name,
                           "dimension %d has no value for these sizes (it is %s)", d,
                           io->dim_texts[d]);
    if (!zc_tensor_bytes(&t, &bytes)) return zc_fail(s->diag, ZC_ERR_INPUT, io->name, "too large");
    t.data = zc_calloc(bytes, 1);
    if (!t.data) return zc_fail_nomem(s->diag, io->name, bytes);
    if (zc_dtype_class(t.dtype) != ZC_CLASS_COMPLEX && !is_zero(s, i)) randomize(&t, &s->random);
    s->values[i] = t;
    return ZC_OK;
}

static bool begins(const char *pair, const char *name)
{
    size_t n = strlen(name);
    return strncmp(pair, name, n) == 0 && pair[n] == '=';
}

/* Which input a NAME=FILE means: that of the longest name, as names may have a '=' too. */
static zc_status assign_file(setting *s, const char *pair, bool is_bare)
{
    size_t best = s->sizes.n;
    for (size_t i = 0; i < s->sizes.n; i++) {
        const char *name = s->sizes.inputs[i].name;
        if (begins(pair, name) &&
            (best == s->sizes.n || strlen(name) > strlen(s->sizes.inputs[best].name)))
            best = i;
    }
    if (best < s->sizes.n && !s->files[best]) {
        const char *file = pair + strlen(s->sizes.inputs[best].name) + 1;
        for (size_t i = 0; i < s->sizes.n && strcmp(file, "-") == 0; i++)
            if (s->files[i] && strcmp(s->files[i], "-") == 0)
                return zc_fail(s->diag, ZC_ERR_ARG, s->sizes.inputs[best].name,
                               "the standard input is another input's, too");
        s->files[best] = file;
        s->bare[best] = is_bare;
        return ZC_OK;
    }
    char name[256];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(pair, "="), pair);
    return best < s->sizes.n
               ? zc_fail(s->diag, ZC_ERR_ARG, s->sizes.inputs[best].name, "--input is given twice")
               : zc_fail(s->diag, ZC_ERR_ARG, name, "the plan has no input of this name");
}

bool cli_tensor_file(const char *dir, const char *kind, size_t i, char *buf, size_t n)
{
    static const char *const endings[] = {"npy", "pb"};
    for (size_t k = 0; k < ZC_COUNTOF(endings); k++) {
        snprintf(buf, n, "%s/%s_%zu.%s", dir, kind, i, endings[k]);
        if (access(buf, F_OK) == 0) return true;
    }
    return false;
}

/* The file of input i, or NULL when there is none. */
static const char *file_of(const setting *s, size_t i, char *buf, size_t n)
{
    if (s->files[i]) return s->files[i];
    if (s->archive.data)
        return zc_npz_find(&s->archive, s->sizes.inputs[i].name) < s->archive.entries.len
                   ? s->in->dir
                   : NULL;
    return s->in->dir && cli_tensor_file(s->in->dir, "input", i, buf, n) ? buf : NULL;
}

/* A folder that gives nothing was not meant. */
static zc_status check_dir(const setting *s)
{
    char path[4096];
    const char *dir = s->in->dir;
    if (!dir || s->sizes.n == 0 || s->archive.data) return ZC_OK;
    if (access(dir, R_OK | X_OK) != 0)
        return zc_fail(s->diag, ZC_ERR_IO, dir, "cannot open (%s)", strerror(errno));
    for (size_t i = 0; i < s->sizes.n; i++)
        if (cli_tensor_file(dir, "input", i, path, sizeof path)) return ZC_OK;
    return zc_fail(s->diag, ZC_ERR_IO, dir, "holds no value (need input_0.npy or input_0.pb, ...)");
}

static zc_status missing(const setting *s, size_t i)
{
    const char *name = s->sizes.inputs[i].name;
    if (s->archive.data)
        return zc_fail(s->diag, ZC_ERR_ARG, name,
                       "has no value (no array of this name in %s; --random fills gaps)",
                       s->in->dir);
    if (s->in->dir)
        return zc_fail(s->diag, ZC_ERR_ARG, name,
                       "has no value (no input_%zu.npy or .pb in %s; --random fills gaps)", i,
                       s->in->dir);
    return zc_fail(s->diag, ZC_ERR_ARG, name,
                   "has no value (give --input NAME=FILE, --inputs DIR or --random)");
}

/* The sizes of --shapes are those of the symbols; what is fixed must agree. */
static zc_status take_shape(setting *s, const zc_fixed_shape *shape)
{
    size_t i = 0;
    zc_tensor t = {.rank = shape->rank};
    memcpy(t.dims, shape->dims, sizeof shape->dims);
    while (i < s->sizes.n && strcmp(s->sizes.inputs[i].name, shape->input) != 0) i++;
    if (i == s->sizes.n)
        return zc_fail(s->diag, ZC_ERR_ARG, shape->input, "the plan has no input of this name");
    const zc_io_info *io = &s->sizes.inputs[i];
    if (io->rank != t.rank)
        return zc_fail(s->diag, ZC_ERR_ARG, io->name, "wrong rank in --shapes (got %d, need %d)",
                       t.rank, io->rank);
    for (int d = 0; d < t.rank; d++)
        if (io->dims[d] >= 0 && io->dims[d] != t.dims[d])
            return zc_fail(s->diag, ZC_ERR_ARG, io->name,
                           "wrong size of dimension %d in --shapes (got %lld, need %lld)", d,
                           (long long)t.dims[d], (long long)io->dims[d]);
    return cli_sizes_learn(&s->sizes, i, &t, s->diag);
}

static zc_status check_image_options(const setting *s)
{
    const cli_files *how = &s->in->how;
    const char *given = how->mean.n    ? "--mean"
                        : how->scale.n ? "--scale"
                        : how->layout  ? "--layout"
                                       : NULL;
    if (!given || s->saw_image) return ZC_OK;
    return zc_fail(s->diag, ZC_ERR_ARG, given, "is of images (no input is one)");
}

/* Files first: random inputs take their sizes from them. */
static zc_status set_all(setting *s)
{
    char path[4096];
    size_t gaps = 0;
    for (size_t i = 0; i < s->in->files.n; i++) ZC_TRY(assign_file(s, s->in->files.v[i], false));
    for (size_t i = 0; i < s->in->loads.n; i++) ZC_TRY(assign_file(s, s->in->loads.v[i], true));
    for (size_t i = 0; i < s->in->shapes.n; i++) ZC_TRY(take_shape(s, &s->in->shapes.v[i]));
    ZC_TRY(check_dir(s));
    for (size_t i = 0; i < s->sizes.n; i++) {
        const char *file = file_of(s, i, path, sizeof path);
        if (!file && cli_raw_of(&s->in->how, s->sizes.inputs[i].name))
            return zc_fail(s->diag, ZC_ERR_ARG, s->sizes.inputs[i].name,
                           "--raw: no file is given for it");
        if (!file && is_sliced(s, i))
            return zc_fail(s->diag, ZC_ERR_ARG, s->sizes.inputs[i].name,
                           "--slice: no file is given for it");
        if (!file && !s->in->random && !is_zero(s, i)) return missing(s, i);
        gaps += !file;
        if (file) ZC_TRY(set_from_file(s, i, file));
    }
    ZC_TRY(check_image_options(s));
    zc_buf told = {0};
    cli_sizes_assume(&s->sizes, &told);
    if (gaps && told.len && !s->in->quiet) {
        fprintf(stderr, "zc: note: %s inputs with ", s->in->random ? "random" : "zero");
        cli_put(stderr, told.data);
        fputs(" (--dim NAME=VALUE sets a size)\n", stderr);
    }
    zc_buf_fini(&told);
    for (size_t i = 0; i < s->sizes.n && gaps; i++)
        if (!file_of(s, i, path, sizeof path)) ZC_TRY(make(s, i));
    return ZC_OK;
}

/* --inputs may be a .npz file. */
static zc_status open_archive(setting *s)
{
    struct stat st;
    uint8_t *data;
    size_t len;
    const char *dir = s->in->dir;
    if (!dir || stat(dir, &st) != 0 || S_ISDIR(st.st_mode)) return ZC_OK;
    ZC_TRY(zc_file_read(dir, CLI_STREAM_MAX, &data, &len, s->diag));
    s->archive.data = data;
    zc_diag_set_file(s->diag, dir);
    zc_status status =
        zc_zip_is(data, len)
            ? zc_zip_open(data, len, &s->archive, s->diag)
            : zc_fail(s->diag, ZC_ERR_FORMAT, NULL, "this is no .npz file (need one, or a folder)");
    zc_diag_set_file(s->diag, NULL);
    return status;
}

static zc_status read_all(setting *s, cli_values *out)
{
    s->files = zc_calloc(s->sizes.n, sizeof *s->files);
    s->bare = zc_calloc(s->sizes.n, sizeof *s->bare);
    out->v = s->values = zc_calloc(s->sizes.n, sizeof *s->values);
    if (!s->files || !s->bare || !s->values) return zc_fail_nomem(s->diag, "inputs", s->sizes.n);
    out->n = s->sizes.n;
    ZC_TRY(cli_check_raws(&s->in->how, s->sizes.inputs, s->sizes.n, s->diag));
    ZC_TRY(open_archive(s));
    return set_all(s);
}

zc_status cli_read_inputs(const zc_plan *plan, const cli_inputs *in, cli_values *out, zc_diag *diag)
{
    setting s = {.in = in, .random = (uint64_t)(in->seed < 0 ? 1 : in->seed) * 2 + 1, .diag = diag};
    *out = (cli_values){.n = 0};
    zc_status status = cli_sizes_open(plan, &in->dims, &s.sizes, diag);
    if (status == ZC_OK) status = read_all(&s, out);
    zc_zip_close(&s.archive);
    free((void *)(uintptr_t)s.archive.data);
    free(s.files);
    free(s.bare);
    cli_sizes_close(&s.sizes);
    return status;
}

void cli_free_values(cli_values *values)
{
    for (size_t i = 0; i < values->n; i++) free(values->v[i].data);
    free(values->v);
    *values = (cli_values){.n = 0};
}

zc_status cli_give_inputs(zc_session *session, const cli_values *values, zc_diag *diag)
{
    for (size_t i = 0; i < values->n; i++) {
        zc_view v = cli_view(&values->v[i]);
        ZC_TRY(zc_session_set_input(session, i, &v, false, diag));
    }
    return ZC_OK;
}

zc_status cli_set_inputs(const zc_plan *plan, zc_session *session, const cli_inputs *in,
                         zc_diag *diag)
{
    cli_values values;
    zc_status status = cli_read_inputs(plan, in, &values, diag);
    if (status == ZC_OK) status = cli_give_inputs(session, &values, diag);
    cli_free_values(&values);
    return status;
}
