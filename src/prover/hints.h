/* What a rule's conditions ask of operands, for samples: shapes, types and numbers that conditions
 * need are not left to luck. A condition that does not hold is solved for the operand in work. */
#ifndef ZC_PROVER_HINTS_H
#define ZC_PROVER_HINTS_H

#include "rules/eval.h"

/* What is being made. env has the values made before; env->uses is not read. */
typedef struct zc_rl_solver {
    zc_rl_env env;
    uint64_t *random;
    int var;      /* the operand or attribute */
    zc_vid draft; /* a value of env.g that stands for the operand meanwhile */
} zc_rl_solver;

/* Changes a drawn element type, shape or, where t has data, its elements to what the conditions
 * that are known so far ask for. */
void zc_rl_hint_dtype(const zc_rl_solver *s, zc_dtype *d);
void zc_rl_hint_shape(const zc_rl_solver *s, zc_tensor *t);
void zc_rl_hint_data(const zc_rl_solver *s, zc_tensor *t);
/* The same for the number that a captured attribute has. */
void zc_rl_hint_attr(const zc_rl_solver *s, zc_rl_val *v);

/* A number that conditions ask of function f (rank, dim or size) of any value; false: none. */
bool zc_rl_hint_number(const zc_rl_solver *s, zc_rl_function f, int64_t *out);
/* The largest whole number in conditions that a size can be; 0: none. */
int64_t zc_rl_hint_longest(const zc_rl_rule *rule);
/* An element type that conditions name; ZC_NONE: none. */
zc_dtype zc_rl_hint_named_dtype(const zc_rl_rule *rule, uint64_t which);

#endif
