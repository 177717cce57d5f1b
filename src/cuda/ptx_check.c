#include "cuda/ptx_check.h"

#include <stdio.h>
#include <string.h>

/* What zc_constant_load leaves in the text. */
#define CONSTANT "// zc: constant"
/* And zc_stamp_least. */
#define STAMP "// zc: stamp"

static bool starts(const char *at, const char *word)
{
    return strncmp(at, word, strlen(word)) == 0;
}

/* Does the instruction reach memory that other blocks or kernels see? Parameters, shared, local and
 * constant memory are the kernel's own. */
static bool touches_memory(const char *at)
{
    static const char *const accesses[] = {"ld.",      "st.",      "atom.", "red.",
                                           "cp.async", "prefetch", "call"};
    static const char *const own[] = {"ld.param",        "ld.shared",     "ld.local",
                                      "ld.const",        "st.shared",     "st.local",
                                      "st.param",        "atom.shared",   "red.shared",
                                      "cp.async.commit", "cp.async.wait", "prefetch.tensormap"};
    bool touches = false;
    for (size_t i = 0; i < sizeof accesses / sizeof *accesses; i++)
        touches |= starts(at, accesses[i]);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++) touches &= !starts(at, own[i]);
    return touches;
}

/* From the first line of a body to its end. */
static bool body_waits(const char *at, const char *end)
{
    bool apart = false; /* is the next access of what no kernel in front writes or reads? */
    while (at < end) {
        at += strspn(at, " \t");
        if (*at == '@') { /* a predicate */
            at += strcspn(at, " \t\n");
            at += strspn(at, " \t");
        }
        if (starts(at, "griddepcontrol.wait")) return true;
        if (starts(at, CONSTANT) || starts(at, STAMP))
            apart = true;
        else if (touches_memory(at)) {
            if (!apart) return false;
            apart = false;
        }
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return false;
}

bool zc_ptx_waits(const char *ptx, char *entry, size_t n)
{
    static const char mark[] = ".entry ";
    for (const char *at = ptx; (at = strstr(at, mark)) != NULL;) {
        at += sizeof mark - 1;
        size_t name = strcspn(at, " (\t\n");
        const char *body = strstr(at, "\n{");
        const char *end = body ? strstr(body, "\n}") : NULL;
        if (!end || !body_waits(body + 2, end)) {
            snprintf(entry, n, "%.*s", (int)name, at);
            return false;
        }
        at = end;
    }
    return true;
}
