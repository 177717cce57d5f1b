/* Status codes and diagnostics shared by libzc (compiler) and libzc_rt (runtime).
 *
 * Every fallible call returns a zc_status and, where it takes a zc_diag, records why it failed.
 * A zc_diag belongs to the caller, may be NULL, and must not be shared between threads.
 */
#ifndef ZC_STATUS_H
#define ZC_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ZC_API                           __attribute__((visibility("default")))
#define ZC_PRINTF(fmt_index, args_index) __attribute__((format(printf, fmt_index, args_index)))
#else
#define ZC_API
#define ZC_PRINTF(fmt_index, args_index)
#endif

typedef enum zc_status {
    ZC_OK = 0,
    ZC_ERR_ARG,    /* a call broke this API's rules (NULL handle, wrong size, unknown name) */
    ZC_ERR_NOMEM,  /* the allocator refused, or a memory budget was exceeded */
    ZC_ERR_IO,     /* a file could not be opened, read or written; the reason has errno's text */
    ZC_ERR_FORMAT, /* bytes from outside are malformed or corrupt */
    ZC_ERR_LIMIT,  /* well-formed but beyond a documented limit */
    ZC_ERR_UNSUPPORTED, /* valid, but not something this build can do */
    ZC_ERR_MODEL,       /* the model is inconsistent: types, shapes, names, attributes */
    ZC_ERR_INPUT,       /* a run-time input does not fit the model (dtype, shape, index range) */
    ZC_ERR_ACCURACY,    /* results differ from the expected ones beyond the tolerance */
    ZC_ERR_BUSY,        /* the session is in use by another thread */
    ZC_ERR_FORKED,      /* the session was created before fork() and used after it */
    ZC_ERR_CANCELLED,   /* the caller asked to stop */
    ZC_ERR_DEVICE,      /* no usable device, driver or kernel image */
    ZC_ERR_DEVICE_LOST, /* the device failed in a way that only a new process mends */
    ZC_ERR_INTERNAL,    /* a defect in zc: please report it */
    ZC_ERR_TIMEOUT      /* a run took longer than the caller allows it */
} zc_status;

/* The status's stable lower-case name, such as "model" for ZC_ERR_MODEL; never NULL. */
ZC_API const char *zc_status_name(zc_status status);

/* A growable list of diagnostics. Texts are escaped: control characters and bytes that are not
 * UTF-8 appear as \xNN, and each is cut at a bounded length. */
typedef struct zc_diag zc_diag;

/* Returns NULL only when memory is exhausted; a NULL zc_diag is accepted everywhere. */
ZC_API zc_diag *zc_diag_create(void);
/* Frees *diag and sets it to NULL. NULL and pointer to NULL are accepted. */
ZC_API void zc_diag_destroy(zc_diag **diag);
/* Forgets all entries, so that the object can serve another call. */
ZC_API void zc_diag_clear(zc_diag *diag);
/* Number of entries held. Entries past an internal cap are counted by zc_diag_dropped only. */
ZC_API size_t zc_diag_count(const zc_diag *diag);
ZC_API size_t zc_diag_dropped(const zc_diag *diag);
/* Entry i's status; ZC_OK for a warning, which a call that succeeded may leave, and when out of
 * range. */
ZC_API zc_status zc_diag_status(const zc_diag *diag, size_t i);
/* Entry i as "<file>: <node or tensor>: <reason>" (parts that are unknown are left out). The text
 * lives until the diag is changed or destroyed; "" when out of range. */
ZC_API const char *zc_diag_text(const zc_diag *diag, size_t i);

/* From now on fn hears of each entry when it is recorded, too, those past the cap included: its
 * status and text, which lives during the call. fn runs in the thread that records, inside the call
 * that was given the diag, and does not use this diag. NULL: nobody hears any more. A service that
 * logs what goes wrong sets it once for the diag of each thread. */
typedef void (*zc_log_fn)(void *user, zc_status status, const char *text);
ZC_API void zc_diag_log(zc_diag *diag, zc_log_fn fn, void *user);

#ifdef __cplusplus
}
#endif
#endif
