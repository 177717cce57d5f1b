/* What runs of a plan need, for dimensions that options name. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/inspect.h"

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

zc_status cli_plan_memory(const zc_plan *plan, const cli_dims *dims, bool *known,
                          zc_memory_info *out, zc_diag *diag)
{
    bool used[CLI_LIST_MAX] = {false};
    zc_plan_info info;
    *known = true;
    *out = (zc_memory_info){0};
    ZC_TRY(zc_plan_info_get(plan, &info));
    zc_io_info *inputs = zc_calloc(info.inputs, sizeof *inputs);
    zc_status status = inputs ? ZC_OK : zc_fail_nomem(diag, "inputs", info.inputs);
    for (size_t i = 0; i < info.inputs && status == ZC_OK; i++)
        status = shape_of(plan, i, dims, &inputs[i], used, known, diag);
    for (size_t i = 0; i < dims->n && status == ZC_OK; i++)
        if (!used[i])
            status = zc_fail(diag, ZC_ERR_INPUT, dims->v[i].name,
                             "no input of the plan has a symbolic dimension of this name");
    if (status == ZC_OK && *known) status = zc_plan_memory(plan, inputs, info.inputs, out, diag);
    free(inputs);
    return status;
}
