#include "cuda/cache.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static const char *const suffixes[ZC_CACHE_KINDS] = {".cubin", ".peaks"};

enum { SHA = 32, HEADER = 8 + SHA, FILES_MAX = 1 << 20 };
static const char magic[8] = "\x89ZCC\r\n\x1a\n";

/* ---- keys ---- */

static void hash_text(struct sha256_ctx *ctx, const char *s)
{
    sha256_update(ctx, strlen(s) + 1, (const uint8_t *)s);
}

static void to_hex(const uint8_t *bytes, size_t n, char *out)
{
    for (size_t i = 0; i < n; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

/* Two NVRTCs may report one version and differ: the GNU build id of the library that is loaded, or
 * where the linker gave it none, its file. */
typedef struct build {
    uintptr_t inside; /* an address in the library */
    struct sha256_ctx *ctx;
    bool found;
} build;

/* A note is three 32-bit words (length of name and of value, type), the name, the value, each
 * padded to 4. */
static void hash_build_id(build *b, const char *at, size_t left)
{
    enum { WORDS = 12, GNU_BUILD_ID = 3 };
    while (left >= WORDS) {
        uint32_t words[3];
        memcpy(words, at, WORDS);
        size_t name = ((size_t)words[0] + 3) & ~(size_t)3,
               value = ((size_t)words[1] + 3) & ~(size_t)3;
        if (name > left - WORDS || value > left - WORDS - name) return;
        if (words[2] == GNU_BUILD_ID && words[0] == 4 && memcmp(at + WORDS, "GNU", 4) == 0 &&
            words[1]) {
            sha256_update(b->ctx, words[1], (const uint8_t *)at + WORDS + name);
            b->found = true;
            return;
        }
        at += WORDS + name + value;
        left -= WORDS + name + value;
    }
}

static int look_at_library(struct dl_phdr_info *info, size_t size, void *user)
{
    build *b = user;
    bool here = false;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        here |= h->p_type == PT_LOAD && b->inside - info->dlpi_addr - h->p_vaddr < h->p_memsz;
    }
    for (int i = 0; here && i < info->dlpi_phnum && !b->found; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        if (h->p_type == PT_NOTE)
            hash_build_id(b, (const char *)(info->dlpi_addr + h->p_vaddr), h->p_memsz);
    }
    (void)size;
    return here;
}

static void hash_library(struct sha256_ctx *ctx, const zc_rtc *rtc)
{
    build b = {.ctx = ctx};
    Dl_info info;
    struct stat st;
    memcpy(&b.inside, &rtc->version, sizeof b.inside);
    (void)dl_iterate_phdr(look_at_library, &b);
    if (b.found || !dladdr((void *)b.inside, &info) || stat(info.dli_fname, &st) != 0) return;
    uint64_t facts[] = {(uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                        (uint64_t)st.st_mtim.tv_nsec};
    hash_text(ctx, info.dli_fname);
    sha256_update(ctx, sizeof facts, (const uint8_t *)facts);
}

void zc_cache_make_key(const zc_rtc *rtc, const zc_pkernel *kernel, const zc_psource *sources,
                       uint32_t nsources, int arch, zc_cache_key *out)
{
    struct sha256_ctx ctx;
    uint8_t digest[SHA];
    char version[64], arch_option[64];
    const char *options[ZC_RTC_OPTIONS];
    snprintf(version, sizeof version, "nvrtc %d.%d", rtc->major, rtc->minor);
    int n = zc_rtc_options(rtc, kernel, arch, arch_option, options);
    sha256_init(&ctx);
    hash_text(&ctx, version);
    hash_library(&ctx, rtc);
    for (int i = 0; i < n; i++) hash_text(&ctx, options[i]);
    hash_text(&ctx, kernel->template_name);
    hash_text(&ctx, kernel->spec);
    for (uint32_t i = 0; i < nsources; i++) {
        if (!zc_rtc_serves(&sources[i], kernel)) continue;
        hash_text(&ctx, sources[i].name);
        hash_text(&ctx, sources[i].text);
    }
    sha256_digest(&ctx, SHA, digest);
    out->kind = ZC_CACHE_KERNELS;
    to_hex(digest, SHA, out->hex);
}

void zc_cache_key_of_text(zc_cache_kind kind, const char *text, zc_cache_key *out)
{
    struct sha256_ctx ctx;
    uint8_t digest[SHA];
    sha256_init(&ctx);
    hash_text(&ctx, text);
    sha256_digest(&ctx, SHA, digest);
    out->kind = kind;
    to_hex(digest, SHA, out->hex);
}

/* ---- the folder ---- */

const char *zc_cache_folder(char *buf, size_t n)
{
    const char *own = getenv("ZC_CACHE_DIR"), *xdg = getenv("XDG_CACHE_HOME"),
               *home = getenv("HOME");
    int len = -1;
    if (own && *own)
        len = snprintf(buf, n, "%s", own);
    else if (xdg && *xdg == '/')
        len = snprintf(buf, n, "%s/zc", xdg);
    else if (home && *home == '/')
        len = snprintf(buf, n, "%s/.cache/zc", home);
    return len > 0 && (size_t)len < n ? buf : NULL;
}

static bool file_path(const char *name, char *buf, size_t n)
{
    char folder[3072];
    if (!zc_cache_folder(folder, sizeof folder)) return false;
    int len = snprintf(buf, n, "%s/%s", folder, name);
    return len > 0 && (size_t)len < n;
}

static bool entry_path(const zc_cache_key *key, char *buf, size_t n)
{
    char name[80];
    snprintf(name, sizeof name, "%s%s", key->hex, suffixes[key->kind]);
    return file_path(name, buf, n);
}

/* The folder and its parents. */
static void make_folder(void)
{
    char path[3072];
    if (!zc_cache_folder(path, sizeof path)) return;
    for (char *p = path + 1; *p; p++) {
        if (*p != '/') continue;
        *p = '\0';
        (void)mkdir(path, 0700);
        *p = '/';
    }
    (void)mkdir(path, 0700);
}

/* ---- entries ---- */

static void digest_of(const void *data, size_t len, uint8_t out[SHA])
{
    struct sha256_ctx ctx;
    sha256_init(&ctx);
    sha256_update(&ctx, len, data);
    sha256_digest(&ctx, SHA, out);
}

/* Appends what the file holds behind its header; false when it is absent or damaged. */
static bool read_entry(const char *path, zc_buf *out)
{
    uint8_t *bytes, digest[SHA];
    size_t len;
    if (zc_file_read(path, ZC_CACHE_BYTES_MAX, &bytes, &len, NULL) != ZC_OK) return false;
    bool good = len > HEADER && memcmp(bytes, magic, sizeof magic) == 0;
    if (good) {
        digest_of(bytes + HEADER, len - HEADER, digest);
        good = memcmp(bytes + sizeof magic, digest, SHA) == 0;
    }
    if (good) zc_buf_append(out, bytes + HEADER, len - HEADER);
    free(bytes);
    return good && !out->failed;
}

bool zc_cache_get(const zc_cache_key *key, zc_buf *out)
{
    char path[4096];
    if (!entry_path(key, path, sizeof path) || !read_entry(path, out)) return false;
    (void)utimensat(AT_FDCWD, path, NULL, 0); /* used now */
    return true;
}

/* ---- size ---- */

typedef struct entry {
    char name[80];
    zc_cache_kind kind;
    struct timespec used;
    uint64_t bytes;
} entry;
typedef ZC_VEC(entry) entries;

static bool is_entry(const char *name, zc_cache_kind *kind)
{
    if (strlen(name) <= 64) return false;
    for (int k = 0; k < ZC_CACHE_KINDS; k++) {
        if (strcmp(name + 64, suffixes[k]) != 0) continue;
        *kind = (zc_cache_kind)k;
        return true;
    }
    return false;
}

static zc_status list(entries *out, zc_diag *diag)
{
    char folder[3072], path[4096];
    if (!zc_cache_folder(folder, sizeof folder)) return ZC_OK;
    DIR *dir = opendir(folder);
    if (!dir)
        return errno == ENOENT
                   ? ZC_OK
                   : zc_fail(diag, ZC_ERR_IO, folder, "cannot be read: %s", strerror(errno));
    zc_status status = ZC_OK;
    for (struct dirent *d; status == ZC_OK && out->len < FILES_MAX && (d = readdir(dir)) != NULL;) {
        struct stat st;
        entry e;
        if (!is_entry(d->d_name, &e.kind) || !file_path(d->d_name, path, sizeof path) ||
            lstat(path, &st) != 0)
            continue;
        snprintf(e.name, sizeof e.name, "%.79s", d->d_name);
        e.used = st.st_mtim;
        e.bytes = (uint64_t)st.st_size;
        if (!ZC_VEC_PUSH(out, e)) status = zc_fail_nomem(diag, "cache entries", out->len);
    }
    closedir(dir);
    return status;
}

static int older_first(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    if (a->used.tv_sec != b->used.tv_sec) return a->used.tv_sec < b->used.tv_sec ? -1 : 1;
    if (a->used.tv_nsec != b->used.tv_nsec) return a->used.tv_nsec < b->used.tv_nsec ? -1 : 1;
    return strcmp(a->name, b->name);
}

zc_status zc_cache_look(zc_cache_kind kind, zc_cache_stats *out, zc_diag *diag)
{
    entries all = {0};
    *out = (zc_cache_stats){0};
    zc_status status = list(&all, diag);
    for (size_t i = 0; i < all.len; i++) {
        if (all.data[i].kind != kind) continue;
        out->files++;
        out->bytes += all.data[i].bytes;
    }
    ZC_VEC_FINI(&all);
    return status;
}

zc_status zc_cache_each(zc_cache_kind kind, void (*fn)(void *user, const zc_buf *bytes), void *user,
                        zc_diag *diag)
{
    entries all = {0};
    zc_status status = list(&all, diag);
    for (size_t i = 0; status == ZC_OK && i < all.len; i++) {
        char path[4096];
        zc_buf bytes = {0};
        if (all.data[i].kind == kind && file_path(all.data[i].name, path, sizeof path) &&
            read_entry(path, &bytes))
            fn(user, &bytes);
        zc_buf_fini(&bytes);
    }
    ZC_VEC_FINI(&all);
    return status;
}

zc_status zc_cache_trim(uint64_t keep, zc_cache_stats *removed, zc_diag *diag)
{
    entries all = {0};
    uint64_t total = 0;
    *removed = (zc_cache_stats){0};
    zc_status status = list(&all, diag);
    if (all.len) qsort(all.data, all.len, sizeof *all.data, older_first);
    for (size_t i = 0; i < all.len; i++) total += all.data[i].bytes;
    for (size_t i = 0; status == ZC_OK && i < all.len && (total > keep || keep == 0); i++) {
        char path[4096];
        if (!file_path(all.data[i].name, path, sizeof path)) continue;
        bool gone = unlink(path) == 0;
        if (gone || errno == ENOENT) total -= all.data[i].bytes;
        if (!gone) continue;
        removed->files++;
        removed->bytes += all.data[i].bytes;
    }
    ZC_VEC_FINI(&all);
    return status;
}

/* ---- keeping ---- */

void zc_cache_put(const zc_cache_key *key, const void *data, size_t len, uint64_t most)
{
    char path[4096];
    uint8_t header[HEADER];
    zc_writer *w;
    zc_cache_stats removed;
    if (!entry_path(key, path, sizeof path)) return;
    make_folder();
    if (zc_writer_open(path, &w, NULL) != ZC_OK) return;
    memcpy(header, magic, sizeof magic);
    digest_of(data, len, header + sizeof magic);
    bool good = zc_writer_write(w, header, HEADER, NULL) == ZC_OK &&
                zc_writer_write(w, data, len, NULL) == ZC_OK && zc_writer_commit(&w, NULL) == ZC_OK;
    zc_writer_abort(&w);
    if (good) (void)zc_cache_trim(most, &removed, NULL);
}
