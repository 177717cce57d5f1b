/* The parser of scalar expressions, shared by its parts: expr_lex.c reads words, expr_type.c makes
 * typed nodes, expr_fold.c computes constants, expr.c holds the grammar. */
#ifndef ZC_OP_EXPR_PARSE_H
#define ZC_OP_EXPR_PARSE_H

#include "base/diag.h"
#include "op/expr.h"

#define ZC_EX_MAX_NAMES 256

typedef struct zc_ex_name {
    const char *text;
    size_t len;
    int node;
} zc_ex_name;

typedef struct zc_ex_parser {
    const char *text, *at;
    const char *blame; /* the word that a typing error concerns */
    const zc_dtype *in_dtypes;
    int ninputs;
    const zc_expr_const *consts;
    int nconsts;
    zc_expr *e;
    zc_ex_name names[ZC_EX_MAX_NAMES];
    int nnames, depth;
    const char *subject;
    zc_diag *diag;
    zc_status status; /* the first failure; nothing is made after it */
} zc_ex_parser;

/* Records the column of `where`. Returns -1, so that callers can return it as "no node". */
int zc_ex_fail_at(zc_ex_parser *p, const char *where, const char *fmt, ...) ZC_PRINTF(3, 4);

/* ---- words ---- */

void zc_ex_skip_space(zc_ex_parser *p);
/* Goes past `word` if it comes next. */
bool zc_ex_take(zc_ex_parser *p, const char *word);
/* Length of the name at s; 0: none. */
size_t zc_ex_name_length(const char *s);
bool zc_ex_is_word(const char *s, size_t n, const char *word);
bool zc_ex_is_digit(char c);
/* An unsigned number; the locale does not matter. */
int zc_ex_number(zc_ex_parser *p);

/* How an operation is written: "+", or NULL; "max", or NULL. */
const char *zc_ex_sign(zc_expr_op op);
const char *zc_ex_function(zc_expr_op op);

/* ---- nodes ----
 * Functions that make a node return its index, or -1 after an error, and accept -1 as an operand.
 *
 * A literal has no type until it meets an operand that has one. It is a CONST of dtype ZC_NONE
 * with its value in f and, when it is an integer that fits (input == 1), also in i. */

int zc_ex_literal(zc_ex_parser *p, double v);
int zc_ex_literal_int(zc_ex_parser *p, int64_t v);
int zc_ex_bool(zc_ex_parser *p, bool v);
int zc_ex_input(zc_ex_parser *p, int input);
bool zc_ex_is_literal(const zc_ex_parser *p, int n);
/* Gives a literal a type; other nodes stay. */
int zc_ex_settle(zc_ex_parser *p, int n, zc_dtype dtype);

int zc_ex_unary(zc_ex_parser *p, zc_expr_op op, int a);
int zc_ex_binary(zc_ex_parser *p, zc_expr_op op, int a, int b);
int zc_ex_select(zc_ex_parser *p, int c, int a, int b);
int zc_ex_convert(zc_ex_parser *p, zc_dtype to, int a);
bool zc_ex_is_comparison(zc_expr_op op);

/* The operation on one or two literals. */
int zc_ex_fold_unary(zc_ex_parser *p, zc_expr_op op, int a);
int zc_ex_fold_binary(zc_ex_parser *p, zc_expr_op op, int a, int b);

#endif
