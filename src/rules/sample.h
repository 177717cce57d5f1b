/* Graphs that a rule may match, made from its match side. */
#ifndef ZC_RULES_SAMPLE_H
#define ZC_RULES_SAMPLE_H

#include "ir/graph.h"
#include "rules/ast.h"

typedef enum zc_rl_values {
    ZC_VALUES_PLAIN,
    ZC_VALUES_LARGE,
    ZC_VALUES_HUGE,
    ZC_VALUES_TINY,
    ZC_VALUES_EQUAL,
    ZC_VALUES_ZERO,
    ZC_VALUES_ODD, /* NaN and infinities among plain ones */
    ZC_VALUES_COUNT
} zc_rl_values;
extern const char *const zc_rl_values_names[];

/* Everything that decides a sample; the same gives the same graph. */
typedef struct zc_rl_choice {
    uint64_t shape_seed; /* of dimensions, alternatives, attributes */
    uint64_t value_seed;
    zc_dtype dtype; /* of what no rule or operation says another */
    zc_rl_values values;
    uint8_t form[ZC_RL_VARS_MAX]; /* by variable: kind of shape */
} zc_rl_choice;

/* Draws forms of all operands. */
void zc_rl_choose_forms(const zc_rl_rule *rule, uint64_t *random, zc_rl_choice *c);

/* A graph with the operands as inputs (inputs[var], 0: none or constant) and the results as
 * outputs. `wide`: float operands of c->dtype are f64 with the same numbers. false: this choice
 * gives no valid graph. */
bool zc_rl_sample(const zc_rl_rule *rule, const zc_rl_choice *c, bool wide, zc_graph **out);

/* Element i of input `index` of the sample, as a number of c->dtype. */
double zc_rl_sample_value(const zc_rl_choice *c, zc_dtype dtype, int var, int64_t i);

uint64_t zc_rl_random(uint64_t *state);

#endif
