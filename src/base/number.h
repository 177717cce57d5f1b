/* Text and numbers in the C locale, whatever locale the program has set: the only printing and
 * parsing of reals that the libraries may use (tests/locale). */
#ifndef ZC_BASE_NUMBER_H
#define ZC_BASE_NUMBER_H

#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "zc/status.h"

/* As snprintf, vsnprintf and strtod. */
int zc_snprintf(char *buf, size_t n, const char *fmt, ...) ZC_PRINTF(3, 4);
int zc_vsnprintf(char *buf, size_t n, const char *fmt, va_list args) ZC_PRINTF(3, 0);
double zc_strtod(const char *text, char **end);

/* Letters, digits and _ of ASCII: how a name begins, and goes on. */
static inline bool zc_is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
static inline bool zc_is_name_char(char c)
{
    return zc_is_name_start(c) || (c >= '0' && c <= '9');
}

/* From now on the calling thread's locale is C; returns what it was. */
locale_t zc_use_c_locale(void);

#endif
