#include "cli/inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "import/tensor_proto.h"
#include "io/npy.h"

/* ---- files ---- */

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && strcmp(s + n - m, end) == 0;
}

zc_status cli_read_tensor(const char *path, zc_tensor *out, zc_diag *diag)
{
    return ends_with(path, ".npy") ? zc_npy_read(path, out, diag)
                                   : zc_tensor_pb_read(path, out, NULL, diag);
}

zc_view cli_view(const zc_tensor *t)
{
    zc_view v = {.elem = (zc_elem)t->dtype, .rank = t->rank, .data = t->data};
    memcpy(v.dims, t->dims, sizeof t->dims);
    if (!zc_tensor_bytes(t, &v.bytes)) v.bytes = 0;
    return v;
}

static zc_status set_from_file(zc_session *session, size_t i, const char *path, zc_diag *diag)
{
    zc_tensor t;
    zc_status status = cli_read_tensor(path, &t, diag);
    if (status != ZC_OK) return status;
    zc_view v = cli_view(&t);
    status = zc_session_set_input(session, i, &v, false, diag);
    free(t.data);
    return status;
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

static int64_t random_dim(const cli_inputs *in, const zc_io_info *io, int d)
{
    if (io->dims[d] >= 0) return io->dims[d];
    for (size_t i = 0; i < in->dims.n; i++)
        if (io->dim_texts[d] && strcmp(io->dim_texts[d], in->dims.v[i].name) == 0)
            return in->dims.v[i].value;
    return 1;
}

static zc_status set_random(zc_session *session, size_t i, const zc_io_info *io,
                            const cli_inputs *in, uint64_t *state, zc_diag *diag)
{
    zc_tensor t = {.dtype = (zc_dtype)io->elem, .rank = io->rank};
    size_t bytes;
    for (int d = 0; d < io->rank; d++) t.dims[d] = random_dim(in, io, d);
    if (!zc_tensor_bytes(&t, &bytes)) return zc_fail(diag, ZC_ERR_INPUT, io->name, "too large");
    t.data = zc_calloc(bytes, 1);
    if (!t.data) return zc_fail_nomem(diag, io->name, bytes);
    if (zc_dtype_class(t.dtype) != ZC_CLASS_COMPLEX) randomize(&t, state);
    zc_view v = cli_view(&t);
    zc_status status = zc_session_set_input(session, i, &v, false, diag);
    free(t.data);
    return status;
}

/* ---- all inputs ---- */

static const char *given_file(const cli_inputs *in, const char *name)
{
    for (size_t i = 0; i < in->files.n; i++)
        if (strcmp(in->files.v[i].name, name) == 0) return in->files.v[i].value;
    return NULL;
}

static zc_status check_names(const zc_plan *plan, size_t n, const cli_inputs *in, zc_diag *diag)
{
    for (size_t i = 0; i < in->files.n; i++) {
        const char *name = in->files.v[i].name;
        bool known = false;
        for (size_t k = 0; k < n && !known; k++) {
            zc_io_info io;
            known = zc_plan_input(plan, k, &io, diag) == ZC_OK && strcmp(io.name, name) == 0;
        }
        if (!known) return zc_fail(diag, ZC_ERR_INPUT, name, "the plan has no input of this name");
    }
    return ZC_OK;
}

zc_status cli_set_inputs(const zc_plan *plan, zc_session *session, const cli_inputs *in,
                         zc_diag *diag)
{
    zc_plan_info info;
    uint64_t state = (uint64_t)in->seed * 2 + 1;
    (void)zc_plan_info_get(plan, &info);
    zc_status status = check_names(plan, info.inputs, in, diag);
    for (size_t i = 0; status == ZC_OK && i < info.inputs; i++) {
        zc_io_info io;
        char path[4096];
        status = zc_plan_input(plan, i, &io, diag);
        if (status != ZC_OK) break;
        const char *file = given_file(in, io.name);
        if (!file && in->dir) {
            snprintf(path, sizeof path, "%s/input_%zu.npy", in->dir, i);
            if (access(path, F_OK) != 0) snprintf(path, sizeof path, "%s/input_%zu.pb", in->dir, i);
            file = path;
        }
        if (file)
            status = set_from_file(session, i, file, diag);
        else if (in->random)
            status = set_random(session, i, &io, in, &state, diag);
        else
            status = zc_fail(diag, ZC_ERR_INPUT, io.name,
                             "has no value (give --input NAME=FILE, --inputs DIR or --random)");
    }
    return status;
}
