/* What a match becomes: one patch that is made beside the graph, checked, and then put in. */
#ifndef ZC_RULES_REWRITE_H
#define ZC_RULES_REWRITE_H

#include "rules/match.h"

/* Nodes that one emit side may make. */
#define ZC_RL_MADE_MAX 256

typedef struct zc_rl_patch {
    zc_index *x;
    const zc_rl_matcher *m;
    const char *label; /* goes into the new nodes' provenance */
    zc_nid made[ZC_RL_MADE_MAX];
    int nmade;
    int nth; /* which of the collected values a name with dots stands for; -1: for all */
    zc_vid value[ZC_RL_VARS_MAX]; /* by variable: what emit defines */
    zc_nid resume;                /* after the patch: where to go on, a node or 0 */
    bool nomem;
    char why[256]; /* of a refusal */
} zc_rl_patch;

/* Applies the rule at m's match. false: refused, and the graph is as before; or p->nomem. */
bool zc_rl_rewrite(zc_rl_patch *p);

#endif
