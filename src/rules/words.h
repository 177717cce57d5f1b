/* Values and conditions at a match, in words. */
#ifndef ZC_RULES_WORDS_H
#define ZC_RULES_WORDS_H

#include "rules/eval.h"

void zc_rl_put_value(zc_buf *out, const zc_dims *dims, const zc_rl_val *v);
/* "the condition in line 5, column 10 does not hold (got 3, need == 2)"; "is not certain" where
 * symbols leave it open. */
void zc_rl_put_failed(zc_buf *out, const zc_rl_env *env, const zc_rl_expr *e);

#endif
