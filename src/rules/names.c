/* Names near to one that does not exist. */
#include <string.h>

#include "rules/ast.h"

#define WORD_MAX 48

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int lower(char c)
{
    return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c;
}

/* Edits from a to b, letter case aside; words beyond a bound count as far apart. */
static int distance(const char *a, const char *b)
{
    int row[WORD_MAX + 1];
    int n = (int)strlen(a), m = (int)strlen(b);
    if (n > WORD_MAX || m > WORD_MAX) return WORD_MAX;
    for (int j = 0; j <= m; j++) row[j] = j;
    for (int i = 1; i <= n; i++) {
        int corner = row[0];
        row[0] = i;
        for (int j = 1; j <= m; j++) {
            int above = row[j];
            int change = corner + (lower(a[i - 1]) != lower(b[j - 1]));
            row[j] = least(change, least(above, row[j - 1]) + 1);
            corner = above;
        }
    }
    return row[m];
}

void zc_rl_suggest(zc_buf *out, const char *word, const char *(*next)(const void *ctx, int i),
                   const void *ctx)
{
    int limit = (int)strlen(word) / 3 + 1;
    int best = limit < (int)strlen(word) ? limit + 1 : limit;
    const char *near = NULL, *name;
    for (int i = 0; (name = next(ctx, i)); i++) {
        int d = distance(word, name);
        if (d >= best) continue;
        best = d;
        near = name;
    }
    if (near) zc_buf_printf(out, " (did you mean '%s'?)", near);
}
