/* What a compilation did, printed. */
#ifndef ZC_CLI_EXPLAIN_PRINT_H
#define ZC_CLI_EXPLAIN_PRINT_H

#include "driver/explain.h"

/* One rule: how often it applied, and where and why it did not. */
void cli_explain_rule(const zc_explain *e, size_t rule);
/* Everything, as text or as one JSON document. */
void cli_explain_text(const zc_explain *e);
void cli_explain_json(const zc_explain *e, const char *model);

#endif
