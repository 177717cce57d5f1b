/* What a rule's conditions ask of an operand, for samples: so that constants of a length that
 * depends on other operands, or of one certain number, are not left to luck. */
#ifndef ZC_RULES_HINTS_H
#define ZC_RULES_HINTS_H

#include "rules/eval.h"

typedef struct zc_rl_hint {
    int64_t rank;               /* -1: any */
    int64_t size;               /* -1: any */
    int64_t front[ZC_MAX_RANK]; /* dimensions from the first on; -1: any */
    int64_t back[ZC_MAX_RANK];  /* from the last on */
    bool has_value;
    double value; /* of all elements */
} zc_rl_hint;

/* By the conditions that speak of `var` and of values that env has. env->uses is not read. */
void zc_rl_hint_find(const zc_rl_env *env, int var, zc_rl_hint *out);
/* Changes a drawn shape to what the hint asks for. */
void zc_rl_hint_apply(const zc_rl_hint *hint, zc_tensor *t);
/* A rank that conditions ask of operands, the i-th; 0: none. */
int zc_rl_hint_rank(const zc_rl_rule *rule, int i);

#endif
