/* A step as a text by which measurements find it again: its operation, what is certain of its
 * operands and results, and its attributes, in a normal form (docs/tuning.md): steps whose kernels
 * do the same work have one text. Names of the model are not in it. */
#ifndef ZC_TUNE_PROBLEM_H
#define ZC_TUNE_PROBLEM_H

#include "planfile/program.h"

/* "Linear(f16[128,768], f16[768,3072]=) -> f16[128,3072] {epilogue = "max(x0, 0)"}": = marks
 * constants. false: a size is not certain, the text would be too long, or no memory (out->failed).
 */
bool zc_problem_text(const zc_program *p, const zc_pstep *step, zc_buf *out);
/* The same product with its weights stored the other way (transB): other kernels, whose best
 * configuration is likely to be the same. false also: it is none. */
bool zc_problem_transposed(const zc_program *p, const zc_pstep *step, zc_buf *out);

/* The normal form of such a text, whoever wrote it. false: it is none that this zc reads, or no
 * memory. */
bool zc_problem_normal(const char *text, zc_buf *out);

#endif
