/* Files of measurements: what is taken is printed, and read again as the same. */
#include <string.h>

#include "fuzz.h"
#include "tune/database.h"

static void check_again(const zc_tuned *t)
{
    zc_buf first = {0}, second = {0};
    zc_tuned again;
    zc_tuned_init(&again);
    if (zc_tuned_print(t, &first, NULL) == ZC_OK) {
        FUZZ_CHECK(zc_tuned_parse(&again, first.data, first.len, "again", NULL) == ZC_OK);
        FUZZ_CHECK(again.entries.len == t->entries.len);
        if (zc_tuned_print(&again, &second, NULL) == ZC_OK)
            FUZZ_CHECK(first.len == second.len && memcmp(first.data, second.data, first.len) == 0);
    }
    zc_tuned_fini(&again);
    zc_buf_fini(&first);
    zc_buf_fini(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zc_diag *diag = zc_diag_create();
    zc_tuned t;
    if (!diag) return 0;
    zc_tuned_init(&t);
    zc_status status = zc_tuned_parse(&t, (const char *)data, size, "fuzz", diag);
    fuzz_check_words(diag, status);
    if (status == ZC_OK) check_again(&t);
    zc_tuned_fini(&t);
    zc_diag_destroy(&diag);
    return 0;
}
