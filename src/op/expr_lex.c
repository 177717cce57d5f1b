/* Words of scalar expressions. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"

#include "op/expr_parse.h"

#define NUMBER_MAX 63 /* characters */

void zc_ex_skip_space(zc_ex_parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') p->at++;
}

bool zc_ex_take(zc_ex_parser *p, const char *word)
{
    zc_ex_skip_space(p);
    size_t n = strlen(word);
    if (p->status != ZC_OK || strncmp(p->at, word, n) != 0) return false;
    p->at += n;
    return true;
}

bool zc_ex_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

size_t zc_ex_name_length(const char *s)
{
    size_t n = 0;
    if (!zc_is_name_start(s[0])) return 0;
    while (zc_is_name_char(s[n])) n++;
    return n;
}

bool zc_ex_is_word(const char *s, size_t n, const char *word)
{
    return strlen(word) == n && memcmp(s, word, n) == 0;
}

/* Characters of "12", "0.5", ".5", "1e-3"; *whole: only digits. */
static size_t number_length(const char *s, bool *whole)
{
    size_t n = 0, digits = 0;
    while (zc_ex_is_digit(s[n])) n++;
    digits = n;
    *whole = true;
    if (s[n] == '.') {
        size_t from = ++n;
        while (zc_ex_is_digit(s[n])) n++;
        digits += n - from;
        *whole = false;
    }
    if (digits == 0) return 0;
    if (s[n] == 'e' || s[n] == 'E') {
        size_t exponent = n + 1 + (s[n + 1] == '-' || s[n + 1] == '+');
        if (!zc_ex_is_digit(s[exponent])) return n;
        for (n = exponent; zc_ex_is_digit(s[n]);) n++;
        *whole = false;
    }
    return n;
}

/* The digits as an integer; false when it does not fit. */
static bool read_int(const char *s, size_t n, int64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < n; i++)
        if (!zc_mul_i64(*out, 10, out) || !zc_add_i64(*out, s[i] - '0', out)) return false;
    return true;
}

/* In the C locale, whatever the caller's is. */
static bool read_double(const char *s, size_t n, double *out)
{
    char text[NUMBER_MAX + 1];
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!plain) return false;
    memcpy(text, s, n);
    text[n] = 0;
    *out = strtod_l(text, NULL, plain);
    freelocale(plain);
    return true;
}

int zc_ex_number(zc_ex_parser *p)
{
    bool whole;
    int64_t i;
    double f;
    const char *s = p->at;
    size_t n = number_length(s, &whole);
    if (n == 0 || zc_ex_name_length(s + n)) return zc_ex_fail_at(p, s, "not a number");
    if (n > NUMBER_MAX)
        return zc_ex_fail_at(p, s, "number too long (got %zu characters, need at most %d)", n,
                             NUMBER_MAX);
    p->at += n;
    if (whole && read_int(s, n, &i)) return zc_ex_literal_int(p, i);
    if (!read_double(s, n, &f)) return zc_ex_fail_at(p, s, "out of memory");
    return zc_ex_literal(p, f);
}
