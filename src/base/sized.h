/* Structs of the public interface that begin with their size, a size_t, as the caller knows them:
 * callers and libraries of different versions meet here. Fields are only ever added behind the
 * last, and not in the padding there, which is part of older structs. */
#ifndef ZC_BASE_SIZED_H
#define ZC_BASE_SIZED_H

#include "base/diag.h"

/* The size of a struct's first version, whose last field is `field`. */
#define ZC_SIZE_UPTO(type, field) (offsetof(type, field) + sizeof(((type *)0)->field))

/* Copies a caller's parameters over own[size], which has its defaults and its own size in it. An
 * older caller's struct ends before fields that keep their defaults; a newer one's may only have
 * zeros behind those that are known here. */
zc_status zc_sized_take(const void *given, size_t least, void *own, size_t size,
                        const char *subject, zc_diag *diag);

/* Fills a caller's struct from own[size]: as much as it holds, zeros behind. */
zc_status zc_sized_give(const void *own, size_t size, size_t least, void *out, zc_diag *diag);

#endif
