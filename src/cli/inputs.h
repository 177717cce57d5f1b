/* Values for a plan's inputs, from files or random. */
#ifndef ZC_CLI_INPUTS_H
#define ZC_CLI_INPUTS_H

#include "cli/cli.h"
#include "cli/read.h"
#include "op/tensor.h"

/* An input of which every run takes the next part along an axis. */
typedef struct cli_slice {
    int axis;     /* -1: not sliced */
    int64_t size; /* of a part; 0: what the plan says */
} cli_slice;

typedef struct cli_inputs {
    cli_list files;    /* --input NAME=FILE */
    const char *dir;   /* --inputs DIR: input_<k>.pb or .npy */
    bool random;       /* for inputs without a file */
    bool quiet;        /* no note about sizes that nothing gives */
    int64_t seed;      /* below 0: not given */
    cli_dims dims;     /* --dim NAME=VALUE */
    cli_list loads;    /* --loadInputs, as NAME=FILE */
    cli_shapes shapes; /* --shapes */
    cli_files how;     /* files are read */
    const bool *zeros; /* by input: zeros unless a file is given; NULL: none */
    cli_slice *slices; /* by input: the sizes are filled in; NULL: none */
} cli_inputs;

/* Rows that the tables of commands with inputs share; `in` is the cli_inputs in their options. */
#define CLI_INPUT_OPTIONS(options, in)                                                             \
    {.name = "input",                                                                              \
     .repeated = true,                                                                             \
     .arg = "NAME=FILE",                                                                           \
     .help = "an input's value: .npy, .npz, ONNX .pb, PNG, JPEG or WAV, as its content says; - "   \
             "is the standard input",                                                              \
     .words = CLI_WORDS_FILE,                                                                      \
     .set = cli_set_pair,                                                                          \
     .at = offsetof(options, in.files)},                                                           \
        {.name = "inputs",                                                                         \
         .arg = "DIR",                                                                             \
         .help =                                                                                   \
             "a folder of input_0.pb or input_0.npy and so on, in the plan's order, or a .npz "    \
             "file",                                                                               \
         .words = CLI_WORDS_DIR,                                                                   \
         .set = cli_set_text,                                                                      \
         .at = offsetof(options, in.dir)},                                                         \
        {.name = "loadInputs",                                                                     \
         .repeated = true,                                                                         \
         .arg = "NAME:FILE,...",                                                                   \
         .help =                                                                                   \
             "as trtexec: inputs' files; what is no other kind has the bare elements that the "    \
             "plan takes",                                                                         \
         .set = cli_set_pairs,                                                                     \
         .at = offsetof(options, in.loads)},                                                       \
        {.name = "shapes",                                                                         \
         .repeated = true,                                                                         \
         .arg = "NAME:1x3x8,...",                                                                  \
         .help = "as trtexec: shapes of inputs that no file is given for",                         \
         .set = cli_set_named,                                                                     \
         .at = offsetof(options, in.shapes)},                                                      \
        CLI_FILE_OPTIONS(options, in.how),                                                         \
        {.name = "random",                                                                         \
         .help = "random values for inputs that no file is given for",                             \
         .set = cli_set_flag,                                                                      \
         .at = offsetof(options, in.random)},                                                      \
        {.name = "seed",                                                                           \
         .arg = "N",                                                                               \
         .help = "another seed gives other random values (default 1)",                             \
         .most = INT64_MAX,                                                                        \
         .set = cli_set_int,                                                                       \
         .at = offsetof(options, in.seed)},                                                        \
    {                                                                                              \
        .name = "dim", .repeated = true, .arg = "NAME=VALUE",                                      \
        .help = "size of a symbolic dimension (default: as in the files given, else 1)",           \
        .set = cli_set_dim, .at = offsetof(options, in.dims)                                       \
    }

/* A value for every input of a plan. */
typedef struct cli_values {
    zc_tensor *v;
    size_t n;
} cli_values;

/* What contradicts the plan or another option is ZC_ERR_ARG. The caller frees *out, also after a
 * failure. */
zc_status cli_read_inputs(const zc_plan *plan, const cli_inputs *in, cli_values *out,
                          zc_diag *diag);
void cli_free_values(cli_values *values);
/* Gives every input of the session its value, which is copied. */
zc_status cli_give_inputs(zc_session *session, const cli_values *values, zc_diag *diag);
/* Both. */
zc_status cli_set_inputs(const zc_plan *plan, zc_session *session, const cli_inputs *in,
                         zc_diag *diag);
/* DIR/KIND_<i>.npy or .pb, the first that there is; without one the last that was tried. */
bool cli_tensor_file(const char *dir, const char *kind, size_t i, char *buf, size_t n);
/* Loads a plan from a file, a pipe or, "-", the standard input. */
zc_status cli_load_plan(const char *path, zc_plan **out, zc_diag *diag);
/* A tensor in the form of .npy or .pb from such a place; the caller frees data. */
zc_status cli_read_tensor(const char *path, zc_tensor *out, zc_diag *diag);
/* What output number i, of that name, is expected to be: of --expect's folder, or .npz file; the
 * caller frees data. */
zc_status cli_read_expected(const char *path, const char *name, size_t i, zc_tensor *out,
                            zc_diag *diag);
/* A copy of another element type, which the caller frees; false without memory. As zc_store_f64 and
 * zc_store_i64 do it. */
bool cli_cast(const zc_tensor *t, zc_dtype to, zc_tensor *out);
/* The tensor as the runtime's view of it, and back. */
zc_view cli_view(const zc_tensor *t);
zc_tensor cli_tensor(const zc_view *v);

#endif
