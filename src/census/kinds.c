#include "census/kinds.h"

static const struct {
    const char *name, *about;
    bool by_rule;
} kinds[] = {
    {"", "", true},
#define RULE                          true
#define GONE                          false
#define KIND(name, how, before, what) {#name, what, how},
#include "census/kinds.def"
#undef KIND
#undef RULE
#undef GONE
};

const char *zc_rule_kind_name(zc_rule_kind kind)
{
    return kinds[kind].name;
}

const char *zc_rule_kind_about(zc_rule_kind kind)
{
    return kinds[kind].about;
}

bool zc_rule_kind_by_rule(zc_rule_kind kind)
{
    return kinds[kind].by_rule;
}
