#include "base/sized.h"

#include <stdint.h>
#include <string.h>

#include "zc/version.h"

/* Larger is no struct of any version, but memory that was never set. */
enum { SIZE_LIMIT = 4096 };

static zc_status check_size(size_t given, size_t least, const char *subject, zc_diag *diag)
{
    if (given >= least && given <= SIZE_LIMIT && given % sizeof(size_t) == 0) return ZC_OK;
    return zc_fail(diag, ZC_ERR_ARG, subject, "size is wrong (got %zu, need at least %zu)", given,
                   least);
}

static size_t size_of(const void *p)
{
    size_t size;
    memcpy(&size, p, sizeof size);
    return size;
}

zc_status zc_sized_take(const void *given, size_t least, void *own, size_t size,
                        const char *subject, zc_diag *diag)
{
    const size_t given_size = size_of(given);
    ZC_TRY(check_size(given_size, least, subject, diag));
    for (size_t i = size; i < given_size; i++)
        if (((const uint8_t *)given)[i])
            return zc_fail(diag, ZC_ERR_UNSUPPORTED, subject,
                           "a field is set that zc " ZC_VERSION " does not know (at byte %zu)", i);
    const size_t known = given_size < size ? given_size : size;
    memcpy((uint8_t *)own + sizeof size, (const uint8_t *)given + sizeof size, known - sizeof size);
    return ZC_OK;
}

zc_status zc_sized_give(const void *own, size_t size, size_t least, void *out, zc_diag *diag)
{
    const size_t room = size_of(out);
    ZC_TRY(check_size(room, least, "out", diag));
    const size_t known = room < size ? room : size;
    memcpy((uint8_t *)out + sizeof size, (const uint8_t *)own + sizeof size, known - sizeof size);
    memset((uint8_t *)out + known, 0, room - known);
    return ZC_OK;
}
