/* What runs of a plan need, for dimensions that options name. */
#include "cli/inspect.h"
#include "cli/sizes.h"

zc_status cli_plan_memory(const zc_plan *plan, const cli_dims *dims, bool *known,
                          zc_memory_info *out, zc_diag *diag)
{
    cli_sizes sizes;
    *known = true;
    *out = (zc_memory_info){0};
    zc_status status = cli_sizes_open(plan, dims, &sizes, diag);
    for (size_t i = 0; status == ZC_OK && i < sizes.n; i++) {
        zc_io_info *io = &sizes.inputs[i];
        *known &= io->rank >= 0;
        cli_sizes_shape(&sizes, i, io->dims);
        for (int d = 0; d < io->rank; d++) *known &= io->dims[d] >= 0;
    }
    if (status == ZC_OK && *known) status = zc_plan_memory(plan, sizes.inputs, sizes.n, out, diag);
    cli_sizes_close(&sizes);
    return status;
}
