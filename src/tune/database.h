/* What was measured: which configuration of which family serves a problem best, on which GPU.
 *
 * As text: the line "# zc tuned 1", then a line for each problem and GPU, with tabs between
 *
 *   sm_90, the GPU's name, the problem (tune/problem.h), the family, its configuration,
 * microseconds that a use of it saves against the first choice by cost, CUDA's version, the day
 *
 * in the order of their bytes, so that files can be compared and merged as any text. */
#ifndef ZC_TUNE_DATABASE_H
#define ZC_TUNE_DATABASE_H

#include "base/diag.h"
#include "base/mem.h"

typedef struct zc_tuned_entry {
    int arch; /* 90 */
    const char *gpu, *problem, *family, *config;
    double saved;
    const char *cuda, *day; /* "13.0", "2026-11-23" */
} zc_tuned_entry;

typedef struct zc_tuned {
    zc_arena arena;                 /* of the texts */
    ZC_VEC(zc_tuned_entry) entries; /* in their order */
} zc_tuned;

void zc_tuned_init(zc_tuned *t);
void zc_tuned_fini(zc_tuned *t);

/* Adds a copy. Of two entries for one problem and GPU that of the later day stays, then that which
 * saves more, then the first in the order of their bytes. */
zc_status zc_tuned_add(zc_tuned *t, const zc_tuned_entry *e, zc_diag *diag);
zc_status zc_tuned_add_all(zc_tuned *t, const zc_tuned *from, zc_diag *diag);

/* Adds what the text says, problems in their normal form. Lines may come in any order. Names of
 * families and configurations may be
 * those of another zc: nobody finds them. `name` is the file's, for errors. */
zc_status zc_tuned_parse(zc_tuned *t, const char *text, size_t len, const char *name,
                         zc_diag *diag);
zc_status zc_tuned_read(zc_tuned *t, const char *path, zc_diag *diag);
zc_status zc_tuned_print(const zc_tuned *t, zc_buf *out, zc_diag *diag);
/* The file appears complete or not at all; an existing one stays as it is on failure. */
zc_status zc_tuned_write(const zc_tuned *t, const char *path, zc_diag *diag);
/* Adds the entries that zc brings along. */
zc_status zc_tuned_add_builtin(zc_tuned *t, zc_diag *diag);

/* For that GPU; where gpu is NULL, for the first of that architecture. NULL: none. */
const zc_tuned_entry *zc_tuned_find(const zc_tuned *t, int arch, const char *gpu,
                                    const char *problem);

#endif
