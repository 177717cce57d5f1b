/* Inputs of several runs, for what is measured over them. */
#ifndef ZC_CLI_SAMPLES_H
#define ZC_CLI_SAMPLES_H

#include "cli/inputs.h"
#include "driver/compile.h"

/* Most runs. */
enum { CLI_SAMPLES_MAX = 4096 };

typedef struct cli_samples {
    ZC_VEC(cli_values) runs;
    ZC_VEC(zc_view) views; /* of all inputs of all runs, as zc_compile_params.samples */
} cli_samples;

/* Of each of `from` what --inputs takes, or a folder of such folders, in the order of their names;
 * without any, so many random runs, by the seeds 1, 2 and on. The caller frees *out, also after a
 * failure. */
zc_status cli_read_samples(const zc_plan *plan, const cli_list *from, int64_t random,
                           cli_samples *out, zc_diag *diag);
void cli_free_samples(cli_samples *s);

/* The model as it is, compiled for the CPU with these dimensions and shapes: what says which inputs
 * it has. */
zc_status cli_load_model(const zc_model_source *model, const zc_compile_params *like, zc_plan **out,
                         zc_diag *diag);

#endif
