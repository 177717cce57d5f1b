/* Rules as they stand in the text, with what the checker found out about them. Everything lives in
 * the arena of its zc_rules, which is why a syntax error leaks nothing. */
#ifndef ZC_RULES_AST_H
#define ZC_RULES_AST_H

#include "op/op.h"
#include "rules/rules.h"

/* Bounds on one rule; the matcher's recursion is bounded by them. */
#define ZC_RL_NODES_MAX 128
#define ZC_RL_VARS_MAX  128
#define ZC_RL_STMTS_MAX 64
#define ZC_RL_LIST_MAX  64 /* conditions too, which masks count on */
#define ZC_RL_DEPTH_MAX 256
#define ZC_RL_NAME_MAX  128
/* Repetitions of one operation, and operands that one name collects. */
#define ZC_RL_REPEAT_MAX 16
/* Operands with dots behind them in one operation. */
#define ZC_RL_RUNS_MAX 4
/* Rules, and scalar definitions, in one set. */
#define ZC_RL_RULES_MAX 4096
/* Tuning parameters of a kernel, and the longest file of CUDA source. */
#define ZC_RL_TUNED_MAX  8
#define ZC_RL_SOURCE_MAX ((size_t)1 << 20)

/* Where a word stands: line and column from 1, in characters. */
typedef struct zc_rl_loc {
    int line, col, len;
} zc_rl_loc;

/* Is the byte another one of the UTF-8 character before it? */
static inline bool zc_rl_goes_on(char c)
{
    return ((unsigned char)c & 0xC0) == 0x80;
}

typedef struct zc_rl_list {
    int n, cap;
    void **v;
} zc_rl_list;

typedef struct zc_rl_name {
    const char *text;
    zc_rl_loc loc;
} zc_rl_name;

/* ---- conditions and attribute values ---- */

typedef enum zc_rl_expr_kind {
    ZC_RE_INT,
    ZC_RE_REAL,
    ZC_RE_STR,
    ZC_RE_NAME,
    ZC_RE_CALL,
    ZC_RE_LIST,
    ZC_RE_NOT,
    ZC_RE_NEG,
    ZC_RE_OR,
    ZC_RE_AND,
    ZC_RE_EQ,
    ZC_RE_NE,
    ZC_RE_LT,
    ZC_RE_LE,
    ZC_RE_GT,
    ZC_RE_GE,
    ZC_RE_NEAR, /* ~=: equal within the tolerance of constants */
    ZC_RE_IN,
    ZC_RE_ADD,
    ZC_RE_SUB,
    ZC_RE_MUL,
    ZC_RE_DIV,
    ZC_RE_MOD
} zc_rl_expr_kind;

/* What a name in an expression is. */
typedef enum zc_rl_word { ZC_RW_NONE, ZC_RW_VAR, ZC_RW_DTYPE, ZC_RW_BOOL, ZC_RW_TARGET } zc_rl_word;

typedef struct zc_rl_expr zc_rl_expr;
struct zc_rl_expr {
    zc_rl_expr_kind kind;
    zc_rl_loc loc;
    int depth;
    const char *text; /* STR, NAME, CALL */
    double real;
    int64_t i;
    zc_rl_list args;
    zc_rl_word word; /* NAME, when checked */
    int index;       /* NAME: variable, dtype, bool, target word; CALL: function */
    int list;        /* of a condition: the collected operands it is to hold for, or -1 */
};

/* ---- patterns ---- */

typedef enum zc_rl_pat_kind {
    ZC_RP_NAME,
    ZC_RP_NUM,
    ZC_RP_ABSENT, /* _: an operand left out */
    ZC_RP_NODE,
    ZC_RP_ALT,
    ZC_RP_LIST, /* emit only: a constant vector of integers */
    ZC_RP_REST  /* ...: operands that are not named */
} zc_rl_pat_kind;

enum {
    ZC_RC_CONST = 1 << 0,
    ZC_RC_SCALAR = 1 << 1, /* one element */
    ZC_RC_SHARED = 1 << 2  /* may be used outside of the match too */
};

typedef struct zc_rl_attr {
    zc_rl_name name;
    zc_rl_expr_kind op; /* EQ (also for =), NE, LT, ..., IN */
    bool assign;        /* written with = */
    zc_rl_expr *value;
    bool is_capture; /* match: `field = name` binds the variable */
    int var;
    int field;
} zc_rl_attr;

/* What `name...` stands for: a value of each repetition, with a name of its own. */
typedef struct zc_rl_collected {
    const char *text;
    zc_rl_loc loc;
    int count, group;
    int var; /* LIST, when checked; before, -1 */
} zc_rl_collected;

typedef struct zc_rl_pat zc_rl_pat;
struct zc_rl_pat {
    zc_rl_pat_kind kind;
    zc_rl_loc loc;
    int depth;
    const char *text; /* NAME; NODE: the operation */
    unsigned flags;   /* ZC_RC_*, of a NAME */
    zc_dtype dtype;   /* of a NAME; ZC_NONE: any */
    double num, tol;  /* NUM; tol 0: the default */
    bool is_int;
    zc_rl_expr *computed; /* NUM in emit: the number is this one's value; or NULL */
    zc_rl_list args;      /* NODE, ALT: patterns; LIST: expressions */
    zc_rl_list attrs;     /* NODE */
    bool rest;            /* NODE: more operands may follow, however many */
    bool any_attrs;       /* NODE: attributes not named may have any value */
    bool optional;        /* NODE; NAME in match: an operand that may be left out */
    int least, most;      /* NODE: how often it is repeated; 1, 1 of an ordinary one */
    bool spread;          /* written with dots behind it: any number of operands */
    /* Found by the expander: */
    zc_rl_collected *of; /* NAME: what it is one of, or NULL */
    int run;             /* an operand of any number: which of its operation's such runs, from 1 */
    bool is_copy;        /* NODE: written once, like the copy before it */
    bool is_extra;       /* NODE: what is repeated may be without it */
    int repetition;      /* NODE: what it is a copy for, or 0, */
    const zc_rl_pat *origin; /* and of what */
    /* Found by the checker: */
    int var; /* NAME */
    zc_op op;
    const struct zc_rl_pointwise *pointwise; /* NODE in emit */
    const struct zc_rl_kernel *kernel;       /* NODE in emit */
    int node;                                /* NODE: index among the rule's nodes */
    int through;     /* optional or repeated NODE: operand that stands for it when absent, or -1 */
    zc_rl_pat *base; /* repeated NODE: what the innermost repetition is applied to */
    bool is_inner;   /* repeated operation: one behind the first */
    bool is_chain;   /* NODE: of an associative operation, with any or more than two operands */
    int links;       /* chain: the first of the args.n - 2 nodes for operations behind the last */
    bool is_link;    /* one of these */
    int like;        /* NODE in emit with `{ ... }`: that of match whose attributes it has; or -1 */
    int choice,
        branch;     /* NODE: the outermost ( | ) that it stands in, from 1, and where; 0: none */
    int twin;       /* NODE: the first one that says the same, itself included */
    bool is_nested; /* NODE: an operand, which no statement names */
    int outs[8], nouts; /* NODE: variables of its results; -1: `_` */
};

typedef struct zc_rl_stmt {
    zc_rl_loc loc;
    zc_rl_list outs; /* NAME or ABSENT patterns */
    zc_rl_pat *pat;
    bool is_repeated; /* of a repetition of a named pattern */
} zc_rl_stmt;

/* ---- definitions ---- */

/* LIST: the values that `name...` collects. They are variables of their own that no text can name.
 */
typedef enum zc_rl_var_kind { ZC_RV_VALUE, ZC_RV_ATTR, ZC_RV_LIST } zc_rl_var_kind;

typedef struct zc_rl_var {
    const char *name;
    zc_rl_loc loc;
    zc_rl_var_kind kind;
    int type; /* ATTR: a zc_rl_type */
    unsigned flags;
    zc_dtype dtype;
    int stmt;                /* match statement that defines it, or -1: a leaf */
    int emit;                /* emit statement that defines it, or -1 */
    bool in_match;           /* named on the match side */
    bool maybe;              /* absent when an optional node is */
    bool is_optional;        /* an operand that may be left out */
    bool is_output;          /* defined on both sides */
    int uses;                /* mentions beside the one that binds */
    uint64_t where, of_data; /* by condition: does it speak of this, and of its elements? */
    /* LIST: its values, in the order in which the graph computes with them; lists that are
     * collected together have the same group. */
    int first, count, group;
    bool is_listed; /* one of them */
} zc_rl_var;

/* A parameter that emit gives as an attribute. */
typedef struct zc_rl_default {
    zc_rl_name name;
    double value; /* when emit does not */
} zc_rl_default;

typedef struct zc_rl_pointwise {
    zc_rl_name name;
    zc_rl_list params;   /* zc_rl_name */
    zc_rl_list defaults; /* zc_rl_default */
    const char *text;    /* as written */
    zc_rl_loc text_loc;
    const char *expr; /* over x0, x1, ...: what a Pointwise node carries */
    int file;
} zc_rl_pointwise;

/* What a definition of a kernel says: word values; or word result = value; */
typedef struct zc_rl_clause {
    zc_rl_loc loc;
    const char *word;
    const zc_rl_name *result; /* or NULL */
    zc_rl_list values;        /* exprs */
} zc_rl_clause;

/* Conditions or a pattern that have a name and parameters. */
typedef struct zc_rl_define {
    zc_rl_name name;
    zc_rl_list params; /* zc_rl_name */
    bool is_pattern;
    zc_rl_list exprs; /* of conditions */
    zc_rl_list body;  /* of a pattern: statements, of which the last computes it */
    int file;
    bool is_done; /* checked, and may be called */
} zc_rl_define;

typedef struct zc_rl_rule {
    zc_rl_name name;
    zc_rule_kind kind;
    int64_t priority;
    const char *unchecked; /* why the check by numbers is left out; NULL: it is not */
    int file;
    zc_rl_list match, where, emit; /* stmts, exprs, stmts */
    uint64_t of_uses;              /* by condition: does it speak of how often something is used? */
    bool broken;                   /* has errors */
    bool disabled;
    /* Found by the checker: */
    zc_rl_var *vars;
    int nvars;
    zc_rl_pat **nodes; /* the match side's, in order of appearance */
    int nnodes;
    int nsure; /* of these: without repetitions beyond the least */
    int root;  /* match statement that matching starts from */
    /* Further statements, each found among the users of a value bound before it. */
    struct {
        int stmt, pivot;
    } extra[ZC_RL_STMTS_MAX];
    int nextra;
} zc_rl_rule;

typedef struct zc_rl_file {
    const char *name;
    const char *text;
    size_t len;
    bool is_builtin;
    bool is_on_disk; /* name is its path */
} zc_rl_file;

typedef struct zc_rl_message {
    bool is_error;
    int file;
    zc_rl_loc loc;
    const char *text;
} zc_rl_message;

/* A user's kernel. Its meaning is a body like the emit side of a rule whose values are the
 * operands, the results and, as attributes, the tuning parameters, in this order. */
typedef struct zc_rl_kernel {
    zc_rl_name name;
    zc_rl_list params;  /* zc_rl_name */
    zc_rl_list clauses; /* zc_rl_clause */
    zc_rl_rule body;
    zc_rl_pointwise *scalar; /* or the meaning as one expression */
    int file;
    /* Found by the checker: */
    int nresults, ntuned;
    int64_t types[8], tuned[ZC_RL_TUNED_MAX]; /* see op/defs/user.def */
    zc_attrs_UserKernel attrs;                /* all but the meaning */
} zc_rl_kernel;

struct zc_rules {
    zc_arena arena;
    ZC_VEC(zc_rl_file) files;
    ZC_VEC(zc_rl_rule *) rules;
    ZC_VEC(zc_rl_pointwise *) pointwise;
    ZC_VEC(zc_rl_kernel *) kernels;
    ZC_VEC(zc_rl_define *) defines;
    ZC_VEC(zc_rl_message) messages;
    size_t errors;
    bool nomem;
    zc_rules_read_fn read; /* may be NULL */
    void *read_user;
};

/* Records a message about `file`; errors beyond a bound are only counted. */
void zc_rl_error(zc_rules *r, int file, zc_rl_loc loc, const char *fmt, ...) ZC_PRINTF(4, 5);
void zc_rl_warn(zc_rules *r, int file, zc_rl_loc loc, const char *fmt, ...) ZC_PRINTF(4, 5);

/* From the arena; NULL sets r->nomem. */
void *zc_rl_new(zc_rules *r, size_t size);
bool zc_rl_push(zc_rules *r, zc_rl_list *list, void *item);

static inline zc_rl_stmt *zc_rl_stmt_at(const zc_rl_list *l, int i)
{
    return l->v[i];
}
static inline zc_rl_pat *zc_rl_pat_at(const zc_rl_list *l, int i)
{
    return l->v[i];
}
static inline zc_rl_expr *zc_rl_expr_at(const zc_rl_list *l, int i)
{
    return l->v[i];
}
static inline zc_rl_attr *zc_rl_attr_at(const zc_rl_list *l, int i)
{
    return l->v[i];
}

/* Relative, and not upwards. */
bool zc_rl_is_below(const char *path);
/* `name` in that file's folder, from malloc; NULL: no memory. */
char *zc_rl_path_beside(const zc_rules *r, int file, const char *name);
/* The bytes of a file beside a rule file, of the caller's, or built in. */
zc_status zc_rl_read_beside(const zc_rules *r, int file, const char *name, size_t most,
                            uint8_t **data, size_t *len, zc_diag *diag);

/* Reads a file's definitions into r, from rule `first` and definition `first_pw` on to be checked.
 */
void zc_rl_parse(zc_rules *r, int file);
/* Names, arity, attributes and dtypes of what was parsed since. */
void zc_rl_check(zc_rules *r, size_t first_rule, size_t first_pw, size_t first_kernel,
                 size_t first_define);
/* Rules against each other and themselves: shadowed, looping. */
void zc_rl_check_set(zc_rules *r, size_t first_rule);

/* As zc_rules_apply, with one rule alone (SIZE_MAX: all). */
zc_status zc_rl_apply(const zc_rules *r, size_t only, zc_graph *g, const zc_rule_target *target,
                      zc_rules_report *report, size_t *changes, zc_diag *diag);

/* Negative: rule a (by number) is tried before rule b. */
int zc_rl_precedence(const zc_rules *r, uint32_t a, uint32_t b);

/* The definition of that name, or NULL. */
const zc_rl_pointwise *zc_rl_find_pointwise(const zc_rules *r, const char *name);
const zc_rl_kernel *zc_rl_find_kernel(const zc_rules *r, const char *name);

/* Appends ", did you mean 'x'?" for the nearest of the names that next(i) gives until NULL. */
void zc_rl_suggest(zc_buf *out, const char *word, const char *(*next)(const void *ctx, int i),
                   const void *ctx);

#endif
