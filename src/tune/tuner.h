/* Finds, on this machine's first GPU, which kernels make a program's runs shortest.
 *
 * Every step gets alternatives of all families that serve it (kernels/choose.h). Those whose code
 * the compiler's log refuses, and those that compute something else than the first choice of the
 * same operands, are left out. Then one problem after the other tries its alternatives in the
 * captured graph of the whole program and keeps what makes that fastest, until nothing changes or
 * the time is up: tiles that win alone lose beside others. */
#ifndef ZC_TUNE_TUNER_H
#define ZC_TUNE_TUNER_H

#include "kernels/choose.h"
#include "tune/database.h"

typedef struct zc_tuner_params {
    const zc_choose_profile *profiles; /* every combination of their values is tuned */
    size_t nprofiles;
    int threads;           /* that compile; 0: one a CPU */
    double seconds;        /* for measuring, compiling not counted */
    const zc_tuned *known; /* what need not be measured again */
    bool again;            /* measure it all the same */
    int alternatives;      /* of each family; all their times are told. 0: the usual number */
    bool offered;          /* a step's row by cost may be one that has not run on a GPU */
    zc_buf *told;          /* gets lines of text; may be NULL */
    /* Called before each problem. Return false to cancel. May be NULL. */
    bool (*progress)(void *user, const char *text);
    void *progress_user;
} zc_tuner_params;

/* Adds to `found` what was measured; after an error what was before it. p has no kernels yet. */
zc_status zc_tune_program(const zc_program *p, const zc_tuner_params *params, zc_tuned *found,
                          zc_diag *diag);

/* What `user`, a zc_tuner_lookup, knows: for zc_choose_params.measured. */
typedef struct zc_tuner_lookup {
    const zc_tuned *known;
    const char *gpu; /* NULL: any of the architecture */
    char why[256];
} zc_tuner_lookup;
bool zc_tuner_measured(void *user, const zc_program *p, uint32_t step, int arch, zc_measured *out);

#endif
