/* Kernels of users, which a rule file binds to the language. */
#ifndef ZC_RULES_BINDING_H
#define ZC_RULES_BINDING_H

#include "rules/eval.h"

/* Clauses, source and meaning of one. */
void zc_rl_check_kernel(zc_rules *r, zc_rl_kernel *k);

typedef enum zc_rl_set { ZC_RL_SET_OK, ZC_RL_SET_UNKNOWN, ZC_RL_SET_NOMEM } zc_rl_set;

/* The attributes of a node on operands `in`; strings are the definition's or env->arena's. UNKNOWN:
 * the meaning has an attribute that these operands do not decide. */
zc_rl_set zc_rl_set_kernel(const zc_rl_env *env, const zc_rl_kernel *k, const zc_vid *in,
                           zc_attrs_UserKernel *out);

#endif
