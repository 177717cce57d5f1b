#include "media/zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#define LOCAL_MAGIC   0x04034b50u
#define CENTRAL_MAGIC 0x02014b50u
#define END_MAGIC     0x06054b50u
enum { LOCAL_SIZE = 30, CENTRAL_SIZE = 46, END_SIZE = 22, COMMENT_MAX = 65535 };
enum { STORED = 0, DEFLATED = 8, FLAG_ENCRYPTED = 1, FLAG_UTF8 = 0x800 };
/* In place of a size, and of the number of entries: it stands in a field of zip64. */
#define ELSEWHERE 0xFFFFFFFFu
#define MANY      0xFFFFu
/* Deflate makes at most so many bytes of one. */
#define RATIO_MAX 1032u
/* What the writer says of itself: version 2.0, 1 January 1980. */
#define VERSION 20u
#define DATE    0x0021u

static uint32_t u16(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const uint8_t *p)
{
    return u16(p) | u16(p + 2) << 16;
}

bool zc_zip_is(const uint8_t *data, size_t len)
{
    return len >= 4 && (u32(data) == LOCAL_MAGIC || u32(data) == END_MAGIC);
}

/* ---- reading ---- */

static zc_status damaged(zc_diag *diag, const char *what)
{
    return zc_fail(diag, ZC_ERR_FORMAT, NULL, "the zip archive is damaged or cut short: %s", what);
}

/* The end record, before a comment of any length; NULL: there is none. */
static const uint8_t *find_end(const uint8_t *data, size_t len)
{
    if (len < END_SIZE) return NULL;
    size_t least = len > END_SIZE + COMMENT_MAX ? len - END_SIZE - COMMENT_MAX : 0;
    for (size_t at = len - END_SIZE + 1; at-- > least;)
        if (u32(data + at) == END_MAGIC && at + END_SIZE + u16(data + at + 20) == len)
            return data + at;
    return NULL;
}

/* *at: where the entry's record begins, and then the next one. */
static zc_status read_entry(zc_zip *zip, size_t *at, size_t end, zc_diag *diag)
{
    const uint8_t *p = zip->data + *at;
    if (!zc_range_ok(*at, CENTRAL_SIZE, end) || u32(p) != CENTRAL_MAGIC)
        return damaged(diag, "its directory has no entry where one must be");
    size_t name_len = u16(p + 28), whole = CENTRAL_SIZE + name_len + u16(p + 30) + u16(p + 32);
    if (!zc_range_ok(*at, whole, end)) return damaged(diag, "an entry leaves its directory");
    zc_zip_entry e = {.method = u16(p + 10),
                      .crc = u32(p + 16),
                      .packed = u32(p + 20),
                      .size = u32(p + 24),
                      .at = u32(p + 42)};
    e.name = strndup((const char *)p + CENTRAL_SIZE, name_len);
    if (!e.name || !ZC_VEC_PUSH(&zip->entries, e)) {
        free(e.name);
        return zc_fail_nomem(diag, "an archive's directory", name_len);
    }
    *at += whole;
    if (u16(p + 8) & FLAG_ENCRYPTED)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, e.name, "this entry is encrypted");
    if (e.packed == ELSEWHERE || e.size == ELSEWHERE || e.at == ELSEWHERE)
        return zc_fail(diag, ZC_ERR_LIMIT, e.name,
                       "zip64 is not read: this entry is too large (need below 4 GiB)");
    return ZC_OK;
}

zc_status zc_zip_open(const uint8_t *data, size_t len, zc_zip *out, zc_diag *diag)
{
    *out = (zc_zip){.data = data, .len = len};
    const uint8_t *end = find_end(data, len);
    if (!end) return damaged(diag, "it has no end record");
    size_t n = u16(end + 10), size = u32(end + 12), at = u32(end + 16);
    if (n == MANY || size == ELSEWHERE || at == ELSEWHERE)
        return zc_fail(diag, ZC_ERR_LIMIT, NULL,
                       "a zip64 archive is not read (need below 4 GiB and 65535 entries)");
    if (u16(end + 8) != n || !zc_range_ok(at, size, (size_t)(end - data)))
        return damaged(diag, "its end record contradicts it");
    for (size_t i = 0, stop = at + size; i < n; i++) ZC_TRY(read_entry(out, &at, stop, diag));
    return ZC_OK;
}

void zc_zip_close(zc_zip *zip)
{
    for (size_t i = 0; i < zip->entries.len; i++) free(zip->entries.data[i].name);
    ZC_VEC_FINI(&zip->entries);
}

/* Exactly e->size bytes, or it is damaged. */
static bool inflate_entry(const zc_zip_entry *e, const uint8_t *packed, uint8_t *out)
{
    z_stream z = {.next_in = (uint8_t *)(uintptr_t)packed,
                  .avail_in = e->packed,
                  .next_out = out,
                  .avail_out = e->size + 1}; /* one more shows a stream that is too long */
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
    int end = inflate(&z, Z_FINISH);
    bool whole = end == Z_STREAM_END && z.total_out == e->size;
    inflateEnd(&z);
    return whole;
}

/* Where the entry's bytes begin; NULL: not in the archive. */
static const uint8_t *find_bytes(const zc_zip *zip, const zc_zip_entry *e)
{
    const uint8_t *p = zip->data + e->at;
    if (!zc_range_ok(e->at, LOCAL_SIZE, zip->len) || u32(p) != LOCAL_MAGIC) return NULL;
    size_t skip = LOCAL_SIZE + u16(p + 26) + u16(p + 28);
    if (!zc_range_ok(e->at, skip, zip->len)) return NULL;
    return zc_range_ok(e->at + skip, e->packed, zip->len) ? p + skip : NULL;
}

zc_status zc_zip_read(const zc_zip *zip, size_t i, uint8_t **out, size_t *len, zc_diag *diag)
{
    const zc_zip_entry *e = &zip->entries.data[i];
    const uint8_t *packed = find_bytes(zip, e);
    if (e->method != STORED && e->method != DEFLATED)
        return zc_fail(diag, ZC_ERR_UNSUPPORTED, e->name,
                       "unknown compression (got method %u, need 0 or 8)", e->method);
    bool fits = e->method == STORED ? e->size == e->packed : e->size / RATIO_MAX <= e->packed;
    if (!packed || !fits)
        return zc_fail(diag, ZC_ERR_FORMAT, e->name,
                       "the archive's entry is damaged (it says %u bytes from %u)", e->size,
                       e->packed);
    uint8_t *data = zc_calloc((size_t)e->size + 1, 1);
    if (!data) return zc_fail_nomem(diag, e->name, e->size);
    bool whole = e->method == DEFLATED && inflate_entry(e, packed, data);
    if (e->method == STORED) {
        memcpy(data, packed, e->size);
        whole = true;
    }
    if (!whole || crc32(0, data, e->size) != e->crc) {
        free(data);
        return zc_fail(diag, ZC_ERR_FORMAT, e->name, "the archive's entry is damaged (its %s)",
                       whole ? "checksum is another" : "bytes do not inflate to what it says");
    }
    *out = data;
    *len = e->size;
    return ZC_OK;
}

/* ---- writing ---- */

static void put16(zc_buf *b, uint32_t v)
{
    const uint8_t bytes[] = {(uint8_t)v, (uint8_t)(v >> 8)};
    zc_buf_append(b, bytes, sizeof bytes);
}

static void put32(zc_buf *b, uint32_t v)
{
    put16(b, v & 0xFFFF);
    put16(b, v >> 16);
}

/* What local and central headers have in common, from the version that is needed to read it. */
static void put_common(zc_buf *b, uint32_t crc, uint32_t size, size_t name_len)
{
    put16(b, VERSION);
    put16(b, FLAG_UTF8);
    put16(b, STORED);
    put16(b, 0); /* midnight */
    put16(b, DATE);
    put32(b, crc);
    put32(b, size);
    put32(b, size);
    put16(b, (uint32_t)name_len);
    put16(b, 0); /* no extra field */
}

static uint32_t checksum(uint32_t crc, const uint8_t *data, size_t len)
{
    return (uint32_t)crc32_z(crc, data, len);
}

static zc_status write_buf(zc_zip_writer *w, zc_buf *b, zc_diag *diag)
{
    zc_status status = b->failed ? zc_fail_nomem(diag, "an archive", b->len)
                                 : zc_writer_write(w->file, b->data, b->len, diag);
    w->at += b->len;
    zc_buf_fini(b);
    return status;
}

zc_status zc_zip_add(zc_zip_writer *w, const char *name, const void *head, size_t head_len,
                     const void *body, size_t body_len, zc_diag *diag)
{
    size_t name_len = strlen(name), size;
    zc_buf local = {0};
    if (!zc_add_size(head_len, body_len, &size) || name_len > UINT16_MAX ||
        w->entries == UINT16_MAX || size >= ELSEWHERE ||
        w->at >= ELSEWHERE - size - LOCAL_SIZE - name_len)
        return zc_fail(diag, ZC_ERR_LIMIT, name,
                       "too large for a zip archive (need below 4 GiB in all)");
    uint32_t crc = checksum(0, head, head_len);
    if (body_len) crc = checksum(crc, body, body_len);
    put32(&w->directory, CENTRAL_MAGIC);
    put16(&w->directory, VERSION);
    put_common(&w->directory, crc, (uint32_t)size, name_len);
    for (int i = 0; i < 3; i++) put16(&w->directory, 0); /* comment, volume, internal attributes */
    put32(&w->directory, 0);                             /* external attributes */
    put32(&w->directory, (uint32_t)w->at);
    zc_buf_append(&w->directory, name, name_len);
    w->entries++;
    put32(&local, LOCAL_MAGIC);
    put_common(&local, crc, (uint32_t)size, name_len);
    zc_buf_append(&local, name, name_len);
    ZC_TRY(write_buf(w, &local, diag));
    ZC_TRY(zc_writer_write(w->file, head, head_len, diag));
    if (body_len) ZC_TRY(zc_writer_write(w->file, body, body_len, diag));
    w->at += size;
    return ZC_OK;
}

zc_status zc_zip_end(zc_zip_writer *w, zc_diag *diag)
{
    uint32_t at = (uint32_t)w->at, size = (uint32_t)w->directory.len;
    if (w->at + w->directory.len >= ELSEWHERE)
        return zc_fail(diag, ZC_ERR_LIMIT, NULL, "too large for a zip archive (need below 4 GiB)");
    put32(&w->directory, END_MAGIC);
    put32(&w->directory, 0); /* volumes */
    put16(&w->directory, (uint32_t)w->entries);
    put16(&w->directory, (uint32_t)w->entries);
    put32(&w->directory, size);
    put32(&w->directory, at);
    put16(&w->directory, 0); /* no comment */
    return write_buf(w, &w->directory, diag);
}
