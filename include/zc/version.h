/* The version of these headers, and of the library at run time. */
#ifndef ZC_VERSION_H
#define ZC_VERSION_H

#include "zc/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ZC_VERSION_MAJOR 0
#define ZC_VERSION_MINOR 1
#define ZC_VERSION_PATCH 0

#define ZC_TEXT_OF(x)  ZC_TEXT_OF_(x)
#define ZC_TEXT_OF_(x) #x
/* "0.1.0" */
#define ZC_VERSION                                                                                 \
    ZC_TEXT_OF(ZC_VERSION_MAJOR)                                                                   \
    "." ZC_TEXT_OF(ZC_VERSION_MINOR) "." ZC_TEXT_OF(ZC_VERSION_PATCH)
/* Grows with the version, for #if: 100 is 0.1.0. */
#define ZC_VERSION_NUMBER (ZC_VERSION_MAJOR * 10000 + ZC_VERSION_MINOR * 100 + ZC_VERSION_PATCH)

/* The library's own ZC_VERSION and ZC_VERSION_NUMBER. */
ZC_API const char *zc_version(void);
ZC_API int zc_version_number(void);

#ifdef __cplusplus
}
#endif
#endif
