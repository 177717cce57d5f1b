/* What a kernel's source says of other files and of its function, without a compiler. */
#include <string.h>

#include "rules/binding/parts.h"

/* Lines joined by backslashes are one; behind a backslash compilers let blanks stand. */
static void splice(const char *s, zc_buf *out)
{
    for (; *s; s++) {
        size_t blanks = *s == '\\' ? 1 + strspn(s + 1, " \t\v\f\r") : 0;
        if (blanks && s[blanks] == '\n')
            s += blanks;
        else
            zc_buf_append(out, s, 1);
    }
    zc_buf_puts(out, "");
}

/* Behind blanks and comments. */
static const char *skip_blanks(const char *s)
{
    for (const char *end = s; end; s = end ? end + 2 : s) {
        s += strspn(s, " \t\v\f");
        end = strncmp(s, "/*", 2) == 0 ? strstr(s + 2, "*/") : NULL;
    }
    return s;
}

/* Is `at` the first of its line, but for blanks and a comment that ends there? */
static bool begins_line(const char *text, const char *at)
{
    while (at > text && strchr(" \t\v\f", at[-1])) at--;
    return at == text || at[-1] == '\n' || at[-1] == '\r' ||
           (at[-1] == '/' && at - text > 1 && at[-2] == '*');
}

/* What follows the # of a directive, or __has_, which asks whether a file is there; NULL: neither.
 */
static const char *directive(const char *text, const char *s)
{
    size_t mark = *s == '#' ? 1 : strncmp(s, "%:", 2) == 0 ? 2 : 0;
    if (strncmp(s, "__has_", 6) == 0) return s + 6;
    return mark && begins_line(text, s) ? skip_blanks(s + mark) : NULL;
}

/* Behind the next word that brings another file in or asks for one; NULL: there is none. What looks
 * like one within a comment or a string counts, too: to tell, the source would have to be read as
 * the compiler reads it. */
static const char *next_include(const char *text, const char *from)
{
    static const char *const words[] = {"include_next", "include", "import", "embed"};
    for (const char *s = from; *s; s++) {
        const char *word = directive(text, s);
        for (size_t i = 0; word && i < ZC_COUNTOF(words); i++)
            if (strncmp(word, words[i], strlen(words[i])) == 0) return word + strlen(words[i]);
    }
    return NULL;
}

/* zc's own header, which is part of zc's version and so of what kernels are cached by. */
static bool is_own_header(const char *s)
{
    s = skip_blanks(s);
    s += *s == '(';
    if ((*s != '"' && *s != '<') || strncmp(s + 1, "zc/", 3) != 0) return false;
    for (s++; *s && *s != '"' && *s != '>' && *s != '\n'; s++)
        if (s[0] == '.' && s[1] == '.') return false;
    return true;
}

bool zc_rl_find_include(const char *text, zc_buf *out)
{
    zc_buf plain = {0};
    splice(text, &plain);
    out->failed |= plain.failed;
    const char *what = plain.data;
    while (what && (what = next_include(plain.data, what)) && is_own_header(what)) what++;
    if (what) zc_buf_append(out, what, strcspn(what, "\r\n"));
    zc_buf_fini(&plain);
    return what != NULL;
}

static bool has_word(const char *text, const char *word)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    size_t n = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        if ((at == text || !strchr(letters, at[-1])) && (!at[n] || !strchr(letters, at[n])))
            return true;
    return false;
}

bool zc_rl_has_function(const char *text, const char *name, bool *nomem)
{
    zc_buf plain = {0};
    splice(text, &plain);
    *nomem |= plain.failed;
    bool makes_names = plain.data && strstr(plain.data, "##");
    bool has = plain.failed || makes_names || has_word(plain.data, name);
    zc_buf_fini(&plain);
    return has;
}
