/* Inputs of com.microsoft GroupQueryAttention. */
#ifndef ZC_OP_GQA_H
#define ZC_OP_GQA_H

enum {
    GQA_Q,
    GQA_K,
    GQA_V,
    GQA_PAST_K,
    GQA_PAST_V,
    GQA_LENGTHS,
    GQA_TOTAL,
    GQA_COS,
    GQA_SIN,
    GQA_POSITIONS,
    GQA_ADD,
    GQA_SINK,
    GQA_K_SCALE,
    GQA_V_SCALE,
    GQA_Q_NORM,
    GQA_K_NORM
};

#endif
