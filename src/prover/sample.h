/* Graphs that a rule may match, made from its match side. */
#ifndef ZC_PROVER_SAMPLE_H
#define ZC_PROVER_SAMPLE_H

#include "ir/graph.h"
#include "prover/sample_target.h"
#include "rules/eval.h"

/* Kinds of numbers in operands: KIND(name, words, in integers). */
#define ZC_VALUES(KIND)                                                                            \
    KIND(PLAIN, "plain", "small")                                                                  \
    KIND(LARGE, "large", "large")                                                                  \
    KIND(HUGE, "huge", "of all bits")                                                              \
    KIND(TINY, "tiny", "-1, 0 and 1")                                                              \
    KIND(EQUAL, "equal", "equal")                                                                  \
    KIND(ZERO, "zero", "zero")                                                                     \
    KIND(ODD, "NaN and infinite", "extreme")                                                       \
    KIND(HALVES, "whole and half", "small")                                                        \
    KIND(EDGES, "the rule's own and nearby", "the rule's own and nearby")

#define KIND(name, words, ints) ZC_VALUES_##name,
typedef enum zc_rl_values { ZC_VALUES(KIND) ZC_VALUES_COUNT } zc_rl_values;
#undef KIND
const char *zc_rl_values_name(zc_rl_values v);

/* Variants of constants; the same numbers stand in the first ones of every sample. */
#define ZC_RL_CONSTANTS 20

/* Kinds of sizes. */
typedef enum zc_rl_sizes {
    ZC_SIZES_ANY,
    ZC_SIZES_ZERO,    /* one dimension is empty */
    ZC_SIZES_MANY,    /* hundreds of elements */
    ZC_SIZES_SQUARE,  /* all alike: an order of dimensions shows in elements alone */
    ZC_SIZES_SYMBOLIC /* some dimensions of inputs are symbols */
} zc_rl_sizes;

/* What the pattern says of an operand beside its kinds. */
typedef struct zc_rl_role {
    unsigned is;  /* the ZC_ROLE_ of every place that it stands in */
    bool is_host; /* an integer list that must be known */
    bool is_list; /* that, or i64 elements */
    bool is_half; /* joined with itself */
    bool halves;  /* a constant whose halves are equal */
} zc_rl_role;
/* By variable. */
void zc_rl_find_roles(const zc_rl_rule *rule, zc_rl_role *out);

/* Everything that decides a sample; the same gives the same graph. */
typedef struct zc_rl_choice {
    uint64_t shape_seed; /* of dimensions, alternatives, attributes */
    uint64_t value_seed;
    zc_dtype dtype; /* of what no rule or operation says another */
    zc_rl_sizes sizes;
    zc_rl_values values;
    int64_t elements; /* that results may have */
    int constants;    /* the variant of constants */
    /* 1 + an operation of the pattern that is to be there, or, behind all of them, a variable: an
     * operand that may be left out; negative: to be absent. */
    int want;
    int vary; /* 1 + an attribute of that operation that is not to have its default */
    int turn; /* which of the values that it may have instead (zc_rl_attr_turns) */
    zc_rule_target target;
    const zc_rl_role *roles;      /* by variable */
    uint8_t form[ZC_RL_VARS_MAX]; /* by variable: kind of shape */
    bool is_narrow;               /* emit makes numbers f32 */
    double numbers[32];           /* that the rule names */
    int number_count;
} zc_rl_choice;

/* The numbers that the rule names. */
void zc_rl_choose_numbers(const zc_rl_rule *rule, zc_rl_choice *c);
/* `{ ... }`: may this attribute of the pattern's operation have any value? */
bool zc_rl_is_free_attr(const zc_rl_pat *p, int field);
/* How many values there are to try in place of the attribute's default. */
int zc_rl_attr_turns(const zc_attr_field *f);
/* Draws forms of all operands. */
void zc_rl_choose_forms(const zc_rl_rule *rule, uint64_t *random, zc_rl_choice *c);

/* How exact a sample is. */
typedef enum zc_rl_exactness {
    ZC_SAMPLE_OWN,  /* in the types that the choice says */
    ZC_SAMPLE_WIDE, /* floats are f64, with the same numbers */
    ZC_SAMPLE_EXACT /* and numbers that the pattern names are not rounded to their type */
} zc_rl_exactness;

/* A symbol among a sample's dimensions, and the size that the sample was drawn with. */
typedef struct zc_rl_symbol {
    char name[8];
    int64_t size;
} zc_rl_symbol;
#define ZC_RL_SYMBOLS_MAX 32

typedef struct zc_rl_sample {
    zc_graph *g;                  /* operands are inputs or constants, results outputs */
    zc_dtype own[ZC_RL_VARS_MAX]; /* by variable: of inputs, as it is not widened */
    zc_rl_symbol symbols[ZC_RL_SYMBOLS_MAX];
    int symbol_count;
    bool made[ZC_RL_NODES_MAX], absent[ZC_RL_NODES_MAX]; /* by operation of the pattern */
    bool is_rounded;              /* its type does not hold a number that the pattern names */
    zc_vid value[ZC_RL_VARS_MAX]; /* by variable */
    zc_rl_dims shape[ZC_RL_VARS_MAX];
    zc_rl_val attr[ZC_RL_VARS_MAX]; /* of captured ones: numbers */
} zc_rl_sample;

/* false: this choice gives no valid graph. */
bool zc_rl_make_sample(const zc_rl_rule *rule, const zc_rl_choice *c, zc_rl_sample *out);
/* The same sample in f64. The types of operands are other ones then, for conditions too, and so
 * what they decided is taken from `own`. */
bool zc_rl_make_exact(const zc_rl_rule *rule, const zc_rl_choice *c, zc_rl_exactness exactness,
                      const zc_rl_sample *own, zc_rl_sample *out);

/* Stores element i of input `var`, a number of type `own`, in data of type `as`. */
void zc_rl_sample_store(const zc_rl_choice *c, zc_dtype own, zc_dtype as, int var, int64_t i,
                        void *data);

uint64_t zc_rl_random(uint64_t *state);

#endif
