/* Damages plans under right hashes: what a checksum cannot find, the reader's checks must. */
#ifndef ZC_TESTS_FORGE_H
#define ZC_TESTS_FORGE_H

#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "planfile/format.h"

static inline void forge_sha(const void *a, size_t a_len, const void *b, size_t b_len, uint8_t *out)
{
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, a_len, a);
    if (b_len) sha256_update(&ctx, b_len, b);
    sha256_digest(&ctx, ZC_PLAN_SHA, out);
}

static inline zc_plan_section *forge_table(uint8_t *plan)
{
    return (zc_plan_section *)(plan + sizeof(zc_plan_header));
}

/* Hashes every section that lies in the file, and the header, anew. */
static inline void forge_seal(uint8_t *plan, size_t len)
{
    zc_plan_header *h = (zc_plan_header *)plan;
    zc_plan_section *t = forge_table(plan);
    for (int i = 0; i < ZC_PLAN_SECTION_COUNT; i++)
        if (zc_range_ok(t[i].offset, t[i].length, len))
            forge_sha(plan + t[i].offset, t[i].length, NULL, 0, t[i].sha256);
    memset(h->sha256, 0, sizeof h->sha256);
    uint8_t sha[ZC_PLAN_SHA];
    forge_sha(h, sizeof *h, t, ZC_PLAN_SECTION_COUNT * sizeof *t, sha);
    memcpy(h->sha256, sha, sizeof sha);
}

/* Hashes one section and the header anew. */
static inline void forge_seal_section(uint8_t *plan, int section)
{
    zc_plan_header *h = (zc_plan_header *)plan;
    zc_plan_section *t = forge_table(plan);
    forge_sha(plan + t[section].offset, t[section].length, NULL, 0, t[section].sha256);
    memset(h->sha256, 0, sizeof h->sha256);
    uint8_t sha[ZC_PLAN_SHA];
    forge_sha(h, sizeof *h, t, ZC_PLAN_SECTION_COUNT * sizeof *t, sha);
    memcpy(h->sha256, sha, sizeof sha);
}

/* A copy (freed with free) in which one section has another length, the file laid out to fit: bytes
 * are cut off or zeros added. */
static inline uint8_t *forge_resized(const uint8_t *plan, int section, uint64_t length,
                                     size_t *new_len)
{
    const zc_plan_section *from = (const zc_plan_section *)(plan + sizeof(zc_plan_header));
    zc_plan_section to[ZC_PLAN_SECTION_COUNT];
    uint64_t at = zc_align_up(sizeof(zc_plan_header) + sizeof to, ZC_PLAN_ALIGN);
    for (int i = 0; i < ZC_PLAN_SECTION_COUNT; i++) {
        to[i] = from[i];
        to[i].offset = at;
        if (i == section) to[i].length = length;
        at = zc_align_up(at + to[i].length, ZC_PLAN_ALIGN);
    }
    uint8_t *out = calloc(at, 1);
    if (!out) return NULL;
    memcpy(out, plan, sizeof(zc_plan_header));
    ((zc_plan_header *)out)->file_size = at;
    memcpy(out + sizeof(zc_plan_header), to, sizeof to);
    for (int i = 0; i < ZC_PLAN_SECTION_COUNT; i++)
        memcpy(out + to[i].offset, plan + from[i].offset,
               from[i].length < to[i].length ? from[i].length : to[i].length);
    forge_seal(out, at);
    *new_len = at;
    return out;
}

#endif
