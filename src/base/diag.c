#include "base/diag.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/number.h"

/* Room for these is taken at creation, so that the first errors are kept even when memory has run
 * out. */
#define RESERVED_ENTRIES 8

typedef struct entry {
    zc_status status;
    char *text; /* NULL: there was no memory for it */
} entry;

struct zc_diag {
    ZC_VEC(entry) entries;
    size_t dropped;
    char *file;          /* or NULL */
    const char *lent;    /* in place of file, or NULL */
    const char *subject; /* of entries that name none; or NULL */
    zc_log_fn log;       /* or NULL */
    void *log_user;
};

const char *zc_status_name(zc_status status)
{
    switch (status) {
    case ZC_OK:
        return "ok";
    case ZC_ERR_ARG:
        return "arg";
    case ZC_ERR_NOMEM:
        return "nomem";
    case ZC_ERR_IO:
        return "io";
    case ZC_ERR_FORMAT:
        return "format";
    case ZC_ERR_LIMIT:
        return "limit";
    case ZC_ERR_UNSUPPORTED:
        return "unsupported";
    case ZC_ERR_MODEL:
        return "model";
    case ZC_ERR_INPUT:
        return "input";
    case ZC_ERR_ACCURACY:
        return "accuracy";
    case ZC_ERR_BUSY:
        return "busy";
    case ZC_ERR_FORKED:
        return "forked";
    case ZC_ERR_CANCELLED:
        return "cancelled";
    case ZC_ERR_DEVICE:
        return "device";
    case ZC_ERR_DEVICE_LOST:
        return "device_lost";
    case ZC_ERR_INTERNAL:
        return "internal";
    case ZC_ERR_TIMEOUT:
        return "timeout";
    }
    return "unknown";
}

zc_diag *zc_diag_create(void)
{
    zc_diag *diag = zc_calloc(1, sizeof *diag);
    if (!diag) return NULL;
    diag->entries.data = zc_calloc(RESERVED_ENTRIES, sizeof *diag->entries.data);
    diag->entries.cap = RESERVED_ENTRIES;
    if (!diag->entries.data) {
        free(diag);
        return NULL;
    }
    return diag;
}

void zc_diag_clear(zc_diag *diag)
{
    if (!diag) return;
    for (size_t i = 0; i < diag->entries.len; i++) free(diag->entries.data[i].text);
    diag->entries.len = 0;
    diag->dropped = 0;
}

void zc_diag_destroy(zc_diag **diag)
{
    if (!diag || !*diag) return;
    zc_diag_clear(*diag);
    ZC_VEC_FINI(&(*diag)->entries);
    free((*diag)->file);
    free(*diag);
    *diag = NULL;
}

size_t zc_diag_count(const zc_diag *diag)
{
    return diag ? diag->entries.len : 0;
}

size_t zc_diag_dropped(const zc_diag *diag)
{
    return diag ? diag->dropped : 0;
}

zc_status zc_diag_status(const zc_diag *diag, size_t i)
{
    return i < zc_diag_count(diag) ? diag->entries.data[i].status : ZC_OK;
}

static const char *text_of(const char *text)
{
    return text ? text : "out of memory: the reason could not be kept";
}

const char *zc_diag_text(const zc_diag *diag, size_t i)
{
    return i < zc_diag_count(diag) ? text_of(diag->entries.data[i].text) : "";
}

void zc_diag_log(zc_diag *diag, zc_log_fn fn, void *user)
{
    if (!diag) return;
    diag->log = fn;
    diag->log_user = user;
}

/* Appends untrusted text, escaped, cut at max bytes of its own. */
static void put_escaped(zc_buf *buf, const char *s, size_t max)
{
    const size_t n = strnlen(s, max + 1);
    zc_buf_escape(buf, s, n > max ? max : n);
    if (n > max) zc_buf_puts(buf, "...");
}

/* Cuts at the longest text, not inside a UTF-8 character, and gives the bytes to the caller; NULL
 * when memory ran out. */
static char *take_text(zc_buf *buf)
{
    if (buf->failed) {
        zc_buf_fini(buf);
        return NULL;
    }
    if (buf->len > ZC_DIAG_TEXT_MAX) {
        size_t n = ZC_DIAG_TEXT_MAX - 3;
        while (n && ((unsigned char)buf->data[n] & 0xC0) == 0x80) n--;
        memcpy(buf->data + n, "...", 4);
    }
    return buf->data;
}

void zc_diag_set_file(zc_diag *diag, const char *file)
{
    if (!diag) return;
    char *copy = file ? strdup(file) : NULL; /* `file` may be the old one */
    free(diag->file);
    diag->file = copy;
}

void zc_diag_lend_file(zc_diag *diag, const char *file)
{
    if (diag) diag->lent = file;
}

const char *zc_diag_lend_subject(zc_diag *diag, const char *subject)
{
    const char *before = diag ? diag->subject : NULL;
    if (diag) diag->subject = subject;
    return before;
}

static void put_name(zc_buf *buf, const char *name)
{
    put_escaped(buf, name, ZC_DIAG_TEXT_MAX / 4);
    zc_buf_puts(buf, ": ");
}

/* "<file>: <subject>: <reason>"; NULL: no memory. */
static char *compose(const zc_diag *diag, const char *subject, const char *reason)
{
    const char *file = diag->lent ? diag->lent : diag->file;
    zc_buf buf = {0};
    zc_buf_puts(&buf, ""); /* an empty text is a text too */
    if (file) put_name(&buf, file);
    if (!subject) subject = diag->subject;
    if (subject && !(file && strcmp(file, subject) == 0)) put_name(&buf, subject);
    zc_buf_escape(&buf, reason, strlen(reason));
    return take_text(&buf);
}

/* Takes e's text. */
static void add(zc_diag *diag, entry e)
{
    if (diag->log) diag->log(diag->log_user, e.status, text_of(e.text));
    if (diag->entries.len < ZC_DIAG_ENTRIES_MAX && ZC_VEC_PUSH(&diag->entries, e)) return;
    free(e.text);
    diag->dropped++;
}

zc_status zc_fail(zc_diag *diag, zc_status status, const char *subject, const char *fmt, ...)
{
    if (!diag) return status;
    /* A text that nobody gets is made in vain. */
    if (diag->entries.len >= ZC_DIAG_ENTRIES_MAX && !diag->log) {
        diag->dropped++;
        return status;
    }
    char reason[ZC_DIAG_TEXT_MAX + 1];
    va_list args;
    va_start(args, fmt);
    if (zc_vsnprintf(reason, sizeof reason, fmt, args) < 0) reason[0] = '\0';
    va_end(args);
    add(diag, (entry){.status = status, .text = compose(diag, subject, reason)});
    return status;
}

void zc_diag_move(zc_diag *to, zc_diag *from)
{
    if (!to || !from) return;
    for (size_t i = 0; i < from->entries.len; i++) add(to, from->entries.data[i]);
    from->entries.len = 0;
    to->dropped += from->dropped;
    zc_diag_clear(from);
}

zc_status zc_diag_end_again(zc_diag *to, zc_diag **own, zc_status status)
{
    if (status != ZC_OK) zc_diag_move(to, *own);
    zc_diag_destroy(own);
    return status;
}

zc_status zc_fail_nomem(zc_diag *diag, const char *what, size_t bytes)
{
    return zc_fail(diag, ZC_ERR_NOMEM, NULL, "out of memory for %s (%zu bytes)", what, bytes);
}
