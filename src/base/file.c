#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#if defined(SYS_openat2) && defined(__has_include)
#if __has_include(<linux/openat2.h>)
#include <linux/openat2.h>
#define HAVE_OPENAT2 1
#endif
#endif

#include "base/mem.h"

/* One read or write call moves at most this much: the kernel's own limit is just below 2 GiB. */
#define IO_CHUNK   ((size_t)1 << 30)
#define READ_FLAGS (O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
#define TEMP_TRIES 64

/* Records errno's text. */
static zc_status io_fail(zc_diag *diag, const char *name, const char *what)
{
    char text[128];
    return zc_fail(diag, ZC_ERR_IO, name, "%s (%s)", what, strerror_r(errno, text, sizeof text));
}

static int open_at(int dir, const char *path, int flags, mode_t mode)
{
    int fd;
    do fd = openat(dir, path, flags, mode);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static const char *kind_text(mode_t mode)
{
    if (S_ISREG(mode)) return "a regular file";
    if (S_ISDIR(mode)) return "a directory";
    if (S_ISFIFO(mode)) return "a FIFO";
    if (S_ISSOCK(mode)) return "a socket";
    if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
    return "something else";
}

/* Takes over fd: gives it out when it is a regular file and closes it otherwise. */
static zc_status accept_regular(int fd, const char *name, int *out_fd, uint64_t *out_size,
                                zc_diag *diag)
{
    struct stat st;
    zc_status status = ZC_OK;
    if (fstat(fd, &st) != 0)
        status = io_fail(diag, name, "cannot examine");
    else if (!S_ISREG(st.st_mode))
        status = zc_fail(diag, ZC_ERR_IO, name, "cannot read (got %s, need a regular file)",
                         kind_text(st.st_mode));
    if (status != ZC_OK) {
        close(fd);
        return status;
    }
    *out_fd = fd;
    *out_size = (uint64_t)st.st_size;
    return ZC_OK;
}

zc_status zc_file_open(const char *path, int *out_fd, uint64_t *out_size, zc_diag *diag)
{
    const int fd = open_at(AT_FDCWD, path, READ_FLAGS, 0);
    if (fd < 0) return io_fail(diag, path, "cannot open");
    return accept_regular(fd, path, out_fd, out_size, diag);
}

/* Why a model's location is refused before any file is looked at, or NULL. */
static const char *location_fault(const char *s)
{
    if (!s || !*s) return "is empty";
    if (strnlen(s, PATH_MAX) >= PATH_MAX) return "is too long";
    if (s[0] == '/') return "is absolute";
    if (strchr(s, '\\')) return "contains a backslash";
    if (strstr(s, "://")) return "is a URL";
    const char first = (char)(s[0] | 0x20);
    if (first >= 'a' && first <= 'z' && s[1] == ':') return "names a drive";
    bool names_file = false;
    for (const char *p = s; *p;) {
        const size_t n = strcspn(p, "/");
        const bool dot = n == 1 && p[0] == '.';
        if (n == 2 && p[0] == '.' && p[1] == '.') return "contains '..'";
        names_file = n > 0 && !dot;
        p += n;
        if (*p == '/') {
            p++;
            names_file = false;
        }
    }
    return names_file ? NULL : "names no file";
}

/* Opens one component after the other and follows no symbolic link at all, which is stricter than
 * needed but needs no kernel support. Returns -1 with errno set. */
static int open_components(int root, const char *location)
{
    char name[NAME_MAX + 1];
    int dir = root;
    for (const char *p = location;;) {
        const size_t n = strcspn(p, "/");
        const char *rest = p + n + strspn(p + n, "/");
        if (n > NAME_MAX) {
            errno = ENAMETOOLONG;
            break;
        }
        memcpy(name, p, n);
        name[n] = '\0';
        const int flags = *rest ? O_PATH | O_DIRECTORY | O_CLOEXEC : READ_FLAGS;
        const int fd = open_at(dir, name, flags | O_NOFOLLOW, 0);
        const int saved = errno;
        if (dir != root) close(dir);
        if (fd < 0 || !*rest) {
            errno = saved;
            return fd;
        }
        dir = fd;
        p = rest;
    }
    if (dir != root) close(dir);
    return -1;
}

static int open_resolved(int root, const char *location)
{
#ifdef HAVE_OPENAT2
    struct open_how how = {.flags = READ_FLAGS, .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS};
    /* EAGAIN: the tree changed during the walk; the kernel asks to try again. */
    for (int tries = 0; tries < 32; tries++) {
        const int fd = (int)syscall(SYS_openat2, root, location, &how, sizeof how);
        if (fd >= 0) return fd;
        if (errno != EINTR && errno != EAGAIN) break;
    }
    /* Old kernels answer ENOSYS, and some sandboxes EPERM for calls that they do not know. */
    if (errno != ENOSYS && errno != EPERM) return -1;
#endif
    return open_components(root, location);
}

void zc_file_close(int fd)
{
    if (fd >= 0) close(fd);
}

zc_status zc_file_open_beneath(const char *root, const char *location, int *out_fd,
                               uint64_t *out_size, zc_diag *diag)
{
    const char *fault = location_fault(location);
    if (fault)
        return zc_fail(diag, ZC_ERR_MODEL, location,
                       "the file location %s (need a relative path beneath the model's directory)",
                       fault);
    const int dir =
        open_at(AT_FDCWD, root && *root ? root : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (dir < 0) return io_fail(diag, root, "cannot open the directory");
    const int fd = open_resolved(dir, location);
    const int saved = errno;
    close(dir);
    errno = saved;
    if (fd < 0 && (errno == EXDEV || errno == ELOOP))
        return zc_fail(diag, ZC_ERR_MODEL, location,
                       "the file location leads out of the model's directory or through a link "
                       "that is not allowed");
    if (fd < 0) return io_fail(diag, location, "cannot open");
    return accept_regular(fd, location, out_fd, out_size, diag);
}

/* An empty file is mapped as a page that nobody looks at. */
static size_t map_length(size_t len)
{
    return len ? len : 1;
}

zc_status zc_file_map(const char *path, uint8_t **out, size_t *out_len, zc_diag *diag)
{
    int fd;
    uint64_t size;
    ZC_TRY(zc_file_open(path, &fd, &size, diag));
    zc_status status = ZC_OK;
    void *p = MAP_FAILED;
    if (size > SIZE_MAX / 2)
        status = zc_fail(diag, ZC_ERR_LIMIT, NULL, "file too large");
    else if ((p = mmap(NULL, map_length((size_t)size), PROT_READ, MAP_SHARED, fd, 0)) == MAP_FAILED)
        status = io_fail(diag, path, "cannot be mapped");
    zc_file_close(fd);
    *out = status == ZC_OK ? p : NULL;
    *out_len = (size_t)size;
    return status;
}

void zc_file_unmap(uint8_t *data, size_t len)
{
    munmap(data, map_length(len));
}

zc_status zc_file_pread(int fd, void *buf, uint64_t len, uint64_t off, const char *name,
                        zc_diag *diag)
{
    if (!zc_range_ok(off, len, INT64_MAX) || len > SIZE_MAX)
        return zc_fail(diag, ZC_ERR_FORMAT, name, "offset %llu with length %llu is out of range",
                       (unsigned long long)off, (unsigned long long)len);
    uint64_t done = 0;
    while (done < len) {
        const uint64_t left = len - done;
        const size_t ask = left < IO_CHUNK ? (size_t)left : IO_CHUNK;
        const ssize_t got = pread(fd, (char *)buf + done, ask, (off_t)(off + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return io_fail(diag, name, "cannot read");
        if (got == 0)
            return zc_fail(diag, ZC_ERR_IO, name,
                           "the file is too short (got %llu bytes at offset %llu, need %llu)",
                           (unsigned long long)done, (unsigned long long)off,
                           (unsigned long long)len);
        done += (uint64_t)got;
    }
    return ZC_OK;
}

/* Reads size bytes of an open file into new memory. */
static zc_status read_all(int fd, const char *path, uint64_t size, uint8_t **out, zc_diag *diag)
{
    uint8_t *data = size < SIZE_MAX ? zc_realloc(NULL, (size_t)size + 1, 1) : NULL;
    if (!data) return zc_fail_nomem(diag, path, (size_t)size);
    const zc_status status = zc_file_pread(fd, data, size, 0, path, diag);
    if (status != ZC_OK) {
        free(data);
        return status;
    }
    data[size] = 0;
    *out = data;
    return ZC_OK;
}

zc_status zc_file_read(const char *path, uint64_t limit, uint8_t **out, size_t *out_len,
                       zc_diag *diag)
{
    int fd;
    uint64_t size;
    ZC_TRY(zc_file_open(path, &fd, &size, diag));
    zc_status status;
    if (size > limit)
        status = zc_fail(diag, ZC_ERR_LIMIT, path,
                         "the file is too large (got %llu bytes, need at most %llu)",
                         (unsigned long long)size, (unsigned long long)limit);
    else
        status = read_all(fd, path, size, out, diag);
    close(fd);
    if (status == ZC_OK) *out_len = (size_t)size;
    return status;
}

bool zc_file_is_same(const char *a, const char *b)
{
    struct stat sa, sb;
    return stat(a, &sa) == 0 && stat(b, &sb) == 0 && sa.st_dev == sb.st_dev &&
           sa.st_ino == sb.st_ino;
}

bool zc_file_is_stream(const char *path)
{
    struct stat st;
    return strcmp(path, "-") == 0 || (stat(path, &st) == 0 && S_ISFIFO(st.st_mode));
}

/* Appends what the stream holds, to its end. */
static zc_status drain(int fd, const char *path, uint64_t limit, zc_buf *out, zc_diag *diag)
{
    enum { STEP = 1 << 16 };
    for (;;) {
        const size_t at = zc_buf_grow(out, STEP);
        if (out->failed) return zc_fail_nomem(diag, path, out->len + STEP);
        const ssize_t got = read(fd, out->data + at, STEP);
        if (got < 0 && errno != EINTR) return io_fail(diag, path, "cannot read");
        out->len = at + (got > 0 ? (size_t)got : 0);
        if (got == 0) return ZC_OK;
        if (out->len > limit)
            return zc_fail(diag, ZC_ERR_LIMIT, path,
                           "the stream is too long (need at most %llu bytes)",
                           (unsigned long long)limit);
    }
}

zc_status zc_file_read_stream(const char *path, uint64_t limit, uint8_t **out, size_t *out_len,
                              zc_diag *diag)
{
    const bool is_stdin = strcmp(path, "-") == 0;
    const int fd = is_stdin ? STDIN_FILENO : open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0) return io_fail(diag, path, "cannot open");
    zc_buf text = {0};
    const zc_status status = drain(fd, is_stdin ? "standard input" : path, limit, &text, diag);
    if (!is_stdin) close(fd);
    if (status != ZC_OK) {
        zc_buf_fini(&text);
        return status;
    }
    text.data[text.len] = '\0';
    *out = (uint8_t *)text.data;
    *out_len = text.len;
    return ZC_OK;
}

struct zc_writer {
    int fd, dir;      /* -1 when closed */
    char *path;       /* as the caller gave it, for messages */
    char *target;     /* path after a symbolic link at its end was resolved */
    const char *name; /* last component, inside target */
    char temp[32];    /* name of the temporary in dir; "" when it has none */
    mode_t mode;      /* of the file that is replaced; 0: a new one */
    uint64_t written; /* length so far */
    void *view;       /* of the first view_len bytes; NULL: none */
    size_t view_len;
    bool failed; /* an earlier write failed: commit must refuse */
};

static void writer_free(zc_writer **writer)
{
    zc_writer *w = *writer;
    *writer = NULL;
    if (w->view) munmap(w->view, w->view_len);
    if (w->temp[0]) unlinkat(w->dir, w->temp, 0);
    if (w->fd >= 0) close(w->fd);
    if (w->dir >= 0) close(w->dir);
    free(w->path);
    free(w->target);
    free(w);
}

/* Follows a symbolic link at the end of path, so that the file it names is replaced and not the
 * link; refuses everything that exists and is not a regular file. */
static zc_status resolve_target(zc_writer *w, zc_diag *diag)
{
    struct stat st;
    if (lstat(w->path, &st) == 0 && S_ISLNK(st.st_mode)) {
        w->target = realpath(w->path, NULL);
        if (!w->target) return io_fail(diag, w->path, "cannot follow the symbolic link");
    } else {
        w->target = strdup(w->path);
        if (!w->target) return zc_fail_nomem(diag, "a path", strlen(w->path) + 1);
    }
    if (stat(w->target, &st) == 0) {
        w->mode = st.st_mode & 0777;
        if (S_ISREG(st.st_mode)) return ZC_OK;
        return zc_fail(diag, ZC_ERR_IO, w->path, "cannot replace (got %s, need a regular file)",
                       kind_text(st.st_mode));
    }
    return errno == ENOENT ? ZC_OK : io_fail(diag, w->path, "cannot write");
}

static zc_status open_dir(zc_writer *w, zc_diag *diag)
{
    char *slash = strrchr(w->target, '/');
    w->name = slash ? slash + 1 : w->target;
    if (!*w->name) return zc_fail(diag, ZC_ERR_IO, w->path, "the path names no file");
    const char *dir = !slash ? "." : slash == w->target ? "/" : w->target;
    if (slash && slash != w->target) *slash = '\0';
    w->dir = open_at(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    return w->dir < 0 ? io_fail(diag, w->path, "cannot open the directory") : ZC_OK;
}

static uint64_t random_bits(void)
{
    uint64_t bits;
    if (getrandom(&bits, sizeof bits, GRND_NONBLOCK) == (ssize_t)sizeof bits) return bits;
    /* Only clashes of names matter here, and O_EXCL finds those. */
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)now.tv_nsec << 32) ^ (uint64_t)getpid();
}

/* A file without a name: nothing is left of it even when the process is killed. Not every file
 * system has them, and naming it needs /proc. */
static bool open_nameless(zc_writer *w)
{
    char link[64];
    w->fd = open_at(w->dir, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    if (w->fd < 0) return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", w->fd);
    if (access(link, F_OK) == 0) return true;
    close(w->fd);
    w->fd = -1;
    return false;
}

/* Makes the temporary under a new name, or gives it to the nameless one at `link`. */
static bool name_temp(zc_writer *w, const char *link)
{
    for (int tries = 0; tries < TEMP_TRIES; tries++) {
        snprintf(w->temp, sizeof w->temp, ZC_TEMP_BEGIN "%016llx" ZC_TEMP_END,
                 (unsigned long long)random_bits());
        if (link && linkat(AT_FDCWD, link, w->dir, w->temp, AT_SYMLINK_FOLLOW) == 0) return true;
        if (!link)
            w->fd =
                open_at(w->dir, w->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (!link && w->fd >= 0) return true;
        if (errno != EEXIST) break;
    }
    w->temp[0] = '\0';
    return false;
}

static zc_status open_temp(zc_writer *w, zc_diag *diag)
{
    if (!open_nameless(w) && !name_temp(w, NULL))
        return io_fail(diag, w->path, "cannot create a temporary file beside it");
    /* Where that is not allowed, the file is as a new one. */
    if (w->mode) (void)!fchmod(w->fd, w->mode);
    return ZC_OK;
}

zc_status zc_writer_open(const char *path, zc_writer **out, zc_diag *diag)
{
    if (!path || !*path) return zc_fail(diag, ZC_ERR_ARG, NULL, "the output path is empty");
    zc_writer *w = zc_calloc(1, sizeof *w);
    if (!w) return zc_fail_nomem(diag, "a file writer", sizeof *w);
    w->fd = w->dir = -1;
    w->path = strdup(path);
    zc_status status = w->path ? ZC_OK : zc_fail_nomem(diag, "a path", strlen(path) + 1);
    if (status == ZC_OK) status = resolve_target(w, diag);
    if (status == ZC_OK) status = open_dir(w, diag);
    if (status == ZC_OK) status = open_temp(w, diag);
    if (status != ZC_OK) {
        writer_free(&w);
        return status;
    }
    *out = w;
    return ZC_OK;
}

static zc_status write_at(zc_writer *w, const void *data, size_t len, uint64_t off, zc_diag *diag)
{
    for (size_t done = 0; done < len;) {
        const size_t left = len - done;
        const size_t ask = left < IO_CHUNK ? left : IO_CHUNK;
        const ssize_t put = pwrite(w->fd, (const char *)data + done, ask, (off_t)(off + done));
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) {
            if (put == 0) errno = ENOSPC;
            w->failed = true;
            return io_fail(diag, w->path, "cannot write");
        }
        done += (size_t)put;
    }
    return ZC_OK;
}

zc_status zc_writer_write(zc_writer *writer, const void *data, size_t len, zc_diag *diag)
{
    if (!zc_range_ok(writer->written, len, INT64_MAX)) {
        writer->failed = true;
        return zc_fail(diag, ZC_ERR_LIMIT, writer->path, "the file would be too large");
    }
    ZC_TRY(write_at(writer, data, len, writer->written, diag));
    writer->written += len;
    return ZC_OK;
}

zc_status zc_writer_pwrite(zc_writer *writer, const void *data, size_t len, uint64_t off,
                           zc_diag *diag)
{
    if (!zc_range_ok(off, len, writer->written)) {
        writer->failed = true;
        return zc_fail(diag, ZC_ERR_ARG, writer->path,
                       "overwriting past the end (got offset %llu and %zu bytes, have %llu)",
                       (unsigned long long)off, len, (unsigned long long)writer->written);
    }
    return write_at(writer, data, len, off, diag);
}

zc_status zc_writer_view(zc_writer *w, const void **data, size_t *len, zc_diag *diag)
{
    if (w->failed || !w->written)
        return zc_fail(diag, ZC_ERR_IO, w->path, "cannot be read back: nothing was written");
    if (w->view) munmap(w->view, w->view_len);
    w->view_len = (size_t)w->written;
    w->view = mmap(NULL, w->view_len, PROT_READ, MAP_SHARED, w->fd, 0);
    if (w->view == MAP_FAILED) {
        w->view = NULL;
        return io_fail(diag, w->path, "cannot be read back");
    }
    /* While it is read, the disk begins with what committing waits for. */
    (void)sync_file_range(w->fd, 0, 0, SYNC_FILE_RANGE_WRITE);
    *data = w->view;
    *len = w->view_len;
    return ZC_OK;
}

static int sync_fd(int fd)
{
    int r;
    do r = fsync(fd);
    while (r != 0 && errno == EINTR);
    return r;
}

/* fsync and close report what write could not (delayed allocation, network file systems). A
 * duplicate is closed, as the file stays open until it has its name. */
static zc_status finish_temp(zc_writer *w, zc_diag *diag)
{
    if (w->failed)
        return zc_fail(diag, ZC_ERR_IO, w->path, "not replaced because an earlier write failed");
    if (sync_fd(w->fd) != 0) return io_fail(diag, w->path, "cannot write to the disk");
    const int copy = fcntl(w->fd, F_DUPFD_CLOEXEC, 0);
    if (copy >= 0 && close(copy) != 0 && errno != EINTR)
        return io_fail(diag, w->path, "cannot write to the disk");
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", w->fd);
    if ((!w->temp[0] && !name_temp(w, link)) || renameat(w->dir, w->temp, w->dir, w->name) != 0)
        return io_fail(diag, w->path, "cannot put the new file in place");
    w->temp[0] = '\0';
    return ZC_OK;
}

zc_status zc_writer_commit(zc_writer **writer, zc_diag *diag)
{
    zc_writer *w = *writer;
    zc_status status = finish_temp(w, diag);
    /* Some file systems cannot sync a directory and say EINVAL: nothing more can be done there. */
    if (status == ZC_OK && sync_fd(w->dir) != 0 && errno != EINVAL)
        status = io_fail(diag, w->path, "written, but its directory could not be synced");
    writer_free(writer);
    return status;
}

void zc_writer_abort(zc_writer **writer)
{
    if (writer && *writer) writer_free(writer);
}

zc_status zc_file_write(const char *path, const void *data, size_t len, zc_diag *diag)
{
    zc_writer *writer = NULL;
    ZC_TRY(zc_writer_open(path, &writer, diag));
    zc_status status = len ? zc_writer_write(writer, data, len, diag) : ZC_OK;
    if (status == ZC_OK) status = zc_writer_commit(&writer, diag);
    zc_writer_abort(&writer);
    return status;
}
