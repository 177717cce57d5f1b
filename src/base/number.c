#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>

/* A C library has this locale at hand: newlocale allocates nothing for it, and there is nothing to
 * free. */
locale_t zc_use_c_locale(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

int zc_vsnprintf(char *buf, size_t n, const char *fmt, va_list args)
{
    const locale_t before = zc_use_c_locale();
    const int len = vsnprintf(buf, n, fmt, args);
    uselocale(before);
    return len;
}

int zc_snprintf(char *buf, size_t n, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    const int len = zc_vsnprintf(buf, n, fmt, args);
    va_end(args);
    return len;
}

double zc_strtod(const char *text, char **end)
{
    const locale_t before = zc_use_c_locale();
    const double value = strtod(text, end);
    uselocale(before);
    return value;
}
