/* What the harnesses share. Each is one LLVMFuzzerTestOneInput: linked with libFuzzer it searches,
 * linked with replay.c it runs the files of a corpus, in every build and with every compiler. */
#ifndef ZC_TESTS_FUZZ_H
#define ZC_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/diag.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A property that must hold for every input. */
#define FUZZ_CHECK(property)                                                                       \
    do {                                                                                           \
        if (!(property)) {                                                                         \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #property);          \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* A failure says why, a success says nothing; the text is shown so that it is read. */
static inline void fuzz_check_words(const zc_diag *diag, zc_status status)
{
    FUZZ_CHECK(status >= ZC_OK && status <= ZC_ERR_INTERNAL);
    FUZZ_CHECK((status == ZC_OK) == (zc_diag_count(diag) == 0));
    FUZZ_CHECK(status != ZC_ERR_INTERNAL && status != ZC_ERR_ARG);
    for (size_t i = 0; i < zc_diag_count(diag); i++) FUZZ_CHECK(*zc_diag_text(diag, i));
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FUZZ_ASAN 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define FUZZ_ASAN 1
#endif

#ifdef FUZZ_ASAN
/* Too much memory is an error value, not an abort. */
__attribute__((weak, visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1:max_allocation_size_mb=512";
}
#endif

#endif
