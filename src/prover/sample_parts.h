/* What the parts of the sampler share. */
#ifndef ZC_PROVER_SAMPLE_PARTS_H
#define ZC_PROVER_SAMPLE_PARTS_H

#include "prover/hints.h"
#include "prover/sample.h"
#include "prover/sample_target.h"

enum { ZC_RL_BASE = 5 }; /* dimensions of the base shape */

typedef struct zc_rl_maker {
    const zc_rl_rule *rule;
    const zc_rl_choice *c;
    zc_rl_exactness exactness;
    uint64_t random;
    uint64_t hint_random; /* of what conditions decide: as many as may be, and nothing else moves */
    const zc_rl_sample *own; /* of an exact sample, or NULL */
    zc_rl_sample *out;
    zc_graph *g;
    zc_vid draft; /* stands for the operand in work */
    int64_t base[ZC_RL_BASE], n;
    bool is_symbol[ZC_RL_BASE + 1]; /* by dimension of base, and n */
    int rank;
    zc_vid value[ZC_RL_VARS_MAX];
    zc_vid made[ZC_RL_NODES_MAX]; /* by twin of an operation: what it computes */
    zc_rl_val attr[ZC_RL_VARS_MAX];
    bool has_attr[ZC_RL_VARS_MAX];
    int64_t perm[ZC_RL_BASE];
    zc_rl_targets targets;
    const zc_rl_pat *user; /* what the operand being made is for, as operand `place` */
    const zc_vid *others;  /* that operation's operands before it */
    int place;
    int result;   /* the variable that the operation to be made is named by from outside, or -1 */
    int64_t ones; /* bit i: dimension i of FORM_HALF is 1 */
    int64_t tables, pieces; /* of FORM_TABLE: how many, and what part of k a row has */
    zc_arena arena;
} zc_rl_maker;

static inline int64_t zc_rl_below(zc_rl_maker *m, int64_t n)
{
    return (int64_t)(zc_rl_random(&m->random) % (uint64_t)n);
}

zc_rl_env zc_rl_env_of(zc_rl_maker *m);
zc_rl_solver zc_rl_solver_of(zc_rl_maker *m, int var);
/* The type that this one has in the sample: f64 in an exact one, where it is a float. */
zc_dtype zc_rl_widened(const zc_rl_maker *m, zc_dtype d);
/* Gives the node, whose operands are there, the attributes that the pattern says. */
bool zc_rl_set_attrs(zc_rl_maker *m, const zc_rl_pat *p, zc_nid n);

/* The shape that all operands' shapes are made of, and what else is drawn once. */
void zc_rl_draw_base(zc_rl_maker *m);
/* A shape of the kind that the choice has for the variable. */
void zc_rl_draw_shape(zc_rl_maker *m, int var, zc_tensor *t);
/* t as an input's type, some of its dimensions maybe symbols. */
zc_type zc_rl_input_type(zc_rl_maker *m, int var, const zc_tensor *t);

/* An axis, a count, a flag. */
int64_t zc_rl_small_integer(zc_rl_maker *m);
/* Stores a number as its own type rounds it, so that the wide sample has the same. */
void zc_rl_store(zc_dtype own, zc_dtype as, void *data, int64_t i, double v);
/* Elements of a constant. */
void zc_rl_fill_const(zc_rl_maker *m, int var, zc_dtype own, const zc_rl_role *what, zc_tensor *t);
/* The number that a pattern stands for: itself, or at an edge of its tolerance. */
double zc_rl_draw_number(zc_rl_maker *m, const zc_rl_pat *p);

#endif
