/* What is known of a value in one place: for mask.c and mask_const.c. */
#ifndef ZC_PASSES_MASK_FACT_H
#define ZC_PASSES_MASK_FACT_H

#include "passes/mask.h"

/* Of the scores; or none, along an axis of 1. */
typedef enum mask_coord { NOWHERE, BATCH, HEAD, QUERY, KEY } mask_coord;

/* Index of one axis: a coordinate, and so much more. */
typedef struct mask_place {
    mask_coord c;
    zc_dim more;
} mask_place;

typedef struct mask_view {
    int rank;
    mask_place at[ZC_MAX_RANK];
} mask_view;

/* INDEX: the integer query * i + key * j + length * lengths[b] + more. */
typedef struct mask_fact {
    enum { UNKNOWN, INDEX, CHOICE } kind;
    int query, key, length;
    zc_vid lengths;
    bool each;
    zc_dim more;
    zc_mask choice;
} mask_fact;

static inline mask_fact mask_unknown(void)
{
    return (mask_fact){.kind = UNKNOWN};
}

/* A number is a choice without a condition. */
static inline mask_fact mask_choice(double yes, double no)
{
    return (mask_fact){.kind = CHOICE, .choice = {.yes = yes, .no = no}};
}

/* A constant's element at that place. */
mask_fact zc_mask_const(zc_graph *g, zc_vid v, const mask_view *at);

#endif
