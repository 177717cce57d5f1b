/* Files of zc bench --save: what is read is within its bounds, and cut from the file. */
#include <math.h>
#include <string.h>

#include "cli/bench_saved.h"
#include "fuzz.h"

static void check(const bench_saved *s)
{
    FUZZ_CHECK(s->head.len > 0 && strcmp(s->head.data[0], BENCH_FIRST_LINE) == 0);
    FUZZ_CHECK(s->runs.len > 0 && s->runs.len <= BENCH_RUNS_KEPT);
    for (size_t i = 0; i < s->head.len; i++) FUZZ_CHECK(!strchr(s->head.data[i], '\n'));
    for (size_t i = 0; i < s->runs.len; i++) FUZZ_CHECK(s->runs.data[i] >= 0);
    FUZZ_CHECK(s->gpu.joules >= 0 && s->gpu.watts >= 0 && s->cpu.joules >= 0 && s->cpu.watts >= 0);
    FUZZ_CHECK(!s->clocks || !strchr(s->clocks, '\n'));
    FUZZ_CHECK(s->peaks.bytes >= 0 && s->peaks.launch >= 0);
    for (int i = 0; i < ZC_PEAK_COUNT; i++)
        FUZZ_CHECK(s->peaks.bytes > 0 ? s->peaks.operations[i] >= 0 : s->peaks.operations[i] == 0);
    for (size_t i = 0; i < s->steps.len; i++) {
        const bench_saved_step *step = &s->steps.data[i];
        FUZZ_CHECK(!strpbrk(step->op, " \n") && !strchr(step->name, '\n'));
        FUZZ_CHECK(step->runs > 0 && step->runs <= BENCH_STEP_RUNS);
        for (size_t r = 0; r < step->runs; r++) FUZZ_CHECK(isfinite(step->us[r]));
        FUZZ_CHECK(step->bytes_in >= 0 && step->bytes_out >= 0 && step->operations >= -1);
        FUZZ_CHECK(!step->kernel || *step->kernel);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zc_diag *diag = zc_diag_create();
    bench_saved s = {.peaks = {.bytes = 0}};
    if (!diag) return 0;
    zc_status status = bench_saved_parse((const char *)data, size, "fuzz", &s, diag);
    fuzz_check_words(diag, status);
    if (status == ZC_OK) check(&s);
    bench_saved_free(&s);
    zc_diag_destroy(&diag);
    return 0;
}
