/* Activations named by string in fused operations: any one-input pointwise operation of the op
 * table by its name (Relu, Tanh, Sigmoid, LeakyRelu, HardSigmoid, ...), and Clip. */
#ifndef ZC_OP_ACTIVATION_H
#define ZC_OP_ACTIVATION_H

#include "op/infer.h"

enum { ZC_ACTIVATION_PARAMS = 2 }; /* of one operation, at most */

/* ZC_OP_NONE for NULL and ""; an error of the node for a name that cannot be an activation. */
zc_status zc_infer_activation(zc_infer *f, const char *name);

/* The operation, or ZC_OP_NONE. */
zc_op zc_activation_find(const char *name);

/* Fills attrs (zc_op_get(op)->attrs_size bytes): the defaults, then params[] into its float
 * attributes in table order. */
void zc_activation_attrs(zc_op op, const float *params, int n, void *attrs);

/* The parameters that say the same: its float attributes into out[], as many as it returns. */
int zc_activation_params(zc_op op, const void *attrs, float out[ZC_ACTIVATION_PARAMS]);

#endif
