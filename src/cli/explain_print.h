/* What a compilation did, printed. */
#ifndef ZC_CLI_EXPLAIN_PRINT_H
#define ZC_CLI_EXPLAIN_PRINT_H

#include "driver/explain.h"

/* One rule: how often it applied, and where and why it did not. */
void cli_explain_rule(const zc_explain *e, size_t rule);
/* Everything, as text or as one JSON document. */
void cli_explain_text(const zc_explain *e);
void cli_explain_json(const zc_explain *e, const char *model);

/* Places of a kind that were not fused, for one reason. */
typedef struct cli_missed {
    size_t places;
    const char *node;         /* the first of them */
    const zc_rule_miss *miss; /* where a rule came nearest; NULL: `why` is all there is to say */
    const char *why;
} cli_missed;
/* The next reason from candidate *at on; false when there is none. */
bool cli_explain_missed(const zc_explain *e, zc_rule_kind kind, size_t *at, cli_missed *out);

#endif
