/* The files of a filled model: its copy, and the external data. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/fill.h"

/* Unused bytes between two tensors; more is an error in the model and not padding. */
#define GAP_MAX ((uint64_t)1 << 30)

static char *join(const char *dir, const char *name)
{
    zc_buf b = {0};
    zc_buf_printf(&b, "%s/%s", dir, name);
    if (!b.failed) return b.data;
    zc_buf_fini(&b);
    return NULL;
}

/* Tensors of one file, sorted: by place, and of tensors that share one the strongest use first. */
static int by_place(const void *a, const void *b)
{
    const piece *x = a, *y = b;
    int order = strcmp(x->location, y->location);
    if (order) return order;
    if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    if (x->form != y->form) return x->form > y->form ? -1 : 1;
    return strcmp(x->name, y->name);
}

static zc_status pad(fill *f, const piece *p, uint64_t at, zc_writer *w)
{
    if (p->offset - at > GAP_MAX)
        return zc_fail(
            f->diag, ZC_ERR_LIMIT, p->name,
            "too many unused bytes before it in '" ZC_NAME "' (got %llu, need at most %llu)",
            p->location, (unsigned long long)(p->offset - at), (unsigned long long)GAP_MAX);
    if (at < p->offset) memset(f->chunk, 0, CHUNK_BYTES);
    while (at < p->offset) {
        size_t n = p->offset - at < CHUNK_BYTES ? (size_t)(p->offset - at) : CHUNK_BYTES;
        ZC_TRY(zc_writer_write(w, f->chunk, n, f->diag));
        at += n;
    }
    return ZC_OK;
}

static zc_status write_pieces(fill *f, const piece *pieces, size_t n, zc_writer *w)
{
    uint64_t end = 0;
    const piece *last = NULL;
    for (size_t i = 0; i < n; i++) {
        const piece *p = &pieces[i];
        f->tensors++;
        if (!p->bytes) continue;
        bool same =
            last && last->offset == p->offset && last->bytes == p->bytes && last->dtype == p->dtype;
        f->shared += same;
        if (same) continue;
        if (p->offset < end)
            return zc_fail(f->diag, ZC_ERR_UNSUPPORTED, p->name,
                           "its bytes in '" ZC_NAME "' overlap those of '" ZC_NAME
                           "' (got offset %llu, need %llu)",
                           p->location, last->name, (unsigned long long)p->offset,
                           (unsigned long long)end);
        ZC_TRY(pad(f, p, end, w));
        ZC_TRY(cli_fill_write_values(f, p, w));
        end = p->offset + p->bytes;
        last = p;
    }
    return ZC_OK;
}

static zc_status copy_bytes(fill *f, int fd, uint64_t size, const char *name, zc_writer *w)
{
    for (uint64_t off = 0; off < size;) {
        size_t n = size - off < CHUNK_BYTES ? (size_t)(size - off) : CHUNK_BYTES;
        ZC_TRY(zc_file_pread(fd, f->chunk, n, off, name, f->diag));
        ZC_TRY(zc_writer_write(w, f->chunk, n, f->diag));
        off += n;
    }
    return ZC_OK;
}

/* A file that is there holds all that its tensors need, or it is damaged. */
static zc_status copy_weights(fill *f, const piece *pieces, size_t n, zc_writer *w)
{
    int fd = -1;
    uint64_t size = 0;
    ZC_TRY(zc_file_open_beneath(f->root, pieces->location, &fd, &size, f->diag));
    zc_status status = ZC_OK;
    for (size_t i = 0; i < n && status == ZC_OK; i++)
        if (!zc_range_ok(pieces[i].offset, pieces[i].bytes, size))
            status = zc_fail(
                f->diag, ZC_ERR_MODEL, pieces[i].name,
                "'" ZC_NAME "' is incomplete (got %llu bytes, need %llu): complete it or remove it",
                pieces[i].location, (unsigned long long)size,
                (unsigned long long)(pieces[i].offset + pieces[i].bytes));
    if (status == ZC_OK) status = copy_bytes(f, fd, size, pieces->location, w);
    zc_file_close(fd);
    f->copied++;
    return status;
}

/* Writes or copies one external file. A link that leads nowhere counts as there: it is an error. */
static zc_status write_weights(fill *f, const piece *pieces, size_t n)
{
    struct stat st;
    zc_writer *w = NULL;
    char *source = join(f->root, pieces->location), *target = join(f->output, pieces->location);
    zc_status status = source && target ? zc_writer_open(target, &w, f->diag) : cli_fill_nomem(f);
    if (status == ZC_OK) {
        bool absent = lstat(source, &st) != 0 && errno == ENOENT;
        status = (absent ? write_pieces : copy_weights)(f, pieces, n, w);
    }
    if (status == ZC_OK) status = zc_writer_commit(&w, f->diag);
    zc_writer_abort(&w);
    free(source);
    free(target);
    return status;
}

static zc_status write_external(fill *f)
{
    piece *p = f->pieces.data;
    for (size_t i = 0; i < f->pieces.len; i++) cli_fill_judge(f, &p[i]);
    for (size_t i = 0; i < f->pieces.len; i++) f->total += p[i].bytes;
    if (p) qsort(p, f->pieces.len, sizeof *p, by_place);
    for (size_t i = 0, n; i < f->pieces.len; i += n) {
        for (n = 1; i + n < f->pieces.len && strcmp(p[i].location, p[i + n].location) == 0;) n++;
        ZC_TRY(write_weights(f, p + i, n));
    }
    return ZC_OK;
}

static zc_status copy_model(fill *f, int fd, uint64_t size, zc_writer **w)
{
    ZC_TRY(copy_bytes(f, fd, size, f->model, *w));
    ZC_TRY(write_external(f));
    return zc_writer_commit(w, f->diag);
}

/* The model's copy is begun first, so that a directory that cannot be written is found at once, and
 * put in place last. */
zc_status cli_fill_write_files(fill *f)
{
    int fd = -1;
    uint64_t size = 0;
    zc_writer *w = NULL;
    char reason[128];
    if (mkdir(f->output, 0777) != 0 && errno != EEXIST)
        return zc_fail(f->diag, ZC_ERR_IO, f->output, "cannot make the directory (%s)",
                       strerror_r(errno, reason, sizeof reason));
    char *target = join(f->output, "model.onnx");
    zc_status status = target ? zc_writer_open(target, &w, f->diag) : cli_fill_nomem(f);
    if (status == ZC_OK) status = zc_file_open(f->model, &fd, &size, f->diag);
    if (status == ZC_OK) status = copy_model(f, fd, size, &w);
    zc_writer_abort(&w);
    zc_file_close(fd);
    free(target);
    return status;
}
