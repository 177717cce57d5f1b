/* Conditions and attribute values: their types when a rule is loaded, their values at a match. */
#ifndef ZC_RULES_EVAL_H
#define ZC_RULES_EVAL_H

#include "rules/ast.h"

/* The default tolerance of constants, relative and, near zero, absolute. */
#define ZC_RL_TOLERANCE 1e-5

typedef enum zc_rl_type {
    ZC_RT_ANY, /* not known, or in error: fits everything */
    ZC_RT_BOOL,
    ZC_RT_INT,
    ZC_RT_REAL,
    ZC_RT_NUM, /* an integer or a real, known at the match */
    ZC_RT_STR,
    ZC_RT_DTYPE,
    ZC_RT_INTS,
    ZC_RT_FLOATS,
    ZC_RT_TENSOR,
    ZC_RT_VALUE
} zc_rl_type;

#define FN(name, args, result, text) ZC_RF_##name,
typedef enum zc_rl_function {
#include "rules/functions.def"
    ZC_RF_COUNT
} zc_rl_function;
#undef FN

typedef struct zc_rl_function_info {
    const char *name, *args;
    zc_rl_type result;
    const char *text;
} zc_rl_function_info;
/* NULL past the end. */
const zc_rl_function_info *zc_rl_function_at(int i);

const char *zc_rl_type_name(zc_rl_type t);

/* Words about the target: cuda, cpu, sm. */
typedef enum zc_rl_target_word { ZC_RW_CUDA, ZC_RW_CPU, ZC_RW_SM } zc_rl_target_word;

/* A value at a match. ANY: not known, which is what cannot be proved from symbolic dimensions. */
typedef struct zc_rl_val {
    zc_rl_type type;
    bool absent; /* not known because it speaks of an operand that is absent */
    bool b;
    zc_dim dim;  /* INT, maybe symbolic */
    double real; /* REAL */
    const char *str;
    zc_dtype dtype;
    zc_ints ints;
    zc_floats floats;
} zc_rl_val;

/* Where the values come from. */
typedef struct zc_rl_env {
    const zc_rl_rule *rule;
    zc_graph *g;
    const zc_vid *value;   /* by variable: what a VALUE is bound to, 0: absent */
    const zc_rl_val *attr; /* by variable: what an ATTR is bound to */
    const uint32_t *uses;  /* by value */
    const zc_rule_target *target;
    zc_arena *arena; /* for lists */
} zc_rl_env;

zc_rl_val zc_rl_eval(const zc_rl_env *env, const zc_rl_expr *e);
/* Does the condition hold for certain? What speaks of an absent operand holds. */
bool zc_rl_holds(const zc_rl_env *env, const zc_rl_expr *e);
/* The attribute field of a node, its default when not given. */
zc_rl_val zc_rl_attr_value(const zc_op_info *info, const void *attrs, int field);
/* Stores v in an attribute field; lists stay the value's or are the arena's. false: another type,
 * or not known. */
bool zc_rl_attr_set(zc_arena *arena, const zc_attr_field *field, const zc_rl_val *v, void *at);
/* Does `a op b` hold for certain? */
bool zc_rl_compare(zc_dims *dims, zc_rl_expr_kind op, const zc_rl_val *a, const zc_rl_val *b);
/* Is operand i of op i64, whatever the others are? */
bool zc_rl_is_list(zc_op op, int i);
bool zc_rl_near(double a, double b, double tolerance);

#endif
