/* What zc conform prints. */
#include "cli/conform.h"

static const char *const outcome_names[] = {"pass", "fail", "skip", "crash", "hang"};

void cli_conform_report(conform *c, const char *name, const result *r)
{
    c->counts[r->opset][r->outcome]++;
    c->totals[r->outcome]++;
    c->all_gpu += r->outcome == PASS && r->cpu_steps == 0;
    cli_progress_hide(&c->progress);
    if (c->json) {
        printf("%s\n  {\"name\": ", c->first ? "" : ",");
        cli_json(stdout, name);
        printf(", \"opset\": %d, \"outcome\": \"%s\", \"cpu_steps\": %d, \"text\": ", r->opset,
               outcome_names[r->outcome], r->cpu_steps);
        cli_json(stdout, r->text);
        fputs("}", stdout);
        c->first = false;
    } else if (c->verbose || (r->outcome != PASS && r->outcome != SKIP)) {
        printf("%-5s %s: ", outcome_names[r->outcome], name);
        cli_put(stdout, r->text);
        puts("");
    }
}

void cli_conform_summary(const conform *c)
{
    if (c->json) {
        printf("\n],\n\"passed\": %zu, \"failed\": %zu, \"skipped\": %zu, \"crashed\": %zu, "
               "\"hung\": %zu}\n",
               c->totals[PASS], c->totals[FAIL], c->totals[SKIP], c->totals[CRASH],
               c->totals[HANG]);
        return;
    }
    printf("\nopset    pass   fail   skip  crash   hang\n");
    for (int o = 0; o <= OPSET_MAX; o++) {
        size_t sum = 0;
        for (int k = 0; k < OUTCOMES; k++) sum += c->counts[o][k];
        if (!sum) continue;
        if (o)
            printf("%5d ", o);
        else
            printf("    - ");
        for (int k = 0; k < OUTCOMES; k++) printf(" %6zu", c->counts[o][k]);
        puts("");
    }
    printf("%zu passed, %zu failed, %zu skipped\n", c->totals[PASS],
           c->totals[FAIL] + c->totals[CRASH] + c->totals[HANG], c->totals[SKIP]);
    if (c->device.kind != ZC_DEVICE_CPU)
        printf("%zu passed without a step on the CPU\n", c->all_gpu);
}
