/* One rule at one place. Matching reads the graph and never writes it. */
#ifndef ZC_RULES_MATCH_H
#define ZC_RULES_MATCH_H

#include "ir/index.h"
#include "rules/eval.h"

/* Steps of one match at one place; then it gives up. */
#define ZC_RL_STEPS_MAX 20000

typedef struct zc_rl_matcher {
    const zc_rl_rule *rule;
    const zc_index *x;
    const zc_rule_target *target;
    zc_arena scratch;
    zc_nid root;
    uint32_t block; /* where the root stands */
    /* By variable. */
    bool bound[ZC_RL_VARS_MAX];
    zc_vid value[ZC_RL_VARS_MAX];
    zc_rl_val attr[ZC_RL_VARS_MAX];
    int trail[ZC_RL_VARS_MAX];
    int ntrail;
    /* By operation of the pattern: the node it stands for, or 0. */
    zc_nid node[ZC_RL_NODES_MAX];
    bool absent[ZC_RL_NODES_MAX];
    int count;
    size_t steps;
    bool gave_up;
    /* Why not, when asked for: of the attempt that got farthest. */
    bool explain;
    bool is_complete, best_complete; /* all operations match: then it is something else */
    int best;
    zc_nid place;
    zc_nid best_node[ZC_RL_NODES_MAX];
    char why[256];
} zc_rl_matcher;

/* Does the rule's last statement stand for node n? Then the bindings are in m. */
bool zc_rl_match_at(zc_rl_matcher *m, const zc_rl_rule *rule, zc_nid n);
/* What the bindings say to expressions. */
zc_rl_env zc_rl_match_env(const zc_rl_matcher *m, zc_arena *arena);
/* Calls fn for every operation that the last statement may be. */
void zc_rl_root_ops(const zc_rl_rule *rule, void (*fn)(void *user, zc_op op), void *user);

#endif
