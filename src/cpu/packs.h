/* Constants of a plan in the layouts that fast kernels read them in: made on first use, shared by
 * the plan's sessions, freed with the plan. Plans that share constants may share packs, too, which
 * then are their maker's.
 *
 * Where every reader of a constant reads packed copies, the pages of the original go back to the
 * system, once a packed copy has been seen to give back the same bytes. Whoever reads originals all
 * the same calls zc_packs_keep first: they are written anew from the copies, and stay. */
#ifndef ZC_CPU_PACKS_H
#define ZC_CPU_PACKS_H

#include <pthread.h>

#include "base/diag.h"
#include "base/mem.h"

/* A layout; its maker's struct begins with this. The functions may fail for lack of memory. */
typedef struct zc_pack_format zc_pack_format;
struct zc_pack_format {
    size_t bytes; /* of the packed form */
    bool (*same)(const zc_pack_format *a, const zc_pack_format *b);
    bool (*pack)(const zc_pack_format *f, const void *from, void *to);
    bool (*unpack)(const zc_pack_format *f, const void *from, void *to);
    /* Would unpack give these bytes? Takes little memory; false when it cannot tell. */
    bool (*gives_back)(const zc_pack_format *f, const void *packed, const void *plain);
    void (*destroy)(zc_pack_format *f);
};

/* A constant that is read packed and in no other way. */
typedef struct zc_pack_origin {
    uint8_t *data;
    size_t bytes;
    bool gone; /* its pages are given back */
} zc_pack_origin;

typedef struct zc_packs {
    pthread_mutex_t lock; /* of all that follows */
    struct zc_packed *list;
    zc_pack_origin *origins; /* in ascending order; not owned */
    size_t norigins;
    bool keep;
    uint64_t packed_bytes, released_bytes;
} zc_packs;

void zc_packs_init(zc_packs *p);
void zc_packs_fini(zc_packs *p);

/* The constant in this format, which the call takes over. *out is aligned to 64 and lives as long
 * as the packs. */
zc_status zc_packs_get(zc_packs *p, const void *constant, zc_pack_format *format, const void **out,
                       zc_diag *diag);

/* The same for a format of `size` bytes that stays the caller's and has nothing to destroy. Takes
 * no memory when the copy is there. */
zc_status zc_packs_get_plain(zc_packs *p, const void *constant, const zc_pack_format *format,
                             size_t size, const void **out, zc_diag *diag);

/* The constant's bytes are about to end: nobody runs a plan that reads it. */
void zc_packs_forget(zc_packs *p, const void *constant);

/* From now on all originals can be read. */
zc_status zc_packs_keep(zc_packs *p, zc_diag *diag);

/* Bytes of packed copies, and of originals that are given back, at this moment. */
void zc_packs_count(zc_packs *p, uint64_t *packed, uint64_t *released);

#endif
