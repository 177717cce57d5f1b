/* Finding a library that is there or is not. */
#include <dlfcn.h>
#include <string.h>

#include "base/number.h"
#include "bench.h"

static void *open_in(const char *folder, size_t len, const char *name)
{
    char path[1024];
    int n = zc_snprintf(path, sizeof path, "%.*s/%s", (int)len, folder, name);
    return n > 0 && (size_t)n < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

void *kb_library(const char *const *names, const char *folders, char *why, size_t n)
{
    for (; *names; names++) {
        void *library = NULL;
        for (const char *f = folders; f && *f && !library;) {
            size_t len = strcspn(f, ":");
            library = open_in(f, len, *names);
            f += len + (f[len] == ':');
        }
        if (!library) library = dlopen(*names, RTLD_NOW | RTLD_LOCAL);
        if (library) return library;
        const char *error = dlerror();
        zc_snprintf(why, n, "%s", error ? error : *names);
    }
    return NULL;
}

bool kb_bind(void *library, const kb_symbol *symbols, size_t count, void *table, char *why,
             size_t n)
{
    for (size_t i = 0; i < count; i++) {
        void *at = dlsym(library, symbols[i].name);
        if (!at) {
            zc_snprintf(why, n, "it has no %s", symbols[i].name);
            return false;
        }
        memcpy((char *)table + symbols[i].offset, &at, sizeof at);
    }
    return true;
}
