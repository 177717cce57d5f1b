/* Fusion rules: patterns and what replaces them, read at run time from text (docs/rules.md).
 *
 * A set holds the definitions of several files. Loading checks them; a set with errors cannot be
 * applied. A loaded set is not changed by applying it. */
#ifndef ZC_RULES_RULES_H
#define ZC_RULES_RULES_H

#include "base/mem.h"
#include "census/kinds.h"
#include "ir/graph.h"

/* Longest rule file. */
#define ZC_RULES_FILE_MAX ((size_t)4 << 20)

/* Where a node is from, the rules that made it are "rule NAME (FILE:LINE)". */
#define ZC_RULE_LABEL "rule "

typedef struct zc_rules zc_rules;

zc_status zc_rules_create(zc_rules **out, zc_diag *diag);
void zc_rules_destroy(zc_rules **r);

/* Reads and checks one file, or text that is called `name`. What is wrong is kept as messages, all
 * of it; any error gives ZC_ERR_FORMAT, and diag then gets one line for each. */
zc_status zc_rules_add_file(zc_rules *r, const char *path, zc_diag *diag);
zc_status zc_rules_add_text(zc_rules *r, const char *name, const char *text, size_t len,
                            zc_diag *diag);
/* Where rules that are text find the sources of their kernels; without, they have none. read gives
 * the bytes of a name, from malloc. */
typedef zc_status (*zc_rules_read_fn)(void *user, const char *name, uint8_t **data, size_t *len,
                                      zc_diag *diag);
void zc_rules_set_reader(zc_rules *r, zc_rules_read_fn read, void *user);
/* The rules that zc brings along. */
zc_status zc_rules_add_builtin(zc_rules *r, zc_diag *diag);

/* Leaves rule `name` out from now on. */
zc_status zc_rules_disable(zc_rules *r, const char *name, zc_diag *diag);

/* Messages of loading, in order of their place. */
size_t zc_rules_message_count(const zc_rules *r);
/* "file:line:col: error: text", the line of the source, and a caret; three lines. Is it an error?
 */
bool zc_rules_message_print(const zc_rules *r, size_t i, zc_buf *out);

typedef struct zc_rule_info {
    const char *name, *file;
    int line;
    zc_rule_kind kind;
    int64_t priority;
    const char *unchecked; /* why it is taken without a check by numbers; NULL: it is not */
    bool is_builtin, is_disabled;
    int nodes; /* of the match side */
} zc_rule_info;

size_t zc_rules_count(const zc_rules *r);
zc_rule_info zc_rules_at(const zc_rules *r, size_t i);

/* ---- applying ---- */

/* What is compiled for, for conditions on the device. */
typedef struct zc_rule_target {
    bool cuda;
    int sm;      /* the least compute capability among the targets (90), or 0 */
    int sm_most; /* and the greatest */
} zc_rule_target;

/* What one rule did. */
typedef struct zc_rule_stats {
    size_t tried;    /* places where its root operation stood */
    size_t applied;  /* rewrites */
    size_t refused;  /* matched, but the rewrite would have broken the graph */
    size_t gave_up;  /* places where matching ran out of steps */
    size_t steps;    /* of matching, all places together */
    size_t taken;    /* operations it might have ended with, gone before it was tried there */
    size_t taker;    /* the rule that took the last of them */
    size_t best;     /* most nodes matched at a place that failed */
    char place[128]; /* the node there */
    char why[256];   /* and the condition that failed */
} zc_rule_stats;

typedef struct zc_rules_report {
    zc_rule_stats *stats;     /* one a rule, by its number; zeroed by the caller */
    struct zc_census *census; /* census/census.h; may be NULL */
    size_t limit;             /* rewrites after which the rules are done; 0: no limit */
    size_t rewrites;          /* that were done */
    size_t last;              /* the rule of the newest one, by its number */
    char last_nodes[512];     /* and the nodes that it stands for */
} zc_rules_report;

/* Rewrites g until no rule applies. target and report may be NULL. Rules that undo each other end
 * with ZC_ERR_LIMIT and their names; the graph is valid then too. */
zc_status zc_rules_apply(const zc_rules *r, zc_graph *g, const zc_rule_target *target,
                         zc_rules_report *report, size_t *changes, zc_diag *diag);

/* ---- kernels ---- */

/* Does rule i emit kernels of the user? */
bool zc_rules_has_kernels(const zc_rules *r, size_t i);

/* The kernels that rules bring along, by number. tuning: their parameters (op/sizes.h). */
typedef struct zc_rule_kernel {
    const char *name, *origin, *tuning;
} zc_rule_kernel;
size_t zc_rules_kernel_count(const zc_rules *r);
zc_rule_kernel zc_rules_kernel_at(const zc_rules *r, size_t k);
/* From now on kernel k is emitted with that combination; each begins with combination 0. */
void zc_rules_kernel_choose(zc_rules *r, size_t k, size_t combination);
/* Does rule i emit kernel k? */
bool zc_rules_emits(const zc_rules *r, size_t i, size_t k);

#endif
