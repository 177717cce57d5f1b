/* Rules checked by numbers, before they are applied (docs/rules.md). The rules know nothing of it.
 */
#ifndef ZC_PROVER_PROVER_H
#define ZC_PROVER_PROVER_H

#include "rules/rules.h"

typedef struct zc_rule_check {
    size_t places;  /* graphs that were made for the rule, and on which it applied */
    size_t values;  /* elements compared */
    size_t refused; /* graphs that it matched, and where the rewrite was refused */
    char refusal[256];
    double worst;    /* greatest error, relative to the size of the result */
    char input[512]; /* what gave it */
    bool failed;
    char why[256];
} zc_rule_check;

/* Makes graphs that rule i matches, with operands of many shapes and values, and compares what the
 * match side and the emit side compute on the CPU's reference kernels. The match side in f64 tells
 * how far off either is: the emit side may be no worse. A rule fails too when no graph was found,
 * or when nothing was compared. Sizes, types and numbers that mistakes show at are always among the
 * graphs; the seed adds more, the same seed the same. */
zc_status zc_rules_check_numbers(const zc_rules *r, size_t i, uint64_t seed, zc_rule_check *out,
                                 zc_diag *diag);

/* A device to run graphs on. run: the results of g (allocated for the caller; their types are the
 * graph's) for its inputs. */
typedef struct zc_rule_device {
    zc_status (*run)(void *user, const zc_graph *g, const zc_tensor *in, zc_tensor *out,
                     zc_diag *diag);
    void *user;
} zc_rule_device;

/* zc_rules_check_numbers, and then the emit side's kernels on the device against their meaning. */
zc_status zc_rules_check_kernels(const zc_rules *r, size_t i, uint64_t seed,
                                 const zc_rule_device *device, zc_rule_check *out, zc_diag *diag);

#endif
