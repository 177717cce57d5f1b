/* Operations on tensors written as text, for tests of shape functions and kernels. Include cmocka.h
 * and what it needs before.
 *
 *   tensors    "f32[2,3] 1 2 3 4 5 6; i64[] -1; -"     elements follow the type; '-' is left out
 *   random     "f32[2,3] ~"                            normal numbers, others for each operand
 *   types      "f32[batch,3*seq]; i64[2] = batch,-1"   symbolic dimensions and, after '=', elements
 *   unknown    "f32[?,3]" a dimension that only a run finds; "f32*" an unknown rank
 *   attributes "axis=1 perm=0,2,1 mode=reflect to=f16 value=i32[1]:7"
 */
#ifndef ZC_TESTS_OP_TEXT_H
#define ZC_TESTS_OP_TEXT_H

#include "base/diag.h"

/* Evaluates the operation by its reference kernel and by the kernel that dispatch picks. Each
 * output must be as `want` says: the type, and the elements within tol*(1 + magnitude); in `want`,
 * '-' is an output that is not asked for. */
void op_eval(const char *op, const char *attrs, const char *in, const char *want, double tol);
/* The evaluation must fail with this status and text; it asks for nout outputs. */
void op_eval_fails(const char *op, const char *attrs, const char *in, int nout, zc_status status,
                   const char *text);
/* What every fast kernel owes, on f32 operands of which all but the first are constants of the
 * plan: each of nout outputs within tol*(1 + magnitude) of the reference kernel's; the same bits on
 * 1 to 4 threads, and again in a second run. The same holds after NaN and both infinities have been
 * put, one at a time, into each operand whose bit is set in `specials`. */
void op_fast(const char *op, const char *attrs, const char *in, int nout, unsigned specials,
             double tol);
/* Infers types. Each output must have the type and, where given, the elements of `want`; a '?'
 * there stands for any unknown. */
void op_infer(const char *op, const char *attrs, const char *in, const char *want);
void op_infer_fails(const char *op, const char *attrs, const char *in, int nout, const char *text);

#endif
