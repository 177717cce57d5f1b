/* A plan with choices that never hold (kernels/choose.h, alternatives), in a session on a GPU: such
 * a choice is taken for once, to see whether it computes the same and how long runs take. For the
 * compiler's tuner; nothing here is for runs that matter. */
#ifndef ZC_RUNTIME_ALTERNATIVES_H
#define ZC_RUNTIME_ALTERNATIVES_H

#include "planfile/program.h"
#include "zc/rt.h"

/* The plan's program, which lives as long as the plan. */
const zc_program *zc_plan_program(const zc_plan *plan);

/* From now on choice number `choice` serves the step. Graphs are recorded anew. */
zc_status zc_session_force(zc_session *s, uint32_t step, uint32_t choice, zc_diag *diag);

/* Told of each choice of a step but the one that holds: `got` is what its kernel made of the same
 * operands, `need` what that one's did; `error` (NULL: none) why it could not be issued, or how it
 * ended; `lost`: the device with it, and nothing else is told. Host memory, for this call. */
typedef void (*zc_compared_fn)(void *user, uint32_t step, uint32_t choice, int nout,
                               const zc_tensor *got, const zc_tensor *need, const char *error,
                               bool lost);

/* Runs once, and tells for each step of `steps` (by step) what its choices compute. */
zc_status zc_session_compare(zc_session *s, const bool *steps, zc_compared_fn told, void *user,
                             zc_diag *diag);

#endif
