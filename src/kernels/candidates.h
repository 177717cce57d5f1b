/* The configurations that a family may give a step, and which one it gives. */
#ifndef ZC_KERNELS_CANDIDATES_H
#define ZC_KERNELS_CANDIDATES_H

#include "kernels/gen.h"

typedef struct zc_candidate {
    int64_t config[ZC_CONFIG_MAX];
    uint32_t threads, smem, cluster;
    double us;     /* what the family's model of cost says that it takes, microseconds */
    char name[40]; /* for those who read what was chosen */
} zc_candidate;

/* Number `number` of all, from 0; false: it does not fit the problem. */
typedef bool (*zc_candidate_fn)(const void *problem, int number, zc_candidate *out);

/* The last digit, below `base`, of what is left of a number that stands for several choices. */
int zc_candidate_digit(int *left, size_t base);

/* Gives g the configuration that it asks for: number g->candidate, or the best by cost but
 * g->refused; sets g->us, and says in g->why with what instruction the kernel computes and what the
 * best three are held to take. May decline. */
zc_status zc_gen_candidates(zc_gen *g, const char *with, zc_candidate_fn make, const void *problem,
                            int count);
/* What the best of them is held to take; INFINITY: none fits. */
double zc_candidates_us(zc_candidate_fn make, const void *problem, int count);

#endif
