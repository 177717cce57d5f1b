/* Sizes of the symbolic dimensions of a plan's inputs. */
#ifndef ZC_CLI_SIZES_H
#define ZC_CLI_SIZES_H

#include "cli/options.h"
#include "op/dim.h"
#include "op/tensor.h"

typedef struct cli_sizes {
    size_t n;
    zc_io_info *inputs; /* as the plan declares them */
    zc_dims dims;
    zc_dim *shapes;  /* by input and dimension, ZC_RANK_MAX each */
    int64_t *values; /* by node of dims; -1: not known */
    bool *fixed;     /* the symbol's value was given, not learnt */
} cli_sizes;

/* The caller closes *out, also after a failure. A name that no input has is a mistake. */
zc_status cli_sizes_open(const zc_plan *plan, const cli_dims *given, cli_sizes *out, zc_diag *diag);
void cli_sizes_close(cli_sizes *s);
/* Takes from the value of input i the sizes that are not known yet; one that contradicts what was
 * given is a mistake. */
zc_status cli_sizes_learn(cli_sizes *s, size_t i, const zc_tensor *value, zc_diag *diag);
/* What is not known becomes 1; appends "batch=1, sequence=1". */
void cli_sizes_assume(cli_sizes *s, zc_buf *told);
/* The shape of input i; a size that is not known, or cannot be computed, is -1. */
void cli_sizes_shape(const cli_sizes *s, size_t i, int64_t dims[ZC_RANK_MAX]);

#endif
