#include "cpu/packs.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/gate.h"

#define ALIGN ((size_t)64)

typedef struct zc_packed {
    struct zc_packed *next;
    const void *constant;
    zc_pack_format *format;
    void *data;
} zc_packed;

void zc_packs_init(zc_packs *p)
{
    *p = (zc_packs){0};
    pthread_mutex_init(&p->lock, NULL);
}

static void packed_free(zc_packed *c)
{
    c->format->destroy(c->format);
    free(c->data);
    free(c);
}

void zc_packs_fini(zc_packs *p)
{
    while (p->list) {
        zc_packed *c = p->list;
        p->list = c->next;
        packed_free(c);
    }
    pthread_mutex_destroy(&p->lock);
}

/* fork() waits for those inside the gate, so that no child finds the lock taken. Without entry the
 * process is exiting, and the lock does all the same. */
static bool lock(zc_packs *p)
{
    bool inside = zc_gate_enter(ZC_GATE_ONEDNN) == ZC_OK;
    pthread_mutex_lock(&p->lock);
    return inside;
}

static void unlock(zc_packs *p, bool inside)
{
    pthread_mutex_unlock(&p->lock);
    if (inside) zc_gate_leave(ZC_GATE_ONEDNN);
}

void zc_packs_count(zc_packs *p, uint64_t *packed, uint64_t *released)
{
    bool inside = lock(p);
    *packed = p->packed_bytes;
    *released = p->released_bytes;
    unlock(p, inside);
}

/* ---- originals ---- */

static int by_address(const void *key, const void *element)
{
    const uint8_t *data = key;
    const zc_pack_origin *o = element;
    return data < o->data ? -1 : data > o->data;
}

/* NULL: something else reads it too. */
static zc_pack_origin *origin_of(const zc_packs *p, const void *constant)
{
    if (!p->norigins) return NULL;
    return bsearch(constant, p->origins, p->norigins, sizeof *p->origins, by_address);
}

/* The whole pages inside. */
static size_t pages_of(const zc_pack_origin *o, uint8_t **first)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t skip = zc_align_up((uintptr_t)o->data, page) - (uintptr_t)o->data;
    *first = o->data + skip;
    return skip < o->bytes ? (o->bytes - skip) / page * page : 0;
}

static void release(zc_packs *p, const zc_packed *c, zc_pack_origin *o)
{
    uint8_t *first;
    const size_t n = pages_of(o, &first);
    if (p->keep || o->gone || n == 0) return;
    if (!c->format->gives_back(c->format, c->data, o->data)) return;
    if (madvise(first, n, MADV_DONTNEED) != 0) return;
    o->gone = true;
    p->released_bytes += n;
}

static zc_status restore(zc_packs *p, zc_pack_origin *o, zc_diag *diag)
{
    uint8_t *first;
    const zc_packed *c = p->list;
    if (!o->gone) return ZC_OK;
    while (c->constant != o->data) c = c->next; /* what it was given back for */
    if (!c->format->unpack(c->format, c->data, o->data))
        return zc_fail_nomem(diag, "constant", o->bytes);
    o->gone = false;
    p->released_bytes -= pages_of(o, &first);
    return ZC_OK;
}

static zc_status restore_all(zc_packs *p, zc_diag *diag)
{
    for (size_t i = 0; i < p->norigins; i++) ZC_TRY(restore(p, &p->origins[i], diag));
    p->keep = true;
    return ZC_OK;
}

zc_status zc_packs_keep(zc_packs *p, zc_diag *diag)
{
    bool inside = lock(p);
    zc_status status = restore_all(p, diag);
    unlock(p, inside);
    return status;
}

/* ---- copies ---- */

static const zc_packed *find(const zc_packs *p, const void *constant, const zc_pack_format *format)
{
    for (const zc_packed *c = p->list; c; c = c->next)
        if (c->constant == constant && c->format->same(c->format, format)) return c;
    return NULL;
}

void zc_packs_forget(zc_packs *p, const void *constant)
{
    bool inside = lock(p);
    for (zc_packed **at = &p->list; *at;) {
        zc_packed *c = *at;
        if (c->constant != constant) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        p->packed_bytes -= c->format->bytes;
        packed_free(c);
    }
    unlock(p, inside);
}

/* The format stays the caller's when this fails. */
static zc_status add(zc_packs *p, const void *constant, zc_pack_format *format, zc_diag *diag)
{
    zc_packed *c = zc_calloc(1, sizeof *c);
    void *data =
        c ? aligned_alloc(ALIGN, zc_align_up(format->bytes ? format->bytes : 1, ALIGN)) : NULL;
    if (!data || !format->pack(format, constant, data)) {
        free(data);
        free(c);
        return zc_fail_nomem(diag, "packed constant", format->bytes);
    }
    *c = (zc_packed){.next = p->list, .constant = constant, .format = format, .data = data};
    p->list = c;
    p->packed_bytes += format->bytes;
    return ZC_OK;
}

static zc_status get(zc_packs *p, const void *constant, zc_pack_format *format, const void **out,
                     zc_diag *diag)
{
    const zc_packed *c = find(p, constant, format);
    zc_pack_origin *o = origin_of(p, constant);
    if (c) {
        format->destroy(format);
        *out = c->data;
        return ZC_OK;
    }
    zc_status status = o ? restore(p, o, diag) : ZC_OK;
    if (status == ZC_OK) status = add(p, constant, format, diag);
    if (status != ZC_OK) {
        format->destroy(format);
        return status;
    }
    *out = p->list->data;
    if (o) release(p, p->list, o);
    return ZC_OK;
}

zc_status zc_packs_get(zc_packs *p, const void *constant, zc_pack_format *format, const void **out,
                       zc_diag *diag)
{
    bool inside = lock(p);
    zc_status status = get(p, constant, format, out, diag);
    unlock(p, inside);
    return status;
}

static void free_plain(zc_pack_format *f)
{
    free(f);
}

zc_status zc_packs_get_plain(zc_packs *p, const void *constant, const zc_pack_format *format,
                             size_t size, const void **out, zc_diag *diag)
{
    bool inside = lock(p);
    const zc_packed *c = find(p, constant, format);
    *out = c ? c->data : NULL;
    unlock(p, inside);
    if (c) return ZC_OK;
    zc_pack_format *kept = zc_calloc(1, size);
    if (!kept) return zc_fail_nomem(diag, "packed constant", size);
    memcpy(kept, format, size);
    kept->destroy = free_plain;
    return zc_packs_get(p, constant, kept, out, diag);
}
