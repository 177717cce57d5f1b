#include "import/external.h"

#include <nettle/sha1.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* Files kept open; the one opened first gives way to another. */
#define FILES_MAX 32
/* How often the bytes of a file may be read, over all files. Some tensors are shared; a small file
 * behind a million tensors is an attack on memory. */
#define REREAD_SCALE 4
#define REREAD_BASE  ((uint64_t)16 << 20)
#define HASH_CHUNK   ((size_t)64 * 1024)

typedef struct data_file {
    char *location; /* NULL: a free slot */
    int fd;
    struct stat opened; /* as it was when it was opened */
    bool hashed;
    uint8_t sha1[SHA1_DIGEST_SIZE];
} data_file;

/* A file whatever the location by which it was reached. */
typedef struct file_id {
    dev_t dev;
    ino_t ino;
} file_id;

struct zc_external {
    char *root;
    uint64_t budget;
    uint64_t read;    /* bytes so far */
    uint64_t allowed; /* by the sizes of the files met so far */
    ZC_VEC(file_id) met;
    data_file files[FILES_MAX];
    int next; /* slot for the next file */
};

/* The directory part of a path, in new memory. */
static char *directory_of(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    if (!slash) return strdup(".");
    return slash == path ? strdup("/") : strndup(path, (size_t)(slash - path));
}

zc_status zc_external_create(const char *model_path, const char *root, uint64_t budget,
                             zc_external **out, zc_diag *diag)
{
    zc_external *ext = zc_calloc(1, sizeof *ext);
    if (!ext) return zc_fail_nomem(diag, "external data", sizeof *ext);
    ext->budget = budget;
    ext->root = root ? strdup(root) : directory_of(model_path);
    if (!ext->root) {
        free(ext);
        return zc_fail_nomem(diag, "a path", strlen(root ? root : model_path ? model_path : "."));
    }
    *out = ext;
    return ZC_OK;
}

static void close_file(data_file *file)
{
    if (!file->location) return;
    close(file->fd);
    free(file->location);
    *file = (data_file){0};
}

void zc_external_destroy(zc_external **ext)
{
    if (!ext || !*ext) return;
    for (int i = 0; i < FILES_MAX; i++) close_file(&(*ext)->files[i]);
    ZC_VEC_FINI(&(*ext)->met);
    free((*ext)->root);
    free(*ext);
    *ext = NULL;
}

static uint64_t file_size(const data_file *file)
{
    return (uint64_t)file->opened.st_size;
}

/* Raises what may be read when the file was not met before. */
static bool meet_file(zc_external *ext, const data_file *file)
{
    const file_id id = {file->opened.st_dev, file->opened.st_ino};
    for (size_t i = 0; i < ext->met.len; i++)
        if (ext->met.data[i].dev == id.dev && ext->met.data[i].ino == id.ino) return true;
    if (!ZC_VEC_PUSH(&ext->met, id)) return false;
    const uint64_t size = file_size(file);
    uint64_t more = UINT64_MAX;
    if (size < (UINT64_MAX - REREAD_BASE) / REREAD_SCALE) more = REREAD_SCALE * size + REREAD_BASE;
    ext->allowed = more < UINT64_MAX - ext->allowed ? ext->allowed + more : UINT64_MAX;
    return true;
}

static zc_status open_file(zc_external *ext, const char *location, data_file *out, zc_diag *diag)
{
    data_file file = {0};
    uint64_t size = 0;
    ZC_TRY(zc_file_open_beneath(ext->root, location, &file.fd, &size, diag));
    file.location = strdup(location);
    if (!file.location || fstat(file.fd, &file.opened) != 0 || !meet_file(ext, &file)) {
        free(file.location);
        close(file.fd);
        return zc_fail_nomem(diag, "an external data file", strlen(location));
    }
    *out = file;
    return ZC_OK;
}

static zc_status find_file(zc_external *ext, const char *location, data_file **out, zc_diag *diag)
{
    for (int i = 0; i < FILES_MAX; i++) {
        data_file *file = &ext->files[i];
        if (file->location && strcmp(file->location, location) == 0) {
            *out = file;
            return ZC_OK;
        }
    }
    data_file *file = &ext->files[ext->next];
    close_file(file);
    ZC_TRY(open_file(ext, location, file, diag));
    ext->next = (ext->next + 1) % FILES_MAX;
    *out = file;
    return ZC_OK;
}

/* A file that is written to while it is read gives a mixture of two tensors. */
static zc_status check_unchanged(const data_file *file, const char *tensor, zc_diag *diag)
{
    struct stat now;
    if (fstat(file->fd, &now) == 0 && now.st_size == file->opened.st_size &&
        now.st_mtim.tv_sec == file->opened.st_mtim.tv_sec &&
        now.st_mtim.tv_nsec == file->opened.st_mtim.tv_nsec)
        return ZC_OK;
    return zc_fail(diag, ZC_ERR_IO, tensor,
                   "external data file '" ZC_NAME "' changed while it was read", file->location);
}

static zc_status hash_file(data_file *file, zc_diag *diag)
{
    uint8_t *chunk = zc_realloc(NULL, HASH_CHUNK, 1);
    if (!chunk) return zc_fail_nomem(diag, "a checksum", HASH_CHUNK);
    struct sha1_ctx ctx;
    sha1_init(&ctx);
    zc_status status = ZC_OK;
    const uint64_t size = file_size(file);
    for (uint64_t off = 0; off < size && status == ZC_OK;) {
        const uint64_t left = size - off;
        const size_t n = left < HASH_CHUNK ? (size_t)left : HASH_CHUNK;
        status = zc_file_pread(file->fd, chunk, n, off, file->location, diag);
        if (status == ZC_OK) sha1_update(&ctx, n, chunk);
        off += n;
    }
    free(chunk);
    if (status != ZC_OK) return status;
    sha1_digest(&ctx, SHA1_DIGEST_SIZE, file->sha1);
    file->hashed = true;
    return ZC_OK;
}

static zc_status check_sha1(data_file *file, const zc_external_ref *ref, zc_diag *diag)
{
    if (!file->hashed) ZC_TRY(hash_file(file, diag));
    char got[2 * SHA1_DIGEST_SIZE + 1];
    for (size_t i = 0; i < SHA1_DIGEST_SIZE; i++)
        snprintf(got + 2 * i, sizeof got - 2 * i, "%02x", file->sha1[i]);
    if (strcasecmp(got, ref->checksum) == 0) return ZC_OK;
    return zc_fail(diag, ZC_ERR_FORMAT, ref->tensor,
                   "the SHA-1 of '" ZC_NAME "' is not the model's checksum (got %s, need %.64s)",
                   file->location, got, ref->checksum);
}

/* Counts the tensor's bytes against the limits. */
static zc_status count_read(zc_external *ext, const zc_external_ref *ref, zc_diag *diag)
{
    if (!zc_range_ok(ext->read, ref->length, ext->allowed))
        return zc_fail(diag, ZC_ERR_LIMIT, ref->tensor,
                       "tensors share the same external data too often (need at most %llu bytes "
                       "in all)",
                       (unsigned long long)ext->allowed);
    if (ext->budget && !zc_range_ok(ext->read, ref->length, ext->budget))
        return zc_fail(diag, ZC_ERR_LIMIT, ref->tensor,
                       "external data exceeds the memory budget (need at most %llu bytes)",
                       (unsigned long long)ext->budget);
    ext->read += ref->length;
    return ZC_OK;
}

zc_status zc_external_read(zc_external *ext, const zc_external_ref *ref, void **out, zc_diag *diag)
{
    data_file *file = NULL;
    ZC_TRY(find_file(ext, ref->location, &file, diag));
    if (!zc_range_ok(ref->offset, ref->length, file_size(file)))
        return zc_fail(diag, ZC_ERR_MODEL, ref->tensor,
                       "external data lies outside '" ZC_NAME "' (got offset %llu and length %llu, "
                       "the file has %llu bytes)",
                       file->location, (unsigned long long)ref->offset,
                       (unsigned long long)ref->length, (unsigned long long)file_size(file));
    if (ref->checksum) ZC_TRY(check_sha1(file, ref, diag));
    ZC_TRY(count_read(ext, ref, diag));
    *out = NULL;
    if (ref->length == 0) return ZC_OK;
    void *data = ref->length <= SIZE_MAX ? zc_realloc(NULL, (size_t)ref->length, 1) : NULL;
    if (!data) return zc_fail_nomem(diag, "external data", (size_t)ref->length);
    zc_status status =
        zc_file_pread(file->fd, data, ref->length, ref->offset, file->location, diag);
    if (status == ZC_OK) status = check_unchanged(file, ref->tensor, diag);
    if (status == ZC_OK)
        *out = data;
    else
        free(data);
    return status;
}
