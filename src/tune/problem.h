/* A step as a text by which measurements find it again: its operation, what is certain of its
 * operands and results, and its attributes. Names of the model are not in it. */
#ifndef ZC_TUNE_PROBLEM_H
#define ZC_TUNE_PROBLEM_H

#include "planfile/program.h"

/* "Linear(f16[128,768], f16[768,3072]=) -> f16[128,3072] {activation = "Gelu"}": = marks constants.
 * false: a size is not certain, the text would be too long, or no memory (out->failed). */
bool zc_problem_text(const zc_program *p, const zc_pstep *step, zc_buf *out);

#endif
