/* zc conform: ONNX's conformance tests. cmd_conform.c is the command and finds the tests,
 * conform_test.c runs one, conform_data.c reads its sequences, conform_process.c does that in a
 * process of its own, conform_report.c prints. */
#ifndef ZC_CLI_CONFORM_H
#define ZC_CLI_CONFORM_H

#include <regex.h>

#include "cli/cli.h"
#include "cli/device.h"
#include "cli/progress.h"
#include "import/tensor_proto.h"

typedef enum outcome { PASS, FAIL, SKIP, CRASH, HANG, OUTCOMES } outcome;

#define OPSET_MAX 64
#define TEXT_MAX  600

/* What a test's process writes to its parent. */
typedef struct result {
    int outcome, opset;
    int cpu_steps; /* on a GPU: steps that ran on the CPU all the same, shapes not counted */
    char text[TEXT_MAX];
} result;

typedef struct skip_rule {
    regex_t name;
    char *reason;
} skip_rule;

typedef struct conform {
    const char *include_text, *skip_file;
    cli_device device;
    regex_t include;
    ZC_VEC(skip_rule) skips;
    uint8_t *skip_text;
    double rtol, atol;
    int64_t timeout, threads;
    bool reference, json, verbose, in_process;
    size_t counts[OPSET_MAX + 1][OUTCOMES], totals[OUTCOMES];
    size_t all_gpu; /* passed without a CPU step */
    bool first;     /* of the JSON list */
    cli_progress progress;
} conform;

/* Sets the outcome and its text. */
void cli_conform_say(result *r, outcome o, const char *fmt, ...) ZC_PRINTF(3, 4);

/* The model of a test's folder: model.onnx, or the one .onnx file beside test_data_set_0. */
bool cli_conform_model(const char *dir, char *path, size_t n);
/* Runs one test in this process. path: a test's folder, or a light model's file. */
void cli_conform_run(const conform *c, const char *path, bool light, result *r);
/* The same in a process of its own, so that a crash or a hang is one failed test. */
void cli_conform_isolated(const conform *c, const char *path, bool light, result *r);

/* What a file of test data for that input or output holds. */
zc_wire_message cli_conform_kind(const Onnx__ValueInfoProto *info);
/* Is an input of the graph no tensor? */
bool cli_conform_composites(const Onnx__GraphProto *graph);

/* What is fixed when a test's model is compiled: how long its sequences are, and the shapes of
 * their tensors where the model says nothing of them. */
typedef struct cli_conform_fixed {
    zc_arena arena;
    ZC_VEC(zc_fixed_dim) dims;
    ZC_VEC(zc_fixed_shape) shapes;
} cli_conform_fixed;

/* Adds what the data in folder `set` say. */
zc_status cli_conform_fix(const Onnx__GraphProto *graph, const char *set, cli_conform_fixed *fixed,
                          zc_diag *diag);
/* Gives a plan compiled so its inputs. */
zc_status cli_conform_set(const Onnx__GraphProto *graph, const char *set, zc_session *s,
                          zc_diag *diag);

/* Counts and prints one result; prints the totals. */
void cli_conform_report(conform *c, const char *name, const result *r);
void cli_conform_summary(const conform *c);

#endif
