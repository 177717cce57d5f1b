/* Files as values of a plan's inputs: what a file is, its content says. */
#ifndef ZC_CLI_READ_H
#define ZC_CLI_READ_H

#include "cli/options.h"
#include "op/tensor.h"

/* --mean and --scale: one number, or one a channel. */
typedef struct cli_channels {
    double v[3];
    size_t n; /* 0: not given */
} cli_channels;
cli_setter cli_set_channels;

/* What options say of files. */
typedef struct cli_files {
    cli_list raws;      /* NAME=TYPE:SHAPE */
    bool cast;          /* to the type that the plan takes */
    const char *layout; /* of images; NULL: as the plan's shape looks */
    cli_channels mean, scale;
} cli_files;

/* An input that a file is read for. */
typedef struct cli_wanted {
    const zc_io_info *io;
    int64_t dims[ZC_RANK_MAX]; /* -1: not known */
    const cli_files *files;
    bool is_bare; /* a file of no known kind has bare elements, as many as the plan takes */
    bool *saw_image;
} cli_wanted;

/* .npy, ONNX .pb, .npz, PNG, JPEG, WAV or, where an option says so, the bare elements; from a file,
 * a pipe or "-". The caller frees out->data. */
zc_status cli_read_input(const char *path, const cli_wanted *wanted, zc_tensor *out, zc_diag *diag);
/* The array of that name in a .npz file, or the only one that is there. The caller frees out->data.
 */
zc_status cli_read_array(const char *path, const char *name, zc_tensor *out, zc_diag *diag);
/* What --raw says of the input, or NULL. */
const char *cli_raw_of(const cli_files *files, const char *name);
/* Casts to the plan's type if that was asked for. */
zc_status cli_cast_input(const cli_wanted *wanted, zc_tensor *t, zc_diag *diag);
/* Every --raw names an input. */
zc_status cli_check_raws(const cli_files *files, const zc_io_info *inputs, size_t n, zc_diag *diag);

#define CLI_FILE_OPTIONS(options, files)                                                           \
    {.name = "raw",                                                                                \
     .repeated = true,                                                                             \
     .arg = "NAME=TYPE:1x3x8",                                                                     \
     .help = "the input's file has bare elements (little-endian) of this type and shape",          \
     .set = cli_set_pair,                                                                          \
     .at = offsetof(options, files.raws)},                                                         \
        {.name = "cast",                                                                           \
         .help = "convert files to the types that the plan takes",                                 \
         .set = cli_set_flag,                                                                      \
         .at = offsetof(options, files.cast)},                                                     \
        {.name = "mean",                                                                           \
         .arg = "M[,M,M]",                                                                         \
         .help = "of images: a pixel of 0 to 255 becomes (pixel - mean) * scale (default 0)",      \
         .set = cli_set_channels,                                                                  \
         .at = offsetof(options, files.mean)},                                                     \
        {.name = "scale",                                                                          \
         .arg = "S[,S,S]",                                                                         \
         .help = "of images: see --mean (default 1)",                                              \
         .set = cli_set_channels,                                                                  \
         .at = offsetof(options, files.scale)},                                                    \
    {                                                                                              \
        .name = "layout", .arg = "LAYOUT", .choices = "nchw nhwc",                                 \
        .help = "of images: where channels stand (default: as the plan's shape looks)",            \
        .set = cli_set_text, .at = offsetof(options, files.layout)                                 \
    }

#endif
