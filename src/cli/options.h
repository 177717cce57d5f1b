/* Options of commands as data: one table a command drives parsing, --help, man pages and shell
 * completion. */
#ifndef ZC_CLI_OPTIONS_H
#define ZC_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zc/zc.h"

/* Most values of an option that may be repeated. */
#define CLI_LIST_MAX 64

/* The names of the passes for `choices`; and with "all". */
extern const char cli_pass_names[], cli_skip_names[];

/* What a shell offers for a word. */
typedef enum cli_words { CLI_WORDS_NONE, CLI_WORDS_FILE, CLI_WORDS_DIR } cli_words;

typedef struct cli_option cli_option;
typedef struct cli_command cli_command;

/* An option met while parsing. */
typedef struct cli_call {
    const cli_command *command;
    const cli_option *option;
} cli_call;

/* Stores the value (NULL of a flag) at `at`; returns EXIT_OK or reports and returns EXIT_USAGE. */
typedef int cli_setter(const cli_call *call, void *at, char *value);

struct cli_option {
    const char *name;    /* without the dashes */
    char letter;         /* short form; 0: none */
    bool repeated;       /* may be given several times, each adds */
    const char *arg;     /* placeholder of its value; NULL: a flag */
    bool optional;       /* a flag that takes a value behind '=' */
    const char *help;    /* one line */
    const char *choices; /* the values it takes, separated by spaces; NULL: others */
    cli_words words;     /* what else completes its value */
    bool writes;         /* its value is a file that is written, and no operand */
    cli_setter *set;
    size_t at;           /* offset into the command's options */
    int64_t least, most; /* of cli_set_int and cli_set_real */
};

struct cli_command {
    const char *name, *summary;
    const char *operands; /* after "usage: zc NAME" */
    const char *about;    /* paragraphs, separated by newlines; wrapped when printed */
    const char *examples; /* command lines, each ended by a newline */
    const cli_option *options;
    size_t option_count;
    cli_words words; /* what completes an operand */
    int (*run)(int argc, char **argv);
};

#define CMD(name) extern const cli_command cli_##name##_command;
#include "cli/commands.def"
#undef CMD

/* The i-th command in the order of commands.def; NULL past the end. */
const cli_command *cli_command_at(size_t i);
const cli_command *cli_command_find(const char *name);

/* cli_parse's answer when the command goes on. */
#define CLI_GO (-1)
/* Applies the options to `state`. CLI_GO, or the exit code: after --help or a mistake, which has
 * been reported. Operands are then argv[optind] and on. */
int cli_parse(const cli_command *command, int argc, char **argv, void *state);
/* The same for a command with exactly one operand; `what` says which ("one model"). */
int cli_parse_one(const cli_command *command, int argc, char **argv, void *state, const char *what,
                  const char **operand);

/* Reports, with EXIT_USAGE, an option's file that is to be written and is one of the operands;
 * cli_parse does it for options that say `writes`. */
int cli_check_written(const char *command, const char *option, const char *path,
                      char *const *operands, int n);

/* "1x3x8" into rank and dims. */
bool cli_parse_shape(const char *text, zc_fixed_shape *s);

/* "zc COMMAND: --option: got 'value', need ..."; returns EXIT_USAGE. */
int cli_bad_value(const cli_call *call, const char *value, const char *need);

/* Setters, by what stands at `at`. */
cli_setter cli_set_flag;     /* bool: becomes true */
cli_setter cli_set_text;     /* const char *; one of `choices` when there are any */
cli_setter cli_set_int;      /* int64_t from least to most */
cli_setter cli_set_real;     /* double from least to most */
cli_setter cli_set_positive; /* double, more than 0 */
cli_setter cli_set_list;     /* cli_list */
cli_setter cli_set_words;    /* cli_list: `choices`, separated by commas */
cli_setter cli_set_dim;      /* cli_dims: NAME=VALUE */
cli_setter cli_set_shape;    /* cli_shapes: NAME=1x3x8 */
cli_setter cli_set_profile;  /* cli_profiles: NAME=1,8,32 */
cli_setter cli_set_pair;     /* cli_list: NAME=TEXT */
cli_setter cli_set_pairs;    /* cli_list: NAME:TEXT,NAME:TEXT as trtexec has it; kept as pairs */
cli_setter cli_set_named;    /* cli_shapes: NAME:1x3x8,NAME:4 likewise */
cli_setter cli_set_tune;     /* cli_tune: seconds, or no value */

/* Measuring kernels. */
typedef struct cli_tune {
    bool on, by_cost;
    double seconds; /* 0: the usual */
    const char *file;
} cli_tune;

typedef struct cli_list {
    const char *v[CLI_LIST_MAX];
    size_t n;
} cli_list;

typedef struct cli_dims {
    zc_fixed_dim v[CLI_LIST_MAX];
    size_t n;
} cli_dims;

typedef struct cli_shapes {
    zc_fixed_shape v[CLI_LIST_MAX];
    size_t n;
} cli_shapes;

/* Most profiles, and most sizes of one. */
enum { CLI_PROFILES_MAX = 8, CLI_SIZES_MAX = 64 };

typedef struct cli_profiles {
    zc_profile v[CLI_PROFILES_MAX];
    int64_t sizes[CLI_PROFILES_MAX][CLI_SIZES_MAX];
    size_t n;
} cli_profiles;

/* --threads of a command whose state has it as an int64_t. */
#define CLI_THREADS_OPTION(state, field, text)                                                     \
    {                                                                                              \
        .name = "threads", .arg = "N", .help = text, .least = 1, .most = 1024, .set = cli_set_int, \
        .at = offsetof(state, field)                                                               \
    }

/* The same for what several commands say of a model. */
#define CLI_DIM_OPTION(state, field, text)                                                         \
    {                                                                                              \
        .name = "dim", .repeated = true, .arg = "NAME=VALUE", .help = text, .set = cli_set_dim,    \
        .at = offsetof(state, field)                                                               \
    }
#define CLI_OFFERED_OPTION(state, field)                                                           \
    {                                                                                              \
        .name = "offered",                                                                         \
        .help = "also what has not been measured on a GPU yet, for who measures it",               \
        .set = cli_set_flag, .at = offsetof(state, field)                                          \
    }
#define CLI_SHAPE_OPTION(state, field)                                                             \
    {                                                                                              \
        .name = "shape", .repeated = true, .arg = "NAME=1x3x8", .help = "fix an input's shape",    \
        .set = cli_set_shape, .at = offsetof(state, field)                                         \
    }
#define CLI_DATA_ROOT_OPTION(state, field)                                                         \
    {                                                                                              \
        .name = "data-root", .arg = "DIR",                                                         \
        .help = "where external weights lie (default: the model's directory; none of a pipe's)",   \
        .words = CLI_WORDS_DIR, .set = cli_set_text, .at = offsetof(state, field)                  \
    }
#define CLI_PROFILE_OPTION(state, field, text)                                                     \
    {                                                                                              \
        .name = "profile", .repeated = true, .arg = "NAME=1,8,32", .help = text,                   \
        .set = cli_set_profile, .at = offsetof(state, field)                                       \
    }
#define CLI_PRECISION_OPTION(state, field, text)                                                   \
    {                                                                                              \
        .name = "precision", .arg = "TYPE", .choices = CLI_PRECISIONS, .help = text,               \
        .set = cli_set_text, .at = offsetof(state, field)                                          \
    }
#define CLI_PRECISIONS "f32 tf32 f16 bf16"

#endif
