/* Assertions on failures: a test of bad input asserts the status and the words. Include cmocka.h
 * and what it needs before. */
#ifndef ZC_TESTS_EXPECT_H
#define ZC_TESTS_EXPECT_H

#include <string.h>

#include "base/diag.h"

/* The call must have failed so, with one entry whose text contains `text`. Clears diag. */
static inline void expect_fail(zc_diag *diag, zc_status got, zc_status want, const char *text)
{
    const char *said = zc_diag_text(diag, 0);
    if (got != want || zc_diag_count(diag) != 1 || !strstr(said, text))
        fail_msg("got %s, %zu entries, \"%s\"; need %s, \"%s\"", zc_status_name(got),
                 zc_diag_count(diag), said, zc_status_name(want), text);
    zc_diag_clear(diag);
}

/* The call must have succeeded without a word. */
static inline void expect_ok(const zc_diag *diag, zc_status got)
{
    if (got != ZC_OK || zc_diag_count(diag))
        fail_msg("got %s, \"%s\"", zc_status_name(got), zc_diag_text(diag, 0));
}

#endif
