/* Values for a plan's inputs, from files or random. */
#ifndef ZC_CLI_INPUTS_H
#define ZC_CLI_INPUTS_H

#include "cli/cli.h"
#include "op/tensor.h"

#define CLI_INPUTS_MAX 64

typedef struct cli_inputs {
    const char *names[CLI_INPUTS_MAX], *files[CLI_INPUTS_MAX]; /* --input NAME=FILE */
    int count;
    const char *dir; /* --inputs DIR: input_<k>.pb or .npy */
    bool random;
    int64_t seed;
    const char *dim_names[CLI_INPUTS_MAX]; /* --dim NAME=VALUE, for random inputs */
    int64_t dim_values[CLI_INPUTS_MAX];
    int ndims;
} cli_inputs;

/* Options that the commands with inputs share, for getopt's table, and what they do. */
#define CLI_INPUT_OPTIONS                                                                          \
    {"input", required_argument, NULL, 'i'}, {"inputs", required_argument, NULL, 'I'},             \
        {"random", no_argument, NULL, 'R'}, {"seed", required_argument, NULL, 'S'},                \
    {                                                                                              \
        "dim", required_argument, NULL, 'D'                                                        \
    }
#define CLI_INPUT_HELP                                                                             \
    "      --input NAME=FILE    an input's value, .npy or ONNX .pb (repeatable)\n"                 \
    "      --inputs DIR         input_0.pb or input_0.npy and so on, in the plan's order\n"        \
    "      --random             random values; --seed N repeats them (default 1)\n"                \
    "      --dim NAME=VALUE     size of a symbolic dimension of random inputs (default 1)\n"

/* True when c was one of the options above; *code is then EXIT_OK or says what is wrong. */
bool cli_input_option(const char *command, int c, char *value, cli_inputs *in, int *code);
/* Gives every input of the session its value. */
zc_status cli_set_inputs(const zc_plan *plan, zc_session *session, const cli_inputs *in,
                         zc_diag *diag);
/* Reads a .npy or .pb file; the caller frees data. */
zc_status cli_read_tensor(const char *path, zc_tensor *out, zc_diag *diag);
/* The tensor as the runtime's view of it. */
zc_view cli_view(const zc_tensor *t);

#endif
