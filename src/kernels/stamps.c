#include "kernels/stamps.h"

#include <string.h>

#include "base/mem.h"
#include "kernels/table.h"

uint64_t zc_stamps_end(const zc_stamps *s, size_t n)
{
    if (n == 0 || s->begin == ZC_STAMP_NONE || s->end != ZC_STAMP_NONE)
        return n ? s->end : ZC_STAMP_NONE;
    for (size_t i = 1; i < n; i++)
        if (s[i].ready != ZC_STAMP_NONE) return s[i].ready;
    return ZC_STAMP_NONE;
}

/* Every entry is "...const __grid_constant__ TYPE p) {". */
static zc_status stamp(const char *text, zc_buf *out)
{
    static const char parameter[] = "const __grid_constant__ ", close[] = " p) {";
    zc_buf_puts(out, "#define ZC_STAMPED\n");
    for (const char *at; (at = strstr(text, parameter)) != NULL;) {
        const char *end = strstr(at, close);
        if (!end || memchr(at, '\n', (size_t)(end - at))) return ZC_ERR_INTERNAL;
        zc_buf_append(out, text, (size_t)(end - text));
        zc_buf_puts(
            out, " p, zc_stamps *const zc_stamps_at) { const zc_stamp zc_stamped(zc_stamps_at);");
        text = end + strlen(close);
    }
    zc_buf_puts(out, text);
    return out->failed ? ZC_ERR_NOMEM : ZC_OK;
}

static zc_status stamp_source(zc_psource *s, zc_arena *arena, zc_diag *diag)
{
    zc_buf text = {0};
    zc_status status = stamp(s->text, &text);
    if (status == ZC_OK) s->text = zc_arena_strndup(arena, text.data, text.len);
    zc_buf_fini(&text);
    if (status == ZC_ERR_INTERNAL)
        return zc_fail(diag, status, s->name, "has an entry that cannot note its time");
    return status == ZC_OK && s->text ? ZC_OK : zc_fail_nomem(diag, "sources", 1);
}

zc_status zc_stamped_sources(const zc_program *p, zc_arena *arena, const zc_psource **out,
                             zc_diag *diag)
{
    zc_psource *v = zc_arena_dup(arena, p->sources, p->nsources, sizeof *v);
    if (!p->nsources)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, "profile",
                       "kernels that note their times are compiled from the plan's sources, and it "
                       "has none: compile the model without --strip-sources");
    if (!v) return zc_fail_nomem(diag, "sources", p->nsources);
    for (uint32_t i = 0; i < p->nsources; i++) {
        if (!zc_source_is_own(&v[i]))
            return zc_fail(diag, ZC_ERR_UNSUPPORTED, v[i].name,
                           "is of zc " ZC_NAME ", and kernels that note their times are compiled "
                           "from this zc's own: compile the model again",
                           p->version);
        ZC_TRY(stamp_source(&v[i], arena, diag));
    }
    *out = v;
    return ZC_OK;
}
