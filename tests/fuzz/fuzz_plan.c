/* A plan, its hashes made right, loaded and run twice. */
#include <signal.h>
#include <string.h>
#include <sys/time.h>

#include "fuzz.h"
#include "support/forge.h"
#include "support/plan_inputs.h"

static zc_session *volatile running;

static void on_timer(int signal)
{
    (void)signal;
    if (running) zc_session_cancel(running);
}

/* Trip counts can be huge: a run may take so much processor time. */
static zc_status run_bounded(zc_session *s, zc_diag *diag)
{
    const struct itimerval soon = {.it_value = {.tv_usec = 100000},
                                   .it_interval = {.tv_usec = 50000}};
    signal(SIGVTALRM, on_timer);
    running = s;
    setitimer(ITIMER_VIRTUAL, &soon, NULL);
    zc_status status = zc_session_run(s, diag);
    setitimer(ITIMER_VIRTUAL, &(const struct itimerval){0}, NULL);
    running = NULL;
    return status;
}

static zc_status run_twice(zc_plan *plan, zc_session *s, zc_diag *diag)
{
    for (unsigned seed = 1; seed <= 2; seed++) {
        ZC_TRY(plan_inputs(plan, s, 2, seed, diag));
        ZC_TRY(run_bounded(s, diag));
    }
    return ZC_OK;
}

static zc_status load_and_run(const uint8_t *data, size_t size, zc_diag *diag)
{
    zc_plan *plan = NULL;
    zc_session *s = NULL;
    ZC_TRY(zc_plan_load_bytes(data, size, &plan, diag));
    zc_status status = zc_session_create(plan, ZC_SESSION_PARAMS(.threads = 1), &s, diag);
    if (status == ZC_OK) status = run_twice(plan, s, diag);
    zc_session_destroy(&s);
    zc_plan_destroy(&plan);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zc_diag *diag = zc_diag_create();
    uint8_t *copy = malloc(size ? size : 1);
    if (diag && copy) {
        memcpy(copy, data, size);
        if (size >= sizeof(zc_plan_header) + ZC_PLAN_SECTION_COUNT * sizeof(zc_plan_section)) {
            ((zc_plan_header *)copy)->file_size = size;
            forge_seal(copy, size);
        }
        zc_status status = load_and_run(copy, size, diag);
        /* Forged types reach the check that the runtime's own errors are for. */
        if (status != ZC_ERR_INTERNAL) fuzz_check_words(diag, status);
    }
    free(copy);
    zc_diag_destroy(&diag);
    return 0;
}
