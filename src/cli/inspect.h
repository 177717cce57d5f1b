/* zc inspect: cmd_inspect.c is the command; inspect_model.c prints graphs, inspect_plan.c plans as
 * text and Graphviz, inspect_json.c as JSON; inspect_memory.c finds and prints a plan's working
 * memory, inspect_operators.c lists what the importer reads. */
#ifndef ZC_CLI_INSPECT_H
#define ZC_CLI_INSPECT_H

#include "cli/cli.h"
#include "driver/compile.h"
#include "planfile/program.h"
#include "runtime/memory_map.h"

typedef struct inspect {
    const char *stage, *pass, *precision;
    bool full, dot, json, hashes, memory, passes, operators;
    cli_list skips;
    cli_dims dims;
} inspect;

#define STAGE_IMPORT    "import"
#define STAGE_OPTIMISED "optimised"
#define STAGE_PROGRAM   "program"

/* A model's graph after the stage or pass that was asked for. */
zc_status cli_inspect_model(const zc_model_source *model, const inspect *o, zc_diag *diag);

/* What a plan, a file or bytes, holds. */
zc_status cli_inspect_plan(const zc_model_source *from, const inspect *o, zc_diag *diag);

/* What printing a plan needs. */
typedef struct plan_view {
    const zc_program *program;
    unsigned major, minor; /* of the format */
    uint64_t weight_bytes;
    bool memory_known; /* every input dimension has a value */
    zc_memory_info memory;
    bool hashes;
} plan_view;

void cli_plan_json(const plan_view *v);
/* The SHA-256 of bytes as hexadecimal. */
void cli_sha256_text(const void *data, size_t len, char out[65]);
/* Is the binary the first for its architecture? */
bool cli_first_of_arch(const zc_program *p, uint32_t binary);
/* How many results of steps are of each type of floats. */
void cli_count_types(const zc_program *p, uint32_t counts[ZC_DTYPE_END]);
/* Results of steps for which memory is found when they run: their sizes depend on values, or they
 * are inside of a loop or branch. */
uint32_t cli_unplanned_values(const zc_program *p);
/* The product that a range bounds, as text; the caller frees it. */
void cli_range_text(const zc_program *p, const zc_prange *r, zc_buf *out);
/* A dimension of the program as text; the caller frees it. */
void cli_dim_text(const zc_program *p, zc_dim d, zc_buf *out);

/* What runs with these dimensions take; *known is false, and *out empty, when a symbolic one is
 * missing. A name that no input has is an error. */
zc_status cli_plan_memory(const zc_plan *plan, const cli_dims *dims, bool *known,
                          zc_memory_info *out, zc_diag *diag);

/* The same step by step, of the first architecture that the plan has kernels for, or of the CPU; a
 * symbolic dimension that is missing is an error. The caller frees *out, also after a failure. */
zc_status cli_plan_memory_map(const zc_plan *plan, const cli_dims *dims, zc_memory_map *out,
                              zc_diag *diag);
/* Prints that. */
zc_status cli_inspect_memory(const zc_plan *plan, const inspect *o, zc_diag *diag);

/* docs/operators.md. */
int cli_print_operators(void);

#endif
