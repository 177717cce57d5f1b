/* What the parts of the expander share: copies of patterns, calls, repetitions. */
#ifndef ZC_RULES_EXPAND_H
#define ZC_RULES_EXPAND_H

#include "rules/check.h"

/* Says what a copy has in the place of names: of a definition's body the arguments of a call, or
 * of what is repeated the values of one repetition. */
typedef struct zc_rl_copier {
    zc_rl_checker *c;
    zc_rl_loc loc; /* of the call, where its copies stand */
    /* Of a body: */
    const zc_rl_define *d; /* NULL: names stay, and the copy stands where the original does */
    const zc_rl_pat *call; /* or NULL: an expression's */
    const zc_rl_expr *expr;
    int serial; /* of the call, which its own names bear */
    /* Of what is repeated: */
    zc_rl_list *lists;      /* zc_rl_collected, which grows by what is found; NULL: dots stay */
    int nth, count;         /* this repetition, of so many */
    int group;              /* its number among the rule's, or 0 */
    bool is_copy, is_extra; /* see zc_rl_pat */
    const zc_rl_pat *hole;  /* the operand that `filling` takes the place of; NULL: none */
    zc_rl_pat *filling;
} zc_rl_copier;

/* NULL: reported, or no memory. */
zc_rl_expr *zc_rl_copy_expr(zc_rl_copier *x, zc_rl_expr *e);
zc_rl_pat *zc_rl_copy_pat(zc_rl_copier *x, const zc_rl_pat *p);
zc_rl_stmt *zc_rl_copy_stmt(zc_rl_copier *x, const zc_rl_stmt *st);

/* A part of an expression or a pattern like that one, without arguments. */
zc_rl_expr *zc_rl_copy_head(zc_rl_copier *x, const zc_rl_expr *like);
/* Depth bounds what walks the tree. */
void zc_rl_measure_expr(zc_rl_checker *c, zc_rl_expr *e);
void zc_rl_measure_pat(zc_rl_checker *c, zc_rl_pat *p);
/* A name that no text can name, and of which nobody is told that it is unused: "_serial.text". */
const char *zc_rl_own_name(zc_rl_checker *c, int serial, const char *text);
/* Of value i of what `text...` collects, which no text can name either. */
const char *zc_rl_member_name(zc_rl_checker *c, const char *text, int i);
/* Index of the parameter, or -1. */
int zc_rl_param_of(const zc_rl_define *d, const char *name);

/* What is called takes the place of calls; statements that it needs go to `out`. */
zc_rl_pat *zc_rl_expand_pat(zc_rl_checker *c, zc_rl_pat *p, zc_rl_list *out);
/* The statements of the called body go to `out`, but for what the last one computes, which takes
 * the call's place; where its result has a name of the caller's, that name does. */
zc_rl_pat *zc_rl_put_pattern(zc_rl_checker *c, const zc_rl_define *d, zc_rl_pat *call,
                             zc_rl_list *out);
/* The definition that the pattern calls, or NULL. */
const zc_rl_define *zc_rl_called(const zc_rl_checker *c, const zc_rl_pat *p);

/* `Op(a, b...)*2..4`, of an operation or a call, written out. */
zc_rl_pat *zc_rl_repeat(zc_rl_checker *c, zc_rl_pat *p, zc_rl_list *out);
/* Operands with dots behind them become as many as there may be, and dots alone such of any kind.
 */
bool zc_rl_spread(zc_rl_checker *c, zc_rl_pat *p);

#endif
