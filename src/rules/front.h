/* What the scanner and the parser share: values of the grammar and their constructors. */
#ifndef ZC_RULES_FRONT_H
#define ZC_RULES_FRONT_H

#include <setjmp.h>

#include "rules/ast.h"

/* A literal. */
typedef struct zc_rl_number {
    double real;
    int64_t i;
    bool is_int;
} zc_rl_number;

/* What stands after the colon of a value. */
typedef struct zc_rl_kinds {
    unsigned flags;
    zc_dtype dtype;
} zc_rl_kinds;

/* How often an operation stands there. */
typedef struct zc_rl_times {
    int least, most;
} zc_rl_times;

/* An attribute list being read. */
typedef struct zc_rl_braces {
    zc_rl_list attrs;
    bool any;
} zc_rl_braces;

/* Where a scalar expression may begin, which is read as it stands. */
typedef enum zc_rl_mode {
    ZC_RL_WORDS,
    ZC_RL_HEAD,   /* of a pointwise definition, before the ) */
    ZC_RL_BODY,   /* behind it: the next = or { begins one */
    ZC_RL_MEANING /* of a kernel: the next = does */
} zc_rl_mode;

/* One file being read. */
typedef struct zc_rl_scan {
    zc_rules *r;
    int file;
    int line, col; /* of the next character */
    zc_rl_mode mode;
    bool in_kernel;
    zc_rl_loc bad; /* of the newest lexical error */
    jmp_buf out;   /* where the scanner goes when memory runs out */
} zc_rl_scan;

/* ---- for the scanner ---- */

void zc_rl_advance(zc_rl_scan *s, zc_rl_loc *loc, const char *text, size_t len);
void zc_rl_bad(zc_rl_scan *s, zc_rl_loc loc, const char *what);
union ZC_RL_YYSTYPE;
int zc_rl_name_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, zc_rl_loc loc, const char *text,
                     size_t len);
int zc_rl_number_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, zc_rl_loc loc, const char *text,
                       size_t len);
int zc_rl_string_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, zc_rl_loc loc, const char *text,
                       size_t len);
int zc_rl_text_token(zc_rl_scan *s, union ZC_RL_YYSTYPE *v, zc_rl_loc loc, const char *text,
                     size_t len);

/* Scans and parses len bytes (at most INT_MAX) into s->r; false: no memory. */
bool zc_rl_read(zc_rl_scan *s, const char *text, size_t len);

/* ---- for the parser; what memory ran out for is NULL and sets r->nomem ---- */

void zc_rl_syntax_error(zc_rl_scan *s, zc_rl_loc loc, const char *text);
zc_rl_loc zc_rl_span(zc_rl_loc first, zc_rl_loc last);
zc_rl_list *zc_rl_append(zc_rl_scan *s, zc_rl_list *list, void *item);
zc_rl_name *zc_rl_make_name(zc_rl_scan *s, const char *text, zc_rl_loc loc);
zc_rl_number zc_rl_negate(zc_rl_number n);
zc_rl_number zc_rl_priority(zc_rl_scan *s, zc_rl_number n, zc_rl_loc loc);

zc_rl_expr *zc_rl_make_literal(zc_rl_scan *s, zc_rl_loc loc, zc_rl_number n);
/* STR, NAME, or CALL with its arguments. */
zc_rl_expr *zc_rl_make_word(zc_rl_scan *s, zc_rl_loc loc, zc_rl_expr_kind kind, const char *text,
                            const zc_rl_list *args);
zc_rl_expr *zc_rl_make_list(zc_rl_scan *s, zc_rl_loc loc, const zc_rl_list *items);
zc_rl_expr *zc_rl_make_op(zc_rl_scan *s, zc_rl_loc loc, zc_rl_expr_kind kind, zc_rl_expr *a,
                          zc_rl_expr *b);

zc_rl_kinds zc_rl_kind_of(zc_rl_scan *s, zc_rl_loc loc, const char *text);
zc_rl_kinds zc_rl_join_kinds(zc_rl_scan *s, zc_rl_loc loc, zc_rl_kinds a, zc_rl_kinds b);
zc_rl_pat *zc_rl_make_pat(zc_rl_scan *s, zc_rl_loc loc, zc_rl_pat_kind kind);
zc_rl_pat *zc_rl_make_value(zc_rl_scan *s, zc_rl_loc loc, const char *text, zc_rl_kinds kinds);
zc_rl_pat *zc_rl_make_number(zc_rl_scan *s, zc_rl_loc loc, zc_rl_number n, zc_rl_number tolerance);
zc_rl_pat *zc_rl_make_computed(zc_rl_scan *s, zc_rl_loc loc, zc_rl_expr *e);
zc_rl_pat *zc_rl_make_vector(zc_rl_scan *s, zc_rl_loc loc, const zc_rl_list *items);
zc_rl_pat *zc_rl_make_alt(zc_rl_scan *s, zc_rl_loc loc, const zc_rl_list *items);
zc_rl_pat *zc_rl_make_call(zc_rl_scan *s, zc_rl_loc loc, const char *text, const zc_rl_list *args,
                           const zc_rl_braces *braces, zc_rl_times times);
/* `pattern...` */
zc_rl_pat *zc_rl_add_dots(zc_rl_pat *p);
/* `*least..most` */
zc_rl_times zc_rl_make_times(zc_rl_scan *s, zc_rl_loc loc, zc_rl_number least, zc_rl_number most);
/* op -1: written with a single =. */
zc_rl_attr *zc_rl_make_attr(zc_rl_scan *s, const zc_rl_name *name, int op, zc_rl_expr *value);
/* attr NULL: the dots. */
zc_rl_braces *zc_rl_add_attr(zc_rl_scan *s, zc_rl_braces *b, zc_rl_attr *attr);

zc_rl_stmt *zc_rl_make_stmt(zc_rl_scan *s, zc_rl_loc loc, const zc_rl_list *outs, zc_rl_pat *pat);
int zc_rl_rule_kind(zc_rl_scan *s, const char *text, zc_rl_loc loc);
/* Why a rule is not to be checked. */
const char *zc_rl_reason(zc_rl_scan *s, const char *text, zc_rl_loc loc);
zc_rl_rule *zc_rl_make_rule(zc_rl_scan *s, const zc_rl_name *name, int kind, zc_rl_number priority,
                            const char *unchecked, const zc_rl_list *match, const zc_rl_list *where,
                            const zc_rl_list *emit);
/* What a file defines that lies beside this one; nothing the second time. */
void zc_rl_include(zc_rl_scan *s, const char *name, zc_rl_loc loc);
void zc_rl_add_rule(zc_rl_scan *s, zc_rl_rule *rule);
/* Conditions, or statements. */
void zc_rl_add_define(zc_rl_scan *s, const zc_rl_name *name, const zc_rl_list *params,
                      const zc_rl_list *exprs, const zc_rl_list *body);
zc_rl_default *zc_rl_make_default(zc_rl_scan *s, const zc_rl_name *name, zc_rl_number value);
void zc_rl_add_pointwise(zc_rl_scan *s, const zc_rl_name *name, const zc_rl_list *params,
                         const zc_rl_list *defaults, const char *text, zc_rl_loc loc);

zc_rl_clause *zc_rl_make_clause(zc_rl_scan *s, zc_rl_loc loc, const char *word,
                                const zc_rl_name *result, const zc_rl_list *values);
/* The meaning: text, or statements. A kernel that is being read: the parser starts it. */
zc_rl_kernel *zc_rl_make_kernel(zc_rl_scan *s, const zc_rl_name *name, const zc_rl_list *params);
void zc_rl_set_meaning(zc_rl_scan *s, zc_rl_kernel *k, zc_rl_loc loc, const char *text,
                       const zc_rl_list *statements);
void zc_rl_add_clause(zc_rl_scan *s, zc_rl_kernel *k, zc_rl_clause *clause);
void zc_rl_add_kernel(zc_rl_scan *s, zc_rl_kernel *k);

#endif
