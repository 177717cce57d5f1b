/* trtexec's shapes: --minShapes, --optShapes, --maxShapes. */
#ifndef ZC_CLI_RANGES_H
#define ZC_CLI_RANGES_H

#include "cli/options.h"
#include "driver/compile.h"

typedef struct cli_ranges {
    const cli_shapes *min, *opt, *max;
    bool has_gpu;
} cli_ranges;

/* What they mean for the model's symbolic dimensions: a size that cannot vary is added to dims; one
 * that can gets the best one as a profile, for a GPU. Their names lie in the arena. Shapes that
 * contradict the model, each other or what the two lists have already are ZC_ERR_ARG. */
zc_status cli_take_ranges(const zc_model_source *model, const zc_compile_params *params,
                          const cli_ranges *ranges, cli_dims *dims, cli_profiles *profiles,
                          zc_arena *names, zc_diag *diag);

#endif
