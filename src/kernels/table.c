#include "kernels/table.h"

#include <string.h>

#include "cuda/nvrtc.h"
#include "kernels/abi.h"
#include "kernels/entries.h"

const zc_family zc_families[] = {
#define FAMILY(name, template) {#name, template, zc_gen_##name, zc_launch_##name},
#include "op/kernels.def"
};

static const struct {
    int family;
    const char *const *names;
} configs[] = {
    {-1, NULL},
#define CONFIG(family) {ZC_FAMILY_##family, zc_config_##family},
#include "op/kernels.def"
};

const char *const *zc_family_config(int family, int *n)
{
    const char *const *names = zc_config_entries;
    for (size_t i = 0; i < ZC_COUNTOF(configs); i++)
        if (configs[i].family == family) names = configs[i].names;
    for (*n = 0; names[*n];) ++*n;
    return names;
}

static uint64_t mix(uint64_t hash, const char *text)
{
    for (const char *c = text;; c++) {
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
        if (!*c) return hash;
    }
}

uint64_t zc_family_abi(int family)
{
    int n;
    const char *const *names = zc_family_config(family, &n);
    uint64_t hash = 0;
    for (const zc_source_hash *a = zc_template_abis; a->name; a++)
        if (strcmp(a->name, zc_families[family].template_name) == 0) hash = a->hash;
    for (int i = 0; i < n; i++) hash = mix(hash, names[i]);
    return hash;
}

bool zc_source_is_own(const zc_psource *source)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (const char *c = source->text; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    for (const zc_source_hash *s = zc_source_hashes; s->name; s++)
        if (strcmp(s->name, source->name) == 0) return s->hash == hash;
    return strncmp(source->name, ZC_USER_SOURCE, strlen(ZC_USER_SOURCE)) == 0;
}
