/* Recording of diagnostics inside the libraries. The public view is in zc/status.h. */
#ifndef ZC_BASE_DIAG_H
#define ZC_BASE_DIAG_H

#include "zc/status.h"

/* Longest text kept for one entry; names inside are cut earlier, see ZC_NAME_CUT. */
#define ZC_DIAG_TEXT_MAX 2048
/* Names from files are printed with "%.256s"-like precision: use ZC_NAME in formats. */
#define ZC_NAME "%.256s"
/* Entries kept; more are only counted. */
#define ZC_DIAG_ENTRIES_MAX 4096

/* The file that later entries name. Copied. NULL clears, which whoever sets it does before the
 * caller of the library gets the object back. */
void zc_diag_set_file(zc_diag *diag, const char *file);
/* The same without a copy, in place of what is set, until NULL is lent. */
void zc_diag_lend_file(zc_diag *diag, const char *file);

/* Records "<file>: <subject>: <reason>", a subject that is the file once, and returns status, so
 * that callers can write `return zc_fail(...)`. subject (a node, tensor, option; may be NULL) is
 * untrusted text. The reason reads "<what is wrong> (got X, need Y)". */
zc_status zc_fail(zc_diag *diag, zc_status status, const char *subject, const char *fmt, ...)
    ZC_PRINTF(4, 5);

/* Records what does not keep a call from succeeding. */
#define zc_warn(diag, subject, ...) zc_fail((diag), ZC_OK, (subject), __VA_ARGS__)

/* As zc_fail for exhausted memory: `what` says for what. */
zc_status zc_fail_nomem(zc_diag *diag, const char *what, size_t bytes);

/* The subject of later entries that name none, which lives until another is lent; gives the one
 * before, to be lent again. */
const char *zc_diag_lend_subject(zc_diag *diag, const char *subject);

/* Moves all entries behind those of `to`. */
void zc_diag_move(zc_diag *to, zc_diag *from);
/* Ends work that does again what tells its warnings itself: *own's entries go behind those of `to`
 * when status is an error, and it is destroyed. Returns status. */
zc_status zc_diag_end_again(zc_diag *to, zc_diag **own, zc_status status);

/* Evaluates expr once and returns its status from the enclosing function unless it is ZC_OK. */
#define ZC_TRY(expr)                                                                               \
    do {                                                                                           \
        zc_status zc_try_status = (expr);                                                          \
        if (zc_try_status != ZC_OK) return zc_try_status;                                          \
    } while (0)

#endif
