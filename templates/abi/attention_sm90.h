/* Parameters of attention_sm90.cu: attention whose operands the copy engine brings. */
#ifndef ZC_ABI_ATTENTION_SM90_H
#define ZC_ABI_ATTENTION_SM90_H

#include "abi/attention.h"
#include "abi/divisor.h"
#include "abi/tensor_map.h"

struct zc_attention_sm90_params {
    zc_tensor_map q, k, v, y; /* innermost first: [element, position, head, batch] */
    struct zc_attention_params a;
    int down, items; /* tiles of a query head's rows; query heads of all of the batch */
    struct zc_divisor by_down, by_items, by_heads, by_group; /* group: query heads of a key head */
};

#endif
