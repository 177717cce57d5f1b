/* Files: bounded reading, the one atomic writer, the one opener for paths named by a model. */
#ifndef ZC_BASE_FILE_H
#define ZC_BASE_FILE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/diag.h"

/* Reads a whole regular file of at most `limit` bytes into malloc'd memory (never a mapping: a
 * mapped file that shrinks is a SIGBUS). One NUL byte follows the data. The caller frees *out. */
zc_status zc_file_read(const char *path, uint64_t limit, uint8_t **out, size_t *out_len,
                       zc_diag *diag);

/* Maps a whole regular file, not to be written to, for files that nobody writes to or cuts short in
 * the meantime. */
zc_status zc_file_map(const char *path, uint8_t **out, size_t *out_len, zc_diag *diag);
void zc_file_unmap(uint8_t *data, size_t len);

/* A path that is not a file but a stream: "-", the standard input, or a FIFO's. */
bool zc_file_is_stream(const char *path);
/* Reads such a stream to its end, as zc_file_read. */
zc_status zc_file_read_stream(const char *path, uint64_t limit, uint8_t **out, size_t *out_len,
                              zc_diag *diag);

/* Opens a regular file for reading, refusing directories, FIFOs, sockets and devices without
 * blocking on them. *out_size is its size by fstat. */
zc_status zc_file_open(const char *path, int *out_fd, uint64_t *out_size, zc_diag *diag);

/* Opens `location`, a relative path from a model, beneath directory `root`: never outside it, not
 * through "..", an absolute path, a symbolic link that leaves root, or a magic link (on kernels
 * without openat2: through no symbolic link at all). An empty root is ".". Regular files
 * only. */
zc_status zc_file_open_beneath(const char *root, const char *location, int *out_fd,
                               uint64_t *out_size, zc_diag *diag);

void zc_file_close(int fd);

/* Do both paths lead to one file? */
bool zc_file_is_same(const char *a, const char *b);

/* pread of exactly len bytes; a short file is an error that says how many bytes there were. */
zc_status zc_file_pread(int fd, void *buf, uint64_t len, uint64_t off, const char *name,
                        zc_diag *diag);

/* Atomic writer: bytes go to a temporary in the target's directory; commit syncs and renames.
 * Whatever fails up to the rename, the old file stays as it was and no temporary is left (nor when
 * the process is killed, where the file system has files without a name); the new file has the old
 * one's mode. Only a
 * directory that cannot be synced is reported after the new file is in place. A symbolic link at
 * the end of path is followed; what is not a regular file is refused. */
typedef struct zc_writer zc_writer;
/* The temporary's name begins and ends so, and it is open for writing as long as it exists: a
 * program that is told to stop can find and remove its own. */
#define ZC_TEMP_BEGIN ".zc-"
#define ZC_TEMP_END   ".tmp"
zc_status zc_writer_open(const char *path, zc_writer **out, zc_diag *diag);
zc_status zc_writer_write(zc_writer *writer, const void *data, size_t len, zc_diag *diag);
/* Overwrites bytes already written (headers filled in at the end). */
zc_status zc_writer_pwrite(zc_writer *writer, const void *data, size_t len, uint64_t off,
                           zc_diag *diag);
/* All that was written, in read-only memory that ends with the writer. A mapping: nobody else
 * knows the temporary's name. */
zc_status zc_writer_view(zc_writer *writer, const void **data, size_t *len, zc_diag *diag);
/* Both end the writer and set it to NULL. */
zc_status zc_writer_commit(zc_writer **writer, zc_diag *diag);
void zc_writer_abort(zc_writer **writer);
/* A whole file at once. */
zc_status zc_file_write(const char *path, const void *data, size_t len, zc_diag *diag);

#endif
