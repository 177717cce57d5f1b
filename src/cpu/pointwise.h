/* Expressions of pointwise operations, as their kernels need them. */
#ifndef ZC_CPU_POINTWISE_H
#define ZC_CPU_POINTWISE_H

#include "cpu/kernel.h"
#include "op/pointwise.h"

/* Parses this step's expression with its operands' types and attributes into *out. */
zc_status zc_pointwise_parse(const zc_kctx *k, zc_expr *out);

/* Replaces t's elements by an activation of them (op/activation.h). */
zc_status zc_activate(zc_kctx *k, const char *name, const float *params, int n, zc_tensor *t);

#endif
