/* What the parts of the checker share. */
#ifndef ZC_RULES_CHECK_H
#define ZC_RULES_CHECK_H

#include "rules/ast.h"
#include "rules/eval.h"

typedef struct zc_rl_checker {
    zc_rules *r;
    zc_rl_rule *rule;
    int file;
    bool in_emit;
    int stmt;                    /* the statement in work */
    int optional;                /* levels of optional operations and alternatives around */
    bool in_kernel;              /* the meaning of one */
    bool in_count;               /* an argument of count() */
    bool each;                   /* a condition, which may speak of each of several values */
    int choices, choice, branch; /* ( | ) so far; the outermost one around, and which part */
    int list;                    /* the list that it speaks of, or -1 */
    int calls;                   /* of patterns, so far */
    int copies;                  /* parts that definitions made, so far */
    int groups;                  /* of names that collect together, so far */
    bool in_each;                /* emit: an operand with dots behind it */
} zc_rl_checker;

/* An error of the rule in work. */
#define zc_rl_fault(c, loc, ...)                                                                   \
    ((c)->rule ? (void)((c)->rule->broken = true) : (void)0,                                       \
     zc_rl_error((c)->r, (c)->file, (loc), __VA_ARGS__))

/* Index of the variable, or -1. */
int zc_rl_var_find(const zc_rl_rule *rule, const char *name);
/* Adds one; -1 after an error. */
int zc_rl_var_add(zc_rl_checker *c, const char *name, zc_rl_loc loc, zc_rl_var_kind kind);
/* "no such <what> 'name' (did you mean ...)" among the rule's variables. */
void zc_rl_unbound(zc_rl_checker *c, const char *name, zc_rl_loc loc);

/* Calls of named conditions and patterns become what they stand for. false: an error, or no memory.
 */
bool zc_rl_expand(zc_rl_checker *c);
void zc_rl_check_define(zc_rules *r, zc_rl_define *d);
/* Is it a word of expressions: an element type, a truth value, or one about the target? */
bool zc_rl_is_word(const char *text);

/* Names, functions and types of an expression. */
zc_rl_type zc_rl_check_expr(zc_rl_checker *c, zc_rl_expr *e);
/* The same, and what it must be. */
void zc_rl_check_expr_is(zc_rl_checker *c, zc_rl_expr *e, zc_rl_type need);
bool zc_rl_type_fits(zc_rl_type got, zc_rl_type need);
zc_rl_type zc_rl_attr_type(zc_attr_kind kind);

/* An operation with its attributes, on either side. false: the operation is unknown. */
bool zc_rl_check_op(zc_rl_checker *c, zc_rl_pat *p);
/* May some of its operands be any number? */
bool zc_rl_has_runs(const zc_rl_pat *p);
/* The operand that takes the operation's place when that is missing: the first that is no constant;
 * or -1. */
int zc_rl_through(const zc_rl_pat *p);
/* The variables of `name...` for all that it collects, and for each. false: reported. */
bool zc_rl_add_collected(zc_rl_checker *c, zc_rl_collected *of);

/* A scalar definition: its parameters and expression. */
void zc_rl_check_pointwise(zc_rules *r, zc_rl_pointwise *p);
/* Room for the variables and operations of a rule. false: no memory. */
bool zc_rl_alloc_rule(zc_rules *r, zc_rl_rule *rule);
/* The statements of emit. */
void zc_rl_check_emit(zc_rl_checker *c);

/* The expression of a Pointwise node: with what emit says of the definition's attributes. NULL: no
 * memory, or (set) one is not known. */
const char *zc_rl_pointwise_expr(const zc_rl_env *env, const zc_rl_pat *pat);

#endif
