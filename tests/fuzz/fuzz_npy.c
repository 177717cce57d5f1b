/* The bytes of a .npy file. */
#include "fuzz.h"
#include "io/npy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zc_diag *diag = zc_diag_create();
    zc_tensor t = {0};
    if (!diag) return 0;
    zc_status status = zc_npy_parse(data, size, &t, diag);
    fuzz_check_words(diag, status);
    if (status == ZC_OK) {
        size_t bytes;
        volatile uint8_t sum = 0;
        FUZZ_CHECK(zc_dtype_valid((int)t.dtype) && t.rank >= 0 && t.rank <= ZC_MAX_RANK);
        FUZZ_CHECK(zc_tensor_bytes(&t, &bytes));
        FUZZ_CHECK((bytes == 0) == (t.data == NULL));
        for (size_t i = 0; i < bytes; i++) sum = (uint8_t)(sum + ((uint8_t *)t.data)[i]);
        free(t.data);
    }
    zc_diag_destroy(&diag);
    return 0;
}
