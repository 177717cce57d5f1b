#include "kernels/candidates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

/* Most that are tried when the compiler's code is refused. */
enum { TRIED_MOST = 12 };

/* Those that fit, by cost, the best first; equal ones by number. */
static int sort(zc_candidate_fn make, const void *problem, int count, zc_candidate *out)
{
    int n = 0;
    for (int i = 0; i < count; i++) {
        zc_candidate c;
        memset(&c, 0, sizeof c);
        if (!make(problem, i, &c)) continue;
        int at = n++;
        for (; at && c.us < out[at - 1].us; at--) out[at] = out[at - 1];
        out[at] = c;
    }
    return n;
}

int zc_candidate_digit(int *left, size_t base)
{
    int digit = *left % (int)base;
    *left /= (int)base;
    return digit;
}

double zc_candidates_us(zc_candidate_fn make, const void *problem, int count)
{
    double least = INFINITY;
    for (int i = 0; i < count; i++) {
        zc_candidate c;
        if (make(problem, i, &c) && c.us < least) least = c.us;
    }
    return least;
}

static void tell(zc_gen *g, const char *with, const zc_candidate *best, int n)
{
    size_t at = strlen(g->why);
    for (int i = 0; i < 3 && i < n && at < sizeof g->why; i++)
        at += (size_t)zc_snprintf(g->why + at, sizeof g->why - at, "%s%s%s %.1f us", i ? "" : with,
                                  i ? ", " : ": ", best[i].name, best[i].us);
}

static void take(zc_gen *g, const zc_candidate *c)
{
    memcpy(g->config, c->config, sizeof g->config);
    g->threads = c->threads;
    g->smem = c->smem;
    g->cluster = c->cluster;
    g->us = c->us;
}

static zc_status take_number(zc_gen *g, zc_candidate_fn make, const void *problem, int count)
{
    zc_candidate c;
    memset(&c, 0, sizeof c);
    if (g->candidate > count || !make(problem, g->candidate - 1, &c))
        return zc_gen_decline(g, "no such candidate");
    take(g, &c);
    return ZC_OK;
}

zc_status zc_gen_candidates(zc_gen *g, const char *with, zc_candidate_fn make, const void *problem,
                            int count)
{
    if (g->candidate) return take_number(g, make, problem, count);
    zc_candidate *sorted = zc_calloc((size_t)count, sizeof *sorted);
    if (!sorted) return zc_fail_nomem(g->diag, "candidates", (size_t)count);
    int n = sort(make, problem, count, sorted);
    if (g->refused < n) {
        g->configurations = n < TRIED_MOST || g->regardless ? n : TRIED_MOST;
        tell(g, with, sorted, n);
        take(g, &sorted[g->refused]);
    }
    free(sorted);
    return g->refused < n ? ZC_OK : zc_gen_decline(g, "no configuration that fits");
}
