/* The working memory that runs of a plan need, from the runtime's planner. */
#include <stdlib.h>
#include <string.h>

#include "cli/inspect.h"
#include "runtime/session.h"

static const zc_fixed_dim *find_dim(const cli_dims *dims, const char *name)
{
    for (size_t i = 0; i < dims->n; i++)
        if (strcmp(dims->v[i].name, name) == 0) return &dims->v[i];
    return NULL;
}

/* The shape of input i as far as it is known: *known becomes false when a dimension has no value.
 * Marks in `used` the dims that it needs. */
static zc_status shape_of(const zc_plan *plan, size_t i, const cli_dims *dims, zc_io_info *io,
                          bool *used, bool *known, zc_diag *diag)
{
    ZC_TRY(zc_plan_input(plan, i, io, diag));
    if (io->rank < 0) *known = false;
    for (int d = 0; d < io->rank; d++) {
        if (io->dims[d] >= 0) continue;
        const zc_fixed_dim *given = io->dim_texts[d] ? find_dim(dims, io->dim_texts[d]) : NULL;
        if (!given) {
            *known = false;
            continue;
        }
        used[given - dims->v] = true;
        io->dims[d] = given->value;
    }
    return ZC_OK;
}

/* The planner looks at shapes only and nothing is run: no input needs its bytes. */
static zc_status set_shape(zc_session *s, size_t i, const zc_io_info *io, zc_diag *diag)
{
    static _Alignas(ZC_ARENA_ALIGN) char nothing[ZC_ARENA_ALIGN];
    zc_tensor t = {.dtype = (zc_dtype)io->elem, .rank = io->rank, .data = nothing};
    zc_view view = {.elem = io->elem, .rank = io->rank, .data = nothing};
    memcpy(t.dims, io->dims, sizeof t.dims);
    memcpy(view.dims, io->dims, sizeof view.dims);
    if (!zc_tensor_bytes(&t, &view.bytes))
        return zc_fail(diag, ZC_ERR_INPUT, io->name, "too large");
    return zc_session_set_input(s, i, &view, true, diag);
}

static zc_status set_shapes(const zc_plan *plan, zc_session *s, const cli_dims *dims, bool *used,
                            bool *known, zc_diag *diag)
{
    zc_plan_info info;
    ZC_TRY(zc_plan_info_get(plan, &info));
    for (size_t i = 0; i < info.inputs; i++) {
        zc_io_info io;
        ZC_TRY(shape_of(plan, i, dims, &io, used, known, diag));
        if (*known) ZC_TRY(set_shape(s, i, &io, diag));
    }
    return ZC_OK;
}

zc_status cli_plan_memory(zc_plan *plan, const cli_dims *dims, bool *known, uint64_t *bytes,
                          zc_diag *diag)
{
    bool used[CLI_LIST_MAX] = {false};
    zc_session *s = NULL;
    *known = true;
    ZC_TRY(zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, diag));
    zc_status status = set_shapes(plan, s, dims, used, known, diag);
    for (size_t i = 0; i < dims->n && status == ZC_OK; i++)
        if (!used[i])
            status = zc_fail(diag, ZC_ERR_INPUT, dims->v[i].name,
                             "no input of the plan has a symbolic dimension of this name");
    if (status == ZC_OK && *known) status = zc_session_prepare(s, diag);
    *bytes = zc_session_memory(s);
    (void)zc_session_destroy(&s);
    return status;
}
