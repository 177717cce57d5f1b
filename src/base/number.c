#include "base/number.h"

#include <stdio.h>
#include <stdlib.h>

/* uselocale is the calling thread's alone, and a C library has the C locale at hand: newlocale
 * allocates nothing for it. */
locale_t zc_c_locale_enter(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

void zc_c_locale_leave(locale_t before)
{
    freelocale(uselocale(before));
}

int zc_vsnprintf(char *buf, size_t n, const char *fmt, va_list args)
{
    const locale_t before = zc_c_locale_enter();
    const int len = vsnprintf(buf, n, fmt, args);
    zc_c_locale_leave(before);
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
    const locale_t before = zc_c_locale_enter();
    const double value = strtod(text, end);
    zc_c_locale_leave(before);
    return value;
}
