#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "cli/bench.h"
#include "cli/stats.h"

/* By how much the last third is longer than the first, where their medians' intervals are apart by
 * more than a hundredth. */
static bool drift_of(const bench_times *t, double *out)
{
    size_t third = t->n / 3;
    *out = 0;
    if (third < 3) return true;
    zc_interval a, b;
    if (!zc_median_of(t->v, third, &a) || !zc_median_of(t->v + t->n - third, third, &b))
        return false;
    bool apart = a.high < b.low || b.high < a.low;
    double change = b.mid / a.mid - 1;
    if (apart && fabs(change) > 0.01) *out = change;
    return true;
}

/* The split of sorted times without their ends that leaves the least squares within its two groups.
 * Two modes are groups of a tenth at least whose means are far apart (Ashman's D beyond 4.5, where
 * a uniform distribution has 3.5) and by more than a fiftieth. */
static void find_modes(const double *v, size_t n, double *modes)
{
    const size_t cut = n / 100, least = n / 10;
    const double *w = v + cut;
    size_t m = n - 2 * cut, best = 0;
    double all = 0, squares = 0, sum = 0, greatest = 0;
    if (m < 20) return;
    for (size_t i = 0; i < m; i++) {
        all += w[i];
        squares += (w[i] - w[m / 2]) * (w[i] - w[m / 2]);
    }
    for (size_t i = 1; i < m; i++) { /* between the groups: as much as is not within them */
        sum += w[i - 1];
        double apart = sum / (double)i - (all - sum) / (double)(m - i);
        double between = apart * apart * (double)i * (double)(m - i) / (double)m;
        if (between <= greatest) continue;
        greatest = between;
        best = i;
    }
    if (best < least || m - best < least) return;
    double mean = all / (double)m - w[m / 2];
    double within = (squares - (double)m * mean * mean - greatest) / (double)m;
    double low = zc_quantile(w, best, 0.5), high = zc_quantile(w + best, m - best, 0.5);
    double apart = sqrt(greatest * (double)m / ((double)best * (double)(m - best)));
    if (high < low * 1.02 || (within > 0 && apart / sqrt(within) < 4.5)) return;
    modes[0] = low;
    modes[1] = high;
}

bool bench_summarise(const bench_times *t, bench_summary *out)
{
    double *v = zc_sorted(t->v, t->n);
    *out = (bench_summary){0};
    if (!v) return false;
    zc_interval mid = zc_median(v, t->n);
    *out = (bench_summary){.low = mid.low,
                           .high = mid.high,
                           .p50 = mid.mid,
                           .p90 = zc_quantile(v, t->n, 0.9),
                           .p99 = zc_quantile(v, t->n, 0.99),
                           .p999 = zc_quantile(v, t->n, 0.999),
                           .min = v[0],
                           .max = v[t->n - 1]};
    double q1 = zc_quantile(v, t->n, 0.25), q3 = zc_quantile(v, t->n, 0.75),
           fence = 1.5 * (q3 - q1);
    for (size_t i = 0; i < t->n; i++) out->outliers += v[i] < q1 - fence || v[i] > q3 + fence;
    find_modes(v, t->n, out->modes);
    free(v);
    return drift_of(t, &out->drift);
}

/* ---- steps against what they took before ---- */

/* By how much all but one of the steps became slower together for certain; 1 where they did not. */
static double shared_slowdown(const bench_pair *pairs, size_t n, size_t but)
{
    double before = 0, now = 0;
    for (size_t i = 0; i < n; i++) {
        const bench_pair *p = &pairs[i];
        before += i == but ? 0 : p->before.mid;
        now += i == but ? 0 : fmax(p->before.mid, p->now.mid - BENCH_STEP_UNSURE);
    }
    return before > 0 ? now / before : 1;
}

bool bench_judge_steps(bench_pair *pairs, size_t n, double factor, bool alone)
{
    const double chance = alone ? CLI_CHANCE / (double)n : CLI_CHANCE;
    for (size_t i = 0; i < n; i++)
        if (!zc_median_of(pairs[i].was, pairs[i].was_n, &pairs[i].before) ||
            !zc_median_of(pairs[i].is, pairs[i].is_n, &pairs[i].now))
            return false;
    for (size_t i = 0; i < n; i++) {
        bench_pair *p = &pairs[i];
        const cli_limit limit = {.factor = factor * (alone ? shared_slowdown(pairs, n, i) : 1),
                                 .more = BENCH_STEP_UNSURE};
        p->slower = cli_chance(p->was, p->was_n, p->is, p->is_n, limit) < chance;
    }
    return true;
}
