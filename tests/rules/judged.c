/* Rules that are right and rules that are wrong, and what the check by numbers says of them with
 * several seeds.
 *
 * usage: judged right|wrong FILE SEEDS: every rule of the file passes, or fails, with each of so
 * many seeds; prints the CPU's time for the rules of one seed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "prover/prover.h"

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void print_messages(const zc_rules *r)
{
    zc_buf text = {0};
    for (size_t i = 0; i < zc_rules_message_count(r); i++) zc_rules_message_print(r, i, &text);
    fputs(text.data ? text.data : "", stdout);
    zc_buf_fini(&text);
}

static bool is_judged(const zc_rules *r, size_t i, uint64_t seed, bool is_right)
{
    zc_rule_check check;
    zc_diag *diag = zc_diag_create();
    double start = now();
    bool ok = zc_rules_check_numbers(r, i, seed, &check, diag) == ZC_OK && check.failed != is_right;
    if (!ok)
        printf("%s, seed %d: %zu places, %zu values: %s for %s %s\n", zc_rules_at(r, i).name,
               (int)seed, check.places, check.values, check.failed ? check.why : "ok", check.input,
               zc_diag_text(diag, 0));
    if (getenv("ZC_TIMES"))
        printf("%7.1f ms %4zu places %7zu values %4zu refused: %s: %s\n", 1e3 * (now() - start),
               check.places, check.values, check.refused, zc_rules_at(r, i).name,
               check.failed ? check.why : "ok");
    zc_diag_destroy(&diag);
    return ok;
}

int main(int argc, char **argv)
{
    zc_rules *r = NULL;
    size_t misjudged = 0;
    double least = 0, most = 0;
    if (argc < 4 || zc_rules_create(&r, NULL) != ZC_OK) return 2;
    bool is_right = strcmp(argv[1], "right") == 0, is_builtin = strcmp(argv[2], "builtin") == 0;
    zc_status status =
        is_builtin ? zc_rules_add_builtin(r, NULL) : zc_rules_add_file(r, argv[2], NULL);
    if (status != ZC_OK) print_messages(r);
    size_t n = status == ZC_OK ? zc_rules_count(r) : 0;
    const int seeds = atoi(argv[3]);
    for (int seed = 1; seed <= seeds; seed++) {
        double start = now();
        for (size_t i = 0; i < n; i++) misjudged += !is_judged(r, i, (uint64_t)seed, is_right);
        double took = now() - start;
        if (seed == 1 || took < least) least = took;
        if (took > most) most = took;
    }
    zc_rules_destroy(&r);
    printf("%zu rules, %d seeds, %zu misjudged, %.2f to %.2f s a seed\n", n, seeds, misjudged,
           least, most);
    return n == 0 || seeds < 1 || misjudged;
}
