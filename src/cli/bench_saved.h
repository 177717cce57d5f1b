/* The file of zc bench --save, whose form is in docs/report.md. Names in it are written as cli_put
 * prints them, so that each stays in its line. The lines before the runs say what the times are of;
 * those that are not known here are left to whoever compares. */
#ifndef ZC_CLI_BENCH_SAVED_H
#define ZC_CLI_BENCH_SAVED_H

#include "base/mem.h"
#include "runtime/probe.h"

#define BENCH_FIRST_LINE "zc-bench 1"

enum { BENCH_RUNS_KEPT = 3000, BENCH_STEP_RUNS = 200, BENCH_STEPS_MOST = 100000 };

typedef struct bench_saved_step {
    uint64_t number;
    const char *op, *name; /* as they are written */
    const char *kernel;    /* likewise; NULL: none */
    const char *products;  /* as zc_step_info has them */
    double *us;
    size_t runs;
    bool has_work;
    double bytes_in, bytes_out, operations;
} bench_saved_step;

/* Of a run, on average; 0: not known. */
typedef struct bench_saved_energy {
    double joules, watts;
} bench_saved_energy;

/* All texts are the struct's. */
typedef struct bench_saved {
    ZC_VEC(const char *) head;   /* the lines before the runs */
    ZC_VEC(double) runs;         /* in milliseconds */
    bench_saved_energy gpu, cpu; /* of the whole GPU, of the CPU's packages */
    const char *clocks;          /* of a GPU, in words; NULL: not known */
    zc_peaks peaks;              /* 0: not known; of a GPU, operations */
    ZC_VEC(bench_saved_step) steps;
    zc_arena arena;
} bench_saved;

/* ZC_ERR_INPUT, with the line, when the file is damaged. The caller frees *out, also after a
 * failure. */
zc_status bench_saved_read(const char *path, bench_saved *out, zc_diag *diag);
/* The same of text, which ends with a NUL; messages call it `path`. */
zc_status bench_saved_parse(const char *text, size_t len, const char *path, bench_saved *out,
                            zc_diag *diag);
void bench_saved_free(bench_saved *s);
/* What follows "KEY " in a line; NULL when the line is another's. */
const char *bench_saved_behind(const char *line, const char *key);

#endif
