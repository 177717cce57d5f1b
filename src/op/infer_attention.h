/* Checks that the shape functions of attention operations share. */
#ifndef ZC_OP_INFER_ATTENTION_H
#define ZC_OP_INFER_ATTENTION_H

#include "op/infer_common.h"

/* Attribute `name`, a number of heads, is usable. */
zc_status zc_infer_heads(zc_infer *f, const char *name, int64_t heads);
/* size / heads, which must be whole. */
zc_status zc_infer_head_size(zc_infer *f, zc_dim size, int64_t heads, const char *what,
                             zc_dim *out);
/* Query heads are a multiple of key heads. */
zc_status zc_infer_head_groups(zc_infer *f, zc_dim heads, zc_dim kv_heads);
/* Half the number of elements of a head of input 0 that a rotary embedding turns: of dim, or with 0
 * of all. heads counts for a 3-D input only. */
zc_status zc_infer_rotary_size(zc_infer *f, int64_t heads, int64_t dim, zc_dim *half);

#endif
