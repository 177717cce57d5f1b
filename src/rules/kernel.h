/* User kernels as nodes. */
#ifndef ZC_RULES_KERNEL_H
#define ZC_RULES_KERNEL_H

#include "rules/eval.h"

typedef enum zc_rl_set { ZC_RL_SET_OK, ZC_RL_SET_UNKNOWN, ZC_RL_SET_NOMEM } zc_rl_set;

/* The attributes of a node on operands `in`; strings are the definition's or env->arena's. UNKNOWN:
 * the meaning has an attribute that these operands do not decide. */
zc_rl_set zc_rl_set_kernel(const zc_rl_env *env, const zc_rl_kernel *k, const zc_vid *in,
                           zc_attrs_UserKernel *out);

#endif
