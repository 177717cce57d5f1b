/* What rules fuse, and the census counts. */
#ifndef ZC_CENSUS_KINDS_H
#define ZC_CENSUS_KINDS_H

#include <stdbool.h>

typedef enum zc_rule_kind {
    ZC_RULE_KIND_NONE,
#define KIND(name, how, before, what) ZC_RULE_##name,
#include "census/kinds.def"
#undef KIND
    ZC_RULE_KIND_COUNT
} zc_rule_kind;

/* The word for it in rule files; "" of NONE. */
const char *zc_rule_kind_name(zc_rule_kind kind);
/* What the kind is, in words. */
const char *zc_rule_kind_about(zc_rule_kind kind);
/* Is it found when a rule rewrote it, and not just when it is gone? */
bool zc_rule_kind_by_rule(zc_rule_kind kind);

#endif
