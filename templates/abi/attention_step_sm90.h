/* Parameters of attention_step_sm90.cu: attention of few queries, with a cache. */
#ifndef ZC_ABI_ATTENTION_FEW_SM90_H
#define ZC_ABI_ATTENTION_FEW_SM90_H

#include "abi/attention.h"

struct zc_attention_step_sm90_params {
    struct zc_attention_params a; /* k and v: the new ones */
    /* What is done to queries and to new keys and values; `past` is what stands in front of these,
     * in lines that follow each other, `to` what both come out in (NULL: not wanted). */
    struct zc_attention_rows_params q, k, v;
    int in_place, pad; /* `to` is `past`: its rows stay where they are */
};

#endif
