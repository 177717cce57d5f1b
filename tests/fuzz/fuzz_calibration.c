/* Calibration files: what is taken is printed, and read again as the same. */
#include <string.h>

#include "fuzz.h"
#include "precision/calibration.h"

static void check_again(const zc_calibration *c)
{
    zc_buf first = {0}, second = {0};
    zc_calibration again;
    zc_calibration_init(&again);
    if (zc_calibration_print(c, &first, NULL) == ZC_OK) {
        FUZZ_CHECK(zc_calibration_parse(&again, first.data, first.len, "again", NULL) == ZC_OK);
        FUZZ_CHECK(again.activations.len == c->activations.len);
        FUZZ_CHECK(again.weights.len == c->weights.len && again.runs == c->runs);
        if (zc_calibration_print(&again, &second, NULL) == ZC_OK)
            FUZZ_CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    }
    zc_calibration_fini(&again);
    zc_buf_fini(&first);
    zc_buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zc_diag *diag = zc_diag_create();
    zc_calibration c;
    if (!diag) return 0;
    zc_calibration_init(&c);
    zc_status status = zc_calibration_parse(&c, (const char *)data, size, "fuzz", diag);
    fuzz_check_words(diag, status);
    if (status == ZC_OK) check_again(&c);
    zc_calibration_fini(&c);
    zc_diag_destroy(&diag);
    return 0;
}
