/* Samples computed with the reference kernels, and the two sides of a rule compared. */
#ifndef ZC_PROVER_RUN_H
#define ZC_PROVER_RUN_H

#include "prover/prover.h"
#include "prover/sample.h"

/* A sample and its values. */
typedef struct zc_rl_run {
    zc_rl_sample s;
    zc_tensor *value; /* by value id */
    bool *owned;
    size_t work; /* elements computed, those of products by their factors */
    int binding; /* of symbols, as it was run last */
} zc_rl_run;

/* Which sizes the symbols of a sample have: 0 those it was drawn with; 1 other ones, odd; then, one
 * symbol after the other, 0 and 1. */
int zc_rl_bindings(const zc_rl_sample *s);

/* The size that symbol i of the sample has in the run. */
int64_t zc_rl_symbol_size(const zc_rl_run *r, int i);

/* Computes every value. false: an operand that a kernel refuses, or no memory. */
bool zc_rl_run_all(zc_rl_run *r, const zc_rl_rule *rule, const zc_rl_choice *c, int binding);
void zc_rl_run_fini(zc_rl_run *r);

/* Both sides on one sample. */
typedef struct zc_rl_sides {
    const zc_rl_rule *rule;
    const zc_rl_choice *c;
    zc_rl_run match, emit;
    zc_rl_run wide, exact; /* the match side; without a graph: not known */
} zc_rl_sides;

/* Does a side have numbers that are f32 in any type? */
bool zc_rl_is_narrow(const zc_rl_rule *rule);
/* Notes in out what differs. */
void zc_rl_compare_sides(const zc_rl_sides *s, zc_rule_check *out);
/* The emit side as the device computes it against the emit side here. */
zc_status zc_rl_compare_device(const zc_rl_sides *s, const zc_rule_device *device,
                               zc_rule_check *out, zc_diag *diag);
/* "x: f32[2,3], w: f32[3,4]; large values, seed 17" */
void zc_rl_describe(const zc_rl_sides *s, char *out, size_t size);

#endif
