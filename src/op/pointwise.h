/* What a pointwise operation computes, as an expression. */
#ifndef ZC_OP_POINTWISE_H
#define ZC_OP_POINTWISE_H

#include "op/expr.h"
#include "op/op.h"

/* The operation's attributes that are numbers, from out[n] on: how many out[] holds then. */
enum { ZC_POINTWISE_CONSTS = 8 };
int zc_pointwise_consts(const zc_op_info *info, const void *attrs,
                        zc_expr_const out[ZC_POINTWISE_CONSTS], int n);
/* The expression of an operation with the flag ZC_OPF_POINTWISE, over inputs of these types. Only
 * that of Pointwise itself may have several results. */
zc_status zc_pointwise_expr(const zc_op_info *info, const void *attrs, int nin, const zc_dtype *in,
                            zc_expr *out, const char *subject, zc_diag *diag);

#endif
